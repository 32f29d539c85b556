// SPDX-License-Identifier: LGPL-2.1-or-later
/* Each row of the tables in spec §10.4 and §10.5: names are released, activators take part. */
#include "core-names-fixture.h"

/* §10.4 row 1 */
static void release_of_a_place_in_the_queue_is_silent(void **state)
{
	acquire(A, 0, PRIMARY | ACQUIRED);
	acquire(B, QUEUE, IN_QUEUE | ACQUIRED | QUEUE);
	acquire(C, QUEUE, IN_QUEUE | ACQUIRED | QUEUE);
	release(B, 0);
	nothing_changed();
	queue_is("AC");
}

/* §10.4 row 2 */
static void release_passes_the_name_to_the_next_in_the_queue(void **state)
{
	attach(D, 0);
	acquire(A, ALLOW, PRIMARY | ACQUIRED | ALLOW);
	acquire(B, QUEUE, IN_QUEUE | ACQUIRED | QUEUE);
	acquire(C, QUEUE, IN_QUEUE | ACQUIRED | QUEUE);
	release(A, 0);
	changed(KDBUS_ITEM_NAME_CHANGE, A, PRIMARY | ALLOW, B, PRIMARY | QUEUE);
	nothing_moves();
	claim(B, PRIMARY | QUEUE);
	claim(C, IN_QUEUE | QUEUE);
	claim(D, ACTIVATOR | IN_QUEUE);
	queue_is("BC");
}

/* §10.4 row 3 */
static void release_gives_the_name_back_to_its_activator(void **state)
{
	attach(A, 0);
	acquire(B, QUEUE, PRIMARY | ACQUIRED | QUEUE);
	release(B, 0);
	changed(KDBUS_ITEM_NAME_CHANGE, B, PRIMARY | QUEUE, A, ACTIVATOR | PRIMARY);
	messages_move(B, A);
	claim(A, ACTIVATOR | PRIMARY);
	owner_is(A);
}

/* §10.4 row 4 */
static void release_by_the_last_owner_removes_the_name(void **state)
{
	acquire(A, ALLOW, PRIMARY | ACQUIRED | ALLOW);
	release(A, 0);
	changed(KDBUS_ITEM_NAME_REMOVE, A, PRIMARY | ALLOW, -1, 0);
	nothing_moves();
	owner_is(-1);
	assert_int_equal(names.count, 0);
}

/* §10.4 row 5 */
static void an_outranked_activator_leaves_silently(void **state)
{
	attach(A, 0);
	acquire(B, 0, PRIMARY | ACQUIRED);
	release(A, 0);
	nothing_changed();
	claim(B, PRIMARY);
	release(B, 0);
	changed(KDBUS_ITEM_NAME_REMOVE, B, PRIMARY, -1, 0);
}

/* §10.4 row 6 */
static void release_by_the_acting_activator_removes_the_name(void **state)
{
	attach(A, 0);
	release(A, 0);
	changed(KDBUS_ITEM_NAME_REMOVE, A, ACTIVATOR | PRIMARY, -1, 0);
	nothing_moves();
	owner_is(-1);
}

/* §6.12 */
static void release_of_an_unknown_name_is_esrch(void **state)
{
	release(A, -ESRCH);
	assert_int_equal(core_names_release(&names, &holders[A], ".bla", &last), -ESRCH);
	assert_int_equal(core_names_release(&names, &holders[A], "", &last), -ESRCH);
	acquire(A, 0, PRIMARY | ACQUIRED);
	release(A, 0);
	release(A, -ESRCH);
}

/* §6.12 */
static void release_of_the_name_of_another_is_eaddrinuse(void **state)
{
	acquire(A, 0, PRIMARY | ACQUIRED);
	release(B, -EADDRINUSE);
	owner_is(A);
}

/* §1.8 step 6: in the order in which the names were asked for */
static void release_next_keeps_the_order_of_the_requests(void **state)
{
	static const char *const order[] = { "z.z", NAME, "a.a", "m.m" };
	struct core_name_change change;

	acquire(B, 0, PRIMARY | ACQUIRED);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		acquire_name(A, order[i], QUEUE, 0,
			     QUEUE | ACQUIRED | (i == 1 ? IN_QUEUE : PRIMARY));
	acquire_name(A, "z.z", 0, 0, PRIMARY);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		assert_true(core_names_release_next(&names, &holders[A], &change));
		assert_int_equal(change.type, i == 1 ? 0 : KDBUS_ITEM_NAME_REMOVE);
		if (i != 1)
			assert_string_equal(change.name, order[i]);
		core_name_change_done(&change);
	}
	assert_false(core_names_release_next(&names, &holders[A], &change));
	owner_is(B);
}

/* §10.5 */
static void an_activator_of_a_free_name_owns_it(void **state)
{
	attach(A, 0);
	changed(KDBUS_ITEM_NAME_ADD, -1, 0, A, ACTIVATOR | PRIMARY);
	nothing_moves();
	claim(A, ACTIVATOR | PRIMARY);
	owner_is(A);
	queue_is("");
}

/* §10.5 */
static void an_activator_of_an_owned_name_waits_silently(void **state)
{
	acquire(B, 0, PRIMARY | ACQUIRED);
	attach(A, 0);
	nothing_changed();
	claim(A, ACTIVATOR | IN_QUEUE);
	owner_is(B);
	queue_is("B");
}

/* §10.5 */
static void a_second_activator_is_eexist(void **state)
{
	attach(A, 0);
	attach(B, -EEXIST);
	acquire(C, 0, PRIMARY | ACQUIRED);
	attach(B, -EEXIST);
	claim(B, 0);
	release(A, 0);
	attach(B, 0);
	claim(B, ACTIVATOR | IN_QUEUE);
}

/* §10.5: any ordinary owner outranks the activator */
static void the_activator_gets_the_name_only_when_the_queue_is_empty(void **state)
{
	acquire(B, 0, PRIMARY | ACQUIRED);
	attach(A, 0);
	acquire(C, QUEUE, IN_QUEUE | ACQUIRED | QUEUE);
	release(B, 0);
	changed(KDBUS_ITEM_NAME_CHANGE, B, PRIMARY, C, PRIMARY | QUEUE);
	nothing_moves();
	release(C, 0);
	changed(KDBUS_ITEM_NAME_CHANGE, C, PRIMARY | QUEUE, A, ACTIVATOR | PRIMARY);
	messages_move(C, A);
}

/* core/names.h invariant 5 */
static void an_activator_has_one_name_and_a_wellformed_one(void **state)
{
	struct core_name_change change;

	assert_int_equal(core_names_attach_activator(&names, &holders[A], "foo", &change), -EINVAL);
	attach(A, 0);
	assert_int_equal(core_names_attach_activator(&names, &holders[A], "a.b", &change), -EINVAL);
	assert_int_equal(names.count, 1);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		test(release_of_a_place_in_the_queue_is_silent),
		test(release_passes_the_name_to_the_next_in_the_queue),
		test(release_gives_the_name_back_to_its_activator),
		test(release_by_the_last_owner_removes_the_name),
		test(an_outranked_activator_leaves_silently),
		test(release_by_the_acting_activator_removes_the_name),
		test(release_of_an_unknown_name_is_esrch),
		test(release_of_the_name_of_another_is_eaddrinuse),
		test(release_next_keeps_the_order_of_the_requests),
		test(an_activator_of_a_free_name_owns_it),
		test(an_activator_of_an_owned_name_waits_silently),
		test(a_second_activator_is_eexist),
		test(the_activator_gets_the_name_only_when_the_queue_is_empty),
		test(an_activator_has_one_name_and_a_wellformed_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
