/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_ICOUNT_H
#define BENCH_ICOUNT_H

/**
 * DOC: counted instructions, as tests/vm/cost writes them
 *
 * A table is lines of three words: "KIND BYTES INSTRUCTIONS", below a line "kernel RELEASE" each
 * time another kernel begins.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define ICOUNT_ROWS_MAX 64
#define ICOUNT_GOALS	5

/* A goal missed by less is none: a compiler makes as much of a difference. */
#define ICOUNT_ALLOWANCE 1.03

struct icount_row {
	char kind[32];
	uint64_t bytes;
	uint64_t instructions;
};

/**
 * struct icount - the counts on one kernel
 * @kernel: its release
 * @rows: as they were read
 * @n: how many
 */
struct icount {
	char kernel[96];
	struct icount_row rows[ICOUNT_ROWS_MAX];
	unsigned int n;
};

/**
 * struct icount_goal - how far a goal was reached
 * @name: what is compared
 * @cost: of kdbus
 * @floor: what it is compared with
 * @goal: as much of @floor may @cost be
 */
struct icount_goal {
	const char *name;
	double cost;
	double floor;
	double goal;
};

/**
 * icount_read() - read the counts on the next kernel
 * @f: table, at its start or where the last call has left it
 * @ret: counts
 *
 * Return: 1; 0: there are no more; -EBADMSG: this is no such table.
 */
int icount_read(FILE *f, struct icount *ret);

/** icount_get() - instructions, or 0 if they were not counted */
uint64_t icount_get(const struct icount *c, const char *kind, uint64_t bytes);

/** icount_per_byte() - what a byte more costs in messages of @kind */
double icount_per_byte(const struct icount *c, const char *kind);

/** icount_fixed() - what such a message costs whatever its size */
double icount_fixed(const struct icount *c, const char *kind);

/**
 * icount_goals() - the goals
 * @c: counts
 * @ret: goals
 *
 * Return: 0, or -EBADMSG: a count that is needed is missing.
 */
int icount_goals(const struct icount *c, struct icount_goal ret[ICOUNT_GOALS]);

/** icount_ratio() - cost in terms of what it is compared with */
static inline double icount_ratio(const struct icount_goal *g)
{
	return g->cost / g->floor;
}

/** icount_missed() - is the goal missed by more than is allowed for? */
static inline bool icount_missed(const struct icount_goal *g)
{
	return icount_ratio(g) > g->goal * ICOUNT_ALLOWANCE;
}

#endif
