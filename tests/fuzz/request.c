// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Hostile clients of the user engine: the bytes decide what a few of them send to a daemon that
 * runs in this process, over its sockets and in their lanes, in which order, and when it looks:
 * requests that are right, nearly right or nothing at all, with descriptors of any kind. Whatever
 * it is: the daemon does not crash, comes to rest, and when they have gone nothing of them is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define main kdbusd_main
int kdbusd_main(int argc, char **argv);
/* All but main() of it. NOLINTNEXTLINE(bugprone-suspicious-include) */
#include "../../daemon/main.c"
#undef main

#include "fuzz.h"
#include "lane/memfd.h"

#define CLIENTS	  4
#define BUS	  "0-fuzz"
#define ITEM_HEAD offsetof(struct kdbus_item, str)
#define ROUND_MAX 100000u /* more of them in a row, and it never comes to rest */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int __wrap_epoll_wait(int epfd, struct epoll_event *events, int max, int timeout);
int __real_epoll_wait(int epfd, struct epoll_event *events, int max, int timeout);

struct hostile {
	int sock;
	struct lane_channel ch;
	uint32_t serial;
	uint64_t tag;
};

static struct {
	struct daemon daemon;
	char dir[64];
	const uint8_t *data;
	size_t left;
	struct hostile clients[CLIENTS];
	unsigned int rounds;
} f;

static uint8_t byte(void)
{
	return fuzz_byte(&f.data, &f.left);
}

static uint64_t number(void)
{
	uint64_t v = byte();

	/* Mostly a small one: ids, sizes, serials. */
	if (v < 0xf0)
		return v % 48;
	v = v << 56 | (uint64_t)byte() << 32 | byte();
	return v & 1 ? v : v >> 32;
}

static size_t bytes(void *to, size_t max)
{
	size_t n = f.left < max ? f.left : max;

	memcpy(to, f.data, n);
	f.data += n;
	f.left -= n;
	return n;
}

/* ---- the daemon ---- */

static bool is_reading(void)
{
	struct client *c;

	list_for_each_entry(c, &f.daemon.clients, entry)
		if (c->peer.reading)
			return true;
	return false;
}

/* It stops when it would sleep, unless one of its threads has still something for it. */
int __wrap_epoll_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	int n;

	if (epfd != f.daemon.epoll)
		return __real_epoll_wait(epfd, events, max, timeout);
	FUZZ_CHECK(f.rounds++ < ROUND_MAX);
	n = __real_epoll_wait(epfd, events, max, 0);
	if (n != 0 || timeout == 0)
		return n;
	if (is_reading())
		return __real_epoll_wait(epfd, events, max, -1);
	f.daemon.stop = true;
	return 0;
}

static void run_daemon(void)
{
	f.rounds = 0;
	f.daemon.stop = false;
	FUZZ_CHECK(daemon_run(&f.daemon) == 0);
}

/* ---- what they send ---- */

/* A file for every purpose, and some for none */
static int any_file(struct hostile *h)
{
	int fd = -1, sv[2];

	switch (byte() % 8) {
	case 0:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 1:
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == 0)
			close(sv[1]);
		return sv[0];
	case 2:
		fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (ftruncate(fd, byte() << 8) == 0)
			fcntl(fd, F_ADD_SEALS, byte() & 0x1f);
		return fd;
	case 3:
		return memfd_create("fuzz", MFD_CLOEXEC);
	default:
		/* The lane of this client, made once */
		if (h->ch.own || lane_channel_make(&h->ch, LANE_RING_DEFAULT, &fd) < 0)
			fd = open(f.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return fd;
	}
}

static void put(struct hostile *h, const void *data, size_t size, unsigned int n)
{
	int fds[LANE_SOCK_FDS_MAX];
	unsigned int i;

	for (i = 0; i < n; i++)
		fds[i] = any_file(h);
	lane_linux_ops.send(&lane_linux_ops, h->sock, data, size, fds, n);
	for (i = 0; i < n; i++)
		close(fds[i]);
}

static unsigned int some(void)
{
	uint8_t n = byte();

	return n < 0xf0 ? n % 3 : n % (LANE_SOCK_FDS_MAX + 1);
}

