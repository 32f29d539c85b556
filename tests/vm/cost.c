// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What messages cost, in instructions, for the script "cost": in a machine that counts
 * them, one is one tick of the time stamp counter.
 *
 * Two processes play ping-pong: a message goes to the other, who is asleep, wakes up,
 * receives it and answers with another of the same size. A round trip is twice that. Next
 * to it, each command alone, in a process that has what it needs already. Of many, the
 * median: now and then, a timer interrupts.
 */
#include "bus.h"

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <x86intrin.h>

#define ROUNDS	 400
#define WARM	 50
#define MAX_SIZE (1UL << 20)

static char data[MAX_SIZE];
static uint64_t ticks[ROUNDS];

static uint64_t now(void)
{
	unsigned int cpu;

	return __rdtscp(&cpu);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t median(void)
{
	qsort(ticks, ROUNDS, sizeof(*ticks), compare);
	return ticks[ROUNDS / 2];
}

static void print(const char *what, size_t size, uint64_t cost)
{
	printf("@@ cost %s %zu %llu\n", what, size, (unsigned long long)cost);
}

/* UNIX sockets */

static void socket_echo(void *arg)
{
	int *fds = arg, n;

	close(fds[0]);
	while ((n = read(fds[1], data, sizeof(data))) > 0)
		EQ(write(fds[1], data, n), n);
}

static void socket_round_trip(size_t size)
{
	int fds[2], room = 4 << 20;
	uint64_t start;
	pid_t pid;

	EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	for (int i = 0; i < 2; i++)
		setsockopt(fds[i], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	pid = spawn(0, socket_echo, fds);
	close(fds[1]);
	for (int i = -WARM; i < ROUNDS; i++) {
		start = now();
		EQ(write(fds[0], data, size), size);
		EQ(read(fds[0], data, sizeof(data)), size);
		if (i >= 0)
			ticks[i] = now() - start;
	}
	close(fds[0]);
	join(pid);
	print("socket-round-trip", size, median());
}

/* Both ends in one process: nobody sleeps, nobody is woken. */
static void socket_calls(size_t size)
{
	int fds[2], room = 4 << 20;
	uint64_t start;

	EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	for (int i = -WARM; i < ROUNDS; i++) {
		start = now();
		EQ(write(fds[0], data, size), size);
		EQ(read(fds[1], data, sizeof(data)), size);
		if (i >= 0)
			ticks[i] = now() - start;
	}
	close(fds[0]);
	close(fds[1]);
	print("socket-calls", size, median());
}

/* kdbus */

/* A message of @size bytes, or a sealed memfd of them, made once and sent many times. */
static void make(struct buf *m, uint64_t dst, size_t size, int memfd)
{
	struct kdbus_memfd item = { .size = size, .fd = memfd };

	msg_buf(m, dst, 1);
	if (memfd >= 0)
		put(m, KDBUS_ITEM_PAYLOAD_MEMFD, &item, sizeof(item));
	else
		put_vec(m, data, size);
}

static void connect_peer(struct peer *peer)
{
	struct buf b;

	hello_buf(&b, KDBUS_HELLO_ACCEPT_FD);
	b.hello.attach_flags_recv = 0;
	EQ(try_hello(peer, bus_path, &b), 0);
}

/* Close what came with a message: the descriptor of its one memfd. */
static void close_memfd(const struct kdbus_msg *msg)
{
	const struct kdbus_item *item = msg_item(msg, KDBUS_ITEM_PAYLOAD_MEMFD);

	if (item)
		close(((const struct kdbus_memfd *)payload(item))->fd);
}

static void wait_for(struct peer *peer)
{
	struct pollfd fd = { .fd = peer->fd, .events = POLLIN };
	const struct kdbus_msg *msg;

	EQ(poll(&fd, 1, -1), 1);
	EQ(recv_msg(peer, &msg), 0);
	close_memfd(msg);
	done(peer, msg);
}

struct echo {
	uint64_t to;
	uint64_t *id;
	size_t size;
	int memfd;
};

static void kdbus_echo(void *arg)
{
	struct echo *echo = arg;
	struct peer peer;
	struct buf m;

	connect_peer(&peer);
	make(&m, echo->to, echo->size, echo->memfd);
	*(volatile uint64_t *)echo->id = peer.id;
	for (int i = -WARM; i < ROUNDS; i++) {
		wait_for(&peer);
		EQ(send_msg(&peer, &m, 0, NULL), 0);
	}
}

static void kdbus_round_trip(const char *what, size_t size, int memfd)
{
	struct echo echo = { .size = size, .memfd = memfd };
	struct peer peer;
	struct buf m;
	uint64_t start;
	pid_t pid;

	connect_peer(&peer);
	echo.to = peer.id;
	echo.id = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid = spawn(0, kdbus_echo, &echo);
	while (!*(volatile uint64_t *)echo.id)
		usleep(1000);
	make(&m, *echo.id, size, memfd);
	for (int i = -WARM; i < ROUNDS; i++) {
		start = now();
		EQ(send_msg(&peer, &m, 0, NULL), 0);
		wait_for(&peer);
		if (i >= 0)
			ticks[i] = now() - start;
	}
	join(pid);
	bye(&peer);
	print(what, size, median());
}

enum { SEND, RECV, FREE, ALL_THREE };

/* One of the three commands, or all, of a message from @peer to itself. */
static void kdbus_calls(const char *what, size_t size, int memfd, int which)
{
	const struct kdbus_msg *msg;
	struct peer peer;
	struct buf m;
	uint64_t at[4];

	connect_peer(&peer);
	make(&m, peer.id, size, memfd);
	for (int i = -WARM; i < ROUNDS; i++) {
		at[SEND] = now();
		EQ(send_msg(&peer, &m, 0, NULL), 0);
		at[RECV] = now();
		EQ(recv_msg(&peer, &msg), 0);
		at[FREE] = now();
		close_memfd(msg);
		done(&peer, msg);
		at[ALL_THREE] = now();
		if (i >= 0)
			ticks[i] = which == ALL_THREE ? at[3] - at[0] : at[which + 1] - at[which];
	}
	bye(&peer);
	print(what, size, median());
}

static void sizes(void)
{
	static const size_t sizes[] = { 64, 1024, 8192, 65536 };

	memset(data, 1, sizeof(data));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		socket_calls(sizes[i]);
		socket_round_trip(sizes[i]);
		kdbus_calls("kdbus-calls", sizes[i], -1, ALL_THREE);
		kdbus_round_trip("kdbus-round-trip", sizes[i], -1);
	}
}

static void commands(void)
{
	static const size_t sizes[] = { 64, 8192, 65536, 1 << 20 };

	memset(data, 1, sizeof(data));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		kdbus_calls("kdbus-send", sizes[i], -1, SEND);
		kdbus_calls("kdbus-recv", sizes[i], -1, RECV);
		kdbus_calls("kdbus-free", sizes[i], -1, FREE);
	}
}

