// SPDX-License-Identifier: LGPL-2.1-or-later
/* Each row of the tables in spec §10.3, with the result flags exactly: names are acquired. */
#include "core-names-fixture.h"

static void acquire_of_a_free_name_makes_primary(void **state)
{
	acquire(A, 0, PRIMARY | ACQUIRED);
	changed(KDBUS_ITEM_NAME_ADD, -1, 0, A, PRIMARY);
	nothing_moves();
	claim(A, PRIMARY);
	owner_is(A);
}

/* §10.3 row 1: the stored flags are reported, REPLACE_EXISTING is not stored */
static void acquire_reports_the_stored_flags(void **state)
{
	acquire(A, REPLACE | ALLOW | QUEUE, PRIMARY | ACQUIRED | ALLOW | QUEUE);
	changed(KDBUS_ITEM_NAME_ADD, -1, 0, A, PRIMARY | ALLOW | QUEUE);
	claim(A, PRIMARY | ALLOW | QUEUE);
}

/* §10.3 row 2 */
static void acquire_takes_the_name_from_its_activator_without_any_flag(void **state)
{
	attach(A, 0);
	acquire(B, 0, PRIMARY | ACQUIRED);
	changed(KDBUS_ITEM_NAME_CHANGE, A, ACTIVATOR | PRIMARY, B, PRIMARY);
	messages_move(A, B);
	claim(A, ACTIVATOR | IN_QUEUE);
	claim(B, PRIMARY);
	owner_is(B);
	queue_is("B");
}

/* §10.3 row 3 */
static void acquire_by_the_owner_updates_its_flags(void **state)
{
	acquire(A, ALLOW, PRIMARY | ACQUIRED | ALLOW);
	acquire(A, QUEUE, PRIMARY | QUEUE);
	nothing_changed();
	claim(A, PRIMARY | QUEUE);
	acquire(A, 0, PRIMARY);
	nothing_changed();
	claim(A, PRIMARY);
}

/* §10.3 row 3 precedes row 4 */
static void the_owner_does_not_replace_itself(void **state)
{
	acquire(A, ALLOW, PRIMARY | ACQUIRED | ALLOW);
	acquire(A, REPLACE | ALLOW, PRIMARY | ALLOW);
	nothing_changed();
	queue_is("A");
}

/* §10.3 row 4 */
static void a_replaced_owner_loses_its_record(void **state)
{
	acquire(A, ALLOW, PRIMARY | ACQUIRED | ALLOW);
	acquire(B, REPLACE, PRIMARY | ACQUIRED);
	changed(KDBUS_ITEM_NAME_CHANGE, A, PRIMARY | ALLOW, B, PRIMARY);
	nothing_moves();
	claim(A, 0);
	claim(B, PRIMARY);
	assert_int_equal(holders[A].count, 0);
}

/* §10.3 row 4 */
static void a_replaced_owner_that_queues_becomes_second(void **state)
{
	acquire(A, ALLOW | QUEUE, PRIMARY | ACQUIRED | ALLOW | QUEUE);
	acquire(C, QUEUE, IN_QUEUE | ACQUIRED | QUEUE);
	acquire(B, REPLACE, PRIMARY | ACQUIRED);
	changed(KDBUS_ITEM_NAME_CHANGE, A, PRIMARY | ALLOW | QUEUE, B, PRIMARY);
	nothing_moves();
	claim(A, IN_QUEUE | ALLOW | QUEUE);
	queue_is("BAC");
}

/* §10.3 row 4 */
static void replacing_jumps_the_queue_from_within(void **state)
{
	acquire(A, ALLOW | QUEUE, PRIMARY | ACQUIRED | ALLOW | QUEUE);
	acquire(B, QUEUE, IN_QUEUE | ACQUIRED | QUEUE);
	acquire(C, QUEUE, IN_QUEUE | ACQUIRED | QUEUE);
	acquire(C, REPLACE | ALLOW, PRIMARY | ACQUIRED | ALLOW);
	changed(KDBUS_ITEM_NAME_CHANGE, A, PRIMARY | ALLOW | QUEUE, C, PRIMARY | ALLOW);
	queue_is("CAB");
	claim(C, PRIMARY | ALLOW);
}

/* §10.3 row 4 precedes row 5 */
static void replacing_comes_before_queueing(void **state)
{
	acquire(A, ALLOW, PRIMARY | ACQUIRED | ALLOW);
	acquire(B, REPLACE | QUEUE, PRIMARY | ACQUIRED | QUEUE);
	queue_is("B");
}

