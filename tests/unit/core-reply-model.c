// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reply slots against a naive model: one array of all calls ever made (spec §7.7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base.h"
#include "failalloc.h"
#include "prop.h"
#include "reply.h"

#define CONNS 4
#define CALLS 256

enum { OPEN, LEFT, REPLY, SETTLE, DROP, REPLIER_DIES, REQUESTER_DIES, EXPIRE, INTERRUPT, RESUME,
       COLLECT, GIVE_UP, HAND_OVER };
static const char *const kinds[] = { "OPEN",	"LEFT",	     "REPLY",	"SETTLE", "DROP",
				     "REPLIER_DIES", "REQUESTER_DIES", "EXPIRE", "INTERRUPT",
				     "RESUME",	"COLLECT",   "GIVE_UP",	"HAND_OVER" };

/* What is known of a call; @closed: out of everybody's sight. */
struct call {
	struct core_reply *slot;
	unsigned int r, p, order;
	u64 cookie, name_id, deadline;
	bool sync, queued, closed, taken, settled, interrupted, orphan;
	int result;
	bool answered;
};

struct model {
	struct core_deadlines deadlines;
	struct core_requester r[CONNS];
	struct core_replier p[CONNS];
	struct call calls[CALLS];
	size_t n;
	u64 now;
	unsigned int orders;
};

static void generate(struct prop_rng *rng, struct prop_op *op)
{
	static const unsigned int weights[] = { OPEN,	OPEN,	OPEN,	OPEN,	   OPEN,    LEFT,
						LEFT,	REPLY,	REPLY,	REPLY,	   SETTLE,  SETTLE,
						DROP,	EXPIRE, EXPIRE, INTERRUPT, RESUME,  COLLECT,
						COLLECT, GIVE_UP, HAND_OVER, REPLIER_DIES,
						REQUESTER_DIES };

	op->kind = weights[prop_below(rng, ARRAY_SIZE(weights))];
	op->arg[0] = prop_below(rng, op->kind == EXPIRE ? 6 : CALLS);
	op->arg[1] = prop_below(rng, CONNS);
	op->arg[2] = prop_below(rng, 3);
	op->arg[3] = prop_below(rng, 3);
	op->arg[4] = prop_below(rng, 20);
	op->arg[5] = prop_below(rng, 2);
}

static void *model_setup(void)
{
	struct model *m = calloc(1, sizeof(*m));

	if (!m)
		abort();
	for (int i = 0; i < CONNS; i++) {
		core_requester_init(&m->r[i], &m->deadlines);
		core_replier_init(&m->p[i]);
	}
	return m;
}

static bool expected(const struct call *c)
{
	return !c->closed && !c->taken && !c->settled;
}

static bool counts(const struct call *c)
{
	return !c->orphan && (!c->closed || c->queued || c->taken);
}

/* The call that @op means, if it is in a state that fits. */
static struct call *pick(struct model *m, const struct prop_op *op,
			 bool (*fits)(const struct call *))
{
	for (size_t i = 0; i < m->n; i++) {
		struct call *c = &m->calls[(op->arg[0] + i) % m->n];

		if (fits(c))
			return c;
	}
	return NULL;
}

static bool is_queued(const struct call *c)
{
	return c->queued;
}

static bool is_taken(const struct call *c)
{
	return c->taken;
}

static bool can_wait(const struct call *c)
{
	return !c->closed && c->sync && !c->interrupted;
}

static bool can_collect(const struct call *c)
{
	return can_wait(c) && c->settled;
}

static bool step_open(struct model *m, const struct prop_op *op, struct prop_report *report)
{
	struct call *c = &m->calls[m->n];
	int r;

	if (m->n == CALLS)
		return true;
	*c = (struct call){
		.r = op->arg[0] % CONNS, .p = op->arg[1], .cookie = op->arg[2],
		.name_id = op->arg[3], .sync = op->arg[5], .order = ++m->orders,
		.deadline = op->arg[4] ? m->now + op->arg[4] : U64_MAX, .queued = true,
	};
	r = core_reply_open(
		&m->r[c->r], &m->p[c->p],
		&(struct core_reply_args){ c->cookie, c->name_id, c->deadline, c->sync }, &c->slot);
	if (r)
		return prop_differ(report, "open: %d", r);
	core_reply_request_queued(c->slot);
	m->n++;
	return true;
}

static bool step_reply(struct model *m, const struct prop_op *op, struct prop_report *report)
{
	unsigned int r = op->arg[0] % CONNS, p = op->arg[1];
	struct core_reply *slot = core_reply_find(&m->r[r], &m->p[p], op->arg[2]);
	struct call *want = NULL;

	for (size_t i = 0; i < m->n; i++)
		if (expected(&m->calls[i]) && m->calls[i].r == r && m->calls[i].p == p &&
		    m->calls[i].cookie == op->arg[2])
			want = &m->calls[i];
	if (slot != (want ? want->slot : NULL))
		return prop_differ(report, "found another slot");
	if (!slot)
		return true;
	if (core_reply_take(slot) != want->sync)
		return prop_differ(report, "take: not %d", want->sync);
	want->taken = want->sync;
	want->closed = !want->sync;
	return true;
}

