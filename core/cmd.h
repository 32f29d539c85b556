/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_CMD_H
#define CORE_CMD_H

#include "item.h"

/*
 * Commands: where they may be issued, and the checks that all arguments pass (spec §1.4,
 * §1.6, §3.2 to §3.6).
 *
 * 1. One table row per command says its number, fixed size, flags, items, the handles
 *    and connection kinds it works on. Nothing else in core knows these.
 * 2. The order of checks, hence the errno of an argument with several faults, is that of
 *    spec §3.2: core_cmd_lookup() and the handle, kind; core_cmd_check_size() on the
 *    first word (steps 2, 3); the host copies the argument (step 4);
 *    core_cmd_check_copy() (step 5); core_cmd_parse() (steps 6 to 9).
 * 3. Parsing works on the host's private copy, which nobody changes meanwhile and which
 *    outlives struct core_args.
 * 4. Parsing writes to the copy in one place only: it zeroes what a NEGOTIATE item asks
 *    for and does not get.
 * 5. From core_cmd_parse() on the host writes return_flags back whatever the outcome
 *    (spec §3.5); before it, it writes nothing.
 * 6. An item list with a broken structure is -EINVAL, whatever else is wrong with it.
 *
 * Pure functions of their arguments: any thread, no lock, no allocation.
 */

/**
 * enum core_cmd - the commands as indices, those of each message first: they are searched in order
 */
enum core_cmd {
	CORE_CMD_SEND,
	CORE_CMD_RECV,
	CORE_CMD_FREE,
	CORE_CMD_BUS_MAKE,
	CORE_CMD_ENDPOINT_MAKE,
	CORE_CMD_ENDPOINT_UPDATE,
	CORE_CMD_HELLO,
	CORE_CMD_UPDATE,
	CORE_CMD_BYEBYE,
	CORE_CMD_CONN_INFO,
	CORE_CMD_BUS_CREATOR_INFO,
	CORE_CMD_LIST,
	CORE_CMD_NAME_ACQUIRE,
	CORE_CMD_NAME_RELEASE,
	CORE_CMD_MATCH_ADD,
	CORE_CMD_MATCH_REMOVE,
	CORE_CMD_N,
};

/**
 * enum core_handle - what a handle has become (spec §1.4)
 * @CORE_HANDLE_CONTROL:   control node, no set-up command has succeeded yet
 * @CORE_HANDLE_ENDPOINT:  endpoint node, no set-up command has succeeded yet
 * @CORE_HANDLE_BUS_OWNER: BUS_MAKE has succeeded
 * @CORE_HANDLE_EP_OWNER:  ENDPOINT_MAKE has succeeded
 * @CORE_HANDLE_CONNECTED: HELLO has succeeded
 */
enum core_handle {
	CORE_HANDLE_CONTROL,
	CORE_HANDLE_ENDPOINT,
	CORE_HANDLE_BUS_OWNER,
	CORE_HANDLE_EP_OWNER,
	CORE_HANDLE_CONNECTED,
};

/**
 * enum core_kind - kinds of connections (spec §1.6)
 * @CORE_KIND_ORDINARY:      normal peer
 * @CORE_KIND_ACTIVATOR:     placeholder owner of a name
 * @CORE_KIND_POLICY_HOLDER: keeps policy records alive
 * @CORE_KIND_MONITOR:       receives a copy of everything
 */
enum core_kind {
	CORE_KIND_ORDINARY,
	CORE_KIND_ACTIVATOR,
	CORE_KIND_POLICY_HOLDER,
	CORE_KIND_MONITOR,
};

/* An item that must be there, and one that may be there more than once. */
#define CORE_ITEM_MUST (1U << 0)
#define CORE_ITEM_MANY (1U << 1)

/**
 * struct core_item_rule - an item that is accepted
 * @type:  item type
 * @flags: CORE_ITEM_MUST, CORE_ITEM_MANY
 */
