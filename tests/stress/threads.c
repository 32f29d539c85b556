// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Many threads on one handle (libkdbus.h rules 4 and 5): each command has its effect, whoever
 * issues what beside it; a child of fork() gets ECHILD, and what it does with its copies hurts
 * nobody. Built with -Db_sanitize=thread, it is a search for races.
 */
#include <dirent.h>
#include <errno.h>
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
	atomic_bool quiet; /* nothing new is sent */
	atomic_bool stop; /* nobody waits for an answer any more */
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

/* Others may have filled the queue of the callee, or that of the caller when the reply came. */
static int call_with_room(struct libkdbus *h, struct kdbus_msg *msg,
			  const struct kdbus_msg **ret_reply)
{
	int r;

	while ((r = libkdbus_call(h, msg, -1, ret_reply)) == -ENOBUFS)
		sched_yield();
	return r;
}

/* Also to a caller that has said BYEBYE meanwhile */
static void reply_to(struct world *w, const struct kdbus_msg *msg)
{
	int r = send_to(w->peer, msg->src_id, 1, msg->cookie);

	assert_true(r == 0 || r == -ENXIO || r == -EBADSLT || r == -ECONNRESET);
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
			reply_to(w, msg);
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

		assert_int_equal(call_with_room(w->many, &msg, &reply), 0);
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

/* ---- fork and exec beside other threads ---- */

#define FORKS 40

static void *chatter(void *arg)
{
	struct world *w = arg;
	unsigned int i;

	for (i = 0; !atomic_load(&w->quiet); i++)
		assert_int_equal(send_to(w->many, id_of(w->peer), i + 1, 0), 0);
	return NULL;
}

/* Whatever other threads were doing when it was forked: nothing waits, everything says ECHILD. */
static int use_all(struct world *w, uint64_t peer)
{
	struct kdbus_cmd_recv recv = { .size = sizeof(recv) };
	struct kdbus_cmd_free discard = { .size = sizeof(discard) };
	struct kdbus_cmd_list list = { .size = sizeof(list), .flags = KDBUS_LIST_UNIQUE };
	struct kdbus_cmd cmd = { .size = sizeof(cmd) };

	if (send_to(w->many, peer, 1, 0) != -ECHILD)
		return 1;
	if (libkdbus_recv(w->many, &recv) != -ECHILD || libkdbus_free(w->many, &discard) != -ECHILD)
		return 2;
	if (libkdbus_list(w->many, &list) != -ECHILD || libkdbus_byebye(w->many, &cmd) != -ECHILD)
		return 3;
	if (libkdbus_wait(w->many, UINT64_MAX, -1) != -ECHILD)
		return 4;
	if (libkdbus_acquire(w->many, "test.child", 0, NULL) != -ECHILD)
		return 5;
	libkdbus_close(w->many);
	libkdbus_close(w->peer);
	return 0;
}

static void forked_beside_threads(void **state)
{
	struct world *w = *state;
	const uint64_t peer = id_of(w->peer);
	pthread_t server, talkers[2];
	int status, i;
	pid_t pid;

	pthread_create(&server, NULL, serve, w);
	for (i = 0; i < 2; i++)
		pthread_create(&talkers[i], NULL, chatter, w);
	for (i = 0; i < FORKS; i++) {
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			_exit(use_all(w, peer));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	atomic_store(&w->quiet, true);
	for (i = 0; i < 2; i++)
		pthread_join(talkers[i], NULL);
	atomic_store(&w->stop, true);
	pthread_join(server, NULL);
	assert_int_equal(libkdbus_acquire(w->many, "test.parent", 0, NULL), 0);
}

/* Descriptors above the standard ones */
static int count_fds(void)
{
	struct dirent *e;
	DIR *dir = opendir("/proc/self/fd");
	int fd, n = 0;

	if (!dir)
		return -1;
	while ((e = readdir(dir))) {
		fd = atoi(e->d_name);
		n += fd > 2 && fd != dirfd(dir);
	}
	closedir(dir);
	return n;
}

static int count_after_exec(void)
{
	char *argv[] = { (char *)"threads", (char *)"--count-fds", NULL };
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* Of handles with direct lanes, buffers and memfds nothing is left after exec(). */
static void close_on_exec(void **state)
{
	struct world *w = *state;
	const int inherited = count_after_exec();
	const struct kdbus_msg *msg;
	int i;

	assert_true(inherited >= 0 && inherited < 100);
	for (i = 0; i < 20; i++) {
		assert_int_equal(send_to(w->peer, id_of(w->many), 7, 0), 0);
		assert_int_equal(libkdbus_receive(w->many, &msg), 0);
		assert_int_equal(libkdbus_done(w->many, msg), 0);
	}
	assert_true(count_fds() >= inherited + 2);
	assert_int_equal(count_after_exec(), inherited);
}

/* ---- BYEBYE beside other threads (ABI 6.6) ---- */

#define GOODBYES 60

struct goodbye {
	struct world *w;
	struct libkdbus *h; /* says it */
	struct libkdbus *silent; /* never answers */
	atomic_uint accepted; /* by SEND */
	atomic_uint received;
	atomic_uint started;
};

static void *send_until_dead(void *arg)
{
	struct goodbye *g = arg;
	int r;

	atomic_fetch_add(&g->started, 1);
	while ((r = send_to(g->h, id_of(g->silent), 1, 0)) == 0)
		atomic_fetch_add(&g->accepted, 1);
	assert_int_equal(r, -ECONNRESET);
	return NULL;
}

static void *receive_until_dead(void *arg)
{
	struct goodbye *g = arg;
	const struct kdbus_msg *msg;
	int r;

	atomic_fetch_add(&g->started, 1);
	do {
		r = libkdbus_receive(g->h, &msg);
		if (r == 0)
			libkdbus_done(g->h, msg);
		if (r == -EAGAIN)
			libkdbus_wait(g->h, in_seconds(600), -1);
	} while (r == 0 || r == -EAGAIN);
	assert_int_equal(r, -ECONNRESET);
	return NULL;
}

static int call(struct libkdbus *h, struct libkdbus *to, uint64_t cookie)
{
	struct kdbus_msg msg = { .size = sizeof(msg),
				 .flags = KDBUS_MSG_EXPECT_REPLY,
				 .dst_id = id_of(to),
				 .cookie = cookie,
				 .timeout_ns = in_seconds(600),
				 .payload_type = KDBUS_PAYLOAD_DBUS };
	const struct kdbus_msg *reply;
	int r;

	r = call_with_room(h, &msg, &reply);
	if (r == 0)
		libkdbus_done(h, reply);
	return r;
}

static void *call_until_dead(void *arg)
{
	struct goodbye *g = arg;
	uint64_t cookie = 1;
	int r;

	atomic_fetch_add(&g->started, 1);
	while ((r = call(g->h, g->w->peer, cookie++)) == 0)
		;
	assert_int_equal(r, -ECONNRESET);
	return NULL;
}

/* Nobody answers: it sleeps when the BYEBYE comes. */
static void *call_for_ever(void *arg)
{
	struct goodbye *g = arg;

	atomic_fetch_add(&g->started, 1);
	assert_int_equal(call(g->h, g->silent, 1000000), -ECONNRESET);
	return NULL;
}

static void say_goodbye(struct goodbye *g)
{
	void *(*const doing[])(void *) = { send_until_dead, receive_until_dead, call_until_dead,
					   call_for_ever };
	struct kdbus_cmd cmd = { .size = sizeof(cmd) };
	pthread_t threads[4];
	int i, r;

	atomic_store(&g->started, 0);
	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, doing[i], g);
	while (atomic_load(&g->started) < 4)
		sched_yield();
	while ((r = libkdbus_byebye(g->h, &cmd)) == -EBUSY)
		sched_yield();
	assert_int_equal(r, 0);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(libkdbus_byebye(g->h, &cmd), -ECONNRESET);
	libkdbus_close(g->h);
}

/* What SEND has taken before the BYEBYE is there. */
static void *count_received(void *arg)
{
	struct goodbye *g = arg;
	const struct kdbus_msg *msg;
	int r;

	for (;;) {
		r = libkdbus_receive(g->silent, &msg);
		if (r == -EAGAIN && atomic_load(&g->w->stop))
			return NULL;
		if (r == -EAGAIN) {
			libkdbus_wait(g->silent, in_seconds(0) + 1000000, -1);
			continue;
		}
		assert_int_equal(r, 0);
		if (!(msg->flags & KDBUS_MSG_EXPECT_REPLY))
			atomic_fetch_add(&g->received, 1);
		libkdbus_done(g->silent, msg);
	}
}

static void byebye_beside_threads(void **state)
{
	struct goodbye g = { .w = *state };
	const char *bus = libkdbus_daemon_bus(g.w->daemon);
	pthread_t server, counter;
	int i;

	assert_int_equal(libkdbus_connect(bus, NULL, &g.silent), 0);
	pthread_create(&server, NULL, serve, g.w);
	pthread_create(&counter, NULL, count_received, &g);
	for (i = 0; i < GOODBYES; i++) {
		assert_int_equal(libkdbus_connect(bus, NULL, &g.h), 0);
		say_goodbye(&g);
	}
	/* All of it is published: the next look finds it. */
	atomic_store(&g.w->stop, true);
	pthread_join(counter, NULL);
	pthread_join(server, NULL);
	assert_int_equal(atomic_load(&g.received), atomic_load(&g.accepted));
	libkdbus_close(g.silent);
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(together, setup, teardown),
		cmocka_unit_test_setup_teardown(forked, setup, teardown),
		cmocka_unit_test_setup_teardown(forked_beside_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(close_on_exec, setup, teardown),
		cmocka_unit_test_setup_teardown(byebye_beside_threads, setup, teardown),
	};

	if (argc == 2 && !strcmp(argv[1], "--count-fds"))
		return count_fds();

	return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
