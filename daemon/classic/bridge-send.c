// SPDX-License-Identifier: LGPL-2.1-or-later
/* From classic peers to native ones. Rules: bridge.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bridge.h"
#include "classic.h"
#include "dbus/bloom.h"

/* A call of a classic peer has no deadline: that is the caller's, and it does not tell. */
#define NO_DEADLINE (~0ULL >> 1)

/* Header, one vector or memfd, name, descriptors, bloom filter */
#define IMAGE_MAX (1024 + CORE_BUS_BLOOM_MAX_SIZE)

/* A message while it is made native */
struct outgoing {
	struct cmsg *m;
	struct relay relay;
	u64 image[IMAGE_MAX / sizeof(u64)];
	size_t image_size;
	size_t size; /* of the payload */
	unsigned char *payload; /* ours, or NULL: it lies behind the head */
	int memfd;
};

/* ---- payload ---- */

static int fill_memfd(struct outgoing *o)
{
	const struct cmsg *m = o->m;
	const struct iovec iov[2] = {
		{ (void *)m->head, m->head_len },
		{ (void *)m->body, m->header.frame.body_len },
	};
	ssize_t n;

	o->memfd = memfd_create("kdbus-payload", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (o->memfd < 0)
		return -errno;
	n = writev(o->memfd, iov, 2);
	if (n != (ssize_t)o->size)
		return -ENOMEM;
	if (fcntl(o->memfd, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return -errno;
	return 0;
}

/* As one piece of memory, or as a memfd if it is larger than a vector may be */
static int make_payload(struct outgoing *o)
{
	const struct cmsg *m = o->m;

	o->size = m->head_len + m->header.frame.body_len;
	if (o->size > CORE_MSG_MAX_PAYLOAD_VEC_SIZE)
		return fill_memfd(o);
	o->relay.payload = m->head;
	if (m->joined)
		return 0;
	o->payload = malloc(o->size);
	if (!o->payload)
		return -ENOMEM;
	memcpy(o->payload, m->head, m->head_len);
	memcpy(o->payload + m->head_len, m->body, m->header.frame.body_len);
	o->relay.payload = o->payload;
	return 0;
}

static void release(struct outgoing *o)
{
	free(o->payload);
	if (o->memfd >= 0)
		close(o->memfd);
}

/* ---- image ---- */

static void put_payload(struct core_writer *w, const struct outgoing *o)
{
	const struct kdbus_memfd memfd = { .size = o->size };
	const struct kdbus_vec vec = { .size = o->size, .address = 1 };

	if (o->memfd >= 0)
		core_put(w, KDBUS_ITEM_PAYLOAD_MEMFD, &memfd, sizeof(memfd));
	else
		core_put(w, KDBUS_ITEM_PAYLOAD_VEC, &vec, sizeof(vec));
}

static void put_bloom(struct core_writer *w, const struct core_bus *bus, struct cmsg *m)
{
	size_t size = bus->bloom.size;
	struct kdbus_bloom_filter *filter =
		core_writer_item(w, KDBUS_ITEM_BLOOM_FILTER, sizeof(*filter) + size);
	struct dbusp_bloom bloom;

	if (!filter)
		return;
	memset(filter, 0, sizeof(*filter) + size);
	bloom = (struct dbusp_bloom){ .words = (uint64_t *)filter->data,
				      .n_words = size / sizeof(u64),
				      .n_hash = (unsigned int)bus->bloom.n_hash };
	dbusp_args_init(&m->args, &m->header, m->body);
	m->args_ready = true;
	dbusp_bloom_filter(&bloom, &m->header, &m->args);
}

static void put_fds(struct core_writer *w, const struct cmsg *m)
{
	void *at;

	if (!m->fds)
		return;
	at = core_writer_item(w, KDBUS_ITEM_FDS, m->fds->n * sizeof(int));
	if (at)
		memset(at, 0xff, m->fds->n * sizeof(int));
}

static void fill_head(struct kdbus_msg *msg, const struct cmsg *m, u64 dst_id)
{
	msg->dst_id = dst_id;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	msg->cookie = m->header.frame.serial;
	if (m->header.frame.flags & DBUSP_NO_AUTO_START)
		msg->flags |= KDBUS_MSG_NO_AUTO_START;
	if (cmsg_wants_reply(m)) {
		msg->flags |= KDBUS_MSG_EXPECT_REPLY;
		msg->timeout_ns = NO_DEADLINE;
	} else {
		msg->cookie_reply = m->header.reply_serial;
	}
}

static int make_image(struct outgoing *o, const struct core_bus *bus, u64 dst_id)
{
	struct core_writer w = CORE_WRITER(o->image, sizeof(o->image));
	struct kdbus_msg *msg = core_writer_raw(&w, sizeof(*msg));
	bool broadcast = dst_id == KDBUS_DST_ID_BROADCAST;
	struct dbusp_str name = o->m->header.destination;
	size_t size;
	int r;

	fill_head(msg, o->m, dst_id);
	put_payload(&w, o);
	if (broadcast) {
		msg->flags |= KDBUS_MSG_SIGNAL;
		put_bloom(&w, bus, o->m);
	} else if (name.s[0] != ':') {
		core_put_str(&w, KDBUS_ITEM_DST_NAME, name.s);
	}
	put_fds(&w, o->m);
	r = core_writer_end(&w, &size);
	if (r < 0)
		return r;
	msg->size = size;
	o->image_size = ALIGN(size, (size_t)8);
	return 0;
}

static void attach_fds(struct outgoing *o)
{
	const struct cfds *fds = o->m->fds;

	if (fds) {
		memcpy(o->relay.fds, fds->fds, fds->n * sizeof(int));
		o->relay.n_fds = fds->n;
	}
	if (o->memfd >= 0)
		o->relay.fds[o->relay.n_fds++] = o->memfd;
}

/* Make it native: all but sending it. release() it, also after an error. */
static int convert(struct outgoing *o, struct peer *from, struct cmsg *m, u64 dst_id)
{
	struct core_bus *bus = from->conn.bus;
	ssize_t elsewhere;
	int r;

	*o = (struct outgoing){ .m = m, .relay = { .from = from }, .memfd = -1 };
	if (m->fds && m->fds->n > CORE_MSG_MAX_FDS)
		return -EMFILE;
	if (!peer_creds(from))
		return -ENOMEM;
	r = make_payload(o);
	if (r == 0)
		r = make_image(o, bus, dst_id);
	if (r < 0)
		return r;
	attach_fds(o);
	elsewhere = (ssize_t)o->size;
	if (o->memfd >= 0) {
		/* Of a memfd only what keeps the rest aligned is in the payload area. */
		elsewhere %= 8;
		o->relay.payload = "\0\0\0\0\0\0\0";
	}
	return wire_parse(o->image, o->image_size, elsewhere, bus->bloom.size,
			  m->fds ? m->fds->n : 0, o->memfd >= 0, &o->relay.wire);
}

static int send_native(struct peer *from, struct cmsg *m, u64 dst_id)
{
	struct core_dst dst = { 0 };
	struct outgoing o;
	int r = convert(&o, from, m, dst_id);

	if (r == 0)
		r = relay_route(&o.relay, &dst);
	release(&o);
	return r;
}

/* ---- native monitors ---- */

void bridge_show_monitors(struct peer *from, struct peer *to, struct cmsg *m)
{
	struct core_bus *bus = from->conn.bus;
	struct core_parcel parcel = { .bus = bus, .from = &from->conn };
	struct outgoing o;

	if (list_empty(&bus->monitors))
		return;
	if (convert(&o, from, m, m->header.destination.s[0] == ':' ? to->conn.id :
								     KDBUS_DST_ID_NAME) == 0) {
		parcel.msg = &o.relay.wire.m;
		parcel.seq = core_bus_next_seq(bus);
		parcel.n_fds = o.relay.wire.m.n_fds;
		parcel.host = &o.relay;
		core_deliver_to_monitors(&parcel);
	}
	release(&o);
}

/* ---- calls, replies, signals for one ---- */

int bridge_send(struct cpeer *from, struct peer *to, struct cmsg *m)
{
	return send_native(&from->peer, m,
			   m->header.destination.s[0] == ':' ? to->conn.id : KDBUS_DST_ID_NAME);
}

int bridge_answer(struct peer *from, struct peer *to, struct cmsg *m)
{
	m->head = m->raw;
	m->head_len = m->header.frame.header_len;
	m->joined = true;
	return send_native(from, m, to->conn.id);
}

/* ---- signals for all ---- */

/* Is there any native peer that might want one? */
static bool any_listens(const struct core_bus *bus)
{
	unsigned int i;

	for (i = 0; i < CORE_MATCH_KINDS; i++)
		if (!RB_EMPTY_ROOT(&bus->matches.trees[i]))
			return true;
	return !list_empty(&bus->monitors);
}

void bridge_broadcast(struct classic *k, struct cmsg *m)
{
	int r;

	if (!any_listens(&k->bus->core))
		return;
	if (m->fds) {
		log_line("a broadcast of %s is not delivered to native peers: it has descriptors",
			 m->sender.s);
		return;
	}
	r = send_native(m->from, m, KDBUS_DST_ID_BROADCAST);
	if (r < 0)
		log_line("a broadcast of %s is not delivered to native peers: %s", m->sender.s,
			 strerror(-r));
}
