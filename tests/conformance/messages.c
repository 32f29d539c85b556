// SPDX-License-Identifier: LGPL-2.1-or-later
/* Messages: ABI 15.5, but for descriptors (fds.c) and quota (quota.c); chat of 15.3. */
#include <poll.h>

#include "fixture.h"

static void message_basic(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	struct letter l = { .dst = fixture_id(b), .cookie = 2, .flags = KDBUS_MSG_EXPECT_REPLY };

	assert_int_equal(helper_match_all(a), 0);
	assert_int_equal(helper_match_all(b), 0);
	assert_int_equal(fixture_broadcast(a, 1), 0);
	fixture_expect(a, 1);
	fixture_expect(b, 1);
	assert_int_equal(fixture_send(a, &l), -EINVAL);
	l.flags = 0;
	l.reply = 999;
	assert_int_equal(fixture_send(a, &l), -EBADSLT);
	fixture_assert_empty(b);
	libkdbus_close(b);
	libkdbus_close(a);
}

static const struct kdbus_item *nth(const struct kdbus_msg *msg, unsigned int n)
{
	const struct kdbus_item *item = NULL;

	do {
		item = libkdbus_item_next(msg, sizeof(*msg), item);
	} while (item && n--);
	assert_non_null(item);
	return item;
}

/* The default message arrives as it was sent. */
static void message_content(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	const struct kdbus_msg *msg;
	const void *at;
	size_t size;

	assert_int_equal(fixture_send_default(a, fixture_id(b), NULL, 0xc0000ce), 0);
	msg = fixture_await(b);
	assert_int_equal(msg->cookie, 0xc0000ce);
	assert_int_equal(msg->src_id, fixture_id(a));
	assert_int_equal(msg->dst_id, fixture_id(b));
	assert_int_equal(nth(msg, 0)->type, KDBUS_ITEM_PAYLOAD_OFF);
	assert_int_equal(nth(msg, 0)->vec.size, 131075);
	assert_int_equal(nth(msg, 1)->vec.size, 5);
	assert_int_equal(nth(msg, 1)->vec.offset, ~0ULL);
	assert_int_equal(libkdbus_payload(b, msg, nth(msg, 2), &at, &size), 0);
	assert_int_equal(size, 13);
	assert_memory_equal(at, "last 13 bytes", 13);
	assert_int_equal(nth(msg, 3)->type, KDBUS_ITEM_PAYLOAD_MEMFD);
	assert_int_equal(libkdbus_payload(b, msg, nth(msg, 3), &at, &size), 0);
	assert_int_equal(size, 16);
	assert_memory_equal(at, "kdbus memfd 1234", 16);
	close(nth(msg, 3)->memfd.fd);
	assert_int_equal(libkdbus_done(b, msg), 0);
	libkdbus_close(b);
	libkdbus_close(a);
}

static int recv_priority(struct libkdbus *h, int64_t threshold, int64_t *ret)
{
	struct kdbus_cmd_recv cmd;
	int r = fixture_recv_flags(h, KDBUS_RECV_USE_PRIORITY, threshold, &cmd);

	if (r < 0)
		return r;
	*ret = fixture_message(h, cmd.msg.offset)->priority;
	assert_int_equal(fixture_free(h, cmd.msg.offset), 0);
	return 0;
}

static void assert_priority(struct libkdbus *h, int64_t threshold, int64_t priority)
{
	int64_t got = 0;

	assert_int_equal(recv_priority(h, threshold, &got), 0);
	assert_int_equal(got, priority);
}

