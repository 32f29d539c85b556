// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a program sees when the daemon, and with it the bus, ends. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <libkdbus.h>

struct fixture {
	struct libkdbus_daemon *daemon;
	struct libkdbus *h;
};

static int set_up(void **state)
{
	static struct fixture f;

	assert_int_equal(libkdbus_daemon_start(NULL, &f.daemon), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f.daemon), NULL, &f.h), 0);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	libkdbus_close(f->h);
	f->daemon = libkdbus_daemon_stop(f->daemon);
	return 0;
}

/* Both engines make it poll; the kernel says POLLHUP when the end has come. */
static int readable(struct libkdbus *h)
{
	struct pollfd p = { .fd = libkdbus_fd(h), .events = POLLIN };

	return poll(&p, 1, 0) == 1 && p.revents & (POLLIN | POLLHUP);
}

static void an_idle_connection_is_told_by_its_first_recv(void **state)
{
	struct fixture *f = *state;
	const struct kdbus_msg *msg;

	assert_int_equal(libkdbus_receive(f->h, &msg), -EAGAIN);
	assert_false(readable(f->h));
	f->daemon = libkdbus_daemon_stop(f->daemon);
	assert_true(readable(f->h));
	assert_int_equal(libkdbus_receive(f->h, &msg), -ECONNRESET);
}

static void every_command_says_so_and_the_descriptor_stays_readable(void **state)
{
	struct fixture *f = *state;
	const struct kdbus_msg *msg;

	f->daemon = libkdbus_daemon_stop(f->daemon);
	assert_int_equal(libkdbus_acquire(f->h, "org.example.A", 0, NULL), -ECONNRESET);
	assert_int_equal(libkdbus_receive(f->h, &msg), -ECONNRESET);
	assert_int_equal(libkdbus_wait(f->h, UINT64_MAX, -1), -ECONNRESET);
	assert_true(readable(f->h));
}

static void *stop(void *arg)
{
	struct fixture *f = arg;

	f->daemon = libkdbus_daemon_stop(f->daemon);
	return NULL;
}

/* It may be asleep by the time, or not yet: it hears of the end in either case. */
static void a_program_that_sleeps_in_poll_is_woken(void **state)
{
	struct fixture *f = *state;
	struct pollfd p = { .fd = libkdbus_fd(f->h), .events = POLLIN };
	const struct kdbus_msg *msg;
	pthread_t thread;

	while (readable(f->h))
		assert_int_equal(libkdbus_receive(f->h, &msg), -EAGAIN);
	assert_int_equal(pthread_create(&thread, NULL, stop, f), 0);
	while (libkdbus_receive(f->h, &msg) != -ECONNRESET)
		assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(readable(f->h));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_program_that_sleeps_in_poll_is_woken, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(an_idle_connection_is_told_by_its_first_recv,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			every_command_says_so_and_the_descriptor_stays_readable, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
