// SPDX-License-Identifier: LGPL-2.1-or-later
/* The way of a message from its record into the pool, the queue or a reply slot. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "user.h"

typedef int (*take_fn)(struct user *u, struct peer *p, void *body, void *arg);

/* A record on its way into the pool */
struct arrival {
	struct peer *from;
	const struct lane_env *env;
	u64 stamp;
	struct message *m;
	unsigned char *start; /* of the slice */
	unsigned char *body; /* of the record in it */
	size_t length; /* of the body, without what the daemon put behind it */
	bool copy; /* the payload out of its bulk buffer */
	const void *bulk;
};

static size_t timestamp_size(const struct user *u)
{
	return u->attach_recv & KDBUS_ATTACH_TIMESTAMP ?
		       CORE_ITEM_SPACE(sizeof(struct kdbus_timestamp)) :
		       0;
}

/* Bytes of metadata that the library itself puts into a message of @p. */
static size_t meta_room(const struct user *u, const struct peer *p)
{
	return peer_is_daemon(u, p) ? 0 : p->meta_size + timestamp_size(u);
}

/*
 * Payload in a bulk buffer stays there if its writer could not gain by changing it, and as long as
 * enough of them are left to go on with while the application keeps some.
 */
static bool in_place(const struct user *u, const struct peer *p)
{
	return (peer_is_daemon(u, p) || (p->intro & CTL_INTRO_EQUAL)) &&
	       lane_bulk_held(&p->channel) < LANE_BULK_MAX / 2;
}

/* Looking for what belongs to a record drains doorbells. */
static void touch(struct user *u, struct peer *p)
{
	if (p->looked)
		lane_look_touch(&u->look, &p->source);
}

static int take_fds(struct user *u, struct arrival *a)
{
	u32 n = (u32)a->env->fds + a->env->memfds;
	int r;

	if (!n)
		return 0;
	a->m->fds = malloc(n * sizeof(int));
	if (!a->m->fds) {
		lane_drop_fds(&a->from->channel, a->env);
		return -ENOMEM;
	}
	memset(a->m->fds, 0xff, n * sizeof(int));
	r = lane_take_fds(&a->from->channel, a->env, a->m->fds);
	touch(u, a->from);
	if (r < 0)
		return r;
	a->m->n_fds = a->env->fds;
	a->m->n_memfds = a->env->memfds;
	return 0;
}

/* Where it would be without a bulk buffer; what the daemon put behind the message moves on. */
static void copy_bulk(struct user *u, struct arrival *a)
{
	unsigned char *to = a->body + a->env->length;
	struct ctl_deliver tail;

	if (peer_is_daemon(u, a->from) && a->env->length >= sizeof(tail)) {
		to -= sizeof(tail);
		memcpy(&tail, to, sizeof(tail));
		memcpy(to + a->env->bulk_size, &tail, sizeof(tail));
	}
	memcpy(to, a->bulk, a->env->bulk_size);
}

static int take_bulk(struct user *u, struct arrival *a)
{
	int r;

	if (!a->env->bulk)
		return 0;
	r = lane_bulk_data(&a->from->channel, a->env, &a->bulk);
	touch(u, a->from);
	if (r < 0)
		return r;
	if (!a->copy) {
		a->m->peer = a->from;
		a->m->bulk = a->env->bulk;
		a->m->bulk_use = a->env->bulk_use;
		a->from->held++;
		return 0;
	}
	copy_bulk(u, a);
	lane_bulk_return(&a->from->channel, a->env->bulk, a->env->bulk_use);
	a->bulk = NULL;
	return 0;
}

/* The peer's metadata with a TIMESTAMP of this message, in the upper half of the scratch memory. */
static size_t peer_meta(struct user *u, const struct arrival *a, unsigned char *to)
{
	struct kdbus_timestamp stamp = { .monotonic_ns = a->stamp };
	struct core_writer w;
	struct timespec ts;
	size_t size;

	if (a->from->meta_size)
		memcpy(to, a->from->meta, a->from->meta_size);
	if (!timestamp_size(u))
		return a->from->meta_size;
	clock_gettime(CLOCK_REALTIME, &ts);
	stamp.realtime_ns = (u64)ts.tv_sec * 1000000000ULL + (u64)ts.tv_nsec;
	w = CORE_WRITER(to + a->from->meta_size, timestamp_size(u));
	core_put(&w, KDBUS_ITEM_TIMESTAMP, &stamp, sizeof(stamp));
	core_writer_end(&w, &size);
	return a->from->meta_size + timestamp_size(u);
}

