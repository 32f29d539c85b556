// SPDX-License-Identifier: LGPL-2.1-or-later
/* Activators: ABI 15.3, and message-quota of 15.5 as far as it is about them. */
#include <poll.h>

#include "fixture.h"

#define NAME "foo.test.activator"

static const struct access open_access[] = {
	{ .name = NAME },
	{ NULL, KDBUS_POLICY_ACCESS_WORLD, KDBUS_POLICY_TALK, 0 },
};

static const struct access closed_access[] = {
	{ .name = NAME },
	{ NULL, KDBUS_POLICY_ACCESS_USER, KDBUS_POLICY_OWN, 0 },
};

static struct libkdbus *activator(const struct fixture *f, const struct access *access)
{
	int r;
	struct libkdbus *h = fixture_special(f, KDBUS_HELLO_ACTIVATOR, access, 2, &r);

	assert_int_equal(r, 0);
	return h;
}

/* Once RECV has said that there is nothing, the descriptor does not say otherwise. */
static bool readable(struct libkdbus *h)
{
	struct pollfd p = { .fd = libkdbus_fd(h), .events = POLLIN };
	struct kdbus_cmd_recv cmd;
	int r = fixture_recv_flags(h, KDBUS_RECV_PEEK, 0, &cmd);

	if (r == 0)
		assert_int_equal(fixture_free(h, cmd.msg.offset), 0);
	else
		assert_int_equal(r, -EAGAIN);
	assert_int_equal(poll(&p, 1, 0), r == 0);
	return r == 0;
}

static void await_readable(struct libkdbus *h)
{
	struct pollfd p = { .fd = libkdbus_fd(h), .events = POLLIN };

	assert_int_equal(poll(&p, 1, FIXTURE_TIMEOUT_MS), 1);
}

static int send_to_name(struct libkdbus *h, uint64_t cookie)
{
	const struct letter l = { .name = NAME, .cookie = cookie };

	return fixture_send(h, &l);
}

static void take_over(void **state)
{
	struct libkdbus *act = activator(*state, open_access), *peer = fixture_connect(*state);
	uint64_t flags;

	assert_false(readable(act));
	assert_int_equal(fixture_send_default(peer, 0, NAME, 0xdeafbeef), 0);
	await_readable(act);
	assert_int_equal(libkdbus_acquire(peer, NAME, KDBUS_NAME_REPLACE_EXISTING, &flags), 0);
	assert_int_equal(flags, KDBUS_NAME_PRIMARY | KDBUS_NAME_ACQUIRED);
	fixture_await_queued(peer);
	fixture_expect(peer, 0xdeafbeef);
	fixture_assert_empty(act);
	assert_false(readable(act));
	libkdbus_close(peer);
	libkdbus_close(act);
}

static void service_gets_what_waited(void **state)
{
	struct libkdbus *act = activator(*state, open_access), *peer = fixture_connect(*state);
	struct libkdbus *service = fixture_connect(*state);
	uint64_t i;

	for (i = 1; i <= 5; i++)
		assert_int_equal(send_to_name(peer, i), 0);
	assert_int_equal(libkdbus_acquire(service, NAME, 0, NULL), 0);
	assert_int_equal(send_to_name(peer, 6), 0);
	for (i = 1; i <= 6; i++)
		fixture_expect(service, i);
	libkdbus_close(act);
	assert_int_equal(send_to_name(peer, 7), 0);
	fixture_expect(service, 7);
	libkdbus_close(service);
	assert_int_equal(send_to_name(peer, 8), -ESRCH);
	libkdbus_close(peer);
}

