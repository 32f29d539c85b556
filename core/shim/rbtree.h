/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_SHIM_RBTREE_H
#define CORE_SHIM_RBTREE_H

#include "kernel.h"

/*
 * Red-black tree with the names and meaning of <linux/rbtree.h>: the user
 * embeds the node, walks down itself, links with rb_link_node() and
 * balances with rb_insert_color().
 */

struct rb_node {
	struct rb_node *rb_parent;
	struct rb_node *rb_right;
	struct rb_node *rb_left;
	bool rb_red;
};

struct rb_root {
	struct rb_node *rb_node;
};

#ifdef __cplusplus
#define RB_ROOT rb_root()
#else
#define RB_ROOT (struct rb_root){ NULL }
#endif
#define rb_entry(ptr, type, member) container_of(ptr, type, member)
#define rb_entry_safe(ptr, type, member)                                                           \
	({                                                                                         \
		__typeof__(ptr) rb_ptr_ = (ptr);                                                   \
		rb_ptr_ ? rb_entry(rb_ptr_, type, member) : NULL;                                  \
	})
#define rb_parent(n) ((n)->rb_parent)

/* A node in no tree points to itself. */
#define RB_EMPTY_ROOT(root) ((root)->rb_node == NULL)
#define RB_EMPTY_NODE(node) ((node)->rb_parent == (node))
#define RB_CLEAR_NODE(node) ((node)->rb_parent = (node))

static inline void rb_link_node(struct rb_node *node, struct rb_node *parent,
				struct rb_node **link)
{
	node->rb_parent = parent;
	node->rb_left = NULL;
	node->rb_right = NULL;
	node->rb_red = true;
	*link = node;
}

void rb_insert_color(struct rb_node *node, struct rb_root *root);
void rb_erase(struct rb_node *node, struct rb_root *root);
void rb_replace_node(struct rb_node *victim, struct rb_node *fresh, struct rb_root *root);
struct rb_node *rb_first(const struct rb_root *root);
struct rb_node *rb_last(const struct rb_root *root);
struct rb_node *rb_next(const struct rb_node *node);
struct rb_node *rb_prev(const struct rb_node *node);

#endif
