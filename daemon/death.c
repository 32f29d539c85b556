// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a client that has gone did not take (design rule 15; doc/lanes.md). By-name messages go to
 * whoever has the name now. Those that came through the daemon it has itself; those in direct lanes
 * their senders hand back, and the daemon merges both by the sender's stamps before it takes
 * anything newer from that sender.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "classic/bridge.h"
#include "client.h"
#include "lane/memfd.h"

static void free_held(struct client *c, struct held *h)
{
	unsigned int i;

	for (i = 0; i < h->n_files; i++)
		reaper_close(c->daemon->reaper, h->files[i]);
	if (h->held)
		account_drop(c->account, h->held);
	list_del(&h->entry);
	free(h->files);
	free(h->body);
	free(h);
}

/* Sorted by stamp; equal ones stay in the order in which they came. */
static void insert(struct list_head *list, struct held *fresh)
{
	struct held *h;

	list_for_each_entry_reverse(h, list, entry) {
		if (h->stamp <= fresh->stamp) {
			list_add(&fresh->entry, &h->entry);
			return;
		}
	}
	list_add(&fresh->entry, list);
}

static struct held *hold(const void *image, size_t image_size, const void *payload,
			 size_t payload_size)
{
	struct held *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->size = image_size + payload_size;
	h->body = malloc(ALIGN(h->size, (size_t)8) + 8);
	if (!h->body) {
		free(h);
		return NULL;
	}
	memcpy(h->body, image, image_size);
	if (payload_size)
		memcpy(h->body + image_size, payload, payload_size);
	INIT_LIST_HEAD(&h->entry);
	return h;
}

/* One record of ours that was not consumed: metadata, message, payload, tail. */
static void collect(struct client *c, struct flight *f, const unsigned char *body, size_t size,
		    const void *bulk, size_t bulk_size)
{
	struct ctl_deliver tail;
	struct held *h;

	if (!f->by_name || size < sizeof(tail))
		return;
	memcpy(&tail, body + size - sizeof(tail), sizeof(tail));
	h = hold(body + tail.meta_size, size - sizeof(tail) - tail.meta_size, bulk, bulk_size);
	if (!h)
		return;
	h->sender = f->sender;
	h->stamp = f->stamp;
	h->files = f->files;
	h->n_files = f->n_files;
	h->n_memfds = f->n_files - f->fds;
	f->files = NULL;
	f->n_files = 0;
	list_add_tail(&h->entry, &c->leftover);
}

static struct flight *flight_of(struct client *c, u64 tag)
{
	struct flight *f;

	list_for_each_entry(f, &c->flights, entry)
		if (f->seq == tag)
			return f;
	return NULL;
}

/* Before anything changes: what lies in its lane and in front of it. */
void death_collect(struct client *c)
{
	struct lane_back back;
	struct flight *f;

	client_reap(c);
	c->channel.hungup = true;
	while (lane_take_back(&c->channel, &back) == 0) {
		f = flight_of(c, back.tag);
		if (f && back.env.type == LANE_REC_MSG)
			collect(c, f, back.body, back.env.length, back.bulk, back.env.bulk_size);
	}
	list_for_each_entry(f, &c->overflow, entry)
		if (f->put.type == LANE_REC_MSG && f->body)
			collect(c, f, f->body, f->put.length, f->bulk, f->bulk_size);
}

/* 0: it is as it was when it was sent, to a name. */
static int parse(struct peer *from, const struct held *h, struct relay *relay)
{
	unsigned int fds = h->n_files - h->n_memfds;

	*relay = (struct relay){ .from = from, .stamp = h->stamp, .n_fds = h->n_files };
	if (h->n_files > LANE_SOCK_FDS_MAX ||
	    wire_parse(h->body, h->size, -1, from->conn.bus->bloom.size, fds, h->n_memfds,
		       &relay->wire) < 0)
		return -EBADMSG;
	if (!relay->wire.m.dst_name || relay->wire.m.msg->dst_id)
		return -EBADMSG;
	if (h->n_files)
		memcpy(relay->fds, h->files, h->n_files * sizeof(*h->files));
	relay->payload = h->body + relay->wire.layout.payload_offset;
	return wire_check_fds(&relay->wire, relay->fds);
}

/*
 * Send it on by the name it bears. A call goes on only to an activator: its caller was told that
 * the answer comes from there (links.c); any other has had its outcome with the death.
 */
static void route(struct client *from, struct held *h)
{
	struct core_dst dst = { 0 };
	struct relay relay;

	if (parse(&from->peer, h, &relay) < 0 ||
	    core_send_resolve(from->conn.bus, &relay.wire.m, &dst) < 0)
		return;
	if (relay.wire.m.msg->flags & KDBUS_MSG_EXPECT_REPLY &&
	    dst.conn->kind != CORE_KIND_ACTIVATOR)
		return;
	relay_route(&relay, &dst);
}

static void route_held(struct client *c)
{
	struct held *h, *next;

	list_for_each_entry_safe(h, next, &c->held, entry) {
		if (c->connected)
			route(c, h);
		free_held(c, h);
	}
}

