// SPDX-License-Identifier: LGPL-2.1-or-later
/* Peers: who they are, and how messages get to them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lane/hooks.h"
#include "user.h"

/* Room behind a peer's metadata in the scratch memory, for the TIMESTAMP of each message */
#define META_MAX (CORE_CMD_MAX_SIZE - 64)

/* So many peers are remembered before those of no use are looked for. */
#define PEERS_SWEEP_MIN 128U

struct peer *peer_find(struct user *u, u64 id)
{
	struct rb_node *node = u->peers.rb_node;
	struct peer *p;

	while (node) {
		p = rb_entry(node, struct peer, node);
		if (id == p->id)
			return p;
		node = id < p->id ? node->rb_left : node->rb_right;
	}
	return NULL;
}

static void insert(struct user *u, struct peer *fresh)
{
	struct rb_node **link = &u->peers.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = fresh->id < rb_entry(parent, struct peer, node)->id ? &parent->rb_left :
									     &parent->rb_right;
	}
	rb_link_node(&fresh->node, parent, link);
	rb_insert_color(&fresh->node, &u->peers);
}

void peer_leave_look(struct user *u, struct peer *p)
{
	if (!p->looked)
		return;
	lane_look_remove(&u->look, &p->source);
	p->looked = false;
	list_del(&p->looked_entry);
	u->n_looked--;
}

bool peer_has_channel(const struct peer *p)
{
	return p->state == PEER_DIRECT || p->state == PEER_ENDING || p->state == PEER_DEAD;
}

void peer_put(struct user *u, struct peer *p)
{
	if (p == &u->daemon || --p->held)
		return;
	list_del_init(&p->keeping_entry);
	if (p->channel.ops)
		lane_channel_deinit(&p->channel);
	free(p->meta);
	free(p);
}

/* Not known to the daemon any more, or never was: it goes once nothing refers to it. */
void peer_retire(struct user *u, struct peer *p)
{
	peer_leave_look(u, p);
	rb_erase(&p->node, &u->peers);
	u->n_peers--;
	/* Messages in the pool may lie in its buffers for long. */
	if (p->channel.ops)
		lane_channel_hang_up(&p->channel);
	peer_put(u, p);
}

/* Of those that are only written to through the daemon nobody says when they are gone. */
static void sweep(struct user *u)
{
	struct rb_node *node, *next;
	struct peer *p;

	for (node = rb_first(&u->peers); node; node = next) {
		next = rb_next(node);
		p = rb_entry(node, struct peer, node);
		if (p->state == PEER_RELAYED && p->held == 1 && !p->looked && !p->handed_back &&
		    !core_replier_first(&p->replier))
			peer_retire(u, p);
	}
	u->sweep_at = 2 * u->n_peers;
}

struct peer *peer_new(u64 id)
{
	struct peer *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->id = id;
	p->channel.sock = -1;
	p->held = 1;
	INIT_LIST_HEAD(&p->keeping_entry);
	core_replier_init(&p->replier);
	return p;
}

struct peer *peer_get(struct user *u, u64 id)
{
	struct peer *p = peer_find(u, id);

	if (p)
		return p;
	if (u->n_peers >= max(u->sweep_at, PEERS_SWEEP_MIN))
		sweep(u);
	p = peer_new(id);
	if (!p)
		return NULL;
	u->n_peers++;
	insert(u, p);
	return p;
}

int peer_set_meta(struct peer *p, const void *meta, size_t size)
{
	void *copy = NULL;

	if (size > META_MAX || size % 8)
		return -EPROTO;
	if (size) {
		copy = malloc(size);
		if (!copy)
			return -ENOMEM;
		memcpy(copy, meta, size);
	}
	free(p->meta);
	p->meta = copy;
	p->meta_size = size;
	return 0;
}

