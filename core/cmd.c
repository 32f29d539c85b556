// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"

#include "cmd.h"
#include "limits.h"

#define KINDS_ORDINARY	CORE_KIND_BIT(CORE_KIND_ORDINARY)
#define KINDS_ANY	(~0U)
#define KINDS_RECEIVING (KINDS_ANY & ~CORE_KIND_BIT(CORE_KIND_POLICY_HOLDER))

#define ON_CONTROL	CORE_HANDLE_BIT(CORE_HANDLE_CONTROL)
#define ON_ENDPOINT	CORE_HANDLE_BIT(CORE_HANDLE_ENDPOINT)
#define ON_EP_OWNER	CORE_HANDLE_BIT(CORE_HANDLE_EP_OWNER)
#define ON_CONNECTED	CORE_HANDLE_BIT(CORE_HANDLE_CONNECTED)

#define MUST CORE_ITEM_MUST
#define MANY CORE_ITEM_MANY

const struct core_cmd_rule core_cmd_rules[CORE_CMD_N] = {
	[CORE_CMD_BUS_MAKE] = {
		KDBUS_CMD_BUS_MAKE, ON_CONTROL, KINDS_ANY, sizeof(struct kdbus_cmd),
		KDBUS_MAKE_ACCESS_GROUP | KDBUS_MAKE_ACCESS_WORLD,
		{ { KDBUS_ITEM_MAKE_NAME, MUST }, { KDBUS_ITEM_BLOOM_PARAMETER, MUST },
		  { KDBUS_ITEM_ATTACH_FLAGS_SEND, 0 } },
	},
	[CORE_CMD_ENDPOINT_MAKE] = {
		KDBUS_CMD_ENDPOINT_MAKE, ON_ENDPOINT, KINDS_ANY, sizeof(struct kdbus_cmd),
		KDBUS_MAKE_ACCESS_GROUP | KDBUS_MAKE_ACCESS_WORLD,
		{ { KDBUS_ITEM_MAKE_NAME, MUST } },
	},
	[CORE_CMD_ENDPOINT_UPDATE] = {
		KDBUS_CMD_ENDPOINT_UPDATE, ON_EP_OWNER, KINDS_ANY, sizeof(struct kdbus_cmd),
		0,
		{ { KDBUS_ITEM_NAME, MANY }, { KDBUS_ITEM_POLICY_ACCESS, MANY } },
	},
	[CORE_CMD_HELLO] = {
		KDBUS_CMD_HELLO, ON_ENDPOINT, KINDS_ANY, sizeof(struct kdbus_cmd_hello),
		KDBUS_HELLO_ACCEPT_FD | KDBUS_HELLO_ACTIVATOR | KDBUS_HELLO_POLICY_HOLDER |
			KDBUS_HELLO_MONITOR,
		{ { KDBUS_ITEM_NAME, 0 }, { KDBUS_ITEM_CREDS, 0 }, { KDBUS_ITEM_PIDS, 0 },
		  { KDBUS_ITEM_SECLABEL, 0 }, { KDBUS_ITEM_CONN_DESCRIPTION, 0 },
		  { KDBUS_ITEM_POLICY_ACCESS, MANY } },
	},
	[CORE_CMD_UPDATE] = {
		KDBUS_CMD_UPDATE, ON_CONNECTED, KINDS_ANY, sizeof(struct kdbus_cmd),
		0,
		{ { KDBUS_ITEM_ATTACH_FLAGS_SEND, 0 }, { KDBUS_ITEM_ATTACH_FLAGS_RECV, 0 },
		  { KDBUS_ITEM_NAME, MANY }, { KDBUS_ITEM_POLICY_ACCESS, MANY } },
	},
	[CORE_CMD_BYEBYE] = {
		KDBUS_CMD_BYEBYE, ON_CONNECTED, KINDS_ORDINARY, sizeof(struct kdbus_cmd),
		0, { { 0 } },
	},
	[CORE_CMD_FREE] = {
		KDBUS_CMD_FREE, ON_CONNECTED, KINDS_ANY, sizeof(struct kdbus_cmd_free),
		0, { { 0 } },
	},
	[CORE_CMD_CONN_INFO] = {
		KDBUS_CMD_CONN_INFO, ON_CONNECTED, KINDS_ANY, sizeof(struct kdbus_cmd_info),
		0, { { KDBUS_ITEM_NAME, 0 } },
	},
	[CORE_CMD_BUS_CREATOR_INFO] = {
		KDBUS_CMD_BUS_CREATOR_INFO, ON_CONNECTED, KINDS_ANY,
		sizeof(struct kdbus_cmd_info),
		0, { { 0 } },
	},
	[CORE_CMD_LIST] = {
		KDBUS_CMD_LIST, ON_CONNECTED, KINDS_ANY, sizeof(struct kdbus_cmd_list),
		KDBUS_LIST_UNIQUE | KDBUS_LIST_NAMES | KDBUS_LIST_ACTIVATORS | KDBUS_LIST_QUEUED,
		{ { 0 } },
	},
	[CORE_CMD_SEND] = {
		KDBUS_CMD_SEND, ON_CONNECTED, KINDS_ORDINARY, sizeof(struct kdbus_cmd_send),
		KDBUS_SEND_SYNC_REPLY, { { KDBUS_ITEM_CANCEL_FD, 0 } },
	},
	[CORE_CMD_RECV] = {
		KDBUS_CMD_RECV, ON_CONNECTED, KINDS_RECEIVING, sizeof(struct kdbus_cmd_recv),
		KDBUS_RECV_PEEK | KDBUS_RECV_DROP | KDBUS_RECV_USE_PRIORITY, { { 0 } },
	},
	[CORE_CMD_NAME_ACQUIRE] = {
		KDBUS_CMD_NAME_ACQUIRE, ON_CONNECTED, KINDS_ORDINARY, sizeof(struct kdbus_cmd),
		KDBUS_NAME_REPLACE_EXISTING | KDBUS_NAME_ALLOW_REPLACEMENT | KDBUS_NAME_QUEUE,
		{ { KDBUS_ITEM_NAME, MUST } },
	},
	[CORE_CMD_NAME_RELEASE] = {
		KDBUS_CMD_NAME_RELEASE, ON_CONNECTED, KINDS_ORDINARY, sizeof(struct kdbus_cmd),
		0, { { KDBUS_ITEM_NAME, MUST } },
	},
	[CORE_CMD_MATCH_ADD] = {
		KDBUS_CMD_MATCH_ADD, ON_CONNECTED, KINDS_ORDINARY,
		sizeof(struct kdbus_cmd_match),
		KDBUS_MATCH_REPLACE,
		{ { KDBUS_ITEM_BLOOM_MASK, MANY }, { KDBUS_ITEM_NAME, MANY },
		  { KDBUS_ITEM_ID, MANY }, { KDBUS_ITEM_DST_ID, MANY },
		  { KDBUS_ITEM_NAME_ADD, MANY }, { KDBUS_ITEM_NAME_REMOVE, MANY },
		  { KDBUS_ITEM_NAME_CHANGE, MANY }, { KDBUS_ITEM_ID_ADD, MANY },
		  { KDBUS_ITEM_ID_REMOVE, MANY } },
	},
	[CORE_CMD_MATCH_REMOVE] = {
		KDBUS_CMD_MATCH_REMOVE, ON_CONNECTED, KINDS_ORDINARY,
		sizeof(struct kdbus_cmd_match),
		0, { { 0 } },
	},
};

