// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a connection receives into: slices of its pool, and its queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base.h"
#include "core-cost.h"
#include "pool.h"
#include "queue.h"

/*
 * A pool of @n busy slices and as many free ones in between, all free ones of
 * another size, the worst case for the choice of the best.
 */
static struct core_slice **fill_pool(struct core_pool *pool, size_t n)
{
	struct core_slice **slices = calloc(2 * n, sizeof(*slices));

	assert_non_null(slices);
	assert_int_equal(core_pool_init(pool, 16 * n * (n + 2)), 0);
	for (size_t i = 0; i < 2 * n; i++)
		assert_int_equal(core_pool_alloc(pool, i % 2 ? 8 : 8 * (i / 2 + 1), false,
						 &slices[i]),
				 0);
	for (size_t i = 0; i < 2 * n; i += 2)
		core_pool_release(pool, slices[i]);
	return slices;
}

static unsigned long steps_to_allocate_and_free(size_t n)
{
	struct core_pool pool;
	struct core_slice **slices = fill_pool(&pool, n);
	struct core_slice *slice;
	unsigned long worst = 0;

	for (size_t i = 0; i < n; i += 1 + n / 1000) {
		unsigned long before = core_steps;
		size_t offset;

		assert_int_equal(core_pool_alloc(&pool, 8 * i + 1, true, &slice), 0);
		offset = slice->offset;
		core_pool_publish(&pool, slice);
		core_pool_release(&pool, slice);
		assert_int_equal(core_pool_free(&pool, offset), 0);
		cost_worst(&worst, before);
	}
	core_pool_deinit(&pool);
	free(slices);
	return worst;
}

void cost_of_the_pool(void **state)
{
	/* chosen, entered as busy, found again, entered as free */
	cost_check("allocating and freeing a slice", 10, 8, steps_to_allocate_and_free);
}

static struct core_queue_entry *fill_queue(struct core_queue *queue, size_t n, size_t room)
{
	struct core_queue_entry *entries = calloc(n + room, sizeof(*entries));

	assert_non_null(entries);
	core_queue_init(queue);
	for (size_t i = 0; i < n + room; i++)
		core_queue_entry_init(&entries[i]);
	for (size_t i = 0; i < n; i++)
		core_queue_push(queue, &entries[i], i % 2 ? (s64)i : -(s64)i);
	return entries;
}

static unsigned long steps_to_queue_and_take(size_t n)
{
	struct core_queue queue;
	struct core_queue_entry *entries = fill_queue(&queue, n, 1);
	unsigned long worst = 0;

	for (size_t i = 0; i < n; i += 1 + n / 1000) {
		unsigned long before = core_steps;

		core_queue_push(&queue, &entries[n], i);
		assert_non_null(core_queue_select(&queue, S64_MAX));
		core_queue_remove(&queue, &entries[n]);
		assert_non_null(core_queue_first(&queue));
		cost_worst(&worst, before);
	}
	free(entries);
	return worst;
}

void cost_of_the_queue(void **state)
{
	cost_check("queueing and taking a message", 2, 2, steps_to_queue_and_take);
}
