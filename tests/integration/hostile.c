// SPDX-License-Identifier: LGPL-2.1-or-later
/* The three connections of the hostile tests: see hostile.h. */
#include "hostile.h"

#define WAIT_NS 300000000000ULL /* only ends a test that hangs */

static void compose(struct libkdbus_builder *b, uint64_t to, const void *data, size_t size)
{
	void *built;

	libkdbus_build(b, sizeof(struct kdbus_msg), NULL, 0);
	if (size)
		libkdbus_build_vec(b, data, size);
	assert_int_equal(libkdbus_build_end(b, &built), 0);
	((struct kdbus_msg *)built)->dst_id = to;
	((struct kdbus_msg *)built)->payload_type = KDBUS_PAYLOAD_DBUS;
}

uint64_t hostile_id(struct libkdbus *h)
{
	return libkdbus_identity(h)->id;
}

struct peer *hostile_peer_at(struct libkdbus *h, struct libkdbus *other)
{
	return peer_find(to_user(h), hostile_id(other));
}

struct lane_channel *hostile_end(struct fixture *f)
{
	return &hostile_peer_at(f->hostile, f->victim)->channel;
}

struct lane_channel *hostile_victims_end(struct fixture *f)
{
	return &hostile_peer_at(f->victim, f->hostile)->channel;
}

int hostile_send(struct libkdbus *from, struct libkdbus *to, uint64_t cookie)
{
	struct kdbus_msg msg = { .size = sizeof(msg),
				 .dst_id = hostile_id(to),
				 .cookie = cookie,
				 .payload_type = KDBUS_PAYLOAD_DBUS };
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd), .msg_address = (uintptr_t)&msg };

	return libkdbus_send(from, &cmd);
}

unsigned int hostile_drain(struct libkdbus *h)
{
	const struct kdbus_msg *msg;
	unsigned int n = 0;

	while (libkdbus_receive(h, &msg) == 0) {
		libkdbus_done(h, msg);
		n++;
	}
	return n;
}

uint64_t hostile_await(struct libkdbus *h)
{
	const struct kdbus_msg *msg;
	uint64_t cookie;
	int r;

	while ((r = libkdbus_receive(h, &msg)) == -EAGAIN)
		assert_int_equal(libkdbus_wait(h, user_now() + WAIT_NS, -1), 0);
	assert_int_equal(r, 0);
	cookie = msg->cookie;
	libkdbus_done(h, msg);
	return cookie;
}

int hostile_connect(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const char *bus;

	if (!f || libkdbus_daemon_start(NULL, &f->daemon) < 0)
		return -1;
	bus = libkdbus_daemon_bus(f->daemon);
	*state = f;
	if (libkdbus_connect(bus, NULL, &f->victim) < 0 ||
	    libkdbus_connect(bus, NULL, &f->hostile) < 0)
		return -1;
	return libkdbus_connect(bus, NULL, &f->honest);
}

/*
 * The second message asks for an introduction; a later SEND takes it up. So it comes to one who
 * never receives, too.
 */
static void get_introduced(struct libkdbus *from, struct libkdbus *to)
{
	struct peer *p;

	do {
		assert_int_equal(hostile_send(from, to, 1), 0);
		assert_int_equal(hostile_await(to), 1);
		p = hostile_peer_at(from, to);
	} while (!p || p->state != PEER_DIRECT);
}

int hostile_introduce(void **state)
{
	struct fixture *f;

	if (hostile_connect(state) < 0)
		return -1;
	f = *state;
	get_introduced(f->hostile, f->victim);
	return 0;
}

void hostile_be_introduced(struct fixture *f)
{
	struct user *u = to_user(f->hostile);
	struct peer *p;

	do {
		p = hostile_peer_at(f->victim, f->hostile);
		/* What is sent from then on would be direct: the other side would pass its lane. */
		if (p && p->state == PEER_ASKED)
			user_pump(to_user(f->victim), LANE_LOOK_POLL);
		else
			assert_int_equal(hostile_send(f->victim, f->hostile, 1), 0);
	} while (!p || p->state != PEER_DIRECT);
	do {
		hostile_drain(f->hostile);
		user_lock(u);
		user_pump(u, LANE_LOOK_POLL);
		user_unlock(u);
		p = hostile_peer_at(f->hostile, f->victim);
	} while (!p || p->state != PEER_DIRECT);
	assert_null(p->channel.own);
}

int hostile_tear_down(void **state)
{
	struct fixture *f = *state;

	libkdbus_close(f->hostile);
	libkdbus_close(f->victim);
	libkdbus_close(f->honest);
	libkdbus_daemon_stop(f->daemon);
	free(f);
	return 0;
}