static void message_prio(void **state)
{
	static const int64_t sent[] = {
		25, -600, 10, -35, -100, 20, -15, -800, -150, 10, -800, -10
	};
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	struct letter l = { .dst = fixture_id(b) };
	int64_t got;
	size_t i;

	for (i = 0; i < sizeof(sent) / sizeof(*sent); i++) {
		l.cookie = i + 1;
		l.priority = sent[i];
		assert_int_equal(fixture_send(a, &l), 0);
	}
	assert_priority(b, -200, -800);
	assert_priority(b, -100, -800);
	assert_priority(b, -400, -600);
	assert_int_equal(recv_priority(b, -400, &got), -EAGAIN);
	assert_priority(b, 10, -150);
	assert_priority(b, 10, -100);
	/* The rest in the order of arrival */
	fixture_expect(b, 1);
	fixture_expect(b, 3);
	assert_int_equal(fixture_drain(b), 5);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void memory_access(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	const struct letter l = { .dst = fixture_id(b),
				  .cookie = 1,
				  .data = (const void *)(uintptr_t)0xffffffffff600000ULL,
				  .size = 8 };

	assert_int_equal(fixture_send(a, &l), -EFAULT);
	fixture_assert_empty(b);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void timeout(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	const struct kdbus_msg *msg;
	struct letter l = { .dst = fixture_id(b), .flags = KDBUS_MSG_EXPECT_REPLY };
	unsigned int i;

	for (i = 1; i <= 4; i++) {
		l.cookie = i;
		l.reply = fixture_deadline(4900 + i * 100);
		assert_int_equal(fixture_send(a, &l), 0);
	}
	for (i = 1; i <= 4; i++) {
		msg = fixture_await(a);
		assert_int_equal(msg->payload_type, KDBUS_PAYLOAD_KERNEL);
		assert_int_equal(msg->src_id, KDBUS_SRC_ID_KERNEL);
		assert_int_equal(msg->dst_id, fixture_id(a));
		assert_int_equal(msg->cookie_reply, i);
		assert_int_equal(msg->items[0].type, KDBUS_ITEM_REPLY_TIMEOUT);
		assert_int_equal(libkdbus_done(a, msg), 0);
	}
	/* An answer now is one that nobody expects. */
	fixture_expect(b, 1);
	l = (struct letter){ .dst = fixture_id(a), .reply = 1 };
	assert_int_equal(fixture_send(b, &l), -EBADSLT);
	libkdbus_close(b);
	libkdbus_close(a);
}

static bool next_has(struct libkdbus *from, struct libkdbus *to, uint64_t type)
{
	const struct letter l = { .dst = fixture_id(to), .cookie = 1 };
	const struct kdbus_msg *msg;
	bool found;

	assert_int_equal(fixture_send(from, &l), 0);
	msg = fixture_await(to);
	found = fixture_item(msg, type);
	assert_int_equal(libkdbus_done(to, msg), 0);
	return found;
}

static void connection_update(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	const uint64_t recv = KDBUS_ITEM_ATTACH_FLAGS_RECV, send = KDBUS_ITEM_ATTACH_FLAGS_SEND;
	const uint64_t all = _KDBUS_ATTACH_ALL;

	assert_true(next_has(a, b, KDBUS_ITEM_TIMESTAMP));
	assert_int_equal(fixture_update_mask(b, recv, all & ~KDBUS_ATTACH_TIMESTAMP), 0);
	assert_false(next_has(a, b, KDBUS_ITEM_TIMESTAMP));
	assert_true(next_has(a, b, KDBUS_ITEM_CREDS));
	assert_int_equal(fixture_update_mask(b, recv, all), 0);
	assert_true(next_has(a, b, KDBUS_ITEM_TIMESTAMP));
	assert_int_equal(fixture_update_mask(b, send, all + 1), -EINVAL);
	assert_int_equal(fixture_update_mask(b, recv, all + 1), -EINVAL);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void list_all(struct libkdbus *h)
{
	struct kdbus_cmd_list cmd;

	assert_int_equal(fixture_list(h, KDBUS_LIST_UNIQUE | KDBUS_LIST_NAMES, &cmd), 0);
	assert_int_equal(fixture_free(h, cmd.offset), 0);
}

static void pass_ball(struct libkdbus *from, struct libkdbus *to, uint64_t cookie)
{
	assert_int_equal(fixture_send_default(from, fixture_id(to), NULL, cookie), 0);
	list_all(from);
	fixture_await_queued(to);
	fixture_expect(to, cookie);
}

static void chat(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	const char *name = "foo.bar.test", *other = "foo.bar.baz";
	uint64_t flags, cookie;

	assert_int_equal(libkdbus_acquire(a, name, KDBUS_NAME_ALLOW_REPLACEMENT, NULL), 0);
	assert_int_equal(libkdbus_acquire(a, other, 0, NULL), 0);
	assert_int_equal(libkdbus_acquire(b, other, KDBUS_NAME_QUEUE, NULL), 0);
	assert_int_equal(libkdbus_acquire(a, other, 0, &flags), 0);
	assert_false(flags & KDBUS_NAME_ACQUIRED);
	assert_int_equal(libkdbus_release(a, other), 0);
	assert_int_equal(libkdbus_release(a, other), -EADDRINUSE);
	assert_int_equal(libkdbus_release(b, other), 0);
	assert_int_equal(libkdbus_release(b, other), -ESRCH);
	assert_int_equal(helper_match_all(a), 0);
	assert_int_equal(helper_match_all(b), 0);
	assert_int_equal(fixture_broadcast(a, 1), 0);
	fixture_expect(a, 1);
	fixture_expect(b, 1);
	for (cookie = 2; cookie < 200; cookie += 2) {
		pass_ball(a, b, cookie);
		pass_ball(b, a, cookie + 1);
	}
	libkdbus_close(b);
	libkdbus_close(a);
}

/* As the benchmark does it: a payload and a memfd, or only the payload */
static void exchange(void **state, bool memfds)
{
	static char data[8192];
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	struct letter l = { .dst = fixture_id(b), .data = data, .size = sizeof(data) };
	const struct kdbus_msg *msg;
	const struct kdbus_item *item;
	int fd;

	for (l.cookie = 1; l.cookie <= 500; l.cookie++) {
		fd = memfds ? fixture_memfd() : -1;
		l.memfds = &fd;
		l.n_memfds = memfds;
		assert_int_equal(fixture_send(a, &l), 0);
		if (fd >= 0)
			close(fd);
		msg = fixture_await(b);
		assert_int_equal(msg->cookie, l.cookie);
		item = fixture_item(msg, KDBUS_ITEM_PAYLOAD_MEMFD);
		if (memfds)
			close(item->memfd.fd);
		assert_int_equal(libkdbus_done(b, msg), 0);
	}
	libkdbus_close(b);
	libkdbus_close(a);
}

static void benchmark(void **state)
{
	exchange(state, true);
}

static void benchmark_nomemfds(void **state)
{
	exchange(state, false);
}

/* ---- drop and peek (ABI 7.10) ---- */

static void recv_peek_and_drop(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	struct letter l = {
		.dst = fixture_id(b), .cookie = 7, .flags = KDBUS_MSG_EXPECT_REPLY, .reply = ~0ULL
	};
	struct kdbus_cmd_recv one, two;
	const struct kdbus_msg *msg;

	assert_int_equal(fixture_send(a, &l), 0);
	assert_int_equal(fixture_recv_flags(b, KDBUS_RECV_PEEK, 0, &one), 0);
	assert_int_equal(fixture_recv_flags(b, KDBUS_RECV_DROP | KDBUS_RECV_USE_PRIORITY, 0, &two),
			 -EINVAL);
	assert_int_equal(fixture_recv_flags(b, KDBUS_RECV_DROP, 0, &two), 0);
	assert_int_equal(two.msg.offset, FIXTURE_POOL);
	assert_int_equal(two.msg.msg_size, 0);
	fixture_assert_empty(b);
	assert_int_equal(fixture_message(b, one.msg.offset)->cookie, 7);
	assert_int_equal(fixture_free(b, one.msg.offset), 0);
	msg = fixture_await(a);
	assert_int_equal(msg->items[0].type, KDBUS_ITEM_REPLY_DEAD);
	assert_int_equal(msg->cookie_reply, 7);
	libkdbus_done(a, msg);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void recv_after_peek(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	const struct letter l = { .dst = fixture_id(b), .cookie = 7 };
	struct kdbus_cmd_recv one, two;

	assert_int_equal(fixture_send(a, &l), 0);
	assert_int_equal(fixture_recv_flags(b, KDBUS_RECV_PEEK, 0, &one), 0);
	assert_int_equal(fixture_recv(b, &two), 0);
	assert_int_equal(one.msg.offset, two.msg.offset);
	assert_int_equal(fixture_free(b, two.msg.offset), 0);
	assert_int_equal(fixture_free(b, two.msg.offset), -ENXIO);
	libkdbus_close(b);
	libkdbus_close(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(message_basic),
		FIXTURE_TEST(message_content),
		FIXTURE_TEST(message_prio),
		FIXTURE_TEST(memory_access),
		FIXTURE_TEST(timeout),
		FIXTURE_TEST(connection_update),
		FIXTURE_TEST(chat),
		FIXTURE_TEST(benchmark),
		FIXTURE_TEST(benchmark_nomemfds),
		FIXTURE_TEST(recv_peek_and_drop),
		FIXTURE_TEST(recv_after_peek),
	};

	return FIXTURE_RUN(tests);
}
