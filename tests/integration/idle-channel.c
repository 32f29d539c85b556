// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Channels that nobody uses any more are closed by agreement, and made again when there is a use
 * for them (lane/lane.h, end of a channel). What is idle is told by the number of messages to
 * others. Linked with the objects of the library, to see its channels.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "user/user.h"

#define MANY	 20000 /* messages: much more than a channel has to be idle for */
#define LARGE	 200000
#define ATTEMPTS 1000

struct fixture {
	struct libkdbus_daemon *daemon;
	struct libkdbus *a, *b, *other;
	uint64_t cookie;
};

static char large[LARGE];

static uint64_t id_of(struct libkdbus *h)
{
	return libkdbus_identity(h)->id;
}

static int try_post(struct fixture *f, struct libkdbus *from, struct libkdbus *to, uint64_t flags,
		    uint64_t reply, size_t size)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(*msg), NULL, 0);
	if (size)
		libkdbus_build_vec(&b, large, size);
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	msg = built;
	msg->dst_id = id_of(to);
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	msg->flags = flags;
	msg->cookie = ++f->cookie;
	if (flags)
		msg->timeout_ns = UINT64_MAX;
	else
		msg->cookie_reply = reply;
	cmd.msg_address = (uintptr_t)msg;
	r = libkdbus_send(from, &cmd);
	libkdbus_build_clear(&b);
	return r;
}

static void post(struct fixture *f, struct libkdbus *from, struct libkdbus *to)
{
	assert_int_equal(try_post(f, from, to, 0, 0, 0), 0);
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

/* The next message is the one sent last. */
static void take(struct fixture *f, struct libkdbus *h)
{
	const struct kdbus_msg *msg = await(h);

	assert_int_equal(msg->cookie, f->cookie);
	libkdbus_done(h, msg);
}

static struct peer *peer_at(struct libkdbus *h, struct libkdbus *other)
{
	return peer_find(to_user(h), id_of(other));
}

static bool direct(struct libkdbus *h, struct libkdbus *other)
{
	const struct peer *p = peer_at(h, other);

	return p && p->state == PEER_DIRECT;
}

static bool without_channel(struct libkdbus *h, struct libkdbus *other)
{
	const struct peer *p = peer_at(h, other);

	return !p || (p->state == PEER_RELAYED && !p->looked && p->channel.sock < 0);
}

/* Take up what was said to it, without a message in it. */
static void look(struct libkdbus *h)
{
	const struct kdbus_msg *msg;

	assert_int_equal(libkdbus_receive(h, &msg), -EAGAIN);
}

static void meet(struct fixture *f, struct libkdbus *from, struct libkdbus *to)
{
	/* The daemon may put it off, for seconds at most. */
	while (!(direct(from, to) && direct(to, from))) {
		post(f, from, to);
		take(f, to);
	}
}

static void talk_to_others(struct fixture *f, struct libkdbus *h)
{
	unsigned int i;

	for (i = 0; i < MANY; i++) {
		post(f, h, f->other);
		take(f, f->other);
	}
}

static int set_up(void **state)
{
	static struct fixture f;

	assert_int_equal(libkdbus_daemon_start(NULL, &f.daemon), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f.daemon), NULL, &f.a), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f.daemon), NULL, &f.b), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f.daemon), NULL, &f.other), 0);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	libkdbus_close(f->other);
	libkdbus_close(f->b);
	libkdbus_close(f->a);
	libkdbus_daemon_stop(f->daemon);
	return 0;
}

/* Both have to look once or twice to come to an agreement. */
static void agree(struct fixture *f)
{
	unsigned int i;

	for (i = 0; i < 4; i++) {
		look(f->b);
		look(f->a);
	}
}

static void check_closed(struct fixture *f)
{
	assert_true(without_channel(f->a, f->b));
	assert_true(without_channel(f->b, f->a));
	assert_true(list_empty(&to_user(f->a)->detached));
	assert_true(list_empty(&to_user(f->b)->detached));
}

static void closed_and_made_again(void **state)
{
	struct fixture *f = *state;
	int i;

	for (i = 0; i < 3; i++) {
		meet(f, f->a, f->b);
		talk_to_others(f, f->a);
		agree(f);
		check_closed(f);
		assert_true(direct(f->a, f->other));
		/* The descriptors have nothing more to say. */
		assert_int_equal(libkdbus_wait(f->a, 0, -1), -ETIMEDOUT);
		assert_int_equal(libkdbus_wait(f->b, 0, -1), -ETIMEDOUT);
	}
	meet(f, f->b, f->a);
}

/* Whoever was introduced and has said and taken nothing has no lane. */
static void closed_by_who_only_ever_received(void **state)
{
	struct fixture *f = *state;

	meet(f, f->a, f->b);
	talk_to_others(f, f->b);
	agree(f);
	check_closed(f);
	meet(f, f->a, f->b);
}

static void both_at_once(void **state)
{
	struct fixture *f = *state;

	meet(f, f->a, f->b);
	meet(f, f->b, f->a);
	talk_to_others(f, f->a);
	talk_to_others(f, f->b);
	agree(f);
	check_closed(f);
	meet(f, f->a, f->b);
}

