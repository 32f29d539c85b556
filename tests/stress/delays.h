/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_STRESS_DELAYS_H
#define TESTS_STRESS_DELAYS_H

/*
 * delays.h - real processes whose lanes are compiled with LANE_TEST_HOOKS
 *
 * Every step of the protocol may be followed by a delay: mostly none, sometimes the processor is
 * given up, now and then the process sleeps for longer than a message takes. Which step is drawn
 * from a seed, so that a process delays itself in the same way each time.
 *
 * KDBUS_TEST_SEED seeds a process from its start, KDBUS_TEST_BREACH says which rule does not hold
 * in it (enum lane_breach, lane/hooks.h).
 */

#include <stdint.h>

#include "lane/hooks.h"

/* Delay from here on as this seed says; 0: not at all. */
void delays_seed(uint64_t seed);
void delays_break(enum lane_breach breach);

#endif
