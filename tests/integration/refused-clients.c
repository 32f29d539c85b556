// SPDX-License-Identifier: LGPL-2.1-or-later
/* Clients that only connect, and clients that are expelled, in numbers: what the daemon bears. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <libkdbus.h>

#include "helper.h"

#define LIMIT	   512 /* descriptors of the daemon */
#define BEGUN	   (LIMIT / 8) /* that may have said nothing (daemon/account.h) */
#define MORE	   40
#define EXPELLED   1000
#define LINES	   64 /* of the log in SPAN seconds (daemon/log-limit.h) */
#define SPAN	   10
#define PATIENT_MS 120000 /* only ends a test that hangs */

struct fixture {
	struct libkdbus_daemon *daemon;
	int log;
	int stderr_fd;
};

/* The daemon writes its log to a file. */
static int set_up(void **state)
{
	static struct fixture f;
	int r;

	f.log = memfd_create("log", MFD_CLOEXEC);
	f.stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	assert_true(f.log >= 0 && f.stderr_fd >= 0);
	dup2(f.log, STDERR_FILENO);
	r = libkdbus_daemon_start(NULL, &f.daemon);
	dup2(f.stderr_fd, STDERR_FILENO);
	assert_int_equal(r, 0);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	libkdbus_daemon_stop(f->daemon);
	close(f->log);
	close(f->stderr_fd);
	return 0;
}

static int raw_connect(const struct fixture *f)
{
	int sock = helper_raw_connect(libkdbus_daemon_bus(f->daemon));

	assert_true(sock >= 0);
	return sock;
}

static unsigned int ended(const struct pollfd *p, unsigned int n)
{
	unsigned int i, all = 0;

	for (i = 0; i < n; i++)
		all += !!(p[i].revents & POLLHUP);
	return all;
}

static void those_that_say_nothing_have_a_bound(void **state)
{
	struct fixture *f = *state;
	struct pollfd p[BEGUN + MORE];
	struct libkdbus *h;
	unsigned int i;

	for (i = 0; i < BEGUN + MORE; i++)
		p[i] = (struct pollfd){ .fd = raw_connect(f) };
	do {
		assert_true(poll(p, BEGUN + MORE, PATIENT_MS) > 0);
	} while (ended(p, BEGUN + MORE) < MORE);
	assert_int_equal(ended(p, BEGUN + MORE), MORE);
	for (i = 0; i < BEGUN + MORE; i++)
		close(p[i].fd);
	/* When the daemon has seen that they have gone, there is room again. */
	while (libkdbus_connect(libkdbus_daemon_bus(f->daemon), NULL, &h) < 0)
		usleep(1000);
	libkdbus_close(h);
}

static void be_expelled(const struct fixture *f)
{
	char text[64] = { 0 };
	struct pollfd p = { .fd = raw_connect(f) };

	assert_int_equal(send(p.fd, text, sizeof(text), MSG_NOSIGNAL), sizeof(text));
	assert_int_equal(poll(&p, 1, PATIENT_MS), 1);
	assert_true(p.revents & POLLHUP);
	close(p.fd);
}

static time_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* Lines in the log with @word in them */
static unsigned int lines_with(const struct fixture *f, const char *word)
{
	FILE *log = fdopen(fcntl(f->log, F_DUPFD_CLOEXEC, 0), "r");
	unsigned int n = 0;
	char line[1024];

	assert_non_null(log);
	rewind(log);
	while (fgets(line, sizeof(line), log))
		n += !!strstr(line, word);
	fclose(log);
	return n;
}

static void those_that_are_expelled_do_not_fill_the_log(void **state)
{
	struct fixture *f = *state;
	time_t begin = now();
	unsigned int i;

	for (i = 0; i < EXPELLED; i++)
		be_expelled(f);
	assert_true(lines_with(f, "expelled") > 0);
	assert_true(lines_with(f, "expelled") <= LINES * (2 + (now() - begin) / SPAN));
	f->daemon = libkdbus_daemon_stop(f->daemon);
	assert_true(lines_with(f, "more lines about uid") > 0);
}

int main(void)
{
	const struct rlimit few = { .rlim_cur = LIMIT, .rlim_max = LIMIT };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(those_that_say_nothing_have_a_bound, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(those_that_are_expelled_do_not_fill_the_log, set_up,
						tear_down),
	};

	/* The daemon takes all descriptors it may have. */
	if (setrlimit(RLIMIT_NOFILE, &few) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
