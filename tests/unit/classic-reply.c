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

#define CALLS	2000
#define BUCKETS (1U << 11) /* that so many calls are kept in */

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
	f->k.hash_key = (struct dbusp_hash_key){ { 0x0123456789abcdef, 0xfedcba9876543210 } };
	f->k.config = &f->config;
	f->config.limits.max_replies_per_connection = CALLS;
	f->caller.kind = PEER_CLASSIC;
	f->caller.classic = &f->k;
	f->caller.conn.id = 7;
	INIT_LIST_HEAD(&f->caller.calls);
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

/* Where a call was kept before there was a key */
static uint32_t bucket_without_key(const struct fixture *f, uint32_t serial)
{
	uint64_t h = (f->caller.conn.id * 0x9e3779b97f4a7c15ULL) ^ (serial * 0xd6e8feb86659fd93ULL);

	return (uint32_t)(h >> 32 ^ h) & (BUCKETS - 1);
}

static void test_nobody_makes_collisions(void **state)
{
	static struct fixture f;
	uint32_t serial = 0;
	unsigned int i;

	set_up(&f);
	for (i = 0; i < CALLS; i++) {
		do
			serial++;
		while (bucket_without_key(&f, serial));
		assert_int_equal(reply_expect(&f.caller, &f.callee.peer, serial), 0);
	}
	core_steps = 0;
	for (i = 0, serial = 0; i < CALLS; i++) {
		do
			serial++;
		while (bucket_without_key(&f, serial));
		assert_true(reply_take(&f.caller, &f.callee.peer, serial));
	}
	assert_true(core_steps < 10 * CALLS);
	replies_free(&f.k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_is_found_once),
		cmocka_unit_test(test_nobody_makes_collisions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
