// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbus-bench ways: the ways a message can take, and what each of them is made of. */
#include <stdio.h>

#include "commands.h"
#include "peers.h"
#include "plan.h"

#define FLOW_SIZE   4096
#define FLOW_WINDOW 32
#define REPLY	    64

static struct lineup lineup;

static void make_lineup(void)
{
	lineup = (struct lineup){ .n = 0 };
	peers_add(&lineup, &(struct subject){ .name = "libkdbus",
					      .bus = BUS_KDBUS,
					      .transport = &transport_user });
	peers_add(&lineup, &(struct subject){ .name = "no spin",
					      .bus = BUS_KDBUS,
					      .transport = &transport_user_asleep });
	peers_add(&lineup, &(struct subject){ .name = "relayed",
					      .bus = BUS_KDBUS,
					      .transport = &transport_user_relayed });
	peers_add_brokers(&lineup, TRANSPORT_SDBUS, PACKAGE_SDBUS);
	peers_add(&lineup, &(struct subject){ .name = "socket", .transport = &transport_stream });
	peers_add(&lineup, &(struct subject){ .name = "memcpy", .transport = &transport_copy });
}

static void print(const struct report *r)
{
	const struct cell *c;
	unsigned int i, j;

	printf("\n# Median usecs\n%-12s", "");
	for (j = 0; j < lineup.n; j++)
		printf(" %12s", lineup.subjects[j].name);
	putchar('\n');
	for (i = 0; i < r->n_cells; i++) {
		if (!report_row_begins(r, i))
			continue;
		printf("%-12s", r->cells[i]->row);
		for (j = 0; j < lineup.n; j++) {
			c = report_find(r, r->cells[i]->row, lineup.subjects[j].name);
			plan_cell(c ? cell_median(c) / 1000 : 0, 12, 2);
		}
		putchar('\n');
	}
	report_verdict(r, "relayed", "the fastest bus", lineup.brokers, lineup.n_brokers, stdout);
}

static void name_row(struct row *row, const char *what, uint64_t size)
{
	char text[24];

	snprintf(row->name, sizeof(row->name), "%s %s", what,
		 options_format_size(size, text, sizeof(text)));
}

static void call_row(struct row *row, const struct options *o, const char *what, uint64_t size,
		     bool unread)
{
	name_row(row, what, size);
	row->order = (struct order){
		.job = { .request = size, .reply = REPLY, .unread = unread },
		.count = o->count,
		.ns = o->quick ? 30000000 : 100000000,
		.warm_ns = o->quick ? 3000000 : 10000000,
	};
}

static void flow_row(struct row *row, const struct options *o)
{
	name_row(row, "one way", FLOW_SIZE);
	row->order = (struct order){
		.job = { .request = FLOW_SIZE, .reply = REPLY },
		.kind = ORDER_FLOW,
		.count = o->count ? o->count : o->quick ? 2000 : 20000,
		.window = FLOW_WINDOW,
	};
}

int command_ways(const struct options *options)
{
	static const uint64_t sizes[] = { 64, 4096, 16384, 65536, 262144, 1 << 20 };
	struct row rows[OPTIONS_LIST_MAX + 2];
	struct options o = *options;
	struct column columns[SET_MAX];
	unsigned int i, n = 0;

	make_lineup();
	plan_sizes(&o, sizes, 6);
	for (i = 0; i < o.n_sizes; i++)
		call_row(&rows[n++], &o, "call", o.sizes[i], false);
	call_row(&rows[n++], &o, "unread", 1 << 20, true);
	flow_row(&rows[n++], &o);
	peers_columns(&lineup, JOB_COPY, columns);
	for (i = 0; i < 3; i++) {
		columns[i].max = PEER_KDBUS_MAX;
		columns[i].limit = PEER_KDBUS_LIMIT;
	}
	return plan_run(
		&(struct plan){
			.name = "ways",
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
