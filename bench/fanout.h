/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_FANOUT_H
#define BENCH_FANOUT_H

/**
 * DOC: one broadcast, many receivers
 *
 * The server is l->receivers connections in one process, which waits for all
 * of them with epoll. Without l->matching none of them has a match, but one
 * more, the witness, has. A transaction is over when the last one that wants
 * the broadcast has checked it; the server says so in shared memory.
 */

#include "transport.h"

/** fanout_wanted() - how many receivers get each broadcast */
unsigned int fanout_wanted(const struct link *l);

/** fanout_total() - how many connections the server has; the first fanout_wanted() get it */
unsigned int fanout_total(const struct link *l);

/** fanout_received() - check one receiver's copy; after the last one, tell the client */
int fanout_received(struct link *l, const void *data, size_t size);

/** fanout_await() - in the client: wait until all have checked broadcast @n, from 1 */
void fanout_await(struct link *l, uint32_t n);

/**
 * fanout_poll() - sleep until one of @n descriptors is readable, again and again
 * @fds: descriptors
 * @ready: what to do with receiver i; its errno ends the loop
 */
int fanout_poll(struct link *l, const int *fds, unsigned int n,
		int (*ready)(struct link *l, unsigned int i));

#endif
