// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbus-bench memfd: does the cost of passing a sealed memfd depend on its size? */
#include <stdio.h>

#include "commands.h"
#include "peers.h"
#include "plan.h"

#define SMALL 64

static const struct subject subjects[] = {
	{ .name = "libkdbus", .bus = BUS_KDBUS, .transport = &transport_user },
	{ .name = "dbus-daemon",
	  .bus = BUS_DBUS_DAEMON,
	  .transport = TRANSPORT_SDBUS,
	  .package = PACKAGE_SDBUS },
	{ .name = "dbus-broker",
	  .bus = BUS_DBUS_BROKER,
	  .transport = TRANSPORT_SDBUS,
	  .package = PACKAGE_SDBUS },
	{ .name = "socket", .transport = &transport_stream },
};
#define N (sizeof(subjects) / sizeof(subjects[0]))

static void print(const struct report *r)
{
	const char *last = "";
	const struct cell *c;
	unsigned int i, j;

	printf("\n# Median usecs of a call that carries\n%-12s", "");
	for (j = 0; j < N; j++)
		printf(" %12s", subjects[j].name);
	putchar('\n');
	for (i = 0; i < r->n_cells; i++) {
		if (!report_row_begins(r, i))
			continue;
		last = r->cells[i]->row;
		printf("%-12s", last);
		for (j = 0; j < N; j++) {
			c = report_find(r, last, subjects[j].name);
			plan_cell(c ? cell_median(c) / 1000 : 0, 12, 2);
		}
		putchar('\n');
	}
}

static void make_row(struct row *row, const struct options *o, const char *what, uint64_t size,
		     enum job_kind kind)
{
	char text[24];

	snprintf(row->name, sizeof(row->name), "%s %s", what,
		 options_format_size(size, text, sizeof(text)));
	row->order = (struct order){
		.job = { .kind = kind, .request = size },
		.count = o->count,
		.ns = o->quick ? 30000000 : 100000000,
		.warm_ns = o->quick ? 3000000 : 10000000,
	};
}

int command_memfd(const struct options *options)
{
	static const uint64_t sizes[] = { 4096, 65536, 1 << 20, 4 << 20 };
	struct row rows[2 * OPTIONS_LIST_MAX + 1];
	struct options o = *options;
	struct column columns[N];
	unsigned int i, n = 0;

	plan_sizes(&o, sizes, 4);
	make_row(&rows[n++], &o, "copy", SMALL, JOB_COPY);
	for (i = 0; i < o.n_sizes; i++)
		make_row(&rows[n++], &o, "pass", o.sizes[i], JOB_PASS);
	for (i = 0; i < o.n_sizes; i++)
		make_row(&rows[n++], &o, "new", o.sizes[i], JOB_MEMFD);
	for (i = 0; i < N; i++)
		columns[i] = (struct column){ .subject = i };
	return plan_run(
		&(struct plan){
			.name = "memfd",
			.subjects = subjects,
			.n_subjects = N,
			.columns = columns,
			.n_columns = N,
			.rows = rows,
			.n_rows = n,
			.print = print,
		},
		&o);
}
