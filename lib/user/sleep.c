// SPDX-License-Identifier: LGPL-2.1-or-later
/* Waiting with the handle's lock: spin, short futex sleep, then ppoll without the lock. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "user.h"

struct watch {
	struct user *u;
	user_ready_fn ready;
	void *arg;
};

/* How long to sleep where nobody can ring: without memory or descriptors for a lane */
#define UNRUNG_NS 10000000ULL

#define WATCH_READY    1
#define WATCH_GIVE_WAY 2

static int watch_ready(void *arg)
{
	struct watch *w = arg;

	if (atomic_load_explicit(&w->u->contenders, memory_order_relaxed))
		return WATCH_GIVE_WAY;
	return w->ready(w->u, w->arg) ? WATCH_READY : 0;
}

/* Somebody wants the lock: let go of it long enough for him to get it. */
static void give_way(struct user *u)
{
	user_unlock(u);
	while (atomic_load(&u->contenders))
		poll(NULL, 0, 0);
	user_lock(u);
}

/*
 * Does every handler of this process want system calls to be restarted? Which signal it was cannot
 * be known, so one that does not is enough to stop.
 */
static bool restarts(void)
{
	struct sigaction sa;
	int i;

	for (i = 1; i < NSIG; i++) {
		if (sigaction(i, NULL, &sa) < 0)
			continue;
		if (sa.sa_handler == SIG_DFL || sa.sa_handler == SIG_IGN)
			continue;
		if (!(sa.sa_flags & SA_RESTART))
			return false;
	}
	return true;
}

static const struct timespec *left_until(u64 deadline, struct timespec *ts)
{
	u64 now, left;

	if (deadline == U64_MAX)
		return NULL;
	now = user_now();
	left = deadline > now ? deadline - now : 0;
	ts->tv_sec = (time_t)(left / 1000000000ULL);
	ts->tv_nsec = (long)(left % 1000000000ULL);
	return ts;
}

static int sleep_in_poll(struct user *u, struct peer *also, u64 deadline, int cancel_fd)
{
	struct waiter w;
	struct timespec ts;
	struct pollfd p[4] = { { .fd = u->daemon.channel.sock, .events = POLLIN },
			       { .fd = also && !also->channel.hungup ? also->channel.sock : -1,
				 .events = POLLIN },
			       { .fd = cancel_fd, .events = POLLIN } };
	int r;

	user_waiter_init(u, &w);
	user_waiter_watch(&w, &u->daemon.channel, false);
	if (also)
		user_waiter_watch(&w, &also->channel, false);
	p[3] = (struct pollfd){ .fd = w.eventfd, .events = POLLIN };
	user_unlock(u);
	r = ppoll(p, 4, left_until(deadline, &ts), NULL) < 0 ? -errno : 0;
	user_lock(u);
	user_waiter_done(u, &w);
	if (r == -EINTR && restarts())
		r = 0;
	if (r == 0 && cancel_fd >= 0 && p[2].revents)
		r = -ECANCELED;
	return r;
}

static void touch(struct user *u, struct peer *p)
{
	if (p && p->looked)
		lane_look_touch(&u->look, &p->source);
}

/*
 * Armed, and its doorbell not used up: others may sleep on that number, so it is good for one more.
 */
static void drain_and_arm(struct lane_channel *ch)
{
	lane_drain(ch);
	if (!lane_armed(ch) || ch->bell_rung || lane_rung_out(ch))
		lane_arm(ch);
}

/*
 * A peer that introduced itself rings once, for the first record; whoever passes that over needs a
 * lane of his own to be rung again. False if there is none to be had now.
 */
static bool can_be_rung(struct user *u, struct peer *p)
{
	lane_drain(&p->channel);
	return !lane_rung_out(&p->channel) || peer_own_lane(u, p) == 0;
}

/*
 * Rule 7 of the design: drain, arm, fence, look; then it is safe to sleep, but not beyond
 * @deadline.
 */
static bool arm_and_look(struct user *u, struct peer *also, user_ready_fn ready, void *arg,
			 u64 *deadline)
{
	drain_and_arm(&u->daemon.channel);
	if (also && !can_be_rung(u, also))
		*deadline = min(*deadline, user_now() + UNRUNG_NS);
	if (also)
		drain_and_arm(&also->channel);
	return ready(u, arg);
}

/* The lane of @p, if it has one that may bring what is waited for. */
static struct peer *lane_of(struct peer *p)
{
	return p && p->looked ? p : NULL;
}

/*
 * The daemon, and peers of equal authority, may write the word that we sleep on. For one lane its
 * own will do.
 */
static void give_alarm(struct user *u, struct lane_channel *const *chs, unsigned int n)
{
	unsigned int i;

	if (n < 2 || u->no_alarm)
		return;
	for (i = 0; i < n; i++) {
		if (chs[i]->alarm || !(chs[i]->flags & LANE_ALARMS))
			continue;
		u->no_alarm = !u->alarm.word && lane_alarm_make(&u->alarm) < 0;
		if (u->no_alarm)
			return;
		atomic_store(&u->alarm_word, u->alarm.word);
		lane_alarm_give(chs[i], &u->alarm);
	}
}

