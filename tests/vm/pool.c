// SPDX-License-Identifier: LGPL-2.1-or-later
/* The memory of a pool: who may write it, and who maps it when. */
#include "bus.h"

#include <fcntl.h>
#include <sys/mman.h>

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

static const struct test tests[] = {
	{ "the pool is never writable (§14.1)", never_writable },
	{ "the pool is unmapped while slices are busy (§14.2)", unmapped_while_busy },
	{ NULL, NULL },
};

int main(void)
{
	return run_tests(tests);
}
