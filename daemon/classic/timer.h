/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_TIMER_H
#define CLASSIC_TIMER_H

/*
 * timer.h - what ends by time: one timer descriptor for all of it
 *
 * A struct timeout is embedded in what it is about. Those that are set wait in order of time; ties
 * in the order in which they were set. O(log n). One thread.
 */

#include "base.h"

struct classic;

struct timeout {
	struct rb_node node;
	u64 at; /* CLOCK_MONOTONIC in ns; 0: not set */
	void (*expired)(struct timeout *t);
};

int timer_start(struct classic *k);
void timer_stop(struct classic *k);
/* Set, or set anew; @t->expired is called once, and may free it. */
void timeout_set(struct classic *k, struct timeout *t, u64 ms);
/* The same with a time that another one had, @at */
void timeout_set_at(struct classic *k, struct timeout *t, u64 at);
/* Harmless if it is not set */
void timeout_clear(struct classic *k, struct timeout *t);

#endif
