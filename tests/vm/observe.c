// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the kernel shows of a bus at work: tracepoints, and fdinfo of connections.
 */
#include "bus.h"

#include <fcntl.h>
#include <sys/mount.h>

#define TRACING "/sys/kernel/tracing"

static void write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	CHECK(fd >= 0);
	EQ(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* How many lines of the trace have both texts in them. */
static int traced(const char *event, const char *text)
{
	FILE *file = fopen(TRACING "/trace", "re");
	char line[512];
	int n = 0;

	CHECK(file);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, event) && strstr(line, text);
	fclose(file);
	return n;
}

static int traced_peer(const char *event, const char *what, const struct peer *peer,
		       const char *more)
{
	char text[128];

	snprintf(text, sizeof(text), "%s=%llu %s", what, (unsigned long long)peer->id, more);
	return traced(event, text);
}

static void talk(struct peer *a, struct peer *b)
{
	EQ(acquire(a, "a.b", 0, NULL), 0);
	EQ(acquire(b, "a.b", 0, NULL), -EEXIST);
	EQ(send_name(b, "a.b", 42), 0);
	EQ(recv_cookie(a), 42);
	EQ(send_plain(a, 1000000, 43), -ENXIO);
	EQ(release(a, "a.b"), 0);
}

static void hello_small(struct peer *peer)
{
	struct buf b;

	hello_buf(&b, 0);
	b.hello.pool_size = 4096;
	EQ(try_hello(peer, bus_path, &b), 0);
	match_all(peer);
}

/* A signal that has no room. */
static void lose(struct peer *from)
{
	static char big[8192];
	struct buf m;

	msg_buf(&m, KDBUS_DST_ID_BROADCAST, 1);
	m.msg.flags = KDBUS_MSG_SIGNAL;
	put_filter(&m, NULL, 0);
	put_vec(&m, big, sizeof(big));
	EQ(send_msg(from, &m, 0, NULL), 0);
}

static void tracepoints(void)
{
	struct peer a, b, quiet;

	if (mount("tracefs", TRACING, "tracefs", 0, NULL) && errno != EBUSY)
		skip_test();
	hello(&quiet);
	write_to(TRACING "/trace", "");
	write_to(TRACING "/events/kdbus/enable", "1");
	hello(&a);
	hello_small(&b);
	talk(&a, &b);
	lose(&a);
	close(b.fd);
	write_to(TRACING "/events/kdbus/enable", "0");
	talk(&a, &quiet);

	EQ(traced_peer("kdbus_conn", "conn", &a, "hello"), 1);
	EQ(traced_peer("kdbus_conn", "conn", &b, "bye"), 1);
	EQ(traced_peer("kdbus_name", "conn", &a, "acquire name=a.b"), 1);
	EQ(traced_peer("kdbus_name", "conn", &b, "acquire name=a.b flags=0x0 result=-17"), 1);
	EQ(traced_peer("kdbus_name", "conn", &a, "release name=a.b"), 1);
	EQ(traced_peer("kdbus_send", "src", &b, "dst=0 name=a.b cookie=42"), 1);
	EQ(traced_peer("kdbus_send", "src", &a, "dst=1000000 name= cookie=43"), 1);
	EQ(traced("kdbus_send", "result=-6"), 1);
	EQ(traced_peer("kdbus_recv", "conn", &a, ""), 1);
	EQ(traced_peer("kdbus_drop", "conn", &b, "lost=1"), 1);
	EQ(traced_peer("kdbus", "conn", &quiet, ""), 0);
}

/* The value of a line of fdinfo, which must be there. */
static long long fdinfo(const struct peer *peer, const char *what)
{
	char path[64], line[256], name[64];
	long long value;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", peer->fd);
	file = fopen(path, "re");
	CHECK(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "kdbus-%60[a-z-]: %lld", name, &value) != 2 || strcmp(name, what))
			continue;
		fclose(file);
		return value;
	}
	fclose(file);
	check_failed(__FILE__, __LINE__, what, 0, 0);
}

static void statistics(void)
{
	uint64_t offset;
	struct kdbus_cmd_recv c;
	struct peer a, b, small;

	hello(&a);
	hello(&b);
	EQ(fdinfo(&a, "id"), a.id);
	EQ(fdinfo(&a, "pool-size"), POOL);
	EQ(fdinfo(&a, "pool-used"), 0);
	EQ(fdinfo(&a, "alive"), 1);
	EQ(acquire(&a, "a.b", 0, NULL), 0);
	EQ(acquire(&a, "a.c", 0, NULL), 0);
	match_all(&a);
	EQ(fdinfo(&a, "names"), 2);
	EQ(fdinfo(&a, "matches"), 1);
	EQ(send_plain(&b, a.id, 1), 0);
	EQ(send_plain(&b, a.id, 2), 0);
	EQ(send_plain(&b, 1000000, 2), -ENXIO);
	EQ(fdinfo(&b, "sent"), 2);
	EQ(fdinfo(&a, "queued"), 2);
	CHECK(fdinfo(&a, "queued-bytes") > 0);
	EQ(fdinfo(&a, "pool-used"), fdinfo(&a, "queued-bytes"));
	EQ(recv_flags(&a, 0, 0, &c), 0);
	offset = c.msg.offset;
	EQ(recv_cookie(&a), 2);
	EQ(fdinfo(&a, "received"), 2);
	EQ(fdinfo(&a, "queued"), 0);
	EQ(fdinfo(&a, "queued-bytes"), 0);
	CHECK(fdinfo(&a, "pool-used") > 0);
	EQ(free_slice(&a, offset), 0);
	EQ(fdinfo(&a, "pool-used"), 0);
	hello_small(&small);
	EQ(fdinfo(&small, "pool-size"), 4096);
	lose(&b);
	EQ(fdinfo(&small, "lost"), 1);
	EQ(fdinfo(&small, "lost-unreported"), 1);
	EQ(recv_flags(&small, 0, 0, &c), -EAGAIN);
	EQ(c.dropped_msgs, 1);
	EQ(fdinfo(&small, "lost-unreported"), 0);
	EQ(fdinfo(&small, "lost"), 1);
}

static const struct test tests[] = {
	{ "tracepoints", tracepoints },
	{ "statistics of a connection in fdinfo", statistics },
	{ NULL, NULL },
};

int main(void)
{
	return run_tests(tests);
}
