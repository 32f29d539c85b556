// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbus-bench memfd: does the cost of passing a sealed memfd depend on its size? */
#include <stdio.h>

#include "commands.h"
#include "peers.h"
#include "plan.h"

#define SMALL 64

static struct lineup lineup;

static void print(const struct report *r)
{
	const char *last = "";
	const struct cell *c;
	unsigned int i, j;

	printf("\n# Median usecs of a call that carries\n%-12s", "");
	for (j = 0; j < lineup.n; j++)
		printf(" %12s", lineup.subjects[j].name);
	putchar('\n');
	for (i = 0; i < r->n_cells; i++) {
		if (!report_row_begins(r, i))
			continue;
		last = r->cells[i]->row;
		printf("%-12s", last);
		for (j = 0; j < lineup.n; j++) {
			c = report_find(r, last, lineup.subjects[j].name);
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
	static const uint64_t sizes[] = { SMALL, 4096, 65536, 1 << 20, 4 << 20 };
	struct row rows[2 * OPTIONS_LIST_MAX + 1];
	struct options o = *options;
	struct column columns[SET_MAX];
	unsigned int i, n = 0;

	peers_standard(&lineup, true);
	plan_sizes(&o, sizes, 5);
	make_row(&rows[n++], &o, "copy", SMALL, JOB_COPY);
	for (i = 0; i < o.n_sizes; i++)
		make_row(&rows[n++], &o, "pass", o.sizes[i], JOB_PASS);
	for (i = 0; i < o.n_sizes; i++)
		make_row(&rows[n++], &o, "new", o.sizes[i], JOB_MEMFD);
	peers_columns(&lineup, JOB_COPY, columns);
	return plan_run(
		&(struct plan){
			.name = "memfd",
			.subjects = lineup.subjects,
			.n_subjects = lineup.n,
			.columns = columns,
			.n_columns = lineup.n,
			.rows = rows,
			.n_rows = n,
			.print = print,
		},
		&o);
}
