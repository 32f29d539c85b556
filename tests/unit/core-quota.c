// SPDX-License-Identifier: LGPL-2.1-or-later
/* Who may fill how much of a pool (spec §14.4). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base.h"
#include "failalloc.h"
#include "limits.h"
#include "prop.h"
#include "quota.h"

#define MIB (1024 * 1024)

static struct core_quota quota;
static size_t accounted;

static int teardown(void **state)
{
	core_quota_deinit(&quota);
	accounted = 0;
	return failalloc_live() != 0;
}

static int charge(u32 user, size_t pool, size_t memory, unsigned int fds)
{
	int r = core_quota_charge(&quota, user, pool, accounted, memory, fds);

	if (!r)
		accounted += memory;
	return r;
}

static void s14_4_the_example_of_the_specification(void **state)
{
	assert_int_equal(charge(1, 16 * MIB, 2796208, 0), -ENOBUFS);
	assert_int_equal(charge(1, 16 * MIB, 2 * MIB, 0), 0);
	assert_int_equal(charge(1, 16 * MIB, 2 * MIB, 0), -ENOBUFS);
	assert_int_equal(charge(1, 16 * MIB, 128 * 1024, 0), 0);
}

static void s14_4_one_user_gets_a_third_of_half_the_pool(void **state)
{
	assert_int_equal(charge(1, 16 * MIB, 2796202, 0), 0);
	assert_int_equal(charge(1, 16 * MIB, 1, 0), -ENOBUFS);
}

static void s14_4_another_user_gets_a_third_of_what_is_left(void **state)
{
	assert_int_equal(charge(1, 6000, 1000, 0), 0);
	assert_int_equal(charge(2, 6000, 667, 0), -ENOBUFS);
	assert_int_equal(charge(2, 6000, 666, 0), 0);
}

static void s14_4_the_owners_half_is_left_alone(void **state)
{
	accounted = 3001;
	assert_int_equal(charge(1, 6000, 0, 0), -ENOBUFS);
	accounted = 3000;
	assert_int_equal(charge(1, 6000, 0, 0), 0);
	assert_int_equal(charge(1, 6000, 1, 0), -ENOBUFS);
}

static void s14_4_at_most_256_messages(void **state)
{
	for (int i = 0; i < CORE_CONN_MAX_MSGS; i++)
		assert_int_equal(charge(3, 16 * MIB, 64, 0), 0);
	assert_int_equal(charge(3, 16 * MIB, 64, 0), -ENOBUFS);
	assert_int_equal(charge(0, 16 * MIB, 64, 0), 0);
	core_quota_uncharge(&quota, 3, 64, 0);
	assert_int_equal(charge(3, 16 * MIB, 64, 0), 0);
}

static void s14_4_at_most_16_descriptors(void **state)
{
	assert_int_equal(charge(1, 16 * MIB, 64, 17), -EMFILE);
	assert_int_equal(charge(1, 16 * MIB, 64, 10), 0);
	assert_int_equal(charge(1, 16 * MIB, 64, 7), -EMFILE);
	assert_int_equal(charge(1, 16 * MIB, 64, 6), 0);
	assert_int_equal(charge(1, 16 * MIB, 64, U32_MAX), -EMFILE);
	assert_int_equal(charge(1, 16 * MIB, 64, 0), 0);
	core_quota_uncharge(&quota, 1, 64, 6);
	assert_int_equal(charge(1, 16 * MIB, 64, 6), 0);
}

static void s14_4_memory_comes_before_messages_before_descriptors(void **state)
{
	for (int i = 0; i < CORE_CONN_MAX_MSGS; i++)
		assert_int_equal(charge(1, 16 * MIB, 64, 0), 0);
	assert_int_equal(charge(1, 16 * MIB, 64, 17), -ENOBUFS);
	assert_int_equal(charge(2, 16 * MIB, 8 * MIB, 17), -ENOBUFS);
}

static void s14_4_the_counter_of_bytes_does_not_wrap(void **state)
{
	size_t pool = (size_t)1 << 40, most = 0xfffffff8;

	if (sizeof(size_t) < 8)
		return;
	assert_int_equal(charge(1, pool, most, 0), 0);
	assert_int_equal(charge(1, pool, 8, 0), -ENOBUFS);
	assert_int_equal(charge(1, pool, 7, 0), 0);
	assert_int_equal(core_quota_get(&quota, 1).memory, 0xffffffff);
}

static void a_refused_charge_changes_nothing(void **state)
{
	struct core_charge before, after;

	assert_int_equal(charge(1, 16 * MIB, 64, 16), 0);
	before = core_quota_get(&quota, 1);
	assert_int_equal(charge(1, 16 * MIB, 8 * MIB, 0), -ENOBUFS);
	assert_int_equal(charge(1, 16 * MIB, 64, 1), -EMFILE);
	after = core_quota_get(&quota, 1);
	assert_int_equal(before.memory, after.memory);
	assert_int_equal(before.msgs, after.msgs);
	assert_int_equal(before.fds, after.fds);
}

/* Fresh memory of this test is full of 0xa5 (§17.1 row 23). */
static void s17_1_row_23_new_users_start_at_zero(void **state)
{
	for (u32 user = 0; user < 100; user += 7) {
		assert_int_equal(charge(user, 16 * MIB, 64, 1), 0);
		for (u32 other = user + 1; other < 120; other++) {
			assert_int_equal(core_quota_get(&quota, other).memory, 0);
			assert_int_equal(core_quota_get(&quota, other).msgs, 0);
			assert_int_equal(core_quota_get(&quota, other).fds, 0);
		}
	}
	for (u32 user = 0; user < 100; user += 7)
		assert_int_equal(core_quota_get(&quota, user).msgs, 1);
}

