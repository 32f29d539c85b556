// SPDX-License-Identifier: LGPL-2.1-or-later
/* Who has called whom through the daemon: for deaths, hand-overs and replies. */
#include <errno.h>
#include <stdlib.h>

#include "client.h"

static struct link *find(const struct client *caller, const struct client *callee,
			 struct rb_node ***ret_link, struct rb_node **ret_parent)
{
	struct rb_node **link = (struct rb_node **)&callee->callers.rb_node, *parent = NULL;
	struct link *l;

	while (*link) {
		parent = *link;
		l = rb_entry(parent, struct link, node);
		if (l->caller->conn.id == caller->conn.id)
			return l;
		link = caller->conn.id < l->caller->conn.id ? &parent->rb_left : &parent->rb_right;
	}
	*ret_link = link;
	*ret_parent = parent;
	return NULL;
}

bool link_exists(const struct client *caller, const struct client *callee)
{
	struct rb_node **link, *parent;

	return find(caller, callee, &link, &parent);
}

int link_call(struct client *caller, struct client *callee)
{
	struct rb_node **at, *parent;
	struct link *l;

	if (find(caller, callee, &at, &parent))
		return 0;
	l = malloc(sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->caller = caller;
	l->callee = callee;
	rb_link_node(&l->node, parent, at);
	rb_insert_color(&l->node, &callee->callers);
	list_add_tail(&l->entry, &caller->calling);
	return 0;
}

static void drop(struct link *l)
{
	rb_erase(&l->node, &l->callee->callers);
	list_del(&l->entry);
	free(l);
}

void links_drop(struct client *c)
{
	struct link *l, *next;
	struct rb_node *node;

	while ((node = rb_first(&c->callers)))
		drop(rb_entry(node, struct link, node));
	list_for_each_entry_safe(l, next, &c->calling, entry)
		drop(l);
}

/* Everybody who may wait for an answer of @c, or has a lane to it, once each. */
void links_tell_gone(struct client *c)
{
	const struct ctl_gone body = { .peer = c->conn.id, .reason = CTL_GONE_DEAD };
	const struct lane_put put = { .type = LANE_REC_GONE,
				      .length = sizeof(body),
				      .subject = c->conn.id };
	struct rb_node *node;
	struct link *l;

	for (node = rb_first(&c->callers); node; node = rb_next(node)) {
		l = rb_entry(node, struct link, node);
		if (l->caller != c && !intro_exists(l->caller, c))
			client_put(l->caller, &put, &body);
	}
	/* Those we called keep what they owe us: it is of no use to anybody now. */
	list_for_each_entry(l, &c->calling, entry)
		if (l->callee != c && l->callee->conn.sink && !intro_exists(l->callee, c) &&
		    !link_exists(l->callee, c))
			client_put(l->callee, &put, &body);
	intro_tell_all(c, LANE_REC_GONE, &body, sizeof(body));
}

/*
 * A hand-over that is about to be tried: nothing is told unless it happens. One at a time, as there
 * is one thread and nothing between the two calls gives it away.
 */
static struct {
	struct client *from;
	struct client *to;
	u64 name_id;
} noted;

void links_note_move(struct client *from, struct client *to, u64 name_id)
{
	noted.from = from;
	noted.to = to;
	noted.name_id = name_id;
}

void links_settle_move(bool happened)
{
	struct ctl_moved body = { .name_id = noted.name_id };
	const struct lane_put put = { .type = CTL_REC_MOVED, .length = sizeof(body) };
	struct rb_node *node;
	struct link *l;

	if (happened && noted.from) {
		body.from = noted.from->conn.id;
		body.to = noted.to->conn.id;
		for (node = rb_first(&noted.from->callers); node; node = rb_next(node)) {
			l = rb_entry(node, struct link, node);
			if (link_call(l->caller, noted.to) == 0)
				client_put_soft(l->caller, &put, &body);
		}
	}
	noted.from = NULL;
}
