// SPDX-License-Identifier: LGPL-2.1-or-later
#include "icount.h"

#include <errno.h>
#include <string.h>

/* Where fixed cost and cost per byte are told apart. */
#define SMALL 64
#define LARGE 65536
#define BIG   (1 << 20)

/* Takes up one line; 1: it names a kernel, which begins something new if there is one already. */
static int take_line(const char *line, struct icount *c)
{
	struct icount_row *row = &c->rows[c->n];
	unsigned long long bytes, instructions;
	char end;

	if (sscanf(line, "kernel %95s %c", c->kernel, &end) == 1)
		return 1;
	if (c->n == ICOUNT_ROWS_MAX ||
	    sscanf(line, "%31s %llu %llu %c", row->kind, &bytes, &instructions, &end) != 3)
		return -EBADMSG;
	row->bytes = bytes;
	row->instructions = instructions;
	c->n++;
	return 0;
}

int icount_read(FILE *f, struct icount *ret)
{
	struct icount next;
	char line[256];
	long at;
	int r;

	memset(ret, 0, sizeof(*ret));
	for (at = ftell(f); fgets(line, sizeof(line), f); at = ftell(f)) {
		if (*ret->kernel && !strncmp(line, "kernel ", 7)) {
			if (at < 0 || fseek(f, at, SEEK_SET) < 0)
				return -EBADMSG;
			break;
		}
		next = *ret;
		r = take_line(line, &next);
		if (r < 0 || (!r && !*ret->kernel))
			return -EBADMSG;
		*ret = next;
	}
	if (!*ret->kernel)
		return 0;
	return ret->n ? 1 : -EBADMSG;
}

uint64_t icount_get(const struct icount *c, const char *kind, uint64_t bytes)
{
	unsigned int i;

	for (i = 0; i < c->n; i++)
		if (c->rows[i].bytes == bytes && !strcmp(c->rows[i].kind, kind))
			return c->rows[i].instructions;
	return 0;
}

double icount_per_byte(const struct icount *c, const char *kind)
{
	return ((double)icount_get(c, kind, LARGE) - (double)icount_get(c, kind, SMALL)) /
	       (LARGE - SMALL);
}

double icount_fixed(const struct icount *c, const char *kind)
{
	return (double)icount_get(c, kind, SMALL) - SMALL * icount_per_byte(c, kind);
}

static struct icount_goal round_trip(const struct icount *c, const char *name, uint64_t bytes,
				     double goal)
{
	return (struct icount_goal){
		.name = name,
		.cost = (double)icount_get(c, "kdbus-round-trip", bytes),
		.floor = (double)icount_get(c, "socket-round-trip", bytes),
		.goal = goal,
	};
}

int icount_goals(const struct icount *c, struct icount_goal ret[ICOUNT_GOALS])
{
	/* what a descriptor costs on top of a message, by the socket */
	double fd = (double)icount_get(c, "socket-fd-calls", SMALL) -
		    (double)icount_get(c, "socket-calls", SMALL);
	unsigned int i;

	ret[0] = round_trip(c, "round trip of 64 B, to a seqpacket socket", SMALL, 1.3);
	ret[1] = round_trip(c, "round trip of 8 KiB, to the same", 8192, 1.0);
	ret[2] = round_trip(c, "round trip of 64 KiB, to the same", LARGE, 1.0);
	ret[3] = (struct icount_goal){
		.name = "RECV of 1 MiB, to one of 64 B",
		.cost = (double)icount_get(c, "kdbus-recv", BIG),
		.floor = (double)icount_get(c, "kdbus-recv", SMALL),
		.goal = 1.0,
	};
	ret[4] = (struct icount_goal){
		.name = "memfd, to 64 B and a descriptor",
		.cost = (double)icount_get(c, "kdbus-memfd-calls", BIG),
		.floor = (double)icount_get(c, "kdbus-calls", SMALL) + fd,
		.goal = 1.2,
	};
	for (i = 0; i < ICOUNT_GOALS; i++)
		if (ret[i].cost <= 0 || ret[i].floor <= 0)
			return -EBADMSG;
	return 0;
}
