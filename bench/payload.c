// SPDX-License-Identifier: LGPL-2.1-or-later
#include "payload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAMP 8U

static unsigned char pattern(size_t i)
{
	return (unsigned char)('a' + (i * 7 + (i >> 8) * 3 + (i >> 16)) % 26);
}

int payload_init(struct payload *p, uint64_t corrupt)
{
	unsigned char *data = malloc(PAYLOAD_MAX + 1);
	size_t i;

	if (!data)
		return -ENOMEM;
	for (i = 0; i < PAYLOAD_MAX; i++)
		data[i] = pattern(i);
	data[PAYLOAD_MAX] = '\0';
	*p = (struct payload){ .data = data, .seq = 1, .corrupt = corrupt };
	return 0;
}

void payload_clear(struct payload *p)
{
	free(p->data);
	p->data = NULL;
}

static void stamp(unsigned char *to, uint64_t seq)
{
	size_t i;

	for (i = 0; i < STAMP; i++, seq /= 26)
		to[i] = (unsigned char)('a' + seq % 26);
}

unsigned char *payload_next(struct payload *p)
{
	stamp(p->data, p->seq);
	/* Damage stays where it is: the run ends with it. The first byte exists at any size. */
	if (p->seq == p->corrupt)
		p->data[0] ^= 1;
	p->seq++;
	return p->data;
}

unsigned char *payload_fixed(struct payload *p)
{
	stamp(p->data, 0);
	if (p->corrupt)
		p->data[0] ^= 1;
	return p->data;
}

const char *payload_next_string(struct payload *p, size_t size)
{
	unsigned char *data = payload_next(p);

	data[size] = '\0';
	return (const char *)data;
}

void payload_end_string(struct payload *p, size_t size)
{
	p->data[size] = size < PAYLOAD_MAX ? pattern(size) : '\0';
}

static size_t first_difference(const unsigned char *a, const unsigned char *b, size_t n)
{
	size_t i;

	for (i = 0; i < n && a[i] == b[i]; i++)
		;
	return i;
}

int payload_check(struct payload *p, const void *data, size_t size, size_t expected, char *error,
		  size_t error_size)
{
	size_t at;

	stamp(p->data, p->seq);
	if (size != expected) {
		snprintf(error, error_size, "message %llu has %zu bytes, not %zu",
			 (unsigned long long)p->seq, size, expected);
		return -EBADMSG;
	}
	if (size && memcmp(data, p->data, size)) {
		at = first_difference(data, p->data, size);
		snprintf(error, error_size,
			 "message %llu of %zu bytes is damaged: byte %zu is "
			 "0x%02x, not 0x%02x",
			 (unsigned long long)p->seq, size, at, ((const unsigned char *)data)[at],
			 p->data[at]);
		return -EBADMSG;
	}
	p->seq++;
	return 0;
}
