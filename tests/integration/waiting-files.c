// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Descriptors of a message that waits for room in the receiver's lane come as they were sent. A
 * monitor makes everything go through the daemon, where it waits.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include <libkdbus.h>

#define NAME  "org.example.Slow"
#define LARGE 300000
#define MANY  12 /* more than there are bulk buffers in a lane */

static int send(struct libkdbus *h, uint64_t cookie, size_t size, int fd)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	char *payload = calloc(1, size);
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(struct kdbus_msg), NULL, 0);
	libkdbus_build_string(&b, KDBUS_ITEM_DST_NAME, NAME);
	libkdbus_build_vec(&b, payload, size);
	libkdbus_build_fds(&b, &fd, 1);
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	msg = built;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	msg->cookie = cookie;
	cmd.msg_address = (uintptr_t)msg;
	r = libkdbus_send(h, &cmd);
	libkdbus_build_clear(&b);
	free(payload);
	return r;
}

static const struct kdbus_msg *await(struct libkdbus *h)
{
	const struct kdbus_msg *msg;
	int r;

	while ((r = libkdbus_receive(h, &msg)) == -EAGAIN)
		assert_int_equal(libkdbus_wait(h, UINT64_MAX, -1), 0);
	assert_int_equal(r, 0);
	return msg;
}

static void the_write_end_of_our_pipe(int fd, int read_end)
{
	char byte = 0;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(close(fd), 0);
	assert_int_equal(read(read_end, &byte, 1), 1);
	assert_int_equal(byte, 'x');
}

static void files_that_wait(void **state)
{
	const struct libkdbus_options roomy = { .flags = KDBUS_HELLO_ACCEPT_FD,
						.pool_size = 64 << 20 };
	const struct libkdbus_options watch = { .flags = KDBUS_HELLO_MONITOR };
	struct libkdbus *receiver, *sender, *monitor;
	struct libkdbus_daemon *daemon;
	const struct kdbus_item *item;
	const struct kdbus_msg *msg;
	int pipes[2], i;

	assert_int_equal(libkdbus_daemon_start(NULL, &daemon), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(daemon), &roomy, &receiver), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(daemon), &roomy, &sender), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(daemon), &watch, &monitor), 0);
	assert_int_equal(libkdbus_acquire(receiver, NAME, 0, NULL), 0);
	assert_int_equal(pipe(pipes), 0);
	for (i = 0; i < MANY; i++)
		assert_int_equal(send(sender, (uint64_t)i + 1, LARGE, pipes[1]), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(send(sender, (uint64_t)(MANY + i + 1), 8, pipes[1]), 0);
	for (i = 0; i < MANY + 3; i++) {
		msg = await(receiver);
		assert_int_equal(msg->cookie, i + 1);
		item = libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_FDS);
		assert_non_null(item);
		the_write_end_of_our_pipe(item->fds[0], pipes[0]);
		libkdbus_done(receiver, msg);
	}
	/* Nobody keeps a copy. */
	libkdbus_close(monitor);
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &i, 1), 0);
	close(pipes[0]);
	libkdbus_close(sender);
	libkdbus_close(receiver);
	libkdbus_daemon_stop(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_that_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
