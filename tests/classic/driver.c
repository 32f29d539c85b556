// SPDX-License-Identifier: LGPL-2.1-or-later
/* The methods of org.freedesktop.DBus ("Message Bus Messages"): results, errors, order. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer.h"

#define NAME "org.example.Name"

enum {
	ALLOW_REPLACEMENT = 1,
	REPLACE_EXISTING = 2,
	DO_NOT_QUEUE = 4,
};

enum {
	PRIMARY_OWNER = 1,
	IN_QUEUE = 2,
	EXISTS = 3,
	ALREADY_OWNER = 4,
};

enum {
	RELEASED = 1,
	NON_EXISTENT = 2,
	NOT_OWNER = 3,
};

static uint32_t request(struct peer *p, const char *name, unsigned int flags)
{
	return peer_driver(p, "RequestName", "su", name, flags);
}

static uint32_t release(struct peer *p, const char *name)
{
	return peer_driver(p, "ReleaseName", "s", name);
}

/* Takes a free name; the signal comes before the reply. */
static void own(struct peer *p, const char *name, unsigned int flags)
{
	uint32_t serial = request(p, name, flags);

	want_driver_signal(p, "NameAcquired", name, NULL, NULL);
	want_u32(p, serial, PRIMARY_OWNER);
}

static void watch(struct peer *p)
{
	want_done(p, peer_driver(p, "AddMatch", "s",
				 "type='signal',sender='" DBUS "',member='NameOwnerChanged'"));
}

/* ---- Hello ---- */

static void test_hello_comes_first(void **state)
{
	struct peer p;

	(void)state;
	peer_open(&p);
	peer_auth(&p, false);
	want_error(&p, peer_driver(&p, "ListNames", ""), ERROR_NAME("AccessDenied"));
	peer_hello(&p);
	peer_close(&p);
}

static void test_hello_only_once(void **state)
{
	WITH(p);

	(void)state;
	want_error(&p, peer_driver(&p, "Hello", ""), ERROR_NAME("Failed"));
	want_nothing(&p);
	peer_close(&p);
}

static void test_unique_names_are_unique(void **state)
{
	WITH(a);
	WITH(b);

	(void)state;
	assert_int_equal(a.name[0], ':');
	assert_string_not_equal(a.name, b.name);
	peer_close(&a);
	peer_close(&b);
}

/* Everything in one write, the answers one after the other. */
static void test_pipelined_start(void **state)
{
	char start[4096];
	uint8_t *hello;
	size_t n = 1, len;
	struct dbusp_build b;
	struct got answer;
	struct peer p;
	ssize_t got;
	char byte;

	(void)state;
	dbusp_build_begin(&b, NULL,
			  &(struct dbusp_desc){ .type = DBUSP_METHOD_CALL,
						.serial = 1,
						.path = DBUSP_STR(DBUS_PATH),
						.interface = DBUSP_STR(DBUS),
						.member = DBUSP_STR("Hello"),
						.destination = DBUSP_STR(DBUS) });
	assert_int_equal(dbusp_build_end(&b, &hello, &len), 0);
	start[0] = 0;
	n += (size_t)sprintf(start + 1, "AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n");
	memcpy(start + n, hello, len);
	free(hello);
	peer_open(&p);
	peer_write(&p, start, n + len);
	/* DATA, OK, AGREE_UNIX_FD */
	for (n = 0; n < 3; n += byte == '\n') {
		got = read(p.fd, &byte, 1);
		assert_int_equal(got, 1);
	}
	want_return(&p, 1, &answer);
	snprintf(p.name, sizeof(p.name), "%s", got_string(&answer));
	got_free(&answer);
	want_driver_signal(&p, "NameAcquired", p.name, NULL, NULL);
	peer_close(&p);
}

/* ---- RequestName and ReleaseName ---- */

static void test_own_and_release(void **state)
{
	WITH(p);

	(void)state;
	own(&p, NAME, 0);
	want_u32(&p, request(&p, NAME, 0), ALREADY_OWNER);
	want_string(&p, peer_driver(&p, "GetNameOwner", "s", NAME), p.name);
	want_u32(&p, peer_driver(&p, "NameHasOwner", "s", NAME), 1);
	uint32_t serial = release(&p, NAME);

	want_driver_signal(&p, "NameLost", NAME, NULL, NULL);
	want_u32(&p, serial, RELEASED);
	want_u32(&p, release(&p, NAME), NON_EXISTENT);
	want_error(&p, peer_driver(&p, "GetNameOwner", "s", NAME), ERROR_NAME("NameHasNoOwner"));
	peer_close(&p);
}

