// SPDX-License-Identifier: LGPL-2.1-or-later
/* The user-space stand-ins for <linux/rbtree.h>, against an array of flags. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base.h"
#include "prop.h"

#define N_KEYS 64

enum { INSERT, ERASE, REPLACE };

static const char *const kinds[] = { "INSERT", "ERASE", "REPLACE" };

struct item {
	struct rb_node node;
	unsigned int key;
};

struct world {
	struct rb_root root;
	/* Two items per key, so that one can take the place of the other. */
	struct item items[N_KEYS][2];
	struct item *present[N_KEYS];
};

static void *setup(void)
{
	struct world *world = calloc(1, sizeof(*world));

	if (!world)
		abort();
	world->root = RB_ROOT;
	for (unsigned int i = 0; i < N_KEYS; i++)
		for (int k = 0; k < 2; k++) {
			world->items[i][k].key = i;
			RB_CLEAR_NODE(&world->items[i][k].node);
		}
	return world;
}

static bool teardown(void *state, struct prop_report *report)
{
	free(state);
	return true;
}

static void insert(struct rb_root *root, struct item *item)
{
	struct rb_node **link = &root->rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		if (item->key < rb_entry(parent, struct item, node)->key)
			link = &parent->rb_left;
		else
			link = &parent->rb_right;
	}
	rb_link_node(&item->node, parent, link);
	rb_insert_color(&item->node, root);
}

static void apply(struct world *world, unsigned int kind, unsigned int key)
{
	struct item **item = &world->present[key];
	struct item *other;

	if (kind == INSERT && !*item) {
		*item = &world->items[key][0];
		insert(&world->root, *item);
	} else if (kind == ERASE && *item) {
		rb_erase(&(*item)->node, &world->root);
		RB_CLEAR_NODE(&(*item)->node);
		*item = NULL;
	} else if (kind == REPLACE && *item) {
		other = &world->items[key][*item == &world->items[key][0]];
		rb_replace_node(&(*item)->node, &other->node, &world->root);
		RB_CLEAR_NODE(&(*item)->node);
		*item = other;
	}
}

/* Number of black nodes on every way down, or 0 if the rules are broken. */
static int black_height(const struct rb_node *node)
{
	int left, right;

	if (!node)
		return 1;
	if ((node->rb_left && rb_parent(node->rb_left) != node) ||
	    (node->rb_right && rb_parent(node->rb_right) != node))
		return 0;
	if (node->rb_red && ((node->rb_left && node->rb_left->rb_red) ||
			     (node->rb_right && node->rb_right->rb_red)))
		return 0;
	left = black_height(node->rb_left);
	right = black_height(node->rb_right);
	if (!left || left != right)
		return 0;
	return left + !node->rb_red;
}

static bool same_keys(struct world *world, struct prop_report *report)
{
	struct rb_node *forward = rb_first(&world->root);
	struct rb_node *backward = rb_last(&world->root);

	for (int i = 0; i < N_KEYS; i++) {
		if (!world->present[i])
			continue;
		if (forward != &world->present[i]->node)
			return prop_differ(report, "walking up misses key %d", i);
		forward = rb_next(forward);
	}
	for (int i = N_KEYS - 1; i >= 0; i--) {
		if (!world->present[i])
			continue;
		if (backward != &world->present[i]->node)
			return prop_differ(report, "walking down misses key %d", i);
		backward = rb_prev(backward);
	}
	return (!forward && !backward) || prop_differ(report, "more nodes than keys");
}

static bool step(void *state, const struct prop_op *op, struct prop_report *report)
{
	struct world *world = state;
	struct rb_node *root;

	apply(world, op->kind, op->arg[0] % N_KEYS);
	root = world->root.rb_node;
	if (root && (root->rb_red || rb_parent(root)))
		return prop_differ(report, "the root is red or has a parent");
	if (!black_height(root))
		return prop_differ(report, "not a red-black tree");
	for (int i = 0; i < N_KEYS; i++)
		for (int k = 0; k < 2; k++)
			if (RB_EMPTY_NODE(&world->items[i][k].node) !=
			    (world->present[i] != &world->items[i][k]))
				return prop_differ(report, "key %d: RB_EMPTY_NODE", i);
	return same_keys(world, report);
}

static void generate(struct prop_rng *rng, struct prop_op *op)
{
	op->kind = prop_one_in(rng, 8) ? REPLACE : prop_below(rng, 2);
	op->arg[0] = prop_below(rng, N_KEYS);
}

static const struct prop_spec rbtree_spec = {
	.symbol = "rbtree_spec",
	.kinds = kinds,
	.n_kinds = ARRAY_SIZE(kinds),
	.seeds = 100,
	.length = 400,
	.generate = generate,
	.setup = setup,
	.step = step,
	.teardown = teardown,
};

static void the_tree_stays_balanced_and_ordered(void **state)
{
	prop_run(&rbtree_spec);
}

static void an_empty_tree_has_no_nodes(void **state)
{
	struct rb_root root = RB_ROOT;

	assert_true(RB_EMPTY_ROOT(&root));
	assert_null(rb_first(&root));
	assert_null(rb_last(&root));
}

/* In ascending order, the worst case of an unbalanced tree. */
static void insertion_in_order_keeps_the_tree_low(void **state)
{
	enum { N = 4095 };
	struct item *items = calloc(N, sizeof(*items));
	struct rb_root root = RB_ROOT;

	assert_non_null(items);
	for (unsigned int i = 0; i < N; i++) {
		items[i].key = i;
		insert(&root, &items[i]);
	}
	/* 2^h - 1 <= N: at most 12 black nodes below the root, the NULL one included. */
	assert_in_range(black_height(root.rb_node), 2, 13);
	free(items);
}

static void rb_entry_safe_takes_null(void **state)
{
	struct rb_node *none = NULL;
	struct item item;

	assert_null(rb_entry_safe(none, struct item, node));
	assert_ptr_equal(rb_entry_safe(&item.node, struct item, node), &item);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tree_stays_balanced_and_ordered),
		cmocka_unit_test(an_empty_tree_has_no_nodes),
		cmocka_unit_test(insertion_in_order_keeps_the_tree_low),
		cmocka_unit_test(rb_entry_safe_takes_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
