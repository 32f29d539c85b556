// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reply slots (spec §7.7, §7.8, §1.8, §10.6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base.h"
#include "failalloc.h"
#include "limits.h"
#include "reply.h"

#define NEVER U64_MAX

static struct core_deadlines deadlines;
static struct core_requester r, r2;
static struct core_replier p, p2;
static char answer[1];

static int setup(void **state)
{
	/* Nothing may count on what was there before. */
	memset(&r, 0xa5, sizeof(r));
	memset(&r2, 0xa5, sizeof(r2));
	memset(&p, 0xa5, sizeof(p));
	memset(&p2, 0xa5, sizeof(p2));
	core_requester_init(&r, &deadlines);
	core_requester_init(&r2, &deadlines);
	core_replier_init(&p);
	core_replier_init(&p2);
	return 0;
}

static void drain(struct core_requester *requester)
{
	struct core_reply *slot;
	void *a;

	while ((slot = core_requester_first(requester)) != NULL)
		core_reply_orphan(slot, &a);
}

static int teardown(void **state)
{
	drain(&r);
	drain(&r2);
	return failalloc_live() || core_replier_first(&p) || core_replier_first(&p2) ||
	       core_deadlines_next(&deadlines) != NEVER;
}

static struct core_reply *open_slot(u64 cookie, u64 name_id, u64 deadline, bool sync)
{
	const struct core_reply_args args = { cookie, name_id, deadline, sync };
	struct core_reply *slot;

	assert_int_equal(core_reply_open(&r, &p, &args, &slot), 0);
	return slot;
}

static void s7_7_at_most_128_slots(void **state)
{
	const struct core_reply_args args = { 0, 0, NEVER, false };
	struct core_reply *slot;

	for (u64 i = 0; i < CORE_CONN_MAX_REQUESTS_PENDING; i++)
		open_slot(i, 0, NEVER, i % 2);
	assert_int_equal(core_reply_open(&r, &p2, &args, &slot), -EMLINK);
	assert_int_equal(core_reply_open(&r2, &p, &args, &slot), 0);
	assert_int_equal(core_reply_kill(core_reply_find(&r, &p, 0), -EPIPE), CORE_REPLY_DEAD);
	assert_int_equal(core_reply_open(&r, &p2, &args, &slot), 0);
}

static void s7_7_a_slot_counts_until_closed_and_read(void **state)
{
	struct core_reply *unread = open_slot(1, 0, 100, false), *read = open_slot(2, 0, 50, false);
	void *a;

	core_reply_request_queued(unread);
	core_reply_request_queued(read);
	assert_ptr_equal(core_deadlines_expired(&deadlines, 100), read);
	core_reply_request_left(read);
	assert_int_equal(r.n, 2);
	assert_int_equal(core_reply_expire(read, &a), CORE_REPLY_TIMEOUT);
	assert_int_equal(r.n, 1);
	assert_int_equal(core_reply_expire(unread, &a), CORE_REPLY_TIMEOUT);
	assert_int_equal(r.n, 1);
	core_reply_request_left(unread);
	assert_int_equal(r.n, 0);
}

static void s7_7_the_slot_opened_last_is_found(void **state)
{
	struct core_reply *a = open_slot(7, 0, NEVER, false), *b = open_slot(7, 0, NEVER, false);
	const struct core_reply_args args = { 7, 0, NEVER, false };
	struct core_reply *c;

	assert_int_equal(core_reply_open(&r, &p2, &args, &c), 0);
	open_slot(8, 0, NEVER, false);
	assert_ptr_equal(core_reply_find(&r, &p, 7), b);
	assert_ptr_equal(core_reply_find(&r, &p2, 7), c);
	assert_false(core_reply_take(b));
	assert_ptr_equal(core_reply_find(&r, &p, 7), a);
	assert_false(core_reply_take(a));
	assert_null(core_reply_find(&r, &p, 7));
	assert_null(core_reply_find(&r, &p, 6));
	assert_null(core_reply_find(&r2, &p, 8));
}

static void s7_7_a_reply_closes_the_slot(void **state)
{
	struct core_reply *slot = open_slot(1, 0, 10, false);
	void *a;

	core_reply_request_queued(slot);
	assert_false(core_reply_take(slot));
	assert_null(core_reply_find(&r, &p, 1));
	assert_int_equal(core_deadlines_next(&deadlines), NEVER);
	assert_null(core_replier_first(&p));
	assert_int_equal(core_reply_kill(slot, -EPIPE), CORE_REPLY_NOTHING);
	core_reply_request_left(slot);
	core_reply_close(NULL, &a);
	assert_null(a);
}

