// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Taking up what the module has. Rules: module.h.
 *
 * The cut: everything that a first sweep over the inlets finds is taken up, and then, in a second
 * one, all that was sent before the last of it. What has caused something of the first sweep was
 * queued before that, so the second one finds it; and what it finds besides, with a lower number
 * than the last, cannot have been caused by anything that it has passed over.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "daemon/classic/roster.h"
#include "module.h"

#define EVENTS_MAX	256
#define FIRST_SWEEP_MAX 256 /* of one inlet; the quota of one user there */

static u64 number_of(const struct kdbus_msg *msg)
{
	const struct kdbus_item *item;

	kconn_items(item, msg, msg->items, msg->size)
		if (item->type == KDBUS_ITEM_TIMESTAMP)
			return item->timestamp.seqnum;
	return 0;
}

/* ---- taking up ---- */

static bool make_room(struct module *m)
{
	size_t room = m->room ? m->room * 2 : 64;
	struct arrival *more;

	if (m->n_arrivals < m->room)
		return true;
	more = realloc(m->arrivals, room * sizeof(*more));
	if (!more)
		return false;
	m->arrivals = more;
	m->room = room;
	return true;
}

static void note_lost(struct module *m, const struct inlet *inlet, u64 lost)
{
	if (!lost)
		return;
	if (inlet->kind == INLET_EAR)
		m->lost = true;
	else
		log_sparingly(&m->complaints, "%llu broadcasts found no room at the daemon",
			      (unsigned long long)lost);
}

/* Of classic peers that the daemon hears of otherwise */
static bool is_echo(struct module *m, const struct inlet *inlet, const struct kdbus_msg *msg)
{
	struct peer *from;

	if (inlet->kind != INLET_LISTENER)
		return false;
	from = mirror_find(m, msg->src_id);
	return from && from->kind == PEER_CLASSIC;
}

/* false: there is nothing more, or nothing that may be taken */
static bool take_one(struct module *m, struct inlet *inlet)
{
	struct kconn_got got;
	int r;

	if (!make_room(m))
		return false;
	r = kconn_recv(&inlet->conn, 0, &got);
	note_lost(m, inlet, got.lost);
	if (r < 0)
		return false;
	/* A large one has a memfd, which is the daemon's now. */
	if (is_echo(m, inlet, got.msg)) {
		module_discard(m, &(struct arrival){ .inlet = inlet, .msg = got.msg });
		return true;
	}
	m->arrivals[m->n_arrivals] = (struct arrival){ .inlet = inlet,
						       .msg = got.msg,
						       .incomplete = got.incomplete,
						       .seq = number_of(got.msg),
						       .order = m->n_arrivals };
	m->n_arrivals++;
	return true;
}

static void take_first(struct module *m, struct inlet *inlet, u64 last)
{
	unsigned int n;

	for (n = 0; n < FIRST_SWEEP_MAX && take_one(m, inlet); n++)
		;
}

static void take_up_to(struct module *m, struct inlet *inlet, u64 last)
{
	struct kconn_got got;
	u64 seq;

	for (;;) {
		if (kconn_recv(&inlet->conn, KDBUS_RECV_PEEK, &got) < 0) {
			note_lost(m, inlet, got.lost);
			return;
		}
		note_lost(m, inlet, got.lost);
		seq = number_of(got.msg);
		kconn_free(&inlet->conn, got.msg);
		if (seq > last || !take_one(m, inlet))
			return;
	}
}

/* What waits for a service is no news until somebody is to be started. */
static bool takes_part(struct module *m, struct inlet *inlet)
{
	struct link_to_module *link = container_of(inlet, struct link_to_module, inlet);

	if (inlet->kind == INLET_STARTER) {
		list_move_tail(&container_of(inlet, struct starter, inlet)->ready_entry,
			       &m->ready_starters);
		return false;
	}
	if (inlet->kind != INLET_PEER || !output_full(link->peer))
		return true;
	inlet_watch(m, inlet, false);
	list_move_tail(&link->held_entry, &m->held_back);
	return false;
}

