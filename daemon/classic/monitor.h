/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_MONITOR_H
#define CLASSIC_MONITOR_H

/*
 * monitor.h - peers that only look on (org.freedesktop.DBus.Monitoring)
 *
 * 1. A monitor has no name and sends nothing. It gets each message that one of its rules matches,
 *    as if they all said eavesdrop='true', once, before its receivers do: also what the bus
 *    refuses, what goes to the bus and what comes from it.
 * 2. It costs senders nothing: one that does not keep up is ended. What it may not have
 *    (descriptors it did not negotiate) it misses.
 * 3. While there is none, none of this costs anything.
 *
 * D-Bus specification, "Message Bus Messages", BecomeMonitor.
 */

#include "classic.h"

struct driver_table;

/**
 * struct monitor - a monitor's rules
 * @entry: in classic.monitors
 * @peer:  who
 * @rules: conditions, one after the other; each of dbusp_match_size() bytes, aligned to 2
 * @n:     how many
 * @size:  bytes of all
 */
struct monitor {
	struct list_head entry;
	struct cpeer *peer;
	size_t n;
	size_t size;
	unsigned char rules[];
};

/* Show a message to all who look on. @to: whom it is addressed to; NULL: the bus, or nobody */
void monitor_show(struct classic *k, struct cmsg *m, const struct peer *to);

static inline void monitor_see(struct classic *k, struct cmsg *m, const struct peer *to)
{
	if (!list_empty(&k->monitors))
		monitor_show(k, m, to);
}

/* A peer has gone; nothing happens if it is no monitor. */
void monitor_end(struct cpeer *c);

extern const struct driver_table driver_monitor;

#endif
