/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef LIB_CLOSER_H
#define LIB_CLOSER_H

/*
 * closer.h - closing files of others, in threads
 *
 * close() of somebody's file can wait for as long as they like (a socket that lingers, a file of
 * FUSE or of a network file system), so threads do it, in the daemon as in the library.
 *
 * 1. A file comes from somebody: the *origin*, a number that is noted when it comes, or 0 where
 *    nobody said. All in close() at a time are of one origin CLOSER_SHARE at most, and
 *    CLOSER_THREADS altogether. So whoever sends files that are stuck keeps his own open, and not
 *    those of others.
 * 2. There are as many threads as there are files that may be closed, up to CLOSER_THREADS.
 * 3. What waits is open, so its number is its place: there is room for all that a process can have
 *    open, and for the daemon none of it is made when it is needed.
 * 4. A child of fork() has what waited, but no thread: see closer_resume(). A file that a thread
 *    was just about to close may be open in the child as well; nobody there can know.
 * 5. Any thread.
 */

#include <pthread.h>
#include <stdbool.h>

#include "base.h"

#include "list.h"

#define CLOSER_THREADS 32U
#define CLOSER_SHARE   8U

/**
 * struct closer_origin - somebody whose files wait to be closed, or are at it
 * @entry:	in closer.origins
 * @origin:	who
 * @first:	of those that wait, the others behind it; -1: none
 * @last:	of them
 * @closing:	threads that are at one
 */
struct closer_origin {
	struct list_head entry;
	u32 origin;
	int first;
	int last;
	unsigned int closing;
};

/**
 * struct closer - the threads, and what waits for them
 * @files:	of each number, who it comes from, and what follows it
 * @room:	how many of them
 * @origins:	those that have something waiting or at close(); who is next comes first
 * @unknown:	origin 0, and any that there was no memory for
 * @keep:	threads without work wait for some; else they end
 * @n_threads:	all
 * @n_closing:	of them in close(); the others will look at what waits
 */
struct closer {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_cond_t ended;
	struct closer_file {
		u32 origin;
		int next;
	} * files;
	unsigned int room;
	struct list_head origins;
	struct closer_origin unknown;
	bool keep;
	bool stop;
	unsigned int n_threads;
	unsigned int n_closing;
};

/**
 * closer_init() - before anything else
 * @room:	for files with numbers below that; the library's grows, and begins with 0
 * @keep:	there shall always be a thread
 *
 * Return: 0 or negative errno.
 */
int closer_init(struct closer *c, unsigned int room, bool keep);

/**
 * closer_stop() - end the threads, and the closer
 *
 * Return: whether all have ended. One that is stuck needs @c until the process ends.
 */
bool closer_stop(struct closer *c);

/**
 * closer_note() - @fd comes from @origin
 */
void closer_note(struct closer *c, int fd, u32 origin);

/**
 * closer_note_same() - @fd comes from where @as comes from
 */
void closer_note_same(struct closer *c, int fd, int as);

/**
 * closer_close() - close @fd some time
 *
 * Return: false: there is no thread to be had, or no memory: @fd is open, and the caller's.
 */
bool closer_close(struct closer *c, int fd);

/* For pthread_atfork(), in this order */
void closer_before_fork(struct closer *c);
void closer_after_fork(struct closer *c);
void closer_in_child(struct closer *c);

/**
 * closer_resume() - go on with what waited when the process was forked
 */
void closer_resume(struct closer *c);

#endif
