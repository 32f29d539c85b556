// SPDX-License-Identifier: LGPL-2.1-or-later
/* CONN_INFO: ABI 15.7, connection-info. */
#include "fixture.h"

static unsigned int count(const struct kdbus_info *info, uint64_t type)
{
	const struct kdbus_item *item = NULL;
	unsigned int n = 0;

	while ((item = libkdbus_item_next(info, sizeof(*info), item)))
		n += item->type == type;
	return n;
}

static void info_of_oneself(void **state)
{
	struct libkdbus *h = fixture_connect(*state);
	const struct kdbus_info *info;

	assert_int_equal(fixture_info(h, fixture_id(h), NULL, 0, &info), 0);
	assert_int_equal(info->id, fixture_id(h));
	assert_int_equal(info->flags, KDBUS_HELLO_ACCEPT_FD);
	assert_int_equal(libkdbus_done(h, info), 0);
	assert_int_equal(fixture_info(h, 0, NULL, 0, &info), -EINVAL);
	assert_int_equal(fixture_info(h, 99999999, NULL, 0, &info), -ENXIO);
	assert_int_equal(fixture_info(h, fixture_id(h), NULL, _KDBUS_ATTACH_ALL + 1, &info),
			 -EINVAL);
	libkdbus_close(h);
}

static void info_of_bad_names(void **state)
{
	struct libkdbus *h = fixture_connect(*state);
	struct libkdbus_builder b;
	void *built;

	libkdbus_build(&b, sizeof(struct kdbus_cmd_info), NULL, 0);
	libkdbus_build_item(&b, KDBUS_ITEM_NAME, "a", 1);
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	assert_int_equal(libkdbus_conn_info(h, built), -EINVAL);
	libkdbus_build_clear(&b);
	assert_int_equal(fixture_has(h, 0, "non.existent.name"), -ESRCH);
	libkdbus_close(h);
}

static void assert_own_creds(const struct kdbus_info *info)
{
	const struct kdbus_item *item;
	uid_t u[3];
	gid_t g[3];

	assert_int_equal(getresuid(&u[0], &u[1], &u[2]), 0);
	assert_int_equal(getresgid(&g[0], &g[1], &g[2]), 0);
	item = libkdbus_item_find(info, sizeof(*info), KDBUS_ITEM_CREDS);
	assert_non_null(item);
	assert_int_equal(item->creds.uid, u[0]);
	assert_int_equal(item->creds.euid, u[1]);
	assert_int_equal(item->creds.suid, u[2]);
	assert_int_equal(item->creds.fsuid, u[0]);
	assert_int_equal(item->creds.gid, g[0]);
	assert_int_equal(item->creds.egid, g[1]);
	assert_int_equal(item->creds.sgid, g[2]);
	assert_int_equal(item->creds.fsgid, g[0]);
}

static void assert_own_pids(const struct kdbus_info *info)
{
	const struct kdbus_item *item;

	item = libkdbus_item_find(info, sizeof(*info), KDBUS_ITEM_PIDS);
	assert_non_null(item);
	assert_int_equal(item->pids.pid, getpid());
	assert_int_equal(item->pids.tid, gettid());
	assert_int_equal(item->pids.ppid, getppid());
}

#define WANTED                                                         \
	(KDBUS_ATTACH_NAMES | KDBUS_ATTACH_CREDS | KDBUS_ATTACH_PIDS | \
	 KDBUS_ATTACH_CONN_DESCRIPTION)

