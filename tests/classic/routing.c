// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where messages go ("Message Bus Message Routing"): calls, replies, signals, descriptors. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"

#define FACE "org.example.Face"

static uint32_t call(struct peer *p, const char *destination)
{
	return peer_call(p, destination, "/org/example", FACE, "Frob", "");
}

static uint32_t own(struct peer *p, const char *name)
{
	uint32_t serial = peer_driver(p, "RequestName", "su", name, 0);

	want_driver_signal(p, "NameAcquired", name, NULL, NULL);
	want_u32(p, serial, 1);
	return serial;
}

static void match(struct peer *p, const char *rule)
{
	want_done(p, peer_driver(p, "AddMatch", "s", rule));
}

/* ---- calls and replies ---- */

static void test_call_and_reply(void **state)
{
	uint32_t serial;
	struct got g;
	WITH(a);
	WITH(b);

	(void)state;
	serial = peer_call(&a, b.name, "/org/example", FACE, "Frob", "su", "text", 7);
	want_call(&b, "Frob", &g);
	assert_string_equal(g.h.sender.s, a.name);
	assert_int_equal(g.h.frame.serial, serial);
	assert_string_equal(got_string(&g), "text");
	assert_int_equal(got_u32(&g), 7);
	peer_return(&b, &g, "s", "answer");
	got_free(&g);
	want_return(&a, serial, &g);
	assert_string_equal(g.h.sender.s, b.name);
	assert_string_equal(got_string(&g), "answer");
	got_free(&g);
	peer_close(&a);
	peer_close(&b);
}

static void test_call_by_name_keeps_the_name(void **state)
{
	struct got g;
	WITH(a);
	WITH(b);

	(void)state;
	own(&b, "org.example.Name");
	call(&a, "org.example.Name");
	want_call(&b, "Frob", &g);
	assert_string_equal(g.h.destination.s, "org.example.Name");
	got_free(&g);
	peer_close(&a);
	peer_close(&b);
}

static void test_call_of_oneself(void **state)
{
	struct got g;
	uint32_t serial;
	WITH(a);

	(void)state;
	serial = call(&a, a.name);
	want_call(&a, "Frob", &g);
	peer_return(&a, &g, "");
	got_free(&g);
	want_done(&a, serial);
	peer_close(&a);
}

static void test_nobody_there(void **state)
{
	WITH(a);

	(void)state;
	want_error_text(&a, call(&a, "org.example.Nobody"), ERROR_NAME("ServiceUnknown"),
			"The name org.example.Nobody was not provided by any .service files");
	want_error(&a, call(&a, ":1.999999"), ERROR_NAME("ServiceUnknown"));
	peer_close(&a);
}

static void test_no_auto_start(void **state)
{
	struct dbusp_desc d = { .type = DBUSP_METHOD_CALL,
				.flags = DBUSP_NO_AUTO_START,
				.path = DBUSP_STR("/a"),
				.member = DBUSP_STR("Frob"),
				.destination = DBUSP_STR("org.example.Nobody") };
	WITH(a);

	(void)state;
	want_error(&a, peer_send(&a, d), ERROR_NAME("NameHasNoOwner"));
	peer_close(&a);
}

static void test_callee_that_dies(void **state)
{
	uint32_t serial;
	struct got g;
	WITH(a);
	WITH(b);

	(void)state;
	serial = call(&a, b.name);
	want_call(&b, "Frob", &g);
	got_free(&g);
	peer_close(&b);
	want_error_text(&a, serial, ERROR_NAME("NoReply"),
			"Message recipient disconnected from message bus without replying");
	peer_close(&a);
}

