/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DAEMON_RANDOM_H
#define DAEMON_RANDOM_H

/*
 * random.h - random bytes for ids, names of sockets and keys of hash tables
 *
 * Never waits: a system bus starts when the kernel may not have gathered enough yet, and what it
 * would have to gather from may wait for the bus. None of these bytes keeps a secret for longer
 * than the bus lives. (Before Linux 5.6 there is no such promise to be had, and it waits.)
 */

#include <stddef.h>

/* Return: 0; -errno */
int random_fill(void *buf, size_t len);

#endif
