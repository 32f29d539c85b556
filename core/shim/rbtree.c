// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The textbook red-black tree: a red node has black children, and every path
 * from the root down passes the same number of black nodes.
 */
#include "rbtree.h"

static bool is_red(const struct rb_node *node)
{
	return node && node->rb_red;
}

/* Put @fresh (or nothing) where @old hangs below its parent. */
static void replace_child(struct rb_root *root, struct rb_node *old, struct rb_node *fresh)
{
	struct rb_node *parent = old->rb_parent;

	if (!parent)
		root->rb_node = fresh;
	else if (parent->rb_left == old)
		parent->rb_left = fresh;
	else
		parent->rb_right = fresh;
}

static void rotate_left(struct rb_root *root, struct rb_node *node)
{
	struct rb_node *up = node->rb_right;

	node->rb_right = up->rb_left;
	if (up->rb_left)
		up->rb_left->rb_parent = node;
	replace_child(root, node, up);
	up->rb_parent = node->rb_parent;
	up->rb_left = node;
	node->rb_parent = up;
}

static void rotate_right(struct rb_root *root, struct rb_node *node)
{
	struct rb_node *up = node->rb_left;

	node->rb_left = up->rb_right;
	if (up->rb_right)
		up->rb_right->rb_parent = node;
	replace_child(root, node, up);
	up->rb_parent = node->rb_parent;
	up->rb_right = node;
	node->rb_parent = up;
}

/* The uncle is black: at most two rotations below @grand end it. */
static void insert_rotate(struct rb_root *root, struct rb_node *node, struct rb_node *parent,
			  struct rb_node *grand)
{
	if (parent == grand->rb_left) {
		if (node == parent->rb_right) {
			rotate_left(root, parent);
			parent = node;
		}
		rotate_right(root, grand);
	} else {
		if (node == parent->rb_left) {
			rotate_right(root, parent);
			parent = node;
		}
		rotate_left(root, grand);
	}
	parent->rb_red = false;
	grand->rb_red = true;
}

void rb_insert_color(struct rb_node *node, struct rb_root *root)
{
	struct rb_node *parent, *grand, *uncle;

	while ((parent = node->rb_parent) && parent->rb_red) {
		grand = parent->rb_parent;
		uncle = parent == grand->rb_left ? grand->rb_right : grand->rb_left;
		if (!is_red(uncle)) {
			insert_rotate(root, node, parent, grand);
			break;
		}
		parent->rb_red = false;
		uncle->rb_red = false;
		grand->rb_red = true;
		node = grand;
	}
	root->rb_node->rb_red = false;
}

/*
 * @node (may be NULL) below @parent is one black short. One round either ends
 * the search or moves the shortage one level up; returns whether to go on.
 */
static bool erase_step(struct rb_root *root, struct rb_node *node, struct rb_node *parent)
{
	bool left = parent->rb_left == node;
	struct rb_node *sibling = left ? parent->rb_right : parent->rb_left;
	struct rb_node *near, *far;

	/* The other side has at least the one black node that this side is short of. */
	BUG_ON(!sibling);
	if (sibling->rb_red) {
		sibling->rb_red = false;
		parent->rb_red = true;
		if (left)
			rotate_left(root, parent);
		else
			rotate_right(root, parent);
		sibling = left ? parent->rb_right : parent->rb_left;
	}
	near = left ? sibling->rb_left : sibling->rb_right;
	far = left ? sibling->rb_right : sibling->rb_left;
	if (!is_red(near) && !is_red(far)) {
		sibling->rb_red = true;
		return true;
	}
	if (!is_red(far)) {
		near->rb_red = false;
		sibling->rb_red = true;
		if (left)
			rotate_right(root, sibling);
		else
			rotate_left(root, sibling);
		sibling = left ? parent->rb_right : parent->rb_left;
		far = left ? sibling->rb_right : sibling->rb_left;
	}
	sibling->rb_red = parent->rb_red;
	parent->rb_red = false;
	far->rb_red = false;
	if (left)
		rotate_left(root, parent);
	else
		rotate_right(root, parent);
	return false;
}

static void erase_rebalance(struct rb_root *root, struct rb_node *node, struct rb_node *parent)
{
	while (parent && !is_red(node)) {
		if (!erase_step(root, node, parent))
			return;
		node = parent;
		parent = node->rb_parent;
	}
	if (node)
		node->rb_red = false;
}

/* @node has two children: its successor takes its place and its colour. */
static void swap_with_successor(struct rb_root *root, struct rb_node *node, struct rb_node *next)
{
	bool red = next->rb_red;
	struct rb_node *right = next->rb_right;
	struct rb_node *parent = next->rb_parent;

	replace_child(root, node, next);
	next->rb_parent = node->rb_parent;
	next->rb_red = node->rb_red;
	next->rb_left = node->rb_left;
	next->rb_left->rb_parent = next;
	if (parent == node) {
		next->rb_right = node;
		node->rb_parent = next;
	} else {
		next->rb_right = node->rb_right;
		next->rb_right->rb_parent = next;
		parent->rb_left = node;
		node->rb_parent = parent;
	}
	node->rb_left = NULL;
	node->rb_right = right;
	if (right)
		right->rb_parent = node;
	node->rb_red = red;
}

void rb_erase(struct rb_node *node, struct rb_root *root)
{
	struct rb_node *child;

	if (node->rb_left && node->rb_right)
		swap_with_successor(root, node, rb_next(node));
	child = node->rb_left ? node->rb_left : node->rb_right;
	replace_child(root, node, child);
	if (child)
		child->rb_parent = node->rb_parent;
	if (!node->rb_red)
		erase_rebalance(root, child, node->rb_parent);
}

void rb_replace_node(struct rb_node *victim, struct rb_node *fresh, struct rb_root *root)
{
	*fresh = *victim;
	replace_child(root, victim, fresh);
	if (victim->rb_left)
		victim->rb_left->rb_parent = fresh;
	if (victim->rb_right)
		victim->rb_right->rb_parent = fresh;
}

struct rb_node *rb_first(const struct rb_root *root)
{
	struct rb_node *node = root->rb_node;

	while (node && node->rb_left)
		node = node->rb_left;
	return node;
}

struct rb_node *rb_last(const struct rb_root *root)
{
	struct rb_node *node = root->rb_node;

	while (node && node->rb_right)
		node = node->rb_right;
	return node;
}

struct rb_node *rb_next(const struct rb_node *node)
{
	struct rb_node *parent;

	if (node->rb_right) {
		node = node->rb_right;
		while (node->rb_left)
			node = node->rb_left;
		return (struct rb_node *)node;
	}
	while ((parent = node->rb_parent) && node == parent->rb_right)
		node = parent;
	return parent;
}

struct rb_node *rb_prev(const struct rb_node *node)
{
	struct rb_node *parent;

	if (node->rb_left) {
		node = node->rb_left;
		while (node->rb_right)
			node = node->rb_right;
		return (struct rb_node *)node;
	}
	while ((parent = node->rb_parent) && node == parent->rb_left)
		node = parent;
	return parent;
}
