/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_RECV_H
#define CORE_RECV_H

/*
 * What leaves an inbox (spec §6.15, §7.10).
 *
 * Invariants
 *
 *  1. A message is received, peeked at or dropped; only peeking leaves it queued.
 *  2. Dropping a call that is still open is its outcome: EPIPE or REPLY_DEAD.
 *  3. Receiving does not close the slot of a call.
 *  4. The lost counter is reported and reset with success and with EAGAIN, and by nothing
 *     else.
 *  5. A message whose descriptors cannot be installed stays queued.
 *
 * Locks: see core/bus.h.
 */

#include "deliver.h"

/**
 * struct core_received - the result of RECV
 * @offset:       where the message lies in the pool; the size of the pool if there is none
 * @size:         bytes of its slice, or 0
 * @dropped:      messages lost since the last report
 * @return_flags: KDBUS_RECV_RETURN_DROPPED_MSGS if @dropped is not 0
 */
struct core_received {
	u64 offset;
	u64 size;
	u64 dropped;
	u64 return_flags;
};

/**
 * core_recv_select() - step: the message a RECV is about
 * @conn:      connection with an inbox
 * @flags:     enum kdbus_recv_flags
 * @priority:  threshold
 * @ret_entry: message, still queued. The host now installs its descriptors, unless it is
 *             peeked at or dropped
 *
 * Locks: conn. Return: 0; -EAGAIN: none.
 */
int core_recv_select(const struct core_conn *conn, u64 flags, s64 priority,
		     struct core_entry **ret_entry);

/**
 * core_recv_take() - step: peek at, receive or drop the message
 * @conn:  connection
 * @entry: from core_recv_select(); gone afterwards, unless it was peeked at
 * @flags: enum kdbus_recv_flags; DROP wins over PEEK
 * @ret:   where it lies; @dropped and @return_flags are not touched
 *
 * Locks: conn; if it is a call, conn of its requester, note.
 */
void core_recv_take(struct core_conn *conn, struct core_entry *entry, u64 flags,
		    struct core_received *ret);

/**
 * core_recv_report() - step: report the lost counter, on success and with EAGAIN
 * @conn: connection
 * @ret:  @dropped and @return_flags are set
 *
 * Locks: conn.
 */
void core_recv_report(struct core_conn *conn, struct core_received *ret);

/**
 * core_bus_recv() - receive (RECV, §6.15)
 * @conn:     connection with an inbox
 * @flags:    enum kdbus_recv_flags, checked by core_check_recv()
 * @priority: threshold
 * @install:  install the descriptors of a message that is received; NULL if there is
 *            nothing to do. A negative errno keeps it queued
 * @data:     for @install
 * @ret:      result; also set with -EAGAIN
 *
 * Composition. Return: 0; -ECONNRESET: not alive; -EAGAIN: no such message; what @install
 * returned.
 */
int core_bus_recv(struct core_conn *conn, u64 flags, s64 priority, core_install install,
		  void *data, struct core_received *ret);

#endif
