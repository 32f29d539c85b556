// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The kernel lets a user have so many descriptors on their way in sockets and no more. What the bus
 * cannot send because of it ends with an error for whoever waits, not with silence. This program
 * has more of them on their way, in a socket of its own, than the bus may have.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "native.h"
#include "own-bus.h"

#define PATH	"/org/example/InFlight"
#define IFACE	"org.example.InFlight1"
#define NAME	"org.example.InFlight"
#define LIMIT	300 /* descriptors of the daemon, hence on their way of its user */
#define AT_ONCE 100
#define CALLS	10
#define FILLER	16384 /* bytes, and how many of them are more than a lane holds */
#define FILLERS 100

static struct own_bus bus;

static int start(void **state)
{
	own_bus_start_plain(&bus, "", LIMIT);
	native_path = bus.native;
	return 0;
}

static int stop(void **state)
{
	return own_bus_stop(&bus);
}

static void ping(struct peer *p)
{
	want_done(p, peer_call(p, DBUS, DBUS_PATH, DBUS ".Peer", "Ping", ""));
}

/* ---- on their way ---- */

static int sockets[2];

static void send_some(void)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(AT_ONCE * sizeof(int))];
	} control;
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control.room) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	int fds[AT_ONCE], i;

	for (i = 0; i < AT_ONCE; i++)
		fds[i] = STDERR_FILENO;
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(cmsg), fds, sizeof(fds));
	assert_int_equal(sendmsg(sockets[0], &msg, 0), 1);
}

static void crowd(void)
{
	int i;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	for (i = 0; i <= LIMIT / AT_ONCE; i++)
		send_some();
}

static void clear(void)
{
	close(sockets[0]);
	close(sockets[1]);
}

/* ---- messages ---- */

static void send_with_fd(struct peer *p, struct dbusp_desc desc)
{
	static const int fd = STDERR_FILENO;
	struct dbusp_build b;
	uint8_t *msg;
	size_t len;

	desc.n_fds = 1;
	dbusp_build_begin(&b, NULL, &desc);
	assert_int_equal(dbusp_build_end(&b, &msg, &len), 0);
	peer_write_fds(p, msg, len, &fd, 1);
	free(msg);
}

static uint32_t call_with_fd(struct peer *p, const char *to)
{
	send_with_fd(p, (struct dbusp_desc){ .type = DBUSP_METHOD_CALL,
					     .serial = ++p->serial,
					     .path = DBUSP_STR(PATH),
					     .interface = DBUSP_STR(IFACE),
					     .member = DBUSP_STR("Take"),
					     .destination = dbusp_str(to) });
	return p->serial;
}

static void test_calls(void **state)
{
	uint32_t serials[CALLS], end;
	struct got g;
	int i;

	WITH(p);
	WITH(callee);
	crowd();
	for (i = 0; i < CALLS; i++)
		serials[i] = call_with_fd(&p, callee.name);
	for (i = 0; i < CALLS; i++)
		want_error(&p, serials[i], ERROR_NAME("LimitsExceeded"));
	want_nothing(&callee);
	/* What has none is none the worse for it. */
	end = peer_call(&p, callee.name, PATH, IFACE, "End", "");
	want_call(&callee, "End", &g);
	peer_return(&callee, &g, "");
	got_free(&g);
	want_done(&p, end);
	clear();
	peer_close(&p);
	peer_close(&callee);
}

/* The caller did nothing wrong, and learns that there was an answer. */
static void test_answers(void **state)
{
	struct dbusp_desc desc = { .type = DBUSP_METHOD_RETURN, .serial = 1000 };
	uint32_t serial;
	struct got g;
	int i;

	WITH(p);
	WITH(callee);
	desc.destination = dbusp_str(p.name);
	crowd();
	for (i = 0; i < CALLS; i++) {
		serial = peer_call(&p, callee.name, PATH, IFACE, "Give", "");
		want_call(&callee, "Give", &g);
		desc.reply_serial = serial;
		send_with_fd(&callee, desc);
		got_free(&g);
		want_error(&p, serial, ERROR_NAME("LimitsExceeded"));
	}
	want_nothing(&callee);
	clear();
	peer_close(&p);
	peer_close(&callee);
}

/* The bus's own: a descriptor of the process is in it, from Linux 6.5 on, so not in all machines */
static void test_answers_of_the_bus(void **state)
{
	WITH(p);
	crowd();
	want_error(&p, peer_driver(&p, "GetConnectionCredentials", "s", p.name),
		   ERROR_NAME("LimitsExceeded"));
	ping(&p);
	clear();
	peer_close(&p);
}

/* Nobody waits for these. */
static void test_messages_without_an_answer(void **state)
{
	struct dbusp_desc desc = { .type = DBUSP_SIGNAL,
				   .serial = 1000,
				   .path = DBUSP_STR(PATH),
				   .interface = DBUSP_STR(IFACE),
				   .member = DBUSP_STR("Changed") };

	WITH(p);
	WITH(receiver);
	crowd();
	desc.destination = dbusp_str(receiver.name);
	send_with_fd(&p, desc);
	desc.type = DBUSP_METHOD_CALL;
	desc.flags = DBUSP_NO_REPLY_EXPECTED;
	send_with_fd(&p, desc);
	want_nothing(&p);
	want_nothing(&receiver);
	clear();
	peer_close(&p);
	peer_close(&receiver);
}

