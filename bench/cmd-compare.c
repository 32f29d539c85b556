// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * kdbus-bench compare: which rows of B are slower than in A by more than noise. What is noise is
 * said in judge.h.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "compare-file.h"
#include "judge.h"
#include "stats.h"

#define ALL_ROWS "(all rows)"
/* A table that would not notice this proves nothing. */
#define HOPELESS 10.0

/* What a row of the judge is printed as; unit: what medians are divided by. */
struct label {
	const char *row;
	const char *subject;
	double unit;
};

struct comparison {
	struct judge_row *rows;
	struct label *labels;
	unsigned int n;
	unsigned int n_cells; /* the first of them; the rest are whole subjects */
	unsigned int gone;
	unsigned int useless;
};

/* ---- collecting ---- */

static double unit_of(const struct json_value *cell)
{
	const char *unit = json_text(cell, "unit");

	/* Samples in ns are printed in usecs. */
	return unit && !strcmp(unit, "ns") ? 1000 : 1;
}

static unsigned int group_of(struct comparison *c, const char *subject)
{
	unsigned int i;

	for (i = 0; i < c->n; i++)
		if (!strcmp(c->labels[i].subject, subject))
			return c->rows[i].group;
	return c->n;
}

static void collect_cell(struct comparison *c, const struct json_value *a,
			 const struct json_value *b, const struct json_value *cell,
			 const char *against)
{
	const char *row = json_text(cell, "row"), *subject = json_text(cell, "subject");
	const struct json_value *other = row && subject ? compare_cell(b, row, subject) : NULL;
	struct judge_row *to = &c->rows[c->n];

	if (against && subject && !strcmp(subject, against))
		return;
	if (!other) {
		c->gone++;
		return;
	}
	to->a = compare_samples(a, cell, against, &to->n);
	to->b = compare_samples(b, other, against, &to->m);
	to->group = group_of(c, subject);
	c->labels[c->n] = (struct label){ row, subject, against ? 1 : unit_of(cell) };
	c->n++;
	if (to->a && to->b)
		return;
	c->n--;
	c->useless++;
	free((double *)to->a);
	free((double *)to->b);
}

/* One more test for each subject that has several rows. */
static void add_groups(struct comparison *c)
{
	unsigned int i, j, n;

	for (i = 0; i < c->n_cells; i++) {
		for (j = 0, n = 0; j < c->n_cells; j++)
			n += c->rows[j].group == c->rows[i].group;
		if (c->rows[i].group != i || n < 2)
			continue;
		c->rows[c->n] = (struct judge_row){ .group = i };
		c->labels[c->n] = (struct label){ ALL_ROWS, c->labels[i].subject, 1 };
		c->n++;
	}
}

static int collect(struct comparison *c, const struct json_value *a, const struct json_value *b,
		   const char *against)
{
	const struct json_value *cell;
	unsigned int n = 0;

	for (cell = json_member(a, "cells")->child; cell; cell = cell->next)
		n++;
	c->rows = calloc(2 * n + 1, sizeof(*c->rows));
	c->labels = calloc(2 * n + 1, sizeof(*c->labels));
	if (!c->rows || !c->labels)
		return -ENOMEM;
	for (cell = json_member(a, "cells")->child; cell; cell = cell->next)
		collect_cell(c, a, b, cell, against);
	c->n_cells = c->n;
	add_groups(c);
	return 0;
}

static void clear(struct comparison *c)
{
	unsigned int i;

	for (i = 0; i < c->n_cells; i++) {
		free((double *)c->rows[i].a);
		free((double *)c->rows[i].b);
	}
	free(c->rows);
	free(c->labels);
}

/* ---- saying ---- */

static void print_row(const struct judge_row *row, const struct label *label)
{
	printf("%-8s %-16s %-24s", row->slower ? "SLOWER" : "faster", label->row, label->subject);
	if (row->a)
		printf(" %12.2f %12.2f", stats_median(row->a, row->n) / label->unit,
		       stats_median(row->b, row->m) / label->unit);
	else
		printf(" %12s %12s", "", "");
	printf(" %8.3f %9.2g\n", row->ratio, row->slower ? row->p_slower : row->p_faster);
}

