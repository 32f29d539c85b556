/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_UNIT_PROP_H
#define TESTS_UNIT_PROP_H

/*
 * Property tests: random sequences of operations, each applied to the subject
 * and to a deliberately naive model, whose visible results must agree after
 * every step.
 *
 *  1. A sequence depends on nothing but its seed; seeds are counted from a
 *     fixed base, so a run without the environment is the same every time.
 *  2. An operation is plain numbers and means something in every state (an
 *     index that leads nowhere is reduced or does nothing): any part of a
 *     sequence is itself a sequence, which is what makes shrinking possible.
 *  3. Sequences run in a child process: a crash or a failed assertion of the
 *     subject is a failing sequence like any other.
 *
 * A failing sequence is shrunk and printed as a C test to paste into the file.
 *
 * Environment: PROP_SEED (base seed), PROP_SEEDS (how many sequences),
 * PROP_LENGTH (operations per sequence).
 */

#include "base.h"

#define PROP_ARGS 6

struct prop_rng {
	u64 state;
};

/* A uniformly distributed number. */
u64 prop_random(struct prop_rng *rng);

/* A number below @n, which is not 0. */
u64 prop_below(struct prop_rng *rng, u64 n);

/* True once in @n times. */
bool prop_one_in(struct prop_rng *rng, u64 n);

/**
 * struct prop_op - one operation
 * @kind: index into prop_spec.kinds
 * @arg: its arguments, as the spec's step() understands them
 */
struct prop_op {
	unsigned int kind;
	u64 arg[PROP_ARGS];
};

struct prop_report;

/**
 * prop_differ() - say how subject and model disagree
 * @report: as given to step()
 * @format: printf() format of one line
 *
 * Return: false, for step() to pass on.
 */
bool prop_differ(struct prop_report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * struct prop_spec - a property
 * @symbol: C name of this object, for the printed test
 * @kinds: C names of the kinds of operation
 * @n_kinds: how many
 * @seeds: how many sequences to run
 * @length: how many operations in each
 * @generate: makes an operation up; kind and arguments are zeroed before
 * @setup: makes subject and model, both empty
 * @step: applies @op to both and compares all that can be seen; false and
 *	prop_differ() if they disagree. No cmocka assertions: this is a child process
 * @teardown: ends both; false and prop_differ() if something is left over
 */
struct prop_spec {
	const char *symbol;
	const char *const *kinds;
	unsigned int n_kinds;
	unsigned int seeds;
	unsigned int length;
	void (*generate)(struct prop_rng *rng, struct prop_op *op);
	void *(*setup)(void);
	bool (*step)(void *state, const struct prop_op *op, struct prop_report *report);
	bool (*teardown)(void *state, struct prop_report *report);
};

/**
 * prop_run() - run a property; the running cmocka test fails if it does not hold
 * @spec: the property
 */
void prop_run(const struct prop_spec *spec);

/**
 * prop_replay() - run one sequence, as the printed tests do
 * @spec: the property
 * @ops: the operations
 * @n_ops: how many
 */
void prop_replay(const struct prop_spec *spec, const struct prop_op *ops, size_t n_ops);

/**
 * prop_shrink() - drop and simplify operations while the sequence still fails
 * @spec: the property
 * @ops: a failing sequence, replaced
 * @n_ops: how many operations
 *
 * Return: how many operations are left, or 0 if the sequence does not fail.
 */
size_t prop_shrink(const struct prop_spec *spec, struct prop_op *ops, size_t n_ops);

#endif
