// SPDX-License-Identifier: GPL-2.0-only
#include <linux/ktime.h>

#include "creds.h"
#include "life.h"
#include "match.h"
#include "route.h"
#include "send.h"

void kbus_lock_pair(struct kbus_conn *a, struct kbus_conn *b)
{
	if (a > b)
		swap(a, b);
	mutex_lock(&a->lock);
	if (a != b)
		mutex_lock_nested(&b->lock, SINGLE_DEPTH_NESTING);
}

void kbus_unlock_pair(struct kbus_conn *a, struct kbus_conn *b)
{
	mutex_unlock(&a->lock);
	if (a != b)
		mutex_unlock(&b->lock);
}

/* What cannot be delivered is lost to @to, and nobody else's business. */
static void deliver_or_lose(const struct core_parcel *parcel, struct core_conn *to, u64 name_id)
{
	struct kbus_conn *conn = kbus_conn_of(to);

	mutex_lock(&conn->lock);
	if (core_deliver(parcel, to, name_id, NULL))
		core_conn_lose(to);
	mutex_unlock(&conn->lock);
}

static void to_monitors(const struct core_parcel *parcel)
{
	struct core_conn *monitor;

	list_for_each_entry(monitor, &parcel->bus->monitors, bus_entry)
		deliver_or_lose(parcel, monitor, 0);
}

/*
 * The slot counts as queued from the start: a hasty replier may close it before the
 * request is in its queue, and must not free it.
 */
static int open_slot(const struct core_parcel *parcel, const struct core_dst *dst,
		     struct core_reply **ret_slot)
{
	struct kbus_conn *from = kbus_conn_of(parcel->from), *to = kbus_conn_of(dst->conn);
	int r;

	kbus_lock_pair(from, to);
	r = core_send_open(parcel, dst, ret_slot);
	if (!r)
		core_reply_request_queued(*ret_slot);
	kbus_unlock_pair(from, to);
	return r;
}

static int deliver_call(const struct core_parcel *parcel, const struct core_dst *dst,
			struct core_reply *slot)
{
	struct kbus_conn *from = kbus_conn_of(parcel->from), *to = kbus_conn_of(dst->conn);
	void *answer;
	int r;

	kbus_lock_pair(from, to);
	r = core_deliver(parcel, dst->conn, dst->name_id, slot);
	if (r) {
		core_reply_close(slot, &answer);
		if (answer)
			core_entry_end(parcel->from, answer);
		core_reply_request_left(slot);
	} else {
		kbus_conn_arm(from);
	}
	kbus_unlock_pair(from, to);
	return r;
}

static int send_call(const struct core_parcel *parcel, const struct core_dst *dst,
		     struct core_reply **ret_slot)
{
	struct core_reply *slot;
	int r;

	r = open_slot(parcel, dst, &slot);
	if (r)
		return r;
	to_monitors(parcel);
	r = deliver_call(parcel, dst, slot);
	if (!r && parcel->msg->route == CORE_ROUTE_SYNC_CALL)
		*ret_slot = slot;
	return r;
}

static int deliver_plain(const struct core_parcel *parcel, const struct core_dst *dst)
{
	struct kbus_conn *to = kbus_conn_of(dst->conn);
	int r;

	mutex_lock(&to->lock);
	r = core_deliver(parcel, dst->conn, dst->name_id, NULL);
	mutex_unlock(&to->lock);
	return r;
}

static int send_unicast(const struct core_parcel *parcel, const struct core_dst *dst,
			struct core_reply **ret_slot)
{
	struct core_cred cred;

	kbus_cred(current_cred(), &cred);
	if (!core_conn_may_talk(parcel->from, &cred, dst->conn))
		return -EPERM;
	if (parcel->msg->msg->flags & KDBUS_MSG_EXPECT_REPLY)
		return send_call(parcel, dst, ret_slot);
	to_monitors(parcel);
	return deliver_plain(parcel, dst);
}

