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
#include <sys/mount.h>
#include <sys/stat.h>
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

static bool connect_some(struct peer *peer, unsigned int seed)
{
	static const uint64_t kinds[] = {
		0, 0, 0, 0, 0, KDBUS_HELLO_ACTIVATOR, KDBUS_HELLO_MONITOR
	};
	uint64_t flags = kinds[seed % 7];
	struct buf b;

	hello_buf(&b, flags | KDBUS_HELLO_ACCEPT_FD);
	if (flags == KDBUS_HELLO_ACTIVATOR)
		put_str(&b, KDBUS_ITEM_NAME, seed % 2 ? "a.a" : "a.b");
	return !try_hello(peer, bus_path, &b);
}

/* The masks of an ordinary connection change; for others it is a policy. */
static void update(struct peer *peer, unsigned int *seed)
{
	struct buf b;

	start(&b, sizeof(b.cmd));
	if (next(seed, 2)) {
		put_u64(&b, KDBUS_ITEM_ATTACH_FLAGS_RECV, next(seed, 2) ? ALL : 0);
	} else {
		put_str(&b, KDBUS_ITEM_NAME, some_name(seed));
		put_access(&b, KDBUS_POLICY_ACCESS_WORLD, 0, next(seed, 3));
	}
	cmd(peer->fd, KDBUS_CMD_UPDATE, &b);
}

static void creator(struct peer *peer)
{
	struct kdbus_cmd_info c = { .size = sizeof(c), .attach_flags = ALL };

	if (!cmd(peer->fd, KDBUS_CMD_BUS_CREATOR_INFO, &c))
		free_slice(peer, c.offset);
}

static void byebye(struct peer *peer)
{
	struct kdbus_cmd c = { .size = sizeof(c) };

	cmd(peer->fd, KDBUS_CMD_BYEBYE, &c);
}

/* A connection, or -1: whatever it is for may just have gone. */
static int connect_quietly(const char *path)
{
	struct kdbus_cmd_hello hello = { .size = sizeof(hello), .pool_size = 1 << 16 };
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		cmd(fd, KDBUS_CMD_HELLO, &hello);
	return fd;
}

/* A bus that ends while somebody is on it. */
static void bus_of_a_moment(unsigned int *seed)
{
	char name[64], path[160];
	int fd = open(ROOT "/control", O_RDWR | O_CLOEXEC), on_it;

	snprintf(name, sizeof(name), "0-race-%d-%u", gettid(), next(seed, 3));
	snprintf(path, sizeof(path), ROOT "/%s/bus", name);
	make_bus(fd, name, 0);
	on_it = connect_quietly(path);
	close(fd);
	close(on_it);
}

static void make_endpoint(int fd, const char *name)
{
	struct buf b;

	start(&b, sizeof(b.cmd));
	b.cmd.flags = KDBUS_MAKE_ACCESS_WORLD;
	put_str(&b, KDBUS_ITEM_MAKE_NAME, name);
	cmd(fd, KDBUS_CMD_ENDPOINT_MAKE, &b);
}

static void update_endpoint(int fd, const char *name, uint64_t access)
{
	struct buf b;

	start(&b, sizeof(b.cmd));
	put_str(&b, KDBUS_ITEM_NAME, name);
	put_access(&b, KDBUS_POLICY_ACCESS_WORLD, 0, access);
	cmd(fd, KDBUS_CMD_ENDPOINT_UPDATE, &b);
}

/* An endpoint whose policy changes while others are on it, and which goes under them. */
static void endpoint_of_a_moment(unsigned int *seed)
{
	int fd = open(bus_path, O_RDWR | O_CLOEXEC), on_it;
	char name[64], path[200];

	snprintf(name, sizeof(name), "0-ep-%u", next(seed, 3));
	snprintf(path, sizeof(path), "%s/%s", bus_dir, name);
	/* if somebody else has it, he is the one who changes it */
	make_endpoint(fd, name);
	on_it = connect_quietly(path);
	for (int i = 0; i < 4; i++)
		update_endpoint(fd, some_name(seed), next(seed, 3));
	close(fd);
	close(on_it);
}

