// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a message that did not go through the daemon says of itself (doc/compat.md, metadata). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include <libkdbus.h>

struct fixture {
	struct libkdbus_daemon *daemon;
	struct libkdbus *from, *to;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static int set_up(void **state)
{
	const struct libkdbus_options options = { .attach_recv = KDBUS_ATTACH_TIMESTAMP |
								 KDBUS_ATTACH_CREDS };
	static struct fixture f;

	assert_int_equal(libkdbus_daemon_start(NULL, &f.daemon), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f.daemon), NULL, &f.from), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f.daemon), &options, &f.to), 0);
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

static const struct kdbus_msg *send_and_receive(struct fixture *f)
{
	struct kdbus_msg out = { .size = sizeof(out),
				 .dst_id = libkdbus_identity(f->to)->id,
				 .payload_type = KDBUS_PAYLOAD_DBUS };
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd), .msg_address = (uintptr_t)&out };
	const struct kdbus_msg *msg;
	int r;

	assert_int_equal(libkdbus_send(f->from, &cmd), 0);
	while ((r = libkdbus_receive(f->to, &msg)) == -EAGAIN)
		assert_int_equal(libkdbus_wait(f->to, UINT64_MAX, -1), 0);
	assert_int_equal(r, 0);
	return msg;
}

static const struct kdbus_item *find(const struct kdbus_msg *msg, uint64_t type)
{
	const struct kdbus_item *item = libkdbus_item_find(msg, sizeof(*msg), type);

	assert_non_null(item);
	return item;
}

static void every_message_bears_its_time_and_its_sender(void **state)
{
	struct fixture *f = *state;
	const struct kdbus_timestamp *stamp;
	const struct kdbus_msg *msg;
	uint64_t before, seq = 1;

	/* Number 0: it came directly. The daemon may put that off, for seconds at most. */
	while (seq) {
		before = now_ns();
		msg = send_and_receive(f);
		stamp = &find(msg, KDBUS_ITEM_TIMESTAMP)->timestamp;
		seq = stamp->seqnum;
		assert_in_range(stamp->monotonic_ns, before, now_ns());
		assert_true(stamp->realtime_ns > 0);
		find(msg, KDBUS_ITEM_CREDS);
		libkdbus_done(f->to, msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_message_bears_its_time_and_its_sender, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