/* Also the calls that it never read, in any order. */
static void test_callee_that_dies_without_reading(void **state)
{
	uint32_t first, second, sum = 0;
	struct got g;
	int i;
	WITH(a);
	WITH(b);

	(void)state;
	first = call(&a, b.name);
	second = call(&a, b.name);
	want_nothing(&a);
	peer_close(&b);
	for (i = 0; i < 2; i++) {
		assert_true(peer_next(&a, &g));
		assert_string_equal(g.h.error_name.s, ERROR_NAME("NoReply"));
		assert_true(g.h.reply_serial == first || g.h.reply_serial == second);
		sum += g.h.reply_serial;
		got_free(&g);
	}
	assert_int_equal(sum, first + second);
	peer_close(&a);
}

static void test_no_reply_expected(void **state)
{
	struct dbusp_desc d = { .type = DBUSP_METHOD_CALL,
				.flags = DBUSP_NO_REPLY_EXPECTED,
				.path = DBUSP_STR("/a"),
				.member = DBUSP_STR("Frob") };
	struct got g;
	WITH(a);
	WITH(b);

	(void)state;
	d.destination = (struct dbusp_str){ b.name, strlen(b.name) };
	peer_send(&a, d);
	want_call(&b, "Frob", &g);
	got_free(&g);
	peer_close(&b);
	want_nothing(&a);
	peer_close(&a);
}

static void test_serial_of_an_open_call(void **state)
{
	struct dbusp_desc d = { .type = DBUSP_METHOD_CALL,
				.serial = 4711,
				.path = DBUSP_STR("/a"),
				.member = DBUSP_STR("Frob") };
	struct got g;
	WITH(a);
	WITH(b);

	(void)state;
	d.destination = (struct dbusp_str){ b.name, strlen(b.name) };
	peer_send(&a, d);
	want_call(&b, "Frob", &g);
	peer_send(&a, d);
	want_error(&a, 4711, ERROR_NAME("AccessDenied"));
	peer_return(&b, &g, "");
	got_free(&g);
	want_done(&a, 4711);
	/* Once it is answered the serial is free. */
	peer_send(&a, d);
	want_call(&b, "Frob", &g);
	got_free(&g);
	peer_close(&a);
	peer_close(&b);
}

static void test_error_reply(void **state)
{
	struct dbusp_desc d = { .type = DBUSP_ERROR,
				.error_name = DBUSP_STR("org.example.Error.No"),
				.signature = DBUSP_STR("s") };
	uint32_t serial;
	struct got g;
	WITH(a);
	WITH(b);

	(void)state;
	serial = call(&a, b.name);
	want_call(&b, "Frob", &g);
	d.reply_serial = g.h.frame.serial;
	d.destination = g.h.sender;
	peer_send(&b, d, "why not");
	got_free(&g);
	want_error_text(&a, serial, "org.example.Error.No", "why not");
	peer_close(&a);
	peer_close(&b);
}

/* A caller that left is told nothing; what happens to the replier is up to the bus. */
static void test_reply_to_who_left(void **state)
{
	struct got g;
	WITH(a);
	WITH(b);

	(void)state;
	call(&a, b.name);
	want_call(&b, "Frob", &g);
	peer_close(&a);
	peer_return(&b, &g, "");
	got_free(&g);
	peer_call(&b, DBUS, DBUS_PATH, DBUS ".Peer", "Ping", "");
	assert_true(peer_next(&b, &g));
	if (g.h.frame.type == DBUSP_ERROR) {
		got_free(&g);
		assert_true(peer_next(&b, &g));
	}
	assert_int_equal(g.h.reply_serial, b.serial);
	got_free(&g);
	peer_close(&b);
}

static void test_order_is_kept(void **state)
{
	struct got g;
	uint32_t i;
	WITH(a);
	WITH(b);

	(void)state;
	for (i = 0; i < 1000; i++)
		peer_signal(&a, b.name, "/a", FACE, "Tick", "u", i);
	for (i = 0; i < 1000; i++) {
		want_signal(&b, a.name, "Tick", &g);
		assert_int_equal(got_u32(&g), i);
		got_free(&g);
	}
	peer_close(&a);
	peer_close(&b);
}

/* ---- signals ---- */

