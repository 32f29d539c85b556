/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FUZZ_H
#define FUZZ_H

/*
 * What the fuzz targets share. A target does not only look for crashes: it states what
 * must hold of whatever was accepted, and FUZZ_CHECK() stops the program where it does
 * not. Inputs are copied to memory of exactly their size, so that the address sanitizer
 * sees the first byte too many.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "item.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(_x)                                                                             \
	do {                                                                                       \
		if (!(_x)) {                                                                       \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #_x);    \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static inline void *fuzz_copy(const void *data, size_t size)
{
	void *copy = malloc(size ? size : 1);

	FUZZ_CHECK(copy);
	memcpy(copy, data, size);
	return copy;
}

/* Take a byte from the front of the input; 0 when it is used up. */
static inline uint8_t fuzz_byte(const uint8_t **data, size_t *size)
{
	if (!*size)
		return 0;
	(*size)--;
	return *(*data)++;
}

/* Whether @item with its payload lies within the @size bytes at @start. */
static inline bool fuzz_within(const struct kdbus_item *item, const void *start, size_t size)
{
	uintptr_t at = (uintptr_t)item, begin = (uintptr_t)start;

	return at >= begin && at - begin <= size && size - (at - begin) >= 16 &&
	       item->size >= 16 && item->size <= size - (at - begin);
}

/*
 * Spec §3.3 once more, in another way: the end of the last item if the list is sound,
 * or -1.
 */
static inline long fuzz_list_end(const uint8_t *list, size_t size)
{
	size_t at = 0, end = 0;
	uint64_t item;

	while (at < size) {
		if (size - at < 16)
			return -1;
		memcpy(&item, list + at, 8);
		if (item < 16 || item > size - at)
			return -1;
		end = at + item;
		at = (end + 7) / 8 * 8;
	}
	return end;
}

#endif
