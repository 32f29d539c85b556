// SPDX-License-Identifier: LGPL-2.1-or-later
#include "goals.h"

#include <stdlib.h>

#include "stats.h"

/* One side of a goal: @v are @n samples, the caller's to free, NULL if it was not measured. */
struct side {
	double *v;
	unsigned int n;
};

struct outcome {
	double measured, peer; /* medians */
	struct stats_ratio ratio;
	bool known;
	bool sure; /* there is an interval */
};

static struct side side_of(const struct report *r, const struct goal_side *g, const char *row)
{
	const struct cell *one = report_find(r, row, g->subject);
	const struct cell *two = g->other ? report_find(r, row, g->other) : one;
	struct side s = { .v = NULL };
	unsigned int i;

	if (!one || !two || !one->n || one->n != two->n)
		return s;
	s.v = calloc(one->n, sizeof(*s.v));
	if (!s.v)
		return s;
	s.n = one->n;
	for (i = 0; i < s.n; i++)
		s.v[i] = (one->samples[i] + two->samples[i]) / 2 + g->plus_ns;
	return s;
}

static struct outcome outcome_of(const struct report *r, const struct goal *g)
{
	const char *row = g->peer.row ? g->peer.row : g->measured.row;
	struct side measured = side_of(r, &g->measured, g->measured.row);
	struct side peer = side_of(r, &g->peer, row);
	struct outcome o = { .known = measured.v && peer.v && measured.n == peer.n };

	if (o.known) {
		o.measured = stats_median(measured.v, measured.n);
		o.peer = stats_median(peer.v, peer.n);
		o.ratio = stats_paired(peer.v, measured.v, measured.n);
		o.sure = measured.n > 1;
	}
	free(measured.v);
	free(peer.v);
	return o;
}

static const char *verdict(const struct goal *g, const struct outcome *o)
{
	if (!o->known)
		return "not measured";
	if (!(g->bound > 0))
		return "no goal";
	if (!o->sure)
		return "too few repetitions to say";
	if (o->ratio.high <= g->bound)
		return "reached";
	return o->ratio.low > g->bound ? "missed" : "not certain";
}

/* Far below one it is easier to read how many times less it is. */
static void print_bound(double bound)
{
	if (!(bound > 0))
		printf(" %9s", "-");
	else if (bound < 0.5)
		printf("  <= 1/%-3.0f", 1 / bound);
	else
		printf("   <= %4.2f", bound);
}

static void print_goal(const struct goal *g, const struct outcome *o)
{
	printf("%-34s", g->name);
	if (!o->known) {
		printf(" %9s %9s  %-26s %23s", "-", "-", g->peer_name, "-");
	} else {
		printf(" %9.2f %9.2f  %-26s", o->measured / 1000, o->peer / 1000, g->peer_name);
		printf(" %6.3f (%6.3f - %6.3f)", o->ratio.ratio, o->ratio.low, o->ratio.high);
	}
	print_bound(g->bound);
	printf("  %s\n", verdict(g, o));
}

void goals_print(const struct report *r, const struct goal *goals, unsigned int n)
{
	struct outcome o;
	unsigned int i;

	printf("\n# Median usecs, and how many times as long as its peer it takes (mean of the "
	       "repetitions,\n# in brackets the 95 %% interval)\n");
	printf("%-34s %9s %9s  %-26s %23s %9s\n", "WHAT", "KDBUS", "PEER", "", "RATIO", "GOAL");
	for (i = 0; i < n; i++) {
		o = outcome_of(r, &goals[i]);
		print_goal(&goals[i], &o);
	}
}

static void write_goal(struct json *j, const struct goal *g, const struct outcome *o)
{
	json_open(j, NULL, '{');
	json_string(j, "name", g->name);
	json_string(j, "peer", g->peer_name);
	if (g->bound > 0)
		json_number(j, "goal", g->bound);
	json_string(j, "verdict", verdict(g, o));
	if (o->known) {
		json_number(j, "kdbus_ns", o->measured);
		json_number(j, "peer_ns", o->peer);
		json_number(j, "ratio", o->ratio.ratio);
		json_number(j, "low", o->ratio.low);
		json_number(j, "high", o->ratio.high);
	}
	json_close(j, '}');
}

void goals_json(const struct report *r, const struct goal *goals, unsigned int n, struct json *j)
{
	struct outcome o;
	unsigned int i;

	json_open(j, "goals", '[');
	for (i = 0; i < n; i++) {
		o = outcome_of(r, &goals[i]);
		write_goal(j, &goals[i], &o);
	}
	json_close(j, ']');
}
