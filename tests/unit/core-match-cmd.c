// SPDX-License-Identifier: LGPL-2.1-or-later
/* MATCH_ADD and MATCH_REMOVE (spec §6.13, §15.4). */
#include "core-match-fixture.h"

/* §6.13: commands */

static void a_mask_must_be_a_multiple_of_the_bloom_size(void **state)
{
	static const size_t bad[] = { 0, 8, BLOOM - 8, BLOOM + 8, BLOOM - 1, 2 * BLOOM - 8 };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		memset(core_writer_item(&items, KDBUS_ITEM_BLOOM_MASK, bad[i]), 0, bad[i]);
		assert_int_equal(add_flags(A, 1, 0), -EDOM);
	}
	assert_int_equal(sets[A].n_entries, 0);
}

static void a_name_rule_must_be_valid_and_no_wildcard(void **state)
{
	static const char *const bad[] = { "", "a", "a..b", "a.b.*", ".a.b" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		rule_name(bad[i]);
		assert_int_equal(add_flags(A, 1, 0), -EINVAL);
	}
	assert_int_equal(sets[A].n_entries, 0);
}

static void the_name_of_a_notification_rule_is_not_checked(void **state)
{
	rule_name_change(KDBUS_ITEM_NAME_ADD, ANY, ANY, "no well-known name");
	assert_int_equal(add_flags(A, 1, 0), 0);
	assert_false(gets_any_note(A));
}

static void the_257th_entry_is_refused(void **state)
{
	for (int i = 0; i < CORE_MATCH_MAX; i++)
		assert_int_equal(add_flags(A, 5 + i % 2, 0), 0);
	assert_int_equal(add_flags(A, 7, 0), -EMFILE);
	assert_int_equal(add_flags(A, 7, KDBUS_MATCH_REPLACE), -EMFILE);
	assert_int_equal(sets[A].n_entries, CORE_MATCH_MAX);
	/* the limit counts what is left after replacing */
	assert_int_equal(add_flags(A, 5, KDBUS_MATCH_REPLACE), 0);
	assert_int_equal(sets[A].n_entries, CORE_MATCH_MAX / 2 + 1);
	assert_int_equal(add_flags(B, 1, 0), 0);
}

static void a_malformed_entry_is_refused_before_the_limit(void **state)
{
	for (int i = 0; i < CORE_MATCH_MAX; i++)
		assert_int_equal(add_flags(A, 5, 0), 0);
	rule_name("a");
	assert_int_equal(add_flags(A, 5, 0), -EINVAL);
}

static void remove_takes_all_entries_with_the_cookie(void **state)
{
	rule_id(KDBUS_ITEM_ID, SENDER);
	assert_int_equal(add_flags(A, 1, 0), 0);
	assert_int_equal(add_flags(A, 1, 0), 0);
	rule_id_change(KDBUS_ITEM_ID_ADD, 9);
	assert_int_equal(add_flags(A, 2, 0), 0);
	assert_int_equal(add_flags(B, 1, 0), 0);
	assert_int_equal(core_match_remove(&sets[A], 3), -EBADSLT);
	assert_int_equal(core_match_remove(&sets[A], 1), 0);
	assert_int_equal(core_match_remove(&sets[A], 1), -EBADSLT);
	assert_false(gets_broadcast(A));
	assert_true(gets_broadcast(B));
	assert_true(gets_id(A, KDBUS_ITEM_ID_ADD, 9));
}

/* §15.4 match-replace */
static void replace_drops_all_entries_with_the_cookie(void **state)
{
	rule_id_change(KDBUS_ITEM_ID_ADD, ANY);
	assert_int_equal(add_flags(A, 1, 0), 0);
	rule_id_change(KDBUS_ITEM_ID_ADD, 9);
	assert_int_equal(add_flags(A, 1, 0), 0);
	rule_id(KDBUS_ITEM_ID, ANY);
	assert_int_equal(add_flags(A, 2, 0), 0);
	rule_id_change(KDBUS_ITEM_ID_REMOVE, ANY);
	assert_int_equal(add_flags(A, 1, KDBUS_MATCH_REPLACE), 0);
	assert_false(gets_id(A, KDBUS_ITEM_ID_ADD, 9));
	assert_true(gets_id(A, KDBUS_ITEM_ID_REMOVE, 9));
	assert_true(gets_broadcast(A));
}

static void a_refused_replace_keeps_the_old_entry(void **state)
{
	rule_id(KDBUS_ITEM_ID, SENDER);
	add(A);
	rule_name("a");
	assert_int_equal(add_flags(A, 1, KDBUS_MATCH_REPLACE), -EINVAL);
	assert_true(gets_broadcast(A));
}

static void a_receiver_is_visited_once_however_many_entries_match(void **state)
{
	static const int bit[] = { 3 }, two[] = { 3, 4 };

	acquire(&sender, "a.b");
	add(A);
	rule_id(KDBUS_ITEM_ID, SENDER);
	add(A);
	rule_id(KDBUS_ITEM_ID, ANY);
	add(A);
	rule_name("a.b");
	add(A);
	rule_bits(1, bit);
	add(A);
	rule_bits(2, two);
	add(A);
	filter.words[0] = 0x18;
	/* search_says() compares the number of visits */
	assert_true(gets_generation(A, 0));
	assert_true(gets_generation(A, 1));
	assert_true(gets_generation(A, 0));
}

static void clearing_takes_an_entry_out_of_every_search(void **state)
{
	static const int bits[] = { 3, 4, 5, 6, 7 };

	add(A);
	rule_bits(5, bits);
	add(A);
	rule_name("a.b");
	add(A);
	rule_name_change(KDBUS_ITEM_NAME_ADD, ANY, 7, "a.b");
	add(A);
	core_match_clear(&sets[A]);
	core_match_clear(&sets[A]);
	assert_int_equal(failalloc_live(), 0);
	nothing_is_filed();
	assert_false(gets_broadcast(A));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(a_mask_must_be_a_multiple_of_the_bloom_size),
		T(a_name_rule_must_be_valid_and_no_wildcard),
		T(the_name_of_a_notification_rule_is_not_checked),
		T(the_257th_entry_is_refused),
		T(a_malformed_entry_is_refused_before_the_limit),
		T(remove_takes_all_entries_with_the_cookie),
		T(replace_drops_all_entries_with_the_cookie),
		T(a_refused_replace_keeps_the_old_entry),
		T(a_receiver_is_visited_once_however_many_entries_match),
		T(clearing_takes_an_entry_out_of_every_search),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
