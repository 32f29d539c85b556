/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_SEND_H
#define CORE_SEND_H

/*
 * Where a message goes (spec §7.4 to §7.9).
 *
 * Invariants
 *
 *  1. Errors come in the order of the spec: what does not exist before what is not
 *     allowed, then the limit on calls, then what the receiver has no room for.
 *  2. Monitors get a message before its receivers, and only after it has passed
 *     everything that concerns the sender alone.
 *  3. A call that fails leaves no reply slot. A reply consumes its slot even if it cannot
 *     be queued.
 *  4. An open slot is the permission to reply; nothing else is asked.
 *  5. Whether a signal arrives is the receiver's affair: his matches, his permission. The
 *     sender is told nothing. One that does not fit is counted at the receiver, a
 *     unicast one, too (defect 15 of §17.1, which §7.6 describes).
 *
 * Locks: see core/bus.h. A message must meet one state of the name registry from
 * resolving its destination to being queued (§1.10): names is held shared throughout.
 */

#include "deliver.h"

/**
 * struct core_dst - a resolved destination
 * @conn:    receiver
 * @name_id: internal id of the name the message is addressed to, 0 if by id
 */
struct core_dst {
	struct core_conn *conn;
	u64 name_id;
};

/**
 * core_send_resolve() - step: find the receiver of a unicast (§7.4)
 * @bus:     bus
 * @msg:     message, not a broadcast
 * @ret_dst: receiver
 *
 * O(log n). Locks: bus, names, both shared.
 *
 * Return: 0; -ENXIO: no such id, or not an ordinary connection; -ESRCH: no such name;
 * -EREMCHG: the id is not that of the name's owner; -EADDRNOTAVAIL: only an activator
 * owns it, and the message is not to start anything.
 */
int core_send_resolve(struct core_bus *bus, const struct core_msg *msg, struct core_dst *ret_dst);

/**
 * core_send_wants() - step: does a connection get this signal? (§7.6, §7.9)
 * @parcel: signal of a connection
 * @to:     receiver of a unicast signal
 *
 * Its matches, and TALK from it to the sender. Locks: names, policy, matches, all shared.
 */
bool core_send_wants(const struct core_parcel *parcel, const struct core_conn *to);

/**
 * core_send_signal() - describe a signal for the match index
 * @parcel:     signal of a connection
 * @ret_signal: points into @parcel
 */
void core_send_signal(const struct core_parcel *parcel, struct core_signal *ret_signal);

/**
 * core_send_open() - step: open the reply slot of a call (§7.7)
 * @parcel:   call
 * @dst:      receiver
 * @ret_slot: slot
 *
 * Locks: conn of both. Return: 0; -EMLINK; -ENOMEM.
 */
int core_send_open(const struct core_parcel *parcel, const struct core_dst *dst,
		   struct core_reply **ret_slot);

/**
 * core_send_reply() - step: deliver what answers a synchronous call (§7.8)
 * @parcel: reply
 * @slot:   slot of the call, from core_reply_take(); not to be used afterwards
 * @to:     the caller
 *
 * The reply is never queued: the caller collects it. Locks: as core_deliver().
 *
 * Return: 0; -ECOMM: the caller takes no descriptors, and is told EREMOTEIO; -ECONNRESET:
 * it no longer waits; else what core_deliver() returns, which the caller is told too.
 */
int core_send_reply(const struct core_parcel *parcel, struct core_reply *slot,
		    struct core_conn *to);

/**
 * core_send_fill() - step: put a message into a pool, and do not queue it yet
 * @parcel:    message
 * @to:        receiver with an inbox
 * @ret_entry: entry, for core_send_settle() or core_deliver_push()
 *
 * Locks: as core_deliver(). Return: as core_deliver().
 */
int core_send_fill(const struct core_parcel *parcel, struct core_conn *to,
		   struct core_entry **ret_entry);

/**
 * core_send_settle() - step: give a synchronous call its outcome
 * @slot:  slot of the call, from core_reply_take(); not to be used afterwards
 * @to:    the caller
 * @r:     what core_send_fill() has returned for the reply
 * @entry: the reply, if that was 0; else NULL
 *
 * Locks: as core_deliver(). Return: as core_send_reply(), which is both steps.
 */
int core_send_settle(struct core_reply *slot, struct core_conn *to, int r,
		     struct core_entry *entry);

/**
 * struct core_send - a message to be sent
 * @from: sender, an ordinary connection
 * @msg:  message, accepted by core_msg_check()
 * @cred: current credentials of the caller; NULL: those of @from at open
 * @now:  CLOCK_MONOTONIC in ns; for synchronous calls
 * @host: for core_parcel.host
 */
struct core_send {
	struct core_conn *from;
	const struct core_msg *msg;
	const struct core_cred *cred;
	u64 now;
	void *host;
};

/**
 * core_bus_send() - send a message (SEND, §6.14 step 8)
 * @send:     message
 * @ret_slot: for a synchronous call: its slot, to wait on until core_reply_settled(); may
 *            be so at once. End it with core_send_collect() or core_send_give_up(), or
 *            leave it with core_reply_interrupt(). NULL for all other messages. The
 *            pointer may be NULL if the message is no synchronous call
 *
 * Composition. Return: 0, or
 *  -ECONNRESET   the sender, or meanwhile the receiver, is not alive
 *  -ETIMEDOUT    the deadline of a synchronous call has passed already
 *  -ENXIO, -ESRCH, -EREMCHG, -EADDRNOTAVAIL
 *                see core_send_resolve()
 *  -EPERM        no TALK permission
 *  -EBADSLT      reply to a call that is not waiting
 *  -EMLINK       too many calls
 *  ...           see core_deliver(); unicast that is no signal
 */
int core_bus_send(const struct core_send *send, struct core_reply **ret_slot);

/**
 * core_send_collect() - take the outcome of a synchronous call
 * @conn:     caller
 * @slot:     settled; gone afterwards
 * @install:  install the descriptors of the reply; NULL if there is nothing to do
 * @data:     for @install
 * @ret_info: where the reply lies in the pool, and no flags; published. Not set on
 *            failure
 *
 * Composition. Locks: conn. Return: 0; -EPIPE: the replier died or dropped the request;
 * -EREMOTEIO: the reply carried descriptors; else why it could not be queued, or what
 * @install returned.
 */
int core_send_collect(struct core_conn *conn, struct core_reply *slot, core_install install,
		      void *data, struct kdbus_msg_info *ret_info);

/**
 * core_send_give_up() - end a synchronous call: timeout, cancelled, dead
 * @conn: caller
 * @slot: its slot
 *
 * Composition. Locks: conn of caller and replier.
 */
void core_send_give_up(struct core_conn *conn, struct core_reply *slot);

#endif
