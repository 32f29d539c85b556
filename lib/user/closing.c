// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The end of lanes: what a peer did not take goes where it belongs (design rules 14, 15;
 * doc/lanes.md).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lane/hooks.h"
#include "user.h"

static void drop_fds(struct lane_back *back)
{
	unsigned int i;

	for (i = 0; back->fds && i < (unsigned int)back->env.fds + back->env.memfds; i++)
		user_drop_fd(back->fds[i]);
	free(back->fds);
}

/*
 * A peer that has closed, alive: what lies beyond its last cursor is relayed, before anything
 * newer.
 */
void closing_resend(struct user *u, struct peer *p)
{
	struct lane_back back;

	while (lane_take_back(&p->channel, &back) == 0) {
		relay_again(u, &back);
		drop_fds(&back);
	}
}

/* Write a message for the daemon into a sealed memfd. */
static int into_memfd(const struct lane_back *back)
{
	int fd = memfd_create("kdbus-hand-back", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t image = back->env.length;
	bool ok;

	if (fd < 0)
		return -errno;
	ok = write(fd, back->body, image) == (ssize_t)image;
	if (ok && back->bulk)
		ok = write(fd, back->bulk, back->env.bulk_size) == (ssize_t)back->env.bulk_size;
	if (ok && libkdbus_memfd_seal(fd) == 0)
		return fd;
	close(fd);
	return -EIO;
}

static void send_head(struct user *u, const struct ctl_hand_back *head, const void *body,
		      size_t size, const int *fds, unsigned int n_fds)
{
	char *data = malloc(sizeof(*head) + size);

	if (!data)
		return;
	memcpy(data, head, sizeof(*head));
	if (size)
		memcpy(data + sizeof(*head), body, size);
	user_send_datagram(u, data, sizeof(*head) + size, fds, n_fds);
	free(data);
}

static void hand_back_one(struct user *u, struct peer *p, const struct lane_back *back)
{
	struct ctl_hand_back head = {
		.version = CTL_VERSION,
		.type = CTL_HAND_BACK,
		.peer = p->id,
		.stamp = back->env.stamp,
		.name_id = back->tag,
		.size = back->env.length + (back->bulk ? back->env.bulk_size : 0),
		.fds = back->env.fds,
		.memfds = back->env.memfds,
	};
	unsigned int n = back->fds ? head.fds + head.memfds : 0;
	int fds[LANE_SOCK_FDS_MAX];

	if (n)
		memcpy(fds + 1, back->fds, n * sizeof(*fds));
	if (!back->bulk && head.size <= CTL_EXTRA_INLINE_MAX) {
		send_head(u, &head, back->body, head.size, fds + 1, n);
		return;
	}
	fds[0] = into_memfd(back);
	if (fds[0] < 0)
		return;
	head.flags = CTL_HAND_BACK_MEMFD;
	send_head(u, &head, NULL, 0, fds, n + 1);
	close(fds[0]);
}

/*
 * The daemon waits for this: it is said even if there is nothing, and if the peer is not known
 * (@p is NULL), for its introduction may have failed here.
 */
void closing_hand_back(struct user *u, u64 id, struct peer *p)
{
	struct ctl_hand_back last = { .version = CTL_VERSION,
				      .type = CTL_HAND_BACK,
				      .peer = id,
				      .flags = CTL_HAND_BACK_LAST };
	struct lane_back back;

	if (p && p->state == PEER_DEAD && p->channel.own) {
		p->channel.hungup = true;
		while (lane_take_back(&p->channel, &back) == 0) {
			if (back.env.type == LANE_REC_MSG)
				hand_back_one(u, p, &back);
			drop_fds(&back);
		}
	}
	send_head(u, &last, NULL, 0, NULL, 0);
}

/* Withdrawn: what the peer has published by now is taken, the rest goes back to it. */
void closing_stop_reading(struct user *u, struct peer *p)
{
	if (!p->looked || !p->channel.own)
		return;
	lane_closing_start(&p->channel);
	user_pump(u, LANE_LOOK_POLL);
	lane_closing_finish(&p->channel);
}

typedef void (*peer_fn)(struct lane_channel *ch);

static void each_direct(struct user *u, peer_fn fn)
{
	struct rb_node *node;
	struct peer *p;

	for (node = rb_first(&u->peers); node; node = rb_next(node)) {
		p = rb_entry(node, struct peer, node);
		if (p->looked && p->channel.own)
			fn(&p->channel);
	}
	list_for_each_entry(p, &u->detached, detached_entry)
		if (p->looked && p->channel.own)
			fn(&p->channel);
}

/*
 * Every lane at once, then one look over all of them (doc/lanes.md): 0, or -EBUSY if it found
 * something.
 */
static int start_closing(struct user *u)
{
	int r;

	each_direct(u, lane_closing_start);
	r = LANE_BROKEN(LANE_NO_LAST_LOOK) ? -EAGAIN : user_pump(u, LANE_LOOK_POLL);
	if (!u->queue.n && r == -EAGAIN)
		return 0;
	each_direct(u, lane_closing_cancel);
	return -EBUSY;
}

static int byebye(struct user *u, void *copy, size_t size)
{
	struct answer a = { 0 };
	int r;

	user_lock(u);
	r = u->queue.n || u->lost ? -EBUSY : start_closing(u);
	user_unlock(u);
	if (r < 0)
		return r;
	r = user_request(u, KDBUS_CMD_BYEBYE, copy, size, NULL, -1, &a);
	if (r == 0)
		r = a.error;
	user_lock(u);
	each_direct(u, r == 0 ? lane_closing_finish : lane_closing_cancel);
	if (r == 0)
		user_disconnect(u);
	user_unlock(u);
	user_answer_clear(&a);
	return r;
}

/*
 * Nobody may send between the first CLOSING and the verdict: what came back from a peer that closes
 * too could no longer be sent again (doc/lanes.md). Senders wait in user_enter_send().
 */
int user_byebye(struct user *u, void *copy, size_t size, void *arg)
{
	int r;

	pthread_mutex_lock(&u->send_lock);
	user_lock(u);
	u->leaving = true;
	user_unlock(u);
	r = byebye(u, copy, size);
	user_lock(u);
	u->leaving = false;
	user_unlock(u);
	pthread_mutex_unlock(&u->send_lock);
	return r;
}

/* With the lock: wait until no BYEBYE is under way. */
void user_enter_send(struct user *u)
{
	while (u->leaving) {
		user_unlock(u);
		pthread_mutex_lock(&u->send_lock);
		pthread_mutex_unlock(&u->send_lock);
		user_lock(u);
	}
}

/* close(): what lies in the lanes goes back to its senders, what is in the pool is lost. */
void closing_all(struct user *u)
{
	each_direct(u, lane_closing_start);
	each_direct(u, lane_closing_finish);
}
