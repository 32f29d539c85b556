// SPDX-License-Identifier: LGPL-2.1-or-later
#include "judge.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

/* Standard deviation of a difference between two runs of the same: at least, and if unknown. */
#define BETWEEN_LEAST	0.01
#define BETWEEN_ASSUMED 0.02
/* So many rows that do not define their subject's difference tell what rows differ by. */
#define BETWEEN_ROWS	12
#define GROUP_ROWS	3
#define MAD_TO_SIGMA	1.4826

/* @testable: an error is known */
struct difference {
	struct stats_estimate e;
	bool testable;
};

struct judgement {
	struct judge_row *rows;
	struct difference *diffs; /* of each row */
	double *scratch; /* as many numbers as rows */
	unsigned int n;
	struct stats_estimate between; /* rule 2; error2 is the variance */
};

/* ---- differences of single rows ---- */

static int log_estimate(const double *v, size_t n, struct stats_estimate *ret)
{
	double *logs = malloc(n * sizeof(*logs));
	size_t i;
	int r;

	if (!logs)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		logs[i] = log(v[i]);
	r = stats_trimmed(logs, n, ret);
	free(logs);
	return r;
}

static double part_df(const struct stats_estimate *e)
{
	return e->df > 0 ? e->error2 * e->error2 / e->df : 0;
}

/* Welch and Satterthwaite: the sum of independent errors. */
static void add_error(struct stats_estimate *sum, const struct stats_estimate *e)
{
	double parts = part_df(sum) + part_df(e);

	sum->error2 += e->error2;
	sum->df = parts > 0 ? sum->error2 * sum->error2 / parts : INFINITY;
}

static int estimate_row(const struct judge_row *row, struct difference *d)
{
	struct stats_estimate a = { 0 }, b = { 0 };
	int r = log_estimate(row->a, row->n, &a);

	if (r == 0)
		r = log_estimate(row->b, row->m, &b);
	if (r < 0)
		return r;
	d->testable = a.df > 0 && b.df > 0;
	d->e = b;
	d->e.mean -= a.mean;
	add_error(&d->e, &a);
	return 0;
}

/* ---- what rows differ from run to run ---- */

/* The differences of the rows of a group into the scratch space; returns how many. */
static unsigned int group_differences(struct judgement *j, unsigned int group)
{
	unsigned int i, n = 0;

	for (i = 0; i < j->n; i++)
		if (j->rows[i].a && j->rows[i].group == group)
			j->scratch[n++] = j->diffs[i].e.mean;
	return n;
}

/* How far each row is from the median of its group, squared; returns how many say something. */
static unsigned int residuals(struct judgement *j, double *ret, unsigned int *ret_free)
{
	unsigned int group, i, k, n = 0;
	double middle;

	*ret_free = 0;
	for (group = 0; group < j->n; group++) {
		k = group_differences(j, group);
		if (k < 2)
			continue;
		middle = stats_median(j->scratch, k);
		for (i = 0; i < k; i++)
			ret[n++] = fabs(j->scratch[i] - middle);
		*ret_free += k - 1;
	}
	return n;
}

/* The scatter that the repetitions explain already. */
static double typical_error2(struct judgement *j)
{
	unsigned int i, n = 0;

	for (i = 0; i < j->n; i++)
		if (j->rows[i].a && j->diffs[i].testable)
			j->scratch[n++] = j->diffs[i].e.error2;
	return n ? stats_median(j->scratch, n) : 0;
}

/* As if it were a single row's: what disturbed that has disturbed the others, too. */
static double typical_df(const struct judgement *j)
{
	double df = 0;
	unsigned int i;

	for (i = 0; i < j->n; i++)
		if (j->rows[i].a && j->diffs[i].testable)
			df = fmax(df, j->diffs[i].e.df);
	return df;
}

/* By the median deviation: a few rows that did get slower must not count as noise. */
static int estimate_between(struct judgement *j)
{
	double *far = calloc(j->n, sizeof(*far)), sigma;
	unsigned int n, degrees;

	if (!far)
		return -ENOMEM;
	j->between = (struct stats_estimate){ .error2 = BETWEEN_ASSUMED * BETWEEN_ASSUMED,
					      .df = INFINITY };
	n = residuals(j, far, &degrees);
	if (degrees >= BETWEEN_ROWS) {
		sigma = MAD_TO_SIGMA * stats_median(far, n);
		j->between.error2 = sigma * sigma * n / degrees - typical_error2(j);
		j->between.df = degrees;
	}
	if (j->between.error2 < BETWEEN_LEAST * BETWEEN_LEAST)
		j->between.error2 = BETWEEN_LEAST * BETWEEN_LEAST;
	free(far);
	return 0;
}

/* ---- all rows of a subject ---- */

