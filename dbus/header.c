// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dbus/header.h"

#include <errno.h>

#include "dbus/name.h"
#include "dbus/value.h"
#include "dbus/wire.h"

/* The part of the fixed header that can be judged from however many bytes there are. */
static int check_start(const uint8_t *p, size_t len, enum dbusp_why *ret_why)
{
	if (len > 0 && p[0] != 'l' && p[0] != 'B')
		return dbusp_fail(ret_why, DBUSP_WHY_ENDIAN, -EBADMSG);
	if (len > 1 && !p[1])
		return dbusp_fail(ret_why, DBUSP_WHY_TYPE, -EBADMSG);
	if (len > 3 && p[3] != 1)
		return dbusp_fail(ret_why, DBUSP_WHY_VERSION, -EBADMSG);
	return 0;
}

static int check_lengths(const struct dbusp_frame *f, size_t max, enum dbusp_why *ret_why)
{
	const uint64_t total = dbusp_align(DBUSP_FIXED_LEN + (size_t)f->fields_len, 8) +
			       (uint64_t)f->body_len;

	if (f->fields_len > DBUSP_FIELDS_MAX)
		return dbusp_fail(ret_why, DBUSP_WHY_FIELDS_TOO_BIG, -EMSGSIZE);
	if (total > DBUSP_MESSAGE_MAX)
		return dbusp_fail(ret_why, DBUSP_WHY_TOO_LARGE, -EMSGSIZE);
	if (total > max)
		return dbusp_fail(ret_why, DBUSP_WHY_OVER_MAX, -EMSGSIZE);
	return 0;
}

int dbusp_frame_parse(struct dbusp_frame *ret, const void *buf, size_t len, size_t max,
		      enum dbusp_why *ret_why)
{
	const uint8_t *p = buf;
	struct dbusp_frame f;
	int r;

	r = check_start(p, len, ret_why);
	if (r < 0)
		return r;
	if (len < DBUSP_FIXED_LEN)
		return dbusp_fail(ret_why, DBUSP_WHY_TRUNCATED, -EAGAIN);
	f.big = p[0] == 'B';
	f.type = p[1];
	f.flags = p[2];
	f.body_len = dbusp_get32(p + 4, f.big);
	f.serial = dbusp_get32(p + 8, f.big);
	f.fields_len = dbusp_get32(p + 12, f.big);
	if (!f.serial)
		return dbusp_fail(ret_why, DBUSP_WHY_SERIAL, -EBADMSG);
	r = check_lengths(&f, max, ret_why);
	if (r < 0)
		return r;
	f.header_len = dbusp_align(DBUSP_FIXED_LEN + f.fields_len, 8);
	f.total_len = f.header_len + f.body_len;
	*ret = f;
	return 0;
}

static bool is_bus(const char *s, size_t len)
{
	return dbusp_name_is_bus(s, len);
}

/* How each known field looks; "Header Fields". */
static const struct field_info {
	char type;
	enum dbusp_why why;			/* what a broken name is called */
	bool (*valid)(const char *s, size_t len);	/* beyond what the type demands */
	size_t offset;				/* of the text in struct dbusp_header */
} fields[_DBUSP_FIELD_MAX] = {
	[DBUSP_FIELD_PATH] = { 'o', DBUSP_WHY_PATH, NULL,
			       offsetof(struct dbusp_header, path) },
	[DBUSP_FIELD_INTERFACE] = { 's', DBUSP_WHY_INTERFACE, dbusp_name_is_interface,
				    offsetof(struct dbusp_header, interface) },
	[DBUSP_FIELD_MEMBER] = { 's', DBUSP_WHY_MEMBER, dbusp_name_is_member,
				 offsetof(struct dbusp_header, member) },
	[DBUSP_FIELD_ERROR_NAME] = { 's', DBUSP_WHY_ERROR_NAME, dbusp_name_is_error,
				     offsetof(struct dbusp_header, error_name) },
	[DBUSP_FIELD_REPLY_SERIAL] = { 'u', DBUSP_WHY_REPLY_SERIAL, NULL,
				       offsetof(struct dbusp_header, reply_serial) },
	[DBUSP_FIELD_DESTINATION] = { 's', DBUSP_WHY_DESTINATION, is_bus,
				      offsetof(struct dbusp_header, destination) },
	[DBUSP_FIELD_SENDER] = { 's', DBUSP_WHY_SENDER, is_bus,
				 offsetof(struct dbusp_header, sender) },
	[DBUSP_FIELD_SIGNATURE] = { 'g', DBUSP_WHY_SIGNATURE, NULL,
				    offsetof(struct dbusp_header, signature) },
	[DBUSP_FIELD_UNIX_FDS] = { 'u', DBUSP_WHY_NONE, NULL,
				   offsetof(struct dbusp_header, n_fds) },
};

static int bad(struct dbusp_cursor *c, enum dbusp_why why)
{
	c->why = why;
	return -EBADMSG;
}

/* Names are ASCII by their own rules: the UTF-8 pass of plain strings would be wasted. */
static int take_name(struct dbusp_cursor *c, const struct field_info *info, struct dbusp_str *ret)
{
	uint32_t len;

	if (dbusp_left(c) < 4)
		return bad(c, DBUSP_WHY_TRUNCATED);
	len = dbusp_get32(c->data + c->pos, c->big);
	c->pos += 4;
	if (dbusp_left(c) <= len)
		return bad(c, DBUSP_WHY_TRUNCATED);
	ret->s = (const char *)c->data + c->pos;
	ret->len = len;
	if (c->data[c->pos + len] || !info->valid(ret->s, len))
		return bad(c, info->why);
	c->pos += len + 1;
	return 0;
}

