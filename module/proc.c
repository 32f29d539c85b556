// SPDX-License-Identifier: GPL-2.0-only
#include <linux/audit.h>
#include <linux/cgroup.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/nsproxy.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat/compat.h"
#include "proc.h"

static bool take_creds(struct kbus_proc *proc)
{
	const struct cred *cred = current_cred();

	proc->uid[0] = cred->uid;
	proc->uid[1] = cred->euid;
	proc->uid[2] = cred->suid;
	proc->uid[3] = cred->fsuid;
	proc->gid[0] = cred->gid;
	proc->gid[1] = cred->egid;
	proc->gid[2] = cred->sgid;
	proc->gid[3] = cred->fsgid;
	return true;
}

static bool take_pids(struct kbus_proc *proc)
{
	proc->pid[0] = get_pid(task_tgid(current));
	proc->pid[1] = get_pid(task_pid(current));
	rcu_read_lock();
	proc->pid[2] = get_pid(task_tgid(rcu_dereference(current->real_parent)));
	rcu_read_unlock();
	return true;
}

static bool take_cred_ref(struct kbus_proc *proc)
{
	if (!proc->cred)
		proc->cred = get_current_cred();
	return true;
}

static bool take_tid_comm(struct kbus_proc *proc)
{
	get_task_comm(proc->tid_comm, current);
	return true;
}

static bool take_pid_comm(struct kbus_proc *proc)
{
	get_task_comm(proc->pid_comm, current->group_leader);
	return true;
}

static bool take_exe(struct kbus_proc *proc)
{
	proc->exe_file = current->mm ? compat_exe_file(current->mm) : NULL;
	return proc->exe_file;
}

/* At most a page: every message carries it. It ends in NUL, whatever the process did. */
static bool take_cmdline(struct kbus_proc *proc)
{
	struct mm_struct *mm = current->mm;
	unsigned long start, end;
	size_t size;

	if (!mm)
		return false;
	spin_lock(&mm->arg_lock);
	start = mm->arg_start;
	end = mm->arg_end;
	spin_unlock(&mm->arg_lock);
	if (end <= start)
		return false;
	size = min_t(size_t, end - start, PAGE_SIZE - 1);
	proc->cmdline = kmalloc(size + 1, GFP_KERNEL_ACCOUNT);
	if (!proc->cmdline || copy_from_user(proc->cmdline, (void __user *)start, size))
		return false;
	if (proc->cmdline[size - 1])
		proc->cmdline[size++] = 0;
	proc->cmdline_size = size;
	return true;
}

static bool take_cgroup(struct kbus_proc *proc)
{
#ifdef CONFIG_CGROUPS
	struct cgroup *cgroup;
	char *path = kmalloc(PATH_MAX, GFP_KERNEL);
	int r;

	if (!path)
		return false;
	rcu_read_lock();
	do {
		cgroup = task_dfl_cgroup(current);
	} while (!cgroup_tryget(cgroup));
	rcu_read_unlock();
	r = cgroup_path_ns(cgroup, path, PATH_MAX, init_task.nsproxy->cgroup_ns);
	cgroup_put(cgroup);
	if (r >= 0 && r < PATH_MAX)
		proc->cgroup = kstrdup(path, GFP_KERNEL_ACCOUNT);
	kfree(path);
#endif
	return proc->cgroup;
}

static bool take_seclabel(struct kbus_proc *proc)
{
	char *label;
	u32 id = 0, size;

	security_current_getsecid_subj(&id);
	if (!id || security_secid_to_secctx(id, &label, &size))
		return false;
	proc->seclabel = kstrndup(label, size, GFP_KERNEL_ACCOUNT);
	security_release_secctx(label, size);
	return proc->seclabel;
}

static bool take_audit(struct kbus_proc *proc)
{
	proc->sessionid = audit_get_sessionid(current);
	proc->loginuid = audit_get_loginuid(current);
	return IS_ENABLED(CONFIG_AUDIT);
}

