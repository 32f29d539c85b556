// SPDX-License-Identifier: LGPL-2.1-or-later
/* Publishing for clients: into their lanes, or the overflow in front of them (client.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "classic/bridge.h"
#include "lane/bulk.h"
#include "client.h"
#include "deliver.h"

/*
 * Small records that wait at a client which does not read: more is no honest client's. What others
 * can have sent to it at will stops at half of that.
 */
#define CONTROL_WAITING_MAX 4096
#define SOFT_WAITING_MAX    2048

/* A record to be published: where its bytes come from */
struct record {
	struct lane_put put;
	const void *meta;
	size_t meta_size;
	const struct relay *relay; /* message in record form */
	const struct core_parcel *notice; /* or a notification */
	const void *plain; /* or bytes as they are */
	size_t image; /* bytes of the message without payload */
	const void *payload;
	size_t payload_size;
	struct ctl_deliver tail;
	bool has_tail;
	const int *files;
	unsigned int n_files;
	enum rank rank;
};

static void mark_dirty(struct client *c)
{
	if (list_empty(&c->dirty_entry))
		list_add_tail(&c->dirty_entry, &c->daemon->dirty);
}

/* Nobody sends past what waits (lane/page.h): said before the sender's record is consumed. */
static void wait_in_front(struct client *c)
{
	list_del_init(&c->settled_entry);
	if (c->waits)
		return;
	lane_page_set_waiting(&c->daemon->page, c->conn.id, true);
	c->waits = true;
}

/* After the commit: nothing waits in front of its lane any more. */
void client_settle(struct client *c)
{
	list_del_init(&c->settled_entry);
	if (!c->waits || !list_empty(&c->overflow))
		return;
	c->waits = false;
	lane_page_set_waiting(&c->daemon->page, c->conn.id, false);
}

static void block(struct client *c)
{
	if (list_empty(&c->blocked_entry))
		list_add_tail(&c->blocked_entry, &c->daemon->blocked);
}

/* What it needed to wait in the overflow. */
static void free_body(struct client *c, struct flight *f)
{
	account_drop(c->account, f->held);
	f->held = 0;
	free(f->body);
	free(f->bulk);
	f->body = NULL;
	f->bulk = NULL;
}

static void free_flight(struct client *c, struct flight *f)
{
	unsigned int i;

	list_del(&f->entry);
	if (f->charged) {
		core_quota_uncharge(&c->quota, f->user, f->memory, f->fds);
		c->accounted -= f->memory;
	}
	for (i = 0; i < f->n_files; i++)
		reaper_close(c->daemon->reaper, f->files[i]);
	free(f->files);
	free_body(c, f);
	free(f);
}

void client_drop_flights(struct client *c)
{
	struct flight *f, *next;

	list_for_each_entry_safe(f, next, &c->flights, entry)
		free_flight(c, f);
	list_for_each_entry_safe(f, next, &c->overflow, entry)
		free_flight(c, f);
	core_quota_deinit(&c->quota);
	c->n_control = 0;
	list_del_init(&c->blocked_entry);
	client_settle(c);
}

/* What the client has consumed is over: give its charges back. */
void client_reap(struct client *c)
{
	struct flight *f, *next;
	u64 oldest;

	if (!c->channel.own || lane_reap(&c->channel) < 0)
		return;
	oldest = lane_oldest_tag(&c->channel);
	list_for_each_entry_safe(f, next, &c->flights, entry) {
		if (f->seq >= oldest)
			break;
		free_flight(c, f);
	}
}

static void write_body(const struct record *r, unsigned char *to, bool inline_payload)
{
	if (r->plain) {
		memcpy(to, r->plain, r->image);
		to += r->image;
	} else {
		if (r->meta_size)
			memcpy(to, r->meta, r->meta_size);
		to += r->meta_size;
		if (r->relay)
			wire_image(&r->relay->wire, to);
		else if (r->notice)
			core_notice_write(r->notice->notice, r->meta, to, r->image);
		to += r->image;
	}
	if (inline_payload && r->payload_size) {
		memcpy(to, r->payload, r->payload_size);
		to += r->payload_size;
	}
	if (r->has_tail)
		memcpy(to, &r->tail, sizeof(r->tail));
}

