/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

/**
 * DOC: the command line
 *
 * A subcommand says which options beyond the common ones mean something to it;
 * the others are refused, not ignored.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OPTIONS_LIST_MAX 64

/* Options that only some subcommands have. */
enum {
	OPTION_SIZES = 1 << 0,
	OPTION_COUNT = 1 << 1,
	OPTION_THREADS = 1 << 2,
	OPTION_SECONDS = 1 << 3,
	OPTION_COMMON = 1 << 4, /* what every subcommand that measures has */
	OPTION_OUTPUT = 1 << 5,
	OPTION_THRESHOLD = 1 << 6,
	OPTION_PIN = 1 << 7,
	OPTION_JSON = 1 << 8,
	OPTION_MEASURE = OPTION_COMMON | OPTION_PIN,
};

/**
 * struct options - what was asked for
 * @repeat: measurements of each cell
 * @cpus: from --pin: of client, server, daemon, starting over when there are fewer
 * @placed: the subcommand pins what it starts as it needs it
 * @sizes: from --sizes, in the order given
 * @count: from --count, 0 if not given
 * @seconds: from --seconds, 0 if not given
 * @corrupt: number of the request to damage, 0 for none
 * @threshold: from --threshold, as a factor: 1.05 is 5 %
 * @against: from --against, a subject, or NULL
 * @engine: from --engine, else KDBUS_ENGINE, else "user"
 * @only: from --only, names of subjects with commas between them, or NULL for all
 * @arguments: what is left after the options
 */
struct options {
	unsigned int repeat;
	bool help;
	bool version;
	bool quick;
	bool threads;
	unsigned int busy;
	int cpus[OPTIONS_LIST_MAX];
	unsigned int n_cpus;
	bool placed;
	uint64_t sizes[OPTIONS_LIST_MAX];
	unsigned int n_sizes;
	uint64_t count;
	unsigned int seconds;
	uint64_t corrupt;
	double threshold;
	const char *only;
	const char *against;
	const char *json;
	const char *plot;
	const char *output;
	const char *kdbusd;
	const char *engine;
	char **arguments;
	int n_arguments;
	int argc;
	char **argv;
};

/**
 * options_parse() - read what follows the subcommand's name
 * @name: subcommand
 * @allowed: OPTION_*
 * @argc: as of main(), without the program's name
 * @argv: likewise
 * @ret: the options, defaults filled in
 *
 * With --help or --version nothing else is checked that is not wrong in itself.
 *
 * Return: 0, or -EINVAL after a message.
 */
int options_parse(const char *name, unsigned int allowed, int argc, char **argv,
		  struct options *ret);

/** options_help() - a line or two for each option that a subcommand with @allowed has */
void options_help(unsigned int allowed, FILE *f);

/** options_names() - is @subject among what --only names? */
bool options_names(const struct options *o, const char *subject);

/** options_size() - a number with k or M behind it for 1024 and 1048576; false if it is none */
bool options_size(const char *text, uint64_t *ret);

/** options_format_size() - the shortest form that options_size() reads back; returns @buf */
const char *options_format_size(uint64_t size, char *buf, size_t buf_size);

#endif
