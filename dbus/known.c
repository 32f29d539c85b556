// SPDX-License-Identifier: LGPL-2.1-or-later
/* Headers that are known already. Rules: known.h. */
#include "dbus/known.h"

#include "dbus/wire.h"

#define SERIAL_LEN 4

static bool is_same(const struct dbusp_known *known, const struct dbusp_frame *frame,
		    const uint8_t *fields)
{
	const struct dbusp_frame *f = &known->header.frame;
	const uint32_t at = known->serial_at, behind = at + SERIAL_LEN;

	if (f->fields_len != frame->fields_len || f->type != frame->type || f->big != frame->big)
		return false;
	if (memcmp(known->fields, fields, at))
		return false;
	return at == known->len ||
	       !memcmp(known->fields + behind, fields + behind, known->len - behind);
}

static void move(struct dbusp_str *text, ptrdiff_t by)
{
	if (text->s)
		text->s += by;
}

/* Texts among the fields at @from are among the same at @to. */
static void move_texts(struct dbusp_header *h, const uint8_t *from, const uint8_t *to)
{
	const ptrdiff_t by = to - from;

	move(&h->path, by);
	move(&h->interface, by);
	move(&h->member, by);
	move(&h->error_name, by);
	move(&h->destination, by);
	move(&h->sender, by);
	/* An absent one is empty, but not in the message. */
	if (h->present & 1U << DBUSP_FIELD_SIGNATURE)
		move(&h->signature, by);
}

/* Returns false if its REPLY_SERIAL is none. */
static bool recall(const struct dbusp_known *known, struct dbusp_header *ret,
		   const struct dbusp_frame *frame, const uint8_t *fields)
{
	uint32_t reply_serial = 0;

	if (known->serial_at < known->len) {
		reply_serial = dbusp_get32(fields + known->serial_at, frame->big);
		if (!reply_serial)
			return false;
	}
	*ret = known->header;
	ret->frame = *frame;
	ret->reply_serial = reply_serial;
	move_texts(ret, known->fields, fields);
	return true;
}

static void remember(struct dbusp_known *known, const struct dbusp_header *header,
		     const uint8_t *fields)
{
	const uint32_t len = header->frame.header_len - DBUSP_FIXED_LEN;
	const uint32_t at = header->reply_serial_at;

	if (len > DBUSP_KNOWN_MAX)
		return;
	known->header = *header;
	known->len = len;
	known->serial_at = at ? at - DBUSP_FIXED_LEN : len;
	memcpy(known->fields, fields, len);
	move_texts(&known->header, fields, known->fields);
}

int dbusp_header_parse_known(struct dbusp_known *known, struct dbusp_header *ret,
			     const struct dbusp_frame *frame, const void *msg, size_t len,
			     enum dbusp_why *ret_why)
{
	const uint8_t *fields = (const uint8_t *)msg + DBUSP_FIXED_LEN;
	int r;

	if (len >= frame->header_len && is_same(known, frame, fields) &&
	    recall(known, ret, frame, fields))
		return 0;
	r = dbusp_header_parse_behind(ret, frame, msg, len, ret_why);
	if (r == 0)
		remember(known, ret, fields);
	return r;
}
