// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * kdbus-bench icount: what messages through kdbus.ko cost next to UNIX sockets, in instructions
 * of an emulated machine, and whether the goals are reached. The machine is run by the script
 * tests/vm/cost of the source that this program was built from.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "commands.h"
#include "icount.h"
#include "json.h"

static const char *const series[] = { "6.1", "6.12" };

/* ---- the table ---- */

static void print_ratio(const char *what, const char *bytes, double kdbus, double socket)
{
	printf("%-38s %8s %8.0f %8.0f", what, bytes, kdbus, socket);
	if (socket > 0)
		printf(" %6.2f\n", kdbus / socket);
	else
		puts("      -");
}

static void print_block(const struct icount *c, const char *what, const char *kind)
{
	static const uint64_t sizes[] = { 64, 1024, 8192, 65536 };
	char kdbus[48], socket[48], label[64], bytes[24];
	size_t i;

	snprintf(kdbus, sizeof(kdbus), "kdbus-%s", kind);
	snprintf(socket, sizeof(socket), "socket-%s", kind);
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)sizes[i]);
		print_ratio(what, bytes, (double)icount_get(c, kdbus, sizes[i]),
			    (double)icount_get(c, socket, sizes[i]));
	}
	snprintf(label, sizeof(label), "%s: fixed", what);
	print_ratio(label, "", icount_fixed(c, kdbus), icount_fixed(c, socket));
	snprintf(label, sizeof(label), "%s: per 1000 bytes", what);
	print_ratio(label, "", 1000 * icount_per_byte(c, kdbus), 1000 * icount_per_byte(c, socket));
}

static void print_commands(const struct icount *c)
{
	static const uint64_t sizes[] = { 64, 8192, 65536, 1 << 20 };
	size_t i;

	printf("\n%-38s %8s %8s %8s %8s\n", "one command of kdbus", "bytes", "SEND", "RECV",
	       "FREE");
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		printf("%-38s %8llu %8llu %8llu %8llu\n", "", (unsigned long long)sizes[i],
		       (unsigned long long)icount_get(c, "kdbus-send", sizes[i]),
		       (unsigned long long)icount_get(c, "kdbus-recv", sizes[i]),
		       (unsigned long long)icount_get(c, "kdbus-free", sizes[i]));
}

static const char *verdict(const struct icount_goal *g)
{
	if (icount_ratio(g) <= g->goal)
		return "reached";
	return icount_missed(g) ? "MISSED" : "missed by less than 3 %";
}

static void print_goals(const struct icount_goal *goals)
{
	int i;

	printf("\n%-42s %8s %8s %6s %6s\n", "goal", "kdbus", "peer", "ratio", "goal");
	for (i = 0; i < ICOUNT_GOALS; i++)
		printf("%-42s %8.0f %8.0f %6.3f %6.2f  %s\n", goals[i].name, goals[i].cost,
		       goals[i].floor, icount_ratio(&goals[i]), goals[i].goal, verdict(&goals[i]));
}

static void print(const struct icount *c, const struct icount_goal *goals)
{
	printf("Instructions on Linux %s, emulated\n%-38s %8s %8s %8s %6s\n", c->kernel, "",
	       "bytes", "kdbus", "socket", "ratio");
	print_block(c, "round trip of two processes", "round-trip");
	print_block(c, "calls, nobody asleep", "calls");
	print_commands(c);
	print_goals(goals);
	putchar('\n');
}

/* ---- JSON ---- */

