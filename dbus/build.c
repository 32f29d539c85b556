// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dbus/build.h"

#include <errno.h>
#include <stdlib.h>

#include "dbus/name.h"
#include "dbus/utf8.h"
#include "dbus/value.h"
#include "dbus/wire.h"

static void *libc_resize(void *userdata, void *old, size_t size)
{
	return realloc(old, size);
}

static void libc_release(void *userdata, void *old)
{
	free(old);
}

static const struct dbusp_alloc libc_alloc = {
	.resize = libc_resize,
	.release = libc_release,
};

static int fail(struct dbusp_build *b, int err)
{
	if (!b->err)
		b->err = err;
	return b->err;
}

static int grow(struct dbusp_build *b, size_t need)
{
	size_t size = b->size ? b->size : 256;
	uint8_t *buf;

	while (size < need)
		size *= 2;
	buf = b->alloc->resize(b->alloc->userdata, b->buf, size);
	if (!buf)
		return fail(b, -ENOMEM);
	b->buf = buf;
	b->size = size;
	return 0;
}

/*
 * Room for @len bytes at a multiple of @align, with zeroes before it; NULL if there is none. Both
 * are measured from the start of the message, which is as good as from that of the body.
 */
static uint8_t *append(struct dbusp_build *b, size_t align, size_t len)
{
	size_t at = dbusp_align(b->len, align);

	if (b->err)
		return NULL;
	if (len > DBUSP_MESSAGE_MAX || at + len > DBUSP_MESSAGE_MAX) {
		fail(b, -EMSGSIZE);
		return NULL;
	}
	if (at + len > b->size && grow(b, at + len) < 0)
		return NULL;
	memset(b->buf + b->len, 0, at - b->len);
	b->len = at + len;
	return b->buf + at;
}

static void append_u32(struct dbusp_build *b, uint32_t value)
{
	uint8_t *p = append(b, 4, 4);

	if (p)
		dbusp_set32(p, value, b->big);
}

static void append_short(struct dbusp_build *b, struct dbusp_str text)
{
	uint8_t *p = append(b, 1, text.len + 2);

	if (!p)
		return;
	p[0] = text.len;
	memcpy(p + 1, text.s, text.len);
	p[1 + text.len] = 0;
}

static void append_text(struct dbusp_build *b, char type, struct dbusp_str text)
{
	uint8_t *p;

	if (type == 'g') {
		append_short(b, text);
		return;
	}
	append_u32(b, text.len);
	p = append(b, 1, (size_t)text.len + 1);
	if (!p)
		return;
	if (text.len)
		memcpy(p, text.s, text.len);
	p[text.len] = 0;
}

static void start_field(struct dbusp_build *b, uint8_t code, char type)
{
	uint8_t *p = append(b, 8, 4);

	if (!p)
		return;
	p[0] = code;
	p[1] = 1;
	p[2] = type;
	p[3] = 0;
}

static void text_field(struct dbusp_build *b, uint8_t code, char type, struct dbusp_str text)
{
	if (!text.s)
		return;
	start_field(b, code, type);
	append_text(b, type, text);
}

static void u32_field(struct dbusp_build *b, uint8_t code, uint32_t value)
{
	if (!value)
		return;
	start_field(b, code, 'u');
	append_u32(b, value);
}

static void append_fields(struct dbusp_build *b, const struct dbusp_desc *d)
{
	text_field(b, DBUSP_FIELD_PATH, 'o', d->path);
	text_field(b, DBUSP_FIELD_DESTINATION, 's', d->destination);
	text_field(b, DBUSP_FIELD_INTERFACE, 's', d->interface);
	text_field(b, DBUSP_FIELD_MEMBER, 's', d->member);
	text_field(b, DBUSP_FIELD_ERROR_NAME, 's', d->error_name);
	u32_field(b, DBUSP_FIELD_REPLY_SERIAL, d->reply_serial);
	if (d->signature.len)
		text_field(b, DBUSP_FIELD_SIGNATURE, 'g', d->signature);
	u32_field(b, DBUSP_FIELD_UNIX_FDS, d->n_fds);
	text_field(b, DBUSP_FIELD_SENDER, 's', d->sender);
}

