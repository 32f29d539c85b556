// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What kdbus-bench compare takes for slower: false alarms and missed regressions counted over
 * simulated pairs of runs, always the same ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "stats.h"

#define THRESHOLD   1.05
#define SAMPLES_MAX 60

/* ---- noise ---- */

static uint64_t seed;

static double uniform(void)
{
	uint64_t x = seed += 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return ((double)((x ^ (x >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	double radius = sqrt(-2 * log(uniform()));

	return radius * cos(2 * M_PI * uniform());
}

/* Standard deviations of logarithms, and what else happens to samples. */
struct noise {
	const char *name;
	double sample;
	double cell; /* of a row and subject, from run to run */
	double run; /* of all rows alike */
	double turn; /* of all rows of a subject in one repetition, which are neighbours */
	double stolen; /* share of samples that something else took time from */
	double twofold; /* share of samples with processes on two CPUs: twice as long */
};

static const struct noise noises[] = {
	{ .name = "pinned, quiet", .sample = 0.02, .cell = 0.01, .run = 0.005 },
	{ .name = "exact", .sample = 0.001, .cell = 0.008, .run = 0.005 },
	{ .name = "pinned, disturbed", .sample = 0.04, .cell = 0.01, .run = 0.01, .stolen = 0.1 },
	{ .name = "not pinned", .sample = 0.05, .cell = 0.02, .run = 0.01, .twofold = 0.3 },
	{ .name = "by turns", .sample = 0.05, .cell = 0.02, .run = 0.01, .turn = 0.3 },
	{ .name = "busy", .sample = 0.5, .cell = 0.05, .run = 0.02, .stolen = 0.3 },
};
#define N_NOISES (sizeof(noises) / sizeof(noises[0]))

static double one_sample(const struct noise *noise, double centre)
{
	double x = exp(centre + noise->sample * normal());

	if (uniform() < noise->stolen)
		x *= 1 - log(uniform());
	return uniform() < noise->twofold ? 2 * x : x;
}

/* ---- tables ---- */

struct shape {
	unsigned int rows;
	unsigned int subjects;
	unsigned int samples;
};

struct table {
	struct judge_row *rows;
	double *samples;
	unsigned int n;
};

/* @turns: what each of the @n repetitions has done to all rows of the subject */
static void fill(const struct noise *noise, double *to, unsigned int n, double centre,
		 const double *turns)
{
	unsigned int i;

	centre += noise->cell * normal();
	for (i = 0; i < n; i++)
		to[i] = one_sample(noise, centre + turns[i]);
}

/* The repetitions of a subject in two runs */
static void take_turns(const struct noise *noise, double *turns, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		turns[i] = noise->turn > 0 ? noise->turn * normal() : 0;
}

/* Two runs of the same; the second is @factor times as slow in the first @slower rows. */
static struct table simulate(const struct shape *s, const struct noise *noise, unsigned int slower,
			     double factor)
{
	unsigned int cells = s->rows * s->subjects, i;
	double drift_a = noise->run * normal(), drift_b = noise->run * normal();
	struct table t = { .n = cells + s->subjects };
	double turns[2 * SAMPLES_MAX], *at;

	assert_true(s->samples <= SAMPLES_MAX);
	at = t.samples = calloc((size_t)cells * 2 * s->samples, sizeof(double));
	t.rows = calloc(t.n, sizeof(*t.rows));
	assert_true(t.samples && t.rows);
	for (i = 0; i < cells; i++, at += 2 * s->samples) {
		if (i % s->rows == 0)
			take_turns(noise, turns, 2 * s->samples);
		fill(noise, at, s->samples, 9 + drift_a, turns);
		fill(noise, at + s->samples, s->samples,
		     9 + drift_b + (i < slower ? log(factor) : 0), turns + s->samples);
		t.rows[i] = (struct judge_row){ at, at + s->samples, s->samples, s->samples,
						i / s->rows };
	}
	for (i = 0; i < s->subjects; i++)
		t.rows[cells + i].group = i;
	return t;
}

static void clear(struct table *t)
{
	free(t->rows);
	free(t->samples);
}

/* How many tables of @tries had anything slower that is not one of the first @slower rows. */
static unsigned int alarms(const struct shape *s, const struct noise *noise, unsigned int tries)
{
	unsigned int i, j, n = 0;
	struct table t;

	for (i = 0; i < tries; i++) {
		t = simulate(s, noise, 0, 1);
		assert_int_equal(judge(t.rows, t.n, THRESHOLD), 0);
		for (j = 0; j < t.n && !t.rows[j].slower; j++)
			;
		n += j < t.n;
		clear(&t);
	}
	return n;
}

/* How many tables of @tries show row 0, the only one that got slower. */
static unsigned int findings(const struct shape *s, const struct noise *noise, double factor,
			     unsigned int tries)
{
	unsigned int i, n = 0;
	struct table t;

	for (i = 0; i < tries; i++) {
		t = simulate(s, noise, 1, factor);
		assert_int_equal(judge(t.rows, t.n, THRESHOLD), 0);
		n += t.rows[0].slower;
		clear(&t);
	}
	return n;
}

/* ---- tests ---- */

static void false_alarms_are_rarer_than_promised(void **state)
{
	static const struct shape shapes[] = {
		{ 23, 5, 7 }, { 5, 5, 3 }, { 40, 5, 7 }, { 9, 8, 7 },
		{ 1, 4, 7 },  { 1, 5, 3 }, { 3, 3, 7 },	 { 9, 4, 2 },
	};
	const unsigned int tries = 300;
	unsigned int i, j, n, bad = 0;

	seed = 1;
	for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (j = 0; j < N_NOISES; j++) {
			n = alarms(&shapes[i], &noises[j], tries);
			if (n > tries * JUDGE_ALPHA) {
				print_error("%s, %u x %u, %u samples: %u false alarms in %u\n",
					    noises[j].name, shapes[i].rows, shapes[i].subjects,
					    shapes[i].samples, n, tries);
				bad++;
			}
		}
	assert_int_equal(bad, 0);
}

static void one_slow_row_is_found(void **state)
{
	static const struct {
		struct shape shape;
		unsigned int noise;
		double factor;
		unsigned int percent; /* of the tables, at least */
	} cases[] = {
		{ { 23, 5, 7 }, 0, 1.1, 80 },  { { 23, 5, 7 }, 0, 1.2, 99 },
		{ { 23, 5, 7 }, 2, 1.2, 50 },  { { 23, 5, 7 }, 2, 1.7, 75 },
		{ { 40, 5, 7 }, 0, 1.2, 99 },  { { 5, 5, 3 }, 0, 1.2, 80 },
		{ { 23, 5, 3 }, 0, 1.3, 80 },  { { 23, 5, 3 }, 0, 1.7, 95 },
		{ { 1, 4, 7 }, 0, 1.1, 80 },   { { 1, 4, 3 }, 0, 1.2, 80 },
		{ { 23, 5, 60 }, 3, 1.7, 60 },
	};
	const unsigned int tries = 100;
	unsigned int i, n, bad = 0;

	seed = 2;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		n = findings(&cases[i].shape, &noises[cases[i].noise], cases[i].factor, tries);
		if (n < cases[i].percent) {
			print_error("%s, %u x %u, %u samples, x %.2f: found in %u %%\n",
				    noises[cases[i].noise].name, cases[i].shape.rows,
				    cases[i].shape.subjects, cases[i].shape.samples,
				    cases[i].factor, n);
			bad++;
		}
	}
	assert_int_equal(bad, 0);
}

/* Each row by too little for a test of its own, in the noise there is. */
static void a_slow_subject_is_found(void **state)
{
	const struct shape s = { 9, 4, 7 };
	unsigned int i, whole = 0;
	struct table t;

	seed = 3;
	for (i = 0; i < 100; i++) {
		t = simulate(&s, &noises[2], s.rows, 1.2);
		assert_int_equal(judge(t.rows, t.n, THRESHOLD), 0);
		whole += t.rows[s.rows * s.subjects].slower;
		clear(&t);
	}
	assert_true(whole >= 80);
}

static void single_samples_prove_nothing(void **state)
{
	const struct shape s = { 2, 2, 1 };
	struct table t = simulate(&s, &noises[0], 4, 1000);
	unsigned int i;

	assert_int_equal(judge(t.rows, t.n, THRESHOLD), 0);
	for (i = 0; i < t.n; i++)
		assert_true(isinf(t.rows[i].noticeable) && !t.rows[i].slower && !t.rows[i].faster);
	clear(&t);
}

/* What is said to be noticeable is noticed, and what is a little less is not. */
static void noticeable_is_the_border(void **state)
{
	const struct shape s = { 4, 3, 7 };
	struct table t = simulate(&s, &noises[0], 0, 1);
	double *samples = (double *)t.rows[0].b, least;
	unsigned int i;

	assert_int_equal(judge(t.rows, t.n, THRESHOLD), 0);
	least = t.rows[0].noticeable / t.rows[0].ratio;
	for (i = 0; i < 7; i++)
		samples[i] *= least * 1.02;
	assert_int_equal(judge(t.rows, t.n, THRESHOLD), 0);
	assert_true(t.rows[0].slower);
	for (i = 0; i < 7; i++)
		samples[i] *= 0.97;
	assert_int_equal(judge(t.rows, t.n, THRESHOLD), 0);
	assert_false(t.rows[0].slower);
	clear(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(false_alarms_are_rarer_than_promised),
		cmocka_unit_test(one_slow_row_is_found),
		cmocka_unit_test(a_slow_subject_is_found),
		cmocka_unit_test(single_samples_prove_nothing),
		cmocka_unit_test(noticeable_is_the_border),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
