// SPDX-License-Identifier: LGPL-2.1-or-later
/* Policy records and decisions (spec §9). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base.h"
#include "failalloc.h"
#include "item.h"
#include "kdbus.h"
#include "names.h"
#include "policy.h"

#define NONE  CORE_POLICY_NONE
#define SEE   KDBUS_POLICY_SEE
#define TALK  KDBUS_POLICY_TALK
#define OWN   KDBUS_POLICY_OWN
#define USER  KDBUS_POLICY_ACCESS_USER
#define GROUP KDBUS_POLICY_ACCESS_GROUP
#define WORLD KDBUS_POLICY_ACCESS_WORLD

static struct core_policy bus, endpoint;
static struct core_policy_owner a, b;
static struct core_names names;
static struct core_name_holder peer, other;
static u64 buffer[1024];
static struct core_writer items;

/* uid 1000, gid 100, and groups 5, 20 and 300 */
static const u32 groups[] = { 5, 20, 300 };
static const struct core_cred me = { .euid = 1000, .egid = 100, .groups = groups, .n_groups = 3 };
static const struct core_cred stranger = { .euid = 2000, .egid = 200 };

static void fresh_items(void)
{
	items = CORE_WRITER(buffer, sizeof(buffer));
}

static int setup(void **state)
{
	core_policy_init(&bus);
	core_policy_init(&endpoint);
	core_policy_owner_init(&a);
	core_policy_owner_init(&b);
	core_names_init(&names);
	core_name_holder_init(&peer, 7);
	core_name_holder_init(&other, 8);
	fresh_items();
	return 0;
}

static void release_all(struct core_name_holder *holder)
{
	struct core_name_change change;

	while (core_names_release_next(&names, holder, &change))
		core_name_change_done(&change);
	core_name_holder_deinit(holder);
}

static int teardown(void **state)
{
	core_policy_clear(&bus, &a);
	core_policy_clear(&bus, &b);
	release_all(&peer);
	release_all(&other);
	core_names_deinit(&names);
	return failalloc_live() ? -1 : 0;
}

static void name(const char *string)
{
	core_put_str(&items, KDBUS_ITEM_NAME, string);
}

static void access_item(u64 type, u64 level, u64 id)
{
	struct kdbus_policy_access access = { .type = type, .access = level, .id = id };

	core_put(&items, KDBUS_ITEM_POLICY_ACCESS, &access, sizeof(access));
}

/* Parses what was written since the last time. */
static int parse_mapped(unsigned int flags, core_policy_map_id map, void *data,
			struct core_policy_set **ret_set)
{
	size_t size;

	assert_int_equal(core_writer_end(&items, &size), 0);
	fresh_items();
	return core_policy_parse((void *)buffer, size, flags, map, data, ret_set);
}

static int parse(unsigned int flags)
{
	struct core_policy_set *set = NULL;
	int r = parse_mapped(flags, NULL, NULL, &set);

	assert_true((r == 0) == (set != NULL));
	core_policy_set_free(set);
	return r;
}

static int install_in(struct core_policy *policy, struct core_policy_owner *owner)
{
	struct core_policy_set *set;
	int r;

	assert_int_equal(parse_mapped(0, NULL, NULL, &set), 0);
	r = core_policy_replace(policy, owner, set);
	if (r < 0)
		core_policy_set_free(set);
	return r;
}

static int install(struct core_policy_owner *owner)
{
	return install_in(&bus, owner);
}

/* a's only record: @string with one access entry */
static void only(const char *string, u64 type, u64 level, u64 id)
{
	name(string);
	access_item(type, level, id);
	assert_int_equal(install(&a), 0);
}

static int level(const char *string)
{
	return core_policy_level(&bus, &me, string);
}

/* §9.3: what may be uploaded */

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

/* §9.2: decisions */

static struct core_policy_view on_default(const struct core_cred *cred, bool bus_owner)
{
	return (struct core_policy_view){ .bus = &bus, .bus_owner = bus_owner, .cred = cred };
}

static struct core_policy_view on_custom(const struct core_cred *cred)
{
	return (struct core_policy_view){ .bus = &bus, .endpoint = &endpoint, .cred = cred };
}

static void acquire(struct core_name_holder *holder, const char *string)
{
	struct core_name_change change;
	u64 flags;

	assert_int_equal(
		core_names_acquire(&names, holder, string, KDBUS_NAME_QUEUE, &flags, &change), 0);
	core_name_change_done(&change);
}

