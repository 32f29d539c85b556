// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Who waits for what: a hash table of calls by caller and serial, and lists of them by caller and
 * by callee for their ends. Every operation is O(1), ends are O(calls of the peer). Callers choose
 * their serials, so hashes are keyed.
 */
#include <errno.h>
#include <stdlib.h>

#include "classic.h"
#include "driver.h"
#include "timer.h"

struct call {
	struct call *next; /* of the same bucket, or free */
	struct cpeer *caller;
	struct peer *callee;
	struct list_head caller_entry; /* in caller->calls */
	struct list_head callee_entry; /* in callee->owed */
	struct timeout timeout;
	uint32_t serial;
};

#define FIRST_BUCKETS 64
#define SPARE_MAX 256

struct replies {
	struct dbusp_hash_key key;
	struct call **buckets;
	size_t n_buckets; /* a power of two */
	size_t n;
	struct call *spare; /* freed ones, to be used again */
	size_t n_spare;
};

int replies_init(struct classic *k)
{
	struct replies *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	k->replies = r;
	r->key = k->hash_key;
	r->buckets = calloc(FIRST_BUCKETS, sizeof(*r->buckets));
	r->n_buckets = FIRST_BUCKETS;
	return r->buckets ? 0 : -ENOMEM;
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
	free(r->buckets);
	free(r);
	k->replies = NULL;
}

static size_t bucket_of(const struct replies *r, const struct cpeer *caller, uint32_t serial)
{
	const uint64_t call[2] = { caller->conn.id, serial };

	return (size_t)dbusp_hash_of(&r->key, call, sizeof(call)) & (r->n_buckets - 1);
}

static struct call **find(struct replies *r, const struct cpeer *caller, uint32_t serial)
{
	struct call **link = &r->buckets[bucket_of(r, caller, serial)];

	while (*link && ((*link)->serial != serial || (*link)->caller != caller)) {
		core_step();
		link = &(*link)->next;
	}
	return link;
}

/* A table that cannot grow gets slower, no more. */
static void grow(struct replies *r)
{
	struct call **old = r->buckets, *call, *next;
	size_t n_old = r->n_buckets, i, b;

	r->buckets = calloc(n_old * 2, sizeof(*r->buckets));
	if (!r->buckets) {
		r->buckets = old;
		return;
	}
	r->n_buckets = n_old * 2;
	for (i = 0; i < n_old; i++) {
		for (call = old[i]; call; call = next) {
			next = call->next;
			b = bucket_of(r, call->caller, call->serial);
			call->next = r->buckets[b];
			r->buckets[b] = call;
		}
	}
	free(old);
}

static struct call *new_call(struct replies *r)
{
	struct call *call = r->spare;

	if (!call)
		return calloc(1, sizeof(*call));
	r->spare = call->next;
	r->n_spare--;
	return call;
}

static void end_call(struct replies *r, struct call **link)
{
	struct call *call = *link;

	*link = call->next;
	r->n--;
	call->caller->n_calls--;
	list_del(&call->caller_entry);
	list_del(&call->callee_entry);
	timeout_clear(call->caller->classic, &call->timeout);
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

	end_call(caller->classic->replies, find(caller->classic->replies, caller, serial));
	driver_error_serial(caller, serial, DBUS_ERROR("NoReply"),
			    "Message did not receive a reply (timeout by message bus)");
}

int reply_expect(struct cpeer *caller, struct peer *callee, uint32_t serial)
{
	const struct config_limits *limits = classic_limits(caller->classic);
	struct replies *r = caller->classic->replies;
	struct call **link, *call;

	if (*find(r, caller, serial))
		return -EEXIST;
	if (caller->n_calls >= (unsigned long)limits->max_replies_per_connection)
		return -EMLINK;
	call = new_call(r);
	if (!call)
		return -ENOMEM;
	if (r->n >= r->n_buckets)
		grow(r);
	link = &r->buckets[bucket_of(r, caller, serial)];
	*call = (struct call){ .next = *link,
			       .caller = caller,
			       .callee = callee,
			       .serial = serial };
	call->timeout.expired = expired;
	*link = call;
	r->n++;
	caller->n_calls++;
	list_add_tail(&call->caller_entry, &caller->calls);
	list_add_tail(&call->callee_entry, &callee->owed);
	if (limits->reply_timeout > 0)
		timeout_set(caller->classic, &call->timeout, (u64)limits->reply_timeout);
	return 0;
}

void reply_forget(struct cpeer *caller, uint32_t serial)
{
	struct replies *r = caller->classic->replies;
	struct call **link = find(r, caller, serial);

	if (*link)
		end_call(r, link);
}

bool reply_is_expected(struct cpeer *caller, const struct peer *callee, uint32_t serial)
{
	struct call *call = *find(caller->classic->replies, caller, serial);

	return call && call->callee == callee;
}

bool reply_take(struct cpeer *caller, const struct peer *callee, uint32_t serial)
{
	struct replies *r = caller->classic->replies;
	struct call **link = find(r, caller, serial);

	if (!*link || (*link)->callee != callee)
		return false;
	end_call(r, link);
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
	struct call *call;
	uint32_t serial;

	while (c && (call = list_first_entry_or_null(&c->calls, struct call, caller_entry)))
		reply_forget(c, call->serial);
	while ((call = list_first_entry_or_null(&p->owed, struct call, callee_entry))) {
		caller = call->caller;
		serial = call->serial;
		reply_forget(caller, serial);
		driver_error_serial(caller, serial, DBUS_ERROR("NoReply"),
				    "Message recipient disconnected from message bus without "
				    "replying");
	}
}
