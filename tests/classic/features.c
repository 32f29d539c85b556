// SPDX-License-Identifier: LGPL-2.1-or-later
/* What else org.freedesktop.DBus has: statistics, properties, labels, monitors. */
#include <stdlib.h>
#include <string.h>

#include "peer.h"

#define PATH  "/org/example/Features"
#define IFACE "org.example.Features1"

static uint32_t call_bus(struct peer *p, const char *interface, const char *member)
{
	return peer_call(p, DBUS, DBUS_PATH, interface, member, "");
}

static uint32_t call_bus_with(struct peer *p, const char *interface, const char *member,
			      const char *text)
{
	return peer_call(p, DBUS, DBUS_PATH, interface, member, "s", text);
}

static void want_signature(struct peer *p, uint32_t serial, const char *signature)
{
	struct got g;

	want_return(p, serial, &g);
	assert_string_equal(g.h.signature.s, signature);
	got_free(&g);
}

static void test_statistics(void **state)
{
	static const char face[] = DBUS ".Debug.Stats";

	(void)state;
	WITH(p);
	want_signature(&p, call_bus(&p, face, "GetStats"), "a{sv}");
	want_signature(&p, call_bus_with(&p, face, "GetConnectionStats", p.name), "a{sv}");
	want_error(&p, call_bus_with(&p, face, "GetConnectionStats", "org.example.Nobody"),
		   ERROR_NAME("NameHasNoOwner"));
	want_signature(&p, call_bus(&p, face, "GetAllMatchRules"), "a{sas}");
	peer_close(&p);
}

static void test_properties(void **state)
{
	static const char face[] = DBUS ".Properties";
	static const char *const names[] = { "Features", "Interfaces" };
	uint32_t serial;
	unsigned int i;

	(void)state;
	WITH(p);
	for (i = 0; i < 2; i++) {
		serial = peer_call(&p, DBUS, DBUS_PATH, face, "Get", "ss", DBUS, names[i]);
		want_signature(&p, serial, "v");
	}
	want_signature(&p, call_bus_with(&p, face, "GetAll", DBUS), "a{sv}");
	want_error(&p, peer_call(&p, DBUS, DBUS_PATH, face, "Get", "ss", DBUS, "Nothing"),
		   ERROR_NAME("UnknownProperty"));
	want_error(&p, peer_call(&p, DBUS, DBUS_PATH, face, "Get", "ss", "org.example.No", "It"),
		   ERROR_NAME("UnknownInterface"));
	peer_close(&p);
}

/* Interfaces that are at the path of the bus only */
static void test_interfaces_of_another_path(void **state)
{
	(void)state;
	WITH(p);
	want_error(&p, peer_call(&p, DBUS, "/", DBUS ".Properties", "GetAll", "s", DBUS),
		   ERROR_NAME("UnknownInterface"));
	want_error(&p, peer_call(&p, DBUS, "/", DBUS ".Monitoring", "BecomeMonitor", ""),
		   ERROR_NAME("UnknownInterface"));
	peer_close(&p);
}

/* Where nobody audits, and no label is one of SELinux: the debug kernel of tests/vm has others */
static void test_labels_that_nobody_has(void **state)
{
	(void)state;
	WITH(p);
	want_error(&p, peer_driver(&p, "GetAdtAuditSessionData", "s", p.name),
		   ERROR_NAME("AdtAuditDataUnknown"));
	want_error(&p, peer_driver(&p, "GetConnectionSELinuxSecurityContext", "s", p.name),
		   ERROR_NAME("SELinuxSecurityContextUnknown"));
	peer_close(&p);
}

/* The rules of a monitor are an array, none of them: everything */
static uint32_t become_monitor(struct peer *p)
{
	struct dbusp_desc desc = { .type = DBUSP_METHOD_CALL,
				   .serial = ++p->serial,
				   .path = DBUSP_STR(DBUS_PATH),
				   .interface = DBUSP_STR(DBUS ".Monitoring"),
				   .member = DBUSP_STR("BecomeMonitor"),
				   .destination = DBUSP_STR(DBUS),
				   .signature = DBUSP_STR("asu") };
	struct dbusp_build b;
	uint8_t *msg;
	size_t len;

	dbusp_build_begin(&b, NULL, &desc);
	dbusp_open(&b, 'a', "s");
	dbusp_close(&b);
	dbusp_put_u32(&b, 0);
	assert_int_equal(dbusp_build_end(&b, &msg, &len), 0);
	peer_write(p, msg, len);
	free(msg);
	return p->serial;
}