/* Items of any type, mostly with the size they say; returns their bytes. */
static size_t items(unsigned char *to, size_t max)
{
	static const uint64_t bases[] = { 0, _KDBUS_ITEM_USER_BASE, _KDBUS_ITEM_ATTACH_BASE,
					  _KDBUS_ITEM_POLICY_BASE, _KDBUS_ITEM_KERNEL_BASE };
	unsigned int n = byte() % 5;
	size_t used = 0, length;
	struct kdbus_item head;

	while (n-- && used + 512 < max) {
		head.type = bases[byte() % 5] + byte() % 20;
		length = byte() % 128;
		memset(to + used, 0, 512);
		length = bytes(to + used + ITEM_HEAD, length);
		head.size = ITEM_HEAD + length;
		if (byte() >= 0xf0)
			head.size = number();
		memcpy(to + used, &head, ITEM_HEAD);
		used += ALIGN(ITEM_HEAD + length, (size_t)8);
	}
	return used;
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static const struct {
	uint64_t nr;
	size_t size;
} commands[] = {
	{ KDBUS_CMD_BUS_MAKE, sizeof(struct kdbus_cmd) },
	{ KDBUS_CMD_ENDPOINT_MAKE, sizeof(struct kdbus_cmd) },
	{ KDBUS_CMD_ENDPOINT_UPDATE, sizeof(struct kdbus_cmd) },
	{ KDBUS_CMD_HELLO, sizeof(struct kdbus_cmd_hello) },
	{ KDBUS_CMD_HELLO, sizeof(struct kdbus_cmd_hello) },
	{ KDBUS_CMD_UPDATE, sizeof(struct kdbus_cmd) },
	{ KDBUS_CMD_BYEBYE, sizeof(struct kdbus_cmd) },
	{ KDBUS_CMD_FREE, sizeof(struct kdbus_cmd_free) },
	{ KDBUS_CMD_CONN_INFO, sizeof(struct kdbus_cmd_info) },
	{ KDBUS_CMD_BUS_CREATOR_INFO, sizeof(struct kdbus_cmd_info) },
	{ KDBUS_CMD_LIST, sizeof(struct kdbus_cmd_list) },
	{ KDBUS_CMD_SEND, sizeof(struct kdbus_cmd_send) },
	{ KDBUS_CMD_RECV, sizeof(struct kdbus_cmd_recv) },
	{ KDBUS_CMD_NAME_ACQUIRE, sizeof(struct kdbus_cmd) },
	{ KDBUS_CMD_NAME_RELEASE, sizeof(struct kdbus_cmd) },
	{ KDBUS_CMD_MATCH_ADD, sizeof(struct kdbus_cmd_match) },
	{ KDBUS_CMD_MATCH_REMOVE, sizeof(struct kdbus_cmd_match) },
};

/* Fields of a command behind its head: mostly small numbers. */
static void fill(unsigned char *arg, size_t from, size_t to)
{
	uint64_t v;

	for (; from + sizeof(v) <= to; from += sizeof(v)) {
		v = number();
		memcpy(arg + from, &v, sizeof(v));
	}
}

static void request(struct hostile *h, bool hello)
{
	union {
		struct ctl_request head;
		uint64_t align;
		unsigned char bytes[8192];
	} d = { .align = 0 };
	unsigned int which = hello ? 3 : byte() % ARRAY_SIZE(commands);
	unsigned char *arg = d.bytes + sizeof(d.head);
	struct ctl_hello ctl = { .monotonic_ns = now(), .features = CTL_FEATURE_DIRECT };
	size_t used = commands[which].size;
	uint64_t size;
	bool extra = commands[which].nr == KDBUS_CMD_HELLO;

	fill(arg, sizeof(size), used);
	if (hello)
		((struct kdbus_cmd_hello *)arg)->pool_size = 1 << 16;
	used += items(arg + used, 4096);
	size = byte() < 0xf0 ? used : number();
	memcpy(arg, &size, sizeof(size));
	d.head = (struct ctl_request){ .version = CTL_VERSION,
				       .type = CTL_REQUEST,
				       .serial = ++h->serial,
				       .nr = (uint32_t)commands[which].nr,
				       .arg_size = (uint32_t)size };
	if (byte() >= 0xf0)
		extra = !extra;
	if (extra) {
		d.head.extra_size = sizeof(ctl);
		memcpy(arg + used, &ctl, sizeof(ctl));
		used += sizeof(ctl);
	}
	put(h, &d, sizeof(d.head) + used - (byte() >= 0xf8), hello ? 1 : some());
}

/* One that is right, for there is more to reach behind it */
static void join(struct hostile *h)
{
	struct {
		struct ctl_request head;
		unsigned char cmd[sizeof(struct kdbus_cmd_hello)];
		struct ctl_hello ctl;
	} d = { .ctl = { .monotonic_ns = now(), .features = CTL_FEATURE_DIRECT } };
	struct kdbus_cmd_hello cmd = { .size = sizeof(d.cmd), .pool_size = 1 << 16 };
	int fd;

	if (lane_channel_make(&h->ch, LANE_RING_DEFAULT, &fd) < 0)
		return;
	cmd.flags = byte() < 0xc0 ? KDBUS_HELLO_ACCEPT_FD : byte() % 16;
	cmd.attach_flags_send = _KDBUS_ATTACH_ALL;
	cmd.attach_flags_recv = byte() % 4 ? 0 : _KDBUS_ATTACH_ALL;
	memcpy(d.cmd, &cmd, sizeof(cmd));
	d.head = (struct ctl_request){ .version = CTL_VERSION,
				       .type = CTL_REQUEST,
				       .serial = ++h->serial,
				       .nr = (uint32_t)KDBUS_CMD_HELLO,
				       .arg_size = sizeof(d.cmd),
				       .extra_size = sizeof(d.ctl) };
	lane_linux_ops.send(&lane_linux_ops, h->sock, &d, sizeof(d), &fd, 1);
	close(fd);
}

static void about_intro(struct hostile *h)
{
	struct ctl_ask_intro ask = { .version = CTL_VERSION, .type = CTL_ASK_INTRO };
	struct ctl_end_intro end = { .version = CTL_VERSION, .type = CTL_END_INTRO };

	if (byte() % 2) {
		ask.peer = number();
		put(h, &ask, sizeof(ask), byte() < 0xf0);
	} else {
		end.peer = number();
		end.number = number();
		put(h, &end, sizeof(end), byte() >= 0xf0);
	}
}

/* A message in record form, or nearly */
static size_t message(unsigned char *to, size_t max)
{
	struct kdbus_msg msg = { .flags = number(), .src_id = number(), .dst_id = number() };
	size_t used = sizeof(msg);

	msg.payload_type = byte() < 0xf0 ? KDBUS_PAYLOAD_DBUS : number();
	msg.cookie = number();
	msg.timeout_ns = byte() % 2 ? ~0ULL >> 1 : number();
	if (byte() % 2)
		msg.dst_id = KDBUS_DST_ID_BROADCAST;
	used += items(to + used, max - used);
	msg.size = byte() < 0xf0 ? used : number();
	memcpy(to, &msg, sizeof(msg));
	return used;
}

static void hand_back(struct hostile *h)
{
	union {
		struct ctl_hand_back head;
		uint64_t align;
		unsigned char bytes[8192];
	} d = { .align = 0 };
	size_t used = message(d.bytes + sizeof(d.head), 4096);

	d.head = (struct ctl_hand_back){ .version = CTL_VERSION,
					 .type = CTL_HAND_BACK,
					 .size = (uint32_t)(byte() < 0xf0 ? used : number()),
					 .flags = byte() % 4,
					 .peer = number(),
					 .stamp = byte() % 2 ? now() : number(),
					 .name_id = number(),
					 .fds = byte() % 3,
					 .memfds = byte() % 3 };
	put(h, &d, sizeof(d.head) + used, some());
}

static void record(struct hostile *h)
{
	struct lane_put put_ = { .type = CTL_REC_SEND + byte() % 10 };
	struct ctl_send send = { .tag = ++h->tag };
	unsigned char body[8192];
	size_t used = sizeof(send);
	int fd, r = 0;
	void *to;

	if (!h->ch.own || !h->ch.peer)
		return;
	if (byte() >= 0xf0)
		put_.type = LANE_REC_MSG;
	send.flags = byte() % 4;
	send.name_id = number();
	memcpy(body, &send, sizeof(send));
	used += message(body + used, 4096);
	put_.length = (uint32_t)used;
	put_.flags = byte() % 4;
	put_.fds = byte() >= 0xe0;
	if (lane_put(&h->ch, &put_, &to) < 0)
		return;
	memcpy(to, body, used);
	if (put_.fds) {
		fd = any_file(h);
		r = lane_put_fds(&h->ch, &fd, 1);
		close(fd);
	}
	if (r == 0)
		lane_publish(&h->ch, now(), 0);
	else
		lane_cancel(&h->ch);
}

static void sock_message(struct hostile *h)
{
	struct lane_sock msg = { .version = LANE_VERSION, .type = byte() % 20 };

	msg.count = byte() % 3;
	msg.value = (uint32_t)number();
	put(h, &msg, sizeof(msg), byte() < 0xf0 ? msg.count : some());
}

static void raw(struct hostile *h)
{
	unsigned char data[1024];
	size_t n = bytes(data, (size_t)byte() * 4);

	put(h, data, n, some());
}

static void scribble(struct hostile *h)
{
	if (h->ch.own)
		((unsigned char *)h->ch.own)[number() % (LANE_HEAD_SIZE + 256)] = byte();
}

/* ---- what they do ---- */

static void leave(struct hostile *h)
{
	lane_channel_deinit(&h->ch);
	*h = (struct hostile){ .sock = -1 };
}

static void come(struct hostile *h)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	const char *node = byte() < 0xe0 ? BUS "/bus" : "control";

	leave(h);
	h->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/%s", f.dir, node);
	FUZZ_CHECK(connect(h->sock, (struct sockaddr *)&sa, sizeof(sa)) == 0);
	lane_channel_init(&h->ch, &lane_linux_ops, h->sock, LANE_PEER_IS_DAEMON);
}

