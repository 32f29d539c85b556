// SPDX-License-Identifier: LGPL-2.1-or-later
/* What clients can write into the log (daemon/log-limit.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "log-limit.h"

#define START 1000000000000ULL
#define LATER (START + LOG_SPAN_NS)

static unsigned int write_lines(struct log_limit *l, uid_t uid, u64 now, unsigned int n)
{
	struct log_left_out forgotten;
	unsigned int written = 0;

	while (n--)
		written += log_limit_take(l, uid, now, &forgotten);
	return written;
}

static void more_than_the_limit_is_left_out(void **state)
{
	struct log_limit l = { 0 };

	assert_int_equal(write_lines(&l, 1000, START, 10 * LOG_LINES), LOG_LINES);
	assert_int_equal(write_lines(&l, 1000, LATER - 1, 1), 0);
}

static void others_have_their_own(void **state)
{
	struct log_limit l = { 0 };

	write_lines(&l, 1000, START, 10 * LOG_LINES);
	assert_int_equal(write_lines(&l, 0, START, LOG_LINES), LOG_LINES);
}

static void what_was_left_out_is_told_when_the_span_is_over(void **state)
{
	struct log_limit l = { 0 };
	struct log_left_out out;

	write_lines(&l, 1000, START, LOG_LINES + 7);
	write_lines(&l, 1001, START, LOG_LINES);
	assert_false(log_limit_told(&l, LATER - 1, &out));
	assert_true(log_limit_told(&l, LATER, &out));
	assert_int_equal(out.uid, 1000);
	assert_int_equal(out.lines, 7);
	assert_false(log_limit_told(&l, LATER, &out));
	assert_int_equal(write_lines(&l, 1000, LATER, 2 * LOG_LINES), LOG_LINES);
}

static void the_oldest_makes_room(void **state)
{
	struct log_limit l = { 0 };
	struct log_left_out forgotten;
	uid_t uid;

	for (uid = 0; uid < LOG_UIDS; uid++)
		write_lines(&l, uid, START + uid, LOG_LINES + 1);
	assert_true(log_limit_take(&l, 5000, START + 100, &forgotten));
	assert_int_equal(forgotten.uid, 0);
	assert_int_equal(forgotten.lines, 1);
	/* The others are still held to their limit. */
	assert_int_equal(write_lines(&l, 1, START + 100, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_than_the_limit_is_left_out),
		cmocka_unit_test(others_have_their_own),
		cmocka_unit_test(what_was_left_out_is_told_when_the_span_is_over),
		cmocka_unit_test(the_oldest_makes_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
