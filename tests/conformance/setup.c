// SPDX-License-Identifier: LGPL-2.1-or-later
/* Set-up commands: ABI 15.2. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "fixture.h"

/* A bus name of this user that nobody else has */
static char *own_name(const char *rest)
{
	char *name;

	assert_true(asprintf(&name, "%u-%s-%d", (unsigned int)geteuid(), rest, (int)getpid()) > 0);
	return name;
}

static int try_bus(struct libkdbus *control, const char *rest)
{
	char *name;
	int r;

	assert_true(asprintf(&name, "%u-%s", (unsigned int)geteuid(), rest) > 0);
	r = fixture_make_bus(control, name, 0);
	free(name);
	return r;
}

static void assert_exists(const char *dir, const char *node)
{
	struct stat st;
	char *path;

	assert_true(asprintf(&path, "%s/%s", dir, node) > 0);
	assert_int_equal(stat(path, &st), 0);
	free(path);
}

static void bus_make(void **state)
{
	struct libkdbus *one = fixture_open(FIXTURE_CONTROL), *two = fixture_open(FIXTURE_CONTROL);
	char *name = own_name("make"), *other = own_name("other");

	assert_int_equal(fixture_make_bus(one, "foo", 0), -EINVAL);
	assert_int_equal(try_bus(one, "blah@123"), -EINVAL);
	assert_int_equal(try_bus(one, "blah-"), -EINVAL);
	assert_int_equal(fixture_make_bus(one, name, 0), 0);
	assert_exists(name, "bus");
	assert_int_equal(fixture_make_bus(two, name, 0), -EEXIST);
	assert_int_equal(fixture_make_bus(one, other, 0), -EBADFD);
	assert_int_equal(fixture_make_bus(two, other, 0), 0);
	assert_exists(other, "bus");
	libkdbus_close(two);
	libkdbus_close(one);
	/* A name is free again once its bus is gone. */
	assert_int_equal(access(name, F_OK), -1);
	free(other);
	free(name);
}

static void bus_creator_info(void **state)
{
	const struct fixture *f = *state;
	struct libkdbus *h = fixture_connect(f);
	struct kdbus_cmd_info cmd = { .size = sizeof(cmd), .attach_flags = _KDBUS_ATTACH_ALL };
	const struct kdbus_info *info;
	const struct kdbus_item *item;

	assert_int_equal(libkdbus_bus_creator_info(h, &cmd), 0);
	info = (const void *)fixture_message(h, cmd.offset);
	assert_int_equal(info->size, cmd.info_size);
	item = info->items;
	assert_int_equal(item->type, KDBUS_ITEM_MAKE_NAME);
	assert_string_equal(item->str, f->name);
	assert_non_null(libkdbus_item_find(info, sizeof(*info), KDBUS_ITEM_CREDS));
	assert_int_equal(fixture_free(h, cmd.offset), 0);
	libkdbus_close(h);
}

static void hello_on_one_handle(struct libkdbus *h)
{
	uint64_t space[sizeof(struct kdbus_cmd_hello) / sizeof(uint64_t) + 1] = { 0 };
	struct kdbus_cmd_hello *cmd = (struct kdbus_cmd_hello *)space;

	cmd->size = sizeof(*cmd);
	cmd->pool_size = FIXTURE_POOL;
	assert_int_equal(libkdbus_command(h, KDBUS_CMD_HELLO, (char *)cmd + 1), -EFAULT);
	cmd->size = 1;
	assert_int_equal(libkdbus_hello(h, cmd), -EINVAL);
	cmd->size = sizeof(*cmd);
	cmd->flags = 1ULL << 32;
	assert_int_equal(libkdbus_hello(h, cmd), -EINVAL);
	cmd->flags = 0;
	cmd->pool_size = 0;
	assert_int_equal(libkdbus_hello(h, cmd), -EINVAL);
	cmd->pool_size = 4097;
	assert_int_equal(libkdbus_hello(h, cmd), -EINVAL);
	cmd->pool_size = FIXTURE_POOL;
	cmd->offset = ~0ULL;
	assert_int_equal(libkdbus_hello(h, cmd), 0);
	assert_int_not_equal(cmd->offset, ~0ULL);
	assert_int_equal(cmd->items_size, 32);
	assert_int_equal(fixture_free(h, cmd->offset), 0);
	cmd->size = sizeof(*cmd);
	assert_int_equal(libkdbus_hello(h, cmd), -EBADFD);
}

static void hello(void **state)
{
	const struct fixture *f = *state;
	struct libkdbus *h = fixture_open(f->path);

	assert_int_equal(libkdbus_fd(h), -EBADFD);
	hello_on_one_handle(h);
	libkdbus_close(h);
	h = fixture_open(f->path);
	assert_int_equal(fixture_hello(h, KDBUS_HELLO_ACTIVATOR, 0, 0, FIXTURE_POOL, NULL),
			 -EINVAL);
	libkdbus_close(h);
}

