/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_COMMANDS_H
#define BENCH_COMMANDS_H

/**
 * DOC: the subcommands
 *
 * Each takes its parsed options, prints to stdout and returns 0 or a negative
 * errno after a message; compare answers 1 if it found regressions, icount the number of
 * goals that are missed.
 */

#include "options.h"

int command_chart(const struct options *o);
int command_fanout(const struct options *o);
int command_goals(const struct options *o);
int command_first(const struct options *o);
int command_icount(const struct options *o);
int command_memfd(const struct options *o);
int command_storm(const struct options *o);
int command_scale(const struct options *o);
int command_compare(const struct options *o);
int command_tour(const struct options *o);
int command_latency(const struct options *o);
int command_rpc(const struct options *o);
int command_pipe(const struct options *o);
int command_ways(const struct options *o);
int command_socket(const struct options *o);

#endif
