/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_LINK_H
#define BENCH_LINK_H

/**
 * DOC: starting links and having them measured
 *
 * Rules
 *
 * 1. All links of a run exist before the first is measured, so that they can
 *    take turns; those that have no turn sleep.
 * 2. The client measures: it reads the clock and the usage of all roles right
 *    before and after its transactions.
 * 3. Functions of the main process that fail because of a link have printed
 *    what is wrong, prefixed with the subject; -EINTR after a signal is silent.
 */

#include "options.h"
#include "transport.h"

/**
 * struct link_plan - what link_start() is to start
 * @transport: how
 * @address: of the bus, or NULL
 * @daemon: process of the bus, or 0
 * @subject: what tables call it
 * @threads: client and server are threads of one process
 * @relayed: with a third process that forwards
 * @receivers: for broadcasts: how many the server is
 * @matching: do they all have a match? One always has
 */
struct link_plan {
	const struct transport *transport;
	const char *address;
	pid_t daemon;
	const char *subject;
	bool threads;
	bool relayed;
	unsigned int receivers;
	bool matching;
};

/**
 * link_start() - make the processes of a link
 * @plan: copied, but for the strings @address
 * @options: pinning and corruption on purpose
 * @ret: the running link; end it with link_stop()
 *
 * Return: 0 or a negative errno.
 */
int link_start(const struct link_plan *plan, const struct options *options, struct link **ret);

/** link_stop() - end its processes and free it, or NULL */
void link_stop(struct link *l);

/** link_order() - have the client begin; pair with link_wait() */
int link_order(struct link *l, const struct order *order);

/** link_wait() - wait for the end of an order; the result is in shared memory */
int link_wait(struct link *l);

/** link_run() - link_order() and link_wait() */
int link_run(struct link *l, const struct order *order);

#endif
