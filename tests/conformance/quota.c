// SPDX-License-Identifier: LGPL-2.1-or-later
/* Shares of a receiver's queue: ABI 15.5, message-quota. (Activators: activator.c.) */
#include "fixture.h"

static char big[2 << 20];

static int send_plain(struct libkdbus *from, struct libkdbus *to, uint64_t cookie, size_t size)
{
	const struct letter l = {
		.dst = fixture_id(to), .cookie = cookie, .data = big, .size = size
	};

	return fixture_send(from, &l);
}

/* Three events more than the share of the bus itself */
static void quota_of_the_kernel(void **state)
{
	struct libkdbus *reader = fixture_connect(*state), *other = fixture_connect(*state);
	struct kdbus_cmd_recv cmd;
	unsigned int i, n = 0;
	uint64_t dropped = 0;
	int r;

	fixture_watch_id(reader, KDBUS_ITEM_ID_ADD, KDBUS_MATCH_ID_ANY);
	fixture_watch_id(reader, KDBUS_ITEM_ID_REMOVE, KDBUS_MATCH_ID_ANY);
	for (i = 0; i < 128; i++)
		libkdbus_close(fixture_connect(*state));
	assert_int_equal(send_plain(other, reader, 1, 0), 0);
	libkdbus_close(fixture_connect(*state));
	libkdbus_close(other);
	/* What is lost may be told behind what is there, and that may come in portions. */
	while (n < 257 || dropped < 3) {
		r = fixture_recv(reader, &cmd);
		dropped += cmd.dropped_msgs;
		assert_int_equal(cmd.return_flags,
				 cmd.dropped_msgs ? KDBUS_RECV_RETURN_DROPPED_MSGS : 0);
		if (r == 0) {
			n++;
			assert_int_equal(fixture_free(reader, cmd.msg.offset), 0);
		} else if (!cmd.dropped_msgs) {
			assert_int_equal(
				libkdbus_wait(reader, fixture_deadline(FIXTURE_TIMEOUT_MS), -1), 0);
		}
	}
	assert_int_equal(n, 257);
	assert_int_equal(dropped, 3);
	fixture_assert_empty(reader);
	libkdbus_close(reader);
}

static void quota_of_the_pool(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	struct libkdbus *to = fixture_connect(*state);

	assert_int_equal(send_plain(a, to, 1, sizeof(big)), 0);
	assert_int_equal(send_plain(a, to, 2, sizeof(big)), -ENOBUFS);
	assert_int_equal(send_plain(b, to, 3, 128 << 10), 0);
	fixture_expect(to, 1);
	fixture_expect(to, 3);
	fixture_assert_empty(to);
	assert_int_equal(send_plain(a, to, 4, sizeof(big)), 0);
	fixture_expect(to, 4);
	libkdbus_close(to);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void quota_of_requests(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *to[8];
	struct letter l = { .flags = KDBUS_MSG_EXPECT_REPLY, .reply = ~0ULL };
	unsigned int i;

	for (i = 0; i < 8; i++)
		to[i] = fixture_connect(*state);
	for (i = 0; i < 128; i++) {
		l.dst = fixture_id(to[i % 8]);
		l.cookie = i + 1;
		assert_int_equal(fixture_send(a, &l), 0);
	}
	l.cookie = 129;
	assert_int_equal(fixture_send(a, &l), -EMLINK);
	for (i = 0; i < 8; i++) {
		assert_int_equal(fixture_drain(to[i]), 16);
		libkdbus_close(to[i]);
	}
	libkdbus_close(a);
}

/*
 * On one way there are 256. Where a pair has a way of its own after the first messages, that has
 * its own 256 (doc/compat.md).
 */
static unsigned int fill(struct libkdbus *a, struct libkdbus *to)
{
	unsigned int n = 0;
	int r;

	while ((r = send_plain(a, to, n + 1, 0)) == 0)
		n++;
	assert_int_equal(r, -ENOBUFS);
	assert_int_equal(fixture_drain(to), n);
	return n;
}

static void quota_of_messages(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *to = fixture_connect(*state);
	bool own_ways = fixture_has_own_ways(*state);

	assert_in_range(fill(a, to), 256, own_ways ? 512 : 256);
	assert_int_equal(fill(a, to), 256);
	libkdbus_close(to);
	libkdbus_close(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(quota_of_the_kernel),
		FIXTURE_TEST(quota_of_the_pool),
		FIXTURE_TEST(quota_of_requests),
		FIXTURE_TEST(quota_of_messages),
	};

	return FIXTURE_RUN(tests);
}
