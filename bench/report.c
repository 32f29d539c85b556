// SPDX-License-Identifier: LGPL-2.1-or-later
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

void report_init(struct report *r, const char *name, const struct options *options)
{
	*r = (struct report){ .name = name, .options = options };
	regime_read(&r->regime);
	regime_print(&r->regime, options, stdout);
}

static void cell_free(struct cell *c)
{
	int i;

	free(c->samples);
	for (i = 0; i < N_ROLES; i++) {
		free(c->cpu_ns[i]);
		free(c->switches[i]);
	}
	free(c->hist);
	free(c);
}

void report_clear(struct report *r)
{
	unsigned int i;

	for (i = 0; i < r->n_cells; i++)
		cell_free(r->cells[i]);
	free(r->cells);
	r->cells = NULL;
	r->n_cells = 0;
}

void report_peer(struct report *r, const char *subject, const char *version, const char *missing)
{
	struct report_peer *p = r->peers;

	/* In a run of several parts it may be noted again: one that was measured once was. */
	for (; p < r->peers + r->n_peers && strcmp(p->subject, subject); p++)
		;
	if (p == r->peers + REPORT_PEERS_MAX)
		return;
	if (p == r->peers + r->n_peers)
		r->n_peers++;
	else if (missing && missing[0])
		return;
	snprintf(p->subject, sizeof(p->subject), "%s", subject);
	snprintf(p->version, sizeof(p->version), "%s", version ? version : "");
	snprintf(p->missing, sizeof(p->missing), "%s", missing ? missing : "");
}

const struct cell *report_find(const struct report *r, const char *row, const char *subject)
{
	unsigned int i;

	for (i = 0; i < r->n_cells; i++)
		if (!strcmp(r->cells[i]->row, row) && !strcmp(r->cells[i]->subject, subject))
			return r->cells[i];
	return NULL;
}

static struct cell *cell_new(const struct report *r, const char *row, const char *subject)
{
	unsigned int n = r->options->repeat;
	struct cell *c = calloc(1, sizeof(*c));
	bool ok;
	int i;

	if (!c)
		return NULL;
	snprintf(c->row, sizeof(c->row), "%s", row);
	snprintf(c->subject, sizeof(c->subject), "%s", subject);
	c->unit = "ns";
	c->messages = 2;
	c->samples = calloc(n, sizeof(double));
	ok = c->samples;
	for (i = 0; i < N_ROLES; i++) {
		c->cpu_ns[i] = calloc(n, sizeof(double));
		c->switches[i] = calloc(n, sizeof(double));
		ok = ok && c->cpu_ns[i] && c->switches[i];
	}
	if (!ok) {
		cell_free(c);
		return NULL;
	}
	return c;
}

struct cell *report_cell(struct report *r, const char *row, const char *subject)
{
	struct cell *c = (struct cell *)report_find(r, row, subject), **cells;

	if (c)
		return c;
	cells = realloc(r->cells, (r->n_cells + 1) * sizeof(*cells));
	if (!cells)
		return NULL;
	r->cells = cells;
	c = cell_new(r, row, subject);
	if (c)
		cells[r->n_cells++] = c;
	return c;
}

int report_add_value(struct report *r, struct cell *c, double value)
{
	if (c->n == r->options->repeat)
		return -EINVAL;
	c->samples[c->n++] = value;
	return 0;
}

int report_add(struct report *r, struct cell *c, const struct result *result)
{
	double messages = (double)result->ops * c->messages;
	int i, r2;

	if (result->hist.total) {
		if (!c->hist)
			c->hist = calloc(1, sizeof(*c->hist));
		if (!c->hist)
			return -ENOMEM;
		hist_merge(c->hist, &result->hist);
	}
	r2 = report_add_value(r, c, (double)result->ns / (double)result->ops);
	if (r2 < 0)
		return r2;
	for (i = 0; i < N_ROLES; i++) {
		c->cpu_ns[i][c->n - 1] = result->usage[i].cpu_ns / messages;
		c->switches[i][c->n - 1] = result->usage[i].switches / messages;
	}
	return 0;
}

void report_messages(struct report *r, const char *row, const char *subject, double messages)
{
	struct cell *c = (struct cell *)report_find(r, row, subject);
	unsigned int i;
	int role;

	if (!c)
		return;
	for (role = 0; role < N_ROLES; role++)
		for (i = 0; i < c->n; i++) {
			c->cpu_ns[role][i] *= c->messages / messages;
			c->switches[role][i] *= c->messages / messages;
		}
	c->messages = messages;
}

bool report_row_begins(const struct report *r, unsigned int i)
{
	unsigned int j;

	for (j = 0; j < i; j++)
		if (!strcmp(r->cells[j]->row, r->cells[i]->row))
			return false;
	return true;
}

double cell_median(const struct cell *c)
{
	return stats_median(c->samples, c->n);
}

double cell_cpu_us(const struct cell *c, enum role role)
{
	return stats_mean(c->cpu_ns[role], c->n) / 1000;
}

