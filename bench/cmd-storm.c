// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbus-bench storm: clients that come, take a name, talk and leave; what the daemon keeps. */
#include <errno.h>
#include <stdio.h>

#include "commands.h"
#include "peers.h"
#include "plan.h"

#define PAYLOAD 64
#define HOLD	500

static struct lineup lineup;

static const char *const when[] = { "before", "peak", "after" };

static int add(struct report *r, const char *what, const char *subject, const char *at,
	       const char *unit, double value)
{
	struct cell *c;
	char row[32];

	snprintf(row, sizeof(row), "%s %s", what, at);
	c = report_cell(r, row, subject);
	if (!c)
		return -ENOMEM;
	c->unit = unit;
	return report_add_value(r, c, value);
}

static int take(const struct link *l, struct report *r)
{
	const struct result *res = &l->shared->result;
	int i, e = 0;

	for (i = 0; i < 3 && e == 0; i++) {
		e = add(r, "memory", l->subject, when[i], "KiB", (double)res->memory_kib[i]);
		if (e == 0)
			e = add(r, "fds", l->subject, when[i], "descriptors",
				(double)res->descriptors[i]);
	}
	return e;
}

static void print_line(const struct report *r, const char *what, const char *subject)
{
	const struct cell *c;
	char row[32];
	int i;

	for (i = 0; i < 3; i++) {
		snprintf(row, sizeof(row), "%s %s", what, when[i]);
		c = report_find(r, row, subject);
		plan_cell(c ? cell_median(c) : 0, 9, 0);
	}
}

static void print(const struct report *r)
{
	const struct cell *c;
	unsigned int i;

	printf("\n# connect, name, call, leave; then %d connections with a name at once\n"
	       "%-14s %12s %31s %31s\n%-14s %12s %9s %9s %9s  %9s %9s %9s\n",
	       HOLD, "", "usecs", "daemon's memory (KiB)", "daemon's descriptors", "OVER",
	       "a cycle", "before", "peak", "after", "before", "peak", "after");
	for (i = 0; i < lineup.n; i++) {
		c = report_find(r, "cycle", lineup.subjects[i].name);
		if (!c)
			continue;
		printf("%-14s %12.1f", lineup.subjects[i].name, cell_median(c) / 1000);
		print_line(r, "memory", lineup.subjects[i].name);
		putchar(' ');
		print_line(r, "fds", lineup.subjects[i].name);
		putchar('\n');
	}
	report_verdict(r, "libkdbus", "the fastest bus", lineup.brokers, lineup.n_brokers, stdout);
}

int command_storm(const struct options *o)
{
	struct row row = { .name = "cycle" };
	struct column columns[SET_MAX];
	unsigned int i;

	peers_standard(&lineup, false);
	row.order = (struct order){
		.job = { .request = PAYLOAD, .reply = PAYLOAD },
		.count = o->count ? o->count : (o->quick ? 200 : 2000),
		.kind = ORDER_STORM,
		.hold = HOLD,
	};
	for (i = 0; i < lineup.n; i++)
		columns[i] = (struct column){ .subject = i, .each = take };
	return plan_run(
		&(struct plan){
			.name = "storm",
			.subjects = lineup.subjects,
			.n_subjects = lineup.n,
			.columns = columns,
			.n_columns = lineup.n,
			.rows = &row,
			.n_rows = 1,
			.print = print,
		},
		o);
}
