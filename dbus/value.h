/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Walking over marshalled values, with every rule of the wire format checked on the way.
 *
 * Internal to dbus/. A cursor moves through data whose first byte lies on an 8-byte boundary of
 * the message, so that alignment can be computed from the position. Each function returns 0 and
 * moves the cursor, or returns -EBADMSG with @why set; the cursor is then of no further use.
 */
#ifndef DBUSP_VALUE_H
#define DBUSP_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dbus/sig.h"
#include "dbus/str.h"
#include "dbus/why.h"

#define DBUSP_ARRAY_MAX (64U << 20)	/* bytes of the elements of one array */

struct dbusp_cursor {
	const uint8_t *data;
	size_t pos;
	size_t end;		/* of the innermost array, or of the data; pos <= end */
	uint32_t n_fds;		/* descriptor indices must be below this */
	bool big;
	enum dbusp_why why;
};

static inline size_t dbusp_left(const struct dbusp_cursor *c)
{
	return c->end - c->pos;
}

/* dbusp_take_padding() where @c is not on a multiple of @align */
int dbusp_take_some_padding(struct dbusp_cursor *c, size_t align);

/* Skips zero bytes up to the next multiple of @align. Mostly there are none. */
static inline int dbusp_take_padding(struct dbusp_cursor *c, size_t align)
{
	return c->pos & (align - 1) ? dbusp_take_some_padding(c, align) : 0;
}

/* A fixed-size value; *ret_at points to its bytes. Booleans and descriptor indices are checked. */
int dbusp_take_fixed(struct dbusp_cursor *c, char type, const uint8_t **ret_at);

/* A value of type 's', 'o' or 'g'. */
int dbusp_take_text(struct dbusp_cursor *c, char type, struct dbusp_str *ret);

/* Length of an array and the padding before its first element, which is of type @elem. */
int dbusp_take_array(struct dbusp_cursor *c, char elem, size_t *ret_end);

/* The signature of a variant: exactly one complete type. */
int dbusp_take_variant(struct dbusp_cursor *c, struct dbusp_sigmap *ret);

/* The whole value of the type at map->sig[i], which has @depth containers around it. */
int dbusp_take_value(struct dbusp_cursor *c, const struct dbusp_sigmap *map, size_t i,
		     unsigned int depth);

#endif
