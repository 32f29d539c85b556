// SPDX-License-Identifier: LGPL-2.1-or-later
/* Every allocation of an upload fails once: nothing leaks, nothing changes (policy.h, 5, 6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base.h"
#include "failalloc.h"
#include "item.h"
#include "kdbus.h"
#include "policy.h"

struct world {
	struct core_policy policy;
	struct core_policy_owner owner;
};

static const struct core_cred cred = { .euid = 1 };
static u64 buffer[128];

/* Two names, the first with a single access entry. */
static int parse(const char *first, const char *second, struct core_policy_set **ret_set)
{
	struct kdbus_policy_access access = { .type = KDBUS_POLICY_ACCESS_WORLD,
					      .access = KDBUS_POLICY_TALK };
	struct core_writer items = CORE_WRITER(buffer, sizeof(buffer));
	size_t size;

	core_put_str(&items, KDBUS_ITEM_NAME, first);
	core_put(&items, KDBUS_ITEM_POLICY_ACCESS, &access, sizeof(access));
	core_put_str(&items, KDBUS_ITEM_NAME, second);
	assert_int_equal(core_writer_end(&items, &size), 0);
	return core_policy_parse((void *)buffer, size, 0, NULL, NULL, ret_set);
}

static void *setup(void)
{
	struct world *world = malloc(sizeof(*world));
	struct core_policy_set *set;

	assert_non_null(world);
	core_policy_init(&world->policy);
	core_policy_owner_init(&world->owner);
	assert_int_equal(parse("a.old", "a.kept", &set), 0);
	assert_int_equal(core_policy_replace(&world->policy, &world->owner, set), 0);
	return world;
}

static int act(void *state)
{
	struct world *world = state;
	struct core_policy_set *set;
	unsigned long calls;
	int r;

	r = parse("a.kept", "a.new", &set);
	if (r < 0)
		return r;
	calls = failalloc_calls();
	r = core_policy_replace(&world->policy, &world->owner, set);
	assert_int_equal(failalloc_calls(), calls);
	return r;
}

static void dump(void *state, FILE *out)
{
	static const char *const names[] = { "a.old", "a.kept", "a.new" };
	struct world *world = state;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		fprintf(out, "%s %d\n", names[i],
			core_policy_level(&world->policy, &cred, names[i]));
}

static void teardown(void *state)
{
	struct world *world = state;
	unsigned long calls = failalloc_calls();

	core_policy_clear(&world->policy, &world->owner);
	assert_int_equal(failalloc_calls(), calls);
	free(world);
}

static void an_upload_survives_lack_of_memory(void **state)
{
	static const struct failalloc_scenario scenario = {
		.setup = setup,
		.act = act,
		.dump = dump,
		.teardown = teardown,
	};

	/* The set and its two records. */
	assert_int_equal(failalloc_each(&scenario), 3);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_upload_survives_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
