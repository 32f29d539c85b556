// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Closing descriptors that clients sent: close() of somebody's file can block for as long as they
 * like (a socket that lingers, FUSE, a network file system), so threads of their own do it. One
 * does as a rule; while all there are are at a file, what is dropped next gets another, up to
 * THREADS_MAX: so one file that is stuck does not keep those behind it open.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon.h"

#define THREADS_MAX 32
#define STACK_SIZE  (128UL << 10)

struct reaper {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_cond_t ended;
	unsigned int first;
	unsigned int count;
	unsigned int room;
	unsigned int threads;
	unsigned int idle;
	bool stop;
	int fds[];
};

static void *run(void *arg)
{
	struct reaper *r = arg;
	int fd;

	pthread_mutex_lock(&r->lock);
	while (r->count || !r->stop) {
		if (!r->count) {
			r->idle++;
			pthread_cond_wait(&r->wake, &r->lock);
			r->idle--;
			continue;
		}
		fd = r->fds[r->first];
		r->first = (r->first + 1) % r->room;
		r->count--;
		pthread_mutex_unlock(&r->lock);
		close(fd);
		pthread_mutex_lock(&r->lock);
	}
	r->threads--;
	pthread_cond_signal(&r->ended);
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* With the lock held, or before there are threads */
static int start_thread(struct reaper *r)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int e;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	e = pthread_create(&thread, &attr, run, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	r->threads += e == 0;
	return -e;
}

int reaper_start(unsigned int fd_limit, struct reaper **ret)
{
	struct reaper *r = calloc(1, sizeof(*r) + fd_limit * sizeof(*r->fds));
	pthread_condattr_t attr;
	int e;

	if (!r)
		return -ENOMEM;
	r->room = fd_limit;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->wake, NULL);
	pthread_cond_init(&r->ended, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_lock(&r->lock);
	e = start_thread(r);
	pthread_mutex_unlock(&r->lock);
	if (e < 0) {
		free(r);
		return e;
	}
	*ret = r;
	return 0;
}

/* Returns whether all threads have ended; one that is stuck is waited for no longer than that. */
static bool end_threads(struct reaper *r)
{
	struct timespec ts;
	bool ended;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += 1;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_broadcast(&r->wake);
	while (r->threads && pthread_cond_timedwait(&r->ended, &r->lock, &ts) == 0)
		;
	ended = !r->threads;
	pthread_mutex_unlock(&r->lock);
	return ended;
}

/* Threads that are stuck have what they need until the process ends. */
static struct reaper *left_behind;

struct reaper *reaper_stop(struct reaper *reaper)
{
	if (!reaper)
		return NULL;
	if (!end_threads(reaper)) {
		left_behind = reaper;
		return NULL;
	}
	pthread_mutex_destroy(&reaper->lock);
	pthread_cond_destroy(&reaper->wake);
	pthread_cond_destroy(&reaper->ended);
	free(reaper);
	return NULL;
}

/*
 * What waits is open, so there is never more of it than this process may have descriptors: however
 * long threads are stuck in a close(), nothing is left out.
 */
void reaper_close(struct reaper *reaper, int fd)
{
	bool idle;

	if (fd < 0)
		return;
	pthread_mutex_lock(&reaper->lock);
	idle = reaper->idle;
	/* Mostly it is empty: then it need not touch all of its memory in the course of time. */
	if (!reaper->count)
		reaper->first = 0;
	if (reaper->count < reaper->room)
		reaper->fds[(reaper->first + reaper->count++) % reaper->room] = fd;
	if (reaper->count > reaper->idle && reaper->threads < THREADS_MAX)
		start_thread(reaper);
	pthread_mutex_unlock(&reaper->lock);
	/* They look again before they sleep, and once one is awake the lock is free. */
	if (idle)
		pthread_cond_signal(&reaper->wake);
}

void reaper_close_socket(struct reaper *reaper, int fd)
{
	shutdown(fd, SHUT_RDWR);
	reaper_close(reaper, fd);
}
