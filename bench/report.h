/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

/**
 * DOC: what came out of a run
 *
 * A report is a set of cells; a cell is one row of one subject, with a sample
 * per repetition. Samples are smaller-is-better always, nanoseconds per
 * transaction unless the cell says otherwise; rates are derived when printed.
 */

#include "hist.h"
#include "options.h"
#include "regime.h"
#include "transport.h"

/**
 * struct cell - one row of one subject
 * @row: e.g. "4k"
 * @subject: e.g. "dbus-broker"
 * @unit: of the samples
 * @size: payload bytes, 0 where it has no meaning
 * @messages: messages in a transaction
 * @samples: n of them
 * @cpu_ns: CPU time a message cost, by role
 * @switches: context switches a message cost, by role
 * @hist: single transactions of all repetitions, or NULL where they overlap
 */
struct cell {
	char row[32];
	char subject[64];
	const char *unit;
	uint64_t size;
	double messages;
	double *samples;
	double *cpu_ns[N_ROLES];
	double *switches[N_ROLES];
	unsigned int n;
	struct hist *hist;
};

#define REPORT_PEERS_MAX 32

struct report_peer {
	char subject[64];
	char version[96];
	char missing[128]; /* why it is not there; empty if it is */
};

struct report {
	const char *name;
	const struct options *options;
	struct regime regime;
	struct cell **cells;
	unsigned int n_cells;
	struct report_peer peers[REPORT_PEERS_MAX];
	unsigned int n_peers;
	void (*more)(const struct report *r, struct json *j); /* members of its own, or NULL */
};

/** report_init() - begin, and print the regime */
void report_init(struct report *r, const char *name, const struct options *options);

/** report_clear() - free what it holds */
void report_clear(struct report *r);

/** report_peer() - note a subject, with its version or with the reason why it is missing */
void report_peer(struct report *r, const char *subject, const char *version, const char *missing);

/** report_cell() - the cell, made if need be; NULL for want of memory */
struct cell *report_cell(struct report *r, const char *row, const char *subject);

/** report_find() - the cell or NULL */
const struct cell *report_find(const struct report *r, const char *row, const char *subject);

/** report_add() - add a link's result as a sample; 0 or -ENOMEM */
int report_add(struct report *r, struct cell *c, const struct result *result);

/** report_add_value() - add a sample that is no time */
int report_add_value(struct report *r, struct cell *c, double value);

/** report_messages() - say how many messages a transaction of a cell is; scales what is there */
void report_messages(struct report *r, const char *row, const char *subject, double messages);

/** report_row_begins() - is cell @i the first of its row? */
bool report_row_begins(const struct report *r, unsigned int i);

/** report_details() - a line a cell: statistics, percentiles, CPU, switches */
void report_details(const struct report *r, FILE *f);

/** report_missing() - a line for each peer that is not there */
void report_missing(const struct report *r, FILE *f);

/** report_verdict() - in words, how @subject compares with @what: the fastest of @others */
void report_verdict(const struct report *r, const char *subject, const char *what,
		    const char *const *others, unsigned int n_others, FILE *f);

/** report_files() - write what --json and --plot ask for; 0 or -EIO after a message */
int report_files(const struct report *r);

/** cell_median() - median of a cell's samples */
double cell_median(const struct cell *c);

/** cell_cpu_us() - CPU microseconds a message, mean over the repetitions */
double cell_cpu_us(const struct cell *c, enum role role);

#endif
