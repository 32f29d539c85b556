// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * kdbus-bench compare: which rows of B are slower than in A by more than noise.
 *
 * For each row both files have: Mann-Whitney between A's samples, made slower by the threshold,
 * and B's. So a row counts as slower if B's samples are larger than chance allows even if a
 * difference of the threshold were no news. As there are many rows, the probabilities are judged
 * by Holm's procedure: the chance of a single false alarm in the whole comparison is 5 %.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"
#include "json.h"
#include "stats.h"

#define ALPHA 0.05

struct pair {
	const char *row;
	const char *subject;
	double unit; /* what medians are divided by: samples in ns are printed in usecs */
	double median_a;
	double median_b;
	double p_slower;
	double p_faster;
	bool slower;
	bool faster;
};

struct comparison {
	struct pair *pairs;
	unsigned int n;
	unsigned int gone;
	double best_p; /* the smallest probability these sample counts can give */
};

/* ---- reading ---- */

static int read_text(const char *path, char **ret)
{
	FILE *f = fopen(path, "re");
	struct stat st;
	char *text;
	size_t n;

	if (!f || fstat(fileno(f), &st) < 0 || !S_ISREG(st.st_mode)) {
		fprintf(stderr, "kdbus-bench: compare: cannot read %s: %s\n", path,
			f ? "no regular file" : strerror(errno));
		if (f)
			fclose(f);
		return -EINVAL;
	}
	text = malloc((size_t)st.st_size + 1);
	n = text ? fread(text, 1, (size_t)st.st_size, f) : 0;
	fclose(f);
	if (!text)
		return -ENOMEM;
	text[n] = '\0';
	*ret = text;
	return 0;
}

static int load(const char *path, struct json_value **ret)
{
	struct json_value *v = NULL;
	const char *schema;
	char *text;
	int r = read_text(path, &text);

	if (r < 0)
		return r;
	r = json_parse(text, &v);
	free(text);
	schema = r == 0 ? json_text(v, "schema") : NULL;
	if (!schema || strcmp(schema, "kdbus-bench/1") || !json_text(v, "subcommand") ||
	    !json_member(v, "cells")) {
		fprintf(stderr, "kdbus-bench: compare: %s was not written by kdbus-bench --json\n",
			path);
		json_free(v);
		return -EINVAL;
	}
	*ret = v;
	return 0;
}

static const struct json_value *find_cell(const struct json_value *file, const char *row,
					  const char *subject)
{
	const struct json_value *c;
	const char *r, *s;

	for (c = json_member(file, "cells")->child; c; c = c->next) {
		r = json_text(c, "row");
		s = json_text(c, "subject");
		if (r && s && !strcmp(r, row) && !strcmp(s, subject))
			return c;
	}
	return NULL;
}

static double *samples(const struct json_value *cell, size_t *ret_n)
{
	const struct json_value *list = json_member(cell, "samples"), *v;
	double *numbers;
	size_t n = 0;

	for (v = list ? list->child : NULL; v; v = v->next)
		n += v->type == JSON_NUMBER;
	if (n == 0)
		return NULL;
	numbers = malloc(n * sizeof(*numbers));
	*ret_n = n;
	for (n = 0, v = list->child; v && numbers; v = v->next)
		if (v->type == JSON_NUMBER)
			numbers[n++] = v->number;
	return numbers;
}

/*
 * Samples of all subjects with one number were taken next to each other: divided by those of a
 * subject that nobody has changed, they tell less of what the machine was busy with.
 */
static double *relative_samples(const struct json_value *file, const struct json_value *cell,
				const char *against, size_t *ret_n)
{
	const struct json_value *other =
		against ? find_cell(file, json_text(cell, "row"), against) : NULL;
	double *numbers = samples(cell, ret_n), *base;
	size_t i, n = 0;

	if (!against || !numbers)
		return numbers;
	base = other && other != cell ? samples(other, &n) : NULL;
	if (!base || n != *ret_n) {
		free(numbers);
		numbers = NULL;
	}
	for (i = 0; numbers && i < n; i++)
		numbers[i] /= base[i];
	free(base);
	return numbers;
}

/* ---- comparing ---- */

static int slower_than(const double *a, size_t n, const double *b, size_t m, double threshold,
		       double *ret_p)
{
	double *scaled = malloc(n * sizeof(*scaled));
	size_t i;
	int r;

	if (!scaled)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		scaled[i] = a[i] * threshold;
	r = stats_slower(scaled, n, b, m, ret_p);
	free(scaled);
	return r;
}

/* 1 / binomial(n + m, m) */
static double smallest_p(size_t n, size_t m)
{
	double p = 1;
	size_t i;

	for (i = 1; i <= m; i++)
		p *= (double)i / (double)(n + i);
	return p;
}

static double unit_of(const struct json_value *cell)
{
	const char *unit = json_text(cell, "unit");

	return unit && !strcmp(unit, "ns") ? 1000 : 1;
}

/* @a and @b are the samples of cells of the same place; they are freed. */
static int judge_cell(struct comparison *c, const struct json_value *cell_a, double *a, size_t n,
		      double *b, size_t m, double threshold, bool relative)
{
	struct pair *pair = &c->pairs[c->n];
	int r = slower_than(a, n, b, m, threshold, &pair->p_slower);

	if (r == 0)
		r = slower_than(b, m, a, n, threshold, &pair->p_faster);
	if (r == 0) {
		pair->row = json_text(cell_a, "row");
		pair->subject = json_text(cell_a, "subject");
		pair->unit = relative ? 1 : unit_of(cell_a);
		pair->median_a = stats_median(a, n);
		pair->median_b = stats_median(b, m);
		if (smallest_p(n, m) < c->best_p)
			c->best_p = smallest_p(n, m);
		c->n++;
	}
	free(a);
	free(b);
	return r;
}

