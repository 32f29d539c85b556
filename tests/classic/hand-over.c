// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What becomes of messages to a name whose native owner does not take them: it keeps them as long
 * as it lives, as every owner of D-Bus does; when it goes they go to whoever has the name then.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native.h"
#include "own-bus.h"

#define NAME  "org.example.HandOver"
#define PATH  "/org/example/HandOver"
#define IFACE "org.example.HandOver1"
#define CALLS 5

static struct own_bus bus;

static int start(void **state)
{
	own_bus_start(&bus, "", 0);
	native_path = bus.native;
	return 0;
}

static int stop(void **state)
{
	return own_bus_stop(&bus);
}

static void ping(struct peer *p)
{
	want_done(p, peer_call(p, DBUS, DBUS_PATH, DBUS ".Peer", "Ping", ""));
}

/* Numbered calls with a message that wants no answer between them; the bus has taken all. */
static void call_all(struct peer *p, uint32_t serials[CALLS])
{
	struct dbusp_desc said = { .type = DBUSP_METHOD_CALL,
				   .flags = DBUSP_NO_REPLY_EXPECTED,
				   .path = DBUSP_STR(PATH),
				   .interface = DBUSP_STR(IFACE),
				   .member = DBUSP_STR("Note"),
				   .destination = DBUSP_STR(NAME),
				   .signature = DBUSP_STR("s") };
	char text[16];
	int i;

	for (i = 0; i < CALLS; i++) {
		snprintf(text, sizeof(text), "%d", i);
		serials[i] = peer_call(p, NAME, PATH, IFACE, "Say", "s", text);
		peer_send(p, said, text);
	}
	ping(p);
}

/* All of it in order, each call answered */
static void serve_native(struct libkdbus *h)
{
	const struct kdbus_msg *msg;
	struct dbusp_header header;
	char text[16];
	int i;

	for (i = 0; i < CALLS; i++) {
		snprintf(text, sizeof(text), "%d", i);
		msg = native_next(h);
		assert_true(msg->flags & KDBUS_MSG_EXPECT_REPLY);
		assert_string_equal(native_text(h, msg, &header), text);
		native_reply(h, msg, (uint64_t)i + 1, text);
		libkdbus_done(h, msg);
		msg = native_next(h);
		assert_false(msg->flags & KDBUS_MSG_EXPECT_REPLY);
		assert_string_equal(native_text(h, msg, &header), text);
		libkdbus_done(h, msg);
	}
}

static void want_answers(struct peer *p, const uint32_t serials[CALLS])
{
	char text[16];
	int i;

	for (i = 0; i < CALLS; i++) {
		snprintf(text, sizeof(text), "%d", i);
		want_string(p, serials[i], text);
	}
}

/* ---- the owner lives ---- */

/* Gave it back, or somebody took it: what it was called before is its own, what comes is not. */
static void check_owner_that_lives(bool released)
{
	struct libkdbus *old = native_join(), *next = native_join();
	const struct kdbus_msg *msg;
	struct dbusp_header header;
	uint32_t serials[CALLS], last;

	WITH(p);
	assert_int_equal(libkdbus_acquire(old, NAME, KDBUS_NAME_ALLOW_REPLACEMENT, NULL), 0);
	call_all(&p, serials);
	if (released)
		assert_int_equal(libkdbus_release(old, NAME), 0);
	assert_int_equal(libkdbus_acquire(next, NAME, KDBUS_NAME_REPLACE_EXISTING, NULL), 0);
	last = peer_call(&p, NAME, PATH, IFACE, "Say", "s", "last");
	msg = native_next(next);
	assert_string_equal(native_text(next, msg, &header), "last");
	serve_native(old);
	want_answers(&p, serials);
	native_reply(next, msg, 99, "answer");
	libkdbus_done(next, msg);
	want_string(&p, last, "answer");
	libkdbus_close(old);
	libkdbus_close(next);
	peer_close(&p);
}

static void test_owner_gives_it_back(void **state)
{
	check_owner_that_lives(true);
}

static void test_owner_is_replaced(void **state)
{
	check_owner_that_lives(false);
}

/* ---- the owner goes ---- */

