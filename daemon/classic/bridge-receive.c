// SPDX-License-Identifier: LGPL-2.1-or-later
/* From native peers to classic ones. Rules: bridge.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "access.h"
#include "bridge.h"
#include "incoming.h"
#include "roster.h"

/* A message of this daemon's own engine as a source */
struct relayed {
	struct incoming_source source;
	const struct relay *relay;
};

/* ---- payload ---- */

static u64 payload_size(const struct core_msg *m)
{
	const struct kdbus_item *item;
	u64 size = 0;

	core_item_for_each(item, m->list.items, m->list.size) {
		if (item->type == KDBUS_ITEM_PAYLOAD_VEC)
			size += item->vec.size;
		else if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD)
			size += item->memfd.size;
		if (size > DBUSP_MESSAGE_MAX)
			return ~0ULL;
	}
	return size;
}

/**
 * struct part - a piece of the payload
 * @area:	where it is; NULL: in @memfd from @start on, or nowhere: zeroes
 */
struct part {
	u64 size;
	const unsigned char *area;
	int memfd;
	u64 start;
};

/*
 * What an item stands for; @area and @memfd move on behind it. Where a part is not stored in the
 * area of vectors, some bytes are there to keep what follows aligned (core/layout.h).
 */
static bool part_of(const struct kdbus_item *item, const unsigned char **area, const int **memfd,
		    struct part *ret)
{
	*ret = (struct part){ .memfd = -1 };
	if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD) {
		ret->size = item->memfd.size;
		ret->memfd = *(*memfd)++;
		ret->start = item->memfd.start;
		*area += item->memfd.size % 8;
		return true;
	}
	if (item->type != KDBUS_ITEM_PAYLOAD_VEC)
		return false;
	ret->size = item->vec.size;
	ret->area = item->vec.address ? *area : NULL;
	*area += item->vec.address ? item->vec.size : item->vec.size % 8;
	return true;
}

static int read_part(const struct part *part, u64 at, unsigned char *to, size_t size)
{
	if (part->area)
		memcpy(to, part->area + at, size);
	else if (part->memfd >= 0)
		return incoming_read_memfd(part->memfd, part->start + at, to, size);
	else
		memset(to, 0, size);
	return 0;
}

/* The parts in the order in which they make up the message. */
static int read_payload(const struct incoming_source *source, size_t at, void *to, size_t size)
{
	const struct relay *relay = container_of(source, const struct relayed, source)->relay;
	const struct core_msg *m = &relay->wire.m;
	const unsigned char *area = relay->payload;
	const int *memfd = relay->fds + m->n_fds;
	const struct kdbus_item *item;
	unsigned char *dst = to;
	struct part part;
	u64 begin = 0;
	size_t n;
	int r;

	core_item_for_each(item, m->list.items, m->list.size) {
		if (!size)
			break;
		if (!part_of(item, &area, &memfd, &part))
			continue;
		if (at < begin + part.size) {
			n = (size_t)min_t(u64, size, begin + part.size - at);
			r = read_part(&part, at - begin, dst, n);
			if (r < 0)
				return r;
			dst += n;
			at += n;
			size -= n;
		}
		begin += part.size;
	}
	return size ? -EBADMSG : 0;
}

/* ---- the message ---- */

static struct relayed source_of(const struct relay *relay)
{
	return (struct relayed){ .source = { .read = read_payload,
					     .msg = relay->wire.m.msg,
					     .size = payload_size(&relay->wire.m),
					     .n_fds = relay->wire.m.n_fds },
				 .relay = relay };
}

static int copy_fds(struct incoming *in, const struct relay *relay)
{
	unsigned int n = relay->wire.m.n_fds, i;
	int fds[LANE_SOCK_FDS_MAX];

	if (!n)
		return 0;
	for (i = 0; i < n; i++) {
		fds[i] = reaper_dup(in->classic->daemon->reaper, relay->fds[i]);
		if (fds[i] < 0)
			break;
	}
	if (i == n)
		in->m.fds = cfds_new(in->classic->daemon->reaper, fds, n);
	if (in->m.fds)
		return 0;
	while (i--)
		reaper_close(in->classic->daemon->reaper, fds[i]);
	return -EMFILE;
}

/* ---- for one ---- */

