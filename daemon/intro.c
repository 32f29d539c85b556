// SPDX-License-Identifier: LGPL-2.1-or-later
/* Introductions: who may talk to whom without the daemon, and for how long. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client.h"
#include "reading.h"

#define CHANNELS_MAX	 256
#define FOREIGN_SHARE	 4 /* of the channels of one client, for each foreign uid */
#define PAUSE_NS	 5000000000ULL
#define PAUSE_READING_NS 1000000ULL /* a process is still to be read */

static unsigned int budget(const struct client *c)
{
	return min(c->daemon->fd_limit / 4, (unsigned int)CHANNELS_MAX);
}

static unsigned int side_of(const struct intro *i, const struct client *c)
{
	return i->side[1].client == c;
}

/* The entry of a side knows which it is: container_of() needs to. */
static struct intro *intro_at(struct client *c, struct list_head *entry)
{
	struct intro_side *side = container_of(entry, struct intro_side, entry);

	return side->intro;
}

static u64 other_id(const struct intro_side *side)
{
	const struct intro *i = side->intro;

	return i->side[side == &i->side[0]].client->conn.id;
}

/* Asked for each message that is relayed between the two. */
static struct intro *find(const struct client *a, const struct client *b)
{
	struct rb_node *node = a->introduced.rb_node;
	struct intro_side *side;

	while (node) {
		side = rb_entry(node, struct intro_side, node);
		if (other_id(side) == b->conn.id)
			return side->intro;
		node = b->conn.id < other_id(side) ? node->rb_left : node->rb_right;
	}
	return NULL;
}

static void insert(struct intro_side *fresh)
{
	struct rb_root *root = &fresh->client->introduced;
	struct rb_node **link = &root->rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = other_id(fresh) < other_id(rb_entry(parent, struct intro_side, node)) ?
			       &parent->rb_left :
			       &parent->rb_right;
	}
	rb_link_node(&fresh->node, parent, link);
	rb_insert_color(&fresh->node, root);
}

bool intro_exists(const struct client *a, const struct client *b)
{
	return find(a, b);
}

static unsigned int of_uid(struct client *c, uid_t uid)
{
	struct list_head *e;
	unsigned int n = 0;
	struct intro *i;

	for (e = c->intros.next; e != &c->intros; e = e->next) {
		i = intro_at(c, e);
		n += i->side[!side_of(i, c)].client->creds->uid == uid;
	}
	return n;
}

static bool has_room(struct client *c, struct client *other)
{
	if (c->n_intros >= budget(c))
		return false;
	return c->creds->uid == other->creds->uid ||
	       of_uid(c, other->creds->uid) < max(budget(c) / FOREIGN_SHARE, 1U);
}

static u64 directions(struct client *from, struct client *to)
{
	return core_conn_may_talk(&from->conn, &from->creds->core, &to->conn);
}

/* As @c is told: out is from it to the other. */
static u64 flags_for(struct client *c, struct client *other)
{
	u64 flags = 0;

	if (directions(c, other))
		flags |= CTL_INTRO_OUT_MESSAGES;
	if (directions(other, c))
		flags |= CTL_INTRO_IN_MESSAGES;
	if (creds_equal_authority(c->creds, other->creds))
		flags |= CTL_INTRO_EQUAL;
	return flags;
}

bool intro_may(struct client *a, struct client *b)
{
	return a != b && a->direct && b->direct && b->connected && !b->doomed &&
	       a->conn.bus == b->conn.bus && list_empty(&a->conn.bus->monitors) && !find(a, b);
}

static void refuse(struct client *c, u64 peer, u64 pause_ns)
{
	const struct ctl_no_intro body = { .peer = peer, .pause_ns = pause_ns };
	const struct lane_put put = { .type = CTL_REC_NO_INTRO, .length = sizeof(body) };

	client_put(c, &put, &body);
}

