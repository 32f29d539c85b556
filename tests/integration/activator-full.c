// SPDX-License-Identifier: LGPL-2.1-or-later
/* An activator receives a message with as much of everything as a message may have (ABI 7.2). */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <libkdbus.h>

#define FDS	16
#define MEMFDS	16
#define PAYLOAD 200000
#define NAME	"org.example.Full"

static int sealed_memfd(void)
{
	int fd = memfd_create("payload", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(libkdbus_memfd_seal(fd), 0);
	return fd;
}

static void send_full(struct libkdbus *h)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	int fds[FDS], memfds[MEMFDS], i;
	char *payload = calloc(1, PAYLOAD);
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	void *built;

	libkdbus_build(&b, sizeof(struct kdbus_msg), NULL, 0);
	libkdbus_build_string(&b, KDBUS_ITEM_DST_NAME, NAME);
	libkdbus_build_vec(&b, payload, PAYLOAD);
	for (i = 0; i < MEMFDS; i++) {
		memfds[i] = sealed_memfd();
		libkdbus_build_memfd(&b, memfds[i], 0, 4096);
	}
	for (i = 0; i < FDS; i++)
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	libkdbus_build_fds(&b, fds, FDS);
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	msg = built;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	msg->cookie = 1;
	cmd.msg_address = (uintptr_t)msg;
	assert_int_equal(libkdbus_send(h, &cmd), 0);
	libkdbus_build_clear(&b);
	for (i = 0; i < FDS; i++)
		close(fds[i]);
	for (i = 0; i < MEMFDS; i++)
		close(memfds[i]);
	free(payload);
}

static void check_full(const struct kdbus_msg *msg)
{
	const struct kdbus_item *item = NULL;
	unsigned int memfds = 0, fds = 0, i;

	while ((item = libkdbus_item_next(msg, sizeof(*msg), item))) {
		if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD) {
			assert_int_equal(close(item->memfd.fd), 0);
			memfds++;
		}
		for (i = 0; item->type == KDBUS_ITEM_FDS && i < FDS; i++, fds++)
			assert_int_equal(close(item->fds[i]), 0);
	}
	assert_int_equal(memfds, MEMFDS);
	assert_int_equal(fds, FDS);
}

static void everything_at_once(void **state)
{
	const struct libkdbus_options options = {
		.flags = KDBUS_HELLO_ACTIVATOR | KDBUS_HELLO_ACCEPT_FD,
		.name = NAME,
	};
	struct libkdbus *activator, *sender;
	struct libkdbus_daemon *daemon;
	const struct kdbus_msg *msg;
	const char *bus;

	assert_int_equal(libkdbus_daemon_start(NULL, &daemon), 0);
	bus = libkdbus_daemon_bus(daemon);
	assert_int_equal(libkdbus_connect(bus, &options, &activator), 0);
	assert_int_equal(libkdbus_connect(bus, NULL, &sender), 0);
	send_full(sender);
	assert_int_equal(libkdbus_receive(activator, &msg), 0);
	check_full(msg);
	assert_int_equal(libkdbus_receive(activator, &msg), -EAGAIN);
	libkdbus_close(sender);
	libkdbus_close(activator);
	libkdbus_daemon_stop(daemon);
}

/*
 * RECV gives EXFULL for what the pool has no room for, and takes nothing (§14.2): once the program
 * has freed memory, everything comes, in order, with its descriptors.
 */
static void check_full_pool(uint64_t flags)
{
	const struct libkdbus_options options = {
		.flags = KDBUS_HELLO_ACTIVATOR | KDBUS_HELLO_ACCEPT_FD,
		.name = NAME,
		.pool_size = 2 << 20,
	};
	struct kdbus_cmd_recv cmd = { .size = sizeof(cmd), .flags = flags };
	const struct kdbus_msg *first, *msg, *last = NULL;
	struct libkdbus *activator, *sender;
	struct libkdbus_daemon *daemon;
	unsigned int n = 0, i;
	int r;

	assert_int_equal(libkdbus_daemon_start(NULL, &daemon), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(daemon), &options, &activator), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(daemon), NULL, &sender), 0);
	send_full(sender);
	assert_int_equal(libkdbus_receive(activator, &first), 0);
	do {
		send_full(sender);
		r = libkdbus_receive(activator, &msg);
		if (r == 0)
			check_full(last = msg);
		n++;
	} while (r == 0);
	assert_int_equal(r, -EXFULL);
	for (i = 0; i < 3; i++)
		assert_int_equal(libkdbus_recv(activator, &cmd), -EXFULL);
	assert_true(n > 1);
	assert_int_equal(libkdbus_done(activator, last), 0);
	/* Still the one that found no room; nothing was lost on the way. */
	assert_int_equal(libkdbus_receive(activator, &msg), 0);
	check_full(msg);
	assert_int_equal(libkdbus_receive(activator, &msg), -EAGAIN);
	check_full(first);
	libkdbus_close(sender);
	libkdbus_close(activator);
	libkdbus_daemon_stop(daemon);
}

static void a_full_pool_loses_nothing(void **state)
{
	check_full_pool(0);
}

static void peeking_at_a_full_pool_loses_nothing(void **state)
{
	check_full_pool(KDBUS_RECV_PEEK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_at_once),
		cmocka_unit_test(a_full_pool_loses_nothing),
		cmocka_unit_test(peeking_at_a_full_pool_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
