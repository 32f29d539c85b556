// SPDX-License-Identifier: LGPL-2.1-or-later
/* One worker of the order test: its turns, names and connections. See order.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "helper.h"
#include "order-worker.h"

#define TIGHT_POOL (256u << 10)

unsigned int draw(struct worker *w, unsigned int n)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (unsigned int)(w->random >> 33) % n;
}

bool failed(const struct worker *w)
{
	return atomic_load(&w->shared->failed);
}

/* Whoever waits for anything is told. */
void fail(struct worker *w, const char *format, ...)
{
	unsigned int i;
	va_list args;

	if (atomic_exchange(&w->shared->failing, true))
		return;
	va_start(args, format);
	vsnprintf(w->shared->why, sizeof(w->shared->why), format, args);
	va_end(args);
	atomic_store(&w->shared->failed, true);
	for (i = 0; i <= SLOTS; i++)
		eventfd_write(w->shared->bells[i], 1);
}

/* ---- names, monitors, connections ---- */

/* One at a time, so that epochs are counted in the order of the owners. */
static int take_name(struct worker *w, unsigned int i)
{
	uint64_t flags = KDBUS_NAME_ALLOW_REPLACEMENT;
	int r = -EEXIST;

	if (atomic_exchange(&w->shared->naming[i], true))
		return r;
	if (draw(w, 2))
		flags |= KDBUS_NAME_REPLACE_EXISTING;
	r = libkdbus_acquire(w->h, order_names[i], flags, NULL);
	if (r == 0) {
		w->owner[i] = true;
		w->owned[i] = atomic_fetch_add(&w->shared->epochs[i], 1) + 1;
		w->epochs[i] = w->owned[i];
	}
	atomic_store(&w->shared->naming[i], false);
	return r;
}

/* Somebody else may have taken it over: then it is not ours to give. */
static int give_name(struct worker *w, unsigned int i)
{
	int r = libkdbus_release(w->h, order_names[i]);

	w->owner[i] = false;
	return r == -EADDRINUSE || r == -ESRCH ? 0 : r;
}

static void toggle_name(struct worker *w)
{
	unsigned int i = draw(w, NAMES);
	int r = w->owner[i] ? give_name(w, i) : take_name(w, i);

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
	struct libkdbus_builder b;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(struct kdbus_cmd_match), NULL, 0);
	libkdbus_build_item(&b, KDBUS_ITEM_ID_REMOVE, &any_end, sizeof(any_end));
	r = libkdbus_build_end(&b, &built);
	if (r == 0)
		r = libkdbus_match_add(w->h, built);
	libkdbus_build_clear(&b);
	return r < 0 ? r : helper_match_all(w->h);
}

static void begin_life(struct worker *w)
{
	const struct libkdbus_options options = { .flags = KDBUS_HELLO_ACCEPT_FD,
						  .attach_recv = KDBUS_ATTACH_TIMESTAMP,
						  .pool_size = w->shared->mode == TIGHT ?
								       TIGHT_POOL :
								       0 };
	unsigned int life = w->life ? atomic_load(&w->mine->life) + 1 : 0;

	if (life == LIVES_MAX || libkdbus_connect(w->bus, &options, &w->h) < 0 ||
	    add_matches(w) < 0) {
		fail(w, "slot %u: cannot connect", w->slot);
		return;
	}
	w->life = &w->mine->lives[life];
	w->received = 0;
	w->open = 0;
	memset(w->heard, 0, sizeof(w->heard));
	w->settled = false;
	/* Where room is tight broadcasts may be lost, and that is told behind what came after. */
	w->lossy = w->shared->mode == TIGHT;
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

	free_held(w);
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
	if (w->n_held && !draw(w, 4))
		free_held(w);
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
		if (w->shared->mode == LEAVING && !draw(w, 4))
			leave(w);
		break;
	case 8:
		wait_a_little(w);
		break;
	case 9 ... 17:
		send_by_id(w);
		break;
	case 18:
		call(w);
		break;
	case 19 ... 20:
		call_and_wait(w);
		break;
	default:
		receive_some(w);
	}
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
		meet(&w, 4, turn);
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