static void test_unicast_signal_needs_no_match(void **state)
{
	struct got g;
	WITH(a);
	WITH(b);
	WITH(c);

	(void)state;
	match(&c, "type='signal'");
	peer_signal(&a, b.name, "/a", FACE, "Tick", "");
	want_signal(&b, a.name, "Tick", &g);
	got_free(&g);
	want_nothing(&c);
	peer_close(&a);
	peer_close(&b);
	peer_close(&c);
}

static void test_broadcast(void **state)
{
	struct got g;
	WITH(a);
	WITH(b);
	WITH(c);

	(void)state;
	match(&b, "type='signal',interface='" FACE "'");
	match(&b, "type='signal',member='Tick'");
	match(&c, "type='signal',member='Tock'");
	match(&a, "interface='" FACE "'");
	peer_signal(&a, NULL, "/a", FACE, "Tick", "");
	/* Once, however many rules match; also to the sender. */
	want_signal(&b, a.name, "Tick", &g);
	got_free(&g);
	want_nothing(&b);
	want_signal(&a, a.name, "Tick", &g);
	got_free(&g);
	want_nothing(&c);
	peer_close(&a);
	peer_close(&b);
	peer_close(&c);
}

static bool delivered(const char *rule, const char *path, const char *arg0, const char *sig)
{
	bool got = false;
	struct got g;
	WITH(a);
	WITH(b);

	own(&a, "org.example.Sender");
	match(&b, rule);
	peer_signal(&a, NULL, path, FACE, "Tick", sig, arg0);
	want_nothing(&a);
	peer_call(&b, DBUS, DBUS_PATH, DBUS ".Peer", "Ping", "");
	assert_true(peer_next(&b, &g));
	while (g.h.frame.type == DBUSP_SIGNAL) {
		got |= !strcmp(g.h.member.s, "Tick");
		got_free(&g);
		assert_true(peer_next(&b, &g));
	}
	got_free(&g);
	peer_close(&a);
	peer_close(&b);
	return got;
}

