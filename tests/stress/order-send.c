// SPDX-License-Identifier: LGPL-2.1-or-later
/* Messages, broadcasts, calls and replies of a worker: see order.h. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "order-worker.h"

#define TIMEOUT_S 60 /* only ends a test that hangs */

const char *const order_names[NAMES] = { "test.order.one", "test.order.two" };

static const unsigned char padding[60000]; /* travels in a buffer */
static const int stdin_fd = STDIN_FILENO;

static uint64_t deadline(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)(ts.tv_sec + TIMEOUT_S) * 1000000000ULL;
}

/* Two sizes: one that a buffer carries, and one that a few of fill a tight pool. */
static size_t draw_padding(struct worker *w)
{
	if (w->shared->mode == TIGHT)
		return draw(w, 3) ? 0 : 16000;
	return draw(w, 16) ? 0 : sizeof(padding);
}

static struct kdbus_msg *build(struct worker *w, struct libkdbus_builder *b,
			       const struct body *body, uint64_t dst)
{
	struct kdbus_bloom_filter *filter;
	struct kdbus_msg *msg;
	void *built;

	libkdbus_build(b, sizeof(*msg), NULL, 0);
	if (body->name != NO_NAME)
		libkdbus_build_string(b, KDBUS_ITEM_DST_NAME, order_names[body->name]);
	if (dst == KDBUS_DST_ID_BROADCAST) {
		filter = libkdbus_build_item(b, KDBUS_ITEM_BLOOM_FILTER, NULL,
					     sizeof(*filter) + libkdbus_identity(w->h)->bloom.size);
		if (filter)
			filter->generation = 0;
	}
	libkdbus_build_vec(b, body, sizeof(*body));
	if (w->padding)
		libkdbus_build_vec(b, padding, w->padding);
	if (body->files)
		libkdbus_build_fds(b, &stdin_fd, 1);
	if (libkdbus_build_end(b, &built) < 0) {
		fail(w, "slot %u: no memory", w->slot);
		return NULL;
	}
	msg = built;
	msg->dst_id = dst;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	msg->flags = dst == KDBUS_DST_ID_BROADCAST ? KDBUS_MSG_SIGNAL : 0;
	return msg;
}

/* A number of its own, and all that this worker knows. */
static void know(struct worker *w, struct body *body)
{
	body->from = w->slot;
	memcpy(body->clock, w->clock, sizeof(body->clock));
	memcpy(body->epochs, w->epochs, sizeof(body->epochs));
	body->clock[w->slot]++;
}

static int send_built(struct worker *w, struct body *body, struct kdbus_msg *msg)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd), .msg_address = (uintptr_t)msg };

	if (body->kind == REPLY) {
		msg->cookie_reply = body->answers;
	} else if (body->kind == CALL) {
		msg->flags |= KDBUS_MSG_EXPECT_REPLY;
		msg->timeout_ns = deadline();
	}
	msg->cookie = body->clock[w->slot];
	return libkdbus_send(w->h, &cmd);
}

/*
 * Refused for a reason that may be: want of room, somebody who is not there, or who has had an
 * outcome for his call (that all have one is checked where all meet).
 */
static bool may_be(const struct body *body, int r)
{
	if (body->kind == REPLY && r == -EBADSLT)
		return true;
	if (body->kind != PLAIN && r == -EMLINK)
		return true;
	return r == -ENOBUFS || r == -ENXIO || r == -ESRCH || r == -ECONNRESET || r == -EXFULL;
}

/* 0: it was accepted; what was not has no number. */
static int send(struct worker *w, struct body *body, uint64_t dst)
{
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	int r = -ENOBUFS;

	know(w, body);
	body->files = body->kind == PLAIN && dst != KDBUS_DST_ID_BROADCAST && !draw(w, 16);
	w->padding = draw_padding(w);
	msg = build(w, &b, body, dst);
	if (msg && !failed(w))
		r = send_built(w, body, msg);
	libkdbus_build_clear(&b);
	if (r == 0)
		w->clock[w->slot]++;
	else if (!may_be(body, r))
		fail(w, "slot %u: SEND: %s", w->slot, strerror(-r));
	return r;
}

/* Somebody else's connection; 0 if it has none. */
static uint64_t draw_life(struct worker *w, unsigned int to, struct order_life **ret)
{
	struct order_slot *slot = &w->shared->slots[to];

	*ret = &slot->lives[atomic_load(&slot->life)];
	return atomic_load(&(*ret)->id);
}

static unsigned int draw_other(struct worker *w)
{
	return (w->slot + 1 + draw(w, SLOTS - 1)) % SLOTS;
}

