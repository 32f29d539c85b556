// SPDX-License-Identifier: LGPL-2.1-or-later
/* Match entries and rules, tested one by one and searched for (spec §11). */
#include "core-match-fixture.h"

/* §11: entries and rules */

static void without_entries_nothing_passes(void **state)
{
	assert_false(gets_broadcast(A));
	assert_false(gets_unicast(A, A));
	assert_false(gets_any_note(A));
}

static void an_entry_without_rules_passes_everything(void **state)
{
	add(A);
	assert_true(gets_broadcast(A));
	assert_true(gets_unicast(A, 7));
	assert_true(gets_notes(A));
	assert_false(gets_broadcast(B));
}

static void a_negotiate_item_is_no_rule(void **state)
{
	static const u64 types[] = { KDBUS_ITEM_ID, 0 };

	core_put(&items, KDBUS_ITEM_NEGOTIATE, types, sizeof(types));
	add(A);
	assert_true(gets_broadcast(A));
	assert_true(gets_notes(A));
	core_put(&items, KDBUS_ITEM_NEGOTIATE, types, sizeof(types));
	rule_id(KDBUS_ITEM_ID, SENDER + 1);
	add(B);
	core_put(&items, KDBUS_ITEM_NEGOTIATE, types, sizeof(types));
	rule_id_change(KDBUS_ITEM_ID_ADD, 9);
	add(C);
	assert_false(gets_broadcast(B));
	assert_true(gets_id(C, KDBUS_ITEM_ID_ADD, 9));
}

static void one_entry_is_enough(void **state)
{
	rule_id(KDBUS_ITEM_ID, SENDER + 1);
	add(A);
	assert_false(gets_broadcast(A));
	rule_id(KDBUS_ITEM_ID, SENDER);
	add(A);
	assert_true(gets_broadcast(A));
}

static void all_rules_of_an_entry_must_hold(void **state)
{
	static const int bit[] = { 3 };

	rule_id(KDBUS_ITEM_ID, SENDER);
	rule_bits(1, bit);
	add(A);
	rule_bits(1, bit);
	rule_id(KDBUS_ITEM_ID, SENDER + 1);
	add(B);
	assert_false(gets_broadcast(A));
	filter.words[0] = 1 << 3;
	assert_true(gets_broadcast(A));
	assert_false(gets_broadcast(B));
}

static void rules_of_one_kind_must_all_hold(void **state)
{
	static const int first[] = { 3 }, second[] = { 70 };

	rule_bits(1, first);
	rule_bits(1, second);
	add(A);
	rule_id(KDBUS_ITEM_ID, SENDER);
	rule_id(KDBUS_ITEM_ID, SENDER + 1);
	add(B);
	rule_name_change(KDBUS_ITEM_NAME_CHANGE, 8, ANY, NULL);
	rule_name_change(KDBUS_ITEM_NAME_CHANGE, ANY, 9, NULL);
	add(C);
	filter.words[0] = 1 << 3;
	assert_false(gets_broadcast(A));
	filter.words[1] = 1 << 6;
	assert_true(gets_broadcast(A));
	assert_false(gets_broadcast(B));
	assert_true(gets_name(C, KDBUS_ITEM_NAME_CHANGE, 8, 9, "a.b"));
	assert_false(gets_name(C, KDBUS_ITEM_NAME_CHANGE, 8, 8, "a.b"));
	assert_false(gets_name(C, KDBUS_ITEM_NAME_CHANGE, 9, 9, "a.b"));
}

static void mixing_user_and_kernel_rules_makes_a_dead_entry(void **state)
{
	rule_id(KDBUS_ITEM_ID, ANY);
	rule_id_change(KDBUS_ITEM_ID_ADD, ANY);
	add(A);
	rule_id_change(KDBUS_ITEM_ID_ADD, ANY);
	rule_id(KDBUS_ITEM_DST_ID, ANY);
	add(A);
	assert_false(gets_broadcast(A));
	assert_false(gets_any_note(A));
	nothing_is_filed();
}

static void rules_for_two_types_of_notification_make_a_dead_entry(void **state)
{
	rule_id_change(KDBUS_ITEM_ID_ADD, ANY);
	rule_id_change(KDBUS_ITEM_ID_REMOVE, ANY);
	add(A);
	assert_false(gets_any_note(A));
}

static void user_rules_do_not_hold_for_notifications(void **state)
{
	static const int wildcard[] = { -1 };

	rule_id(KDBUS_ITEM_ID, ANY);
	add(A);
	rule_id(KDBUS_ITEM_DST_ID, ANY);
	add(A);
	rule_bits(1, wildcard);
	add(A);
	rule_name("a.b");
	add(A);
	assert_false(gets_any_note(A));
	assert_true(gets_broadcast(A));
}

