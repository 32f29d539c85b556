// SPDX-License-Identifier: LGPL-2.1-or-later
/* Synchronous calls: ABI 15.6. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>

#include "fixture.h"

/* A call in a thread of its own */
struct call {
	struct libkdbus *h;
	struct letter letter;
	int cancel_fd;
	pthread_t thread;
	atomic_int tid;
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

/* The process-wide number of a thread, which its /proc entry goes by */
static void *run_known_call(void *arg)
{
	struct call *c = arg;

	atomic_store(&c->tid, gettid());
	return run_call(c);
}

/* Whether the thread sleeps: only for how it is met, the outcome does not depend on it. */
static bool sleeps(pid_t tid, unsigned long *ret_times)
{
	char path[64], line[128], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	file = fopen(path, "re");
	assert_non_null(file);
	*ret_times = 0;
	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "State: %c", &state);
		sscanf(line, "voluntary_ctxt_switches: %lu", ret_times);
	}
	fclose(file);
	return state == 'S';
}

/* It has gone to sleep for long: it slept, and sleeps still, some looks later. */
static void meet_asleep(const struct call *c)
{
	unsigned long times = 0, before;
	unsigned int same = 0;
	pid_t tid;

	while (!(tid = atomic_load(&c->tid)))
		sched_yield();
	while (same < 30) {
		before = times;
		same = sleeps(tid, &times) && times == before ? same + 1 : 0;
		poll(NULL, 0, 1);
	}
}

/*
 * Where a pair gets a way of its own while the caller sleeps, he has none in the other direction:
 * messages that he passes over must not use up what would wake him for the reply. His call has no
 * deadline.
 */
static void sync_reply_behind_messages(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	const struct letter plain = { .dst = fixture_id(a), .cookie = 7 };
	struct timespec limit = { 0 };
	struct call c = { .h = a, .cancel_fd = -1 };
	unsigned int i;

	c.letter = (struct letter){ .dst = fixture_id(b),
				    .cookie = 0xc0ffee,
				    .flags = KDBUS_MSG_EXPECT_REPLY,
				    .reply = UINT64_MAX };
	assert_int_equal(pthread_create(&c.thread, NULL, run_known_call, &c), 0);
	fixture_expect(b, 0xc0ffee);
	for (i = 0; i < 4; i++) {
		assert_int_equal(fixture_send(b, &plain), 0);
		/* The bus has taken all before this, and what it said is taken up. */
		assert_int_equal(libkdbus_release(b, "org.example.Nobody"), -ESRCH);
		fixture_assert_empty(b);
		meet_asleep(&c);
	}
	assert_int_equal(reply(b, a, 0xc0ffee), 0);
	/* Only ends a hang. */
	limit.tv_sec = time(NULL) + FIXTURE_TIMEOUT_MS / 1000;
	assert_int_equal(pthread_timedjoin_np(c.thread, NULL, &limit), 0);
	assert_int_equal(c.r, 0);
	for (i = 0; i < 4; i++)
		fixture_expect(a, 7);
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
	l.reply = fixture_deadline(5000);
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
		FIXTURE_TEST(sync_reply_behind_messages),
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
