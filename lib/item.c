// SPDX-License-Identifier: LGPL-2.1-or-later
/* Walking items. Sizes are checked: a command under construction may be wrong. */
#include <string.h>

#include "libkdbus.h"

static uint64_t total_size(const void *begin)
{
	uint64_t size;

	memcpy(&size, begin, sizeof(size));
	return size;
}

const struct kdbus_item *libkdbus_item_next(const void *begin, size_t fixed_size,
					    const struct kdbus_item *item)
{
	const uint64_t head = offsetof(struct kdbus_item, data), total = total_size(begin);
	uint64_t pos;

	if (item)
		pos = (uint64_t)((const char *)item - (const char *)begin) +
		      ((item->size + 7) & ~7ULL);
	else
		pos = fixed_size;
	if (pos > total || total - pos < head)
		return NULL;
	item = (const struct kdbus_item *)((const char *)begin + pos);
	return item->size >= head && item->size <= total - pos ? item : NULL;
}

const struct kdbus_item *libkdbus_item_find(const void *begin, size_t fixed_size, uint64_t type)
{
	const struct kdbus_item *item = NULL;

	while ((item = libkdbus_item_next(begin, fixed_size, item)))
		if (item->type == type)
			return item;
	return NULL;
}
