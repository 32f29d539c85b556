// SPDX-License-Identifier: LGPL-2.1-or-later
/* Buses, endpoints, connections: what §15.2 of the specification lists. */
#include "bus.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

static const char *own_name(const char *rest)
{
	static char name[128];

	snprintf(name, sizeof(name), "%u-%s-%d", geteuid(), rest, getpid());
	return name;
}

static void bus_make(void)
{
	int a = open_at(ROOT "/control"), b = open_at(ROOT "/control");
	char path[200];

	EQ(make_bus(a, "foo", 0), -EINVAL);
	EQ(make_bus(a, "0-blah@123", 0), -EINVAL);
	EQ(make_bus(a, "0-blah-", 0), -EINVAL);
	EQ(make_bus(a, "1-blah", 0), -EINVAL);
	EQ(make_bus(a, own_name("a"), 0), 0);
	snprintf(path, sizeof(path), ROOT "/%s/bus", own_name("a"));
	EQ(access(path, F_OK), 0);
	EQ(make_bus(b, own_name("a"), 0), -EEXIST);
	EQ(make_bus(a, own_name("c"), 0), -EBADFD);
	EQ(make_bus(b, own_name("b"), 0), 0);
	close(a);
	CHECK(access(path, F_OK) && errno == ENOENT);
	close(b);
}

static void bus_limit(void)
{
	int fd[16];
	char name[32];

	/* the bus of the test is one of the 16 */
	for (int i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "limit%d", i);
		fd[i] = open_at(ROOT "/control");
		EQ(make_bus(fd[i], own_name(name), 0), i < 15 ? 0 : -EMFILE);
	}
	close(fd[0]);
	EQ(make_bus(fd[15], own_name("again"), 0), 0);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	EQ(stat(path, &st), 0);
	return st.st_mode;
}

static void nodes(void)
{
	int fd = open_at(ROOT "/control");
	struct statfs fs;
	char dir[150], path[200];
	char byte;

	EQ(statfs(ROOT, &fs), 0);
	EQ(fs.f_type, 0x44427573);
	EQ(mode_of(ROOT), S_IFDIR | 0555);
	EQ(mode_of(ROOT "/control"), S_IFREG | 0666);
	EQ(mode_of(bus_dir), S_IFDIR | 0555);
	EQ(mode_of(bus_path), S_IFREG | 0666);
	EQ(make_bus(fd, own_name("group"), KDBUS_MAKE_ACCESS_GROUP), 0);
	snprintf(dir, sizeof(dir), ROOT "/%s", own_name("group"));
	snprintf(path, sizeof(path), "%s/bus", dir);
	EQ(mode_of(dir), S_IFDIR | 0550);
	EQ(mode_of(path), S_IFREG | 0660);
	CHECK(mkdir(ROOT "/new", 0755) && (errno == EPERM || errno == EACCES));
	CHECK(open(ROOT "/new", O_RDWR | O_CREAT, 0644) < 0 && errno == EACCES);
	CHECK(unlink(path) && errno == EPERM);
	CHECK(rename(path, ROOT "/x") && errno == EPERM);
	CHECK(read(fd, &byte, 1) < 0 && errno == EINVAL);
	CHECK(write(fd, &byte, 1) < 0 && errno == EINVAL);
}

static void wrong_handles(void)
{
	struct buf b;
	int control = open_at(ROOT "/control"), ep = open_at(bus_path);
	struct pollfd p = { .fd = ep, .events = POLLIN };

	EQ(cmd(control, 0x40189599, &b), -ENOTTY);
	hello_buf(&b, 0);
	EQ(cmd(control, KDBUS_CMD_HELLO, &b), -EBADFD);
	EQ(cmd(bus_fd, KDBUS_CMD_HELLO, &b), -EBADFD);
	start(&b, sizeof(b.cmd));
	EQ(cmd(ep, KDBUS_CMD_BYEBYE, &b), -EBADFD);
	EQ(cmd(ep, KDBUS_CMD_BUS_MAKE, &b), -EBADFD);
	EQ(cmd(ep, KDBUS_CMD_ENDPOINT_UPDATE, &b), -EBADFD);
	EQ(poll(&p, 1, 0), 1);
	EQ(p.revents, POLLERR | POLLHUP);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, ep, 0) == MAP_FAILED && errno == EBADFD);
}

