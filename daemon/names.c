// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names: core does the work; this tells clients what cached answers are no longer true. */
#include <errno.h>

#include "client.h"

void names_changed(struct bus *bus, const char *name)
{
	lane_page_name_changed(&bus->daemon->page, name);
}

static struct client *acting_owner(struct bus *bus, const char *name, u64 *ret_id)
{
	struct core_name *n = core_names_find(&bus->core.names, name);

	if (!n)
		return NULL;
	*ret_id = n->id;
	return client_of(container_of(core_name_owner(n)->holder, struct core_conn, names));
}

/* What follows from @name having had @before as owner: compare with now. */
static void follow(struct bus *bus, const char *name, struct client *before, u64 before_id)
{
	u64 id = 0;
	struct client *now = acting_owner(bus, name, &id);

	if (now == before && id == before_id)
		return;
	names_changed(bus, name);
	if (before && before->connected) {
		intro_review(before);
		intro_new_meta(before);
	}
	if (now) {
		intro_review(now);
		intro_new_meta(now);
	}
}

/*
 * Between an activator and whoever follows or precedes it, calls made through the name move along
 * (ABI 10.6); callers keep their slots themselves, so they are told.
 */
static bool hands_over(const struct client *from, const struct client *to)
{
	return from && to && from != to &&
	       (from->conn.kind == CORE_KIND_ACTIVATOR || to->conn.kind == CORE_KIND_ACTIVATOR);
}

int name_acquire(struct client *c, const char *name, u64 flags, u64 *ret_flags)
{
	struct bus *bus = c->ep->bus;
	u64 id = 0;
	struct client *before = acting_owner(bus, name, &id);
	int r;

	if (hands_over(before, c))
		links_note_move(before, c, id);
	r = core_conn_acquire(&c->conn, &c->creds->core, name, flags, ret_flags);
	links_settle_move(r == 0 && *ret_flags & KDBUS_NAME_PRIMARY);
	if (r == 0)
		follow(bus, name, before, id);
	return r;
}

static struct client *successor(struct client *c, const struct core_name_record *record)
{
	struct core_name *name = record->name;

	if (!core_name_record_owns(record) || !list_is_singular(&name->queue) || !name->activator)
		return NULL;
	return client_of(container_of(name->activator->holder, struct core_conn, names));
}

int name_release(struct client *c, const char *name)
{
	struct bus *bus = c->ep->bus;
	struct core_name_record *record = core_name_holder_find(&c->conn.names, name);
	struct client *next = record ? successor(c, record) : NULL, *before;
	u64 id = 0;
	int r;

	before = acting_owner(bus, name, &id);
	if (next)
		links_note_move(c, next, id);
	r = core_conn_release(&c->conn, name);
	links_settle_move(r == 0);
	if (r == 0)
		follow(bus, name, before, id);
	return r;
}

/* Step 6 of a disconnect (ABI 1.8): one name after the other, oldest claim first. */
void names_end(struct client *c)
{
	struct core_name_record *record;
	struct core_name_change change;
	struct client *next;

	for (;;) {
		record = list_first_entry_or_null(&c->conn.names.records, struct core_name_record,
						  holder_entry);
		if (!record)
			return;
		next = successor(c, record);
		if (next) {
			links_note_move(c, next, record->name->id);
			links_settle_move(true);
		}
		if (!core_names_release_next(&c->conn.bus->names, &c->conn.names, &change))
			return;
		if (change.type) {
			names_changed(container_of(c->conn.bus, struct bus, core), change.name);
			if (change.new_holder)
				intro_review(client_of(
					container_of(change.new_holder, struct core_conn, names)));
		}
		core_conn_apply(c->conn.bus, &change);
	}
}
