/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_OUTGOING_H
#define CLASSIC_OUTGOING_H

/*
 * outgoing.h - a classic message while it is made a native one: what does not depend on the carrier
 *
 * 1. Its payload is the D-Bus message with its sender filled in: head and body of struct cmsg.
 * 2. The serial of a call is its cookie, and the other way round, so that replies find their way by
 *    the number alone.
 */

#include "classic.h"

/* Header, vectors or memfd, name, descriptors, bloom filter */
#define OUTGOING_IMAGE_MAX (1024 + CORE_BUS_BLOOM_MAX_SIZE)

/* Bytes of the payload */
size_t outgoing_size(const struct cmsg *m);
/* The payload in one piece, to be freed; NULL: no memory */
unsigned char *outgoing_joined(const struct cmsg *m);
/* The payload as a sealed memfd; negative errno */
int outgoing_memfd(const struct cmsg *m);
/* All of the header but its size; flags of a call, cookies */
void outgoing_head(struct kdbus_msg *msg, const struct cmsg *m, u64 dst_id);
/* The item that a signal for all needs */
void outgoing_bloom(struct core_writer *w, const struct core_bus *bus, struct cmsg *m);

#endif
