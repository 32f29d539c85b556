// SPDX-License-Identifier: LGPL-2.1-or-later
/* From native peers to classic ones. Rules: bridge.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "access.h"
#include "bridge.h"
#include "classic.h"
#include "dbus/body.h"
#include "driver.h"
#include "roster.h"

#define SMALL 2048 /* messages up to this need no memory of their own */

/* A native message while it is made classic */
struct incoming {
	struct classic *classic;
	const struct relay *relay;
	struct cmsg m;
	unsigned char small[SMALL];
	char sender[CLASSIC_UNIQUE_MAX];
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

static int read_memfd(int fd, const struct kdbus_memfd *memfd, unsigned char *to)
{
	size_t have = 0;
	ssize_t n;

	while (have < memfd->size) {
		n = pread(fd, to + have, memfd->size - have, (off_t)(memfd->start + have));
		if (n <= 0)
			return -EBADMSG;
		have += (size_t)n;
	}
	return 0;
}

/*
 * The parts in the order in which they make up the message. Where a part is not stored in the area
 * of vectors, some bytes are there to keep what follows aligned (core/layout.h).
 */
static int copy_payload(const struct relay *relay, unsigned char *to)
{
	const struct core_msg *m = &relay->wire.m;
	const unsigned char *area = relay->payload;
	const struct kdbus_item *item;
	unsigned int memfd = m->n_fds;
	int r;

	core_item_for_each(item, m->list.items, m->list.size) {
		if (item->type == KDBUS_ITEM_PAYLOAD_VEC && item->vec.address) {
			memcpy(to, area, item->vec.size);
			area += item->vec.size;
			to += item->vec.size;
		} else if (item->type == KDBUS_ITEM_PAYLOAD_VEC) {
			memset(to, 0, item->vec.size);
			area += item->vec.size % 8;
			to += item->vec.size;
		} else if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD) {
			r = read_memfd(relay->fds[memfd++], &item->memfd, to);
			if (r < 0)
				return r;
			area += item->memfd.size % 8;
			to += item->memfd.size;
		}
	}
	return 0;
}

/* ---- the message ---- */

