// SPDX-License-Identifier: LGPL-2.1-or-later
/* Passing descriptors: ABI 15.5, fd-passing. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>

#include "fixture.h"

static struct libkdbus *connect_without_fds(void **state)
{
	return fixture_connect_to(((struct fixture *)*state)->path, 0);
}

static struct letter with_fds(struct libkdbus *to, const int *fds, size_t n)
{
	return (struct letter){ .dst = fixture_id(to), .cookie = 1, .fds = fds, .n_fds = n };
}

/* Close what came with a message; how many descriptors that were, -1 if one was missing */
static int close_all(const struct kdbus_msg *msg)
{
	const struct kdbus_item *item = NULL;
	size_t i;
	int n = 0;

	while ((item = libkdbus_item_next(msg, sizeof(*msg), item))) {
		if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD && (n++, close(item->memfd.fd) < 0))
			return -1;
		if (item->type != KDBUS_ITEM_FDS)
			continue;
		for (i = 0; i < (item->size - 16) / sizeof(int); i++)
			if (n++, close(item->fds[i]) < 0)
				return -1;
	}
	return n;
}

static int take_fds(struct libkdbus *h)
{
	const struct kdbus_msg *msg = fixture_await(h);
	int n = close_all(msg);

	assert_int_equal(libkdbus_done(h, msg), 0);
	return n;
}

