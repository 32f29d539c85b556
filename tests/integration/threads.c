// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Threads of one handle take turns with its lanes: what one of them takes up, and every doorbell it
 * uses up, may be what another sleeps for (libkdbus.h, rule 4).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <libkdbus.h>

#define TURNS 30

static int call(struct libkdbus *h, uint64_t to, uint64_t cookie)
{
	struct kdbus_msg msg = { .size = sizeof(msg),
				 .dst_id = to,
				 .flags = KDBUS_MSG_EXPECT_REPLY,
				 .payload_type = KDBUS_PAYLOAD_DBUS,
				 .cookie = cookie,
				 .timeout_ns = UINT64_MAX };
	const struct kdbus_msg *reply;
	int r = libkdbus_call(h, &msg, -1, &reply);

	if (r == 0)
		r = reply->cookie_reply == cookie ? 0 : -EBADMSG;
	return r == 0 ? libkdbus_done(h, reply) : r;
}

static int answer(struct libkdbus *h, uint64_t to, uint64_t cookie)
{
	struct kdbus_msg msg = { .size = sizeof(msg),
				 .dst_id = to,
				 .payload_type = KDBUS_PAYLOAD_DBUS,
				 .cookie = cookie,
				 .cookie_reply = cookie };
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd), .msg_address = (uintptr_t)&msg };

	return libkdbus_send(h, &cmd);
}

static int tell(struct libkdbus *h, uint64_t to, uint64_t cookie)
{
	struct kdbus_msg msg = { .size = sizeof(msg),
				 .dst_id = to,
				 .payload_type = KDBUS_PAYLOAD_DBUS,
				 .cookie = cookie };
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd), .msg_address = (uintptr_t)&msg };

	return libkdbus_send(h, &cmd);
}

/*
 * A service that answers an odd call when an even one comes, and that one when it is told so: by a
 * message that is no call.
 */
static int serve_one(struct libkdbus *h, const struct kdbus_msg *msg, uint64_t *kept)
{
	static uint64_t caller;
	uint64_t answered = 0;

	if (!(msg->flags & KDBUS_MSG_EXPECT_REPLY)) {
		answered = kept[0];
	} else {
		caller = msg->src_id;
		answered = msg->cookie % 2 ? 0 : kept[1];
		kept[msg->cookie % 2] = msg->cookie;
	}
	libkdbus_done(h, msg);
	return answered ? answer(h, caller, answered) : 0;
}

static void *serve(void *arg)
{
	struct libkdbus *h = arg;
	const struct kdbus_msg *msg;
	uint64_t kept[2] = { 0, 0 };
	int r;

	do {
		r = libkdbus_receive(h, &msg);
		if (r == -EAGAIN)
			r = libkdbus_wait(h, UINT64_MAX, -1);
		else if (r == 0 && msg->cookie == UINT64_MAX)
			return NULL;
		else if (r == 0)
			r = serve_one(h, msg, kept);
	} while (r == 0);
	return (void *)(intptr_t)r;
}

struct caller {
	struct libkdbus *h;
	struct libkdbus *other;
	uint64_t to;
	uint64_t cookie;
	atomic_int tid;
	int result;
};

static void *call_and_wait(void *arg)
{
	struct caller *c = arg;

	atomic_store(&c->tid, (int)syscall(SYS_gettid));
	c->result = call(c->h, c->to, c->cookie);
	if (c->result == 0)
		c->result = tell(c->other, c->to, 1);
	return NULL;
}

/* Until the thread is asleep in ppoll(), or in the kernel engine: so a call sleeps for long. */
static void await_sleep(struct caller *c)
{
	char path[64], text[32];
	long nr;
	int fd;
	ssize_t n;

	while (!atomic_load(&c->tid))
		sched_yield();
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", atomic_load(&c->tid));
	do {
		sched_yield();
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
		assert_true(n > 0);
		text[n] = '\0';
		nr = strtol(text, NULL, 10);
	} while (nr != SYS_ppoll && nr != SYS_ioctl);
}

static void a_sleeping_caller_is_woken_for_what_another_saw(void **state)
{
	struct libkdbus *service, *client, *other;
	struct libkdbus_daemon *daemon;
	pthread_t server, sleeper;
	struct caller c;
	uint64_t i, to;
	void *r;

	assert_int_equal(libkdbus_daemon_start(NULL, &daemon), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(daemon), NULL, &service), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(daemon), NULL, &client), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(daemon), NULL, &other), 0);
	assert_int_equal(pthread_create(&server, NULL, serve, service), 0);
	to = libkdbus_identity(service)->id;
	for (i = 0; i < TURNS; i++) {
		c = (struct caller){ .h = client, .other = other, .to = to,
				      .cookie = 2 * i + 1 };
		assert_int_equal(pthread_create(&sleeper, NULL, call_and_wait, &c), 0);
		await_sleep(&c);
		assert_int_equal(call(client, to, 2 * i + 2), 0);
		assert_int_equal(pthread_join(sleeper, NULL), 0);
		assert_int_equal(c.result, 0);
	}
	assert_int_equal(tell(other, to, UINT64_MAX), 0);
	assert_int_equal(pthread_join(server, &r), 0);
	assert_null(r);
	libkdbus_close(other);
	libkdbus_close(client);
	libkdbus_close(service);
	libkdbus_daemon_stop(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sleeping_caller_is_woken_for_what_another_saw),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