/* §10.3 row 4: an idle activator of the name has no part in it */
static void replacing_leaves_the_activator_alone(void **state)
{
	attach(D, 0);
	acquire(A, ALLOW, PRIMARY | ACQUIRED | ALLOW);
	acquire(B, REPLACE, PRIMARY | ACQUIRED);
	changed(KDBUS_ITEM_NAME_CHANGE, A, PRIMARY | ALLOW, B, PRIMARY);
	nothing_moves();
	claim(D, ACTIVATOR | IN_QUEUE);
}

/* §10.3 row 5 */
static void queueing_appends_at_the_tail(void **state)
{
	acquire(A, 0, PRIMARY | ACQUIRED);
	acquire(B, QUEUE, IN_QUEUE | ACQUIRED | QUEUE);
	nothing_changed();
	acquire(C, QUEUE | ALLOW, IN_QUEUE | ACQUIRED | QUEUE | ALLOW);
	nothing_changed();
	claim(B, IN_QUEUE | QUEUE);
	queue_is("ABC");
	owner_is(A);
}

/* §10.3 row 5: both sides must agree for row 4 to apply */
static void replacing_an_owner_that_does_not_allow_it_queues(void **state)
{
	acquire(A, QUEUE, PRIMARY | ACQUIRED | QUEUE);
	acquire(B, REPLACE | QUEUE, IN_QUEUE | ACQUIRED | QUEUE);
	nothing_changed();
	queue_is("AB");
}

/* §10.3 row 6 */
static void queueing_again_keeps_the_position(void **state)
{
	acquire(A, 0, PRIMARY | ACQUIRED);
	acquire(B, QUEUE, IN_QUEUE | ACQUIRED | QUEUE);
	acquire(C, QUEUE, IN_QUEUE | ACQUIRED | QUEUE);
	acquire(B, QUEUE | ALLOW, IN_QUEUE | QUEUE | ALLOW);
	nothing_changed();
	queue_is("ABC");
	claim(B, IN_QUEUE | QUEUE | ALLOW);
}

/* §10.3 row 7 */
static void acquire_without_queue_leaves_the_queue(void **state)
{
	acquire(A, 0, PRIMARY | ACQUIRED);
	acquire(B, QUEUE, IN_QUEUE | ACQUIRED | QUEUE);
	acquire(B, ALLOW, ALLOW);
	nothing_changed();
	queue_is("A");
	claim(B, 0);
}

/* §10.3 row 8 */
static void acquire_of_a_taken_name_is_eexist(void **state)
{
	acquire(A, 0, PRIMARY | ACQUIRED);
	acquire_name(B, NAME, 0, -EEXIST, 0);
	acquire_name(B, NAME, ALLOW | REPLACE, -EEXIST, ALLOW);
	queue_is("A");
	claim(B, 0);
	owner_is(A);
}

/* §10.3 row 8: ALLOW_REPLACEMENT of the owner alone is not enough */
static void acquire_without_replace_existing_is_eexist(void **state)
{
	acquire(A, ALLOW, PRIMARY | ACQUIRED | ALLOW);
	acquire_name(B, NAME, ALLOW, -EEXIST, ALLOW);
	claim(A, PRIMARY | ALLOW);
}

/* §10.3 row 4: the owner's latest request counts */
static void the_owner_can_withdraw_its_permission_to_replace(void **state)
{
	acquire(A, ALLOW, PRIMARY | ACQUIRED | ALLOW);
	acquire(A, 0, PRIMARY);
	acquire_name(B, NAME, REPLACE, -EEXIST, 0);
}

/* §10.3 checks, §4.7: state bits are no request flags */
static void acquire_refuses_other_flags(void **state)
{
	for (u64 flag = IN_QUEUE; flag; flag <<= 1)
		acquire_name(A, NAME, flag, -EINVAL, ~0ULL);
	owner_is(-1);
}

/* §10.3 checks: syntax before everything else */
static void acquire_refuses_malformed_names(void **state)
{
	acquire_name(A, ".bla.blaz", 0, -EINVAL, ~0ULL);
	acquire_name(A, "foo", 0, -EINVAL, ~0ULL);
	acquire_name(A, "foo.bla.bl.*", 0, -EINVAL, ~0ULL);
	assert_int_equal(names.count, 0);
}

