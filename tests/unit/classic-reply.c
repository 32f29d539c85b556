// SPDX-License-Identifier: LGPL-2.1-or-later
/* Who waits for what (daemon/classic/reply.c): what a caller who picks its serials can cost. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/classic/classic.h"
#include "daemon/classic/driver.h"
#include "daemon/classic/timer.h"

#define CALLS 2000 /* less than 2^11 */

unsigned long core_steps;

/* Of the front-end: nothing expires here, and nobody is told anything. */
void timeout_set(struct classic *k, struct timeout *t, u64 ms)
{
	fail();
}

void timeout_clear(struct classic *k, struct timeout *t)
{
}

void driver_error_serial(struct cpeer *to, uint32_t serial, const char *name, const char *format,
			 ...)
{
	fail();
}

struct fixture {
	struct classic k;
	struct config config;
	struct cpeer caller, callee;
};

static void set_up(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->k.config = &f->config;
	f->config.limits.max_replies_per_connection = CALLS;
	f->caller.kind = PEER_CLASSIC;
	f->caller.classic = &f->k;
	f->caller.conn.id = 7;
	f->caller.calls = RB_ROOT;
	INIT_LIST_HEAD(&f->callee.owed);
	assert_int_equal(replies_init(&f->k), 0);
}

static void test_each_is_found_once(void **state)
{
	static struct fixture f;
	uint32_t serial;

	set_up(&f);
	for (serial = 1; serial <= CALLS; serial++) {
		assert_int_equal(reply_expect(&f.caller, &f.callee.peer, serial), 0);
		assert_int_equal(reply_expect(&f.caller, &f.callee.peer, serial), -EEXIST);
	}
	assert_int_equal(reply_expect(&f.caller, &f.callee.peer, serial), -EMLINK);
	for (serial = 1; serial <= CALLS; serial++) {
		assert_false(reply_take(&f.caller, &f.caller.peer, serial));
		assert_true(reply_take(&f.caller, &f.callee.peer, serial));
		assert_false(reply_take(&f.caller, &f.callee.peer, serial));
	}
	replies_free(&f.k);
}

/* Steps to make and to take calls with the serials that @pick says. */
static unsigned long steps_with(uint32_t (*pick)(uint32_t i))
{
	static struct fixture f;
	uint32_t i;

	set_up(&f);
	core_steps = 0;
	for (i = 0; i < CALLS; i++)
		assert_int_equal(reply_expect(&f.caller, &f.callee.peer, pick(i)), 0);
	for (i = 0; i < CALLS; i++)
		assert_true(reply_take(&f.caller, &f.callee.peer, pick(i)));
	assert_int_equal(f.caller.n_calls, 0);
	assert_null(f.caller.calls.rb_node);
	replies_free(&f.k);
	return core_steps;
}

static uint32_t upwards(uint32_t i)
{
	return i + 1;
}

static uint32_t downwards(uint32_t i)
{
	return UINT32_MAX - i;
}

static uint32_t inwards(uint32_t i)
{
	return i % 2 ? UINT32_MAX - i : i + 1;
}

static uint32_t with_equal_low_bits(uint32_t i)
{
	return (i + 1) << 16;
}

/* 2 log2(n) is the height of such a tree at most. */
static void test_no_serials_make_it_slow(void **state)
{
	enum {
		HEIGHT = 2 * 11
	};

	assert_true(steps_with(upwards) <= 2 * CALLS * HEIGHT);
	assert_true(steps_with(downwards) <= 2 * CALLS * HEIGHT);
	assert_true(steps_with(inwards) <= 2 * CALLS * HEIGHT);
	assert_true(steps_with(with_equal_low_bits) <= 2 * CALLS * HEIGHT);
}

/* What others wait for does not matter. */
static void test_others_cost_nothing(void **state)
{
	static struct fixture f;
	static struct cpeer other;
	uint32_t serial;

	set_up(&f);
	other.kind = PEER_CLASSIC;
	other.classic = &f.k;
	for (serial = 1; serial <= CALLS; serial++)
		assert_int_equal(reply_expect(&f.caller, &f.callee.peer, serial), 0);
	core_steps = 0;
	assert_int_equal(reply_expect(&other, &f.callee.peer, 1), 0);
	assert_true(reply_take(&other, &f.callee.peer, 1));
	assert_true(core_steps <= 1);
	for (serial = 1; serial <= CALLS; serial++)
		reply_forget(&f.caller, serial);
	replies_free(&f.k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_is_found_once),
		cmocka_unit_test(test_no_serials_make_it_slow),
		cmocka_unit_test(test_others_cost_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
