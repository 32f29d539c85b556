// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The end of a bus or endpoint whose owner is killed together with connections on it (ABI 1.9): all
 * of them hang up in one round of the daemon.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <libkdbus.h>

#define CONNECTIONS 4

static int make(struct libkdbus *h, const char *name, int endpoint)
{
	struct kdbus_bloom_parameter bloom = { .size = 64, .n_hash = 1 };
	struct libkdbus_builder b;
	void *cmd;
	int r;

	libkdbus_build(&b, sizeof(struct kdbus_cmd), NULL, 0);
	libkdbus_build_string(&b, KDBUS_ITEM_MAKE_NAME, name);
	if (!endpoint)
		libkdbus_build_item(&b, KDBUS_ITEM_BLOOM_PARAMETER, &bloom, sizeof(bloom));
	r = libkdbus_build_end(&b, &cmd);
	if (r == 0)
		r = endpoint ? libkdbus_endpoint_make(h, cmd) : libkdbus_bus_make(h, cmd);
	libkdbus_build_clear(&b);
	return r;
}

/* In the child: own a node at @at and connect to @to; then wait to be killed. */
static void own_and_connect(const char *at, const char *name, int endpoint, const char *to,
			    int ready)
{
	struct libkdbus *owner, *h;
	int i;

	if (libkdbus_open(at, 0, &owner) < 0 || make(owner, name, endpoint) < 0)
		_exit(1);
	for (i = 0; i < CONNECTIONS; i++)
		if (libkdbus_connect(to, NULL, &h) < 0)
			_exit(2);
	if (write(ready, "x", 1) != 1)
		_exit(3);
	for (;;)
		pause();
}

static void kill_owner(struct libkdbus_daemon *daemon, const char *at, const char *name,
		       int endpoint, const char *to)
{
	struct libkdbus *outside, *check;
	int ready[2], status;
	const struct kdbus_msg *msg;
	struct pollfd p;
	pid_t child;
	char byte;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		own_and_connect(at, name, endpoint, to, ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	assert_int_equal(libkdbus_connect(to, NULL, &outside), 0);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	p = (struct pollfd){ .fd = libkdbus_fd(outside), .events = POLLIN };
	while (libkdbus_receive(outside, &msg) != -ECONNRESET)
		assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(libkdbus_acquire(outside, "org.example.Late", 0, NULL), -ECONNRESET);
	libkdbus_close(outside);
	/* The daemon goes on, and the node can be made again. */
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(daemon), NULL, &check), 0);
	assert_int_equal(libkdbus_acquire(check, "org.example.Still", 0, NULL), 0);
	libkdbus_close(check);
	assert_int_equal(libkdbus_open(at, 0, &check), 0);
	assert_int_equal(make(check, name, endpoint), 0);
	libkdbus_close(check);
}

static int set_up(void **state)
{
	struct libkdbus_daemon *daemon;
	int r = libkdbus_daemon_start(NULL, &daemon);

	*state = daemon;
	return r;
}

static int tear_down(void **state)
{
	libkdbus_daemon_stop(*state);
	return 0;
}

static void a_bus_ends_with_its_owner_and_his_connections(void **state)
{
	const char *domain = libkdbus_daemon_domain(*state);
	char control[512], name[64], node[512];
	int i;

	snprintf(control, sizeof(control), "%s/control", domain);
	snprintf(name, sizeof(name), "%u-owned", (unsigned int)geteuid());
	snprintf(node, sizeof(node), "%s/%s/bus", domain, name);
	for (i = 0; i < 5; i++)
		kill_owner(*state, control, name, 0, node);
}

static void an_endpoint_ends_with_its_owner_and_his_connections(void **state)
{
	const char *bus = libkdbus_daemon_bus(*state);
	char node[512], name[64], *slash;
	int i;

	snprintf(node, sizeof(node), "%s", bus);
	slash = strrchr(node, '/');
	assert_non_null(slash);
	snprintf(name, sizeof(name), "%u-side", (unsigned int)geteuid());
	snprintf(slash, sizeof(node) - (size_t)(slash - node), "/%s", name);
	for (i = 0; i < 5; i++)
		kill_owner(*state, bus, name, 1, node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_bus_ends_with_its_owner_and_his_connections,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_endpoint_ends_with_its_owner_and_his_connections,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