static void s7_7_deadlines_pass_in_order(void **state)
{
	struct core_reply *late = open_slot(1, 0, 300, false), *soon = open_slot(2, 0, 100, false);
	void *a;

	open_slot(3, 0, NEVER, false);
	assert_int_equal(core_deadlines_next(&deadlines), 100);
	assert_null(core_deadlines_expired(&deadlines, 99));
	assert_ptr_equal(core_deadlines_expired(&deadlines, 100), soon);
	assert_int_equal(core_reply_expire(soon, &a), CORE_REPLY_TIMEOUT);
	assert_null(core_deadlines_expired(&deadlines, 299));
	assert_ptr_equal(core_deadlines_expired(&deadlines, NEVER - 1), late);
	assert_int_equal(core_reply_expire(late, &a), CORE_REPLY_TIMEOUT);
	assert_null(core_deadlines_expired(&deadlines, NEVER));
	assert_int_equal(core_deadlines_next(&deadlines), NEVER);
}

static void s7_7_dropping_the_request_reports_it_dead(void **state)
{
	struct core_reply *async = open_slot(1, 0, NEVER, false);
	struct core_reply *sync = open_slot(2, 0, NEVER, true);
	void *a;

	core_reply_request_queued(async);
	assert_int_equal(core_reply_kill(async, -EPIPE), CORE_REPLY_DEAD);
	core_reply_request_left(async);
	assert_int_equal(core_reply_kill(sync, -EPIPE), CORE_REPLY_WAKE);
	assert_int_equal(core_reply_kill(sync, -EPIPE), CORE_REPLY_NOTHING);
	assert_true(core_reply_settled(sync));
	assert_int_equal(core_reply_collect(sync, &a), -EPIPE);
	assert_null(a);
}

/* §17.1 row 12: the request was still queued, and has timed out, when P dies. */
static void s17_1_row_12_one_outcome_per_call(void **state)
{
	struct core_reply *queued = open_slot(1, 0, 10, false), *timed = open_slot(2, 0, 5, false);
	void *a;

	core_reply_request_queued(queued);
	core_reply_request_queued(timed);
	assert_int_equal(core_reply_expire(timed, &a), CORE_REPLY_TIMEOUT);
	/* step 7: discard what is queued */
	assert_int_equal(core_reply_kill(queued, -EPIPE), CORE_REPLY_DEAD);
	core_reply_request_left(queued);
	assert_int_equal(core_reply_kill(timed, -EPIPE), CORE_REPLY_NOTHING);
	core_reply_request_left(timed);
	/* step 9: nobody waits any more */
	assert_null(core_replier_first(&p));
}

static void s1_8_a_dying_replier_fails_all_it_owes(void **state)
{
	struct core_reply *a = open_slot(1, 0, NEVER, false), *b = open_slot(2, 5, NEVER, true);
	struct core_reply *c = open_slot(3, 0, 10, false);
	void *got;

	assert_ptr_equal(core_replier_first(&p), a);
	assert_int_equal(core_reply_kill(a, -EPIPE), CORE_REPLY_DEAD);
	assert_ptr_equal(core_replier_first(&p), b);
	assert_int_equal(core_reply_kill(b, -EPIPE), CORE_REPLY_WAKE);
	assert_ptr_equal(core_replier_first(&p), c);
	assert_int_equal(core_reply_kill(c, -EPIPE), CORE_REPLY_DEAD);
	assert_null(core_replier_first(&p));
	assert_int_equal(core_reply_collect(b, &got), -EPIPE);
}

static void s1_8_a_dying_requester_is_told_nothing(void **state)
{
	struct core_reply *read = open_slot(1, 3, 10, false), *unread = open_slot(2, 3, 10, false);
	void *a;

	core_reply_request_queued(unread);
	assert_ptr_equal(core_requester_first(&r), read);
	core_reply_orphan(read, &a);
	assert_ptr_equal(core_requester_first(&r), unread);
	core_reply_orphan(unread, &a);
	assert_null(core_requester_first(&r));
	assert_null(core_replier_first(&p));
	assert_null(unread->requester);
	assert_int_equal(core_reply_kill(unread, -EPIPE), CORE_REPLY_NOTHING);
	core_reply_request_left(unread);
}

static void s7_8_the_answer_goes_to_the_caller(void **state)
{
	struct core_reply *slot = open_slot(4, 0, 10, true);
	void *a;

	assert_int_equal(core_deadlines_next(&deadlines), NEVER);
	assert_true(core_reply_take(core_reply_find(&r, &p, 4)));
	assert_null(core_reply_find(&r, &p, 4));
	assert_false(core_reply_settled(slot));
	assert_int_equal(core_reply_settle(slot, 0, answer), 0);
	assert_true(core_reply_settled(slot));
	assert_int_equal(core_reply_collect(slot, &a), 0);
	assert_ptr_equal(a, answer);
	assert_int_equal(r.n, 0);
}

