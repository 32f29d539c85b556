// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdint.h>
#include <stdlib.h>

#include "base.h"
#include "host.h"
#include "layout.h"
#include "meta.h"

#define OWNER 1000

struct host_entry {
	struct core_entry core;
	struct core_layout layout;
};

static struct host *host_of(const struct core_conn *conn)
{
	return container_of(conn->bus->domain, struct host, domain);
}

struct host_conn *host_conn(struct core_conn *conn)
{
	return container_of(conn, struct host_conn, core);
}

/* Names and a timestamp are all the metadata there is. */
static void describe(const struct core_parcel *parcel, const struct core_conn *to,
		     struct core_meta *ret_meta)
{
	memset(ret_meta, 0, sizeof(*ret_meta));
	ret_meta->have = KDBUS_ATTACH_NAMES | KDBUS_ATTACH_TIMESTAMP;
	ret_meta->names = parcel->from ? &parcel->from->names : NULL;
	ret_meta->timestamp.seqnum = parcel->seq;
	ret_meta->timestamp.monotonic_ns = host_of(to)->now;
	ret_meta->timestamp.realtime_ns = host_of(to)->now;
}

static u64 mask_for(const struct core_parcel *parcel, const struct core_conn *to)
{
	return core_meta_for_message(parcel->from->attach_send, to->attach_recv, 0);
}

static int prepare(struct core_conn *to, const struct core_parcel *parcel, size_t *ret_size,
		   struct core_entry **ret_entry)
{
	struct host_entry *entry = calloc(1, sizeof(*entry));
	struct core_meta meta;

	if (!entry)
		return -ENOMEM;
	if (parcel->notice) {
		*ret_size = core_notice_size(parcel->notice);
	} else {
		describe(parcel, to, &meta);
		core_layout_init(parcel->msg, core_meta_size(&meta, mask_for(parcel, to)),
				 &entry->layout);
		*ret_size = entry->layout.slice_size;
	}
	host_of(to)->entries++;
	*ret_entry = &entry->core;
	return 0;
}

static void fill_payload(const struct core_parcel *parcel, const struct core_layout *layout,
			 char *dst)
{
	struct core_layout_cursor cursor;
	struct core_piece piece;
	const void *src;

	core_layout_start(&cursor, parcel->msg, layout);
	while (core_layout_next(&cursor, &piece)) {
		/* addresses are numbers in the ABI: NOLINTNEXTLINE(performance-no-int-to-ptr) */
		src = (const void *)(uintptr_t)piece.address;
		if (src)
			memcpy(dst + piece.offset, src, piece.size);
		else
			memset(dst + piece.offset, 0, piece.size);
	}
}

static int fill(struct core_conn *to, const struct core_parcel *parcel, struct core_entry *core)
{
	struct host_entry *entry = container_of(core, struct host_entry, core);
	char *dst = host_conn(to)->pool + core->slice->offset;
	struct core_writer writer;
	struct core_meta meta;
	size_t size;
	int r = host_of(to)->fail;

	host_of(to)->fail = 0;
	if (r)
		return r;
	describe(parcel, to, &meta);
	if (parcel->notice)
		return core_notice_write(parcel->notice, &meta.timestamp, dst, core->slice->size);
	core_layout_write(parcel->msg, &entry->layout, parcel->from->id, dst);
	writer = CORE_WRITER(dst + entry->layout.meta_offset,
			     entry->layout.payload_offset - entry->layout.meta_offset);
	core_meta_put(&writer, &meta, mask_for(parcel, to));
	r = core_writer_end(&writer, &size);
	if (r)
		return r;
	fill_payload(parcel, &entry->layout, dst);
	return 0;
}

static int copy(struct core_conn *from, size_t from_offset, struct core_conn *to, size_t to_offset,
		size_t bytes)
{
	memcpy(host_conn(to)->pool + to_offset, host_conn(from)->pool + from_offset, bytes);
	return 0;
}

static void free_entry(struct core_conn *conn, struct core_entry *core)
{
	host_of(conn)->entries--;
	free(container_of(core, struct host_entry, core));
}

static void wake(struct core_conn *conn)
{
	host_conn(conn)->wakes++;
}

static const struct core_host_ops ops = {
	.prepare = prepare,
	.fill = fill,
	.copy = copy,
	.free = free_entry,
	.wake = wake,
};

