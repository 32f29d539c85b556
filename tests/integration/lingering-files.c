// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Files that take for ever to close, sent to the daemon: they keep no other file open, and not the
 * daemon alive; those of one user none of another, and when they use up the daemon's descriptors
 * it is not stopped by the next. (That one keeps nobody from being served:
 * tests/classic/closing.c.)
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <libkdbus.h>

#include "helper.h"
#include "lib/closer.h"
#include "lingering.h"

#define LIMIT	     2048 /* descriptors of the daemon */
#define AT_ONCE	     253 /* the kernel passes no more */
#define OTHER_UID    4711
#define MANY	     (CLOSER_THREADS + CLOSER_SHARE)
#define PATIENT_MS   120000 /* only ends a test that hangs */
#define HANG_SECONDS 600 /* the same */

struct fixture {
	struct libkdbus_daemon *daemon;
	struct lingering files[MANY + 2];
	unsigned int n;
};

static int set_up(void **state)
{
	static struct fixture f;
	struct lingering probe;

	alarm(HANG_SECONDS);
	f = (struct fixture){ .n = 0 };
	*state = &f;
	if (lingering_make(&probe) < 0)
		return 0;
	close(probe.reader);
	close(probe.fd);
	assert_int_equal(libkdbus_daemon_start(NULL, &f.daemon), 0);
	return 0;
}

/* Not in set_up(): what skips there has failed. */
static struct fixture *needed(void **state)
{
	struct fixture *f = *state;

	if (!f->daemon) {
		print_message("# needs a loopback interface\n");
		skip();
	}
	return f;
}

/* Nobody is stuck any more when its peer has gone. */
static int tear_down(void **state)
{
	struct fixture *f = *state;

	while (f->n)
		close(f->files[--f->n].reader);
	libkdbus_daemon_stop(f->daemon);
	return 0;
}

static int raw_connect(const struct fixture *f)
{
	int sock = helper_raw_connect(libkdbus_daemon_bus(f->daemon));

	assert_true(sock >= 0);
	return sock;
}

/* Whose a socket is, is settled by connect(). Its access to files is root's all the while. */
static int raw_connect_as(const struct fixture *f, uid_t uid)
{
	int sock;

	assert_int_equal(seteuid(uid), 0);
	setfsuid(0);
	sock = helper_raw_connect(libkdbus_daemon_bus(f->daemon));
	assert_int_equal(seteuid(0), 0);
	assert_true(sock >= 0);
	return sock;
}

/*
 * No request that there is, with @n - 1 times a descriptor and then @last, which are closed here:
 * before the daemon has closed them, or who lingers would be we.
 */
static void give_files_and(const struct fixture *f, int sock, int fd, unsigned int n, int last)
{
	pid_t daemon = libkdbus_daemon_pid(f->daemon);
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(AT_ONCE * sizeof(int))];
	} control = { 0 };
	char text[64] = { 0 };
	struct iovec iov = { text, sizeof(text) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
	unsigned int i;

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(n * sizeof(int));
	for (i = 0; i < n; i++)
		memcpy(CMSG_DATA(head) + i * sizeof(int), i < n - 1 ? &fd : &last, sizeof(int));
	assert_int_equal(helper_halt(daemon), 0);
	assert_int_equal(sendmsg(sock, &msg, MSG_NOSIGNAL), sizeof(text));
	close(fd);
	if (last != fd)
		close(last);
	assert_int_equal(helper_go_on(daemon), 0);
}

static void give_files(const struct fixture *f, int sock, int fd, unsigned int n)
{
	give_files_and(f, sock, fd, n, fd);
}

/* The other end of @fd is closed. */
static void assert_ends(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char byte;

	assert_int_equal(poll(&p, 1, PATIENT_MS), 1);
	assert_true(read(fd, &byte, 1) <= 0);
	close(fd);
}

