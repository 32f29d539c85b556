/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MODULE_PROC_H
#define MODULE_PROC_H

#include <linux/cred.h>
#include <linux/path.h>
#include <linux/pid.h>

#include "base.h"
#include "check.h"
#include "meta.h"

/*
 * What is known of a process, in the kernel's own numbering (spec §8.2, §8.3).
 *
 *  1. A kind is gathered once, when it is first wanted; what does not exist then stays
 *     away.
 *  2. Gathering never fails: what cannot be had is left out.
 *  3. All zeroes is nothing known.
 *
 * One thread at a time.
 */

/**
 * struct kbus_proc - metadata of a process
 * @tried:        kinds that were looked for
 * @have:         kinds that were found
 * @uid:          real, effective, saved and file system uid
 * @gid:          the same of groups
 * @cred:         for groups and capabilities, with a reference
 * @pid:          process, thread and parent process, with references
 * @tid_comm:     name of the thread
 * @pid_comm:     name of the process
 * @exe_file:     executable, with a reference
 * @cmdline:      arguments
 * @cmdline_size: their bytes
 * @cgroup:       path of the control group
 * @seclabel:     security label
 * @sessionid:    audit session
 * @loginuid:     audit uid
 */
struct kbus_proc {
	u64 tried;
	u64 have;
	kuid_t uid[4];
	kgid_t gid[4];
	const struct cred *cred;
	struct pid *pid[3];
	char tid_comm[TASK_COMM_LEN];
	char pid_comm[TASK_COMM_LEN];
	struct file *exe_file;
	char *cmdline;
	size_t cmdline_size;
	char *cgroup;
	char *seclabel;
	u32 sessionid;
	kuid_t loginuid;
};

/**
 * kbus_proc_gather() - gather kinds about the calling thread
 * @proc: metadata
 * @mask: enum kdbus_attach_flags; kinds already looked for are passed over
 *
 * KDBUS_ATTACH_CMDLINE reads user memory: not under bus.lock.
 */
void kbus_proc_gather(struct kbus_proc *proc, u64 mask);

/**
 * kbus_proc_fake() - take what HELLO gives instead
 * @proc:  all zeroes
 * @hello: from core_check_hello(), with fakes
 *
 * Return: 0; -EINVAL: an id that does not exist here; -ENOMEM. After a failure @proc is
 * to be passed to kbus_proc_release().
 */
int kbus_proc_fake(struct kbus_proc *proc, const struct core_hello *hello);

/**
 * kbus_proc_release() - forget everything
 * @proc: metadata
 */
void kbus_proc_release(struct kbus_proc *proc);

#endif
