// SPDX-License-Identifier: GPL-2.0-only
#include "files.h"
#include "host.h"
#include "life.h"
#include "peer.h"
#include "recv.h"
#include "route.h"
#include "tracepoints.h"

static int install(struct core_conn *conn, struct core_entry *core, void *data)
{
	struct kbus_entry *entry = container_of(core, struct kbus_entry, core);

	return entry->files ? kbus_files_install(entry->files, kbus_conn_of(conn),
						 core->slice->offset, data) :
			      0;
}

/* A call that is discarded has an outcome, which others are told: with the bus for itself. */
static int drop(struct kbus_conn *conn, u64 flags, struct core_received *ret)
{
	struct kbus_bus *bus = conn->ep->bus;
	int r;

	down_write(&bus->lock);
	r = core_bus_recv(&conn->core, flags, 0, NULL, NULL, ret);
	if (!r)
		kbus_conn_trim(conn);
	up_write(&bus->lock);
	return r;
}

/* Whose lock the end of the message at hand needs besides that of @conn. */
static struct kbus_conn *requester_of(struct kbus_conn *conn, u64 flags, s64 priority)
{
	struct core_requester *requester;
	struct core_entry *entry;

	if (core_recv_select(&conn->core, flags, priority, &entry) || !entry->reply)
		return conn;
	/* it goes only with the bus locked exclusively */
	requester = READ_ONCE(entry->reply->requester);
	return requester ? kbus_conn_of(container_of(requester, struct core_conn, calls)) : conn;
}

/* Lock @conn and, if the message at hand is a call, its requester. */
static struct kbus_conn *lock_for_recv(struct kbus_conn *conn, u64 flags, s64 priority)
{
	struct kbus_conn *other = conn, *now;

	for (;;) {
		kbus_lock_pair(conn, other);
		now = requester_of(conn, flags, priority);
		if (now == other || now == conn)
			return other;
		kbus_unlock_pair(conn, other);
		other = now;
	}
}

static int receive(struct kbus_conn *conn, u64 flags, s64 priority, struct core_received *ret,
		   u64 *ret_flags)
{
	struct kbus_bus *bus = conn->ep->bus;
	struct kbus_conn *other;
	int r;

	down_read(&bus->lock);
	other = lock_for_recv(conn, flags, priority);
	r = core_bus_recv(&conn->core, flags, priority, install, ret_flags, ret);
	if (!r && !(flags & KDBUS_RECV_PEEK))
		conn->received++;
	kbus_unlock_pair(conn, other);
	up_read(&bus->lock);
	return r;
}

int kbus_peer_recv(struct kbus_conn *conn, struct kbus_arg *arg)
{
	struct kdbus_cmd_recv *cmd = arg->copy;
	struct core_received received;
	u64 flags = arg->args.flags, fd_flags = 0;
	int r, w;

	r = core_check_recv(&arg->args);
	if (!r)
		r = kbus_arg_probe(arg);
	if (r)
		return r;
	if (flags & KDBUS_RECV_DROP)
		r = drop(conn, flags, &received);
	else
		r = receive(conn, flags, cmd->priority, &received, &fd_flags);
	if (r && r != -EAGAIN)
		return r;
	if (!r)
		trace_kdbus_recv(conn, flags, received.offset, received.size);
	cmd->dropped_msgs = received.dropped;
	cmd->msg.offset = received.offset;
	cmd->msg.msg_size = received.size;
	cmd->msg.return_flags = fd_flags;
	arg->return_flags = received.return_flags;
	w = kbus_arg_write(arg);
	return w ? w : r;
}

int kbus_peer_free(struct kbus_conn *conn, struct kbus_arg *arg)
{
	const struct kdbus_cmd_free *cmd = arg->copy;
	struct kbus_bus *bus = conn->ep->bus;
	int r = -ECONNRESET;

	down_read(&bus->lock);
	mutex_lock(&conn->lock);
	if (kbus_conn_alive(conn))
		r = core_pool_free(&conn->core.inbox.pool, cmd->offset);
	if (!r)
		kbus_conn_trim(conn);
	mutex_unlock(&conn->lock);
	up_read(&bus->lock);
	return r;
}
