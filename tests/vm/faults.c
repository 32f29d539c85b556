// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Every allocation, and every copy from or to user memory, fails once: for each command
 * the first, then the second, until it has gone through without. Whatever the command
 * returned, the bus must work afterwards; what has leaked is found by what runs the tests.
 * Only a kernel with fault injection can do that.
 */
#include "bus.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>

#define FAIL_NTH "/proc/thread-self/fail-nth"
#define DEBUG	 "/sys/kernel/debug/"
#define MANY	 2000

static struct peer peer, other;

static void set(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		skip_test();
	EQ(write(fd, value, strlen(value)), strlen(value));
	close(fd);
}

/* Let all kinds of failure happen, without a line in the log for each. */
static void allow(void)
{
	set(DEBUG "failslab/ignore-gfp-wait", "N");
	set(DEBUG "failslab/verbose", "0");
	set(DEBUG "fail_page_alloc/ignore-gfp-wait", "N");
	set(DEBUG "fail_page_alloc/ignore-gfp-highmem", "N");
	set(DEBUG "fail_page_alloc/min-order", "0");
	set(DEBUG "fail_page_alloc/verbose", "0");
	set(DEBUG "fail_usercopy/verbose", "0");
}

static void still_works(void)
{
	struct peer third;
	struct kdbus_cmd_recv c;

	drain(&peer);
	drain(&other);
	recv_flags(&other, 0, 0, &c);
	hello(&third);
	EQ(acquire(&third, "x.y", 0, NULL), 0);
	EQ(send_name(&other, "x.y", 7), 0);
	EQ(recv_cookie(&third), 7);
	EQ(send_plain(&third, other.id, 8), 0);
	EQ(recv_cookie(&other), 8);
	bye(&third);
}

/* Did the failure come before this look? It may hit the look itself. */
static bool has_failed(int fd)
{
	char text[16] = "";

	return pread(fd, text, sizeof(text) - 1, 0) > 0 && atoi(text) == 0;
}

static void arm(int fd, int n)
{
	char text[16];

	/* one that is still armed may hit this */
	snprintf(text, sizeof(text), "%d", n);
	while (pwrite(fd, text, strlen(text), 0) < 0)
		EQ(errno, EFAULT);
}

/*
 * Run @command with the first, second, ... failure, until there is none. It may return
 * errors of its own only if it consists of several, of which one could not be undone.
 */
