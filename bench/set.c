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

/* ---- what --only names ---- */

static bool wants_subject(const struct options *o, const struct subject *s)
{
	return !o->only || options_names(o, s->name) ||
	       (s->columns[0] && options_names(o, s->columns[0])) ||
	       (s->columns[1] && options_names(o, s->columns[1]));
}

static bool wants_column(const struct options *o, const struct subject *s, const struct column *c)
{
	return !o->only || options_names(o, s->name) || (c->name && options_names(o, c->name));
}

static bool is_name(const struct subject *s, const char *name)
{
	return !strcmp(s->name, name) || (s->columns[0] && !strcmp(s->columns[0], name)) ||
	       (s->columns[1] && !strcmp(s->columns[1], name));
}

static int refuse_name(const struct subject *subjects, unsigned int n, const char *name)
{
	unsigned int i, j;

	fprintf(stderr, "kdbus-bench: --only: there is no subject '%s'; there are: ", name);
	for (i = 0; i < n; i++) {
		fprintf(stderr, "%s%s", i ? ", " : "", subjects[i].name);
		for (j = 0; j < 2 && subjects[i].columns[j]; j++)
			fprintf(stderr, ", %s", subjects[i].columns[j]);
	}
	fputc('\n', stderr);
	return -EINVAL;
}

int set_check_only(const struct subject *subjects, unsigned int n, const struct options *o)
{
	char name[64];
	const char *at = o->only;
	unsigned int i;
	size_t length;

	while (at) {
		length = strcspn(at, ",");
		snprintf(name, sizeof(name), "%.*s", (int)length, at);
		for (i = 0; i < n && !is_name(&subjects[i], name); i++)
			;
		if (i == n)
			return refuse_name(subjects, n, name);
		at = at[length] ? at + length + 1 : NULL;
	}
	return 0;
}

/* ---- starting and stopping ---- */

/* Why subject i cannot be measured; "" if it can. */
static const char *lacks(const struct set *s, const struct options *o, const struct subject *sub,
			 char *buf, size_t size)
{
	buf[0] = '\0';
	if (!wants_subject(o, sub))
		snprintf(buf, size, "left out by --only");
	else if (sub->missing)
		snprintf(buf, size, "%s", sub->missing);
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
					      !s->subjects[i].missing &&
					      wants_subject(o, &s->subjects[i]);
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

/* ---- measuring ---- */

void set_note_limits(const struct subject *subjects, const struct column *columns,
		     unsigned int n_columns, const struct row *rows, unsigned int n_rows,
		     struct report *report)
{
	char what[64], limit[24];
	unsigned int i, j;

	for (i = 0; i < n_columns; i++) {
		for (j = 0; j < n_rows; j++)
			if (columns[i].max && rows[j].order.job.request > columns[i].max)
				break;
		if (j == n_rows ||
		    !wants_column(report->options, &subjects[columns[i].subject], &columns[i]))
			continue;
		options_format_size(columns[i].max, limit, sizeof(limit));
		snprintf(what, sizeof(what), "%s above %s",
			 columns[i].name ? columns[i].name : subjects[columns[i].subject].name,
			 limit);
		report_peer(report, what, NULL, columns[i].limit);
	}
}

static int measure_cell(struct set *s, const struct column *col, const struct row *row,
			struct report *report)
{
	struct link *link = s->links[col->subject];
	struct order order = row->order;
	struct cell *cell;
	int r;

	if (!link || (col->max && order.job.request > col->max) ||
	    (order.kind == ORDER_FLOW && !s->subjects[col->subject].transport->flow) ||
	    !wants_column(report->options, &s->subjects[col->subject], col))
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

int set_measure_row(struct set *s, const struct column *columns, unsigned int n_columns,
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
			r = set_measure_row(s, columns, n_columns, &rows[row], report);
		}
	set_progress(NULL, NULL, 0, 0);
	return r;
}
