// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>

#include "creds.h"
#include "life.h"
#include "list.h"
#include "peer.h"
#include "record.h"
#include "render.h"

/* Bus locked shared. */
static int answer(struct kbus_conn *conn, const void *src, size_t size, u64 *ret_offset)
{
	int r;

	mutex_lock(&conn->lock);
	r = kbus_conn_answer(conn, src, size, ret_offset);
	mutex_unlock(&conn->lock);
	return r;
}

static int answer_info(struct kbus_conn *conn, const struct core_info *info,
		       struct kdbus_cmd_info *cmd)
{
	size_t size = core_info_size(info);
	void *buf = kvmalloc(size, GFP_KERNEL_ACCOUNT);
	u64 offset;
	int r;

	if (!buf)
		return -ENOMEM;
	r = core_info_write(info, buf, size);
	if (!r)
		r = answer(conn, buf, size, &offset);
	kvfree(buf);
	if (r)
		return r;
	cmd->offset = offset;
	cmd->info_size = size;
	return 0;
}

static int info_locked(struct kbus_conn *conn, const struct core_info_query *query,
		       struct kdbus_cmd_info *cmd)
{
	struct kbus_rendered rendered;
	struct core_info info;
	struct core_cred cred;
	struct kbus_conn *of;
	struct core_conn *core;
	int r;

	if (!kbus_conn_alive(conn))
		return -ECONNRESET;
	kbus_cred(current_cred(), &cred);
	r = core_info_find(&conn->core, &cred, query, &core);
	if (r)
		return r;
	of = kbus_conn_of(core);
	info = (struct core_info){ .id = core->id, .flags = core->flags };
	info.mask = core_meta_for_conn(core->attach_send, query->attach);
	kbus_render(&of->proc, conn, info.mask, &rendered);
	rendered.meta.have |= KDBUS_ATTACH_NAMES;
	rendered.meta.names = &core->names;
	if (*of->description)
		rendered.meta.have |= KDBUS_ATTACH_CONN_DESCRIPTION;
	rendered.meta.description = of->description;
	info.meta = &rendered.meta;
	r = answer_info(conn, &info, cmd);
	kbus_render_release(&rendered);
	return r;
}

int kbus_peer_conn_info(struct kbus_conn *conn, struct kbus_arg *arg)
{
	struct core_info_query query;
	int r;

	r = core_check_info(arg->copy, &arg->args, &query);
	if (!r)
		r = kbus_arg_probe(arg);
	if (r)
		return r;
	down_read(&conn->ep->bus->lock);
	r = info_locked(conn, &query, arg->copy);
	up_read(&conn->ep->bus->lock);
	return r ? r : kbus_arg_write(arg);
}

static int creator_locked(struct kbus_conn *conn, const struct core_info_query *query,
			  struct kdbus_cmd_info *cmd)
{
	struct kbus_bus *bus = conn->ep->bus;
	struct kbus_rendered rendered;
	struct core_info info = {
		.id = bus->core.id,
		.flags = bus->core.flags,
		.bus_name = bus->core.name,
		.mask = core_meta_for_creator(bus->core.creator_mask, query->attach),
	};
	int r;

	if (!kbus_conn_alive(conn))
		return -ECONNRESET;
	kbus_render(&bus->creator, conn, info.mask, &rendered);
	info.meta = &rendered.meta;
	r = answer_info(conn, &info, cmd);
	kbus_render_release(&rendered);
	return r;
}

int kbus_peer_creator_info(struct kbus_conn *conn, struct kbus_arg *arg)
{
	struct core_info_query query;
	int r;

	r = core_check_info(arg->copy, &arg->args, &query);
	if (!r)
		r = kbus_arg_probe(arg);
	if (r)
		return r;
	down_read(&conn->ep->bus->lock);
	r = creator_locked(conn, &query, arg->copy);
	up_read(&conn->ep->bus->lock);
	return r ? r : kbus_arg_write(arg);
}

static int list_locked(struct kbus_conn *conn, u64 flags, struct kdbus_cmd_list *cmd)
{
	struct core_cred cred;
	u64 offset = conn->core.inbox.pool.size;
	size_t size;
	void *buf;
	int r = 0;

	if (!kbus_conn_alive(conn))
		return -ECONNRESET;
	kbus_cred(current_cred(), &cred);
	size = core_list_size(&conn->core, &cred, flags);
	if (size) {
		buf = kvmalloc(size, GFP_KERNEL_ACCOUNT);
		if (!buf)
			return -ENOMEM;
		r = core_list_write(&conn->core, &cred, flags, buf, size);
		if (!r)
			r = answer(conn, buf, size, &offset);
		kvfree(buf);
	}
	if (r)
		return r;
	cmd->offset = offset;
	cmd->list_size = size;
	return 0;
}

int kbus_peer_list(struct kbus_conn *conn, struct kbus_arg *arg)
{
	int r;

	r = kbus_arg_probe(arg);
	if (r)
		return r;
	down_read(&conn->ep->bus->lock);
	r = list_locked(conn, arg->args.flags, arg->copy);
	up_read(&conn->ep->bus->lock);
	return r ? r : kbus_arg_write(arg);
}
