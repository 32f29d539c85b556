/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef LIB_WIRE_H
#define LIB_WIRE_H

/*
 * wire.h - messages in record form (lib/control.h)
 *
 * 1. A record is checked with the code that checks SEND, from a private copy.
 * 2. A payload area is the same bytes for every receiver: what differs is only where it starts. So
 *    it is copied as one piece.
 * 3. Pure functions of their arguments: any thread, no allocation.
 */

#include <sys/types.h>

#include "layout.h"

/**
 * struct wire - a message in record form
 * @m:		the message, checked
 * @layout:	its layout without metadata; payload_offset bytes are its image
 */
struct wire {
	struct core_msg m;
	struct core_layout layout;
};

/**
 * wire_init() - prepare a message that passed core_msg_check() for a record
 */
void wire_init(struct wire *w, const struct core_msg *m);

/**
 * wire_image() - write header and items in record form
 * @w:		from wire_init()
 * @dst:	w->layout.payload_offset bytes, 8-byte aligned
 */
void wire_image(const struct wire *w, void *dst);

/**
 * wire_payload() - copy the vectors
 * @w:		from wire_init()
 * @dst:	w->layout.payload_size bytes
 */
void wire_payload(const struct wire *w, void *dst);

/**
 * wire_parse() - check a record
 * @body:	private copy of the message, 8-byte aligned
 * @size:	its bytes: image, and payload area unless that is elsewhere
 * @elsewhere:	bytes of payload outside the record (bulk buffer), or -1 if it is inline
 * @bloom_size:	of the bus
 * @fds:	descriptors that came with it
 * @memfds:	payload memfds that came with it
 * @ret:	points into @body
 *
 * Return: 0, or the errno of SEND for it, or -EPROTO if the parts do not fit together.
 */
int wire_parse(void *body, size_t size, ssize_t elsewhere, u64 bloom_size, u32 fds, u32 memfds,
	       struct wire *ret);

/**
 * wire_check_fds() - check the descriptors that came with a record (ABI 7.2), from anybody
 * @w:		parsed
 * @fds:	those of the FDS item, then the payload memfds; negative: there was no room for it
 *		in this process
 *
 * Nothing in it can block: payload memfds are asked for their seals first, and of other files no
 * file system is asked.
 *
 * Return: 0, or the errno of SEND for it.
 */
int wire_check_fds(const struct wire *w, const int *fds);

/**
 * wire_deliver() - make the image for the application out of a parsed record
 * @w:		parsed
 * @src_id:	who sent it
 * @meta:	metadata items, or NULL
 * @meta_size:	their bytes, a multiple of 8
 * @dst:	where the message starts in the pool; must not overlap the image of @w
 * @seen:	the same place as the application sees it
 * @outside:	where the payload area is, if it does not follow in the pool; else NULL
 */
void wire_deliver(const struct wire *w, u64 src_id, const void *meta, size_t meta_size, void *dst,
		  const void *seen, const void *outside);

#endif
