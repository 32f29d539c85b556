// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Calls that lie unread at a service when it gives its name back to the activator (§10.6,
 * doc/compat.md): it answers them, or it ends, and whoever the activator starts next answers them.
 * They have no deadline: an outcome that is lost hangs the test.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <libkdbus.h>

#define NAME "org.example.Leaving"

struct fixture {
	struct libkdbus_daemon *daemon;
	struct libkdbus *activator, *service, *caller;
};

static struct libkdbus *join(struct fixture *f, const struct libkdbus_options *options)
{
	struct libkdbus *h;

	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f->daemon), options, &h), 0);
	return h;
}

static int set_up(void **state)
{
	const struct libkdbus_options options = { .flags = KDBUS_HELLO_ACTIVATOR, .name = NAME };
	static struct fixture f;

	assert_int_equal(libkdbus_daemon_start(NULL, &f.daemon), 0);
	f.activator = join(&f, &options);
	f.service = join(&f, NULL);
	f.caller = join(&f, NULL);
	assert_int_equal(libkdbus_acquire(f.service, NAME, 0, NULL), 0);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	libkdbus_close(f->caller);
	libkdbus_close(f->service);
	libkdbus_close(f->activator);
	libkdbus_daemon_stop(f->daemon);
	return 0;
}

static void post(struct libkdbus *h, uint64_t dst, uint64_t cookie, uint64_t reply)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	void *built;

	libkdbus_build(&b, sizeof(*msg), NULL, 0);
	if (!dst)
		libkdbus_build_string(&b, KDBUS_ITEM_DST_NAME, NAME);
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	msg = built;
	msg->dst_id = dst;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	msg->cookie = cookie;
	msg->cookie_reply = reply;
	if (!reply) {
		msg->flags = KDBUS_MSG_EXPECT_REPLY;
		msg->timeout_ns = UINT64_MAX;
	}
	cmd.msg_address = (uintptr_t)msg;
	assert_int_equal(libkdbus_send(h, &cmd), 0);
	libkdbus_build_clear(&b);
}

static const struct kdbus_msg *await(struct libkdbus *h)
{
	const struct kdbus_msg *msg;
	int r;

	while ((r = libkdbus_receive(h, &msg)) == -EAGAIN)
		assert_int_equal(libkdbus_wait(h, UINT64_MAX, -1), 0);
	assert_int_equal(r, 0);
	return msg;
}

static void answer(struct libkdbus *h, uint64_t cookie)
{
	const struct kdbus_msg *call = await(h);

	assert_int_equal(call->cookie, cookie);
	post(h, call->src_id, 1, call->cookie);
	libkdbus_done(h, call);
}

static void expect_reply(struct libkdbus *h, uint64_t cookie)
{
	const struct kdbus_msg *reply = await(h);

	assert_true(reply->src_id != KDBUS_SRC_ID_KERNEL);
	assert_int_equal(reply->cookie_reply, cookie);
	libkdbus_done(h, reply);
}

/* After some calls there are lanes between the two. */
static void meet(struct fixture *f, unsigned int calls)
{
	while (calls--) {
		post(f->caller, 0, 100, 0);
		answer(f->service, 100);
		expect_reply(f->caller, 100);
	}
}

/* In their order: some after the name was given back, some as messages under way. */
static void check_service_answers(struct fixture *f, unsigned int before)
{
	meet(f, before);
	post(f->caller, 0, 1, 0);
	post(f->caller, 0, 2, 0);
	assert_int_equal(libkdbus_release(f->service, NAME), 0);
	answer(f->service, 1);
	answer(f->service, 2);
	expect_reply(f->caller, 1);
	expect_reply(f->caller, 2);
}

static void service_answers(void **state)
{
	check_service_answers(*state, 0);
}

static void service_answers_directly(void **state)
{
	check_service_answers(*state, 20);
}

/*
 * Until the first call is back at the activator. The caller has its part in that: it hands back
 * what it had sent directly.
 */
