// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Descriptors in messages that do not go through the daemon, and what becomes of them if the
 * receiver ends (rule 15 of the design).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <libkdbus.h>

#define NAME	     "org.example.Files"
#define TEXT	     "in a sealed file"

struct fixture {
	struct libkdbus_daemon *daemon;
	struct libkdbus *from, *to, *next;
};

static const struct libkdbus_options options = { .flags = KDBUS_HELLO_ACCEPT_FD,
						.attach_recv = KDBUS_ATTACH_TIMESTAMP };

static int set_up(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	assert_int_equal(libkdbus_daemon_start(NULL, &f.daemon), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f.daemon), NULL, &f.from), 0);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	libkdbus_close(f->next);
	libkdbus_close(f->to);
	libkdbus_close(f->from);
	libkdbus_daemon_stop(f->daemon);
	return 0;
}

static struct libkdbus *own_name(struct fixture *f, uint64_t flags)
{
	struct libkdbus *h;

	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f->daemon), &options, &h), 0);
	assert_true(libkdbus_acquire(h, NAME, flags, NULL) >= 0);
	return h;
}

static int make_memfd(void)
{
	int fd = memfd_create("kdbus-test-payload", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, TEXT, sizeof(TEXT)), sizeof(TEXT));
	assert_int_equal(libkdbus_memfd_seal(fd), 0);
	return fd;
}

/* Whose descriptors are those of the payload: ours, in this process */
static unsigned int count_memfds(void)
{
	char path[64], target[64];
	unsigned int n = 0, fd;
	ssize_t length;

	for (fd = 0; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%u", fd);
		length = readlink(path, target, sizeof(target) - 1);
		if (length < 0)
			continue;
		target[length] = 0;
		n += strstr(target, "kdbus-test-payload") != NULL;
	}
	return n;
}

static int send_files(struct fixture *f, int memfd, int fd, uint64_t cookie)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(*msg), NULL, 0);
	libkdbus_build_string(&b, KDBUS_ITEM_DST_NAME, NAME);
	if (memfd >= 0)
		libkdbus_build_memfd(&b, memfd, 0, sizeof(TEXT));
	if (fd >= 0)
		libkdbus_build_fds(&b, &fd, 1);
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	msg = built;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	msg->cookie = cookie;
	cmd.msg_address = (uintptr_t)msg;
	r = libkdbus_send(f->from, &cmd);
	libkdbus_build_clear(&b);
	return r;
}

/* The sender has to be there: what comes back to it, it sends again. */
static const struct kdbus_msg *await(struct fixture *f, struct libkdbus *h)
{
	const struct kdbus_msg *msg;
	int r;

	while ((r = libkdbus_receive(h, &msg)) == -EAGAIN) {
		assert_int_equal(libkdbus_receive(f->from, &msg), -EAGAIN);
		libkdbus_wait(h, 1, -1);
	}
	assert_int_equal(r, 0);
	return msg;
}

static const struct kdbus_item *find(const struct kdbus_msg *msg, uint64_t type)
{
	const struct kdbus_item *item = libkdbus_item_find(msg, sizeof(*msg), type);

	assert_non_null(item);
	return item;
}

/* The daemon numbers what it relays. */
static bool came_directly(const struct kdbus_msg *msg)
{
	return !find(msg, KDBUS_ITEM_TIMESTAMP)->timestamp.seqnum;
}

static void check_memfd(struct libkdbus *h, const struct kdbus_msg *msg)
{
	const struct kdbus_item *item = find(msg, KDBUS_ITEM_PAYLOAD_MEMFD);
	const void *data;
	size_t size;

	assert_true(item->memfd.fd >= 0);
	assert_int_equal(libkdbus_payload(h, msg, item, &data, &size), 0);
	assert_int_equal(size, sizeof(TEXT));
	assert_memory_equal(data, TEXT, sizeof(TEXT));
	close(item->memfd.fd);
}

/* Until the two talk directly, which the daemon may put off for seconds; with memfds alone. */
static void introduce(struct fixture *f)
{
	const struct kdbus_msg *msg;
	bool direct = false;
	int memfd = make_memfd();

	while (!direct) {
		assert_int_equal(send_files(f, memfd, -1, 1), 0);
		msg = await(f, f->to);
		check_memfd(f->to, msg);
		direct = came_directly(msg);
		libkdbus_done(f->to, msg);
	}
	close(memfd);
}

static void a_memfd_comes_directly(void **state)
{
	struct fixture *f = *state;

	f->to = own_name(f, 0);
	introduce(f);
	/* Nothing of it stays: neither what was received nor what was kept to be sent again. */
	assert_int_equal(libkdbus_receive(f->from, &(const struct kdbus_msg *){ NULL }), -EAGAIN);
	assert_int_equal(count_memfds(), 0);
}