/* With the lock, which who wants it gets by waking us. */
static int wait_for_lanes(struct user *u, struct lane_channel *const *chs, unsigned int n,
			  lane_ready_fn ready, void *arg, u64 deadline)
{
	int r;

	give_alarm(u, chs, n);
	atomic_store(&u->sleeping_on, &u->daemon.channel.peer->bell);
	r = lane_wait(&u->spin, &lane_linux_ops, chs, n, ready, arg, deadline);
	atomic_store(&u->sleeping_on, NULL);
	return r;
}

static int sleep_once(struct user *u, struct peer *p, struct watch *w, u64 deadline, int cancel_fd)
{
	struct peer *also = lane_of(p);
	struct lane_channel *chs[2] = { &u->daemon.channel, also ? &also->channel : NULL };
	int r = 0;

	/*
	 * They stop saying that they are armed, so looks have to look at them: before, for looks
	 * taken while waiting, and after. Where others sleep on a number already, spinning would
	 * only wake them.
	 */
	touch(u, &u->daemon);
	touch(u, also);
	if (!user_others_read(u))
		r = wait_for_lanes(u, chs, also ? 2 : 1, watch_ready, w, deadline);
	if (r == WATCH_GIVE_WAY) {
		give_way(u);
		return 0;
	}
	if (r == -EINTR)
		return restarts() ? 0 : r;
	if (r != 0 || u->dead)
		return r < 0 ? r : 0;
	/* An introduction that came meanwhile brought another lane to wait for. */
	if (!arm_and_look(u, also, w->ready, w->arg, &deadline) && lane_of(p) == also)
		r = sleep_in_poll(u, also, deadline, cancel_fd);
	if (!user_others_read(u)) {
		lane_unarm(&u->daemon.channel);
		if (lane_of(p) == also && also)
			lane_unarm(&also->channel);
	}
	touch(u, &u->daemon);
	touch(u, lane_of(p));
	return r;
}

/*
 * Until @ready, a deadline, a cancel or a signal. 0: look again, something may have happened.
 * @p: a peer whose lane may bring it, or NULL.
 */
int user_sleep(struct user *u, struct peer *p, user_ready_fn ready, void *arg, u64 deadline,
	       int cancel_fd)
{
	struct watch w = { .u = u, .ready = ready, .arg = arg };
	int r;

	if (u->dead)
		return 0;
	if (p)
		p->held++;
	r = sleep_once(u, p, &w, deadline, cancel_fd);
	if (p)
		peer_put(u, p);
	return r;
}

/* ---- libkdbus_wait() ---- */

/* With more lanes than this, sleeping on all their words costs more than it saves. */
#define WAIT_LANES_MAX 8

struct lanes {
	struct user *u;
	struct lane_channel *chs[WAIT_LANES_MAX + 1];
	unsigned int n;
};

static int lanes_ready(void *arg)
{
	const struct lanes *l = arg;
	unsigned int i;

	if (atomic_load_explicit(&l->u->contenders, memory_order_relaxed))
		return WATCH_GIVE_WAY;
	for (i = 0; i < l->n; i++)
		if (lane_news(l->chs[i]))
			return WATCH_READY;
	return 0;
}

/* False: they are too many. */
static bool all_lanes(struct user *u, struct lanes *ret)
{
	struct peer *p;

	if (u->n_looked > WAIT_LANES_MAX)
		return false;
	*ret = (struct lanes){ .u = u, .chs = { &u->daemon.channel }, .n = 1 };
	list_for_each_entry(p, &u->looked, looked_entry)
		ret->chs[ret->n++] = &p->channel;
	return true;
}

static void touch_all(struct user *u)
{
	struct peer *p;

	touch(u, &u->daemon);
	list_for_each_entry(p, &u->looked, looked_entry)
		touch(u, p);
}

/* Spin and sleep on the words of all lanes. 0: nothing came that way. */
static int wait_on_lanes(struct user *u, u64 deadline)
{
	struct lanes l;
	int r;

	if (!all_lanes(u, &l))
		return 0;
	r = wait_for_lanes(u, l.chs, l.n, lanes_ready, &l, deadline);
	touch_all(u);
	return r;
}

/*
 * Nothing is there, and the caller is about to sleep in poll(2): whoever is to send it something
 * may be waiting for this CPU (lane/wait.h, 2). Lanes on which another thread sleeps stay armed.
 */
void user_give_cpu(struct user *u)
{
	struct lanes l;

	if (!lane_yield_due(&u->spin, user_now()) || user_others_read(u) || !all_lanes(u, &l))
		return;
	lane_yield(&u->spin, &lane_linux_ops, l.chs, l.n, lanes_ready, &l);
	touch_all(u);
}

