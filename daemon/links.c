// SPDX-License-Identifier: LGPL-2.1-or-later
/* Who has called whom through the daemon: for deaths, hand-overs and replies. */
#include <errno.h>
#include <stdlib.h>

#include "classic/bridge.h"
#include "client.h"

static struct link *find(const struct peer *caller, const struct peer *callee,
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

bool link_exists(const struct peer *caller, const struct peer *callee)
{
	struct rb_node **link, *parent;

	return find(caller, callee, &link, &parent);
}

int link_call(struct peer *caller, struct peer *callee)
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

void links_drop(struct peer *p)
{
	struct link *l, *next;
	struct rb_node *node;

	while ((node = rb_first(&p->callers)))
		drop(rb_entry(node, struct link, node));
	list_for_each_entry_safe(l, next, &p->calling, entry)
		drop(l);
}

/* Who waits in a synchronous call is told ahead of what waits for room in its lane. */
static void tell_gone(struct client *to, void *data)
{
	const struct peer *p = data;
	const struct ctl_gone body = { .peer = p->conn.id, .reason = CTL_GONE_DEAD };
	const struct lane_put put = { .type = LANE_REC_GONE,
				      .length = sizeof(body),
				      .subject = p->conn.id };

	client_put(to, &put, &body);
	client_put_ahead(to, &(struct ctl_ahead){ .from = p->conn.id });
}

/* Who is introduced to it is told in another way, classic peers know nothing of lanes. */
static bool is_told(const struct peer *other, const struct peer *p)
{
	if (other == p || other->kind != PEER_NATIVE)
		return false;
	return p->kind != PEER_NATIVE || !intro_exists(native_peer(other), native_peer(p));
}

/* Everybody who may wait for an answer of @p, or has a lane to it, once each. */
void links_tell_gone(struct peer *p)
{
	struct rb_node *node;
	struct link *l;

	for (node = rb_first(&p->callers); node; node = rb_next(node)) {
		l = rb_entry(node, struct link, node);
		if (is_told(l->caller, p))
			tell_gone(native_peer(l->caller), p);
	}
	/* Those we called keep what they owe us: it is of no use to anybody now. */
	list_for_each_entry(l, &p->calling, entry)
		if (is_told(l->callee, p) && l->callee->conn.sink && !link_exists(l->callee, p))
			tell_gone(native_peer(l->callee), p);
	if (p->kind == PEER_NATIVE)
		intro_each(native_peer(p), tell_gone, p);
}

/*
 * A hand-over that is about to be tried: nothing is told unless it happens. One at a time, as there
 * is one thread and nothing between the two calls gives it away.
 */
static struct {
	struct peer *from;
	struct peer *to;
	u64 name_id;
} noted;

void links_note_move(struct peer *from, struct peer *to, u64 name_id)
{
	noted.from = from;
	noted.to = to;
	noted.name_id = name_id;
}

static void tell_moved(struct peer *caller)
{
	const struct ctl_moved body = { .name_id = noted.name_id,
					.from = noted.from->conn.id,
					.to = noted.to->conn.id };
	const struct lane_put put = { .type = CTL_REC_MOVED, .length = sizeof(body) };

	if (link_call(caller, noted.to) < 0 || caller->kind != PEER_NATIVE)
		return;
	client_put_soft(native_peer(caller), &put, &body);
	client_put_ahead(native_peer(caller), &(struct ctl_ahead){ .name_id = body.name_id,
								   .from = body.from,
								   .to = body.to });
}

/* It may have called directly, and never through the daemon. */
static void tell_introduced(struct client *c, void *data)
{
	if (!link_exists(&c->peer, noted.from) && &c->peer != noted.to)
		tell_moved(&c->peer);
}

void links_settle_move(bool happened)
{
	struct rb_node *node;

	if (happened && noted.from) {
		bridge_calls_moved(noted.from, noted.to);
		for (node = rb_first(&noted.from->callers); node; node = rb_next(node))
			tell_moved(rb_entry(node, struct link, node)->caller);
		if (noted.from->kind == PEER_NATIVE)
			intro_each(native_peer(noted.from), tell_introduced, NULL);
	}
	noted.from = NULL;
}
