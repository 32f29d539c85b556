/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_POOL_H
#define CORE_POOL_H

/*
 * The slices of a pool (spec, section 14.2).
 *
 * A pool is the memory a connection receives into. This is its book-keeping
 * only: it deals in offsets and never touches the memory itself.
 *
 * Invariants
 *
 * 1. The slices partition the pool: they follow each other without gap or
 *    overlap from offset 0 to the size of the pool, and none is empty.
 * 2. Each slice is free or busy. No two neighbours are both free.
 * 3. Allocation rounds the size up to 8 and takes the smallest free slice that
 *    is large enough, of several the one with the lowest offset, and of that
 *    the front. Given the same sequence of calls, the offsets are the same.
 * 4. A busy slice has two references that do not count: the bus's (a message
 *    is queued in it, or a command is still at work) and the application's (it
 *    was published). It becomes free when both are gone.
 * 5. The accounted size is the sum over slices that were allocated accounted
 *    and still have the bus's reference.
 * 6. What lies behind @touched was not in a slice since it was given back
 *    last (core_pool_trim()), or ever.
 *
 * Lock rule: every function needs the one lock that guards the pool, and that
 * must be a sleeping lock for core_pool_init() and core_pool_alloc(), which
 * allocate. There is no global state.
 */

#include "base.h"

/**
 * struct core_slice - a piece of a pool
 * @offset: first byte, relative to the start of the pool; a multiple of 8
 * @size:   bytes; a multiple of 8
 *
 * Owned by the pool. Valid for its user until both references are gone.
 * The other fields belong to the pool.
 */
struct core_slice {
	size_t offset;
	size_t size;
	union {
		struct list_head all;
		struct core_slice *spare;
	};
	struct rb_node node;
	bool busy;
	bool held;
	bool published;
	bool accounted;
};

/**
 * struct core_pool - the partition of a pool
 * @size:      bytes
 * @accounted: bytes in slices that count for the quota (invariant 5)
 * @used:      bytes in slices that are not free
 * @touched:   bytes from the start that may have been written (invariant 6)
 *
 * The other fields are private.
 */
struct core_pool {
	size_t size;
	size_t accounted;
	size_t used;
	size_t touched;
	struct list_head all;
	struct rb_root free;
	struct rb_root busy;
	struct core_slice *spare;
	unsigned int n_spare;
};

/**
 * core_pool_init() - make a pool that is one free slice
 * @pool: to be initialised
 * @size: bytes, > 0 and a multiple of 8
 *
 * Return: 0; -EINVAL: bad @size; -ENOMEM. After a failure @pool may be passed
 * to core_pool_deinit(), and need not be.
 */
int core_pool_init(struct core_pool *pool, size_t size);

/**
 * core_pool_deinit() - free all slices, busy ones too
 * @pool: may be NULL, all zeroes, or have been passed here before
 */
void core_pool_deinit(struct core_pool *pool);

/**
 * core_pool_alloc() - allocate a slice, with the bus's reference
 * @pool:      pool
 * @size:      bytes, > 0; rounded up to a multiple of 8
 * @accounted: whether it counts for the quota while the bus holds it (section 14.3)
 * @ret_slice: the slice, owned by @pool; to be given back with core_pool_release()
 *
 * Return: 0; -EXFULL: no free slice is large enough; -EINVAL: @size is 0;
 * -ENOMEM. A failure changes nothing.
 */
int core_pool_alloc(struct core_pool *pool, size_t size, bool accounted,
		    struct core_slice **ret_slice);

/**
 * core_pool_room() - what could be allocated at most
 * @pool: pool
 *
 * Return: bytes of the largest free slice, 0 if there is none.
 */
size_t core_pool_room(const struct core_pool *pool);

/**
 * core_pool_publish() - add the application's reference
 * @pool:  pool
 * @slice: slice that the bus holds
 *
 * Publishing twice still needs one core_pool_free().
 */
void core_pool_publish(struct core_pool *pool, struct core_slice *slice);

/**
 * core_pool_release() - drop the bus's reference
 * @pool:  pool
 * @slice: slice that the bus holds, or NULL; must not be used any more
 *
 * The slice no longer counts for the quota, published or not.
 */
void core_pool_release(struct core_pool *pool, struct core_slice *slice);

/**
 * core_pool_free() - drop the application's reference: the command FREE (section 6.7)
 * @pool:   pool
 * @offset: where the slice starts, or the size of the pool, which is the empty
 *          slice: freeing that succeeds and does nothing
 *
 * Return: 0; -ENXIO: no busy slice starts at @offset, or it is not published.
 */
int core_pool_free(struct core_pool *pool, u64 offset);

/**
 * core_pool_trim() - whether there is memory that can be given back
 * @pool:       pool
 * @keep:       bytes behind the last busy slice that are to stay, for what comes next
 * @ret_offset: a range to be given back, from here
 * @ret_size:   to the end of what was written; bytes
 *
 * The range counts as given back from now on. Return: whether there is one.
 */
bool core_pool_trim(struct core_pool *pool, size_t keep, size_t *ret_offset, size_t *ret_size);

/**
 * core_pool_find() - find a busy slice
 * @pool:   pool
 * @offset: where it starts
 *
 * Return: the slice, or NULL.
 */
struct core_slice *core_pool_find(const struct core_pool *pool, u64 offset);

#endif
