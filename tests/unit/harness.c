// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tools of the other tests find what they are there to find. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base.h"
#include "failalloc.h"
#include "prop.h"

enum { ADD, NOTHING, EXPLODE };

static const char *const kinds[] = { "ADD", "NOTHING", "EXPLODE" };

static void generate(struct prop_rng *rng, struct prop_op *op)
{
	op->kind = prop_below(rng, 2);
	op->arg[0] = prop_below(rng, 100);
}

static void *setup(void)
{
	return calloc(1, sizeof(u64));
}

/* Wrong once two additions of at least 10 have been seen. */
static bool step(void *state, const struct prop_op *op, struct prop_report *report)
{
	u64 *large = state;

	if (op->kind == EXPLODE)
		abort();
	if (op->kind == ADD && op->arg[0] >= 10)
		++*large;
	return *large < 2 || prop_differ(report, "two large numbers");
}

static bool teardown(void *state, struct prop_report *report)
{
	free(state);
	return true;
}

static const struct prop_spec spec = {
	.symbol = "spec",
	.kinds = kinds,
	.n_kinds = ARRAY_SIZE(kinds),
	.seeds = 1,
	.length = 100,
	.generate = generate,
	.setup = setup,
	.step = step,
	.teardown = teardown,
};

static void a_failing_sequence_shrinks_to_what_is_needed(void **state)
{
	struct prop_op ops[64] = { { 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		ops[i] = (struct prop_op){ i % 3 ? NOTHING : ADD, { i } };
	assert_int_equal(prop_shrink(&spec, ops, ARRAY_SIZE(ops)), 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(ops[i].kind, ADD);
		assert_int_equal(ops[i].arg[0], 10);
	}
}

static void a_crash_is_a_failing_sequence(void **state)
{
	struct prop_op ops[] = { { NOTHING }, { EXPLODE }, { NOTHING } };

	assert_int_equal(prop_shrink(&spec, ops, ARRAY_SIZE(ops)), 1);
	assert_int_equal(ops[0].kind, EXPLODE);
}

static void a_sequence_that_holds_does_not_shrink(void **state)
{
	struct prop_op ops[] = { { NOTHING }, { ADD, { 50 } }, { ADD, { 9 } } };

	assert_int_equal(prop_shrink(&spec, ops, ARRAY_SIZE(ops)), 0);
	prop_replay(&spec, ops, ARRAY_SIZE(ops));
}

static void random_numbers_depend_on_the_seed_alone(void **state)
{
	struct prop_rng a = { 7 }, b = { 7 }, c = { 8 };
	u64 first = prop_random(&a);

	assert_int_equal(first, prop_random(&b));
	assert_int_not_equal(first, prop_random(&c));
	assert_int_not_equal(first, prop_random(&a));
}

static void the_armed_allocation_fails_once(void **state)
{
	unsigned long live = failalloc_live();
	void *p;

	failalloc_arm(2);
	p = kmalloc(8, GFP_KERNEL);
	assert_non_null(p);
	assert_false(failalloc_hit());
	assert_null(kmalloc(8, GFP_KERNEL));
	assert_true(failalloc_hit());
	assert_int_equal(failalloc_live(), live + 1);
	kfree(p);
	p = kmalloc(8, GFP_KERNEL);
	assert_non_null(p);
	kfree(p);
	kfree(NULL);
	assert_int_equal(failalloc_live(), live);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failing_sequence_shrinks_to_what_is_needed),
		cmocka_unit_test(a_crash_is_a_failing_sequence),
		cmocka_unit_test(a_sequence_that_holds_does_not_shrink),
		cmocka_unit_test(random_numbers_depend_on_the_seed_alone),
		cmocka_unit_test(the_armed_allocation_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
