// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * kdbus-bench latency: two connections bounce packets through poll loops, a line a second, after
 * the benchmark that came with kdbus.
 */
#include <stdio.h>

#include "commands.h"
#include "peers.h"
#include "plan.h"

static struct lineup lineup;

#define PACKET 64

static void print_percentiles(const struct report *r)
{
	const struct hist *h;
	unsigned int i;

	printf("\n# Latency from sending a packet until it is back (usecs)\n%-14s %10s %10s %10s "
	       "%10s %10s\n",
	       "OVER", "PACKETS", "P50", "P99", "P99.9", "MAX");
	for (i = 0; i < r->n_cells; i++) {
		h = r->cells[i]->hist;
		printf("%-14s %10llu %10.2f %10.2f %10.2f %10.2f\n", r->cells[i]->subject,
		       (unsigned long long)h->total, (double)hist_percentile(h, 50) / 1000,
		       (double)hist_percentile(h, 99) / 1000,
		       (double)hist_percentile(h, 99.9) / 1000, (double)h->max / 1000);
	}
}

static void print(const struct report *r)
{
	print_percentiles(r);
	report_verdict(r, "libkdbus", "the fastest bus", lineup.brokers, lineup.n_brokers, stdout);
}

/* The line of kdbus's own benchmark, as each second ends. */
static int print_second(const struct link *l, struct report *r)
{
	const struct hist *h = &l->shared->result.hist;

	set_progress(NULL, NULL, 0, 0);
	printf("%-12s stats: %llu packets processed, "
	       "latency (usecs) min/max/avg %8.1f/%8.1f/%8.1f\n",
	       l->subject, (unsigned long long)h->total, (double)h->min / 1000,
	       (double)h->max / 1000, h->sum / (double)h->total / 1000);
	fflush(stdout);
	return 0;
}

int command_latency(const struct options *options)
{
	struct options o = *options;
	struct column columns[SET_MAX];
	struct row row = { .name = "bounce" };
	unsigned int i;

	peers_standard(&lineup, true);
	if (o.seconds)
		o.repeat = o.seconds;
	row.order = (struct order){
		.job = { .request = PACKET, .reply = PACKET, .poll = true },
		.count = o.count,
		.ns = 1000000000,
		.warm_ns = 20000000,
	};
	for (i = 0; i < lineup.n; i++)
		columns[i] = (struct column){ .subject = i, .each = print_second };
	return plan_run(
		&(struct plan){
			.name = "latency",
			.subjects = lineup.subjects,
			.n_subjects = lineup.n,
			.columns = columns,
			.n_columns = lineup.n,
			.rows = &row,
			.n_rows = 1,
			.print = print,
		},
		&o);
}
