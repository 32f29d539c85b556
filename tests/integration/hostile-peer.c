// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A peer that does what libkdbus never does: it writes records of its own into its lane. The
 * program is linked with the objects of the library, to get at the lane.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/user.h"

#define WAIT_NS 10000000000ULL

struct fixture {
	struct libkdbus_daemon *daemon;
	struct libkdbus *victim, *hostile;
};

static void compose(struct libkdbus_builder *b, uint64_t to, int memfd)
{
	void *built;

	libkdbus_build(b, sizeof(struct kdbus_msg), NULL, 0);
	if (memfd >= 0)
		libkdbus_build_memfd(b, memfd, 0, 16);
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

	compose(&b, id_of(f->victim), -1);
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
static void write_record(struct fixture *f, int memfd)
{
	struct lane_put put = { .type = LANE_REC_MSG };
	struct core_msg_facts facts = { .id = id_of(f->hostile), .bloom_size = 64 };
	struct user *u = to_user(f->hostile);
	struct outgoing out = { .cancel_fd = -1 };
	struct libkdbus_builder b;
	struct core_msg m;

	compose(&b, id_of(f->victim), memfd);
	assert_int_equal(core_msg_parse((void *)b.data, b.size, false, &m), 0);
	assert_int_equal(core_msg_check(&m, &facts), 0);
	wire_init(&out.wire, &m);
	out.fds[0] = memfd;
	out.n_memfds = memfd >= 0;
	user_lock(u);
	assert_int_equal(
		lane_write(u, &peer_at(f->hostile, f->victim)->channel, &out, &put, NULL, 0), 0);
	user_unlock(u);
	libkdbus_build_clear(&b);
}

/* RECV until there is nothing any more; returns how many messages there were. */
static unsigned int drain(struct libkdbus *h)
{
	const struct kdbus_msg *msg;
	unsigned int n = 0;

	while (libkdbus_receive(h, &msg) == 0) {
		libkdbus_done(h, msg);
		n++;
	}
	return n;
}

static void a_record_as_send_writes_it_is_delivered(void **state)
{
	struct fixture *f = *state;

	write_record(f, -1);
	assert_int_equal(drain(f->victim), 1);
	assert_false(peer_at(f->victim, f->hostile)->channel.broken);
}

/* A file that can still shrink would raise SIGBUS in whoever reads it. */
static void an_unsealed_memfd_costs_the_channel(void **state)
{
	struct fixture *f = *state;
	int memfd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(memfd >= 0);
	assert_int_equal(ftruncate(memfd, 4096), 0);
	write_record(f, memfd);
	assert_int_equal(drain(f->victim), 0);
	assert_true(peer_at(f->victim, f->hostile)->channel.broken);
	close(memfd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_record_as_send_writes_it_is_delivered, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(an_unsealed_memfd_costs_the_channel, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
