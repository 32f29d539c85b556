// SPDX-License-Identifier: GPL-2.0-only
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "host.h"
#include "life.h"
#include "message.h"
#include "pool-file.h"
#include "tracepoints.h"

/* A notification with the longest name fits. */
#define NOTICE_MAX 512

/* A queue that is filled and emptied in turn allocates nothing. */
static struct kbus_entry *new_entry(struct kbus_conn *to)
{
	struct kbus_entry *entry = to->spare;

	to->spare = NULL;
	if (!entry)
		entry = kmalloc(sizeof(*entry), GFP_KERNEL_ACCOUNT);
	if (entry)
		entry->files = NULL;
	return entry;
}

static void delete_entry(struct kbus_conn *conn, struct kbus_entry *entry)
{
	kbus_files_put(entry->files);
	if (conn->spare)
		kfree(entry);
	else
		conn->spare = entry;
}

static int prepare(struct core_conn *to, const struct core_parcel *parcel, size_t *ret_size,
		   struct core_entry **ret_entry)
{
	struct kbus_message *message = parcel->host;
	struct kbus_entry *entry;
	size_t meta_size;
	int r;

	entry = new_entry(kbus_conn_of(to));
	if (!entry)
		return -ENOMEM;
	*ret_entry = &entry->core;
	if (!message) {
		*ret_size = core_notice_size(parcel->notice);
		return 0;
	}
	r = kbus_message_describe(message, parcel, kbus_conn_of(to), &meta_size);
	if (r) {
		delete_entry(kbus_conn_of(to), entry);
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

/* Header and items: made in place, if the place is in one page. */
static int fill_image(struct kbus_pool_pen *pen, const struct kbus_message *message,
		      const struct core_layout *layout, size_t offset)
{
	void *image = kbus_pool_pen_room(pen, offset, layout->meta_offset);
	u64 id = message->from->core.id;
	int r;

	if (IS_ERR(image))
		return PTR_ERR(image);
	if (image) {
		core_layout_write(&message->core, layout, id, image);
		return 0;
	}
	image = kvmalloc(layout->meta_offset, GFP_KERNEL_ACCOUNT);
	if (!image)
		return -ENOMEM;
	core_layout_write(&message->core, layout, id, image);
	r = kbus_pool_pen_write(pen, offset, image, layout->meta_offset);
	kvfree(image);
	return r;
}

static int fill_piece(struct kbus_pool_pen *pen, struct kbus_message *message,
		      const struct core_piece *piece, size_t offset, const char **src)
{
	int r;

	if (!piece->address)
		return kbus_pool_pen_write(pen, offset, NULL, piece->size);
	if (message->source == KBUS_PAYLOAD_UNREADABLE)
		return -EFAULT;
	if (message->source == KBUS_PAYLOAD_BUFFER) {
		r = kbus_pool_pen_write(pen, offset, *src, piece->size);
		*src += piece->size;
		return r;
	}
	r = kbus_pool_pen_gather(pen, offset, u64_to_user_ptr(piece->address), piece->size);
	message->absent = r == -EFAULT;
	return r;
}

static int fill_payload(struct kbus_pool_pen *pen, struct kbus_message *message,
			const struct core_layout *layout, size_t offset)
{
	const char *src = message->payload;
	struct core_layout_cursor cursor;
	struct core_piece piece;
	int r = 0;

	core_layout_start(&cursor, &message->core, layout);
	while (!r && core_layout_next(&cursor, &piece))
		r = fill_piece(pen, message, &piece, offset + piece.offset, &src);
	return r;
}

static int fill_message(struct kbus_conn *to, struct kbus_message *message,
			const struct core_layout *layout, size_t offset)
{
	struct kbus_pool_pen pen = KBUS_POOL_PEN(to->pool, &to->mark);
	int r;

	r = fill_image(&pen, message, layout, offset);
	if (!r)
		r = kbus_pool_pen_write(&pen, offset + layout->meta_offset, message->meta,
					layout->payload_offset - layout->meta_offset);
	if (!r)
		r = fill_payload(&pen, message, layout, offset);
	kbus_pool_pen_end(&pen);
	return r;
}

static int fill(struct core_conn *core, const struct core_parcel *parcel, struct core_entry *entry)
{
	const struct core_layout *layout = &container_of(entry, struct kbus_entry, core)->layout;
	struct kbus_conn *to = kbus_conn_of(core);

	if (!parcel->host)
		return fill_notice(to, parcel, entry->slice);
	return fill_message(to, parcel->host, layout, entry->slice->offset);
}

static int copy(struct core_conn *from, size_t from_offset, struct core_conn *to, size_t to_offset,
		size_t bytes)
{
	return kbus_pool_copy(kbus_conn_of(from)->pool, from_offset, kbus_conn_of(to)->pool,
			      to_offset, bytes);
}

static void free_entry(struct core_conn *conn, struct core_entry *core)
{
	delete_entry(kbus_conn_of(conn), container_of(core, struct kbus_entry, core));
}

/* A message is for one of those who take turns; the end is for all. */
static void wake(struct core_conn *core)
{
	struct kbus_conn *conn = kbus_conn_of(core);

	if (kbus_conn_alive(conn))
		wake_up_interruptible_sync_poll(&conn->wait, EPOLLIN | EPOLLRDNORM);
	else
		wake_up_all(&conn->wait);
}

static void lost(struct core_conn *core)
{
	struct kbus_conn *conn = kbus_conn_of(core);

	conn->lost++;
	trace_kdbus_drop(conn, core->inbox.lost);
}

static void charge(struct core_conn *core)
{
	set_active_memcg(core ? kbus_pool_memcg(kbus_conn_of(core)->pool) : NULL);
}

const struct core_host_ops kbus_host_ops = {
	.prepare = prepare,
	.fill = fill,
	.copy = copy,
	.free = free_entry,
	.wake = wake,
	.lost = lost,
	.charge = charge,
};
