/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lines of the authentication protocol: what server and client share. Internal to dbus/.
 */
#ifndef DBUSP_SASL_LINE_H
#define DBUSP_SASL_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dbus/str.h"

/* Replies being written. The caller of append made sure there is room. */
struct dbusp_sasl_out {
	char *buf;
	size_t size, len;
};

static inline void dbusp_sasl_put(struct dbusp_sasl_out *out, struct dbusp_str s)
{
	memcpy(out->buf + out->len, s.s, s.len);
	out->len += s.len;
}

#define DBUSP_SASL_PUT(out, literal) dbusp_sasl_put(out, DBUSP_STR(literal))

/*
 * Bytes of the line at @in up to its "\r\n", -1 if that has not come yet. *@scanned remembers how
 * far was looked; it must be 0 for a new line.
 */
int dbusp_sasl_line(const char *in, size_t len, uint16_t *scanned);

/* Printable and other ASCII, but no NUL */
bool dbusp_sasl_is_ascii(struct dbusp_str line);

/* Cuts the first word off *@rest, and the blanks after it. */
struct dbusp_str dbusp_sasl_word(struct dbusp_str *rest);

/* Is it an even number of hex digits? */
bool dbusp_sasl_is_hex(struct dbusp_str s);

/* The byte at digits 2i and 2i + 1 */
uint8_t dbusp_sasl_hex_byte(struct dbusp_str s, size_t i);

#endif
