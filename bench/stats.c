// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* From so many degrees of freedom on, Student's t is the normal distribution. */
#define NORMAL_DF 1e6

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double stats_mean(const double *v, size_t n)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += v[i];
	return sum / (double)n;
}

double stats_median(const double *v, size_t n)
{
	double *sorted = malloc(n * sizeof(*sorted));
	double median;

	if (!sorted)
		return -1;
	memcpy(sorted, v, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_double);
	median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
	free(sorted);
	return median;
}

static double variance(const double *v, size_t n)
{
	double mean = stats_mean(v, n), sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += (v[i] - mean) * (v[i] - mean);
	return n > 1 ? sum / (double)(n - 1) : 0;
}

double stats_deviation(const double *v, size_t n)
{
	double mean = stats_mean(v, n);

	return mean != 0 ? 100 * sqrt(variance(v, n) / (double)n) / mean : 0;
}

struct stats_ratio stats_paired(const double *a, const double *b, size_t n)
{
	double sum = 0, squares = 0, mean, half = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += log(b[i] / a[i]);
	mean = sum / (double)n;
	for (i = 0; i < n; i++)
		squares += pow(log(b[i] / a[i]) - mean, 2);
	if (n > 1)
		half = stats_student_quantile(0.025, (double)n - 1) *
		       sqrt(squares / (double)(n - 1) / (double)n);
	return (struct stats_ratio){ exp(mean), exp(mean - half), exp(mean + half) };
}

/* ---- Student's t ---- */

/* A denominator of the continued fraction must not vanish. */
static double away_from_zero(double x)
{
	return fabs(x) < 1e-300 ? 1e-300 : x;
}

/*
 * The continued fraction of the incomplete beta function, from the front (Lentz). It converges
 * fast where x is left of the distribution's mean.
 */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), result = d, step = 0, k;
	int m;

	for (m = 1; m < 500 && fabs(step - 1) > 1e-14; m++) {
		k = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		d = 1 / away_from_zero(1 + k * d);
		c = away_from_zero(1 + k / c);
		result *= c * d;
		k = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		d = 1 / away_from_zero(1 + k * d);
		c = away_from_zero(1 + k / c);
		step = c * d;
		result *= step;
	}
	return result;
}

/* The regularized incomplete beta function; @y is 1 - x, more precise than that could be. */
static double incomplete_beta(double a, double b, double x, double y)
{
	double front;

	if (x <= 0 || y <= 0)
		return x <= 0 ? 0 : 1;
	front = exp(a * log(x) + b * log(y) + lgamma(a + b) - lgamma(a) - lgamma(b));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, y) / b;
}

double stats_student(double t, double df)
{
	double half;

	if (df > NORMAL_DF)
		return 0.5 * erfc(t / sqrt(2));
	half = 0.5 * incomplete_beta(df / 2, 0.5, df / (df + t * t), t * t / (df + t * t));
	return t > 0 ? half : 1 - half;
}

double stats_student_quantile(double p, double df)
{
	double low = 0, high = 1, middle;
	int i;

	while (stats_student(high, df) > p && high < 1e300)
		high *= 2;
	for (i = 0; i < 60 && high - low > 1e-6 * high; i++) {
		middle = (low + high) / 2;
		if (stats_student(middle, df) > p)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/* ---- trimmed mean ---- */

/* Of sorted values; the g at each end count as the last ones that stay. */
static double winsorized_squares(const double *v, size_t n, size_t g)
{
	double sum = 0, squares = 0, x;
	size_t i;
	int pass;

	for (pass = 0; pass < 2; pass++)
		for (i = 0; i < n; i++) {
			x = v[i < g ? g : i >= n - g ? n - g - 1 : i];
			if (pass == 0)
				sum += x / (double)n;
			else
				squares += (x - sum) * (x - sum);
		}
	return squares;
}

int stats_trimmed(const double *v, size_t n, struct stats_estimate *ret)
{
	size_t g = n >= 6 ? n / 5 : 0, h = n - 2 * g;
	double *sorted = malloc(n * sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, v, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_double);
	*ret = (struct stats_estimate){ .mean = stats_mean(sorted + g, h), .df = (double)h - 1 };
	if (h > 1)
		ret->error2 = winsorized_squares(sorted, n, g) / (double)(h * (h - 1));
	free(sorted);
	return 0;
}
