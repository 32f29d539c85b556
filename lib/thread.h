/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef LIB_THREAD_H
#define LIB_THREAD_H

/*
 * thread.h - threads for what somebody can make wait, in the daemon and in the library
 *
 * They are detached, for one that is stuck cannot be joined; have no signals, which are the
 * program's; and a small stack. Their number is kept by whoever starts them, with his lock.
 */

#include <pthread.h>
#include <stdbool.h>

/**
 * thread_start() - start one
 *
 * Return: 0 or negative errno.
 */
int thread_start(void *(*fn)(void *), void *arg);

/**
 * thread_cond_init() - a condition for threads_ended()
 */
void thread_cond_init(pthread_cond_t *cond);

/**
 * threads_ended() - wait for threads that were told to end, a second at most
 * @ended:	signalled by each that does, from thread_cond_init()
 * @lock:	held
 * @n:		how many there are
 *
 * Return: whether all have.
 */
bool threads_ended(pthread_cond_t *ended, pthread_mutex_t *lock, const unsigned int *n);

#endif
