// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dbus/sasl-line.h"

#include "dbus/hex.h"
#include "dbus/sasl.h"

int dbusp_sasl_line(const char *in, size_t len, uint16_t *scanned)
{
	const size_t max = len < DBUSP_SASL_LINE_MAX ? len : DBUSP_SASL_LINE_MAX;
	const char *p;

	while (*scanned < max) {
		p = memchr(in + *scanned, '\r', max - *scanned);
		if (!p) {
			*scanned = max;
			return -1;
		}
		*scanned = p - in;
		if (*scanned + 1U >= max)
			return -1;
		if (p[1] == '\n')
			return *scanned;
		*scanned += 1;
	}
	return -1;
}

bool dbusp_sasl_is_ascii(struct dbusp_str line)
{
	uint32_t i;

	for (i = 0; i < line.len; i++) {
		if (!line.s[i] || (line.s[i] & 0x80))
			return false;
	}
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct dbusp_str dbusp_sasl_word(struct dbusp_str *rest)
{
	struct dbusp_str word = { rest->s, 0 };

	while (word.len < rest->len && !is_blank(rest->s[word.len]))
		word.len++;
	rest->s += word.len;
	rest->len -= word.len;
	while (rest->len && is_blank(*rest->s)) {
		rest->s++;
		rest->len--;
	}
	return word;
}

bool dbusp_sasl_is_hex(struct dbusp_str s)
{
	uint32_t i;

	for (i = 0; i < s.len; i++) {
		if (dbusp_hex_digit(s.s[i]) > 15)
			return false;
	}
	return s.len % 2 == 0;
}

uint8_t dbusp_sasl_hex_byte(struct dbusp_str s, size_t i)
{
	return dbusp_hex_digit(s.s[2 * i]) << 4 | dbusp_hex_digit(s.s[2 * i + 1]);
}
