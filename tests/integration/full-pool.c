// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A synchronous call whose caller has no room in its pool for what stands in front of the outcome
 * (doc/lanes.md, "a full pool"): it ends as any other. The calls have no deadline: an outcome that
 * is not seen hangs the test.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <libkdbus.h>

#define POOL  (2u << 20)
#define LARGE 20000
#define NAME  "org.example.Replier"

enum deed {
	DIE_WITH_THE_CALL,
	DIE_BEFORE_THE_CALL,
	REPLY,
	REPLY_AFTER_MORE, /* and so much that an introduction is asked for */
	REPLY_AND_DIE,
	DROP_THE_CALL,
};

/* What is in the caller's way */
enum way {
	HELD_BACK, /* one message that does not fit the pool */
	JAMMED, /* and so many that they do not fit the lane from the daemon either */
};

struct replier {
	pid_t pid;
	uint64_t id;
};

struct fixture {
	struct libkdbus_daemon *daemon;
	struct libkdbus *caller;
	struct replier replier;
};

static char large[LARGE];

static int post(struct libkdbus *h, uint64_t dst, uint64_t reply, size_t size)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(*msg), NULL, 0);
	if (size)
		libkdbus_build_vec(&b, large, size);
	r = libkdbus_build_end(&b, &built);
	if (r < 0)
		return r;
	msg = built;
	msg->dst_id = dst;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	msg->cookie = 1;
	msg->cookie_reply = reply;
	cmd.msg_address = (uintptr_t)msg;
	r = libkdbus_send(h, &cmd);
	libkdbus_build_clear(&b);
	return r;
}

/* ---- the replier: a process ---- */

static void wait_for_work(struct libkdbus *h)
{
	if (libkdbus_wait(h, UINT64_MAX, -1) < 0)
		_exit(5);
}

/* Until there is a message: its offset, with @flags of RECV. */
static uint64_t await_offset(struct libkdbus *h, uint64_t flags)
{
	struct kdbus_cmd_recv cmd = { .size = sizeof(cmd), .flags = flags };
	int r;

	while ((r = libkdbus_recv(h, &cmd)) == -EAGAIN)
		wait_for_work(h);
	if (r < 0)
		_exit(6);
	return cmd.msg.offset;
}

static const struct kdbus_msg *await(struct libkdbus *h)
{
	return (const void *)((const char *)libkdbus_pool(h, NULL) + await_offset(h, 0));
}

/*
 * Until something is said to the connection, which is not taken up. The descriptor may say so once
 * too often.
 */
static void wait_for_news(struct libkdbus *h)
{
	struct pollfd p = { .fd = libkdbus_fd(h), .events = POLLIN };
	struct kdbus_cmd_recv cmd = { .size = sizeof(cmd), .flags = KDBUS_RECV_PEEK };

	while (libkdbus_recv(h, &cmd) == -EAGAIN && poll(&p, 1, 0) == 1)
		;
	while (poll(&p, 1, -1) != 1)
		;
}

static void do_deed(struct libkdbus *h, enum deed deed)
{
	const struct kdbus_msg *call;
	int i;

	if (deed == DIE_BEFORE_THE_CALL) {
		wait_for_news(h);
		_exit(0);
	}
	if (deed == DROP_THE_CALL) {
		await_offset(h, KDBUS_RECV_DROP);
		return;
	}
	call = await(h);
	for (i = 0; deed == REPLY_AFTER_MORE && i < 20; i++)
		if (post(h, call->src_id, 0, 0) < 0)
			_exit(7);
	if (deed != DIE_WITH_THE_CALL && post(h, call->src_id, call->cookie, 0) < 0)
		_exit(8);
	if (deed == DIE_WITH_THE_CALL || deed == REPLY_AND_DIE)
		_exit(0);
}

static void tell_id(struct libkdbus *h, int tell)
{
	uint64_t id = libkdbus_identity(h)->id;

	if (write(tell, &id, sizeof(id)) != sizeof(id))
		_exit(2);
}

/* Be the activator of a name, and take it over oneself when a call waits. */
static void follow_activator(const char *bus, struct libkdbus *h, int tell)
{
	const struct libkdbus_options options = { .flags = KDBUS_HELLO_ACTIVATOR, .name = NAME };
	struct libkdbus *activator;

	if (libkdbus_connect(bus, &options, &activator) < 0)
		_exit(9);
	tell_id(h, tell);
	wait_for_work(activator);
	if (libkdbus_acquire(h, NAME, 0, NULL) < 0)
		_exit(10);
}

