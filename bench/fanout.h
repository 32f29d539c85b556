/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_FANOUT_H
#define BENCH_FANOUT_H

/**
 * DOC: one broadcast, many receivers
 *
 * The server is l->receivers connections in one process, which waits for all
 * of them with epoll. Without l->matching none of them has a match, but one
 * more, the witness, has. A transaction is over when the last one that wants
 * the broadcast has checked it; the server says so in shared memory. Several
 * may be in flight: then it says so once the last receiver has the last one.
 */

#include "transport.h"

/** fanout_wanted() - how many receivers get each broadcast */
unsigned int fanout_wanted(const struct link *l);

/** fanout_total() - how many connections the server has; the first fanout_wanted() get it */
unsigned int fanout_total(const struct link *l);

/** fanout_received() - check the copy of the receiver that is ready; tell the client of the last */
int fanout_received(struct link *l, const void *data, size_t size);

/**
 * fanout_send() - in the client: @count broadcasts, @window of them at a time
 * @send: sends one
 *
 * Each @window is sent, and then all of it awaited.
 */
int fanout_send(struct link *l, const struct job *job, uint64_t count, unsigned int window,
		int (*send)(struct link *l, const struct job *job));

/**
 * fanout_poll() - sleep until one of @n descriptors is readable, again and again
 * @fds: descriptors
 * @ready: what to do with receiver i; its errno ends the loop
 */
int fanout_poll(struct link *l, const int *fds, unsigned int n,
		int (*ready)(struct link *l, unsigned int i));

#endif
