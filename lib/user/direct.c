// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writing messages into lanes, and sending to a peer without the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lane/bulk.h"
#include "user.h"

/* How long a sender waits for a peer that is just closing its lane (design rule 15) */
#define CLOSING_WAIT_NS 100000000ULL

static bool needs_bulk(const struct lane_channel *ch, const struct outgoing *out)
{
	return out->wire.layout.payload_size > lane_share(ch->ring) - LANE_ALIGN;
}

static int reserve(struct lane_channel *ch, const struct outgoing *out, struct lane_put *put,
		   void **ret_body, void **ret_payload)
{
	const struct core_layout *layout = &out->wire.layout;
	void *bulk = NULL;
	int r;

	put->length += layout->payload_offset;
	if (!needs_bulk(ch, out))
		put->length += layout->payload_size;
	else if ((r = lane_bulk_get(ch, layout->payload_size, put, &bulk)) < 0)
		return r;
	r = lane_put(ch, put, ret_body);
	if (r < 0) {
		if (bulk)
			lane_bulk_drop(ch, put);
		return r;
	}
	*ret_payload = bulk;
	return 0;
}

/* Descriptors that cannot be passed now say nothing about the room in the lane. */
static int put_fds(struct lane_channel *ch, const struct outgoing *out, const struct lane_put *put,
		   int *kept)
{
	int r;

	if (!(put->fds + put->memfds))
		return 0;
	r = lane_put_fds(ch, out->fds, put->fds + put->memfds);
	if (r == 0)
		lane_keep_fds(ch, kept);
	return r == -EAGAIN && kept ? -EBUSY : r;
}

/*
 * One record: @head, the message, its payload; @put has type, flags, subject and tag. Returns what
 * lane_ring() says: 0 or LANE_E_CLOSING once the message is out, and @kept (copies of the
 * descriptors, or NULL) the channel's; an error before it is.
 */
int lane_write(struct user *u, struct lane_channel *ch, const struct outgoing *out,
	       struct lane_put *put, const void *head, size_t head_size, int *kept)
{
	void *body, *payload;
	int r;

	put->length = (u32)head_size;
	put->fds = (u16)out->n_fds;
	put->memfds = (u16)out->n_memfds;
	r = reserve(ch, out, put, &body, &payload);
	if (r < 0)
		return r;
	if (head_size)
		memcpy(body, head, head_size);
	wire_image(&out->wire, (char *)body + head_size);
	if (out->wire.layout.payload_size)
		wire_payload(&out->wire,
			     payload ? payload :
				       (char *)body + head_size + out->wire.layout.payload_offset);
	r = put_fds(ch, out, put, kept);
	if (r < 0) {
		lane_cancel(ch);
		if (payload)
			lane_bulk_drop(ch, put);
		return r;
	}
	lane_publish(ch, lane_clock_stamp(&u->clock, &lane_linux_ops), 0);
	r = lane_ring(ch);
	/*
	 * The message is out: if the peer is gone, the daemon will say so, and it comes back then.
	 */
	return r < 0 ? 0 : r;
}

static void fill_put(const struct outgoing *out, u64 name_id, struct lane_put *put)
{
	const struct kdbus_msg *msg = out->wire.m.msg;

	*put = (struct lane_put){ .type = LANE_REC_MSG, .tag = name_id };
	if (out->wire.m.route == CORE_ROUTE_REPLY) {
		put->flags = LANE_F_REPLY;
		put->subject = msg->cookie_reply;
	} else if (out->sync) {
		put->subject = CTL_SUBJECT_SYNC;
	}
}

static int open_call(struct user *u, struct outgoing *out, struct peer *p, u64 name_id,
		     struct core_reply **ret_slot)
{
	const struct core_reply_args args = { .cookie = out->wire.m.msg->cookie,
					      .name_id = name_id,
					      .deadline = out->deadline,
					      .sync = out->sync };

	if (!(out->wire.m.msg->flags & KDBUS_MSG_EXPECT_REPLY))
		return 0;
	out->since = u->daemon.channel.seen;
	p->reply_waits = 0;
	return core_reply_open(&u->requester, &p->replier, &args, ret_slot);
}

/* The reader is closing: the message is taken, or it comes back and is relayed. */
static void settle_closing(struct user *u, struct peer *p)
{
	int r = lane_closing_wait(&p->channel, user_now() + CLOSING_WAIT_NS);

	if (p->looked)
		lane_look_touch(&u->look, &p->source);
	if (r == -ETIMEDOUT)
		p->stuck = true;
	else if (r != 0)
		peer_closed(u, p);
}

