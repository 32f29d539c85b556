// SPDX-License-Identifier: LGPL-2.1-or-later
/* The user-space stand-ins for <linux/list.h>, against arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base.h"
#include "prop.h"

#define N_ITEMS 16

enum { ADD, ADD_TAIL, DEL, MOVE, MOVE_TAIL, SPLICE };

static const char *const kinds[] = { "ADD", "ADD_TAIL", "DEL", "MOVE", "MOVE_TAIL", "SPLICE" };

struct item {
	int index;
	struct list_head entry;
};

/* Two lists, and the same as arrays of indices. */
struct world {
	struct item items[N_ITEMS];
	struct list_head lists[2];
	int order[2][N_ITEMS];
	int n[2];
};

static void *setup(void)
{
	struct world *world = calloc(1, sizeof(*world));

	if (!world)
		abort();
	for (int i = 0; i < N_ITEMS; i++) {
		world->items[i].index = i;
		INIT_LIST_HEAD(&world->items[i].entry);
	}
	INIT_LIST_HEAD(&world->lists[0]);
	INIT_LIST_HEAD(&world->lists[1]);
	return world;
}

static bool teardown(void *state, struct prop_report *report)
{
	free(state);
	return true;
}

static bool model_contains(const struct world *world, int which, int index)
{
	for (int i = 0; i < world->n[which]; i++)
		if (world->order[which][i] == index)
			return true;
	return false;
}

static void model_remove(struct world *world, int index)
{
	for (int which = 0; which < 2; which++) {
		int n = 0;

		for (int i = 0; i < world->n[which]; i++)
			if (world->order[which][i] != index)
				world->order[which][n++] = world->order[which][i];
		world->n[which] = n;
	}
}

static void model_add(struct world *world, int which, int index, bool tail)
{
	int at = tail ? world->n[which] : 0;

	memmove(&world->order[which][at + 1], &world->order[which][at],
		(world->n[which] - at) * sizeof(int));
	world->order[which][at] = index;
	world->n[which]++;
}

static void splice(struct world *world, int from, int to)
{
	list_splice_tail_init(&world->lists[from], &world->lists[to]);
	for (int i = 0; i < world->n[from]; i++)
		model_add(world, to, world->order[from][i], true);
	world->n[from] = 0;
}

static void apply(struct world *world, unsigned int kind, int which, int index)
{
	struct list_head *entry = &world->items[index].entry, *list = &world->lists[which];
	bool linked = model_contains(world, 0, index) || model_contains(world, 1, index);

	if (kind == SPLICE) {
		splice(world, which, !which);
	} else if (kind == DEL) {
		list_del_init(entry);
		model_remove(world, index);
	} else if (kind == MOVE || kind == MOVE_TAIL) {
		kind == MOVE ? list_move(entry, list) : list_move_tail(entry, list);
		model_remove(world, index);
		model_add(world, which, index, kind == MOVE_TAIL);
	} else if (!linked) {
		kind == ADD ? list_add(entry, list) : list_add_tail(entry, list);
		model_add(world, which, index, kind == ADD_TAIL);
	}
}

static bool same_list(struct world *world, int which, struct prop_report *report)
{
	struct list_head *list = &world->lists[which];
	int *order = world->order[which], n = world->n[which], at = 0;
	struct item *item;

	list_for_each_entry(item, list, entry) {
		if (at == n || item->index != order[at++])
			return prop_differ(report, "list %d differs at %d", which, at);
		if (list_is_last(&item->entry, list) != (at == n))
			return prop_differ(report, "list %d: list_is_last at %d", which, at);
	}
	if (at != n)
		return prop_differ(report, "list %d is too short", which);
	list_for_each_entry_reverse(item, list, entry)
		if (item->index != order[--at])
			return prop_differ(report, "list %d differs backwards at %d", which, at);
	if (list_empty(list) != (n == 0) || list_is_singular(list) != (n == 1))
		return prop_differ(report, "list %d: list_empty or list_is_singular", which);
	item = list_first_entry_or_null(list, struct item, entry);
	if (n ? item != list_first_entry(list, struct item, entry) ||
			item->index != order[0] ||
			list_last_entry(list, struct item, entry)->index != order[n - 1] :
		item != NULL)
		return prop_differ(report, "list %d: first or last entry", which);
	return true;
}

static bool step(void *state, const struct prop_op *op, struct prop_report *report)
{
	struct world *world = state;

	apply(world, op->kind, op->arg[0] % 2, op->arg[1] % N_ITEMS);
	return same_list(world, 0, report) && same_list(world, 1, report);
}

static void generate(struct prop_rng *rng, struct prop_op *op)
{
	op->kind = prop_one_in(rng, 20) ? SPLICE : prop_below(rng, SPLICE);
	op->arg[0] = prop_below(rng, 2);
	op->arg[1] = prop_below(rng, N_ITEMS);
}

static const struct prop_spec list_spec = {
	.symbol = "list_spec",
	.kinds = kinds,
	.n_kinds = ARRAY_SIZE(kinds),
	.seeds = 100,
	.length = 400,
	.generate = generate,
	.setup = setup,
	.step = step,
	.teardown = teardown,
};

static void lists_keep_their_order(void **state)
{
	prop_run(&list_spec);
}

static void walking_safely_survives_deletion(void **state)
{
	struct item items[4];
	struct item *item, *next;
	LIST_HEAD(list);
	int seen = 0;

	for (int i = 0; i < 4; i++) {
		items[i].index = i;
		list_add_tail(&items[i].entry, &list);
	}
	list_for_each_entry_safe(item, next, &list, entry) {
		assert_int_equal(item->index, seen++);
		list_del(&item->entry);
	}
	assert_int_equal(seen, 4);
	assert_true(list_empty(&list));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_keep_their_order),
		cmocka_unit_test(walking_safely_survives_deletion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
