// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Closing a descriptor can take as long as its owner likes. Whatever way one comes to the bus and
 * is not wanted there, others are served meanwhile.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lingering.h"
#include "own-bus.h"
#include "peer.h"

#define SCM_FDS_MAX 253 /* the kernel passes no more at once */

static void make_lingering(struct lingering *l)
{
	assert_int_equal(lingering_make(l), 0);
}

static void end_lingering(struct lingering *l)
{
	close(l->reader);
}

/* With 252 harmless ones in front of it */
static void send_many(int sock, int fd)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(SCM_FDS_MAX * sizeof(int))];
	} control;
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control.room) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	int fds[SCM_FDS_MAX], i;

	for (i = 0; i < SCM_FDS_MAX - 1; i++)
		fds[i] = STDERR_FILENO;
	fds[i] = fd;
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(cmsg), fds, sizeof(fds));
	assert_int_equal(sendmsg(sock, &msg, MSG_NOSIGNAL), 1);
}

static void halt(const struct own_bus *bus)
{
	int status;

	assert_int_equal(kill(bus->pid, SIGSTOP), 0);
	assert_int_equal(waitpid(bus->pid, &status, WUNTRACED), bus->pid);
	assert_true(WIFSTOPPED(status));
}

/* Before the bus takes it, ours is closed: the last close() is not for us. */
static void give_and_go_on(const struct own_bus *bus, int sock, struct lingering *l)
{
	make_lingering(l);
	send_many(sock, l->fd);
	close(l->fd);
	assert_int_equal(kill(bus->pid, SIGCONT), 0);
}

static void give(const struct own_bus *bus, int sock, struct lingering *l)
{
	halt(bus);
	give_and_go_on(bus, sock, l);
}

static void ping(struct peer *p)
{
	want_done(p, peer_call(p, DBUS, DBUS_PATH, DBUS ".Peer", "Ping", ""));
}

static void await_hang_up(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLRDHUP };

	assert_int_equal(poll(&pfd, 1, PEER_PATIENCE_MS), 1);
}

/* More than the daemon takes at once, on the socket of native clients; the module has none */
static void test_on_a_native_socket(void **state)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct lingering l;
	struct own_bus bus;

	own_bus_start(&bus, "", 0);
	WITH(p);
	strcpy(sa.sun_path, bus.native);
	assert_int_equal(connect(sock, (struct sockaddr *)&sa, sizeof(sa)), 0);
	give(&bus, sock, &l);
	await_hang_up(sock);
	ping(&p);
	end_lingering(&l);
	close(sock);
	peer_close(&p);
	assert_int_equal(own_bus_stop(&bus), 0);
}

/* While it says who it is, with a message to nobody, behind a message that is none */
static void test_on_a_classic_socket(void **state)
{
	struct lingering l[3];
	struct own_bus bus;
	struct peer a, b;
	unsigned int i;

	own_bus_start(&bus, "<limit name='max_message_unix_fds'>253</limit>", 0);
	WITH(p);
	peer_open(&a);
	peer_auth(&a, true);
	peer_join(&b);
	give(&bus, a.fd, &l[0]);
	give(&bus, b.fd, &l[1]);
	/* Neither 0 begins a message. */
	peer_write(&a, "0123456789abcdef", 16);
	peer_write(&b, "0123456789abcdef", 16);
	want_end(&a);
	want_end(&b);
	peer_close(&a);
	ping(&p);
	peer_open(&a);
	give(&bus, a.fd, &l[2]);
	peer_close(&a);
	ping(&p);
	for (i = 0; i < 3; i++)
		end_lingering(&l[i]);
	peer_close(&b);
	peer_close(&p);
	assert_int_equal(own_bus_stop(&bus), 0);
}

/* Far more than anybody waits for; what is behind them is closed none the less. */
static void test_many_at_once(void **state)
{
	enum {
		MANY = 20,
		BEHIND = 300
	};
	struct lingering l[MANY];
	struct own_bus bus;
	struct pollfd pfd = { 0 };
	int fds[2], i;

	own_bus_start(&bus, "", 0);
	WITH(p);
	for (i = 0; i < MANY; i++) {
		WITH(c);
		give(&bus, c.fd, &l[i]);
		peer_close(&c);
	}
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	for (i = 0; i < BEHIND; i++) {
		WITH(c);
		peer_write_fds(&c, "", 1, &fds[1], 1);
		peer_close(&c);
	}
	ping(&p);
	close(fds[1]);
	/* The end of the pipe: each of its copies has been closed. */
	pfd.fd = fds[0];
	assert_int_equal(poll(&pfd, 1, PEER_PATIENCE_MS), 1);
	assert_int_equal(pfd.revents, POLLHUP);
	close(fds[0]);
	for (i = 0; i < MANY; i++)
		end_lingering(&l[i]);
	peer_close(&p);
	assert_int_equal(own_bus_stop(&bus), 0);
}

/* In a socket that is refused, as the bus has no descriptor left for it */
static void test_in_a_refused_socket(void **state)
{
	enum {
		MANY = 100,
		LIMIT = 64
	};
	struct pollfd all[MANY];
	struct lingering l;
	struct peer many[MANY], late;
	struct own_bus bus;
	unsigned int i;

	own_bus_start(&bus, "<limit name='max_incomplete_connections'>1000</limit>", LIMIT);
	WITH(p);
	for (i = 0; i < MANY; i++) {
		peer_open(&many[i]);
		all[i] = (struct pollfd){ .fd = many[i].fd, .events = POLLRDHUP };
	}
	assert_true(poll(all, MANY, PEER_PATIENCE_MS) > 0);
	halt(&bus);
	peer_open(&late);
	give_and_go_on(&bus, late.fd, &l);
	await_hang_up(late.fd);
	ping(&p);
	end_lingering(&l);
	for (i = 0; i < MANY; i++)
		peer_close(&many[i]);
	peer_close(&late);
	peer_close(&p);
	assert_int_equal(own_bus_stop(&bus), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_on_a_native_socket),
		cmocka_unit_test(test_on_a_classic_socket),
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_in_a_refused_socket),
	};
	const struct CMUnitTest on_the_module[] = {
		cmocka_unit_test(test_on_a_classic_socket),
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_in_a_refused_socket),
	};

	if (own_bus_on_module())
		return cmocka_run_group_tests(on_the_module, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