static size_t body_size(const struct record *r, bool inline_payload)
{
	return (r->plain ? 0 : r->meta_size) + r->image + (inline_payload ? r->payload_size : 0) +
	       (r->has_tail ? sizeof(r->tail) : 0);
}

static bool wants_bulk(const struct client *c, const struct record *r)
{
	return r->payload_size > lane_share(c->channel.ring) - LANE_ALIGN;
}

static void publish(struct client *c)
{
	struct daemon *d = c->daemon;

	lane_publish(&c->channel, lane_clock_stamp(&d->clock, &d->lane_ops), d->round + 1);
	mark_dirty(c);
}

/* -EAGAIN: no room now. */
static int put_now(struct client *c, struct record *r)
{
	struct lane_channel *ch = &c->channel;
	void *body, *bulk = NULL;
	int e;

	if (wants_bulk(c, r)) {
		e = lane_bulk_get(ch, r->payload_size, &r->put, &bulk);
		if (e < 0)
			return e;
	}
	r->put.length = (u32)body_size(r, !bulk);
	e = lane_put(ch, &r->put, &body);
	if (e == 0 && r->n_files) {
		e = lane_put_fds(ch, r->files, r->n_files);
		if (e < 0)
			lane_cancel(ch);
	}
	if (e < 0) {
		if (bulk)
			lane_bulk_drop(ch, &r->put);
		return e;
	}
	write_body(r, body, !bulk);
	if (bulk)
		memcpy(bulk, r->payload, r->payload_size);
	publish(c);
	return 0;
}

static int copy_files(struct client *c, struct flight *f, const int *files, unsigned int n)
{
	int fd;

	if (f->files)
		return 0;
	f->files = calloc(n ? n : 1, sizeof(*f->files));
	if (!f->files)
		return -ENOMEM;
	for (; f->n_files < n; f->n_files++) {
		fd = reaper_dup(c->daemon->reaper, files[f->n_files]);
		if (fd < 0)
			return fd;
		f->files[f->n_files] = fd;
	}
	return 0;
}

/* Where in the overflow something of that rank goes: in front of what follows it */
static struct list_head *place_in_overflow(struct client *c, enum rank rank)
{
	struct flight *f;

	list_for_each_entry(f, &c->overflow, entry)
		if (f->rank > rank)
			return &f->entry;
	return &c->overflow;
}

/* May it be published now, if there is room? */
static bool is_next(struct client *c, enum rank rank)
{
	const struct flight *f = list_first_entry_or_null(&c->overflow, struct flight, entry);

	return !f || f->rank > rank;
}

static int defer(struct client *c, struct record *r, struct flight *f)
{
	size_t size = body_size(r, false);
	int e;

	/* Control records are bounded by their number. */
	if (f->charged) {
		e = account_hold(c->account, size + r->payload_size);
		if (e < 0)
			return e;
		f->held = size + r->payload_size;
	}
	f->body = malloc(size + 8);
	f->bulk = r->payload_size ? malloc(r->payload_size) : NULL;
	if (!f->body || (r->payload_size && !f->bulk) || copy_files(c, f, r->files, r->n_files) < 0)
		return -ENOMEM;
	write_body(r, f->body, false);
	if (f->bulk)
		memcpy(f->bulk, r->payload, r->payload_size);
	f->put = r->put;
	f->put.length = (u32)size;
	f->bulk_size = r->payload_size;
	f->tail_size = r->has_tail ? sizeof(r->tail) : 0;
	f->rank = r->rank;
	list_move_tail(&f->entry, place_in_overflow(c, r->rank));
	c->n_control += !f->charged;
	wait_in_front(c);
	block(c);
	return 0;
}

/* @f is in the flights already and goes with the record. */
static int put_record(struct client *c, struct record *r, struct flight *f)
{
	int e = -EAGAIN;

	r->put.tag = ++c->seq;
	f->seq = c->seq;
	if (is_next(c, r->rank))
		e = put_now(c, r);
	if (e == -EAGAIN)
		e = defer(c, r, f);
	if (e == 0 && f->body && r->rank == RANK_REPLY)
		client_put_ahead(c, &(struct ctl_ahead){ .from = f->sender,
							 .cookie = r->put.subject });
	if (e == -EPROTO || e == -ECONNRESET)
		client_heat(c); /* it goes, and others need not wait for it to say something */
	return e == -EINPROGRESS || e == -ESHUTDOWN || e == -EPROTO ? -ECONNRESET : e;
}

