// SPDX-License-Identifier: LGPL-2.1-or-later
/* Matches: a broadcast among many entries that cannot match it (match.h, invariant 6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base.h"
#include "core-cost.h"
#include "item.h"
#include "kdbus.h"
#include "limits.h"
#include "match.h"
#include "names.h"

#define BLOOM	    64
#define BITS	    (BLOOM * 8)
#define ANY	    KDBUS_MATCH_ID_ANY
#define SENDER	    1000000
/* What a D-Bus signal sets: some properties, eight bits each. */
#define FILTER_BITS 80

struct world {
	struct core_match_index index;
	struct core_match_set *sets;
	size_t n_sets, n_entries;
	struct core_names names;
	struct core_name_holder sender;
	u64 filter[BLOOM / 8];
};

static u64 buffer[1024];
static struct core_writer items;
static size_t visits;

static void world_init(struct world *world, size_t n_entries)
{
	memset(world, 0, sizeof(*world));
	core_match_index_init(&world->index, BLOOM);
	world->n_sets = n_entries / 10 + 1;
	world->sets = calloc(world->n_sets, sizeof(*world->sets));
	assert_non_null(world->sets);
	for (size_t i = 0; i < world->n_sets; i++)
		core_match_set_init(&world->sets[i], &world->index);
	core_names_init(&world->names);
	core_name_holder_init(&world->sender, SENDER);
	items = CORE_WRITER(buffer, sizeof(buffer));
	visits = 0;
}

static void world_deinit(struct world *world)
{
	struct core_name_change change;

	for (size_t i = 0; i < world->n_sets; i++)
		core_match_clear(&world->sets[i]);
	while (core_names_release_next(&world->names, &world->sender, &change))
		core_name_change_done(&change);
	core_name_holder_deinit(&world->sender);
	core_names_deinit(&world->names);
	free(world->sets);
}

static void set_bit(u64 *words, size_t bit)
{
	words[bit / 64] |= 1ULL << (bit % 64);
}

/* The rules put into items become an entry; ten entries to a set. */
static void add(struct world *world)
{
	struct core_match_set *set = &world->sets[world->n_entries++ / 10];
	size_t size;

	assert_int_equal(core_writer_end(&items, &size), 0);
	items = CORE_WRITER(buffer, sizeof(buffer));
	assert_int_equal(core_match_add(set, 1, 0, (void *)buffer, size), 0);
}

static void rule_id_change(u64 type, u64 id)
{
	struct kdbus_notify_id_change change = { .id = id };

	core_put(&items, type, &change, sizeof(change));
}

static void rule_name_change(u64 type, u64 old_id, u64 new_id, const char *name)
{
	size_t size = strlen(name) + 1;
	struct kdbus_notify_name_change change = { .old_id = { .id = old_id },
						   .new_id = { .id = new_id } };
	char *payload = core_writer_item(&items, type, sizeof(change) + size);

	memcpy(payload, &change, sizeof(change));
	memcpy(payload + sizeof(change), name, size);
}

static void rule_bit(size_t bit)
{
	u64 mask[BLOOM / 8] = { 0 };

	set_bit(mask, bit);
	core_put(&items, KDBUS_ITEM_BLOOM_MASK, mask, sizeof(mask));
}

static void visit(struct core_match_set *set, void *data)
{
	visits++;
}

static unsigned long search(struct world *world, const struct core_signal *signal)
{
	unsigned long before = core_steps;

	core_match_find(&world->index, signal, visit, NULL);
	return core_steps - before;
}

static unsigned long broadcast(struct world *world)
{
	struct core_signal signal = { .user = { .src_id = SENDER,
						.dst_id = ANY,
						.names = &world->sender,
						.filter = world->filter } };

	return search(world, &signal);
}

static void acquire(struct world *world, const char *name)
{
	struct core_name_change change;
	u64 flags;

	assert_int_equal(
		core_names_acquire(&world->names, &world->sender, name, 0, &flags, &change), 0);
	core_name_change_done(&change);
}

static unsigned long other_senders(size_t n)
{
	struct world world;
	unsigned long steps;

	world_init(&world, n);
	for (size_t i = 0; i < n; i++) {
		core_put_u64(&items, KDBUS_ITEM_ID, i + 1);
		add(&world);
	}
	steps = broadcast(&world);
	assert_int_equal(visits, 0);
	world_deinit(&world);
	return steps;
}

static unsigned long other_names(size_t n)
{
	struct world world;
	unsigned long steps;
	char name[64];

	world_init(&world, n);
	acquire(&world, "com.example.sender");
	acquire(&world, "com.example.a-name-before-all");
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "com.example.n%zu", i);
		core_put_str(&items, KDBUS_ITEM_NAME, name);
		add(&world);
	}
	steps = broadcast(&world);
	assert_int_equal(visits, 0);
	world_deinit(&world);
	return steps;
}

