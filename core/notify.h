/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_NOTIFY_H
#define CORE_NOTIFY_H

/*
 * What the bus tells (spec §12, §7.7).
 *
 * Invariants
 *
 *  1. A notification is delivered while its event is carried out, so it needs no memory
 *     of its own and has arrived when the command that caused it returns (§1.10). The
 *     lock "note" keeps those of different events in order.
 *  2. Monitors first, then whoever has a match and, for names, may see the name.
 *  3. Only ordinary connections have matches; a monitor is no event.
 *  4. It is charged to the bus itself at each receiver. What cannot be queued is counted
 *     as lost, outcomes of calls included (defect 16 of §17.1).
 *  5. An outcome for a requester that is gone is told nobody.
 *
 * Locks: see core/bus.h; "note" on top of those of core_deliver().
 */

#include "deliver.h"

/**
 * core_notify() - tell all that want to know
 * @bus:    bus
 * @notice: NAME_... or ID_...
 *
 * Locks: bus, policy shared; names at least shared; matches exclusive.
 */
void core_notify(struct core_bus *bus, const struct core_notice *notice);

/**
 * core_notify_id() - tell that a connection came or went
 * @conn: connection; nothing is told of a monitor
 * @type: KDBUS_ITEM_ID_ADD or KDBUS_ITEM_ID_REMOVE
 *
 * Locks: as core_notify().
 */
void core_notify_id(struct core_conn *conn, u64 type);

/**
 * core_notify_name() - tell that a name has another owner
 * @bus:    bus
 * @change: from the name registry; nothing is told if its type is 0
 *
 * Locks: as core_notify(), names exclusive.
 */
void core_notify_name(struct core_bus *bus, const struct core_name_change *change);

/**
 * core_notify_outcome() - tell a requester how its call ended
 * @to:     requester
 * @event:  from core_reply_kill() or core_reply_expire(); a synchronous caller is woken
 * @cookie: of the call
 *
 * Locks: bus, names shared; conn(to).
 */
void core_notify_outcome(struct core_conn *to, enum core_reply_event event, u64 cookie);

/**
 * core_notify_dead() - a call will not be answered
 * @slot: its slot, or NULL; may be gone afterwards
 *
 * Kills the slot (EPIPE) and tells. Locks: conn of requester and replier, and those of
 * core_notify_outcome().
 */
void core_notify_dead(struct core_reply *slot);

/**
 * core_bus_expire() - end all calls whose deadline has passed
 * @deadlines: deadlines
 * @now:       CLOCK_MONOTONIC in ns
 *
 * Composition. Return: when to call again, in ns; ~0: not before another call is made.
 */
u64 core_bus_expire(struct core_deadlines *deadlines, u64 now);

#endif