static void s7_8_an_error_of_queueing_goes_to_the_caller(void **state)
{
	struct core_reply *slot = open_slot(4, 0, 10, true);
	void *a = answer;

	assert_true(core_reply_take(slot));
	assert_int_equal(core_reply_settle(slot, -EREMOTEIO, NULL), 0);
	assert_int_equal(core_reply_collect(slot, &a), -EREMOTEIO);
	assert_null(a);
}

static void s7_8_a_caller_that_gave_up_cannot_be_answered(void **state)
{
	struct core_reply *slot = open_slot(4, 0, 10, true), *raced = open_slot(5, 0, 10, true);
	void *a;

	core_reply_close(slot, &a);
	assert_null(core_reply_find(&r, &p, 4));
	assert_true(core_reply_take(raced));
	core_reply_close(raced, &a);
	assert_null(a);
	assert_int_equal(core_reply_settle(raced, 0, answer), -ECONNRESET);
	assert_int_equal(r.n, 0);
}

static void s7_8_a_requester_that_died_cannot_be_answered(void **state)
{
	struct core_reply *slot = open_slot(4, 0, 10, true);
	void *a;

	assert_true(core_reply_take(slot));
	core_reply_orphan(slot, &a);
	assert_int_equal(core_reply_settle(slot, 0, answer), -ECONNRESET);
}

static void s7_8_a_restarted_call_finds_its_slot(void **state)
{
	struct core_reply *slot = open_slot(4, 0, 10, true);

	assert_null(core_reply_resume(&r, 4));
	core_reply_interrupt(slot);
	assert_int_equal(core_deadlines_next(&deadlines), 10);
	assert_null(core_reply_resume(&r, 5));
	assert_ptr_equal(core_reply_resume(&r, 4), slot);
	assert_int_equal(core_deadlines_next(&deadlines), NEVER);
	assert_null(core_reply_resume(&r, 4));
	assert_ptr_equal(core_reply_find(&r, &p, 4), slot);
}

/* The answer came between signal and restart. */
static void s17_1_row_6_an_interrupted_call_keeps_its_answer(void **state)
{
	struct core_reply *slot = open_slot(4, 0, 10, true);
	void *a;

	core_reply_request_queued(slot);
	core_reply_interrupt(slot);
	core_reply_request_left(slot);
	assert_true(core_reply_take(core_reply_find(&r, &p, 4)));
	assert_int_equal(core_reply_settle(slot, 0, answer), 0);
	assert_null(core_reply_find(&r, &p, 4));
	assert_ptr_equal(core_reply_resume(&r, 4), slot);
	assert_true(core_reply_settled(slot));
	assert_int_equal(core_reply_collect(slot, &a), 0);
	assert_ptr_equal(a, answer);
	assert_null(core_reply_resume(&r, 4));
}

static void s17_1_row_6_an_answer_nobody_collects_is_reaped(void **state)
{
	struct core_reply *slot = open_slot(4, 0, 10, true);
	void *a;

	core_reply_interrupt(slot);
	assert_true(core_reply_take(slot));
	assert_int_equal(core_reply_settle(slot, 0, answer), 0);
	assert_ptr_equal(core_deadlines_expired(&deadlines, 10), slot);
	assert_int_equal(core_reply_expire(slot, &a), CORE_REPLY_NOTHING);
	assert_ptr_equal(a, answer);
	assert_int_equal(r.n, 0);
}

static void s7_8_an_interrupted_call_dies_silently(void **state)
{
	struct core_reply *slot = open_slot(4, 0, 10, true);
	void *a;

	core_reply_interrupt(slot);
	assert_int_equal(core_reply_kill(slot, -EPIPE), CORE_REPLY_NOTHING);
	assert_ptr_equal(core_reply_resume(&r, 4), slot);
	assert_int_equal(core_reply_collect(slot, &a), -EPIPE);
	slot = open_slot(5, 0, 20, true);
	core_reply_interrupt(slot);
	assert_int_equal(core_reply_expire(core_deadlines_expired(&deadlines, 20), &a),
			 CORE_REPLY_NOTHING);
}

static void s17_1_row_7_an_infinite_deadline_never_passes(void **state)
{
	struct core_reply *slot = open_slot(4, 0, NEVER, true);

	core_reply_interrupt(slot);
	assert_int_equal(core_deadlines_next(&deadlines), NEVER);
	assert_null(core_deadlines_expired(&deadlines, NEVER));
	assert_ptr_equal(core_reply_resume(&r, 4), slot);
}