/* What the activator itself receives is its own. */
static void activator_receives(void **state)
{
	struct libkdbus *act = activator(*state, open_access), *peer = fixture_connect(*state);
	const struct letter by_id = { .dst = fixture_id(act), .cookie = 1 };
	const struct letter no_start = { .name = NAME, .flags = KDBUS_MSG_NO_AUTO_START };

	assert_int_equal(fixture_send(peer, &by_id), -ENXIO);
	assert_int_equal(fixture_send(peer, &no_start), -EADDRNOTAVAIL);
	assert_int_equal(send_to_name(peer, 1), 0);
	assert_int_equal(send_to_name(peer, 2), 0);
	fixture_expect(act, 1);
	assert_int_equal(libkdbus_acquire(peer, NAME, 0, NULL), 0);
	fixture_expect(peer, 2);
	fixture_assert_empty(act);
	libkdbus_close(peer);
	libkdbus_close(act);
}

/*
 * What lies unread at a service goes back to the activator when the service ends. When it only
 * releases the name this needs an engine in which its queue is not its own memory (doc/compat.md).
 */
static void back_to_the_activator(void **state)
{
	struct libkdbus *act = activator(*state, open_access), *peer = fixture_connect(*state);
	struct libkdbus *service = fixture_connect(*state);
	const struct kdbus_msg *msg;

	assert_int_equal(libkdbus_acquire(service, NAME, 0, NULL), 0);
	assert_int_equal(send_to_name(peer, 3), 0);
	if (fixture_has_own_ways(*state))
		libkdbus_close(service);
	else
		assert_int_equal(libkdbus_release(service, NAME), 0);
	msg = fixture_await(act);
	assert_int_equal(msg->cookie, 3);
	assert_int_equal(msg->src_id, fixture_id(peer));
	libkdbus_done(act, msg);
	if (!fixture_has_own_ways(*state)) {
		fixture_assert_empty(service);
		libkdbus_close(service);
	}
	libkdbus_close(peer);
	libkdbus_close(act);
}

static void one_activator_a_name(void **state)
{
	struct libkdbus *act = activator(*state, open_access);
	int r;

	assert_null(fixture_special(*state, KDBUS_HELLO_ACTIVATOR, open_access, 2, &r));
	assert_int_equal(r, -EEXIST);
	libkdbus_close(act);
}

/* ---- other users ---- */

struct visitor {
	const struct fixture *f;
	uint64_t dst;
};

static int visit_send(void *arg)
{
	const struct visitor *v = arg;
	struct libkdbus *h = fixture_connect(v->f);
	const struct letter l = { .dst = v->dst, .name = v->dst ? NULL : NAME, .cookie = 0x55 };
	int r = fixture_send(h, &l);

	libkdbus_close(h);
	return -r;
}

static int visit_acquire(void *arg)
{
	const struct visitor *v = arg;
	struct libkdbus *h = fixture_connect(v->f);
	int r = libkdbus_acquire(h, NAME, KDBUS_NAME_REPLACE_EXISTING, NULL);

	libkdbus_close(h);
	return -r;
}

static void restricted(void **state)
{
	struct libkdbus *act, *service, *holder, *peer;
	struct visitor by_id, by_name = { .f = *state };
	int r;

	FIXTURE_NEEDS_ROOT();
	act = activator(*state, closed_access);
	by_id = (struct visitor){ *state, fixture_id(act) };
	assert_int_equal(fixture_as_nobody(visit_send, &by_id), ENXIO);
	assert_int_equal(fixture_as_nobody(visit_send, &by_name), EPERM);
	assert_false(readable(act));
	assert_int_equal(fixture_as_nobody(visit_acquire, &by_name), EPERM);
	service = fixture_connect(*state);
	peer = fixture_connect(*state);
	assert_int_equal(send_to_name(peer, 1), 0);
	assert_int_equal(libkdbus_acquire(service, NAME, 0, NULL), 0);
	fixture_expect(service, 1);
	assert_int_equal(fixture_as_nobody(visit_acquire, &by_name), EPERM);
	assert_int_equal(fixture_as_nobody(visit_send, &by_name), EPERM);
	libkdbus_close(act);
	assert_int_equal(fixture_as_nobody(visit_send, &by_name), EPERM);
	fixture_assert_empty(service);
	assert_int_equal(send_to_name(peer, 2), 0);
	fixture_expect(service, 2);
	holder = fixture_special(*state, KDBUS_HELLO_POLICY_HOLDER, open_access, 2, &r);
	assert_int_equal(r, 0);
	assert_int_equal(fixture_as_nobody(visit_send, &by_name), 0);
	fixture_expect(service, 0x55);
	assert_int_equal(fixture_as_nobody(visit_acquire, &by_name), EPERM);
	libkdbus_close(holder);
	libkdbus_close(peer);
	libkdbus_close(service);
}

