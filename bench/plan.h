/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

/**
 * DOC: what most subcommands are: subjects, columns, rows, and a table
 */

#include "set.h"

/**
 * struct plan - a subcommand's measurement
 * @name: subcommand
 * @print: its table, from a report that is complete
 */
struct plan {
	const char *name;
	const struct subject *subjects;
	unsigned int n_subjects;
	const struct column *columns;
	unsigned int n_columns;
	const struct row *rows;
	unsigned int n_rows;
	void (*print)(const struct report *r);
};

/** plan_run() - measure, print table, details and gaps, write the files */
int plan_run(const struct plan *plan, const struct options *o);

/** plan_sizes() - the sizes asked for, or @n defaults into @o */
void plan_sizes(struct options *o, const uint64_t *defaults, unsigned int n);

/** plan_cell() - print a rate or a dash of @width; @value 0 is a dash */
void plan_cell(double value, int width, int decimals);

#endif
