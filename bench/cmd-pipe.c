// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbus-bench pipe: the floor for all the rest, after perf bench sched pipe. */
#include <sched.h>
#include <stdio.h>

#include "commands.h"
#include "plan.h"

static const struct subject all[] = {
	{ .name = "pipe", .transport = &transport_pipe },
	{ .name = "eventfd", .transport = &transport_eventfd },
	{ .name = "futex", .transport = &transport_futex },
	{ .name = "unix socket", .transport = &transport_unix },
	{ .name = "spin", .transport = &transport_spin },
};
#define N (sizeof(all) / sizeof(all[0]))

static void print_table(const struct report *r)
{
	const struct cell *c;
	unsigned int i;

	printf("\n# Executed round trips between two %s\n%-14s %12s %12s\n",
	       r->options->threads ? "threads" : "processes", "OVER", "usecs/op", "ops/sec");
	for (i = 0; i < N; i++) {
		c = report_find(r, "ping-pong", all[i].name);
		if (c)
			printf("%-14s %12.3f %12.0f\n", all[i].name, cell_median(c) / 1000,
			       1e9 / cell_median(c));
	}
}

/* Two that spin on one CPU wait for the end of each other's time slice. */
static bool spin_useless(const struct options *o)
{
	cpu_set_t usable;

	if (o->n_cpus)
		return o->n_cpus == 1 || o->cpus[0] == o->cpus[1];
	return sched_getaffinity(0, sizeof(usable), &usable) == 0 && CPU_COUNT(&usable) < 2;
}

int command_pipe(const struct options *o)
{
	struct row row = { .name = "ping-pong" };
	struct subject subjects[N];
	struct column columns[N];
	unsigned int i;

	row.order = (struct order){
		.count = o->count,
		.ns = o->quick ? 50000000 : 500000000,
		.warm_ns = o->quick ? 5000000 : 50000000,
	};
	for (i = 0; i < N; i++) {
		subjects[i] = all[i];
		columns[i] = (struct column){ .subject = i };
	}
	if (spin_useless(o))
		subjects[N - 1].missing = "needs client and server on different CPUs";
	return plan_run(
		&(struct plan){
			.name = "pipe",
			.subjects = subjects,
			.n_subjects = N,
			.columns = columns,
			.n_columns = N,
			.rows = &row,
			.n_rows = 1,
			.print = print_table,
		},
		o);
}
