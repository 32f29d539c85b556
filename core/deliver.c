// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"
#include "deliver.h"

static const struct core_host_ops *ops_of(const struct core_conn *conn)
{
	return conn->bus->domain->ops;
}

int core_deliver_check(const struct core_parcel *parcel, const struct core_conn *to)
{
	if (!core_conn_alive(to))
		return -ECONNRESET;
	if (parcel->n_fds && !(to->flags & KDBUS_HELLO_ACCEPT_FD) &&
	    to->kind != CORE_KIND_MONITOR)
		return -ECOMM;
	return 0;
}

static int reserve(const struct core_parcel *parcel, struct core_conn *to,
		   struct core_entry **ret_entry)
{
	struct core_user *sender = parcel->from ? parcel->from->user : NULL;
	struct core_entry *entry;
	size_t size;
	int r;

	r = ops_of(to)->prepare(to, parcel, &size, &entry);
	if (r)
		return r;
	r = core_inbox_reserve(&to->inbox, entry, core_user_number(sender), size, parcel->n_fds);
	if (r) {
		ops_of(to)->free(to, entry);
		return r;
	}
	entry->sender = core_user_ref(sender);
	*ret_entry = entry;
	return 0;
}

int core_deliver_reserve(const struct core_parcel *parcel, struct core_conn *to,
			 struct core_entry **ret_entry)
{
	int r;

	core_charge(ops_of(to), to);
	r = reserve(parcel, to, ret_entry);
	core_charge(ops_of(to), NULL);
	return r;
}

int core_deliver_push(const struct core_parcel *parcel, struct core_conn *to,
		      struct core_entry *entry, u64 name_id, struct core_reply *slot)
{
	int r;

	r = core_inbox_push(&to->inbox, entry, parcel->priority);
	if (r)
		return r;
	entry->name_id = name_id;
	entry->reply = slot;
	if (slot)
		core_reply_request_queued(slot);
	ops_of(to)->wake(to);
	return 0;
}

void core_entry_end(struct core_conn *conn, struct core_entry *entry)
{
	core_inbox_release(&conn->inbox, entry);
	core_reply_request_left(entry->reply);
	entry->reply = NULL;
	core_user_unref(entry->sender);
	entry->sender = NULL;
	ops_of(conn)->free(conn, entry);
}

static int deliver_to_inbox(const struct core_parcel *parcel, struct core_conn *to, u64 name_id,
			    struct core_reply *slot)
{
	struct core_entry *entry;
	int r;

	r = core_deliver_reserve(parcel, to, &entry);
	if (r)
		return r;
	r = ops_of(to)->fill(to, parcel, entry);
	if (!r)
		r = core_deliver_push(parcel, to, entry, name_id, slot);
	if (r)
		core_entry_end(to, entry);
	return r;
}

int core_deliver(const struct core_parcel *parcel, struct core_conn *to, u64 name_id,
		 struct core_reply *slot)
{
	int r;

	r = core_deliver_check(parcel, to);
	if (r)
		return r;
	if (to->sink)
		return to->sink->deliver(to, parcel, slot);
	return deliver_to_inbox(parcel, to, name_id, slot);
}

void core_conn_lose(struct core_conn *to)
{
	if (to->sink)
		to->sink->lose(to);
	else if (core_inbox_lose(&to->inbox))
		ops_of(to)->wake(to);
	if (ops_of(to)->lost)
		ops_of(to)->lost(to);
}

void core_deliver_to_monitors(const struct core_parcel *parcel)
{
	struct core_conn *monitor;

	list_for_each_entry(monitor, &parcel->bus->monitors, bus_entry)
		if (core_deliver(parcel, monitor, 0, NULL))
			core_conn_lose(monitor);
}
