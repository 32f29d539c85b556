// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A thousand connections in one tree of processes, and a broadcast to all of them: each gets it,
 * and an idle connection costs the daemon one descriptor and at most 64 KiB.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "helper.h"

#define PROCESSES 8
#define EACH	  125
#define IDLE_KB	  64

static unsigned int count_fds(pid_t pid)
{
	unsigned int n = 0;
	struct dirent *e;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

static unsigned int resident_kb(pid_t pid)
{
	unsigned int kb = 0;
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "VmRSS: %u", &kb);
	fclose(f);
	return kb;
}

static int broadcast(struct libkdbus *h)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(*msg), NULL, 0);
	libkdbus_build_item(&b, KDBUS_ITEM_BLOOM_FILTER, NULL, sizeof(uint64_t) + 64);
	libkdbus_build_vec(&b, "to all of you", 13);
	r = libkdbus_build_end(&b, &built);
	if (r == 0) {
		msg = built;
		msg->dst_id = KDBUS_DST_ID_BROADCAST;
		msg->flags = KDBUS_MSG_SIGNAL;
		msg->cookie = 4711;
		msg->payload_type = KDBUS_PAYLOAD_DBUS;
		cmd.msg_address = (uintptr_t)msg;
		r = libkdbus_send(h, &cmd);
	}
	libkdbus_build_clear(&b);
	return r;
}

static uint64_t soon(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec + 60) * 1000000000ULL;
}

static int get_one(struct libkdbus *h)
{
	const struct kdbus_msg *msg;
	int r;

	while ((r = libkdbus_receive(h, &msg)) == -EAGAIN)
		if (libkdbus_wait(h, soon(), -1) < 0)
			return 1;
	return r < 0 || msg->cookie != 4711 || libkdbus_done(h, msg) < 0;
}

/* One process: says that all are connected, and waits for the broadcast on each. */
static int crowd(const char *bus, int ready)
{
	const struct libkdbus_options options = { .pool_size = 64 << 10 };
	struct libkdbus *h[EACH];
	unsigned int i;
	int bad = 0;

	for (i = 0; i < EACH; i++)
		if (libkdbus_connect(bus, &options, &h[i]) < 0 || helper_match_all(h[i]) < 0)
			return 1;
	if (write(ready, "x", 1) != 1)
		return 1;
	for (i = 0; i < EACH; i++)
		bad |= get_one(h[i]);
	for (i = 0; i < EACH; i++)
		libkdbus_close(h[i]);
	return bad;
}

static void start(const char *bus, int ready, pid_t *ret_pid)
{
	pid_t parent = getpid();

	*ret_pid = fork();
	assert_true(*ret_pid >= 0);
	if (*ret_pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(getppid() != parent || crowd(bus, ready));
}

static void thousand(void **state)
{
	struct libkdbus_daemon *daemon = *state;
	const char *bus = libkdbus_daemon_bus(daemon);
	pid_t pid = libkdbus_daemon_pid(daemon), pids[PROCESSES];
	unsigned int fds = count_fds(pid), kb = resident_kb(pid), tries, i;
	struct libkdbus *h;
	int ready[2], status;
	char c;

	assert_int_equal(pipe(ready), 0);
	for (i = 0; i < PROCESSES; i++)
		start(bus, ready[1], &pids[i]);
	for (i = 0; i < PROCESSES; i++)
		assert_int_equal(read(ready[0], &c, 1), 1);
	for (tries = 0; tries < 500000 && count_fds(pid) > fds + PROCESSES * EACH; tries++)
		usleep(200);
	kb = resident_kb(pid) - kb;
	printf("# %d connections: %u descriptors, %u KiB each in the daemon\n", PROCESSES * EACH,
	       count_fds(pid) - fds, kb / (PROCESSES * EACH));
	/* As it started, the daemon may still have had one open that it then closed. */
	assert_true(count_fds(pid) <= fds + PROCESSES * EACH);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true(kb <= IDLE_KB * PROCESSES * EACH);
#endif
	assert_int_equal(libkdbus_connect(bus, NULL, &h), 0);
	assert_int_equal(broadcast(h), 0);
	for (i = 0; i < PROCESSES; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	libkdbus_close(h);
	for (tries = 0; tries < 500000 && count_fds(pid) > fds; tries++)
		usleep(200);
	assert_true(count_fds(pid) <= fds);
	close(ready[0]);
	close(ready[1]);
}

static int setup(void **state)
{
	struct libkdbus_daemon *daemon;
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (libkdbus_daemon_start(NULL, &daemon) < 0)
		return -1;
	*state = daemon;
	return 0;
}

static int teardown(void **state)
{
	libkdbus_daemon_stop(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(thousand, setup, teardown),
	};

	return cmocka_run_group_tests_name("crowd", tests, NULL, NULL);
}