static void append_header(struct dbusp_build *b, const struct dbusp_desc *d)
{
	uint8_t *p = append(b, 8, DBUSP_FIXED_LEN);

	if (!p)
		return;
	p[0] = d->big ? 'B' : 'l';
	p[1] = d->type;
	p[2] = d->flags;
	p[3] = 1;
	dbusp_set32(p + 4, 0, d->big);
	dbusp_set32(p + 8, d->serial, d->big);
	append_fields(b, d);
	if (b->err)
		return;
	dbusp_set32(b->buf + 12, b->len - DBUSP_FIXED_LEN, d->big);
	append(b, 8, 0);
	b->body = b->len;
}

int dbusp_build_begin(struct dbusp_build *build, const struct dbusp_alloc *alloc,
		      const struct dbusp_desc *desc)
{
	struct dbusp_header header;

	build->alloc = alloc ? alloc : &libc_alloc;
	build->buf = NULL;
	build->len = build->size = build->body = 0;
	build->err = 0;
	build->big = desc->big;
	build->n_fds = desc->n_fds;
	build->depth = 0;
	build->levels[0] = (struct dbusp_open){
		.sig = desc->signature.s,
		.sig_end = desc->signature.s + desc->signature.len,
	};
	if (desc->signature.len > DBUSP_SIG_MAX)
		return fail(build, -EINVAL);
	append_header(build, desc);
	if (build->err)
		return build->err;
	/* The rules of a header are written down once, in the parser. */
	if (!desc->sound &&
	    dbusp_header_parse(&header, build->buf, build->len, DBUSP_MESSAGE_MAX, NULL) < 0)
		return fail(build, -EINVAL);
	return 0;
}

static struct dbusp_open *top(struct dbusp_build *b)
{
	return &b->levels[b->depth];
}

/* Is @type what comes next? */
static int expect(struct dbusp_build *b, char type)
{
	struct dbusp_open *level = top(b);

	if (b->err)
		return b->err;
	if (level->sig >= level->sig_end || *level->sig != type)
		return fail(b, -EINVAL);
	return 0;
}

/* The value at level->sig is written. An array has the same type again. */
static void advance(struct dbusp_open *level)
{
	if (level->kind != 'a')
		level->sig += dbusp_sig_span(level->sig);
}

static uint64_t load(const void *value, size_t size)
{
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	if (size == 8)
		return memcpy(&v8, value, 8), v8;
	if (size == 4)
		return memcpy(&v4, value, 4), v4;
	if (size == 2)
		return memcpy(&v2, value, 2), v2;
	return *(const uint8_t *)value;
}

static void store(uint8_t *p, uint64_t value, size_t size, bool big)
{
	if (size == 8)
		dbusp_set64(p, value, big);
	else if (size == 4)
		dbusp_set32(p, value, big);
	else if (size == 2)
		dbusp_set16(p, value, big);
	else
		*p = value;
}

int dbusp_put_fixed(struct dbusp_build *build, char type, const void *value)
{
	const size_t size = dbusp_type_size(type);
	uint64_t v;
	uint8_t *p;

	if (!size)
		return fail(build, -EINVAL);
	if (expect(build, type) < 0)
		return build->err;
	v = load(value, size);
	if ((type == 'b' && v > 1) || (type == 'h' && v >= build->n_fds))
		return fail(build, -EINVAL);
	p = append(build, size, size);
	if (!p)
		return build->err;
	store(p, v, size, build->big);
	advance(top(build));
	return 0;
}

static bool text_valid(char type, struct dbusp_str text)
{
	switch (type) {
	case 's':
		return dbusp_utf8_valid(text.s, text.len);
	case 'o':
		return dbusp_path_valid(text.s, text.len);
	case 'g':
		return dbusp_sig_valid(text.s, text.len);
	default:
		return false;
	}
}

