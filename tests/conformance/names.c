// SPDX-License-Identifier: LGPL-2.1-or-later
/* Well-known names by command: ABI 15.3, and the notifications of 15.4. */
#include "fixture.h"

/* Name flags of the record of @name and @id in a listing; ~0 if there is none */
static uint64_t listed(struct libkdbus *h, const char *name, uint64_t id)
{
	struct kdbus_cmd_list cmd = { .size = sizeof(cmd),
				      .flags = KDBUS_LIST_NAMES | KDBUS_LIST_ACTIVATORS |
					       KDBUS_LIST_QUEUED };
	const char *at, *end;
	uint64_t flags = ~0ULL;

	assert_int_equal(libkdbus_list(h, &cmd), 0);
	at = (const char *)libkdbus_pool(h, NULL) + cmd.offset;
	for (end = at + cmd.list_size; at < end;) {
		const struct kdbus_info *info = (const void *)at;
		const struct kdbus_item *item =
			libkdbus_item_find(info, sizeof(*info), KDBUS_ITEM_OWNED_NAME);

		if (item && info->id == id && !strcmp(item->name.name, name))
			flags = item->name.flags;
		at += info->size;
	}
	assert_int_equal(fixture_free(h, cmd.offset), 0);
	return flags;
}

static void name_basics(void **state)
{
	struct libkdbus *h = fixture_connect(*state), *other = fixture_connect(*state);
	const char *name = "foo.bla.blaz";
	uint64_t flags;

	assert_int_equal(libkdbus_acquire(h, ".bla.blaz", 0, NULL), -EINVAL);
	assert_int_equal(libkdbus_acquire(h, "foo", 0, NULL), -EINVAL);
	assert_int_equal(libkdbus_acquire(h, "foo.bla.bl.*", 0, NULL), -EINVAL);
	assert_int_equal(libkdbus_acquire(h, name, 0, &flags), 0);
	assert_int_equal(flags, KDBUS_NAME_PRIMARY | KDBUS_NAME_ACQUIRED);
	assert_int_equal(listed(h, name, fixture_id(h)), KDBUS_NAME_PRIMARY);
	assert_int_equal(libkdbus_release(other, name), -EADDRINUSE);
	assert_int_equal(libkdbus_release(h, name), 0);
	assert_int_equal(listed(h, name, fixture_id(h)), ~0ULL);
	assert_int_equal(libkdbus_release(h, name), -ESRCH);
	assert_int_equal(libkdbus_release(h, ".bla.blaz"), -ESRCH);
	libkdbus_close(other);
	libkdbus_close(h);
}

static void name_conflict(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);

	assert_int_equal(libkdbus_acquire(a, "foo.bla.blaz", 0, NULL), 0);
	assert_int_equal(libkdbus_acquire(b, "foo.bla.blaz", 0, NULL), -EEXIST);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void name_queue(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	const char *name = "foo.bla.blaz";
	uint64_t flags;

	assert_int_equal(libkdbus_acquire(a, name, 0, NULL), 0);
	assert_int_equal(libkdbus_acquire(b, name, KDBUS_NAME_QUEUE, &flags), 0);
	assert_true(flags & KDBUS_NAME_IN_QUEUE);
	assert_int_equal(listed(a, name, fixture_id(a)), KDBUS_NAME_PRIMARY);
	assert_int_equal(listed(a, name, fixture_id(b)), KDBUS_NAME_QUEUE | KDBUS_NAME_IN_QUEUE);
	assert_int_equal(libkdbus_release(a, name), 0);
	assert_int_equal(listed(a, name, fixture_id(b)), KDBUS_NAME_PRIMARY | KDBUS_NAME_QUEUE);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void name_takeover(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	const char *name = "foo.bla.blaz";
	uint64_t flags;

	assert_int_equal(libkdbus_acquire(a, name, KDBUS_NAME_ALLOW_REPLACEMENT, NULL), 0);
	assert_int_equal(listed(a, name, fixture_id(a)),
			 KDBUS_NAME_ALLOW_REPLACEMENT | KDBUS_NAME_PRIMARY);
	assert_int_equal(libkdbus_acquire(b, name, KDBUS_NAME_REPLACE_EXISTING, &flags), 0);
	assert_true(flags & KDBUS_NAME_ACQUIRED);
	assert_int_equal(listed(a, name, fixture_id(b)), KDBUS_NAME_PRIMARY);
	assert_int_equal(listed(a, name, fixture_id(a)), ~0ULL);
	libkdbus_close(b);
	libkdbus_close(a);
}

/* The next message of @h tells that @name went from @old to @now. */
static void assert_told(struct libkdbus *h, uint64_t type, uint64_t old, uint64_t now,
			const char *name)
{
	const struct kdbus_msg *msg = fixture_await(h);
	const struct kdbus_item *item = msg->items;

	assert_int_equal(msg->src_id, KDBUS_SRC_ID_KERNEL);
	assert_int_equal(item->type, type);
	assert_int_equal(item->name_change.old_id.id, old);
	assert_int_equal(item->name_change.new_id.id, now);
	assert_string_equal(item->name_change.name, name);
	assert_non_null(fixture_item(msg, KDBUS_ITEM_TIMESTAMP));
	assert_int_equal(libkdbus_done(h, msg), 0);
}

static void match_name_add(void **state)
{
	struct libkdbus *h = fixture_connect(*state);
	const char *name = "foo.bla.blaz";

	fixture_watch_name(h, KDBUS_ITEM_NAME_ADD, name);
	assert_int_equal(libkdbus_acquire(h, name, 0, NULL), 0);
	assert_told(h, KDBUS_ITEM_NAME_ADD, 0, fixture_id(h), name);
	libkdbus_close(h);
}

static void match_name_remove(void **state)
{
	struct libkdbus *h = fixture_connect(*state);
	const char *name = "foo.bla.blaz";

	assert_int_equal(libkdbus_acquire(h, name, 0, NULL), 0);
	fixture_watch_name(h, KDBUS_ITEM_NAME_REMOVE, name);
	assert_int_equal(libkdbus_release(h, name), 0);
	assert_told(h, KDBUS_ITEM_NAME_REMOVE, fixture_id(h), 0, name);
	libkdbus_close(h);
}

static void match_name_change(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	const char *name = "foo.bla.blaz";

	assert_int_equal(libkdbus_acquire(a, name, 0, NULL), 0);
	fixture_watch_name(a, KDBUS_ITEM_NAME_CHANGE, name);
	assert_int_equal(libkdbus_acquire(b, name, KDBUS_NAME_QUEUE, NULL), 0);
	assert_int_equal(libkdbus_release(a, name), 0);
	assert_told(a, KDBUS_ITEM_NAME_CHANGE, fixture_id(a), fixture_id(b), name);
	libkdbus_close(b);
	libkdbus_close(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(name_basics),	 FIXTURE_TEST(name_conflict),
		FIXTURE_TEST(name_queue),	 FIXTURE_TEST(name_takeover),
		FIXTURE_TEST(match_name_add),	 FIXTURE_TEST(match_name_remove),
		FIXTURE_TEST(match_name_change),
	};

	return FIXTURE_RUN(tests);
}