int host_init(struct host *host)
{
	static const u8 random[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
	const struct core_bus_make make = {
		.name = "1000-demo",
		.bloom = { .size = HOST_BLOOM, .n_hash = 1 },
	};

	memset(host, 0, sizeof(*host));
	core_domain_init(&host->domain, &ops);
	return core_bus_make(&host->domain, &host->bus, &make, OWNER, OWNER, random);
}

void host_deinit(struct host *host)
{
	core_bus_teardown(&host->bus);
	core_domain_deinit(&host->domain);
}

static int parse_policy(const struct host_hello *hello, struct core_policy_set **ret_set)
{
	*ret_set = NULL;
	if (!hello->policy)
		return 0;
	return core_policy_parse(hello->policy, hello->policy_size,
				 CORE_POLICY_ONE_NAME |
					 (hello->flags & KDBUS_HELLO_ACTIVATOR ?
						  CORE_POLICY_NO_WILDCARD : 0),
				 NULL, NULL, ret_set);
}

int host_connect(struct host *host, struct host_conn *conn, const struct host_hello *hello)
{
	const struct core_hello args = {
		.flags = hello->flags,
		.kind = core_kind(hello->flags),
		.pool_size = hello->pool_size ? hello->pool_size : 65536,
		.attach_send = _KDBUS_ATTACH_ALL,
		.attach_recv = _KDBUS_ATTACH_ALL,
		.name = hello->name,
	};
	struct core_connect connect = {
		.hello = &args,
		.opener = &conn->opener,
		.deadlines = &host->bus.deadlines,
	};
	int r;

	memset(conn, 0, sizeof(*conn));
	conn->opener.uid = hello->uid ? hello->uid : OWNER;
	conn->opener.cred.euid = conn->opener.uid;
	conn->opener.cred.egid = conn->opener.uid;
	r = parse_policy(hello, &connect.policy);
	if (r)
		return r;
	conn->pool = malloc(args.pool_size);
	r = conn->pool ? core_conn_hello(&conn->core, hello->ep ? hello->ep : &host->bus.def,
					 &connect) : -ENOMEM;
	if (!r)
		return 0;
	core_policy_set_free(connect.policy);
	free(conn->pool);
	memset(conn, 0, sizeof(*conn));
	return r;
}

void host_close(struct host_conn *conn)
{
	if (!conn->pool)
		return;
	core_conn_disconnect(&conn->core);
	core_conn_deinit(&conn->core);
	free(conn->pool);
	memset(conn, 0, sizeof(*conn));
}

static size_t write_items(const struct host_msg *msg, struct kdbus_msg *m, size_t size)
{
	struct core_writer w = CORE_WRITER(m, size);
	const struct kdbus_vec vec = {
		.size = msg->size,
		.address = (uintptr_t)msg->payload,
	};
	char *bloom;
	int *fds;
	size_t end;

	core_writer_raw(&w, sizeof(*m));
	if (msg->size)
		core_put(&w, KDBUS_ITEM_PAYLOAD_VEC, &vec, sizeof(vec));
	if (msg->flags & KDBUS_MSG_SIGNAL) {
		bloom = core_writer_item(&w, KDBUS_ITEM_BLOOM_FILTER, 8 + HOST_BLOOM);
		memset(bloom, 0, 8 + HOST_BLOOM);
		memcpy(bloom, &msg->generation, 8);
		if (msg->bloom)
			memcpy(bloom + 8, msg->bloom, HOST_BLOOM);
	}
	if (msg->n_fds) {
		fds = core_writer_item(&w, KDBUS_ITEM_FDS, msg->n_fds * sizeof(int));
		for (unsigned int i = 0; i < msg->n_fds; i++)
			fds[i] = 3 + i;
	}
	if (msg->name)
		core_put_str(&w, KDBUS_ITEM_DST_NAME, msg->name);
	return core_writer_end(&w, &end) ? 0 : end;
}

int host_send(struct host_conn *from, const struct host_msg *msg, struct core_reply **ret_slot)
{
	union {
		struct kdbus_msg msg;
		u64 words[256];
	} buf;
	const struct core_msg_facts facts = {
		.id = from->core.id,
		.sync = msg->sync,
		.bloom_size = HOST_BLOOM,
	};
	struct core_send send = {
		.from = &from->core,
		.cred = msg->cred,
		.now = host_of(&from->core)->now,
	};
	struct core_msg parsed;
	size_t size;
	int r;

	memset(&buf, 0, sizeof(buf));
	size = write_items(msg, &buf.msg, sizeof(buf));
	buf.msg.size = size;
	buf.msg.flags = msg->flags;
	buf.msg.priority = msg->priority;
	buf.msg.dst_id = msg->dst_id;
	buf.msg.payload_type = KDBUS_PAYLOAD_DBUS;
	buf.msg.cookie = msg->cookie;
	buf.msg.timeout_ns = msg->word;
	r = core_msg_parse(&buf.msg, size, false, &parsed);
	if (!r)
		r = core_msg_check(&parsed, &facts);
	if (r)
		return r;
	send.msg = &parsed;
	return core_bus_send(&send, ret_slot);
}

int host_recv(struct host_conn *conn, u64 flags, s64 priority, struct core_received *ret,
	      const struct kdbus_msg **ret_msg)
{
	int r = core_bus_recv(&conn->core, flags, priority, NULL, NULL, ret);

	*ret_msg = NULL;
	if (!r && ret->size)
		*ret_msg = (const struct kdbus_msg *)(conn->pool + ret->offset);
	return r;
}

int host_free(struct host_conn *conn, const struct kdbus_msg *msg)
{
	return core_pool_free(&conn->core.inbox.pool, (const char *)msg - conn->pool);
}
