// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbus-bench scale: independent pairs at once, each on a CPU of its own if it can be. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "peers.h"
#include "plan.h"

#define PAYLOAD	  64
#define PAIRS_MAX 64

static struct lineup lineup;

/* The pairs beyond the first of each subject, which the set has. */
struct pairs {
	struct link *links[SET_MAX][PAIRS_MAX];
	unsigned int started;
	int cpus[PAIRS_MAX];
	unsigned int n_cpus;
};

static void find_cpus(struct pairs *p)
{
	cpu_set_t usable;
	int i;

	CPU_ZERO(&usable);
	sched_getaffinity(0, sizeof(usable), &usable);
	for (i = 0; i < CPU_SETSIZE && p->n_cpus < PAIRS_MAX; i++)
		if (CPU_ISSET(i, &usable))
			p->cpus[p->n_cpus++] = i;
}

/* Both ends of a pair share a CPU, so that a pair's cost does not depend on who else runs. */
static int start_pair(struct pairs *p, const struct set *set, unsigned int subject,
		      const struct options *o)
{
	const struct bus *bus = &set->buses[lineup.subjects[subject].bus];
	const struct link_plan plan = {
		.transport = lineup.subjects[subject].transport,
		.address = bus->address,
		.daemon = bus->pid,
		.subject = lineup.subjects[subject].name,
	};
	struct options own = *o;

	own.cpus[0] = p->cpus[p->started % p->n_cpus];
	own.n_cpus = 1;
	return link_start(&plan, &own, &p->links[subject][p->started]);
}

static int start_pairs(struct pairs *p, const struct set *set, unsigned int wanted,
		       const struct options *o)
{
	unsigned int i;
	int r = 0;

	for (; p->started < wanted && r == 0; p->started += r == 0)
		for (i = 0; i < lineup.n && r == 0; i++)
			if (set->links[i])
				r = start_pair(p, set, i, o);
	return r;
}

static void stop_pairs(struct pairs *p)
{
	unsigned int i, j;

	for (i = 0; i < lineup.n; i++)
		for (j = 0; j < PAIRS_MAX; j++)
			link_stop(p->links[i][j]);
}

/* All pairs together as if they were one link: nanoseconds between two ends of transactions. */
static void add_up(struct result *sum, const struct result *one, double *rate)
{
	int i;

	*rate += (double)one->ops / (double)one->ns;
	sum->ops += one->ops;
	for (i = 0; i < N_ROLES; i++) {
		/* Each client has seen the daemon's whole usage, as all ran at the same time. */
		if (i == ROLE_DAEMON && one->usage[i].cpu_ns <= sum->usage[i].cpu_ns)
			continue;
		if (i == ROLE_DAEMON)
			sum->usage[i] = (struct usage){ 0 };
		sum->usage[i].cpu_ns += one->usage[i].cpu_ns;
		sum->usage[i].switches += one->usage[i].switches;
	}
	hist_merge(&sum->hist, &one->hist);
}

static int run_together(struct link *const *links, unsigned int n, const struct order *order,
			struct result *sum)
{
	double rate = 0;
	unsigned int i;
	int r = 0;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; i < n && r == 0; i++)
		r = link_order(links[i], order);
	for (i = 0; i < n && r == 0; i++)
		r = link_wait(links[i]);
	for (i = 0; i < n && r == 0; i++)
		add_up(sum, &links[i]->shared->result, &rate);
	if (r == 0)
		sum->ns = (uint64_t)((double)sum->ops / rate);
	return r;
}

static int measure_cell(struct pairs *p, unsigned int subject, const char *row, unsigned int n,
			struct report *report, struct result *sum)
{
	const struct options *o = report->options;
	const struct order order = {
		.job = { .request = PAYLOAD, .reply = PAYLOAD },
		.ns = o->quick ? 50000000 : 300000000,
		.warm_ns = o->quick ? 5000000 : 30000000,
	};
	struct cell *cell;
	int r;

	if (!p->links[subject][0])
		return 0;
	r = run_together(p->links[subject], n, &order, sum);
	if (r < 0)
		return r;
	cell = report_cell(report, row, lineup.subjects[subject].name);
	if (!cell)
		return -ENOMEM;
	cell->size = PAYLOAD;
	return report_add(report, cell, sum);
}

static void row_name(unsigned int n, char *buf, size_t size)
{
	snprintf(buf, size, "%u pair%s", n, n == 1 ? "" : "s");
}

