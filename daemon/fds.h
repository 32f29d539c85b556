/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DAEMON_FDS_H
#define DAEMON_FDS_H

/*
 * fds.h - room for descriptors that come with what clients send
 *
 * Those that find no room the kernel closes, in the thread that receives, and that can take for
 * ever (lib/closer.h). So some are kept free:
 *
 * 1. Where clients come in above fds_for_clients() they are refused.
 * 2. Whoever sends some that arrive above fds_for_messages() loses its connection; there is room
 *    for as many as come at once even then.
 * 3. From then on, until that part is free again, what has descriptors is received only where there
 *    is room for as many as come at once: else it stays in the socket, and whoever sent it loses
 *    its connection. What was received before may stay open for as long as somebody likes, also
 *    in that part when there is room below it.
 */

#include <sys/uio.h>

#include "daemon.h"

#define FDS_AT_ONCE 253 /* SCM_MAX_FD of the kernel */

static inline int fds_for_clients(const struct daemon *d)
{
	return (int)(d->fd_limit - min(d->fd_limit / 4, 2U * (FDS_AT_ONCE + 3)));
}

static inline int fds_for_messages(const struct daemon *d)
{
	return (int)(d->fd_limit - min(d->fd_limit / 8, (unsigned int)FDS_AT_ONCE + 3));
}

/* The operations of lanes (lane/ops.h), with room */
void fds_init(struct daemon *d);

/**
 * fds_lack_room() - must what lies in @sock stay there?
 * @iov:	what it is to be received into; it is written to
 */
bool fds_lack_room(struct daemon *d, int sock, struct iovec *iov, size_t n);

#endif
