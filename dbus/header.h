/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The header of a D-Bus message: framing, parsing, and replacing it in front of an untouched body.
 *
 * A message is 16 fixed bytes (byte order, type, flags, version, body length, serial, length of
 * the fields), the array of fields, zero bytes up to a multiple of 8, and the body.
 *
 * 1. A broken length is refused from the first 16 bytes, before anything else is waited for.
 * 2. A parsed header is a view: its text points into the message and needs it to stay.
 * 3. Parsing is one pass over the header, O(header bytes), without allocation; a typical method
 *    call takes some 100 ns.
 * 4. Unknown flags, types from 5 and fields from 10 are accepted if they are well-formed
 *    ("Invalid Protocol and Spec Extensions").
 * 5. Rewriting copies header bytes only. The body starts on a multiple of 8 before and after, so
 *    its bytes stay valid.
 *
 * No I/O, no globals: any thread, one message at a time.
 */
#ifndef DBUSP_HEADER_H
#define DBUSP_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dbus/str.h"
#include "dbus/why.h"

#define DBUSP_MESSAGE_MAX (128U << 20)	/* bytes of header and body ("Message Format") */
#define DBUSP_FIELDS_MAX (64U << 20)	/* bytes of the field array, as of any array */
#define DBUSP_FIXED_LEN 16		/* bytes from which all lengths are known */

enum dbusp_type {
	DBUSP_METHOD_CALL = 1,
	DBUSP_METHOD_RETURN = 2,
	DBUSP_ERROR = 3,
	DBUSP_SIGNAL = 4,
};

enum dbusp_flag {
	DBUSP_NO_REPLY_EXPECTED = 0x1,
	DBUSP_NO_AUTO_START = 0x2,
	DBUSP_ALLOW_INTERACTIVE_AUTHORIZATION = 0x4,
};

enum dbusp_field {
	DBUSP_FIELD_PATH = 1,
	DBUSP_FIELD_INTERFACE = 2,
	DBUSP_FIELD_MEMBER = 3,
	DBUSP_FIELD_ERROR_NAME = 4,
	DBUSP_FIELD_REPLY_SERIAL = 5,
	DBUSP_FIELD_DESTINATION = 6,
	DBUSP_FIELD_SENDER = 7,
	DBUSP_FIELD_SIGNATURE = 8,
	DBUSP_FIELD_UNIX_FDS = 9,
	_DBUSP_FIELD_MAX,
};

/* What the first 16 bytes say. */
struct dbusp_frame {
	bool big;		/* big endian */
	uint8_t type;		/* enum dbusp_type, or one unknown to us; never 0 */
	uint8_t flags;		/* enum dbusp_flag and unknown bits */
	uint32_t body_len;	/* bytes */
	uint32_t serial;	/* never 0 */
	uint32_t fields_len;	/* bytes of the field array, without padding */
	uint32_t header_len;	/* bytes of fixed part, fields and padding */
	uint32_t total_len;	/* header_len + body_len */
};

struct dbusp_header {
	struct dbusp_frame frame;
	uint16_t present;	/* bit n: field n is there */
	bool unknown;		/* there are fields from code 10 on */
	uint32_t reply_serial;	/* 0: absent */
	uint32_t reply_serial_at; /* where that is in the message; 0: absent */
	uint32_t n_fds;		/* UNIX_FDS, 0 if absent */
	/* Absent text has s == NULL, but an absent signature is the empty one. */
	struct dbusp_str path, interface, member, error_name, destination, sender, signature;
};

/**
 * dbusp_frame_parse() - the lengths of the message that begins in a receive buffer
 * @ret: filled in on success
 * @buf: received bytes, from the first of the message on
 * @len: their number; may be less or more than the message
 * @max: largest message to accept, in bytes; values above DBUSP_MESSAGE_MAX count as that
 * @ret_why: reason on failure, or NULL
 *
 * Constant time. Wait for ret->total_len bytes before calling dbusp_header_parse() and
 * dbusp_body_check().
 *
 * Return: 0; -EAGAIN if fewer than DBUSP_FIXED_LEN bytes are there and nothing is wrong so far;
 * -EBADMSG for a wrong byte order, type 0, a version other than 1, or serial 0; -EMSGSIZE if
 * fields or message are too large.
 */
int dbusp_frame_parse(struct dbusp_frame *ret, const void *buf, size_t len, size_t max,
		      enum dbusp_why *ret_why);

/**
 * dbusp_header_parse() - parse and validate the header of a message
 * @ret: filled in on success
 * @msg: the message; at least its whole header
 * @len: bytes at @msg
 * @max: as in dbusp_frame_parse()
 * @ret_why: reason on failure, or NULL
 *
 * Checks types, names, duplicates, the fields the message type requires, the reserved Local path
 * and interface, and padding ("Header Fields", "Valid Names"). A sender that is no valid bus name
 * is refused too, though a bus overwrites it.
 *
 * Return: 0; -EAGAIN if @len is less than the header; -EBADMSG if it breaks a rule; -EMSGSIZE as
 * in dbusp_frame_parse().
 */
int dbusp_header_parse(struct dbusp_header *ret, const void *msg, size_t len, size_t max,
		       enum dbusp_why *ret_why);

/**
 * dbusp_header_parse_behind() - dbusp_header_parse() for who has the frame already
 * @ret: filled in on success
 * @frame: what dbusp_frame_parse() said of @msg
 * @msg: the message; at least its whole header
 * @len: bytes at @msg
 * @ret_why: reason on failure, or NULL
 *
 * Return: 0; -EAGAIN if @len is less than the header; -EBADMSG if it breaks a rule.
 */
int dbusp_header_parse_behind(struct dbusp_header *ret, const struct dbusp_frame *frame,
			      const void *msg, size_t len, enum dbusp_why *ret_why);

/**
 * dbusp_header_room() - bytes that are enough for a rewritten header
 * @header: parsed header
 * @sender_len: bytes of the new sender
 *
 * Return: bytes.
 */
size_t dbusp_header_room(const struct dbusp_header *header, size_t sender_len);

/**
 * dbusp_header_rewrite() - a header with another sender, for the same body
 * @header: parsed header of @msg
 * @msg: the message it was parsed from
 * @sender: new SENDER, a valid bus name; one with s == NULL removes the field
 * @strip: leave out fields unknown to this library (HeaderFiltering)
 * @buf: where to write, not overlapping @msg
 * @size: bytes at @buf
 * @ret_len: length written, a multiple of 8; the body follows at that offset
 *
 * The other fields keep order and bytes; SENDER comes last. O(header bytes).
 *
 * Return: 0; -ENOBUFS if @size is less than needed (dbusp_header_room() always suffices);
 * -EMSGSIZE if the message would grow past a limit of the format; -EINVAL if @sender is no bus
 * name.
 */
int dbusp_header_rewrite(const struct dbusp_header *header, const void *msg,
			 struct dbusp_str sender, bool strip, void *buf, size_t size,
			 uint32_t *ret_len);

#endif
