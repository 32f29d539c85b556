// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fanout.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
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

/* In shared memory: how many broadcasts the client is sending, and how many of them all have */
static volatile uint32_t *announced(struct link *l)
{
	return l->shared->word[0];
}

static volatile uint32_t *done(struct link *l)
{
	return l->shared->word[1];
}

static void count_copy(struct link *l)
{
	uint32_t upto = __atomic_load_n(announced(l), __ATOMIC_ACQUIRE);

	if (++l->received < (upto - *done(l)) * fanout_wanted(l))
		return;
	l->received = 0;
	__atomic_store_n(done(l), upto, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, done(l), FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

int fanout_received(struct link *l, const void *data, size_t size)
{
	struct payload *p = link_server_in(l);
	int r;

	p->seq = l->due[l->receiver];
	r = link_check(l, p, data, size, l->shared->job.request);
	l->due[l->receiver] = p->seq;
	if (r == 0)
		count_copy(l);
	return r;
}

static void await(struct link *l)
{
	uint32_t now;

	while ((now = __atomic_load_n(done(l), __ATOMIC_ACQUIRE)) != l->sent)
		syscall(SYS_futex, done(l), FUTEX_WAIT, now, NULL, NULL, 0);
}

int fanout_send(struct link *l, const struct job *job, uint64_t count, unsigned int window,
		int (*send)(struct link *l, const struct job *job))
{
	uint64_t n, i;
	int r = 0;

	for (; count && r == 0; count -= n) {
		n = count < window ? count : window;
		__atomic_store_n(announced(l), l->sent + (uint32_t)n, __ATOMIC_RELEASE);
		for (i = 0; i < n && r == 0; i++) {
			l->sent++;
			r = send(l, job);
		}
		if (r == 0)
			await(l);
	}
	return r;
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

static int serve(struct link *l, int epoll, int (*ready)(struct link *l, unsigned int i))
{
	struct epoll_event events[EVENTS];
	int i, got, r = 0;

	link_ready(l);
	while (r >= 0) {
		got = epoll_wait(epoll, events, EVENTS, -1);
		for (i = 0; i < got && r >= 0; i++) {
			l->receiver = events[i].data.u32;
			r = ready(l, l->receiver);
		}
	}
	return r;
}

int fanout_poll(struct link *l, const int *fds, unsigned int n,
		int (*ready)(struct link *l, unsigned int i))
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), r;
	unsigned int i;

	l->due = calloc(n, sizeof(*l->due));
	for (i = 0; l->due && i < n; i++)
		l->due[i] = 1;
	r = epoll < 0 ? -errno : l->due ? add_all(epoll, fds, n) : -ENOMEM;
	r = r < 0 ? link_error(l, r, "epoll: %s", strerror(-r)) : serve(l, epoll, ready);
	if (epoll >= 0)
		close(epoll);
	free(l->due);
	return r;
}
