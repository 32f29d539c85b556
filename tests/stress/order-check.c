// SPDX-License-Identifier: LGPL-2.1-or-later
/* Receiving, and what must hold of each message: see order.h. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "order-worker.h"

/* A connection has ended, or a call without a reply. */
static void heard(struct worker *w, const struct kdbus_msg *msg)
{
	const struct kdbus_item *item;

	if (libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_REPLY_DEAD))
		w->open--;
	if (libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_REPLY_TIMEOUT))
		fail(w, "slot %u: a call without an outcome", w->slot);
	item = libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_ID_REMOVE);
	if (!item)
		return;
	w->ended[w->n_ended++ % ENDED_MAX] = item->id_change.id;
	atomic_fetch_add(&w->shared->ends, 1);
}

static bool has_ended(const struct worker *w, uint64_t id)
{
	unsigned int i;

	for (i = 0; i < ENDED_MAX; i++)
		if (w->ended[i] == id)
			return true;
	return false;
}

static bool came_directly(const struct kdbus_msg *msg)
{
	const struct kdbus_item *item;

	item = libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_TIMESTAMP);
	return item && !item->timestamp.seqnum;
}

static void count_broadcast(struct worker *w, const struct body *b)
{
	uint32_t *heard = &w->heard[b->from];

	atomic_fetch_add(&w->shared->broadcasts, 1);
	if ((*heard || w->settled) && b->broadcast != *heard + 1 && !w->lossy)
		fail(w, "slot %u: broadcast %u of slot %u came after %u", w->slot, b->broadcast,
		     b->from, *heard);
	*heard = b->broadcast;
}

static void count(struct worker *w, const struct body *b)
{
	atomic_fetch_add(b->direct ? &w->shared->direct : &w->shared->relayed, 1);
	if (b->name != NO_NAME)
		atomic_fetch_add(&w->shared->named, 1);
	else if (b->broadcast)
		count_broadcast(w, b);
	w->received += b->by_id;
	if (b->kind == REPLY) {
		w->open--;
		atomic_fetch_add(&w->shared->replies, 1);
	}
}

static const char *way(const struct body *b)
{
	static const char *const ways[][2] = { { "relayed by id", "directly by id" },
					       { "a relayed call", "a direct call" },
					       { "a relayed call", "a direct call" },
					       { "a relayed reply", "a direct reply" } };

	if (b->broadcast)
		return "broadcast";
	if (b->name != NO_NAME)
		return b->direct ? "directly by name" : "relayed by name";
	return ways[b->kind][b->direct];
}

static void check_causes(struct worker *w, const struct body *b)
{
	const struct body *first = &w->knew[b->from];
	uint32_t number = b->clock[b->from];

	if (w->seen[b->from] >= number)
		fail(w,
		     "slot %u: message %u of slot %u (%s) came after %u of slot %u (%s), which "
		     "knew of %u",
		     w->slot, number, b->from, way(b), first->clock[first->from], first->from,
		     way(first), w->seen[b->from]);
}

void learn(struct worker *w, const struct body *body)
{
	unsigned int i;

	for (i = 0; i < SLOTS; i++)
		if (body->clock[i] > w->clock[i])
			w->clock[i] = body->clock[i];
	for (i = 0; i < NAMES; i++)
		if (body->epochs[i] > w->epochs[i])
			w->epochs[i] = body->epochs[i];
}

static void check(struct worker *w, const struct kdbus_msg *msg, const struct body *b)
{
	uint32_t number = b->clock[b->from];
	unsigned int i;

	check_causes(w, b);
	if (b->name != NO_NAME && w->owned[b->name] < b->epochs[b->name])
		fail(w, "slot %u: message %u of slot %u knew of owner %u of a name, but came to %u",
		     w->slot, number, b->from, b->epochs[b->name], w->owned[b->name]);
	if (has_ended(w, msg->src_id))
		fail(w, "slot %u: message %u of slot %u came after its end", w->slot, number,
		     b->from);
	for (i = 0; i < SLOTS; i++) {
		if (b->clock[i] <= w->seen[i])
			continue;
		w->seen[i] = b->clock[i];
		w->knew[i] = *b;
	}
	learn(w, b);
}

static void take_file(struct worker *w, const struct kdbus_msg *msg, const struct body *b)
{
	const struct kdbus_item *item = libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_FDS);

	if ((item && item->fds[0] >= 0) != (b->files != 0))
		fail(w, "slot %u: message %u of slot %u without its descriptor", w->slot,
		     b->clock[b->from], b->from);
	if (item && item->fds[0] >= 0)
		close(item->fds[0]);
}

const struct body *body_of(struct worker *w, const struct kdbus_msg *msg)
{
	static struct body b;
	const struct kdbus_item *item;
	const void *data;
	size_t size;

	item = libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_PAYLOAD_OFF);
	if (!item || libkdbus_payload(w->h, msg, item, &data, &size) < 0 || size < sizeof(b)) {
		fail(w, "slot %u: a message that nobody has sent", w->slot);
		return NULL;
	}
	memcpy(&b, data, sizeof(b));
	b.direct = came_directly(msg);
	return &b;
}

static void take_in(struct worker *w, const struct kdbus_msg *msg)
{
	const struct body *b;

	if (msg->src_id == KDBUS_SRC_ID_KERNEL) {
		heard(w, msg);
		return;
	}
	b = body_of(w, msg);
	if (!b)
		return;
	take_file(w, msg, b);
	count(w, b);
	check(w, msg, b);
	if (msg->flags & KDBUS_MSG_EXPECT_REPLY)
		answer(w, msg, b);
}

void free_held(struct worker *w)
{
	while (w->n_held)
		libkdbus_done(w->h, w->held[--w->n_held]);
}

/* Where room is tight some messages stay in the pool for a while. */
static void give_back(struct worker *w, const struct kdbus_msg *msg)
{
	if (w->shared->mode == TIGHT && w->n_held < HELD_MAX && draw(w, 4))
		w->held[w->n_held++] = msg;
	else
		libkdbus_done(w->h, msg);
}

bool receive(struct worker *w)
{
	struct kdbus_cmd_recv cmd = { .size = sizeof(cmd) };
	const struct kdbus_msg *msg;
	int r = libkdbus_recv(w->h, &cmd);

	atomic_fetch_add(&w->shared->lost, (unsigned int)cmd.dropped_msgs);
	w->lossy |= cmd.dropped_msgs != 0;
	if (r == -EAGAIN)
		return cmd.dropped_msgs;
	if (r < 0) {
		fail(w, "slot %u: RECV: %s", w->slot, strerror(-r));
		return false;
	}
	msg = (const void *)((const char *)libkdbus_pool(w->h, NULL) + cmd.msg.offset);
	take_in(w, msg);
	give_back(w, msg);
	return true;
}
