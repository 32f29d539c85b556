// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Calls this connection may answer. The slot itself is with the caller; this is what lets SEND
 * refuse a reply nobody asked for (ABI 7.7).
 */
#include <errno.h>
#include <stdlib.h>

#include "user.h"

static int compare(u64 requester, u64 cookie, u64 seq, const struct owed *o)
{
	if (requester != o->requester)
		return requester < o->requester ? -1 : 1;
	if (cookie != o->cookie)
		return cookie < o->cookie ? -1 : 1;
	return seq == o->seq ? 0 : (seq < o->seq ? -1 : 1);
}

void owed_attach(struct user *u, struct owed *o)
{
	struct rb_node **link = &u->owed.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = compare(o->requester, o->cookie, o->seq,
			       rb_entry(parent, struct owed, node)) < 0 ?
			       &parent->rb_left :
			       &parent->rb_right;
	}
	rb_link_node(&o->node, parent, link);
	rb_insert_color(&o->node, &u->owed);
}

void owed_detach(struct user *u, struct owed *o)
{
	rb_erase(&o->node, &u->owed);
}

void owed_free(struct owed *o)
{
	free(o);
}

struct owed *owed_add(struct user *u, const struct kdbus_msg *msg, bool sync)
{
	struct owed *o = kzalloc(sizeof(*o), GFP_KERNEL);

	if (!o)
		return NULL;
	o->requester = msg->src_id;
	o->cookie = msg->cookie;
	o->deadline = msg->timeout_ns;
	o->sync = sync;
	o->seq = ++u->owed_seq;
	owed_attach(u, o);
	return o;
}

/* The last one before (@requester, @cookie, @seq) */
static struct owed *last_before(struct user *u, u64 requester, u64 cookie, u64 seq)
{
	struct rb_node *node = u->owed.rb_node;
	struct owed *o, *best = NULL;

	while (node) {
		o = rb_entry(node, struct owed, node);
		if (compare(requester, cookie, seq, o) > 0) {
			best = o;
			node = node->rb_right;
		} else {
			node = node->rb_left;
		}
	}
	return best;
}

/* Of several with one cookie the one that came last; those that are too late are forgotten. */
struct owed *owed_find(struct user *u, u64 requester, u64 cookie)
{
	struct owed *o = last_before(u, requester, cookie, U64_MAX);

	if (!o || o->requester != requester || o->cookie != cookie)
		return NULL;
	if (o->deadline > user_now())
		return o;
	owed_remove(u, o);
	return NULL;
}

void owed_remove(struct user *u, struct owed *o)
{
	if (!o)
		return;
	rb_erase(&o->node, &u->owed);
	free(o);
}

void owed_forget(struct user *u, u64 requester)
{
	struct owed *o;

	while ((o = last_before(u, requester, U64_MAX, U64_MAX)) && o->requester == requester)
		owed_remove(u, o);
}

/* Does it still wait for a reply of ours? */
bool owed_any(struct user *u, u64 requester)
{
	struct owed *o;

	while ((o = last_before(u, requester, U64_MAX, U64_MAX)) && o->requester == requester) {
		if (o->deadline > user_now())
			return true;
		owed_remove(u, o);
	}
	return false;
}

void owed_clear(struct user *u)
{
	struct rb_node *node;

	while ((node = rb_first(&u->owed)))
		owed_remove(u, rb_entry(node, struct owed, node));
}
