/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_PAYLOAD_H
#define BENCH_PAYLOAD_H

/**
 * DOC: what messages carry, and how it is checked
 *
 * Rules
 *
 * 1. The payload of message number n is a fixed pattern of lower-case letters
 *    (a valid string for every bus) whose first eight bytes, as far as it is
 *    that long, spell n. So a lost, doubled, reordered or stale message shows
 *    as well as a damaged one.
 * 2. The receiver compares every byte of every message.
 * 3. Each side counts for itself; nothing about the expected content travels
 *    outside the message.
 */

#include <stddef.h>
#include <stdint.h>

#define PAYLOAD_MAX (4U << 20)

/**
 * struct payload - a sender's or receiver's end of a series of messages
 * @data: the pattern, PAYLOAD_MAX bytes and a NUL, stamped with @seq
 * @seq: number of the next message
 * @corrupt: number of the message to damage, 0 for none
 */
struct payload {
	unsigned char *data;
	uint64_t seq;
	uint64_t corrupt;
};

/** payload_init() - make the pattern; 0 or -ENOMEM */
int payload_init(struct payload *p, uint64_t corrupt);

/** payload_clear() - free it */
void payload_clear(struct payload *p);

/** payload_next() - stamp the next message and hand out its first byte */
unsigned char *payload_next(struct payload *p);

/** payload_fixed() - the pattern as if it were message 0, damaged if any is to be */
unsigned char *payload_fixed(struct payload *p);

/** payload_next_string() - as payload_next(), NUL-terminated behind @size bytes */
const char *payload_next_string(struct payload *p, size_t size);

/** payload_end_string() - take the NUL away again */
void payload_end_string(struct payload *p, size_t size);

/**
 * payload_check() - compare a received message with the one that is due
 * @p: receiver's end
 * @data: what came
 * @size: bytes of it
 * @expected: bytes there should be
 * @error: where to say what is wrong
 * @error_size: bytes in @error
 *
 * Return: 0, or -EBADMSG with @error written.
 */
int payload_check(struct payload *p, const void *data, size_t size, size_t expected, char *error,
		  size_t error_size);

#endif
