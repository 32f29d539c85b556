// SPDX-License-Identifier: LGPL-2.1-or-later
/* One worker of the order test: see order.h. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "order.h"

#define ENDED_MAX 64
#define NO_NAME	  NAMES

struct body {
	uint32_t from;
	uint32_t name; /* it was sent by, or NO_NAME */
	uint32_t by_id; /* it counts in the life it was sent to */
	uint32_t broadcast; /* its number among those of its sender */
	uint32_t direct; /* it came so; set by the receiver */
	uint32_t files; /* a descriptor comes with it */
	uint32_t clock[SLOTS];
	uint32_t epochs[NAMES];
};

struct worker {
	struct order_shared *shared;
	struct order_slot *mine;
	unsigned int slot;
	const char *bus;
	struct libkdbus *h;
	struct libkdbus *monitor;
	struct order_life *life;
	uint32_t received; /* in this life, of what was sent to its id */
	uint32_t heard[SLOTS]; /* in this life, the last broadcast of each */
	bool settled; /* this life was there when all met */
	bool lossy; /* in this life broadcasts were lost, as RECV said */
	uint32_t clock[SLOTS]; /* what this worker knows of */
	uint32_t seen[SLOTS]; /* what messages delivered to it knew of */
	struct body knew[SLOTS]; /* the message that knew of it */
	uint32_t epochs[NAMES];
	uint32_t owned[NAMES]; /* epoch in which this worker was the last owner */
	bool owner[NAMES];
	uint64_t ended[ENDED_MAX];
	unsigned int n_ended;
	bool big; /* the message that is being built */
	uint64_t random;
};

static const unsigned char padding[60000]; /* travels in a buffer */
static const int stdin_fd = STDIN_FILENO;
static const char *const names[NAMES] = { "test.order.one", "test.order.two" };

static unsigned int draw(struct worker *w, unsigned int n)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (unsigned int)(w->random >> 33) % n;
}

static bool failed(const struct worker *w)
{
	return atomic_load(&w->shared->failed);
}

static void __attribute__((format(printf, 2, 3))) fail(struct worker *w, const char *format, ...)
{
	va_list args;

	if (atomic_exchange(&w->shared->failed, true))
		return;
	va_start(args, format);
	vsnprintf(w->shared->why, sizeof(w->shared->why), format, args);
	va_end(args);
}

/* ---- receiving ---- */

static void heard_end(struct worker *w, const struct kdbus_msg *msg)
{
	const struct kdbus_item *item;

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
}

static const char *way(const struct body *b)
{
	if (b->by_id)
		return b->direct ? "directly by id" : "relayed by id";
	if (b->name == NO_NAME)
		return "broadcast";
	return b->direct ? "directly by name" : "relayed by name";
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
		if (b->clock[i] > w->seen[i]) {
			w->seen[i] = b->clock[i];
			w->knew[i] = *b;
		}
		if (b->clock[i] > w->clock[i])
			w->clock[i] = b->clock[i];
	}
	for (i = 0; i < NAMES; i++)
		if (b->epochs[i] > w->epochs[i])
			w->epochs[i] = b->epochs[i];
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

static void take_in(struct worker *w, const struct kdbus_msg *msg)
{
	const struct kdbus_item *item;
	const void *data;
	struct body b;
	size_t size;

	if (msg->src_id == KDBUS_SRC_ID_KERNEL) {
		heard_end(w, msg);
		return;
	}
	item = libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_PAYLOAD_OFF);
	if (!item || libkdbus_payload(w->h, msg, item, &data, &size) < 0 || size < sizeof(b)) {
		fail(w, "slot %u: a message that nobody has sent", w->slot);
		return;
	}
	memcpy(&b, data, sizeof(b));
	take_file(w, msg, &b);
	b.direct = came_directly(msg);
	count(w, &b);
	check(w, msg, &b);
}

/* Returns whether there was anything. */
static bool receive(struct worker *w)
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
	libkdbus_done(w->h, msg);
	return true;
}

/* ---- sending ---- */

static void build(struct worker *w, struct libkdbus_builder *b, const struct body *body,
		  uint64_t dst)
{
	struct kdbus_bloom_filter *filter;
	struct kdbus_msg *msg;
	void *built;

	libkdbus_build(b, sizeof(*msg), NULL, 0);
	if (body->name != NO_NAME)
		libkdbus_build_string(b, KDBUS_ITEM_DST_NAME, names[body->name]);
	if (dst == KDBUS_DST_ID_BROADCAST) {
		filter = libkdbus_build_item(b, KDBUS_ITEM_BLOOM_FILTER, NULL,
					     sizeof(*filter) + libkdbus_identity(w->h)->bloom.size);
		if (filter)
			filter->generation = 0;
	}
	libkdbus_build_vec(b, body, sizeof(*body));
	if (w->big)
		libkdbus_build_vec(b, padding, sizeof(padding));
	if (body->files)
		libkdbus_build_fds(b, &stdin_fd, 1);
	if (libkdbus_build_end(b, &built) < 0) {
		fail(w, "slot %u: no memory", w->slot);
		return;
	}
	msg = built;
	msg->dst_id = dst;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	msg->flags = dst == KDBUS_DST_ID_BROADCAST ? KDBUS_MSG_SIGNAL : 0;
}