static void test_to_a_native_owner(void **state)
{
	struct libkdbus *old = native_join(), *next = native_join();
	uint32_t serials[CALLS];

	WITH(p);
	assert_int_equal(libkdbus_acquire(old, NAME, 0, NULL), 0);
	assert_int_equal(libkdbus_acquire(next, NAME, KDBUS_NAME_QUEUE, NULL), 0);
	call_all(&p, serials);
	libkdbus_close(old);
	serve_native(next);
	want_answers(&p, serials);
	libkdbus_close(next);
	peer_close(&p);
}

/* Long after it gave the name back */
static void test_after_it_gave_it_back(void **state)
{
	struct libkdbus *old = native_join(), *next = native_join();
	uint32_t serials[CALLS];

	WITH(p);
	assert_int_equal(libkdbus_acquire(old, NAME, 0, NULL), 0);
	call_all(&p, serials);
	assert_int_equal(libkdbus_release(old, NAME), 0);
	assert_int_equal(libkdbus_acquire(next, NAME, 0, NULL), 0);
	ping(&p);
	libkdbus_close(old);
	serve_native(next);
	want_answers(&p, serials);
	libkdbus_close(next);
	peer_close(&p);
}

static void test_to_a_classic_owner(void **state)
{
	struct libkdbus *old = native_join();
	uint32_t serials[CALLS];
	struct got g;
	char text[16];
	int i;

	WITH(p);
	WITH(next);
	assert_int_equal(libkdbus_acquire(old, NAME, 0, NULL), 0);
	want_u32(&next, peer_driver(&next, "RequestName", "su", NAME, 0), 2);
	call_all(&p, serials);
	libkdbus_close(old);
	want_driver_signal(&next, "NameAcquired", NAME, NULL, NULL);
	for (i = 0; i < CALLS; i++) {
		snprintf(text, sizeof(text), "%d", i);
		want_call(&next, "Say", &g);
		assert_string_equal(got_string(&g), text);
		assert_string_equal(g.h.sender.s, p.name);
		peer_return(&next, &g, "s", text);
		got_free(&g);
		want_call(&next, "Note", &g);
		got_free(&g);
	}
	want_answers(&p, serials);
	peer_close(&next);
	peer_close(&p);
}

static struct libkdbus *join_as_activator(void)
{
	const struct libkdbus_options options = {
		.flags = KDBUS_HELLO_ACCEPT_FD | KDBUS_HELLO_ACTIVATOR, .name = NAME
	};
	struct libkdbus *h;

	assert_int_equal(libkdbus_connect(native_path, &options, &h), 0);
	return h;
}

/* They wait at the activator for the one after it. */
static void test_by_way_of_an_activator(void **state)
{
	struct libkdbus *activator = join_as_activator(), *old = native_join(), *next;
	uint32_t serials[CALLS];

	WITH(p);
	assert_int_equal(libkdbus_acquire(old, NAME, 0, NULL), 0);
	call_all(&p, serials);
	libkdbus_close(old);
	want_nothing(&p);
	next = native_join();
	assert_int_equal(libkdbus_acquire(next, NAME, 0, NULL), 0);
	serve_native(next);
	want_answers(&p, serials);
	libkdbus_close(next);
	libkdbus_close(activator);
	peer_close(&p);
}

/* What it has taken is answered by nobody, and nobody gets it twice. */
static void test_what_was_taken_stays_taken(void **state)
{
	struct libkdbus *old = native_join(), *next = native_join();
	const struct kdbus_msg *msg;
	struct dbusp_header header;
	uint32_t first, second;

	WITH(p);
	assert_int_equal(libkdbus_acquire(old, NAME, 0, NULL), 0);
	assert_int_equal(libkdbus_acquire(next, NAME, KDBUS_NAME_QUEUE, NULL), 0);
	first = peer_call(&p, NAME, PATH, IFACE, "Say", "s", "first");
	msg = native_next(old);
	assert_string_equal(native_text(old, msg, &header), "first");
	second = peer_call(&p, NAME, PATH, IFACE, "Say", "s", "second");
	ping(&p);
	libkdbus_close(old);
	msg = native_next(next);
	assert_string_equal(native_text(next, msg, &header), "second");
	want_error(&p, first, ERROR_NAME("NoReply"));
	native_reply(next, msg, 1, "answer");
	libkdbus_done(next, msg);
	want_string(&p, second, "answer");
	libkdbus_close(next);
	peer_close(&p);
}

/*
 * In the module, where a message goes is settled when it is sent: what an owner has not read when
 * it goes ends as what it has not answered (§1.8).
 */