static void a_number_of_no_user_is_out_of_memory(void **state)
{
	assert_int_equal(charge(U32_MAX, 16 * MIB, 64, 0), -ENOMEM);
	assert_int_equal(core_quota_get(&quota, U32_MAX).msgs, 0);
}

/* --- against a model: the list of what is charged --- */

#define USERS 12
#define CHARGES 64

enum { CHARGE, UNCHARGE };
static const char *const kinds[] = { "CHARGE", "UNCHARGE" };

struct model {
	struct core_quota quota;
	size_t pool;
	struct {
		u32 user;
		size_t memory;
		unsigned int fds;
	} charges[CHARGES];
	size_t n;
};

static void generate(struct prop_rng *rng, struct prop_op *op)
{
	op->kind = prop_one_in(rng, 3) ? UNCHARGE : CHARGE;
	op->arg[0] = prop_below(rng, op->kind == CHARGE ? USERS : CHARGES);
	op->arg[1] = prop_below(rng, prop_one_in(rng, 3) ? 30000 : 2000) & ~7ULL;
	op->arg[2] = prop_one_in(rng, 3) ? prop_below(rng, 18) : 0;
}

static void *model_setup(void)
{
	struct model *m = calloc(1, sizeof(*m));

	if (!m)
		abort();
	m->pool = 128 * 1024;
	return m;
}

/* The text of §14.4, step by step. */
static int model_verdict(const struct model *m, u32 user, s64 memory, unsigned int fds)
{
	s64 half = m->pool / 2, acc = 0, mem = 0, msgs = 0, n_fds = 0, share;

	for (size_t i = 0; i < m->n; i++) {
		acc += m->charges[i].memory;
		if (m->charges[i].user != user)
			continue;
		mem += m->charges[i].memory;
		n_fds += m->charges[i].fds;
		msgs++;
	}
	if (half < acc)
		return -ENOBUFS;
	share = (half - acc + mem) / 3;
	if (share < mem || share - mem < memory)
		return -ENOBUFS;
	if (msgs >= 256)
		return -ENOBUFS;
	return n_fds + fds > 16 ? -EMFILE : 0;
}

static bool step_charge(struct model *m, const struct prop_op *op, struct prop_report *report)
{
	int want = model_verdict(m, op->arg[0], op->arg[1], op->arg[2]), r;
	size_t acc = 0;

	if (m->n == CHARGES)
		return true;
	for (size_t i = 0; i < m->n; i++)
		acc += m->charges[i].memory;
	r = core_quota_charge(&m->quota, op->arg[0], m->pool, acc, op->arg[1], op->arg[2]);
	if (r != want)
		return prop_differ(report, "charge: %d instead of %d", r, want);
	if (r)
		return true;
	m->charges[m->n].user = op->arg[0];
	m->charges[m->n].memory = op->arg[1];
	m->charges[m->n].fds = op->arg[2];
	m->n++;
	return true;
}

static bool model_step(void *state, const struct prop_op *op, struct prop_report *report)
{
	struct model *m = state;
	size_t i;

	if (op->kind == CHARGE)
		return step_charge(m, op, report);
	if (!m->n)
		return true;
	i = op->arg[0] % m->n;
	core_quota_uncharge(&m->quota, m->charges[i].user, m->charges[i].memory,
			    m->charges[i].fds);
	m->charges[i] = m->charges[--m->n];
	return true;
}

static bool model_teardown(void *state, struct prop_report *report)
{
	struct model *m = state;

	core_quota_deinit(&m->quota);
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

static void charges_follow_the_text_of_the_rule(void **state)
{
	prop_run(&spec);
}

/* --- allocation failure --- */

static void *fail_setup(void)
{
	if (charge(1, MIB, 64, 1))
		abort();
	return &quota;
}

static int fail_act(void *state)
{
	return charge(50, MIB, 64, 1);
}

static void fail_dump(void *state, FILE *out)
{
	for (u32 user = 0; user < 60; user++) {
		struct core_charge c = core_quota_get(&quota, user);

		fprintf(out, "%u: %u %u %u\n", user, c.memory, c.msgs, c.fds);
	}
}

static void fail_teardown(void *state)
{
	core_quota_deinit(&quota);
	accounted = 0;
}

static void an_allocation_that_fails_changes_nothing(void **state)
{
	static const struct failalloc_scenario scenario = {
		.setup = fail_setup,
		.act = fail_act,
		.dump = fail_dump,
		.teardown = fail_teardown,
	};

	assert_int_equal(failalloc_each(&scenario), 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(s14_4_the_example_of_the_specification, teardown),
		cmocka_unit_test_teardown(s14_4_one_user_gets_a_third_of_half_the_pool, teardown),
		cmocka_unit_test_teardown(s14_4_another_user_gets_a_third_of_what_is_left,
					  teardown),
		cmocka_unit_test_teardown(s14_4_the_owners_half_is_left_alone, teardown),
		cmocka_unit_test_teardown(s14_4_at_most_256_messages, teardown),
		cmocka_unit_test_teardown(s14_4_at_most_16_descriptors, teardown),
		cmocka_unit_test_teardown(s14_4_memory_comes_before_messages_before_descriptors,
					  teardown),
		cmocka_unit_test_teardown(s14_4_the_counter_of_bytes_does_not_wrap, teardown),
		cmocka_unit_test_teardown(a_number_of_no_user_is_out_of_memory, teardown),
		cmocka_unit_test_teardown(a_refused_charge_changes_nothing, teardown),
		cmocka_unit_test_teardown(s17_1_row_23_new_users_start_at_zero, teardown),
		cmocka_unit_test(charges_follow_the_text_of_the_rule),
		cmocka_unit_test(an_allocation_that_fails_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
