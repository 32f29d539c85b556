// SPDX-License-Identifier: LGPL-2.1-or-later
/* Peers that move, end, or take back what they let us do. */
#include <errno.h>

#include "user.h"

/* The daemon knows of no introduction: what the other side did not take is simply sent again. */
static void drop_withdrawn(struct user *u, struct peer *p)
{
	closing_resend(u, p);
	peer_drop_channel(u, p);
}

void peer_moved(struct user *u, const struct ctl_moved *moved)
{
	struct peer *from = peer_find(u, moved->from), *to;

	if (!from || !moved->name_id)
		return;
	from->held++;
	to = peer_get(u, moved->to);
	if (to)
		core_reply_retarget(&from->replier, &to->replier, moved->name_id);
	from->held--;
}

static void kill_calls(struct user *u, struct peer *p)
{
	struct core_reply *slot;
	u64 cookie;

	while ((slot = core_replier_first(&p->replier))) {
		cookie = slot->cookie;
		if (core_reply_kill(slot, -EPIPE) == CORE_REPLY_DEAD)
			user_notify_reply(u, KDBUS_ITEM_REPLY_DEAD, cookie);
	}
	user_wake_waiters(u);
	user_update_events(u);
}

/* By agreement: we stop writing, and read on until the other side stops too. */
static void end_writing(struct user *u, struct peer *p)
{
	if (!p->channel.own || p->channel.end_sent || p->channel.broken)
		return;
	if (lane_end(&p->channel, lane_clock_stamp(&u->clock, &lane_linux_ops)) == 0)
		lane_ring(&p->channel);
}

static void hand_back(struct user *u, u64 id, struct peer *p)
{
	if (p && p->handed_back)
		return;
	if (p && peer_has_channel(p))
		p->state = PEER_DEAD;
	if (!p) {
		closing_hand_back(u, id, NULL);
		return;
	}
	p->handed_back = true;
	/* The socket may be full: another thread may go on to forget the peer meanwhile. */
	p->held++;
	closing_hand_back(u, id, p);
	peer_put(u, p);
}

/* Its introduction may stand in front of the news of its end, not taken up either. */
static void foresee_end(struct user *u, u64 id)
{
	struct peer *p = peer_get(u, id);

	if (!p || p->over)
		return;
	p->over = true;
	user_wake_waiters(u);
	hand_back(u, p->id, p);
}

/*
 * The daemon takes nothing from us until we have handed back, so whoever waits for the daemon has
 * to do that although it is not the record's turn yet (and may not be before this thread has freed
 * memory). It concerns only what we have sent.
 */
void peer_foresee_gone(struct user *u, u32 pos, const struct lane_env *env)
{
	struct ctl_ahead ahead;
	struct ctl_gone gone;

	if (env->type == LANE_REC_GONE && env->length == sizeof(gone)) {
		lane_copy_body(&u->daemon.channel, pos, env, &gone);
		if (gone.reason == CTL_GONE_DEAD)
			foresee_end(u, gone.peer);
	} else if (env->type == CTL_REC_AHEAD && env->length == sizeof(ahead)) {
		lane_copy_body(&u->daemon.channel, pos, env, &ahead);
		if (!ahead.to && !ahead.cookie)
			foresee_end(u, ahead.from);
	}
}

/* The same when its turn has come; that of the record it stands for has not. */
void peer_ahead(struct user *u, const struct ctl_ahead *ahead)
{
	struct peer *from = peer_find(u, ahead->from), *to;
	struct core_reply *slot, *next;

	if (!ahead->to && !ahead->cookie)
		foresee_end(u, ahead->from);
	else if (!ahead->to && from)
		from->reply_waits = ahead->cookie;
	if (!ahead->to)
		return;
	to = from && ahead->name_id ? peer_get(u, ahead->to) : NULL;
	from = to ? peer_find(u, ahead->from) : NULL;
	if (!from)
		return;
	list_for_each_entry_safe(slot, next, &from->replier.owed, owed)
		if (slot->sync && slot->name_id == ahead->name_id)
			core_reply_retarget_slot(slot, &to->replier);
	user_wake_waiters(u);
}

/* The same for all of the daemon's lane. */
void peer_scan_gone(struct user *u)
{
	struct lane_channel *ch = &u->daemon.channel;
	struct lane_env env;
	u32 limit, pos = ch->read;

	if (!u->connected || lane_snapshot(ch, &limit) < 0)
		return;
	while (lane_scan(ch, limit, &pos, &env) == 0) {
		peer_foresee_gone(u, pos, &env);
		lane_scan_next(&pos, &env);
	}
}

