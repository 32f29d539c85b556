// SPDX-License-Identifier: LGPL-2.1-or-later
/* Monitors: ABI 15.4, 13. */
#include "fixture.h"

static struct libkdbus *watch(void **state)
{
	int r;
	struct libkdbus *m = fixture_special(*state, KDBUS_HELLO_MONITOR, NULL, 0, &r);

	assert_int_equal(r, 0);
	return m;
}

static void monitor_comes_unnoticed(void **state)
{
	struct libkdbus *h = fixture_connect(*state), *m;
	struct kdbus_cmd_list before, after;

	fixture_watch_id(h, KDBUS_ITEM_ID_ADD, KDBUS_MATCH_ID_ANY);
	fixture_watch_id(h, KDBUS_ITEM_ID_REMOVE, KDBUS_MATCH_ID_ANY);
	assert_int_equal(fixture_list(h, KDBUS_LIST_UNIQUE, &before), 0);
	m = watch(state);
	assert_int_equal(fixture_list(h, KDBUS_LIST_UNIQUE, &after), 0);
	assert_int_equal(before.list_size, after.list_size);
	libkdbus_close(m);
	fixture_assert_empty(h);
	libkdbus_close(h);
}

static void monitor_is_restricted(void **state)
{
	struct libkdbus *m = watch(state), *h = fixture_connect(*state);
	const struct letter l = { .dst = fixture_id(h), .cookie = 1 };
	const struct letter to_it = { .dst = fixture_id(m), .cookie = 1 };

	assert_int_equal(libkdbus_acquire(m, "foo.bar.baz", 0, NULL), -EOPNOTSUPP);
	assert_int_equal(helper_match_all(m), -EOPNOTSUPP);
	assert_int_equal(fixture_byebye(m), -EOPNOTSUPP);
	assert_int_equal(fixture_send(m, &l), -EOPNOTSUPP);
	assert_int_equal(fixture_send(h, &to_it), -ENXIO);
	libkdbus_close(h);
	libkdbus_close(m);
}

static void monitor_sees_messages(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	struct libkdbus *m = watch(state);

	assert_int_equal(fixture_send_default(a, fixture_id(b), NULL, 1), 0);
	fixture_expect(b, 1);
	fixture_expect(m, 1);
	assert_int_equal(fixture_broadcast(a, 2), 0);
	fixture_expect(m, 2);
	fixture_assert_empty(b);
	libkdbus_close(m);
	libkdbus_close(b);
	libkdbus_close(a);
}

/* Two peers that have talked for a while may have a way of their own by then. */
static void monitor_comes_later(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state), *m;
	uint64_t cookie;

	for (cookie = 1; cookie < 20; cookie++) {
		assert_int_equal(fixture_send_default(a, fixture_id(b), NULL, cookie), 0);
		fixture_expect(b, cookie);
	}
	m = watch(state);
	for (; cookie < 40; cookie++) {
		assert_int_equal(fixture_send_default(a, fixture_id(b), NULL, cookie), 0);
		fixture_expect(m, cookie);
		fixture_expect(b, cookie);
	}
	libkdbus_close(m);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void assert_items(struct libkdbus *m, uint64_t cookie, bool timestamp, bool creds, bool comm)
{
	const struct kdbus_msg *msg = fixture_await(m);

	assert_int_equal(msg->cookie, cookie);
	assert_int_equal(!fixture_item(msg, KDBUS_ITEM_TIMESTAMP), !timestamp);
	assert_int_equal(!fixture_item(msg, KDBUS_ITEM_CREDS), !creds);
	assert_int_equal(!fixture_item(msg, KDBUS_ITEM_PID_COMM), !comm);
	libkdbus_done(m, msg);
}

static void monitor_update(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	struct libkdbus *m = watch(state);
	const uint64_t recv = KDBUS_ITEM_ATTACH_FLAGS_RECV;
	struct letter l = { .dst = fixture_id(b), .cookie = 1 };

	assert_int_equal(fixture_send(a, &l), 0);
	assert_items(m, 1, true, true, true);
	assert_int_equal(fixture_update_mask(m, recv, 0), 0);
	l.cookie = 2;
	assert_int_equal(fixture_send(a, &l), 0);
	assert_items(m, 2, false, false, false);
	assert_int_equal(fixture_update_mask(m, recv, KDBUS_ATTACH_TIMESTAMP | KDBUS_ATTACH_CREDS),
			 0);
	l.cookie = 3;
	assert_int_equal(fixture_send(a, &l), 0);
	assert_items(m, 3, true, true, false);
	libkdbus_close(m);
	libkdbus_close(b);
	libkdbus_close(a);
}

/* What a monitor has not received is nobody's loss: it is not sent on to who has the name. */
static void monitor_leaves_unread(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state), *m;
	const struct letter last = { .name = "com.example.read", .cookie = 2 };

	assert_int_equal(libkdbus_acquire(b, last.name, 0, NULL), 0);
	m = watch(state);
	assert_int_equal(fixture_send_default(a, 0, last.name, 1), 0);
	fixture_expect(b, 1);
	libkdbus_close(m);
	assert_int_equal(fixture_send(a, &last), 0);
	fixture_expect(b, 2);
	fixture_assert_empty(b);
	libkdbus_close(b);
	libkdbus_close(a);
}

static int hello_as_nobody(void *arg)
{
	struct libkdbus *h = fixture_open(((struct fixture *)arg)->path);

	assert_int_equal(fixture_hello(h, KDBUS_HELLO_MONITOR, 0, 0, FIXTURE_POOL, NULL), -EPERM);
	libkdbus_close(h);
	return 0;
}

static void monitor_needs_the_owner(void **state)
{
	FIXTURE_NEEDS_ROOT();
	assert_int_equal(fixture_as_nobody(hello_as_nobody, *state), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(monitor_comes_unnoticed), FIXTURE_TEST(monitor_is_restricted),
		FIXTURE_TEST(monitor_sees_messages),   FIXTURE_TEST(monitor_comes_later),
		FIXTURE_TEST(monitor_update),	       FIXTURE_TEST(monitor_needs_the_owner),
		FIXTURE_TEST(monitor_leaves_unread),
	};

	return FIXTURE_RUN(tests);
}
