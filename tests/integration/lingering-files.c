// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A file that takes for ever to close, sent to the daemon: a socket that lingers, with something to
 * say to a peer that does not listen. It keeps no other file open, and not the daemon alive. (That
 * it keeps nobody from being served: tests/classic/closing.c.)
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <libkdbus.h>

#define LINGER	   100000 /* seconds */
#define PATIENT_MS 120000 /* only ends a test that hangs */

struct fixture {
	struct libkdbus_daemon *daemon;
	int lingering; /* ours, until it is sent */
	int deaf; /* its peer */
};

/* Both ends of a connection, full of what the second one does not read */
static int make_lingering(struct fixture *f)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = LINGER };
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	static const char text[65536];
	socklen_t size = sizeof(sa);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	f->lingering = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	r = bind(listener, (struct sockaddr *)&sa, sizeof(sa));
	if (r == 0)
		r = listen(listener, 1);
	if (r == 0)
		r = getsockname(listener, (struct sockaddr *)&sa, &size);
	if (r == 0)
		r = connect(f->lingering, (struct sockaddr *)&sa, sizeof(sa));
	f->deaf = r == 0 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
	close(listener);
	if (f->deaf < 0)
		return -1;
	while (send(f->lingering, text, sizeof(text), MSG_DONTWAIT) > 0)
		;
	return setsockopt(f->lingering, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

static int set_up(void **state)
{
	static struct fixture f;

	f.daemon = NULL;
	*state = &f;
	if (make_lingering(&f) < 0)
		return 0;
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

	close(f->deaf);
	libkdbus_daemon_stop(f->daemon);
	return 0;
}

static int raw_connect(const struct fixture *f)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(sock >= 0);
	strncpy(sa.sun_path, libkdbus_daemon_bus(f->daemon), sizeof(sa.sun_path) - 1);
	assert_int_equal(connect(sock, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return sock;
}

/*
 * No request that there is, with a descriptor that is closed here: before the daemon has closed it,
 * or who lingers would be we.
 */
static void give_file(const struct fixture *f, int sock, int fd)
{
	pid_t daemon = libkdbus_daemon_pid(f->daemon);
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char text[64] = { 0 };
	struct iovec iov = { text, sizeof(text) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = CMSG_SPACE(sizeof(int)) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(int));
	assert_int_equal(kill(daemon, SIGSTOP), 0);
	assert_int_equal(waitpid(daemon, NULL, WUNTRACED), daemon);
	assert_int_equal(sendmsg(sock, &msg, MSG_NOSIGNAL), sizeof(text));
	close(fd);
	assert_int_equal(kill(daemon, SIGCONT), 0);
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

static void assert_served(const struct fixture *f)
{
	struct libkdbus *h;

	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f->daemon), NULL, &h), 0);
	libkdbus_close(h);
}

static void others_are_closed_meanwhile(void **state)
{
	struct fixture *f = needed(state);
	int pipes[2], sock = raw_connect(f);

	give_file(f, sock, f->lingering);
	assert_ends(sock);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	sock = raw_connect(f);
	give_file(f, sock, pipes[1]);
	assert_ends(sock);
	assert_ends(pipes[0]);
	assert_served(f);
}

static void the_daemon_ends_all_the_same(void **state)
{
	struct fixture *f = needed(state);
	int sock = raw_connect(f);

	give_file(f, sock, f->lingering);
	assert_ends(sock);
	f->daemon = libkdbus_daemon_stop(f->daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(others_are_closed_meanwhile, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_daemon_ends_all_the_same, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
