// SPDX-License-Identifier: LGPL-2.1-or-later
/* The wait of a synchronous SEND (ABI 7.8). */
#include <errno.h>
#include <poll.h>

#include "user.h"

/*
 * @peer:	whose lane may bring the outcome, as of when the wait began
 * @since:	in the daemon's lane: what stands before it is older than the call
 * @error:	the reply came and could not be taken
 * @passed:	something was picked from behind something else
 * @stays:	the reply is there, or in the daemon, and can come only in its turn
 */
struct wait {
	struct core_reply *slot;
	struct peer *peer;
	u64 cookie;
	u32 since;
	int error;
	bool passed;
	bool stays;
};

static struct peer *peer_of(const struct core_reply *slot)
{
	return container_of(slot->replier, struct peer, replier);
}

/* Our call moves along with its name (ABI 10.6) before a reply behind this is looked at. */
static void foresee_move(struct user *u, struct wait *w, u32 pos, u64 name_id, u64 from, u64 to)
{
	struct peer *p;

	if ((int32_t)(pos - w->since) < 0 || !name_id || name_id != w->slot->name_id ||
	    from != peer_of(w->slot)->id)
		return;
	p = peer_get(u, to);
	if (p)
		core_reply_retarget_slot(w->slot, &p->replier);
}

static void foresee_moved(struct user *u, struct wait *w, u32 pos, const struct lane_env *env)
{
	struct ctl_moved moved;

	if (env->length != sizeof(moved))
		return;
	lane_copy_body(&u->daemon.channel, pos, env, &moved);
	foresee_move(u, w, pos, moved.name_id, moved.from, moved.to);
}

static void foresee_ahead(struct user *u, struct wait *w, u32 pos, const struct lane_env *env)
{
	struct ctl_ahead ahead;

	if (env->length != sizeof(ahead))
		return;
	lane_copy_body(&u->daemon.channel, pos, env, &ahead);
	if (ahead.to)
		foresee_move(u, w, pos, ahead.name_id, ahead.from, ahead.to);
	else if (ahead.cookie)
		w->stays |= ahead.cookie == w->cookie && (int32_t)(pos - w->since) >= 0 &&
			    ahead.from == peer_of(w->slot)->id;
}

/* It ends a call, and must not end another of that number when its turn comes: it is picked. */
static void foresee_refusal(struct user *u, struct wait *w, struct peer *p, u32 pos,
			    const struct lane_env *env)
{
	struct ctl_refused refused;

	if (env->length != sizeof(refused))
		return;
	lane_copy_body(&p->channel, pos, env, &refused);
	if (!user_refuses_sync(u, p->id, &refused))
		return;
	w->passed |= pos != p->channel.read;
	if (peer_own_lane(u, p) < 0 || lane_pluck(&p->channel, pos, env, &refused) < 0)
		return;
	lane_consume(&p->channel);
	user_take_refused(u, p->id, &refused);
}

/*
 * What decides a synchronous call must not wait behind a message for which the pool has no room
 * (doc/lanes.md): it is acted upon ahead of its turn, in the order of the lane.
 */
static void foresee(struct user *u, struct wait *w, struct peer *p, u32 pos,
		    const struct lane_env *env)
{
	if (env->type == CTL_REC_REFUSED)
		foresee_refusal(u, w, p, pos, env);
	if (p != &u->daemon)
		return;
	if (env->type == CTL_REC_MOVED)
		foresee_moved(u, w, pos, env);
	else if (env->type == CTL_REC_AHEAD)
		foresee_ahead(u, w, pos, env);
	if (env->type == LANE_REC_INTRO)
		peer_foresee_intro(u, pos, env);
	else
		peer_foresee_gone(u, pos, env);
}

/*
 * A reply for which there is no room is an outcome. A malformed one is none: it costs its sender
 * the channel, and the daemon will say what becomes of it.
 */