/* Returns whether it was accepted; what was not has no number. */
static bool send(struct worker *w, struct body *body, uint64_t dst)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct libkdbus_builder b;
	int r;

	body->from = w->slot;
	body->files = dst != KDBUS_DST_ID_BROADCAST && !draw(w, 16);
	w->big = !draw(w, 16);
	memcpy(body->clock, w->clock, sizeof(body->clock));
	memcpy(body->epochs, w->epochs, sizeof(body->epochs));
	body->clock[w->slot]++;
	build(w, &b, body, dst);
	cmd.msg_address = (uintptr_t)b.data;
	r = failed(w) ? -ENOBUFS : libkdbus_send(w->h, &cmd);
	libkdbus_build_clear(&b);
	if (r == 0)
		w->clock[w->slot]++;
	else if (r != -ENOBUFS && r != -ENXIO && r != -ESRCH && r != -ECONNRESET)
		fail(w, "slot %u: SEND: %s", w->slot, strerror(-r));
	return r == 0;
}

static void send_by_id(struct worker *w)
{
	unsigned int to = (w->slot + 1 + draw(w, SLOTS - 1)) % SLOTS;
	struct order_slot *slot = &w->shared->slots[to];
	struct order_life *life = &slot->lives[atomic_load(&slot->life)];
	struct body body = { .name = NO_NAME, .by_id = 1 };
	uint64_t id = atomic_load(&life->id);

	if (id && send(w, &body, id))
		atomic_fetch_add(&life->sent, 1);
}

static void send_by_name(struct worker *w)
{
	struct body body = { .name = draw(w, NAMES) };

	send(w, &body, 0);
}

static void broadcast(struct worker *w)
{
	atomic_uint *sent = &w->mine->broadcasts;
	struct body body = { .name = NO_NAME, .broadcast = atomic_load(sent) + 1 };

	if (send(w, &body, KDBUS_DST_ID_BROADCAST))
		atomic_fetch_add(sent, 1);
}

/* ---- names, monitors, connections ---- */

static void toggle_name(struct worker *w)
{
	unsigned int i = draw(w, NAMES);
	int r;

	if (w->owner[i]) {
		r = libkdbus_release(w->h, names[i]);
		w->owner[i] = false;
	} else {
		r = libkdbus_acquire(w->h, names[i], 0, NULL);
		if (r == 0) {
			w->owner[i] = true;
			w->owned[i] = atomic_fetch_add(&w->shared->epochs[i], 1) + 1;
			w->epochs[i] = w->owned[i];
		}
	}
	if (r < 0 && r != -EEXIST)
		fail(w, "slot %u: name: %s", w->slot, strerror(-r));
}

static void toggle_monitor(struct worker *w)
{
	const struct libkdbus_options options = { .flags = KDBUS_HELLO_MONITOR };

	if (w->monitor)
		w->monitor = libkdbus_close(w->monitor);
	else if (libkdbus_connect(w->bus, &options, &w->monitor) < 0)
		fail(w, "slot %u: no monitor", w->slot);
}

static int add_matches(struct worker *w)
{
	const struct kdbus_notify_id_change any_end = { .id = KDBUS_MATCH_ID_ANY };
	const uint64_t any = KDBUS_MATCH_ID_ANY;
	struct libkdbus_builder b;
	void *built;
	int r = 0, i;

	for (i = 0; i < 2 && r == 0; i++) {
		libkdbus_build(&b, sizeof(struct kdbus_cmd_match), NULL, 0);
		if (i)
			libkdbus_build_item(&b, KDBUS_ITEM_ID, &any, sizeof(any));
		else
			libkdbus_build_item(&b, KDBUS_ITEM_ID_REMOVE, &any_end, sizeof(any_end));
		r = libkdbus_build_end(&b, &built);
		if (r == 0)
			r = libkdbus_match_add(w->h, built);
		libkdbus_build_clear(&b);
	}
	return r;
}

static void begin_life(struct worker *w)
{
	const struct libkdbus_options options = { .flags = KDBUS_HELLO_ACCEPT_FD,
						  .attach_recv = KDBUS_ATTACH_TIMESTAMP };
	unsigned int life = w->life ? atomic_load(&w->mine->life) + 1 : 0;

	if (life == LIVES_MAX || libkdbus_connect(w->bus, &options, &w->h) < 0 ||
	    add_matches(w) < 0) {
		fail(w, "slot %u: cannot connect", w->slot);
		return;
	}
	w->life = &w->mine->lives[life];
	w->received = 0;
	memset(w->heard, 0, sizeof(w->heard));
	w->settled = w->lossy = false;
	memset(w->owner, 0, sizeof(w->owner));
	atomic_store(&w->life->id, libkdbus_identity(w->h)->id);
	atomic_store(&w->mine->life, life);
}

/*
 * Rule 15, if all goes well. The last slot, which never owns a name, just closes: what it had not
 * received is lost, and names would make its senders send again (rule 15, the exception).
 */
