// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A peer that does what libkdbus never does: it writes records of its own into its lane. The
 * program is linked with the objects of the library, to get at the lane.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/user.h"

#define WAIT_NS 10000000000ULL

struct fixture {
	struct libkdbus_daemon *daemon;
	struct libkdbus *victim, *hostile;
};

/* What a message brings: -1 for nothing */
struct files {
	int fd;
	int memfd;
};

static const struct files no_files = { -1, -1 };

static void compose(struct libkdbus_builder *b, uint64_t to, const struct files *files)
{
	void *built;

	libkdbus_build(b, sizeof(struct kdbus_msg), NULL, 0);
	if (files->memfd >= 0)
		libkdbus_build_memfd(b, files->memfd, 0, 16);
	if (files->fd >= 0)
		libkdbus_build_fds(b, &files->fd, 1);
	assert_int_equal(libkdbus_build_end(b, &built), 0);
	((struct kdbus_msg *)built)->dst_id = to;
	((struct kdbus_msg *)built)->payload_type = KDBUS_PAYLOAD_DBUS;
}

static uint64_t id_of(struct libkdbus *h)
{
	return libkdbus_identity(h)->id;
}

static void send_plain(struct fixture *f)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct libkdbus_builder b;

	compose(&b, id_of(f->victim), &no_files);
	cmd.msg_address = (uintptr_t)b.data;
	assert_int_equal(libkdbus_send(f->hostile, &cmd), 0);
	libkdbus_build_clear(&b);
}

static void receive_one(struct libkdbus *h)
{
	const struct kdbus_msg *msg;
	int r;

	while ((r = libkdbus_receive(h, &msg)) == -EAGAIN)
		assert_int_equal(libkdbus_wait(h, user_now() + WAIT_NS, -1), 0);
	assert_int_equal(r, 0);
	libkdbus_done(h, msg);
}

static struct peer *peer_at(struct libkdbus *h, struct libkdbus *other)
{
	return peer_find(to_user(h), id_of(other));
}

/*
 * The second message asks for an introduction; a later SEND takes it up. So it comes to one who
 * never receives, too.
 */
static int set_up(void **state)
{
	static struct fixture f;
	struct peer *p;

	assert_int_equal(libkdbus_daemon_start(NULL, &f.daemon), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f.daemon), NULL, &f.victim), 0);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f.daemon), NULL, &f.hostile), 0);
	do {
		send_plain(&f);
		receive_one(f.victim);
		p = peer_at(f.hostile, f.victim);
	} while (!p || p->state != PEER_DIRECT);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	libkdbus_close(f->hostile);
	libkdbus_close(f->victim);
	libkdbus_daemon_stop(f->daemon);
	return 0;
}

/* As direct_send() would, if SEND had let it through. */
static void write_record(struct fixture *f, const struct files *files)
{
	struct lane_put put = { .type = LANE_REC_MSG };
	struct core_msg_facts facts = { .id = id_of(f->hostile), .bloom_size = 64 };
	struct user *u = to_user(f->hostile);
	struct outgoing out = { .cancel_fd = -1 };
	struct libkdbus_builder b;
	struct core_msg m;

	compose(&b, id_of(f->victim), files);
	assert_int_equal(core_msg_parse((void *)b.data, b.size, false, &m), 0);
	assert_int_equal(core_msg_check(&m, &facts), 0);
	wire_init(&out.wire, &m);
	out.fds[0] = files->fd;
	out.n_fds = files->fd >= 0;
	out.n_memfds = files->memfd >= 0;
	out.fds[out.n_fds] = files->memfd;
	user_lock(u);
	assert_int_equal(lane_write(u, &peer_at(f->hostile, f->victim)->channel, &out, &put, NULL,
				    0, NULL),
			 0);
	user_unlock(u);
	libkdbus_build_clear(&b);
}

/*
 * RECV until there is nothing any more, as an event loop does: as long as the descriptor is
 * readable. Returns how many messages there were.
 */