int dbusp_put_text(struct dbusp_build *build, char type, struct dbusp_str text)
{
	if (expect(build, type) < 0)
		return build->err;
	if (!text_valid(type, text))
		return fail(build, -EINVAL);
	append_text(build, type, text);
	advance(top(build));
	return build->err;
}

int dbusp_put_u32(struct dbusp_build *build, uint32_t value)
{
	return dbusp_put_fixed(build, 'u', &value);
}

int dbusp_put_bool(struct dbusp_build *build, bool value)
{
	const uint32_t v = value;

	return dbusp_put_fixed(build, 'b', &v);
}

int dbusp_put_string(struct dbusp_build *build, const char *value)
{
	return dbusp_put_text(build, 's', dbusp_str(value));
}

int dbusp_put_bytes(struct dbusp_build *build, const void *data, size_t len)
{
	uint8_t *p;

	dbusp_open(build, 'a', NULL);
	if (expect(build, 'y') < 0)
		return build->err;
	p = append(build, 1, len);
	if (p && len)
		memcpy(p, data, len);
	return dbusp_close(build);
}

/* The length is written when the array is closed; the first element's padding belongs before it. */
static void open_array(struct dbusp_build *b, const struct dbusp_open *from, struct dbusp_open *to)
{
	append_u32(b, 0);
	to->len_at = b->len - 4;
	append(b, dbusp_type_align(from->sig[1]), 0);
	to->start = b->len;
	to->sig = from->sig + 1;
	to->sig_end = from->sig + dbusp_sig_span(from->sig);
}

static void open_variant(struct dbusp_build *b, const char *type, struct dbusp_open *to)
{
	const struct dbusp_str sig = dbusp_str(type);

	if (!sig.len || !dbusp_sig_single(sig.s, sig.len)) {
		fail(b, -EINVAL);
		return;
	}
	append_short(b, sig);
	to->sig = sig.s;
	to->sig_end = sig.s + sig.len;
}

int dbusp_open(struct dbusp_build *build, char kind, const char *type)
{
	struct dbusp_open *from = top(build), *to = from + 1;

	if (dbusp_type_basic(kind) || !dbusp_type_align(kind))
		return fail(build, -EINVAL);
	if (expect(build, kind) < 0)
		return build->err;
	if (build->depth >= DBUSP_DEPTH_MAX)
		return fail(build, -EINVAL);
	if (kind == 'a') {
		open_array(build, from, to);
	} else if (kind == 'v') {
		open_variant(build, type, to);
	} else {
		append(build, 8, 0);
		to->sig = from->sig + 1;
		to->sig_end = from->sig + dbusp_sig_span(from->sig) - 1;
	}
	if (build->err)
		return build->err;
	to->kind = kind;
	build->depth++;
	return 0;
}

int dbusp_close(struct dbusp_build *build)
{
	const struct dbusp_open *level = top(build);
	size_t len;

	if (build->err)
		return build->err;
	if (!build->depth)
		return fail(build, -EINVAL);
	if (level->kind == 'a') {
		len = build->len - level->start;
		if (len > DBUSP_ARRAY_MAX)
			return fail(build, -EMSGSIZE);
		dbusp_set32(build->buf + level->len_at, len, build->big);
	} else if (level->sig < level->sig_end) {
		return fail(build, -EINVAL);
	}
	build->depth--;
	advance(top(build));
	return 0;
}

int dbusp_build_end(struct dbusp_build *build, uint8_t **ret_msg, size_t *ret_len)
{
	const struct dbusp_open *level = top(build);

	if (!build->err && (build->depth || level->sig < level->sig_end))
		fail(build, -EINVAL);
	if (build->err) {
		dbusp_build_abort(build);
		return build->err;
	}
	dbusp_set32(build->buf + 4, build->len - build->body, build->big);
	*ret_msg = build->buf;
	*ret_len = build->len;
	build->buf = NULL;
	return 0;
}

void dbusp_build_abort(struct dbusp_build *build)
{
	if (build->buf)
		build->alloc->release(build->alloc->userdata, build->buf);
	build->buf = NULL;
}