enum core_kind core_kind(u64 hello_flags)
{
	if (hello_flags & KDBUS_HELLO_ACTIVATOR)
		return CORE_KIND_ACTIVATOR;
	if (hello_flags & KDBUS_HELLO_POLICY_HOLDER)
		return CORE_KIND_POLICY_HOLDER;
	if (hello_flags & KDBUS_HELLO_MONITOR)
		return CORE_KIND_MONITOR;
	return CORE_KIND_ORDINARY;
}

/* What a program issues for each message is found first. */
static const u8 cmd_usual[] = { CORE_CMD_SEND, CORE_CMD_RECV, CORE_CMD_FREE };

int core_cmd_lookup(u32 ioctl, enum core_cmd *ret_cmd)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cmd_usual); i++) {
		if (core_cmd_rules[cmd_usual[i]].ioctl == ioctl) {
			*ret_cmd = cmd_usual[i];
			return 0;
		}
	}
	for (i = 0; i < CORE_CMD_N; i++) {
		if (core_cmd_rules[i].ioctl == ioctl) {
			*ret_cmd = i;
			return 0;
		}
	}
	return -ENOTTY;
}

u32 core_cmd_ioctl(enum core_cmd cmd)
{
	return core_cmd_rules[cmd].ioctl;
}

static bool is_setup(enum core_cmd cmd)
{
	return core_cmd_rules[cmd].handles & (ON_CONTROL | ON_ENDPOINT);
}

int core_cmd_refuse_dead(enum core_cmd cmd, enum core_handle handle)
{
	bool fresh = handle == CORE_HANDLE_CONTROL || handle == CORE_HANDLE_ENDPOINT;

	if (fresh && is_setup(cmd))
		return -ESHUTDOWN;
	if (handle == CORE_HANDLE_EP_OWNER && !is_setup(cmd))
		return -ESHUTDOWN;
	if (handle == CORE_HANDLE_CONNECTED && !is_setup(cmd))
		return -ECONNRESET;
	return 0;
}

int core_cmd_check_size(enum core_cmd cmd, u64 size)
{
	if (size < core_cmd_rules[cmd].size)
		return -EINVAL;
	return size > CORE_CMD_MAX_SIZE ? -EMSGSIZE : 0;
}

int core_cmd_check_copy(const void *arg, u64 size)
{
	return *(const u64 *)arg == size ? 0 : -EINVAL;
}

