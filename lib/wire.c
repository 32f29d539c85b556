// SPDX-License-Identifier: LGPL-2.1-or-later
#include <sys/socket.h>

#include "lane/memfd.h"
#include "wire.h"

void wire_init(struct wire *w, const struct core_msg *m)
{
	w->m = *m;
	core_layout_init(m, 0, &w->layout);
}

static void neutralise(struct kdbus_item *item, int *memfds)
{
	size_t i, n;
	int *fds;

	switch (item->type) {
	case KDBUS_ITEM_PAYLOAD_VEC:
		item->vec.address = item->vec.address ? 1 : 0;
		break;
	case KDBUS_ITEM_PAYLOAD_MEMFD:
		item->memfd.fd = (*memfds)++;
		item->memfd.__pad = 0;
		break;
	case KDBUS_ITEM_FDS:
		fds = core_item_payload(item);
		n = core_item_payload_size(item) / sizeof(*fds);
		for (i = 0; i < n; i++)
			fds[i] = -1;
		break;
	default:
		break;
	}
}

void wire_image(const struct wire *w, void *dst)
{
	struct kdbus_msg *msg = dst;
	struct kdbus_item *item;
	int memfds = 0;

	memcpy(dst, w->m.msg, w->m.end);
	if (w->layout.payload_offset > w->m.end)
		memset((char *)dst + w->m.end, 0, w->layout.payload_offset - w->m.end);
	msg->size = w->m.end;
	msg->src_id = 0;
	core_item_for_each(item, msg->items, w->m.end - sizeof(*msg))
		neutralise(item, &memfds);
}

void wire_payload(const struct wire *w, void *dst)
{
	struct core_layout_cursor cursor;
	struct core_piece piece;
	char *to;

	core_layout_start(&cursor, &w->m, &w->layout);
	while (core_layout_next(&cursor, &piece)) {
		if (piece.offset < w->layout.payload_offset)
			continue;
		to = (char *)dst + (piece.offset - w->layout.payload_offset);
		if (piece.offset - w->layout.payload_offset + piece.size > w->layout.payload_size)
			piece.size =
				w->layout.payload_size - (piece.offset - w->layout.payload_offset);
		if (piece.address)
			memcpy(to, (const void *)(unsigned long)piece.address, piece.size);
		else
			memset(to, 0, piece.size);
	}
}

static bool vectors_marked(const struct core_msg *m)
{
	const struct kdbus_item *item;
	int memfds = 0;

	core_item_for_each(item, m->list.items, m->list.size) {
		if (item->type == KDBUS_ITEM_PAYLOAD_VEC && item->vec.address > 1)
			return false;
		if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD && item->memfd.fd != memfds++)
			return false;
	}
	return true;
}

int wire_parse(void *body, size_t size, ssize_t elsewhere, u64 bloom_size, u32 fds, u32 memfds,
	       struct wire *ret)
{
	const struct core_msg_facts facts = { .bloom_size = bloom_size };
	struct kdbus_msg *msg = body;
	size_t payload;
	int r;

	if (size < sizeof(*msg))
		return -EINVAL;
	r = core_msg_check_size(msg->size);
	if (r < 0)
		return r;
	if (ALIGN(msg->size, 8) > size || msg->src_id)
		return -EINVAL;
	r = core_msg_parse(msg, msg->size, false, &ret->m);
	if (r == 0)
		r = core_msg_check(&ret->m, &facts);
	if (r < 0)
		return r;
	core_layout_init(&ret->m, 0, &ret->layout);
	payload = elsewhere >= 0 ? (size_t)elsewhere : size - ret->layout.payload_offset;
	if (ret->layout.payload_offset > size || payload < ret->layout.payload_size ||
	    payload - ret->layout.payload_size >= 8 || !vectors_marked(&ret->m) ||
	    ret->m.n_fds != fds || ret->m.n_memfds != memfds)
		return -EPROTO;
	return 0;
}

static int check_fd(int fd)
{
	int domain;
	socklen_t size = sizeof(domain);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX)
		return -EOPNOTSUPP;
	return 0;
}

int wire_check_fds(const struct wire *w, const int *fds)
{
	const struct core_msg *m = &w->m;
	const struct kdbus_item *item;
	u32 i, memfd = m->n_fds;
	int r = 0;

	for (i = 0; i < m->n_fds && r == 0; i++)
		r = check_fd(fds[i]);
	if (r < 0 || !m->n_memfds)
		return r;
	core_item_for_each(item, m->list.items, m->list.size) {
		if (item->type != KDBUS_ITEM_PAYLOAD_MEMFD || fds[memfd++] < 0)
			continue;
		r = lane_memfd_check_payload(fds[memfd - 1], item->memfd.start, item->memfd.size);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Payload outside the pool: the offset still leads there from the message, modulo 2^64. */
static void shift_offsets(struct kdbus_msg *msg, size_t size, u64 by)
{
	struct kdbus_item *item;

	core_item_for_each(item, msg->items, size - sizeof(*msg))
		if (item->type == KDBUS_ITEM_PAYLOAD_OFF && item->vec.offset != ~0ULL)
			item->vec.offset += by;
}

void wire_deliver(const struct wire *w, u64 src_id, const void *meta, size_t meta_size, void *dst,
		  const void *seen, const void *outside)
{
	struct core_layout layout = w->layout;
	char *at = dst;

	core_layout_add_meta(&layout, meta_size);
	core_layout_write(&w->m, &layout, src_id, dst);
	if (meta_size)
		memcpy(at + layout.meta_offset, meta, meta_size);
	if (outside)
		shift_offsets(dst, w->m.end,
			      (u64)((unsigned long)outside -
				    (unsigned long)((const char *)seen + layout.payload_offset)));
}