static void hello_test(void)
{
	struct buf b;
	struct peer p;
	int fd = open_at(bus_path);

	hello_buf(&b, 0);
	EQ(cmd(fd, KDBUS_CMD_HELLO, (char *)&b + 1), -EFAULT);
	EQ(cmd(fd, KDBUS_CMD_HELLO, NULL), -EFAULT);
	b.hello.size = 1;
	EQ(cmd(fd, KDBUS_CMD_HELLO, &b), -EINVAL);
	b.hello.size = 32769;
	EQ(cmd(fd, KDBUS_CMD_HELLO, &b), -EMSGSIZE);
	hello_buf(&b, 1ULL << 32);
	EQ(cmd(fd, KDBUS_CMD_HELLO, &b), -EINVAL);
	hello_buf(&b, 0);
	b.hello.pool_size = 0;
	EQ(cmd(fd, KDBUS_CMD_HELLO, &b), -EINVAL);
	b.hello.pool_size = 4097;
	EQ(cmd(fd, KDBUS_CMD_HELLO, &b), -EINVAL);
	b.hello.pool_size = POOL;
	b.hello.offset = ~0ULL;
	EQ(cmd(fd, KDBUS_CMD_HELLO, &b), 0);
	CHECK(b.hello.offset != ~0ULL);
	EQ(b.hello.items_size, 32);
	EQ(b.hello.bus_flags, KDBUS_MAKE_ACCESS_WORLD);
	p.fd = fd;
	EQ(free_slice(&p, b.hello.offset), 0);
	EQ(cmd(fd, KDBUS_CMD_HELLO, &b), -EBADFD);
	hello_buf(&b, KDBUS_HELLO_ACTIVATOR);
	EQ(try_hello(&p, bus_path, &b), -EINVAL);
}

static void negotiation(void)
{
	const uint64_t types[] = { KDBUS_ITEM_NAME, KDBUS_ITEM_FDS, 0x4711 };
	int fd = open_at(bus_path);
	uint64_t *asked;
	struct buf b;

	hello_buf(&b, KDBUS_FLAG_NEGOTIATE);
	asked = put(&b, KDBUS_ITEM_NEGOTIATE, types, sizeof(types));
	EQ(cmd(fd, KDBUS_CMD_HELLO, &b), 0);
	EQ(b.hello.flags, 15);
	EQ(asked[0], KDBUS_ITEM_NAME);
	EQ(asked[1], 0);
	EQ(asked[2], 0);
	/* nothing was done: the handle still takes a HELLO */
	hello_buf(&b, 0);
	EQ(cmd(fd, KDBUS_CMD_HELLO, &b), 0);
}

static int byebye(struct peer *peer)
{
	struct kdbus_cmd c = { .size = sizeof(c) };

	return cmd(peer->fd, KDBUS_CMD_BYEBYE, &c);
}

static void byebye_test(void)
{
	struct pollfd p = { .events = POLLIN };
	struct peer a, b;

	hello(&a);
	hello(&b);
	match_all(&a);
	match_all(&b);
	EQ(broadcast(&a, 5), 0);
	EQ(byebye(&b), -EBUSY);
	EQ(recv_cookie(&b), 5);
	EQ(byebye(&b), 0);
	EQ(byebye(&b), -ECONNRESET);
	p.fd = b.fd;
	EQ(poll(&p, 1, 0), 1);
	EQ(p.revents, POLLERR | POLLHUP);
	EQ(send_plain(&a, b.id, 1), -ENXIO);
	/* the pool outlives the connection */
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, b.fd, 0) != MAP_FAILED);
}

