/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef WIRE_H
#define WIRE_H

/*
 * Builds arguments as a program would, including wrong ones. What a program leaves
 * uninitialised, padding above all, is filled with rubbish, so that a rule that looks
 * at it shows up.
 */
#include <assert.h>
#include <string.h>

#include "base.h"
#include "kdbus.h"

struct wire {
	_Alignas(8) char buf[36864];
	size_t size;
};

/* Start an argument or a bare list (@fixed is 0) with @fixed bytes that are all 0. */
static inline void wire_start(struct wire *w, size_t fixed, u64 flags)
{
	memset(w->buf, 0xa5, sizeof(w->buf));
	memset(w->buf, 0, fixed);
	w->size = fixed;
	if (fixed) {
		memcpy(w->buf + 8, &flags, sizeof(flags));
		memcpy(w->buf, &w->size, sizeof(u64));
	}
}

/* Append an item whose size word says @size, whatever room @payload takes. */
static inline void wire_item_sized(struct wire *w, u64 type, const void *payload, size_t bytes,
				   u64 size)
{
	u64 header[2] = { size, type };

	w->size = ALIGN(w->size, (size_t)8);
	assert(w->size + sizeof(header) + bytes <= sizeof(w->buf));
	memcpy(w->buf + w->size, header, sizeof(header));
	if (payload)
		memcpy(w->buf + w->size + sizeof(header), payload, bytes);
	else
		memset(w->buf + w->size + sizeof(header), 0, bytes);
	w->size += sizeof(header) + bytes;
}

/* Append an item; without @payload it is @bytes zero bytes. */
static inline void wire_item(struct wire *w, u64 type, const void *payload, size_t bytes)
{
	wire_item_sized(w, type, payload, bytes, 16 + bytes);
}

static inline void wire_str(struct wire *w, u64 type, const char *str)
{
	wire_item(w, type, str, strlen(str) + 1);
}

static inline void wire_u64(struct wire *w, u64 type, u64 value)
{
	wire_item(w, type, &value, sizeof(value));
}

/* Append a name change pattern, with the name if there is one. */
static inline void wire_name_change(struct wire *w, u64 type, u64 old_id, u64 new_id,
				    const char *name)
{
	u64 ids[4] = { old_id, 0, new_id, 0 };
	char payload[sizeof(ids) + 256];
	size_t size = name ? strlen(name) + 1 : 0;

	memcpy(payload, ids, sizeof(ids));
	memcpy(payload + sizeof(ids), name ? name : "", size);
	wire_item(w, type, payload, sizeof(ids) + size);
}

/* Write the size word of an argument; returns the argument. */
static inline void *wire_end(struct wire *w)
{
	u64 size = w->size;

	memcpy(w->buf, &size, sizeof(size));
	return w->buf;
}

#endif
