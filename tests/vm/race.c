// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * All commands at once: processes on all CPUs connect, talk, take names, watch and leave
 * on one bus, in an order that differs from run to run. What each command returns is not
 * looked at, only that nothing breaks: the log of the kernel is the judge, and at the end
 * the bus must still work.
 */
#include "bus.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define PROCESSES 6
#define THREADS	  2
#define ROUNDS	  40
#define STEPS	  60

/* The ids of all that are connected, for others to send to. */
static uint64_t *ids;

static unsigned int next(unsigned int *seed, unsigned int n)
{
	*seed = *seed * 1103515245 + 12345;
	return (*seed >> 16) % n;
}

static const char *some_name(unsigned int *seed)
{
	static const char *const names[] = { "a.a", "a.b", "a.c" };

	return names[next(seed, 3)];
}

static void list(struct peer *peer)
{
	struct kdbus_cmd_list c = { .size = sizeof(c), .flags = 15 };

	if (!cmd(peer->fd, KDBUS_CMD_LIST, &c))
		free_slice(peer, c.offset);
}

static void info(struct peer *peer, uint64_t id)
{
	struct kdbus_cmd_info c = { .size = sizeof(c), .id = id, .attach_flags = ALL };

	if (!cmd(peer->fd, KDBUS_CMD_CONN_INFO, &c))
		free_slice(peer, c.offset);
}

/* A synchronous call that nobody may ever answer: it ends by its deadline. */
static void sync_call(struct peer *peer, uint64_t dst, uint64_t cookie)
{
	struct kdbus_msg_info reply;
	struct buf m;

	msg_buf(&m, dst, cookie);
	m.msg.flags = KDBUS_MSG_EXPECT_REPLY;
	m.msg.timeout_ns = now_ns() + 3000000;
	if (!send_msg(peer, &m, KDBUS_SEND_SYNC_REPLY, &reply))
		free_slice(peer, reply.offset);
}

/*
 * Receive, and answer what looks like a call: another thread that has peeked may free the
 * slice meanwhile, so that anything can stand there.
 */
static void receive(struct peer *peer, uint64_t flags)
{
	const struct kdbus_msg *msg;
	struct kdbus_cmd_recv c;

	if (recv_flags(peer, flags, 0, &c) || !c.msg.msg_size)
		return;
	msg = (const void *)(peer->pool + c.msg.offset);
	if (msg->flags & KDBUS_MSG_EXPECT_REPLY)
		send_reply(peer, msg->src_id, msg->cookie);
	free_slice(peer, c.msg.offset);
}

static void send_fd(struct peer *peer, uint64_t dst)
{
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	struct buf m;

	msg_buf(&m, dst, 1);
	put(&m, KDBUS_ITEM_FDS, &fd, sizeof(fd));
	send_msg(peer, &m, 0, NULL);
	close(fd);
}

static void step(struct peer *peer, unsigned int *seed)
{
	uint64_t dst = ids[next(seed, PROCESSES)], any = ANY;
	struct kdbus_cmd_match remove = { .size = sizeof(remove), .cookie = 1 };

	switch (next(seed, 16)) {
	case 0:
		acquire(peer, some_name(seed), next(seed, 8), NULL);
		break;
	case 1:
		release(peer, some_name(seed));
		break;
	case 2:
		match(peer, 1, next(seed, 2), next(seed, 2) ? KDBUS_ITEM_ID : 0, &any, 8);
		break;
	case 3:
		cmd(peer->fd, KDBUS_CMD_MATCH_REMOVE, &remove);
		break;
	case 4:
		broadcast(peer, 1);
		break;
	case 5:
		list(peer);
		break;
	case 6:
		info(peer, dst);
		break;
	case 7:
		send_name(peer, some_name(seed), 1);
		break;
	case 8:
		send_call(peer, dst, next(seed, 4), now_ns() + next(seed, 5) * 1000000);
		break;
	case 9:
		sync_call(peer, dst, next(seed, 4));
		break;
	case 10:
		send_fd(peer, dst);
		break;
	case 11:
		receive(peer, next(seed, 2) ? KDBUS_RECV_PEEK : KDBUS_RECV_DROP);
		break;
	case 12:
		send_plain(peer, dst, 1);
		break;
	default:
		receive(peer, 0);
	}
}

struct worker {
	struct peer *peer;
	unsigned int seed;
};

static void *work(void *data)
{
	struct worker *worker = data;

	for (int i = 0; i < STEPS; i++)
		step(worker->peer, &worker->seed);
	return NULL;
}

static bool connect_some(struct peer *peer, unsigned int seed)
{
	static const uint64_t kinds[] = { 0, 0, 0, 0, 0, KDBUS_HELLO_ACTIVATOR,
					  KDBUS_HELLO_MONITOR };
	uint64_t flags = kinds[seed % 7];
	struct buf b;

	hello_buf(&b, flags | KDBUS_HELLO_ACCEPT_FD);
	if (flags == KDBUS_HELLO_ACTIVATOR)
		put_str(&b, KDBUS_ITEM_NAME, seed % 2 ? "a.a" : "a.b");
	return !try_hello(peer, bus_path, &b);
}

