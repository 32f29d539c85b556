// SPDX-License-Identifier: LGPL-2.1-or-later
/* Policy records: parsed, installed, searched (spec §9.1, §9.3). */
#include "core-policy-fixture.h"

static void an_access_entry_before_any_name_is_refused(void **state)
{
	access_item(WORLD, SEE, 0);
	name("a.b");
	assert_int_equal(parse(0), -EINVAL);
}

static void a_malformed_name_is_refused(void **state)
{
	static const char *const bad[] = {
		"",  "example", ".example.a", "a..b", "a.b.",	  "a.1b",
		"*", ".*",	"a.*.b",      "a.b*", "example*", ".example.*",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		name(bad[i]);
		assert_int_equal(parse(0), -EINVAL);
	}
}

static void a_wildcard_is_refused_where_there_may_be_none(void **state)
{
	name("a.b.*");
	assert_int_equal(parse(CORE_POLICY_NO_WILDCARD), -EINVAL);
	name("a.b.*");
	assert_int_equal(parse(0), 0);
}

static void more_than_one_name_is_refused_where_one_is_the_limit(void **state)
{
	name("a.b");
	name("a.c");
	assert_int_equal(parse(CORE_POLICY_ONE_NAME), -E2BIG);
	name("a.b");
	access_item(WORLD, OWN, 0);
	access_item(USER, OWN, 0);
	assert_int_equal(parse(CORE_POLICY_ONE_NAME), 0);
}

static void the_same_name_twice_in_a_list_is_refused(void **state)
{
	name("a.b");
	name("a.c");
	name("a.b");
	assert_int_equal(parse(0), -EEXIST);
	name("a.b.*");
	name("a.c");
	name("a.b.*");
	assert_int_equal(parse(0), -EEXIST);
	name("a.b.*");
	name("a.b");
	assert_int_equal(parse(0), 0);
}

