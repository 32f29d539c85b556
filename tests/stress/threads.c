// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Many threads on one handle (libkdbus.h rules 4 and 5): each command has its effect, whoever
 * issues what beside it; a child of fork() gets ECHILD, and what it does with its copies hurts
 * nobody. Built with -Db_sanitize=thread, it is a search for races.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "libkdbus.h"

#define SENDERS	 4
#define MESSAGES 300
#define CALLS	 100
#define NAMES	 100

struct world {
	struct libkdbus_daemon *daemon;
	struct libkdbus *many; /* used by all threads */
	struct libkdbus *peer;
	atomic_uint received; /* from senders */
	atomic_bool stop;
};

static uint64_t in_seconds(unsigned int s)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec + s) * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static uint64_t id_of(struct libkdbus *h)
{
	return libkdbus_identity(h)->id;
}

static int send_to(struct libkdbus *h, uint64_t dst, uint64_t cookie, uint64_t reply)
{
	struct kdbus_msg msg = { .size = sizeof(msg),
				 .dst_id = dst,
				 .cookie = cookie,
				 .cookie_reply = reply,
				 .payload_type = KDBUS_PAYLOAD_DBUS };
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd), .msg_address = (uintptr_t)&msg };
	int r;

	while ((r = libkdbus_send(h, &cmd)) == -ENOBUFS)
		sched_yield();
	return r;
}

/* Everything sent to the peer comes back as a reply, if it is a call. */
static void *serve(void *arg)
{
	struct world *w = arg;
	const struct kdbus_msg *msg;
	int r;

	while (!atomic_load(&w->stop)) {
		r = libkdbus_receive(w->peer, &msg);
		if (r == -EAGAIN) {
			libkdbus_wait(w->peer, in_seconds(0) + 1000000, -1);
			continue;
		}
		assert_int_equal(r, 0);
		if (msg->flags & KDBUS_MSG_EXPECT_REPLY)
			assert_int_equal(send_to(w->peer, msg->src_id, 1, msg->cookie), 0);
		assert_int_equal(libkdbus_done(w->peer, msg), 0);
	}
	return NULL;
}

static void *sender(void *arg)
{
	struct world *w = arg;
	unsigned int i;

	for (i = 0; i < MESSAGES; i++)
		assert_int_equal(send_to(w->many, id_of(i & 1 ? w->peer : w->many), i + 1, 0), 0);
	return NULL;
}

static void *receiver(void *arg)
{
	struct world *w = arg;
	const struct kdbus_msg *msg;
	int r;

	while (atomic_load(&w->received) < SENDERS * MESSAGES / 2) {
		r = libkdbus_receive(w->many, &msg);
		if (r == -EAGAIN) {
			libkdbus_wait(w->many, in_seconds(0) + 1000000, -1);
			continue;
		}
		assert_int_equal(r, 0);
		atomic_fetch_add(&w->received, 1);
		assert_int_equal(libkdbus_done(w->many, msg), 0);
	}
	return NULL;
}

static void *caller(void *arg)
{
	static atomic_uint next = 1000000;
	struct world *w = arg;
	const struct kdbus_msg *reply;
	unsigned int i;

	for (i = 0; i < CALLS; i++) {
		struct kdbus_msg msg = { .size = sizeof(msg),
					 .flags = KDBUS_MSG_EXPECT_REPLY,
					 .dst_id = id_of(w->peer),
					 .cookie = atomic_fetch_add(&next, 1),
					 .timeout_ns = in_seconds(600),
					 .payload_type = KDBUS_PAYLOAD_DBUS };

		assert_int_equal(libkdbus_call(w->many, &msg, -1, &reply), 0);
		assert_int_equal(reply->cookie_reply, msg.cookie);
		assert_int_equal(libkdbus_done(w->many, reply), 0);
	}
	return NULL;
}

static void *namer(void *arg)
{
	struct world *w = arg;
	unsigned int i;

	for (i = 0; i < NAMES; i++) {
		assert_int_equal(libkdbus_acquire(w->many, "test.threads", 0, NULL), 0);
		assert_int_equal(libkdbus_release(w->many, "test.threads"), 0);
	}
	return NULL;
}

static void together(void **state)
{
	struct world *w = *state;
	pthread_t threads[SENDERS + 5], server;
	unsigned int i, n = 0;

	pthread_create(&server, NULL, serve, w);
	for (i = 0; i < SENDERS; i++)
		pthread_create(&threads[n++], NULL, sender, w);
	for (i = 0; i < 2; i++) {
		pthread_create(&threads[n++], NULL, receiver, w);
		pthread_create(&threads[n++], NULL, caller, w);
	}
	pthread_create(&threads[n++], NULL, namer, w);
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&w->stop, true);
	pthread_join(server, NULL);
	assert_int_equal(atomic_load(&w->received), SENDERS * MESSAGES / 2);
}

static void forked(void **state)
{
	struct world *w = *state;
	struct kdbus_cmd_recv recv = { .size = sizeof(recv) };
	const struct kdbus_msg *msg;
	int status;
	pid_t pid;

	assert_int_equal(send_to(w->peer, id_of(w->many), 7, 0), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int bad = libkdbus_recv(w->many, &recv) != -ECHILD;

		bad |= libkdbus_acquire(w->many, "test.child", 0, NULL) != -ECHILD;
		libkdbus_close(w->many);
		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(libkdbus_receive(w->many, &msg), 0);
	assert_int_equal(msg->cookie, 7);
	assert_int_equal(libkdbus_done(w->many, msg), 0);
	assert_int_equal(libkdbus_acquire(w->many, "test.parent", 0, NULL), 0);
}

/* Every descriptor that is there with handles and was not before is close-on-exec. */
static void close_on_exec(void **state)
{
	struct dirent *e;
	DIR *dir = opendir("/proc/self/fd");
	int fd;

	assert_non_null(dir);
	while ((e = readdir(dir))) {
		fd = atoi(e->d_name);
		if (fd > 2 && fd != dirfd(dir))
			assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	}
	closedir(dir);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w || libkdbus_daemon_start(NULL, &w->daemon) < 0)
		return -1;
	*state = w;
	if (libkdbus_connect(libkdbus_daemon_bus(w->daemon), NULL, &w->many) < 0)
		return -1;
	return libkdbus_connect(libkdbus_daemon_bus(w->daemon), NULL, &w->peer);
}

static int teardown(void **state)
{
	struct world *w = *state;

	libkdbus_close(w->many);
	libkdbus_close(w->peer);
	libkdbus_daemon_stop(w->daemon);
	free(w);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(together, setup, teardown),
		cmocka_unit_test_setup_teardown(forked, setup, teardown),
		cmocka_unit_test_setup_teardown(close_on_exec, setup, teardown),
	};

	return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