static void pool_mapping(void)
{
	struct peer a;
	void *map;

	hello(&a);
	map = mmap(NULL, POOL, PROT_READ | PROT_WRITE, MAP_SHARED, a.fd, 0);
	CHECK(map == MAP_FAILED && errno == EPERM);
	map = mmap(NULL, POOL, PROT_READ | PROT_WRITE, MAP_PRIVATE, a.fd, 0);
	CHECK(map == MAP_FAILED && errno == EPERM);
	map = mmap(NULL, POOL + 4096, PROT_READ, MAP_SHARED, a.fd, 0);
	CHECK(map == MAP_FAILED && errno == EFAULT);
	map = mmap(NULL, 8192, PROT_READ, MAP_SHARED, a.fd, 4096);
	CHECK(map != MAP_FAILED);
	CHECK(mprotect(map, 4096, PROT_READ | PROT_WRITE) && errno == EACCES);
}

static void free_test(void)
{
	struct kdbus_cmd_list list = { .size = sizeof(list), .flags = KDBUS_LIST_UNIQUE };
	struct peer a;

	hello(&a);
	EQ(free_slice(&a, 0), -ENXIO);
	EQ(free_slice(&a, POOL + 1), -ENXIO);
	EQ(free_slice(&a, POOL), 0);
	EQ(cmd(a.fd, KDBUS_CMD_LIST, &list), 0);
	EQ(cmd(a.fd, KDBUS_CMD_LIST, &list), 0);
	EQ(free_slice(&a, list.offset), 0);
	EQ(free_slice(&a, list.offset), -ENXIO);
}

static int make_endpoint(int fd, const char *name, uint64_t flags)
{
	struct buf b;

	start(&b, sizeof(b.cmd));
	b.cmd.flags = flags;
	put_str(&b, KDBUS_ITEM_MAKE_NAME, name);
	return cmd(fd, KDBUS_CMD_ENDPOINT_MAKE, &b);
}

static int conn_info(struct peer *peer, uint64_t id, const char *name)
{
	struct buf b;

	start(&b, sizeof(b.info));
	b.info.id = id;
	if (name)
		put_str(&b, KDBUS_ITEM_NAME, name);
	return cmd(peer->fd, KDBUS_CMD_CONN_INFO, &b);
}

static void unprivileged_endpoint(void *path)
{
	struct peer p;
	int fd = open_at(bus_path);

	EQ(make_endpoint(fd, "65534-foo", 0), -EPERM);
	if (strstr(path, "world")) {
		hello_at(&p, path, 0);
	} else {
		CHECK(open(path, O_RDWR) < 0 && errno == EACCES);
	}
}

static void allow_see(int ep, const char *name)
{
	struct buf b;

	start(&b, sizeof(b.cmd));
	put_str(&b, KDBUS_ITEM_NAME, name);
	put_access(&b, KDBUS_POLICY_ACCESS_WORLD, 0, KDBUS_POLICY_SEE);
	EQ(cmd(ep, KDBUS_CMD_ENDPOINT_UPDATE, &b), 0);
}