static void a_pipe_comes_directly(void **state)
{
	struct fixture *f = *state;
	const struct kdbus_msg *msg;
	const struct kdbus_item *item;
	int fds[2];
	char text[8];

	f->to = own_name(f, 0);
	introduce(f);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(send_files(f, -1, fds[1], 2), 0);
	close(fds[1]);
	msg = await(f, f->to);
	assert_true(came_directly(msg));
	item = find(msg, KDBUS_ITEM_FDS);
	assert_int_equal(write(item->fds[0], "banana", 6), 6);
	assert_int_equal(read(fds[0], text, sizeof(text)), 6);
	close(item->fds[0]);
	libkdbus_done(f->to, msg);
	/* The sender is told, sooner or later, and lets go of the other end. */
	assert_int_equal(libkdbus_receive(f->from, &msg), -EAGAIN);
	assert_int_equal(read(fds[0], text, sizeof(text)), 0);
	close(fds[0]);
}

/* A program that sleeps in poll() hears that it may let go. */
static void the_sender_is_woken_to_let_go(void **state)
{
	struct fixture *f = *state;
	struct pollfd p = { .fd = libkdbus_fd(f->from), .events = POLLIN };
	const struct kdbus_msg *msg;
	int memfd = make_memfd();

	f->to = own_name(f, 0);
	introduce(f);
	assert_int_equal(send_files(f, memfd, -1, 2), 0);
	close(memfd);
	assert_int_equal(libkdbus_receive(f->from, &msg), -EAGAIN);
	assert_int_equal(count_memfds(), 1);
	msg = await(f, f->to);
	check_memfd(f->to, msg);
	libkdbus_done(f->to, msg);
	while (count_memfds()) {
		assert_int_equal(poll(&p, 1, -1), 1);
		assert_int_equal(libkdbus_receive(f->from, &msg), -EAGAIN);
	}
}

/* As many as may be in flight (rule 18); SEND's verdict on the next is the bus's. */
static void too_many_descriptors_are_refused(void **state)
{
	struct fixture *f = *state;
	const struct kdbus_msg *msg;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), i;

	f->to = own_name(f, 0);
	introduce(f);
	for (i = 0; i < 16; i++)
		assert_int_equal(send_files(f, -1, fd, 2), 0);
	assert_int_equal(send_files(f, -1, fd, 2), -EMFILE);
	close(fd);
	for (i = 0; i < 16; i++) {
		msg = await(f, f->to);
		close(find(msg, KDBUS_ITEM_FDS)->fds[0]);
		libkdbus_done(f->to, msg);
	}
}

/* Its receiver goes without having taken it: the next owner of the name gets it. */
static void a_memfd_comes_back_from_who_leaves(void **state)
{
	struct fixture *f = *state;
	const struct kdbus_msg *msg;
	int memfd = make_memfd();

	f->to = own_name(f, 0);
	introduce(f);
	f->next = own_name(f, KDBUS_NAME_QUEUE);
	assert_int_equal(send_files(f, memfd, -1, 7), 0);
	close(memfd);
	libkdbus_close(f->to);
	f->to = NULL;
	msg = await(f, f->next);
	assert_int_equal(msg->cookie, 7);
	check_memfd(f->next, msg);
	libkdbus_done(f->next, msg);
}

/* In a child: owns the name, takes messages until one came directly, then waits to be killed. */
static void serve(struct fixture *f, int ready)
{
	const struct kdbus_msg *msg;
	struct libkdbus *h;
	bool direct = false;
	int r;

	if (libkdbus_connect(libkdbus_daemon_bus(f->daemon), &options, &h) < 0 ||
	    libkdbus_acquire(h, NAME, 0, NULL) < 0 || write(ready, "x", 1) != 1)
		_exit(1);
	while (!direct) {
		while ((r = libkdbus_receive(h, &msg)) == -EAGAIN)
			libkdbus_wait(h, UINT64_MAX, -1);
		if (r < 0)
			_exit(2);
		direct = came_directly(msg);
		libkdbus_done(h, msg);
		if (write(ready, direct ? "d" : "r", 1) != 1)
			_exit(3);
	}
	for (;;)
		pause();
}

static void a_memfd_comes_back_from_who_is_killed(void **state)
{
	struct fixture *f = *state;
	const struct kdbus_msg *msg;
	int memfd = make_memfd(), ready[2];
	char said = 'r';
	pid_t child;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		serve(f, ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &said, 1), 1);
	f->next = own_name(f, KDBUS_NAME_QUEUE);
	do {
		assert_int_equal(send_files(f, memfd, -1, 1), 0);
		assert_int_equal(read(ready[0], &said, 1), 1);
	} while (said != 'd');
	assert_int_equal(send_files(f, memfd, -1, 7), 0);
	close(memfd);
	close(ready[0]);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	msg = await(f, f->next);
	assert_int_equal(msg->cookie, 7);
	check_memfd(f->next, msg);
	libkdbus_done(f->next, msg);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_memfd_comes_directly),
		TEST(a_pipe_comes_directly),
		TEST(the_sender_is_woken_to_let_go),
		TEST(too_many_descriptors_are_refused),
		TEST(a_memfd_comes_back_from_who_leaves),
		TEST(a_memfd_comes_back_from_who_is_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
