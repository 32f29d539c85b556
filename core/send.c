// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"
#include "send.h"

int core_send_resolve(struct core_bus *bus, const struct core_msg *msg, struct core_dst *ret_dst)
{
	const struct core_name_record *owner;
	struct core_name *name;
	struct core_conn *conn;

	if (!msg->dst_name) {
		conn = core_bus_find_conn(bus, msg->msg->dst_id);
		if (!conn || conn->kind != CORE_KIND_ORDINARY)
			return -ENXIO;
		*ret_dst = (struct core_dst){ .conn = conn };
		return 0;
	}
	name = core_names_find(&bus->names, msg->dst_name);
	if (!name)
		return -ESRCH;
	owner = core_name_owner(name);
	conn = container_of(owner->holder, struct core_conn, names);
	if (msg->msg->dst_id != KDBUS_DST_ID_NAME && msg->msg->dst_id != conn->id)
		return -EREMCHG;
	if ((owner->flags & KDBUS_NAME_ACTIVATOR) && (msg->msg->flags & KDBUS_MSG_NO_AUTO_START))
		return -EADDRNOTAVAIL;
	*ret_dst = (struct core_dst){ .conn = conn, .name_id = name->id };
	return 0;
}

void core_send_signal(const struct core_parcel *parcel, struct core_signal *ret_signal)
{
	const struct kdbus_bloom_filter *filter = core_item_payload(parcel->msg->bloom);

	memset(ret_signal, 0, sizeof(*ret_signal));
	ret_signal->user.src_id = parcel->from->id;
	ret_signal->user.dst_id = parcel->msg->msg->dst_id;
	ret_signal->user.names = &parcel->from->names;
	ret_signal->user.generation = filter->generation;
	ret_signal->user.filter = (const u64 *)filter->data;
}

bool core_send_wants(const struct core_parcel *parcel, const struct core_conn *to)
{
	struct core_signal signal;

	core_send_signal(parcel, &signal);
	return core_match_test(&to->matches, &signal) &&
	       core_conn_may_talk(to, NULL, parcel->from);
}

int core_send_open(const struct core_parcel *parcel, const struct core_dst *dst,
		   struct core_reply **ret_slot)
{
	const struct core_reply_args args = {
		.cookie = parcel->msg->msg->cookie,
		.name_id = dst->name_id,
		.deadline = parcel->msg->msg->timeout_ns,
		.sync = parcel->msg->route == CORE_ROUTE_SYNC_CALL,
	};

	return core_reply_open(&parcel->from->calls, &dst->conn->owed, &args, ret_slot);
}

/* Monitors have seen the message when this fails. */
static int send_plain(const struct core_parcel *parcel, const struct core_cred *cred,
		      struct core_reply **ret_slot)
{
	struct core_reply *slot = NULL;
	struct core_dst dst;
	void *answer;
	int r;

	r = core_send_resolve(parcel->bus, parcel->msg, &dst);
	if (r)
		return r;
	if (!core_conn_may_talk(parcel->from, cred, dst.conn))
		return -EPERM;
	if (parcel->msg->msg->flags & KDBUS_MSG_EXPECT_REPLY) {
		r = core_send_open(parcel, &dst, &slot);
		if (r)
			return r;
	}
	core_deliver_to_monitors(parcel);
	r = core_deliver(parcel, dst.conn, dst.name_id, slot);
	if (r)
		core_reply_close(slot, &answer);
	else if (slot && slot->sync)
		*ret_slot = slot;
	return r;
}

static int send_signal(const struct core_parcel *parcel)
{
	struct core_dst dst;
	int r;

	r = core_send_resolve(parcel->bus, parcel->msg, &dst);
	if (r)
		return r;
	core_deliver_to_monitors(parcel);
	/* the sender is told nothing of what goes wrong from here on (§7.6) */
	if (core_send_wants(parcel, dst.conn) &&
	    core_deliver(parcel, dst.conn, dst.name_id, NULL))
		core_conn_lose(dst.conn);
	return 0;
}

static void visit(struct core_match_set *set, void *data)
{
	struct core_conn *to = container_of(set, struct core_conn, matches);
	const struct core_parcel *parcel = data;

	if (core_conn_may_talk(to, NULL, parcel->from) && core_deliver(parcel, to, 0, NULL))
		core_conn_lose(to);
}

static void send_broadcast(struct core_parcel *parcel)
{
	struct core_signal signal;

	core_deliver_to_monitors(parcel);
	core_send_signal(parcel, &signal);
	core_match_find(&parcel->bus->matches, &signal, visit, parcel);
}