static unsigned int drain(struct libkdbus *h)
{
	struct pollfd p = { .fd = libkdbus_fd(h), .events = POLLIN };
	const struct kdbus_msg *msg;
	unsigned int n = 0;

	do {
		while (libkdbus_receive(h, &msg) == 0) {
			libkdbus_done(h, msg);
			n++;
		}
	} while (poll(&p, 1, 0) > 0);
	return n;
}

static void a_record_as_send_writes_it_is_delivered(void **state)
{
	struct fixture *f = *state;

	write_record(f, &no_files);
	assert_int_equal(drain(f->victim), 1);
	assert_false(peer_at(f->victim, f->hostile)->channel.broken);
}

static int make_memfd(unsigned int flags, off_t size, int seals)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd < 0)
		return fd;
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

#define SEALED (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* The record is not delivered, its descriptors are closed, and the channel is lost. */
static void assert_costs_the_channel(struct fixture *f, const struct files *files)
{
	write_record(f, files);
	assert_int_equal(drain(f->victim), 0);
	assert_true(peer_at(f->victim, f->hostile)->channel.broken);
	close(files->fd);
	close(files->memfd);
}

static void a_sealed_memfd_is_delivered(void **state)
{
	struct fixture *f = *state;
	struct files files = { -1, make_memfd(0, 4096, SEALED) };

	assert_true(files.memfd >= 0);
	write_record(f, &files);
	assert_int_equal(drain(f->victim), 1);
	assert_false(peer_at(f->victim, f->hostile)->channel.broken);
	close(files.memfd);
}

/* A file that can still shrink would raise SIGBUS in whoever reads it. */
static void an_unsealed_memfd_costs_the_channel(void **state)
{
	struct files files = { -1, make_memfd(0, 4096, F_SEAL_GROW | F_SEAL_WRITE) };

	assert_true(files.memfd >= 0);
	assert_costs_the_channel(*state, &files);
}

static void a_memfd_that_is_too_short_costs_the_channel(void **state)
{
	struct files files = { -1, make_memfd(0, 15, SEALED) };

	assert_true(files.memfd >= 0);
	assert_costs_the_channel(*state, &files);
}

/* A page of hugetlbfs may be missing when it is read: SIGBUS again. */
static void a_memfd_of_hugetlbfs_costs_the_channel(void **state)
{
	struct files files = { -1, make_memfd(MFD_HUGETLB, 1 << 30, SEALED) };

	if (files.memfd < 0)
		skip();
	assert_costs_the_channel(*state, &files);
}

static void something_else_than_a_memfd_costs_the_channel(void **state)
{
	struct files files = { -1, open("/dev/null", O_RDONLY | O_CLOEXEC) };

	assert_true(files.memfd >= 0);
	assert_costs_the_channel(*state, &files);
}

/* Sockets in sockets make rings that only the kernel's collector undoes (ABI 7.2). */
static void a_unix_socket_costs_the_channel(void **state)
{
	struct files files = { socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), -1 };

	assert_true(files.fd >= 0);
	assert_costs_the_channel(*state, &files);
}

/* To close a file of a file system of theirs could block. */
static void a_descriptor_from_other_authority_costs_the_channel(void **state)
{
	struct files files = { open("/dev/null", O_RDONLY | O_CLOEXEC), -1 };
	struct fixture *f = *state;

	assert_true(files.fd >= 0);
	peer_at(f->victim, f->hostile)->intro &= ~(u64)CTL_INTRO_EQUAL;
	assert_costs_the_channel(f, &files);
}

/* More memfds than the message has items for */
static void a_descriptor_too_many_costs_the_channel(void **state)
{
	struct files files = { open("/dev/null", O_RDONLY | O_CLOEXEC), -1 };
	struct fixture *f = *state;
	struct lane_channel *ch = &peer_at(f->hostile, f->victim)->channel;
	struct lane_put put = { .type = LANE_REC_MSG, .length = sizeof(struct kdbus_msg) };
	struct kdbus_msg msg = { .size = sizeof(msg), .dst_id = id_of(f->victim) };
	void *body;

	put.memfds = 1;
	assert_int_equal(lane_put(ch, &put, &body), 0);
	memcpy(body, &msg, sizeof(msg));
	assert_int_equal(lane_put_fds(ch, &files.fd, 1), 0);
	lane_publish(ch, user_now(), 0);
	assert_int_equal(lane_ring(ch), 0);
	assert_int_equal(drain(f->victim), 0);
	assert_true(peer_at(f->victim, f->hostile)->channel.broken);
	close(files.fd);
}