/* In the child: answer @calls calls, then do the deed. */
static void run_replier(const char *bus, bool by_name, enum deed deed, int calls, int tell)
{
	const struct kdbus_msg *call;
	struct libkdbus *h;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (libkdbus_connect(bus, NULL, &h) < 0)
		_exit(1);
	if (by_name)
		follow_activator(bus, h, tell);
	else
		tell_id(h, tell);
	while (calls--) {
		call = await(h);
		if (post(h, call->src_id, call->cookie, 0) < 0)
			_exit(3);
		libkdbus_done(h, call);
	}
	do_deed(h, deed);
	for (;;)
		pause();
}

static void start_replier(struct fixture *f, bool by_name, enum deed deed, int calls)
{
	struct replier *b = &f->replier;
	int tell[2];

	assert_int_equal(pipe(tell), 0);
	b->pid = fork();
	assert_true(b->pid >= 0);
	if (!b->pid)
		run_replier(libkdbus_daemon_bus(f->daemon), by_name, deed, calls, tell[1]);
	assert_int_equal(read(tell[0], &b->id, sizeof(b->id)), sizeof(b->id));
	close(tell[0]);
	close(tell[1]);
}

static void stop_replier(struct fixture *f)
{
	int status;

	kill(f->replier.pid, SIGKILL);
	assert_int_equal(waitpid(f->replier.pid, &status, 0), f->replier.pid);
	/* It did as it was told, unless it was still there. */
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
}

/* ---- the caller ---- */

static int set_up(void **state)
{
	const struct libkdbus_options options = { .pool_size = POOL };
	static struct fixture f;

	assert_int_equal(libkdbus_daemon_start(NULL, &f.daemon), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f.daemon), &options, &f.caller), 0);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	stop_replier(f);
	libkdbus_close(f->caller);
	libkdbus_daemon_stop(f->daemon);
	return 0;
}

/* From somebody new each time, so that it comes through the daemon. */
static int post_from_stranger(struct fixture *f)
{
	struct libkdbus *h;
	int r;

	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f->daemon), NULL, &h), 0);
	r = post(h, libkdbus_identity(f->caller)->id, 0, LARGE);
	libkdbus_close(h);
	return r;
}

/* Until the caller, who frees nothing, finds no room for what has come. */
static void fill(struct fixture *f, enum way way)
{
	const struct kdbus_msg *msg;
	int r;

	do {
		assert_int_equal(post_from_stranger(f), 0);
		r = libkdbus_receive(f->caller, &msg);
	} while (r == 0);
	assert_int_equal(r, -EAGAIN);
	while (way == JAMMED && r != -ENOBUFS) {
		r = post_from_stranger(f);
		assert_true(r == 0 || r == -ENOBUFS);
	}
}

static int call(struct fixture *f, const char *name)
{
	const struct kdbus_msg *reply;
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(*msg), NULL, 0);
	if (name)
		libkdbus_build_string(&b, KDBUS_ITEM_DST_NAME, name);
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	msg = built;
	msg->dst_id = name ? 0 : f->replier.id;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	msg->flags = KDBUS_MSG_EXPECT_REPLY;
	msg->timeout_ns = UINT64_MAX;
	/* One number for all: an outcome must not end a later call. */
	msg->cookie = 7;
	r = libkdbus_call(f->caller, msg, -1, &reply);
	if (r == 0)
		libkdbus_done(f->caller, reply);
	libkdbus_build_clear(&b);
	return r;
}

static int outcome(enum deed deed)
{
	return deed == REPLY || deed == REPLY_AFTER_MORE || deed == REPLY_AND_DIE ? 0 : -EPIPE;
}

static void check(struct fixture *f, enum way way, enum deed deed, int calls)
{
	int i;

	start_replier(f, false, deed, calls);
	/* Enough of them, and there is a lane between the two. */
	for (i = 0; i < calls; i++)
		assert_int_equal(call(f, NULL), 0);
	fill(f, way);
	assert_int_equal(call(f, NULL), outcome(deed));
}

#define CASE(test, way, deed, calls)             \
	static void test(void **state)           \
	{                                        \
		check(*state, way, deed, calls); \
	}