int core_send_fill(const struct core_parcel *parcel, struct core_conn *to,
		   struct core_entry **ret_entry)
{
	struct core_entry *entry;
	int r;

	r = core_deliver_check(parcel, to);
	if (r)
		return r;
	r = core_deliver_reserve(parcel, to, &entry);
	if (r)
		return r;
	r = to->bus->domain->ops->fill(to, parcel, entry);
	if (r)
		core_entry_end(to, entry);
	else
		*ret_entry = entry;
	return r;
}

int core_send_settle(struct core_reply *slot, struct core_conn *to, int r,
		     struct core_entry *entry)
{
	int gone = core_reply_settle(slot, r == -ECOMM ? -EREMOTEIO : r, entry);

	if (gone) {
		if (entry)
			core_entry_end(to, entry);
		return gone;
	}
	to->bus->domain->ops->wake(to);
	return r;
}

int core_send_reply(const struct core_parcel *parcel, struct core_reply *slot,
		    struct core_conn *to)
{
	struct core_entry *entry = NULL;
	int r;

	if (!to->sink) {
		r = core_send_fill(parcel, to, &entry);
	} else {
		r = core_deliver_check(parcel, to);
		if (!r)
			r = to->sink->deliver(to, parcel, NULL);
	}
	return core_send_settle(slot, to, r, entry);
}

static int send_reply(const struct core_parcel *parcel)
{
	struct core_reply *slot;
	struct core_dst dst;
	bool sync;
	int r;

	r = core_send_resolve(parcel->bus, parcel->msg, &dst);
	if (r)
		return r;
	slot = core_reply_find(&dst.conn->calls, &parcel->from->owed,
			       parcel->msg->msg->cookie_reply);
	if (!slot)
		return -EBADSLT;
	sync = core_reply_take(slot);
	core_deliver_to_monitors(parcel);
	if (sync)
		return core_send_reply(parcel, slot, dst.conn);
	return core_deliver(parcel, dst.conn, dst.name_id, NULL);
}

static int route(struct core_parcel *parcel, const struct core_cred *cred,
		 struct core_reply **ret_slot)
{
	switch (parcel->msg->route) {
	case CORE_ROUTE_BROADCAST:
		send_broadcast(parcel);
		return 0;
	case CORE_ROUTE_REPLY:
		return send_reply(parcel);
	case CORE_ROUTE_UNICAST:
		if (parcel->msg->msg->flags & KDBUS_MSG_SIGNAL)
			return send_signal(parcel);
		fallthrough;
	default:
		return send_plain(parcel, cred, ret_slot);
	}
}

int core_bus_send(const struct core_send *send, struct core_reply **ret_slot)
{
	struct core_conn *from = send->from;
	struct core_reply *slot = NULL;
	struct core_parcel parcel = {
		.bus = from->bus,
		.from = from,
		.msg = send->msg,
		.priority = send->msg->msg->priority,
		.n_fds = send->msg->n_fds,
		.host = send->host,
	};
	int r = 0;

	if (!core_conn_alive(from))
		return -ECONNRESET;
	parcel.seq = core_bus_next_seq(from->bus);
	if (send->msg->route == CORE_ROUTE_SYNC_CALL) {
		slot = core_reply_resume(&from->calls, send->msg->msg->cookie);
		if (!slot && send->msg->msg->timeout_ns <= send->now)
			return -ETIMEDOUT;
	}
	if (!slot)
		r = route(&parcel, send->cred, &slot);
	if (!r && ret_slot)
		*ret_slot = slot;
	return r;
}

int core_send_collect(struct core_conn *conn, struct core_reply *slot, core_install install,
		      void *data, struct kdbus_msg_info *ret_info)
{
	struct core_entry *entry;
	void *answer;
	int r;

	r = core_reply_collect(slot, &answer);
	if (!answer)
		return r;
	entry = answer;
	r = install ? install(conn, entry, data) : 0;
	if (!r) {
		core_inbox_publish(&conn->inbox, entry);
		ret_info->offset = entry->slice->offset;
		ret_info->msg_size = entry->slice->size;
		ret_info->return_flags = 0;
	}
	core_entry_end(conn, entry);
	return r;
}

void core_send_give_up(struct core_conn *conn, struct core_reply *slot)
{
	void *answer;

	core_reply_close(slot, &answer);
	if (answer)
		core_entry_end(conn, answer);
}