static struct flight *new_flight(struct client *c)
{
	struct flight *f = calloc(1, sizeof(*f));

	if (f)
		list_add_tail(&f->entry, &c->flights);
	return f;
}

/* A small record of the daemon's own; it is never lost, so its number is bounded. */
int client_put_fds(struct client *c, const struct lane_put *put, const void *body, const int *files,
		   unsigned int n_files)
{
	struct record r = {
		.put = *put,
		.plain = body,
		.image = put->length,
		.files = files,
		.n_files = n_files,
		/* Descriptors may have to wait for room in the socket: nothing waits for these. */
		.rank = put->flags & LANE_F_REPLY && !n_files ? RANK_NOTICE : RANK_REST,
	};
	struct flight *f;
	int e;

	if (!c->connected || c->doomed)
		return -ECONNRESET;
	r.put.tag = ++c->seq;
	if (is_next(c, r.rank)) {
		e = put_now(c, &r);
		if (e != -EAGAIN)
			return e;
	}
	if (c->n_control > CONTROL_WAITING_MAX) {
		client_expel(c, "it reads nothing: %u records wait for it", c->n_control);
		return -ECONNRESET;
	}
	f = new_flight(c);
	e = f ? defer(c, &r, f) : -ENOMEM;
	if (e < 0 && f)
		free_flight(c, f);
	return e;
}

int client_put(struct client *c, const struct lane_put *put, const void *body)
{
	return client_put_fds(c, put, body, NULL, 0);
}

/*
 * Something that ends a call has to wait for room: who waits in a synchronous call, without room in
 * the pool for what stands in front of it, is told at once.
 */
void client_put_ahead(struct client *c, const struct ctl_ahead *body)
{
	const struct lane_put put = { .type = CTL_REC_AHEAD,
				      .flags = LANE_F_REPLY,
				      .length = sizeof(*body) };

	if (!client_keeps_up(c))
		client_put_soft(c, &put, body);
}

/* One that another client can cause as often as it likes: rather none than too many. */
int client_put_soft(struct client *c, const struct lane_put *put, const void *body)
{
	return c->n_control > SOFT_WAITING_MAX ? -ENOBUFS : client_put(c, put, body);
}

/* Nothing waits for room in its lane. */
bool client_keeps_up(const struct client *c)
{
	return list_empty(&c->overflow);
}

/*
 * One that waited: its payload goes where there is room now. @ret_put is what there was no room
 * for.
 */
static int put_deferred(struct client *c, struct flight *f, struct lane_put *ret_put)
{
	size_t image = f->put.length - f->tail_size;
	struct record r = { .put = f->put,
			    .plain = f->body,
			    .image = image,
			    .payload = f->bulk,
			    .payload_size = f->bulk_size,
			    .files = f->files,
			    .n_files = f->n_files };
	int e;

	if (f->tail_size) {
		memcpy(&r.tail, f->body + image, sizeof(r.tail));
		r.has_tail = true;
	}
	/* Numbers are given in the order of the lane: see client_reap(). */
	f->seq = ++c->seq;
	r.put.tag = f->seq;
	e = put_now(c, &r);
	*ret_put = r.put;
	return e;
}

static void tell_lost(struct client *c)
{
	const struct ctl_lost body = { .count = c->lost };
	const struct lane_put put = { .type = CTL_REC_LOST, .length = sizeof(body) };

	if (c->lost && client_put(c, &put, &body) == 0)
		c->lost = 0;
}

static void drop_files(struct client *c, struct flight *f)
{
	unsigned int i;

	for (i = 0; i < f->n_files; i++)
		reaper_close(c->daemon->reaper, f->files[i]);
	f->n_files = 0;
}

/* It is on its way: only what a death could leave to be sent on keeps its descriptors. */
static void launched(struct client *c, struct flight *f)
{
	c->n_control -= !f->charged;
	list_move_tail(&f->entry, &c->flights);
	free_body(c, f);
	if (!f->by_name)
		drop_files(c, f);
	if (!f->charged)
		free_flight(c, f);
}

