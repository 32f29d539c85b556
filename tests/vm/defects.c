// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Defects of the reference that only a kernel can repeat (§17.1). Memory that is not given back is
 * found by what starts the tests.
 */
#include "bus.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* The number the next descriptor gets */
static int next_fd(void)
{
	int fd = dup(bus_fd);

	CHECK(fd >= 0);
	close(fd);
	return fd;
}

static int send_both(struct peer *from, uint64_t dst, int fd, int memfd)
{
	struct kdbus_memfd item = { .size = 8, .fd = memfd };
	struct buf m;

	msg_buf(&m, dst, 1);
	put(&m, KDBUS_ITEM_PAYLOAD_MEMFD, &item, sizeof(item));
	put(&m, KDBUS_ITEM_FDS, &fd, sizeof(fd));
	return send_msg(from, &m, 0, NULL);
}

static const struct kdbus_msg *peek(struct peer *peer, uint64_t *ret_offset)
{
	struct kdbus_cmd_recv c;

	EQ(recv_flags(peer, KDBUS_RECV_PEEK, 0, &c), 0);
	EQ(c.msg.return_flags, 0);
	*ret_offset = c.msg.offset;
	return (const void *)(peer->pool + c.msg.offset);
}

static int fd_of(const struct kdbus_msg *msg)
{
	return *(const int *)payload(msg_item(msg, KDBUS_ITEM_FDS));
}

static int memfd_of(const struct kdbus_msg *msg)
{
	return ((const struct kdbus_memfd *)payload(msg_item(msg, KDBUS_ITEM_PAYLOAD_MEMFD)))->fd;
}

static void peek_installs_nothing(void)
{
	int memfd = sealed_memfd("12345678", 8), next;
	const struct kdbus_msg *msg;
	struct peer a, b;
	uint64_t offset;

	hello(&a);
	hello(&b);
	EQ(send_both(&a, b.id, STDIN_FILENO, memfd), 0);
	next = next_fd();
	msg = peek(&b, &offset);
	EQ(fd_of(msg), -1);
	EQ(memfd_of(msg), -1);
	EQ(next_fd(), next);
	EQ(free_slice(&b, offset), 0);
	EQ(recv_msg(&b, &msg), 0);
	EQ(fd_of(msg), next);
	EQ(memfd_of(msg), next + 1);
}

static void a_monitor_that_takes_none_gets_none(void)
{
	int memfd = sealed_memfd("12345678", 8), next;
	const struct kdbus_msg *msg;
	struct peer a, b, monitor;

	hello(&a);
	hello(&b);
	hello_at(&monitor, bus_path, KDBUS_HELLO_MONITOR);
	EQ(send_both(&a, b.id, STDIN_FILENO, memfd), 0);
	next = next_fd();
	EQ(recv_msg(&monitor, &msg), 0);
	EQ(fd_of(msg), -1);
	EQ(memfd_of(msg), next);
	EQ(next_fd(), next + 1);
}

/* The sender's number is none of the receiver's, also where there is no room for his. */
static void no_room_for_descriptors(void)
{
	int memfd = sealed_memfd("12345678", 8);
	struct kdbus_cmd_recv c;
	const struct kdbus_msg *msg;
	struct peer a, b;

	hello(&a);
	hello(&b);
	EQ(send_both(&a, b.id, STDIN_FILENO, memfd), 0);
	while (dup(bus_fd) >= 0)
		;
	EQ(recv_flags(&b, 0, 0, &c), 0);
	EQ(c.msg.return_flags, KDBUS_RECV_RETURN_INCOMPLETE_FDS);
	msg = (const void *)(b.pool + c.msg.offset);
	EQ(fd_of(msg), -1);
	EQ(memfd_of(msg), -1);
}

/* A command that does not fit the stack is copied to memory of its own. */
static void large_negotiation(void)
{
	uint64_t types[2000] = { KDBUS_ITEM_NAME, KDBUS_ITEM_ID_ADD };
	struct peer a;
	struct buf b;

	hello(&a);
	for (int i = 0; i < 100; i++) {
		start(&b, sizeof(b.cmd));
		b.cmd.flags = KDBUS_FLAG_NEGOTIATE;
		put(&b, KDBUS_ITEM_NEGOTIATE, types, sizeof(types));
		EQ(cmd(a.fd, KDBUS_CMD_NAME_ACQUIRE, &b), 0);
		EQ(b.words[5], KDBUS_ITEM_NAME);
		EQ(b.words[6], 0);
	}
}

