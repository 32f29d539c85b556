// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"

#include "record.h"

static size_t padded(size_t size)
{
	return ALIGN(size, (size_t)8);
}

/* Begin a record of @need bytes; what is behind it in @dst is not touched. */
static int begin(struct core_writer *w, size_t need, void *dst, size_t size)
{
	if (size < need)
		return -EMSGSIZE;
	*w = CORE_WRITER(dst, need);
	return 0;
}

/* End a record; the padding up to its size becomes zero. */
static int finish(struct core_writer *w)
{
	size_t size;

	return core_writer_end(w, &size);
}

static void put_name_notice(struct core_writer *w, const struct core_notice *notice)
{
	struct kdbus_notify_name_change change = {
		.old_id = notice->old_id,
		.new_id = notice->new_id,
	};
	size_t size = strlen(notice->name) + 1;
	char *at = core_writer_item(w, notice->type, sizeof(change) + size);

	if (!at)
		return;
	memcpy(at, &change, sizeof(change));
	memcpy(at + sizeof(change), notice->name, size);
}

static void put_notice(struct core_writer *w, const struct core_notice *notice)
{
	switch (notice->type) {
	case KDBUS_ITEM_NAME_ADD:
	case KDBUS_ITEM_NAME_REMOVE:
	case KDBUS_ITEM_NAME_CHANGE:
		put_name_notice(w, notice);
		break;
	case KDBUS_ITEM_ID_ADD:
	case KDBUS_ITEM_ID_REMOVE:
		core_put(w, notice->type, &notice->new_id, sizeof(notice->new_id));
		break;
	default:
		core_writer_item(w, notice->type, 0);
		break;
	}
}

static size_t notice_items_size(const struct core_notice *notice)
{
	struct core_writer counter = CORE_COUNTER;

	put_notice(&counter, notice);
	core_writer_item(&counter, KDBUS_ITEM_TIMESTAMP, sizeof(struct kdbus_timestamp));
	return counter.pos;
}

size_t core_notice_size(const struct core_notice *notice)
{
	return sizeof(struct kdbus_msg) + padded(notice_items_size(notice));
}

int core_notice_write(const struct core_notice *notice, const struct kdbus_timestamp *timestamp,
		      void *dst, size_t size)
{
	bool reply = core_notice_is_reply(notice);
	struct kdbus_msg *msg;
	struct core_writer w;
	int r;

	r = begin(&w, core_notice_size(notice), dst, size);
	if (r)
		return r;
	msg = core_writer_raw(&w, sizeof(*msg));
	msg->size = sizeof(*msg) + notice_items_size(notice);
	msg->flags = reply ? 0 : KDBUS_MSG_SIGNAL;
	msg->dst_id = reply ? notice->dst_id : KDBUS_DST_ID_BROADCAST;
	msg->src_id = KDBUS_SRC_ID_KERNEL;
	msg->payload_type = KDBUS_PAYLOAD_KERNEL;
	msg->cookie_reply = reply ? notice->cookie_reply : 0;
	put_notice(&w, notice);
	core_put(&w, KDBUS_ITEM_TIMESTAMP, timestamp, sizeof(*timestamp));
	return finish(&w);
}

static void put_info(struct core_writer *w, const struct core_info *info)
{
	if (info->bus_name)
		core_put_str(w, KDBUS_ITEM_MAKE_NAME, info->bus_name);
	core_meta_put(w, info->meta, info->mask);
}

size_t core_info_size(const struct core_info *info)
{
	struct core_writer counter = CORE_COUNTER;

	put_info(&counter, info);
	return sizeof(struct kdbus_info) + padded(counter.pos);
}

/* Begin a struct kdbus_info record of @need bytes. */
static int begin_record(struct core_writer *w, size_t need, void *dst, size_t size, u64 id,
			u64 flags)
{
	struct kdbus_info *header;
	int r;

	r = begin(w, need, dst, size);
	if (r)
		return r;
	header = core_writer_raw(w, sizeof(*header));
	header->size = need;
	header->id = id;
	header->flags = flags;
	return 0;
}

int core_info_write(const struct core_info *info, void *dst, size_t size)
{
	struct core_writer w;
	int r;

	r = begin_record(&w, core_info_size(info), dst, size, info->id, info->flags);
	if (r)
		return r;
	put_info(&w, info);
	return finish(&w);
}

size_t core_listed_size(const struct core_listed *listed)
{
	struct core_writer counter = CORE_COUNTER;

	if (listed->name)
		core_put_name(&counter, listed->name_flags, listed->name);
	return sizeof(struct kdbus_info) + padded(counter.pos);
}

int core_listed_write(const struct core_listed *listed, void *dst, size_t size)
{
	struct core_writer w;
	int r;

	r = begin_record(&w, core_listed_size(listed), dst, size, listed->id, listed->flags);
	if (r)
		return r;
	if (listed->name)
		core_put_name(&w, listed->name_flags, listed->name);
	return finish(&w);
}

int core_hello_items_write(const struct kdbus_bloom_parameter *bloom, void *dst, size_t size)
{
	struct core_writer w;
	int r;

	r = begin(&w, CORE_HELLO_ITEMS_SIZE, dst, size);
	if (r)
		return r;
	core_put(&w, KDBUS_ITEM_BLOOM_PARAMETER, bloom, sizeof(*bloom));
	return finish(&w);
}