static void bus_descriptors(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	int pair[2], own = libkdbus_fd(a);
	struct letter l = with_fds(b, &own, 1);

	assert_int_equal(fixture_send(a, &l), -EOPNOTSUPP);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	l.fds = pair;
	l.n_fds = 2;
	assert_int_equal(fixture_send(a, &l), -EOPNOTSUPP);
	fixture_assert_empty(b);
	close(pair[0]);
	close(pair[1]);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void receiver_does_not_accept(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = connect_without_fds(state);
	int fds[2], memfd = fixture_memfd();
	struct letter l = with_fds(b, fds, 2);
	const struct kdbus_msg *msg;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(fixture_send(a, &l), -ECOMM);
	l.flags = KDBUS_MSG_EXPECT_REPLY;
	l.reply = fixture_deadline(FIXTURE_TIMEOUT_MS);
	assert_int_equal(fixture_call(a, &l, -1, &msg), -ECOMM);
	fixture_assert_empty(b);
	l = (struct letter){ .dst = fixture_id(b), .cookie = 2, .memfds = &memfd, .n_memfds = 1 };
	assert_int_equal(fixture_send(a, &l), 0);
	assert_int_equal(take_fds(b), 1);
	close(memfd);
	close(fds[0]);
	close(fds[1]);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void refused_reply_keeps_the_slot(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	struct letter l = {
		.dst = fixture_id(b), .cookie = 9, .flags = KDBUS_MSG_EXPECT_REPLY, .reply = ~0ULL
	};
	int own = libkdbus_fd(b);

	assert_int_equal(fixture_send(a, &l), 0);
	fixture_expect(b, 9);
	l = with_fds(a, &own, 1);
	l.reply = 9;
	assert_int_equal(fixture_send(b, &l), -EOPNOTSUPP);
	l.n_fds = 0;
	assert_int_equal(fixture_send(b, &l), 0);
	fixture_expect(a, 1);
	libkdbus_close(b);
	libkdbus_close(a);
}

struct caller {
	struct libkdbus *h;
	struct letter letter;
	int r;
};

static void *call(void *arg)
{
	struct caller *c = arg;
	const struct kdbus_msg *msg;

	c->r = fixture_call(c->h, &c->letter, -1, &msg);
	return NULL;
}

static void caller_does_not_accept(void **state)
{
	struct libkdbus *a = connect_without_fds(state), *b = fixture_connect(*state);
	struct caller c = { .h = a,
			    .letter = { .dst = fixture_id(b),
					.cookie = 9,
					.flags = KDBUS_MSG_EXPECT_REPLY,
					.reply = fixture_deadline(FIXTURE_TIMEOUT_MS) } };
	pthread_t thread;
	int fds[2];
	struct letter l = with_fds(a, fds, 2);

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(pthread_create(&thread, NULL, call, &c), 0);
	fixture_expect(b, 9);
	l.reply = 9;
	assert_int_equal(fixture_send(b, &l), -ECOMM);
	pthread_join(thread, NULL);
	assert_int_equal(c.r, -EREMOTEIO);
	l = (struct letter){ .dst = fixture_id(a), .cookie = 3 };
	assert_int_equal(fixture_send(b, &l), 0);
	fixture_expect(a, 3);
	close(fds[0]);
	close(fds[1]);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void broadcast_with_descriptors(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	int memfd = fixture_memfd();
	struct letter l = { .dst = KDBUS_DST_ID_BROADCAST,
			    .flags = KDBUS_MSG_SIGNAL,
			    .bloom = true,
			    .cookie = 1,
			    .fds = &memfd,
			    .n_fds = 1 };

	assert_int_equal(helper_match_all(b), 0);
	assert_int_equal(fixture_send(a, &l), -ENOTUNIQ);
	l.n_fds = 0;
	l.memfds = &memfd;
	l.n_memfds = 1;
	assert_int_equal(fixture_send(a, &l), 0);
	assert_int_equal(take_fds(b), 1);
	close(memfd);
	libkdbus_close(b);
	libkdbus_close(a);
}

static int received_fd(const struct kdbus_msg *msg)
{
	const struct kdbus_item *item = fixture_item(msg, KDBUS_ITEM_FDS);

	assert_non_null(item);
	return item->fds[0];
}

/* A pipe goes through two hands; the number of the closed end is the lowest that is free. */
static void received_number(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	const struct kdbus_msg *msg;
	int fds[2], old;
	struct letter l;
	char text[8] = "";

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	old = fds[0];
	l = with_fds(b, &old, 1);
	assert_int_equal(fixture_send(a, &l), 0);
	close(fds[0]);
	assert_int_equal(write(fds[1], "banana", 6), 6);
	msg = fixture_await(b);
	assert_int_equal(received_fd(msg), old);
	assert_int_equal(fcntl(old, F_GETFD), FD_CLOEXEC);
	assert_int_equal(read(received_fd(msg), text, sizeof(text)), 6);
	assert_string_equal(text, "banana");
	libkdbus_done(b, msg);
	assert_int_equal(fixture_send(a, &l), 0);
	close(old);
	msg = fixture_await(b);
	close(fds[1]);
	assert_int_equal(read(received_fd(msg), text, sizeof(text)), 0);
	close(received_fd(msg));
	libkdbus_done(b, msg);
	assert_int_equal(fixture_send(a, &l), -EBADF);
	libkdbus_close(b);
	libkdbus_close(a);
}

struct many {
	int fds[17];
	int memfds[129];
};

static void many_open(struct many *m)
{
	size_t i;

	m->fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (i = 1; i < 17; i++)
		m->fds[i] = m->fds[0];
	m->memfds[0] = fixture_memfd();
	for (i = 1; i < 129; i++)
		m->memfds[i] = m->memfds[0];
}

static int send_many(struct libkdbus *a, struct libkdbus *b, const struct many *m, size_t n_fds,
		     size_t n_memfds)
{
	const struct letter l = { .dst = fixture_id(b),
				  .cookie = 1,
				  .fds = m->fds,
				  .n_fds = n_fds,
				  .memfds = m->memfds,
				  .n_memfds = n_memfds };

	return fixture_send(a, &l);
}

static void limits(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	struct many m;

	many_open(&m);
	assert_int_equal(send_many(a, b, &m, 17, 0), -EMFILE);
	assert_int_equal(send_many(a, b, &m, 0, 129), -E2BIG);
	assert_int_equal(send_many(a, b, &m, 0, 17), -E2BIG);
	assert_int_equal(send_many(a, b, &m, 17, 10), -EMFILE);
	assert_int_equal(send_many(a, b, &m, 16, 128), -E2BIG);
	assert_int_equal(send_many(a, b, &m, 16, 17), -E2BIG);
	fixture_assert_empty(b);
	assert_int_equal(send_many(a, b, &m, 16, 0), 0);
	assert_int_equal(take_fds(b), 16);
	assert_int_equal(send_many(a, b, &m, 0, 16), 0);
	assert_int_equal(take_fds(b), 16);
	assert_int_equal(send_many(a, b, &m, 16, 16), 0);
	assert_int_equal(take_fds(b), 32);
	close(m.fds[0]);
	close(m.memfds[0]);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void in_flight(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	struct many m;

	many_open(&m);
	assert_int_equal(send_many(a, b, &m, 16, 0), 0);
	assert_int_equal(send_many(a, b, &m, 16, 0), -EMFILE);
	assert_int_equal(send_many(a, b, &m, 0, 16), 0);
	assert_int_equal(take_fds(b), 16);
	assert_int_equal(take_fds(b), 16);
	assert_int_equal(send_many(a, b, &m, 16, 0), 0);
	assert_int_equal(take_fds(b), 16);
	close(m.fds[0]);
	close(m.memfds[0]);
	libkdbus_close(b);
	libkdbus_close(a);
}

/* Nothing is installed by PEEK (ABI 7.11). */
static void peek_installs_nothing(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	struct kdbus_cmd_recv cmd;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const struct letter l = with_fds(b, &fd, 1);

	assert_int_equal(fixture_send(a, &l), 0);
	assert_int_equal(fixture_recv_flags(b, KDBUS_RECV_PEEK, 0, &cmd), 0);
	assert_int_equal(received_fd(fixture_message(b, cmd.msg.offset)), -1);
	assert_int_equal(take_fds(b), 1);
	close(fd);
	libkdbus_close(b);
	libkdbus_close(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(bus_descriptors),
		FIXTURE_TEST(receiver_does_not_accept),
		FIXTURE_TEST(refused_reply_keeps_the_slot),
		FIXTURE_TEST(caller_does_not_accept),
		FIXTURE_TEST(broadcast_with_descriptors),
		FIXTURE_TEST(received_number),
		FIXTURE_TEST(limits),
		FIXTURE_TEST(in_flight),
		FIXTURE_TEST(peek_installs_nothing),
	};

	return FIXTURE_RUN(tests);
}