static int send_signal(const struct core_parcel *parcel, const struct core_dst *dst)
{
	to_monitors(parcel);
	if (core_send_wants(parcel, dst->conn))
		deliver_or_lose(parcel, dst->conn, dst->name_id);
	return 0;
}

static int send_reply(const struct core_parcel *parcel, const struct core_dst *dst)
{
	struct kbus_conn *from = kbus_conn_of(parcel->from), *to = kbus_conn_of(dst->conn);
	struct core_reply *slot;
	bool sync = false;
	int r;

	kbus_lock_pair(from, to);
	slot = core_reply_find(&dst->conn->calls, &parcel->from->owed,
			       parcel->msg->msg->cookie_reply);
	if (slot)
		sync = core_reply_take(slot);
	kbus_unlock_pair(from, to);
	if (!slot)
		return -EBADSLT;
	to_monitors(parcel);
	if (!sync)
		return deliver_plain(parcel, dst);
	mutex_lock(&to->lock);
	r = core_send_reply(parcel, slot, dst->conn);
	mutex_unlock(&to->lock);
	return r;
}

static void visit(struct core_match_set *set, void *data)
{
	struct core_conn *to = container_of(set, struct core_conn, matches);
	const struct core_parcel *parcel = data;

	if (core_conn_may_talk(to, NULL, parcel->from))
		deliver_or_lose(parcel, to, 0);
}

static int send_broadcast(struct core_parcel *parcel)
{
	struct kbus_bus *bus = kbus_bus_of(parcel->bus);
	struct core_signal signal;

	to_monitors(parcel);
	core_send_signal(parcel, &signal);
	mutex_lock(&bus->match_lock);
	core_match_find(&bus->core.matches, &signal, visit, parcel);
	mutex_unlock(&bus->match_lock);
	return 0;
}

/* Only a restarted call finds a slot that it has left behind. */
static struct core_reply *resume(struct kbus_message *message)
{
	struct kbus_conn *from = message->from;
	struct core_reply *slot;

	mutex_lock(&from->lock);
	slot = core_reply_resume(&from->core.calls, message->msg->cookie);
	mutex_unlock(&from->lock);
	return slot;
}

static int route_locked(struct kbus_message *message, struct core_parcel *parcel,
			struct core_reply **ret_slot)
{
	enum core_route route = message->core.route;
	struct core_dst dst;
	int r;

	if (!kbus_conn_alive(message->from))
		return -ECONNRESET;
	if (route == CORE_ROUTE_SYNC_CALL) {
		*ret_slot = resume(message);
		if (*ret_slot)
			return 0;
		if (message->msg->timeout_ns <= ktime_get_ns())
			return -ETIMEDOUT;
	}
	if (route == CORE_ROUTE_BROADCAST)
		return send_broadcast(parcel);
	r = core_send_resolve(parcel->bus, parcel->msg, &dst);
	if (r)
		return r;
	if (route == CORE_ROUTE_REPLY)
		return send_reply(parcel, &dst);
	if (message->msg->flags & KDBUS_MSG_SIGNAL)
		return send_signal(parcel, &dst);
	return send_unicast(parcel, &dst, ret_slot);
}

/* The number is the bus's, and senders run side by side. */
static u64 next_seq(struct kbus_bus *bus)
{
	return atomic64_inc_return((atomic64_t *)&bus->core.seq);
}

int kbus_route(struct kbus_message *message, struct core_reply **ret_slot)
{
	struct kbus_bus *bus = message->from->ep->bus;
	struct core_parcel parcel = {
		.bus = &bus->core,
		.from = &message->from->core,
		.msg = &message->core,
		.priority = message->msg->priority,
		.n_fds = message->core.n_fds,
		.host = message,
	};
	int r;

	*ret_slot = NULL;
	down_read(&bus->lock);
	parcel.seq = next_seq(bus);
	r = route_locked(message, &parcel, ret_slot);
	up_read(&bus->lock);
	return r;
}
