// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Who waits for what: each caller has a tree of its calls by serial, each callee a list of what it
 * owes. Mostly it is one call, and never more steps than the logarithm of how many there are,
 * whatever serials the caller picks. Ends are O(calls of the peer).
 */
#include <errno.h>
#include <stdlib.h>

#include "classic.h"
#include "driver.h"
#include "timer.h"

struct call {
	struct rb_node node; /* in caller->calls */
	uint32_t serial;
	struct cpeer *caller;
	struct peer *callee;
	struct list_head callee_entry; /* in callee->owed */
	struct timeout timeout;
	struct call *next; /* while it is spare */
};

#define SPARE_MAX 256

/* Freed ones, to be used again */
struct replies {
	struct call *spare;
	size_t n_spare;
};

int replies_init(struct classic *k)
{
	k->replies = calloc(1, sizeof(*k->replies));
	return k->replies ? 0 : -ENOMEM;
}

void replies_free(struct classic *k)
{
	struct replies *r = k->replies;
	struct call *call;

	if (!r)
		return;
	while ((call = r->spare)) {
		r->spare = call->next;
		free(call);
	}
	free(r);
	k->replies = NULL;
}

/* NULL: there is none; then it belongs at @ret_link below @ret_parent. */
static struct call *find(struct cpeer *caller, uint32_t serial, struct rb_node ***ret_link,
			 struct rb_node **ret_parent)
{
	struct rb_node **link = &caller->calls.rb_node;
	struct call *call;

	*ret_parent = NULL;
	while (*link) {
		core_step();
		call = rb_entry(*link, struct call, node);
		if (call->serial == serial)
			return call;
		*ret_parent = *link;
		link = serial < call->serial ? &(*link)->rb_left : &(*link)->rb_right;
	}
	*ret_link = link;
	return NULL;
}

static struct call *lookup(struct cpeer *caller, uint32_t serial)
{
	struct rb_node **link, *parent;

	return find(caller, serial, &link, &parent);
}

static struct call *new_call(struct replies *r)
{
	struct call *call = r->spare;

	if (!call)
		return malloc(sizeof(*call));
	r->spare = call->next;
	r->n_spare--;
	return call;
}

static void end_call(struct call *call)
{
	struct cpeer *caller = call->caller;
	struct replies *r = caller->classic->replies;

	rb_erase(&call->node, &caller->calls);
	caller->n_calls--;
	list_del(&call->callee_entry);
	timeout_clear(caller->classic, &call->timeout);
	if (r->n_spare == SPARE_MAX) {
		free(call);
		return;
	}
	call->next = r->spare;
	r->spare = call;
	r->n_spare++;
}

static void expired(struct timeout *t)
{
	struct call *call = container_of(t, struct call, timeout);
	struct cpeer *caller = call->caller;
	uint32_t serial = call->serial;

	end_call(call);
	driver_error_serial(caller, serial, DBUS_ERROR("NoReply"),
			    "Message did not receive a reply (timeout by message bus)");
}

int reply_expect(struct cpeer *caller, struct peer *callee, uint32_t serial)
{
	const struct config_limits *limits = classic_limits(caller->classic);
	struct rb_node **link, *parent;
	struct call *call;

	if (find(caller, serial, &link, &parent))
		return -EEXIST;
	if (caller->n_calls >= (unsigned long)limits->max_replies_per_connection)
		return -EMLINK;
	call = new_call(caller->classic->replies);
	if (!call)
		return -ENOMEM;
	call->serial = serial;
	call->caller = caller;
	call->callee = callee;
	call->timeout.at = 0;
	call->timeout.expired = expired;
	rb_link_node(&call->node, parent, link);
	rb_insert_color(&call->node, &caller->calls);
	caller->n_calls++;
	list_add_tail(&call->callee_entry, &callee->owed);
	if (limits->reply_timeout > 0)
		timeout_set(caller->classic, &call->timeout, (u64)limits->reply_timeout);
	return 0;
}

void reply_forget(struct cpeer *caller, uint32_t serial)
{
	struct call *call = lookup(caller, serial);

	if (call)
		end_call(call);
}

bool reply_is_expected(struct cpeer *caller, const struct peer *callee, uint32_t serial)
{
	const struct call *call = lookup(caller, serial);

	return call && call->callee == callee;
}

bool reply_awaits_native(struct cpeer *caller, uint32_t serial)
{
	const struct call *call = lookup(caller, serial);

	return call && call->callee->kind != PEER_CLASSIC;
}

bool reply_take(struct cpeer *caller, const struct peer *callee, uint32_t serial)
{
	struct call *call = lookup(caller, serial);

	if (!call || call->callee != callee)
		return false;
	end_call(call);
	return true;
}

void replies_move(struct peer *from, struct peer *to)
{
	struct call *call;

	list_for_each_entry(call, &from->owed, callee_entry)
		call->callee = to;
	list_splice_tail_init(&from->owed, &to->owed);
}

void replies_end(struct classic *k, struct peer *p)
{
	struct cpeer *c = classic_peer(p), *caller;
	struct rb_node *node;
	struct call *call;
	uint32_t serial;

	while (c && (node = rb_first(&c->calls)))
		end_call(rb_entry(node, struct call, node));
	while ((call = list_first_entry_or_null(&p->owed, struct call, callee_entry))) {
		caller = call->caller;
		serial = call->serial;
		end_call(call);
		driver_error_serial(caller, serial, DBUS_ERROR("NoReply"),
				    "Message recipient disconnected from message bus without "
				    "replying");
	}
}