int peer_new_meta(struct user *u, const struct ctl_peer *update, size_t size)
{
	struct peer *p;

	if (size < sizeof(*update) || size - sizeof(*update) < update->meta_size)
		return -EPROTO;
	p = peer_find(u, update->peer);
	return p ? peer_set_meta(p, update + 1, update->meta_size) : 0;
}

/* It goes once no message in the pool refers to it any more. */
static void release_detached(struct user *u, struct peer *p)
{
	peer_leave_look(u, p);
	list_del(&p->detached_entry);
	p->detached = false;
	if (p->channel.ops)
		lane_channel_hang_up(&p->channel);
	peer_put(u, p);
}

/*
 * As if it had not been introduced. Buffers that messages in the pool lie in stay, with what is
 * left of the channel.
 */
void peer_drop_channel(struct user *u, struct peer *p)
{
	peer_leave_look(u, p);
	list_del_init(&p->keeping_entry);
	if (p->detached || (lane_bulk_held(&p->channel) && idle_detach(u, p))) {
		release_detached(u, p);
		return;
	}
	if (lane_bulk_held(&p->channel)) {
		/* No memory for that: it remains as it is, without a channel for good. */
		lane_channel_hang_up(&p->channel);
		p->state = PEER_DEAD;
		return;
	}
	lane_channel_deinit(&p->channel);
	p->channel.sock = -1;
	p->state = PEER_RELAYED;
	p->intro = 0;
	p->number = 0;
	p->sent = 0;
	p->asking = false;
	p->withdrawn = false;
}

/* Whoever was introduced by the other side makes its lane when it first has to write or consume. */
int peer_own_lane(struct user *u, struct peer *p)
{
	if (p->channel.own)
		return 0;
	return lane_channel_pass(&p->channel, LANE_RING_DEFAULT);
}

bool peer_is_gone(struct user *u, u64 id)
{
	struct peer *p = peer_find(u, id);

	return p && p->state == PEER_DEAD;
}

/* Only of an introduced peer is that known here; for the others the daemon checks. */
bool peer_refuses_fds(struct user *u, u64 id)
{
	struct peer *p = peer_find(u, id);

	return p && peer_has_channel(p) && !(p->conn_flags & KDBUS_HELLO_ACCEPT_FD);
}

/* May this message go directly (rule 5 of user.h)? */
bool peer_usable(struct user *u, struct peer *p)
{
	return p->state == PEER_DIRECT && !p->channel.broken && !p->channel.hungup &&
	       !p->channel.asked_end && !lane_page_monitored(u->page) &&
	       (lane_passed(&u->daemon.channel) || LANE_BROKEN(LANE_DIRECT_AT_ONCE)) &&
	       !lane_page_waiting(u->page, p->id);
}

/* Tell a caller that its call will not be answered, or that the reply could not be taken. */
int peer_refuse(struct user *u, u64 requester, u64 cookie, int error, bool sync)
{
	const struct ctl_refused body = { .peer = requester,
					  .cookie = cookie,
					  .error = error,
					  .flags = sync ? CTL_REFUSED_SYNC : 0 };
	struct peer *p = peer_find(u, requester);
	struct lane_channel *ch;
	struct lane_put put = { .type = CTL_REC_REFUSED,
				.flags = LANE_F_REPLY,
				.length = sizeof(body),
				.subject = cookie };
	void *to;
	int r;

	ch = p && peer_usable(u, p) && peer_own_lane(u, p) == 0 ? &p->channel : &u->daemon.channel;
	r = lane_put(ch, &put, &to);
	if (r < 0)
		return r;
	memcpy(to, &body, sizeof(body));
	lane_publish(ch, lane_clock_stamp(&u->clock, &lane_linux_ops), 0);
	r = lane_ring(ch);
	return r < 0 ? r : 0;
}

void peer_free_all(struct user *u)
{
	struct rb_node *node;

	while (!list_empty(&u->detached))
		release_detached(u, list_first_entry(&u->detached, struct peer, detached_entry));
	while ((node = rb_first(&u->peers)))
		peer_retire(u, rb_entry(node, struct peer, node));
}
