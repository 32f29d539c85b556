// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names: core does the work; this tells clients what cached answers are no longer true. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "classic/bridge.h"
#include "client.h"

void names_changed(struct bus *bus, const char *name)
{
	lane_page_name_changed(&bus->daemon->page, name);
}

/* Who owns a name, and what it is registered as: compared before and after a change. */
struct owner {
	struct peer *peer;
	u64 id;
};

static struct bus *bus_of(const struct peer *p)
{
	return container_of(p->conn.bus, struct bus, core);
}

static struct peer *holder_of(const struct core_name_holder *holder)
{
	return holder ? peer_of(container_of(holder, struct core_conn, names)) : NULL;
}

static struct owner acting_owner(struct bus *bus, const char *name)
{
	struct core_name *n = core_names_find(&bus->core.names, name);

	if (!n)
		return (struct owner){ 0 };
	return (struct owner){ holder_of(core_name_owner(n)->holder), n->id };
}

static void review(struct peer *p)
{
	struct client *c = p ? native_peer(p) : NULL;

	if (!c || !c->connected)
		return;
	intro_review(c);
	intro_new_meta(c);
}

/* What follows from @name having had @before as owner: compare with now. */
static void follow(struct bus *bus, const char *name, struct owner before)
{
	struct owner now = acting_owner(bus, name);

	if (now.peer == before.peer && now.id == before.id)
		return;
	names_changed(bus, name);
	bridge_name_changed(bus, name, before.peer, now.peer);
	review(before.peer);
	review(now.peer);
}

/*
 * Between an activator and whoever follows or precedes it, calls made through the name move along
 * (ABI 10.6); callers keep their slots themselves, so they are told.
 */
static bool hands_over(const struct peer *from, const struct peer *to)
{
	return from && to && from != to &&
	       (from->conn.kind == CORE_KIND_ACTIVATOR || to->conn.kind == CORE_KIND_ACTIVATOR);
}

/*
 * The records of kdbus policy are for native peers; what a classic one may own, the configuration
 * of its bus says, before this.
 */
static int acquire(struct peer *p, const char *name, u64 flags, u64 *ret_flags)
{
	struct core_name_change change;
	int r;

	if (p->kind == PEER_NATIVE)
		return core_conn_acquire(&p->conn, &p->creds->core, name, flags, ret_flags);
	r = core_names_acquire(&p->conn.bus->names, &p->conn.names, name, flags, ret_flags,
			       &change);
	if (r == 0)
		core_conn_apply(p->conn.bus, &change);
	return r;
}

int name_acquire(struct peer *p, const char *name, u64 flags, u64 *ret_flags)
{
	struct bus *bus = bus_of(p);
	struct owner before = acting_owner(bus, name);
	int r;

	if (hands_over(before.peer, p))
		links_note_move(before.peer, p, before.id);
	r = acquire(p, name, flags, ret_flags);
	links_settle_move(r == 0 && *ret_flags & KDBUS_NAME_PRIMARY);
	if (r == 0)
		follow(bus, name, before);
	return r;
}

static struct peer *successor(const struct core_name_record *record)
{
	struct core_name *name = record->name;

	if (!core_name_record_owns(record) || !list_is_singular(&name->queue) || !name->activator)
		return NULL;
	return holder_of(name->activator->holder);
}

/*
 * What a live owner has in its lanes and its memory stays with it when it gives the name back to
 * the activator, and so does its duty to answer: it goes on reading and answers, or it ends, and
 * what it had not read goes to the activator then (death.c). So the calls move then, too.
 */
#define RELEASED_MAX 64

static void forget_released(struct client *c, struct released *r)
{
	list_del(&r->entry);
	c->n_released--;
	free(r);
}

void names_forget_released(struct client *c)
{
	struct released *r, *next;

	list_for_each_entry_safe(r, next, &c->released, entry)
		forget_released(c, r);
}

/* Beyond the bound the oldest is forgotten: then its callers hear that their calls are dead. */
static void note_released(struct client *c, const char *name, u64 name_id)
{
	struct released *r, *next;

	list_for_each_entry_safe(r, next, &c->released, entry)
		if (r->name_id == name_id)
			forget_released(c, r);
	if (c->n_released == RELEASED_MAX)
		forget_released(c, list_first_entry(&c->released, struct released, entry));
	r = malloc(sizeof(*r) + strlen(name) + 1);
	if (!r)
		return;
	r->name_id = name_id;
	strcpy(r->name, name);
	list_add_tail(&r->entry, &c->released);
	c->n_released++;
}

static void move_released(struct client *c)
{
	struct owner now;
	struct released *r;

	list_for_each_entry(r, &c->released, entry) {
		now = acting_owner(bus_of(&c->peer), r->name);
		if (!now.peer || now.id != r->name_id ||
		    now.peer->conn.kind != CORE_KIND_ACTIVATOR)
			continue;
		links_note_move(&c->peer, now.peer, r->name_id);
		links_settle_move(true);
	}
	names_forget_released(c);
}

int name_release(struct peer *p, const char *name)
{
	struct bus *bus = bus_of(p);
	struct core_name_record *record = core_name_holder_find(&p->conn.names, name);
	bool to_activator = record && successor(record);
	struct owner before = acting_owner(bus, name);
	int r = core_conn_release(&p->conn, name);

	if (r < 0)
		return r;
	if (to_activator && p->kind == PEER_NATIVE)
		note_released(native_peer(p), name, before.id);
	follow(bus, name, before);
	return 0;
}

static void tell_end(struct bus *bus, struct peer *p, const struct core_name_change *change)
{
	struct peer *now = holder_of(change->new_holder);

	if (!change->type)
		return;
	names_changed(bus, change->name);
	bridge_name_changed(bus, change->name, p, now);
	if (now && now->kind == PEER_NATIVE)
		intro_review(native_peer(now));
}

/* Step 6 of a disconnect (ABI 1.8): one name after the other, oldest claim first. */
void names_end(struct peer *p)
{
	struct core_name_record *record;
	struct core_name_change change;
	struct peer *next;

	if (p->kind == PEER_NATIVE)
		move_released(native_peer(p));
	for (;;) {
		record = list_first_entry_or_null(&p->conn.names.records, struct core_name_record,
						  holder_entry);
		if (!record)
			return;
		next = successor(record);
		if (next) {
			links_note_move(p, next, record->name->id);
			links_settle_move(true);
		}
		if (!core_names_release_next(&p->conn.bus->names, &p->conn.names, &change))
			return;
		tell_end(bus_of(p), p, &change);
		core_conn_apply(p->conn.bus, &change);
	}
}