static bool step_settle(struct model *m, struct call *c, int result, struct prop_report *report)
{
	int r = core_reply_settle(c->slot, result, result ? NULL : c);
	int want = c->closed ? -ECONNRESET : 0;

	c->taken = false;
	if (!c->closed) {
		c->settled = true;
		c->result = result;
		c->answered = !result;
	}
	return r == want || prop_differ(report, "settle: %d instead of %d", r, want);
}

static bool step_kill(struct call *c, struct prop_report *report)
{
	enum core_reply_event want = !expected(c) || c->interrupted ? CORE_REPLY_NOTHING :
				     c->sync ? CORE_REPLY_WAKE : CORE_REPLY_DEAD;
	enum core_reply_event event = core_reply_kill(c->slot, -EPIPE);

	if (expected(c)) {
		c->settled = c->sync;
		c->result = -EPIPE;
		c->closed = !c->sync;
	}
	return event == want || prop_differ(report, "kill: %d instead of %d", event, want);
}

static bool step_drop(struct call *c, struct prop_report *report)
{
	bool same = step_kill(c, report);

	core_reply_request_left(c->slot);
	c->queued = false;
	return same;
}

static bool check_answer(const struct call *c, const void *answer, struct prop_report *report)
{
	return answer == (c->answered ? c : NULL) || prop_differ(report, "wrong answer");
}

static struct call *first_owed(struct model *m, unsigned int p)
{
	struct call *first = NULL;

	for (size_t i = 0; i < m->n; i++)
		if (expected(&m->calls[i]) && m->calls[i].p == p &&
		    (!first || m->calls[i].order < first->order))
			first = &m->calls[i];
	return first;
}

static bool step_replier_dies(struct model *m, unsigned int p, struct prop_report *report)
{
	struct core_reply *slot;
	struct call *c;

	while ((c = first_owed(m, p)) != NULL) {
		slot = core_replier_first(&m->p[p]);
		if (slot != c->slot)
			return prop_differ(report, "owes another slot");
		if (!step_kill(c, report))
			return false;
	}
	return !core_replier_first(&m->p[p]) || prop_differ(report, "still owes");
}

static bool step_requester_dies(struct model *m, unsigned int r, struct prop_report *report)
{
	void *answer;

	for (size_t i = 0; i < m->n; i++) {
		struct call *c = &m->calls[i];

		if (c->r != r || !counts(c))
			continue;
		if (core_requester_first(&m->r[r]) != c->slot)
			return prop_differ(report, "another slot is first");
		core_reply_orphan(c->slot, &answer);
		if (!check_answer(c, answer, report))
			return false;
		c->orphan = true;
		c->closed = true;
		c->answered = false;
	}
	return !core_requester_first(&m->r[r]) || prop_differ(report, "slots are left");
}

static struct call *first_due(struct model *m)
{
	struct call *due = NULL;

	for (size_t i = 0; i < m->n; i++) {
		struct call *c = &m->calls[i];

		if (c->closed || (c->sync && !c->interrupted) || c->deadline > m->now)
			continue;
		if (!due || c->deadline < due->deadline)
			due = c;
	}
	return due;
}

static bool step_expire(struct model *m, u64 time, struct prop_report *report)
{
	enum core_reply_event event;
	struct core_reply *slot;
	struct call *c;
	void *answer;

	m->now += time;
	while ((slot = core_deadlines_expired(&m->deadlines, m->now)) != NULL) {
		c = first_due(m);
		/* equal deadlines may pass in any order */
		for (size_t i = 0; c && i < m->n; i++)
			if (!m->calls[i].closed && m->calls[i].slot == slot &&
			    m->calls[i].deadline == c->deadline)
				c = &m->calls[i];
		if (!c || c->slot != slot)
			return prop_differ(report, "another slot is due");
		event = core_reply_expire(slot, &answer);
		if (event != (c->sync ? CORE_REPLY_NOTHING : CORE_REPLY_TIMEOUT))
			return prop_differ(report, "expire: %d", event);
		if (!check_answer(c, answer, report))
			return false;
		c->closed = true;
		c->answered = false;
	}
	return !first_due(m) || prop_differ(report, "a slot is overdue");
}