static int copy_fds(struct incoming *in)
{
	const struct relay *relay = in->relay;
	unsigned int n = relay->wire.m.n_fds, i;
	int fds[LANE_SOCK_FDS_MAX];

	if (!n)
		return 0;
	for (i = 0; i < n; i++) {
		fds[i] = fcntl(relay->fds[i], F_DUPFD_CLOEXEC, 0);
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

/* What the daemon's own half says and what the message says must be the same. */
static int check(const struct incoming *in, size_t size)
{
	const struct kdbus_msg *msg = in->relay->wire.m.msg;
	const struct dbusp_header *h = &in->m.header;
	bool call = h->frame.type == DBUSP_METHOD_CALL;

	if (h->frame.total_len != size || h->frame.serial != msg->cookie ||
	    h->n_fds != in->relay->wire.m.n_fds)
		return -EBADMSG;
	if (cmsg_wants_reply(&in->m) != !!(msg->flags & KDBUS_MSG_EXPECT_REPLY))
		return -EBADMSG;
	if (!call && h->reply_serial != msg->cookie_reply)
		return -EBADMSG;
	return dbusp_body_check(h, in->m.body, NULL) < 0 ? -EBADMSG : 0;
}

static int parse(struct incoming *in, const unsigned char *data, size_t size)
{
	if (dbusp_header_parse(&in->m.header, data, size, DBUSP_MESSAGE_MAX, NULL) < 0)
		return -EBADMSG;
	in->m.raw = data;
	in->m.body = data + in->m.header.frame.header_len;
	return check(in, size);
}

/* The sender may still write to its memory: what is checked is a copy. */
static int convert(struct classic *k, const struct relay *relay, struct incoming *in)
{
	u64 size = payload_size(&relay->wire.m);
	/* cppcheck-suppress ctuuninitvar ; only its address is taken here */
	unsigned char *data = in->small;
	int r;

	in->classic = k;
	in->relay = relay;
	in->m.from = relay->from;
	in->m.buf = NULL;
	in->m.fds = NULL;
	in->m.head = NULL;
	in->m.joined = false;
	in->m.args_ready = false;
	in->m.policy_ready = false;
	in->m.sender = unique_name(relay->from, in->sender);
	if (relay->wire.m.msg->payload_type != KDBUS_PAYLOAD_DBUS || size > DBUSP_MESSAGE_MAX)
		return -EBADMSG;
	if (size > SMALL) {
		in->m.buf = cbuf_new(size);
		if (!in->m.buf)
			return -ENOMEM;
		data = in->m.buf->data;
	}
	r = copy_payload(relay, data);
	if (r == 0)
		r = parse(in, data, size);
	if (r == 0)
		r = copy_fds(in);
	return r == 0 ? cmsg_head(k, &in->m) : r;
}

static void release(struct incoming *in)
{
	cfds_unref(in->m.fds);
	cbuf_unref(in->m.buf);
}

/* ---- for one ---- */

static bool is_reply(const struct incoming *in)
{
	return in->m.header.frame.type == DBUSP_METHOD_RETURN ||
	       in->m.header.frame.type == DBUSP_ERROR;
}

static int admit(struct cpeer *to, struct incoming *in)
{
	if (!access_may_pass((struct peer *)in->relay->from, &to->peer, &in->m))
		return -EPERM;
	if (in->m.fds && !to->fds_ok)
		return -ECOMM;
	if (is_reply(in) && !reply_take(to, in->relay->from, in->m.header.reply_serial))
		return -EBADSLT;
	return output_full(to) ? -ENOBUFS : 0;
}

static int deliver(struct core_conn *conn, const struct core_parcel *parcel,
		   struct core_reply *slot)
{
	struct cpeer *to = cpeer_of(conn);
	struct incoming in;
	int r;

	/* Classic peers hear of the bus's own events from the driver. */
	if (parcel->notice)
		return 0;
	if (!cpeer_alive(to))
		return -ECONNRESET;
	r = convert(to->classic, parcel->host, &in);
	if (r == 0)
		r = admit(to, &in);
	if (r == 0)
		r = output_add(to, &in.m);
	release(&in);
	return r;
}

/* A message that waited at an activator: its record lies in the activator's pool. */
static int adopt(struct core_conn *to, struct core_conn *from, struct core_entry *entry)
{
	const struct stored *stored = stored_of(entry);
	unsigned char *at = client_of(from)->pool + entry->slice->offset + stored->tail.meta_size;
	size_t size = stored->image - stored->tail.meta_size + stored->payload;
	struct core_conn *sender = core_bus_find_conn(to->bus, stored->tail.src_id);
	struct relay relay = { .n_fds = stored->n_fds };
	struct incoming in;
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
	r = convert(cpeer_of(to)->classic, &relay, &in);
	if (r == 0)
		r = admit(cpeer_of(to), &in);
	if (r == 0)
		r = output_add(cpeer_of(to), &in.m);
	release(&in);
	return r;
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
	struct incoming in;

	if (!cpeer_alive(from))
		return;
	if (convert(from->classic, relay, &in) == 0)
		hand_on(from, dead, &in.m);
	release(&in);
}

/* ---- for one that is still to be started ---- */

int bridge_may_start(struct classic *k, const struct relay *relay)
{
	struct incoming in;
	int r = convert(k, relay, &in);

	if (r == 0 && !access_may_pass(relay->from, NULL, &in.m))
		r = -EPERM;
	release(&in);
	return r;
}

/* ---- for all ---- */

void bridge_native_broadcast(struct relay *relay)
{
	struct bus *bus = container_of(relay->from->conn.bus, struct bus, core);
	struct incoming in;
	int r;

	if (!bus->classic || relay->from->kind != PEER_NATIVE)
		return;
	r = convert(bus->classic, relay, &in);
	if (r == 0)
		route_to_matches(bus->classic, &in.m);
	else
		log_client(native_peer(relay->from),
			   "a broadcast is not delivered to classic peers: %s", strerror(-r));
	release(&in);
}
