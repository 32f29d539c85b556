// SPDX-License-Identifier: LGPL-2.1-or-later
/* Building commands and messages. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libkdbus.h"
#include "limits.h"

static size_t align8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

/* Mostly there is nothing to pad. */
static void pad(unsigned char *at, size_t n)
{
	if (n)
		memset(at, 0, n);
}

/* Room for @more bytes behind the padded end; sets the sticky error if there is none. */
static int reserve(struct libkdbus_builder *b, size_t more)
{
	size_t need = align8(b->size) + more, room;
	unsigned char *data;

	if (b->error)
		return b->error;
	if (more > CORE_CMD_MAX_SIZE || need > CORE_CMD_MAX_SIZE)
		return b->error = -EMSGSIZE;
	if (align8(need) <= b->allocated)
		return 0;
	room = b->allocated ? b->allocated : 256;
	while (room < align8(need))
		room *= 2;
	data = b->borrowed ? malloc(room) : realloc(b->data, room);
	if (!data)
		return b->error = -ENOMEM;
	if (b->borrowed)
		memcpy(data, b->data, b->size);
	b->borrowed = 0;
	b->data = data;
	b->allocated = room;
	return 0;
}

void libkdbus_build(struct libkdbus_builder *b, size_t fixed_size, void *buffer, size_t buffer_size)
{
	memset(b, 0, sizeof(*b));
	if (buffer) {
		b->data = buffer;
		b->allocated = buffer_size & ~(size_t)7;
		b->borrowed = 1;
	}
	if (reserve(b, fixed_size) < 0)
		return;
	memset(b->data, 0, fixed_size);
	b->size = fixed_size;
}

void *libkdbus_build_item(struct libkdbus_builder *b, uint64_t type, const void *payload,
			  size_t size)
{
	struct kdbus_item *item;
	size_t start = align8(b->size), bytes = offsetof(struct kdbus_item, data) + size;

	if (size > CORE_CMD_MAX_SIZE) {
		b->error = b->error ? b->error : -EMSGSIZE;
		return NULL;
	}
	if (reserve(b, bytes) < 0)
		return NULL;
	pad(b->data + b->size, start - b->size);
	item = (struct kdbus_item *)(b->data + start);
	item->size = bytes;
	item->type = type;
	if (payload)
		memcpy(item->data, payload, size);
	else
		memset(item->data, 0, size);
	pad(b->data + start + bytes, align8(bytes) - bytes);
	b->size = start + bytes;
	return item->data;
}

void libkdbus_build_string(struct libkdbus_builder *b, uint64_t type, const char *string)
{
	libkdbus_build_item(b, type, string, strlen(string) + 1);
}

void libkdbus_build_vec(struct libkdbus_builder *b, const void *data, uint64_t size)
{
	struct kdbus_vec vec = { .size = size, .address = (uintptr_t)data };

	libkdbus_build_item(b, KDBUS_ITEM_PAYLOAD_VEC, &vec, sizeof(vec));
}

void libkdbus_build_memfd(struct libkdbus_builder *b, int fd, uint64_t start, uint64_t size)
{
	struct kdbus_memfd memfd = { .start = start, .size = size, .fd = fd };

	libkdbus_build_item(b, KDBUS_ITEM_PAYLOAD_MEMFD, &memfd, sizeof(memfd));
}

void libkdbus_build_fds(struct libkdbus_builder *b, const int *fds, size_t n)
{
	if (n > CORE_CMD_MAX_SIZE / sizeof(*fds)) {
		b->error = b->error ? b->error : -EMSGSIZE;
		return;
	}
	libkdbus_build_item(b, KDBUS_ITEM_FDS, fds, n * sizeof(*fds));
}

int libkdbus_build_end(struct libkdbus_builder *b, void **ret)
{
	uint64_t size = b->size;

	if (b->error)
		return b->error;
	memcpy(b->data, &size, sizeof(size));
	*ret = b->data;
	return 0;
}

void libkdbus_build_clear(struct libkdbus_builder *b)
{
	if (!b->borrowed)
		free(b->data);
	memset(b, 0, sizeof(*b));
}
