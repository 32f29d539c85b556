// SPDX-License-Identifier: GPL-2.0-only
#include <linux/capability.h>

#include "creds.h"

void kbus_cred(const struct cred *cred, struct core_cred *ret)
{
	/* the kernel keeps groups sorted by these very numbers */
	BUILD_BUG_ON(sizeof(kgid_t) != sizeof(u32));
	ret->euid = __kuid_val(cred->euid);
	ret->egid = __kgid_val(cred->egid);
	ret->groups = (const u32 *)cred->group_info->gid;
	ret->n_groups = cred->group_info->ngroups;
}

void kbus_maker(const struct kbus_domain *domain, struct core_maker *ret)
{
	ret->uid = from_kuid(domain->sb->s_user_ns, current_euid());
	ret->mapped = ret->uid != (uid_t)-1;
}

void kbus_opener(const struct file *file, const struct kbus_domain *domain,
		 struct core_opener *ret)
{
	ret->uid = __kuid_val(file->f_cred->uid);
	ret->cap_ipc_owner = file_ns_capable(file, domain->sb->s_user_ns, CAP_IPC_OWNER);
	kbus_cred(file->f_cred, &ret->cred);
}

int kbus_map_id(void *data, u64 type, u64 id, u32 *ret_id)
{
	if (id >= U32_MAX)
		return -EINVAL;
	if (type == KDBUS_POLICY_ACCESS_USER)
		*ret_id = __kuid_val(make_kuid(current_user_ns(), id));
	else
		*ret_id = __kgid_val(make_kgid(current_user_ns(), id));
	return *ret_id == U32_MAX ? -EINVAL : 0;
}