static void test_queue(void **state)
{
	uint32_t serial;
	WITH(a);
	WITH(b);
	WITH(c);

	(void)state;
	own(&a, NAME, 0);
	want_u32(&b, request(&b, NAME, DO_NOT_QUEUE), EXISTS);
	want_u32(&b, release(&b, NAME), NOT_OWNER);
	want_u32(&b, request(&b, NAME, 0), IN_QUEUE);
	want_u32(&c, request(&c, NAME, 0), IN_QUEUE);
	serial = release(&a, NAME);
	want_driver_signal(&a, "NameLost", NAME, NULL, NULL);
	want_u32(&a, serial, RELEASED);
	want_driver_signal(&b, "NameAcquired", NAME, NULL, NULL);
	/* Leaving the queue is no loss. */
	want_u32(&c, release(&c, NAME), RELEASED);
	peer_close(&b);
	want_nothing(&c);
	peer_close(&a);
	peer_close(&c);
}

static void test_replacement(void **state)
{
	uint32_t serial;
	WITH(a);
	WITH(b);

	(void)state;
	own(&a, NAME, ALLOW_REPLACEMENT);
	serial = request(&b, NAME, REPLACE_EXISTING);
	want_driver_signal(&b, "NameAcquired", NAME, NULL, NULL);
	want_u32(&b, serial, PRIMARY_OWNER);
	want_driver_signal(&a, "NameLost", NAME, NULL, NULL);
	/* a waits in the queue now, in front. */
	serial = release(&b, NAME);
	want_driver_signal(&b, "NameLost", NAME, NULL, NULL);
	want_u32(&b, serial, RELEASED);
	want_driver_signal(&a, "NameAcquired", NAME, NULL, NULL);
	peer_close(&a);
	peer_close(&b);
}

static void test_replacement_needs_leave(void **state)
{
	WITH(a);
	WITH(b);

	(void)state;
	own(&a, NAME, 0);
	want_u32(&b, request(&b, NAME, REPLACE_EXISTING | DO_NOT_QUEUE), EXISTS);
	want_u32(&b, request(&b, NAME, REPLACE_EXISTING), IN_QUEUE);
	want_nothing(&a);
	peer_close(&b);
	peer_close(&a);
}

static void test_replaced_owner_that_does_not_queue(void **state)
{
	uint32_t serial;
	WITH(a);
	WITH(b);

	(void)state;
	own(&a, NAME, ALLOW_REPLACEMENT | DO_NOT_QUEUE);
	serial = request(&b, NAME, REPLACE_EXISTING | DO_NOT_QUEUE);
	want_driver_signal(&b, "NameAcquired", NAME, NULL, NULL);
	want_u32(&b, serial, PRIMARY_OWNER);
	want_driver_signal(&a, "NameLost", NAME, NULL, NULL);
	want_u32(&a, release(&a, NAME), NOT_OWNER);
	peer_close(&a);
	peer_close(&b);
}

/* The last request's flags count, also those of who owns or waits already. */
static void test_flags_of_the_last_request(void **state)
{
	uint32_t serial;
	WITH(a);
	WITH(b);

	(void)state;
	own(&a, NAME, 0);
	want_u32(&a, request(&a, NAME, ALLOW_REPLACEMENT), ALREADY_OWNER);
	want_u32(&b, request(&b, NAME, 0), IN_QUEUE);
	/* Who asked to queue once and now does not want to leaves the queue. */
	want_u32(&b, request(&b, NAME, DO_NOT_QUEUE), EXISTS);
	want_u32(&b, release(&b, NAME), NOT_OWNER);
	serial = request(&b, NAME, REPLACE_EXISTING);
	want_driver_signal(&b, "NameAcquired", NAME, NULL, NULL);
	want_u32(&b, serial, PRIMARY_OWNER);
	want_driver_signal(&a, "NameLost", NAME, NULL, NULL);
	peer_close(&b);
	want_driver_signal(&a, "NameAcquired", NAME, NULL, NULL);
	peer_close(&a);
}

