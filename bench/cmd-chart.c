// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * kdbus-bench chart: transactions a second by payload, after the table SIZE COPY MEMFD of the
 * kernel benchmark that sd-bus came with.
 */
#include <stdio.h>

#include "commands.h"
#include "peers.h"
#include "plan.h"

/* The columns: libkdbus has two of them, the peers one each. */
struct chart {
	struct lineup lineup;
	struct column columns[SET_MAX + 1];
	unsigned int n;
};

static struct chart chart;

static void make_chart(void)
{
	struct lineup *l = &chart.lineup;
	unsigned int i;

	peers_standard(l, true);
	l->subjects[0].columns[0] = "COPY";
	l->subjects[0].columns[1] = "MEMFD";
	chart.columns[0] = (struct column){
		.name = "COPY", .kind = JOB_COPY, .max = PEER_KDBUS_MAX, .limit = PEER_KDBUS_LIMIT
	};
	chart.columns[1] = (struct column){ .name = "MEMFD", .kind = JOB_MEMFD };
	for (i = 1; i < l->n; i++)
		chart.columns[i + 1] = (struct column){ .subject = i, .name = l->subjects[i].name };
	chart.n = l->n + 1;
}

static double rate(const struct report *r, const char *row, const char *subject)
{
	const struct cell *c = report_find(r, row, subject);

	return c ? 1e9 / cell_median(c) : 0;
}

static double best_of(const struct report *r, const char *row, const char *const *names,
		      unsigned int n)
{
	double best = 0, one;
	unsigned int i;

	for (i = 0; i < n; i++) {
		one = rate(r, row, names[i]);
		best = one > best ? one : best;
	}
	return best;
}

/* The better of our two columns to the best of the peers, and to the best of the buses. */
static void print_row(const struct report *r, const char *row)
{
	static const char *const own_names[] = { "COPY", "MEMFD" };
	const struct lineup *l = &chart.lineup;
	double own = best_of(r, row, own_names, 2);
	double peer = best_of(r, row, l->peers, l->n_peers);
	double bus = best_of(r, row, l->brokers, l->n_brokers);
	unsigned int i;

	printf("%8s", row);
	for (i = 0; i < chart.n; i++)
		plan_cell(rate(r, row, chart.columns[i].name), 12, 0);
	plan_cell(peer > 0 ? own / peer : 0, 12, 2);
	plan_cell(bus > 0 ? own / bus : 0, 12, 2);
	putchar('\n');
}

static void print_names(const char *const *names, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		printf("%s%s", i == 0 ? "" : i + 1 < n ? ", " : " and ", names[i]);
}

static void print(const struct report *r)
{
	const struct lineup *l = &chart.lineup;
	char text[24];
	unsigned int i;

	printf("\n# Transactions a second. The last columns: COPY or MEMFD, whichever is faster,\n"
	       "# to the fastest peer (of ");
	print_names(l->peers, l->n_peers);
	printf(")\n# and to the fastest bus (of ");
	print_names(l->brokers, l->n_brokers);
	printf(")\n%8s", "SIZE");
	for (i = 0; i < chart.n; i++)
		printf(" %12s", chart.columns[i].name);
	printf(" %12s %12s\n", "x best peer", "x best bus");
	for (i = 0; i < r->options->n_sizes; i++)
		print_row(r, options_format_size(r->options->sizes[i], text, sizeof(text)));
	report_verdict(r, "COPY", "the fastest bus", l->brokers, l->n_brokers, stdout);
	report_verdict(r, "COPY", "the fastest peer", l->peers, l->n_peers, stdout);
}

static void default_sizes(struct options *o)
{
	static const uint64_t quick[] = { 1, 64, 4096, 65536, 1 << 20 };
	unsigned int i;

	if (o->quick)
		plan_sizes(o, quick, 5);
	for (i = 0; !o->quick && !o->n_sizes && i <= 22; i++)
		o->sizes[i] = 1ULL << i;
	if (!o->n_sizes)
		o->n_sizes = i;
}

int command_chart(const struct options *options)
{
	struct row rows[OPTIONS_LIST_MAX];
	struct options o = *options;
	unsigned int i;

	make_chart();
	default_sizes(&o);
	for (i = 0; i < o.n_sizes; i++) {
		options_format_size(o.sizes[i], rows[i].name, sizeof(rows[i].name));
		rows[i].order = (struct order){
			.job = { .request = o.sizes[i] },
			.count = o.count,
			.ns = o.quick ? 30000000 : 100000000,
			.warm_ns = o.quick ? 3000000 : 10000000,
		};
	}
	return plan_run(
		&(struct plan){
			.name = "chart",
			.subjects = chart.lineup.subjects,
			.n_subjects = chart.lineup.n,
			.columns = chart.columns,
			.n_columns = chart.n,
			.rows = rows,
			.n_rows = o.n_sizes,
			.print = print,
		},
		&o);
}
