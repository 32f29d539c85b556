/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MODULE_LIFE_H
#define MODULE_LIFE_H

#include <linux/poll.h>
#include <linux/seq_file.h>

#include "arg.h"
#include "limits.h"
#include "object.h"

/*
 * A connection from HELLO to the end of its file (spec §1.8, §6.4).
 */

/**
 * kbus_conn_hello() - connect (HELLO)
 * @ep:       endpoint
 * @file:     the file it was opened as
 * @arg:      argument; the results are in its copy afterwards
 * @ret_conn: connection, ended by kbus_conn_end()
 *
 * Return: 0 or an errno of spec §6.4.
 */
int kbus_conn_hello(struct kbus_endpoint *ep, struct file *file, struct kbus_arg *arg,
		    struct kbus_conn **ret_conn);

/**
 * kbus_conn_end() - its file is closed: disconnect, and free it
 * @conn: connection
 */
void kbus_conn_end(struct kbus_conn *conn);

/**
 * kbus_conn_poll() - what poll() tells of it (spec §7.10)
 * @conn:  connection
 * @file:  its file
 * @table: who polls
 */
__poll_t kbus_conn_poll(struct kbus_conn *conn, struct file *file, poll_table *table);

/**
 * kbus_conn_show() - print what is known of it, for /proc/PID/fdinfo/FD
 * @conn: connection
 * @seq:  where to
 *
 * One "kdbus-WHAT: VALUE" a line; new ones may be added, their order is not fixed.
 */
void kbus_conn_show(struct kbus_conn *conn, struct seq_file *seq);

/**
 * kbus_conn_arm() - look after the deadlines of its calls
 * @conn: connection
 *
 * Locks: bus.lock shared and conn.lock, or bus.lock exclusive.
 */
void kbus_conn_arm(struct kbus_conn *conn);

/**
 * kbus_conn_answer() - put an answer into the pool, published
 * @conn:       connection
 * @src:        bytes
 * @size:       how many, > 0
 * @ret_offset: where they are
 *
 * Locks: bus.lock shared and conn.lock, or bus.lock exclusive. Return: 0; -EXFULL;
 * -ENOMEM.
 */
int kbus_conn_answer(struct kbus_conn *conn, const void *src, size_t size, u64 *ret_offset);

/* What one message may need: a pool that is emptied after each has its pages ready for the next. */
#define KBUS_POOL_KEEP (CORE_MSG_MAX_PAYLOAD_VEC_SIZE + (64U << 10))

/* kbus_conn_trim() for a pool that has had more in it */
void kbus_conn_trim_backlog(struct kbus_conn *conn);

/**
 * kbus_conn_trim() - give back memory of the pool that a backlog has left
 * @conn: connection, of whose pool something may just have become free
 *
 * Locks: bus.lock shared and conn.lock, or bus.lock exclusive.
 */
static inline void kbus_conn_trim(struct kbus_conn *conn)
{
	if (unlikely(conn->core.inbox.pool.touched > KBUS_POOL_KEEP))
		kbus_conn_trim_backlog(conn);
}

/**
 * kbus_conn_alive() - may a command be executed on it?
 * @conn: connection
 *
 * A hint without bus.lock, the truth with it.
 */
static inline bool kbus_conn_alive(const struct kbus_conn *conn)
{
	return READ_ONCE(conn->core.state) == CORE_CONN_ACTIVE;
}

#endif
