/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_HIST_H
#define BENCH_HIST_H

/**
 * DOC: log-linear histogram
 *
 * Counts durations in nanoseconds. Below 2048 every value has a counter of its
 * own; above, every power of two is cut into 1024 equal counters, so a value
 * read back is wrong by less than 1/1024 of itself: the error bound of an
 * HdrHistogram with three significant digits. A fixed size, no allocation: it
 * can lie in memory that processes share.
 *
 * Rules
 *
 * 1. Values past HIST_MAX are counted as HIST_MAX.
 * 2. A percentile is the highest value its counter stands for, hence never
 *    smaller than the truth.
 */

#include <stdint.h>

#define HIST_HALF 1024U
#define HIST_MAX  ((1ULL << 40) - 1)
#define HIST_SIZE (HIST_HALF * 31)

struct hist {
	uint64_t total;
	uint64_t min;
	uint64_t max;
	double sum;
	uint32_t counts[HIST_SIZE];
};

/** hist_clear() - forget everything */
void hist_clear(struct hist *h);

/** hist_add() - count a duration of @ns nanoseconds */
void hist_add(struct hist *h, uint64_t ns);

/** hist_merge() - add the counts of @from to @to */
void hist_merge(struct hist *to, const struct hist *from);

/** hist_percentile() - the value that @percent of the counted ones do not exceed; 0 if empty */
uint64_t hist_percentile(const struct hist *h, double percent);

/** hist_index() - the counter of @ns */
unsigned int hist_index(uint64_t ns);

/** hist_highest() - the highest value that counter @index stands for */
uint64_t hist_highest(unsigned int index);

#endif