static void own_needs_the_own_level_in_the_bus_database(void **state)
{
	struct core_policy_view view = on_default(&me, false);

	assert_false(core_policy_may_own(&view, "a.b"));
	only("a.b", WORLD, TALK, 0);
	assert_false(core_policy_may_own(&view, "a.b"));
	only("a.b", WORLD, OWN, 0);
	assert_true(core_policy_may_own(&view, "a.b"));
}

static void the_bus_owner_owns_any_name_even_with_an_empty_record(void **state)
{
	struct core_policy_view view = on_default(&me, true);

	name("a.b");
	assert_int_equal(install(&a), 0);
	assert_true(core_policy_may_own(&view, "a.b"));
}

static void on_a_custom_endpoint_both_databases_must_let_one_own(void **state)
{
	struct core_policy_view view = on_custom(&me);

	only("a.b", WORLD, OWN, 0);
	assert_false(core_policy_may_own(&view, "a.b"));
	name("a.b");
	access_item(WORLD, TALK, 0);
	assert_int_equal(install_in(&endpoint, &b), 0);
	assert_false(core_policy_may_own(&view, "a.b"));
	name("a.b");
	access_item(WORLD, OWN, 0);
	assert_int_equal(install_in(&endpoint, &b), 0);
	assert_true(core_policy_may_own(&view, "a.b"));
	core_policy_clear(&bus, &a);
	assert_false(core_policy_may_own(&view, "a.b"));
	core_policy_clear(&endpoint, &b);
}

static void the_bus_owner_and_the_same_user_may_talk_without_a_record(void **state)
{
	struct core_policy_view owner = on_default(&me, true), user = on_default(&me, false);

	assert_true(core_policy_may_talk(&owner, 2000, &peer));
	assert_true(core_policy_may_talk(&user, 1000, &peer));
	assert_false(core_policy_may_talk(&user, 2000, &peer));
}

static void any_owned_name_may_let_one_talk(void **state)
{
	struct core_policy_view view = on_default(&me, false);

	acquire(&peer, "a.strict");
	acquire(&peer, "a.open");
	name("a.strict");
	name("a.open");
	access_item(USER, SEE, 1000);
	assert_int_equal(install(&a), 0);
	assert_false(core_policy_may_talk(&view, 2000, &peer));
	name("a.strict");
	name("a.open");
	access_item(USER, TALK, 1000);
	assert_int_equal(install(&a), 0);
	assert_true(core_policy_may_talk(&view, 2000, &peer));
	only("a.open", WORLD, OWN, 0);
	assert_true(core_policy_may_talk(&view, 2000, &peer));
}

static void a_queued_name_lets_nobody_talk_or_see(void **state)
{
	struct core_policy_view view = on_default(&me, false), custom = on_custom(&me);

	only("a.b", WORLD, OWN, 0);
	name("a.b");
	access_item(WORLD, OWN, 0);
	assert_int_equal(install_in(&endpoint, &b), 0);
	acquire(&other, "a.b");
	acquire(&peer, "a.b");
	assert_false(core_policy_may_talk(&view, 2000, &peer));
	assert_false(core_policy_may_see(&custom, &peer));
	assert_true(core_policy_may_talk(&view, 2000, &other));
	assert_true(core_policy_may_see(&custom, &other));
	core_policy_clear(&endpoint, &b);
}

static void an_idle_activators_name_counts(void **state)
{
	struct core_policy_view view = on_default(&me, false), custom = on_custom(&me);
	struct core_name_change change;

	only("a.b", WORLD, TALK, 0);
	name("a.b");
	access_item(WORLD, SEE, 0);
	assert_int_equal(install_in(&endpoint, &b), 0);
	assert_int_equal(core_names_attach_activator(&names, &peer, "a.b", &change), 0);
	core_name_change_done(&change);
	assert_true(core_policy_may_talk(&view, 2000, &peer));
	assert_true(core_policy_may_see(&custom, &peer));
	acquire(&other, "a.b");
	assert_false(core_policy_may_talk(&view, 2000, &peer));
	assert_false(core_policy_may_see(&custom, &peer));
	core_policy_clear(&endpoint, &b);
}

static void on_a_custom_endpoint_talking_needs_a_name_the_endpoint_lets_talk_to(void **state)
{
	struct core_policy_view view = on_custom(&me);

	acquire(&peer, "a.b");
	assert_false(core_policy_may_talk(&view, 1000, &peer));
	name("a.b");
	access_item(WORLD, SEE, 0);
	assert_int_equal(install_in(&endpoint, &b), 0);
	assert_false(core_policy_may_talk(&view, 1000, &peer));
	name("a.b");
	access_item(WORLD, TALK, 0);
	assert_int_equal(install_in(&endpoint, &b), 0);
	/* the same user needs no bus record; another does */
	assert_true(core_policy_may_talk(&view, 1000, &peer));
	assert_false(core_policy_may_talk(&view, 2000, &peer));
	only("a.b", WORLD, TALK, 0);
	assert_true(core_policy_may_talk(&view, 2000, &peer));
	core_policy_clear(&endpoint, &b);
}

