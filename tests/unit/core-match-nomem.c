// SPDX-License-Identifier: LGPL-2.1-or-later
/* Every allocation of MATCH_ADD fails once: nothing leaks, nothing changes (match.h, 7). */
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
#include "match-entry.h"
#include "match-index.h"
#include "match.h"

#define BLOOM	    64
#define GENERATIONS 5

struct world {
	struct core_match_index index;
	struct core_match_set set;
};

static u64 buffer[512];

/* A different bit per generation, the first of them @bit. */
static int add_mask(struct world *world, u64 cookie, u64 flags, size_t bit)
{
	struct core_writer items = CORE_WRITER(buffer, sizeof(buffer));
	u64 *mask = core_writer_item(&items, KDBUS_ITEM_BLOOM_MASK, GENERATIONS * BLOOM);
	size_t size;

	memset(mask, 0, GENERATIONS * BLOOM);
	for (size_t i = 0; i < GENERATIONS; i++)
		mask[i * BLOOM / 8] = 1ULL << (i < 3 ? bit + i : bit + 3);
	assert_int_equal(core_writer_end(&items, &size), 0);
	return core_match_add(&world->set, cookie, flags, (void *)buffer, size);
}

static int add_string(struct world *world, u64 type, const char *name)
{
	struct core_writer items = CORE_WRITER(buffer, sizeof(buffer));
	size_t head = type == KDBUS_ITEM_NAME ? 0 : 32, size;
	char *payload = core_writer_item(&items, type, head + strlen(name) + 1);

	memset(payload, 0xff, head);
	memcpy(payload + head, name, strlen(name) + 1);
	assert_int_equal(core_writer_end(&items, &size), 0);
	return core_match_add(&world->set, 1, 0, (void *)buffer, size);
}

static void *setup(void)
{
	struct world *world = malloc(sizeof(*world));

	assert_non_null(world);
	core_match_index_init(&world->index, BLOOM);
	core_match_set_init(&world->set, &world->index);
	assert_int_equal(add_mask(world, 1, 0, 8), 0);
	assert_int_equal(add_mask(world, 2, 0, 10), 0);
	return world;
}

/* All buckets with the cookies in them, and all entries. */
static void dump(void *state, FILE *out)
{
	struct world *world = state;
	struct core_match_entry *entry;

	fprintf(out, "%u entries:", world->set.n_entries);
	list_for_each_entry(entry, &world->set.entries, link)
		fprintf(out, " %llu/%u", entry->cookie, entry->n_slots);
	for (int kind = 0; kind < CORE_MATCH_KINDS; kind++)
		for (struct rb_node *node = rb_first(&world->index.trees[kind]); node;
		     node = rb_next(node)) {
			struct core_match_bucket *bucket =
				rb_entry(node, struct core_match_bucket, node);
			struct core_match_slot *slot;

			fprintf(out, "\n%d %llu %llu %s %zu:", kind, bucket->key.a, bucket->key.b,
				bucket->key.name ? bucket->key.name : "-", bucket->n_slots);
			list_for_each_entry(slot, &bucket->slots, link)
				fprintf(out, " %llu", slot->entry->cookie);
		}
	fprintf(out, "\n");
}

static void teardown(void *state)
{
	struct world *world = state;

	core_match_clear(&world->set);
	free(world);
}

static int act_new_buckets(void *state)
{
	return add_mask(state, 3, 0, 20);
}

static int act_some_new_buckets(void *state)
{
	return add_mask(state, 3, 0, 9);
}

static int act_replace(void *state)
{
	return add_mask(state, 1, KDBUS_MATCH_REPLACE, 20);
}

static int act_name(void *state)
{
	return add_string(state, KDBUS_ITEM_NAME, "a.b");
}

static int act_note(void *state)
{
	return add_string(state, KDBUS_ITEM_NAME_ADD, "a.b");
}

static unsigned long each(int (*act)(void *state))
{
	const struct failalloc_scenario scenario = {
		.setup = setup,
		.act = act,
		.dump = dump,
		.teardown = teardown,
	};

	return failalloc_each(&scenario);
}

/* The entry, and a bucket for each key that has none. */
static void adding_survives_lack_of_memory(void **state)
{
	assert_int_equal(each(act_new_buckets), 5);
	assert_true(each(act_some_new_buckets) > 1);
	assert_int_equal(each(act_name), 2);
	assert_int_equal(each(act_note), 2);
}

static void replacing_survives_lack_of_memory(void **state)
{
	assert_int_equal(each(act_replace), 5);
}

static void count_visit(struct core_match_set *set, void *data)
{
	(*(int *)data)++;
}

static void searching_testing_and_removing_allocate_nothing(void **state)
{
	u64 filter[BLOOM / 8] = { ~0ULL };
	const struct core_signal signal = {
		.user = { .dst_id = KDBUS_DST_ID_BROADCAST, .filter = filter },
	};
	struct world *world = setup();
	unsigned long calls = failalloc_calls();
	int visits = 0;

	core_match_find(&world->index, &signal, count_visit, &visits);
	assert_int_equal(visits, 1);
	assert_true(core_match_test(&world->set, &signal));
	assert_int_equal(core_match_remove(&world->set, 1), 0);
	core_match_clear(&world->set);
	assert_int_equal(failalloc_calls(), calls);
	teardown(world);
	assert_int_equal(failalloc_live(), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(adding_survives_lack_of_memory),
		cmocka_unit_test(replacing_survives_lack_of_memory),
		cmocka_unit_test(searching_testing_and_removing_allocate_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
