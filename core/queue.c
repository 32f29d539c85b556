// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"
#include "queue.h"

void core_queue_init(struct core_queue *queue)
{
	queue->n = 0;
	INIT_LIST_HEAD(&queue->fifo);
	queue->by_priority = RB_ROOT;
}

void core_queue_entry_init(struct core_queue_entry *entry)
{
	entry->priority = 0;
	INIT_LIST_HEAD(&entry->fifo);
}

/*
 * Every entry is a node of its own in the tree; equal priorities go to the
 * right, hence stand in the order they came in. One node per priority with a
 * list below it would save comparisons, and is what broke
 * when an entry left from the middle (invariant 2).
 */
void core_queue_push(struct core_queue *queue, struct core_queue_entry *entry, s64 priority)
{
	struct rb_node **link = &queue->by_priority.rb_node, *parent = NULL;
	struct core_queue_entry *at;

	BUG_ON(core_queue_entry_linked(entry));
	entry->priority = priority;
	while (*link) {
		parent = *link;
		at = rb_entry(parent, struct core_queue_entry, node);
		core_step();
		link = priority < at->priority ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&entry->node, parent, link);
	rb_insert_color(&entry->node, &queue->by_priority);
	list_add_tail(&entry->fifo, &queue->fifo);
	queue->n++;
}

void core_queue_remove(struct core_queue *queue, struct core_queue_entry *entry)
{
	BUG_ON(!core_queue_entry_linked(entry));
	rb_erase(&entry->node, &queue->by_priority);
	list_del_init(&entry->fifo);
	queue->n--;
}

struct core_queue_entry *core_queue_next(const struct core_queue *queue,
					 const struct core_queue_entry *entry)
{
	if (list_is_last(&entry->fifo, &queue->fifo))
		return NULL;
	return list_entry(entry->fifo.next, struct core_queue_entry, fifo);
}

struct core_queue_entry *core_queue_select(const struct core_queue *queue, s64 threshold)
{
	struct core_queue_entry *entry;

	entry = rb_entry_safe(rb_first(&queue->by_priority), struct core_queue_entry, node);
	if (!entry || entry->priority > threshold)
		return NULL;
	return entry;
}
