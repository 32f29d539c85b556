// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"

#include "match-index.h"

static_assert(CORE_MATCH_NOTE_NAME + 1 == CORE_MATCH_KINDS, "a tree per kind of key");

/* Keys of one tree have a name either all or none. */
static int key_compare(const struct core_match_key *x, const struct core_match_key *y)
{
	core_step();
	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	if (x->b != y->b)
		return x->b < y->b ? -1 : 1;
	return x->name ? strcmp(x->name, y->name) : 0;
}

struct core_match_bucket *core_match_index_ceil(const struct core_match_index *index,
						const struct core_match_key *key)
{
	struct rb_node *node = index->trees[key->kind].rb_node;
	struct core_match_bucket *ceil = NULL;

	while (node) {
		struct core_match_bucket *bucket = rb_entry(node, struct core_match_bucket, node);
		int r = key_compare(key, &bucket->key);

		if (r == 0)
			return bucket;
		if (r < 0)
			ceil = bucket;
		node = r < 0 ? node->rb_left : node->rb_right;
	}
	return ceil;
}

/* Where the bucket is, or where it would be linked. */
static struct rb_node **slot_of(struct rb_root *tree, const struct core_match_key *key,
				struct rb_node **ret_parent)
{
	struct rb_node **link = &tree->rb_node, *parent = NULL;

	while (*link) {
		int r = key_compare(key, &rb_entry(*link, struct core_match_bucket, node)->key);

		if (r == 0)
			break;
		parent = *link;
		link = r < 0 ? &parent->rb_left : &parent->rb_right;
	}
	*ret_parent = parent;
	return link;
}

struct core_match_bucket *core_match_index_find(const struct core_match_index *index,
						const struct core_match_key *key)
{
	struct rb_root *tree = (struct rb_root *)&index->trees[key->kind];
	struct rb_node *parent;

	return rb_entry_safe(*slot_of(tree, key, &parent), struct core_match_bucket, node);
}

size_t core_match_index_crowd(const struct core_match_index *index,
			      const struct core_match_key *key)
{
	struct core_match_bucket *bucket = core_match_index_find(index, key);

	return bucket ? bucket->n_slots : 0;
}

static struct core_match_bucket *bucket_new(const struct core_match_key *key)
{
	size_t name_size = key->name ? strlen(key->name) + 1 : 0;
	struct core_match_bucket *bucket;

	bucket = kmalloc(offsetof(struct core_match_bucket, name) + name_size, CORE_GFP);
	if (!bucket)
		return NULL;
	bucket->key = *key;
	if (key->name)
		bucket->key.name = memcpy(bucket->name, key->name, name_size);
	INIT_LIST_HEAD(&bucket->slots);
	bucket->n_slots = 0;
	return bucket;
}

int core_match_index_file(struct core_match_index *index, const struct core_match_key *key,
			  struct core_match_slot *slot)
{
	struct rb_root *tree = &index->trees[key->kind];
	struct core_match_bucket *bucket;
	struct rb_node **link, *parent;

	link = slot_of(tree, key, &parent);
	if (*link) {
		bucket = rb_entry(*link, struct core_match_bucket, node);
	} else {
		bucket = bucket_new(key);
		if (!bucket)
			return -ENOMEM;
		rb_link_node(&bucket->node, parent, link);
		rb_insert_color(&bucket->node, tree);
	}
	slot->bucket = bucket;
	list_add_tail(&slot->link, &bucket->slots);
	bucket->n_slots++;
	return 0;
}

void core_match_index_take(struct core_match_index *index, struct core_match_slot *slot)
{
	struct core_match_bucket *bucket = slot->bucket;

	list_del(&slot->link);
	slot->bucket = NULL;
	if (--bucket->n_slots > 0)
		return;
	rb_erase(&bucket->node, &index->trees[bucket->key.kind]);
	kfree(bucket);
}
