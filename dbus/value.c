// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dbus/value.h"

#include <errno.h>

#include "dbus/name.h"
#include "dbus/utf8.h"
#include "dbus/wire.h"

static int bad(struct dbusp_cursor *c, enum dbusp_why why)
{
	c->why = why;
	return -EBADMSG;
}

int dbusp_take_some_padding(struct dbusp_cursor *c, size_t align)
{
	size_t to = dbusp_align(c->pos, align);

	if (to > c->end)
		return bad(c, DBUSP_WHY_TRUNCATED);
	/* In front of fields and structures: all at once, in a word that ends at the boundary */
	if (align == 8) {
		if (dbusp_get64(c->data + to - 8, false) >> (8 * (c->pos & 7)))
			return bad(c, DBUSP_WHY_PADDING);
		c->pos = to;
	}
	for (; c->pos < to; c->pos++) {
		if (c->data[c->pos])
			return bad(c, DBUSP_WHY_PADDING);
	}
	return 0;
}

static int take_u32(struct dbusp_cursor *c, uint32_t *ret)
{
	int r = dbusp_take_padding(c, 4);

	if (r < 0)
		return r;
	if (dbusp_left(c) < 4)
		return bad(c, DBUSP_WHY_TRUNCATED);
	*ret = dbusp_get32(c->data + c->pos, c->big);
	c->pos += 4;
	return 0;
}

int dbusp_take_fixed(struct dbusp_cursor *c, char type, const uint8_t **ret_at)
{
	size_t size = dbusp_type_size(type);
	int r = dbusp_take_padding(c, size);

	if (r < 0)
		return r;
	if (dbusp_left(c) < size)
		return bad(c, DBUSP_WHY_TRUNCATED);
	if (type == 'b' && dbusp_get32(c->data + c->pos, c->big) > 1)
		return bad(c, DBUSP_WHY_BOOLEAN);
	if (type == 'h' && dbusp_get32(c->data + c->pos, c->big) >= c->n_fds)
		return bad(c, DBUSP_WHY_FD_INDEX);
	*ret_at = c->data + c->pos;
	c->pos += size;
	return 0;
}

/* @len bytes and the NUL after them */
static int take_bytes(struct dbusp_cursor *c, size_t len, struct dbusp_str *ret)
{
	if (dbusp_left(c) <= len)
		return bad(c, DBUSP_WHY_TRUNCATED);
	if (c->data[c->pos + len])
		return bad(c, DBUSP_WHY_STRING);
	*ret = (struct dbusp_str){ (const char *)c->data + c->pos, len };
	c->pos += len + 1;
	return 0;
}

/* A length byte and a string, as signatures are marshalled; not validated */
static int take_short(struct dbusp_cursor *c, struct dbusp_str *ret)
{
	if (!dbusp_left(c))
		return bad(c, DBUSP_WHY_TRUNCATED);
	c->pos++;
	return take_bytes(c, c->data[c->pos - 1], ret);
}

int dbusp_take_text(struct dbusp_cursor *c, char type, struct dbusp_str *ret)
{
	uint32_t len;
	int r;

	if (type == 'g') {
		r = take_short(c, ret);
		if (r < 0)
			return r;
		return dbusp_sig_valid(ret->s, ret->len) ? 0 : bad(c, DBUSP_WHY_SIGNATURE);
	}
	r = take_u32(c, &len);
	if (r < 0)
		return r;
	r = take_bytes(c, len, ret);
	if (r < 0)
		return r;
	if (type == 'o')
		return dbusp_path_valid(ret->s, ret->len) ? 0 : bad(c, DBUSP_WHY_PATH);
	return dbusp_utf8_valid(ret->s, ret->len) ? 0 : bad(c, DBUSP_WHY_STRING);
}

int dbusp_take_array(struct dbusp_cursor *c, char elem, size_t *ret_end)
{
	size_t size = dbusp_type_size(elem);
	uint32_t len;
	int r;

	r = take_u32(c, &len);
	if (r < 0)
		return r;
	if (len > DBUSP_ARRAY_MAX)
		return bad(c, DBUSP_WHY_ARRAY_TOO_BIG);
	r = dbusp_take_padding(c, dbusp_type_align(elem));
	if (r < 0)
		return r;
	if (dbusp_left(c) < len)
		return bad(c, DBUSP_WHY_TRUNCATED);
	if (size && len % size)
		return bad(c, DBUSP_WHY_ARRAY_LENGTH);
	*ret_end = c->pos + len;
	return 0;
}

int dbusp_take_variant(struct dbusp_cursor *c, struct dbusp_sigmap *ret)
{
	struct dbusp_str sig;
	int r;

	r = take_short(c, &sig);
	if (r < 0)
		return r;
	r = dbusp_sig_parse(ret, sig.s, sig.len);
	if (r < 0)
		return bad(c, DBUSP_WHY_SIGNATURE);
	if (!ret->len || ret->span[0] != ret->len)
		return bad(c, DBUSP_WHY_VARIANT);
	return 0;
}

static int walk_variant(struct dbusp_cursor *c, unsigned int depth)
{
	struct dbusp_sigmap map;
	int r = dbusp_take_variant(c, &map);

	return r < 0 ? r : dbusp_take_value(c, &map, 0, depth + 1);
}

/* Elements of a fixed type need no walk, except where not every value is allowed. */
static int walk_fixed(struct dbusp_cursor *c, char elem, size_t end)
{
	const uint8_t *at;
	int r;

	if (elem != 'b' && elem != 'h')
		c->pos = end;
	while (c->pos < end) {
		r = dbusp_take_fixed(c, elem, &at);
		if (r < 0)
			return r;
	}
	return 0;
}

static int walk_array(struct dbusp_cursor *c, const struct dbusp_sigmap *map, size_t i,
		      unsigned int depth)
{
	const size_t outer_end = c->end;
	size_t end;
	int r;

	r = dbusp_take_array(c, map->sig[i + 1], &end);
	if (r < 0)
		return r;
	if (dbusp_type_size(map->sig[i + 1]))
		return walk_fixed(c, map->sig[i + 1], end);
	c->end = end;
	while (c->pos < end) {
		r = dbusp_take_value(c, map, i + 1, depth + 1);
		if (r < 0)
			return r;
	}
	c->end = outer_end;
	return 0;
}

/* Also a dict entry: the signature differs, the wire does not. */
static int walk_struct(struct dbusp_cursor *c, const struct dbusp_sigmap *map, size_t i,
		       unsigned int depth)
{
	const size_t last = i + map->span[i] - 1;
	int r;

	r = dbusp_take_padding(c, 8);
	for (i++; r >= 0 && i < last; i += map->span[i])
		r = dbusp_take_value(c, map, i, depth + 1);
	return r;
}

/* Recursion ends at DBUSP_DEPTH_MAX; a level takes less than 400 bytes of stack. */
int dbusp_take_value(struct dbusp_cursor *c, const struct dbusp_sigmap *map, size_t i,
		     unsigned int depth)
{
	const char type = map->sig[i];
	const uint8_t *at;
	struct dbusp_str str;

	if (dbusp_type_size(type))
		return dbusp_take_fixed(c, type, &at);
	if (dbusp_type_basic(type))
		return dbusp_take_text(c, type, &str);
	if (depth >= DBUSP_DEPTH_MAX)
		return bad(c, DBUSP_WHY_TOO_DEEP);
	if (type == 'v')
		return walk_variant(c, depth);
	if (type == 'a')
		return walk_array(c, map, i, depth);
	return walk_struct(c, map, i, depth);
}