static void pick_reply(struct user *u, struct peer *p, struct wait *w, const struct lane_env *env,
		       u32 pos, bool *ret_look)
{
	int r = user_pick(u, p, env, pos);

	if (r == -ENOBUFS) {
		w->stays = true;
		*ret_look = true;
	} else if (r == -EXFULL || r == -ENOMEM) {
		w->error = r;
	} else if (r < 0) {
		lane_look_break(&u->look, &p->source);
		peer_over(u, p);
	}
}

/* Pick our reply out of a lane; anything else that concerns calls asks for a proper look. */
static void scan(struct user *u, struct peer *p, struct wait *w, bool *ret_look)
{
	struct lane_channel *ch = &p->channel;
	struct lane_env env;
	u32 limit, pos = ch->read, n = 0;

	if (!p->looked || lane_snapshot(ch, &limit) < 0)
		return;
	*ret_look |= limit - ch->read > ch->peer_ring / CROWDED_RING;
	while (lane_scan(ch, limit, &pos, &env) == 0) {
		if (env.type == LANE_REC_MSG && env.flags & LANE_F_REPLY &&
		    env.subject == w->cookie) {
			w->passed |= pos != ch->read;
			pick_reply(u, p, w, &env, pos, ret_look);
			return;
		}
		n += 1 + env.fds + env.memfds + (env.bulk ? CROWDED_BULK : 0);
		*ret_look |= n > CROWDED_RECORDS;
		/* Also what another thread waits for: it may sleep. */
		if (env.type != LANE_REC_MSG || env.flags & LANE_F_REPLY)
			*ret_look = true;
		foresee(u, w, p, pos, &env);
		if (core_reply_settled(w->slot))
			return;
		lane_scan_next(&pos, &env);
	}
	/* It has stopped reading: what it did not take is to be relayed (rule 15). */
	*ret_look |= ch->closed_rung && !p->source.told_closed;
}

/* @over: the peer's end was known before its lane is looked at, which is then final (rule 14). */
static void scan_peer(struct user *u, struct peer *p, struct wait *w, bool over, bool *ret_look)
{
	/* It may have passed its lane before it ended. */
	if (over && p->looked && !p->channel.peer) {
		lane_drain(&p->channel);
		lane_look_touch(&u->look, &p->source);
	}
	scan(u, p, w, ret_look);
	if (!over || w->error || w->stays || core_reply_settled(w->slot))
		return;
	core_reply_kill(w->slot, -EPIPE);
}

static bool settled(struct user *u, void *arg)
{
	struct wait *w = arg;
	bool look = false;
	struct peer *p;
	int r;

	if (u->dead || core_reply_settled(w->slot))
		return true;
	w->stays = peer_of(w->slot)->reply_waits == w->cookie;
	scan(u, &u->daemon, w, &look);
	p = peer_of(w->slot);
	if (!core_reply_settled(w->slot) && p != &u->daemon)
		scan_peer(u, p, w, p->over, &look);
	if (look && !core_reply_settled(w->slot)) {
		r = user_pump(u, LANE_LOOK_POLL);
		/* It cannot come before the program has freed memory. */
		p = peer_of(w->slot);
		if (r == -EXFULL && (w->stays || relay_jammed(&p->channel)))
			w->error = r;
	}
	/* Another lane to wait for is a reason to come back, too. */
	return u->dead || w->error || core_reply_settled(w->slot) || peer_of(w->slot) != w->peer;
}

static bool cancelled(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

static int wait_reply(struct user *u, struct outgoing *out, struct wait *w)
{
	bool slept = false;
	int r;

	for (;; slept = true) {
		settled(u, w);
		if (u->dead || w->error || core_reply_settled(w->slot))
			break;
		if (cancelled(out->cancel_fd))
			return -ECANCELED;
		/* No sleep is longer than that. */
		if (slept && user_now() >= out->deadline)
			return -ETIMEDOUT;
		w->peer = peer_of(w->slot);
		r = user_sleep(u, w->peer, settled, w, out->deadline, out->cancel_fd);
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
	struct wait w = { .slot = slot, .cookie = slot->cookie, .since = out->since };
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