static void endpoint(void)
{
	const char *too_long = "0-0123456789012345678901234567890123456789012345678901234567890123";
	struct kdbus_notify_name_change add = { { ANY, 0 }, { ANY, 0 }, {} };
	struct kdbus_notify_id_change id = { ANY, 0 };
	const struct kdbus_msg *msg;
	struct peer a, b, c;
	char path[200], rule[64];
	struct buf hello_args;
	int ep = open_at(bus_path), other = open_at(bus_path);

	EQ(make_endpoint(ep, too_long, 0), -ENAMETOOLONG);
	EQ(make_endpoint(ep, "1-foo", 0), -EINVAL);
	EQ(make_endpoint(ep, "0-foo", 0), 0);
	EQ(make_endpoint(other, "0-foo", 0), -EEXIST);
	EQ(make_endpoint(other, "0-world", KDBUS_MAKE_ACCESS_WORLD), 0);
	snprintf(path, sizeof(path), "%s/0-world", bus_dir);
	in_child(65534, unprivileged_endpoint, path);
	snprintf(path, sizeof(path), "%s/0-foo", bus_dir);
	in_child(65534, unprivileged_endpoint, path);
	hello_buf(&hello_args, KDBUS_HELLO_MONITOR);
	EQ(try_hello(&a, path, &hello_args), -EOPNOTSUPP);

	hello(&a);
	hello_at(&b, path, 0);
	EQ(match(&b, 1, 0, KDBUS_ITEM_ID_ADD, &id, sizeof(id)), 0);
	hello_at(&c, path, 0);
	EQ(recv_msg(&b, &msg), 0);
	EQ(((const struct kdbus_notify_id_change *)payload(msg_item(msg, KDBUS_ITEM_ID_ADD)))->id,
	   c.id);
	done(&b, msg);

	memcpy(rule, &add, sizeof(add));
	strcpy(rule + sizeof(add), "foo.bar.baz");
	EQ(match(&b, 2, 0, KDBUS_ITEM_NAME_ADD, rule, sizeof(add) + 12), 0);
	EQ(acquire(&a, "foo.bar.baz", 0, NULL), 0);
	EQ(recv_msg(&b, &msg), -EAGAIN);
	EQ(conn_info(&b, 0, "foo.bar.baz"), -ESRCH);
	EQ(conn_info(&b, 0, "foo.bar.bax"), -ESRCH);
	EQ(conn_info(&b, a.id, NULL), -ENXIO);
	EQ(conn_info(&b, 4711, NULL), -ENXIO);
	allow_see(ep, "foo.bar.baz");
	EQ(release(&a, "foo.bar.baz"), 0);
	EQ(acquire(&a, "foo.bar.baz", 0, NULL), 0);
	EQ(recv_msg(&b, &msg), 0);
	CHECK(msg_item(msg, KDBUS_ITEM_NAME_ADD));
	EQ(conn_info(&b, 0, "foo.bar.baz"), 0);
	EQ(conn_info(&b, a.id, NULL), 0);
	close(ep);
	EQ(send_plain(&b, a.id, 1), -ECONNRESET);
	CHECK(access(path, F_OK) && errno == ENOENT);
}

/* §1.9: what is open when the bus goes stays a descriptor, and that is all. */
static void bus_teardown(void)
{
	struct buf b;
	struct peer p;
	int ep = open_at(bus_path), custom = open_at(bus_path);

	hello(&p);
	EQ(make_endpoint(custom, "0-foo", 0), 0);
	close(bus_fd);
	hello_buf(&b, 0);
	EQ(cmd(ep, KDBUS_CMD_HELLO, &b), -ESHUTDOWN);
	start(&b, sizeof(b.cmd));
	EQ(cmd(custom, KDBUS_CMD_ENDPOINT_UPDATE, &b), -ESHUTDOWN);
	EQ(acquire(&p, "a.b", 0, NULL), -ECONNRESET);
	CHECK(open(bus_path, O_RDWR) < 0 && errno == ENOENT);
	close(custom);
	close(ep);
}

static void connection_limit(void)
{
	struct buf b;
	int fd, i;

	for (i = 0; i < 1025; i++) {
		hello_buf(&b, 0);
		b.hello.pool_size = 4096;
		fd = open(bus_path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			break;
		EQ(cmd(fd, KDBUS_CMD_HELLO, &b), i < 1024 ? 0 : -EMFILE);
	}
	/* the default limit on open files is 1024 as well */
	CHECK(i > 1000);
}

static const struct test tests[] = {
	{ "bus-make (§15.2)", bus_make },
	{ "17th bus of a user (§1.5)", bus_limit },
	{ "modes of nodes (§1.1)", nodes },
	{ "commands on wrong handles (§3.6)", wrong_handles },
	{ "hello (§15.2)", hello_test },
	{ "negotiation (§3.4)", negotiation },
	{ "byebye (§15.2)", byebye_test },
	{ "writable-pool (§15.2)", pool_mapping },
	{ "message-free (§15.2)", free_test },
	{ "endpoint (§15.2)", endpoint },
	{ "end of a bus (§1.9)", bus_teardown },
	{ "many connections (§1.5)", connection_limit },
	{ NULL, NULL },
};

int main(void)
{
	return run_tests(tests);
}