/* It loses its name, sees everything, and must not speak. */
static void test_a_monitor(void **state)
{
	uint32_t serial;
	struct got g;
	bool seen;

	(void)state;
	WITH(m);
	WITH(p);
	want_done(&m, become_monitor(&m));
	want_driver_signal(&m, "NameLost", m.name, NULL, NULL);
	want_u32(&p, peer_driver(&p, "NameHasOwner", "s", m.name), 0);
	serial = peer_call(&p, p.name, PATH, IFACE, "Say", "s", "words");
	want_call(&p, "Say", &g);
	peer_return(&p, &g, "s", "answer");
	got_free(&g);
	want_string(&p, serial, "answer");
	do {
		assert_true(peer_next(&m, &g));
		seen = g.h.member.s && !strcmp(g.h.member.s, "Say");
		if (seen)
			assert_string_equal(got_string(&g), "words");
		got_free(&g);
	} while (!seen);
	want_string(&m, serial, "answer");
	peer_driver(&m, "GetId", "");
	want_end(&m);
	want_nothing(&p);
	peer_close(&m);
	peer_close(&p);
}

static size_t build_introspect(uint8_t **ret_msg, const char *path, uint32_t serial)
{
	struct dbusp_desc desc = { .type = DBUSP_METHOD_CALL,
				   .serial = serial,
				   .path = dbusp_str(path),
				   .interface = DBUSP_STR(DBUS ".Introspectable"),
				   .member = DBUSP_STR("Introspect"),
				   .destination = DBUSP_STR(DBUS) };
	struct dbusp_build b;
	size_t len;

	dbusp_build_begin(&b, NULL, &desc);
	assert_int_equal(dbusp_build_end(&b, ret_msg, &len), 0);
	return len;
}

/* Two calls in one write: both answers are there before any of them is sent. */
static void introspect_twice(struct peer *p, uint32_t serials[2])
{
	static const char *const paths[2] = { "/", "/another" };
	uint8_t *msg, both[1024];
	size_t len = 0, n;
	int i;

	for (i = 0; i < 2; i++) {
		serials[i] = ++p->serial;
		n = build_introspect(&msg, paths[i], serials[i]);
		assert_true(len + n <= sizeof(both));
		memcpy(both + len, msg, n);
		len += n;
		free(msg);
	}
	peer_write(p, both, len);
}

/* The next answer that the monitor sees */
static void seen_answer(struct peer *m, uint32_t serial, const char *text)
{
	struct got g;
	bool seen;

	do {
		assert_true(peer_next(m, &g));
		seen = g.h.frame.type == DBUSP_METHOD_RETURN && g.h.reply_serial == serial;
		if (seen)
			assert_string_equal(got_string(&g), text);
		got_free(&g);
	} while (!seen);
}

static void test_what_a_monitor_sees_is_what_was_sent(void **state)
{
	uint32_t serials[2];
	struct got g[2];
	int i;

	(void)state;
	WITH(m);
	WITH(p);
	want_done(&m, become_monitor(&m));
	introspect_twice(&p, serials);
	for (i = 0; i < 2; i++)
		want_return(&p, serials[i], &g[i]);
	for (i = 0; i < 2; i++) {
		seen_answer(&m, serials[i], got_string(&g[i]));
		got_free(&g[i]);
	}
	peer_close(&m);
	peer_close(&p);
}

/* What a monitor sees next of the bus about a name is that. */
static void want_shown(struct peer *m, const char *member, const char *name, struct got *g)
{
	for (;;) {
		assert_true(peer_next(m, g));
		if (g->h.member.s && !strncmp(g->h.member.s, "Name", 4) &&
		    !strcmp(got_string(g), name))
			break;
		got_free(g);
	}
	assert_string_equal(g->h.member.s, member);
}

/* Who leaves loses its names one by one, as a monitor sees, though nobody is there to be told. */
static void test_a_monitor_sees_who_leaves(void **state)
{
	static const char leaver[] = "org.example.Leaver";
	const char *name;
	uint32_t serial;
	struct got g;
	int i;

	(void)state;
	WITH(m);
	WITH(p);
	serial = peer_driver(&p, "RequestName", "su", leaver, 0);
	want_driver_signal(&p, "NameAcquired", leaver, NULL, NULL);
	want_u32(&p, serial, 1);
	want_done(&m, become_monitor(&m));
	peer_close(&p);
	for (i = 0; i < 2; i++) {
		name = i == 0 ? leaver : p.name;
		want_shown(&m, "NameLost", name, &g);
		assert_string_equal(g.h.destination.s, p.name);
		got_free(&g);
		want_shown(&m, "NameOwnerChanged", name, &g);
		assert_string_equal(got_string(&g), p.name);
		assert_string_equal(got_string(&g), "");
		got_free(&g);
	}
	peer_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_statistics),
		cmocka_unit_test(test_properties),
		cmocka_unit_test(test_interfaces_of_another_path),
		cmocka_unit_test(test_labels_that_nobody_has),
		cmocka_unit_test(test_a_monitor),
		cmocka_unit_test(test_a_monitor_sees_who_leaves),
		cmocka_unit_test(test_what_a_monitor_sees_is_what_was_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
