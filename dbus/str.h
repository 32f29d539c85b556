/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A piece of text inside somebody else's buffer.
 *
 * Points into a message, a rule or an address and lives as long as that does. Text that comes
 * from a message is followed by a NUL byte in the message; other text need not be.
 */
#ifndef DBUSP_STR_H
#define DBUSP_STR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct dbusp_str {
	const char *s;	/* NULL: absent */
	uint32_t len;	/* bytes, without a NUL */
};

#define DBUSP_STR(literal) ((struct dbusp_str){ (literal), sizeof(literal) - 1 })

static inline bool dbusp_str_eq(struct dbusp_str a, struct dbusp_str b)
{
	return a.len == b.len && (!a.len || !memcmp(a.s, b.s, a.len));
}

/* @s: C string; NULL gives an absent one */
static inline struct dbusp_str dbusp_str(const char *s)
{
	return (struct dbusp_str){ s, s ? (uint32_t)strlen(s) : 0 };
}

#endif
