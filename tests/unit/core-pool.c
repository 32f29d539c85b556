// SPDX-License-Identifier: LGPL-2.1-or-later
/* Slices of a pool (spec §14.2). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base.h"
#include "failalloc.h"
#include "pool.h"
#include "prop.h"

#define SIZE 4096

static int setup(void **state)
{
	struct core_pool *pool = malloc(sizeof(*pool));

	if (!pool)
		return -1;
	/* Nothing may count on what was there before. */
	memset(pool, 0xa5, sizeof(*pool));
	if (core_pool_init(pool, SIZE))
		return -1;
	*state = pool;
	return 0;
}

static int teardown(void **state)
{
	core_pool_deinit(*state);
	free(*state);
	return failalloc_live() != 0;
}

static struct core_slice *take(struct core_pool *pool, size_t size)
{
	struct core_slice *slice;

	assert_int_equal(core_pool_alloc(pool, size, false, &slice), 0);
	return slice;
}

static void s14_2_a_size_is_rounded_up_to_8(void **state)
{
	struct core_slice *a = take(*state, 1), *b = take(*state, 9), *c = take(*state, 16);

	assert_int_equal(a->offset, 0);
	assert_int_equal(a->size, 8);
	assert_int_equal(b->offset, 8);
	assert_int_equal(b->size, 16);
	assert_int_equal(c->offset, 24);
	assert_int_equal(c->size, 16);
}

static void s14_2_the_smallest_sufficient_slice_is_split_at_the_front(void **state)
{
	struct core_pool *pool = *state;
	struct core_slice *big = take(pool, 256), *wall = take(pool, 8), *small = take(pool, 64);
	struct core_slice *slice;

	take(pool, 8);
	core_pool_release(pool, big);
	core_pool_release(pool, small);
	slice = take(pool, 48);
	assert_int_equal(slice->offset, wall->offset + 8);
	assert_int_equal(take(pool, 16)->offset, slice->offset + 48);
	assert_int_equal(take(pool, 16)->offset, 0);
}

static void s14_2_of_equal_slices_the_first_is_taken(void **state)
{
	struct core_pool *pool = *state;
	struct core_slice *a = take(pool, 64), *b;

	take(pool, 8);
	b = take(pool, 64);
	take(pool, 8);
	core_pool_release(pool, b);
	core_pool_release(pool, a);
	assert_int_equal(take(pool, 64)->offset, 0);
}

static void s14_2_freeing_merges_with_both_neighbours(void **state)
{
	struct core_pool *pool = *state;
	struct core_slice *a = take(pool, 1024), *b = take(pool, 1024), *c = take(pool, 2048);
	struct core_slice *slice;

	core_pool_release(pool, a);
	core_pool_release(pool, c);
	assert_int_equal(core_pool_alloc(pool, 2049, false, &slice), -EXFULL);
	core_pool_release(pool, b);
	assert_int_equal(take(pool, SIZE)->offset, 0);
}

static void s14_2_fragments_do_not_add_up(void **state)
{
	struct core_pool *pool = *state;
	struct core_slice *a = take(pool, 1024), *slice;

	take(pool, 1024);
	core_pool_release(pool, take(pool, 2048));
	core_pool_release(pool, a);
	assert_int_equal(core_pool_alloc(pool, 2056, false, &slice), -EXFULL);
	assert_int_equal(core_pool_alloc(pool, SIZE_MAX, false, &slice), -EXFULL);
	assert_int_equal(core_pool_alloc(pool, 0, false, &slice), -EINVAL);
}

static void s14_2_a_slice_is_free_when_both_references_are_gone(void **state)
{
	struct core_pool *pool = *state;
	struct core_slice *slice = take(pool, 8);

	core_pool_publish(pool, slice);
	core_pool_release(pool, slice);
	assert_int_equal(take(pool, 8)->offset, 8);
	assert_int_equal(core_pool_free(pool, 0), 0);
	assert_int_equal(take(pool, 8)->offset, 0);
}

static void s14_2_publishing_twice_needs_one_free(void **state)
{
	struct core_pool *pool = *state;
	struct core_slice *slice = take(pool, 8);

	core_pool_publish(pool, slice);
	core_pool_publish(pool, slice);
	assert_int_equal(core_pool_free(pool, 0), 0);
	assert_int_equal(core_pool_free(pool, 0), -ENXIO);
	assert_ptr_equal(core_pool_find(pool, 0), slice);
	core_pool_release(pool, slice);
	assert_null(core_pool_find(pool, 0));
}