/* §10.3 checks, §2: 256 names per connection, owned or queued for */
static void the_257th_name_is_e2big(void **state)
{
	char name[32];

	acquire(A, ALLOW, PRIMARY | ACQUIRED | ALLOW);
	acquire(B, QUEUE, IN_QUEUE | ACQUIRED | QUEUE);
	for (int i = 1; i < CORE_CONN_MAX_NAMES; i++) {
		snprintf(name, sizeof(name), "com.example.n%d", i);
		acquire_name(B, name, 0, 0, PRIMARY | ACQUIRED);
	}
	assert_int_equal(holders[B].count, CORE_CONN_MAX_NAMES);
	acquire_name(B, "com.example.more", 0, -E2BIG, ~0ULL);
	/* A record the connection has already is not a new one. */
	acquire(B, REPLACE, PRIMARY | ACQUIRED);
	acquire(B, 0, PRIMARY);
	assert_null(core_names_find(&names, "com.example.more"));
	release(B, 0);
	acquire_name(B, "com.example.more", 0, 0, PRIMARY | ACQUIRED);
}

/* §10.3 checks: the limit is looked at before the state of the name */
static void e2big_precedes_eexist(void **state)
{
	char name[32];

	acquire(A, 0, PRIMARY | ACQUIRED);
	for (int i = 0; i < CORE_CONN_MAX_NAMES; i++) {
		snprintf(name, sizeof(name), "com.example.n%d", i);
		acquire_name(B, name, 0, 0, PRIMARY | ACQUIRED);
	}
	acquire_name(B, NAME, 0, -E2BIG, ~0ULL);
}

/* §1.6: an activator cannot ask for names */
static void an_activator_acquires_nothing(void **state)
{
	attach(A, 0);
	acquire_name(A, NAME, 0, -EOPNOTSUPP, ~0ULL);
	acquire_name(A, "foo.other", 0, -EOPNOTSUPP, ~0ULL);
}

/* §10.7 */
static void a_name_acquired_anew_has_another_id(void **state)
{
	u64 id;

	acquire(A, 0, PRIMARY | ACQUIRED);
	id = last.name_id;
	assert_int_equal(core_names_find(&names, NAME)->id, id);
	release(A, 0);
	assert_int_equal(last.name_id, id);
	acquire(A, 0, PRIMARY | ACQUIRED);
	assert_int_not_equal(last.name_id, id);
}

/* §10.7, the reverse: the id is the name's as long as somebody holds it */
static void a_name_that_changes_hands_keeps_its_id(void **state)
{
	u64 id;

	attach(A, 0);
	id = last.name_id;
	acquire(B, 0, PRIMARY | ACQUIRED);
	assert_int_equal(last.name_id, id);
	acquire(C, QUEUE, IN_QUEUE | ACQUIRED | QUEUE);
	release(A, 0);
	release(B, 0);
	assert_int_equal(last.name_id, id);
	assert_int_equal(core_names_find(&names, NAME)->id, id);
}

static void destructors_take_null(void **state)
{
	core_name_change_done(NULL);
	core_name_holder_deinit(NULL);
	core_names_deinit(NULL);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		test(acquire_of_a_free_name_makes_primary),
		test(acquire_reports_the_stored_flags),
		test(acquire_takes_the_name_from_its_activator_without_any_flag),
		test(acquire_by_the_owner_updates_its_flags),
		test(the_owner_does_not_replace_itself),
		test(a_replaced_owner_loses_its_record),
		test(a_replaced_owner_that_queues_becomes_second),
		test(replacing_jumps_the_queue_from_within),
		test(replacing_comes_before_queueing),
		test(replacing_leaves_the_activator_alone),
		test(queueing_appends_at_the_tail),
		test(replacing_an_owner_that_does_not_allow_it_queues),
		test(queueing_again_keeps_the_position),
		test(acquire_without_queue_leaves_the_queue),
		test(acquire_of_a_taken_name_is_eexist),
		test(acquire_without_replace_existing_is_eexist),
		test(the_owner_can_withdraw_its_permission_to_replace),
		test(acquire_refuses_other_flags),
		test(acquire_refuses_malformed_names),
		test(the_257th_name_is_e2big),
		test(e2big_precedes_eexist),
		test(an_activator_acquires_nothing),
		test(a_name_acquired_anew_has_another_id),
		test(a_name_that_changes_hands_keeps_its_id),
		test(destructors_take_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
