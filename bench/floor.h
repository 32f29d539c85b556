/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

/**
 * DOC: how near a D-Bus daemon is to what no daemon between two sockets can go below
 *
 * The floor of a client library is what it takes without a bus, plus what a process that only
 * copies between two sockets (FLOOR_RELAY) adds to one socket (FLOOR_SOCKET). All four are subjects
 * of the same run, so there is a floor for each repetition, and a ratio to it for each.
 */

#include "report.h"

#define FLOOR_SOCKET "socket"
#define FLOOR_RELAY  "socket dbus"

/**
 * struct floor_library - a client library in a report
 * @name: what tables call it
 * @direct: the subject without a bus
 * @buses: the subjects on one, @n_buses of them
 */
struct floor_library {
	const char *name;
	const char *direct;
	const char *const *buses;
	unsigned int n_buses;
};

/**
 * floor_print() - a table of times and one of the daemons' CPU time, where the run has the subjects
 * @headings: of the columns, as many as a library has buses
 */
void floor_print(const struct report *r, const struct floor_library *libraries, unsigned int n,
		 const char *const *headings);

#endif