static void leave(struct worker *w)
{
	uint32_t sent = atomic_load(&w->life->sent);
	struct kdbus_cmd cmd = { .size = sizeof(cmd) };
	int r = 0;

	if (w->slot == SLOTS - 1)
		broadcast(w); /* nobody waits for the daemon to take it */
	else
		r = libkdbus_byebye(w->h, &cmd);
	if (r == -EBUSY)
		return;
	if (r < 0)
		fail(w, "slot %u: BYEBYE: %s", w->slot, strerror(-r));
	else if (w->slot != SLOTS - 1 && w->received < sent)
		fail(w, "slot %u: BYEBYE, but %u of %u messages received", w->slot, w->received,
		     sent);
	atomic_store(&w->life->id, 0);
	w->h = libkdbus_close(w->h);
	begin_life(w);
}

/* ---- turns ---- */

static void wait_a_little(struct worker *w)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	libkdbus_wait(w->h,
		      (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec + draw(w, 200000),
		      -1);
}

static void receive_some(struct worker *w)
{
	unsigned int n = 1 + draw(w, 6);

	while (n-- && !failed(w) && receive(w))
		if (draw(w, 2))
			send_by_id(w);
}

static void step(struct worker *w)
{
	switch (draw(w, 32)) {
	case 0:
	case 1:
	case 2:
		send_by_name(w);
		break;
	case 3:
	case 4:
		broadcast(w);
		/* What comes next must not overtake it. */
		if (draw(w, 2))
			send_by_id(w);
		break;
	case 5:
		if (w->slot != SLOTS - 1)
			toggle_name(w);
		break;
	case 6:
		if (w->slot == 0 && draw(w, 2))
			toggle_monitor(w);
		break;
	case 7:
		if (w->shared->leaving && !draw(w, 4))
			leave(w);
		break;
	case 8:
		wait_a_little(w);
		break;
	case 9 ... 20:
		send_by_id(w);
		break;
	default:
		receive_some(w);
	}
}

static void meet(struct worker *w, unsigned int point, unsigned int turn)
{
	atomic_uint *met = &w->shared->met[point];

	atomic_fetch_add(met, 1);
	while (atomic_load(met) < SLOTS * (turn + 1) && !failed(w))
		usleep(50);
}

static void check_readable(struct worker *w)
{
	struct pollfd p = { .fd = libkdbus_fd(w->h), .events = POLLIN };

	if (w->received < atomic_load(&w->life->sent) && poll(&p, 1, 0) != 1)
		fail(w, "slot %u: not readable, but %u of %u messages received", w->slot,
		     w->received, atomic_load(&w->life->sent));
}

/* One that has not heard of a broadcast yet may be younger than it. */
static void check_all_came(struct worker *w)
{
	uint32_t sent;
	unsigned int i;

	if (w->received != atomic_load(&w->life->sent))
		fail(w, "slot %u: %u of %u messages received", w->slot, w->received,
		     atomic_load(&w->life->sent));
	for (i = 0; i < SLOTS; i++) {
		sent = atomic_load(&w->shared->slots[i].broadcasts);
		if ((w->heard[i] || w->settled) && w->heard[i] != sent && !w->lossy)
			fail(w, "slot %u: %u of %u broadcasts of slot %u received", w->slot,
			     w->heard[i], sent, i);
		w->heard[i] = sent;
	}
	w->settled = true;
}

/* The daemon takes everything that was sent, and rung, before it answers a command. */
static void say_nothing(struct worker *w)
{
	if (!failed(w) && libkdbus_release(w->h, "test.order.nobody") != -ESRCH)
		fail(w, "slot %u: a name that nobody has", w->slot);
}

static void receive_all(struct worker *w)
{
	while (!failed(w) && receive(w))
		;
}

/* Nobody sends any more: what is there now is all there is. */
static void settle(struct worker *w, unsigned int turn)
{
	uint32_t before;

	meet(w, 0, turn);
	say_nothing(w);
	meet(w, 1, turn);
	if (!failed(w))
		check_readable(w);
	receive_all(w);
	/* What found no room in a lane waits in the daemon, which has some now. */
	do {
		before = w->received;
		say_nothing(w);
		receive_all(w);
	} while (w->received != before);
	if (!failed(w))
		check_all_came(w);
	meet(w, 2, turn);
}

int order_worker(struct order_shared *shared, unsigned int slot, const char *bus)
{
	struct worker w = { .shared = shared,
			    .mine = &shared->slots[slot],
			    .slot = slot,
			    .bus = bus,
			    .random = (shared->seed + slot) * 0x9e3779b97f4a7c15ULL };
	unsigned int turn, i;

	begin_life(&w);
	delays_break(shared->breach);
	delays_seed(shared->seed * SLOTS + slot + 1);
	for (turn = 0; turn < shared->turns && !failed(&w); turn++) {
		meet(&w, 3, turn);
		for (i = 0; i < TURN_STEPS && !failed(&w); i++)
			step(&w);
		settle(&w, turn);
		if (!slot && !failed(&w))
			atomic_store(&shared->turn, turn + 1);
	}
	libkdbus_close(w.monitor);
	libkdbus_close(w.h);
	return failed(&w);
}
