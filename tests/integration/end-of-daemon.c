// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a connection of the user engine has been delivered survives the daemon: it lies in the
 * memory of the program. (On the kernel engine the queue ends with the bus.)
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <libkdbus.h>

static int readable(struct libkdbus *h)
{
	struct pollfd p = { .fd = libkdbus_fd(h), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* To itself: through the daemon, which has it delivered when SEND returns. */
static void send_one(struct libkdbus *h)
{
	struct kdbus_msg msg = { .size = sizeof(msg),
				 .dst_id = libkdbus_identity(h)->id,
				 .payload_type = KDBUS_PAYLOAD_DBUS,
				 .cookie = 1 };
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd), .msg_address = (uintptr_t)&msg };

	assert_int_equal(libkdbus_send(h, &cmd), 0);
}

static void what_was_delivered_before_comes_first(void **state)
{
	struct libkdbus_daemon *daemon;
	const struct kdbus_msg *msg;
	struct libkdbus *h;
	int i;

	assert_int_equal(libkdbus_daemon_start(NULL, &daemon), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(daemon), NULL, &h), 0);
	for (i = 0; i < 3; i++)
		send_one(h);
	libkdbus_daemon_stop(daemon);
	for (i = 0; i < 3; i++) {
		assert_true(readable(h));
		assert_int_equal(libkdbus_receive(h, &msg), 0);
		assert_int_equal(libkdbus_done(h, msg), 0);
	}
	assert_true(readable(h));
	assert_int_equal(libkdbus_receive(h, &msg), -ECONNRESET);
	assert_true(readable(h));
	libkdbus_close(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_delivered_before_comes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