/* What the bus itself says: finished, if it is a message at all. */
static int finish_notice(struct arrival *a)
{
	struct kdbus_msg *msg = (struct kdbus_msg *)a->start;

	if (a->length < sizeof(*msg) || msg->size < sizeof(*msg) || msg->size > a->length)
		return -EPROTO;
	if (core_items_check(msg->items, msg->size - sizeof(*msg)) < 0)
		return -EPROTO;
	a->m->size = ALIGN((size_t)msg->size, (size_t)8);
	return 0;
}

/* The image is parsed in a copy: it is rewritten to where the record lies now. */
static int finish_message(struct user *u, struct arrival *a, u64 src_id, size_t meta_size)
{
	unsigned char *image = (unsigned char *)u->scratch, *meta = image + CORE_CMD_MAX_SIZE;
	const unsigned char *record = a->body + (peer_is_daemon(u, a->from) ? meta_size : 0);
	size_t size = a->length - (size_t)(record - a->body);
	const struct kdbus_msg *msg = (const struct kdbus_msg *)record;
	bool elsewhere = a->env->bulk;
	struct core_layout layout;
	struct wire w;
	int r;

	if (size < sizeof(*msg) || msg->size > CORE_CMD_MAX_SIZE || msg->size > size)
		return -EPROTO;
	memcpy(image, record, min(ALIGN((size_t)msg->size, (size_t)8), size));
	if (peer_is_daemon(u, a->from))
		memcpy(meta, a->body, meta_size);
	else
		meta_size = peer_meta(u, a, meta);
	r = wire_parse(image, size, elsewhere ? (ssize_t)a->env->bulk_size : -1,
		       u->identity.bloom.size, a->env->fds, a->env->memfds, &w);
	if (r == 0 && a->m->fds && !peer_is_daemon(u, a->from))
		r = wire_check_fds(&w, a->m->fds);
	if (r < 0)
		return -EPROTO;
	layout = w.layout;
	core_layout_add_meta(&layout, meta_size);
	a->m->size = a->bulk ? ALIGN(layout.payload_offset, (size_t)8) : layout.slice_size;
	if (a->m->size > a->m->slice->size)
		return -EPROTO;
	wire_deliver(&w, src_id, meta, meta_size, a->start,
		     (const char *)u->memory_ro + a->m->slice->offset, a->bulk);
	return 0;
}

static int finish(struct user *u, struct arrival *a, struct ctl_deliver *ret_head)
{
	struct ctl_deliver head = { .src_id = a->from->id };
	const unsigned char *tail;

	a->length = a->env->length;
	if (peer_is_daemon(u, a->from)) {
		if (a->length < sizeof(head))
			return -EPROTO;
		a->length -= sizeof(head);
		tail = a->body + a->length + (a->copy ? a->env->bulk_size : 0);
		memcpy(&head, tail, sizeof(head));
		if (head.meta_size > a->length || head.meta_size > CORE_CMD_MAX_SIZE ||
		    head.meta_size % 8)
			return -EPROTO;
	}
	*ret_head = head;
	return head.src_id ? finish_message(u, a, head.src_id, head.meta_size) : finish_notice(a);
}

/* How many of them are memfds the message itself tells. */
static int answer_fds(struct arrival *a, struct lane_env *env, struct answer *answer)
{
	const struct ctl_deliver *head;
	const struct kdbus_msg *msg;
	const struct kdbus_item *item = NULL;
	u32 memfds = 0;

	if (answer->extra_size < sizeof(*head) + sizeof(*msg))
		return -EPROTO;
	head = (const void *)((const char *)answer->extra + answer->extra_size - sizeof(*head));
	if (head->meta_size > answer->extra_size - sizeof(*head) - sizeof(*msg))
		return -EPROTO;
	msg = (const void *)((const char *)answer->extra + head->meta_size);
	if (msg->size > answer->extra_size - sizeof(*head) - head->meta_size)
		return -EPROTO;
	while ((item = libkdbus_item_next(msg, sizeof(*msg), item)))
		memfds += item->type == KDBUS_ITEM_PAYLOAD_MEMFD;
	if (memfds > answer->n_fds)
		return -EPROTO;
	a->m->fds = kmemdup(answer->fds, sizeof(answer->fds), GFP_KERNEL);
	if (!a->m->fds)
		return -ENOMEM;
	a->m->n_memfds = memfds;
	a->m->n_fds = answer->n_fds - memfds;
	env->fds = (u16)a->m->n_fds;
	env->memfds = (u16)memfds;
	answer->n_fds = 0;
	return 0;
}

/*
 * The message that an activator was given in an answer: as a record of the daemon, already copied.
 */