static void test_what_rules_match(void **state)
{
	static const struct {
		const char *rule, *path, *arg0, *sig;
		bool match;
	} rows[] = {
		{ "", "/a", "", "s", true },
		{ "type='signal'", "/a", "", "s", true },
		{ "type='error'", "/a", "", "s", false },
		{ "sender='org.example.Sender'", "/a", "", "s", true },
		{ "sender='org.example.Other'", "/a", "", "s", false },
		{ "interface='" FACE "'", "/a", "", "s", true },
		{ "interface='org.example.Other'", "/a", "", "s", false },
		{ "path='/a'", "/a", "", "s", true },
		{ "path='/a'", "/a/b", "", "s", false },
		{ "path_namespace='/a'", "/a/b", "", "s", true },
		{ "path_namespace='/a'", "/a", "", "s", true },
		{ "path_namespace='/a'", "/ab", "", "s", false },
		{ "path_namespace='/'", "/a", "", "s", true },
		{ "arg0='x'", "/a", "x", "s", true },
		{ "arg0='x'", "/a", "y", "s", false },
		{ "arg0='/x'", "/a", "/x", "o", false },
		{ "arg0path='/x/'", "/a", "/x/y", "s", true },
		{ "arg0path='/x/y'", "/a", "/x/", "s", true },
		{ "arg0path='/x/y'", "/a", "/x/y", "o", true },
		{ "arg0path='/x'", "/a", "/x/y", "s", false },
		{ "arg0namespace='a.b'", "/a", "a.b", "s", true },
		{ "arg0namespace='a.b'", "/a", "a.b.c", "s", true },
		{ "arg0namespace='a.b'", "/a", "a.bc", "s", false },
		{ "arg1='x'", "/a", "x", "s", false },
		{ "destination=':1.1'", "/a", "x", "s", false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (delivered(rows[i].rule, rows[i].path, rows[i].arg0, rows[i].sig) !=
		    rows[i].match)
			fail_msg("%s, path %s, arg0 %s: %s", rows[i].rule, rows[i].path,
				 rows[i].arg0, rows[i].match ? "not delivered" : "delivered");
	}
}

static void test_rule_with_a_name_follows_its_owner(void **state)
{
	uint32_t serial;
	struct got g;
	WITH(a);
	WITH(b);
	WITH(w);

	(void)state;
	match(&w, "type='signal',sender='org.example.Moving',member='Tick'");
	own(&a, "org.example.Moving");
	peer_signal(&a, NULL, "/a", FACE, "Tick", "");
	want_signal(&w, a.name, "Tick", &g);
	got_free(&g);
	serial = peer_driver(&a, "ReleaseName", "s", "org.example.Moving");
	want_driver_signal(&a, "NameLost", "org.example.Moving", NULL, NULL);
	want_u32(&a, serial, 1);
	own(&b, "org.example.Moving");
	peer_signal(&a, NULL, "/a", FACE, "Tick", "");
	want_nothing(&a);
	peer_signal(&b, NULL, "/a", FACE, "Tick", "");
	want_signal(&w, b.name, "Tick", &g);
	got_free(&g);
	peer_close(&a);
	peer_close(&b);
	peer_close(&w);
}

static void test_rules_are_counted(void **state)
{
	struct got g;
	WITH(a);
	WITH(b);

	(void)state;
	match(&b, "member='Tick',type='signal'");
	match(&b, "type='signal',member='Tick'");
	want_done(&b, peer_driver(&b, "RemoveMatch", "s", "type=signal,member=Tick"));
	peer_signal(&a, NULL, "/a", FACE, "Tick", "");
	want_signal(&b, a.name, "Tick", &g);
	got_free(&g);
	want_done(&b, peer_driver(&b, "RemoveMatch", "s", "type=signal,member=Tick"));
	peer_signal(&a, NULL, "/a", FACE, "Tick", "");
	want_nothing(&a);
	want_nothing(&b);
	want_error(&b, peer_driver(&b, "RemoveMatch", "s", "type=signal,member=Tick"),
		   ERROR_NAME("MatchRuleNotFound"));
	peer_close(&a);
	peer_close(&b);
}

static void test_bad_rules(void **state)
{
	static const char *const rules[] = { "foo='x'", "type='x'", "member='a.b'", "arg64='x'",
					     "arg0='x" };
	char rule[1200] = "arg0='";
	size_t i;
	WITH(p);

	(void)state;
	for (i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		want_error(&p, peer_driver(&p, "AddMatch", "s", rules[i]),
			   ERROR_NAME("MatchRuleInvalid"));
		want_error(&p, peer_driver(&p, "RemoveMatch", "s", rules[i]),
			   ERROR_NAME("MatchRuleInvalid"));
	}
	memset(rule + 6, 'x', 1100);
	strcpy(rule + 1106, "'");
	want_error(&p, peer_driver(&p, "AddMatch", "s", rule), ERROR_NAME("LimitsExceeded"));
	peer_close(&p);
}

static void test_rules_end_with_their_owner(void **state)
{
	WITH(a);
	WITH(b);

	(void)state;
	match(&b, "type='signal'");
	peer_close(&b);
	peer_signal(&a, NULL, "/a", FACE, "Tick", "");
	want_nothing(&a);
	peer_close(&a);
}

/* ---- descriptors ---- */

static void call_with_fds(struct peer *p, const char *destination, const int *fds, unsigned int n)
{
	struct dbusp_desc d = { .type = DBUSP_METHOD_CALL,
				.serial = ++p->serial,
				.n_fds = n,
				.path = DBUSP_STR("/a"),
				.member = DBUSP_STR("Frob"),
				.destination = { destination, strlen(destination) } };
	struct dbusp_build b;
	uint8_t *msg;
	size_t len;

	dbusp_build_begin(&b, NULL, &d);
	assert_int_equal(dbusp_build_end(&b, &msg, &len), 0);
	peer_write_fds(p, msg, len, fds, n);
	free(msg);
}

static void test_descriptors_arrive_with_their_message(void **state)
{
	int ends[2], i;
	struct stat in, out;
	struct got g;
	WITH(a);
	WITH(b);

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	for (i = 0; i < 20; i++) {
		call_with_fds(&a, b.name, &ends[i % 2], 1);
		call(&a, b.name);
		call_with_fds(&a, b.name, ends, 2);
		want_call(&b, "Frob", &g);
		assert_int_equal(g.n_fds, 1);
		fstat(ends[i % 2], &in);
		fstat(g.fds[0], &out);
		assert_int_equal(in.st_ino, out.st_ino);
		got_free(&g);
		want_call(&b, "Frob", &g);
		assert_int_equal(g.n_fds, 0);
		got_free(&g);
		want_call(&b, "Frob", &g);
		assert_int_equal(g.n_fds, 2);
		got_free(&g);
	}
	close(ends[0]);
	close(ends[1]);
	peer_close(&a);
	peer_close(&b);
}

static void test_descriptors_for_who_takes_none(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct peer b;
	WITH(a);

	(void)state;
	peer_open(&b);
	peer_auth(&b, false);
	peer_hello(&b);
	call_with_fds(&a, b.name, &fd, 1);
	want_error(&a, a.serial, ERROR_NAME("NotSupported"));
	close(fd);
	want_nothing(&b);
	peer_close(&a);
	peer_close(&b);
}

/* The bus keeps none: a pipe whose only writer was sent ends with its receiver. */
static void test_the_bus_keeps_no_descriptor(void **state)
{
	struct got g;
	int ends[2];
	char byte;
	WITH(a);
	WITH(b);

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	call_with_fds(&a, b.name, &ends[1], 1);
	close(ends[1]);
	want_call(&b, "Frob", &g);
	got_free(&g);
	/* Ends only once nobody has it any more. */
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
	peer_close(&a);
	peer_close(&b);
}

/* ---- size ---- */

static void test_large_messages(void **state)
{
	const size_t size = 20 << 20;
	char *big = malloc(size + 1);
	struct got g;
	pid_t child;
	WITH(b);

	(void)state;
	assert_non_null(big);
	memset(big, 'x', size);
	big[size] = 0;
	/* A writer of its own: the bus may be full while we read. */
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		WITH(a);

		peer_call(&a, b.name, "/a", FACE, "Frob", "su", big, 7);
		want_nothing(&a);
		_exit(0);
	}
	want_call(&b, "Frob", &g);
	assert_string_equal(got_string(&g), big);
	assert_int_equal(got_u32(&g), 7);
	got_free(&g);
	free(big);
	peer_close(&b);
}

