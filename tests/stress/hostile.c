// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Clients that speak the daemon's protocol (lib/control.h) wrongly, on purpose. Whatever they do,
 * the daemon lives, another client is served in between, and no descriptor is left behind.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lane/channel.h"
#include "lib/control.h"
#include "libkdbus.h"

struct world {
	struct libkdbus_daemon *daemon;
	struct libkdbus *good;
	unsigned int fds;
	unsigned int random;
};

static unsigned int draw(struct world *w, unsigned int n)
{
	w->random = w->random * 1103515245u + 12345u;
	return (w->random >> 8) % n;
}

/* Lanes, and the page as it is given to a client, are closed by a thread of the daemon, soon. */
static bool is_memfd(int dir, const char *fd)
{
	char target[64] = "";

	return readlinkat(dir, fd, target, sizeof(target) - 1) > 0 &&
	       !strncmp(target, "/memfd:", 7);
}

static unsigned int daemon_fds(const struct world *w, bool with_memfds)
{
	unsigned int n = 0;
	struct dirent *e;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", libkdbus_daemon_pid(w->daemon));
	dir = opendir(path);
	assert_non_null(dir);
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.' && (with_memfds || !is_memfd(dirfd(dir), e->d_name));
	closedir(dir);
	return n;
}

/* Served by the daemon: a command that changes something. */
static void assert_served(struct world *w)
{
	assert_int_equal(libkdbus_acquire(w->good, "test.hostile.good", 0, NULL), 0);
	assert_int_equal(libkdbus_release(w->good, "test.hostile.good"), 0);
}

/* A thread of the daemon closes what clients left, soon. */
static void assert_nothing_left(struct world *w)
{
	unsigned int tries;

	for (tries = 0; tries < 500000 && daemon_fds(w, true) > w->fds; tries++) {
		assert_served(w);
		usleep(200);
	}
	assert_true(daemon_fds(w, true) <= w->fds);
}

