// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbus-bench rpc: seconds for 1000 calls with a string, after the table of the GLib developers. */
#include <stdio.h>

#include "commands.h"
#include "floor.h"
#include "peers.h"
#include "plan.h"

#define CALLS 1000

static struct lineup lineup;

static void make_lineup(void)
{
	peers_add(&lineup, &(struct subject){ .name = "libkdbus",
					      .bus = BUS_KDBUS,
					      .transport = &transport_user });
	peers_add(&lineup, &(struct subject){ .name = FLOOR_SOCKET,
					      .transport = &transport_stream });
	peers_add(&lineup, &(struct subject){ .name = FLOOR_RELAY,
					      .transport = &transport_stream,
					      .relayed = true });
	peers_add_direct(&lineup);
	peers_add_clients(&lineup);
}

/* One library alone: what the GLib developers had a table of, for all buses */
#define GLIB "GDBus"
static const char *const glib[] = { "direct " GLIB, "daemon " GLIB, "broker " GLIB,
				    "kdbusd " GLIB };
#define N_GLIB (sizeof(glib) / sizeof(glib[0]))

static void print_glib(const struct report *r)
{
	const char *const others[] = { glib[1], glib[2] };
	const struct cell *c;
	char text[24];
	unsigned int i, j;

	for (j = 0, c = NULL; j < N_GLIB && !c; j++)
		c = r->n_cells ? report_find(r, r->cells[0]->row, glib[j]) : NULL;
	if (!c)
		return;
	printf("\n# GLib alone: seconds for %d calls between unmodified GLib programs\n%6s %12s "
	       "%12s %12s %12s\n",
	       CALLS, "SIZE", "without bus", "dbus-daemon", "dbus-broker", "kdbusd");
	for (i = 0; i < r->options->n_sizes; i++) {
		options_format_size(r->options->sizes[i], text, sizeof(text));
		printf("%6s", text);
		for (j = 0; j < N_GLIB; j++) {
			c = report_find(r, text, glib[j]);
			plan_cell(c ? cell_median(c) * CALLS / 1e9 : 0, 12, 4);
		}
		putchar('\n');
	}
	report_verdict(r, glib[3], "the faster other bus with GLib", others, 2, stdout);
}

static void print_floor(const struct report *r)
{
	static const char *const headings[] = { "dbus-daemon", "dbus-broker", "kdbusd" };
	static const char *const libdbus[] = { "daemon libdbus", "broker libdbus",
					       "kdbusd libdbus" };
	static const struct floor_library libraries[] = {
		{ "GLib", "direct " GLIB, glib + 1, N_GLIB - 1 },
		{ "libdbus", "direct libdbus", libdbus, N_GLIB - 1 },
	};

	floor_print(r, libraries, 2, headings);
}

static void print(const struct report *r)
{
	const struct cell *c;
	char text[24];
	unsigned int i, j;

	printf("\n# Elapsed seconds for %d calls (%llu measured in each repetition)\n%6s", CALLS,
	       (unsigned long long)r->options->count, "SIZE");
	for (i = 0; i < lineup.n; i++)
		printf(" %14s", lineup.subjects[i].name);
	putchar('\n');
	for (i = 0; i < r->options->n_sizes; i++) {
		options_format_size(r->options->sizes[i], text, sizeof(text));
		printf("%6s", text);
		for (j = 0; j < lineup.n; j++) {
			c = report_find(r, text, lineup.subjects[j].name);
			plan_cell(c ? cell_median(c) * CALLS / 1e9 : 0, 14, 4);
		}
		putchar('\n');
	}
	report_verdict(r, "libkdbus", "the fastest bus and client library", lineup.brokers,
		       lineup.n_brokers, stdout);
	print_glib(r);
	print_floor(r);
}

static void default_sizes(struct options *o)
{
	static const uint64_t quick[] = { 4096, 65536, 1 << 20 };
	static const uint64_t full[] = { 64,	1024,	4096,	8192,	16384,	32768,
					 65536, 131072, 262144, 524288, 1 << 20 };

	if (o->quick)
		plan_sizes(o, quick, 3);
	else
		plan_sizes(o, full, sizeof(full) / sizeof(full[0]));
	if (!o->count)
		o->count = o->quick ? 30 : CALLS;
}

int command_rpc(const struct options *options)
{
	struct row rows[OPTIONS_LIST_MAX];
	struct options o = *options;
	struct column columns[SET_MAX];
	unsigned int i;

	make_lineup();
	default_sizes(&o);
	peers_columns(&lineup, JOB_STRING, columns);
	columns[0].max = PEER_KDBUS_MAX;
	columns[0].limit = PEER_KDBUS_LIMIT;
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
			.subjects = lineup.subjects,
			.n_subjects = lineup.n,
			.columns = columns,
			.n_columns = lineup.n,
			.rows = rows,
			.n_rows = o.n_sizes,
			.print = print,
		},
		&o);
}