/* Two threads on one connection, which ends while the other process talks to it. */
static void one_process(void *data)
{
	unsigned int number = *(unsigned int *)data, seed = number * 7919 + 1;
	struct worker worker[THREADS];
	pthread_t thread[THREADS];
	struct peer peer;

	for (int round = 0; round < ROUNDS; round++) {
		if (!connect_some(&peer, seed + round))
			continue;
		ids[number] = peer.id;
		for (int i = 0; i < THREADS; i++) {
			worker[i] = (struct worker){ &peer, seed + round * 31 + i };
			EQ(pthread_create(&thread[i], NULL, work, &worker[i]), 0);
		}
		for (int i = 0; i < THREADS; i++)
			EQ(pthread_join(thread[i], NULL), 0);
		/* what was opened since has been received */
		EQ(close_range(peer.fd + 1, ~0U, 0), 0);
		bye(&peer);
	}
}

static void still_works(void)
{
	struct peer a, b;

	hello(&a);
	hello(&b);
	EQ(acquire(&a, "a.a", 0, NULL), 0);
	EQ(send_name(&b, "a.a", 5), 0);
	EQ(recv_cookie(&a), 5);
}

static void all_commands(void)
{
	pid_t pid[PROCESSES];
	unsigned int number[PROCESSES];

	ids = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(ids != MAP_FAILED);
	for (unsigned int i = 0; i < PROCESSES; i++) {
		number[i] = i;
		pid[i] = spawn(0, one_process, &number[i]);
	}
	for (int i = 0; i < PROCESSES; i++)
		join(pid[i]);
	still_works();
}

/* The bus goes while everybody is busy on it. */
static void work_until_end(void *data)
{
	unsigned int seed = *(unsigned int *)data * 7919 + 1;
	struct peer peer;

	if (!connect_some(&peer, 0))
		return;
	ids[*(unsigned int *)data] = peer.id;
	while (send_plain(&peer, peer.id, 1) != -ECONNRESET)
		step(&peer, &seed);
}

static void bus_ends(void)
{
	pid_t pid[PROCESSES];
	unsigned int number[PROCESSES];

	ids = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(ids != MAP_FAILED);
	for (unsigned int i = 0; i < PROCESSES; i++) {
		number[i] = i;
		fflush(stdout);
		pid[i] = fork();
		if (!pid[i]) {
			close(bus_fd);
			alarm(1000);
			work_until_end(&number[i]);
			_exit(0);
		}
	}
	/* all are at it when all have an id */
	for (int i = 0; i < PROCESSES; i++)
		while (!*(volatile uint64_t *)&ids[i])
			usleep(1000);
	close(bus_fd);
	for (int i = 0; i < PROCESSES; i++)
		join(pid[i]);
}

#define SENDERS	   4
#define BROADCASTS 300

static void send_broadcasts(void *data)
{
	struct peer peer;

	hello(&peer);
	for (int i = 0; i < BROADCASTS; i++)
		EQ(broadcast(&peer, *(uint64_t *)data + i), 0);
}

/* Two entries match, and searches on all CPUs mark what they have found. */
static void broadcasts_at_once(void)
{
	static uint8_t seen[SENDERS * BROADCASTS];
	uint64_t first[SENDERS], any = ANY;
	struct kdbus_cmd_recv c;
	const struct kdbus_msg *msg;
	pid_t pid[SENDERS];
	struct peer peer;
	unsigned int n = 0;

	hello(&peer);
	EQ(match(&peer, 1, 0, KDBUS_ITEM_ID, &any, 8), 0);
	EQ(match(&peer, 2, 0, KDBUS_ITEM_ID, &any, 8), 0);
	for (unsigned int i = 0; i < SENDERS; i++) {
		first[i] = i * BROADCASTS;
		pid[i] = spawn(0, send_broadcasts, &first[i]);
	}
	while (n < SENDERS * BROADCASTS) {
		int r = recv_flags(&peer, 0, 0, &c);

		/* what had no room is counted, once each as well */
		n += c.dropped_msgs;
		if (r)
			continue;
		msg = (const void *)(peer.pool + c.msg.offset);
		EQ(seen[msg->cookie]++, 0);
		done(&peer, msg);
		n++;
	}
	for (int i = 0; i < SENDERS; i++)
		join(pid[i]);
	EQ(n, SENDERS * BROADCASTS);
	EQ(recv_flags(&peer, 0, 0, &c), -EAGAIN);
	EQ(c.dropped_msgs, 0);
}

static void unload_in_use(void)
{
	CHECK(syscall(SYS_delete_module, "kdbus", O_NONBLOCK) && errno == EWOULDBLOCK);
}

static const struct test tests[] = {
	{ "all commands at once (§16)", all_commands },
	{ "end of a bus in use (§1.9)", bus_ends },
	{ "broadcasts at once, each arrives once (§7.9)", broadcasts_at_once },
	{ "module in use cannot be unloaded (§1.1)", unload_in_use },
	{ NULL, NULL },
};

int main(void)
{
	return run_tests(tests);
}