static void s10_6_the_new_owner_owes_the_answer(void **state)
{
	struct core_reply *by_name = open_slot(1, 9, NEVER, false);
	struct core_reply *sync = open_slot(2, 9, NEVER, true);
	struct core_reply *by_id = open_slot(3, 0, NEVER, false);
	struct core_reply *other = open_slot(4, 8, NEVER, false);

	assert_int_equal(core_reply_retarget(&p, &p2, 9), 2);
	assert_ptr_equal(core_reply_find(&r, &p2, 1), by_name);
	assert_ptr_equal(core_reply_find(&r, &p2, 2), sync);
	assert_null(core_reply_find(&r, &p, 1));
	assert_ptr_equal(core_reply_find(&r, &p, 3), by_id);
	assert_ptr_equal(core_reply_find(&r, &p, 4), other);
	assert_int_equal(core_reply_retarget(&p2, &p, 9), 2);
	assert_int_equal(core_reply_retarget(&p, &p, 9), 0);
	assert_ptr_equal(core_reply_find(&r, &p, 1), by_name);
}

/* Defect 14: r and p2 are one connection, which takes over its own call. */
static void s17_1_row_14_the_new_owners_own_slots_move_too(void **state)
{
	struct core_reply *slot = open_slot(1, 9, NEVER, false);

	assert_int_equal(core_reply_retarget(&p, &p2, 9), 1);
	assert_ptr_equal(core_reply_find(&r, &p2, 1), slot);
	assert_ptr_equal(core_replier_first(&p2), slot);
}

static void s7_7_a_call_that_was_not_queued_leaves_nothing(void **state)
{
	struct core_reply *slot = open_slot(1, 9, 10, false);
	void *a;

	core_reply_close(slot, &a);
	assert_null(a);
	assert_int_equal(r.n, 0);
	assert_null(core_replier_first(&p));
	assert_int_equal(core_deadlines_next(&deadlines), NEVER);
}

static void no_slot_is_as_good_as_a_closed_one(void **state)
{
	void *a = &r;

	assert_int_equal(core_reply_kill(NULL, -EPIPE), CORE_REPLY_NOTHING);
	core_reply_request_left(NULL);
	core_reply_close(NULL, &a);
	assert_null(a);
}

static void *fail_setup(void)
{
	setup(NULL);
	return &r;
}

static int fail_act(void *state)
{
	const struct core_reply_args args = { 1, 2, 3, false };
	struct core_reply *slot;

	return core_reply_open(&r, &p, &args, &slot);
}

static void fail_dump(void *state, FILE *out)
{
	fprintf(out, "%u %d %llu\n", r.n, !!core_replier_first(&p),
		core_deadlines_next(&deadlines));
}

static void fail_teardown(void *state)
{
	teardown(NULL);
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

#define with_slots(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		with_slots(s7_7_at_most_128_slots),
		with_slots(s7_7_a_slot_counts_until_closed_and_read),
		with_slots(s7_7_the_slot_opened_last_is_found),
		with_slots(s7_7_a_reply_closes_the_slot),
		with_slots(s7_7_deadlines_pass_in_order),
		with_slots(s7_7_dropping_the_request_reports_it_dead),
		with_slots(s17_1_row_12_one_outcome_per_call),
		with_slots(s1_8_a_dying_replier_fails_all_it_owes),
		with_slots(s1_8_a_dying_requester_is_told_nothing),
		with_slots(s7_8_the_answer_goes_to_the_caller),
		with_slots(s7_8_an_error_of_queueing_goes_to_the_caller),
		with_slots(s7_8_a_caller_that_gave_up_cannot_be_answered),
		with_slots(s7_8_a_requester_that_died_cannot_be_answered),
		with_slots(s7_8_a_restarted_call_finds_its_slot),
		with_slots(s17_1_row_6_an_interrupted_call_keeps_its_answer),
		with_slots(s17_1_row_6_an_answer_nobody_collects_is_reaped),
		with_slots(s7_8_an_interrupted_call_dies_silently),
		with_slots(s17_1_row_7_an_infinite_deadline_never_passes),
		with_slots(s10_6_the_new_owner_owes_the_answer),
		with_slots(s17_1_row_14_the_new_owners_own_slots_move_too),
		with_slots(s7_7_a_call_that_was_not_queued_leaves_nothing),
		with_slots(no_slot_is_as_good_as_a_closed_one),
		cmocka_unit_test(an_allocation_that_fails_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
