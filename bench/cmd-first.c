// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbus-bench first: what the first messages of a connection cost, next to the steady state. */
#include <stdio.h>

#include "commands.h"
#include "peers.h"
#include "plan.h"

#define PAYLOAD 64

static struct lineup lineup;

static const unsigned int nth[] = { 0, 1, 2, 3, 4, 10, 24 };
#define N_ROWS (sizeof(nth) / sizeof(nth[0]) + 1)

static void make_row(struct row *row, const struct options *o, unsigned int n)
{
	if (n == 0)
		snprintf(row->name, sizeof(row->name), "connect");
	else
		snprintf(row->name, sizeof(row->name), "call %u", n);
	row->order = (struct order){
		.job = { .request = PAYLOAD, .reply = PAYLOAD },
		.count = o->count ? o->count : (o->quick ? 30 : 300),
		.kind = ORDER_FRESH,
		.nth = n,
	};
}

static void print(const struct report *r)
{
	const struct cell *c;
	unsigned int i, j;
	struct row row;

	printf("\n# Median usecs: connecting, and the n-th call to a peer never talked to\n%-10s",
	       "");
	for (j = 0; j < lineup.n; j++)
		printf(" %12s", lineup.subjects[j].name);
	putchar('\n');
	for (i = 0; i < N_ROWS; i++) {
		if (i < N_ROWS - 1)
			make_row(&row, r->options, nth[i]);
		else
			snprintf(row.name, sizeof(row.name), "steady");
		printf("%-10s", row.name);
		for (j = 0; j < lineup.n; j++) {
			c = report_find(r, row.name, lineup.subjects[j].name);
			plan_cell(c ? (double)hist_percentile(c->hist, 50) / 1000 : 0, 12, 2);
		}
		putchar('\n');
	}
}

int command_first(const struct options *o)
{
	struct row rows[N_ROWS] = { 0 };
	struct column columns[SET_MAX];
	unsigned int i;

	peers_standard(&lineup, false);
	for (i = 0; i < N_ROWS - 1; i++)
		make_row(&rows[i], o, nth[i]);
	snprintf(rows[i].name, sizeof(rows[i].name), "steady");
	rows[i].order = (struct order){
		.job = { .request = PAYLOAD, .reply = PAYLOAD },
		.ns = o->quick ? 50000000 : 200000000,
		.warm_ns = o->quick ? 5000000 : 20000000,
	};
	peers_columns(&lineup, JOB_COPY, columns);
	return plan_run(
		&(struct plan){
			.name = "first",
			.subjects = lineup.subjects,
			.n_subjects = lineup.n,
			.columns = columns,
			.n_columns = lineup.n,
			.rows = rows,
			.n_rows = N_ROWS,
			.print = print,
		},
		o);
}
