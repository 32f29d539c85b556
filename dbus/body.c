// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dbus/body.h"

#include <errno.h>

#include "dbus/wire.h"

static struct dbusp_cursor cursor_of(const struct dbusp_header *h, const void *body)
{
	return (struct dbusp_cursor){
		.data = body,
		.end = h->frame.body_len,
		.n_fds = h->n_fds,
		.big = h->frame.big,
	};
}

int dbusp_body_check(const struct dbusp_header *header, const void *body, enum dbusp_why *ret_why)
{
	struct dbusp_cursor c = cursor_of(header, body);
	struct dbusp_sigmap map;
	size_t i;
	int r;

	r = dbusp_sig_parse(&map, header->signature.s, header->signature.len);
	if (r < 0)
		return dbusp_fail(ret_why, DBUSP_WHY_SIGNATURE, -EBADMSG);
	for (i = 0; i < map.len; i += map.span[i]) {
		r = dbusp_take_value(&c, &map, i, 0);
		if (r < 0)
			return dbusp_fail(ret_why, c.why, r);
	}
	if (dbusp_left(&c))
		return dbusp_fail(ret_why, DBUSP_WHY_TRAILING, -EBADMSG);
	return 0;
}

static struct dbusp_level *top(struct dbusp_reader *reader)
{
	return &reader->levels[reader->depth];
}

void dbusp_reader_init(struct dbusp_reader *reader, const struct dbusp_header *header,
		       const void *body)
{
	const struct dbusp_str sig = header->signature;

	reader->cursor = cursor_of(header, body);
	reader->depth = 0;
	reader->levels[0] = (struct dbusp_level){
		.sig = sig.s,
		.sig_end = sig.s + sig.len,
		.end = reader->cursor.end,
	};
}

char dbusp_reader_type(const struct dbusp_reader *reader)
{
	const struct dbusp_level *level = &reader->levels[reader->depth];

	if (level->kind == 'a' && reader->cursor.pos >= level->end)
		return 0;
	return level->sig < level->sig_end ? *level->sig : 0;
}

/* The value at level->sig was read. An array has the same type again. */
static void advance(struct dbusp_level *level)
{
	if (level->kind != 'a')
		level->sig += dbusp_sig_span(level->sig);
}

/* Keeps the reason, undoes the rest. */
static int restore(struct dbusp_reader *reader, struct dbusp_cursor before, int err)
{
	before.why = reader->cursor.why;
	reader->cursor = before;
	return err;
}

static void store(void *ret, const uint8_t *at, size_t size, bool big)
{
	switch (size) {
	case 1:
		memcpy(ret, at, 1);
		break;
	case 2:
		dbusp_set16(ret, dbusp_get16(at, big), DBUSP_HOST_BIG);
		break;
	case 4:
		dbusp_set32(ret, dbusp_get32(at, big), DBUSP_HOST_BIG);
		break;
	case 8:
		dbusp_set64(ret, dbusp_get64(at, big), DBUSP_HOST_BIG);
		break;
	}
}

int dbusp_read_fixed(struct dbusp_reader *reader, char type, void *ret)
{
	const struct dbusp_cursor before = reader->cursor;
	const uint8_t *at;
	int r;

	if (!dbusp_type_size(type))
		return -EINVAL;
	if (dbusp_reader_type(reader) != type)
		return -ENOMSG;
	r = dbusp_take_fixed(&reader->cursor, type, &at);
	if (r < 0)
		return restore(reader, before, r);
	store(ret, at, dbusp_type_size(type), reader->cursor.big);
	advance(top(reader));
	return 0;
}

int dbusp_read_text(struct dbusp_reader *reader, char type, struct dbusp_str *ret)
{
	const struct dbusp_cursor before = reader->cursor;
	struct dbusp_str str;
	int r;

	if (!dbusp_type_basic(type) || dbusp_type_size(type))
		return -EINVAL;
	if (dbusp_reader_type(reader) != type)
		return -ENOMSG;
	r = dbusp_take_text(&reader->cursor, type, &str);
	if (r < 0)
		return restore(reader, before, r);
	*ret = str;
	advance(top(reader));
	return 0;
}

static int enter_array(struct dbusp_cursor *c, const struct dbusp_level *from,
		       struct dbusp_level *to)
{
	size_t end;
	int r = dbusp_take_array(c, from->sig[1], &end);