static void info_items(void **state)
{
	struct libkdbus *h = fixture_connect(*state);
	const struct kdbus_info *info;
	const struct kdbus_item *item;

	assert_int_equal(fixture_info(h, fixture_id(h), NULL, WANTED, &info), 0);
	assert_int_equal(count(info, KDBUS_ITEM_OWNED_NAME), 0);
	assert_int_equal(count(info, KDBUS_ITEM_CREDS), 1);
	assert_int_equal(count(info, KDBUS_ITEM_PIDS), 1);
	assert_int_equal(count(info, KDBUS_ITEM_CAPS), 0);
	assert_int_equal(count(info, KDBUS_ITEM_TIMESTAMP), 0);
	assert_own_creds(info);
	assert_own_pids(info);
	item = libkdbus_item_find(info, sizeof(*info), KDBUS_ITEM_CONN_DESCRIPTION);
	assert_non_null(item);
	assert_string_equal(item->str, "this-is-my-name");
	assert_int_equal(libkdbus_done(h, info), 0);
	libkdbus_close(h);
}

static void info_by_name(void **state)
{
	struct libkdbus *h = fixture_connect(*state), *other = fixture_connect(*state);
	const char *name = "com.example.a", *second = "com.example.b";
	const struct kdbus_info *info;

	assert_int_equal(libkdbus_acquire(h, name, 0, NULL), 0);
	assert_int_equal(fixture_info(other, 0, name, WANTED, &info), 0);
	assert_int_equal(info->id, fixture_id(h));
	assert_int_equal(count(info, KDBUS_ITEM_OWNED_NAME), 1);
	assert_int_equal(libkdbus_done(other, info), 0);
	assert_int_equal(libkdbus_acquire(h, second, 0, NULL), 0);
	assert_int_equal(fixture_info(other, 0, name, WANTED, &info), 0);
	assert_int_equal(count(info, KDBUS_ITEM_OWNED_NAME), 2);
	assert_int_equal(libkdbus_done(other, info), 0);
	assert_int_equal(fixture_has(other, fixture_id(h), second), 0);
	assert_int_equal(fixture_has(other, fixture_id(other), second), -ESRCH);
	libkdbus_close(other);
	libkdbus_close(h);
}

static void info_again(void **state)
{
	struct libkdbus *h = fixture_connect(*state);
	const struct kdbus_info *one, *two;

	assert_int_equal(fixture_info(h, fixture_id(h), NULL, WANTED, &one), 0);
	assert_int_equal(libkdbus_done(h, one), 0);
	assert_int_equal(fixture_info(h, fixture_id(h), NULL,
				      WANTED | KDBUS_ATTACH_CAPS | KDBUS_ATTACH_CGROUP, &two),
			 0);
	/* An otherwise empty pool hands out the same offset. */
	assert_ptr_equal(one, two);
	assert_int_equal(count(two, KDBUS_ITEM_CAPS), 1);
	assert_int_equal(count(two, KDBUS_ITEM_CGROUP), 1);
	assert_int_equal(libkdbus_done(h, two), 0);
	libkdbus_close(h);
}

/* The data is that of the process that said HELLO, as it was then. */
static int change_and_ask(void *arg)
{
	const struct fixture *f = arg;
	struct libkdbus *h = fixture_connect(f);
	const struct kdbus_info *info;
	const struct kdbus_item *item;

	assert_int_equal(setresuid(FIXTURE_NOBODY, FIXTURE_NOBODY, FIXTURE_NOBODY), 0);
	assert_int_equal(fixture_info(h, fixture_id(h), NULL, WANTED, &info), 0);
	item = libkdbus_item_find(info, sizeof(*info), KDBUS_ITEM_CREDS);
	assert_non_null(item);
	assert_int_equal(item->creds.uid, 0);
	assert_int_equal(item->creds.euid, 0);
	assert_own_pids(info);
	libkdbus_close(h);
	return 0;
}

static void info_is_of_hello_time(void **state)
{
	FIXTURE_NEEDS_ROOT();
	assert_int_equal(fixture_as_user(0, change_and_ask, *state), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(info_of_oneself), FIXTURE_TEST(info_of_bad_names),
		FIXTURE_TEST(info_items),      FIXTURE_TEST(info_by_name),
		FIXTURE_TEST(info_again),      FIXTURE_TEST(info_is_of_hello_time),
	};

	return FIXTURE_RUN(tests);
}