static void byebye(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);

	assert_int_equal(helper_match_all(a), 0);
	assert_int_equal(helper_match_all(b), 0);
	assert_int_equal(fixture_broadcast(a, 1), 0);
	fixture_await_queued(b);
	assert_int_equal(fixture_byebye(b), -EBUSY);
	fixture_expect(b, 1);
	assert_int_equal(fixture_byebye(b), 0);
	assert_int_equal(fixture_byebye(b), -ECONNRESET);
	libkdbus_close(b);
	libkdbus_close(a);
}

/* A peeked message is still queued; its slice outlives neither. */
static void byebye_after_peek(void **state)
{
	struct libkdbus *a = fixture_connect(*state), *b = fixture_connect(*state);
	const struct letter l = { .dst = fixture_id(b), .cookie = 1 };
	struct kdbus_cmd_recv cmd;

	assert_int_equal(fixture_send(a, &l), 0);
	assert_int_equal(fixture_recv_flags(b, KDBUS_RECV_PEEK, 0, &cmd), 0);
	assert_int_equal(fixture_free(b, cmd.msg.offset), 0);
	assert_int_equal(fixture_byebye(b), -EBUSY);
	fixture_expect(b, 1);
	assert_int_equal(fixture_byebye(b), 0);
	assert_int_equal(fixture_send(a, &l), -ENXIO);
	libkdbus_close(b);
	libkdbus_close(a);
}

/* ---- custom endpoints ---- */

struct custom {
	struct libkdbus *owner;
	char *name;
	char *path;
};

static void custom_start(struct custom *c, const struct fixture *f, const char *rest,
			 uint64_t flags)
{
	c->owner = fixture_open(f->path);
	assert_true(asprintf(&c->name, "%u-%s", (unsigned int)geteuid(), rest) > 0);
	assert_true(asprintf(&c->path, "%s/%s", f->name, c->name) > 0);
	assert_int_equal(fixture_make_endpoint(c->owner, c->name, flags), 0);
}

static void custom_end(struct custom *c)
{
	libkdbus_close(c->owner);
	free(c->name);
	free(c->path);
}

static void endpoint_names(void **state)
{
	const struct fixture *f = *state;
	struct libkdbus *h = fixture_open(f->path);
	struct custom c;
	char name[80];

	snprintf(name, sizeof(name), "%u-%064d", (unsigned int)geteuid(), 0);
	assert_int_equal(fixture_make_endpoint(h, name, 0), -ENAMETOOLONG);
	snprintf(name, sizeof(name), "%u-foo", (unsigned int)geteuid() + 1);
	assert_int_equal(fixture_make_endpoint(h, name, 0), -EINVAL);
	libkdbus_close(h);
	custom_start(&c, f, "foo", 0);
	h = fixture_connect_to(c.path, 0);
	libkdbus_close(h);
	h = fixture_open(c.path);
	assert_int_equal(fixture_hello(h, KDBUS_HELLO_MONITOR, 0, 0, FIXTURE_POOL, NULL),
			 -EOPNOTSUPP);
	libkdbus_close(h);
	assert_int_equal(access(c.path, F_OK), 0);
	custom_end(&c);
}

static void endpoint_ends_with_its_owner(void **state)
{
	const struct fixture *f = *state;
	struct custom c;
	struct libkdbus *h;

	custom_start(&c, f, "ends", 0);
	h = fixture_connect_to(c.path, 0);
	libkdbus_close(c.owner);
	assert_int_equal(access(c.path, F_OK), -1);
	assert_int_equal(fixture_byebye(h), -ECONNRESET);
	libkdbus_close(h);
	free(c.name);
	free(c.path);
}

static void endpoint_id_add(void **state)
{
	const struct fixture *f = *state;
	const struct kdbus_msg *msg;
	struct custom c;
	struct libkdbus *a, *b;

	custom_start(&c, f, "ids", 0);
	a = fixture_connect_to(c.path, 0);
	fixture_watch_id(a, KDBUS_ITEM_ID_ADD, KDBUS_MATCH_ID_ANY);
	b = fixture_connect_to(c.path, 0);
	msg = fixture_await(a);
	assert_int_equal(msg->items[0].type, KDBUS_ITEM_ID_ADD);
	assert_int_equal(msg->items[0].id_change.id, fixture_id(b));
	libkdbus_done(a, msg);
	libkdbus_close(b);
	libkdbus_close(a);
	custom_end(&c);
}

static void assert_name_added(struct libkdbus *h, uint64_t id, const char *name)
{
	const struct kdbus_msg *msg = fixture_await(h);

	assert_int_equal(msg->items[0].type, KDBUS_ITEM_NAME_ADD);
	assert_int_equal(msg->items[0].name_change.old_id.id, 0);
	assert_int_equal(msg->items[0].name_change.new_id.id, id);
	assert_string_equal(msg->items[0].name_change.name, name);
	libkdbus_done(h, msg);
}

