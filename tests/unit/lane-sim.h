/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_UNIT_LANE_SIM_H
#define TESTS_UNIT_LANE_SIM_H

/*
 * A deterministic world for lane/: scheduler, clock, futexes and store buffers.
 *
 *  1. Tasks are coroutines of one thread. They change places only at the yield points of lane/
 *     and of the sim; who is next depends on nothing but the seed. Now and then one is suspended
 *     for some hundred steps.
 *  2. A store to a shared word waits in the task's store buffer until a fence, a system call or
 *     chance lets it out, in order (total store order, as x86). Memory and sockets are real.
 *  3. Nothing takes time: the clock moves by one with each reading. A sleep ends by a wake or a
 *     readable descriptor. If every task that is not over sleeps, the world is stuck.
 *  4. Tasks do not use cmocka's assertions (they would jump off the stack); sim_fail() instead.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lane/channel.h"

enum sim_end {
	SIM_OVER, /* every task returned or was killed */
	SIM_STUCK,
	SIM_LONG, /* more than the bounded number of steps */
	SIM_FAILED,
};

extern const struct lane_ops sim_ops;

void sim_begin(uint64_t seed);

/* Break the protocol on purpose: fences that do not fence. */
void sim_no_fences(void);

/* One in @n yields changes to another task; 1: all. The default is 3. */
void sim_switch_one_in(unsigned int n);

/* Returns the task's number. */
int sim_spawn(void (*run)(void *arg), void *arg);

/* The task stops at its next yield for good; its store buffer drains, as a CPU's does. */
void sim_kill(int task);
bool sim_is_over(int task);

/* A task that may sleep for ever: the world is over without it. */
void sim_background(int task);

/* A task other than the current one is killed after @steps more steps of the world. */
void sim_kill_later(int task, unsigned int steps);

/* The two mappings of one lane, so that a wake by the one finds sleepers by the other. */
void sim_same_memory(const void *a, const void *b, size_t size);

enum sim_end sim_run(unsigned int max_steps);
const char *sim_why(void);

/* For tasks */
void sim_yield(void);
void sim_delay(unsigned int steps); /* up to that many */
void sim_wait_readable(int fd);
void sim_wait_two_readable(int fd, int other);
bool sim_readable(int fd);
uint64_t sim_random(void);
uint64_t sim_below(uint64_t n);
void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A channel: both ends with lanes of @ring bytes, on a socketpair. */
void sim_channel(struct lane_channel *a, struct lane_channel *b, uint32_t ring,
		 unsigned int a_flags, unsigned int b_flags);
/* @a may wake @b by @alarm, which is made if it is not yet. */
void sim_alarm(struct lane_channel *a, struct lane_channel *b, struct lane_alarm *alarm);
void sim_channel_end(struct lane_channel *a, struct lane_channel *b);

#endif