static void test_unknown_flags_are_ignored(void **state)
{
	WITH(p);

	(void)state;
	own(&p, NAME, 0xfffffff8);
	peer_close(&p);
}

static void test_invalid_names(void **state)
{
	static const char *const names[] = { "",     "a",  ".a.b", "a..b",
					     ":1.5", DBUS, "a.1b", "a b.c" };
	size_t i;
	WITH(p);

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		want_error(&p, request(&p, names[i], 0), ERROR_NAME("InvalidArgs"));
		want_error(&p, release(&p, names[i]), ERROR_NAME("InvalidArgs"));
	}
	peer_close(&p);
}

static void test_queued_owners(void **state)
{
	struct got g;
	WITH(a);
	WITH(b);

	(void)state;
	own(&a, NAME, 0);
	want_u32(&b, request(&b, NAME, 0), IN_QUEUE);
	want_return(&b, peer_driver(&b, "ListQueuedOwners", "s", NAME), &g);
	assert_int_equal(dbusp_reader_enter(&g.body, 'a'), 0);
	assert_string_equal(got_string(&g), a.name);
	assert_string_equal(got_string(&g), b.name);
	assert_int_equal(dbusp_reader_type(&g.body), 0);
	got_free(&g);
	want_error(&b, peer_driver(&b, "ListQueuedOwners", "s", "org.example.Nobody"),
		   ERROR_NAME("NameHasNoOwner"));
	peer_close(&a);
	peer_close(&b);
}

/* ---- NameOwnerChanged ---- */

static void test_owner_changes_are_told_in_order(void **state)
{
	uint32_t serial;
	WITH(w);
	WITH(a);
	WITH(b);

	(void)state;
	watch(&w);
	own(&a, NAME, 0);
	want_driver_signal(&w, "NameOwnerChanged", NAME, "", a.name);
	want_u32(&b, request(&b, NAME, 0), IN_QUEUE);
	serial = release(&a, NAME);
	want_driver_signal(&a, "NameLost", NAME, NULL, NULL);
	want_u32(&a, serial, RELEASED);
	want_driver_signal(&w, "NameOwnerChanged", NAME, a.name, b.name);
	want_driver_signal(&b, "NameAcquired", NAME, NULL, NULL);
	/* At the end the well-known names go first. */
	peer_close(&b);
	want_driver_signal(&w, "NameOwnerChanged", NAME, b.name, "");
	want_driver_signal(&w, "NameOwnerChanged", b.name, b.name, "");
	peer_close(&a);
	want_driver_signal(&w, "NameOwnerChanged", a.name, a.name, "");
	peer_join(&a);
	want_driver_signal(&w, "NameOwnerChanged", a.name, "", a.name);
	peer_close(&a);
	peer_close(&w);
}

/* Who owns and watches sees the change before he is told that it is his. */
static void test_order_of_change_signal_and_reply(void **state)
{
	uint32_t serial;
	WITH(p);

	(void)state;
	watch(&p);
	serial = request(&p, NAME, 0);
	want_driver_signal(&p, "NameOwnerChanged", NAME, "", p.name);
	want_driver_signal(&p, "NameAcquired", NAME, NULL, NULL);
	want_u32(&p, serial, PRIMARY_OWNER);
	serial = release(&p, NAME);
	want_driver_signal(&p, "NameLost", NAME, NULL, NULL);
	want_driver_signal(&p, "NameOwnerChanged", NAME, p.name, "");
	want_u32(&p, serial, RELEASED);
	peer_close(&p);
}

/* ---- questions about connections ---- */

