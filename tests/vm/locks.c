// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Who takes which lock of a bus, by the kernel's own statistics: messages never have the
 * bus for themselves. Only a kernel with lock statistics can tell.
 */
#include "bus.h"

#include <fcntl.h>

#define ROUNDS 100
#define STAT   "/proc/lock_stat"

static void set(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		skip_test();
	EQ(write(fd, value, strlen(value)), strlen(value));
	close(fd);
}

/* How often a lock was taken: the eighth number behind its name. */
static long taken(const char *lock)
{
	FILE *file = fopen(STAT, "re");
	char line[512], name[64], *at;
	long n = 0, count;

	CHECK(file);
	while (fgets(line, sizeof(line), file)) {
		at = strrchr(line, ':');
		if (!at || sscanf(line, " %63[^:]", name) != 1 || strcmp(name, lock))
			continue;
		if (sscanf(at + 1, "%*s %*s %*s %*s %*s %*s %*s %ld", &count) == 1)
			n += count;
	}
	fclose(file);
	return n;
}

static void begin(void)
{
	set(STAT, "0");
	set("/proc/sys/kernel/lock_stat", "1");
}

static void unicast(void)
{
	struct peer a, b;

	hello(&a);
	hello(&b);
	begin();
	for (int i = 0; i < ROUNDS; i++) {
		EQ(send_plain(&a, b.id, i), 0);
		EQ(recv_cookie(&b), i);
	}
	CHECK(taken("&bus->lock-R") >= 3 * ROUNDS);
	CHECK(taken("&conn->lock") >= 3 * ROUNDS);
	EQ(taken("&bus->lock-W"), 0);
	EQ(taken("&bus->lanes[i]"), 0);
	EQ(taken("&domain->lock"), 0);
	/* what does change the bus is seen */
	EQ(acquire(&a, "a.b", 0, NULL), 0);
	EQ(taken("&bus->lock-W"), 1);
}

static void calls(void)
{
	struct peer a, b;

	hello(&a);
	hello(&b);
	begin();
	for (int i = 1; i < ROUNDS; i++) {
		EQ(send_call(&a, b.id, i, now_ns() + 600000000000), 0);
		EQ(recv_cookie(&b), i);
		EQ(send_reply(&b, a.id, i), 0);
		EQ(recv_cookie(&a), 77);
	}
	EQ(taken("&bus->lock-W"), 0);
	EQ(taken("&bus->lanes[i]"), 0);
}

static void broadcasts(void)
{
	struct peer a, b;

	hello(&a);
	hello(&b);
	match_all(&b);
	begin();
	for (int i = 0; i < ROUNDS; i++) {
		EQ(broadcast(&a, i), 0);
		EQ(recv_cookie(&b), i);
	}
	EQ(taken("&bus->lock-W"), 0);
	EQ(taken("&bus->lanes[i]"), ROUNDS);
}

static const struct test tests[] = {
	{ "messages to one take no lock of the bus alone (§1.9)", unicast },
	{ "calls and replies neither (§7.7)", calls },
	{ "broadcasts neither (§7.9)", broadcasts },
	{ NULL, NULL },
};

int main(void)
{
	return run_tests(tests);
}
