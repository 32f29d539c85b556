/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_UNIT_CORE_COST_H
#define TESTS_UNIT_CORE_COST_H

#include <stddef.h>

/* Tools and parts of core-cost.c, one part per file of core/. */

/**
 * cost_check() - hold an operation to a logarithmic bound
 * @what: for the message
 * @fixed: steps allowed whatever the size
 * @factor: steps allowed in addition per doubling of the size
 * @measure: fills a registry with @n entries; returns the steps that the
 *	operation takes at worst, which must not be 0
 */
void cost_check(const char *what, unsigned long fixed, unsigned long factor,
		unsigned long (*measure)(size_t n));

/* Raise @worst to the steps taken since core_steps was @before. */
void cost_worst(unsigned long *worst, unsigned long before);

void cost_of_connections(void **state);
void cost_of_matches(void **state);
void cost_of_names(void **state);
void cost_of_policy(void **state);
void cost_of_the_pool(void **state);
void cost_of_the_queue(void **state);
void cost_of_replies(void **state);

#endif