static void await_return(struct fixture *f)
{
	struct kdbus_cmd_recv peek = { .size = sizeof(peek), .flags = KDBUS_RECV_PEEK };
	struct pollfd p[2] = { { .fd = libkdbus_fd(f->activator), .events = POLLIN },
			       { .fd = libkdbus_fd(f->caller), .events = POLLIN } };
	const struct kdbus_msg *msg;

	while (libkdbus_recv(f->activator, &peek) == -EAGAIN) {
		assert_int_equal(libkdbus_receive(f->caller, &msg), -EAGAIN);
		assert_true(poll(p, 2, -1) > 0);
	}
	assert_int_equal(
		libkdbus_done(f->activator,
			      (const char *)libkdbus_pool(f->activator, NULL) + peek.msg.offset),
		0);
}

static void check_next_answers(struct fixture *f, unsigned int before)
{
	struct libkdbus *next = join(f, NULL);

	meet(f, before);
	post(f->caller, 0, 1, 0);
	post(f->caller, 0, 2, 0);
	assert_int_equal(libkdbus_release(f->service, NAME), 0);
	libkdbus_close(f->service);
	f->service = next;
	await_return(f);
	assert_int_equal(libkdbus_acquire(next, NAME, 0, NULL), 0);
	answer(next, 1);
	answer(next, 2);
	expect_reply(f->caller, 1);
	expect_reply(f->caller, 2);
}

static void the_next_service_answers(void **state)
{
	check_next_answers(*state, 0);
}

/* What lies in the lane between the two comes back from the caller's side. */
static void the_next_service_answers_what_was_sent_directly(void **state)
{
	check_next_answers(*state, 20);
}

static void expect_death(struct libkdbus *h, uint64_t cookie)
{
	const struct kdbus_msg *notice = await(h);

	assert_int_equal(notice->src_id, KDBUS_SRC_ID_KERNEL);
	assert_int_equal(notice->items[0].type, KDBUS_ITEM_REPLY_DEAD);
	assert_int_equal(notice->cookie_reply, cookie);
	libkdbus_done(h, notice);
}

/* What lies in its pool, as after a choice by priority, cannot go back: nobody answers it. */
static void check_taken_up(struct fixture *f, unsigned int before)
{
	struct kdbus_cmd_recv peek = { .size = sizeof(peek),
				       .flags = KDBUS_RECV_PEEK | KDBUS_RECV_USE_PRIORITY };

	meet(f, before);
	post(f->caller, 0, 1, 0);
	post(f->caller, 0, 2, 0);
	assert_int_equal(libkdbus_recv(f->service, &peek), 0);
	assert_int_equal(libkdbus_release(f->service, NAME), 0);
	libkdbus_close(f->service);
	f->service = join(f, NULL);
	expect_death(f->caller, 1);
	expect_death(f->caller, 2);
}

static void what_is_in_the_pool_is_dead(void **state)
{
	check_taken_up(*state, 0);
}

static void what_came_directly_and_is_in_the_pool_is_dead(void **state)
{
	check_taken_up(*state, 20);
}

/* Somebody else has the name by then: the call was not his, and is dead. */
static void a_service_that_ends_after_another_has_the_name(void **state)
{
	struct fixture *f = *state;
	struct libkdbus *next = join(f, NULL);

	post(f->caller, 0, 1, 0);
	assert_int_equal(libkdbus_release(f->service, NAME), 0);
	assert_int_equal(libkdbus_acquire(next, NAME, 0, NULL), 0);
	libkdbus_close(f->service);
	f->service = next;
	expect_death(f->caller, 1);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(service_answers),
		TEST(service_answers_directly),
		TEST(the_next_service_answers),
		TEST(the_next_service_answers_what_was_sent_directly),
		TEST(what_is_in_the_pool_is_dead),
		TEST(what_came_directly_and_is_in_the_pool_is_dead),
		TEST(a_service_that_ends_after_another_has_the_name),
	};

	return cmocka_run_group_tests_name("release to an activator", tests, NULL, NULL);
}
