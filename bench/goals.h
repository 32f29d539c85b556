/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_GOALS_H
#define BENCH_GOALS_H

/**
 * DOC: speed goals, each next to the peer it is measured by
 *
 * A goal is a bound on how many times as long as its peer something takes. Both are cells of one
 * report, whose samples were taken next to each other: so there is a ratio for each repetition, and
 * an interval for their mean. A goal is reached if the whole interval keeps the bound, missed if
 * none of it does, and open in between.
 */

#include "report.h"

/**
 * struct goal_side - a cell, or the mean of two cells of a row, and something on top
 * @row: NULL: the one of the measured side
 * @other: a second subject of the row, or NULL
 * @plus_ns: added to each sample
 */
struct goal_side {
	const char *row;
	const char *subject;
	const char *other;
	double plus_ns;
};

/**
 * struct goal - one
 * @name: what is measured, in words
 * @measured: ours
 * @peer: what it is compared with
 * @peer_name: what tables call that
 * @bound: of the ratio; 0: there is none, the ratio is for information
 */
struct goal {
	const char *name;
	struct goal_side measured;
	struct goal_side peer;
	const char *peer_name;
	double bound;
};

/** goals_print() - the table */
void goals_print(const struct report *r, const struct goal *goals, unsigned int n);

/** goals_json() - member "goals": an array */
void goals_json(const struct report *r, const struct goal *goals, unsigned int n, struct json *j);

#endif