/* The module puts none into sockets. */
static void test_calls_to_a_native_peer(void **state)
{
	struct libkdbus *h = native_join();
	char name[32];
	int i;

	WITH(p);
	native_name(h, name, sizeof(name));
	crowd();
	for (i = 0; i < CALLS; i++)
		want_error(&p, call_with_fd(&p, name), ERROR_NAME("LimitsExceeded"));
	clear();
	libkdbus_close(h);
	peer_close(&p);
}

/* Messages of which a native peer that does not read has no room for all in its lane */
static void fill_lane(struct peer *p, const char *to)
{
	const struct dbusp_desc desc = { .type = DBUSP_METHOD_CALL,
					 .flags = DBUSP_NO_REPLY_EXPECTED,
					 .path = DBUSP_STR(PATH),
					 .interface = DBUSP_STR(IFACE),
					 .member = DBUSP_STR("Note"),
					 .destination = dbusp_str(to),
					 .signature = DBUSP_STR("s") };
	static char text[FILLER];
	int i;

	memset(text, 'x', sizeof(text) - 1);
	for (i = 0; i < FILLERS; i++)
		peer_send(p, desc, text);
	ping(p);
}

/* A call that the bus has taken and keeps until there is room, and then cannot deliver */
static void test_calls_that_wait_for_a_native_peer(void **state)
{
	struct libkdbus *h = native_join();
	struct dbusp_header header;
	uint32_t serial;
	char name[32];
	int i;

	WITH(p);
	native_name(h, name, sizeof(name));
	fill_lane(&p, name);
	serial = call_with_fd(&p, name);
	want_nothing(&p);
	crowd();
	for (i = 0; i < FILLERS; i++) {
		const struct kdbus_msg *msg = native_next_said(h);

		native_text(h, msg, &header);
		assert_string_equal(header.member.s, "Note");
		libkdbus_done(h, msg);
	}
	want_error(&p, serial, ERROR_NAME("LimitsExceeded"));
	clear();
	libkdbus_close(h);
	peer_close(&p);
}

/* It gets the error as an answer. */
static void test_calls_of_a_native_peer(void **state)
{
	static const int fd = STDERR_FILENO;
	struct dbusp_desc desc = { .type = DBUSP_METHOD_CALL,
				   .serial = 5,
				   .n_fds = 1,
				   .path = DBUSP_STR(PATH),
				   .interface = DBUSP_STR(IFACE),
				   .member = DBUSP_STR("Take"),
				   .destination = DBUSP_STR(NAME) };
	struct libkdbus *h = native_join();
	const struct kdbus_msg *msg;
	struct dbusp_header header;
	uint8_t *data;
	size_t len;

	WITH(p);
	peer_driver(&p, "RequestName", "su", NAME, 0);
	want_driver_signal(&p, "NameAcquired", NAME, NULL, NULL);
	want_u32(&p, p.serial, 1);
	data = native_message(desc, "take it", &len);
	crowd();
	assert_int_equal(native_send(h,
				     &(struct native_send){ .dst_id = KDBUS_DST_ID_NAME,
							    .dst_name = NAME,
							    .flags = KDBUS_MSG_EXPECT_REPLY,
							    .cookie = 5,
							    .fds = &fd,
							    .n_fds = 1 },
				     data, len),
			 0);
	msg = native_next(h);
	assert_int_equal(msg->cookie_reply, 5);
	native_text(h, msg, &header);
	assert_string_equal(header.error_name.s, ERROR_NAME("LimitsExceeded"));
	libkdbus_done(h, msg);
	want_nothing(&p);
	clear();
	free(data);
	libkdbus_close(h);
	peer_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_calls, start, stop),
		cmocka_unit_test_setup_teardown(test_answers, start, stop),
		cmocka_unit_test_setup_teardown(test_answers_of_the_bus, start, stop),
		cmocka_unit_test_setup_teardown(test_messages_without_an_answer, start, stop),
		cmocka_unit_test_setup_teardown(test_calls_to_a_native_peer, start, stop),
		cmocka_unit_test_setup_teardown(test_calls_that_wait_for_a_native_peer, start,
						stop),
		cmocka_unit_test_setup_teardown(test_calls_of_a_native_peer, start, stop),
	};
	const struct CMUnitTest on_the_module[] = {
		cmocka_unit_test_setup_teardown(test_calls, start, stop),
		cmocka_unit_test_setup_teardown(test_answers, start, stop),
		cmocka_unit_test_setup_teardown(test_messages_without_an_answer, start, stop),
		cmocka_unit_test_setup_teardown(test_calls_of_a_native_peer, start, stop),
	};

	if (own_bus_on_module())
		return cmocka_run_group_tests(on_the_module, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
