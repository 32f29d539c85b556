// SPDX-License-Identifier: LGPL-2.1-or-later
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "prop.h"

#define BASE_SEED 20150814ULL

/* Written by the child, read by the parent once the child is gone. */
struct prop_report {
	u64 seed;
	size_t step;
	char text[512];
};

/* splitmix64: any seed is as good as any other, consecutive ones included */
u64 prop_random(struct prop_rng *rng)
{
	u64 z = rng->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

u64 prop_below(struct prop_rng *rng, u64 n)
{
	return prop_random(rng) % n;
}

bool prop_one_in(struct prop_rng *rng, u64 n)
{
	return prop_below(rng, n) == 0;
}

bool prop_differ(struct prop_report *report, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(report->text, sizeof(report->text), format, ap);
	va_end(ap);
	return false;
}

static u64 from_env(const char *name, u64 fallback)
{
	const char *value = getenv(name);

	return value && *value ? strtoull(value, NULL, 0) : fallback;
}

static struct prop_op *generate(const struct prop_spec *spec, u64 seed, size_t n_ops)
{
	struct prop_op *ops = calloc(n_ops, sizeof(*ops));
	struct prop_rng rng = { seed };

	for (size_t i = 0; ops && i < n_ops; i++)
		spec->generate(&rng, &ops[i]);
	return ops;
}

static bool run_sequence(const struct prop_spec *spec, const struct prop_op *ops, size_t n_ops,
			 struct prop_report *report)
{
	void *state = spec->setup();

	for (size_t i = 0; i < n_ops; i++) {
		report->step = i;
		if (!spec->step(state, &ops[i], report))
			return false;
	}
	return spec->teardown(state, report);
}

/* The signal handlers of cmocka would carry on with the next test in the child. */
static void die_of_signals(void)
{
	static const int fatal[] = { SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS };

	for (size_t i = 0; i < ARRAY_SIZE(fatal); i++)
		signal(fatal[i], SIG_DFL);
}

static void child_all_seeds(const struct prop_spec *spec, u64 base, u64 seeds, size_t length,
			    struct prop_report *report)
{
	for (u64 i = 0; i < seeds; i++) {
		struct prop_op *ops = generate(spec, base + i, length);

		report->seed = base + i;
		if (!ops || !run_sequence(spec, ops, length, report))
			_exit(1);
		free(ops);
	}
	_exit(0);
}

static bool child_succeeded(pid_t pid, struct prop_report *report)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		abort();
	if (WIFSIGNALED(status))
		prop_differ(report, "killed by signal %d", WTERMSIG(status));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static pid_t fork_quietly(bool quiet)
{
	pid_t parent = getpid(), pid;

	/* What is buffered now would otherwise be written twice. */
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		abort();
	if (pid == 0) {
		die_of_signals();
		/* An endless loop of the subject must not outlive the test. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
			_exit(2);
		if (quiet && !freopen("/dev/null", "w", stderr))
			_exit(2);
	}
	return pid;
}

static bool holds(const struct prop_spec *spec, const struct prop_op *ops, size_t n_ops,
		  struct prop_report *report)
{
	pid_t pid;

	report->text[0] = '\0';
	pid = fork_quietly(true);
	if (pid == 0)
		_exit(run_sequence(spec, ops, n_ops, report) ? 0 : 1);
	return child_succeeded(pid, report);
}

/* Delta debugging: drop ever smaller chunks as long as the rest still fails. */
static size_t drop_operations(const struct prop_spec *spec, struct prop_op *ops, size_t n_ops,
			      struct prop_report *report)
{
	struct prop_op *rest = calloc(n_ops, sizeof(*rest));
	size_t chunk = n_ops / 2;

	if (!rest)
		abort();
	while (chunk) {
		bool dropped = false;

		for (size_t at = 0; at + chunk <= n_ops;) {
			memcpy(rest, ops, at * sizeof(*ops));
			memcpy(rest + at, ops + at + chunk, (n_ops - at - chunk) * sizeof(*ops));
			if (holds(spec, rest, n_ops - chunk, report)) {
				at += chunk;
				continue;
			}
			n_ops -= chunk;
			memcpy(ops, rest, n_ops * sizeof(*ops));
			dropped = true;
		}
		if (!dropped)
			chunk /= 2;
		else if (chunk > n_ops / 2)
			chunk = n_ops / 2;
	}
	free(rest);
	return n_ops;
}

/* Whether *@arg could be made smaller. */
static bool simplify_argument(const struct prop_spec *spec, struct prop_op *ops, size_t n_ops,
			      u64 *arg, struct prop_report *report)
{
	u64 was = *arg;
	u64 smaller[] = { 0, 1, was / 2, was - 1 };

	for (size_t i = 0; i < ARRAY_SIZE(smaller) && smaller[i] < was; i++) {
		*arg = smaller[i];
		if (!holds(spec, ops, n_ops, report))
			return true;
	}
	*arg = was;
	return false;
}

static void simplify_arguments(const struct prop_spec *spec, struct prop_op *ops, size_t n_ops,
			       struct prop_report *report)
{
	/* Counting down one by one must not take for ever. */
	unsigned int budget = 2000;

	for (size_t i = 0; i < n_ops * PROP_ARGS; i++) {
		u64 *arg = &ops[i / PROP_ARGS].arg[i % PROP_ARGS];

		while (budget && simplify_argument(spec, ops, n_ops, arg, report))
			budget--;
	}
}

static struct prop_report *share_report(void)
{
	void *p = mmap(NULL, sizeof(struct prop_report), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

size_t prop_shrink(const struct prop_spec *spec, struct prop_op *ops, size_t n_ops)
{
	struct prop_report *report = share_report();

	if (holds(spec, ops, n_ops, report)) {
		n_ops = 0;
	} else {
		n_ops = drop_operations(spec, ops, n_ops, report);
		simplify_arguments(spec, ops, n_ops, report);
	}
	munmap(report, sizeof(*report));
	return n_ops;
}

static void print_operation(const struct prop_spec *spec, const struct prop_op *op)
{
	size_t n = PROP_ARGS;

	while (n > 1 && !op->arg[n - 1])
		n--;
	fprintf(stderr, "\t\t{ %s, { ", spec->kinds[op->kind]);
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, "%s%llu%s", i ? ", " : "", op->arg[i],
			op->arg[i] > S64_MAX ? "ULL" : "");
	fprintf(stderr, " } },\n");
}

static void print_test(const struct prop_spec *spec, const struct prop_op *ops, size_t n_ops,
		       u64 seed)
{
	fprintf(stderr,
		"static void %s_seed_%llu(void **state)\n{\n"
		"\tstatic const struct prop_op ops[] = {\n",
		spec->symbol, seed);
	for (size_t i = 0; i < n_ops; i++)
		print_operation(spec, &ops[i]);
	fprintf(stderr, "\t};\n\n\tprop_replay(&%s, ops, ARRAY_SIZE(ops));\n}\n", spec->symbol);
}

/* Fails the test, with the shortest failing sequence that could be found. */
static void explain(const struct prop_spec *spec, size_t length, struct prop_report *report)
{
	u64 seed = report->seed;
	size_t n_ops = report->step + 1;
	struct prop_op *ops = generate(spec, seed, length);
	char first[sizeof(report->text)];

	if (!ops)
		abort();
	memcpy(first, report->text, sizeof(first));
	/* A failure of teardown is reported at the last step, too. */
	n_ops = prop_shrink(spec, ops, n_ops);
	if (n_ops) {
		holds(spec, ops, n_ops, report);
		print_test(spec, ops, n_ops, seed);
	}
	free(ops);
	fail_msg("%s: seed %llu: %s (shrunk to %zu operations: %s)", spec->symbol, seed, first,
		 n_ops, report->text);
}

void prop_run(const struct prop_spec *spec)
{
	u64 base = from_env("PROP_SEED", BASE_SEED);
	u64 seeds = from_env("PROP_SEEDS", spec->seeds);
	size_t length = from_env("PROP_LENGTH", spec->length);
	struct prop_report *report = share_report();
	pid_t pid = fork_quietly(false);

	if (pid == 0)
		child_all_seeds(spec, base, seeds, length, report);
	if (!child_succeeded(pid, report))
		explain(spec, length, report);
	munmap(report, sizeof(*report));
}

void prop_replay(const struct prop_spec *spec, const struct prop_op *ops, size_t n_ops)
{
	struct prop_report *report = share_report();

	if (!holds(spec, ops, n_ops, report))
		fail_msg("%s: operation %zu: %s", spec->symbol, report->step, report->text);
	munmap(report, sizeof(*report));
}
