/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

/**
 * DOC: statistics of repeated measurements
 *
 * Samples are durations: smaller is better. They are not normally distributed,
 * but skewed to the long side; what uses Student's t here uses it on logarithms.
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
 * struct stats_estimate - a value and how sure it is
 * @error2: square of the standard error
 * @df: degrees of freedom of @error2; 0: it is unknown
 */
struct stats_estimate {
	double mean;
	double error2;
	double df;
};

/**
 * stats_trimmed() - mean of @n values without the extreme ones, and how sure it is
 * @v: values
 * @n: how many; from six on a fifth of them, rounded down, is left out at each end
 * @ret: the mean, with the error that Yuen gives it: from the winsorized variance
 *
 * Return: 0 or -ENOMEM.
 */
int stats_trimmed(const double *v, size_t n, struct stats_estimate *ret);

/** stats_student() - probability of a value of @t or more from Student's t with @df > 0 */
double stats_student(double t, double df);

/** stats_student_quantile() - the value that stats_student() gives @p < 0.5 for */
double stats_student_quantile(double p, double df);

#endif
