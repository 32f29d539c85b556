// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Closing files of others. close() of somebody's file can wait for as long as they like (a socket
 * that lingers, a file of FUSE or of a network file system), so a thread does it. There is none
 * while there is nothing to close, and more than one if some of them are stuck.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user.h"

#define THREADS_MAX 4
#define STACK	    (128U << 10)

struct dropped {
	struct dropped *next;
	int fd;
};

static struct {
	pthread_mutex_t lock;
	pthread_once_t once;
	struct dropped *first;
	struct dropped **last;
	unsigned int n_threads;
	unsigned int n_closing; /* of them in close(); the others will look at the queue again */
} drops = { .lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT, .last = &drops.first };

static struct dropped *take_first(void)
{
	struct dropped *d = drops.first;

	if (!d)
		return NULL;
	drops.first = d->next;
	if (!drops.first)
		drops.last = &drops.first;
	return d;
}

/* With the lock, which is free meanwhile. */
static void close_all(void)
{
	struct dropped *d;

	while ((d = take_first())) {
		drops.n_closing++;
		pthread_mutex_unlock(&drops.lock);
		close(d->fd);
		free(d);
		pthread_mutex_lock(&drops.lock);
		drops.n_closing--;
	}
	drops.n_threads--;
}

static void *run(void *arg)
{
	pthread_mutex_lock(&drops.lock);
	close_all();
	pthread_mutex_unlock(&drops.lock);
	return arg;
}

/* Signals are the program's. */
static int start_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	int e;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	e = pthread_create(&thread, &attr, run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -e;
}

static void before_fork(void)
{
	pthread_mutex_lock(&drops.lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&drops.lock);
}

/* It has the files that wait, but no thread; its first one closes them. */
static void in_child(void)
{
	drops.n_threads = 0;
	drops.n_closing = 0;
	pthread_mutex_unlock(&drops.lock);
}

static void watch_fork(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

static void enqueue(struct dropped *d)
{
	bool start;

	pthread_once(&drops.once, watch_fork);
	pthread_mutex_lock(&drops.lock);
	*drops.last = d;
	drops.last = &d->next;
	start = drops.n_threads == drops.n_closing && drops.n_threads < THREADS_MAX;
	drops.n_threads += start;
	/* Without a thread to be had, it takes as long as it takes. */
	if (start && start_thread() < 0)
		close_all();
	pthread_mutex_unlock(&drops.lock);
}

/* Memory and pipes never wait; and what the other files are cannot be asked without waiting. */
static bool may_wait(int fd)
{
	return fcntl(fd, F_GET_SEALS) < 0 && fcntl(fd, F_GETPIPE_SZ) < 0;
}

void user_drop_fd(int fd)
{
	struct dropped *d;

	if (fd < 0)
		return;
	d = may_wait(fd) ? malloc(sizeof(*d)) : NULL;
	if (!d) {
		close(fd);
		return;
	}
	*d = (struct dropped){ .fd = fd };
	enqueue(d);
}

static void op_close(const struct lane_ops *ops, int fd)
{
	user_drop_fd(fd);
}

/*
 * At its end a socket reads as an empty message does, which may have files, and others behind it.
 * But each message has credentials, for who asks. Looking takes no file that it has no room for.
 */
static bool has_message(int sock)
{
	char control[CMSG_SPACE(sizeof(struct ucred))] __attribute__((aligned(8)));
	struct msghdr msg = { .msg_control = control, .msg_controllen = sizeof(control) };
	int one = 1;

	return setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) == 0 &&
	       recvmsg(sock, &msg, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) >= 0 &&
	       (msg.msg_controllen || msg.msg_flags & MSG_CTRUNC);
}

/*
 * Files that lie in the socket unread would be closed with it. Nothing can be put there any more
 * once it is shut for reading.
 */
static void op_hang_up(const struct lane_ops *ops, int sock)
{
	int fds[LANE_SOCK_FDS_MAX];
	unsigned int n, i;
	bool short_of;
	ssize_t r;
	char byte;

	shutdown(sock, SHUT_RD);
	do {
		n = 0;
		r = ops->recv(ops, sock, &byte, sizeof(byte), fds, &n, &short_of);
		for (i = 0; i < n; i++)
			user_drop_fd(fds[i]);
	} while (r > 0 || r == -EMSGSIZE || (r == 0 && has_message(sock)));
	close(sock);
}

struct lane_ops user_lane_ops(void)
{
	struct lane_ops ops = lane_linux_ops;

	ops.close = op_close;
	ops.hang_up = op_hang_up;
	return ops;
}
