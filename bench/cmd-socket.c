// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbus-bench socket: the RPC comparison of the 2015 mailing list, with libkdbus next to it. */
#include <stdio.h>

#include "commands.h"
#include "peers.h"
#include "plan.h"

#define WINDOW	     32
#define WINDOW_BYTES (128U << 10)

static const struct subject subjects[] = {
	{ .name = "socket single", .transport = &transport_stream },
	{ .name = "socket dbus", .transport = &transport_stream, .relayed = true },
	{ .name = "libkdbus", .bus = BUS_KDBUS, .transport = &transport_user },
};
#define N (sizeof(subjects) / sizeof(subjects[0]))

static void print_table(const struct report *r)
{
	double count, seconds;
	unsigned int i;

	printf("\n%-14s %-16s %9s %10s %12s %10s %10s\n", "ROW", "OVER", "COUNT", "SECONDS",
	       "MSG/S", "US/MSG", "MB/S");
	for (i = 0; i < r->n_cells; i++) {
		const struct cell *c = r->cells[i];

		count = (double)r->options->count;
		seconds = cell_median(c) * count / 1e9;
		printf("%-14s %-16s %9.0f %10.3f %12.0f %10.2f %10.1f\n", c->row, c->subject, count,
		       seconds, 2 * count / seconds, cell_median(c) / 2000,
		       2 * count * (double)c->size / seconds / 1e6);
	}
}

/* Nobody may have to refuse: neither socket buffers nor the share of a receiver's pool are full. */
static unsigned int window(uint64_t size)
{
	uint64_t n = WINDOW_BYTES / size;

	return n < 1 ? 1 : n > WINDOW ? WINDOW : (unsigned int)n;
}

static void make_row(struct row *row, const struct options *o, uint64_t size, bool sync)
{
	char text[24];

	snprintf(row->name, sizeof(row->name), "%s %s", sync ? "sync" : "async",
		 options_format_size(size, text, sizeof(text)));
	row->order = (struct order){
		.job = { .request = size, .reply = size },
		.count = o->count,
		.warm_ns = 5000000,
		.window = sync ? 1 : window(size),
	};
}

static void print(const struct report *report)
{
	static const char *const relayed[] = { "socket dbus" };
	static const char *const direct[] = { "socket single" };

	print_table(report);
	report_verdict(report, "libkdbus", "a socket with a relay", relayed, 1, stdout);
	report_verdict(report, "libkdbus", "a plain socket", direct, 1, stdout);
}

int command_socket(const struct options *options)
{
	static const uint64_t default_sizes[] = { 64, 4096, 65536 };
	struct row rows[2 * OPTIONS_LIST_MAX];
	struct options o = *options;
	struct column columns[N];
	unsigned int i, n = 0;

	plan_sizes(&o, default_sizes, 3);
	if (!o.count)
		o.count = o.quick ? 1000 : 20000;
	for (i = 0; i < o.n_sizes; i++) {
		make_row(&rows[n++], &o, o.sizes[i], true);
		make_row(&rows[n++], &o, o.sizes[i], false);
	}
	for (i = 0; i < N; i++)
		columns[i] = (struct column){ .subject = i };
	columns[N - 1].max = PEER_KDBUS_MAX;
	columns[N - 1].limit = PEER_KDBUS_LIMIT;
	return plan_run(
		&(struct plan){
			.name = "socket",
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
