/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_QUEUE_H
#define CORE_QUEUE_H

/*
 * The messages waiting at a connection (spec, section 7.10).
 *
 * Invariants
 *
 * 1. Without a priority the oldest entry is selected. With one it is the entry
 *    with the smallest priority value, of several the oldest, if that value is
 *    at most the threshold.
 * 2. Any entry can be removed, at any place, without disturbing either order
 *    (defect 13 of section 17: a hand-over takes entries from the middle).
 * 3. The queue owns no entry and allocates nothing.
 *
 * Cost: pushing, removing and selecting by priority take O(log n) steps, the
 * oldest entry one.
 *
 * Lock rule: every function needs the one lock that guards the queue.
 */

#include "base.h"

/**
 * struct core_queue_entry - a place in a queue, embedded in the message
 * @priority: as sent, smaller is more urgent
 *
 * The other fields are private.
 */
struct core_queue_entry {
	s64 priority;
	struct list_head fifo;
	struct rb_node node;
};

/**
 * struct core_queue - messages in order of arrival and of priority
 * @n: number of entries
 *
 * The other fields are private.
 */
struct core_queue {
	u32 n;
	struct list_head fifo;
	struct rb_root by_priority;
};

/**
 * core_queue_init() - make an empty queue
 * @queue: to be initialised. It is over when it is empty; there is no destructor.
 */
void core_queue_init(struct core_queue *queue);

/**
 * core_queue_entry_init() - make an entry that is in no queue
 * @entry: to be initialised
 */
void core_queue_entry_init(struct core_queue_entry *entry);

/**
 * core_queue_entry_linked() - whether an entry is in a queue
 * @entry: initialised entry
 */
static inline bool core_queue_entry_linked(const struct core_queue_entry *entry)
{
	return !list_empty(&entry->fifo);
}

/**
 * core_queue_push() - append an entry
 * @queue:    queue
 * @entry:    in no queue; must stay where it is until it is removed
 * @priority: of the message
 */
void core_queue_push(struct core_queue *queue, struct core_queue_entry *entry, s64 priority);

/**
 * core_queue_remove() - remove an entry
 * @queue: the queue it is in
 * @entry: entry; afterwards in no queue
 */
void core_queue_remove(struct core_queue *queue, struct core_queue_entry *entry);

/**
 * core_queue_first() - the oldest entry
 * @queue: queue
 *
 * Return: the entry, which stays queued; NULL if there is none.
 */
static inline struct core_queue_entry *core_queue_first(const struct core_queue *queue)
{
	if (list_empty(&queue->fifo))
		return NULL;
	return list_first_entry(&queue->fifo, struct core_queue_entry, fifo);
}

/**
 * core_queue_next() - the entry that arrived next
 * @queue: queue
 * @entry: an entry of it
 *
 * Return: the entry; NULL if @entry is the youngest.
 */
struct core_queue_entry *core_queue_next(const struct core_queue *queue,
					 const struct core_queue_entry *entry);

/**
 * core_queue_select() - the most urgent entry
 * @queue:     queue
 * @threshold: largest priority value that will do
 *
 * Return: the entry, which stays queued; NULL if there is none, or the most
 * urgent one has a priority value above @threshold.
 */
struct core_queue_entry *core_queue_select(const struct core_queue *queue, s64 threshold);

#endif