CASE(death_with_the_call, HELD_BACK, DIE_WITH_THE_CALL, 0)
CASE(death_with_the_call_direct, HELD_BACK, DIE_WITH_THE_CALL, 20)
CASE(death_with_the_call_jammed, JAMMED, DIE_WITH_THE_CALL, 0)
CASE(death_with_the_call_direct_jammed, JAMMED, DIE_WITH_THE_CALL, 20)
CASE(death_before_the_call, HELD_BACK, DIE_BEFORE_THE_CALL, 0)
CASE(death_before_the_call_direct, HELD_BACK, DIE_BEFORE_THE_CALL, 20)
CASE(death_before_the_call_jammed, JAMMED, DIE_BEFORE_THE_CALL, 0)
CASE(death_before_the_call_direct_jammed, JAMMED, DIE_BEFORE_THE_CALL, 20)
CASE(reply, HELD_BACK, REPLY, 0)
CASE(reply_direct, HELD_BACK, REPLY, 20)
CASE(reply_jammed, JAMMED, REPLY, 0)
CASE(reply_direct_jammed, JAMMED, REPLY, 20)
CASE(reply_over_a_new_introduction, HELD_BACK, REPLY_AFTER_MORE, 0)
CASE(reply_before_death, HELD_BACK, REPLY_AND_DIE, 0)
CASE(reply_before_death_direct, HELD_BACK, REPLY_AND_DIE, 20)
CASE(reply_before_death_jammed, JAMMED, REPLY_AND_DIE, 0)
CASE(reply_before_death_direct_jammed, JAMMED, REPLY_AND_DIE, 20)
CASE(drop, HELD_BACK, DROP_THE_CALL, 0)
CASE(drop_direct, HELD_BACK, DROP_THE_CALL, 20)
CASE(drop_jammed, JAMMED, DROP_THE_CALL, 0)
CASE(drop_direct_jammed, JAMMED, DROP_THE_CALL, 20)

/* The call moves from an activator to who takes its name over meanwhile (§10.6). */
static void check_move(struct fixture *f, enum way way, enum deed deed)
{
	start_replier(f, true, deed, 0);
	fill(f, way);
	assert_int_equal(call(f, NAME), outcome(deed));
}

#define MOVE(test, way, deed)                  \
	static void test(void **state)         \
	{                                      \
		check_move(*state, way, deed); \
	}

MOVE(move_and_reply, HELD_BACK, REPLY)
MOVE(move_and_reply_jammed, JAMMED, REPLY)
MOVE(move_and_drop, HELD_BACK, DROP_THE_CALL)

static void free_all(struct libkdbus *h)
{
	struct kdbus_cmd_recv cmd = { .size = sizeof(cmd) };
	uint64_t offset;
	size_t size;

	libkdbus_pool(h, &size);
	for (offset = 0; offset < size; offset += 8)
		libkdbus_done(h, (const char *)libkdbus_pool(h, NULL) + offset);
	while (libkdbus_recv(h, &cmd) == 0)
		libkdbus_done(h, (const char *)libkdbus_pool(h, NULL) + cmd.msg.offset);
}

/*
 * What is in the way stays, and each outcome behind it: before nothing could come through any more
 * the program is told that it has to free memory first. Then it goes on.
 */
static void calls_without_end(void **state)
{
	struct fixture *f = *state;
	unsigned int n = 0;
	int r;

	start_replier(f, false, REPLY, 1000);
	fill(f, JAMMED);
	while ((r = call(f, NULL)) == 0 && n < 900)
		n++;
	assert_true(n > 0);
	assert_int_equal(r, -EXFULL);
	free_all(f->caller);
	assert_int_equal(call(f, NULL), 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(death_with_the_call),
		TEST(death_with_the_call_direct),
		TEST(death_with_the_call_jammed),
		TEST(death_with_the_call_direct_jammed),
		TEST(death_before_the_call),
		TEST(death_before_the_call_direct),
		TEST(death_before_the_call_jammed),
		TEST(death_before_the_call_direct_jammed),
		TEST(reply),
		TEST(reply_direct),
		TEST(reply_jammed),
		TEST(reply_direct_jammed),
		TEST(reply_over_a_new_introduction),
		TEST(reply_before_death),
		TEST(reply_before_death_direct),
		TEST(reply_before_death_jammed),
		TEST(reply_before_death_direct_jammed),
		TEST(drop),
		TEST(drop_direct),
		TEST(drop_jammed),
		TEST(drop_direct_jammed),
		TEST(move_and_reply),
		TEST(move_and_reply_jammed),
		TEST(move_and_drop),
		TEST(calls_without_end),
	};

	return cmocka_run_group_tests_name("a full pool", tests, NULL, NULL);
}