/* In a buffer of the round, in one of their own, in several parts: all arrive, and in order. */
static void test_sizes_in_any_order(void **state)
{
	static const size_t sizes[] = { 0,	2000,	30000,	33000,	65000,	66000,	 100000,
					130900, 131100, 163700, 163900, 300000, 1 << 20, 2100000 };
	enum {
		N = sizeof(sizes) / sizeof(sizes[0]),
		COUNT = 3 * N
	};
	char *big = malloc(sizes[N - 1] + 1), was;
	const char *text;
	size_t size, i;
	struct got g;
	pid_t child;
	int status;
	WITH(b);

	(void)state;
	assert_non_null(big);
	for (i = 0; i <= sizes[N - 1]; i++)
		big[i] = (char)('a' + i % 23);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		WITH(a);

		for (i = 0; i < COUNT; i++) {
			size = sizes[i * 5 % N];
			was = big[size];
			big[size] = 0;
			peer_signal(&a, b.name, "/a", FACE, "Frob", "us", (int)i, big);
			big[size] = was;
		}
		want_nothing(&a);
		_exit(0);
	}
	for (i = 0; i < COUNT; i++) {
		assert_true(peer_next(&b, &g));
		assert_int_equal(g.h.frame.type, DBUSP_SIGNAL);
		assert_int_equal(got_u32(&g), i);
		size = sizes[i * 5 % N];
		text = got_string(&g);
		assert_int_equal(strlen(text), size);
		assert_memory_equal(text, big, size);
		got_free(&g);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	free(big);
	peer_close(&b);
}