static int deliver_to(struct cpeer *to, const struct relay *relay)
{
	const struct relayed from = source_of(relay);
	struct incoming in;
	int r = incoming_begin(&in, to->classic, relay->from, &from.source);

	if (r == 0)
		r = incoming_admit(&in, to);
	if (r == 0)
		r = incoming_body(&in, &from.source);
	if (r == 0)
		r = copy_fds(&in, relay);
	if (r == 0)
		r = incoming_deliver(&in, to);
	incoming_end(&in);
	return r;
}

static int deliver(struct core_conn *conn, const struct core_parcel *parcel,
		   struct core_reply *slot)
{
	struct cpeer *to = cpeer_of(conn);

	/* Classic peers hear of the bus's own events from the driver. */
	if (parcel->notice)
		return 0;
	return cpeer_alive(to) ? deliver_to(to, parcel->host) : -ECONNRESET;
}

/* A message that waited at an activator: its record lies in the activator's pool. */
static int adopt(struct core_conn *to, struct core_conn *from, struct core_entry *entry)
{
	const struct stored *stored = stored_of(entry);
	unsigned char *at = client_of(from)->pool + entry->slice->offset + stored->tail.meta_size;
	size_t size = stored->image - stored->tail.meta_size + stored->payload;
	struct core_conn *sender = core_bus_find_conn(to->bus, stored->tail.src_id);
	struct relay relay = { .n_fds = stored->n_fds };
	int r;

	if (!sender || !cpeer_alive(cpeer_of(to)))
		return -ECONNRESET;
	relay.from = peer_of(sender);
	memcpy(relay.fds, stored->fds, stored->n_fds * sizeof(int));
	r = wire_parse(at, size, -1, to->bus->bloom.size, entry->fds, stored->n_fds - entry->fds,
		       &relay.wire);
	if (r < 0)
		return r;
	relay.payload = at + relay.wire.layout.payload_offset;
	return deliver_to(cpeer_of(to), &relay);
}

static void lose(struct core_conn *to)
{
}

static bool busy(const struct core_conn *conn)
{
	return cpeer_of(conn)->out_bytes > 0;
}

const struct core_sink classic_sink = {
	.deliver = deliver,
	.adopt = adopt,
	.lose = lose,
	.busy = busy,
};

/* ---- for the next owner of a name ---- */

/* Without one nothing is started: what it was called with may be why the last one ended. */
static void hand_on(struct cpeer *from, const struct peer *dead, struct cmsg *m)
{
	struct peer *to = route_find(from->classic, m->header.destination);

	if (!to || to == dead)
		return;
	/* The call is no longer the dead one's. If it has ended, so has the wait for it. */
	if (cmsg_wants_reply(m) && !reply_take(from, dead, m->header.frame.serial))
		return;
	route_to(from, to, m);
}

void bridge_hand_on(const struct relay *relay, const struct peer *dead)
{
	struct cpeer *from = cpeer_of(&relay->from->conn);
	const struct relayed source = source_of(relay);
	struct incoming in;
	int r;

	if (!cpeer_alive(from))
		return;
	r = incoming_begin(&in, from->classic, relay->from, &source.source);
	if (r == 0)
		r = incoming_body(&in, &source.source);
	if (r == 0)
		r = copy_fds(&in, relay);
	if (r == 0)
		hand_on(from, dead, &in.m);
	incoming_end(&in);
}

/* ---- for one that is still to be started ---- */

int bridge_may_start(struct classic *k, const struct relay *relay)
{
	const struct relayed from = source_of(relay);
	struct incoming in;
	int r = incoming_begin(&in, k, relay->from, &from.source);

	if (r == 0 && !access_may_pass(relay->from, NULL, &in.m))
		r = -EPERM;
	if (r == 0)
		r = incoming_body(&in, &from.source);
	incoming_end(&in);
	return r;
}

/* ---- for all ---- */

void bridge_native_broadcast(struct relay *relay)
{
	struct bus *bus = container_of(relay->from->conn.bus, struct bus, core);
	const struct relayed from = source_of(relay);
	struct incoming in;
	int r;

	if (!bus->classic || relay->from->kind != PEER_NATIVE)
		return;
	r = incoming_begin(&in, bus->classic, relay->from, &from.source);
	if (r == 0)
		r = incoming_body(&in, &from.source);
	if (r == 0)
		r = copy_fds(&in, relay);
	if (r == 0)
		route_to_matches(bus->classic, &in.m);
	else
		log_client(native_peer(relay->from),
			   "a broadcast is not delivered to classic peers: %s", strerror(-r));
	incoming_end(&in);
}
