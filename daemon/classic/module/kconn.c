// SPDX-License-Identifier: LGPL-2.1-or-later
/* Connections to the module. Rules: kconn.h. */
#include "kconn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "item.h"

#define HELLO_MAX  1024
#define LABEL_MAX  512
#define DROPS_MAX  1024 /* messages dropped between two attempts to leave */
#define LEAVES_MAX 8

static int command(struct kconn *c, unsigned long cmd, void *arg)
{
	return ioctl(c->fd, cmd, arg) < 0 ? -errno : 0;
}

/* ---- beginning ---- */

static void put_identity(struct core_writer *w, const struct kconn_hello *h)
{
	if (h->name)
		core_put_str(w, KDBUS_ITEM_NAME, h->name);
	if (h->creds)
		core_put(w, KDBUS_ITEM_CREDS, h->creds, sizeof(*h->creds));
	if (h->pids)
		core_put(w, KDBUS_ITEM_PIDS, h->pids, sizeof(*h->pids));
	if (h->label && strlen(h->label) < LABEL_MAX)
		core_put_str(w, KDBUS_ITEM_SECLABEL, h->label);
}

static int hello(struct kconn *c, const struct kconn_hello *h)
{
	u64 buf[HELLO_MAX / sizeof(u64)] = { 0 };
	struct core_writer w = CORE_WRITER(buf, sizeof(buf));
	struct kdbus_cmd_hello *cmd = core_writer_raw(&w, sizeof(*cmd));
	size_t size;
	int r;

	put_identity(&w, h);
	r = core_writer_end(&w, &size);
	if (r < 0)
		return r;
	cmd->size = size;
	cmd->flags = h->flags;
	cmd->attach_flags_send = _KDBUS_ATTACH_ALL;
	cmd->attach_flags_recv = KDBUS_ATTACH_TIMESTAMP | KDBUS_ATTACH_CREDS | KDBUS_ATTACH_PIDS |
				 KDBUS_ATTACH_AUXGROUPS;
	cmd->pool_size = c->pool_size;
	r = command(c, KDBUS_CMD_HELLO, cmd);
	if (r < 0)
		return r;
	c->id = cmd->id;
	memcpy(c->bus_id, cmd->id128, sizeof(c->bus_id));
	command(c, KDBUS_CMD_FREE,
		&(struct kdbus_cmd_free){ .size = sizeof(struct kdbus_cmd_free),
					  .offset = cmd->offset });
	return 0;
}