static void everything_is_seen_on_the_default_endpoint(void **state)
{
	struct core_policy_view view = on_default(&stranger, false);

	assert_true(core_policy_may_see_name(&view, "a.b"));
	assert_true(core_policy_may_see(&view, &peer));
}

static void a_custom_endpoint_shows_what_its_database_lists(void **state)
{
	struct core_policy_view view = on_custom(&me);

	acquire(&peer, "a.b");
	only("a.b", WORLD, OWN, 0);
	assert_false(core_policy_may_see_name(&view, "a.b"));
	assert_false(core_policy_may_see(&view, &peer));
	/* a peer without names is never visible there */
	assert_false(core_policy_may_see(&view, &other));
	name("a.b");
	access_item(USER, SEE, 1000);
	assert_int_equal(install_in(&endpoint, &b), 0);
	assert_true(core_policy_may_see_name(&view, "a.b"));
	assert_true(core_policy_may_see(&view, &peer));
	assert_false(core_policy_may_see(&view, &other));
	view = on_custom(&stranger);
	assert_false(core_policy_may_see_name(&view, "a.b"));
	core_policy_clear(&endpoint, &b);
}

/* Every combination of levels, owner and user, against the three lists of §9.2. */

static void grant(struct core_policy *policy, struct core_policy_owner *owner, int granted)
{
	name("a.b");
	if (granted != NONE)
		access_item(WORLD, granted, 0);
	assert_int_equal(install_in(policy, owner), 0);
}

static void check_decisions(int bus_level, int endpoint_level, bool custom, bool owner, bool same)
{
	struct core_policy_view view = custom ? on_custom(&me) : on_default(&me, owner);

	view.bus_owner = owner;
	assert_int_equal(core_policy_may_own(&view, "a.b"),
			 (!custom || endpoint_level >= OWN) && (owner || bus_level >= OWN));
	assert_int_equal(core_policy_may_talk(&view, same ? 1000 : 2000, &peer),
			 (!custom || endpoint_level >= TALK) &&
				 (owner || same || bus_level >= TALK));
	assert_int_equal(core_policy_may_see_name(&view, "a.b"), !custom || endpoint_level >= SEE);
	assert_int_equal(core_policy_may_see(&view, &peer), !custom || endpoint_level >= SEE);
}

static void decisions_in_every_combination(void **state)
{
	acquire(&peer, "a.b");
	for (int bus_level = NONE; bus_level <= OWN; bus_level++) {
		grant(&bus, &a, bus_level);
		for (int endpoint_level = NONE; endpoint_level <= OWN; endpoint_level++) {
			grant(&endpoint, &b, endpoint_level);
			for (int facts = 0; facts < 8; facts++)
				check_decisions(bus_level, endpoint_level, facts & 1, facts & 2,
						facts & 4);
		}
	}
	core_policy_clear(&endpoint, &b);
}

/* §9.1: privilege */

static void a_custom_endpoint_strips_every_privilege(void **state)
{
	assert_true(core_policy_privileged(false, true));
	assert_false(core_policy_privileged(false, false));
	assert_false(core_policy_privileged(true, true));
	assert_true(core_policy_bus_owner(false, false, 1000, 1000));
	assert_true(core_policy_bus_owner(false, true, 1000, 2000));
	assert_false(core_policy_bus_owner(false, false, 1000, 2000));
	assert_false(core_policy_bus_owner(true, true, 1000, 1000));
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
		T(own_needs_the_own_level_in_the_bus_database),
		T(the_bus_owner_owns_any_name_even_with_an_empty_record),
		T(on_a_custom_endpoint_both_databases_must_let_one_own),
		T(the_bus_owner_and_the_same_user_may_talk_without_a_record),
		T(any_owned_name_may_let_one_talk),
		T(a_queued_name_lets_nobody_talk_or_see),
		T(an_idle_activators_name_counts),
		T(on_a_custom_endpoint_talking_needs_a_name_the_endpoint_lets_talk_to),
		T(everything_is_seen_on_the_default_endpoint),
		T(a_custom_endpoint_shows_what_its_database_lists),
		T(decisions_in_every_combination),
		T(a_custom_endpoint_strips_every_privilege),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
