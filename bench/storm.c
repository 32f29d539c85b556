// SPDX-License-Identifier: LGPL-2.1-or-later
#include "storm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOKS_SAME 10
#define LOOKS_MAX  200

enum {
	BEFORE,
	PEAK,
	AFTER
};

static void count_one(struct result *res, uint64_t ns)
{
	hist_add(&res->hist, ns);
	res->ns += ns;
	res->ops++;
}

/* ---- the first messages of a connection ---- */

static int fresh_once(struct link *l, const struct order *o)
{
	uint64_t start;
	unsigned int i;
	int r;

	l->transport->close(l);
	start = usage_now_ns();
	r = l->transport->open(l);
	for (i = 0; i < o->nth && r == 0; i++) {
		start = usage_now_ns();
		r = l->transport->call(l, &o->job);
	}
	if (r == 0)
		count_one(&l->shared->result, usage_now_ns() - start);
	return r;
}

static int run_fresh(struct link *l, const struct order *o)
{
	uint64_t i;
	int r = 0;

	for (i = 0; i < o->count && r == 0; i++)
		r = fresh_once(l, o);
	return r;
}

/* ---- connections that come and go ---- */

static int join(struct link *l, unsigned int i)
{
	char name[96];
	int r = l->transport->open(l);

	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "%s.client%u", l->service, i);
	return l->transport->own(l, name);
}

static int storm_once(struct link *l, const struct order *o)
{
	uint64_t start = usage_now_ns();
	int r = join(l, 0);

	if (r == 0)
		r = l->transport->call(l, &o->job);
	if (r < 0)
		return r;
	l->transport->close(l);
	count_one(&l->shared->result, usage_now_ns() - start);
	return 0;
}

static int run_storm(struct link *l, const struct order *o)
{
	struct usage client = usage_self(0), server = usage_of(l->server);
	struct usage daemon = usage_of(l->daemon), *u = l->shared->result.usage;
	uint64_t i;
	int r = 0;

	for (i = 0; i < o->count && r == 0; i++)
		r = storm_once(l, o);
	u[ROLE_CLIENT] = usage_minus(usage_self(0), client);
	u[ROLE_SERVER] = usage_minus(usage_of(l->server), server);
	u[ROLE_DAEMON] = usage_minus(usage_of(l->daemon), daemon);
	return r;
}

/* ---- what the daemon holds for them ---- */

static int sample(struct link *l, int when)
{
	struct result *res = &l->shared->result;
	int r = usage_memory(l->daemon, &res->memory_kib[when], &res->descriptors[when]);

	return r < 0 ? link_error(l, r, "looking at the daemon: %s", strerror(-r)) : 0;
}

/*
 * A daemon may need a moment to notice hang-ups, more of them on a busy machine: wait until so many
 * looks in a row find as many descriptors, two seconds at most.
 */
static int sample_settled(struct link *l, int when)
{
	uint64_t last, same = 0, i;
	int r = sample(l, when);

	for (i = 0; i < LOOKS_MAX && same < LOOKS_SAME && r == 0; i++) {
		last = l->shared->result.descriptors[when];
		usleep(10000);
		r = sample(l, when);
		same = last == l->shared->result.descriptors[when] ? same + 1 : 0;
	}
	return r;
}

static int hold(struct link *l, unsigned int n)
{
	void **states = calloc(n, sizeof(*states));
	unsigned int i, held = 0;
	int r = 0;

	if (!states)
		return link_error(l, -ENOMEM, "out of memory");
	for (i = 0; i < n && r == 0; i++) {
		r = join(l, i);
		if (r == 0)
			states[held++] = l->state;
	}
	if (r == 0)
		r = sample_settled(l, PEAK);
	while (r == 0 && held > 0) {
		l->state = states[--held];
		l->transport->close(l);
	}
	free(states);
	return r;
}

static int storm(struct link *l, const struct order *o)
{
	int r;

	l->transport->close(l);
	r = sample_settled(l, BEFORE);
	if (r == 0)
		r = run_storm(l, o);
	if (r == 0)
		r = hold(l, o->hold);
	if (r == 0)
		r = sample_settled(l, AFTER);
	return r == 0 ? l->transport->open(l) : r;
}

/* ---- connections that stay ---- */

/* No two are the same: a daemon may keep those once. */
static int add_rules(struct link *l, unsigned int n)
{
	static unsigned int number;
	int r = 0;

	for (; n && r == 0; n--)
		r = l->transport->match(l, number++);
	return r;
}

static int hold_all(struct link *l, const struct order *o, void **states)
{
	unsigned int i;
	uint64_t start;
	int r = sample_settled(l, BEFORE);

	for (i = 0; i < o->hold && r == 0; i++) {
		start = usage_now_ns();
		r = l->transport->open(l);
		if (r == 0)
			count_one(&l->shared->result, usage_now_ns() - start);
		states[i] = l->state;
	}
	if (r == 0)
		r = sample_settled(l, PEAK);
	for (i = 0; i < o->hold && r == 0; i++) {
		l->state = states[i];
		r = add_rules(l, o->nth);
	}
	return r == 0 ? sample_settled(l, AFTER) : r;
}

/*
 * They stay until this process ends: what a daemon has freed, it uses again without anything to be
 * seen from outside.
 */
static int run_hold(struct link *l, const struct order *o)
{
	void **states = calloc(o->hold, sizeof(*states)), *own = l->state;
	int r = states ? hold_all(l, o, states) : link_error(l, -ENOMEM, "out of memory");

	free(states);
	l->state = own;
	return r;
}

int storm_obey(struct link *l, const struct order *o)
{
	struct result *res = &l->shared->result;

	memset(res, 0, sizeof(*res));
	if (o->kind == ORDER_HOLD)
		return run_hold(l, o);
	return o->kind == ORDER_FRESH ? run_fresh(l, o) : storm(l, o);
}
