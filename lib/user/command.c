// SPDX-License-Identifier: LGPL-2.1-or-later
/* Commands: the argument is copied and checked as the ABI says (3.2), then carried out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user.h"

/* The first words of every command */
struct head {
	u64 size;
	u64 flags;
	u64 return_flags;
};

int user_pool_answer(struct user *u, const void *data, size_t size, u64 *ret_offset)
{
	struct core_slice *slice;
	int r;

	if (!size) {
		*ret_offset = u->pool.size;
		return 0;
	}
	r = core_pool_alloc(&u->pool, size, false, &slice);
	if (r < 0)
		return r;
	memcpy(u->memory + slice->offset, data, size);
	core_pool_publish(&u->pool, slice);
	core_pool_release(&u->pool, slice);
	*ret_offset = slice->offset;
	return 0;
}

/* What the daemon did: the errno, and the word every command gets back. */
static int forward(struct user *u, enum core_cmd cmd, const void *copy, size_t size, void *arg,
		   struct answer *a)
{
	const struct head *said;
	int r = user_request(u, core_cmd_ioctl(cmd), copy, size, NULL, -1, a);

	if (r < 0)
		return r;
	said = a->arg;
	if (a->arg_size >= sizeof(*said))
		((struct head *)arg)->return_flags = said->return_flags;
	return a->error;
}

static int plain_command(struct user *u, enum core_cmd cmd, const void *copy, size_t size,
			 void *arg)
{
	struct answer a;
	int r = forward(u, cmd, copy, size, arg, &a);

	user_lock(u);
	if (r == 0 && cmd == CORE_CMD_BUS_MAKE)
		u->handle = CORE_HANDLE_BUS_OWNER;
	if (r == 0 && cmd == CORE_CMD_ENDPOINT_MAKE)
		u->handle = CORE_HANDLE_EP_OWNER;
	user_unlock(u);
	user_answer_clear(&a);
	return r;
}

static int update_command(struct user *u, const void *copy, size_t size,
			  const struct core_args *args, void *arg)
{
	const struct kdbus_item *item = core_args_get(args, KDBUS_ITEM_ATTACH_FLAGS_RECV);
	int r = plain_command(u, CORE_CMD_UPDATE, copy, size, arg);

	user_lock(u);
	if (r == 0 && item)
		core_attach_mask(core_item_u64(item), &u->attach_recv);
	user_unlock(u);
	return r;
}

/* Commands that answer with a slice: where the result fields are depends on the structure. */
static int slice_command(struct user *u, enum core_cmd cmd, const void *copy, size_t size,
			 void *arg)
{
	struct answer a;
	u64 offset = 0, bytes;
	int r = forward(u, cmd, copy, size, arg, &a);

	bytes = a.extra_size;
	if (r == 0) {
		user_lock(u);
		r = user_pool_answer(u, a.extra, bytes, &offset);
		user_unlock(u);
	}
	user_answer_clear(&a);
	if (r < 0)
		return r;
	if (cmd == CORE_CMD_LIST) {
		((struct kdbus_cmd_list *)arg)->offset = offset;
		((struct kdbus_cmd_list *)arg)->list_size = bytes;
	} else {
		((struct kdbus_cmd_info *)arg)->offset = offset;
		((struct kdbus_cmd_info *)arg)->info_size = bytes;
	}
	return 0;
}

static int free_command(struct user *u, const struct kdbus_cmd_free *cmd)
{
	int r;

	user_lock(u);
	r = u->dead ? -ECONNRESET : message_free(u, cmd->offset);
	user_unlock(u);
	return r;
}

static int run(struct user *u, enum core_cmd cmd, void *copy, size_t size,
	       const struct core_args *args, void *arg)
{
	switch (cmd) {
	case CORE_CMD_HELLO:
		return user_hello(u, copy, args, arg);
	case CORE_CMD_UPDATE:
		return update_command(u, copy, size, args, arg);
	case CORE_CMD_BYEBYE:
		return user_byebye(u, copy, size, arg);
	case CORE_CMD_FREE:
		return free_command(u, copy);
	case CORE_CMD_CONN_INFO:
	case CORE_CMD_BUS_CREATOR_INFO:
	case CORE_CMD_LIST:
		return slice_command(u, cmd, copy, size, arg);
	case CORE_CMD_RECV:
		return user_recv(u, arg, args);
	case CORE_CMD_SEND:
		return user_send(u, copy, args, arg);
	default:
		return plain_command(u, cmd, copy, size, arg);
	}
}

static void write_negotiated(const struct core_items *list, const void *copy, void *arg)
{
	const struct kdbus_item *item = list->negotiate;

	if (item)
		memcpy((char *)arg + ((const char *)item - (const char *)copy), item, item->size);
}

static int checked_copy(enum core_cmd cmd, const void *arg, size_t size, void *copy)
{
	memcpy(copy, arg, size);
	if (size % 8)
		memset((char *)copy + size, 0, 8 - size % 8);
	return core_cmd_check_copy(copy, size);
}

static int parse_and_run(struct user *u, enum core_cmd cmd, void *copy, size_t size, void *arg)
{
	struct core_args args;
	int r;

	((struct head *)arg)->return_flags = 0;
	r = core_cmd_parse(cmd, copy, size, &args);
	if (r < 0)
		return r;
	write_negotiated(&args.list, copy, arg);
	if (args.negotiate) {
		((struct head *)arg)->flags = args.supported;
		if (cmd != CORE_CMD_SEND)
			return 0;
	}
	return run(u, cmd, copy, size, &args, arg);
}

/* What is wrong with the handle comes before what is wrong with the argument (ABI 3.6). */
static int check_handle(struct user *u, enum core_cmd cmd)
{
	/* The kind is known before the handle says that it counts. */
	enum core_handle handle = u->handle;
	int r = core_cmd_check_handle(cmd, handle, u->dead);

	if (r == 0 && handle == CORE_HANDLE_CONNECTED)
		r = core_cmd_check_kind(cmd, u->kind);
	return r;
}

int user_command(struct libkdbus *h, unsigned int number, void *arg)
{
	u64 space[64];
	struct user *u = to_user(h);
	enum core_cmd cmd;
	void *copy = space;
	size_t size;
	int r = core_cmd_lookup(number, &cmd);

	if (r == 0)
		r = check_handle(u, cmd);
	if (r < 0)
		return r;
	if (!arg || (uintptr_t)arg % 8)
		return -EFAULT;
	r = core_cmd_check_size(cmd, *(const u64 *)arg);
	if (r < 0)
		return r;
	size = *(const u64 *)arg;
	if (size > sizeof(space))
		copy = malloc(ALIGN(size, (size_t)8));
	if (!copy)
		return -ENOMEM;
	r = checked_copy(cmd, arg, size, copy);
	if (r == 0)
		r = parse_and_run(u, cmd, copy, size, arg);
	if (copy != space)
		free(copy);
	return r;
}
