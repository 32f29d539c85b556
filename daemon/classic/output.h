/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_OUTPUT_H
#define CLASSIC_OUTPUT_H

/*
 * output.h - the queue of a receiver
 *
 * 1. In a round, a message is one or two *segments*: pieces of the buffers of the round, or of a
 *    counted buffer. Segments that lie next to each other are one, so what several messages of one
 *    sender leave for many receivers is one piece of memory.
 * 2. When a receiver is flushed, what its socket did not take moves to *blocks* of its own, behind
 *    those that wait already: bytes of the round are copied, counted buffers referred to.
 * 3. Descriptors go with the first byte of their message, so a sendmsg() ends before one that has
 *    some.
 * 4. Blocks are charged to the account of the receiver's uid.
 */

#include "classic.h"

#define OUTPUT_SIZE (256U << 10) /* headers and small messages of a round */
#define OUTPUT_SEGS 4096
#define OUTPUT_JOIN_MAX 2048 /* bodies up to this are copied behind their header */
#define OUTPUT_IOV 64

struct seg {
	struct seg *next;
	const unsigned char *data;
	size_t len;
	struct cbuf *buf;
	struct cfds *fds;
};

struct oblock {
	struct oblock *next;
	const unsigned char *data;
	size_t len;
	size_t charged;
	struct cbuf *buf;
	struct cfds *fds;
	unsigned char own[];
};

/* Bytes without a message around them, of output_room() */
int output_add_raw(struct cpeer *to, const unsigned char *data, size_t len, struct cfds *fds);

#endif
