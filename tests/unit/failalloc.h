/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_UNIT_FAILALLOC_H
#define TESTS_UNIT_FAILALLOC_H

/*
 * The memory of core/ under a test's control: kmalloc() and kfree() that count
 * what is alive and fail when told to. A test that links failalloc_dep gets
 * them instead of the C library's.
 *
 *  1. Fresh memory is filled with 0xa5, so nothing can count on zeroes.
 *  2. At most one allocation fails per failalloc_arm().
 */

#include <stdbool.h>
#include <stdio.h>

/**
 * failalloc_arm() - let an allocation to come fail
 * @nth: 1: the next one; 0: none
 */
void failalloc_arm(unsigned long nth);

/* Whether the allocation armed for has failed. */
bool failalloc_hit(void);

/* How many allocations are alive. */
unsigned long failalloc_live(void);

/* How many allocations there have been, failed ones included. */
unsigned long failalloc_calls(void);

/**
 * struct failalloc_scenario - something that must survive lack of memory
 * @setup: builds the state before; must succeed
 * @act: the operation; 0 or negative errno. A failed one must have changed nothing
 * @dump: writes all that can be seen of the state
 * @teardown: releases the state, whether or not @act succeeded
 */
struct failalloc_scenario {
	void *(*setup)(void);
	int (*act)(void *state);
	void (*dump)(void *state, FILE *out);
	void (*teardown)(void *state);
};

/**
 * failalloc_each() - run a scenario with each of its allocations failing once
 * @scenario: the scenario
 *
 * Fails the running cmocka test unless each such run returns -ENOMEM and leaves
 * the dump unchanged, the operation then succeeds with memory, and nothing is
 * left alive after @teardown.
 *
 * Return: how many allocations the operation makes.
 */
unsigned long failalloc_each(const struct failalloc_scenario *scenario);

#endif