struct core_item_rule {
	u16 type;
	u16 flags;
};

/* Most rules of a command; MATCH_ADD has that many. NEGOTIATE is not counted. */
#define CORE_ITEM_RULES 9

/**
 * struct core_cmd_rule - all there is to know about a command before it is executed
 * @ioctl:   number
 * @handles: handles it works on, each as CORE_HANDLE_BIT()
 * @kinds:   kinds of connections it works on, each as CORE_KIND_BIT()
 * @size:    bytes of the fixed part of its argument
 * @flags:   flags it knows
 * @items:   items it knows; the last one stays empty
 */
struct core_cmd_rule {
	u32 ioctl;
	u32 handles;
	u32 kinds;
	u32 size;
	u64 flags;
	struct core_item_rule items[CORE_ITEM_RULES + 1];
};

#define CORE_HANDLE_BIT(_handle) (1U << (_handle))
#define CORE_KIND_BIT(_kind)	 (1U << (_kind))

/* The rules, here for what is looked up for each command. */
extern const struct core_cmd_rule core_cmd_rules[CORE_CMD_N];

/**
 * core_kind() - the kind that HELLO flags ask for
 * @hello_flags: flags accepted by HELLO, at most one of them a special kind
 */
enum core_kind core_kind(u64 hello_flags);

/**
 * core_cmd_lookup() - find a command by its ioctl number
 * @ioctl:   number
 * @ret_cmd: command
 *
 * Return: 0, or -ENOTTY if there is no such command (spec §3.6).
 */
int core_cmd_lookup(u32 ioctl, enum core_cmd *ret_cmd);

/**
 * core_cmd_ioctl() - the ioctl number of a command
 * @cmd: command
 */
u32 core_cmd_ioctl(enum core_cmd cmd);

/**
 * core_cmd_size() - bytes of the fixed part of a command's argument
 * @cmd: command
 */
static inline size_t core_cmd_size(enum core_cmd cmd)
{
	return core_cmd_rules[cmd].size;
}

/**
 * core_cmd_refuse_dead() - what a command gets of a node or connection that is gone
 * @cmd:    command
 * @handle: state of the handle
 *
 * A handle looks for its own node or connection only for a command of its stage.
 *
 * Return: -ESHUTDOWN, -ECONNRESET; 0: it is not looked for.
 */
int core_cmd_refuse_dead(enum core_cmd cmd, enum core_handle handle);

/**
 * core_cmd_check_handle() - may the command be issued on this handle?
 * @cmd:    command
 * @handle: state of the handle
 * @dead:   the node (for a handle without connection) or the connection is gone
 *
 * Return: 0, or -EBADFD (wrong state or node), or -ESHUTDOWN (node gone) or -ECONNRESET
 * (connection gone); the latter two win (spec §3.6).
 */
static inline int core_cmd_check_handle(enum core_cmd cmd, enum core_handle handle, bool dead)
{
	int r = dead ? core_cmd_refuse_dead(cmd, handle) : 0;

	if (r)
		return r;
	return core_cmd_rules[cmd].handles & CORE_HANDLE_BIT(handle) ? 0 : -EBADFD;
}

/**
 * core_cmd_check_kind() - may a connection of this kind issue the command?
 * @cmd:  command for connections
 * @kind: kind of the connection
 *
 * A policy holder may FREE, since it may LIST: the reference let it only take (spec §17.1
 * row 22). UPDATE passes here: what it may change depends on its items (core_check_update()).
 *
 * Return: 0, or -EOPNOTSUPP (spec §1.6).
 */
static inline int core_cmd_check_kind(enum core_cmd cmd, enum core_kind kind)
{
	return core_cmd_rules[cmd].kinds & CORE_KIND_BIT(kind) ? 0 : -EOPNOTSUPP;
}

