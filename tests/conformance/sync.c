// SPDX-License-Identifier: LGPL-2.1-or-later
/* Synchronous calls: ABI 15.6. */
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "fixture.h"

/* A call in a thread of its own */
struct call {
	struct libkdbus *h;
	struct letter letter;
	int cancel_fd;
	pthread_t thread;
	int r;
	uint64_t answer; /* cookie of the reply */
};

static void *run_call(void *arg)
{
	struct call *c = arg;
	const struct kdbus_msg *reply;

	c->r = fixture_call(c->h, &c->letter, c->cancel_fd, &reply);
	if (c->r == 0) {
		c->answer = reply->cookie;
		libkdbus_done(c->h, reply);
	}
	return NULL;
}

static void call_start(struct call *c, struct libkdbus *from, struct libkdbus *to, int cancel_fd)
{
	*c = (struct call){ .h = from, .cancel_fd = cancel_fd };
	c->letter = (struct letter){ .dst = fixture_id(to),
				     .cookie = 0xc0ffee,
				     .flags = KDBUS_MSG_EXPECT_REPLY,
				     .reply = fixture_deadline(FIXTURE_TIMEOUT_MS) };
	assert_int_equal(pthread_create(&c->thread, NULL, run_call, c), 0);
}

static int call_end(struct call *c)
{
	assert_int_equal(pthread_join(c->thread, NULL), 0);
	return c->r;
}

static int reply(struct libkdbus *from, struct libkdbus *to, uint64_t cookie_reply)
{
	const struct letter l = { .dst = fixture_id(to), .cookie = 5, .reply = cookie_reply };

	return fixture_send(from, &l);
}

static void sync_reply(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	struct call c;

	call_start(&c, a, b, -1);
	fixture_expect(b, 0xc0ffee);
	assert_int_equal(reply(b, a, 0xbad), -EBADSLT);
	assert_int_equal(reply(b, a, 0xc0ffee), 0);
	assert_int_equal(call_end(&c), 0);
	assert_int_equal(c.answer, 5);
	/* The reply is no message in the queue, and there is no second one. */
	fixture_assert_empty(a);
	assert_int_equal(reply(b, a, 0xc0ffee), -EBADSLT);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void sync_replier_closes(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	struct call c;

	call_start(&c, a, b, -1);
	fixture_expect(b, 0xc0ffee);
	libkdbus_close(b);
	assert_int_equal(call_end(&c), -EPIPE);
	fixture_assert_empty(a);
	libkdbus_close(a);
}

static void sync_replier_drops(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	struct kdbus_cmd_recv cmd;
	struct call c;

	call_start(&c, a, b, -1);
	fixture_await_queued(b);
	assert_int_equal(fixture_recv_flags(b, KDBUS_RECV_DROP, 0, &cmd), 0);
	assert_int_equal(call_end(&c), -EPIPE);
	fixture_assert_empty(a);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void sync_cancel(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	int fd = eventfd(0, EFD_CLOEXEC), r;
	struct call c;

	call_start(&c, a, b, fd);
	fixture_expect(b, 0xc0ffee);
	assert_int_equal(eventfd_write(fd, 1), 0);
	assert_int_equal(call_end(&c), -ECANCELED);
	/* Whether the replier learns that it is too late is up to the engine; nobody gets it. */
	r = reply(b, a, 0xc0ffee);
	assert_true(r == -EBADSLT || r == 0);
	fixture_assert_empty(a);
	close(fd);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void sync_not_cancelled(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	int fd = eventfd(0, EFD_CLOEXEC);
	struct call c;

	call_start(&c, a, b, fd);
	fixture_expect(b, 0xc0ffee);
	assert_int_equal(reply(b, a, 0xc0ffee), 0);
	assert_int_equal(call_end(&c), 0);
	close(fd);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void sync_deadline(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	struct letter l = { .dst = fixture_id(b), .cookie = 3, .flags = KDBUS_MSG_EXPECT_REPLY };
	const struct kdbus_msg *msg;

	l.reply = 1;
	assert_int_equal(fixture_call(a, &l, -1, &msg), -ETIMEDOUT);
	fixture_assert_empty(b);
	l.reply = fixture_deadline(1000);
	assert_int_equal(fixture_call(a, &l, -1, &msg), -ETIMEDOUT);
	fixture_expect(b, 3);
	fixture_assert_empty(a);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void sync_byebye_of_the_caller(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	struct call c;

	call_start(&c, a, b, -1);
	fixture_expect(b, 0xc0ffee);
	assert_int_equal(fixture_byebye(a), 0);
	assert_int_equal(call_end(&c), -ECONNRESET);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void sync_byebye_of_the_replier(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	struct call c;

	call_start(&c, a, b, -1);
	fixture_expect(b, 0xc0ffee);
	assert_int_equal(fixture_byebye(b), 0);
	assert_int_equal(call_end(&c), -EPIPE);
	libkdbus_close(b);
	libkdbus_close(a);
}

/* ---- interrupted ---- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	interrupted = 1;
}

struct interrupted_call {
	const struct fixture *f;
	uint64_t to;
};

/*
 * The handler asks for a restart. An engine without restarts says EINTR: then the program repeats
 * the call itself, with the same cookie, and the engine goes on with the one under way.
 */
static int call_and_be_interrupted(struct companion *self, void *arg)
{
	const struct interrupted_call *i = arg;
	struct sigaction sa = { .sa_handler = on_interrupt, .sa_flags = SA_RESTART };
	struct libkdbus *h = fixture_connect(i->f);
	struct letter l = { .dst = i->to, .cookie = 0xabc, .flags = KDBUS_MSG_EXPECT_REPLY };
	const struct kdbus_msg *msg;
	int r;

	sigaction(SIGINT, &sa, NULL);
	companion_meet(self);
	l.reply = fixture_deadline(4000);
	do {
		r = fixture_call(h, &l, -1, &msg);
	} while (r == -EINTR);
	assert_int_equal(r, -ETIMEDOUT);
	assert_true(interrupted);
	libkdbus_close(h);
	return 0;
}

static void sync_interrupted(void **state)
{
	struct libkdbus *b = fixture_connect(*state);
	struct interrupted_call i = { *state, fixture_id(b) };
	struct companion c;

	companion_start(&c, geteuid(), call_and_be_interrupted, &i);
	companion_meet(&c);
	fixture_expect(b, 0xabc);
	assert_int_equal(kill(c.pid, SIGINT), 0);
	assert_int_equal(companion_end(&c), 0);
	fixture_assert_empty(b);
	libkdbus_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(sync_reply),
		FIXTURE_TEST(sync_replier_closes),
		FIXTURE_TEST(sync_replier_drops),
		FIXTURE_TEST(sync_cancel),
		FIXTURE_TEST(sync_not_cancelled),
		FIXTURE_TEST(sync_deadline),
		FIXTURE_TEST(sync_byebye_of_the_caller),
		FIXTURE_TEST(sync_byebye_of_the_replier),
		FIXTURE_TEST(sync_interrupted),
	};

	return FIXTURE_RUN(tests);
}