static void withdrawn(struct user *u, struct peer *p)
{
	p->intro &= ~(u64)(CTL_INTRO_OUT_MESSAGES | CTL_INTRO_IN_MESSAGES);
	if (p->state == PEER_DIRECT)
		p->state = PEER_ENDING;
	p->withdrawn = peer_has_channel(p);
	/* Without a lane of our own we have taken nothing: it comes back when we hang up. */
	if (p->looked && !p->channel.own) {
		drop_withdrawn(u, p);
		return;
	}
	/* The look in it may bring the news of its death, and it is forgotten then. */
	p->held++;
	closing_stop_reading(u, p);
	end_writing(u, p);
	if (p->state == PEER_DEAD && !p->looked && (p->detached || peer_find(u, p->id) == p))
		drop_withdrawn(u, p);
	peer_put(u, p);
}

static void died(struct user *u, struct peer *p)
{
	struct peer *old;

	/* Of earlier channels nobody knows but us: what is left in them is simply sent again. */
	while ((old = idle_find(u, p->id, 0))) {
		old->channel.hungup = true;
		drop_withdrawn(u, old);
	}
	p->intro &= ~(u64)CTL_INTRO_OUT_MESSAGES;
	hand_back(u, p->id, p);
	owed_forget(u, p->id);
	kill_calls(u, p);
	peer_retire(u, p);
}

void peer_gone(struct user *u, const struct ctl_gone *gone)
{
	struct peer *p = peer_find(u, gone->peer);

	if (gone->reason == CTL_GONE_WITHDRAWN) {
		if (!p || p->number != gone->number)
			p = idle_find(u, gone->peer, gone->number);
		if (p)
			withdrawn(u, p);
	} else if (p) {
		died(u, p);
	} else if (gone->reason == CTL_GONE_DEAD) {
		hand_back(u, gone->peer, NULL);
	}
}

/* Both lanes are over: the channel goes, and the daemon may introduce the two again. */
static void let_go(struct user *u, struct peer *p)
{
	if (!p->withdrawn)
		idle_tell(u, p);
	peer_drop_channel(u, p);
}

/* It reads no more, but is alive: what it did not take is relayed, and we are done writing. */
void peer_closed(struct user *u, struct peer *p)
{
	if (p == &u->daemon)
		return;
	p->stuck = false;
	if (p->state == PEER_DIRECT)
		p->state = PEER_ENDING;
	p->held++;
	closing_resend(u, p);
	if (p->state == PEER_ENDING) {
		end_writing(u, p);
		if (lane_over(&p->channel))
			let_go(u, p);
	}
	peer_put(u, p);
}

/*
 * A peer that did not finish closing in time: the message in its lane may be taken or come back,
 * so nothing newer may pass it on any way (doc/lanes.md, the bound).
 */
int peer_unstick(struct user *u, struct peer *p)
{
	int r;

	if (!p->stuck)
		return 0;
	r = lane_closing_wait(&p->channel, user_now());
	if (p->looked)
		lane_look_touch(&u->look, &p->source);
	if (r == -ETIMEDOUT)
		return -ENOBUFS;
	p->stuck = false;
	if (r != 0)
		peer_closed(u, p);
	return 0;
}

/* Nothing comes from this lane any more: the end was agreed on, or the peer hung up or broke it. */
void peer_over(struct user *u, struct peer *p)
{
	if (p == &u->daemon) {
		user_disconnect(u);
		return;
	}
	if (p->channel.broken || p->channel.hungup) {
		/* The daemon will say whether it is dead; until then nothing goes either way. */
		p->state = PEER_DEAD;
		peer_leave_look(u, p);
		p->held++;
		if (p->withdrawn || idle_agreed(p))
			drop_withdrawn(u, p);
		peer_put(u, p);
		return;
	}
	peer_end(u, p);
}

/* We write no more; the channel goes when the other side does not either. */
void peer_end(struct user *u, struct peer *p)
{
	p->state = PEER_ENDING;
	end_writing(u, p);
	if (!lane_over(&p->channel))
		return;
	p->held++;
	closing_resend(u, p);
	if (p->state == PEER_ENDING)
		let_go(u, p);
	peer_put(u, p);
}