static void write_kernel(struct json *j, const struct icount *c, const struct icount_goal *goals)
{
	unsigned int i;

	json_open(j, NULL, '{');
	json_string(j, "kernel", c->kernel);
	json_open(j, "counts", '[');
	for (i = 0; i < c->n; i++) {
		json_open(j, NULL, '{');
		json_string(j, "kind", c->rows[i].kind);
		json_integer(j, "bytes", c->rows[i].bytes);
		json_integer(j, "instructions", c->rows[i].instructions);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_open(j, "goals", '[');
	for (i = 0; i < ICOUNT_GOALS; i++) {
		json_open(j, NULL, '{');
		json_string(j, "name", goals[i].name);
		json_number(j, "cost", goals[i].cost);
		json_number(j, "peer", goals[i].floor);
		json_number(j, "ratio", icount_ratio(&goals[i]));
		json_number(j, "goal", goals[i].goal);
		json_string(j, "verdict", verdict(&goals[i]));
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

static int end_json(struct json *j, const char *path)
{
	int r = 0;

	json_close(j, ']');
	json_close(j, '}');
	fputc('\n', j->file);
	if (fflush(j->file) || ferror(j->file))
		r = -errno;
	if (fclose(j->file) && !r)
		r = -errno;
	if (r < 0)
		fprintf(stderr, "kdbus-bench: --json: cannot write %s: %s\n", path, strerror(-r));
	return r;
}

static int start_json(struct json *j, const char *path)
{
	j->file = fopen(path, "we");
	if (!j->file) {
		fprintf(stderr, "kdbus-bench: --json: cannot write %s: %m\n", path);
		return -errno;
	}
	json_open(j, NULL, '{');
	json_string(j, "schema", "kdbus-bench-icount/1");
	json_string(j, "version", KDBUS_VERSION);
	json_open(j, "kernels", '[');
	return 0;
}

/* ---- reading ---- */

/* Return: how many goals are missed. */
static int report(FILE *f, const char *name, struct json *j)
{
	struct icount_goal goals[ICOUNT_GOALS];
	struct icount c;
	int r, i, kernels = 0, missed = 0;

	while ((r = icount_read(f, &c)) > 0) {
		r = icount_goals(&c, goals);
		if (r < 0)
			break;
		kernels++;
		print(&c, goals);
		if (j)
			write_kernel(j, &c, goals);
		for (i = 0; i < ICOUNT_GOALS; i++)
			missed += icount_missed(&goals[i]);
	}
	if (r == 0 && kernels)
		return missed;
	fprintf(stderr,
		"kdbus-bench: icount: %s is no complete table; one is written by: tests/vm/cost "
		"--raw build\n",
		name);
	return -EINVAL;
}

static int report_all(FILE *f, const char *name, const char *json)
{
	struct json j = { .file = NULL };
	int missed, r = json ? start_json(&j, json) : 0;

	if (r < 0)
		return r;
	missed = report(f, name, json ? &j : NULL);
	if (json)
		r = end_json(&j, json);
	return r < 0 ? r : missed;
}

/* ---- running the machine ---- */

/* The script and the build, as seen from this program: SOURCE/BUILD/bench/kdbus-bench. */
static int find_script(char *script, char *build)
{
	char self[PATH_MAX - 32], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int i;

	if (n < 0)
		return -errno;
	self[n] = '\0';
	for (i = 0; i < 2; i++) {
		slash = strrchr(self, '/');
		if (!slash)
			return -ENOENT;
		*slash = '\0';
	}
	snprintf(build, PATH_MAX, "%s", self);
	snprintf(script, PATH_MAX, "%s/../tests/vm/cost", self);
	return access(script, X_OK) < 0 ? -errno : 0;
}

static int count(FILE *to)
{
	char script[PATH_MAX], build[PATH_MAX];
	char *argv[] = { script, (char *)"--raw", build, NULL, NULL };
	size_t i;
	int r = find_script(script, build);

	if (r < 0) {
		fputs("kdbus-bench: icount: no tests/vm/cost: this program does not lie in a\n"
		      "build inside the source; run that one, or name a table: kdbus-bench "
		      "icount TABLE\n",
		      stderr);
		return r;
	}
	for (i = 0; !r && i < sizeof(series) / sizeof(*series); i++) {
		argv[3] = (char *)series[i];
		r = child_run(argv, -1, fileno(to), false);
	}
	if (r < 0)
		fputs("kdbus-bench: icount: the machine was not run\n", stderr);
	return r;
}

int command_icount(const struct options *o)
{
	const char *name = o->n_arguments ? o->arguments[0] : "what tests/vm/cost wrote";
	FILE *f = o->n_arguments ? fopen(name, "re") : tmpfile();
	int r = 0;

	if (!f) {
		fprintf(stderr, "kdbus-bench: icount: cannot read %s: %m\n", name);
		return -EINVAL;
	}
	if (!o->n_arguments) {
		r = count(f);
		rewind(f);
	}
	if (r == 0)
		r = report_all(f, name, o->json);
	fclose(f);
	return r;
}
