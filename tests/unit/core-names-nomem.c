// SPDX-License-Identifier: LGPL-2.1-or-later
/* Every allocation of the name registry fails once: nothing leaks, nothing changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base.h"
#include "failalloc.h"
#include "kdbus.h"
#include "names.h"

#define N_HOLDERS 3

struct world {
	struct core_names names;
	struct core_name_holder holders[N_HOLDERS];
};

static int acquire(struct world *world, int who, const char *name, u64 flags)
{
	struct core_name_change change;
	u64 return_flags;
	int r = core_names_acquire(&world->names, &world->holders[who], name, flags, &return_flags,
				   &change);

	if (!r)
		core_name_change_done(&change);
	return r;
}

static int attach(struct world *world, int who, const char *name)
{
	struct core_name_change change;
	int r = core_names_attach_activator(&world->names, &world->holders[who], name, &change);

	if (!r)
		core_name_change_done(&change);
	return r;
}

/* Holder 0 owns two names, holder 1 activates a third; holder 2 is nobody yet. */
static void *setup(void)
{
	struct world *world = malloc(sizeof(*world));

	assert_non_null(world);
	core_names_init(&world->names);
	for (int i = 0; i < N_HOLDERS; i++)
		core_name_holder_init(&world->holders[i], i + 1);
	assert_int_equal(acquire(world, 0, "a.fixed", 0), 0);
	assert_int_equal(acquire(world, 0, "a.loose", KDBUS_NAME_ALLOW_REPLACEMENT), 0);
	assert_int_equal(attach(world, 1, "a.lazy"), 0);
	return world;
}

static void dump_name(const struct core_names *names, const char *string, FILE *out)
{
	const struct core_name *name = core_names_find(names, string);
	struct core_name_record *record;

	fprintf(out, "%s:", string);
	if (name) {
		fprintf(out, " id %llu", name->id);
		core_name_for_each_queued(record, name)
			fprintf(out, " %llu/%llx", record->holder->id, record->flags);
		if (name->activator)
			fprintf(out, " activator %llu/%llx", name->activator->holder->id,
				name->activator->flags);
	}
	fprintf(out, "\n");
}

static void dump(void *state, FILE *out)
{
	static const char *const strings[] = { "a.fixed", "a.loose", "a.lazy", "a.fresh" };
	struct world *world = state;
	struct core_name_record *record;

	fprintf(out, "%zu names, last id %llu\n", world->names.count, world->names.last_id);
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		dump_name(&world->names, strings[i], out);
	for (int i = 0; i < N_HOLDERS; i++) {
		fprintf(out, "holder %d: %u", i, world->holders[i].count);
		core_name_holder_for_each(record, &world->holders[i])
			fprintf(out, " %s/%llx", record->name->name, record->flags);
		fprintf(out, "\n");
	}
}

static void teardown(void *state)
{
	struct world *world = state;
	struct core_name_change change;

	for (int i = 0; i < N_HOLDERS; i++) {
		while (core_names_release_next(&world->names, &world->holders[i], &change))
			core_name_change_done(&change);
		core_name_holder_deinit(&world->holders[i]);
	}
	core_names_deinit(&world->names);
	free(world);
}

static void run(int (*act)(void *), unsigned long allocations)
{
	struct failalloc_scenario scenario = { setup, act, dump, teardown };

	assert_int_equal(failalloc_each(&scenario), allocations);
}

static int acquire_free_name(void *state)
{
	return acquire(state, 2, "a.fresh", 0);
}

static void row_1_survives(void **state)
{
	run(acquire_free_name, 2);
}

static int acquire_from_activator(void *state)
{
	return acquire(state, 2, "a.lazy", 0);
}

static void row_2_survives(void **state)
{
	run(acquire_from_activator, 1);
}

static int update_flags(void *state)
{
	return acquire(state, 0, "a.fixed", KDBUS_NAME_ALLOW_REPLACEMENT);
}

static void row_3_allocates_nothing(void **state)
{
	run(update_flags, 0);
}

static int replace_owner(void *state)
{
	return acquire(state, 2, "a.loose", KDBUS_NAME_REPLACE_EXISTING);
}

static void row_4_survives(void **state)
{
	run(replace_owner, 1);
}

static int queue_up(void *state)
{
	return acquire(state, 2, "a.fixed", KDBUS_NAME_QUEUE);
}

static void row_5_survives(void **state)
{
	run(queue_up, 1);
}

static int attach_to_free_name(void *state)
{
	return attach(state, 2, "a.fresh");
}

static void activator_of_a_free_name_survives(void **state)
{
	run(attach_to_free_name, 2);
}

static int attach_to_owned_name(void *state)
{
	return attach(state, 2, "a.fixed");
}

static void activator_of_an_owned_name_survives(void **state)
{
	run(attach_to_owned_name, 1);
}

static int release_all(void *state)
{
	struct world *world = state;
	struct core_name_change change;

	for (int i = 0; i < 2; i++)
		while (core_names_release_next(&world->names, &world->holders[i], &change))
			core_name_change_done(&change);
	return 0;
}

static void release_allocates_nothing(void **state)
{
	run(release_all, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(row_1_survives),
		cmocka_unit_test(row_2_survives),
		cmocka_unit_test(row_3_allocates_nothing),
		cmocka_unit_test(row_4_survives),
		cmocka_unit_test(row_5_survives),
		cmocka_unit_test(activator_of_a_free_name_survives),
		cmocka_unit_test(activator_of_an_owned_name_survives),
		cmocka_unit_test(release_allocates_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
