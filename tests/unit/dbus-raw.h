/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages put together byte by byte, right or wrong: what the builder would refuse, tests need.
 */
#ifndef TESTS_DBUS_RAW_H
#define TESTS_DBUS_RAW_H

#include <string.h>

#include "dbus/header.h"
#include "dbus/wire.h"

struct raw {
	uint8_t buf[4096];
	size_t len;
	size_t body;	/* 0: still in the header */
	bool big;
};

static inline void raw_bytes(struct raw *m, const void *data, size_t len)
{
	memcpy(m->buf + m->len, data, len);
	m->len += len;
}

static inline void raw_u8(struct raw *m, uint8_t v)
{
	m->buf[m->len++] = v;
}

static inline void raw_pad(struct raw *m, size_t align)
{
	while (m->len % align)
		raw_u8(m, 0);
}

static inline void raw_u32(struct raw *m, uint32_t v)
{
	raw_pad(m, 4);
	dbusp_set32(m->buf + m->len, v, m->big);
	m->len += 4;
}

static inline void raw_str(struct raw *m, const char *s)
{
	raw_u32(m, strlen(s));
	raw_bytes(m, s, strlen(s) + 1);
}

static inline void raw_sig(struct raw *m, const char *s)
{
	raw_u8(m, strlen(s));
	raw_bytes(m, s, strlen(s) + 1);
}

static inline void raw_start(struct raw *m, bool big, uint8_t type)
{
	memset(m, 0, sizeof(*m));
	m->big = big;
	raw_bytes(m, big ? "B" : "l", 1);
	raw_u8(m, type);
	raw_u8(m, 0);
	raw_u8(m, 1);
	raw_u32(m, 0);
	raw_u32(m, 77);
	raw_u32(m, 0);
}

/* Code and variant signature of a field; its value must follow. */
static inline void raw_field(struct raw *m, uint8_t code, const char *sig)
{
	raw_pad(m, 8);
	raw_u8(m, code);
	raw_sig(m, sig);
}

static inline void raw_text_field(struct raw *m, uint8_t code, const char *sig, const char *s)
{
	raw_field(m, code, sig);
	if (*sig == 'g')
		raw_sig(m, s);
	else
		raw_str(m, s);
}

static inline void raw_u32_field(struct raw *m, uint8_t code, uint32_t v)
{
	raw_field(m, code, "u");
	raw_u32(m, v);
}

/* The fields are over: their length, and padding before the body. */
static inline void raw_fields_end(struct raw *m)
{
	dbusp_set32(m->buf + 12, m->len - DBUSP_FIXED_LEN, m->big);
	raw_pad(m, 8);
	m->body = m->len;
}

/* The message is over. */
static inline void raw_end(struct raw *m)
{
	if (!m->body)
		raw_fields_end(m);
	dbusp_set32(m->buf + 4, m->len - m->body, m->big);
}

/* The fields that a message of this type must have. */
static inline void raw_required(struct raw *m)
{
	const uint8_t type = m->buf[1];

	if (type == DBUSP_METHOD_CALL || type == DBUSP_SIGNAL) {
		raw_text_field(m, DBUSP_FIELD_PATH, "o", "/org/example");
		raw_text_field(m, DBUSP_FIELD_MEMBER, "s", "Frob");
	}
	if (type == DBUSP_SIGNAL)
		raw_text_field(m, DBUSP_FIELD_INTERFACE, "s", "org.example.Face");
	if (type == DBUSP_ERROR)
		raw_text_field(m, DBUSP_FIELD_ERROR_NAME, "s", "org.example.Error.No");
	if (type == DBUSP_ERROR || type == DBUSP_METHOD_RETURN)
		raw_u32_field(m, DBUSP_FIELD_REPLY_SERIAL, 5);
}

#endif