int user_take_answer(struct user *u, struct answer *answer, struct kdbus_msg_info *ret)
{
	struct lane_env env = { .type = LANE_REC_MSG, .length = (u32)answer->extra_size };
	struct arrival a = { .from = &u->daemon, .env = &env };
	struct ctl_deliver head;
	int r;

	a.m = message_new(u, ALIGN(answer->extra_size, (size_t)8) + 8, &r);
	if (!a.m)
		return r;
	a.start = a.body = u->memory + a.m->slice->offset;
	memcpy(a.body, answer->extra, answer->extra_size);
	r = answer_fds(&a, &env, answer);
	if (r == 0)
		r = finish(u, &a, &head);
	if (r < 0) {
		message_discard(u, a.m);
		return r;
	}
	*ret = (struct kdbus_msg_info){ .offset = a.m->slice->offset, .msg_size = a.m->size };
	ret->return_flags = message_install_fds(u, a.m, u->conn_flags & KDBUS_HELLO_ACCEPT_FD);
	message_publish(u, a.m);
	return 0;
}

static int arrive(struct user *u, struct arrival *a, take_fn take, void *arg)
{
	size_t room = meta_room(u, a->from);
	size_t bulk;
	int r;

	a->copy = a->env->bulk && !in_place(u, a->from);
	bulk = a->copy ? a->env->bulk_size : 0;
	a->m = message_new(u, room + ALIGN((size_t)a->env->length, (size_t)8) + bulk + 8, &r);
	if (!a->m) {
		assert(r < 0);
		return r;
	}
	a->start = u->memory + a->m->slice->offset;
	a->body = a->start + room;
	r = take(u, a->from, a->body, arg);
	if (r == 0)
		r = take_fds(u, a);
	if (r == 0)
		r = take_bulk(u, a);
	return r;
}

/* May this connection get such a message from this peer directly (design rule 17)? */
static bool allowed(const struct user *u, const struct peer *p, const struct kdbus_msg *msg,
		    const struct message *m)
{
	if (m->n_fds && !(u->conn_flags & (KDBUS_HELLO_ACCEPT_FD | KDBUS_HELLO_MONITOR)))
		return false;
	if (peer_is_daemon(u, p))
		return true;
	/* To close a file of anybody's file system may take long: those the daemon passes. */
	if (m->n_fds && !(p->intro & CTL_INTRO_EQUAL))
		return false;
	if (msg->flags & KDBUS_MSG_SIGNAL || msg->dst_id == KDBUS_DST_ID_BROADCAST)
		return false;
	if (!(msg->flags & KDBUS_MSG_EXPECT_REPLY) && msg->cookie_reply)
		return true;
	return p->intro & CTL_INTRO_IN_MESSAGES;
}

/*
 * A reply goes to the one who waits for it; without one it is nobody's. Returns whether it is
 * queued.
 */
static bool settle_reply(struct user *u, struct message *m, const struct kdbus_msg *msg)
{
	struct peer *p = peer_find(u, msg->src_id);
	struct core_reply *slot;

	slot = p ? core_reply_find(&u->requester, &p->replier, msg->cookie_reply) : NULL;
	if (!slot) {
		message_discard(u, m);
		return false;
	}
	if (!core_reply_take(slot))
		return true;
	if (core_reply_settle(slot, 0, m) < 0)
		message_discard(u, m);
	user_wake_waiters(u);
	return false;
}

static void enqueue(struct user *u, struct message *m, const struct kdbus_msg *msg)
{
	core_queue_push(&u->queue, &m->entry, msg->priority);
	user_update_events(u);
}

static int route_in(struct user *u, struct arrival *a)
{
	struct message *m = a->m;
	const struct kdbus_msg *msg = (const struct kdbus_msg *)a->start;
	bool call = msg->src_id && msg->flags & KDBUS_MSG_EXPECT_REPLY;
	bool monitor = u->kind == CORE_KIND_MONITOR;

	if (!allowed(u, a->from, msg, m))
		return -EPROTO;
	if (monitor || !msg->src_id || msg->flags & KDBUS_MSG_SIGNAL) {
		enqueue(u, m, msg);
		return 0;
	}
	if (call) {
		m->owed = owed_add(u, msg, a->env->subject == CTL_SUBJECT_SYNC);
		if (!m->owed)
			return -ENOMEM;
	} else if (msg->cookie_reply && !settle_reply(u, m, msg)) {
		return 0;
	}
	enqueue(u, m, msg);
	return 0;
}

/*
 * Take one message record. -EXFULL: it does not fit the pool, nothing was taken. Any other error
 * is the record's: its sender has broken the format.
 */
int user_take_record(struct user *u, struct peer *p, const struct lane_env *env, u64 stamp,
		     take_fn take, void *arg)
{
	struct arrival a = { .from = p, .env = env, .stamp = stamp };
	struct ctl_deliver head;
	int r = arrive(u, &a, take, arg);

	if (r == 0)
		r = finish(u, &a, &head);
	if (r == 0)
		r = route_in(u, &a);
	if (r < 0 && a.m)
		message_discard(u, a.m);
	if (r == 0)
		idle_tick(u, p);
	return r;
}
