// SPDX-License-Identifier: LGPL-2.1-or-later
/* The two orders of a queue (spec §7.10, §17.1 row 13). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base.h"
#include "prop.h"
#include "queue.h"

static struct core_queue_entry entries[16];
static struct core_queue queue;

static int setup(void **state)
{
	/* Nothing may count on what was there before. */
	memset(&queue, 0xa5, sizeof(queue));
	memset(entries, 0xa5, sizeof(entries));
	core_queue_init(&queue);
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++)
		core_queue_entry_init(&entries[i]);
	return 0;
}

static void push(size_t n, const s64 *priorities)
{
	for (size_t i = 0; i < n; i++)
		core_queue_push(&queue, &entries[i], priorities[i]);
}

static s64 take(s64 threshold)
{
	struct core_queue_entry *entry = core_queue_select(&queue, threshold);

	if (!entry)
		return S64_MAX;
	core_queue_remove(&queue, entry);
	return entry->priority;
}

static void s7_10_without_priority_the_oldest_is_first(void **state)
{
	static const s64 priorities[] = { 5, -5, 0 };

	push(3, priorities);
	for (size_t i = 0; i < 3; i++) {
		assert_ptr_equal(core_queue_first(&queue), &entries[i]);
		core_queue_remove(&queue, &entries[i]);
	}
	assert_null(core_queue_first(&queue));
	assert_int_equal(queue.n, 0);
}

static void s7_10_among_equal_priorities_the_oldest_is_first(void **state)
{
	static const s64 priorities[] = { 1, 0, 0, 0 };

	push(4, priorities);
	assert_ptr_equal(core_queue_select(&queue, 0), &entries[1]);
	core_queue_remove(&queue, &entries[1]);
	assert_ptr_equal(core_queue_select(&queue, 0), &entries[2]);
}

/* The figures of the public self-test. */
static void s15_5_message_prio(void **state)
{
	static const s64 priorities[] = { 25, -600, 10,	  -35, -100, 20,
					  -15, -800, -150, 10, -800, -10 };

	push(ARRAY_SIZE(priorities), priorities);
	assert_int_equal(take(-200), -800);
	assert_int_equal(take(-100), -800);
	assert_int_equal(take(-400), -600);
	assert_int_equal(take(-400), S64_MAX);
	assert_int_equal(take(10), -150);
	assert_int_equal(take(10), -100);
	assert_ptr_equal(core_queue_first(&queue), &entries[0]);
}

static void s7_10_the_threshold_is_included(void **state)
{
	static const s64 priorities[] = { S64_MIN, S64_MAX };

	push(2, priorities);
	assert_ptr_equal(core_queue_select(&queue, S64_MIN), &entries[0]);
	core_queue_remove(&queue, &entries[0]);
	assert_null(core_queue_select(&queue, S64_MAX - 1));
	assert_ptr_equal(core_queue_select(&queue, S64_MAX), &entries[1]);
}

static void s17_1_row_13_removing_from_the_middle_keeps_both_orders(void **state)
{
	static const s64 priorities[] = { 7, 7, 7, 7, 3 };

	push(5, priorities);
	core_queue_remove(&queue, &entries[1]);
	assert_false(core_queue_entry_linked(&entries[1]));
	assert_int_equal(take(7), 3);
	assert_ptr_equal(core_queue_select(&queue, 7), &entries[0]);
	core_queue_remove(&queue, &entries[0]);
	assert_ptr_equal(core_queue_select(&queue, 7), &entries[2]);
	assert_ptr_equal(core_queue_next(&queue, &entries[2]), &entries[3]);
	assert_null(core_queue_next(&queue, &entries[3]));
}

/* --- against a model: an array in order of arrival --- */

#define SLOTS 32

enum { PUSH, REMOVE, RECV, RECV_PRIORITY };
static const char *const kinds[] = { "PUSH", "REMOVE", "RECV", "RECV_PRIORITY" };

struct model {
	struct core_queue queue;
	struct core_queue_entry entries[SLOTS];
	size_t order[SLOTS];
	size_t n;
};