static int measure_row(struct pairs *p, const struct set *set, unsigned int n,
		       struct report *report, struct result *sum)
{
	unsigned int rep, i;
	char row[32];
	int r = start_pairs(p, set, n, report->options);

	row_name(n, row, sizeof(row));
	for (rep = 0; rep < report->options->repeat && r == 0; rep++) {
		set_progress("scale", row, rep + 1, report->options->repeat);
		for (i = 0; i < lineup.n && r == 0; i++)
			r = measure_cell(p, i, row, n, report, sum);
	}
	set_progress(NULL, NULL, 0, 0);
	return r;
}

static double rate(const struct report *r, unsigned int pairs, const char *subject)
{
	const struct cell *c;
	char row[32];

	row_name(pairs, row, sizeof(row));
	c = report_find(r, row, subject);
	return c ? 1e9 / cell_median(c) : 0;
}

static void print_rate(const struct report *r, unsigned int pairs, const char *subject)
{
	double all = rate(r, pairs, subject), one = rate(r, 1, subject);

	plan_cell(all, 12, 0);
	if (all > 0 && one > 0)
		printf(" %5.0f%%", 100 * (1 - all / pairs / one));
	else
		printf(" %6s", "");
}

static void print(const struct report *r, unsigned int n_cpus)
{
	unsigned int i, j, n;
	char row[32];

	printf("\n# Transactions a second of all pairs, and what a pair has lost to\n"
	       "# the others: of what 1 pair does alone. Pair n runs on CPU n, as far\n"
	       "# as there are so many; the daemon where it likes\n%-10s",
	       "");
	for (j = 0; j < lineup.n; j++)
		printf(" %12s %6s", lineup.subjects[j].name, "loss");
	putchar('\n');
	for (i = 0; i < r->options->n_sizes; i++) {
		n = (unsigned int)r->options->sizes[i];
		row_name(n, row, sizeof(row));
		printf("%-10s", row);
		for (j = 0; j < lineup.n; j++)
			print_rate(r, n, lineup.subjects[j].name);
		puts(n > n_cpus ? "  more pairs than CPUs" : "");
	}
	report_details(r, stdout);
	report_missing(r, stdout);
}

/* What pairs lose is said of one pair: it is measured whether it was asked for or not. */
static void add_one_pair(struct options *o)
{
	unsigned int i;

	for (i = 0; i < o->n_sizes; i++)
		if (o->sizes[i] == 1)
			return;
	if (o->n_sizes == OPTIONS_LIST_MAX)
		o->n_sizes--;
	memmove(o->sizes + 1, o->sizes, o->n_sizes * sizeof(*o->sizes));
	o->sizes[0] = 1;
	o->n_sizes++;
}

static int check_pairs(const struct options *o)
{
	unsigned int i;

	for (i = 0; i < o->n_sizes; i++)
		if (o->sizes[i] > PAIRS_MAX) {
			fprintf(stderr,
				"kdbus-bench: --sizes: at most %d pairs; for example: "
				"--sizes 1,2,4\n",
				PAIRS_MAX);
			return -EINVAL;
		}
	return 0;
}

static int measure(struct pairs *p, struct report *report)
{
	struct result *sum = malloc(sizeof(*sum));
	struct set set;
	unsigned int i;
	int r = sum ? set_start(&set, lineup.subjects, lineup.n, report->options, report) : -ENOMEM;

	if (r < 0) {
		free(sum);
		return r;
	}
	for (i = 0; i < report->options->n_sizes && r == 0; i++)
		r = measure_row(p, &set, (unsigned int)report->options->sizes[i], report, sum);
	stop_pairs(p);
	set_stop(&set);
	free(sum);
	return r;
}

int command_scale(const struct options *options)
{
	struct options o = *options;
	struct pairs pairs = { .started = 0 };
	struct report report;
	uint64_t i;
	int r;

	peers_standard(&lineup, true);
	find_cpus(&pairs);
	for (i = 1; !options->n_sizes && i <= 2 * pairs.n_cpus && i <= PAIRS_MAX; i *= 2)
		o.sizes[o.n_sizes++] = i;
	r = check_pairs(&o);
	if (r == 0)
		r = set_check_only(lineup.subjects, lineup.n, &o);
	if (r < 0)
		return r;
	add_one_pair(&o);
	report_init(&report, "scale", &o);
	r = measure(&pairs, &report);
	if (r == 0) {
		print(&report, pairs.n_cpus);
		r = report_files(&report);
	}
	report_clear(&report);
	return r;
}