static void many_freed_slices_leave_no_memory_behind(void **state)
{
	struct core_slice *slices[64];

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 64; i++)
			slices[i] = take(*state, 8 + i % 3);
		for (int i = 0; i < 64; i++)
			core_pool_release(*state, slices[i * 5 % 64]);
		assert_int_equal(take(*state, SIZE)->offset, 0);
		core_pool_release(*state, core_pool_find(*state, 0));
	}
}

static void s6_7_free_takes_published_slices_only(void **state)
{
	struct core_pool *pool = *state;
	struct core_slice *slice;

	assert_int_equal(core_pool_free(pool, 0), -ENXIO);
	slice = take(pool, 64);
	assert_int_equal(core_pool_free(pool, slice->offset), -ENXIO);
	core_pool_publish(pool, slice);
	assert_int_equal(core_pool_free(pool, slice->offset + 8), -ENXIO);
	assert_int_equal(core_pool_free(pool, SIZE + 1), -ENXIO);
	assert_int_equal(core_pool_free(pool, U64_MAX), -ENXIO);
	assert_int_equal(core_pool_free(pool, slice->offset), 0);
	core_pool_release(pool, slice);
}

static void s6_7_freeing_the_empty_slice_does_nothing(void **state)
{
	assert_int_equal(core_pool_free(*state, SIZE), 0);
	assert_int_equal(core_pool_free(*state, SIZE), 0);
}

static void s14_3_accounted_slices_count_while_the_bus_holds_them(void **state)
{
	struct core_pool *pool = *state;
	struct core_slice *a, *b;

	assert_int_equal(core_pool_alloc(pool, 100, true, &a), 0);
	assert_int_equal(core_pool_alloc(pool, 16, false, &b), 0);
	assert_int_equal(pool->accounted, 104);
	core_pool_publish(pool, a);
	assert_int_equal(pool->accounted, 104);
	core_pool_release(pool, a);
	assert_int_equal(pool->accounted, 0);
	core_pool_release(pool, b);
	assert_int_equal(pool->accounted, 0);
}

static void a_pool_needs_a_size_in_eights(void **state)
{
	struct core_pool pool;

	assert_int_equal(core_pool_init(&pool, 0), -EINVAL);
	core_pool_deinit(&pool);
	assert_int_equal(core_pool_init(&pool, 12), -EINVAL);
	core_pool_deinit(&pool);
	memset(&pool, 0, sizeof(pool));
	core_pool_deinit(&pool);
	core_pool_deinit(NULL);
}

/* A queue in use needs no allocation for its slices. */
static void filling_and_emptying_allocates_nothing(void **state)
{
	struct core_pool *pool = *state;
	unsigned long calls;

	core_pool_release(pool, take(pool, 64));
	calls = failalloc_calls();
	for (int i = 0; i < 100; i++)
		core_pool_release(pool, take(pool, 8 + i));
	assert_int_equal(failalloc_calls(), calls);
}

/* --- against a model: one byte of state for each eight bytes of pool --- */

#define UNITS	   64
#define MAX_SLICES UNITS

enum {
	ALLOC,
	PUBLISH,
	RELEASE,
	FREE
};
static const char *const kinds[] = { "ALLOC", "PUBLISH", "RELEASE", "FREE" };

struct model_slice {
	struct core_slice *slice;
	size_t first, n;
	bool held, published, accounted;
};

struct model {
	struct core_pool pool;
	struct model_slice slices[MAX_SLICES];
	size_t n;
};

static void generate(struct prop_rng *rng, struct prop_op *op)
{
	static const unsigned int weights[] = {
		ALLOC, ALLOC, ALLOC, PUBLISH, RELEASE, RELEASE, FREE
	};

	op->kind = weights[prop_below(rng, ARRAY_SIZE(weights))];
	op->arg[0] = prop_below(rng, op->kind == ALLOC ? 120 : UNITS + 1);
	op->arg[1] = prop_below(rng, 2);
}

static void *model_setup(void)
{
	struct model *m = calloc(1, sizeof(*m));

	if (!m || core_pool_init(&m->pool, UNITS * 8))
		abort();
	return m;
}

static bool model_busy(const struct model *m, size_t unit)
{
	for (size_t i = 0; i < m->n; i++)
		if (unit >= m->slices[i].first && unit < m->slices[i].first + m->slices[i].n)
			return true;
	return false;
}

/* Look at every gap there is. */
static size_t model_best_fit(const struct model *m, size_t want)
{
	size_t best = UNITS, best_n = UNITS + 1, start, n;

	for (start = 0; start < UNITS; start += n ? n : 1) {
		for (n = 0; start + n < UNITS && !model_busy(m, start + n); n++)
			;
		if (n >= want && n < best_n) {
			best = start;
			best_n = n;
		}
	}
	return best;
}

