// SPDX-License-Identifier: LGPL-2.1-or-later
/* From classic peers to native ones. Rules: bridge.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bridge.h"
#include "outgoing.h"

/* A message while it is made native */
struct outgoing {
	struct cmsg *m;
	struct relay relay;
	u64 image[OUTGOING_IMAGE_MAX / sizeof(u64)];
	size_t image_size;
	size_t size; /* of the payload */
	unsigned char *payload; /* ours, or NULL: it lies behind the head */
	int memfd;
};

/* ---- payload ---- */

/* As one piece of memory, or as a memfd if it is larger than a vector may be */
static int make_payload(struct outgoing *o)
{
	const struct cmsg *m = o->m;

	o->size = outgoing_size(m);
	if (o->size > CORE_MSG_MAX_PAYLOAD_VEC_SIZE) {
		o->memfd = outgoing_memfd(m);
		return o->memfd < 0 ? o->memfd : 0;
	}
	o->relay.payload = m->head;
	if (m->joined)
		return 0;
	o->payload = outgoing_joined(m);
	if (!o->payload)
		return -ENOMEM;
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

static void put_fds(struct core_writer *w, const struct cmsg *m)
{
	void *at;

	if (!m->fds)
		return;
	at = core_writer_item(w, KDBUS_ITEM_FDS, m->fds->n * sizeof(int));
	if (at)
		memset(at, 0xff, m->fds->n * sizeof(int));
}

static int make_image(struct outgoing *o, const struct core_bus *bus, u64 dst_id)
{
	struct core_writer w = CORE_WRITER(o->image, sizeof(o->image));
	struct kdbus_msg *msg = core_writer_raw(&w, sizeof(*msg));
	bool broadcast = dst_id == KDBUS_DST_ID_BROADCAST;
	struct dbusp_str name = o->m->header.destination;
	size_t size;
	int r;

	outgoing_head(msg, o->m, dst_id);
	put_payload(&w, o);
	if (broadcast) {
		msg->flags |= KDBUS_MSG_SIGNAL;
		outgoing_bloom(&w, bus, o->m);
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
	if (convert(&o, from, m,
		    m->header.destination.s[0] == ':' ? to->conn.id : KDBUS_DST_ID_NAME) == 0) {
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
		log_about(m->from->account->uid,
			  "a broadcast of %s is not delivered to native peers: it has descriptors",
			  m->sender.s);
		return;
	}
	r = send_native(m->from, m, KDBUS_DST_ID_BROADCAST);
	if (r < 0)
		log_about(m->from->account->uid,
			  "a broadcast of %s is not delivered to native peers: %s", m->sender.s,
			  strerror(-r));
}
