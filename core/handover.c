// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"
#include "deliver.h"
#include "handover.h"
#include "notify.h"

/* From inbox to inbox. On failure @entry is queued as before. */
static int move(struct core_conn *from, struct core_conn *to, struct core_entry *entry)
{
	const struct core_host_ops *ops = to->bus->domain->ops;
	struct core_entry room;
	s64 priority = entry->queue.priority;
	int r;

	core_charge(ops, to);
	r = core_inbox_reserve(&to->inbox, &room, entry->user, entry->slice->size, entry->fds);
	core_charge(ops, NULL);
	if (r)
		return r;
	r = ops->copy(from, entry->slice->offset, to, room.slice->offset, room.slice->size);
	if (r) {
		core_inbox_release(&to->inbox, &room);
		return r;
	}
	core_inbox_remove(&from->inbox, entry);
	core_inbox_release(&from->inbox, entry);
	entry->slice = room.slice;
	r = core_inbox_push(&to->inbox, entry, priority);
	BUG_ON(r);
	return 0;
}

static int move_any(struct core_conn *from, struct core_conn *to, struct core_entry *entry)
{
	int r;

	if (entry->fds && !(to->flags & KDBUS_HELLO_ACCEPT_FD))
		return -ECOMM;
	if (!to->sink)
		return move(from, to, entry);
	r = to->sink->adopt(to, from, entry);
	if (!r) {
		core_inbox_remove(&from->inbox, entry);
		core_entry_end(from, entry);
	}
	return r;
}

static void lose(struct core_conn *from, struct core_conn *to, struct core_entry *entry)
{
	core_inbox_remove(&from->inbox, entry);
	core_conn_lose(to);
	core_notify_dead(entry->reply);
	core_entry_end(from, entry);
}

void core_hand_over(struct core_conn *from, struct core_conn *to, u64 name_id)
{
	struct core_entry *entry, *next;
	bool moved = false;

	core_reply_retarget(&from->owed, &to->owed, name_id);
	entry = core_inbox_next_by_name(&from->inbox, NULL, name_id);
	for (; entry; entry = next) {
		next = core_inbox_next_by_name(&from->inbox, entry, name_id);
		if (move_any(from, to, entry))
			lose(from, to, entry);
		else
			moved = true;
	}
	if (moved)
		to->bus->domain->ops->wake(to);
}