/* The longest run of free units */
static size_t model_room(const struct model *m)
{
	size_t start, n, most = 0;

	for (start = 0; start < UNITS; start += n + 1) {
		for (n = 0; start + n < UNITS && !model_busy(m, start + n); n++)
			;
		if (n > most)
			most = n;
	}
	return most;
}

static void model_drop(struct model *m, size_t i)
{
	if (!m->slices[i].held && !m->slices[i].published)
		m->slices[i] = m->slices[--m->n];
}

static bool step_alloc(struct model *m, size_t size, bool accounted, struct prop_report *report)
{
	size_t n = (size + 7) / 8, at = n ? model_best_fit(m, n) : UNITS;
	size_t room = core_pool_room(&m->pool), most = model_room(m) * 8;
	struct core_slice *slice;
	int r = core_pool_alloc(&m->pool, size, accounted, &slice);
	int want = !n ? -EINVAL : at == UNITS ? -EXFULL : 0;

	if (room != most)
		return prop_differ(report, "room for %zu instead of %zu", room, most);
	if (r != want)
		return prop_differ(report, "alloc %zu: %d instead of %d", size, r, want);
	if (r)
		return true;
	if (slice->offset != at * 8 || slice->size != n * 8)
		return prop_differ(report, "alloc %zu: at %zu instead of %zu", size, slice->offset,
				   at * 8);
	m->slices[m->n++] = (struct model_slice){ slice, at, n, true, false, accounted };
	return true;
}

static bool step_free(struct model *m, size_t unit, struct prop_report *report)
{
	int want = unit == UNITS ? 0 : -ENXIO, r = core_pool_free(&m->pool, unit * 8);

	for (size_t i = 0; i < m->n; i++) {
		if (m->slices[i].first != unit || !m->slices[i].published)
			continue;
		want = 0;
		m->slices[i].published = false;
		model_drop(m, i);
		break;
	}
	return r == want || prop_differ(report, "free %zu: %d instead of %d", unit * 8, r, want);
}

static void step_reference(struct model *m, unsigned int kind, size_t i)
{
	if (!m->n)
		return;
	i %= m->n;
	if (!m->slices[i].held)
		return;
	if (kind == PUBLISH) {
		core_pool_publish(&m->pool, m->slices[i].slice);
		m->slices[i].published = true;
	} else {
		core_pool_release(&m->pool, m->slices[i].slice);
		m->slices[i].held = false;
		model_drop(m, i);
	}
}

/* Invariants 1, 2 and 5. */
static bool model_check(const struct model *m, struct prop_report *report)
{
	const struct core_slice *slice;
	size_t offset = 0, accounted = 0;
	bool was_free = false;

	list_for_each_entry(slice, &m->pool.all, all) {
		if (slice->offset != offset || !slice->size)
			return prop_differ(report, "gap at %zu", offset);
		if (model_busy(m, offset / 8) != slice->busy)
			return prop_differ(report, "slice at %zu: busy %d", offset, slice->busy);
		if (was_free && !slice->busy)
			return prop_differ(report, "two free neighbours at %zu", offset);
		was_free = !slice->busy;
		offset += slice->size;
	}
	for (size_t i = 0; i < m->n; i++)
		if (m->slices[i].held && m->slices[i].accounted)
			accounted += m->slices[i].n * 8;
	if (m->pool.accounted != accounted)
		return prop_differ(report, "accounted %zu instead of %zu", m->pool.accounted,
				   accounted);
	return offset == UNITS * 8 || prop_differ(report, "ends at %zu", offset);
}

static bool model_step(void *state, const struct prop_op *op, struct prop_report *report)
{
	struct model *m = state;

	switch (op->kind) {
	case ALLOC:
		if (!step_alloc(m, op->arg[0], op->arg[1], report))
			return false;
		break;
	case FREE:
		if (!step_free(m, op->arg[0], report))
			return false;
		break;
	default:
		step_reference(m, op->kind, op->arg[0]);
	}
	return model_check(m, report);
}