static void test_on_the_module(void **state)
{
	struct libkdbus *old = native_join(), *next = native_join();
	uint32_t serials[CALLS];
	int i;

	WITH(p);
	assert_int_equal(libkdbus_acquire(old, NAME, 0, NULL), 0);
	assert_int_equal(libkdbus_acquire(next, NAME, KDBUS_NAME_QUEUE, NULL), 0);
	call_all(&p, serials);
	libkdbus_close(old);
	for (i = 0; i < CALLS; i++)
		want_error(&p, serials[i], ERROR_NAME("NoReply"));
	call_all(&p, serials);
	serve_native(next);
	want_answers(&p, serials);
	libkdbus_close(next);
	peer_close(&p);
}

/* Nor is anything started for it: whoever asks again may start it. */
static void test_to_nobody(void **state)
{
	struct libkdbus *old = native_join();
	uint32_t serials[CALLS];
	int i;

	WITH(p);
	assert_int_equal(libkdbus_acquire(old, NAME, 0, NULL), 0);
	call_all(&p, serials);
	libkdbus_close(old);
	for (i = 0; i < CALLS; i++)
		want_error(&p, serials[i], ERROR_NAME("NoReply"));
	want_nothing(&p);
	peer_close(&p);
}

/* The caller has gone, too. */
static void test_of_nobody(void **state)
{
	struct libkdbus *old = native_join(), *next = native_join();
	uint32_t serials[CALLS];

	WITH(p);
	WITH(other);
	assert_int_equal(libkdbus_acquire(old, NAME, 0, NULL), 0);
	assert_int_equal(libkdbus_acquire(next, NAME, KDBUS_NAME_QUEUE, NULL), 0);
	call_all(&p, serials);
	peer_close(&p);
	ping(&other);
	libkdbus_close(old);
	call_all(&other, serials);
	serve_native(next);
	want_answers(&other, serials);
	libkdbus_close(next);
	peer_close(&other);
}

/* Descriptors come along. */
static void test_with_a_descriptor(void **state)
{
	struct dbusp_desc desc = { .type = DBUSP_METHOD_CALL,
				   .serial = 50,
				   .n_fds = 1,
				   .path = DBUSP_STR(PATH),
				   .interface = DBUSP_STR(IFACE),
				   .member = DBUSP_STR("Take"),
				   .destination = DBUSP_STR(NAME),
				   .signature = DBUSP_STR("s") };
	struct libkdbus *old = native_join(), *next = native_join();
	const struct kdbus_item *item;
	const struct kdbus_msg *msg;
	int fds[2];
	uint8_t *data;
	char byte = 0;
	size_t len;

	WITH(p);
	assert_int_equal(libkdbus_acquire(old, NAME, 0, NULL), 0);
	assert_int_equal(libkdbus_acquire(next, NAME, KDBUS_NAME_QUEUE, NULL), 0);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	data = native_message(desc, "pipe", &len);
	peer_write_fds(&p, data, len, &fds[1], 1);
	ping(&p);
	close(fds[1]);
	libkdbus_close(old);
	msg = native_next(next);
	item = libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_FDS);
	assert_non_null(item);
	assert_int_equal(write(item->fds[0], "x", 1), 1);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(item->fds[0]);
	native_reply(next, msg, 1, "answer");
	libkdbus_done(next, msg);
	want_string(&p, 50, "answer");
	close(fds[0]);
	free(data);
	libkdbus_close(next);
	peer_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owner_gives_it_back),
		cmocka_unit_test(test_owner_is_replaced),
		cmocka_unit_test(test_to_a_native_owner),
		cmocka_unit_test(test_after_it_gave_it_back),
		cmocka_unit_test(test_to_a_classic_owner),
		cmocka_unit_test(test_by_way_of_an_activator),
		cmocka_unit_test(test_what_was_taken_stays_taken),
		cmocka_unit_test(test_to_nobody),
		cmocka_unit_test(test_of_nobody),
		cmocka_unit_test(test_with_a_descriptor),
	};
	const struct CMUnitTest on_the_module[] = {
		cmocka_unit_test(test_owner_gives_it_back),
		cmocka_unit_test(test_owner_is_replaced),
		cmocka_unit_test(test_on_the_module),
		cmocka_unit_test(test_to_nobody),
		cmocka_unit_test(test_of_nobody),
	};

	if (own_bus_on_module())
		return cmocka_run_group_tests(on_the_module, start, stop);
	return cmocka_run_group_tests(tests, start, stop);
}