static void access_words_out_of_range_are_refused(void **state)
{
	static const u64 bad[][2] = {
		{ 0, SEE },
		{ 4, SEE },
		{ USER, 3 },
		{ WORLD, 3 },
		{ 1ULL << 32 | USER, SEE },
		{ WORLD, 1ULL << 32 },
		{ USER, ~0ULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		name("a.b");
		access_item(bad[i][0], bad[i][1], 0);
		assert_int_equal(parse(0), -EINVAL);
	}
}

static int add_thousand(void *data, u64 type, u64 id, u32 *ret_id)
{
	*(u64 *)data |= 1ULL << type;
	if (id > 99)
		return -EINVAL;
	*ret_id = (u32)id + 1000;
	return 0;
}

static void ids_are_converted_and_those_without_mapping_refused(void **state)
{
	struct core_policy_set *set = NULL;
	u64 types = 0;

	name("a.b");
	access_item(GROUP, SEE, 100);
	assert_int_equal(parse_mapped(0, add_thousand, &types, &set), -EINVAL);
	assert_int_equal(types, 1ULL << GROUP);
	assert_null(set);

	name("a.b");
	access_item(USER, TALK, 0);
	assert_int_equal(parse_mapped(0, add_thousand, &types, &set), 0);
	assert_int_equal(core_policy_replace(&bus, &a, set), 0);
	assert_int_equal(level("a.b"), TALK);
}

static void the_id_of_a_world_entry_is_ignored(void **state)
{
	struct core_policy_set *set;
	u64 types = 0;

	name("a.b");
	access_item(WORLD, TALK, ~0ULL);
	assert_int_equal(parse_mapped(0, add_thousand, &types, &set), 0);
	assert_int_equal(types, 0);
	assert_int_equal(core_policy_replace(&bus, &a, set), 0);
	assert_int_equal(level("a.b"), TALK);
}

static void without_a_mapping_only_valid_ids_are_taken(void **state)
{
	name("a.b");
	access_item(USER, SEE, U32_MAX);
	assert_int_equal(parse(0), -EINVAL);
	name("a.b");
	access_item(USER, SEE, 1ULL << 32 | 1000);
	assert_int_equal(parse(0), -EINVAL);
	name("a.b");
	access_item(USER, SEE, U32_MAX - 1);
	assert_int_equal(parse(0), 0);
}

static void items_that_are_not_policy_are_passed_over(void **state)
{
	core_put_str(&items, KDBUS_ITEM_CONN_DESCRIPTION, "x");
	name("a.b");
	core_put_u64(&items, KDBUS_ITEM_ATTACH_FLAGS_SEND, 0);
	access_item(WORLD, OWN, 0);
	assert_int_equal(install(&a), 0);
	assert_int_equal(level("a.b"), OWN);
}

static void a_list_without_names_is_an_empty_policy(void **state)
{
	only("a.b", WORLD, OWN, 0);
	assert_int_equal(install(&a), 0);
	assert_int_equal(level("a.b"), NONE);
	assert_true(RB_EMPTY_ROOT(&bus.records));
}

/* §9.3: keys are unique across owners, sets are replaced whole */

static void holders_compete_for_keys_as_in_the_checklist(void **state)
{
	name("com.example.a");
	assert_int_equal(install(&a), 0);
	name("com.example.b");
	assert_int_equal(install(&b), 0);

	name("com.example.a");
	assert_int_equal(install(&a), 0);
	name("com.example.a");
	assert_int_equal(install(&b), -EEXIST);

	name("com.example.a.*");
	assert_int_equal(install(&b), 0);
	name("com.example.a.*");
	assert_int_equal(install(&a), -EEXIST);

	name("com.example.*");
	assert_int_equal(install(&a), 0);
	name("com.example.a");
	assert_int_equal(install(&b), 0);
	name("com.example.*");
	assert_int_equal(install(&b), -EEXIST);
}

static void a_refused_set_leaves_the_old_one_in_force(void **state)
{
	only("a.b", WORLD, TALK, 0);
	name("c.d");
	assert_int_equal(install(&b), 0);
	name("x.y");
	access_item(WORLD, OWN, 0);
	name("c.d");
	assert_int_equal(install(&a), -EEXIST);
	assert_int_equal(level("a.b"), TALK);
	assert_int_equal(level("x.y"), NONE);
}

static void a_new_set_replaces_the_whole_old_one(void **state)
{
	name("a.b");
	access_item(WORLD, TALK, 0);
	name("c.d");
	access_item(WORLD, TALK, 0);
	assert_int_equal(install(&a), 0);
	name("c.d");
	access_item(WORLD, OWN, 0);
	name("e.f");
	access_item(WORLD, SEE, 0);
	assert_int_equal(install(&a), 0);
	assert_int_equal(level("a.b"), NONE);
	assert_int_equal(level("c.d"), OWN);
	assert_int_equal(level("e.f"), SEE);
	name("a.b");
	assert_int_equal(install(&b), 0);
}

static void clearing_frees_the_keys_of_one_owner_only(void **state)
{
	only("a.b", WORLD, OWN, 0);
	name("c.d");
	access_item(WORLD, TALK, 0);
	assert_int_equal(install(&b), 0);
	core_policy_clear(&bus, &a);
	core_policy_clear(&bus, &a);
	assert_int_equal(level("a.b"), NONE);
	assert_int_equal(level("c.d"), TALK);
	name("c.d");
	assert_int_equal(install(&a), -EEXIST);
	name("a.b");
	assert_int_equal(install(&a), 0);
}

/* §9.4: lookup */

static void the_exact_record_decides_alone(void **state)
{
	name("foo.bar.*");
	access_item(WORLD, OWN, 0);
	name("foo.bar.x");
	access_item(WORLD, SEE, 0);
	name("foo.bar.nobody");
	assert_int_equal(install(&a), 0);
	assert_int_equal(level("foo.bar.x"), SEE);
	assert_int_equal(level("foo.bar.nobody"), NONE);
	assert_int_equal(level("foo.bar.y"), OWN);
}

static void a_wildcard_covers_one_more_element_and_no_other(void **state)
{
	only("foo.bar.*", WORLD, TALK, 0);
	assert_int_equal(level("foo.bar.x"), TALK);
	assert_int_equal(level("foo.bar"), NONE);
	assert_int_equal(level("foo.bar.x.y"), NONE);
	assert_int_equal(level("foo.barn.x"), NONE);
	assert_int_equal(level("foo.ba.x"), NONE);
	only("foo.*", WORLD, TALK, 0);
	assert_int_equal(level("foo.bar"), TALK);
}

static void the_maximum_over_matching_entries_wins(void **state)
{
	name("a.b");
	access_item(WORLD, SEE, 0);
	access_item(USER, OWN, 1001);
	access_item(USER, TALK, 1000);
	access_item(GROUP, SEE, 100);
	assert_int_equal(install(&a), 0);
	assert_int_equal(level("a.b"), TALK);
	assert_int_equal(core_policy_level(&bus, &stranger, "a.b"), SEE);
}

static void a_user_entry_in_the_middle_of_a_list_counts(void **state)
{
	name("a.b");
	access_item(USER, OWN, 1);
	access_item(USER, OWN, 1000);
	access_item(USER, OWN, 2);
	assert_int_equal(install(&a), 0);
	assert_int_equal(level("a.b"), OWN);
	assert_int_equal(core_policy_level(&bus, &stranger, "a.b"), NONE);
}

static void a_group_entry_matches_effective_and_supplementary_groups(void **state)
{
	static const u32 mine[] = { 100, 5, 20, 300 }, not_mine[] = { 0, 6, 200, 301 };

	for (size_t i = 0; i < ARRAY_SIZE(mine); i++) {
		only("a.b", GROUP, OWN, mine[i]);
		assert_int_equal(level("a.b"), OWN);
		only("a.b", GROUP, OWN, not_mine[i]);
		assert_int_equal(level("a.b"), NONE);
	}
	/* a group entry is not about users, nor the other way round */
	only("a.b", GROUP, OWN, 1000);
	assert_int_equal(level("a.b"), NONE);
	only("a.b", USER, OWN, 100);
	assert_int_equal(level("a.b"), NONE);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(an_access_entry_before_any_name_is_refused),
		T(a_malformed_name_is_refused),
		T(a_wildcard_is_refused_where_there_may_be_none),
		T(more_than_one_name_is_refused_where_one_is_the_limit),
		T(the_same_name_twice_in_a_list_is_refused),
		T(access_words_out_of_range_are_refused),
		T(ids_are_converted_and_those_without_mapping_refused),
		T(the_id_of_a_world_entry_is_ignored),
		T(without_a_mapping_only_valid_ids_are_taken),
		T(items_that_are_not_policy_are_passed_over),
		T(a_list_without_names_is_an_empty_policy),
		T(holders_compete_for_keys_as_in_the_checklist),
		T(a_refused_set_leaves_the_old_one_in_force),
		T(a_new_set_replaces_the_whole_old_one),
		T(clearing_frees_the_keys_of_one_owner_only),
		T(the_exact_record_decides_alone),
		T(a_wildcard_covers_one_more_element_and_no_other),
		T(the_maximum_over_matching_entries_wins),
		T(a_user_entry_in_the_middle_of_a_list_counts),
		T(a_group_entry_matches_effective_and_supplementary_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