static double cell_switches(const struct cell *c)
{
	double sum = 0;
	int i;

	for (i = 0; i < N_ROLES; i++)
		sum += stats_mean(c->switches[i], c->n);
	return sum;
}

static bool timed(const struct cell *c)
{
	return !strcmp(c->unit, "ns");
}

static void print_time_details(const struct cell *c, FILE *f)
{
	fprintf(f, "%-12s %-24s %10.2f %10.2f %6.2f", c->row, c->subject,
		stats_mean(c->samples, c->n) / 1000, cell_median(c) / 1000,
		stats_deviation(c->samples, c->n));
	if (c->hist)
		fprintf(f, " %9.2f %9.2f %9.2f", (double)hist_percentile(c->hist, 50) / 1000,
			(double)hist_percentile(c->hist, 99) / 1000,
			(double)hist_percentile(c->hist, 99.9) / 1000);
	else
		fprintf(f, " %9s %9s %9s", "-", "-", "-");
	fprintf(f, " %8.2f %8.2f %8.2f %6.2f\n", cell_cpu_us(c, ROLE_CLIENT),
		cell_cpu_us(c, ROLE_SERVER), cell_cpu_us(c, ROLE_DAEMON), cell_switches(c));
}

void report_details(const struct report *r, FILE *f)
{
	bool other = false;
	unsigned int i;

	fprintf(f,
		"\nDetails: usecs a transaction; CPU usecs and context switches a message\n"
		"%-12s %-24s %10s %10s %6s %9s %9s %9s %8s %8s %8s %6s\n",
		"ROW", "SUBJECT", "MEAN", "MEDIAN", "+-%", "P50", "P99", "P99.9", "CLIENT",
		"SERVER", "DAEMON", "CSW");
	for (i = 0; i < r->n_cells; i++) {
		if (timed(r->cells[i]))
			print_time_details(r->cells[i], f);
		other = other || !timed(r->cells[i]);
	}
	if (other)
		fprintf(f, "%-12s %-24s %10s %10s %6s\n", "ROW", "SUBJECT", "MEAN", "MEDIAN",
			"+-%");
	for (i = 0; i < r->n_cells; i++) {
		const struct cell *c = r->cells[i];

		if (!timed(c))
			fprintf(f, "%-12s %-24s %10.2f %10.2f %6.2f %s\n", c->row, c->subject,
				stats_mean(c->samples, c->n), cell_median(c),
				stats_deviation(c->samples, c->n), c->unit);
	}
}

void report_missing(const struct report *r, FILE *f)
{
	unsigned int i;

	for (i = 0; i < r->n_peers; i++)
		if (r->peers[i].missing[0])
			fprintf(f, "%-24s not measured: %s\n", r->peers[i].subject,
				r->peers[i].missing);
}

static const struct cell *fastest(const struct report *r, const char *row,
				  const char *const *subjects, unsigned int n)
{
	const struct cell *best = NULL, *c;
	unsigned int i;

	for (i = 0; i < n; i++) {
		c = report_find(r, row, subjects[i]);
		if (c && (!best || cell_median(c) < cell_median(best)))
			best = c;
	}
	return best;
}

static void judge(const struct cell *own, const struct cell *best, FILE *f)
{
	struct stats_ratio q = stats_paired(own->samples, best->samples, own->n);

	fprintf(f, "%-12s ", own->row);
	if (own->n < 2)
		fprintf(f, "%s %s %.2f times as %s %s; one repetition tells no more\n",
			own->subject, q.ratio < 1 ? "takes" : "is",
			q.ratio < 1 ? 1 / q.ratio : q.ratio, q.ratio < 1 ? "long as" : "fast as",
			best->subject);
	else if (q.low > 1)
		fprintf(f, "%s is %.2f times as fast as %s (%.2f to %.2f)\n", own->subject, q.ratio,
			best->subject, q.low, q.high);
	else if (q.high < 1)
		fprintf(f, "%s takes %.2f times as long as %s (%.2f to %.2f)\n", own->subject,
			1 / q.ratio, best->subject, 1 / q.high, 1 / q.low);
	else
		fprintf(f,
			"%s and %s: no difference beyond noise (%.2f times as fast, %.2f to "
			"%.2f)\n",
			own->subject, best->subject, q.ratio, q.low, q.high);
}

void report_verdict(const struct report *r, const char *subject, const char *what,
		    const char *const *others, unsigned int n_others, FILE *f)
{
	const struct cell *best;
	bool first = true;
	unsigned int i;

	for (i = 0; i < r->n_cells; i++) {
		if (strcmp(r->cells[i]->subject, subject) || !timed(r->cells[i]))
			continue;
		best = fastest(r, r->cells[i]->row, others, n_others);
		if (!best)
			continue;
		if (first)
			fprintf(f,
				"\nVerdict: against %s in each row; in brackets the 95 %% "
				"interval\n",
				what);
		first = false;
		judge(r->cells[i], best, f);
	}
}