static bool model_teardown(void *state, struct prop_report *report)
{
	struct model *m = state;

	core_pool_deinit(&m->pool);
	free(m);
	return !failalloc_live() || prop_differ(report, "%lu leaked", failalloc_live());
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

static void slices_behave_like_a_map_of_bytes(void **state)
{
	prop_run(&spec);
}

/* --- allocation failure --- */

static void *fail_setup(void)
{
	struct core_pool *pool = malloc(sizeof(*pool));

	if (!pool || core_pool_init(pool, SIZE))
		abort();
	return pool;
}

static int fail_alloc(void *state)
{
	struct core_slice *slice;
	int r = core_pool_alloc(state, 64, true, &slice);

	return r;
}

static void fail_dump(void *state, FILE *out)
{
	struct core_pool *pool = state;
	struct core_slice *slice;

	fprintf(out, "accounted %zu\n", pool->accounted);
	list_for_each_entry(slice, &pool->all, all)
		fprintf(out, "%zu+%zu %d\n", slice->offset, slice->size, slice->busy);
}

static void fail_teardown(void *state)
{
	core_pool_deinit(state);
	free(state);
}

static void an_allocation_that_fails_changes_nothing(void **state)
{
	static const struct failalloc_scenario scenario = {
		.setup = fail_setup,
		.act = fail_alloc,
		.dump = fail_dump,
		.teardown = fail_teardown,
	};
	struct core_pool pool;

	assert_int_equal(failalloc_each(&scenario), 1);
	failalloc_arm(1);
	assert_int_equal(core_pool_init(&pool, SIZE), -ENOMEM);
	failalloc_arm(0);
	core_pool_deinit(&pool);
	assert_int_equal(failalloc_live(), 0);
}

/* ---- giving memory back ---- */

static void assert_trims(struct core_pool *pool, size_t keep, size_t offset, size_t size)
{
	size_t from, n;

	assert_true(core_pool_trim(pool, keep, &from, &n));
	assert_int_equal(from, offset);
	assert_int_equal(n, size);
	assert_false(core_pool_trim(pool, keep, &from, &n));
}

static void assert_trims_nothing(struct core_pool *pool, size_t keep)
{
	size_t from, n;

	assert_false(core_pool_trim(pool, keep, &from, &n));
}

static void what_a_backlog_leaves_is_given_back_once(void **state)
{
	struct core_pool *pool = *state;
	struct core_slice *a = take(pool, 512), *b = take(pool, 1024), *c = take(pool, 256);

	assert_trims_nothing(pool, 0);
	core_pool_release(pool, a);
	core_pool_release(pool, b);
	/* it lies in front of what is busy */
	assert_trims_nothing(pool, 0);
	core_pool_release(pool, c);
	assert_trims_nothing(pool, 1792);
	assert_trims(pool, 1000, 1000, 792);
	assert_trims(pool, 0, 0, 1000);
	core_pool_release(pool, take(pool, 64));
	assert_trims(pool, 0, 0, 64);
}

static void what_is_kept_lies_behind_the_last_that_is_busy(void **state)
{
	struct core_pool *pool = *state;
	struct core_slice *a = take(pool, 512), *b = take(pool, 1024), *c = take(pool, 256);

	core_pool_release(pool, c);
	core_pool_release(pool, a);
	assert_trims_nothing(pool, 256);
	assert_trims(pool, 128, 1664, 128);
	core_pool_release(pool, b);
	assert_trims(pool, 128, 128, 1536);
}

static void a_full_pool_has_nothing_to_give_back(void **state)
{
	struct core_pool *pool = *state;
	struct core_slice *all = take(pool, SIZE);

	assert_trims_nothing(pool, 0);
	core_pool_release(pool, all);
	assert_trims(pool, 0, 0, SIZE);
}

#define with_pool(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		with_pool(s14_2_a_size_is_rounded_up_to_8),
		with_pool(s14_2_the_smallest_sufficient_slice_is_split_at_the_front),
		with_pool(s14_2_of_equal_slices_the_first_is_taken),
		with_pool(s14_2_freeing_merges_with_both_neighbours),
		with_pool(s14_2_fragments_do_not_add_up),
		with_pool(s14_2_a_slice_is_free_when_both_references_are_gone),
		with_pool(s14_2_publishing_twice_needs_one_free),
		with_pool(many_freed_slices_leave_no_memory_behind),
		with_pool(s6_7_free_takes_published_slices_only),
		with_pool(s6_7_freeing_the_empty_slice_does_nothing),
		with_pool(s14_3_accounted_slices_count_while_the_bus_holds_them),
		with_pool(filling_and_emptying_allocates_nothing),
		with_pool(what_a_backlog_leaves_is_given_back_once),
		with_pool(what_is_kept_lies_behind_the_last_that_is_busy),
		with_pool(a_full_pool_has_nothing_to_give_back),
		cmocka_unit_test(a_pool_needs_a_size_in_eights),
		cmocka_unit_test(slices_behave_like_a_map_of_bytes),
		cmocka_unit_test(an_allocation_that_fails_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
