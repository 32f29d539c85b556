// SPDX-License-Identifier: LGPL-2.1-or-later
/* The JSON form of a report, schema kdbus-bench/1 (see bench/README.md). */
#include <errno.h>
#include <string.h>

#include "plot.h"
#include "report.h"
#include "stats.h"

static const char *const role_names[N_ROLES] = { "client", "server", "daemon" };

static void write_numbers(struct json *j, const char *key, const double *v, unsigned int n)
{
	unsigned int i;

	json_open(j, key, '[');
	for (i = 0; i < n; i++)
		json_number(j, NULL, v[i]);
	json_close(j, ']');
}

static void write_roles(struct json *j, const char *key, double *const *v, unsigned int n)
{
	int i;

	json_open(j, key, '{');
	for (i = 0; i < N_ROLES; i++)
		json_number(j, role_names[i], stats_mean(v[i], n));
	json_close(j, '}');
}

/* Pairs of a counter's highest value and its count, empty counters left out. */
static void write_counts(struct json *j, const struct hist *h)
{
	unsigned int i;

	json_open(j, "counts", '[');
	for (i = 0; i < HIST_SIZE; i++) {
		if (!h->counts[i])
			continue;
		json_open(j, NULL, '[');
		json_integer(j, NULL, hist_highest(i));
		json_integer(j, NULL, h->counts[i]);
		json_close(j, ']');
	}
	json_close(j, ']');
}

static void write_hist(struct json *j, const struct hist *h)
{
	json_open(j, "histogram_ns", '{');
	json_integer(j, "total", h->total);
	json_integer(j, "min", h->min);
	json_integer(j, "p50", hist_percentile(h, 50));
	json_integer(j, "p99", hist_percentile(h, 99));
	json_integer(j, "p99.9", hist_percentile(h, 99.9));
	json_integer(j, "max", h->max);
	write_counts(j, h);
	json_close(j, '}');
}

static void write_cell(struct json *j, const struct cell *c)
{
	json_open(j, NULL, '{');
	json_string(j, "row", c->row);
	json_string(j, "subject", c->subject);
	json_string(j, "unit", c->unit);
	json_integer(j, "payload", c->size);
	json_number(j, "messages", c->messages);
	write_numbers(j, "samples", c->samples, c->n);
	json_number(j, "mean", stats_mean(c->samples, c->n));
	json_number(j, "median", cell_median(c));
	json_number(j, "deviation_percent", stats_deviation(c->samples, c->n));
	if (!strcmp(c->unit, "ns")) {
		write_roles(j, "cpu_ns_per_message", c->cpu_ns, c->n);
		write_roles(j, "switches_per_message", c->switches, c->n);
	}
	if (c->hist)
		write_hist(j, c->hist);
	json_close(j, '}');
}

static void write_peers(struct json *j, const struct report *r)
{
	unsigned int i;

	json_open(j, "peers", '[');
	for (i = 0; i < r->n_peers; i++) {
		json_open(j, NULL, '{');
		json_string(j, "subject", r->peers[i].subject);
		json_boolean(j, "measured", !r->peers[i].missing[0]);
		json_string(j, "version", r->peers[i].version);
		json_string(j, "missing", r->peers[i].missing);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void write_options(struct json *j, const struct options *o)
{
	int i;

	json_open(j, "options", '{');
	json_integer(j, "repeat", o->repeat);
	json_boolean(j, "quick", o->quick);
	json_boolean(j, "threads", o->threads);
	json_open(j, "sizes", '[');
	for (i = 0; i < (int)o->n_sizes; i++)
		json_integer(j, NULL, o->sizes[i]);
	json_close(j, ']');
	json_integer(j, "count", o->count);
	json_string(j, "only", o->only ? o->only : "");
	json_integer(j, "busy", o->busy);
	json_string(j, "engine", o->engine);
	json_open(j, "pin", '[');
	for (i = 0; i < (int)o->n_cpus; i++)
		json_integer(j, NULL, (uint64_t)o->cpus[i]);
	json_close(j, ']');
	json_open(j, "command_line", '[');
	for (i = 0; i < o->argc; i++)
		json_string(j, NULL, o->argv[i]);
	json_close(j, ']');
	json_close(j, '}');
}

static void write_report(struct json *j, const struct report *r)
{
	unsigned int i;

	json_open(j, NULL, '{');
	json_string(j, "schema", "kdbus-bench/1");
	json_string(j, "subcommand", r->name);
	json_string(j, "version", KDBUS_VERSION);
	json_string(j, "libraries", "kdbus " KDBUS_VERSION BENCH_CLIENTS);
	json_string(j, "compiler", BENCH_COMPILER);
	regime_json(&r->regime, j);
	write_options(j, r->options);
	write_peers(j, r);
	json_open(j, "cells", '[');
	for (i = 0; i < r->n_cells; i++)
		if (r->cells[i]->n)
			write_cell(j, r->cells[i]);
	json_close(j, ']');
	if (r->more)
		r->more(r, j);
	json_close(j, '}');
}

static int write_json(const struct report *r)
{
	const char *path = r->options->json;
	struct json j = { .file = NULL };
	bool broken;

	if (!path)
		return 0;
	j.file = fopen(path, "we");
	if (!j.file) {
		fprintf(stderr, "kdbus-bench: --json: cannot write %s: %m\n", path);
		return -EIO;
	}
	write_report(&j, r);
	broken = ferror(j.file);
	if (fclose(j.file) == EOF || broken) {
		fprintf(stderr, "kdbus-bench: --json: writing %s: %m\n", path);
		return -EIO;
	}
	return 0;
}

int report_files(const struct report *r)
{
	int e = write_json(r);

	return e == 0 && r->options->plot ? plot_report(r, r->options->plot) : e;
}
