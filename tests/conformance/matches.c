// SPDX-License-Identifier: LGPL-2.1-or-later
/* Matches on ids, their replacement, bloom filters: ABI 15.4. (Names: names.c.) */
#include <poll.h>

#include "fixture.h"

static void assert_id_event(struct libkdbus *h, uint64_t type, uint64_t id)
{
	const struct kdbus_msg *msg;

	assert_int_equal(libkdbus_receive(h, &msg), 0);
	assert_int_equal(msg->src_id, KDBUS_SRC_ID_KERNEL);
	assert_int_equal(msg->dst_id, KDBUS_DST_ID_BROADCAST);
	assert_int_equal(msg->items[0].type, type);
	assert_int_equal(msg->items[0].id_change.id, id);
	assert_int_equal(libkdbus_done(h, msg), 0);
}

static void match_id_add(void **state)
{
	struct libkdbus *h = fixture_connect(*state), *other;
	struct pollfd p = { .fd = libkdbus_fd(h), .events = POLLIN };

	fixture_watch_id(h, KDBUS_ITEM_ID_ADD, KDBUS_MATCH_ID_ANY);
	other = fixture_connect(*state);
	/* It is there the moment HELLO has returned. */
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(p.revents & (POLLIN | POLLHUP), POLLIN);
	assert_id_event(h, KDBUS_ITEM_ID_ADD, fixture_id(other));
	fixture_assert_empty(h);
	assert_int_equal(poll(&p, 1, 0), 0);
	libkdbus_close(other);
	libkdbus_close(h);
}

static void match_id_remove(void **state)
{
	struct libkdbus *h = fixture_connect(*state), *other = fixture_connect(*state);
	struct libkdbus *third = fixture_connect(*state);
	uint64_t id = fixture_id(other);

	fixture_watch_id(h, KDBUS_ITEM_ID_REMOVE, id);
	libkdbus_close(third);
	fixture_assert_empty(h);
	libkdbus_close(other);
	assert_id_event(h, KDBUS_ITEM_ID_REMOVE, id);
	libkdbus_close(h);
}

static void match_replace(void **state)
{
	const struct kdbus_notify_id_change any = { .id = KDBUS_MATCH_ID_ANY };
	struct libkdbus *h = fixture_connect(*state), *other;
	struct libkdbus_builder b;
	uint64_t id;

	fixture_match_start(&b);
	libkdbus_build_item(&b, KDBUS_ITEM_ID_ADD, &any, sizeof(any));
	assert_int_equal(fixture_match(h, 7, 0, &b), 0);
	fixture_match_start(&b);
	libkdbus_build_item(&b, KDBUS_ITEM_ID_REMOVE, &any, sizeof(any));
	assert_int_equal(fixture_match(h, 7, KDBUS_MATCH_REPLACE, &b), 0);
	other = fixture_connect(*state);
	id = fixture_id(other);
	fixture_assert_empty(h);
	libkdbus_close(other);
	assert_id_event(h, KDBUS_ITEM_ID_REMOVE, id);
	libkdbus_close(h);
}

static void match_remove(void **state)
{
	struct libkdbus *h = fixture_connect(*state), *other;
	struct kdbus_cmd_match cmd = { .size = sizeof(cmd), .cookie = 0 };

	fixture_watch_id(h, KDBUS_ITEM_ID_ADD, KDBUS_MATCH_ID_ANY);
	assert_int_equal(libkdbus_match_remove(h, &cmd), 0);
	assert_int_equal(libkdbus_match_remove(h, &cmd), -EBADSLT);
	other = fixture_connect(*state);
	fixture_assert_empty(h);
	libkdbus_close(other);
	libkdbus_close(h);
}

static void send_filter(struct libkdbus *h, const unsigned char *filter, uint64_t generation,
			uint64_t cookie)
{
	const struct letter l = { .dst = KDBUS_DST_ID_BROADCAST,
				  .flags = KDBUS_MSG_SIGNAL,
				  .cookie = cookie,
				  .bloom = true,
				  .filter = filter,
				  .generation = generation };

	assert_int_equal(fixture_send(h, &l), 0);
}

static void add_mask(struct libkdbus *h)
{
	unsigned char mask[2 * 64] = { 0 };
	struct libkdbus_builder b;

	mask[0] = 0x55;
	mask[63] = 0x80;
	mask[64 + 1] = 0xaa;
	mask[64 + 9] = 0x02;
	fixture_match_start(&b);
	libkdbus_build_item(&b, KDBUS_ITEM_BLOOM_MASK, mask, sizeof(mask));
	assert_int_equal(fixture_match(h, 0, 0, &b), 0);
}

static void match_bloom(void **state)
{
	struct libkdbus *from = fixture_connect(*state), *to = fixture_connect(*state);
	unsigned char filter[64] = { 0 };

	add_mask(to);
	send_filter(from, filter, 0, 1);
	fixture_assert_empty(to);
	filter[0] = 0x55;
	filter[63] = 0x80;
	send_filter(from, filter, 0, 2);
	fixture_expect(to, 2);
	filter[0] = filter[8] = filter[63] = 0xff;
	send_filter(from, filter, 0, 3);
	fixture_expect(to, 3);
	send_filter(from, filter, 1, 4);
	fixture_assert_empty(to);
	filter[1] = 0xaa;
	filter[9] = 0x02;
	send_filter(from, filter, 1, 5);
	fixture_expect(to, 5);
	fixture_assert_empty(to);
	libkdbus_close(to);
	libkdbus_close(from);
}

static void match_bloom_size(void **state)
{
	static const unsigned char mask[72];
	struct libkdbus *h = fixture_connect(*state);
	struct libkdbus_builder b;

	fixture_match_start(&b);
	libkdbus_build_item(&b, KDBUS_ITEM_BLOOM_MASK, mask, sizeof(mask));
	assert_int_equal(fixture_match(h, 0, 0, &b), -EDOM);
	libkdbus_close(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(match_id_add),  FIXTURE_TEST(match_id_remove),
		FIXTURE_TEST(match_replace), FIXTURE_TEST(match_remove),
		FIXTURE_TEST(match_bloom),   FIXTURE_TEST(match_bloom_size),
	};

	return FIXTURE_RUN(tests);
}