/* What a descriptor costs, however it travels: installed at the receiver, and closed. */
static void socket_fd_calls(int memfd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec vec = { .iov_base = data, .iov_len = 64 };
	struct msghdr msg = { .msg_iov = &vec, .msg_iovlen = 1 };
	uint64_t start;
	int fds[2];

	EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	for (int i = -WARM; i < ROUNDS; i++) {
		start = now();
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		control.header = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.header), &memfd, sizeof(int));
		EQ(sendmsg(fds[0], &msg, 0), 64);
		EQ(recvmsg(fds[1], &msg, MSG_CMSG_CLOEXEC), 64);
		close(*(int *)CMSG_DATA(&control.header));
		if (i >= 0)
			ticks[i] = now() - start;
	}
	close(fds[0]);
	close(fds[1]);
	print("socket-fd-calls", 64, median());
}

static void memfd(void)
{
	int fd;

	memset(data, 1, sizeof(data));
	fd = sealed_memfd(data, sizeof(data));
	socket_fd_calls(fd);
	kdbus_calls("kdbus-memfd-calls", sizeof(data), fd, ALL_THREE);
	kdbus_round_trip("kdbus-memfd-round-trip", sizeof(data), fd);
}

static const struct test tests[] = {
	{ "messages of several sizes, against UNIX sockets", sizes },
	{ "each command alone", commands },
	{ "memfd", memfd },
	{ NULL, NULL },
};

int main(void)
{
	struct sched_param param = { .sched_priority = 1 };

	/* or else, who is woken goes first in some runs and not in others */
	sched_setscheduler(0, SCHED_FIFO, &param);
	return run_tests(tests);
}
