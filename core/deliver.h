/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_DELIVER_H
#define CORE_DELIVER_H

/*
 * One message into one connection (spec §7.5 step 5, §7.10, §13, §14.4).
 *
 * Invariants
 *
 *  1. A parcel is a message on its way, from a connection or from the bus itself. It is
 *     delivered any number of times and never changed by it.
 *  2. A delivery takes resources in the order entry, charge, slice, content, place in
 *     the queue, and gives all back when one of them fails.
 *  3. Descriptors go only to who accepts them, or to a monitor.
 *  4. An entry that leaves a queue gives back its charge, tells its reply slot, drops
 *     its reference to the sending user, and goes back to the host.
 *  5. A loss is counted where the spec says so, and wakes the first time.
 *
 * Locks: see core/bus.h.
 */

#include "conn.h"
#include "msg.h"
#include "record.h"

/**
 * struct core_parcel - a message on its way
 * @bus:      bus it travels on
 * @from:     sender; NULL for the bus itself
 * @msg:      message of a connection, accepted by core_msg_check(); else NULL
 * @notice:   notification of the bus; else NULL
 * @seq:      sequence number
 * @priority: for the receiver's queue
 * @n_fds:    descriptors in its FDS item
 * @host:     whatever the host needs in core_host_ops: payload, files, metadata
 */
struct core_parcel {
	struct core_bus *bus;
	struct core_conn *from;
	const struct core_msg *msg;
	const struct core_notice *notice;
	u64 seq;
	s64 priority;
	u32 n_fds;
	void *host;
};

/**
 * typedef core_install - install the descriptors of a message in the caller's process
 * @conn:  receiver
 * @entry: message, in the inbox of @conn
 * @data:  as given along with the function
 *
 * Return: 0, also if some could not be installed; or negative errno.
 */
typedef int (*core_install)(struct core_conn *conn, struct core_entry *entry, void *data);

/**
 * core_deliver() - put a message into a connection
 * @parcel:  message
 * @to:      receiver
 * @name_id: internal id of the name it was addressed to, or 0
 * @slot:    reply slot it opened, or NULL; counts as queued afterwards (not with a sink)
 *
 * Locks: names shared (metadata); conn(to) around taking room and around queueing, which
 * this composition does not tell apart: see core_deliver_reserve().
 *
 * Return: 0; -ECONNRESET: the receiver is not active; -ECOMM: it takes no descriptors;
 * -ENOBUFS, -EMFILE, -EXFULL: no room (core_inbox_reserve()); -EFAULT and what else
 * the host's operations return.
 */
int core_deliver(const struct core_parcel *parcel, struct core_conn *to, u64 name_id,
		 struct core_reply *slot);

/**
 * core_deliver_check() - may the message go there at all?
 * @parcel: message
 * @to:     receiver
 *
 * Locks: conn(to). Return: 0; -ECONNRESET; -ECOMM.
 */
int core_deliver_check(const struct core_parcel *parcel, const struct core_conn *to);

/**
 * core_deliver_reserve() - step: make an entry, charge and slice for a message
 * @parcel:    message
 * @to:        receiver with an inbox
 * @ret_entry: entry; to be filled with core_host_ops.fill and then queued with
 *             core_deliver_push() or given back with core_entry_end()
 *
 * Locks: conn(to). Return: as core_deliver().
 */
int core_deliver_reserve(const struct core_parcel *parcel, struct core_conn *to,
			 struct core_entry **ret_entry);

/**
 * core_charge() - on whose account memory is allocated from here on
 * @ops: the host
 * @to:  a receiver; NULL: the caller
 */
static inline void core_charge(const struct core_host_ops *ops, struct core_conn *to)
{
	if (ops->charge)
		ops->charge(to);
}

/**
 * core_deliver_push() - step: queue a filled entry and wake the receiver
 * @parcel: message
 * @to:     receiver
 * @entry:  from core_deliver_reserve()
 * @name_id: as core_deliver()
 * @slot:    as core_deliver()
 *
 * Locks: conn(to); with @slot also conn of its requester. Return: 0; -ECONNRESET: it was
 * shut meanwhile, @entry is still reserved.
 */
int core_deliver_push(const struct core_parcel *parcel, struct core_conn *to,
		      struct core_entry *entry, u64 name_id, struct core_reply *slot);

/**
 * core_entry_end() - an entry is over: give everything back
 * @conn:  whose inbox it is in
 * @entry: reserved, not queued; gone afterwards
 *
 * Locks: conn(@conn); if it has a slot, conn of its requester.
 */
void core_entry_end(struct core_conn *conn, struct core_entry *entry);

/**
 * core_conn_lose() - count a lost message
 * @to: receiver
 *
 * Locks: conn(to).
 */
void core_conn_lose(struct core_conn *to);

/**
 * core_deliver_to_monitors() - copy a message to all monitors (§13)
 * @parcel: message
 *
 * Failures are counted at the monitor. Locks: bus shared, and those of core_deliver().
 */
void core_deliver_to_monitors(const struct core_parcel *parcel);

#endif