/* Tell @c of @other, with its end of the socket, and the lane if @lane_fd is one. */
static int tell(struct client *c, struct client *other, const struct intro *i, int sock,
		int lane_fd)
{
	/* The other side may answer by it at once: it does not wait behind what waits for room. */
	struct lane_put put = { .type = LANE_REC_INTRO,
				.flags = LANE_F_REPLY,
				.subject = other->conn.id,
				.fds = lane_fd < 0 ? 1 : 2 };
	const int files[2] = { sock, lane_fd };
	struct ctl_intro head = { .peer = other->conn.id,
				  .flags = i->flags[side_of(i, c)],
				  .number = i->number,
				  .conn_flags = other->conn.flags };
	struct meta_image meta;
	unsigned char *body;
	int r = meta_for_intro(other, c, &meta);

	if (r < 0)
		return r;
	head.meta_size = (u32)meta.size;
	put.length = (u32)(sizeof(head) + meta.size);
	body = malloc(put.length);
	r = body ? 0 : -ENOMEM;
	if (r == 0) {
		memcpy(body, &head, sizeof(head));
		if (meta.size)
			memcpy(body + sizeof(head), meta.data, meta.size);
		r = client_put_fds(c, &put, body, files, put.fds);
	}
	free(body);
	free(meta.data);
	return r;
}

static void link_sides(struct intro *i, struct client *a, struct client *b)
{
	i->side[0] = (struct intro_side){ .intro = i, .client = a };
	i->side[1] = (struct intro_side){ .intro = i, .client = b };
	list_add_tail(&i->side[0].entry, &a->intros);
	list_add_tail(&i->side[1].entry, &b->intros);
	insert(&i->side[0]);
	insert(&i->side[1]);
	a->n_intros++;
	b->n_intros++;
}

static void forget(struct intro *i)
{
	list_del(&i->side[0].entry);
	list_del(&i->side[1].entry);
	rb_erase(&i->side[0].node, &i->side[0].client->introduced);
	rb_erase(&i->side[1].node, &i->side[1].client->introduced);
	i->side[0].client->n_intros--;
	i->side[1].client->n_intros--;
	free(i);
}

static void withdraw(struct intro *i)
{
	struct ctl_gone body = { .reason = CTL_GONE_WITHDRAWN, .number = i->number };
	struct lane_put put = { .type = LANE_REC_GONE, .length = sizeof(body) };
	unsigned int s;

	for (s = 0; s < 2; s++) {
		body.peer = i->side[!s].client->conn.id;
		put.subject = body.peer;
		client_put(i->side[s].client, &put, &body);
	}
	forget(i);
}

/* The peer is told first: its lane is known to it before the asker writes there. */
static int introduce(struct client *c, struct client *peer, int lane_fd)
{
	struct intro *i = calloc(1, sizeof(*i));
	int sv[2], r;

	if (!i)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv) < 0) {
		free(i);
		return -errno;
	}
	reaper_note_same(c->daemon->reaper, sv[0], c->channel.sock);
	reaper_note_same(c->daemon->reaper, sv[1], c->channel.sock);
	i->number = ++c->daemon->last_intro;
	i->flags[0] = flags_for(c, peer) | CTL_INTRO_ASKED;
	i->flags[1] = flags_for(peer, c);
	link_sides(i, c, peer);
	r = tell(peer, c, i, sv[1], lane_fd);
	/* Nobody can have written to it yet: with no file in it, it is closed at once. */
	close(sv[1]);
	if (r < 0) {
		forget(i);
	} else {
		r = tell(c, peer, i, sv[0], -1);
		if (r < 0)
			withdraw(i);
	}
	/* It may be the last of its kind, and the peer may have written to the other. */
	reaper_close(c->daemon->reaper, sv[0]);
	return r;
}

/*
 * A lane as the library makes them: no file system has a say when it is closed, and it is given
 * back in no time. Waking a thread for it would cost more than all the rest. Seals come first: they
 * are asked for without blocking, and what they hold stays as it is.
 */
static void close_lane(int *fd)
{
	int seals = fcntl(*fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || !(seals & F_SEAL_GROW) || fstat(*fd, &st) < 0 ||
	    st.st_size > 2 * LANE_RING_DEFAULT || st.st_blocks > 2 * LANE_RING_DEFAULT / 512)
		return;
	close(*fd);
	*fd = -1;
}

/* Does @to want what was not read of @of? */
static bool lacks(const struct client *of, const struct client *to)
{
	return !of->fake && creds_lacks(of->creds, to->conn.attach_recv);
}

/* Mostly both have been read when they connected, or when they sent something to be relayed. */
static bool must_be_read(struct client *c, struct client *peer)
{
	bool one = lacks(c, peer) && reading_needed(&c->peer, peer->conn.attach_recv);
	bool other = lacks(peer, c) && reading_needed(&peer->peer, c->conn.attach_recv);

	return one || other;
}

