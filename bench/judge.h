/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_JUDGE_H
#define BENCH_JUDGE_H

/**
 * DOC: what got slower between two runs of one table
 *
 * Rules
 *
 * 1. What is compared are trimmed means of logarithms, so a difference is a
 *    ratio, and one stolen time slice in a row of seven hides nothing.
 * 2. The error of a difference has two parts: what repetitions of each run
 *    scattered (Yuen's and Welch's), and what a row differs from one run to the
 *    next though nothing changed. The second is estimated from how much the
 *    rows of a subject disagree about its difference, where there are rows
 *    enough for that, and is assumed otherwise; it is never taken for nothing. Of the
 *    first, a row has at least the median of all rows: a few samples that agree
 *    by luck prove nothing.
 * 3. Beside each row, all rows of a subject are judged together, by how well
 *    they agree: small differences that all of them show are seen that way. What
 *    disturbs a repetition does so to all rows alike, so their agreement alone
 *    proves nothing: a subject's error is no less than that of a typical row.
 * 4. All these tests are one family under Holm's procedure, in
 *    both directions: the probability that a table in which nothing changed says
 *    anything is JUDGE_ALPHA.
 * 5. A difference counts if it is more than chance would have, and more than
 *    the threshold.
 */

#include <stdbool.h>
#include <stddef.h>

#define JUDGE_ALPHA 0.05

/**
 * struct judge_row - one test
 * @a: @n samples of the first run, all greater than zero; NULL: all rows of @group together
 * @b: @m samples of the second
 * @group: number of its subject, less than the number of rows
 * @ratio: how many times @b is @a
 * @p_slower: probability of such a ratio or a larger one if nothing changed, after Holm (rule 4)
 * @p_faster: the same the other way round
 * @noticeable: the ratio from which on this row would have counted; infinite if none would
 * @slower: rule 5
 * @faster: likewise
 */
struct judge_row {
	const double *a;
	const double *b;
	size_t n;
	size_t m;
	unsigned int group;
	double ratio;
	double p_slower;
	double p_faster;
	double noticeable;
	bool slower;
	bool faster;
};

/**
 * judge() - fill in the answers of all rows of a table
 * @rows: @n of them
 * @threshold: ratio below which a difference is no news, at least 1
 *
 * Return: 0 or -ENOMEM.
 */
int judge(struct judge_row *rows, unsigned int n, double threshold);

#endif
