// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"
#include "inbox.h"

static struct core_entry *to_entry(struct core_queue_entry *queue)
{
	return queue ? container_of(queue, struct core_entry, queue) : NULL;
}

int core_inbox_init(struct core_inbox *inbox, size_t pool_size)
{
	memset(inbox, 0, sizeof(*inbox));
	core_queue_init(&inbox->queue);
	return core_pool_init(&inbox->pool, pool_size);
}

void core_inbox_deinit(struct core_inbox *inbox)
{
	if (!inbox)
		return;
	BUG_ON(inbox->queue.n);
	core_quota_deinit(&inbox->quota);
	core_pool_deinit(&inbox->pool);
}

int core_inbox_reserve(struct core_inbox *inbox, struct core_entry *entry, u32 user, size_t size,
		       unsigned int fds)
{
	size_t aligned;
	int r;

	if (inbox->shut)
		return -ECONNRESET;
	if (!size)
		return -EINVAL;
	if (check_add_overflow(size, (size_t)7, &aligned))
		return -ENOBUFS;
	aligned &= ~(size_t)7;
	core_queue_entry_init(&entry->queue);
	entry->slice = NULL;
	entry->name_id = 0;
	entry->reply = NULL;
	entry->sender = NULL;
	r = core_quota_charge(&inbox->quota, user, inbox->pool.size, inbox->pool.accounted,
			      aligned, fds);
	if (r)
		return r;
	r = core_pool_alloc(&inbox->pool, aligned, true, &entry->slice);
	if (r) {
		core_quota_uncharge(&inbox->quota, user, aligned, fds);
		return r;
	}
	entry->user = user;
	entry->fds = fds;
	return 0;
}

int core_inbox_push(struct core_inbox *inbox, struct core_entry *entry, s64 priority)
{
	if (inbox->shut)
		return -ECONNRESET;
	core_queue_push(&inbox->queue, &entry->queue, priority);
	return 0;
}

void core_inbox_remove(struct core_inbox *inbox, struct core_entry *entry)
{
	core_queue_remove(&inbox->queue, &entry->queue);
}

void core_inbox_release(struct core_inbox *inbox, struct core_entry *entry)
{
	if (!entry || !entry->slice)
		return;
	BUG_ON(core_queue_entry_linked(&entry->queue));
	core_quota_uncharge(&inbox->quota, entry->user, entry->slice->size, entry->fds);
	core_pool_release(&inbox->pool, entry->slice);
	entry->slice = NULL;
}

void core_inbox_publish(struct core_inbox *inbox, struct core_entry *entry)
{
	core_pool_publish(&inbox->pool, entry->slice);
}

struct core_entry *core_inbox_select(const struct core_inbox *inbox, bool use_priority,
				     s64 priority)
{
	if (use_priority)
		return to_entry(core_queue_select(&inbox->queue, priority));
	return core_inbox_first(inbox);
}

struct core_entry *core_inbox_first(const struct core_inbox *inbox)
{
	return to_entry(core_queue_first(&inbox->queue));
}

struct core_entry *core_inbox_next_by_name(const struct core_inbox *inbox,
					   const struct core_entry *entry, u64 name_id)
{
	struct core_entry *at;

	at = entry ? to_entry(core_queue_next(&inbox->queue, &entry->queue)) :
		     core_inbox_first(inbox);
	while (at && at->name_id != name_id) {
		core_step();
		at = to_entry(core_queue_next(&inbox->queue, &at->queue));
	}
	return at;
}

bool core_inbox_lose(struct core_inbox *inbox)
{
	if (inbox->lost != U32_MAX)
		inbox->lost++;
	return inbox->lost == 1;
}

u32 core_inbox_report_lost(struct core_inbox *inbox)
{
	u32 lost = inbox->lost;

	inbox->lost = 0;
	return lost;
}

bool core_inbox_readable(const struct core_inbox *inbox)
{
	return inbox->queue.n || inbox->lost;
}

int core_inbox_shut(struct core_inbox *inbox, bool force)
{
	if (!force && inbox->queue.n)
		return -EBUSY;
	inbox->shut = true;
	return 0;
}
