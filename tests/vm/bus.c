// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bus.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define SKIPPED 77

int bus_fd;
char bus_dir[128];
char bus_path[160];

void check_failed(const char *file, int line, const char *what, long long a, long long b)
{
	printf("  %s:%d: %s (%lld, %lld)\n", file, line, what, a, b);
	fflush(stdout);
	_exit(1);
}

void skip_test(void)
{
	fflush(stdout);
	_exit(SKIPPED);
}

static void make_own_bus(void)
{
	char name[64];

	snprintf(name, sizeof(name), "%u-t%d", geteuid(), getpid());
	snprintf(bus_dir, sizeof(bus_dir), ROOT "/%s", name);
	snprintf(bus_path, sizeof(bus_path), "%s/bus", bus_dir);
	bus_fd = open_at(ROOT "/control");
	EQ(make_bus(bus_fd, name, KDBUS_MAKE_ACCESS_WORLD), 0);
}

int run_tests(const struct test *tests)
{
	int failed = 0, status;
	pid_t pid;

	for (; tests->name; tests++) {
		fflush(stdout);
		pid = fork();
		if (!pid) {
			alarm(1000);
			make_own_bus();
			tests->run();
			_exit(0);
		}
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
			printf("ok %s # SKIP this kernel cannot tell\n", tests->name);
			continue;
		}
		if (WIFSIGNALED(status))
			printf("  ended by signal %d\n", WTERMSIG(status));
		printf("%s %s\n", status ? "not ok" : "ok", tests->name);
		failed += status != 0;
	}
	return failed ? 1 : 0;
}

void start(struct buf *b, size_t fixed)
{
	memset(b, 0, sizeof(*b));
	b->cmd.size = fixed;
}

void *put(struct buf *b, uint64_t type, const void *data, size_t size)
{
	size_t at = (b->cmd.size + 7) & ~7UL;
	struct kdbus_item *item = (struct kdbus_item *)((char *)b + at);

	CHECK(at + 16 + size <= sizeof(*b));
	item->size = 16 + size;
	item->type = type;
	if (data)
		memcpy(item->data, data, size);
	b->cmd.size = at + 16 + size;
	return item->data;
}

void put_str(struct buf *b, uint64_t type, const char *str)
{
	put(b, type, str, strlen(str) + 1);
}

void put_u64(struct buf *b, uint64_t type, uint64_t value)
{
	put(b, type, &value, sizeof(value));
}

void put_access(struct buf *b, uint64_t type, uint64_t id, uint64_t access)
{
	struct kdbus_policy_access entry = { .type = type, .access = access, .id = id };

	put(b, KDBUS_ITEM_POLICY_ACCESS, &entry, sizeof(entry));
}

int cmd(int fd, unsigned long nr, void *arg)
{
	int r = ioctl(fd, nr, arg);

	return r < 0 ? -errno : r;
}