/* How many descriptors of /dev/null this process has, both handles' together */
/* Memory is closed at once, other files by a thread. */
#define MANY "many-files"

static unsigned int count_files(void)
{
	char path[64], target[32];
	unsigned int n = 0, fd;
	ssize_t length;

	for (fd = 0; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%u", fd);
		length = readlink(path, target, sizeof(target) - 1);
		target[max(length, 0)] = 0;
		n += strstr(target, MANY) != NULL;
	}
	return n;
}

static void open_many(int *fds)
{
	unsigned int i;

	for (i = 0; i < LANE_FDS_MAX; i++) {
		fds[i] = memfd_create(MANY, MFD_CLOEXEC);
		assert_true(fds[i] >= 0);
	}
}

static void close_many(const int *fds)
{
	unsigned int i;

	for (i = 0; i < LANE_FDS_MAX; i++)
		close(fds[i]);
}

static void await_gone(struct libkdbus *h, uint64_t id)
{
	while (peer_find(to_user(h), id)) {
		drain(h);
		libkdbus_wait(h, user_now() + 1000000, -1);
	}
}

/* The sender ends between the two steps of rule 6: its record never comes. */
static void descriptors_without_a_record_end_with_the_channel(void **state)
{
	struct fixture *f = *state;
	struct lane_channel *ch = &peer_at(f->hostile, f->victim)->channel;
	struct lane_put put = { .type = LANE_REC_MSG, .memfds = LANE_FDS_MAX };
	uint64_t id = id_of(f->hostile);
	int fds[LANE_FDS_MAX];
	unsigned int before;
	void *body;

	open_many(fds);
	before = count_files();
	assert_int_equal(lane_put(ch, &put, &body), 0);
	assert_int_equal(lane_put_fds(ch, fds, LANE_FDS_MAX), 0);
	assert_int_equal(drain(f->victim), 0);
	assert_int_equal(count_files(), before + LANE_FDS_MAX);
	libkdbus_close(f->hostile);
	f->hostile = NULL;
	await_gone(f->victim, id);
	assert_int_equal(count_files(), before);
	close_many(fds);
}

/* More than a lane may have in flight, and no records */
static void descriptors_in_a_flood_cost_the_channel(void **state)
{
	struct fixture *f = *state;
	int sock = peer_at(f->hostile, f->victim)->channel.sock;
	struct lane_sock msg = { .version = LANE_VERSION,
				 .type = LANE_SOCK_FDS,
				 .count = LANE_FDS_MAX };
	int fds[LANE_FDS_MAX];
	unsigned int before;

	open_many(fds);
	before = count_files();
	for (msg.value = 1; msg.value <= 3; msg.value++)
		assert_int_equal(lane_linux_ops.send(&lane_linux_ops, sock, &msg, sizeof(msg), fds,
						     LANE_FDS_MAX),
				 0);
	assert_int_equal(drain(f->victim), 0);
	assert_true(peer_at(f->victim, f->hostile)->channel.broken);
	assert_true(count_files() <= before + 2 * LANE_FDS_MAX);
	close_many(fds);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_record_as_send_writes_it_is_delivered),
		TEST(a_sealed_memfd_is_delivered),
		TEST(an_unsealed_memfd_costs_the_channel),
		TEST(a_memfd_that_is_too_short_costs_the_channel),
		TEST(a_memfd_of_hugetlbfs_costs_the_channel),
		TEST(something_else_than_a_memfd_costs_the_channel),
		TEST(a_unix_socket_costs_the_channel),
		TEST(a_descriptor_from_other_authority_costs_the_channel),
		TEST(a_descriptor_too_many_costs_the_channel),
		TEST(descriptors_without_a_record_end_with_the_channel),
		TEST(descriptors_in_a_flood_cost_the_channel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
