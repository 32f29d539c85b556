/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_LAYOUT_H
#define CORE_LAYOUT_H

#include "msg.h"

/*
 * The image of a message in the pool of its receiver (spec §7.3):
 *
 *   header | user items | pad | metadata items | pad | payload bytes | pad
 *   `---------------- msg_size ----------------'
 *   `------------------------------ slice_size --------------------------'
 *
 * 1. msg_size ends with the last item, without padding; metadata and payload start at
 *    multiples of 8; slice_size is a multiple of 8.
 * 2. Items keep their order and their bytes, padding included, except that PAYLOAD_VEC
 *    becomes PAYLOAD_OFF and descriptor numbers read -1 until they are installed.
 * 3. A zero vector is delivered as offset ~0 and takes no room. (The reference added the
 *    payload base to it.)
 * 4. A byte of payload lies at the same position modulo 8 as in the logical stream of
 *    vectors and memfds: for a part of n bytes that is not stored, n mod 8 zero bytes
 *    are.
 * 5. The pieces of core_layout_next() cover [msg_size, slice_size) in ascending order,
 *    without gap or overlap. With the image and the metadata they are the whole slice.
 *
 * Pure functions of their arguments: any thread, no lock, no allocation.
 */

/**
 * struct core_layout - where the parts of an image lie
 * @meta_offset:    first byte of metadata
 * @msg_size:       size word of the delivered message
 * @payload_offset: first byte of payload
 * @payload_size:   bytes of payload stored, congruence padding included
 * @slice_size:     bytes of the whole slice
 *
 * Offsets count from the first byte of the message.
 */
struct core_layout {
	size_t meta_offset;
	size_t msg_size;
	size_t payload_offset;
	size_t payload_size;
	size_t slice_size;
};

/**
 * core_layout_init() - compute a layout
 * @m:         message that has passed core_msg_check()
 * @meta_size: bytes of metadata items for this receiver, without padding after the last
 * @ret:       layout
 */
void core_layout_init(const struct core_msg *m, size_t meta_size, struct core_layout *ret);

/**
 * core_layout_add_meta() - the layout of the same message with metadata
 * @layout:    without metadata; changed
 * @meta_size: as for core_layout_init()
 */
void core_layout_add_meta(struct core_layout *layout, size_t meta_size);

/**
 * core_layout_write() - write header and user items of an image
 * @m:      message
 * @layout: its layout for this receiver
 * @src_id: id of the sender
 * @dst:    first byte of the image, a multiple of 8; layout.meta_offset bytes are written
 */
void core_layout_write(const struct core_msg *m, const struct core_layout *layout, u64 src_id,
		       void *dst);

/**
 * struct core_layout_cursor - place in the payload of an image
 */
struct core_layout_cursor {
	const struct core_msg *m;
	const struct core_layout *layout;
	const struct kdbus_item *item;
	size_t offset;
};

/**
 * struct core_piece - bytes to be stored
 * @offset:  where, from the first byte of the message
 * @size:    how many, at least 1
 * @address: the sender's memory, or 0 for zero bytes
 */
struct core_piece {
	size_t offset;
	size_t size;
	u64 address;
};

/**
 * core_layout_start() - start walking the payload
 * @cursor: cursor
 * @m:      message
 * @layout: its layout for this receiver
 */
void core_layout_start(struct core_layout_cursor *cursor, const struct core_msg *m,
		       const struct core_layout *layout);

/**
 * core_layout_next() - get the next piece to be stored
 * @cursor: cursor
 * @ret:    piece
 *
 * Return: whether there was another piece.
 */
bool core_layout_next(struct core_layout_cursor *cursor, struct core_piece *ret);

#endif