static void an_open_call_keeps_it(void **state)
{
	struct fixture *f = *state;
	const struct kdbus_msg *call;

	meet(f, f->a, f->b);
	assert_int_equal(try_post(f, f->a, f->b, KDBUS_MSG_EXPECT_REPLY, 0, 0), 0);
	call = await(f->b);
	talk_to_others(f, f->a);
	talk_to_others(f, f->b);
	agree(f);
	assert_true(direct(f->a, f->b) && direct(f->b, f->a));
	assert_int_equal(try_post(f, f->b, f->a, 0, call->cookie, 0), 0);
	libkdbus_done(f->b, call);
	take(f, f->a);
	talk_to_others(f, f->a);
	agree(f);
	check_closed(f);
}

/* A call that is just under way when the end is agreed on is answered through the daemon. */
static void a_call_under_way_is_answered(void **state)
{
	struct fixture *f = *state;
	const struct kdbus_msg *call;
	uint64_t cookie;

	meet(f, f->a, f->b);
	/* Now a asks for the end, and b has not seen it. */
	talk_to_others(f, f->a);
	assert_true(direct(f->b, f->a));
	assert_int_equal(try_post(f, f->b, f->a, KDBUS_MSG_EXPECT_REPLY, 0, 0), 0);
	cookie = f->cookie;
	call = await(f->a);
	agree(f);
	check_closed(f);
	assert_int_equal(try_post(f, f->a, f->b, 0, cookie, 0), 0);
	libkdbus_done(f->a, call);
	take(f, f->b);
}

/* a has let go of the channel, and b has not seen that; unless it looked in between. */
static bool half_closed(struct fixture *f)
{
	meet(f, f->a, f->b);
	/* To take it b needs a lane of its own. */
	post(f, f->a, f->b);
	take(f, f->b);
	talk_to_others(f, f->b);
	/* a agrees, b too, a has both ends and lets go; b looks when there is much to be seen. */
	look(f->a);
	look(f->b);
	look(f->a);
	return without_channel(f->a, f->b) && !without_channel(f->b, f->a);
}

/* While the one side has not seen the end of the old channel, the other asks for a new one. */
static void introduced_again_before_the_end_is_seen(void **state)
{
	struct fixture *f = *state;
	uint64_t first, i;

	for (i = 0; i < ATTEMPTS && !half_closed(f); i++)
		;
	assert_true(i < ATTEMPTS);
	first = f->cookie + 1;
	for (i = 0; i < 100; i++)
		post(f, f->a, f->b);
	assert_true(direct(f->a, f->b));
	for (i = 0; i < 100; i++) {
		const struct kdbus_msg *msg = await(f->b);

		assert_int_equal(msg->cookie, first + i);
		libkdbus_done(f->b, msg);
	}
	assert_true(direct(f->b, f->a));
	look(f->b);
	assert_true(list_empty(&to_user(f->b)->detached));
	meet(f, f->b, f->a);
}

/* It lies in a buffer of the channel that ends: that stays as long as the message. */
static void a_message_read_in_place_stays(void **state)
{
	struct fixture *f = *state;
	const struct kdbus_item *item;
	const struct kdbus_msg *msg;
	const void *data;
	size_t size;

	memset(large, 'x', sizeof(large));
	meet(f, f->b, f->a);
	meet(f, f->a, f->b);
	assert_int_equal(try_post(f, f->a, f->b, 0, 0, sizeof(large)), 0);
	msg = await(f->b);
	assert_int_equal(lane_bulk_held(&peer_at(f->b, f->a)->channel), 1);
	talk_to_others(f, f->a);
	agree(f);
	check_closed(f);
	item = libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_PAYLOAD_OFF);
	assert_non_null(item);
	assert_int_equal(libkdbus_payload(f->b, msg, item, &data, &size), 0);
	assert_int_equal(size, sizeof(large));
	assert_memory_equal(data, large, sizeof(large));
	/* Also beside the next channel. */
	meet(f, f->a, f->b);
	assert_int_equal(try_post(f, f->a, f->b, 0, 0, sizeof(large)), 0);
	libkdbus_done(f->b, await(f->b));
	assert_memory_equal(data, large, sizeof(large));
	libkdbus_done(f->b, msg);
}

static void an_end_after_the_agreement_is_told(void **state)
{
	struct fixture *f = *state;
	const struct kdbus_msg *msg;

	meet(f, f->a, f->b);
	talk_to_others(f, f->a);
	agree(f);
	check_closed(f);
	assert_int_equal(try_post(f, f->a, f->b, KDBUS_MSG_EXPECT_REPLY, 0, 0), 0);
	libkdbus_close(f->b);
	msg = await(f->a);
	assert_int_equal(msg->items[0].type, KDBUS_ITEM_REPLY_DEAD);
	assert_int_equal(msg->cookie_reply, f->cookie);
	libkdbus_done(f->a, msg);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f->daemon), NULL, &f->b), 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(closed_and_made_again),
		TEST(closed_by_who_only_ever_received),
		TEST(both_at_once),
		TEST(an_open_call_keeps_it),
		TEST(a_call_under_way_is_answered),
		TEST(introduced_again_before_the_end_is_seen),
		TEST(a_message_read_in_place_stays),
		TEST(an_end_after_the_agreement_is_told),
	};

	return cmocka_run_group_tests_name("idle channels", tests, NULL, NULL);
}