static int by_slower(const void *a, const void *b)
{
	double x = ((const struct pair *)a)->p_slower, y = ((const struct pair *)b)->p_slower;

	return (x > y) - (x < y);
}

static int by_faster(const void *a, const void *b)
{
	double x = ((const struct pair *)a)->p_faster, y = ((const struct pair *)b)->p_faster;

	return (x > y) - (x < y);
}

/* Holm: in order of probability, the i-th of n is believed below ALPHA / (n - i). */
static unsigned int believe(struct comparison *c)
{
	unsigned int i, n_slower = 0;

	qsort(c->pairs, c->n, sizeof(*c->pairs), by_faster);
	for (i = 0; i < c->n && c->pairs[i].p_faster < ALPHA / (c->n - i); i++)
		c->pairs[i].faster = true;
	qsort(c->pairs, c->n, sizeof(*c->pairs), by_slower);
	for (i = 0; i < c->n && c->pairs[i].p_slower < ALPHA / (c->n - i); i++) {
		c->pairs[i].slower = true;
		n_slower++;
	}
	return n_slower;
}

static int compare_cell(struct comparison *c, const struct json_value *a,
			const struct json_value *b, const struct json_value *cell,
			const struct options *o)
{
	const char *row = json_text(cell, "row"), *subject = json_text(cell, "subject");
	const struct json_value *other;
	double *x, *y = NULL;
	size_t n = 0, m = 0;

	x = row && subject ? relative_samples(a, cell, o->against, &n) : NULL;
	if (!x)
		return 0;
	other = find_cell(b, row, subject);
	if (other)
		y = relative_samples(b, other, o->against, &m);
	if (y)
		return judge_cell(c, cell, x, n, y, m, o->threshold, o->against);
	free(x);
	c->gone++;
	return 0;
}

static int compare_cells(struct comparison *c, const struct json_value *a,
			 const struct json_value *b, const struct options *o)
{
	const struct json_value *cell;
	unsigned int n = 0;
	int r = 0;

	for (cell = json_member(a, "cells")->child; cell; cell = cell->next)
		n++;
	c->pairs = calloc(n + 1, sizeof(*c->pairs));
	if (!c->pairs)
		return -ENOMEM;
	for (cell = json_member(a, "cells")->child; cell && r == 0; cell = cell->next)
		r = compare_cell(c, a, b, cell, o);
	return r;
}

/* ---- saying ---- */

static void warn_if_different(const struct json_value *a, const struct json_value *b,
			      const char *group, const char *key)
{
	const char *x = json_text(json_member(a, group), key);
	const char *y = json_text(json_member(b, group), key);

	if (x && y && strcmp(x, y))
		printf("note: %s differs: '%s' in A, '%s' in B\n", key, x, y);
}

static void print_pair(const struct pair *p)
{
	printf("%-8s %-16s %-24s %12.2f %12.2f %8.3f %9.5f\n",
	       p->slower ? "SLOWER" :
	       p->faster ? "faster" :
			   "same",
	       p->row, p->subject, p->median_a / p->unit, p->median_b / p->unit,
	       p->median_b / p->median_a, p->slower || !p->faster ? p->p_slower : p->p_faster);
}

static void print(const struct comparison *c, const struct options *o, unsigned int n_slower)
{
	unsigned int i;

	printf("%-8s %-16s %-24s %12s %12s %8s %9s\n", "", "ROW", "SUBJECT", "MEDIAN A", "MEDIAN B",
	       "B / A", "P");
	for (i = 0; i < c->n; i++)
		if (c->pairs[i].slower || c->pairs[i].faster)
			print_pair(&c->pairs[i]);
	printf("%u of %u rows slower by more than %.4g %% and more than noise\n", n_slower, c->n,
	       100 * (o->threshold - 1));
	if (c->gone)
		printf("%u rows of A are not in B\n", c->gone);
	if (c->n && c->best_p * c->n >= ALPHA)
		printf("note: so few samples in so many rows can prove nothing; measure with a "
		       "larger --repeat\n");
}

static int compare(const struct json_value *a, const struct json_value *b, const struct options *o)
{
	struct comparison c = { .best_p = 1 };
	unsigned int n_slower = 0;
	int r = compare_cells(&c, a, b, o);

	if (r == 0 && c.n == 0) {
		fprintf(stderr, "kdbus-bench: compare: no row is in both files%s%s\n",
			o->against ? " and has a subject " : "", o->against ? o->against : "");
		r = -EINVAL;
	}
	if (r == 0) {
		warn_if_different(a, b, "machine", "cpu");
		warn_if_different(a, b, "machine", "kernel");
		n_slower = believe(&c);
		print(&c, o, n_slower);
	}
	free(c.pairs);
	return r < 0 ? r : n_slower > 0;
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
	int r = load(o->arguments[0], &a);

	if (r == 0)
		r = load(o->arguments[1], &b);
	if (r == 0)
		r = compare_files(a, b, o);
	json_free(a);
	json_free(b);
	return r;
}