/*
 * A field with a known code. Its variant starts at an odd place of fixed distance from the
 * 8-byte boundary, hence needs no padding: code, 1, type, 0, value.
 */
static int take_known(struct dbusp_cursor *c, uint8_t code, struct dbusp_header *h)
{
	const struct field_info *info = &fields[code];
	void *out = (char *)h + info->offset;
	const uint8_t *at;
	int r;

	if (h->present & 1U << code)
		return bad(c, DBUSP_WHY_FIELD_TWICE);
	h->present |= 1U << code;
	if (dbusp_left(c) < 4)
		return bad(c, DBUSP_WHY_TRUNCATED);
	at = c->data + c->pos;
	if (at[1] != 1 || at[2] != (uint8_t)info->type || at[3])
		return bad(c, DBUSP_WHY_FIELD_TYPE);
	c->pos += 4;
	if (info->valid)
		return take_name(c, info, out);
	if (info->type != 'u')
		return dbusp_take_text(c, info->type, out);
	r = dbusp_take_fixed(c, 'u', &at);
	if (r < 0)
		return r;
	*(uint32_t *)out = dbusp_get32(at, c->big);
	if (code == DBUSP_FIELD_REPLY_SERIAL)
		h->reply_serial_at = (uint32_t)(at - c->data);
	return 0;
}

/* A field with a code nobody has defined yet: array, structure and variant are around the value. */
static int take_unknown(struct dbusp_cursor *c)
{
	struct dbusp_sigmap map;
	int r;

	c->pos++;
	r = dbusp_take_variant(c, &map);
	return r < 0 ? r : dbusp_take_value(c, &map, 0, 3);
}

static int take_field(struct dbusp_cursor *c, struct dbusp_header *h)
{
	uint8_t code;
	int r;

	r = dbusp_take_padding(c, 8);
	if (r < 0)
		return r;
	if (!dbusp_left(c))
		return bad(c, DBUSP_WHY_TRUNCATED);
	code = c->data[c->pos];
	if (!code)
		return bad(c, DBUSP_WHY_FIELD_ZERO);
	if (code < _DBUSP_FIELD_MAX)
		return take_known(c, code, h);
	h->unknown = true;
	return take_unknown(c);
}

#define BIT(field) (1U << DBUSP_FIELD_##field)

/* What each type of message must have; "Header Fields", column "Required In". */
static const uint16_t required[] = {
	[DBUSP_METHOD_CALL] = BIT(PATH) | BIT(MEMBER),
	[DBUSP_METHOD_RETURN] = BIT(REPLY_SERIAL),
	[DBUSP_ERROR] = BIT(ERROR_NAME) | BIT(REPLY_SERIAL),
	[DBUSP_SIGNAL] = BIT(PATH) | BIT(INTERFACE) | BIT(MEMBER),
};

static int check_fields(struct dbusp_cursor *c, const struct dbusp_header *h)
{
	const uint8_t type = h->frame.type;

	if (type <= DBUSP_SIGNAL && (h->present & required[type]) != required[type])
		return bad(c, DBUSP_WHY_FIELD_MISSING);
	if ((h->present & BIT(REPLY_SERIAL)) && !h->reply_serial)
		return bad(c, DBUSP_WHY_REPLY_SERIAL);
	if (dbusp_str_eq(h->path, DBUSP_STR("/org/freedesktop/DBus/Local")))
		return bad(c, DBUSP_WHY_LOCAL_PATH);
	if (dbusp_str_eq(h->interface, DBUSP_STR("org.freedesktop.DBus.Local")))
		return bad(c, DBUSP_WHY_LOCAL_INTERFACE);
	return 0;
}

static int take_fields(struct dbusp_cursor *c, struct dbusp_header *h)
{
	int r = 0;

	while (r >= 0 && c->pos < c->end)
		r = take_field(c, h);
	if (r < 0)
		return r;
	c->end = h->frame.header_len;
	r = dbusp_take_padding(c, 8);
	return r < 0 ? r : check_fields(c, h);
}

int dbusp_header_parse(struct dbusp_header *ret, const void *msg, size_t len, size_t max,
		       enum dbusp_why *ret_why)
{
	struct dbusp_frame frame;
	int r = dbusp_frame_parse(&frame, msg, len, max, ret_why);

	return r < 0 ? r : dbusp_header_parse_behind(ret, &frame, msg, len, ret_why);
}

int dbusp_header_parse_behind(struct dbusp_header *ret, const struct dbusp_frame *frame,
			      const void *msg, size_t len, enum dbusp_why *ret_why)
{
	struct dbusp_header h = { .frame = *frame, .signature = DBUSP_STR("") };
	struct dbusp_cursor c = { .data = msg };
	int r;

	if (len < h.frame.header_len)
		return dbusp_fail(ret_why, DBUSP_WHY_TRUNCATED, -EAGAIN);
	c.big = h.frame.big;
	c.pos = DBUSP_FIXED_LEN;
	c.end = DBUSP_FIXED_LEN + h.frame.fields_len;
	c.n_fds = UINT32_MAX;
	r = take_fields(&c, &h);
	if (r < 0)
		return dbusp_fail(ret_why, c.why, r);
	*ret = h;
	return 0;
}