/* Each inlet that is ready, once. */
static void sweep(struct module *m, void (*take)(struct module *m, struct inlet *inlet, u64 last),
		  u64 last)
{
	struct epoll_event events[EVENTS_MAX];
	struct inlet *inlet;
	bool any = true;
	int n, i;

	m->sweep++;
	while (any) {
		any = false;
		n = epoll_wait(m->epoll, events, EVENTS_MAX, 0);
		for (i = 0; i < n; i++) {
			inlet = events[i].data.ptr;
			if (inlet->swept == m->sweep)
				continue;
			inlet->swept = m->sweep;
			any = true;
			if (takes_part(m, inlet))
				take(m, inlet, last);
		}
	}
}

/* ---- acting on it ---- */

static int compare(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static struct cpeer *peer_of_inlet(struct inlet *inlet)
{
	return container_of(inlet, struct link_to_module, inlet)->peer;
}

static void act(struct module *m, struct arrival *a)
{
	/* Anybody can send something to the ear and the listener as well. */
	if (a->inlet->kind == INLET_EAR && !a->msg->src_id)
		mirror_hear(m, a->msg);
	else if (a->inlet->kind == INLET_LISTENER && a->msg->dst_id == KDBUS_DST_ID_BROADCAST)
		module_hear_broadcast(m, a);
	else if (a->inlet->kind == INLET_PEER)
		module_receive(m, peer_of_inlet(a->inlet), a);
	module_discard(m, a);
}

/*
 * What has waited for the owner of a name is older than the news that he owns it, which he gets
 * first.
 */
static bool comes_later(const struct arrival *a)
{
	const struct kdbus_item *item;

	if (a->inlet->kind != INLET_PEER)
		return false;
	kconn_items(item, a->msg, a->msg->items, a->msg->size)
		if (item->type == KDBUS_ITEM_DST_NAME)
			return !peer_owns(&peer_of_inlet(a->inlet)->peer, item->str);
	return false;
}

static u64 last_number(const struct module *m)
{
	u64 last = 0;
	size_t i;

	for (i = 0; i < m->n_arrivals; i++)
		if (m->arrivals[i].seq > last)
			last = m->arrivals[i].seq;
	return last;
}

static void act_on_all(struct module *m)
{
	size_t i, n_later = 0;

	qsort(m->arrivals, m->n_arrivals, sizeof(*m->arrivals), compare);
	for (i = 0; i < m->n_arrivals; i++) {
		if (comes_later(&m->arrivals[i]))
			m->arrivals[n_later++] = m->arrivals[i];
		else
			act(m, &m->arrivals[i]);
	}
	for (i = 0; i < n_later; i++)
		act(m, &m->arrivals[i]);
	m->n_arrivals = 0;
}

static void look_at_starters(struct module *m)
{
	struct starter *s;

	while ((s = list_first_entry_or_null(&m->ready_starters, struct starter, ready_entry))) {
		list_del_init(&s->ready_entry);
		if (!s->busy)
			starter_ready(m, s);
	}
}

/* Those that have room again */
void module_settle(struct classic *k)
{
	struct link_to_module *link, *next;
	struct module *m = module_of(k);

	list_for_each_entry_safe(link, next, &m->held_back, held_entry) {
		if (output_full(link->peer))
			continue;
		list_del_init(&link->held_entry);
		inlet_watch(m, &link->inlet, true);
	}
}

void module_look(struct classic *k)
{
	struct module *m = module_of(k);

	if (m->looking)
		return;
	m->looking = true;
	m->echoes = 0;
	sweep(m, take_first, 0);
	if (m->n_arrivals)
		sweep(m, take_up_to, last_number(m));
	act_on_all(m);
	if (m->lost)
		mirror_renew(m);
	look_at_starters(m);
	m->looking = false;
	activate_begin(k);
}
