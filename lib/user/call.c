// SPDX-License-Identifier: LGPL-2.1-or-later
/* The wait of a synchronous SEND (ABI 7.8). */
#include <errno.h>
#include <poll.h>

#include "user.h"

struct wait {
	struct core_reply *slot;
	u64 cookie;
	int error; /* a reply that could not be taken */
	bool passed; /* the reply was picked from behind something else */
};

static struct peer *peer_of(const struct core_reply *slot)
{
	return container_of(slot->replier, struct peer, replier);
}

/* Pick our reply out of a lane; anything else that concerns calls asks for a proper look. */
static void scan(struct user *u, struct peer *p, struct wait *w, bool *ret_look)
{
	struct lane_channel *ch = &p->channel;
	struct lane_env env;
	u32 limit, pos = ch->read, n = 0;
	int r;

	if (!p->looked || lane_snapshot(ch, &limit) < 0)
		return;
	*ret_look |= limit - ch->read > ch->peer_ring / CROWDED_RING;
	while (lane_scan(ch, limit, &pos, &env) == 0) {
		if (env.type == LANE_REC_MSG && env.flags & LANE_F_REPLY &&
		    env.subject == w->cookie) {
			w->passed |= pos != ch->read;
			r = user_pick(u, p, &env, pos);
			*ret_look |= r == -ENOBUFS;
			w->error = r < 0 && r != -ENOBUFS ? r : 0;
			return;
		}
		n += 1 + env.fds + env.memfds;
		*ret_look |= n > CROWDED_RECORDS;
		/* Also what another thread waits for: it may sleep. */
		if (env.type != LANE_REC_MSG || env.flags & LANE_F_REPLY)
			*ret_look = true;
		if (p == &u->daemon)
			peer_foresee_gone(u, pos, &env);
		lane_scan_next(&pos, &env);
	}
}

static bool settled(struct user *u, void *arg)
{
	struct wait *w = arg;
	bool look = false;

	if (u->dead || core_reply_settled(w->slot))
		return true;
	scan(u, &u->daemon, w, &look);
	if (!core_reply_settled(w->slot) && w->slot->replier != &u->daemon.replier)
		scan(u, peer_of(w->slot), w, &look);
	if (look && !core_reply_settled(w->slot))
		user_pump(u, LANE_LOOK_POLL);
	return u->dead || w->error || core_reply_settled(w->slot);
}

static bool cancelled(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

static int wait_reply(struct user *u, struct outgoing *out, struct wait *w)
{
	struct peer *p;
	int r;

	for (;;) {
		if (settled(u, w))
			break;
		if (cancelled(out->cancel_fd))
			return -ECANCELED;
		if (user_now() >= out->deadline)
			return -ETIMEDOUT;
		p = peer_of(w->slot);
		r = user_sleep(u, p, settled, w, out->deadline, out->cancel_fd);
		if (r < 0 && r != -ECANCELED)
			return r;
	}
	if (core_reply_settled(w->slot))
		return 0;
	return u->dead ? -ECONNRESET : w->error;
}

static int collect(struct user *u, struct core_reply *slot, struct kdbus_msg_info *ret)
{
	struct message *m;
	void *answer = NULL;
	int r = core_reply_collect(slot, &answer);

	m = answer;
	if (!m)
		return r < 0 ? r : -EPIPE;
	*ret = (struct kdbus_msg_info){ .offset = m->slice->offset, .msg_size = m->size };
	ret->return_flags = message_install_fds(u, m, u->conn_flags & KDBUS_HELLO_ACCEPT_FD);
	message_publish(u, m);
	return 0;
}

/*
 * Called with the lock. One outcome: what has settled by the last look wins over all but a signal.
 */
int call_wait(struct user *u, struct outgoing *out, struct core_reply *slot,
	      struct kdbus_msg_info *ret)
{
	struct wait w = { .slot = slot, .cookie = slot->cookie };
	void *answer = NULL;
	int r = wait_reply(u, out, &w);

	direct_release_fds(u);
	if (r == -EINTR) {
		core_reply_interrupt(slot);
		user_update_events(u);
		return r;
	}
	/* What was passed over keeps the room of the reply in the lane: into the pool with it. */
	if (w.passed)
		user_pump(u, LANE_LOOK_POLL);
	if (core_reply_settled(slot))
		return collect(u, slot, ret);
	core_reply_close(slot, &answer);
	message_discard(u, answer);
	return r;
}