static void generate(struct prop_rng *rng, struct prop_op *op)
{
	static const unsigned int weights[] = { PUSH, PUSH, PUSH, REMOVE, RECV, RECV_PRIORITY };

	op->kind = weights[prop_below(rng, ARRAY_SIZE(weights))];
	op->arg[0] = prop_below(rng, SLOTS);
	op->arg[1] = prop_below(rng, 5);
}

static void *model_setup(void)
{
	struct model *m = calloc(1, sizeof(*m));

	if (!m)
		abort();
	core_queue_init(&m->queue);
	for (size_t i = 0; i < SLOTS; i++)
		core_queue_entry_init(&m->entries[i]);
	return m;
}

static void model_remove(struct model *m, size_t at)
{
	core_queue_remove(&m->queue, &m->entries[m->order[at]]);
	memmove(&m->order[at], &m->order[at + 1], (--m->n - at) * sizeof(m->order[0]));
}

static size_t model_select(const struct model *m, bool by_priority, s64 threshold)
{
	size_t best = 0;

	for (size_t i = 1; by_priority && i < m->n; i++)
		if (m->entries[m->order[i]].priority < m->entries[m->order[best]].priority)
			best = i;
	if (!m->n || (by_priority && m->entries[m->order[best]].priority > threshold))
		return SLOTS;
	return best;
}

static bool model_recv(struct model *m, bool by_priority, s64 threshold,
		       struct prop_report *report)
{
	size_t at = model_select(m, by_priority, threshold);
	struct core_queue_entry *want = at == SLOTS ? NULL : &m->entries[m->order[at]];
	struct core_queue_entry *got = by_priority ? core_queue_select(&m->queue, threshold) :
						     core_queue_first(&m->queue);

	if (got != want)
		return prop_differ(report, "selected %td instead of %td",
				   got ? got - m->entries : -1, want ? want - m->entries : -1);
	if (got)
		model_remove(m, at);
	return true;
}

static bool model_step(void *state, const struct prop_op *op, struct prop_report *report)
{
	struct core_queue_entry *entry;
	struct model *m = state;
	size_t i = 0;

	if (op->kind == PUSH && !core_queue_entry_linked(&m->entries[op->arg[0]])) {
		core_queue_push(&m->queue, &m->entries[op->arg[0]], (s64)op->arg[1] - 2);
		m->order[m->n++] = op->arg[0];
	} else if (op->kind == REMOVE && m->n) {
		model_remove(m, op->arg[0] % m->n);
	} else if (op->kind == RECV || op->kind == RECV_PRIORITY) {
		if (!model_recv(m, op->kind == RECV_PRIORITY, (s64)op->arg[1] - 2, report))
			return false;
	}
	for (entry = core_queue_first(&m->queue); entry; entry = core_queue_next(&m->queue, entry))
		if (i == m->n || entry != &m->entries[m->order[i++]])
			return prop_differ(report, "order differs at %zu", i);
	return (i == m->n && m->queue.n == m->n) || prop_differ(report, "%u queued", m->queue.n);
}

static bool model_teardown(void *state, struct prop_report *report)
{
	free(state);
	return true;
}

static const struct prop_spec spec = {
	.symbol = "spec",
	.kinds = kinds,
	.n_kinds = ARRAY_SIZE(kinds),
	.seeds = 200,
	.length = 200,
	.generate = generate,
	.setup = model_setup,
	.step = model_step,
	.teardown = model_teardown,
};

static void both_orders_are_those_of_a_plain_array(void **state)
{
	prop_run(&spec);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(s7_10_without_priority_the_oldest_is_first, setup),
		cmocka_unit_test_setup(s7_10_among_equal_priorities_the_oldest_is_first, setup),
		cmocka_unit_test_setup(s15_5_message_prio, setup),
		cmocka_unit_test_setup(s7_10_the_threshold_is_included, setup),
		cmocka_unit_test_setup(s17_1_row_13_removing_from_the_middle_keeps_both_orders,
				       setup),
		cmocka_unit_test(both_orders_are_those_of_a_plain_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