static void kernel_rules_do_not_hold_for_user_signals(void **state)
{
	rule_id_change(KDBUS_ITEM_ID_ADD, ANY);
	add(A);
	rule_name_change(KDBUS_ITEM_NAME_ADD, ANY, ANY, NULL);
	add(A);
	assert_false(gets_broadcast(A));
	assert_false(gets_unicast(A, 7));
}

/* §11: ID, NAME, DST_ID */

static void an_id_rule_wants_the_sender(void **state)
{
	rule_id(KDBUS_ITEM_ID, SENDER);
	add(A);
	rule_id(KDBUS_ITEM_ID, SENDER + 1);
	add(B);
	rule_id(KDBUS_ITEM_ID, ANY);
	add(C);
	assert_true(gets_broadcast(A));
	assert_false(gets_broadcast(B));
	assert_true(gets_broadcast(C));
}

static void a_name_rule_wants_the_primary_owner(void **state)
{
	struct core_name_change change;

	rule_name("a.b");
	add(A);
	assert_false(gets_broadcast(A));
	acquire(&rival, "a.b");
	acquire(&sender, "a.b");
	assert_false(gets_broadcast(A));
	assert_int_equal(core_names_release(&names, &rival, "a.b", &change), 0);
	core_name_change_done(&change);
	assert_true(gets_broadcast(A));
	acquire(&sender, "a.c");
	assert_true(gets_broadcast(A));
	rule_name("a.c");
	add(B);
	rule_name("a.bb");
	add(C);
	assert_true(gets_broadcast(B));
	assert_false(gets_broadcast(C));
}

static void a_sender_without_names_satisfies_no_name_rule(void **state)
{
	struct core_signal signal = user_signal(ANY);

	signal.user.names = NULL;
	rule_name("a.b");
	add(A);
	assert_false(search_says(A, &signal));
}

static void a_dst_id_rule_wants_the_word_of_the_message(void **state)
{
	rule_id(KDBUS_ITEM_DST_ID, 7);
	add(A);
	rule_id(KDBUS_ITEM_DST_ID, 0);
	add(B);
	rule_id(KDBUS_ITEM_DST_ID, ANY);
	add(C);
	assert_true(gets_unicast(A, 7));
	assert_false(gets_unicast(A, 8));
	assert_false(gets_unicast(A, 0));
	assert_false(gets_broadcast(A));
	assert_true(gets_unicast(B, 0));
	assert_false(gets_unicast(B, 7));
	assert_false(gets_broadcast(B));
	assert_true(gets_unicast(C, 7));
	assert_true(gets_broadcast(C));
}

/* §11: notifications */

static void an_id_notification_rule_wants_type_and_id(void **state)
{
	rule_id_change(KDBUS_ITEM_ID_ADD, 9);
	add(A);
	rule_id_change(KDBUS_ITEM_ID_REMOVE, ANY);
	add(B);
	assert_true(gets_id(A, KDBUS_ITEM_ID_ADD, 9));
	assert_false(gets_id(A, KDBUS_ITEM_ID_ADD, 10));
	assert_false(gets_id(A, KDBUS_ITEM_ID_REMOVE, 9));
	assert_true(gets_id(B, KDBUS_ITEM_ID_REMOVE, 9));
	assert_false(gets_id(B, KDBUS_ITEM_ID_ADD, 9));
}

static void a_name_notification_rule_wants_both_ids_and_the_name(void **state)
{
	static const u64 types[] = {
		KDBUS_ITEM_NAME_ADD,
		KDBUS_ITEM_NAME_REMOVE,
		KDBUS_ITEM_NAME_CHANGE,
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		rule_name_change(types[i], 8, 9, "a.b");
		assert_int_equal(add_flags(A, 1, KDBUS_MATCH_REPLACE), 0);
		assert_true(gets_name(A, types[i], 8, 9, "a.b"));
		assert_false(gets_name(A, types[i], 7, 9, "a.b"));
		assert_false(gets_name(A, types[i], 8, 7, "a.b"));
		assert_false(gets_name(A, types[i], 8, 9, "a.c"));
		assert_false(gets_name(A, types[(i + 1) % 3], 8, 9, "a.b"));
		rule_name_change(types[i], 8, ANY, NULL);
		assert_int_equal(add_flags(A, 1, KDBUS_MATCH_REPLACE), 0);
		assert_true(gets_name(A, types[i], 8, 7, "a.c"));
		assert_false(gets_name(A, types[i], 9, 7, "a.c"));
		rule_name_change(types[i], ANY, 9, NULL);
		assert_int_equal(add_flags(A, 1, KDBUS_MATCH_REPLACE), 0);
		assert_true(gets_name(A, types[i], 7, 9, "a.c"));
		assert_false(gets_name(A, types[i], 7, 8, "a.c"));
		rule_name_change(types[i], ANY, ANY, NULL);
		assert_int_equal(add_flags(A, 1, KDBUS_MATCH_REPLACE), 0);
		assert_true(gets_name(A, types[i], 7, 8, "a.d"));
	}
}

