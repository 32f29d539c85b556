// SPDX-License-Identifier: LGPL-2.1-or-later
/* What comes over the socket of a channel and is no message of the protocol. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "lane/channel.h"

/* A channel, the socket of its peer, and a pipe whose end tells whether it was closed. */
struct fixture {
	struct lane_channel ch;
	int peer, reader, writer;
};

static void set_up(struct fixture *f)
{
	int sv[2], pipes[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
	lane_channel_init(&f->ch, &lane_linux_ops, sv[0], 0);
	f->peer = sv[1];
	f->reader = pipes[0];
	f->writer = pipes[1];
}

static void say(struct fixture *f, const void *data, size_t size)
{
	assert_int_equal(lane_linux_ops.send(&lane_linux_ops, f->peer, data, size, &f->writer, 1),
			 0);
	close(f->writer);
}

static void assert_closed(struct fixture *f)
{
	char byte;

	assert_int_equal(read(f->reader, &byte, 1), 0);
}

static void tear_down(struct fixture *f)
{
	lane_channel_deinit(&f->ch);
	close(f->peer);
	close(f->reader);
}

static void an_empty_message_is_the_end_and_leaves_no_files(void **state)
{
	struct fixture f;

	set_up(&f);
	say(&f, "", 0);
	assert_int_equal(lane_channel_recv(&f.ch), -ECONNRESET);
	assert_true(f.ch.hungup);
	assert_closed(&f);
	tear_down(&f);
}

static void a_message_that_is_none_leaves_no_files(void **state)
{
	struct fixture f;

	set_up(&f);
	say(&f, "x", 1);
	assert_int_equal(lane_channel_recv(&f.ch), -EPROTO);
	assert_closed(&f);
	tear_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_message_is_the_end_and_leaves_no_files),
		cmocka_unit_test(a_message_that_is_none_leaves_no_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