static void list_that_does_not_fit(void)
{
	struct kdbus_cmd_list c = { .size = sizeof(c), .flags = KDBUS_LIST_UNIQUE };
	struct peer small, others[200];
	struct buf b;

	hello_buf(&b, 0);
	b.hello.pool_size = 4096;
	EQ(try_hello(&small, bus_path, &b), 0);
	for (int i = 0; i < 200; i++)
		hello(&others[i]);
	EQ(cmd(small.fd, KDBUS_CMD_LIST, &c), -EXFULL);
	EQ(acquire(&small, "com.example.still", 0, NULL), 0);
	for (int i = 0; i < 200; i++)
		bye(&others[i]);
	EQ(cmd(small.fd, KDBUS_CMD_LIST, &c), 0);
	EQ(free_slice(&small, c.offset), 0);
}

/* The result of a command, in memory that cannot be written */
static void *read_only(const void *command, size_t size)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(page != MAP_FAILED);
	memcpy(page, command, size);
	EQ(mprotect(page, 4096, PROT_READ), 0);
	return page;
}

static void results_that_cannot_be_written(void)
{
	struct kdbus_cmd_recv recv = { .size = sizeof(recv) };
	struct kdbus_cmd_list list = { .size = sizeof(list), .flags = KDBUS_LIST_UNIQUE };
	struct kdbus_cmd_recv c;
	struct peer a, b;
	uint64_t offset;

	hello(&a);
	hello(&b);
	EQ(send_plain(&a, b.id, 7), 0);
	peek(&b, &offset);
	EQ(free_slice(&b, offset), 0);
	for (int i = 0; i < 10; i++) {
		EQ(cmd(b.fd, KDBUS_CMD_RECV, read_only(&recv, sizeof(recv))), -EFAULT);
		EQ(cmd(b.fd, KDBUS_CMD_LIST, read_only(&list, sizeof(list))), -EFAULT);
	}
	/* The message is still there, and nothing lies behind it. */
	EQ(recv_flags(&b, 0, 0, &c), 0);
	EQ(c.msg.offset, offset);
	EQ(cmd(b.fd, KDBUS_CMD_LIST, &list), 0);
	EQ(list.offset, c.msg.offset + ((c.msg.msg_size + 7) & ~7ULL));
}

static int ring_with(int fd)
{
	struct io_uring_params params = { .sq_entries = 0 };
	int ring = syscall(SYS_io_uring_setup, 1, &params);

	CHECK(ring >= 0);
	EQ(syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, &fd, 1), 0);
	return ring;
}

/* A ring keeps what is registered with it; a message that kept the ring would keep itself. */
static void io_uring_cycle(void)
{
	struct kdbus_cmd_info info = { .size = sizeof(info) };
	struct peer a, b;
	struct buf m;
	int ring;

	hello(&a);
	hello(&b);
	ring = ring_with(a.fd);
	msg_buf(&m, a.id, 1);
	put(&m, KDBUS_ITEM_FDS, &ring, sizeof(ring));
	EQ(send_msg(&a, &m, 0, NULL), -EOPNOTSUPP);
	EQ(send_msg(&b, &m, 0, NULL), -EOPNOTSUPP);
	info.id = a.id;
	bye(&a);
	EQ(cmd(b.fd, KDBUS_CMD_CONN_INFO, &info), 0);
	EQ(free_slice(&b, info.offset), 0);
	close(ring);
	/* the ring goes a little later */
	while (!cmd(b.fd, KDBUS_CMD_CONN_INFO, &info)) {
		EQ(free_slice(&b, info.offset), 0);
		usleep(1000);
	}
}

static const struct test tests[] = {
	{ "io_uring fd cycle (§7.2)", io_uring_cycle },
	{ "descriptors and PEEK (§17.1 row 1)", peek_installs_nothing },
	{ "descriptors and monitors (§17.1 row 1)", a_monitor_that_takes_none_gets_none },
	{ "no room for descriptors (§17.1 row 2)", no_room_for_descriptors },
	{ "large command that negotiates (§17.1 row 17)", large_negotiation },
	{ "LIST that does not fit (§17.1 row 18)", list_that_does_not_fit },
	{ "results that cannot be written (§17.1 row 20)", results_that_cannot_be_written },
	{ NULL, NULL },
};

int main(void)
{
	return run_tests(tests);
}