/* Index of the rule for @type, or -1. */
static int find_rule(const struct core_item_rule *rules, u64 type)
{
	int i;

	for (i = 0; rules[i].type; i++) {
		if (rules[i].type == type)
			return i;
	}
	return -1;
}

static int accept_item(struct core_items *list, struct kdbus_item *item)
{
	bool negotiate = item->type == KDBUS_ITEM_NEGOTIATE;
	struct kdbus_item **first = &list->negotiate;
	int r, i = -1;

	if (!negotiate) {
		i = find_rule(list->rules, item->type);
		if (i < 0)
			return -EINVAL;
		first = &list->first[i];
	}
	r = core_item_validate(item);
	if (r)
		return r;
	/* start_list() has set it. NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Branch) */
	if (!*first)
		*first = item;
	else if (negotiate || !(list->rules[i].flags & CORE_ITEM_MANY))
		return -EINVAL;
	return 0;
}

/* The list has only -EINVAL to say if its structure is broken behind a bad item. */
static int refuse(int error, const struct core_items *list, size_t offset)
{
	if (core_items_check((char *)list->items + offset, list->size - offset))
		return -EINVAL;
	return error;
}

static void negotiate_items(struct core_items *list)
{
	size_t i, n = core_item_payload_size(list->negotiate) / sizeof(u64);
	u64 *types = core_item_payload(list->negotiate);

	for (i = 0; i < n; i++) {
		if (types[i] != KDBUS_ITEM_NEGOTIATE && find_rule(list->rules, types[i]) < 0)
			types[i] = 0;
	}
}

static bool lacks_item(const struct core_items *list)
{
	int i;

	for (i = 0; list->rules[i].type; i++) {
		/* As above. NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Branch) */
		if ((list->rules[i].flags & CORE_ITEM_MUST) && !list->first[i])
			return true;
	}
	return false;
}

static void start_list(const struct core_item_rule *rules, void *items, size_t size,
		       struct core_items *list)
{
	int i;

	list->rules = rules;
	list->items = items;
	list->size = size;
	list->end = 0;
	list->negotiate = NULL;
	for (i = 0; rules[i].type; i++)
		list->first[i] = NULL;
}

static bool needs_item(const struct core_item_rule *rules)
{
	for (; rules->type; rules++) {
		if (rules->flags & CORE_ITEM_MUST)
			return true;
	}
	return false;
}

/* Most commands have none. */
static int parse_none(const struct core_item_rule *rules, void *items, bool must,
		      struct core_items *ret)
{
	if (must && needs_item(rules))
		return -EINVAL;
	start_list(rules, items, 0, ret);
	return 0;
}

/* A list that is refused leaves no trace. Only what there are rules for is copied. */
static void copy_list(const struct core_items *list, struct core_items *ret)
{
	int i;

	ret->rules = list->rules;
	ret->items = list->items;
	ret->size = list->size;
	ret->end = list->end;
	ret->negotiate = list->negotiate;
	for (i = 0; list->rules[i].type; i++)
		/* As above. NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign) */
		ret->first[i] = list->first[i];
}

static int parse_some(const struct core_item_rule *rules, void *items, size_t size, bool must,
		      struct core_items *ret)
{
	struct core_items list core_uninitialized;
	struct kdbus_item *item;
	size_t offset;
	int r;

	start_list(rules, items, size, &list);
	for (offset = 0; offset < size; offset += ALIGN((size_t)item->size, (size_t)8)) {
		if (!core_item_fits(items, size, offset))
			return -EINVAL;
		item = (void *)((char *)items + offset);
		r = accept_item(&list, item);
		if (r)
			return refuse(r, &list, offset);
		list.end = offset + item->size;
	}
	if (must && lacks_item(&list))
		return -EINVAL;
	if (list.negotiate)
		negotiate_items(&list);
	copy_list(&list, ret);
	return 0;
}

int core_items_parse(const struct core_item_rule *rules, void *items, size_t size, bool must,
		     struct core_items *ret)
{
	return size ? parse_some(rules, items, size, must, ret) :
		      parse_none(rules, items, must, ret);
}

struct kdbus_item *core_items_get(const struct core_items *list, u64 type)
{
	int i = find_rule(list->rules, type);

	return i < 0 ? NULL : list->first[i];
}

int core_cmd_parse(enum core_cmd cmd, void *arg, size_t size, struct core_args *ret)
{
	const struct core_cmd_rule *rule = &core_cmd_rules[cmd];
	u64 word = ((struct kdbus_cmd *)arg)->flags, flags = word & ~KDBUS_FLAG_NEGOTIATE;
	bool negotiate = word != flags;
	void *items = (char *)arg + rule->size;
	int r;

	if (flags & ~rule->flags)
		return -EINVAL;
	if (size == rule->size)
		r = parse_none(rule->items, items, !negotiate, &ret->list);
	else
		r = parse_some(rule->items, items, size - rule->size, !negotiate, &ret->list);
	if (r)
		return r;
	ret->cmd = cmd;
	ret->flags = flags;
	ret->negotiate = negotiate;
	ret->supported = rule->flags;
	return 0;
}
