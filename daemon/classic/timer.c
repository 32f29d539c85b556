// SPDX-License-Identifier: LGPL-2.1-or-later
#include "timer.h"

#define TIMER_MAX_MS (1ULL << 40) /* what is configured to take longer takes as long as that */

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "classic.h"

struct timer {
	struct source source;
	struct classic *classic;
	int fd;
	u64 armed; /* 0: not */
	struct rb_root timeouts;
};

/* The descriptor is set earlier when it must be; one that goes off too early costs a look. */
static void arm(struct timer *timer, u64 at)
{
	const struct itimerspec spec = {
		.it_value = { (time_t)(at / 1000000000), (long)(at % 1000000000) },
	};

	if (timer->armed && timer->armed <= at)
		return;
	timerfd_settime(timer->fd, TFD_TIMER_ABSTIME, &spec, NULL);
	timer->armed = at;
}

static void expire(struct source *source, u32 events)
{
	struct timer *timer = container_of(source, struct timer, source);
	u64 now = daemon_now(timer->classic->daemon), n;
	struct rb_node *node;
	struct timeout *t;

	if (read(timer->fd, &n, sizeof(n)) < 0)
		return;
	timer->armed = 0;
	while ((node = rb_first(&timer->timeouts))) {
		t = rb_entry(node, struct timeout, node);
		if (t->at > now) {
			arm(timer, t->at);
			return;
		}
		timeout_clear(timer->classic, t);
		t->expired(t);
	}
}

int timer_start(struct classic *k)
{
	struct timer *timer = calloc(1, sizeof(*timer));

	if (!timer)
		return -ENOMEM;
	timer->source.ready = expire;
	timer->classic = k;
	timer->timeouts = RB_ROOT;
	k->timer = timer;
	timer->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return timer->fd < 0 ? -errno : daemon_watch(k->daemon, timer->fd, EPOLLIN, &timer->source);
}

void timer_stop(struct classic *k)
{
	if (!k->timer)
		return;
	if (k->timer->fd >= 0) {
		daemon_unwatch(k->daemon, k->timer->fd);
		close(k->timer->fd);
	}
	free(k->timer);
	k->timer = NULL;
}

void timeout_set(struct classic *k, struct timeout *t, u64 ms)
{
	timeout_set_at(k, t, daemon_now(k->daemon) + min_t(u64, ms, TIMER_MAX_MS) * 1000000);
}

void timeout_set_at(struct classic *k, struct timeout *t, u64 at)
{
	struct rb_node **link = &k->timer->timeouts.rb_node, *parent = NULL;

	timeout_clear(k, t);
	t->at = at;
	while (*link) {
		parent = *link;
		link = t->at < rb_entry(parent, struct timeout, node)->at ? &parent->rb_left :
									    &parent->rb_right;
	}
	rb_link_node(&t->node, parent, link);
	rb_insert_color(&t->node, &k->timer->timeouts);
	arm(k->timer, t->at);
}

void timeout_clear(struct classic *k, struct timeout *t)
{
	if (!t->at)
		return;
	rb_erase(&t->node, &k->timer->timeouts);
	t->at = 0;
}