static void test_credentials(void **state)
{
	bool uid = false, pid = false;
	const char *key;
	struct got g;
	WITH(p);
	WITH(q);

	(void)state;
	want_u32(&p, peer_driver(&p, "GetConnectionUnixUser", "s", q.name), geteuid());
	want_u32(&p, peer_driver(&p, "GetConnectionUnixProcessID", "s", q.name),
		 (uint32_t)getpid());
	want_return(&p, peer_driver(&p, "GetConnectionCredentials", "s", q.name), &g);
	assert_int_equal(dbusp_reader_enter(&g.body, 'a'), 0);
	while (dbusp_reader_type(&g.body)) {
		assert_int_equal(dbusp_reader_enter(&g.body, '{'), 0);
		key = got_string(&g);
		uid |= !strcmp(key, "UnixUserID");
		pid |= !strcmp(key, "ProcessID");
		assert_int_equal(dbusp_reader_skip(&g.body), 0);
		assert_int_equal(dbusp_reader_exit(&g.body), 0);
	}
	assert_true(uid && pid);
	got_free(&g);
	peer_close(&q);
	peer_close(&p);
}

static void test_credentials_of_the_bus(void **state)
{
	struct got g;
	WITH(p);

	(void)state;
	want_done(&p, peer_driver(&p, "GetConnectionCredentials", "s", DBUS));
	want_return(&p, peer_driver(&p, "GetConnectionUnixProcessID", "s", DBUS), &g);
	assert_int_not_equal(got_u32(&g), 0);
	got_free(&g);
	want_string(&p, peer_driver(&p, "GetNameOwner", "s", DBUS), DBUS);
	want_u32(&p, peer_driver(&p, "NameHasOwner", "s", DBUS), 1);
	peer_close(&p);
}

static void test_nobody_has_no_credentials(void **state)
{
	static const char *const members[] = { "GetConnectionUnixUser",
					       "GetConnectionUnixProcessID",
					       "GetConnectionCredentials", "GetNameOwner" };
	size_t i;
	WITH(p);

	(void)state;
	for (i = 0; i < sizeof(members) / sizeof(*members); i++)
		want_error(&p, peer_driver(&p, members[i], "s", "org.example.Nobody"),
			   ERROR_NAME("NameHasNoOwner"));
	peer_close(&p);
}

static bool listed(struct peer *p, const char *method, const char *name)
{
	bool found = false;
	struct got g;

	want_return(p, peer_driver(p, method, ""), &g);
	assert_int_equal(dbusp_reader_enter(&g.body, 'a'), 0);
	while (dbusp_reader_type(&g.body))
		found |= !strcmp(got_string(&g), name);
	got_free(&g);
	return found;
}

static void test_lists(void **state)
{
	WITH(p);

	(void)state;
	own(&p, NAME, 0);
	assert_true(listed(&p, "ListNames", NAME));
	assert_true(listed(&p, "ListNames", p.name));
	assert_true(listed(&p, "ListNames", DBUS));
	assert_false(listed(&p, "ListNames", "org.example.Nobody"));
	assert_true(listed(&p, "ListActivatableNames", DBUS));
	peer_close(&p);
}

static void test_id_is_stable(void **state)
{
	char id[40];
	struct got g;
	WITH(p);

	(void)state;
	want_return(&p, peer_driver(&p, "GetId", ""), &g);
	snprintf(id, sizeof(id), "%s", got_string(&g));
	got_free(&g);
	assert_int_equal(strlen(id), 32);
	assert_int_equal(strspn(id, "0123456789abcdef"), 32);
	want_string(&p, peer_driver(&p, "GetId", ""), id);
	peer_close(&p);
}

/* ---- bad calls ---- */

static void test_unknown_methods(void **state)
{
	WITH(p);

	(void)state;
	want_error(&p, peer_driver(&p, "Frobnicate", ""), ERROR_NAME("UnknownMethod"));
	want_error(&p, peer_call(&p, DBUS, DBUS_PATH, "org.example.Face", "Hello", ""),
		   ERROR_NAME("UnknownInterface"));
	want_done(&p, peer_call(&p, DBUS, DBUS_PATH, NULL, "GetId", ""));
	peer_close(&p);
}

static void test_wrong_arguments(void **state)
{
	static const char *const members[] = {
		"RequestName",	"ReleaseName",	      "GetNameOwner", "AddMatch",
		"NameHasOwner", "StartServiceByName", "RemoveMatch",  "GetConnectionCredentials",
	};
	size_t i;
	WITH(p);

	(void)state;
	for (i = 0; i < sizeof(members) / sizeof(*members); i++) {
		want_error(&p, peer_driver(&p, members[i], "u", 1), ERROR_NAME("InvalidArgs"));
		want_error(&p, peer_driver(&p, members[i], ""), ERROR_NAME("InvalidArgs"));
	}
	want_error(&p, peer_driver(&p, "ListNames", "s", "x"), ERROR_NAME("InvalidArgs"));
	peer_close(&p);
}