/**
 * core_cmd_check_size() - check the first word of an argument
 * @cmd:  command
 * @size: first word, as read from the caller
 *
 * Return: 0, or -EINVAL (less than the fixed part) or -EMSGSIZE (above
 * CORE_CMD_MAX_SIZE) (spec §3.2 steps 2 and 3).
 */
int core_cmd_check_size(enum core_cmd cmd, u64 size);

/**
 * core_cmd_check_copy() - check that the size has not changed while it was copied
 * @arg:  private copy of the argument, a multiple of 8
 * @size: number of bytes copied, accepted by core_cmd_check_size()
 *
 * Return: 0, or -EINVAL (spec §3.2 step 5).
 */
int core_cmd_check_copy(const void *arg, u64 size);

/**
 * struct core_items - a checked item list
 * @rules:     what was accepted; a rule of type 0 ends it
 * @items:     first item
 * @size:      bytes of the region as given; walk it with core_item_for_each()
 * @end:       end of the last item, without padding
 * @negotiate: NEGOTIATE item, or NULL
 * @first:     first item of each rule, or NULL
 */
struct core_items {
	const struct core_item_rule *rules;
	struct kdbus_item *items;
	size_t size;
	size_t end;
	struct kdbus_item *negotiate;
	struct kdbus_item *first[CORE_ITEM_RULES];
};

/**
 * core_items_parse() - check an item list against rules
 * @rules: rules, ended by one of type 0
 * @items: private copy of the list, a multiple of 8
 * @size:  its bytes
 * @must:  refuse a list that lacks an item it must have
 * @ret:   the list
 *
 * Structure, types, payloads and duplicates are checked; types that a NEGOTIATE item
 * asks for and @rules do not accept are zeroed in the copy.
 *
 * Return: 0, or -EINVAL, -EBADF or -ENAMETOOLONG (spec §3.3, §5.2).
 */
int core_items_parse(const struct core_item_rule *rules, void *items, size_t size, bool must,
		     struct core_items *ret);

/**
 * core_items_get() - the first item of a type
 * @list: checked list
 * @type: a type its rules accept, other than NEGOTIATE
 *
 * Return: the item, or NULL if there is none.
 */
struct kdbus_item *core_items_get(const struct core_items *list, u64 type);

/**
 * struct core_args - a parsed argument
 * @cmd:       command
 * @flags:     flags without KDBUS_FLAG_NEGOTIATE
 * @negotiate: the command is only to tell its flags: the host writes @supported to the
 *             flags word of the caller and returns 0
 * @supported: all flags of the command
 * @list:      items. If it has a NEGOTIATE item, the host copies that item back to the
 *             caller, negotiating or not
 */
struct core_args {
	enum core_cmd cmd;
	u64 flags;
	bool negotiate;
	u64 supported;
	struct core_items list;
};

/**
 * core_cmd_parse() - check flags and items of an argument
 * @cmd:  command
 * @arg:  private copy, accepted by core_cmd_check_copy()
 * @size: its bytes
 * @ret:  parsed argument
 *
 * Return: 0, or -EINVAL (unknown flag, bad list, mandatory item missing and not
 * negotiating), -EBADF or -ENAMETOOLONG (bad payload) (spec §3.2 steps 6 to 9).
 */
int core_cmd_parse(enum core_cmd cmd, void *arg, size_t size, struct core_args *ret);

/**
 * core_args_get() - the first item of a type
 * @args: parsed argument
 * @type: a type the command accepts
 *
 * Return: the item, or NULL if there is none.
 */
static inline struct kdbus_item *core_args_get(const struct core_args *args, u64 type)
{
	return core_items_get(&args->list, type);
}

/**
 * core_args_str() - the string of an item
 * @args: parsed argument
 * @type: a type the command accepts, whose payload is a string
 *
 * Return: the string, or NULL if there is no such item.
 */
static inline const char *core_args_str(const struct core_args *args, u64 type)
{
	const struct kdbus_item *item = core_args_get(args, type);

	return item ? core_item_str(item) : NULL;
}

#endif
