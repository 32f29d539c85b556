// SPDX-License-Identifier: LGPL-2.1-or-later
#include "set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "child.h"

void set_progress(const char *what, const char *row, unsigned int i, unsigned int n)
{
	if (!isatty(STDERR_FILENO))
		return;
	fputs("\r\033[K", stderr);
	if (what)
		fprintf(stderr, "%s: %s, repetition %u of %u", what, row, i, n);
	fflush(stderr);
}

/* Why subject i cannot be measured; "" if it can. */
static const char *lacks(const struct set *s, const struct options *o, const struct subject *sub,
			 char *buf, size_t size)
{
	buf[0] = '\0';
	if (!options_wants(o, sub->name))
		snprintf(buf, size, "left out by --only");
	else if (!sub->transport)
		snprintf(buf, size, "not in this build; install the package %s and build anew",
			 sub->package);
	else if (s->buses[sub->bus].missing[0])
		snprintf(buf, size, "%s", s->buses[sub->bus].missing);
	return buf;
}

static int start_buses(struct set *s, const struct options *o)
{
	bool wanted[N_BUSES] = { false };
	unsigned int i;
	int r = 0;

	for (i = 0; i < s->n; i++)
		wanted[s->subjects[i].bus] |= s->subjects[i].transport != NULL &&
					      options_wants(o, s->subjects[i].name);
	for (i = 1; i < N_BUSES && r == 0; i++) {
		if (wanted[i])
			r = bus_start(i, o, &s->buses[i]);
		if (r == 0 && s->buses[i].pid > 0 && o->n_cpus)
			r = child_pin(s->buses[i].pid, o->cpus[ROLE_DAEMON % o->n_cpus]);
	}
	return r;
}

static int start_link(struct set *s, unsigned int i, const struct options *o, struct report *report)
{
	const struct subject *sub = &s->subjects[i];
	const struct bus *bus = &s->buses[sub->bus];
	struct link_plan plan = {
		.transport = sub->transport,
		.address = bus->address,
		.daemon = bus->pid,
		.subject = sub->name,
		.threads = o->threads,
		.relayed = sub->relayed,
		.receivers = sub->receivers,
		.matching = sub->matching,
	};
	char missing[160];

	report_peer(report, sub->name, bus->version, lacks(s, o, sub, missing, sizeof(missing)));
	return missing[0] ? 0 : link_start(&plan, o, &s->links[i]);
}

int set_start(struct set *s, const struct subject *subjects, unsigned int n,
	      const struct options *o, struct report *report)
{
	unsigned int i;
	int r;

	*s = (struct set){ .subjects = subjects, .n = n };
	for (i = 0; i < N_BUSES; i++)
		s->buses[i].controller = -1;
	r = start_buses(s, o);
	for (i = 0; i < n && r == 0; i++)
		r = start_link(s, i, o, report);
	for (i = 0; i < n && r == 0 && !s->links[i]; i++)
		;
	if (r == 0 && i == n) {
		fprintf(stderr, "kdbus-bench: nothing to measure\n");
		report_missing(report, stderr);
		r = -EINVAL;
	}
	if (r == 0)
		r = child_hogs(o->busy, s->hogs);
	if (r == 0)
		s->n_hogs = o->busy;
	if (r < 0)
		set_stop(s);
	return r;
}

void set_stop(struct set *s)
{
	unsigned int i;

	for (i = 0; i < s->n_hogs; i++)
		child_kill(s->hogs[i]);
	s->n_hogs = 0;
	for (i = 0; i < s->n; i++) {
		link_stop(s->links[i]);
		s->links[i] = NULL;
	}
	for (i = 1; i < N_BUSES; i++)
		if (s->buses[i].pid > 0)
			bus_stop(&s->buses[i]);
}

unsigned int set_columns(const struct set *s, enum job_kind kind, struct column *ret)
{
	unsigned int i;

	for (i = 0; i < s->n; i++)
		ret[i] = (struct column){ .subject = i, .kind = kind };
	return s->n;
}

static int measure_cell(struct set *s, const struct column *col, const struct row *row,
			struct report *report)
{
	struct link *link = s->links[col->subject];
	struct order order = row->order;
	struct cell *cell;
	int r;

	if (!link || (col->max && order.job.request > col->max))
		return 0;
	if (col->kind != JOB_COPY)
		order.job.kind = col->kind;
	r = link_run(link, &order);
	if (r < 0)
		return r;
	cell = report_cell(report, row->name, col->name ? col->name : link->subject);
	if (!cell)
		return -ENOMEM;
	cell->size = order.job.request;
	r = report_add(report, cell, &link->shared->result);
	return r == 0 && col->each ? col->each(link, report) : r;
}

static int measure_row(struct set *s, const struct column *columns, unsigned int n_columns,
		       const struct row *row, struct report *report)
{
	unsigned int col;
	int r = 0;

	for (col = 0; col < n_columns && r == 0; col++)
		r = measure_cell(s, &columns[col], row, report);
	return r;
}

int set_measure(struct set *s, const struct column *columns, unsigned int n_columns,
		const struct row *rows, unsigned int n_rows, struct report *report)
{
	unsigned int repeat = report->options->repeat, row, rep;
	int r = 0;

	for (rep = 0; rep < repeat && r == 0; rep++)
		for (row = 0; row < n_rows && r == 0; row++) {
			set_progress(report->name, rows[row].name, rep + 1, repeat);
			r = measure_row(s, columns, n_columns, &rows[row], report);
		}
	set_progress(NULL, NULL, 0, 0);
	return r;
}