/* "Already running", as the specification has it; the reference looks for a service file first. */
static void test_start_of_what_is_there(void **state)
{
	uint32_t serial;
	WITH(p);

	(void)state;
	serial = peer_driver(&p, "StartServiceByName", "su", p.name, 0);
	if (bus_is_reference())
		want_error(&p, serial, ERROR_NAME("ServiceUnknown"));
	else
		want_u32(&p, serial, 2);
	want_error(&p, peer_driver(&p, "StartServiceByName", "su", "org.example.Nobody", 0),
		   ERROR_NAME("ServiceUnknown"));
	peer_close(&p);
}

static void test_nobody_answers_who_expects_nothing(void **state)
{
	struct dbusp_desc call = { .type = DBUSP_METHOD_CALL,
				   .flags = DBUSP_NO_REPLY_EXPECTED,
				   .path = DBUSP_STR(DBUS_PATH),
				   .interface = DBUSP_STR(DBUS),
				   .member = DBUSP_STR("GetId"),
				   .destination = DBUSP_STR(DBUS) };
	struct got g;
	uint32_t serial;
	WITH(p);

	(void)state;
	serial = peer_send(&p, call);
	peer_call(&p, DBUS, DBUS_PATH, DBUS ".Peer", "Ping", "");
	assert_true(peer_next(&p, &g));
	/* "the reply should be omitted": the reference sends it all the same. */
	if (bus_is_reference() && g.h.reply_serial == serial) {
		got_free(&g);
		assert_true(peer_next(&p, &g));
	}
	assert_int_equal(g.h.reply_serial, p.serial);
	got_free(&g);
	peer_close(&p);
}

static void test_peer_interface(void **state)
{
	struct got g;
	WITH(p);

	(void)state;
	want_done(&p, peer_call(&p, DBUS, "/any/path", DBUS ".Peer", "Ping", ""));
	want_done(&p, peer_call(&p, NULL, "/any/path", DBUS ".Peer", "Ping", ""));
	want_return(&p, peer_call(&p, DBUS, "/", DBUS ".Peer", "GetMachineId", ""), &g);
	assert_int_equal(strlen(got_string(&g)), 32);
	got_free(&g);
	peer_close(&p);
}

static void test_introspection(void **state)
{
	struct got g;
	WITH(p);

	(void)state;
	want_return(&p,
		    peer_call(&p, DBUS, DBUS_PATH, DBUS ".Introspectable", "Introspect", ""), &g);
	const char *xml = got_string(&g);

	assert_non_null(strstr(xml, "\"" DBUS "\""));
	assert_non_null(strstr(xml, "ListQueuedOwners"));
	got_free(&g);
	peer_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hello_comes_first),
		cmocka_unit_test(test_hello_only_once),
		cmocka_unit_test(test_unique_names_are_unique),
		cmocka_unit_test(test_pipelined_start),
		cmocka_unit_test(test_own_and_release),
		cmocka_unit_test(test_queue),
		cmocka_unit_test(test_replacement),
		cmocka_unit_test(test_replacement_needs_leave),
		cmocka_unit_test(test_replaced_owner_that_does_not_queue),
		cmocka_unit_test(test_flags_of_the_last_request),
		cmocka_unit_test(test_unknown_flags_are_ignored),
		cmocka_unit_test(test_invalid_names),
		cmocka_unit_test(test_queued_owners),
		cmocka_unit_test(test_owner_changes_are_told_in_order),
		cmocka_unit_test(test_order_of_change_signal_and_reply),
		cmocka_unit_test(test_credentials),
		cmocka_unit_test(test_credentials_of_the_bus),
		cmocka_unit_test(test_nobody_has_no_credentials),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_id_is_stable),
		cmocka_unit_test(test_unknown_methods),
		cmocka_unit_test(test_wrong_arguments),
		cmocka_unit_test(test_start_of_what_is_there),
		cmocka_unit_test(test_nobody_answers_who_expects_nothing),
		cmocka_unit_test(test_peer_interface),
		cmocka_unit_test(test_introspection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