/* Publish what waits. 0: all of it; -EAGAIN: no room for @ret_put; else nothing can be. */
/* A call that will not arrive after all. Native callers have a deadline of their own. */
static void tell_sender(struct client *c, const struct flight *f)
{
	struct ctl_deliver tail;
	struct kdbus_msg msg;

	if (!f->tail_size)
		return;
	memcpy(&tail, f->body + f->put.length - sizeof(tail), sizeof(tail));
	memcpy(&msg, f->body + tail.meta_size, sizeof(msg));
	if (msg.flags & KDBUS_MSG_EXPECT_REPLY)
		bridge_call_lost(&c->peer, tail.src_id, (u32)msg.cookie);
}

static int publish_waiting(struct client *c, struct lane_put *ret_put)
{
	struct flight *f;
	int r;

	while ((f = list_first_entry_or_null(&c->overflow, struct flight, entry))) {
		r = put_deferred(c, f, ret_put);
		if (r == 0) {
			launched(c, f);
		} else if (r == -EAGAIN || r == -EINPROGRESS || r == -ESHUTDOWN || r == -EPROTO ||
			   r == -ECONNRESET) {
			return r;
		} else {
			c->lost += f->charged;
			c->n_control -= !f->charged;
			if (f->body && f->put.type == LANE_REC_MSG)
				tell_sender(c, f);
			free_flight(c, f);
		}
	}
	return 0;
}

static bool holds_files(const struct client *c)
{
	struct flight *f;

	list_for_each_entry(f, &c->flights, entry)
		if (f->n_files)
			return true;
	return false;
}

/* Woken by the client, or by something new: look after what waits for it again. */
void client_retry(struct client *c)
{
	if (!list_empty(&c->overflow) || c->lost || c->watched)
		block(c);
}

/*
 * Room may have come: publish what waits; else have the client ring when it has made some. What
 * there is room for and yet finds none does so because the client leaves its socket full.
 */
void client_flush(struct client *c)
{
	struct lane_put put;
	int tries = 0;

	list_del_init(&c->blocked_entry);
	client_reap(c);
	if (c->doomed)
		return;
	while (publish_waiting(c, &put) == -EAGAIN && lane_space_arm(&c->channel, &put) == 0)
		if (++tries == 2)
			break;
	if (tries == 2)
		client_expel(c, "it does not read its socket");
	else if (c->channel.broken || c->channel.hungup)
		client_heat(c);
	if (!list_empty(&c->overflow))
		return;
	if (c->waits)
		list_move_tail(&c->settled_entry, &c->daemon->settled);
	tell_lost(c);
	c->watched = holds_files(c) && lane_passed_arm(&c->channel) == -EAGAIN;
	if (!c->watched)
		client_reap(c);
}

/* ---- messages ---- */

static int charge(struct client *c, struct flight *f, const struct core_parcel *parcel, size_t size)
{
	struct core_user *user = parcel->from ? parcel->from->user : NULL;
	int r;

	f->user = core_user_number(user);
	f->memory = (u32)ALIGN(size, (size_t)8);
	f->fds = parcel->n_fds;
	r = core_quota_charge(&c->quota, f->user, c->pool_size, c->accounted, f->memory, f->fds);
	if (r < 0)
		return r;
	f->charged = true;
	c->accounted += f->memory;
	return 0;
}

static void describe_relay(struct record *r, const struct relay *relay)
{
	const struct kdbus_msg *msg = relay->wire.m.msg;

	r->relay = relay;
	r->image = relay->wire.layout.payload_offset;
	r->payload = relay->payload;
	r->payload_size = relay->wire.layout.payload_size;
	r->put.fds = (u16)relay->wire.m.n_fds;
	r->put.memfds = (u16)relay->wire.m.n_memfds;
	r->files = relay->fds;
	r->n_files = relay->n_fds;
	if (relay->wire.m.route == CORE_ROUTE_REPLY) {
		r->put.flags = LANE_F_REPLY;
		r->put.subject = msg->cookie_reply;
		r->rank = relay->sync ? RANK_REPLY : RANK_REST;
	} else if (relay->sync) {
		r->put.subject = CTL_SUBJECT_SYNC;
	}
}