/* ---- quota ---- */

static unsigned int fill_activator(struct libkdbus *peer)
{
	unsigned int n = 0;
	int r;

	while ((r = send_to_name(peer, n + 1)) == 0)
		n++;
	assert_int_equal(r, -ENOBUFS);
	return n;
}

/* What @h receives of the @expected messages; the others are lost, and counted. */
static unsigned int count_received(struct libkdbus *h, unsigned int expected)
{
	struct kdbus_cmd_recv cmd;
	unsigned int n = 0;
	uint64_t dropped = 0;
	int r;

	while (n + dropped < expected) {
		r = fixture_recv(h, &cmd);
		dropped += cmd.dropped_msgs;
		if (r == 0) {
			n++;
			assert_int_equal(fixture_free(h, cmd.msg.offset), 0);
		} else if (!cmd.dropped_msgs) {
			assert_int_equal(r, -EAGAIN);
			assert_int_equal(libkdbus_wait(h, fixture_deadline(FIXTURE_TIMEOUT_MS), -1),
					 0);
		}
	}
	assert_int_equal(n + dropped, expected);
	fixture_assert_empty(h);
	return n;
}

static void full_activator(void **state)
{
	struct libkdbus *act = activator(*state, open_access), *a = fixture_connect(*state);
	struct libkdbus *b = fixture_connect(*state), *service = fixture_connect(*state);
	struct kdbus_cmd_recv cmd;
	unsigned int n = fill_activator(a);

	assert_int_equal(n, 256);
	assert_int_equal(send_to_name(b, 1), -ENOBUFS);
	assert_int_equal(fixture_broadcast(b, 1), 0);
	assert_int_equal(libkdbus_acquire(service, NAME, 0, NULL), 0);
	assert_int_equal(count_received(service, n), n);
	assert_int_equal(fixture_recv(act, &cmd), -EAGAIN);
	assert_int_equal(cmd.dropped_msgs, 0);
	libkdbus_close(service);
	libkdbus_close(b);
	libkdbus_close(a);
	libkdbus_close(act);
}

/* The service's queue is nearly full: what finds no room there is lost, and counted. */
static void hand_over_to_a_full_queue(void **state)
{
	struct libkdbus *act = activator(*state, open_access), *a = fixture_connect(*state);
	struct libkdbus *service = fixture_connect(*state);
	const struct letter l = { .dst = fixture_id(service), .cookie = 1 };
	unsigned int n = 0, got;

	while (fixture_send(a, &l) == 0)
		n++;
	fixture_expect(service, 1);
	assert_int_equal(fill_activator(a), 256);
	assert_int_equal(libkdbus_acquire(service, NAME, 0, NULL), 0);
	got = count_received(service, n - 1 + 256);
	/* At least the one for which there was room has moved; not all had. */
	assert_in_range(got, n - 1, n - 1 + 255);
	libkdbus_close(service);
	libkdbus_close(a);
	libkdbus_close(act);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(take_over),
		FIXTURE_TEST(service_gets_what_waited),
		FIXTURE_TEST(activator_receives),
		FIXTURE_TEST(back_to_the_activator),
		FIXTURE_TEST(one_activator_a_name),
		FIXTURE_TEST(restricted),
		FIXTURE_TEST(full_activator),
		FIXTURE_TEST(hand_over_to_a_full_queue),
	};

	return FIXTURE_RUN(tests);
}
