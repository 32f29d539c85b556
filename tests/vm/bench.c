// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbus-bench --engine kernel: tiny runs. What peers are missing in this machine is no matter. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define BENCH	 "/bin/kdbus-bench"
#define ARGS_MAX 16

/* What it has said, on both streams, and how it ended */
struct run {
	char text[1 << 16];
	int status;
};

static void run(struct run *run, const char *const *args)
{
	const char *argv[ARGS_MAX + 1] = { BENCH };
	size_t n = 0;
	ssize_t got;
	int out[2], i;
	pid_t pid;

	for (i = 0; args[i]; i++)
		argv[i + 1] = args[i];
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(out[1], STDOUT_FILENO);
		dup2(out[1], STDERR_FILENO);
		execv(BENCH, (char **)argv);
		_exit(99);
	}
	close(out[1]);
	while ((got = read(out[0], run->text + n, sizeof(run->text) - 1 - n)) > 0)
		n += (size_t)got;
	run->text[n] = '\0';
	close(out[0]);
	assert_int_equal(waitpid(pid, &run->status, 0), pid);
}

#define RUN(r, ...)                                                                   \
	run(r, (const char *const[]){ __VA_ARGS__, "--engine", "kernel", "--quick",   \
				      "--repeat", "1", "--only", "libkdbus", NULL })

/* The line of details about @row and @subject says that something was measured. */
static void assert_measured(const struct run *r, const char *row, const char *subject)
{
	char name[64], word[64];
	const char *line;
	double mean;

	if (r->status)
		fail_msg("status %#x: %s", (unsigned int)r->status, r->text);
	line = strstr(r->text, "\nROW ");
	assert_non_null(line);
	snprintf(name, sizeof(name), "\n%s ", row);
	for (line = strchr(line + 1, '\n'); line; line = strchr(line + 1, '\n'))
		if (!strncmp(line, name, strlen(name)) &&
		    sscanf(line + strlen(name), " %63s %lf", word, &mean) == 2 &&
		    !strcmp(word, subject) && mean > 0)
			return;
	fail_msg("no row '%s' of %s: %s", row, subject, r->text);
}

static void chart_copies_and_passes_memfds(void **state)
{
	static struct run r;

	RUN(&r, "chart", "--sizes", "64,4k,64k", "--count", "5");
	assert_measured(&r, "64", "COPY");
	assert_measured(&r, "64k", "COPY");
	assert_measured(&r, "64", "MEMFD");
	assert_measured(&r, "64k", "MEMFD");
}

static void rpc_calls(void **state)
{
	static struct run r;

	RUN(&r, "rpc", "--sizes", "4k,1M", "--count", "3");
	assert_measured(&r, "4k", "libkdbus");
	assert_measured(&r, "1M", "libkdbus");
}

static void latency_bounces(void **state)
{
	static struct run r;

	RUN(&r, "latency", "--count", "20");
	assert_measured(&r, "bounce", "libkdbus");
}

static void memfd_passes_one_again_and_again(void **state)
{
	static struct run r;

	RUN(&r, "memfd", "--sizes", "4k", "--count", "5");
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.text, "libkdbus"));
}

static void fanout_reaches_all(void **state)
{
	static struct run r;

	RUN(&r, "fanout", "--sizes", "1,10", "--count", "3");
	assert_measured(&r, "1", "libkdbus");
	assert_measured(&r, "10", "libkdbus");
	assert_measured(&r, "10 no match", "libkdbus");
}

static void storm_connects_500(void **state)
{
	static struct run r;

	RUN(&r, "storm", "--count", "3");
	assert_measured(&r, "cycle", "libkdbus");
}

static void scale_runs_pairs(void **state)
{
	static struct run r;

	RUN(&r, "scale", "--sizes", "1,2");
	assert_measured(&r, "1 pair", "libkdbus");
	assert_measured(&r, "2 pairs", "libkdbus");
}

static void first_connects_and_calls(void **state)
{
	static struct run r;

	RUN(&r, "first", "--count", "2");
	assert_measured(&r, "connect", "libkdbus");
	assert_measured(&r, "steady", "libkdbus");
}

static void a_wrong_byte_is_noticed(void **state)
{
	static struct run r;

	RUN(&r, "chart", "--sizes", "4k", "--count", "5", "--corrupt", "3");
	assert_int_equal(r.status, 1 << 8);
	assert_non_null(strstr(r.text, "libkdbus"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chart_copies_and_passes_memfds),
		cmocka_unit_test(rpc_calls),
		cmocka_unit_test(latency_bounces),
		cmocka_unit_test(memfd_passes_one_again_and_again),
		cmocka_unit_test(fanout_reaches_all),
		cmocka_unit_test(storm_connects_500),
		cmocka_unit_test(scale_runs_pairs),
		cmocka_unit_test(first_connects_and_calls),
		cmocka_unit_test(a_wrong_byte_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