static int raw_connect(const struct world *w)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(sock >= 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", libkdbus_daemon_bus(w->daemon));
	if (connect(sock, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		close(sock);
		return -1;
	}
	return sock;
}

static void raw_send(int sock, const void *data, size_t size, const int *fds, unsigned int n)
{
	union {
		char buf[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (n) {
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	/* Refused once the daemon has hung up, which is its right. */
	if (sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		assert_true(errno == EPIPE || errno == ECONNRESET || errno == EAGAIN);
}

static const int lane_seals = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

/* Files that are no lane */
static int odd_file(unsigned int which)
{
	int fd;

	switch (which % 5) {
	case 0:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 1:
		return memfd_create("unsealed", MFD_CLOEXEC);
	case 2:
		fd = memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		assert_true(fd >= 0);
		fcntl(fd, F_ADD_SEALS, lane_seals);
		return fd;
	case 3:
		fd = memfd_create("zeroes", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		assert_true(fd >= 0);
		assert_int_equal(ftruncate(fd, 1 << 19), 0);
		fcntl(fd, F_ADD_SEALS, lane_seals);
		return fd;
	default:
		return open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
}

struct hello {
	struct ctl_request request;
	/* Bytes, for it ends in an array that may have any length. */
	unsigned char cmd[sizeof(struct kdbus_cmd_hello)] __attribute__((aligned(8)));
	struct ctl_hello ctl;
};

static void fill_hello(struct hello *h)
{
	const struct kdbus_cmd_hello cmd = { .size = sizeof(cmd), .pool_size = 1 << 20 };
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	*h = (struct hello){
		.request = { .version = CTL_VERSION,
			     .type = CTL_REQUEST,
			     .serial = 1,
			     .nr = (uint32_t)KDBUS_CMD_HELLO,
			     .arg_size = sizeof(h->cmd),
			     .extra_size = sizeof(h->ctl) },
		.ctl = { .monotonic_ns = (uint64_t)ts.tv_sec * 1000000000ULL,
			 .features = CTL_FEATURE_DIRECT },
	};
	memcpy(h->cmd, &cmd, sizeof(cmd));
}

/* Datagrams of random bytes behind heads that are right or nearly so */
static void garbage(void **state)
{
	struct world *w = *state;
	unsigned char data[4096];
	unsigned int i, j, k, n, size;
	int sock, fds[4];

	for (i = 0; i < 2000; i++) {
		sock = raw_connect(w);
		assert_true(sock >= 0);
		for (j = draw(w, 4); j < 4; j++) {
			size = draw(w, sizeof(data));
			for (k = 0; k < size; k++)
				data[k] = (unsigned char)draw(w, 256);
			if (size >= 4 && draw(w, 4)) {
				data[0] = CTL_VERSION;
				data[1] = 0;
				data[2] = (unsigned char)(draw(w, 2) ? CTL_REQUEST + draw(w, 4) :
								       draw(w, 10));
				data[3] = 0;
			}
			n = draw(w, 4);
			for (k = 0; k < n; k++)
				fds[k] = odd_file(draw(w, 5));
			raw_send(sock, data, size, fds, n);
			for (k = 0; k < n; k++)
				close(fds[k]);
		}
		close(sock);
		if (i % 50 == 0)
			assert_served(w);
	}
	assert_nothing_left(w);
}

/* HELLO with one word changed, and with descriptors that are none, too many or no lanes */
static void broken_hello(void **state)
{
	struct world *w = *state;
	const uint32_t odd[] = { 0, 1, 7, 8, 0x7fffffff, 0xffffffff };
	struct hello h;
	unsigned int i, k, n;
	int sock, fds[4];

	for (i = 0; i < sizeof(h) / 4 * 6; i++) {
		sock = raw_connect(w);
		assert_true(sock >= 0);
		fill_hello(&h);
		memcpy((char *)&h + i / 6 * 4, &odd[i % 6], 4);
		n = i % 4;
		for (k = 0; k < n; k++)
			fds[k] = odd_file(i + k);
		raw_send(sock, &h, sizeof(h) - (i % 7 == 0), fds, n);
		for (k = 0; k < n; k++)
			close(fds[k]);
		if (i % 20 == 0)
			assert_served(w);
		close(sock);
	}
	assert_nothing_left(w);
}

/* A lane as it should be, in a file that is not */
static int unfit_lane(int right, unsigned int flags, int seals)
{
	static unsigned char content[LANE_HEAD_SIZE + LANE_RING_DEFAULT];
	const size_t huge = 2u << 20, rounded = (sizeof(content) + 4095) & ~(size_t)4095;
	int fd = memfd_create("unfit", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd < 0)
		return -1;
	assert_int_equal(ftruncate(fd, (off_t)(flags & MFD_HUGETLB ? huge : rounded)), 0);
	assert_int_equal(pread(right, content, sizeof(content), 0), sizeof(content));
	/* There is no write() to huge pages. */
	if (!(flags & MFD_HUGETLB))
		assert_int_equal(pwrite(fd, content, sizeof(content), 0), sizeof(content));
	assert_true(!seals || fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

/* HELLO with that lane: whether the daemon takes it */
static bool hello_with(struct world *w, int lane)
{
	int sock = raw_connect(w), flags;
	struct ctl_reply reply;
	struct hello h;
	ssize_t n;

	assert_true(sock >= 0);
	fill_hello(&h);
	raw_send(sock, &h, sizeof(h), &lane, 1);
	flags = fcntl(sock, F_GETFL);
	assert_int_equal(fcntl(sock, F_SETFL, flags & ~O_NONBLOCK), 0);
	n = recv(sock, &reply, sizeof(reply), 0);
	close(sock);
	return n == sizeof(reply) && reply.error == 0;
}

static void unfit_lanes(void **state)
{
	static const struct {
		unsigned int flags;
		int seals;
	} unfit[] = {
		{ 0, 0 },
		{ 0, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL },
		{ 0, F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL },
		{ 0, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL },
		{ 0, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE },
		{ MFD_HUGETLB, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL },
	};
	struct world *w = *state;
	struct lane_channel ch;
	unsigned int i;
	int fd, right;

	lane_channel_init(&ch, &lane_linux_ops, -1, LANE_PEER_IS_DAEMON);
	assert_int_equal(lane_channel_make(&ch, LANE_RING_DEFAULT, &right), 0);
	assert_true(hello_with(w, right));
	for (i = 0; i < sizeof(unfit) / sizeof(*unfit); i++) {
		fd = unfit_lane(right, unfit[i].flags, unfit[i].seals);
		if (fd < 0) {
			print_message("# no memfd of huge pages here\n");
			continue;
		}
		if (hello_with(w, fd))
			fail_msg("unfit lane %u was taken", i);
		close(fd);
		assert_served(w);
	}
	close(right);
	lane_channel_deinit(&ch);
	assert_nothing_left(w);
}

/* A right HELLO, with a lane that is then scribbled over */
static int join_bus(struct world *w, struct lane_channel *ch)
{
	struct hello h;
	int sock = raw_connect(w), fd;

	assert_true(sock >= 0);
	lane_channel_init(ch, &lane_linux_ops, sock, LANE_PEER_IS_DAEMON);
	assert_int_equal(lane_channel_make(ch, LANE_RING_DEFAULT, &fd), 0);
	fill_hello(&h);
	raw_send(sock, &h, sizeof(h), &fd, 1);
	close(fd);
	return sock;
}

static void half_open(void **state)
{
	struct world *w = *state;
	struct lane_channel ch;
	unsigned int i;

	for (i = 0; i < 500; i++) {
		join_bus(w, &ch);
		if (i % 3 == 0)
			assert_served(w);
		lane_channel_deinit(&ch);
	}
	assert_nothing_left(w);
}

static void scribble(struct world *w, struct lane_channel *ch)
{
	unsigned char *bytes = (unsigned char *)ch->own;
	unsigned int i, n = 1 + draw(w, 64);

	for (i = 0; i < n; i++)
		bytes[draw(w, draw(w, 2) ? LANE_HEAD_SIZE : 4096)] = (unsigned char)draw(w, 256);
	if (draw(w, 2))
		ch->own->published = draw(w, 2) ? LANE_ALIGN * draw(w, 5000) : draw(w, 1u << 24);
}

static void scribbled_lane(void **state)
{
	struct world *w = *state;
	struct lane_channel ch;
	struct lane_sock bell = { .version = LANE_VERSION, .type = LANE_SOCK_BELL };
	unsigned int i, j;
	int sock;

	for (i = 0; i < 500; i++) {
		sock = join_bus(w, &ch);
		if (i % 2)
			assert_served(w);
		for (j = 0; j < 8; j++) {
			scribble(w, &ch);
			bell.type = (uint16_t)(LANE_SOCK_BELL + draw(w, 7));
			bell.value = draw(w, 6);
			raw_send(sock, &bell, sizeof(bell), NULL, 0);
			if (j % 4 == 0)
				assert_served(w);
		}
		lane_channel_deinit(&ch);
	}
	assert_nothing_left(w);
}

/* Asks, and never reads an answer */
static void never_reads(void **state)
{
	struct world *w = *state;
	struct hello h;
	unsigned int i;
	int sock = raw_connect(w);

	assert_true(sock >= 0);
	fill_hello(&h);
	h.request.nr = (uint32_t)KDBUS_CMD_LIST;
	for (i = 0; i < 5000; i++) {
		raw_send(sock, &h, sizeof(h), NULL, 0);
		if (i % 100 == 0)
			assert_served(w);
	}
	close(sock);
	assert_nothing_left(w);
}

/* More connects than the daemon has descriptors for */
static void flood(void **state)
{
	struct world *w = *state;
	const struct rlimit low = { 128, 128 };
	int socks[1500];
	unsigned int i;
	struct libkdbus *h;

	assert_int_equal(prlimit(libkdbus_daemon_pid(w->daemon), RLIMIT_NOFILE, &low, NULL), 0);
	for (i = 0; i < 1500; i++) {
		socks[i] = raw_connect(w);
		if (i % 100 == 0)
			assert_served(w);
	}
	for (i = 0; i < 1500; i++)
		if (socks[i] >= 0)
			close(socks[i]);
	assert_nothing_left(w);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(w->daemon), NULL, &h), 0);
	libkdbus_close(h);
	assert_nothing_left(w);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (!w || libkdbus_daemon_start(NULL, &w->daemon) < 0)
		return -1;
	if (libkdbus_connect(libkdbus_daemon_bus(w->daemon), NULL, &w->good) < 0)
		return -1;
	/* By now it is in its main loop, and has closed what it needed to get there. */
	assert_served(w);
	w->fds = daemon_fds(w, false) + 1; /* the page */
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	libkdbus_close(w->good);
	libkdbus_daemon_stop(w->daemon);
	free(w);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(garbage, setup, teardown),
		cmocka_unit_test_setup_teardown(broken_hello, setup, teardown),
		cmocka_unit_test_setup_teardown(unfit_lanes, setup, teardown),
		cmocka_unit_test_setup_teardown(half_open, setup, teardown),
		cmocka_unit_test_setup_teardown(scribbled_lane, setup, teardown),
		cmocka_unit_test_setup_teardown(never_reads, setup, teardown),
		cmocka_unit_test_setup_teardown(flood, setup, teardown),
	};

	return cmocka_run_group_tests_name("hostile", tests, NULL, NULL);
}
