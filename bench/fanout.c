// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fanout.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EVENTS 64

unsigned int fanout_wanted(const struct link *l)
{
	return l->matching ? l->receivers : 1;
}

unsigned int fanout_total(const struct link *l)
{
	return l->matching ? l->receivers : l->receivers + 1;
}

int fanout_received(struct link *l, const void *data, size_t size)
{
	struct payload *p = link_server_in(l);
	uint64_t seq = p->seq;
	int r = link_check(l, p, data, size, l->shared->job.request);

	if (r < 0)
		return r;
	if (++l->received < fanout_wanted(l)) {
		p->seq = seq;
		return 0;
	}
	l->received = 0;
	__atomic_add_fetch(l->shared->word[1], 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, l->shared->word[1], FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	return 0;
}

void fanout_await(struct link *l, uint32_t n)
{
	uint32_t now;

	while ((now = __atomic_load_n(l->shared->word[1], __ATOMIC_ACQUIRE)) != n)
		syscall(SYS_futex, l->shared->word[1], FUTEX_WAIT, now, NULL, NULL, 0);
}

static int add_all(int epoll, const int *fds, unsigned int n)
{
	struct epoll_event e = { .events = EPOLLIN };
	unsigned int i;

	for (i = 0; i < n; i++) {
		e.data.u32 = i;
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &e) < 0)
			return -errno;
	}
	return 0;
}

int fanout_poll(struct link *l, const int *fds, unsigned int n,
		int (*ready)(struct link *l, unsigned int i))
{
	struct epoll_event events[EVENTS];
	int epoll = epoll_create1(EPOLL_CLOEXEC), i, got, r;

	r = epoll < 0 ? -errno : add_all(epoll, fds, n);
	if (r < 0)
		return link_error(l, r, "epoll: %s", strerror(-r));
	link_ready(l);
	while (r >= 0) {
		got = epoll_wait(epoll, events, EVENTS, -1);
		for (i = 0; i < got && r >= 0; i++)
			r = ready(l, events[i].data.u32);
	}
	close(epoll);
	return r;
}