static void step(struct peer *peer, unsigned int *seed)
{
	uint64_t dst = ids[next(seed, PROCESSES)], any = ANY;
	struct kdbus_cmd_match remove = { .size = sizeof(remove), .cookie = 1 };

	switch (next(seed, 20)) {
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
	case 13:
		update(peer, seed);
		break;
	case 14:
		creator(peer);
		break;
	case 15:
		/* rarely: it ends the connection if nothing waits */
		if (!next(seed, 8))
			byebye(peer);
		break;
	case 16:
		if (next(seed, 2))
			bus_of_a_moment(seed);
		else
			endpoint_of_a_moment(seed);
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

#define NOWHERE 3
#define SENDS	100000

/* The number of a message that is sent now */
static uint64_t sequence(struct peer *peer)
{
	const struct kdbus_timestamp *stamp;
	const struct kdbus_msg *msg;
	uint64_t seq;

	EQ(send_plain(peer, peer->id, 1), 0);
	EQ(recv_msg(peer, &msg), 0);
	stamp = payload(msg_item(msg, KDBUS_ITEM_TIMESTAMP));
	seq = stamp->seqnum;
	done(peer, msg);
	return seq;
}

static int senders;

static void *send_nowhere(void *data)
{
	struct peer *peer = data;

	for (int i = 0; i < SENDS; i++)
		EQ(send_plain(peer, ABSENT, i), -ENXIO);
	__atomic_sub_fetch(&senders, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* A message has a number even if there is nobody to get it, and so has what the bus says. */
static void no_number_twice(void)
{
	pthread_t thread[NOWHERE];
	uint64_t first, said = 0;
	struct peer a, b;

	hello(&a);
	hello(&b);
	first = sequence(&a);
	senders = NOWHERE;
	for (int i = 0; i < NOWHERE; i++)
		EQ(pthread_create(&thread[i], NULL, send_nowhere, &a), 0);
	for (; __atomic_load_n(&senders, __ATOMIC_SEQ_CST); said += 2) {
		EQ(acquire(&b, "a.a", 0, NULL), 0);
		EQ(release(&b, "a.a"), 0);
	}
	for (int i = 0; i < NOWHERE; i++)
		EQ(pthread_join(thread[i], NULL), 0);
	EQ(sequence(&a) - first, NOWHERE * SENDS + said + 1);
}

#define MOUNTED "/mnt-race"

/* Where everybody works, how much has been done there, and whether it is enough */
static struct {
	unsigned int steps[PROCESSES];
	bool stop;
} * at_work;

static void work_until_told(void *data)
{
	unsigned int number = *(unsigned int *)data, seed = number * 7919 + 1;
	struct peer peer;

	while (!connect_some(&peer, 0))
		;
	ids[number] = peer.id;
	while (!__atomic_load_n(&at_work->stop, __ATOMIC_SEQ_CST)) {
		step(&peer, &seed);
		__atomic_add_fetch(&at_work->steps[number], 1, __ATOMIC_SEQ_CST);
	}
	/* it may have left */
	bye(&peer);
}

static void wait_for_steps(unsigned int more)
{
	unsigned int start;

	for (int i = 0; i < PROCESSES; i++) {
		start = __atomic_load_n(&at_work->steps[i], __ATOMIC_SEQ_CST);
		while (__atomic_load_n(&at_work->steps[i], __ATOMIC_SEQ_CST) - start < more)
			usleep(1000);
	}
}

/* Who is at work keeps what he works on: the file system goes when all have left. */
static void unmount_in_use(void)
{
	unsigned int number[PROCESSES];
	pid_t pid[PROCESSES];
	int fd;

	ids = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	at_work = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(ids != MAP_FAILED && at_work != MAP_FAILED);
	mkdir(MOUNTED, 0755);
	EQ(mount("kdbusfs", MOUNTED, "kdbusfs", 0, NULL), 0);
	fd = open_at(MOUNTED "/control");
	EQ(make_bus(fd, "0-race", KDBUS_MAKE_ACCESS_WORLD), 0);
	strcpy(bus_dir, MOUNTED "/0-race");
	strcpy(bus_path, MOUNTED "/0-race/bus");
	for (unsigned int i = 0; i < PROCESSES; i++) {
		number[i] = i;
		pid[i] = spawn(0, work_until_told, &number[i]);
	}
	wait_for_steps(20);
	CHECK(umount(MOUNTED) < 0 && errno == EBUSY);
	EQ(umount2(MOUNTED, MNT_DETACH), 0);
	wait_for_steps(20);
	close(fd);
	wait_for_steps(20);
	__atomic_store_n(&at_work->stop, true, __ATOMIC_SEQ_CST);
	for (int i = 0; i < PROCESSES; i++)
		join(pid[i]);
	CHECK(access(MOUNTED "/control", F_OK) < 0);
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
	{ "unmount in use (§1.1)", unmount_in_use },
	{ "no sequence number twice (§1.2)", no_number_twice },
	{ "broadcasts at once, each arrives once (§7.9)", broadcasts_at_once },
	{ "module in use cannot be unloaded (§1.1)", unload_in_use },
	{ NULL, NULL },
};

int main(void)
{
	return run_tests(tests);
}