/* Answers bring the daemon's lane. */
static void look(struct hostile *h)
{
	static unsigned char data[CTL_DATAGRAM_MAX];
	int fds[LANE_SOCK_FDS_MAX];
	unsigned int n, i;
	bool short_of;
	ssize_t r;

	do {
		n = 0;
		r = lane_linux_ops.recv(&lane_linux_ops, h->sock, data, sizeof(data), fds, &n,
					&short_of);
		for (i = 0; i < n; i++) {
			if (!h->ch.peer)
				lane_channel_attach(&h->ch, fds[i]);
			close(fds[i]);
		}
	} while (r > 0);
}

static void act(void)
{
	uint8_t what = byte();
	struct hostile *h = &f.clients[what / 16 % CLIENTS];

	if (h->sock < 0)
		come(h);
	switch (what % 16) {
	case 0:
		leave(h);
		return;
	case 1:
		come(h);
		return;
	case 2:
		raw(h);
		return;
	case 3:
		sock_message(h);
		return;
	case 4:
		about_intro(h);
		return;
	case 5:
		hand_back(h);
		return;
	case 6:
	case 7:
		record(h);
		return;
	case 8:
		scribble(h);
		return;
	case 9:
		join(h);
		break;
	case 10:
		request(h, true);
		break;
	case 11:
	case 12:
		request(h, false);
		break;
	default:
		break;
	}
	run_daemon();
	look(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int i;

	f.data = data;
	f.left = size;
	for (i = 0; i < CLIENTS; i++)
		f.clients[i] = (struct hostile){ .sock = -1 };
	while (f.left)
		act();
	for (i = 0; i < CLIENTS; i++)
		leave(&f.clients[i]);
	run_daemon();
	FUZZ_CHECK(list_empty(&f.daemon.clients) && list_empty(&f.daemon.doomed));
	FUZZ_CHECK(RB_EMPTY_ROOT(&f.daemon.accounts));
	FUZZ_CHECK(own_bus(&f.daemon)->entry.next == &f.daemon.buses);
	return 0;
}

static void end(void)
{
	daemon_deinit(&f.daemon);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(f.dir, sizeof(f.dir), "%s/fuzz-XXXXXX", tmp ? tmp : "/tmp");
	FUZZ_CHECK(mkdtemp(f.dir));
	signal(SIGPIPE, SIG_IGN);
	log_open("fuzz-request", false, false);
	FUZZ_CHECK(daemon_init(&f.daemon) == 0);
	FUZZ_CHECK(domain_start(&f.daemon, f.dir, BUS, KDBUS_MAKE_ACCESS_WORLD) == 0);
	atexit(end);
	return 0;
}
