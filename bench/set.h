/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_SET_H
#define BENCH_SET_H

/**
 * DOC: the subjects of a run, started together and measured in turn
 */

#include "bus.h"
#include "link.h"
#include "report.h"

#define SET_MAX 24

/**
 * struct subject - what is to be measured
 * @name: what tables call it
 * @bus: the bus it needs
 * @transport: how it talks, NULL if this build lacks it
 * @package: the package whose absence at build time is the reason for that
 * @columns: names of columns that are not the subject's own, which --only may name too
 * @missing: why it is not to be measured, or NULL
 * @relayed: with a relay
 * @receivers, @matching: see struct link_plan
 */
struct subject {
	const char *name;
	enum bus_kind bus;
	const struct transport *transport;
	const char *package;
	const char *columns[2];
	const char *missing;
	bool relayed;
	unsigned int receivers;
	bool matching;
};

/** struct set - running subjects; links[i] belongs to subjects[i] and is NULL if it is missing */
struct set {
	const struct subject *subjects;
	unsigned int n;
	struct bus buses[N_BUSES];
	struct link *links[SET_MAX];
	pid_t hogs[256];
	unsigned int n_hogs;
};

/**
 * set_check_only() - does --only name what is there?
 *
 * Return: 0, or -EINVAL after a message that lists what there is.
 */
int set_check_only(const struct subject *subjects, unsigned int n, const struct options *o);

/**
 * set_start() - start what @subjects need
 *
 * What is missing is noted in @report and no error.
 *
 * Return: 0 or a negative errno after a message; nothing is left then.
 */
int set_start(struct set *s, const struct subject *subjects, unsigned int n,
	      const struct options *o, struct report *report);

/** set_stop() - end everything */
void set_stop(struct set *s);

/**
 * struct column - one thing to measure in each row
 * @subject: index into the set
 * @name: of the cells; NULL: the subject's
 * @kind: how requests carry their payload, if not as the row says (JOB_COPY)
 * @max: largest payload it is measured with, 0 for no limit
 * @limit: why that is so
 * @each: called after each measurement with its result in shared memory; optional
 */
struct column {
	unsigned int subject;
	const char *name;
	enum job_kind kind;
	size_t max;
	const char *limit;
	int (*each)(const struct link *l, struct report *r);
};

/** struct row - the order every column gets */
struct row {
	char name[32];
	struct order order;
};

/**
 * set_measure() - all rows, all columns of each in turn, again in each repetition
 *
 * So the samples of a cell come from the whole run: they show what the machine changes by in that
 * time, and no moment of other work hits a row alone.
 *
 * Return: 0 or a negative errno after a message.
 */
int set_measure(struct set *s, const struct column *columns, unsigned int n_columns,
		const struct row *rows, unsigned int n_rows, struct report *report);

/** set_measure_row() - one row once, all columns in turn */
int set_measure_row(struct set *s, const struct column *columns, unsigned int n_columns,
		    const struct row *row, struct report *report);

/** set_note_limits() - note in @report the columns that have rows beyond their limit */
void set_note_limits(const struct subject *subjects, const struct column *columns,
		     unsigned int n_columns, const struct row *rows, unsigned int n_rows,
		     struct report *report);

/** set_progress() - what is being measured, on stderr if that is a terminal; NULL clears it */
void set_progress(const char *what, const char *row, unsigned int i, unsigned int n);

#endif