static void nobody_has_the_id_zero(void **state)
{
	rule_name_change(KDBUS_ITEM_NAME_ADD, 0, 9, NULL);
	add(A);
	rule_name_change(KDBUS_ITEM_NAME_ADD, 9, ANY, NULL);
	add(B);
	rule_name_change(KDBUS_ITEM_NAME_REMOVE, ANY, 0, NULL);
	add(C);
	assert_true(gets_name(A, KDBUS_ITEM_NAME_ADD, 0, 9, "a.b"));
	assert_false(gets_name(B, KDBUS_ITEM_NAME_ADD, 0, 9, "a.b"));
	assert_true(gets_name(C, KDBUS_ITEM_NAME_REMOVE, 9, 0, "a.b"));
}

static void an_empty_name_of_33_bytes_never_matches(void **state)
{
	rule_name_change(KDBUS_ITEM_NAME_ADD, ANY, ANY, "");
	add(A);
	assert_false(gets_any_note(A));
	nothing_is_filed();
	rule_name_change(KDBUS_ITEM_NAME_ADD, ANY, ANY, NULL);
	add(A);
	assert_true(gets_name(A, KDBUS_ITEM_NAME_ADD, 0, 9, "a.b"));
}

static void id_and_name_rules_do_not_filter_notifications(void **state)
{
	rule_id(KDBUS_ITEM_ID, 9);
	add(A);
	rule_name("a.b");
	add(A);
	assert_false(gets_any_note(A));
}

struct nested {
	unsigned int outer[N_SETS];
	unsigned int inner[N_SETS];
	const struct core_signal *signal;
};

static void visit_inner(struct core_match_set *set, void *data)
{
	((struct nested *)data)->inner[set - sets]++;
}

/* Another search begins and ends while this one is under way. */
static void visit_outer(struct core_match_set *set, void *data)
{
	struct nested *nested = data;

	nested->outer[set - sets]++;
	core_match_find_lane(&match_index, 1, nested->signal, visit_inner, nested);
}

/* match.h, lock rule */
static void searches_in_two_lanes_do_not_disturb_each_other(void **state)
{
	struct core_signal signal = user_signal(KDBUS_DST_ID_BROADCAST);
	struct nested nested = { .signal = &signal };

	for (int i = 0; i < N_SETS; i++) {
		add(i);
		rule_id(KDBUS_ITEM_ID, SENDER);
		add(i);
	}
	core_match_find_lane(&match_index, CORE_MATCH_LANES - 1, &signal, visit_outer, &nested);
	for (int i = 0; i < N_SETS; i++) {
		assert_int_equal(nested.outer[i], 1);
		assert_int_equal(nested.inner[i], N_SETS);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(without_entries_nothing_passes),
		T(an_entry_without_rules_passes_everything),
		T(a_negotiate_item_is_no_rule),
		T(one_entry_is_enough),
		T(all_rules_of_an_entry_must_hold),
		T(rules_of_one_kind_must_all_hold),
		T(mixing_user_and_kernel_rules_makes_a_dead_entry),
		T(rules_for_two_types_of_notification_make_a_dead_entry),
		T(user_rules_do_not_hold_for_notifications),
		T(kernel_rules_do_not_hold_for_user_signals),
		T(an_id_rule_wants_the_sender),
		T(a_name_rule_wants_the_primary_owner),
		T(a_sender_without_names_satisfies_no_name_rule),
		T(a_dst_id_rule_wants_the_word_of_the_message),
		T(an_id_notification_rule_wants_type_and_id),
		T(a_name_notification_rule_wants_both_ids_and_the_name),
		T(nobody_has_the_id_zero),
		T(an_empty_name_of_33_bytes_never_matches),
		T(id_and_name_rules_do_not_filter_notifications),
		T(searches_in_two_lanes_do_not_disturb_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
