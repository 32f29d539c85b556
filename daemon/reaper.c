// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Closing descriptors that clients sent: close() of somebody's file can block for as long as they
 * like (think of FUSE or a network file system), so a thread of its own does it.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon.h"

struct reaper {
	pthread_t thread;
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
			pthread_cond_wait(&r->wake, &r->lock);
			continue;
		}
		fd = r->fds[r->first];
		r->first = (r->first + 1) % r->room;
		r->count--;
		pthread_mutex_unlock(&r->lock);
		close(fd);
		pthread_mutex_lock(&r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

int reaper_start(unsigned int fd_limit, struct reaper **ret)
{
	struct reaper *r = calloc(1, sizeof(*r) + fd_limit * sizeof(*r->fds));
	sigset_t all, old;
	int e;

	if (!r)
		return -ENOMEM;
	r->room = fd_limit;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->wake, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	e = pthread_create(&r->thread, NULL, run, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (e) {
		free(r);
		return -e;
	}
	*ret = r;
	return 0;
}

struct reaper *reaper_stop(struct reaper *reaper)
{
	if (!reaper)
		return NULL;
	pthread_mutex_lock(&reaper->lock);
	reaper->stop = true;
	pthread_cond_signal(&reaper->wake);
	pthread_mutex_unlock(&reaper->lock);
	pthread_join(reaper->thread, NULL);
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
	bool asleep;

	if (fd < 0)
		return;
	pthread_mutex_lock(&reaper->lock);
	asleep = !reaper->count;
	/* Mostly it is empty: then it need not touch all of its memory in the course of time. */
	if (asleep)
		reaper->first = 0;
	if (reaper->count < reaper->room)
		reaper->fds[(reaper->first + reaper->count++) % reaper->room] = fd;
	pthread_mutex_unlock(&reaper->lock);
	/* It looks again before it sleeps, and once it is awake the lock is free. */
	if (asleep)
		pthread_cond_signal(&reaper->wake);
}
