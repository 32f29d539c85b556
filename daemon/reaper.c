// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Closing descriptors that clients sent: close() of somebody's file can block for as long as they
 * like (think of FUSE, a network file system, a socket that lingers), so threads of their own do
 * it: one, and more if what waits behind it shows that it is stuck.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon.h"

#define THREADS_MAX 32
#define WAITING_MAX 64 /* with so many waiting another thread helps */
#define STACK	    (128U << 10)

struct reaper {
	pthread_t threads[THREADS_MAX];
	unsigned int n_threads;
	unsigned int n_asleep;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	unsigned int first;
	unsigned int count;
	unsigned int room;
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
			r->n_asleep++;
			pthread_cond_wait(&r->wake, &r->lock);
			r->n_asleep--;
			continue;
		}
		fd = r->fds[r->first];
		r->first = (r->first + 1) % r->room;
		r->count--;
		/* This one may take for ever: another thread, if there is one, goes on. */
		if (r->count && r->n_asleep)
			pthread_cond_signal(&r->wake);
		pthread_mutex_unlock(&r->lock);
		close(fd);
		pthread_mutex_lock(&r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* Signals are for the main thread. */
static int start_thread(struct reaper *r)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int e;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	e = pthread_create(&r->threads[r->n_threads], &attr, run, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (e == 0)
		r->n_threads++;
	return -e;
}

int reaper_start(unsigned int fd_limit, struct reaper **ret)
{
	struct reaper *r = calloc(1, sizeof(*r) + fd_limit * sizeof(*r->fds));
	int e;

	if (!r)
		return -ENOMEM;
	r->room = fd_limit;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->wake, NULL);
	e = start_thread(r);
	if (e < 0) {
		free(r);
		return e;
	}
	*ret = r;
	return 0;
}

struct reaper *reaper_stop(struct reaper *reaper)
{
	unsigned int i;

	if (!reaper)
		return NULL;
	pthread_mutex_lock(&reaper->lock);
	reaper->stop = true;
	pthread_cond_broadcast(&reaper->wake);
	pthread_mutex_unlock(&reaper->lock);
	for (i = 0; i < reaper->n_threads; i++)
		pthread_join(reaper->threads[i], NULL);
	pthread_mutex_destroy(&reaper->lock);
	pthread_cond_destroy(&reaper->wake);
	free(reaper);
	return NULL;
}

/*
 * What waits is open, so there is never more of it than this process may have descriptors: however
 * long the thread is stuck in a close(), nothing is left out.
 */
void reaper_close(struct reaper *reaper, int fd)
{
	bool wake, stuck;

	if (fd < 0)
		return;
	pthread_mutex_lock(&reaper->lock);
	/* Who is awake looks again before it sleeps. */
	wake = !reaper->count && reaper->n_asleep;
	/* Mostly it is empty: then it need not touch all of its memory in the course of time. */
	if (!reaper->count)
		reaper->first = 0;
	if (reaper->count < reaper->room)
		reaper->fds[(reaper->first + reaper->count++) % reaper->room] = fd;
	stuck = reaper->count >= WAITING_MAX && !reaper->n_asleep;
	pthread_mutex_unlock(&reaper->lock);
	/* Once it is awake the lock is free. */
	if (wake)
		pthread_cond_signal(&reaper->wake);
	if (stuck && reaper->n_threads < THREADS_MAX)
		start_thread(reaper);
}

void reaper_close_socket(struct reaper *reaper, int fd)
{
	shutdown(fd, SHUT_RDWR);
	reaper_close(reaper, fd);
}