static void give_lingering(struct fixture *f, int sock)
{
	struct lingering *l = &f->files[f->n];

	assert_int_equal(lingering_make(l), 0);
	f->n++;
	give_files(f, sock, l->fd, 1);
	assert_ends(sock);
}

static void assert_others_are_closed(const struct fixture *f)
{
	int pipes[2], sock = raw_connect(f);

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	give_files(f, sock, pipes[1], 1);
	assert_ends(sock);
	assert_ends(pipes[0]);
}

static void others_are_closed_meanwhile(void **state)
{
	struct fixture *f = needed(state);
	struct libkdbus *h;

	give_lingering(f, raw_connect(f));
	assert_others_are_closed(f);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f->daemon), NULL, &h), 0);
	libkdbus_close(h);
}

static void those_of_one_user_keep_none_of_another(void **state)
{
	struct fixture *f = needed(state);
	unsigned int i;

	if (geteuid() != 0) {
		print_message("# needs to be root\n");
		skip();
	}
	for (i = 0; i < MANY; i++)
		give_lingering(f, raw_connect_as(f, OTHER_UID));
	assert_others_are_closed(f);
}

static void the_daemon_ends_all_the_same(void **state)
{
	struct fixture *f = needed(state);

	give_lingering(f, raw_connect(f));
	f->daemon = libkdbus_daemon_stop(f->daemon);
}

/* How many descriptors the daemon has */
static unsigned int count_open(const struct fixture *f)
{
	unsigned int n = 0;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)libkdbus_daemon_pid(f->daemon));
	dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

/*
 * A little room below what is kept free, where files are still open: @sock has more than there is
 * room for altogether, and the one that does not fit lingers.
 */
static void give_more_than_there_is_room_for(struct fixture *f, int sock)
{
	struct lingering *l = &f->files[f->n];
	unsigned int before = count_open(f);
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

	/* Another one, that waited, is at close() instead: its number is free by then. */
	assert_int_equal(lingering_release(&f->files[0]), 0);
	while (count_open(f) == before)
		poll(NULL, 0, 1);
	assert_true(count_open(f) + AT_ONCE > LIMIT);
	assert_int_equal(lingering_make(l), 0);
	f->n++;
	give_files_and(f, sock, fd, AT_ONCE, l->fd);
	assert_ends(sock);
}

/*
 * All who close for this user are stuck, and more waits than the daemon may have open: what is sent
 * then finds no room, and would be closed by whoever receives it.
 */
static void what_has_no_room_stops_nobody(void **state)
{
	struct fixture *f = needed(state);
	struct kdbus_cmd cmd = { .size = sizeof(cmd) };
	int socks[LIMIT / AT_ONCE + 1], last = raw_connect(f), more = raw_connect(f);
	const unsigned int n = sizeof(socks) / sizeof(*socks);
	struct libkdbus *h;
	unsigned int i;

	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f->daemon), NULL, &h), 0);
	for (i = 0; i < n; i++)
		socks[i] = raw_connect(f);
	for (i = 0; i < MANY; i++)
		give_lingering(f, raw_connect(f));
	for (i = 0; i < n; i++) {
		give_files(f, socks[i], fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0), AT_ONCE);
		assert_ends(socks[i]);
	}
	give_lingering(f, last);
	give_more_than_there_is_room_for(f, more);
	assert_int_equal(libkdbus_command(h, KDBUS_CMD_BYEBYE, &cmd), 0);
	/* It may end without being told that the daemon has seen it. */
	while (f->n)
		close(f->files[--f->n].reader);
	libkdbus_close(h);
}

int main(void)
{
	const struct rlimit few = { .rlim_cur = LIMIT, .rlim_max = LIMIT };
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(others_are_closed_meanwhile),
		CASE(those_of_one_user_keep_none_of_another),
		CASE(the_daemon_ends_all_the_same),
		CASE(what_has_no_room_stops_nobody),
	};

	/* The daemon takes all descriptors it may have. */
	if (setrlimit(RLIMIT_NOFILE, &few) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
