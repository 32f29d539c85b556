// SPDX-License-Identifier: LGPL-2.1-or-later
/* Taking up records: what the lanes bring, besides messages, and what follows from it. */
#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>

#include "lane/hooks.h"
#include "user.h"

static int take_from_look(struct user *u, struct peer *p, void *body, void *arg)
{
	const struct lane_event *ev = arg;
	int r = lane_look_take(&u->look, ev, body);

	if (r != -ENOLINK)
		return r;
	r = peer_own_lane(u, p);
	return r < 0 ? r : lane_look_take(&u->look, ev, body);
}

union small_body {
	struct ctl_verdict verdict;
	struct ctl_lost lost;
	struct ctl_no_intro no_intro;
	struct ctl_moved moved;
	struct ctl_refused refused;
	struct ctl_gone gone;
	struct ctl_waiting waiting;
	struct ctl_ahead ahead;
};

/* Before anything behind the verdict is taken up, which may be the reply. */
static void open_slot(struct user *u, struct verdict *v)
{
	struct peer *p = peer_get(u, v->said.dst_id);

	v->call->name_id = v->said.name_id;
	if (p)
		p->reply_waits = 0;
	if (!p || core_reply_open(&u->requester, &p->replier, v->call, &v->slot) < 0)
		v->said.error = -ENOMEM;
}

/* @end: of its record in the daemon's lane */
void user_take_verdict(struct user *u, const struct ctl_verdict *said, u32 end)
{
	struct verdict *v = u->verdict;

	if (!v || v->done || v->tag != said->tag)
		return;
	v->said = *said;
	v->end = end;
	v->done = true;
	if (v->call && said->error == 0)
		open_slot(u, v);
	user_wake_waiters(u);
}

static int refused_error(const struct ctl_refused *refused)
{
	switch (refused->error) {
	case EREMOTEIO:
	case ENOBUFS:
	case EXFULL:
	case EMFILE:
	case ENOMEM:
		return -refused->error;
	default:
		return -EPIPE;
	}
}

/* The call that is refused, by a peer or, if @from is 0, through the daemon. */
static struct core_reply *refused_slot(struct user *u, u64 from, const struct ctl_refused *refused)
{
	struct peer *p = peer_find(u, from ? from : refused->peer);

	return p ? core_reply_find(&u->requester, &p->replier, refused->cookie) : NULL;
}

bool user_refuses_sync(struct user *u, u64 from, const struct ctl_refused *refused)
{
	const struct core_reply *slot = refused_slot(u, from, refused);

	return slot && slot->sync;
}

void user_take_refused(struct user *u, u64 from, const struct ctl_refused *refused)
{
	struct core_reply *slot = refused_slot(u, from, refused);
	int error = refused_error(refused);
	enum core_reply_event event;

	/* A call that nobody waits for in SEND runs into its timeout. */
	if (!slot || (error != -EPIPE && !slot->sync))
		return;
	event = core_reply_kill(slot, error);
	if (event == CORE_REPLY_DEAD)
		user_notify_reply(u, KDBUS_ITEM_REPLY_DEAD, refused->cookie);
	user_wake_waiters(u);
}

static int small_record(struct user *u, struct peer *p, const struct lane_env *env,
			const union small_body *body)
{
	switch (env->type) {
	case CTL_REC_VERDICT:
		user_take_verdict(u, &body->verdict, p->channel.read);
		return 0;
	case CTL_REC_LOST:
		u->lost += body->lost.count;
		user_update_events(u);
		return 0;
	case CTL_REC_NO_INTRO:
		peer_not_introduced(u, &body->no_intro);
		return 0;
	case CTL_REC_MOVED:
		peer_moved(u, &body->moved);
		return 0;
	case CTL_REC_WAITING:
		u->waiting = body->waiting.messages;
		user_update_events(u);
		return 0;
	case CTL_REC_REFUSED:
		user_take_refused(u, p->id, &body->refused);
		return 0;
	case CTL_REC_AHEAD:
		peer_ahead(u, &body->ahead);
		return 0;
	case LANE_REC_GONE:
		peer_gone(u, &body->gone);
		return 0;
	default:
		return -EPROTO;
	}
}

static size_t small_size(u16 type)
{
	switch (type) {
	case CTL_REC_VERDICT:
		return sizeof(struct ctl_verdict);
	case CTL_REC_LOST:
		return sizeof(struct ctl_lost);
	case CTL_REC_NO_INTRO:
		return sizeof(struct ctl_no_intro);
	case CTL_REC_MOVED:
		return sizeof(struct ctl_moved);
	case CTL_REC_WAITING:
		return sizeof(struct ctl_waiting);
	case CTL_REC_REFUSED:
		return sizeof(struct ctl_refused);
	case CTL_REC_AHEAD:
		return sizeof(struct ctl_ahead);
	case LANE_REC_GONE:
		return sizeof(struct ctl_gone);
	default:
		return 0;
	}
}

