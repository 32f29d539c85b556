// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the registries of core/ cost, counted in steps (key comparisons and
 * records visited), never in time: with 10, 1,000 and 100,000 entries an
 * operation may take FIXED + FACTOR * log2(entries) steps and no more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base.h"
#include "core-cost.h"

unsigned long core_steps;

static const size_t sizes[] = { 10, 1000, 100000 };

static unsigned int log2_up(size_t n)
{
	unsigned int log = 0;

	while (((size_t)1 << log) < n)
		log++;
	return log;
}

void cost_check(const char *what, unsigned long fixed, unsigned long factor,
		unsigned long (*measure)(size_t n))
{
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		unsigned long steps = measure(sizes[i]);
		unsigned long allowed = fixed + factor * log2_up(sizes[i]);

		if (!steps)
			fail_msg("%s at %zu entries: nothing was counted", what, sizes[i]);
		if (steps > allowed)
			fail_msg("%s at %zu entries: %lu steps, %lu allowed", what, sizes[i], steps,
				 allowed);
	}
}

void cost_worst(unsigned long *worst, unsigned long before)
{
	if (core_steps - before > *worst)
		*worst = core_steps - before;
}

/* The check itself: what is linear does not pass. */
static unsigned long linear(size_t n)
{
	return n;
}

static unsigned long constant(size_t n)
{
	return 7;
}

static void a_linear_cost_is_beyond_every_bound(void **state)
{
	assert_true(linear(100000) > 100 + 20 * log2_up(100000));
	assert_int_equal(log2_up(100000), 17);
	cost_check("constant", 7, 0, constant);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_linear_cost_is_beyond_every_bound),
		cmocka_unit_test(cost_of_matches),
		cmocka_unit_test(cost_of_connections),
		cmocka_unit_test(cost_of_names),
		cmocka_unit_test(cost_of_policy),
		cmocka_unit_test(cost_of_the_pool),
		cmocka_unit_test(cost_of_the_queue),
		cmocka_unit_test(cost_of_replies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
