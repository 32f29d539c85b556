// SPDX-License-Identifier: LGPL-2.1-or-later
/* The memory of a pool: who may write it, and who maps it when. */
#include "bus.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define GROUPS	   "/mnt-groups"
#define LARGE	   (1U << 20)
#define LARGE_MSGS 8
#define SMALL_MSGS 10000

static void never_writable(void)
{
	struct peer a;
	void *pool, *moved;
	char byte = 'x';
	int mem;

	hello(&a);
	pool = (void *)a.pool;
	CHECK(mmap(NULL, POOL, PROT_READ | PROT_WRITE, MAP_SHARED, a.fd, 0) == MAP_FAILED);
	EQ(errno, EPERM);
	CHECK(mmap(NULL, POOL, PROT_WRITE, MAP_PRIVATE, a.fd, 0) == MAP_FAILED);
	EQ(errno, EPERM);
	CHECK(mprotect(pool, POOL, PROT_READ | PROT_WRITE) < 0 && errno == EACCES);
	/* as a debugger would, who may write to what is not writable */
	mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	CHECK(mem >= 0);
	CHECK(pwrite(mem, &byte, 1, (off_t)(uintptr_t)pool) < 0 && errno == EIO);
	CHECK(pwrite(a.fd, &byte, 1, 0) < 0);
	moved = mremap(pool, POOL, POOL, MREMAP_MAYMOVE | MREMAP_FIXED, (char *)pool - 2 * POOL);
	CHECK(moved != MAP_FAILED);
	CHECK(mprotect(moved, POOL, PROT_WRITE) < 0 && errno == EACCES);
	a.pool = moved;
	EQ(send_plain(&a, a.id, 1), 0);
	EQ(recv_cookie(&a), 1);
}

/* Slices do not need the mapping; one that is made later shows what is there. */
static void unmapped_while_busy(void)
{
	struct kdbus_cmd_recv c;
	const struct kdbus_msg *msg;
	struct peer a;

	hello(&a);
	EQ(send_plain(&a, a.id, 1), 0);
	EQ(recv_flags(&a, 0, 0, &c), 0);
	EQ(munmap((void *)a.pool, POOL), 0);
	EQ(send_plain(&a, a.id, 2), 0);
	a.pool = mmap(NULL, POOL, PROT_READ, MAP_SHARED, a.fd, 0);
	CHECK(a.pool != MAP_FAILED);
	msg = (const void *)(a.pool + c.msg.offset);
	EQ(msg->cookie, 1);
	done(&a, msg);
	EQ(free_slice(&a, c.msg.offset), -ENXIO);
	EQ(recv_cookie(&a), 2);
}

static bool write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

static void enter_group(const char *group)
{
	char path[128];

	snprintf(path, sizeof(path), GROUPS "/%s/cgroup.procs", group);
	CHECK(write_to(path, "0"));
}

static void make_groups(void)
{
	mkdir(GROUPS, 0755);
	if (mount("groups", GROUPS, "cgroup2", 0, NULL) ||
	    !write_to(GROUPS "/cgroup.subtree_control", "+memory"))
		skip_test();
	EQ(mkdir(GROUPS "/sender", 0755), 0);
	EQ(mkdir(GROUPS "/receiver", 0755), 0);
}

static void remove_groups(void)
{
	enter_group(".");
	EQ(rmdir(GROUPS "/sender"), 0);
	EQ(rmdir(GROUPS "/receiver"), 0);
	EQ(umount(GROUPS), 0);
}

/* Bytes that a group is charged for */
static long long charged(const char *group, const char *kind)
{
	char path[128], name[64];
	long long bytes = -1, n;
	FILE *file;

	snprintf(path, sizeof(path), GROUPS "/%s/memory.stat", group);
	file = fopen(path, "re");
	CHECK(file);
	while (fscanf(file, "%63s %lld", name, &n) == 2)
		if (!strcmp(name, kind))
			bytes = n;
	fclose(file);
	CHECK(bytes >= 0);
	return bytes;
}

static void receive_and_keep(struct peer *from, struct peer *to, size_t size)
{
	static const char bytes[LARGE];
	struct kdbus_cmd_recv c;
	struct buf m;

	msg_buf(&m, to->id, 1);
	if (size)
		put_vec(&m, bytes, size);
	EQ(send_msg(from, &m, 0, NULL), 0);
	EQ(recv_flags(to, 0, 0, &c), 0);
}

/*
 * Or else whoever takes messages and frees none could have the memory of a service used up, which
 * only answers. What the kernel counts is a little out of date.
 */
static void charged_to_the_receiver(void)
{
	struct peer sender, receiver;
	long long slab;
	struct buf b;

	make_groups();
	enter_group("receiver");
	hello_buf(&b, 0);
	b.hello.attach_flags_recv = 0;
	EQ(try_hello(&receiver, bus_path, &b), 0);
	enter_group("sender");
	hello(&sender);
	slab = charged("sender", "slab");
	for (int i = 0; i < LARGE_MSGS; i++)
		receive_and_keep(&sender, &receiver, LARGE);
	for (int i = 0; i < SMALL_MSGS; i++)
		receive_and_keep(&sender, &receiver, 0);
	CHECK(charged("receiver", "shmem") > LARGE_MSGS / 2 * LARGE);
	CHECK(charged("sender", "shmem") < LARGE_MSGS / 2 * LARGE);
	/* each has a slice, which is described by some words */
	CHECK(charged("receiver", "slab") > SMALL_MSGS * 32);
	CHECK(charged("sender", "slab") - slab < SMALL_MSGS * 32);
	bye(&receiver);
	remove_groups();
}

