// SPDX-License-Identifier: LGPL-2.1-or-later
/* The memory of a pool: who may write it, and who maps it when. */
#include "bus.h"

#include <fcntl.h>
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

static const struct test tests[] = {
	{ "the pool is never writable (§14.1)", never_writable },
	{ "the pool is unmapped while slices are busy (§14.2)", unmapped_while_busy },
	{ "memory of messages is charged to the receiver (§14.4)", charged_to_the_receiver },
	{ NULL, NULL },
};

int main(void)
{
	return run_tests(tests);
}