int kconn_open(struct kconn *c, const char *node, const struct kconn_hello *h)
{
	void *pool;
	int r;

	*c = KCONN_NONE;
	c->fd = open(node, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (c->fd < 0)
		return -errno;
	c->pool_size = h->pool_size ? h->pool_size : KCONN_POOL;
	r = hello(c, h);
	if (r == 0) {
		pool = mmap(NULL, c->pool_size, PROT_READ, MAP_SHARED, c->fd, 0);
		if (pool == MAP_FAILED)
			r = -errno;
		else
			c->pool = pool;
	}
	if (r < 0)
		kconn_close(c);
	return r;
}

/* ---- end ---- */

static bool drop(struct kconn *c)
{
	struct kconn_got got;

	return kconn_recv(c, KDBUS_RECV_DROP, &got) == 0;
}

/*
 * Calls that nobody reads end as such. Under a flood the queue is never empty: then the
 * connection ends when its descriptor is closed, which asks for nothing.
 */
static void leave(struct kconn *c)
{
	struct kdbus_cmd cmd = { .size = sizeof(cmd) };
	unsigned int i, n;

	for (i = 0; i < LEAVES_MAX && command(c, KDBUS_CMD_BYEBYE, &cmd) == -EBUSY; i++)
		for (n = 0; n < DROPS_MAX && drop(c); n++)
			;
}

/* A mapping would keep the file open. */
void kconn_close(struct kconn *c)
{
	if (c->fd < 0)
		return;
	if (c->id)
		leave(c);
	if (c->pool)
		munmap(c->pool, c->pool_size);
	close(c->fd);
	*c = KCONN_NONE;
}

/* ---- messages ---- */

int kconn_recv(struct kconn *c, u64 flags, struct kconn_got *ret)
{
	struct kdbus_cmd_recv cmd = { .size = sizeof(cmd), .flags = flags };
	int r = command(c, KDBUS_CMD_RECV, &cmd);

	*ret = (struct kconn_got){ 0 };
	if (r < 0 && r != -EAGAIN)
		return r;
	ret->lost = cmd.return_flags & KDBUS_RECV_RETURN_DROPPED_MSGS ? cmd.dropped_msgs : 0;
	if (r < 0 || flags & KDBUS_RECV_DROP)
		return r;
	ret->msg = (const struct kdbus_msg *)(c->pool + cmd.msg.offset);
	ret->incomplete = cmd.msg.return_flags & KDBUS_RECV_RETURN_INCOMPLETE_FDS ||
			  cmd.return_flags & KDBUS_RECV_RETURN_INCOMPLETE_FDS;
	return 0;
}

void kconn_free(struct kconn *c, const void *slice)
{
	struct kdbus_cmd_free cmd = { .size = sizeof(cmd) };

	cmd.offset = (u64)((const unsigned char *)slice - c->pool);
	command(c, KDBUS_CMD_FREE, &cmd);
}

int kconn_send(struct kconn *c, const struct kdbus_msg *msg)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd), .msg_address = (uintptr_t)msg };

	return command(c, KDBUS_CMD_SEND, &cmd);
}

/* ---- names, matches, what there is ---- */

int kconn_name(struct kconn *c, unsigned long cmd, const char *name, u64 flags, u64 *ret_flags)
{
	u64 buf[64] = { 0 };
	struct core_writer w = CORE_WRITER(buf, sizeof(buf));
	struct kdbus_cmd *arg = core_writer_raw(&w, sizeof(*arg));
	size_t size;
	int r;

	core_put_str(&w, KDBUS_ITEM_NAME, name);
	r = core_writer_end(&w, &size);
	if (r < 0)
		return r;
	arg->size = size;
	arg->flags = flags;
	r = command(c, cmd, arg);
	if (ret_flags)
		*ret_flags = arg->return_flags;
	return r;
}

int kconn_match(struct kconn *c, u64 type, const void *rule, size_t rule_size)
{
	u64 buf[32] = { 0 };
	struct core_writer w = CORE_WRITER(buf, sizeof(buf));
	struct kdbus_cmd_match *cmd = core_writer_raw(&w, sizeof(*cmd));
	size_t size;
	int r;

	if (rule_size)
		core_put(&w, type, rule, rule_size);
	r = core_writer_end(&w, &size);
	if (r < 0)
		return r;
	cmd->size = size;
	return command(c, KDBUS_CMD_MATCH_ADD, cmd);
}

int kconn_info(struct kconn *c, u64 id, u64 attach, const struct kdbus_info **ret)
{
	struct kdbus_cmd_info cmd = { .size = sizeof(cmd), .id = id, .attach_flags = attach };
	int r = command(c, KDBUS_CMD_CONN_INFO, &cmd);

	if (r == 0)
		*ret = (const struct kdbus_info *)(c->pool + cmd.offset);
	return r;
}

int kconn_list(struct kconn *c, u64 flags, const struct kdbus_info **ret, u64 *ret_size)
{
	struct kdbus_cmd_list cmd = { .size = sizeof(cmd), .flags = flags };
	int r = command(c, KDBUS_CMD_LIST, &cmd);

	if (r < 0)
		return r;
	*ret = cmd.list_size ? (const struct kdbus_info *)(c->pool + cmd.offset) : NULL;
	*ret_size = cmd.list_size;
	return 0;
}
