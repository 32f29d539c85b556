// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where all meet, and what must be there then: see order.h. */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "order-worker.h"

/* Until somebody rings, or, while somebody waits for an answer, there is something to receive. */
static void await_bell(struct worker *w, bool serve)
{
	struct pollfd p[2] = { { .fd = w->shared->bells[w->slot], .events = POLLIN },
			       { .fd = serve ? libkdbus_fd(w->h) : -1, .events = POLLIN } };
	eventfd_t value;

	poll(p, 2, -1);
	if (p[0].revents)
		eventfd_read(p[0].fd, &value);
}

static void ring_all(struct worker *w)
{
	unsigned int slot;

	for (slot = 0; slot < SLOTS; slot++)
		eventfd_write(w->shared->bells[slot], 1);
}

/* At the first point others may still wait for an answer of ours. */
void meet(struct worker *w, unsigned int point, unsigned int turn)
{
	atomic_uint *met = &w->shared->met[point];
	bool serve;

	atomic_fetch_add(met, 1);
	ring_all(w);
	while (atomic_load(met) < SLOTS * (turn + 1) && !failed(w)) {
		serve = !point && atomic_load(&w->mine->callers);
		if (!serve || !receive(w)) {
			free_held(w);
			await_bell(w, serve);
		}
	}
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

/* After all that was received was answered */
static void check_calls(struct worker *w)
{
	uint32_t left = atomic_load(&w->life->unanswered);

	if (w->open != left)
		fail(w, "slot %u: %u calls without an outcome, %u were not answered", w->slot,
		     w->open, left);
	w->open = 0;
	atomic_store(&w->life->unanswered, 0);
}

/* The daemon takes everything that was sent, and rung, before it answers a command. */
static void say_nothing(struct worker *w)
{
	if (!failed(w) && libkdbus_release(w->h, "test.order.nobody") != -ESRCH)
		fail(w, "slot %u: a name that nobody has", w->slot);
}

static void receive_all(struct worker *w)
{
	do {
		free_held(w);
	} while (!failed(w) && receive(w));
}

static void receive_what_waits(struct worker *w)
{
	uint32_t before;

	receive_all(w);
	/* What found no room in a lane waits in the daemon, which has some now. */
	do {
		before = w->received + w->open;
		say_nothing(w);
		receive_all(w);
	} while (w->received + w->open != before);
}

/* Nobody sends any more but replies: what is there now is all there is. */
void settle(struct worker *w, unsigned int turn)
{
	meet(w, 0, turn);
	say_nothing(w);
	meet(w, 1, turn);
	if (!failed(w))
		check_readable(w);
	receive_what_waits(w);
	if (!failed(w))
		check_all_came(w);
	meet(w, 2, turn);
	receive_what_waits(w);
	meet(w, 3, turn);
	if (!failed(w))
		check_calls(w);
}
