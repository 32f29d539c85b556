/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DBUSP_KNOWN_H
#define DBUSP_KNOWN_H

/*
 * known.h - to know a header again
 *
 * Programs send the same header over and over: of two calls of a method, or of two signals, only
 * the serial differs, and of two replies that of the call. To compare its fields with those of a
 * message before takes a fraction of what checking them takes.
 *
 * 1. What dbusp_header_parse_behind() says of fields depends on their bytes, on the byte order and
 *    on the type of the message. Where all of these are the same, but for the value of
 *    REPLY_SERIAL, it says the same, with that value.
 * 2. Only what was found valid is remembered.
 */

#include "dbus/header.h"

#define DBUSP_KNOWN_MAX 248 /* bytes; longer fields are checked each time */

/**
 * struct dbusp_known - a header that was checked; zeroed: none
 * @header:	what was found; its texts are in @fields
 * @len:	bytes of the fields, with the padding behind them
 * @serial_at:	where among them the value of REPLY_SERIAL is; @len: nowhere
 * @fields:	their bytes
 */
struct dbusp_known {
	struct dbusp_header header;
	uint32_t len;
	uint32_t serial_at;
	uint8_t fields[DBUSP_KNOWN_MAX];
};

/**
 * dbusp_header_parse_known() - dbusp_header_parse_behind() for who may have seen the same before
 * @known: what is likely to be the same; what was parsed takes its place if it is not
 */
int dbusp_header_parse_known(struct dbusp_known *known, struct dbusp_header *ret,
			     const struct dbusp_frame *frame, const void *msg, size_t len,
			     enum dbusp_why *ret_why);

#endif
