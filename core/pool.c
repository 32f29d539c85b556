// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"
#include "pool.h"

/*
 * Slice objects kept for the next split: a queue that is filled and emptied in
 * turn then allocates nothing.
 */
#define SPARE_MAX 8

static struct core_slice *slice_new(struct core_pool *pool)
{
	struct core_slice *slice;

	slice = list_first_entry_or_null(&pool->spare, struct core_slice, all);
	if (!slice)
		return kzalloc(sizeof(*slice), CORE_GFP);
	list_del(&slice->all);
	pool->n_spare--;
	memset(slice, 0, sizeof(*slice));
	return slice;
}

static void slice_delete(struct core_pool *pool, struct core_slice *slice)
{
	if (pool->n_spare >= SPARE_MAX) {
		kfree(slice);
		return;
	}
	list_add(&slice->all, &pool->spare);
	pool->n_spare++;
}

/* by size, then by offset */
static void free_insert(struct core_pool *pool, struct core_slice *slice)
{
	struct rb_node **link = &pool->free.rb_node, *parent = NULL;
	struct core_slice *at;

	while (*link) {
		parent = *link;
		at = rb_entry(parent, struct core_slice, node);
		core_step();
		if (slice->size < at->size ||
		    (slice->size == at->size && slice->offset < at->offset))
			link = &parent->rb_left;
		else
			link = &parent->rb_right;
	}
	rb_link_node(&slice->node, parent, link);
	rb_insert_color(&slice->node, &pool->free);
}

/* by offset */
static void busy_insert(struct core_pool *pool, struct core_slice *slice)
{
	struct rb_node **link = &pool->busy.rb_node, *parent = NULL;
	struct core_slice *at;

	while (*link) {
		parent = *link;
		at = rb_entry(parent, struct core_slice, node);
		core_step();
		link = slice->offset < at->offset ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&slice->node, parent, link);
	rb_insert_color(&slice->node, &pool->busy);
}

/* invariant 3: the smallest that is large enough, of several the first */
static struct core_slice *best_fit(const struct core_pool *pool, size_t size)
{
	struct rb_node *node = pool->free.rb_node;
	struct core_slice *at, *found = NULL;

	while (node) {
		at = rb_entry(node, struct core_slice, node);
		core_step();
		if (at->size >= size) {
			found = at;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

int core_pool_init(struct core_pool *pool, size_t size)
{
	struct core_slice *slice;

	memset(pool, 0, sizeof(*pool));
	INIT_LIST_HEAD(&pool->all);
	INIT_LIST_HEAD(&pool->spare);
	if (!size || !IS_ALIGNED(size, 8))
		return -EINVAL;
	slice = slice_new(pool);
	if (!slice)
		return -ENOMEM;
	slice->size = size;
	list_add(&slice->all, &pool->all);
	free_insert(pool, slice);
	pool->size = size;
	return 0;
}

static void delete_all(struct list_head *list)
{
	struct core_slice *slice, *next;

	list_for_each_entry_safe(slice, next, list, all)
		kfree(slice);
}

void core_pool_deinit(struct core_pool *pool)
{
	if (!pool || !pool->all.next)
		return;
	delete_all(&pool->all);
	delete_all(&pool->spare);
	memset(pool, 0, sizeof(*pool));
}

/* What is not needed of @slice becomes a free slice behind it. */
static void split(struct core_pool *pool, struct core_slice *slice, struct core_slice *rest,
		  size_t size)
{
	rest->offset = slice->offset + size;
	rest->size = slice->size - size;
	slice->size = size;
	list_add(&rest->all, &slice->all);
	free_insert(pool, rest);
}

int core_pool_alloc(struct core_pool *pool, size_t size, bool accounted,
		    struct core_slice **ret_slice)
{
	struct core_slice *slice, *rest = NULL;

	if (!size)
		return -EINVAL;
	if (size > pool->size)
		return -EXFULL;
	size = ALIGN(size, 8);
	slice = best_fit(pool, size);
	if (!slice)
		return -EXFULL;
	if (slice->size > size) {
		rest = slice_new(pool);
		if (!rest)
			return -ENOMEM;
	}
	rb_erase(&slice->node, &pool->free);
	if (rest)
		split(pool, slice, rest, size);
	slice->busy = true;
	slice->held = true;
	slice->published = false;
	slice->accounted = accounted;
	pool->used += size;
	if (accounted)
		pool->accounted += size;
	busy_insert(pool, slice);
	*ret_slice = slice;
	return 0;
}

/* @slice swallows its free neighbour @next. */
static void merge(struct core_pool *pool, struct core_slice *slice, struct core_slice *next)
{
	slice->size += next->size;
	list_del(&next->all);
	slice_delete(pool, next);
}

static void free_slice(struct core_pool *pool, struct core_slice *slice)
{
	struct core_slice *neighbour;

	rb_erase(&slice->node, &pool->busy);
	pool->used -= slice->size;
	slice->busy = false;
	if (!list_is_last(&slice->all, &pool->all)) {
		neighbour = list_next_entry(slice, all);
		if (!neighbour->busy) {
			rb_erase(&neighbour->node, &pool->free);
			merge(pool, slice, neighbour);
		}
	}
	if (slice->all.prev != &pool->all) {
		neighbour = list_entry(slice->all.prev, struct core_slice, all);
		if (!neighbour->busy) {
			rb_erase(&neighbour->node, &pool->free);
			merge(pool, neighbour, slice);
			slice = neighbour;
		}
	}
	free_insert(pool, slice);
}

void core_pool_publish(struct core_pool *pool, struct core_slice *slice)
{
	BUG_ON(!slice->busy || !slice->held);
	slice->published = true;
}

void core_pool_release(struct core_pool *pool, struct core_slice *slice)
{
	if (!slice)
		return;
	BUG_ON(!slice->busy || !slice->held);
	slice->held = false;
	if (slice->accounted) {
		slice->accounted = false;
		pool->accounted -= slice->size;
	}
	if (!slice->published)
		free_slice(pool, slice);
}

/* The tree is in the order of sizes. */
size_t core_pool_room(const struct core_pool *pool)
{
	const struct rb_node *node = pool->free.rb_node;

	while (node && node->rb_right)
		node = node->rb_right;
	return node ? rb_entry(node, struct core_slice, node)->size : 0;
}

int core_pool_free(struct core_pool *pool, u64 offset)
{
	struct core_slice *slice;

	if (offset == pool->size)
		return 0;
	slice = core_pool_find(pool, offset);
	if (!slice || !slice->published)
		return -ENXIO;
	slice->published = false;
	if (!slice->held)
		free_slice(pool, slice);
	return 0;
}

struct core_slice *core_pool_find(const struct core_pool *pool, u64 offset)
{
	struct rb_node *node = pool->busy.rb_node;
	struct core_slice *at;

	while (node) {
		at = rb_entry(node, struct core_slice, node);
		core_step();
		if (offset == at->offset)
			return at;
		node = offset < at->offset ? node->rb_left : node->rb_right;
	}
	return NULL;
}
