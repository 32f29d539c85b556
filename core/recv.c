// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"
#include "notify.h"
#include "recv.h"

static void set_empty(const struct core_conn *conn, struct core_received *ret)
{
	ret->offset = conn->inbox.pool.size;
	ret->size = 0;
}

int core_recv_select(const struct core_conn *conn, u64 flags, s64 priority,
		     struct core_entry **ret_entry)
{
	struct core_entry *entry;

	entry = core_inbox_select(&conn->inbox, flags & KDBUS_RECV_USE_PRIORITY, priority);
	if (!entry)
		return -EAGAIN;
	*ret_entry = entry;
	return 0;
}

void core_recv_take(struct core_conn *conn, struct core_entry *entry, u64 flags,
		    struct core_received *ret)
{
	if (flags & KDBUS_RECV_DROP) {
		set_empty(conn, ret);
		core_inbox_remove(&conn->inbox, entry);
		core_notify_dead(entry->reply);
		core_entry_end(conn, entry);
		return;
	}
	ret->offset = entry->slice->offset;
	ret->size = entry->slice->size;
	core_inbox_publish(&conn->inbox, entry);
	if (flags & KDBUS_RECV_PEEK)
		return;
	core_inbox_remove(&conn->inbox, entry);
	core_entry_end(conn, entry);
}

void core_recv_report(struct core_conn *conn, struct core_received *ret)
{
	ret->dropped = core_inbox_report_lost(&conn->inbox);
	ret->return_flags = ret->dropped ? KDBUS_RECV_RETURN_DROPPED_MSGS : 0;
}

int core_bus_recv(struct core_conn *conn, u64 flags, s64 priority, core_install install,
		  void *data, struct core_received *ret)
{
	struct core_entry *entry;
	int r;

	if (!core_conn_alive(conn))
		return -ECONNRESET;
	r = core_recv_select(conn, flags, priority, &entry);
	if (r) {
		set_empty(conn, ret);
		core_recv_report(conn, ret);
		return r;
	}
	if (install && !(flags & (KDBUS_RECV_PEEK | KDBUS_RECV_DROP))) {
		r = install(conn, entry, data);
		if (r)
			return r;
	}
	core_recv_take(conn, entry, flags, ret);
	core_recv_report(conn, ret);
	return 0;
}
