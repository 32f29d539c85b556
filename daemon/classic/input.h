/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_INPUT_H
#define CLASSIC_INPUT_H

/*
 * input.h - what peers send
 *
 * 1. One recvmsg() a round and peer, for as many messages as are there. What is complete is acted
 *    on in place; the beginning of a message moves to a buffer of the peer's own, which has room
 *    for all of it, and from then on is received into: each byte is copied at most once. Where a
 *    large message is expected only its beginning is received first, and the rest at once.
 * 2. A message is checked completely before anybody else sees a byte of it. What breaks a rule ends
 *    the peer.
 * 3. What has come of a begun message is on the account of the peer's user; the peer with which
 *    that has too much ends.
 * 4. Descriptors belong to the first message from there on that asks for some. One that asks for
 *    more than have come by its last byte ends the peer, and so do descriptors nobody asks for.
 */

#include "classic.h"
#include "timer.h"

#define INPUT_SIZE (512U << 10) /* of all peers in a round */
#define INPUT_RECV (64U << 10) /* of one peer in a round, besides what completes a message */
#define INPUT_RECV_MORE (160U << 10) /* the same of one whose last message was not small */
#define INPUT_WHOLE (128U << 10) /* larger ones come in pieces anyway: sockets have no room */
#define INPUT_PEEK 2048 /* the same of one whose last message was as large as that */
#define INPUT_ANSWERS (4U << 20) /* bytes that one peer gets in a round before it is looked at */
#define INPUT_FDS 253 /* the kernel passes no more at once */

/**
 * struct partial - what a peer has begun to send
 * @buf:	a message with a beginning, or NULL: only descriptors are there
 * @have:	bytes of it
 * @sized:	@buf is as long as the message; else as what says how long that is
 * @fds, @n_fds: descriptors that no message has asked for
 * @charged:	bytes of it on the account of the peer's user
 * @timeout:	set while there are some: pending_fd_timeout
 */
struct partial {
	struct cbuf *buf;
	size_t have;
	bool sized;
	size_t charged;
	struct cpeer *peer;
	struct timeout timeout;
	unsigned int n_fds;
	int fds[];
};

#endif
