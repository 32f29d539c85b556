// SPDX-License-Identifier: LGPL-2.1-or-later
/* The second half of header.h: another header in front of the same body. */
#include <errno.h>

#include "dbus/header.h"
#include "dbus/name.h"
#include "dbus/value.h"
#include "dbus/wire.h"

/* Bytes of a SENDER field, from its 8-byte boundary to the NUL. */
static size_t sender_size(size_t sender_len)
{
	return 4 + 4 + sender_len + 1;
}

size_t dbusp_header_room(const struct dbusp_header *header, size_t sender_len)
{
	return dbusp_align(header->frame.header_len + sender_size(sender_len), 8);
}

/* Where fields are written: @pos is the end of what is there. */
struct output {
	uint8_t *buf;
	size_t size, pos;
};

/* Zero bytes up to the next boundary, then room for @len bytes; NULL if they do not fit. */
static uint8_t *append(struct output *out, size_t len)
{
	const size_t at = dbusp_align(out->pos, 8);

	if (at > out->size || out->size - at < len)
		return NULL;
	memset(out->buf + out->pos, 0, at - out->pos);
	out->pos = at + len;
	return out->buf + at;
}

static int copy(struct output *out, const uint8_t *from, size_t len)
{
	uint8_t *to = append(out, len);

	if (!to)
		return -ENOBUFS;
	memcpy(to, from, len);
	return 0;
}

/* Moves from the code of a field to the byte after its value. */
static int skip_field(struct dbusp_cursor *c)
{
	struct dbusp_sigmap map;
	int r;

	c->pos++;
	r = dbusp_take_variant(c, &map);
	return r < 0 ? r : dbusp_take_value(c, &map, 0, 3);
}

static int copy_kept(struct output *out, const struct dbusp_header *h, const uint8_t *msg,
		     bool strip)
{
	struct dbusp_cursor c = {
		.data = msg,
		.pos = DBUSP_FIXED_LEN,
		.end = DBUSP_FIXED_LEN + h->frame.fields_len,
		.big = h->frame.big,
		.n_fds = UINT32_MAX,
	};
	size_t start;
	int r = 0;

	while (r >= 0 && c.pos < c.end) {
		r = dbusp_take_padding(&c, 8);
		start = c.pos;
		if (r >= 0)
			r = skip_field(&c);
		if (r < 0 || msg[start] == DBUSP_FIELD_SENDER)
			continue;
		if (strip && msg[start] >= _DBUSP_FIELD_MAX)
			continue;
		r = copy(out, msg + start, c.pos - start);
	}
	return r;
}

static int append_sender(struct output *out, struct dbusp_str sender, bool big)
{
	static const uint8_t start[4] = { DBUSP_FIELD_SENDER, 1, 's', 0 };
	uint8_t *p = append(out, sender_size(sender.len));

	if (!p)
		return -ENOBUFS;
	memcpy(p, start, 4);
	dbusp_set32(p + 4, sender.len, big);
	memcpy(p + 8, sender.s, sender.len);
	p[8 + sender.len] = 0;
	return 0;
}

/* The length of the fields goes in last, when it is known. */
static int finish(struct output *out, const struct dbusp_header *h, uint32_t *ret_len)
{
	const size_t fields_len = out->pos - DBUSP_FIXED_LEN;
	const size_t header_len = dbusp_align(out->pos, 8);

	if (fields_len > DBUSP_FIELDS_MAX || header_len + h->frame.body_len > DBUSP_MESSAGE_MAX)
		return -EMSGSIZE;
	if (!append(out, 0))
		return -ENOBUFS;
	dbusp_set32(out->buf + 12, fields_len, h->frame.big);
	*ret_len = header_len;
	return 0;
}

int dbusp_header_rewrite(const struct dbusp_header *header, const void *msg,
			 struct dbusp_str sender, bool strip, void *buf, size_t size,
			 uint32_t *ret_len)
{
	struct output out = { .buf = buf, .size = size };
	size_t prefix = DBUSP_FIXED_LEN;
	bool plain = !header->sender.s && !(strip && header->unknown);
	int r;

	if (sender.s && !dbusp_name_is_bus(sender.s, sender.len))
		return -EINVAL;
	/* What clients send: nothing to leave out, one copy does it. */
	if (plain)
		prefix += header->frame.fields_len;
	r = copy(&out, msg, prefix);
	if (r >= 0 && !plain)
		r = copy_kept(&out, header, msg, strip);
	if (r >= 0 && sender.s)
		r = append_sender(&out, sender, header->frame.big);
	return r < 0 ? r : finish(&out, header, ret_len);
}
