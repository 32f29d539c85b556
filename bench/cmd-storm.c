// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbus-bench storm: clients that come, take a name, talk and leave; what a daemon keeps. */
#include <errno.h>
#include <stdio.h>

#include "commands.h"
#include "peers.h"
#include "plan.h"

#define PAYLOAD 64
#define HOLD	500 /* with a name, at once */
#define IDLE	500 /* without one, kept, in all repetitions together */
#define RULES	20 /* on each of those */

static struct lineup lineup;
/* The D-Bus daemons, to whom everything up to Hello is sent in one write */
static struct lineup hurried;

static const char *const when[] = { "before", "peak", "after" };

static int add(struct report *r, const char *row, const char *subject, const char *unit,
	       double value)
{
	struct cell *c = report_cell(r, row, subject);

	if (!c)
		return -ENOMEM;
	c->unit = unit;
	return report_add_value(r, c, value);
}

static int add_at(struct report *r, const char *what, const char *subject, const char *at,
		  const char *unit, double value)
{
	char row[32];

	snprintf(row, sizeof(row), "%s %s", what, at);
	return add(r, row, subject, unit, value);
}

static unsigned int idle(const struct options *o)
{
	unsigned int n = IDLE / o->repeat;

	return n > 100 ? 100 : n ? n : 1;
}

/* Bytes for each of @n, or 0 if the daemon has given back more at the same time. */
static double each(uint64_t before_kib, uint64_t after_kib, unsigned int n)
{
	return after_kib > before_kib ? (double)(after_kib - before_kib) * 1024 / n : 0;
}

static int take_held(const struct link *l, struct report *r)
{
	const uint64_t *kib = l->shared->result.memory_kib;
	unsigned int n = idle(r->options);
	int e = add(r, "idle connection", l->subject, "bytes", each(kib[0], kib[1], n));

	return e < 0 ? e : add(r, "match rule", l->subject, "bytes",
			       each(kib[1], kib[2], n * RULES));
}

static int take(const struct link *l, struct report *r)
{
	const struct result *res = &l->shared->result;
	int i, e = 0;

	for (i = 0; i < 3 && e == 0; i++) {
		e = add_at(r, "memory", l->subject, when[i], "KiB",
			   (double)res->memory_kib[i]);
		if (e == 0)
			e = add_at(r, "fds", l->subject, when[i], "descriptors",
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

static void print_held(const struct report *r)
{
	static const char *const rows[] = { "one write", "connect", "idle connection",
					    "match rule" };
	const struct cell *c;
	unsigned int i, j;
	bool timed;

	printf("\n# a connection, until the bus has answered: by a client that sends all up to "
	       "Hello in one\n# write, and by a library; memory of the daemon for one without a "
	       "name, and for each\n# of %d match rules on it\n%-14s %12s %12s %16s %16s\n"
	       "%-14s %12s %12s %16s %16s\n",
	       RULES, "", "usecs", "usecs", "bytes", "bytes", "OVER", "one write", "to connect",
	       "a connection", "a match rule");
	for (i = 0; i < lineup.n; i++) {
		if (!report_find(r, rows[1], lineup.subjects[i].name))
			continue;
		printf("%-14s", lineup.subjects[i].name);
		for (j = 0; j < 4; j++) {
			c = report_find(r, rows[j], lineup.subjects[i].name);
			timed = j < 2;
			plan_cell(c ? cell_median(c) / (timed ? 1000 : 1) : 0, timed ? 12 : 16,
				  timed ? 1 : 0);
		}
		putchar('\n');
	}
}

static void print(const struct report *r)
{
	const struct cell *c;
	unsigned int i;

	print_held(r);
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
	report_verdict(r, "kdbusd", "the fastest other D-Bus daemon", lineup.brokers,
		       lineup.n_brokers, stdout);
	report_details(r, stdout);
	report_missing(r, stdout);
}

static void make_rows(struct row rows[3], const struct options *o)
{
	rows[0] = (struct row){ .name = "connect" };
	rows[0].order = (struct order){
		.kind = ORDER_HOLD,
		.hold = idle(o),
		.nth = RULES,
	};
	rows[1] = (struct row){ .name = "cycle" };
	rows[1].order = (struct order){
		.job = { .request = PAYLOAD, .reply = PAYLOAD },
		.count = o->count ? o->count : (o->quick ? 200 : 2000),
		.kind = ORDER_STORM,
		.hold = HOLD,
	};
	rows[2] = (struct row){ .name = "one write" };
	rows[2].order = (struct order){
		.count = o->count ? o->count : (o->quick ? 200 : 2000),
		.kind = ORDER_FRESH,
	};
}

/* Each row with daemons of its own: what one leaves free would be missing in the other. */
static int measure(struct report *report, const struct lineup *l, const struct row *row,
		   int (*take_one)(const struct link *l, struct report *r))
{
	struct column columns[SET_MAX];
	struct set set;
	unsigned int i;
	int r = set_start(&set, l->subjects, l->n, report->options, report);

	for (i = 0; i < l->n; i++)
		columns[i] = (struct column){ .subject = i, .each = take_one };
	if (r < 0)
		return r;
	r = set_measure(&set, columns, l->n, row, 1, report);
	set_stop(&set);
	return r;
}

static bool any_named(const struct lineup *l, const struct options *o)
{
	unsigned int i;

	for (i = 0; o->only && i < l->n; i++)
		if (options_names(o, l->subjects[i].name))
			return true;
	return !o->only;
}

int command_storm(const struct options *o)
{
	struct report report;
	struct row rows[3];
	int r;

	peers_standard(&lineup, false);
	peers_add_brokers(&hurried, &transport_hello, NULL);
	r = set_check_only(lineup.subjects, lineup.n, o);
	if (r < 0)
		return r;
	make_rows(rows, o);
	report_init(&report, "storm", o);
	r = measure(&report, &lineup, &rows[0], take_held);
	if (r == 0)
		r = measure(&report, &lineup, &rows[1], take);
	/* a row without a subject is no failure of the others */
	if (r == 0 && any_named(&hurried, o))
		r = measure(&report, &hurried, &rows[2], NULL);
	if (r == 0) {
		print(&report);
		r = report_files(&report);
	}
	report_clear(&report);
	return r;
}
