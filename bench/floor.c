// SPDX-License-Identifier: LGPL-2.1-or-later
#include "floor.h"

#include <stdlib.h>

#include "plan.h"
#include "stats.h"

/* A ratio and its interval are so wide. */
#define RATIO_WIDTH 18

/* In each repetition; false: in one it is not above zero, which no ratio can be taken of. */
static bool floor_of(const struct cell *direct, const struct cell *relay, const struct cell *socket,
		     double *ret)
{
	bool above = true;
	unsigned int i;

	for (i = 0; i < direct->n; i++) {
		ret[i] = direct->samples[i] + relay->samples[i] - socket->samples[i];
		above = above && ret[i] > 0;
	}
	return above;
}

static void print_ratio(const double *floor, const double *bus, unsigned int n)
{
	struct stats_ratio q = stats_paired(floor, bus, n);

	if (n > 1)
		printf("  %4.2f (%4.2f - %4.2f)", q.ratio, q.low, q.high);
	else
		printf("  %*.2f", RATIO_WIDTH, q.ratio);
}

/* How many times @floor each bus takes; @pick leads to the values of a cell. */
static void print_ratios(const struct report *r, const char *row, const struct floor_library *lib,
			 const double *floor, unsigned int n,
			 const double *(*pick)(const struct cell *c))
{
	const struct cell *c;
	unsigned int i;

	for (i = 0; i < lib->n_buses; i++) {
		c = report_find(r, row, lib->buses[i]);
		if (c && c->n == n)
			print_ratio(floor, pick(c), n);
		else
			printf("  %*s", RATIO_WIDTH, "-");
	}
	putchar('\n');
}

static const double *times(const struct cell *c)
{
	return c->samples;
}

static const double *daemon_cpu(const struct cell *c)
{
	return c->cpu_ns[ROLE_DAEMON];
}

static void print_times(const struct report *r, const char *row, const struct floor_library *lib)
{
	const struct cell *direct = report_find(r, row, lib->direct);
	const struct cell *relay = report_find(r, row, FLOOR_RELAY);
	const struct cell *socket = report_find(r, row, FLOOR_SOCKET);
	double *floor;

	if (!direct || !relay || !socket || direct->n != relay->n || relay->n != socket->n)
		return;
	floor = calloc(direct->n, sizeof(*floor));
	if (!floor)
		return;
	if (floor_of(direct, relay, socket, floor)) {
		printf("%6s %-8s %10.2f", row, lib->name, stats_median(floor, direct->n) / 1000);
		print_ratios(r, row, lib, floor, direct->n, times);
	} else {
		printf("%6s %-8s %10s  (the relay took less than the socket without one)\n", row,
		       lib->name, "-");
	}
	free(floor);
}

static void print_cpu(const struct report *r, const char *row, const struct floor_library *lib)
{
	const struct cell *relay = report_find(r, row, FLOOR_RELAY);

	if (!relay || cell_cpu_us(relay, ROLE_DAEMON) <= 0)
		return;
	printf("%6s %-8s %10.2f", row, lib->name,
	       cell_cpu_us(relay, ROLE_DAEMON) * relay->messages);
	print_ratios(r, row, lib, daemon_cpu(relay), relay->n, daemon_cpu);
}

static void print_head(const char *what, const char *const *headings, unsigned int n)
{
	unsigned int i;

	printf("%6s %-8s %10s", "SIZE", "LIBRARY", what);
	for (i = 0; i < n; i++)
		printf("  %*s", RATIO_WIDTH, headings[i]);
	putchar('\n');
}

static void print_rows(const struct report *r, const struct floor_library *libraries,
		       unsigned int n,
		       void (*print_row)(const struct report *r, const char *row,
					 const struct floor_library *lib))
{
	char row[24];
	unsigned int i, j;

	for (i = 0; i < r->options->n_sizes; i++) {
		options_format_size(r->options->sizes[i], row, sizeof(row));
		for (j = 0; j < n; j++)
			print_row(r, row, &libraries[j]);
	}
}

void floor_print(const struct report *r, const struct floor_library *libraries, unsigned int n,
		 const char *const *headings)
{
	/* Without the relay there is nothing to compare with. */
	if (!n || !r->n_cells || !report_find(r, r->cells[0]->row, FLOOR_RELAY))
		return;
	printf("\n# The floor (usecs a call): a library without a bus, and what a relay adds to a "
	       "socket.\n# How many times as long a call takes on a bus; in brackets the 95 %% "
	       "interval\n");
	print_head("FLOOR", headings, libraries[0].n_buses);
	print_rows(r, libraries, n, print_times);
	printf("\n# CPU usecs of that relay for a call, and how many times as much a daemon "
	       "takes\n");
	print_head("RELAY", headings, libraries[0].n_buses);
	print_rows(r, libraries, n, print_cpu);
}
