/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ops.h - what lane/ needs from the system
 *
 * lane/ calls nothing that waits, rings or tells the time except through this table, so that a
 * test can be the scheduler, the clock and the socket. lane_linux_ops is the real one.
 *
 * 1. No operation but sleep() and yield() waits; sockets are used with MSG_DONTWAIT.
 * 2. Every operation gets the table itself, so that a test can embed it in its own structure.
 * 3. All are thread-safe in lane_linux_ops.
 */
#ifndef LANE_OPS_H
#define LANE_OPS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "lane.h"

/* All descriptors of a record, and the memfd of a program's message that brings one. */
#define LANE_SOCK_FDS_MAX (2 * LANE_FDS_MAX + 1)

/**
 * struct lane_word - a futex word and the value at which to sleep
 */
struct lane_word {
	const uint32_t *addr;
	uint32_t seen;
};

/**
 * struct lane_ops - system calls
 * @now:	CLOCK_MONOTONIC in ns
 * @wake:	wake all who sleep on @word (shared futex)
 * @yield:	let whoever is ready to run on this CPU run first
 * @sleep:	sleep while all @n words (1..LANE_WORDS_MAX) have the seen values, at most
 *		@timeout_ns. 0: woken or a word differed; -ETIMEDOUT; -EINTR; -ENOSYS: the kernel
 *		has no futex_waitv
 * @send:	one message with @n_fds descriptors. 0; -EAGAIN: socket full; -EPIPE or -ECONNRESET:
 *		peer gone; -ETOOMANYREFS: too many descriptors in flight
 * @recv:	one message into @buf. Its length; 0: hung up; -EAGAIN: none; -EMSGSIZE: it was
 *		longer or had more than LANE_SOCK_FDS_MAX descriptors (all are closed then).
 *		Descriptors are close-on-exec, in @fds (room for LANE_SOCK_FDS_MAX), their number
 *		in @ret_n_fds; @ret_short: the process has no room for the rest of them
 * @watch:	add @fd to @epoll, level-triggered, EPOLLIN and EPOLLRDHUP, with @data
 * @unwatch:	take @fd out of @epoll
 * @ready:	up to @max @data pointers of what is readable in @epoll now, without waiting; their
 *		number or negative errno
 * @bell_set:	make the eventfd readable
 * @bell_clear:	make it unreadable
 * @close:	close a descriptor that may be somebody else's, which can take long (daemon and
 *		library have threads for that)
 * @hang_up:	close the socket of a channel, with whatever descriptors lie in it
 */
struct lane_ops {
	uint64_t (*now)(const struct lane_ops *ops);
	void (*wake)(const struct lane_ops *ops, const uint32_t *word);
	void (*yield)(const struct lane_ops *ops);
	int (*sleep)(const struct lane_ops *ops, const struct lane_word *words, unsigned int n,
		     uint64_t timeout_ns);
	int (*send)(const struct lane_ops *ops, int sock, const void *data, size_t size,
		    const int *fds, unsigned int n_fds);
	ssize_t (*recv)(const struct lane_ops *ops, int sock, void *buf, size_t size, int *fds,
			unsigned int *ret_n_fds, bool *ret_short);
	int (*watch)(const struct lane_ops *ops, int epoll, int fd, void *data);
	void (*unwatch)(const struct lane_ops *ops, int epoll, int fd);
	int (*ready)(const struct lane_ops *ops, int epoll, void **data, unsigned int max);
	void (*bell_set)(const struct lane_ops *ops, int eventfd);
	void (*bell_clear)(const struct lane_ops *ops, int eventfd);
	void (*close)(const struct lane_ops *ops, int fd);
	void (*hang_up)(const struct lane_ops *ops, int sock);
};

#define LANE_WORDS_MAX 128u

extern const struct lane_ops lane_linux_ops;

#endif
