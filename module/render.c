// SPDX-License-Identifier: GPL-2.0-only
#include <linux/dcache.h>
#include <linux/fs_struct.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "compat/compat.h"
#include "render.h"

static u64 uid_for(const struct kbus_conn *to, kuid_t uid)
{
	return uid_valid(uid) ? from_kuid_munged(to->opener->user_ns, uid) : U32_MAX;
}

static u64 gid_for(const struct kbus_conn *to, kgid_t gid)
{
	return gid_valid(gid) ? from_kgid_munged(to->opener->user_ns, gid) : U32_MAX;
}

static void render_creds(const struct kbus_proc *proc, const struct kbus_conn *to,
			 struct kdbus_creds *ret)
{
	ret->uid = uid_for(to, proc->uid[0]);
	ret->euid = uid_for(to, proc->uid[1]);
	ret->suid = uid_for(to, proc->uid[2]);
	ret->fsuid = uid_for(to, proc->uid[3]);
	ret->gid = gid_for(to, proc->gid[0]);
	ret->egid = gid_for(to, proc->gid[1]);
	ret->sgid = gid_for(to, proc->gid[2]);
	ret->fsgid = gid_for(to, proc->gid[3]);
}

static void render_pids(const struct kbus_proc *proc, const struct kbus_conn *to,
			struct kdbus_pids *ret)
{
	ret->pid = pid_nr_ns(proc->pid[0], to->pid_ns);
	ret->tid = pid_nr_ns(proc->pid[1], to->pid_ns);
	ret->ppid = pid_nr_ns(proc->pid[2], to->pid_ns);
}

static bool render_groups(const struct kbus_proc *proc, const struct kbus_conn *to,
			  struct kbus_rendered *ret)
{
	const struct group_info *info = proc->cred->group_info;
	int i;

	if (info->ngroups) {
		ret->groups = kvmalloc_array(info->ngroups, sizeof(u64), GFP_KERNEL_ACCOUNT);
		if (!ret->groups)
			return false;
	}
	for (i = 0; i < info->ngroups; i++)
		ret->groups[i] = gid_for(to, info->gid[i]);
	ret->meta.auxgroups = ret->groups;
	ret->meta.n_auxgroups = info->ngroups;
	return true;
}

/* Only a reader with the same root directory can make sense of the path. */
static bool render_exe(const struct kbus_proc *proc, const struct kbus_conn *to,
		       struct kbus_rendered *ret)
{
	struct path root;
	bool same;
	char *path;

	get_fs_root(current->fs, &root);
	same = path_equal(&root, &to->root);
	path_put(&root);
	if (!same)
		return false;
	ret->page = kmalloc(PATH_MAX, GFP_KERNEL);
	if (!ret->page)
		return false;
	path = d_path(&proc->exe_file->f_path, ret->page, PATH_MAX);
	if (IS_ERR(path))
		return false;
	ret->meta.exe = path;
	return true;
}

static enum core_userns relation(const struct user_namespace *sender,
				 const struct user_namespace *to, kuid_t euid, bool *ret_owner)
{
	const struct user_namespace *ns;

	*ret_owner = false;
	if (sender == to)
		return CORE_USERNS_SAME;
	for (ns = to; ns; ns = ns->parent) {
		if (ns->parent != sender)
			continue;
		*ret_owner = uid_eq(ns->owner, euid);
		return CORE_USERNS_ANCESTOR;
	}
	return CORE_USERNS_FOREIGN;
}

static void render_caps(const struct kbus_proc *proc, const struct kbus_conn *to,
			struct kbus_rendered *ret)
{
	const struct cred *cred = proc->cred;
	enum core_userns userns;
	bool owner;

	userns = relation(cred->user_ns, to->opener->user_ns, cred->euid, &owner);
	compat_cap_words(cred->cap_inheritable, ret->caps);
	compat_cap_words(cred->cap_permitted, ret->caps + 2);
	compat_cap_words(cred->cap_effective, ret->caps + 4);
	compat_cap_words(cred->cap_bset, ret->caps + 6);
	ret->meta.last_cap = CAP_LAST_CAP;
	ret->meta.caps = ret->caps;
	core_meta_caps(userns, owner, CAP_LAST_CAP, ret->caps, ret->caps);
}

void kbus_render(const struct kbus_proc *proc, const struct kbus_conn *to, u64 mask,
		 struct kbus_rendered *ret)
{
	struct core_meta *meta = &ret->meta;

	BUILD_BUG_ON(CAP_LAST_CAP / 32 + 1 != 2);
	memset(ret, 0, sizeof(*ret));
	meta->have = mask & proc->have;
	if (meta->have & KDBUS_ATTACH_CREDS)
		render_creds(proc, to, &meta->creds);
	if (meta->have & KDBUS_ATTACH_PIDS)
		render_pids(proc, to, &meta->pids);
	if ((meta->have & KDBUS_ATTACH_AUXGROUPS) && !render_groups(proc, to, ret))
		meta->have &= ~(u64)KDBUS_ATTACH_AUXGROUPS;
	if ((meta->have & KDBUS_ATTACH_EXE) && !render_exe(proc, to, ret))
		meta->have &= ~(u64)KDBUS_ATTACH_EXE;
	if (meta->have & KDBUS_ATTACH_CAPS)
		render_caps(proc, to, ret);
	if (meta->have & KDBUS_ATTACH_AUDIT) {
		meta->audit.sessionid = proc->sessionid;
		meta->audit.loginuid = from_kuid(to->opener->user_ns, proc->loginuid);
	}
	meta->tid_comm = proc->tid_comm;
	meta->pid_comm = proc->pid_comm;
	meta->cmdline = proc->cmdline;
	meta->cmdline_size = proc->cmdline_size;
	meta->cgroup = proc->cgroup;
	meta->seclabel = proc->seclabel;
}

void kbus_render_release(struct kbus_rendered *rendered)
{
	kvfree(rendered->groups);
	kfree(rendered->page);
}

u64 kbus_render_proc_granted(const struct kbus_conn *to)
{
	const struct core_meta_proc facts = {
		.visible = pid_nr_ns(task_pid(current), to->pid_ns),
		.same = task_tgid(current) == to->pid,
	};

	return core_meta_proc_granted(&facts);
}
