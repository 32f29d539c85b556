// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbus-bench pipe: the floor for all the rest, after perf bench sched pipe. */
#include "commands.h"
#include "set.h"

static const struct subject subjects[] = {
	{ .name = "pipe", .transport = &transport_pipe },
	{ .name = "eventfd", .transport = &transport_eventfd },
	{ .name = "futex", .transport = &transport_futex },
	{ .name = "unix socket", .transport = &transport_unix },
	{ .name = "spin", .transport = &transport_spin },
};
#define N (sizeof(subjects) / sizeof(subjects[0]))

static void print_table(const struct report *r)
{
	const struct cell *c;
	unsigned int i;

	printf("\n# Executed round trips between two %s\n%-14s %12s %12s\n",
	       r->options->threads ? "threads" : "processes", "OVER", "usecs/op", "ops/sec");
	for (i = 0; i < N; i++) {
		c = report_find(r, "ping-pong", subjects[i].name);
		if (c)
			printf("%-14s %12.3f %12.0f\n", subjects[i].name, cell_median(c) / 1000,
			       1e9 / cell_median(c));
	}
}

/* Two that spin on one CPU wait for the end of each other's time slice. */
static bool spin_useless(const struct options *o, const struct report *r)
{
	if (o->n_cpus)
		return o->n_cpus == 1 || o->cpus[0] == o->cpus[1];
	return r->regime.cpus_usable < 2;
}

int command_pipe(const struct options *o)
{
	struct row row = { .name = "ping-pong" };
	struct column columns[N];
	struct report report;
	unsigned int n = N;
	struct set set;
	int r;

	report_init(&report, "pipe", o);
	if (spin_useless(o, &report)) {
		report_peer(&report, "spin", NULL, "needs client and server on different CPUs");
		n--;
	}
	row.order = (struct order){
		.count = o->count,
		.ns = o->quick ? 50000000 : 500000000,
		.warm_ns = o->quick ? 5000000 : 50000000,
	};
	r = set_start(&set, subjects, n, o, &report);
	if (r == 0) {
		set_columns(&set, JOB_COPY, columns);
		r = set_measure(&set, columns, n, &row, 1, &report);
		set_stop(&set);
	}
	if (r == 0) {
		print_table(&report);
		report_details(&report, stdout);
		report_missing(&report, stdout);
		r = report_files(&report);
	}
	report_clear(&report);
	return r;
}