/* ---- memory that a backlog leaves ---- */

#define MESSAGE (1UL << 20)
#define SMALL	(MESSAGE / 16)
#define BACKLOG 6
#define KEPT	((2UL << 20) + (64 << 10)) /* as much as the largest message may need */

/* Memory that the file behind the pool has: nothing but the mapping leads to it. */
static size_t memory_of(const struct peer *peer)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)peer->pool,
		 (unsigned long)peer->pool + POOL);
	EQ(stat(path, &st), 0);
	return (size_t)st.st_blocks * 512;
}

static void send_big(struct peer *to, uint8_t byte)
{
	static uint8_t bytes[MESSAGE];
	struct peer from;
	struct buf m;

	hello(&from);
	memset(bytes, byte, sizeof(bytes));
	msg_buf(&m, to->id, byte);
	put_vec(&m, bytes, sizeof(bytes));
	EQ(send_msg(&from, &m, 0, NULL), 0);
	bye(&from);
}

static const struct kdbus_msg *take_big(struct peer *peer, uint8_t byte)
{
	const struct kdbus_item *item;
	const struct kdbus_msg *msg;
	const uint8_t *bytes;

	EQ(recv_msg(peer, &msg), 0);
	EQ(msg->cookie, byte);
	item = msg_item(msg, KDBUS_ITEM_PAYLOAD_OFF);
	CHECK(item);
	bytes = (const uint8_t *)msg + item->vec.offset;
	EQ(bytes[0], byte);
	EQ(memcmp(bytes, bytes + 1, MESSAGE - 1), 0);
	return msg;
}

/* Received and not freed: what only waits is bounded by the quota. */
static void fill(struct peer *a, const struct kdbus_msg **held)
{
	for (int i = 0; i < BACKLOG; i++) {
		send_big(a, (uint8_t)i);
		held[i] = take_big(a, (uint8_t)i);
	}
}

static void backlog_goes(void)
{
	const struct kdbus_msg *held[BACKLOG];
	struct peer a;

	hello(&a);
	for (int round = 0; round < 3; round++) {
		fill(&a, held);
		CHECK(memory_of(&a) >= BACKLOG * MESSAGE);
		for (int i = 1; i < BACKLOG; i++)
			done(&a, held[i]);
		CHECK(memory_of(&a) <= MESSAGE + KEPT + SMALL);
		/* what is still in use has stayed */
		EQ(((const uint8_t *)held[0])[held[0]->size + MESSAGE / 2], 0);
		EQ(held[0]->cookie, 0);
		done(&a, held[0]);
		CHECK(memory_of(&a) <= KEPT + SMALL);
	}
}

static void dropped_backlog_goes(void)
{
	const struct kdbus_msg *held[BACKLOG];
	struct kdbus_cmd_recv c;
	struct peer a;

	hello(&a);
	fill(&a, held);
	send_big(&a, 1);
	for (int i = 0; i < BACKLOG; i++)
		done(&a, held[i]);
	/* it lies in front of what waits */
	CHECK(memory_of(&a) >= BACKLOG * MESSAGE);
	EQ(recv_flags(&a, KDBUS_RECV_DROP, 0, &c), 0);
	CHECK(memory_of(&a) <= KEPT + SMALL);
}

/* One message at a time finds the memory of the last. */
static void next_message_finds_it(void)
{
	struct peer a;
	size_t before;

	hello(&a);
	send_big(&a, 1);
	before = memory_of(&a);
	CHECK(before >= MESSAGE);
	for (int i = 0; i < 10; i++) {
		done(&a, take_big(&a, 1));
		EQ(memory_of(&a), before);
		send_big(&a, 1);
	}
}

/* Nobody who looks at the pool while memory goes sees anything but bytes. */
static void *look(void *data)
{
	const struct peer *peer = data;

	for (;;) {
		pthread_testcancel();
		for (size_t i = 0; i < POOL; i += 4096)
			(void)((const volatile uint8_t *)peer->pool)[i];
	}
	return NULL;
}

static void looked_at_meanwhile(void)
{
	const struct kdbus_msg *held[BACKLOG];
	pthread_t thread;
	struct peer a;

	hello(&a);
	EQ(pthread_create(&thread, NULL, look, &a), 0);
	for (int round = 0; round < 5; round++) {
		fill(&a, held);
		for (int i = 0; i < BACKLOG; i++)
			done(&a, held[i]);
	}
	EQ(pthread_cancel(thread), 0);
	EQ(pthread_join(thread, NULL), 0);
}

static const struct test tests[] = {
	{ "the pool is never writable (§14.1)", never_writable },
	{ "the pool is unmapped while slices are busy (§14.2)", unmapped_while_busy },
	{ "memory of messages is charged to the receiver (§14.4)", charged_to_the_receiver },
	{ "what a backlog leaves is given back (§14.2)", backlog_goes },
	{ "what is left of a backlog that is dropped, too", dropped_backlog_goes },
	{ "a message finds the memory of the one before", next_message_finds_it },
	{ "memory goes while somebody looks at it", looked_at_meanwhile },
	{ NULL, NULL },
};

int main(void)
{
	return run_tests(tests);
}
