// SPDX-License-Identifier: LGPL-2.1-or-later
/* A message with more descriptors than the receiving process has room for (ABI 7.11). */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include <libkdbus.h>

#define LIMIT 64
#define SENT  4
#define ROOM  2

struct fixture {
	struct libkdbus_daemon *daemon;
	struct libkdbus *from, *to;
};

static int set_up(void **state)
{
	static struct fixture f;

	assert_int_equal(libkdbus_daemon_start(NULL, &f.daemon), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f.daemon), NULL, &f.from), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f.daemon), NULL, &f.to), 0);
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

static void send_descriptors(struct fixture *f)
{
	const int fds[SENT] = { 0, 1, 2, 0 };
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	void *built;

	libkdbus_build(&b, sizeof(*msg), NULL, 0);
	libkdbus_build_fds(&b, fds, SENT);
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	msg = built;
	msg->dst_id = libkdbus_identity(f->to)->id;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	cmd.msg_address = (uintptr_t)msg;
	assert_int_equal(libkdbus_send(f->from, &cmd), 0);
	libkdbus_build_clear(&b);
}

/* Occupy all numbers but @room; returns how many were taken, their numbers in @taken. */
static unsigned int fill(int taken[LIMIT], unsigned int room)
{
	const struct rlimit limit = { .rlim_cur = LIMIT, .rlim_max = LIMIT };
	unsigned int n = 0;
	int fd;

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		taken[n++] = fd;
	assert_int_equal(errno, EMFILE);
	assert_true(n >= room);
	while (room--)
		close(taken[--n]);
	return n;
}

static void what_has_no_room_reads_minus_one_and_is_reported(void **state)
{
	struct fixture *f = *state;
	struct kdbus_cmd_recv cmd = { .size = sizeof(cmd) };
	const struct kdbus_item *item;
	const struct kdbus_msg *msg;
	int taken[LIMIT] = { 0 };
	unsigned int n, i, got = 0;

	send_descriptors(f);
	n = fill(taken, ROOM);
	assert_int_equal(libkdbus_recv(f->to, &cmd), 0);
	assert_true(cmd.msg.return_flags & KDBUS_RECV_RETURN_INCOMPLETE_FDS);
	msg = (const void *)((const char *)libkdbus_pool(f->to, NULL) + cmd.msg.offset);
	item = libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_FDS);
	assert_non_null(item);
	for (i = 0; i < SENT; i++) {
		assert_true(item->fds[i] == -1 || fcntl(item->fds[i], F_GETFD) == FD_CLOEXEC);
		got += item->fds[i] >= 0 && close(item->fds[i]) == 0;
	}
	assert_int_equal(got, ROOM);
	while (n)
		close(taken[--n]);
}

static void with_room_nothing_is_reported(void **state)
{
	struct fixture *f = *state;
	struct kdbus_cmd_recv cmd = { .size = sizeof(cmd) };
	const struct kdbus_item *item;
	const struct kdbus_msg *msg;
	unsigned int i;

	send_descriptors(f);
	assert_int_equal(libkdbus_recv(f->to, &cmd), 0);
	assert_int_equal(cmd.msg.return_flags, 0);
	msg = (const void *)((const char *)libkdbus_pool(f->to, NULL) + cmd.msg.offset);
	item = libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_FDS);
	assert_non_null(item);
	for (i = 0; i < SENT; i++)
		assert_int_equal(close(item->fds[i]), 0);
}

int main(void)
{
	/* The last lowers the limit for good. */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(with_room_nothing_is_reported, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_has_no_room_reads_minus_one_and_is_reported,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
