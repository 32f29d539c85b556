// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbus-bench fanout: one broadcast to many receivers, and past many that do not want it. */
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

#include "commands.h"
#include "peers.h"
#include "plan.h"

#define PAYLOAD 64
#define WINDOW	16 /* broadcasts in flight, where it is not one after the other */

/* kdbus bounds the connections of a user (1024); one of them sends, one does not want it. */
#define KDBUS_RECEIVERS 1022
#define KDBUS_LIMIT	"a user may have 1024 connections"

/* What a connection of libkdbus holds open, and what a process needs besides. */
#define HANDLE_DESCRIPTORS 8
#define SPARE_DESCRIPTORS  64

static struct lineup lineup;

static void make_lineup(void)
{
	peers_add(&lineup, &(struct subject){ .name = "libkdbus",
					      .bus = BUS_KDBUS,
					      .transport = &transport_user_fanout });
	peers_add_brokers(&lineup, TRANSPORT_SDBUS_FANOUT, PACKAGE_SDBUS);
}

/* What is measured with a number of receivers */
enum way {
	ONE, /* one after the other */
	SEVERAL, /* WINDOW in flight */
	UNWANTED, /* past receivers without a match */
	N_WAYS
};
static const char *const endings[N_WAYS] = { "", " x16", " no match" };

/* About as many copies, whatever the number of receivers */
static uint64_t default_count(const struct options *o, unsigned int receivers)
{
	uint64_t n = (o->quick ? 4000 : 40000) / receivers / WINDOW;

	return (n ? n : 1) * WINDOW;
}

static void make_row(struct row *row, const struct options *o, unsigned int receivers, enum way way)
{
	snprintf(row->name, sizeof(row->name), "%u%s", receivers, endings[way]);
	row->order = (struct order){
		.job = { .request = PAYLOAD },
		.count = o->count,
		.ns = o->quick ? 50000000 : 300000000,
		.warm_ns = o->quick ? 5000000 : 30000000,
	};
	if (way != SEVERAL)
		return;
	row->order.window = WINDOW;
	if (!o->count)
		row->order.count = default_count(o, receivers);
}

/* A set of its own for each number: a bus limits how many connections a user may have. */
static int measure(struct report *report, unsigned int receivers, bool matching)
{
	struct subject subjects[SET_MAX];
	struct column columns[SET_MAX];
	struct row rows[N_WAYS] = { 0 };
	struct set set;
	unsigned int i, n = 0;
	int r;

	for (i = 0; i < lineup.n; i++) {
		subjects[i] = lineup.subjects[i];
		subjects[i].receivers = receivers;
		subjects[i].matching = matching;
		columns[i] = (struct column){ .subject = i };
		if (subjects[i].bus != BUS_KDBUS || receivers <= KDBUS_RECEIVERS)
			continue;
		subjects[i].missing = KDBUS_LIMIT;
		report_peer(report, "libkdbus above 1022", NULL, KDBUS_LIMIT);
	}
	if (matching) {
		make_row(&rows[n++], report->options, receivers, ONE);
		make_row(&rows[n++], report->options, receivers, SEVERAL);
	} else {
		make_row(&rows[n++], report->options, receivers, UNWANTED);
	}
	set_progress("fanout", rows[0].name, 0, report->options->repeat);
	r = set_start(&set, subjects, lineup.n, report->options, report);
	if (r == 0) {
		r = set_measure(&set, columns, lineup.n, rows, n, report);
		set_stop(&set);
	}
	return r;
}

static void print(const struct report *r)
{
	unsigned int i;
	double us;

	printf("\n# Broadcasts of %d bytes until the last receiver has it; x%d: so many in flight\n"
	       "%-16s %-14s %12s %16s %14s\n",
	       PAYLOAD, WINDOW, "RECEIVERS", "OVER", "usecs", "usecs/receiver", "deliveries/s");
	for (i = 0; i < r->n_cells; i++) {
		const struct cell *c = r->cells[i];

		us = cell_median(c) / 1000;
		printf("%-16s %-14s %12.2f %16.3f %14.0f\n", c->row, c->subject, us,
		       us / c->messages, c->messages * 1e6 / us);
	}
	report_verdict(r, "libkdbus", "the fastest bus", lineup.brokers, lineup.n_brokers, stdout);
	report_verdict(r, "kdbusd", "the fastest other D-Bus daemon", lineup.brokers,
		       lineup.n_brokers, stdout);
	report_details(r, stdout);
	report_missing(r, stdout);
}

/* Messages of a broadcast: one for each receiver that gets it. */
static void count_messages(struct report *r, unsigned int receivers)
{
	struct row row = { 0 };
	unsigned int i, way;

	for (way = 0; way < N_WAYS; way++) {
		make_row(&row, r->options, receivers, way);
		for (i = 0; i < lineup.n; i++)
			report_messages(r, row.name, lineup.subjects[i].name,
					way == UNWANTED ? 1 : receivers);
	}
}

/* Better before than after minutes of connecting. */
static int check_receivers(const struct options *o)
{
	struct rlimit limit;
	uint64_t most = 0, need;
	unsigned int i;

	for (i = 0; i < o->n_sizes; i++)
		most = o->sizes[i] > most ? o->sizes[i] : most;
	/* A bus that takes no more connections needs no more descriptors either. */
	need = (most < KDBUS_RECEIVERS ? most : KDBUS_RECEIVERS) * HANDLE_DESCRIPTORS;
	need = (need > most ? need : most) + SPARE_DESCRIPTORS;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need)
		return 0;
	fprintf(stderr,
		"kdbus-bench: --sizes: %llu receivers in one process need %llu descriptors, the "
		"limit is %llu;\n             raise it (ulimit -Hn) or ask for fewer: --sizes "
		"1,10,100\n",
		(unsigned long long)most, (unsigned long long)need,
		(unsigned long long)limit.rlim_cur);
	return -EINVAL;
}

int command_fanout(const struct options *options)
{
	static const uint64_t full[] = { 1, 10, 100, 1000 }, quick[] = { 1, 10, 100 };
	struct options o = *options;
	struct report report;
	unsigned int i;
	int r = 0;

	make_lineup();
	plan_sizes(&o, o.quick ? quick : full, o.quick ? 3 : 4);
	r = set_check_only(lineup.subjects, lineup.n, &o);
	if (r == 0)
		r = check_receivers(&o);
	if (r < 0)
		return r;
	report_init(&report, "fanout", &o);
	for (i = 0; i < o.n_sizes && r == 0; i++) {
		r = measure(&report, (unsigned int)o.sizes[i], true);
		if (r == 0)
			r = measure(&report, (unsigned int)o.sizes[i], false);
		if (r == 0)
			count_messages(&report, (unsigned int)o.sizes[i]);
	}
	if (r == 0) {
		print(&report);
		r = report_files(&report);
	}
	report_clear(&report);
	return r;
}
