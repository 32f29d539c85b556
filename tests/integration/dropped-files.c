// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Files of others that nobody takes are closed, and nobody waits for that: here it is a socket
 * whose last close() waits until its reader has read, which the test does at its end.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <libkdbus.h>

#include "lingering.h"

#define HANG_SECONDS 300 /* ends a test that waits for that after all */

struct fixture {
	struct libkdbus_daemon *daemon;
	struct libkdbus *from, *to;
	uint64_t to_id;
	struct lingering lingering;
};

static const struct libkdbus_options options = { .flags = KDBUS_HELLO_ACCEPT_FD,
						 .attach_recv = KDBUS_ATTACH_TIMESTAMP };

/* Whoever has it closes it in the end: what was written is followed by the end of the stream. */
static void assert_closed(struct fixture *f)
{
	assert_int_equal(lingering_release(&f->lingering), 0);
}

static int send_file(struct fixture *f, int fd)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(*msg), NULL, 0);
	if (fd >= 0)
		libkdbus_build_fds(&b, &fd, 1);
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	msg = built;
	msg->dst_id = f->to_id;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	cmd.msg_address = (uintptr_t)msg;
	r = libkdbus_send(f->from, &cmd);
	libkdbus_build_clear(&b);
	return r;
}

/* The daemon numbers what it relays. */
static bool came_directly(const struct kdbus_msg *msg)
{
	const struct kdbus_item *item = libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_TIMESTAMP);

	assert_non_null(item);
	return !item->timestamp.seqnum;
}

static void introduce(struct fixture *f)
{
	const struct kdbus_msg *msg;
	bool direct = false;
	int r;

	/* The daemon may put it off, for seconds at most. */
	while (!direct) {
		assert_int_equal(send_file(f, -1), 0);
		while ((r = libkdbus_receive(f->to, &msg)) == -EAGAIN)
			assert_int_equal(libkdbus_wait(f->to, UINT64_MAX, -1), 0);
		assert_int_equal(r, 0);
		direct = came_directly(msg);
		libkdbus_done(f->to, msg);
	}
}

static int set_up(void **state)
{
	static struct fixture f;

	alarm(HANG_SECONDS);
	memset(&f, 0, sizeof(f));
	assert_int_equal(libkdbus_daemon_start(NULL, &f.daemon), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f.daemon), NULL, &f.from), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f.daemon), &options, &f.to), 0);
	f.to_id = libkdbus_identity(f.to)->id;
	introduce(&f);
	assert_int_equal(lingering_make(&f.lingering), 0);
	assert_int_equal(send_file(&f, f.lingering.fd), 0);
	/* From here on the last one to close it is the library. */
	close(f.lingering.fd);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	libkdbus_close(f->to);
	libkdbus_close(f->from);
	libkdbus_daemon_stop(f->daemon);
	return 0;
}

/* What the sender keeps until the receiver has it goes with its next look. */
static void look_again(struct libkdbus *h)
{
	const struct kdbus_msg *msg;

	assert_int_equal(libkdbus_receive(h, &msg), -EAGAIN);
}

static void dropping_a_message_does_not_wait(void **state)
{
	struct kdbus_cmd_recv cmd = { .size = sizeof(cmd), .flags = KDBUS_RECV_DROP };
	struct fixture *f = *state;
	int r;

	while ((r = libkdbus_command(f->to, KDBUS_CMD_RECV, &cmd)) == -EAGAIN)
		assert_int_equal(libkdbus_wait(f->to, UINT64_MAX, -1), 0);
	assert_int_equal(r, 0);
	look_again(f->from);
	assert_closed(f);
}

static void leaving_with_a_message_does_not_wait(void **state)
{
	struct kdbus_cmd_recv cmd = { .size = sizeof(cmd), .flags = KDBUS_RECV_PEEK };
	struct fixture *f = *state;
	int r;

	while ((r = libkdbus_command(f->to, KDBUS_CMD_RECV, &cmd)) == -EAGAIN)
		assert_int_equal(libkdbus_wait(f->to, UINT64_MAX, -1), 0);
	assert_int_equal(r, 0);
	look_again(f->from);
	f->to = libkdbus_close(f->to);
	assert_closed(f);
}

/* It comes back to its sender, which sends it again to nobody. */
static void a_message_that_comes_back_makes_nobody_wait(void **state)
{
	struct fixture *f = *state;

	f->to = libkdbus_close(f->to);
	look_again(f->from);
	f->from = libkdbus_close(f->from);
	assert_closed(f);
}

/* Its lane ends with it, and what is in the socket of the channel. */
static void a_sender_that_leaves_does_not_wait(void **state)
{
	struct fixture *f = *state;

	f->from = libkdbus_close(f->from);
	f->to = libkdbus_close(f->to);
	assert_closed(f);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(dropping_a_message_does_not_wait),
		CASE(leaving_with_a_message_does_not_wait),
		CASE(a_message_that_comes_back_makes_nobody_wait),
		CASE(a_sender_that_leaves_does_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