static void endpoint_policy(void **state)
{
	const struct fixture *f = *state;
	const char *name = "foo.bar.baz";
	const struct access see[] = {
		{ .name = name }, { .type = KDBUS_POLICY_ACCESS_WORLD, .access = KDBUS_POLICY_SEE }
	};
	struct libkdbus *owner = fixture_connect(f), *one, *two;
	struct custom c;

	custom_start(&c, f, "see", 0);
	one = fixture_connect_to(c.path, 0);
	two = fixture_connect_to(c.path, 0);
	fixture_watch_name(one, KDBUS_ITEM_NAME_ADD, name);
	fixture_watch_name(two, KDBUS_ITEM_NAME_ADD, name);
	assert_int_equal(libkdbus_acquire(owner, name, 0, NULL), 0);
	fixture_assert_empty(one);
	assert_int_equal(fixture_has(one, 0, name), -ESRCH);
	assert_int_equal(fixture_has(one, 0, "foo.bar.unknown"), -ESRCH);
	assert_int_equal(fixture_has(one, fixture_id(owner), NULL), -ENXIO);
	assert_int_equal(fixture_has(one, 9999999, NULL), -ENXIO);
	assert_int_equal(fixture_update_endpoint(c.owner, see, 2), 0);
	assert_int_equal(libkdbus_release(owner, name), 0);
	assert_int_equal(libkdbus_acquire(owner, name, 0, NULL), 0);
	assert_name_added(one, fixture_id(owner), name);
	assert_name_added(two, fixture_id(owner), name);
	assert_int_equal(fixture_has(one, 0, name), 0);
	assert_int_equal(fixture_has(one, fixture_id(owner), NULL), 0);
	libkdbus_close(two);
	libkdbus_close(one);
	libkdbus_close(owner);
	custom_end(&c);
}

static int make_endpoint_as_nobody(void *arg)
{
	const struct fixture *f = arg;
	struct libkdbus *h = fixture_open(f->path);

	assert_int_equal(fixture_make_endpoint(h, "65534-foo", 0), -EPERM);
	libkdbus_close(h);
	return 0;
}

static void endpoint_make_needs_the_owner(void **state)
{
	FIXTURE_NEEDS_ROOT();
	assert_int_equal(fixture_as_nobody(make_endpoint_as_nobody, *state), 0);
}

static int open_closed_endpoint(void *arg)
{
	struct libkdbus *h;

	assert_int_equal(libkdbus_open(arg, 0, &h), -EACCES);
	return 0;
}

static int open_world_endpoint(void *arg)
{
	libkdbus_close(fixture_connect_to(arg, 0));
	return 0;
}

static void endpoint_access(void **state)
{
	struct custom closed, open;

	FIXTURE_NEEDS_ROOT();
	custom_start(&closed, *state, "closed", 0);
	custom_start(&open, *state, "open", KDBUS_MAKE_ACCESS_WORLD);
	assert_int_equal(fixture_as_nobody(open_closed_endpoint, closed.path), 0);
	assert_int_equal(fixture_as_nobody(open_world_endpoint, open.path), 0);
	custom_end(&open);
	custom_end(&closed);
}

/* ---- pool ---- */

static void writable_pool(void **state)
{
	struct libkdbus *h = fixture_connect(*state);
	size_t size = 0;
	void *pool = (void *)libkdbus_pool(h, &size);

	assert_true(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, libkdbus_fd(h), 0) ==
		    MAP_FAILED);
	assert_non_null(pool);
	assert_int_equal(size, FIXTURE_POOL);
	assert_int_equal(mprotect(pool, size, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(errno, EACCES);
	libkdbus_close(h);
}

static void message_free(void **state)
{
	struct libkdbus *h = fixture_connect(*state);
	struct kdbus_cmd_list one, two;
	const uint64_t all = KDBUS_LIST_UNIQUE | KDBUS_LIST_NAMES;

	assert_int_equal(fixture_free(h, 0), -ENXIO);
	assert_int_equal(fixture_free(h, FIXTURE_POOL + 1), -ENXIO);
	assert_int_equal(fixture_free(h, FIXTURE_POOL), 0);
	assert_int_equal(fixture_list(h, all, &one), 0);
	assert_int_equal(fixture_list(h, all, &two), 0);
	assert_int_not_equal(one.offset, two.offset);
	assert_int_equal(fixture_free(h, two.offset), 0);
	assert_int_equal(fixture_free(h, one.offset), 0);
	assert_int_equal(fixture_free(h, one.offset), -ENXIO);
	libkdbus_close(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(bus_make),
		FIXTURE_TEST(bus_creator_info),
		FIXTURE_TEST(hello),
		FIXTURE_TEST(byebye),
		FIXTURE_TEST(byebye_after_peek),
		FIXTURE_TEST(endpoint_names),
		FIXTURE_TEST(endpoint_ends_with_its_owner),
		FIXTURE_TEST(endpoint_id_add),
		FIXTURE_TEST(endpoint_policy),
		FIXTURE_TEST(endpoint_make_needs_the_owner),
		FIXTURE_TEST(endpoint_access),
		FIXTURE_TEST(writable_pool),
		FIXTURE_TEST(message_free),
	};

	return FIXTURE_RUN(tests);
}