static void print_rows(const struct comparison *c, bool slower)
{
	unsigned int i;

	for (i = 0; i < c->n; i++)
		if (slower ? c->rows[i].slower : c->rows[i].faster)
			print_row(&c->rows[i], &c->labels[i]);
}

/* Of single rows: half of them would have had to become so much slower to be noticed. */
static double typical_noticeable(const struct comparison *c)
{
	double *v = calloc(c->n_cells, sizeof(*v)), middle = INFINITY;
	unsigned int i;

	if (!v)
		return INFINITY;
	for (i = 0; i < c->n_cells; i++)
		v[i] = c->rows[i].noticeable;
	middle = stats_median(v, c->n_cells);
	free(v);
	return middle;
}

static void print_power(const struct comparison *c)
{
	double noticeable = typical_noticeable(c);

	if (noticeable < HOPELESS)
		printf("A single row had to become slower by %.0f %% to be noticed (half of the "
		       "rows: by less)\n",
		       100 * (noticeable - 1));
	else
		puts("Hardly anything that happened to a single row could be noticed");
	if (noticeable > 1.5)
		puts("note: too much noise or too few repetitions for less; measure on an idle "
		     "machine, with --pin\n      and a larger --repeat");
}

static unsigned int print(const struct comparison *c, double threshold)
{
	unsigned int i, slower = 0, subjects = 0;

	printf("%-8s %-16s %-24s %12s %12s %8s %9s\n", "", "ROW", "SUBJECT", "MEDIAN A", "MEDIAN B",
	       "B / A", "P");
	print_rows(c, true);
	print_rows(c, false);
	for (i = 0; i < c->n; i++) {
		slower += i < c->n_cells && c->rows[i].slower;
		subjects += i >= c->n_cells && c->rows[i].slower;
	}
	printf("%u of %u rows slower by more than %.4g %% and more than noise", slower, c->n_cells,
	       100 * (threshold - 1));
	if (subjects)
		printf("; %u subject%s as a whole", subjects, subjects == 1 ? "" : "s");
	putchar('\n');
	print_power(c);
	if (c->gone)
		printf("%u rows of A are not in B\n", c->gone);
	if (c->useless)
		printf("%u rows left out: no samples, or some that are not greater than 0\n",
		       c->useless);
	return slower + subjects;
}

static int check(const struct comparison *c, const char *against)
{
	double best = INFINITY;
	unsigned int i;

	if (c->n == 0) {
		fprintf(stderr, "kdbus-bench: compare: no row is in both files%s%s\n",
			against ? " and has a subject " : "", against ? against : "");
		return -EINVAL;
	}
	for (i = 0; i < c->n; i++)
		best = fmin(best, c->rows[i].noticeable);
	if (best < HOPELESS)
		return 0;
	fprintf(stderr,
		"kdbus-bench: compare: nothing can be said: even a row %.0f times as slow\n"
		"would not stand out of so few and so different samples; measure with a\n"
		"larger --repeat\n",
		HOPELESS);
	return -EINVAL;
}

/* ---- all ---- */

static int compare(const struct json_value *a, const struct json_value *b, const struct options *o)
{
	struct comparison c = { .n = 0 };
	unsigned int slower = 0;
	int r = collect(&c, a, b, o->against);

	if (r == 0)
		r = judge(c.rows, c.n, o->threshold);
	if (r == 0) {
		compare_notes(a, b, stdout);
		r = check(&c, o->against);
	}
	if (r == 0)
		slower = print(&c, o->threshold);
	clear(&c);
	return r < 0 ? r : slower > 0;
}

static int compare_files(const struct json_value *a, const struct json_value *b,
			 const struct options *o)
{
	const char *x = json_text(a, "subcommand"), *y = json_text(b, "subcommand");

	if (strcmp(x, y)) {
		fprintf(stderr,
			"kdbus-bench: compare: A is of '%s', B of '%s'; compare like with "
			"like\n",
			x, y);
		return -EINVAL;
	}
	return compare(a, b, o);
}

int command_compare(const struct options *o)
{
	struct json_value *a = NULL, *b = NULL;
	int r = compare_load(o->arguments[0], &a);

	if (r == 0)
		r = compare_load(o->arguments[1], &b);
	if (r == 0)
		r = compare_files(a, b, o);
	json_free(a);
	json_free(b);
	return r;
}