static int deliver_record(struct client *c, struct record *r, const struct core_parcel *parcel)
{
	const struct relay *relay = parcel->host;
	struct flight *f;
	int e;

	client_reap(c);
	f = new_flight(c);
	if (!f)
		return -ENOMEM;
	e = charge(c, f, parcel, body_size(r, true) - (r->has_tail ? sizeof(r->tail) : 0));
	if (e == 0 && relay) {
		f->sender = relay->from->conn.id;
		f->stamp = relay->stamp;
		/* What a monitor has not seen was not lost. */
		f->by_name = r->tail.name_id && c->conn.kind != CORE_KIND_MONITOR &&
			     !(relay->wire.m.msg->flags & KDBUS_MSG_SIGNAL);
		if (f->by_name && r->n_files)
			e = copy_files(c, f, r->files, r->n_files);
	}
	if (e == 0)
		e = put_record(c, r, f);
	if (e < 0)
		free_flight(c, f);
	else if (f->n_files)
		block(c);
	return e;
}

static int deliver_notice(struct client *c, const struct core_parcel *parcel)
{
	struct kdbus_timestamp stamp = { .seqnum = parcel->seq,
					 .monotonic_ns = daemon_now(c->daemon) };
	struct record r = { .put = { .type = LANE_REC_MSG },
			    .rank = RANK_REST,
			    .notice = parcel,
			    .has_tail = true,
			    .image = core_notice_size(parcel->notice) };
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	stamp.realtime_ns = (u64)ts.tv_sec * 1000000000ULL + (u64)ts.tv_nsec;
	r.meta = &stamp;
	return deliver_record(c, &r, parcel);
}

static int deliver(struct core_conn *to, const struct core_parcel *parcel, struct core_reply *slot)
{
	struct client *c = client_of(to);
	struct relay *relay = parcel->host;
	struct record r = { .put = { .type = LANE_REC_MSG }, .rank = RANK_REST, .has_tail = true };
	struct meta_image meta;
	int e;

	if (c->doomed)
		return -ECONNRESET;
	if (parcel->notice)
		return deliver_notice(c, parcel);
	e = meta_for_message(relay->from, c, parcel->seq, &meta);
	if (e < 0)
		return e;
	describe_relay(&r, relay);
	r.meta = meta.data;
	r.meta_size = meta.size;
	r.tail = (struct ctl_deliver){ .src_id = relay->from->conn.id,
				       .name_id = relay->name_id,
				       .meta_size = (u32)meta.size };
	e = deliver_record(c, &r, parcel);
	free(meta.data);
	return e;
}

/* A message that waited at an activator: its record lies in the activator's pool, ready. */
static int adopt(struct core_conn *to, struct core_conn *from, struct core_entry *entry)
{
	struct client *c = client_of(to), *old = client_of(from);
	const unsigned char *at = old->pool + entry->slice->offset;
	struct stored *stored = stored_of(entry);
	struct record r = { .put = { .type = LANE_REC_MSG,
				     .subject = stored->sync ? CTL_SUBJECT_SYNC : 0,
				     .fds = (u16)entry->fds,
				     .memfds = (u16)(stored->n_fds - entry->fds) },
			    .rank = RANK_REST,
			    .plain = at,
			    .image = stored->image,
			    .payload = at + stored->image,
			    .payload_size = stored->payload,
			    .tail = stored->tail,
			    .has_tail = true,
			    .files = stored->fds,
			    .n_files = stored->n_fds };
	struct flight *f = new_flight(c);
	int e;

	if (!f)
		return -ENOMEM;
	f->user = entry->user;
	f->memory = (u32)entry->slice->size;
	f->fds = entry->fds;
	e = core_quota_charge(&c->quota, f->user, c->pool_size, c->accounted, f->memory, f->fds);
	f->charged = e == 0;
	if (e == 0) {
		c->accounted += f->memory;
		f->sender = stored->tail.src_id;
		f->by_name = true;
		e = copy_files(c, f, r.files, r.n_files);
	}
	if (e == 0)
		e = put_record(c, &r, f);
	if (e < 0)
		free_flight(c, f);
	else if (f->n_files)
		block(c);
	return e;
}

static void lose(struct core_conn *to)
{
	struct client *c = client_of(to);

	c->lost++;
	block(c);
}

static bool busy(const struct core_conn *conn)
{
	struct client *c = client_of(conn);

	client_reap(c);
	return !list_empty(&c->flights) || !list_empty(&c->overflow) || c->lost;
}

const struct core_sink client_sink = {
	.deliver = deliver,
	.adopt = adopt,
	.lose = lose,
	.busy = busy,
};
