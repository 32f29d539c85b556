// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"

#include "check.h"
#include "syntax.h"

int core_attach_mask(u64 mask, u64 *ret_mask)
{
	if (mask == _KDBUS_ATTACH_ANY)
		mask = _KDBUS_ATTACH_ALL;
	if (mask & ~(u64)_KDBUS_ATTACH_ALL)
		return -EINVAL;
	*ret_mask = mask;
	return 0;
}

static int check_prefix(const char *name, const struct core_maker *maker)
{
	return maker->mapped ? core_sysname_check_uid(name, maker->uid) : -EINVAL;
}

int core_check_bus_make(const struct core_args *args, const struct core_maker *maker,
			struct core_bus_make *ret)
{
	const struct kdbus_item *mask = core_args_get(args, KDBUS_ITEM_ATTACH_FLAGS_SEND);
	struct core_bus_make make = {
		.name = core_args_str(args, KDBUS_ITEM_MAKE_NAME),
		.flags = args->flags,
	};
	int r;

	memcpy(&make.bloom, core_item_payload(core_args_get(args, KDBUS_ITEM_BLOOM_PARAMETER)),
	       sizeof(make.bloom));
	r = core_bloom_parameter_check(&make.bloom);
	if (r)
		return r;
	if (mask) {
		r = core_attach_mask(core_item_u64(mask), &make.creator_mask);
		if (r)
			return r;
	}
	r = check_prefix(make.name, maker);
	if (r)
		return r;
	*ret = make;
	return 0;
}

int core_check_endpoint_make(const struct core_args *args, const struct core_maker *maker,
			     const char **ret_name)
{
	const char *name = core_args_str(args, KDBUS_ITEM_MAKE_NAME);
	int r = check_prefix(name, maker);

	if (r)
		return r;
	*ret_name = name;
	return 0;
}

static const void *payload_of(const struct core_args *args, u64 type)
{
	const struct kdbus_item *item = core_args_get(args, type);

	return item ? core_item_payload(item) : NULL;
}

static bool power_of_two_at_most(u64 word)
{
	return (word & (word - 1)) == 0;
}

/* The kind of connection and the name that goes with it. */
static int check_hello_kind(const struct core_hello *hello)
{
	const u64 special = KDBUS_HELLO_ACTIVATOR | KDBUS_HELLO_POLICY_HOLDER | KDBUS_HELLO_MONITOR;
	bool named = hello->kind == CORE_KIND_ACTIVATOR || hello->kind == CORE_KIND_POLICY_HOLDER;

	if (!power_of_two_at_most(hello->flags & special))
		return -EINVAL;
	if (named != !!hello->name)
		return -EINVAL;
	if (named && !core_name_valid(hello->name) && !core_name_is_wildcard(hello->name))
		return -EINVAL;
	return 0;
}

static int check_hello_rights(const struct core_hello *hello, const struct core_hello_facts *facts)
{
	if (facts->custom && hello->kind == CORE_KIND_MONITOR)
		return -EOPNOTSUPP;
	if (facts->bus_owner)
		return 0;
	return hello->kind != CORE_KIND_ORDINARY || hello->fake ? -EPERM : 0;
}

static void read_hello(const struct kdbus_cmd_hello *cmd, const struct core_args *args,
		       struct core_hello *hello)
{
	*hello = (struct core_hello){
		.flags = args->flags,
		.kind = core_kind(args->flags),
		.pool_size = cmd->pool_size,
		.name = core_args_str(args, KDBUS_ITEM_NAME),
		.description = core_args_str(args, KDBUS_ITEM_CONN_DESCRIPTION),
		.creds = payload_of(args, KDBUS_ITEM_CREDS),
		.pids = payload_of(args, KDBUS_ITEM_PIDS),
		.seclabel = core_args_str(args, KDBUS_ITEM_SECLABEL),
	};
	hello->fake = hello->creds || hello->pids || hello->seclabel;
}

int core_check_hello(const struct kdbus_cmd_hello *cmd, const struct core_args *args,
		     const struct core_hello_facts *facts, struct core_hello *ret)
{
	struct core_hello hello;
	int r;

	read_hello(cmd, args, &hello);
	/* Page sizes are powers of two; a 64-bit division is not everywhere at hand. */
	if (!hello.pool_size || (hello.pool_size & (facts->page_size - 1)))
		return -EINVAL;
	r = check_hello_kind(&hello);
	if (r)
		return r;
	r = check_hello_rights(&hello, facts);
	if (r)
		return r;
	r = core_attach_mask(cmd->attach_flags_send, &hello.attach_send);
	if (r)
		return r;
	r = core_attach_mask(cmd->attach_flags_recv, &hello.attach_recv);
	if (r)
		return r;
	*ret = hello;
	return 0;
}

int core_check_fake_creds(const struct kdbus_creds *creds)
{
	u64 all = creds->uid | creds->euid | creds->suid | creds->fsuid | creds->gid | creds->egid |
		  creds->sgid | creds->fsgid;

	return all > U32_MAX ? -EINVAL : 0;
}

/* A mask that a kind of connection may or may not change. */
static int check_mask(const struct core_args *args, u64 type, bool allowed, bool *set, u64 *mask)
{
	const struct kdbus_item *item = core_args_get(args, type);

	if (!item)
		return 0;
	if (!allowed)
		return -EOPNOTSUPP;
	*set = true;
	return core_attach_mask(core_item_u64(item), mask);
}

int core_check_update(const struct core_args *args, enum core_kind kind, struct core_update *ret)
{
	struct core_update update = {
		.set_policy = core_args_get(args, KDBUS_ITEM_NAME) ||
			      core_args_get(args, KDBUS_ITEM_POLICY_ACCESS),
	};
	int r;

	r = check_mask(args, KDBUS_ITEM_ATTACH_FLAGS_SEND,
		       kind == CORE_KIND_ORDINARY || kind == CORE_KIND_MONITOR, &update.set_send,
		       &update.attach_send);
	if (r)
		return r;
	r = check_mask(args, KDBUS_ITEM_ATTACH_FLAGS_RECV, kind != CORE_KIND_POLICY_HOLDER,
		       &update.set_recv, &update.attach_recv);
	if (r)
		return r;
	if (update.set_policy && kind != CORE_KIND_POLICY_HOLDER)
		return -EOPNOTSUPP;
	*ret = update;
	return 0;
}

int core_check_info(const struct kdbus_cmd_info *cmd, const struct core_args *args,
		    struct core_info_query *ret)
{
	bool creator = args->cmd == CORE_CMD_BUS_CREATOR_INFO;
	struct core_info_query query = {
		.id = creator ? 0 : cmd->id,
		.name = creator ? NULL : core_args_str(args, KDBUS_ITEM_NAME),
	};
	int r = core_attach_mask(cmd->attach_flags, &query.attach);

	if (r)
		return r;
	if (!creator && !query.id && !query.name)
		return -EINVAL;
	*ret = query;
	return 0;
}

int core_check_recv(const struct core_args *args)
{
	const u64 both = KDBUS_RECV_DROP | KDBUS_RECV_USE_PRIORITY;

	return (args->flags & both) == both ? -EINVAL : 0;
}

int core_check_name_acquire(const struct core_args *args, const char **ret_name)
{
	const char *name = core_args_str(args, KDBUS_ITEM_NAME);

	if (!core_name_valid(name))
		return -EINVAL;
	*ret_name = name;
	return 0;
}
