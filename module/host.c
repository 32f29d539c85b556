// SPDX-License-Identifier: GPL-2.0-only
#include <linux/slab.h>
#include <linux/ktime.h>

#include "host.h"
#include "message.h"
#include "pool-file.h"

/* A notification with the longest name fits. */
#define NOTICE_MAX 512

static int prepare(struct core_conn *to, const struct core_parcel *parcel, size_t *ret_size,
		   struct core_entry **ret_entry)
{
	struct kbus_message *message = parcel->host;
	struct kbus_entry *entry;
	size_t meta_size;
	int r;

	entry = kzalloc(sizeof(*entry), GFP_KERNEL_ACCOUNT);
	if (!entry)
		return -ENOMEM;
	*ret_entry = &entry->core;
	if (!message) {
		*ret_size = core_notice_size(parcel->notice);
		return 0;
	}
	r = kbus_message_describe(message, parcel, kbus_conn_of(to), &meta_size);
	if (r) {
		kfree(entry);
		return r;
	}
	core_layout_init(&message->core, meta_size, &entry->layout);
	entry->files = kbus_files_get(message->files);
	*ret_size = entry->layout.slice_size;
	return 0;
}

static int fill_notice(struct kbus_conn *to, const struct core_parcel *parcel,
		       const struct core_slice *slice)
{
	const struct kdbus_timestamp timestamp = {
		.seqnum = parcel->seq,
		.monotonic_ns = ktime_get_ns(),
		.realtime_ns = ktime_get_real_ns(),
	};
	u64 buf[NOTICE_MAX / sizeof(u64)];
	int r;

	r = core_notice_write(parcel->notice, &timestamp, buf, sizeof(buf));
	if (r)
		return r;
	return kbus_pool_write(to->pool, slice->offset, buf, core_notice_size(parcel->notice));
}

static int fill_payload(struct kbus_conn *to, const struct kbus_message *message,
			const struct core_layout *layout, size_t offset)
{
	const char *src = message->payload;
	struct core_layout_cursor cursor;
	struct core_piece piece;
	int r = 0;

	core_layout_start(&cursor, &message->core, layout);
	while (!r && core_layout_next(&cursor, &piece)) {
		if (piece.address && message->unreadable)
			return -EFAULT;
		r = kbus_pool_write(to->pool, offset + piece.offset, piece.address ? src : NULL,
				    piece.size);
		if (piece.address)
			src += piece.size;
	}
	return r;
}

static int fill(struct core_conn *core, const struct core_parcel *parcel, struct core_entry *entry)
{
	const struct core_layout *layout = &container_of(entry, struct kbus_entry, core)->layout;
	struct kbus_message *message = parcel->host;
	struct kbus_conn *to = kbus_conn_of(core);
	size_t offset = entry->slice->offset;
	int r;

	if (!message)
		return fill_notice(to, parcel, entry->slice);
	core_layout_write(&message->core, layout, message->from->core.id, message->image);
	r = kbus_pool_write(to->pool, offset, message->image, layout->meta_offset);
	if (!r)
		r = kbus_pool_write(to->pool, offset + layout->meta_offset, message->meta,
				    layout->payload_offset - layout->meta_offset);
	return r ? r : fill_payload(to, message, layout, offset);
}

static int copy(struct core_conn *from, size_t from_offset, struct core_conn *to, size_t to_offset,
		size_t bytes)
{
	return kbus_pool_copy(kbus_conn_of(from)->pool, from_offset, kbus_conn_of(to)->pool,
			      to_offset, bytes);
}

static void free_entry(struct core_conn *conn, struct core_entry *core)
{
	struct kbus_entry *entry = container_of(core, struct kbus_entry, core);

	kbus_files_put(entry->files);
	kfree(entry);
}

static void wake(struct core_conn *conn)
{
	wake_up_all(&kbus_conn_of(conn)->wait);
}

const struct core_host_ops kbus_host_ops = {
	.prepare = prepare,
	.fill = fill,
	.copy = copy,
	.free = free_entry,
	.wake = wake,
};
