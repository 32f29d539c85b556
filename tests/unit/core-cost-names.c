// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names: many names, or many connections that wait for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base.h"
#include "core-cost.h"
#include "kdbus.h"
#include "limits.h"
#include "names.h"

struct world {
	struct core_names names;
	struct core_name_holder *holders;
	size_t n_holders;
};

static void world_init(struct world *world, size_t n_holders)
{
	core_names_init(&world->names);
	world->n_holders = n_holders;
	world->holders = calloc(n_holders, sizeof(*world->holders));
	assert_non_null(world->holders);
	for (size_t i = 0; i < n_holders; i++)
		core_name_holder_init(&world->holders[i], i + 1);
}

static void world_deinit(struct world *world)
{
	struct core_name_change change;

	for (size_t i = 0; i < world->n_holders; i++) {
		while (core_names_release_next(&world->names, &world->holders[i], &change))
			core_name_change_done(&change);
		core_name_holder_deinit(&world->holders[i]);
	}
	core_names_deinit(&world->names);
	free(world->holders);
}

static void acquire(struct world *world, size_t who, const char *name, u64 flags)
{
	struct core_name_change change;
	u64 return_flags;

	assert_int_equal(core_names_acquire(&world->names, &world->holders[who], name, flags,
					    &return_flags, &change),
			 0);
	core_name_change_done(&change);
}

static void release(struct world *world, size_t who, const char *name)
{
	struct core_name_change change;

	assert_int_equal(core_names_release(&world->names, &world->holders[who], name, &change), 0);
	core_name_change_done(&change);
}

static const char *name_of(size_t i)
{
	static char name[48];

	snprintf(name, sizeof(name), "com.example.n%06zu", i);
	return name;
}

/* @n names in order, the worst case of a careless tree, over as few holders as can be. */
static void fill_with_names(struct world *world, size_t n)
{
	/* The last holder is left empty. */
	world_init(world, n / CORE_CONN_MAX_NAMES + 2);
	for (size_t i = 0; i < n; i++)
		acquire(world, i / CORE_CONN_MAX_NAMES, name_of(i), 0);
}

static unsigned long steps_to_find(size_t n)
{
	unsigned long worst = 0;
	struct world world;

	fill_with_names(&world, n);
	for (size_t i = 0; i < n; i += 1 + n / 1000) {
		unsigned long before = core_steps;

		assert_non_null(core_names_find(&world.names, name_of(i)));
		cost_worst(&worst, before);
	}
	world_deinit(&world);
	return worst;
}

static unsigned long steps_to_acquire_and_release(size_t n)
{
	unsigned long worst = 0;
	struct world world;
	char name[64];

	fill_with_names(&world, n);
	for (size_t i = 0; i < n; i += 1 + n / 1000) {
		unsigned long before = core_steps;

		snprintf(name, sizeof(name), "%s.x", name_of(i));
		acquire(&world, world.n_holders - 1, name, 0);
		release(&world, world.n_holders - 1, name);
		cost_worst(&worst, before);
	}
	world_deinit(&world);
	return worst;
}

static unsigned long steps_to_leave_a_queue(size_t n)
{
	unsigned long worst = 0, before;
	struct world world;

	world_init(&world, n + 1);
	acquire(&world, n, "a.b", 0);
	for (size_t i = 0; i < n; i++) {
		before = core_steps;
		acquire(&world, i, "a.b", KDBUS_NAME_QUEUE);
		cost_worst(&worst, before);
	}
	for (size_t i = n / 2; i < n; i++) {
		before = core_steps;
		release(&world, i, "a.b");
		cost_worst(&worst, before);
	}
	world_deinit(&world);
	return worst;
}

void cost_of_names(void **state)
{
	/* A red-black tree of n nodes is at most 2 * log2(n + 1) high. */
	cost_check("finding a name", 2, 2, steps_to_find);
	/* Looked up and inserted; a holder's own 256 names are another tree. */
	cost_check("acquiring and releasing a name", 12, 4, steps_to_acquire_and_release);
	cost_check("queueing and leaving", 8, 0, steps_to_leave_a_queue);
}
