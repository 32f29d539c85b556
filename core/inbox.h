/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_INBOX_H
#define CORE_INBOX_H

/*
 * What a connection receives into: pool, quota, queue and lost counter as one
 * (spec, sections 7.10, 10.6, 14).
 *
 * Invariants
 *
 * 1. Resources are taken in the order charge, slice, entry, and given back in
 *    reverse on every failure (defect 5 of section 17: also on EXFULL).
 * 2. An entry is *reserved* (has a slice and a charge, is invisible), then
 *    *queued*, then *taken* from the queue: released, or published and
 *    released. Its charge ends when it is released.
 * 3. Content is the host's: between reserving and queueing it fills the slice.
 * 4. The lost counter counts from 0 and stays at its maximum.
 * 5. An inbox that is shut accepts no entry (ECONNRESET).
 *
 * Lock rule: every function needs the lock of the inbox; a sleeping lock, as
 * core_inbox_reserve() allocates. The lock may be dropped between reserving and
 * queueing: the entry belongs to whoever reserved it.
 */

#include "base.h"
#include "pool.h"
#include "queue.h"
#include "quota.h"

struct core_inbox;
struct core_reply;
struct core_user;

/**
 * struct core_entry - a message in an inbox; embedded in the host's message
 * @queue:   place in the queue
 * @slice:   where its content lies in the pool
 * @user:    number of the sending user, for the quota
 * @fds:     entries of its FDS item
 * @name_id: internal id of the name it was addressed to, 0 if by id
 * @reply:   slot it opened at its sender, NULL if none
 * @sender:  whom @user numbers, with a reference, so that the number stays his; NULL
 *           for the bus itself
 *
 * The last three are core/deliver.h's, which clears them after reserving.
 */
struct core_entry {
	struct core_queue_entry queue;
	struct core_slice *slice;
	u32 user;
	u32 fds;
	u64 name_id;
	struct core_reply *reply;
	struct core_user *sender;
};

/**
 * struct core_inbox - pool, quota, queue and lost counter
 * @pool:  slices
 * @quota: charges by sending user
 * @queue: messages to be received
 * @lost:  messages lost since last reported
 * @shut:  accepts nothing any more
 */
struct core_inbox {
	struct core_pool pool;
	struct core_quota quota;
	struct core_queue queue;
	u32 lost;
	bool shut;
};

/**
 * core_inbox_init() - make an empty inbox
 * @inbox:     to be initialised
 * @pool_size: bytes, > 0 and a multiple of 8
 *
 * Return: 0; -EINVAL; -ENOMEM. After a failure there is nothing to undo.
 */
int core_inbox_init(struct core_inbox *inbox, size_t pool_size);

/**
 * core_inbox_deinit() - free pool and quota
 * @inbox: queue empty; may be NULL or all zeroes
 */
void core_inbox_deinit(struct core_inbox *inbox);

/**
 * core_inbox_reserve() - make room for a message (section 14.4)
 * @inbox: inbox of the receiver
 * @entry: to be initialised; stays where it is until released
 * @user:  number of the sending user
 * @size:  bytes of the whole slice, > 0
 * @fds:   entries of its FDS item
 *
 * Return: 0; -ECONNRESET: shut; -ENOBUFS, -EMFILE: the sender's quota here is used
 * up; -EXFULL: no contiguous room; -EINVAL: @size is 0; -ENOMEM.
 */
int core_inbox_reserve(struct core_inbox *inbox, struct core_entry *entry, u32 user, size_t size,
		       unsigned int fds);

/**
 * core_inbox_push() - queue a reserved entry
 * @inbox:    inbox
 * @entry:    reserved in it and filled
 * @priority: of the message
 *
 * Return: 0; -ECONNRESET: it was shut meanwhile, @entry is still reserved.
 */
int core_inbox_push(struct core_inbox *inbox, struct core_entry *entry, s64 priority);

/**
 * core_inbox_remove() - take an entry out of the queue
 * @inbox: inbox
 * @entry: queued; afterwards it is reserved
 */
void core_inbox_remove(struct core_inbox *inbox, struct core_entry *entry);

/**
 * core_inbox_release() - give back charge and slice
 * @inbox: inbox
 * @entry: reserved, not queued; or NULL. Afterwards it is the caller's memory.
 *
 * A published slice stays with the application.
 */
void core_inbox_release(struct core_inbox *inbox, struct core_entry *entry);

/**
 * core_inbox_publish() - give the content of an entry to the application
 * @inbox: inbox
 * @entry: reserved or queued
 */
void core_inbox_publish(struct core_inbox *inbox, struct core_entry *entry);

/**
 * core_inbox_select() - the entry a RECV is about (section 7.10)
 * @inbox:        inbox
 * @use_priority: select by priority, up to @priority
 * @priority:     threshold
 *
 * Return: the entry, still queued; NULL: EAGAIN.
 */
struct core_entry *core_inbox_select(const struct core_inbox *inbox, bool use_priority,
				     s64 priority);

/**
 * core_inbox_first() - the oldest entry
 * @inbox: inbox
 *
 * Return: the entry, still queued; NULL if there is none.
 */
struct core_entry *core_inbox_first(const struct core_inbox *inbox);

/**
 * core_inbox_next_by_name() - the next entry addressed by one name
 * @inbox:   inbox
 * @entry:   to start behind; NULL starts with the oldest
 * @name_id: internal id of the name
 *
 * Return: the entry, still queued; NULL if there is none.
 */
struct core_entry *core_inbox_next_by_name(const struct core_inbox *inbox,
					   const struct core_entry *entry, u64 name_id);

/**
 * core_inbox_lose() - count a lost message
 * @inbox: inbox
 *
 * Return: true if it was the first since the last report: wake pollers.
 */
bool core_inbox_lose(struct core_inbox *inbox);

/**
 * core_inbox_report_lost() - read and reset the lost counter
 * @inbox: inbox
 *
 * Return: messages lost since the last report.
 */
u32 core_inbox_report_lost(struct core_inbox *inbox);

/**
 * core_inbox_readable() - whether poll reports POLLIN
 * @inbox: inbox
 */
bool core_inbox_readable(const struct core_inbox *inbox);

/**
 * core_inbox_shut() - accept no more entries
 * @inbox: inbox
 * @force: even if messages are queued; without it, BYEBYE (section 6.6)
 *
 * Return: 0; -EBUSY: messages are queued, nothing changed.
 */
int core_inbox_shut(struct core_inbox *inbox, bool force);

#endif
