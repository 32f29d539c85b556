// SPDX-License-Identifier: LGPL-2.1-or-later
/* The operations of ops.h as Linux system calls. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ops.h"
#include "wait.h"

#ifndef __NR_futex_waitv
#define __NR_futex_waitv 449
#endif

/* As in linux/futex.h from 5.16 on; the name there is not in older headers. */
struct waitv {
	uint64_t val;
	uint64_t uaddr;
	uint32_t flags;
	uint32_t reserved;
};

#define WAITV_32 2u

static uint64_t op_now(const struct lane_ops *ops)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static struct timespec timespec_of(uint64_t ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u),
	};

	return ts;
}

static void op_wake(const struct lane_ops *ops, const uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void op_yield(const struct lane_ops *ops)
{
	sched_yield();
}

/* Woken, or the word was different: both mean look again. */
static int slept(long r)
{
	return r >= 0 || errno == EAGAIN ? 0 : -errno;
}

static int op_sleep(const struct lane_ops *ops, const struct lane_word *words, unsigned int n,
		    uint64_t timeout_ns)
{
	struct waitv waitv[LANE_WORDS_MAX];
	struct timespec ts;
	unsigned int i;

	if (!n || n > LANE_WORDS_MAX)
		return -EINVAL;
	if (n == 1) {
		ts = timespec_of(timeout_ns);
		return slept(
			syscall(SYS_futex, words->addr, FUTEX_WAIT, words->seen, &ts, NULL, 0));
	}
	for (i = 0; i < n; i++)
		waitv[i] = (struct waitv){
			.val = words[i].seen,
			.uaddr = (uintptr_t)words[i].addr,
			.flags = WAITV_32,
		};
	ts = timespec_of(op_now(ops) + timeout_ns);
	return slept(syscall(__NR_futex_waitv, waitv, n, 0, &ts, CLOCK_MONOTONIC));
}

static int op_send(const struct lane_ops *ops, int sock, const void *data, size_t size,
		   const int *fds, unsigned int n_fds)
{
	char control[CMSG_SPACE(sizeof(int) * LANE_SOCK_FDS_MAX)] __attribute__((aligned(8)));
	struct iovec iov = { .iov_base = (void *)data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;

	if (n_fds > LANE_SOCK_FDS_MAX)
		return -EINVAL;
	if (n_fds) {
		memset(control, 0, sizeof(control));
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * n_fds);
	}
	while (sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return errno == EWOULDBLOCK || errno == ENOBUFS ? -EAGAIN : -errno;
	return 0;
}

/*
 * A peer that closes its end with something unread makes one recvmsg() say ECONNRESET before what
 * it had sent can be read.
 */
static ssize_t receive(int sock, struct msghdr *msg)
{
	size_t length = msg->msg_controllen;
	ssize_t n;
	int tries = 0;

	do {
		msg->msg_controllen = length;
		n = recvmsg(sock, msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && (errno == EINTR || (errno == ECONNRESET && !tries++)));
	return n < 0 ? -errno : n;
}

/* Keep up to LANE_SOCK_FDS_MAX descriptors, close the rest. Return: how many there were. */
static unsigned int keep_fds(const struct lane_ops *ops, struct msghdr *msg, int *fds)
{
	struct cmsghdr *cmsg;
	unsigned int n = 0, i, count;
	int fd;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		count = (unsigned int)((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		for (i = 0; i < count; i++) {
			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int), sizeof(int));
			if (n < LANE_SOCK_FDS_MAX)
				fds[n] = fd;
			else
				ops->close(ops, fd);
			n++;
		}
	}
	return n;
}

#define SCM_FDS_MAX 253

static ssize_t op_recv(const struct lane_ops *ops, int sock, void *buf, size_t size, int *fds,
		       unsigned int *ret_n_fds, bool *ret_short)
{
	/*
	 * Room for as many descriptors as the kernel passes: it would close what finds none in this
	 * thread, however long that takes. And for credentials that the program may have asked for.
	 */
	char control[CMSG_SPACE(sizeof(int) * SCM_FDS_MAX) +
		     CMSG_SPACE(sizeof(struct ucred))] __attribute__((aligned(8)));
	struct iovec iov = { .iov_base = buf, .iov_len = size };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	unsigned int n_fds, i;
	ssize_t n = receive(sock, &msg);

	if (n < 0)
		return n;
	n_fds = keep_fds(ops, &msg, fds);
	if ((msg.msg_flags & MSG_TRUNC) || n_fds > LANE_SOCK_FDS_MAX) {
		for (i = 0; i < n_fds && i < LANE_SOCK_FDS_MAX; i++)
			ops->close(ops, fds[i]);
		return -EMSGSIZE;
	}
	*ret_n_fds = n_fds;
	*ret_short = msg.msg_flags & MSG_CTRUNC;
	return n;
}

static int op_watch(const struct lane_ops *ops, int epoll, int fd, void *data)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP, .data.ptr = data };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void op_unwatch(const struct lane_ops *ops, int epoll, int fd)
{
	epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
}

#define READY_AT_ONCE 64u

static int op_ready(const struct lane_ops *ops, int epoll, void **data, unsigned int max)
{
	struct epoll_event small[READY_AT_ONCE];
	int n, i;

	if (max > READY_AT_ONCE)
		max = READY_AT_ONCE;
	n = epoll_wait(epoll, small, (int)max, 0);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (i = 0; i < n; i++)
		data[i] = small[i].data.ptr;
	return n;
}

static void op_bell_set(const struct lane_ops *ops, int eventfd)
{
	eventfd_write(eventfd, 1);
}

static void op_bell_clear(const struct lane_ops *ops, int eventfd)
{
	eventfd_t value;

	eventfd_read(eventfd, &value);
}

static void op_close(const struct lane_ops *ops, int fd)
{
	close(fd);
}

uint32_t lane_linux_spin_ns(void)
{
	const char *text = secure_getenv("KDBUS_SPIN_US");
	unsigned long us;

	if (!text || !*text)
		return LANE_SPIN_MAX_NS;
	us = strtoul(text, NULL, 10);
	return us > 1000 ? 1000000 : (uint32_t)us * 1000;
}

unsigned int lane_linux_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return (unsigned int)CPU_COUNT(&set);
}

const struct lane_ops lane_linux_ops = {
	.now = op_now,
	.wake = op_wake,
	.yield = op_yield,
	.sleep = op_sleep,
	.send = op_send,
	.recv = op_recv,
	.watch = op_watch,
	.unwatch = op_unwatch,
	.ready = op_ready,
	.bell_set = op_bell_set,
	.bell_clear = op_bell_clear,
	.close = op_close,
	.hang_up = op_close,
};
