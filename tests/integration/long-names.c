// SPDX-License-Identifier: LGPL-2.1-or-later
/* A sender whose names fill more than a record costs its receivers nothing but those names. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <libkdbus.h>

#define NAMES 200

static void own_long_names(struct libkdbus *h)
{
	char name[256];
	int i;

	for (i = 0; i < NAMES; i++) {
		memset(name, 'x', sizeof(name) - 1);
		snprintf(name, 16, "n%03d.", i);
		name[strlen(name)] = 'x';
		name[sizeof(name) - 1] = '\0';
		assert_int_equal(libkdbus_acquire(h, name, 0, NULL), 0);
	}
}

static int send(struct libkdbus *h, uint64_t to, uint64_t cookie)
{
	struct kdbus_msg msg = { .size = sizeof(msg),
				 .dst_id = to,
				 .payload_type = KDBUS_PAYLOAD_DBUS,
				 .cookie = cookie };
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd), .msg_address = (uintptr_t)&msg };

	return libkdbus_send(h, &cmd);
}

static void they_are_left_out(void **state)
{
	const struct libkdbus_options all = { .attach_send = _KDBUS_ATTACH_ALL,
					      .attach_recv = _KDBUS_ATTACH_ALL };
	struct libkdbus *receiver, *sender;
	struct libkdbus_daemon *daemon;
	const struct kdbus_msg *msg;
	int i, r;

	assert_int_equal(libkdbus_daemon_start(NULL, &daemon), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(daemon), &all, &receiver), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(daemon), &all, &sender), 0);
	own_long_names(sender);
	/* Relayed, at the introduction, and directly */
	for (i = 1; i <= 5; i++) {
		assert_int_equal(send(sender, libkdbus_identity(receiver)->id, (uint64_t)i), 0);
		while ((r = libkdbus_receive(receiver, &msg)) == -EAGAIN)
			assert_int_equal(libkdbus_wait(receiver, UINT64_MAX, -1), 0);
		assert_int_equal(r, 0);
		assert_int_equal(msg->cookie, i);
		assert_non_null(libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_CREDS));
		assert_null(libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_OWNED_NAME));
		assert_int_equal(libkdbus_done(receiver, msg), 0);
	}
	libkdbus_close(sender);
	libkdbus_close(receiver);
	libkdbus_daemon_stop(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