/* Metadata of peers and introductions: of any size, handled from a copy. */
static int long_record(struct user *u, struct peer *p, const struct lane_event *ev)
{
	void *body;
	int r = 0;

	body = malloc(ev->rec.length + 8);
	if (!body)
		return -ENOMEM;
	r = take_from_look(u, p, body, (void *)ev);
	if (r == 0 && ev->rec.type == CTL_REC_PEER)
		r = peer_new_meta(u, body, ev->rec.length);
	/* Usually taken up ahead of its turn; there may have been no memory for that. */
	if (r == 0 && ev->rec.type == LANE_REC_INTRO)
		peer_taken_up(&u->look, &ev->rec, ev->stamp, body);
	free(body);
	return r;
}

static int control_record(struct user *u, struct peer *p, const struct lane_event *ev)
{
	size_t size = small_size(ev->rec.type);
	union small_body body;
	int r;

	if (!peer_is_daemon(u, p) && ev->rec.type != CTL_REC_REFUSED)
		return -EPROTO;
	if (ev->rec.type == CTL_REC_PEER || ev->rec.type == LANE_REC_INTRO)
		return long_record(u, p, ev);
	if (!size || ev->rec.length != size)
		return -EPROTO;
	r = take_from_look(u, p, &body, (void *)ev);
	return r < 0 ? r : small_record(u, p, &ev->rec, &body);
}

static int take_event(struct user *u, struct lane_event *ev)
{
	struct peer *p = ev->src->user;
	int r;

	if (ev->type == LANE_EV_ASKED) {
		idle_asked(u, p);
		return 0;
	}
	if (ev->type == LANE_EV_CLOSED) {
		peer_closed(u, p);
		return 0;
	}
	if (ev->type != LANE_EV_RECORD) {
		peer_over(u, p);
		return 0;
	}
	if (ev->rec.type == LANE_REC_MSG)
		r = user_take_record(u, p, &ev->rec, ev->stamp, take_from_look, ev);
	else
		r = control_record(u, p, ev);
	if (r == 0 || r == -EXFULL || r == -ENOMEM)
		return r;
	lane_look_break(&u->look, ev->src);
	peer_over(u, p);
	return 0;
}

static int pump(struct user *u, int mode, bool one)
{
	struct lane_event ev;
	int r;

	if (LANE_BROKEN(LANE_SKIP_FULL))
		lane_look_skip(&u->look, NULL);
	while (!u->dead) {
		if (one && u->queue.n)
			return 0;
		r = lane_look_next(&u->look, mode, &ev);
		if (r == 0)
			r = take_event(u, &ev);
		if (r == -EXFULL && LANE_BROKEN(LANE_SKIP_FULL)) {
			lane_look_skip(&u->look, ev.src);
			continue;
		}
		if (r < 0)
			return r;
	}
	return -ECONNRESET;
}

/* Take up everything there is: -EAGAIN: nothing is left; or -EXFULL, -ENOMEM. */
int user_pump(struct user *u, int mode)
{
	return pump(u, mode, false);
}

/* The same until there is a message to be received: then 0. */
int user_pump_one(struct user *u, int mode)
{
	return pump(u, mode, true);
}

/* A notification the library owes the application: the bus itself would say the same (ABI 12). */
void user_notify_reply(struct user *u, u64 type, u64 cookie)
{
	struct core_notice notice = { .type = type,
				      .dst_id = u->identity.id,
				      .cookie_reply = cookie };
	struct kdbus_timestamp stamp = { .monotonic_ns = user_now() };
	size_t size = core_notice_size(&notice);
	struct message *m;
	int r;

	m = message_new(u, size, &r);
	if (!m) {
		u->lost++;
		user_update_events(u);
		return;
	}
	core_notice_write(&notice, &stamp, u->memory + m->slice->offset, size);
	m->size = size;
	core_queue_push(&u->queue, &m->entry, 0);
	user_update_events(u);
}

static void arm_timer(struct user *u)
{
	u64 at = core_deadlines_next(&u->deadlines);
	struct itimerspec when = { 0 };

	if (at == u->timer_at)
		return;
	u->timer_at = at;
	if (at != U64_MAX) {
		when.it_value.tv_sec = (time_t)(at / 1000000000ULL);
		when.it_value.tv_nsec = (long)(at % 1000000000ULL) + (at == 0);
	}
	timerfd_settime(u->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* The part of the descriptor's state that is not in the lanes: what is in the pool already. */
void user_update_events(struct user *u)
{
	bool want = u->queue.n || u->lost || u->waiting || u->dead;

	if (!u->connected || u->quiet)
		return;
	arm_timer(u);
	if (want == u->own_event_set)
		return;
	u->own_event_set = want;
	if (want)
		lane_linux_ops.bell_set(&lane_linux_ops, u->own_event);
	else
		lane_linux_ops.bell_clear(&lane_linux_ops, u->own_event);
}

/* Nothing is late before a last look (design rule 9): callers pump first. */
void user_expire(struct user *u)
{
	struct core_reply *slot;
	void *answer;
	u64 cookie;

	while (core_deadlines_next(&u->deadlines) != U64_MAX &&
	       (slot = core_deadlines_expired(&u->deadlines, user_now()))) {
		cookie = slot->cookie;
		answer = NULL;
		if (core_reply_expire(slot, &answer) == CORE_REPLY_TIMEOUT)
			user_notify_reply(u, KDBUS_ITEM_REPLY_TIMEOUT, cookie);
		message_discard(u, answer);
	}
	user_update_events(u);
}
