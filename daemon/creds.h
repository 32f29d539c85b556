/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DAEMON_CREDS_H
#define DAEMON_CREDS_H

/*
 * creds.h - who a client is: what the kernel says of its process when it connects
 *
 * 1. The socket says who connected (SO_PEERCRED, SO_PEERGROUPS); all else is read in /proc of that
 *    pid, through one descriptor of its directory, which does not outlive the process. It is
 *    believed only if that process is the one that connected: its pidfd is still alive afterwards.
 *    Kernels that give no pidfd of a peer (before 6.5) leave the time from connect() to the first
 *    reading open, in which a pid can be given to another process of the same uid; what is read
 *    later is of a process that started at the same time, or not believed.
 * 2. Ids are kept as the daemon sees them and translated for each receiver.
 * 3. What cannot be read is absent, never guessed.
 * 4. A process can make whoever reads its command line wait: the memory is its own, and may be one
 *    that it or a file system of its user fills in when it likes. Reading in /proc is therefore for
 *    helper threads (reading.h); only the functions that say so do it.
 * 5. What is read is what somebody wants: CREDS_WHO before anything is done for a client, the kinds
 *    of CREDS_LATE each when a receiver or a question asks for it.
 */

#include <sys/types.h>

#include "base.h"

#include "meta.h"
#include "policy.h"

/* One line of a uid_map or gid_map */
struct id_range {
	u32 inside;
	u32 outside;
	u32 count;
};

#define ID_RANGES_MAX 340

struct id_map {
	struct id_range *ranges;
	size_t n;
};

#define PIDNS_LEVELS 32

/* Who it is, for policy and for what is said of everybody; besides KDBUS_ATTACH_* */
#define CREDS_WHO (1ULL << 63)
/* What is read only if somebody wants it */
#define CREDS_LATE \
	((u64)(KDBUS_ATTACH_EXE | KDBUS_ATTACH_CMDLINE | KDBUS_ATTACH_CGROUP | KDBUS_ATTACH_AUDIT))

/**
 * struct creds - one process, as of when it was read
 * @read:	what was read, or cannot be: CREDS_WHO and kinds of CREDS_LATE
 * @start:	when it started, in clock ticks; 0: its pidfd says what this is for
 * @core:	euid, egid, groups for policy
 * @cap_ipc_owner: over the daemon's user namespace
 * @meta:	values as the daemon sees them; its strings and arrays belong to this
 * @userns, @pidns, @mntns: inode numbers, 0 if unknown
 * @nspid, @nsppid: ids, and its parent's, in the pid namespaces from the daemon's own down
 * @pidns_chain: inode numbers of these namespaces
 * @uid_map, @gid_map: of its user namespace
 * @confined:	seccomp or no_new_privs
 * @root:	inode of its root directory
 */
struct creds {
	unsigned int refs;
	uid_t uid;
	pid_t pid;
	u64 read;
	u64 start;
	struct core_cred core;
	bool cap_ipc_owner;
	struct core_meta meta;
	u64 userns;
	u64 pidns;
	u64 mntns;
	u64 root_dev;
	u64 root_ino;
	bool confined;
	u32 nspid[PIDNS_LEVELS];
	u32 nsppid[PIDNS_LEVELS];
	u64 pidns_chain[PIDNS_LEVELS];
	unsigned int n_nspid;
	unsigned int n_nsppid;
	unsigned int n_pidns;
	struct id_map uid_map;
	struct id_map gid_map;
};

/* Once, before there are threads. */
void creds_init(void);
struct creds *creds_new(pid_t pid);
/* What the socket says, without a look into /proc */
int creds_of_socket(int sock, struct creds **ret);
/* A pidfd of the process at the other end; -ENOPROTOOPT: this kernel has none; negative errno */
int creds_pidfd(int sock);
/* All of this process; looks into /proc. */
int creds_of_self(struct creds **ret);
struct creds *creds_ref(struct creds *creds);
struct creds *creds_unref(struct creds *creds);

/* What of @want has not been read. */
u64 creds_lacks(const struct creds *creds, u64 want);
/* Move what was read of the same process into @to, and free the rest. */
void creds_absorb(struct creds *to, struct creds *from);
/* The process has gone: nothing more can be had of it. */
void creds_give_up(struct creds *creds);

/* creds-read.c: helper threads */

/**
 * creds_read() - read all that takes no time
 * @c:	its pid is whose; nobody else has it yet
 * @proc: descriptor of the directory in /proc
 * @pidfd: of the process; -1: none, then @start counts
 * @euid: that the socket says
 * @start: as of an earlier reading; 0: this is the first
 * @want: CREDS_WHO and kinds of CREDS_LATE; CMDLINE is left out
 *
 * Return: 0; -ESRCH: it has gone, or is another one; -ENOMEM.
 */
int creds_read(struct creds *c, int proc, int pidfd, uid_t euid, u64 start, u64 want);
/* The command line, which can take for ever. */
void creds_read_cmdline(struct creds *c, int proc);
/* The directory of a process in /proc, or -1 */
int creds_open(pid_t pid);
/* Its name, which is there at once; "?" if it has gone. */
void creds_comm(pid_t pid, char *buf, size_t size);
u64 creds_own_userns(void);

bool creds_equal_authority(const struct creds *a, const struct creds *b);

/* As @to sees an id of the daemon's namespace; the overflow id if it cannot. */
u32 creds_map_uid(const struct creds *to, u32 uid);
u32 creds_map_gid(const struct creds *to, u32 gid);
/* From what @from calls it to what the daemon calls it. -EINVAL: no such id there. */
int creds_unmap_uid(const struct creds *from, u64 id, u32 *ret);
int creds_unmap_gid(const struct creds *from, u64 id, u32 *ret);
/* The pid of @of as @to sees it, 0 if it does not */
u32 creds_map_pid(const struct creds *to, const struct creds *of);
u32 creds_map_ppid(const struct creds *to, const struct creds *of);

#endif
