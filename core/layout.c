// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"

#include "layout.h"

/**
 * struct part - what a payload item contributes to the payload area
 * @size:    bytes to store
 * @address: where they come from; 0 for zero bytes
 */
struct part {
	size_t size;
	u64 address;
};

static struct part part_of(const struct kdbus_item *item)
{
	const struct kdbus_memfd *memfd = core_item_payload(item);
	const struct kdbus_vec *vec = core_item_payload(item);

	switch (item->type) {
	case KDBUS_ITEM_PAYLOAD_VEC:
		if (vec->address)
			return (struct part){ vec->size, vec->address };
		return (struct part){ vec->size % 8, 0 };
	case KDBUS_ITEM_PAYLOAD_MEMFD:
		/*
		 * Not 8 - size % 8: what follows must lie where it lies in the stream,
		 * modulo 8, not at a multiple of 8.
		 */
		return (struct part){ memfd->size % 8, 0 };
	default:
		return (struct part){ 0, 0 };
	}
}

void core_layout_add_meta(struct core_layout *layout, size_t meta_size)
{
	if (meta_size)
		layout->msg_size = layout->meta_offset + meta_size;
	layout->payload_offset = ALIGN(layout->msg_size, (size_t)8);
	layout->slice_size = ALIGN(layout->payload_offset + layout->payload_size, (size_t)8);
}

void core_layout_init(const struct core_msg *m, size_t meta_size, struct core_layout *ret)
{
	const struct kdbus_item *item;
	struct core_layout layout = {
		.meta_offset = ALIGN(m->end, (size_t)8),
		.msg_size = m->end,
	};

	core_item_for_each(item, m->list.items, m->list.size)
		layout.payload_size += part_of(item).size;
	core_layout_add_meta(&layout, meta_size);
	*ret = layout;
}

static void blank_fds(struct kdbus_item *item)
{
	/* All bits set is -1 in each of them. */
	memset(core_item_payload(item), 0xff, core_item_payload_size(item));
}

static void blank_memfd(struct kdbus_item *item)
{
	struct kdbus_memfd *memfd = core_item_payload(item);

	memfd->fd = -1;
}

/* Make the copied vector at @item point to the bytes stored at @offset. */
static void relocate(struct kdbus_item *item, size_t offset)
{
	struct kdbus_vec *vec = core_item_payload(item);

	item->type = KDBUS_ITEM_PAYLOAD_OFF;
	vec->offset = vec->address ? offset : U64_MAX;
}

void core_layout_write(const struct core_msg *m, const struct core_layout *layout, u64 src_id,
		       void *dst)
{
	struct kdbus_msg *msg = dst;
	size_t offset = layout->payload_offset;
	struct kdbus_item *item;
	struct part part;

	memcpy(dst, m->msg, m->end);
	if (layout->meta_offset > m->end)
		memset((char *)dst + m->end, 0, layout->meta_offset - m->end);
	msg->size = layout->msg_size;
	msg->src_id = src_id;

	core_item_for_each(item, (char *)dst + sizeof(*msg), m->list.end) {
		part = part_of(item);
		if (item->type == KDBUS_ITEM_PAYLOAD_VEC)
			relocate(item, offset);
		else if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD)
			blank_memfd(item);
		else if (item->type == KDBUS_ITEM_FDS)
			blank_fds(item);
		offset += part.size;
	}
}

void core_layout_start(struct core_layout_cursor *cursor, const struct core_msg *m,
		       const struct core_layout *layout)
{
	*cursor = (struct core_layout_cursor){
		.m = m,
		.layout = layout,
		.item = m->list.items,
		.offset = layout->msg_size,
	};
}

static bool emit(struct core_layout_cursor *cursor, size_t size, u64 address,
		 struct core_piece *ret)
{
	if (!size)
		return false;
	*ret = (struct core_piece){ cursor->offset, size, address };
	cursor->offset += size;
	return true;
}

bool core_layout_next(struct core_layout_cursor *cursor, struct core_piece *ret)
{
	const struct core_layout *layout = cursor->layout;
	const char *end = (const char *)cursor->m->list.items + cursor->m->list.size;
	struct part part;

	if (cursor->offset < layout->payload_offset)
		return emit(cursor, layout->payload_offset - cursor->offset, 0, ret);
	while ((const char *)cursor->item < end) {
		part = part_of(cursor->item);
		cursor->item = core_item_next(cursor->item);
		if (emit(cursor, part.size, part.address, ret))
			return true;
	}
	return emit(cursor, layout->slice_size - cursor->offset, 0, ret);
}
