/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_BUS_H
#define BENCH_BUS_H

/**
 * DOC: private buses
 *
 * Each bus is started for the run, with a configuration of its own and an
 * address nobody else knows, and stopped after it.
 */

#include "options.h"

#include <sys/types.h>

enum bus_kind {
	BUS_NONE,
	BUS_KDBUS,
	BUS_DBUS_DAEMON, /* from here on: what speaks D-Bus; each has an entry in peers.c */
	BUS_DBUS_BROKER,
	BUS_KDBUSD, /* kdbusd in the place of dbus-daemon */
	N_BUSES
};
#define BUS_FIRST_BROKER BUS_DBUS_DAEMON
#define N_BROKERS	 (N_BUSES - BUS_FIRST_BROKER)

/**
 * struct bus - a running bus
 * @address: endpoint node (BUS_KDBUS) or D-Bus address
 * @pid: the process whose usage counts as the daemon's
 * @version: as the program says
 * @missing: instead of all that: why it cannot be had, and which package brings it
 */
struct bus {
	enum bus_kind kind;
	char address[160];
	pid_t pid;
	char version[64];
	char missing[128];
	char directory[96];
	int controller;
	void *own;
};

/**
 * bus_start() - start a bus of @kind
 *
 * Return: 0, with @ret->missing set if the program is not installed; or a
 *	negative errno after a message.
 */
int bus_start(enum bus_kind kind, const struct options *o, struct bus *ret);

/** bus_stop() - end it and remove its files */
void bus_stop(struct bus *b);

/* For the files that start one kind each; what they leave is cleared with bus_stop(). */
int bus_directory(struct bus *b);
void bus_log(const struct bus *b); /* in the child: stderr into a file */
int broker_start(struct bus *b);
void broker_stop(struct bus *b);

#endif