void send_by_id(struct worker *w)
{
	struct body body = { .name = NO_NAME, .by_id = 1 };
	struct order_life *life;
	uint64_t id = draw_life(w, draw_other(w), &life);

	if (id && send(w, &body, id) == 0)
		atomic_fetch_add(&life->sent, 1);
}

void send_by_name(struct worker *w)
{
	struct body body = { .name = draw(w, NAMES) };

	send(w, &body, 0);
}

void broadcast(struct worker *w)
{
	atomic_uint *sent = &w->mine->broadcasts;
	struct body body = { .name = NO_NAME, .broadcast = atomic_load(sent) + 1 };

	if (send(w, &body, KDBUS_DST_ID_BROADCAST) == 0)
		atomic_fetch_add(sent, 1);
}

/* ---- calls ---- */

void call(struct worker *w)
{
	struct body body = { .kind = CALL, .name = NO_NAME, .by_id = 1 };
	struct order_life *life;
	uint64_t id = draw_life(w, draw_other(w), &life);

	if (!id || send(w, &body, id) < 0)
		return;
	w->open++;
	atomic_fetch_add(&life->sent, 1);
}

/* It overtook what was on its way, so it says nothing of what has been delivered. */
static void take_reply(struct worker *w, const struct kdbus_msg *msg, uint32_t number)
{
	const struct body *body = body_of(w, msg);

	if (body && (body->kind != REPLY || body->answers != number))
		fail(w, "slot %u: the reply to call %u came to %u", w->slot, body->answers, number);
	else if (body)
		learn(w, body);
	libkdbus_done(w->h, msg);
}

/*
 * Whoever is called may wait at a meeting, and is told to look. Whether the call of one that ended
 * was received is not known, so it has a number and counts nowhere.
 */
static int wait_for_reply(struct worker *w, struct kdbus_msg *msg, unsigned int to,
			  const struct kdbus_msg **ret)
{
	struct order_slot *slot = &w->shared->slots[to];
	int cancel = w->shared->cancels[w->slot], r;
	eventfd_t value;

	eventfd_read(cancel, &value);
	atomic_fetch_add(&slot->callers, 1);
	eventfd_write(w->shared->bells[to], 1);
	r = libkdbus_call(w->h, msg, cancel, ret);
	atomic_fetch_sub(&slot->callers, 1);
	return r;
}

/* To lower slots only: nobody waits in a circle. */
void call_and_wait(struct worker *w)
{
	struct body body = { .kind = SYNC_CALL, .name = NO_NAME };
	unsigned int to = w->slot ? draw(w, w->slot) : 0;
	const struct kdbus_msg *reply;
	struct libkdbus_builder b;
	struct order_life *life;
	struct kdbus_msg *msg;
	uint64_t id = w->slot ? draw_life(w, to, &life) : 0;
	int r;

	if (!id || failed(w))
		return;
	know(w, &body);
	w->padding = draw_padding(w);
	msg = build(w, &b, &body, id);
	if (!msg)
		return;
	msg->flags |= KDBUS_MSG_EXPECT_REPLY;
	msg->cookie = ++w->clock[w->slot];
	msg->timeout_ns = deadline();
	r = wait_for_reply(w, msg, to, &reply);
	if (r == 0) {
		take_reply(w, reply, body.clock[w->slot]);
		atomic_fetch_add(&w->shared->sync_replies, 1);
	} else if (r == -EXFULL) {
		free_held(w);
	} else if (!may_be(&body, r) && r != -EPIPE && r != -ECANCELED) {
		fail(w, "slot %u: a call without an outcome: %s", w->slot, strerror(-r));
	}
	libkdbus_build_clear(&b);
}

/*
 * One that finds no room is never sent, for its caller may take nothing before he has it: he is
 * told not to wait. (If he does not any more, the next call of his may be cancelled.)
 */
static void unanswered(struct worker *w, const struct kdbus_msg *msg, const struct body *call)
{
	struct order_slot *slot = &w->shared->slots[call->from];
	struct order_life *life = &slot->lives[atomic_load(&slot->life)];

	if (call->kind == SYNC_CALL)
		eventfd_write(w->shared->cancels[call->from], 1);
	else if (atomic_load(&life->id) == msg->src_id)
		atomic_fetch_add(&life->unanswered, 1);
}

void answer(struct worker *w, const struct kdbus_msg *msg, const struct body *call)
{
	struct body body = { .kind = REPLY, .name = NO_NAME, .answers = (uint32_t)msg->cookie };
	const struct body asked = *call;

	if (send(w, &body, msg->src_id) == -ENOBUFS)
		unanswered(w, msg, &asked);
}