static bool all_testable(const struct judgement *j, unsigned int group)
{
	unsigned int i;

	for (i = 0; i < j->n; i++)
		if (j->rows[i].a && j->rows[i].group == group && !j->diffs[i].testable)
			return false;
	return true;
}

/*
 * The rows are the repetitions here: what they scatter has all errors in it but a common one. That
 * is there, as the rows share processes, and what disturbed a repetition of one has disturbed its
 * neighbours: it is taken to be as large as what tells rows apart, or as a typical row's error.
 */
static void estimate_group(struct judgement *j, unsigned int group,
			   const struct stats_estimate *typical, struct difference *d)
{
	const struct stats_estimate least = {
		.error2 = fmax(j->between.error2, BETWEEN_ASSUMED * BETWEEN_ASSUMED),
		.df = INFINITY,
	};
	unsigned int i, n = group_differences(j, group);
	double squares = 0;

	d->testable = n >= GROUP_ROWS && all_testable(j, group);
	if (!n)
		return;
	d->e.mean = stats_mean(j->scratch, n);
	for (i = 0; i < n; i++)
		squares += pow(j->scratch[i] - d->e.mean, 2);
	d->e.error2 = n > 1 ? squares / n / (n - 1) : 0;
	d->e.df = n - 1;
	add_error(&d->e, typical->error2 > least.error2 ? typical : &least);
}

static int estimate_all(struct judgement *j)
{
	struct stats_estimate typical;
	unsigned int i;
	int r = 0;

	for (i = 0; i < j->n && r == 0; i++)
		if (j->rows[i].a)
			r = estimate_row(&j->rows[i], &j->diffs[i]);
	if (r == 0)
		r = estimate_between(j);
	typical = (struct stats_estimate){ .error2 = typical_error2(j), .df = typical_df(j) };
	for (i = 0; i < j->n && r == 0; i++) {
		if (!j->rows[i].a) {
			estimate_group(j, j->rows[i].group, &typical, &j->diffs[i]);
			continue;
		}
		j->diffs[i].e.error2 = fmax(j->diffs[i].e.error2, typical.error2);
		add_error(&j->diffs[i].e, &j->between);
	}
	return r;
}

/* ---- Holm ---- */

struct ordered {
	double p;
	unsigned int row;
};

static int by_p(const void *a, const void *b)
{
	double x = ((const struct ordered *)a)->p, y = ((const struct ordered *)b)->p;

	return (x > y) - (x < y);
}

/*
 * The i-th smallest of n probabilities counts n - i times, and no less than those before it; twice,
 * as the other direction is asked about too.
 */
static void holm(struct judgement *j, struct ordered *order, double sign)
{
	const struct difference *d;
	double p = 0, *to;
	unsigned int i, n = 0;

	for (i = 0; i < j->n; i++) {
		d = &j->diffs[i];
		if (d->testable)
			order[n++] = (struct ordered){
				stats_student(sign * d->e.mean / sqrt(d->e.error2), d->e.df), i
			};
	}
	qsort(order, n, sizeof(*order), by_p);
	for (i = 0; i < n; i++) {
		p = fmin(1, fmax(p, 2 * order[i].p * (n - i)));
		to = sign > 0 ? &j->rows[order[i].row].p_slower : &j->rows[order[i].row].p_faster;
		*to = p;
	}
}

static void answer(struct judgement *j, double threshold)
{
	const struct difference *d;
	struct judge_row *row;
	unsigned int i, n = 0;
	double least;

	for (i = 0; i < j->n; i++)
		n += j->diffs[i].testable;
	for (i = 0; i < j->n; i++) {
		row = &j->rows[i];
		d = &j->diffs[i];
		row->ratio = exp(d->e.mean);
		row->slower = row->p_slower < JUDGE_ALPHA && row->ratio > threshold;
		row->faster = row->p_faster < JUDGE_ALPHA && row->ratio < 1 / threshold;
		row->noticeable = INFINITY;
		if (!d->testable)
			continue;
		least = stats_student_quantile(JUDGE_ALPHA / 2 / n, d->e.df) * sqrt(d->e.error2);
		row->noticeable = fmax(exp(least), threshold);
	}
}

int judge(struct judge_row *rows, unsigned int n, double threshold)
{
	struct judgement j = { .rows = rows, .n = n };
	struct ordered *order = calloc(n, sizeof(*order));
	unsigned int i;
	int r = -ENOMEM;

	for (i = 0; i < n; i++)
		rows[i].p_slower = rows[i].p_faster = 1;
	j.diffs = calloc(n, sizeof(*j.diffs));
	j.scratch = calloc(n, sizeof(*j.scratch));
	if (order && j.diffs && j.scratch)
		r = estimate_all(&j);
	if (r == 0) {
		holm(&j, order, 1);
		holm(&j, order, -1);
		answer(&j, threshold);
	}
	free(j.diffs);
	free(j.scratch);
	free(order);
	return r;
}