/* Filter and masks take turns in the order of bits: the most leaps there can be. */
static unsigned long other_bits(size_t n)
{
	struct world world;
	unsigned long steps;

	world_init(&world, n);
	for (size_t i = 0; i < FILTER_BITS; i++)
		set_bit(world.filter, 6 * i);
	for (size_t i = 0; i < n; i++) {
		rule_bit(6 * (i % FILTER_BITS) + 3);
		add(&world);
	}
	steps = broadcast(&world);
	assert_int_equal(visits, 0);
	world_deinit(&world);
	return steps;
}

/* Entries that no broadcast can satisfy. */
static unsigned long dead_entries(size_t n)
{
	struct world world;
	unsigned long steps;

	world_init(&world, n);
	for (size_t i = 0; i < n; i++) {
		if (i % 2)
			rule_id_change(KDBUS_ITEM_ID_ADD, ANY);
		else
			core_put_u64(&items, KDBUS_ITEM_DST_ID, i);
		core_put_u64(&items, KDBUS_ITEM_ID, ANY);
		add(&world);
	}
	core_put_u64(&items, KDBUS_ITEM_ID, ANY);
	add(&world);
	steps = broadcast(&world);
	assert_int_equal(visits, 1);
	world_deinit(&world);
	return steps;
}

/* Rules for notifications when a user signal comes, and the other way round. */
static unsigned long other_group(size_t n)
{
	struct core_signal signal = { .type = KDBUS_ITEM_ID_ADD, .note = { .id = 1 } };
	struct world world;
	unsigned long steps;

	world_init(&world, n);
	for (size_t i = 0; i < n / 2; i++) {
		rule_id_change(KDBUS_ITEM_ID_REMOVE, ANY);
		add(&world);
		core_put_u64(&items, KDBUS_ITEM_ID, i);
		add(&world);
	}
	steps = broadcast(&world);
	steps = max(steps, search(&world, &signal));
	assert_int_equal(visits, 0);
	world_deinit(&world);
	return steps;
}

static unsigned long other_notes(size_t n)
{
	struct core_signal id_add = { .type = KDBUS_ITEM_ID_ADD, .note = { .id = SENDER } };
	struct core_signal name_add = { .type = KDBUS_ITEM_NAME_ADD,
					.note = { .new_id = SENDER, .name = "com.example.x" } };
	struct world world;
	unsigned long steps;
	char name[64];

	world_init(&world, 4 * n);
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "com.example.n%zu", i);
		rule_name_change(KDBUS_ITEM_NAME_ADD, 0, ANY, name);
		add(&world);
		rule_name_change(KDBUS_ITEM_NAME_CHANGE, ANY, ANY, "com.example.x");
		add(&world);
		rule_id_change(KDBUS_ITEM_ID_ADD, i);
		add(&world);
		rule_id_change(KDBUS_ITEM_ID_REMOVE, SENDER);
		add(&world);
	}
	steps = search(&world, &id_add);
	steps = max(steps, search(&world, &name_add));
	assert_int_equal(visits, 0);
	world_deinit(&world);
	return steps;
}

/* One receiver among many that want something else: by id, name, mask. */
static unsigned long one_receiver(size_t n)
{
	struct world world;
	unsigned long steps;
	char name[64];

	world_init(&world, n);
	acquire(&world, "com.example.sender");
	for (size_t i = 0; i < FILTER_BITS; i++)
		set_bit(world.filter, i);
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "com.example.n%zu", i);
		rule_bit(FILTER_BITS + i % (BITS - FILTER_BITS));
		if (i % 3 == 1)
			core_put_u64(&items, KDBUS_ITEM_ID, i + 1);
		if (i % 3 == 2)
			core_put_str(&items, KDBUS_ITEM_NAME, name);
		add(&world);
	}
	rule_bit(7);
	core_put_str(&items, KDBUS_ITEM_NAME, "com.example.sender");
	add(&world);
	steps = broadcast(&world);
	assert_int_equal(visits, 1);
	world_deinit(&world);
	return steps;
}

/* A mask of all ones, in every generation there is room for. */
static unsigned long adding(size_t n)
{
	struct world world;
	unsigned long before, worst = 0;

	world_init(&world, n + 1);
	for (size_t i = 0; i < n; i++) {
		rule_bit(i % BITS);
		core_put_u64(&items, KDBUS_ITEM_ID, i % 2 ? ANY : i + 1);
		add(&world);
	}
	memset(core_writer_item(&items, KDBUS_ITEM_BLOOM_MASK, 12 * BLOOM), 0xff, 12 * BLOOM);
	before = core_steps;
	add(&world);
	cost_worst(&worst, before);
	world_deinit(&world);
	return worst;
}

void cost_of_matches(void **state)
{
	cost_check("broadcast, rules for other senders", 4, 2, other_senders);
	cost_check("broadcast, rules for other names", 8, 3, other_names);
	cost_check("broadcast, masks of other bits", 4, FILTER_BITS, other_bits);
	cost_check("broadcast, dead entries", 4, 0, dead_entries);
	cost_check("signal of the other group", 4, 2, other_group);
	cost_check("notification, rules for others", 8, 4, other_notes);
	cost_check("broadcast, one receiver among many", 8, 5, one_receiver);
	/* 64 bits compete in each of four generations. */
	cost_check("adding a mask of all ones", 64, 4 * 64, adding);
}
