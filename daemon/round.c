// SPDX-License-Identifier: LGPL-2.1-or-later
/* The main loop: rounds (rule 12 of the design; rules 2 and 4 of daemon.h). */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "classic/classic.h"
#include "client.h"
#include "lane/hooks.h"

#define EVENTS_MAX 128

int daemon_watch(struct daemon *d, int fd, u32 events, struct source *source)
{
	struct epoll_event ev = { .events = events, .data.ptr = source };

	return epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

void daemon_unwatch(struct daemon *d, int fd)
{
	epoll_ctl(d->epoll, EPOLL_CTL_DEL, fd, NULL);
}

u64 daemon_now(struct daemon *d)
{
	return d->lane_ops.now(&d->lane_ops);
}

static void ring_all(struct daemon *d)
{
	struct client *c, *next;

	list_for_each_entry_safe(c, next, &d->dirty, dirty_entry) {
		list_del_init(&c->dirty_entry);
		if (lane_ring(&c->channel) < 0)
			client_heat(c);
	}
}

static void answer_all(struct daemon *d)
{
	struct client *c, *next;

	list_for_each_entry_safe(c, next, &d->answered, answer_entry) {
		list_del_init(&c->answer_entry);
		answer_send(c);
	}
}

static void consume_all(struct daemon *d)
{
	struct client *c, *next;

	list_for_each_entry_safe(c, next, &d->taken, taken_entry) {
		list_del_init(&c->taken_entry);
		lane_consume(&c->channel);
	}
}

/*
 * Publish what waited for room, commit, ring, answer, and only then let clients reuse their rings.
 */
static void finish_round(struct daemon *d)
{
	struct client *c, *next;

	if (d->classic)
		classic_bury(d->classic);
	while ((c = list_first_entry_or_null(&d->blocked, struct client, blocked_entry)))
		client_flush(c);
	if (LANE_BROKEN(LANE_CURSOR_FIRST))
		consume_all(d);
	if (!list_empty(&d->dirty))
		lane_page_commit(&d->page, ++d->round);
	list_for_each_entry_safe(c, next, &d->settled, settled_entry)
		client_settle(c);
	ring_all(d);
	answer_all(d);
	consume_all(d);
	if (d->classic)
		classic_end_round(d->classic);
}

/* The end of one client is news for others, and may doom more: rounds of their own. */
static void bury(struct daemon *d)
{
	struct client *c;

	while ((c = list_first_entry_or_null(&d->doomed, struct client, entry))) {
		client_end(c);
		finish_round(d);
		client_free(c);
	}
}

/* Take from everybody awake; who has nothing left is armed, looked at once more, and may sleep. */
static bool work_all(struct daemon *d)
{
	struct client *c;
	bool busy = false;
	LIST_HEAD(turn);

	/* The work of one may doom another, which takes that off the list it is on. */
	list_splice_tail_init(&d->hot, &turn);
	while ((c = list_first_entry_or_null(&turn, struct client, hot_entry))) {
		list_move_tail(&c->hot_entry, &d->hot);
		busy |= client_work(c);
	}
	return busy;
}

static void dispatch(struct daemon *d, const struct epoll_event *events, int n)
{
	struct source *source;
	int i;

	for (i = 0; i < n; i++) {
		source = events[i].data.ptr;
		source->ready(source, events[i].events);
	}
}

/*
 * What clients send while they have the CPU instead of us costs them no wake-up, and they are not
 * interrupted by one (lane/wait.h, 2).
 */
static int wait_for_events(struct daemon *d, struct epoll_event *events)
{
	u64 start = daemon_now(d), now;
	int n = 0;

	if (lane_yield_due(&d->spin, start)) {
		d->lane_ops.yield(&d->lane_ops);
		n = epoll_wait(d->epoll, events, EVENTS_MAX, 0);
		now = daemon_now(d);
		lane_yield_end(&d->spin, n > 0, now, now - start);
	}
	return n ? n : epoll_wait(d->epoll, events, EVENTS_MAX, -1);
}

int daemon_run(struct daemon *d)
{
	struct epoll_event events[EVENTS_MAX];
	bool busy = false;
	int n;

	while (!d->stop) {
		/* Emptying the queues of classic peers may have been news for native ones. */
		busy |= !list_empty(&d->hot) || !list_empty(&d->dirty);
		n = busy ? epoll_wait(d->epoll, events, EVENTS_MAX, 0) :
			   wait_for_events(d, events);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (d->classic)
			classic_look(d->classic);
		dispatch(d, events, n);
		busy = work_all(d);
		finish_round(d);
		bury(d);
	}
	return d->error;
}