/* As direct_send() would, if SEND had let it through. */
static void publish_small(struct fixture *f, struct outgoing *out)
{
	struct lane_put put = { .type = LANE_REC_MSG };

	assert_int_equal(lane_write(to_user(f->hostile), hostile_end(f), out, &put, NULL, 0, NULL),
			 0);
}

static void publish_big(struct fixture *f, struct outgoing *out, hostile_tamper_fn tamper)
{
	struct lane_put put = { .type = LANE_REC_MSG };
	struct lane_channel *ch = hostile_end(f);
	void *body, *payload;

	assert_int_equal(lane_bulk_get(ch, HOSTILE_SIZE, &put, &payload), 0);
	put.length = (uint32_t)out->wire.layout.payload_offset;
	assert_int_equal(lane_put(ch, &put, &body), 0);
	wire_image(&out->wire, body);
	wire_payload(&out->wire, payload);
	lane_publish(ch, lane_clock_stamp(&to_user(f->hostile)->clock, &lane_linux_ops), 0);
	tamper(ch, (struct lane_env *)((unsigned char *)body - LANE_ALIGN));
	lane_ring(ch);
}

static bool any_range(u64 address, u64 size)
{
	return true;
}

void hostile_publish(struct fixture *f, hostile_tamper_fn tamper)
{
	static unsigned char data[HOSTILE_SIZE];
	const struct core_msg_facts facts = { .id = hostile_id(f->hostile),
					      .bloom_size = 64,
					      .range_ok = any_range };
	struct outgoing out = { .cancel_fd = -1 };
	struct user *u = to_user(f->hostile);
	struct libkdbus_builder b;
	struct core_msg m;

	compose(&b, hostile_id(f->victim), data, tamper ? sizeof(data) : 0);
	assert_int_equal(core_msg_parse((void *)b.data, b.size, false, &m), 0);
	assert_int_equal(core_msg_check(&m, &facts), 0);
	wire_init(&out.wire, &m);
	user_lock(u);
	if (tamper)
		publish_big(f, &out, tamper);
	else
		publish_small(f, &out);
	user_unlock(u);
	libkdbus_build_clear(&b);
}

void hostile_say(struct lane_channel *ch, uint16_t type, uint32_t value, int fd)
{
	const struct lane_sock msg = {
		.version = LANE_VERSION, .type = type, .count = fd >= 0, .value = value
	};
	int r;

	r = lane_linux_ops.send(&lane_linux_ops, ch->sock, &msg, sizeof(msg), &fd, fd >= 0);
	assert_true(r == 0 || r == -EAGAIN || r == -EPIPE || r == -ECONNRESET);
}

static int sealed(unsigned int flags, size_t size, int seals)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd < 0)
		return -1;
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_true(!seals || fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

int hostile_file(unsigned int which, const char **ret_name)
{
	static const char *const names[HOSTILE_FILES] = {
		"unsealed",	 "can shrink", "can be written", "can be sealed further",
		"of huge pages", "too small",  "no memfd",
	};
	const int size = F_SEAL_SHRINK | F_SEAL_GROW, write = F_SEAL_FUTURE_WRITE;
	const size_t right = lane_memfd_round(LANE_HEAD_SIZE + LANE_RING_DEFAULT);

	*ret_name = names[which];
	switch (which) {
	case 0:
		return sealed(0, right, 0);
	case 1:
		return sealed(0, right, F_SEAL_GROW | write | F_SEAL_SEAL);
	case 2:
		return sealed(0, right, size | F_SEAL_SEAL);
	case 3:
		return sealed(0, right, size | write);
	case 4:
		return sealed(MFD_HUGETLB, 2u << 20, size | write | F_SEAL_SEAL);
	case 5:
		return sealed(0, 4096, size | write | F_SEAL_SEAL);
	default:
		return open("/dev/zero", O_RDWR | O_CLOEXEC);
	}
}

void hostile_assert_served(struct fixture *f)
{
	uint64_t cookie = 1000;

	for (; cookie < 1020; cookie++) {
		assert_int_equal(hostile_send(f->honest, f->victim, cookie), 0);
		assert_int_equal(hostile_await(f->victim), cookie);
		assert_int_equal(hostile_send(f->victim, f->honest, cookie), 0);
		assert_int_equal(hostile_await(f->honest), cookie);
	}
	assert_int_equal(libkdbus_acquire(f->victim, "test.hostile.victim", 0, NULL), 0);
	assert_int_equal(libkdbus_release(f->victim, "test.hostile.victim"), 0);
}
