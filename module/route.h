/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MODULE_ROUTE_H
#define MODULE_ROUTE_H

#include "message.h"

/*
 * Routing a message with the bus locked shared (spec §7.4 to §7.9), and waiting for the
 * reply to a synchronous call (spec §7.8).
 */

/**
 * kbus_lock_pair() - lock one or two connections
 * @a: connection
 * @b: connection, may be @a
 *
 * Locks: bus.lock shared.
 */
void kbus_lock_pair(struct kbus_conn *a, struct kbus_conn *b);

/* The counterpart. */
void kbus_unlock_pair(struct kbus_conn *a, struct kbus_conn *b);

/**
 * kbus_route() - send a message
 * @message:  message that has passed kbus_message_check()
 * @ret_slot: slot of a synchronous call, to be passed to kbus_wait(); NULL for others
 *
 * Return: 0 or an errno of core_bus_send().
 */
int kbus_route(struct kbus_message *message, struct core_reply **ret_slot);

/**
 * kbus_wait() - wait for the outcome of a synchronous call
 * @conn:     caller
 * @file:     its file
 * @slot:     slot
 * @deadline: CLOCK_MONOTONIC in ns; ~0 for none
 * @cancel:   file that cancels the call when it is readable, or NULL
 * @ret_info: where the reply lies
 *
 * Return: 0; -ECONNRESET, -EPIPE, -EREMOTEIO, -ECANCELED, -ERESTARTSYS, -ETIMEDOUT or why
 * the reply could not be queued.
 */
int kbus_wait(struct kbus_conn *conn, struct file *file, struct core_reply *slot, u64 deadline,
	      struct file *cancel, struct kdbus_msg_info *ret_info);

#endif