int open_at(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

void hello_buf(struct buf *b, uint64_t flags)
{
	start(b, sizeof(b->hello));
	b->hello.flags = flags;
	b->hello.attach_flags_send = ALL;
	b->hello.attach_flags_recv = ALL;
	b->hello.pool_size = POOL;
}

int try_hello(struct peer *peer, const char *path, struct buf *b)
{
	int r;

	peer->fd = open_at(path);
	r = cmd(peer->fd, KDBUS_CMD_HELLO, b);
	if (r) {
		close(peer->fd);
		return r;
	}
	peer->id = b->hello.id;
	peer->pool = mmap(NULL, b->hello.pool_size, PROT_READ, MAP_SHARED, peer->fd, 0);
	CHECK(peer->pool != MAP_FAILED);
	EQ(free_slice(peer, b->hello.offset), 0);
	return 0;
}

void hello_at(struct peer *peer, const char *path, uint64_t flags)
{
	struct buf b;

	hello_buf(&b, flags);
	put_str(&b, KDBUS_ITEM_CONN_DESCRIPTION, "a-test-connect");
	EQ(try_hello(peer, path, &b), 0);
}

void hello(struct peer *peer)
{
	hello_at(peer, bus_path, KDBUS_HELLO_ACCEPT_FD);
}

void bye(struct peer *peer)
{
	munmap((void *)peer->pool, POOL);
	close(peer->fd);
}

int make_bus(int fd, const char *name, uint64_t flags)
{
	struct kdbus_bloom_parameter bloom = { .size = BLOOM, .n_hash = 1 };
	struct buf b;

	start(&b, sizeof(b.cmd));
	b.cmd.flags = flags;
	put(&b, KDBUS_ITEM_BLOOM_PARAMETER, &bloom, sizeof(bloom));
	put_u64(&b, KDBUS_ITEM_ATTACH_FLAGS_SEND, ALL);
	put_str(&b, KDBUS_ITEM_MAKE_NAME, name);
	return cmd(fd, KDBUS_CMD_BUS_MAKE, &b);
}

int acquire(struct peer *peer, const char *name, uint64_t flags, uint64_t *ret_flags)
{
	struct buf b;
	int r;

	start(&b, sizeof(b.cmd));
	b.cmd.flags = flags;
	put_str(&b, KDBUS_ITEM_NAME, name);
	r = cmd(peer->fd, KDBUS_CMD_NAME_ACQUIRE, &b);
	if (ret_flags)
		*ret_flags = b.cmd.return_flags;
	return r;
}

int release(struct peer *peer, const char *name)
{
	struct buf b;

	start(&b, sizeof(b.cmd));
	put_str(&b, KDBUS_ITEM_NAME, name);
	return cmd(peer->fd, KDBUS_CMD_NAME_RELEASE, &b);
}

int match(struct peer *peer, uint64_t cookie, uint64_t flags, uint64_t type, const void *data,
	  size_t size)
{
	struct buf b;

	start(&b, sizeof(b.match));
	b.match.flags = flags;
	b.match.cookie = cookie;
	if (type)
		put(&b, type, data, size);
	return cmd(peer->fd, KDBUS_CMD_MATCH_ADD, &b);
}

void match_all(struct peer *peer)
{
	uint64_t any = ANY;

	EQ(match(peer, 1, 0, KDBUS_ITEM_ID, &any, sizeof(any)), 0);
}

int free_slice(struct peer *peer, uint64_t offset)
{
	struct kdbus_cmd_free c = { .size = sizeof(c), .offset = offset };

	return cmd(peer->fd, KDBUS_CMD_FREE, &c);
}

void msg_buf(struct buf *m, uint64_t dst, uint64_t cookie)
{
	start(m, sizeof(m->msg));
	m->msg.dst_id = dst;
	m->msg.cookie = cookie;
	m->msg.payload_type = KDBUS_PAYLOAD_DBUS;
}

void put_vec(struct buf *m, const void *data, size_t size)
{
	struct kdbus_vec vec = { .size = size, .address = (uintptr_t)data };

	put(m, KDBUS_ITEM_PAYLOAD_VEC, &vec, sizeof(vec));
}

void put_filter(struct buf *m, const uint8_t *filter, uint64_t generation)
{
	uint8_t *data = put(m, KDBUS_ITEM_BLOOM_FILTER, NULL, 8 + BLOOM);

	memcpy(data, &generation, 8);
	if (filter)
		memcpy(data + 8, filter, BLOOM);
}

int send_msg(struct peer *from, struct buf *m, uint64_t flags, struct kdbus_msg_info *ret_reply)
{
	struct kdbus_cmd_send c = {
		.size = sizeof(c),
		.flags = flags,
		.msg_address = (uintptr_t)m,
	};
	int r = cmd(from->fd, KDBUS_CMD_SEND, &c);

	if (ret_reply)
		*ret_reply = c.reply;
	return r;
}

int send_plain(struct peer *from, uint64_t dst, uint64_t cookie)
{
	struct buf m;

	msg_buf(&m, dst, cookie);
	put_vec(&m, "hello, world", 13);
	return send_msg(from, &m, 0, NULL);
}

int send_name(struct peer *from, const char *name, uint64_t cookie)
{
	struct buf m;

	msg_buf(&m, 0, cookie);
	put_str(&m, KDBUS_ITEM_DST_NAME, name);
	return send_msg(from, &m, 0, NULL);
}

int send_call(struct peer *from, uint64_t dst, uint64_t cookie, uint64_t timeout_ns)
{
	struct buf m;

	msg_buf(&m, dst, cookie);
	m.msg.flags = KDBUS_MSG_EXPECT_REPLY;
	m.msg.timeout_ns = timeout_ns;
	return send_msg(from, &m, 0, NULL);
}

int send_reply(struct peer *from, uint64_t dst, uint64_t cookie)
{
	struct buf m;

	msg_buf(&m, dst, 77);
	m.msg.cookie_reply = cookie;
	return send_msg(from, &m, 0, NULL);
}

int broadcast(struct peer *from, uint64_t cookie)
{
	struct buf m;

	msg_buf(&m, KDBUS_DST_ID_BROADCAST, cookie);
	m.msg.flags = KDBUS_MSG_SIGNAL;
	put_filter(&m, NULL, 0);
	return send_msg(from, &m, 0, NULL);
}

int recv_flags(struct peer *peer, uint64_t flags, int64_t priority, struct kdbus_cmd_recv *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->size = sizeof(*ret);
	ret->flags = flags;
	ret->priority = priority;
	return cmd(peer->fd, KDBUS_CMD_RECV, ret);
}

int recv_msg(struct peer *peer, const struct kdbus_msg **ret_msg)
{
	struct kdbus_cmd_recv c;
	int r = recv_flags(peer, 0, 0, &c);

	*ret_msg = r ? NULL : (const void *)(peer->pool + c.msg.offset);
	return r;
}

void done(struct peer *peer, const struct kdbus_msg *msg)
{
	EQ(free_slice(peer, (const char *)msg - peer->pool), 0);
}

void drain(struct peer *peer)
{
	const struct kdbus_msg *msg;

	while (!recv_msg(peer, &msg))
		done(peer, msg);
}

uint64_t recv_cookie(struct peer *peer)
{
	const struct kdbus_msg *msg;
	uint64_t cookie;

	EQ(recv_msg(peer, &msg), 0);
	cookie = msg->cookie;
	done(peer, msg);
	return cookie;
}

const struct kdbus_item *find_item(const void *start_at, size_t fixed, size_t size, uint64_t type)
{
	const struct kdbus_item *item;

	for (size_t at = fixed; at < size; at += (item->size + 7) & ~7UL) {
		item = (const void *)((const char *)start_at + at);
		CHECK(item->size >= 16);
		if (item->type == type)
			return item;
	}
	return NULL;
}

const struct kdbus_item *msg_item(const struct kdbus_msg *msg, uint64_t type)
{
	return find_item(msg, sizeof(*msg), msg->size, type);
}

const void *payload(const struct kdbus_item *item)
{
	CHECK(item);
	return item->data;
}

size_t payload_size(const struct kdbus_item *item)
{
	CHECK(item);
	return item->size - 16;
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

int sealed_memfd(const void *data, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0);
	EQ(write(fd, data, size), size);
	EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
	return fd;
}

bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

pid_t spawn(unsigned int id, void (*fn)(void *data), void *data)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid)
		return pid;
	if (id) {
		EQ(setgroups(0, NULL), 0);
		EQ(setresgid(id, id, id), 0);
		EQ(setresuid(id, id, id), 0);
		/* else /proc/self stays root's */
		EQ(prctl(PR_SET_DUMPABLE, 1), 0);
	}
	alarm(1000);
	fn(data);
	_exit(0);
}

void join(pid_t pid)
{
	int status;

	EQ(waitpid(pid, &status, 0), pid);
	EQ(status, 0);
}

void in_child(unsigned int id, void (*fn)(void *data), void *data)
{
	join(spawn(id, fn, data));
}
