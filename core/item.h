/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_ITEM_H
#define CORE_ITEM_H

#include "base.h"

#include "kdbus.h"

/*
 * Item lists: checking, walking and writing them (spec §3.3, 5).
 *
 * 1. A list starts at a multiple of 8 bytes, in the region and in memory.
 * 2. Each item has a size of at least 16 and ends inside the region; the cursor ends at
 *    exactly the size of the region rounded up to 8. Padding of the last item may be
 *    counted fully, partly or not at all; what padding holds is never looked at.
 * 3. core_item_for_each() and the core_item_get_...() accessors are for lists that have
 *    passed core_items_check(); they do not check again.
 * 4. Memory must not change under the reader: check and use a private copy.
 * 5. What core writes has zeroed padding between items and none after the last.
 *
 * Pure functions of their arguments: any thread, no lock, no allocation.
 */

/* sizeof(struct kdbus_item) is that of its largest payload; this is the header. */
#define CORE_ITEM_HEADER ((size_t)16)

/* Bytes an item of @payload bytes occupies, without and with padding. */
#define CORE_ITEM_SIZE(payload)	 (CORE_ITEM_HEADER + (payload))
#define CORE_ITEM_SPACE(payload) ALIGN(CORE_ITEM_SIZE(payload), (size_t)8)

/**
 * core_item_payload() - payload bytes of an item
 * @item: item of a checked list
 */
static inline void *core_item_payload(const struct kdbus_item *item)
{
	return (char *)item + CORE_ITEM_HEADER;
}

/**
 * core_item_payload_size() - number of payload bytes of an item
 * @item: item of a checked list
 */
static inline size_t core_item_payload_size(const struct kdbus_item *item)
{
	return (size_t)item->size - CORE_ITEM_HEADER;
}

/**
 * core_item_str() - payload of an item as a string
 * @item: item of a checked list whose type makes it a valid string
 */
static inline const char *core_item_str(const struct kdbus_item *item)
{
	return core_item_payload(item);
}

/**
 * core_item_u64() - first 8 bytes of a payload as a number
 * @item: item of a checked list with at least 8 bytes of payload
 */
static inline u64 core_item_u64(const struct kdbus_item *item)
{
	return *(const u64 *)core_item_payload(item);
}

/**
 * core_item_next() - where the next item would start
 * @item: item of a checked list
 */
static inline struct kdbus_item *core_item_next(const struct kdbus_item *item)
{
	return (struct kdbus_item *)((char *)item + ALIGN((size_t)item->size, (size_t)8));
}

/**
 * core_item_for_each() - walk a checked list
 * @pos:   struct kdbus_item pointer, const or not, set to each item in turn
 * @items: address of the first item
 * @bytes: size of the region, as it was checked
 */
#define core_item_for_each(pos, items, bytes)                                  \
	for (pos = (void *)(items); (char *)(pos) < (char *)(items) + (bytes); \
	     pos = core_item_next(pos))

/**
 * core_item_fits() - does a well-formed item start here?
 * @items:  start of the region, a multiple of 8
 * @size:   bytes of the region
 * @offset: where the item starts, a multiple of 8 not above @size
 *
 * Return: whether an item with a sound size word lies in the region at @offset; only
 * then may the item be looked at (spec §3.3).
 */
bool core_item_fits(const void *items, size_t size, size_t offset);

/**
 * core_items_check() - check the structure of an item list
 * @items: start of the region, a multiple of 8
 * @size:  bytes of the region
 *
 * Types and payloads are not looked at.
 *
 * Return: 0, or -EINVAL if the items do not fill the region (spec §3.3).
 */
int core_items_check(const void *items, size_t size);

/**
 * core_item_validate() - check the payload of one input item by its type
 * @item: item whose size word is sound
 *
 * Whether the type is allowed at this place is the caller's question; types that are
 * never input have no rule here.
 *
 * Return: 0, or -EINVAL (payload does not fit the type), -EBADF (negative memfd) or
 * -ENAMETOOLONG (bus name, endpoint name or description too long) (spec §5.2).
 */
int core_item_validate(const struct kdbus_item *item);

/**
 * core_bloom_parameter_check() - check the bloom filter parameters of a new bus
 * @param: parameters
 *
 * Return: 0, or -EINVAL if the size is not a multiple of 8 within 8..4096, or there is
 * no hash function (spec §6.1).
 */
int core_bloom_parameter_check(const struct kdbus_bloom_parameter *param);

/**
 * struct core_writer - writes an item list into memory of the caller
 * @buf:   where to write, a multiple of 8; NULL only counts bytes
 * @size:  bytes at @buf; not used if @buf is NULL
 * @pos:   end of the last item, without padding
 * @full:  an item did not fit; everything since is ignored
 *
 * Start with CORE_WRITER() or CORE_COUNTER, put items, end with core_writer_end().
 */
struct core_writer {
	char *buf;
	size_t size;
	size_t pos;
	bool full;
};

#define CORE_WRITER(_buf, _size) ((struct core_writer){ .buf = (void *)(_buf), .size = (_size) })
#define CORE_COUNTER		 ((struct core_writer){ .buf = NULL })

/**
 * core_writer_raw() - reserve bytes for a header in front of the items
 * @w:    writer
 * @size: bytes, a multiple of 8
 *
 * Return: the zeroed bytes, or NULL if the writer only counts or has no room.
 */
void *core_writer_raw(struct core_writer *w, size_t size);

/**
 * core_writer_item() - reserve an item
 * @w:    writer
 * @type: item type
 * @size: bytes of its payload
 *
 * The padding between the previous item and this one is zeroed; the payload is the
 * caller's to fill.
 *
 * Return: the payload, or NULL if the writer only counts or has no room.
 */
void *core_writer_item(struct core_writer *w, u64 type, size_t size);

/**
 * core_put() - write an item
 * @w:       writer
 * @type:    item type
 * @payload: payload bytes
 * @size:    number of them
 */
void core_put(struct core_writer *w, u64 type, const void *payload, size_t size);

/**
 * core_put_str() - write an item that is a string
 * @w:    writer
 * @type: item type
 * @str:  string
 */
void core_put_str(struct core_writer *w, u64 type, const char *str);

/**
 * core_put_u64() - write an item that is one number
 * @w:     writer
 * @type:  item type
 * @value: number
 */
void core_put_u64(struct core_writer *w, u64 type, u64 value);

/**
 * core_put_name() - write a KDBUS_ITEM_OWNED_NAME
 * @w:     writer
 * @flags: enum kdbus_name_flags
 * @name:  well-known name
 */
void core_put_name(struct core_writer *w, u64 flags, const char *name);

/**
 * core_writer_end() - finish a list
 * @w:        writer
 * @ret_size: bytes written or counted, without padding after the last item
 *
 * The padding after the last item is zeroed as far as the memory reaches.
 *
 * Return: 0, or -EMSGSIZE if the memory was too small.
 */
int core_writer_end(struct core_writer *w, size_t *ret_size);

#endif
