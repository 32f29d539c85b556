/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DAEMON_READING_H
#define DAEMON_READING_H

/*
 * reading.h - looking up processes in /proc, in threads of their own
 *
 * 1. The daemon's thread never reads in /proc of a client: reading its command line reads its
 *    memory, and that can be made to wait for as long as it likes (creds.h). It asks for a
 *    *reading*, and goes on with others. A peer has one reading at a time.
 * 2. Everything that takes no time is read by one thread, in order. What can take for ever is read
 *    by others, READERS_MAX at most and half of them for one uid.
 * 3. Nobody waits for a thread in vain: when all threads that could do it have been at the same
 *    command lines for READERS_PATIENCE_MS, the next reading ends without one. So whoever blocks
 *    readings takes command lines away from others, but holds up only himself, and whoever asks
 *    for his.
 * 4. What waits for a reading: the HELLO of a client (command.c), what it sends while somebody on
 *    the bus wants what was not read (client.c), the input of a classic peer (classic/cpeer.c), and
 *    questions about it (command.c). When it is over, peer_read() has them go on.
 * 5. A peer that ends forgets its reading, which ends by itself; of those that have not begun
 *    nothing is left.
 */

#include "peer.h"

#define READERS_MAX	    16
#define READERS_PATIENCE_MS 2000

struct readers;

int readers_start(struct daemon *d, struct readers **ret);
struct readers *readers_stop(struct readers *readers);

/**
 * reading_needed() - is something that is wanted of a peer still to be read? Then it is begun.
 * @p:		peer
 * @want:	kinds of CREDS_LATE; CREDS_WHO is always among them
 *
 * Return: whether there is anything to wait for: peer_read() will come.
 */
bool reading_needed(struct peer *p, u64 want);

/* The peer ends. */
void reading_forget(struct peer *p);

#endif
