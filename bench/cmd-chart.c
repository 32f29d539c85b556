// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * kdbus-bench chart: transactions a second by payload, after the table SIZE COPY MEMFD of the
 * kernel benchmark that sd-bus came with.
 */
#include <stdio.h>

#include "commands.h"
#include "peers.h"
#include "plan.h"

/* What one message may carry in payload vectors (ABI 2). */
#define COPY_MAX (2U << 20)

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

static const struct column columns[] = {
	{ .subject = 0, .name = "COPY", .kind = JOB_COPY, .max = COPY_MAX },
	{ .subject = 0, .name = "MEMFD", .kind = JOB_MEMFD },
	{ .subject = 1 },
	{ .subject = 2 },
	{ .subject = 3 },
};
#define N (sizeof(columns) / sizeof(columns[0]))

static const char *const names[N] = { "COPY", "MEMFD", "dbus-daemon", "dbus-broker", "socket" };
static const char *const buses[] = { "dbus-daemon", "dbus-broker" };

static double rate(const struct report *r, const char *row, const char *subject)
{
	const struct cell *c = report_find(r, row, subject);

	return c ? 1e9 / cell_median(c) : 0;
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* The better of our two columns to the better of the two buses. */
static void print_row(const struct report *r, const char *row)
{
	double bus = larger(rate(r, row, buses[0]), rate(r, row, buses[1]));
	double own = larger(rate(r, row, "COPY"), rate(r, row, "MEMFD"));
	unsigned int i;

	printf("%8s", row);
	for (i = 0; i < N; i++)
		plan_cell(rate(r, row, names[i]), 12, 0);
	plan_cell(bus > 0 ? own / bus : 0, 12, 2);
	putchar('\n');
}

static void print(const struct report *r)
{
	char text[24];
	unsigned int i;

	printf("\n# Transactions a second\n%8s", "SIZE");
	for (i = 0; i < N; i++)
		printf(" %12s", names[i]);
	printf(" %12s\n", "x best bus");
	for (i = 0; i < r->options->n_sizes; i++)
		print_row(r, options_format_size(r->options->sizes[i], text, sizeof(text)));
	report_verdict(r, "COPY", buses, 2, stdout);
}

static void note(struct report *r)
{
	unsigned int i;

	for (i = 0; i < r->options->n_sizes; i++)
		if (r->options->sizes[i] > COPY_MAX) {
			report_peer(
				r, "COPY above 2M", NULL,
				"a message takes 2 MiB in payload vectors; more goes in a memfd");
			return;
		}
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
			.subjects = subjects,
			.n_subjects = sizeof(subjects) / sizeof(subjects[0]),
			.columns = columns,
			.n_columns = N,
			.rows = rows,
			.n_rows = o.n_sizes,
			.note = note,
			.print = print,
		},
		&o);
}
