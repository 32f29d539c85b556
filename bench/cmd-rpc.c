// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbus-bench rpc: seconds for 1000 calls with a string, after the table of the GLib developers. */
#include <stdio.h>

#include "commands.h"
#include "peers.h"
#include "plan.h"

#define CALLS 1000

#define CLIENT(bus_name, bus_kind, client, library)                                             \
	{                                                                                       \
		.name = bus_name " " client, .bus = bus_kind, .transport = TRANSPORT_##library, \
		.package = PACKAGE_##library                                                    \
	}

static const struct subject subjects[] = {
	{ .name = "libkdbus", .bus = BUS_KDBUS, .transport = &transport_user },
	{ .name = "socket", .transport = &transport_stream },
	CLIENT("daemon", BUS_DBUS_DAEMON, "libdbus", LIBDBUS),
	CLIENT("daemon", BUS_DBUS_DAEMON, "sd-bus", SDBUS),
	CLIENT("daemon", BUS_DBUS_DAEMON, "GDBus", GDBUS),
	CLIENT("broker", BUS_DBUS_BROKER, "libdbus", LIBDBUS),
	CLIENT("broker", BUS_DBUS_BROKER, "sd-bus", SDBUS),
	CLIENT("broker", BUS_DBUS_BROKER, "GDBus", GDBUS),
};
#define N (sizeof(subjects) / sizeof(subjects[0]))

/* The D-Bus ones: libkdbus is compared with the best of them. */
static const char *const clients[] = { "daemon libdbus", "daemon sd-bus", "daemon GDBus",
				       "broker libdbus", "broker sd-bus", "broker GDBus" };

static void print(const struct report *r)
{
	const struct cell *c;
	char text[24];
	unsigned int i, j;

	printf("\n# Elapsed seconds for %d calls (%llu measured in each repetition)\n%6s", CALLS,
	       (unsigned long long)r->options->count, "SIZE");
	for (i = 0; i < N; i++)
		printf(" %14s", subjects[i].name);
	putchar('\n');
	for (i = 0; i < r->options->n_sizes; i++) {
		options_format_size(r->options->sizes[i], text, sizeof(text));
		printf("%6s", text);
		for (j = 0; j < N; j++) {
			c = report_find(r, text, subjects[j].name);
			plan_cell(c ? cell_median(c) * CALLS / 1e9 : 0, 14, 4);
		}
		putchar('\n');
	}
	report_verdict(r, "libkdbus", clients, 6, stdout);
}

static void default_sizes(struct options *o)
{
	static const uint64_t quick[] = { 4096, 65536, 1 << 20 };
	static const uint64_t full[] = { 4096,	 8192,	 16384,	 32768,	 65536,
					 131072, 262144, 524288, 1 << 20 };

	if (o->quick)
		plan_sizes(o, quick, 3);
	else
		plan_sizes(o, full, 9);
	if (!o->count)
		o->count = o->quick ? 50 : CALLS;
}

int command_rpc(const struct options *options)
{
	struct row rows[OPTIONS_LIST_MAX];
	struct options o = *options;
	struct column columns[N];
	unsigned int i;

	default_sizes(&o);
	for (i = 0; i < N; i++)
		columns[i] = (struct column){ .subject = i, .kind = JOB_STRING };
	columns[0].max = 2 << 20;
	for (i = 0; i < o.n_sizes; i++) {
		options_format_size(o.sizes[i], rows[i].name, sizeof(rows[i].name));
		rows[i].order = (struct order){
			.job = { .request = o.sizes[i], .reply = 2 },
			.count = o.count,
			.warm_ns = o.quick ? 2000000 : 20000000,
		};
	}
	return plan_run(
		&(struct plan){
			.name = "rpc",
			.subjects = subjects,
			.n_subjects = N,
			.columns = columns,
			.n_columns = N,
			.rows = rows,
			.n_rows = o.n_sizes,
			.print = print,
		},
		&o);
}
