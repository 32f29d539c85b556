// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbus-bench: every benchmark of the kdbus debate in one program. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "child.h"
#include "commands.h"

struct command {
	const char *name;
	int (*run)(const struct options *o);
	unsigned int options;
	int arguments;
	const char *text;
	int optional; /* more arguments, which need not be there */
};

static const struct command commands[] = {
	{ "chart", command_chart, OPTION_MEASURE | OPTION_SIZES | OPTION_COUNT, 0,
	  "calls with a payload and an empty reply, one at a time: transactions a\n"
	  "second for 1 B to 4 MiB, over libkdbus with the payload in the message\n"
	  "(COPY) and in a sealed memfd of its own (MEMFD), over dbus-daemon,\n"
	  "dbus-broker and kdbusd with sd-bus, over a UNIX socket. One message: a\n"
	  "call or a reply; a transaction is two.\n" },
	{ "latency", command_latency, OPTION_MEASURE | OPTION_SECONDS | OPTION_COUNT, 0,
	  "packets of 64 bytes that are answered with as many; both sides sleep in\n"
	  "poll(2) as event loops do. A line a second; the latency is that of a\n"
	  "packet there and back. One message: a packet, one way.\n" },
	{ "rpc", command_rpc, OPTION_MEASURE | OPTION_SIZES | OPTION_COUNT, 0,
	  "calls with a string, answered with two characters: seconds for 1000\n"
	  "calls of 64 B to 1 MB through libkdbus, a UNIX socket with and without a\n"
	  "relay, and libdbus, sd-bus and GDBus: directly and on each D-Bus daemon,\n"
	  "kdbusd among them; how near these come to the floor that the relay is.\n"
	  "GLib has a table of its own besides. One message: a call or a reply.\n" },
	{ "socket", command_socket, OPTION_MEASURE | OPTION_SIZES | OPTION_COUNT, 0,
	  "calls with the same payload in request and reply: over a UNIX socket\n"
	  "(single), over a relay process (dbus), over libkdbus; one at a time\n"
	  "(sync), and with up to 32 of them or 128 KiB open (async). One\n"
	  "message: one payload from application to application; that the relay\n"
	  "forwards it does not make it two.\n" },
	{ "pipe", command_pipe, OPTION_MEASURE | OPTION_COUNT | OPTION_THREADS, 0,
	  "ping-pong of a number over pipe, eventfd, futex, UNIX socket and\n"
	  "spinning shared memory. One message: one number, one way.\n" },
	{ "first", command_first, OPTION_MEASURE | OPTION_COUNT, 0,
	  "connecting, and the first calls to a peer never talked to, next to the\n"
	  "steady state: 64 bytes each way. One message: a call or a reply.\n" },
	{ "memfd", command_memfd, OPTION_MEASURE | OPTION_SIZES | OPTION_COUNT, 0,
	  "calls that pass a sealed memfd: the same one again and again (pass: its\n"
	  "first 4 KiB are read) or one made, filled and read in full each time\n"
	  "(new), next to 64 bytes in the message (copy). One message: a call or a\n"
	  "reply.\n" },
	{ "ways", command_ways, OPTION_MEASURE | OPTION_SIZES | OPTION_COUNT, 0,
	  "calls with an answer of 64 bytes over libkdbus as it is, without spinning,\n"
	  "and through kdbusd, next to buses, a socket and one memcpy(3); 1 MiB of\n"
	  "which only the first 4 KiB are read (unread); and messages of 4 KiB one\n"
	  "way, of which one in 32 is answered. One message: a call or a reply.\n" },
	{ "goals", command_goals, OPTION_COMMON | OPTION_COUNT, 0,
	  "what kdbus is to be as fast as, each goal next to its peer: both ends on\n"
	  "one CPU, on two, and on two that others keep busy. How many times as long\n"
	  "it takes, with the 95 % interval, and whether the goal is reached. One\n"
	  "message: a call or a reply.\n" },
	{ "scale", command_scale, (OPTION_MEASURE | OPTION_SIZES) & ~OPTION_PIN, 0,
	  "1, 2, 4 ... pairs that call each other at the same time, pair n on CPU n:\n"
	  "transactions a second of all, and what a pair loses to the others.\n"
	  "One message: a call or a reply of 64 bytes.\n" },
	{ "fanout", command_fanout, OPTION_MEASURE | OPTION_SIZES | OPTION_COUNT, 0,
	  "a broadcast of 64 bytes to 1, 10, 100, 1000 receivers in one process, from\n"
	  "sending until the last has it; 16 of them in flight (x16); and (no match)\n"
	  "to one receiver while so many others have no match. One message: what one\n"
	  "receiver gets.\n" },
	{ "storm", command_storm, OPTION_MEASURE | OPTION_COUNT, 0,
	  "connecting, by a library and in one write; the daemon's memory for a\n"
	  "connection and for a match rule;\n"
	  "connect, take a name, call, leave; then 500 connections at once: memory\n"
	  "and descriptors of the daemon. One message: the call or its reply.\n" },
	{ "icount", command_icount, OPTION_JSON, 0,
	  "instructions of messages through kdbus.ko next to UNIX sockets, counted in\n"
	  "an emulated machine (some minutes), or read from TABLE, which tests/vm/cost\n"
	  "--raw wrote; and the goals. Status 1 if one is missed by more than 3 %.\n",
	  1 },
	{ "tour", command_tour, OPTION_OUTPUT | OPTION_COUNT, 0,
	  "the quick forms of chart, rpc, latency, socket and pipe: tables, pictures\n"
	  "and a page that shows them, in the folder that --output names.\n" },
	{ "compare", command_compare, OPTION_THRESHOLD, 2,
	  "which rows of B are slower than in A by more than noise and more than\n"
	  "the threshold (5 %). Status 1 if any is, 2 if no difference could show.\n" },
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* ---- help ---- */

static void print_command(const struct command *c)
{
	const char *text, *end, *head = c->name;

	for (text = c->text; *text; text = end + 1, head = "") {
		end = strchr(text, '\n');
		printf("  %-8s %.*s\n", head, (int)(end - text), text);
	}
}

static void print_status(void)
{
	puts("\nStatus: 0 done, 1 the measurement failed, compare found regressions or icount a "
	     "goal missed,\n2 wrong usage, or files that cannot be compared or read.");
}

static void print_help(void)
{
	size_t i;

	puts("Usage: kdbus-bench SUBCOMMAND [OPTION...]\n"
	     "       kdbus-bench SUBCOMMAND --help\n"
	     "       kdbus-bench compare [--against SUBJECT] [--threshold PERCENT] A.json B.json\n"
	     "Measure kdbus next to what would be used instead, in one run.\n");
	for (i = 0; i < N_COMMANDS; i++)
		print_command(&commands[i]);
	puts("\nOptions; each subcommand says with --help which of them it has:");
	options_help(~0U, stdout);
	print_status();
}

static void print_command_help(const struct command *c)
{
	printf("Usage: kdbus-bench %s%s [OPTION...]%s\n", c->name,
	       c->options & OPTION_OUTPUT ? " --output DIR" : "",
	       c->arguments ? " A.json B.json" : c->optional ? " [TABLE]" : "");
	print_command(c);
	putchar('\n');
	options_help(c->options, stdout);
	print_status();
}

/* ---- running ---- */

static const struct command *find(const char *name)
{
	size_t i;

	for (i = 0; i < N_COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static int usage(const char *what, const char *name)
{
	fprintf(stderr, "kdbus-bench: %s%s%s; for example: kdbus-bench pipe --quick\n", what,
		name ? " " : "", name ? name : "");
	return 2;
}

/* A thousand receivers take more than the usual soft limit; children inherit it. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* What could not be printed was not done. */
static int check_stdout(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "kdbus-bench: cannot write to the standard output: %m\n");
	return status ? status : 1;
}

static int show(const struct command *command, bool help)
{
	if (!help)
		puts("kdbus-bench " KDBUS_VERSION);
	else if (command)
		print_command_help(command);
	else
		print_help();
	return check_stdout(0);
}

/* Damage fails a run: one that did not fail has not sent that request. */
static int check_corrupt(const struct options *o, int r)
{
	if (r != 0 || !o->corrupt)
		return r;
	fprintf(stderr,
		"kdbus-bench: --corrupt: no client has sent %llu requests, nothing was damaged\n",
		(unsigned long long)o->corrupt);
	return -EIO;
}

/* A pipe of ours must not become the standard output of a program that was started without. */
static void reserve_standard_files(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDONLY);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	close(fd);
}

static int run(const struct command *command, const struct options *o)
{
	int r;

	if (o->n_arguments < command->arguments ||
	    o->n_arguments > command->arguments + command->optional) {
		fprintf(stderr, "kdbus-bench: %s takes %s%d argument%s, not %d\n", command->name,
			command->optional ? "at most " : "",
			command->arguments + command->optional,
			command->arguments + command->optional == 1 ? "" : "s", o->n_arguments);
		return 2;
	}
	raise_descriptor_limit();
	/* Who starts nothing has nothing to stop. */
	if (command->run != command_compare && child_catch_signals() < 0) {
		fprintf(stderr, "kdbus-bench: cannot catch signals: %m\n");
		return 1;
	}
	r = check_corrupt(o, command->run(o));
	child_die_of_signal();
	return check_stdout(r == -EINVAL ? 2 : r != 0);
}

int main(int argc, char **argv)
{
	const struct command *command;
	struct options o;

	reserve_standard_files();
	if (argc < 2)
		return usage("no subcommand given", NULL);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "--version"))
		return show(NULL, argv[1][2] == 'h');
	command = find(argv[1]);
	if (!command)
		return usage("no such subcommand:", argv[1]);
	if (options_parse(command->name, command->options, argc - 1, argv + 1, &o) < 0)
		return 2;
	if (o.help || o.version)
		return show(command, o.help);
	return run(command, &o);
}
