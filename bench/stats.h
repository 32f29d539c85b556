/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

/**
 * DOC: statistics of repeated measurements
 *
 * Samples are durations: smaller is better. Nothing here assumes that they are
 * normally distributed, but the interval of a ratio, which assumes it of the
 * logarithms of paired ratios.
 */

#include <stddef.h>

/** stats_mean() - arithmetic mean of @n > 0 values */
double stats_mean(const double *v, size_t n);

/** stats_median() - median of @n > 0 values; -1 for want of memory */
double stats_median(const double *v, size_t n);

/**
 * stats_deviation() - relative standard deviation of the mean, in percent
 *
 * What ``perf stat --repeat`` prints behind "+-"; 0 for a single value.
 */
double stats_deviation(const double *v, size_t n);

/**
 * struct stats_ratio - how many times @b is a
 * @ratio: geometric mean of the paired ratios b[i] / a[i]
 * @low: lower end of the 95 % interval
 * @high: upper end; both are the ratio itself if there is only one pair
 */
struct stats_ratio {
	double ratio;
	double low;
	double high;
};

/**
 * stats_paired() - ratio of two interleaved series with its 95 % interval
 *
 * Sample i of both was taken next to each other, so a drift of the machine
 * cancels. Student's t over the logarithms of the paired ratios.
 */
struct stats_ratio stats_paired(const double *a, const double *b, size_t n);

/**
 * stats_slower() - Mann-Whitney: is @b larger than @a by more than chance?
 * @a: @n samples
 * @b: @m samples
 * @ret_p: probability of a rank sum of @b as large as seen, or larger, if both came from one
 *	distribution. Exact (ties included) for up to 60 samples together, beyond that by the
 *	normal approximation.
 *
 * Return: 0 or -ENOMEM.
 */
int stats_slower(const double *a, size_t n, const double *b, size_t m, double *ret_p);

#endif