/*
 * What the peer has consumed stands in its own lane, which comes over the socket once it has made
 * it: a program that only sends has not looked there yet.
 */
static void look_for_space(struct user *u, struct peer *p)
{
	lane_drain(&p->channel);
	if (p->looked)
		lane_look_touch(&u->look, &p->source);
}

static void drop_copies(int *fds, u32 n)
{
	while (fds && n--)
		user_drop_fd(fds[n]);
	free(fds);
}

/* What may come back (design rule 15) is sent again with its descriptors. */
static int copy_fds(const struct outgoing *out, int **ret)
{
	u32 n = out->n_fds + out->n_memfds, i;
	int *fds;

	*ret = NULL;
	if (!n)
		return 0;
	fds = malloc(n * sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		fds[i] = fcntl(out->fds[i], F_DUPFD_CLOEXEC, 0);
		if (fds[i] < 0) {
			drop_copies(fds, i);
			return -EMFILE;
		}
	}
	*ret = fds;
	return 0;
}

static int write_direct(struct user *u, struct outgoing *out, struct peer *p, u64 name_id,
			int *kept)
{
	struct lane_put put;
	bool looked = false;
	int r;

	for (;;) {
		fill_put(out, name_id, &put);
		r = lane_write(u, &p->channel, out, &put, NULL, 0, kept);
		if (r != -EAGAIN)
			return r;
		if (!lane_fds_fit(&p->channel, out->n_fds))
			return -EDQUOT;
		if (!out->sync && looked)
			return -ENOBUFS;
		if (!out->sync) {
			look_for_space(u, p);
			looked = true;
			continue;
		}
		r = user_await_space(u, p, &put, out->deadline);
		if (r < 0)
			return r;
	}
}

/*
 * The copies of descriptors go with the first look after the peer has the message. Whoever waits
 * for no answer may not look again soon, so he is rung.
 */
static void watch_fds(struct user *u, const struct outgoing *out, struct peer *p)
{
	if (!lane_keeps_fds(&p->channel))
		return;
	if (list_empty(&p->keeping_entry))
		list_add_tail(&p->keeping_entry, &u->keeping);
	if (!(out->wire.m.msg->flags & KDBUS_MSG_EXPECT_REPLY))
		lane_passed_arm(&p->channel);
}

/* Let go of the descriptors of messages that have arrived. */
void direct_release_fds(struct user *u)
{
	struct peer *p, *next;

	list_for_each_entry_safe(p, next, &u->keeping, keeping_entry) {
		lane_reap(&p->channel);
		if (!lane_keeps_fds(&p->channel))
			list_del_init(&p->keeping_entry);
	}
}

static int write_with_fds(struct user *u, struct outgoing *out, struct peer *p, u64 name_id)
{
	int *kept, r = copy_fds(out, &kept);

	if (r < 0)
		return r;
	r = write_direct(u, out, p, name_id, kept);
	if (r < 0)
		drop_copies(kept, out->n_fds + out->n_memfds);
	else if (kept)
		watch_fds(u, out, p);
	return r;
}

/*
 * Returns 0, an errno of SEND, or 1: the lane cannot take it any more, send it through the daemon.
 */
int direct_send(struct user *u, struct outgoing *out, struct peer *p, u64 name_id,
		struct core_reply **ret_slot)
{
	struct core_reply *slot = NULL;
	void *answer = NULL;
	int r;

	if (peer_own_lane(u, p) < 0)
		return 1;
	if (out->n_fds && !(p->conn_flags & KDBUS_HELLO_ACCEPT_FD))
		return -ECOMM;
	r = out->sync ? relay_check_way(u, p) : 0;
	/* That may have taken up its end. */
	if (r == 0 && !peer_usable(u, p))
		return 1;
	if (r == 0)
		r = open_call(u, out, p, name_id, &slot);
	if (r < 0)
		return r;
	r = write_with_fds(u, out, p, name_id);
	if (r == LANE_E_CLOSING)
		settle_closing(u, p);
	if (r >= 0) {
		*ret_slot = slot;
		idle_tick(u, p);
		user_update_events(u);
		return 0;
	}
	core_reply_close(slot, &answer);
	message_discard(u, answer);
	if (r == -EDQUOT)
		return -EMFILE;
	return r == -ENOBUFS || r == -ETIMEDOUT ? r : 1;
}