static void each(int (*command)(void), bool others)
{
	bool failed;
	int fd, n, r;

	allow();
	hello(&peer);
	hello(&other);
	match_all(&other);
	fd = open(FAIL_NTH, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	for (n = 1; n < MANY; n++) {
		arm(fd, n);
		r = command();
		failed = has_failed(fd);
		arm(fd, 0);
		if (!failed) {
			EQ(r, 0);
			break;
		}
		if (r && r != -EFAULT && r != -ENFILE && !others)
			EQ(r, -ENOMEM);
		still_works();
		/* descriptors that came */
		EQ(close_range(fd + 1, ~0U, 0), 0);
	}
	CHECK(n > 1 && n < MANY);
	close(fd);
	still_works();
}

static int do_hello(void)
{
	struct peer p;
	struct buf b;
	int r;

	p.fd = open(bus_path, O_RDWR | O_CLOEXEC);
	if (p.fd < 0)
		return -errno;
	hello_buf(&b, 0);
	put_str(&b, KDBUS_ITEM_CONN_DESCRIPTION, "description");
	r = cmd(p.fd, KDBUS_CMD_HELLO, &b);
	close(p.fd);
	return r;
}

static int do_make_bus(void)
{
	int fd = open(ROOT "/control", O_RDWR | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = make_bus(fd, "0-faults", 0);
	close(fd);
	return r;
}

static int do_make_endpoint(void)
{
	int fd = open(bus_path, O_RDWR | O_CLOEXEC), r;
	struct buf b;

	if (fd < 0)
		return -errno;
	start(&b, sizeof(b.cmd));
	put_str(&b, KDBUS_ITEM_MAKE_NAME, "0-end");
	r = cmd(fd, KDBUS_CMD_ENDPOINT_MAKE, &b);
	if (!r) {
		start(&b, sizeof(b.cmd));
		put_str(&b, KDBUS_ITEM_NAME, "a.*");
		put_access(&b, KDBUS_POLICY_ACCESS_WORLD, 0, KDBUS_POLICY_TALK);
		put_str(&b, KDBUS_ITEM_NAME, "b.c");
		r = cmd(fd, KDBUS_CMD_ENDPOINT_UPDATE, &b);
	}
	close(fd);
	return r;
}

static int do_names(void)
{
	int r = acquire(&peer, "a.b", 0, NULL);

	if (!r)
		r = acquire(&other, "a.b", KDBUS_NAME_QUEUE, NULL);
	/* what was acquired is given up, or else the next round cannot acquire it */
	for (int i = 0; i < 100 && release(&peer, "a.b") == -EFAULT; i++)
		;
	for (int i = 0; i < 100 && release(&other, "a.b") == -EFAULT; i++)
		;
	return r;
}

static int do_matches(void)
{
	struct kdbus_cmd_match remove = { .size = sizeof(remove), .cookie = 5 };
	uint8_t mask[BLOOM] = { 1 };
	int r = match(&peer, 5, 0, KDBUS_ITEM_BLOOM_MASK, mask, sizeof(mask));

	if (!r)
		r = match(&peer, 5, KDBUS_MATCH_REPLACE, KDBUS_ITEM_NAME, "a.b", 4);
	for (int i = 0; i < 100 && cmd(peer.fd, KDBUS_CMD_MATCH_REMOVE, &remove) == -EFAULT; i++)
		;
	return r;
}

static uint8_t bytes[3 * 4096];

static int send_rich(uint64_t dst, uint64_t flags)
{
	int fds[2] = { 0, 1 }, r;
	struct kdbus_memfd memfd = { .size = 8 };
	struct buf m;

	memfd.fd = memfd_create("faults", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memfd.fd < 0)
		return -errno;
	if (write(memfd.fd, "12345678", 8) != 8 || fcntl(memfd.fd, F_ADD_SEALS, 15)) {
		r = -errno;
		close(memfd.fd);
		return r;
	}
	msg_buf(&m, dst, 1);
	m.msg.flags = flags;
	if (flags & KDBUS_MSG_EXPECT_REPLY)
		m.msg.timeout_ns = now_ns() + 60000000000;
	put_vec(&m, bytes, sizeof(bytes));
	put(&m, KDBUS_ITEM_PAYLOAD_MEMFD, &memfd, sizeof(memfd));
	put(&m, KDBUS_ITEM_FDS, fds, sizeof(fds));
	r = send_msg(&peer, &m, 0, NULL);
	close(memfd.fd);
	return r;
}

static int do_send(void)
{
	return send_rich(other.id, 0);
}

static int do_call(void)
{
	int r = send_rich(other.id, KDBUS_MSG_EXPECT_REPLY);

	if (!r)
		r = send_reply(&other, peer.id, 1);
	/* a reply that has failed leaves a call open: end it, by ending who should answer */
	if (r) {
		bye(&other);
		hello(&other);
		match_all(&other);
	}
	return r;
}

static int do_broadcast(void)
{
	struct buf m;

	msg_buf(&m, KDBUS_DST_ID_BROADCAST, 1);
	m.msg.flags = KDBUS_MSG_SIGNAL;
	put_vec(&m, bytes, sizeof(bytes));
	put_filter(&m, NULL, 0);
	return send_msg(&peer, &m, 0, NULL);
}

static int do_recv(void)
{
	struct kdbus_cmd_recv c;
	int r;

	/* not injected: the failure comes with RECV, or not at all */
	r = send_rich(other.id, 0);
	if (r)
		return r;
	r = recv_flags(&other, 0, 0, &c);
	if (!r)
		r = free_slice(&other, c.msg.offset);
	return r;
}

static int do_ask(void)
{
	struct kdbus_cmd_list list = { .size = sizeof(list), .flags = 15 };
	struct kdbus_cmd_info info = { .size = sizeof(info), .id = other.id,
				       .attach_flags = ALL };
	int r = cmd(peer.fd, KDBUS_CMD_LIST, &list);

	if (!r)
		r = free_slice(&peer, list.offset);
	if (!r)
		r = cmd(peer.fd, KDBUS_CMD_CONN_INFO, &info);
	if (!r)
		r = free_slice(&peer, info.offset);
	if (!r)
		r = cmd(peer.fd, KDBUS_CMD_BUS_CREATOR_INFO, &info);
	if (!r)
		r = free_slice(&peer, info.offset);
	return r;
}

static int do_mount(void)
{
	if (mount("kdbusfs", "/mnt", "kdbusfs", 0, NULL))
		return -errno;
	/* the failure may come here, once: what is mounted is not to stay */
	while (umount2("/mnt", MNT_DETACH))
		CHECK(errno == EFAULT || errno == ENOMEM);
	return 0;
}

static void hello_fails(void)
{
	each(do_hello, false);
}

static void make_fails(void)
{
	each(do_make_bus, false);
	each(do_make_endpoint, false);
}

static void names_fail(void)
{
	each(do_names, true);
	each(do_matches, true);
}

static void send_fails(void)
{
	each(do_send, true);
	each(do_call, true);
	each(do_broadcast, true);
}

static void recv_fails(void)
{
	each(do_recv, true);
	each(do_ask, true);
}

static void mount_fails(void)
{
	each(do_mount, true);
}

static const struct test tests[] = {
	{ "HELLO with every failure (§6.4)", hello_fails },
	{ "BUS_MAKE, ENDPOINT_MAKE and _UPDATE with every failure (§6.1)", make_fails },
	{ "names and matches with every failure (§6.11, §6.13)", names_fail },
	{ "SEND with every failure (§6.14)", send_fails },
	{ "RECV and queries with every failure (§6.15)", recv_fails },
	{ "mount with every failure (§1.1)", mount_fails },
	{ NULL, NULL },
};

int main(void)
{
	return run_tests(tests);
}
