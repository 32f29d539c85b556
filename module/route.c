// SPDX-License-Identifier: GPL-2.0-only
#include <linux/ktime.h>

#include "creds.h"
#include "life.h"
#include "match.h"
#include "message.h"
#include "route.h"
#include "send.h"
#include "tracepoints.h"

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

/* The payload was not at hand: nothing has happened, and all will be done again. */
static bool is_absent(const struct core_parcel *parcel)
{
	const struct kbus_message *message = parcel->host;

	return message->absent;
}

/* What cannot be delivered is lost to @to, and nobody else's business. */
static void deliver_or_lose(const struct core_parcel *parcel, struct core_conn *to, u64 name_id)
{
	struct kbus_conn *conn = kbus_conn_of(to);

	mutex_lock(&conn->lock);
	if (core_deliver(parcel, to, name_id, NULL) && !is_absent(parcel))
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

/* Queue what is filled, or give it back. */
static int push(const struct core_parcel *parcel, const struct core_dst *dst,
		struct core_entry *entry)
{
	int r;

	r = core_deliver_push(parcel, dst->conn, entry, dst->name_id, NULL);
	if (r)
		core_entry_end(dst->conn, entry);
	return r;
}

/* The slot is used up by the reply, however that ends, but not by one that is done again. */
static int take_slot(const struct core_parcel *parcel, const struct core_dst *dst,
		     struct core_reply **ret_slot, struct core_entry **ret_entry)
{
	struct core_reply *slot;
	int r;

	slot = core_reply_find(&dst->conn->calls, &parcel->from->owed,
			       parcel->msg->msg->cookie_reply);
	if (!slot)
		return -EBADSLT;
	r = core_send_fill(parcel, dst->conn, ret_entry);
	if (is_absent(parcel))
		return r;
	*ret_slot = slot;
	if (!core_reply_take(slot))
		*ret_slot = NULL;
	return r;
}

static int send_reply(const struct core_parcel *parcel, const struct core_dst *dst)
{
	struct kbus_conn *from = kbus_conn_of(parcel->from), *to = kbus_conn_of(dst->conn);
	struct core_entry *entry = NULL;
	struct core_reply *slot = NULL;
	int r;

	kbus_lock_pair(from, to);
	r = take_slot(parcel, dst, &slot, &entry);
	kbus_unlock_pair(from, to);
	if (r == -EBADSLT || is_absent(parcel))
		return r;
	to_monitors(parcel);
	mutex_lock(&to->lock);
	if (slot)
		r = core_send_settle(slot, dst->conn, r, entry);
	else if (entry)
		r = push(parcel, dst, entry);
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

/* A lane for a search: one that is free, if there is one. */
static unsigned int enter_lane(struct kbus_bus *bus)
{
	unsigned int first = raw_smp_processor_id() % CORE_MATCH_LANES, lane, i;

	for (i = 0; i < CORE_MATCH_LANES; i++) {
		lane = (first + i) % CORE_MATCH_LANES;
		if (mutex_trylock(&bus->lanes[lane]))
			return lane;
	}
	mutex_lock(&bus->lanes[first]);
	return first;
}

static int send_broadcast(struct core_parcel *parcel)
{
	struct kbus_bus *bus = kbus_bus_of(parcel->bus);
	struct core_signal signal;
	unsigned int lane;

	to_monitors(parcel);
	core_send_signal(parcel, &signal);
	lane = enter_lane(bus);
	core_match_find_lane(&bus->core.matches, lane, &signal, visit, parcel);
	mutex_unlock(&bus->lanes[lane]);
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

static int send_to_one(const struct kbus_message *message, const struct core_parcel *parcel,
		       struct core_reply **ret_slot)
{
	struct core_dst dst;
	int r;

	r = core_send_resolve(parcel->bus, parcel->msg, &dst);
	if (r)
		return r;
	if (message->core.route == CORE_ROUTE_REPLY)
		return send_reply(parcel, &dst);
	if (message->msg->flags & KDBUS_MSG_SIGNAL)
		return send_signal(parcel, &dst);
	return send_unicast(parcel, &dst, ret_slot);
}

static int route_locked(struct kbus_message *message, struct core_parcel *parcel,
			struct core_reply **ret_slot)
{
	if (!kbus_conn_alive(message->from))
		return -ECONNRESET;
	if (message->core.route == CORE_ROUTE_SYNC_CALL) {
		*ret_slot = resume(message);
		if (*ret_slot)
			return 0;
		if (message->msg->timeout_ns <= ktime_get_ns())
			return -ETIMEDOUT;
	}
	if (message->core.route == CORE_ROUTE_BROADCAST)
		return send_broadcast(parcel);
	/* a monitor is one more receiver */
	if (message->source == KBUS_PAYLOAD_SENDER && !list_empty(&parcel->bus->monitors)) {
		message->absent = true;
		return 0;
	}
	return send_to_one(message, parcel, ret_slot);
}

/*
 * The number is the bus's, and senders run side by side: with the bus locked shared, for what has
 * it for itself counts with core_bus_next_seq(). Sent again, a message keeps its number.
 */
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
	do {
		down_read(&bus->lock);
		if (!parcel.seq)
			parcel.seq = next_seq(bus);
		r = route_locked(message, &parcel, ret_slot);
		up_read(&bus->lock);
		if (!message->absent)
			break;
		r = kbus_message_buffer(message);
	} while (!r);
	trace_kdbus_send(message, r);
	if (!r)
		atomic64_inc(&message->from->sent);
	return r;
}
