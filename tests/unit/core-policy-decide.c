// SPDX-License-Identifier: LGPL-2.1-or-later
/* Policy decisions: who may own, talk and see (spec §9.2). */
#include "core-policy-fixture.h"

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