static void await(struct client *other, void *data)
{
	struct client *dead = data;
	struct awaited *a;

	if (!other->connected || other->doomed)
		return;
	a = calloc(1, sizeof(*a));
	if (!a)
		return;
	a->peer = dead->conn.id;
	list_add_tail(&a->entry, &other->awaited);
}

/* Nothing more is handed back: go on, unless what is wanted with its messages has to be read. */
void death_settle(struct client *c)
{
	if (client_unread(c))
		return;
	route_held(c);
	client_heat(c);
}

/* Names have their next owners by now, and everybody was told. */
void death_begin(struct client *c)
{
	struct core_conn *sender;
	struct held *h, *next;
	struct relay relay;
	struct client *s;

	intro_each(c, await, c);
	list_for_each_entry_safe(h, next, &c->leftover, entry) {
		sender = core_bus_find_conn(c->conn.bus, h->sender);
		s = sender ? native_of(sender) : NULL;
		if (sender && !s && parse(peer_of(sender), h, &relay) == 0)
			bridge_hand_on(&relay, &c->peer);
		if (!s || s == c) {
			free_held(c, h);
		} else if (list_empty(&s->awaited) && !client_unread(s)) {
			route(s, h);
			free_held(c, h);
		} else {
			list_del(&h->entry);
			insert(&s->held, h);
		}
	}
}

/* It goes itself, without having handed back: its part is missing, the rest is sent on. */
void death_forget(struct client *c)
{
	struct awaited *a, *next;

	route_held(c);
	list_for_each_entry_safe(a, next, &c->awaited, entry) {
		list_del(&a->entry);
		free(a);
	}
}

static struct awaited *find_awaited(struct client *c, u64 peer)
{
	struct awaited *a;

	list_for_each_entry(a, &c->awaited, entry)
		if (a->peer == peer)
			return a;
	return NULL;
}

/* Checked as any memfd of a client before it is mapped. NULL: it is not as it should be. */
static struct held *held_from_memfd(int fd, size_t size)
{
	const void *base, *data;
	struct held *h;
	size_t mapped;

	if (lane_memfd_map_payload(fd, 0, size, &base, &mapped, &data) < 0)
		return NULL;
	h = hold(data, size, NULL, 0);
	lane_memfd_unmap(base, mapped);
	return h;
}

/* Only what SEND would have taken: the size of a message with its payload is bounded. */
static bool plausible(const struct ctl_hand_back *head)
{
	return head->size <= CORE_CMD_MAX_SIZE + CORE_MSG_MAX_PAYLOAD_VEC_SIZE + 4096;
}

/* The message's own descriptors, behind the memfd it may have come in */
static int take_files(struct client *c, struct held *h, const struct ctl_hand_back *head,
		      unsigned int first)
{
	unsigned int i, n = head->fds + head->memfds;

	if (!n)
		return 0;
	h->files = calloc(n, sizeof(*h->files));
	if (!h->files)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		h->files[i] = c->post->fds[first + i];
		c->post->fds[first + i] = -1;
	}
	h->n_files = n;
	h->n_memfds = head->memfds;
	return 0;
}

/* No more than the dead peer's lane had room for (rule 18) */
static bool fits_lane(struct awaited *a, const struct ctl_hand_back *head)
{
	if (head->fds > LANE_FDS_MAX || head->memfds > LANE_FDS_MAX)
		return false;
	a->n_files += head->fds + head->memfds;
	return a->n++ < LANE_FLIGHTS_MAX && a->n_files <= 2 * LANE_FDS_MAX;
}

static int keep(struct client *c, struct awaited *a, const struct ctl_hand_back *head, size_t size)
{
	bool memfd = head->flags & CTL_HAND_BACK_MEMFD;
	size_t held = head->size + (head->fds + head->memfds) * ACCOUNT_FILE_BYTES;
	unsigned int n_fds = memfd + head->fds + head->memfds;
	struct held *h;

	if (!plausible(head) || !fits_lane(a, head) || (!memfd && head->size > size) ||
	    c->post->n_fds > n_fds)
		return -EPROTO;
	/* This process may have had no room for all of them. */
	if (c->post->n_fds < n_fds || account_hold(c->account, held) < 0)
		return 0;
	h = memfd ? held_from_memfd(c->post->fds[0], head->size) :
		    hold(head + 1, head->size, NULL, 0);
	if (!h) {
		account_drop(c->account, held);
		return 0;
	}
	h->held = held;
	h->stamp = head->stamp;
	h->sender = c->conn.id;
	INIT_LIST_HEAD(&h->entry);
	if (take_files(c, h, head, memfd) < 0)
		free_held(c, h);
	else
		insert(&c->held, h);
	return 0;
}

int death_handed_back(struct client *c, const struct ctl_hand_back *head, size_t size)
{
	struct awaited *a;

	if (!c->connected)
		return -EPROTO;
	a = find_awaited(c, head->peer);
	if (!(head->flags & CTL_HAND_BACK_LAST))
		return a ? keep(c, a, head, size) : 0;
	if (!a)
		return 0;
	list_del(&a->entry);
	free(a);
	if (list_empty(&c->awaited))
		death_settle(c);
	return 0;
}
