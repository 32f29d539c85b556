// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbus-bench fanout: one broadcast to many receivers, and past many that do not want it. */
#include <errno.h>
#include <stdio.h>

#include "commands.h"
#include "peers.h"
#include "plan.h"

#define PAYLOAD 64

#ifdef HAVE_SDBUS
#define FANOUT_SDBUS (&transport_sdbus_fanout)
#else
#define FANOUT_SDBUS NULL
#endif

static const struct subject templates[] = {
	{ .name = "libkdbus", .bus = BUS_KDBUS, .transport = &transport_user_fanout },
	{ .name = "dbus-daemon",
	  .bus = BUS_DBUS_DAEMON,
	  .transport = FANOUT_SDBUS,
	  .package = PACKAGE_SDBUS },
	{ .name = "dbus-broker",
	  .bus = BUS_DBUS_BROKER,
	  .transport = FANOUT_SDBUS,
	  .package = PACKAGE_SDBUS },
};
#define N (sizeof(templates) / sizeof(templates[0]))

static void make_row(struct row *row, const struct options *o, unsigned int receivers,
		     bool matching)
{
	snprintf(row->name, sizeof(row->name), "%u%s", receivers, matching ? "" : " no match");
	row->order = (struct order){
		.job = { .request = PAYLOAD },
		.count = o->count,
		.ns = o->quick ? 50000000 : 300000000,
		.warm_ns = o->quick ? 5000000 : 30000000,
	};
}

/* A set of its own for each number: a bus limits how many connections a user may have. */
static int measure(struct report *report, unsigned int receivers, bool matching)
{
	struct subject subjects[N];
	struct column columns[N];
	struct set set;
	struct row row = { 0 };
	unsigned int i;
	int r;

	for (i = 0; i < N; i++) {
		subjects[i] = templates[i];
		subjects[i].receivers = receivers;
		subjects[i].matching = matching;
		columns[i] = (struct column){ .subject = i };
	}
	make_row(&row, report->options, receivers, matching);
	set_progress("fanout", row.name, 0, report->options->repeat);
	/* Peers are noted once. */
	report->n_peers = 0;
	r = set_start(&set, subjects, N, report->options, report);
	if (r == 0) {
		r = set_measure(&set, columns, N, &row, 1, report);
		set_stop(&set);
	}
	return r;
}

static void print(const struct report *r)
{
	static const char *const buses[] = { "dbus-daemon", "dbus-broker" };
	unsigned int i, receivers;

	printf("\n# Broadcasts of %d bytes until the last receiver has it\n%-16s %-14s %12s %16s\n",
	       PAYLOAD, "RECEIVERS", "OVER", "usecs", "usecs/receiver");
	for (i = 0; i < r->n_cells; i++) {
		const struct cell *c = r->cells[i];

		receivers = (unsigned int)c->messages;
		printf("%-16s %-14s %12.2f %16.3f\n", c->row, c->subject, cell_median(c) / 1000,
		       cell_median(c) / 1000 / receivers);
	}
	report_verdict(r, "libkdbus", buses, 2, stdout);
	report_details(r, stdout);
	report_missing(r, stdout);
}

/* Messages of a broadcast: one for each receiver that gets it. */
static void count_messages(struct report *r, unsigned int receivers, bool matching)
{
	struct row row;
	unsigned int i;

	make_row(&row, r->options, receivers, matching);
	for (i = 0; i < N; i++)
		report_messages(r, row.name, templates[i].name, matching ? receivers : 1);
}

int command_fanout(const struct options *options)
{
	static const uint64_t full[] = { 1, 10, 100, 1000 }, quick[] = { 1, 10, 100 };
	struct options o = *options;
	struct report report;
	unsigned int i;
	int r = 0;

	plan_sizes(&o, o.quick ? quick : full, o.quick ? 3 : 4);
	report_init(&report, "fanout", &o);
	for (i = 0; i < 2 * o.n_sizes && r == 0; i++) {
		r = measure(&report, (unsigned int)o.sizes[i / 2], i % 2 == 0);
		if (r == 0)
			count_messages(&report, (unsigned int)o.sizes[i / 2], i % 2 == 0);
	}
	if (r == 0) {
		print(&report);
		r = report_files(&report);
	}
	report_clear(&report);
	return r;
}