static const struct {
	u64 kind;
	bool (*take)(struct kbus_proc *proc);
} kinds[] = {
	{ KDBUS_ATTACH_CREDS, take_creds },
	{ KDBUS_ATTACH_PIDS, take_pids },
	{ KDBUS_ATTACH_AUXGROUPS, take_cred_ref },
	{ KDBUS_ATTACH_TID_COMM, take_tid_comm },
	{ KDBUS_ATTACH_PID_COMM, take_pid_comm },
	{ KDBUS_ATTACH_EXE, take_exe },
	{ KDBUS_ATTACH_CMDLINE, take_cmdline },
	{ KDBUS_ATTACH_CGROUP, take_cgroup },
	{ KDBUS_ATTACH_CAPS, take_cred_ref },
	{ KDBUS_ATTACH_SECLABEL, take_seclabel },
	{ KDBUS_ATTACH_AUDIT, take_audit },
};

void kbus_proc_gather(struct kbus_proc *proc, u64 mask)
{
	size_t i;

	mask &= CORE_META_PROCESS & ~proc->tried;
	for (i = 0; mask && i < ARRAY_SIZE(kinds); i++)
		if ((mask & kinds[i].kind) && kinds[i].take(proc))
			proc->have |= kinds[i].kind;
	proc->tried |= mask;
}

/* 0xffffffff stands for "not set". */
static int fake_uid(u64 id, kuid_t *ret_uid)
{
	*ret_uid = make_kuid(current_user_ns(), id);
	return id == U32_MAX || uid_valid(*ret_uid) ? 0 : -EINVAL;
}

static int fake_gid(u64 id, kgid_t *ret_gid)
{
	*ret_gid = make_kgid(current_user_ns(), id);
	return id == U32_MAX || gid_valid(*ret_gid) ? 0 : -EINVAL;
}

static int fake_creds(struct kbus_proc *proc, const struct kdbus_creds *creds)
{
	const u64 uids[] = { creds->uid, creds->euid, creds->suid, creds->fsuid };
	const u64 gids[] = { creds->gid, creds->egid, creds->sgid, creds->fsgid };
	int i, r;

	r = core_check_fake_creds(creds);
	for (i = 0; !r && i < 4; i++) {
		r = fake_uid(uids[i], &proc->uid[i]);
		if (!r)
			r = fake_gid(gids[i], &proc->gid[i]);
	}
	if (!r)
		proc->have |= KDBUS_ATTACH_CREDS;
	return r;
}

static int fake_pids(struct kbus_proc *proc, const struct kdbus_pids *pids)
{
	const u64 nrs[] = { pids->pid, pids->tid, pids->ppid };
	int i;

	for (i = 0; i < 3; i++) {
		if (!nrs[i])
			continue;
		if (nrs[i] > PID_MAX_LIMIT)
			return -EINVAL;
		proc->pid[i] = find_get_pid(nrs[i]);
		if (!proc->pid[i])
			return -EINVAL;
	}
	proc->have |= KDBUS_ATTACH_PIDS;
	return 0;
}

int kbus_proc_fake(struct kbus_proc *proc, const struct core_hello *hello)
{
	int r = 0;

	proc->tried = CORE_META_PROCESS;
	if (hello->creds)
		r = fake_creds(proc, hello->creds);
	if (!r && hello->pids)
		r = fake_pids(proc, hello->pids);
	if (!r && hello->seclabel) {
		proc->seclabel = kstrdup(hello->seclabel, GFP_KERNEL_ACCOUNT);
		proc->have |= KDBUS_ATTACH_SECLABEL;
		r = proc->seclabel ? 0 : -ENOMEM;
	}
	return r;
}

void kbus_proc_release(struct kbus_proc *proc)
{
	int i;

	for (i = 0; i < 3; i++)
		put_pid(proc->pid[i]);
	if (proc->cred)
		put_cred(proc->cred);
	if (proc->exe_file)
		fput(proc->exe_file);
	kfree(proc->cmdline);
	kfree(proc->cgroup);
	kfree(proc->seclabel);
	memset(proc, 0, sizeof(*proc));
}