static bool step_resume(struct model *m, const struct prop_op *op, struct prop_report *report)
{
	unsigned int r = op->arg[0] % CONNS;
	struct core_reply *slot = core_reply_resume(&m->r[r], op->arg[2]);
	struct call *want = NULL;

	for (size_t i = 0; i < m->n; i++)
		if (!m->calls[i].closed && m->calls[i].interrupted && m->calls[i].r == r &&
		    m->calls[i].cookie == op->arg[2])
			want = &m->calls[i];
	if (want)
		want->interrupted = false;
	return slot == (want ? want->slot : NULL) || prop_differ(report, "resumed another slot");
}

static bool step_end(struct call *c, bool collect, struct prop_report *report)
{
	void *answer;
	int r = 0;

	if (collect)
		r = core_reply_collect(c->slot, &answer);
	else
		core_reply_close(c->slot, &answer);
	if (collect && r != c->result)
		return prop_differ(report, "collected %d instead of %d", r, c->result);
	if (!check_answer(c, answer, report))
		return false;
	c->closed = true;
	c->answered = false;
	return true;
}

static bool step_hand_over(struct model *m, const struct prop_op *op, struct prop_report *report)
{
	unsigned int from = op->arg[0] % CONNS, to = op->arg[1], want = 0, got;
	u64 name_id = op->arg[2] + 1;
	struct call *c;

	if (from == to)
		return true;
	for (;;) {
		c = NULL;
		for (size_t i = 0; i < m->n; i++)
			if (expected(&m->calls[i]) && m->calls[i].p == from &&
			    m->calls[i].name_id == name_id && (!c || m->calls[i].order < c->order))
				c = &m->calls[i];
		if (!c)
			break;
		c->p = to;
		c->order = ++m->orders;
		want++;
	}
	got = core_reply_retarget(&m->p[from], &m->p[to], name_id);
	return got == want || prop_differ(report, "moved %u instead of %u", got, want);
}

static bool step_on_call(struct model *m, const struct prop_op *op, struct prop_report *report)
{
	static bool (*const fits[])(const struct call *) = {
		[LEFT] = is_queued,	 [DROP] = is_queued,	  [SETTLE] = is_taken,
		[INTERRUPT] = can_wait, [COLLECT] = can_collect, [GIVE_UP] = can_wait,
	};
	struct call *c = pick(m, op, fits[op->kind]);

	if (!c)
		return true;
	switch (op->kind) {
	case LEFT:
		core_reply_request_left(c->slot);
		c->queued = false;
		return true;
	case DROP:
		return step_drop(c, report);
	case SETTLE:
		return step_settle(m, c, op->arg[5] ? 0 : -ENOBUFS, report);
	case INTERRUPT:
		core_reply_interrupt(c->slot);
		c->interrupted = true;
		return true;
	default:
		return step_end(c, op->kind == COLLECT, report);
	}
}

static bool step_any(struct model *m, const struct prop_op *op, struct prop_report *report)
{
	switch (op->kind) {
	case OPEN:
		return step_open(m, op, report);
	case REPLY:
		return step_reply(m, op, report);
	case REPLIER_DIES:
		return step_replier_dies(m, op->arg[1], report);
	case REQUESTER_DIES:
		return step_requester_dies(m, op->arg[1], report);
	case EXPIRE:
		return step_expire(m, op->arg[0], report);
	case RESUME:
		return step_resume(m, op, report);
	case HAND_OVER:
		return step_hand_over(m, op, report);
	default:
		return step_on_call(m, op, report);
	}
}

static bool model_step(void *state, const struct prop_op *op, struct prop_report *report)
{
	struct model *m = state;
	unsigned int n[CONNS] = { 0 };

	if (!step_any(m, op, report))
		return false;
	for (size_t i = 0; i < m->n; i++)
		if (counts(&m->calls[i]))
			n[m->calls[i].r]++;
	for (int i = 0; i < CONNS; i++)
		if (m->r[i].n != n[i])
			return prop_differ(report, "%d counts %u slots instead of %u", i, m->r[i].n,
					   n[i]);
	return true;
}

static bool model_teardown(void *state, struct prop_report *report)
{
	struct model *m = state;
	bool same = true;

	for (unsigned int i = 0; i < CONNS; i++)
		same = same && step_requester_dies(m, i, report);
	for (size_t i = 0; same && i < m->n; i++) {
		if (m->calls[i].taken)
			same = step_settle(m, &m->calls[i], 0, report);
		if (m->calls[i].queued)
			core_reply_request_left(m->calls[i].slot);
	}
	free(m);
	return same && (!failalloc_live() || prop_differ(report, "%lu leaked", failalloc_live()));
}

static const struct prop_spec spec = {
	.symbol = "spec",
	.kinds = kinds,
	.n_kinds = ARRAY_SIZE(kinds),
	.seeds = 400,
	.length = 200,
	.generate = generate,
	.setup = model_setup,
	.step = model_step,
	.teardown = model_teardown,
};

static void slots_behave_like_a_list_of_calls(void **state)
{
	prop_run(&spec);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_behave_like_a_list_of_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
