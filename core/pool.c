// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"
#include "pool.h"

/*
 * Slice objects kept for the next split: a queue that is filled and emptied in
 * turn then allocates nothing.
 */
#define SPARE_MAX 8

static struct core_slice *slice_new(struct core_pool *pool, size_t offset, size_t size)
{
	struct core_slice *slice = pool->spare;

	if (slice) {
		pool->spare = slice->spare;
		pool->n_spare--;
	} else {
		slice = kmalloc(sizeof(*slice), CORE_GFP);
	}
	if (!slice)
		return NULL;
	slice->offset = offset;
	slice->size = size;
	slice->busy = false;
	slice->held = false;
	slice->published = false;
	slice->accounted = false;
	return slice;
}

static void slice_delete(struct core_pool *pool, struct core_slice *slice)
{
	if (pool->n_spare >= SPARE_MAX) {
		kfree(slice);
		return;
	}
	slice->spare = pool->spare;
	pool->spare = slice;
	pool->n_spare++;
}

/* The order of free slices: by size, then by offset. */
static bool before(const struct core_slice *a, const struct core_slice *b)
{
	return a->size < b->size || (a->size == b->size && a->offset < b->offset);
}

static void free_insert(struct core_pool *pool, struct core_slice *slice)
{
	struct rb_node **link = &pool->free.rb_node, *parent = NULL;
	struct core_slice *at;

	while (*link) {
		parent = *link;
		at = rb_entry(parent, struct core_slice, node);
		core_step();
		if (before(slice, at))
			link = &parent->rb_left;
		else
			link = &parent->rb_right;
	}
	rb_link_node(&slice->node, parent, link);
	rb_insert_color(&slice->node, &pool->free);
}

/*
 * Change the bounds of a free slice. Most often it is much larger than all others, and keeps its
 * place among them.
 */
static void free_resize(struct core_pool *pool, struct core_slice *slice, size_t offset,
			size_t size)
{
	struct core_slice *prev, *next;

	prev = rb_entry_safe(rb_prev(&slice->node), struct core_slice, node);
	next = rb_entry_safe(rb_next(&slice->node), struct core_slice, node);
	slice->offset = offset;
	slice->size = size;
	if ((!prev || before(prev, slice)) && (!next || before(slice, next)))
		return;
	rb_erase(&slice->node, &pool->free);
	free_insert(pool, slice);
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
	if (!size || !IS_ALIGNED(size, 8))
		return -EINVAL;
	slice = slice_new(pool, 0, size);
	if (!slice)
		return -ENOMEM;
	list_add(&slice->all, &pool->all);
	free_insert(pool, slice);
	pool->size = size;
	return 0;
}

void core_pool_deinit(struct core_pool *pool)
{
	struct core_slice *slice, *next;

	if (!pool || !pool->all.next)
		return;
	list_for_each_entry_safe(slice, next, &pool->all, all)
		kfree(slice);
	for (slice = pool->spare; slice; slice = next) {
		next = slice->spare;
		kfree(slice);
	}
	memset(pool, 0, sizeof(*pool));
}

/* The front of a free slice, as a slice of its own. */
static struct core_slice *take_front(struct core_pool *pool, struct core_slice *slice, size_t size)
{
	struct core_slice *front;

	if (slice->size == size) {
		rb_erase(&slice->node, &pool->free);
		return slice;
	}
	front = slice_new(pool, slice->offset, size);
	if (!front)
		return NULL;
	list_add_tail(&front->all, &slice->all);
	free_resize(pool, slice, slice->offset + size, slice->size - size);
	return front;
}

int core_pool_alloc(struct core_pool *pool, size_t size, bool accounted,
		    struct core_slice **ret_slice)
{
	struct core_slice *slice;

	if (!size)
		return -EINVAL;
	if (size > pool->size)
		return -EXFULL;
	size = ALIGN(size, 8);
	slice = best_fit(pool, size);
	if (!slice)
		return -EXFULL;
	slice = take_front(pool, slice, size);
	if (!slice)
		return -ENOMEM;
	slice->busy = true;
	slice->held = true;
	slice->published = false;
	slice->accounted = accounted;
	pool->used += size;
	if (slice->offset + size > pool->touched)
		pool->touched = slice->offset + size;
	if (accounted)
		pool->accounted += size;
	busy_insert(pool, slice);
	*ret_slice = slice;
	return 0;
}

/* The neighbour of @slice at @place, if there is one and it is free. */
static struct core_slice *free_at(const struct core_pool *pool, struct list_head *place)
{
	struct core_slice *slice = list_entry(place, struct core_slice, all);

	return place == &pool->all || slice->busy ? NULL : slice;
}

static void vanish(struct core_pool *pool, struct core_slice *slice)
{
	list_del(&slice->all);
	slice_delete(pool, slice);
}

static void free_slice(struct core_pool *pool, struct core_slice *slice)
{
	struct core_slice *prev = free_at(pool, slice->all.prev);
	struct core_slice *next = free_at(pool, slice->all.next);
	size_t size = slice->size;

	rb_erase(&slice->node, &pool->busy);
	pool->used -= size;
	slice->busy = false;
	if (!prev && !next) {
		free_insert(pool, slice);
		return;
	}
	if (!prev) {
		free_resize(pool, next, slice->offset, size + next->size);
	} else {
		if (next) {
			size += next->size;
			rb_erase(&next->node, &pool->free);
			vanish(pool, next);
		}
		free_resize(pool, prev, prev->offset, prev->size + size);
	}
	vanish(pool, slice);
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

bool core_pool_trim(struct core_pool *pool, size_t keep, size_t *ret_offset, size_t *ret_size)
{
	const struct core_slice *last = list_entry(pool->all.prev, struct core_slice, all);

	if (last->busy || pool->touched <= last->offset || pool->touched - last->offset <= keep)
		return false;
	*ret_offset = last->offset + keep;
	*ret_size = pool->touched - *ret_offset;
	pool->touched = *ret_offset;
	return true;
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
