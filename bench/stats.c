// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stats.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EXACT_MAX 60

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

/* 97.5 % quantile of Student's t; past the table the normal one is close enough. */
static double student(size_t df)
{
	static const double t[] = { 0,	   12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
				    2.306, 2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
				    2.120, 2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069,
				    2.064, 2.060,  2.056, 2.052, 2.048, 2.045, 2.042 };

	return df < sizeof(t) / sizeof(t[0]) ? t[df] : 1.96 + 2.4 / (double)df;
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
		half = student(n - 1) * sqrt(squares / (double)(n - 1) / (double)n);
	return (struct stats_ratio){ exp(mean), exp(mean - half), exp(mean + half) };
}

/* ---- Mann-Whitney ---- */

struct ranked {
	double value;
	bool of_b;
	unsigned int rank2; /* twice the rank, so that the middle rank of ties is an integer */
};

static int compare_ranked(const void *a, const void *b)
{
	return compare_double(&((const struct ranked *)a)->value,
			      &((const struct ranked *)b)->value);
}

static void give_ranks(struct ranked *r, size_t total)
{
	size_t i, j, k;

	for (i = 0; i < total; i = j) {
		for (j = i; j < total && r[j].value == r[i].value; j++)
			;
		for (k = i; k < j; k++)
			r[k].rank2 = (unsigned int)(i + 1 + j);
	}
}

static struct ranked *rank_all(const double *a, size_t n, const double *b, size_t m)
{
	struct ranked *r = calloc(n + m, sizeof(*r));
	size_t i;

	if (!r)
		return NULL;
	for (i = 0; i < n; i++)
		r[i].value = a[i];
	for (i = 0; i < m; i++)
		r[n + i] = (struct ranked){ .value = b[i], .of_b = true };
	qsort(r, n + m, sizeof(*r), compare_ranked);
	give_ranks(r, n + m);
	return r;
}

/* Count the choices of m ranks out of all by their sum; ways[k][s] flattened. */
static int exact(const struct ranked *r, size_t total, size_t m, unsigned int seen, double *ret_p)
{
	size_t width = total * (total + 1) + 1, i, k, s;
	double *ways = calloc((m + 1) * width, sizeof(*ways));
	double all = 0, extreme = 0;

	if (!ways)
		return -ENOMEM;
	ways[0] = 1;
	for (i = 0; i < total; i++)
		for (k = m < i + 1 ? m : i + 1; k > 0; k--)
			for (s = r[i].rank2; s < width; s++)
				ways[k * width + s] += ways[(k - 1) * width + s - r[i].rank2];
	for (s = 0; s < width; s++) {
		all += ways[m * width + s];
		if (s >= seen)
			extreme += ways[m * width + s];
	}
	free(ways);
	*ret_p = extreme / all;
	return 0;
}

static double approximate(const struct ranked *r, size_t n, size_t m, double seen)
{
	double total = (double)(n + m), mean = (double)m * (total + 1) / 2, ties = 0, var;
	size_t i, j;

	for (i = 0; i < n + m; i = j) {
		for (j = i; j < n + m && r[j].rank2 == r[i].rank2; j++)
			;
		ties += pow((double)(j - i), 3) - (double)(j - i);
	}
	var = (double)n * (double)m / 12 * (total + 1 - ties / (total * (total - 1)));
	if (var <= 0)
		return 1;
	return 0.5 * erfc((seen - 0.5 - mean) / sqrt(2 * var));
}

int stats_slower(const double *a, size_t n, const double *b, size_t m, double *ret_p)
{
	struct ranked *r = rank_all(a, n, b, m);
	unsigned int seen = 0;
	size_t i;
	int ret = 0;

	if (!r)
		return -ENOMEM;
	for (i = 0; i < n + m; i++)
		if (r[i].of_b)
			seen += r[i].rank2;
	if (n + m <= EXACT_MAX)
		ret = exact(r, n + m, m, seen, ret_p);
	else
		*ret_p = approximate(r, n, m, seen / 2.0);
	free(r);
	return ret;
}