/*
 * Calls of the bus are seen by those who eavesdrop, but for those that it refuses; its answers are
 * not.
 */
static void test_eavesdropping_on_the_bus(void **state)
{
	static const char *const rules[] = {
		"eavesdrop='true',type='method_call',destination='org.freedesktop.DBus'",
		"eavesdrop='true',type='method_return'",
		"eavesdrop='true',type='error'",
	};
	struct got g;
	unsigned int i;

	(void)state;
	WITH(p);
	WITH(eve);
	for (i = 3; i--;)
		want_done(&eve, peer_driver(&eve, "AddMatch", "s", rules[i]));
	/* The last rule is in force when its own call is shown. */
	want_call(&eve, "AddMatch", &g);
	assert_string_equal(g.h.sender.s, eve.name);
	got_free(&g);
	want_string(&p, peer_driver(&p, "GetNameOwner", "s", DBUS), DBUS);
	want_error(&p, peer_driver(&p, "GetNameOwner", "s", "org.example.Nobody"),
		   ERROR_NAME("NameHasNoOwner"));
	want_error(&p, peer_driver(&p, "NoSuchMethod", ""), ERROR_NAME("UnknownMethod"));
	want_error(&p, peer_driver(&p, "GetNameOwner", ""), ERROR_NAME("InvalidArgs"));
	want_u32(&p, peer_driver(&p, "NameHasOwner", "s", p.name), 1);
	want_call(&eve, "GetNameOwner", &g);
	assert_string_equal(g.h.sender.s, p.name);
	assert_string_equal(g.h.destination.s, DBUS);
	assert_string_equal(got_string(&g), DBUS);
	got_free(&g);
	want_call(&eve, "NameHasOwner", &g);
	got_free(&g);
	{
		WITH(late);
		want_call(&eve, "Hello", &g);
		assert_string_equal(g.h.sender.s, late.name);
		got_free(&g);
		peer_close(&late);
	}
	want_done(&eve, peer_driver(&eve, "RemoveMatch", "s", rules[0]));
	want_nothing(&eve);
	peer_close(&eve);
	peer_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call_and_reply),
		cmocka_unit_test(test_call_by_name_keeps_the_name),
		cmocka_unit_test(test_call_of_oneself),
		cmocka_unit_test(test_nobody_there),
		cmocka_unit_test(test_no_auto_start),
		cmocka_unit_test(test_callee_that_dies),
		cmocka_unit_test(test_callee_that_dies_without_reading),
		cmocka_unit_test(test_no_reply_expected),
		cmocka_unit_test(test_serial_of_an_open_call),
		cmocka_unit_test(test_error_reply),
		cmocka_unit_test(test_reply_to_who_left),
		cmocka_unit_test(test_order_is_kept),
		cmocka_unit_test(test_unicast_signal_needs_no_match),
		cmocka_unit_test(test_broadcast),
		cmocka_unit_test(test_what_rules_match),
		cmocka_unit_test(test_rule_with_a_name_follows_its_owner),
		cmocka_unit_test(test_rules_are_counted),
		cmocka_unit_test(test_bad_rules),
		cmocka_unit_test(test_rules_end_with_their_owner),
		cmocka_unit_test(test_descriptors_arrive_with_their_message),
		cmocka_unit_test(test_descriptors_for_who_takes_none),
		cmocka_unit_test(test_the_bus_keeps_no_descriptor),
		cmocka_unit_test(test_large_messages),
		cmocka_unit_test(test_sizes_in_any_order),
		cmocka_unit_test(test_eavesdropping_on_the_bus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