int intro_ask(struct client *c, const struct ctl_ask_intro *ask, int *lane_fd)
{
	struct core_conn *conn;
	struct client *peer;
	u64 pause = PAUSE_NS;
	int r = -ENXIO;

	if (!c->connected || ask->reserved)
		return -EPROTO;
	conn = core_bus_find_conn(c->conn.bus, ask->peer);
	peer = conn ? native_of(conn) : NULL;
	if (peer && intro_may(c, peer) && client_keeps_up(c) && client_keeps_up(peer) &&
	    has_room(c, peer) && has_room(peer, c) && directions(c, peer)) {
		if (must_be_read(c, peer))
			pause = PAUSE_READING_NS;
		else
			r = introduce(c, peer, *lane_fd);
	}
	close_lane(lane_fd);
	if (r < 0)
		refuse(c, ask->peer, pause);
	return 0;
}

/*
 * Closed by agreement. What the two asked each other directly may still be answered, and they learn
 * of each other's end as those do who called through the daemon.
 */
int intro_end(struct client *c, const struct ctl_end_intro *end)
{
	struct core_conn *conn;
	struct client *peer;
	struct intro *i;

	if (!c->connected || end->reserved)
		return -EPROTO;
	conn = core_bus_find_conn(c->conn.bus, end->peer);
	peer = conn ? native_of(conn) : NULL;
	i = peer ? find(c, peer) : NULL;
	if (!i || i->number != end->number)
		return 0;
	/* Without memory it stays as it is. */
	if (link_call(&c->peer, &peer->peer) == 0 && link_call(&peer->peer, &c->peer) == 0)
		forget(i);
	return 0;
}

/* Permissions may have changed: what is no longer as it was told is withdrawn. */
void intro_review(struct client *c)
{
	struct list_head *e, *next;
	struct intro *i;
	unsigned int s;

	for (e = c->intros.next; e != &c->intros; e = next) {
		next = e->next;
		i = intro_at(c, e);
		s = side_of(i, c);
		if ((flags_for(c, i->side[!s].client) ^ i->flags[s]) &
		    (CTL_INTRO_IN_MESSAGES | CTL_INTRO_OUT_MESSAGES))
			withdraw(i);
	}
}

void intro_review_bus(struct bus *bus)
{
	struct client *c;

	list_for_each_entry(c, &bus->daemon->clients, entry)
		if (c->connected && c->conn.bus == &bus->core)
			intro_review(c);
}

static void send_meta(struct client *to, struct client *of)
{
	struct lane_put put = { .type = CTL_REC_PEER };
	struct ctl_peer head = { .peer = of->conn.id };
	struct meta_image meta;
	unsigned char *body;

	if (meta_for_intro(of, to, &meta) < 0)
		return;
	head.meta_size = (u32)meta.size;
	put.length = (u32)(sizeof(head) + meta.size);
	body = malloc(put.length);
	if (body) {
		memcpy(body, &head, sizeof(head));
		if (meta.size)
			memcpy(body + sizeof(head), meta.data, meta.size);
		client_put(to, &put, body);
	}
	free(body);
	free(meta.data);
}

/* Its names or masks have changed: what peers attach to its messages, and it to theirs. */
void intro_new_meta(struct client *c)
{
	struct list_head *e, *next;
	struct intro *i;
	struct client *other;

	for (e = c->intros.next; e != &c->intros; e = next) {
		next = e->next;
		i = intro_at(c, e);
		other = i->side[!side_of(i, c)].client;
		/*
		 * Or one change after the other would pile up at who does not read; or something is
		 * wanted now that is still to be read.
		 */
		if (!client_keeps_up(c) || !client_keeps_up(other) || lacks(c, other) ||
		    lacks(other, c)) {
			withdraw(i);
			continue;
		}
		send_meta(other, c);
		send_meta(c, other);
	}
}

void intro_each(struct client *c, void (*fn)(struct client *other, void *data), void *data)
{
	struct list_head *e;
	struct intro *i;

	for (e = c->intros.next; e != &c->intros; e = e->next) {
		i = intro_at(c, e);
		fn(i->side[!side_of(i, c)].client, data);
	}
}

void intro_drop_all(struct client *c)
{
	while (!list_empty(&c->intros))
		forget(intro_at(c, c->intros.next));
}