	if (r < 0)
		return r;
	*to = (struct dbusp_level){
		.sig = from->sig + 1,
		.sig_end = from->sig + dbusp_sig_span(from->sig),
		.end = end,
	};
	c->end = end;
	return 0;
}

static int enter_struct(struct dbusp_cursor *c, const struct dbusp_level *from,
			struct dbusp_level *to)
{
	int r = dbusp_take_padding(c, 8);

	if (r < 0)
		return r;
	*to = (struct dbusp_level){
		.sig = from->sig + 1,
		.sig_end = from->sig + dbusp_sig_span(from->sig) - 1,
		.end = c->end,
	};
	return 0;
}

static int enter_variant(struct dbusp_cursor *c, struct dbusp_level *to)
{
	struct dbusp_sigmap map;
	int r = dbusp_take_variant(c, &map);

	if (r < 0)
		return r;
	*to = (struct dbusp_level){
		.sig = map.sig,
		.sig_end = map.sig + map.len,
		.end = c->end,
	};
	return 0;
}

int dbusp_reader_enter(struct dbusp_reader *reader, char kind)
{
	const struct dbusp_cursor before = reader->cursor;
	struct dbusp_level *from = top(reader), *to = from + 1;
	int r;

	if (dbusp_type_basic(kind) || !dbusp_type_align(kind))
		return -EINVAL;
	if (dbusp_reader_type(reader) != kind)
		return -ENOMSG;
	if (reader->depth >= DBUSP_DEPTH_MAX) {
		reader->cursor.why = DBUSP_WHY_TOO_DEEP;
		return -EBADMSG;
	}
	if (kind == 'a')
		r = enter_array(&reader->cursor, from, to);
	else if (kind == 'v')
		r = enter_variant(&reader->cursor, to);
	else
		r = enter_struct(&reader->cursor, from, to);
	if (r < 0)
		return restore(reader, before, r);
	to->kind = kind;
	reader->depth++;
	return 0;
}

/*
 * The signature of the next value and where it starts in there. An element is measured together
 * with its 'a': a dict entry alone would be no signature.
 */
static int next_type(const struct dbusp_level *level, struct dbusp_sigmap *map, size_t *ret_at)
{
	const size_t at = level->kind == 'a';
	const char *sig = level->sig - at;

	*ret_at = at;
	return dbusp_sig_parse(map, sig, dbusp_sig_span(sig)) < 0 ? -EBADMSG : 0;
}

int dbusp_reader_skip(struct dbusp_reader *reader)
{
	const struct dbusp_cursor before = reader->cursor;
	struct dbusp_sigmap map;
	size_t at;
	int r;

	if (!dbusp_reader_type(reader))
		return -ENOMSG;
	r = next_type(top(reader), &map, &at);
	if (r >= 0)
		r = dbusp_take_value(&reader->cursor, &map, at, reader->depth);
	if (r < 0)
		return restore(reader, before, r);
	advance(top(reader));
	return 0;
}

/* One measurement for all elements, else a long type would be scanned for each of them. */
static int skip_elements(struct dbusp_reader *reader)
{
	struct dbusp_sigmap map;
	size_t at;
	int r;

	r = next_type(top(reader), &map, &at);
	while (r >= 0 && dbusp_reader_type(reader))
		r = dbusp_take_value(&reader->cursor, &map, at, reader->depth);
	return r;
}

static int skip_fields(struct dbusp_reader *reader)
{
	int r = 0;

	while (r >= 0 && dbusp_reader_type(reader))
		r = dbusp_reader_skip(reader);
	return r;
}

int dbusp_reader_exit(struct dbusp_reader *reader)
{
	const struct dbusp_level level = *top(reader);
	const struct dbusp_cursor before = reader->cursor;
	int r;

	if (!reader->depth)
		return -EINVAL;
	r = level.kind == 'a' ? skip_elements(reader) : skip_fields(reader);
	if (r < 0) {
		*top(reader) = level;
		return restore(reader, before, r);
	}
	reader->depth--;
	reader->cursor.end = top(reader)->end;
	advance(top(reader));
	return 0;
}

enum dbusp_why dbusp_reader_why(const struct dbusp_reader *reader)
{
	return reader->cursor.why;
}