static int poll_all(struct user *u, u64 deadline, int cancel_fd)
{
	struct timespec ts;
	struct waiter w;
	struct pollfd p[3] = { { .fd = u->epoll, .events = POLLIN },
			       { .fd = cancel_fd, .events = POLLIN } };
	int r;

	user_waiter_init(u, &w);
	p[2] = (struct pollfd){ .fd = w.eventfd, .events = POLLIN };
	/* What others take up meanwhile has to show in the descriptor. */
	u->quiet--;
	user_update_events(u);
	user_unlock(u);
	r = ppoll(p, 3, left_until(deadline, &ts), NULL) < 0 ? -errno : 0;
	user_lock(u);
	u->quiet++;
	user_waiter_done(u, &w);
	if (r == 0 && !p[0].revents && p[1].revents)
		r = -ECANCELED;
	return r;
}

static bool has_work(const struct user *u)
{
	return u->queue.n || u->lost || u->waiting;
}

static bool passed(u64 when)
{
	return when != U64_MAX && user_now() >= when;
}

static int wait_once(struct user *u, u64 deadline, int cancel_fd)
{
	int r = wait_on_lanes(u, deadline);

	if (r == WATCH_GIVE_WAY)
		give_way(u);
	if (r != 0)
		return r < 0 ? r : 0;
	user_pump_one(u, LANE_LOOK_ARM);
	return has_work(u) || u->dead ? 0 : poll_all(u, deadline, cancel_fd);
}

int user_wait(struct libkdbus *h, uint64_t deadline_ns, int cancel_fd)
{
	struct user *u = to_user(h);
	u64 deadline, timer;
	int r = 0;

	user_lock(u);
	if (!u->connected)
		r = -EBADFD;
	u->quiet++;
	while (r == 0) {
		user_pump_one(u, LANE_LOOK_POLL);
		direct_release_fds(u);
		timer = core_deadlines_next(&u->deadlines);
		if (has_work(u) || passed(timer))
			break;
		if (u->dead)
			r = -ECONNRESET;
		else if (passed(deadline_ns))
			r = -ETIMEDOUT;
		deadline = min_t(u64, deadline_ns, timer);
		if (r == 0)
			r = wait_once(u, deadline, cancel_fd);
	}
	u->quiet--;
	if (r < 0)
		user_update_events(u);
	user_unlock(u);
	return r;
}

static int poll_space(struct user *u, struct peer *p, u64 deadline)
{
	struct waiter w;
	struct timespec ts;
	struct pollfd fds[2] = { { .fd = p->channel.sock, .events = POLLIN } };
	int r;

	user_waiter_init(u, &w);
	/* The daemon's lane is armed as well: what comes in it may be what makes room. */
	if (p == &u->daemon)
		user_waiter_watch(&w, &p->channel, false);
	user_waiter_watch(&w, &p->channel, true);
	fds[1] = (struct pollfd){ .fd = w.eventfd, .events = POLLIN };
	user_unlock(u);
	r = ppoll(fds, 2, left_until(deadline, &ts), NULL);
	user_lock(u);
	user_waiter_done(u, &w);
	return r < 0 && errno != EINTR ? -errno : 0;
}

/* Sleep until the reader of our lane has made room for @put. */
int user_await_space(struct user *u, struct peer *p, const struct lane_put *put, u64 deadline)
{
	int r;

	/* It may end, and be forgotten, while the lock is free. */
	p->held++;
	lane_drain(&p->channel);
	touch(u, p);
	if (p == &u->daemon) {
		/* It makes no room before it has been handed back what a dead peer left. */
		lane_arm(&p->channel);
		peer_scan_gone(u);
	}
	r = lane_space_arm(&p->channel, put);
	if (r == -EAGAIN)
		r = poll_space(u, p, deadline);
	lane_drain(&p->channel);
	lane_space_done(&p->channel);
	if (p == &u->daemon)
		lane_unarm(&p->channel);
	touch(u, p);
	peer_put(u, p);
	if (r == 0 && u->dead)
		return -ECONNRESET;
	return r == 0 && deadline != U64_MAX && user_now() >= deadline ? -ETIMEDOUT : r;
}

struct picked {
	const struct lane_env *env;
	u32 pos;
};

static int take_picked(struct user *u, struct peer *p, void *body, void *arg)
{
	const struct picked *picked = arg;

	return lane_pluck(&p->channel, picked->pos, picked->env, body);
}

/* Take a message out of the middle of a lane. Returns as user_take_record(). */
int user_pick(struct user *u, struct peer *p, const struct lane_env *env, u32 pos)
{
	struct picked picked = { .env = env, .pos = pos };
	int r = peer_own_lane(u, p);

	if (r < 0)
		return r;
	lane_clock_saw(&u->clock, env->stamp);
	r = user_take_record(u, p, env, env->stamp, take_picked, &picked);
	lane_consume(&p->channel);
	touch(u, p);
	return r;
}
