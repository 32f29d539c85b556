// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a bus must stand: floods, readers that do not read, forged replies, connections that never
 * say who they are. Whoever does that pays for it, and nobody else. hard.conf has the limits.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer.h"

#define FACE "org.example.Face"

/* As in hard.conf */
#define MAX_OUTGOING_BYTES (4U << 20)
#define MAX_REPLIES 70000
#define MAX_RULES 1000
#define MAX_NAMES 50
#define MAX_INCOMPLETE 20

#define CHUNK (64U << 10)

static char chunk[CHUNK + 1];

static void match(struct peer *p, const char *rule)
{
	want_done(p, peer_driver(p, "AddMatch", "s", rule));
}

/* Is something to be read? */
static bool readable(struct peer *p)
{
	struct pollfd pfd = { .fd = p->fd, .events = POLLIN };

	return poll(&pfd, 1, 0) > 0;
}

/* ---- readers that do not read ---- */

static void test_slow_reader_is_refused_to_its_sender_only(void **state)
{
	unsigned int sent = 0, got = 0;
	struct got g;
	WITH(slow);
	WITH(other);
	WITH(a);

	(void)state;
	/* Until the first refusal; a ping after each, so that nothing is under way. */
	for (;;) {
		peer_signal(&a, slow.name, "/a", FACE, "Tick", "s", chunk);
		sent++;
		peer_call(&a, DBUS, DBUS_PATH, DBUS ".Peer", "Ping", "");
		assert_true(peer_next(&a, &g));
		if (g.h.frame.type == DBUSP_ERROR)
			break;
		got_free(&g);
		assert_true(sent < 4 * MAX_OUTGOING_BYTES / CHUNK);
	}
	assert_string_equal(g.h.error_name.s, ERROR_NAME("LimitsExceeded"));
	/* It says who, and which limit. */
	assert_non_null(strstr(got_string(&g), slow.name));
	got_free(&g);
	want_done(&a, a.serial);
	assert_true(sent > MAX_OUTGOING_BYTES / CHUNK);
	peer_signal(&a, other.name, "/a", FACE, "Tick", "");
	want_signal(&other, a.name, "Tick", &g);
	got_free(&g);
	/* It gets what it was sent, all but the last, and is as good as new. */
	for (got = 0; got < sent - 1; got++) {
		want_signal(&slow, a.name, "Tick", &g);
		got_free(&g);
	}
	want_nothing(&slow);
	peer_signal(&a, slow.name, "/a", FACE, "Again", "");
	want_signal(&slow, a.name, "Again", &g);
	got_free(&g);
	peer_close(&a);
	peer_close(&slow);
	peer_close(&other);
}

static void test_slow_reader_of_broadcasts_ends(void **state)
{
	unsigned int sent;
	struct got g;
	WITH(slow);
	WITH(fast);
	WITH(w);
	WITH(a);

	(void)state;
	match(&slow, "type='signal',member='Tick'");
	match(&fast, "type='signal',member='Tick'");
	match(&w, "type='signal',sender='" DBUS "',member='NameOwnerChanged',arg0namespace=':1'");
	for (sent = 0; !readable(&w); sent++) {
		assert_true(sent < 4 * MAX_OUTGOING_BYTES / CHUNK);
		peer_signal(&a, NULL, "/a", FACE, "Tick", "s", chunk);
		want_nothing(&a);
		want_signal(&fast, a.name, "Tick", &g);
		got_free(&g);
	}
	/* It is the slow one that left, and nobody else. */
	want_driver_signal(&w, "NameOwnerChanged", slow.name, slow.name, "");
	/* It finds the end, perhaps in the middle of a message. */
	while (read(slow.fd, chunk, CHUNK) > 0)
		;
	memset(chunk, 'x', CHUNK);
	want_nothing(&fast);
	want_nothing(&w);
	peer_close(&a);
	peer_close(&slow);
	peer_close(&fast);
	peer_close(&w);
}

/* Who floods the bus with questions and reads no answer is not read from any more. */
static void test_who_reads_no_answers_is_not_read_from(void **state)
{
	struct dbusp_desc d = { .type = DBUSP_METHOD_CALL,
				.serial = 1,
				.path = DBUSP_STR(DBUS_PATH),
				.interface = DBUSP_STR(DBUS),
				.member = DBUSP_STR("ListNames"),
				.destination = DBUSP_STR(DBUS) };
	size_t len, sent = 0, written, at = 0;
	struct dbusp_build b;
	struct peer other;
	uint8_t *msg;
	int full = 0;
	WITH(p);

	(void)state;
	dbusp_build_begin(&b, NULL, &d);
	assert_int_equal(dbusp_build_end(&b, &msg, &len), 0);
	/* Full a thousand times in a row, with work for the bus between: it reads no more. */
	peer_join(&other);
	while (full < 1000) {
		assert_true(peer_try_write(&p, msg + at, len - at, &written));
		at = (at + written) % len;
		sent += written;
		full = written ? 0 : full + 1;
		if (!written)
			want_nothing(&other);
		assert_true(sent < 64 << 20);
	}
	free(msg);
	peer_close(&other);
	peer_close(&p);
	peer_join(&other);
	want_nothing(&other);
	peer_close(&other);
}

/* ---- replies ---- */

static void send_reply(struct peer *p, const char *to, uint32_t serial)
{
	peer_send(p,
		  (struct dbusp_desc){ .type = DBUSP_METHOD_RETURN,
				       .reply_serial = serial,
				       .destination = { to, strlen(to) } });
}

/* Who sent it may be told that it was refused. */
static void want_at_most_a_refusal(struct peer *p)
{
	struct got g;

	peer_call(p, DBUS, DBUS_PATH, DBUS ".Peer", "Ping", "");
	assert_true(peer_next(p, &g));
	if (g.h.frame.type == DBUSP_ERROR) {
		assert_string_equal(g.h.error_name.s, ERROR_NAME("AccessDenied"));
		got_free(&g);
		assert_true(peer_next(p, &g));
	}
	assert_int_equal(g.h.reply_serial, p->serial);
	got_free(&g);
}

static void test_replies_nobody_asked_for(void **state)
{
	uint32_t serial;
	struct got g;
	WITH(a);
	WITH(b);
	WITH(c);

	(void)state;
	/* of nothing */
	send_reply(&b, a.name, 4711);
	want_at_most_a_refusal(&b);
	want_nothing(&a);
	serial = peer_call(&a, b.name, "/a", FACE, "Frob", "");
	want_call(&b, "Frob", &g);
	/* of a third party */
	send_reply(&c, a.name, serial);
	want_at_most_a_refusal(&c);
	want_nothing(&a);
	/* with another serial */
	send_reply(&b, a.name, serial + 1000);
	want_at_most_a_refusal(&b);
	want_nothing(&a);
	peer_return(&b, &g, "");
	want_done(&a, serial);
	/* a second one */
	peer_return(&b, &g, "");
	got_free(&g);
	want_at_most_a_refusal(&b);
	want_nothing(&a);
	peer_close(&a);
	peer_close(&b);
	peer_close(&c);
}

static void test_sixty_thousand_open_calls(void **state)
{
	const unsigned int n = 60000;
	uint32_t *serials = calloc(n, sizeof(*serials));
	unsigned int i;
	struct got g;
	WITH(a);
	WITH(b);

	(void)state;
	for (i = 0; i < n; i++) {
		peer_call(&a, b.name, "/a", FACE, "Frob", "");
		want_call(&b, "Frob", &g);
		serials[i] = g.h.frame.serial;
		got_free(&g);
	}
	/* Answered from both ends */
	for (i = 0; i < n / 2; i++) {
		send_reply(&b, a.name, serials[i]);
		want_done(&a, serials[i]);
		send_reply(&b, a.name, serials[n - 1 - i]);
		want_done(&a, serials[n - 1 - i]);
	}
	free(serials);
	peer_close(&a);
	peer_close(&b);
}

static void test_too_many_open_calls(void **state)
{
	struct peer *others = calloc(1, sizeof(*others));
	unsigned int i, refused = 0;
	struct got g;
	WITH(a);
	WITH(b);

	(void)state;
	for (i = 0; i < MAX_REPLIES + 10; i++) {
		peer_call(&a, b.name, "/a", FACE, "Frob", "");
		if (i < MAX_REPLIES) {
			want_call(&b, "Frob", &g);
			got_free(&g);
			continue;
		}
		want_error(&a, a.serial, ERROR_NAME("LimitsExceeded"));
		refused++;
	}
	assert_int_equal(refused, 10);
	want_nothing(&b);
	/* All of them end with the callee. */
	peer_close(&b);
	for (i = 0; i < MAX_REPLIES; i++) {
		assert_true(peer_next(&a, &g));
		assert_string_equal(g.h.error_name.s, ERROR_NAME("NoReply"));
		got_free(&g);
	}
	want_nothing(&a);
	free(others);
	peer_close(&a);
}

/* ---- too much of everything ---- */

static void test_too_many_rules(void **state)
{
	char rule[64];
	unsigned int i;
	WITH(p);

	(void)state;
	for (i = 0; i < MAX_RULES; i++) {
		snprintf(rule, sizeof(rule), "member='M%u'", i);
		match(&p, rule);
	}
	want_error(&p, peer_driver(&p, "AddMatch", "s", "member='More'"),
		   ERROR_NAME("LimitsExceeded"));
	want_done(&p, peer_driver(&p, "RemoveMatch", "s", "member='M7'"));
	match(&p, "member='More'");
	peer_close(&p);
}

static void test_too_many_names(void **state)
{
	char name[64];
	uint32_t serial;
	unsigned int i;
	WITH(p);

	(void)state;
	/* The unique name counts. */
	for (i = 0; i < MAX_NAMES - 1; i++) {
		snprintf(name, sizeof(name), "org.example.N%u", i);
		serial = peer_driver(&p, "RequestName", "su", name, 0);
		want_driver_signal(&p, "NameAcquired", name, NULL, NULL);
		want_u32(&p, serial, 1);
	}
	want_error(&p, peer_driver(&p, "RequestName", "su", "org.example.More", 0),
		   ERROR_NAME("LimitsExceeded"));
	peer_close(&p);
}

/* Those who never say who they are: more than allowed wait outside, and end in time. */
static void test_connections_that_never_authenticate(void **state)
{
	struct peer idle[3 * MAX_INCOMPLETE];
	char byte;
	int i;
	WITH(p);

	(void)state;
	for (i = 0; i < 3 * MAX_INCOMPLETE; i++)
		peer_open(&idle[i]);
	want_nothing(&p);
	/* auth_timeout ends them; then there is room again. */
	for (i = 0; i < 3 * MAX_INCOMPLETE; i++) {
		assert_int_equal(read(idle[i].fd, &byte, 1), 0);
		peer_close(&idle[i]);
	}
	want_nothing(&p);
	peer_close(&p);
	peer_join(&p);
	peer_close(&p);
}

static void test_too_many_descriptors(void **state)
{
	int fds[PEER_FDS_MAX], i;
	struct dbusp_desc d = { .type = DBUSP_SIGNAL,
				.serial = 77,
				.n_fds = 17,
				.path = DBUSP_STR("/a"),
				.interface = DBUSP_STR(FACE),
				.member = DBUSP_STR("Tick") };
	struct dbusp_build b;
	uint8_t *msg;
	size_t len;
	WITH(a);
	WITH(w);

	(void)state;
	for (i = 0; i < PEER_FDS_MAX; i++)
		fds[i] = STDERR_FILENO;
	d.destination = (struct dbusp_str){ w.name, strlen(w.name) };
	dbusp_build_begin(&b, NULL, &d);
	assert_int_equal(dbusp_build_end(&b, &msg, &len), 0);
	/* max_message_unix_fds is 16 */
	peer_write_fds(&a, msg, len, fds, 17);
	want_end(&a);
	want_nothing(&w);
	free(msg);
	peer_close(&a);
	peer_close(&w);
}

/* ---- noise ---- */

static uint32_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*state >> 33);
}

static void test_noise(void **state)
{
	uint64_t seed = 4711;
	uint8_t noise[600];
	struct peer p;
	size_t len, i;
	int round;
	WITH(other);

	(void)state;
	for (round = 0; round < 2000; round++) {
		peer_open(&p);
		if (round % 4)
			peer_auth(&p, round & 1);
		if (round % 4 > 1)
			peer_hello(&p);
		len = random_next(&seed) % sizeof(noise);
		for (i = 0; i < len; i++)
			noise[i] = (uint8_t)random_next(&seed);
		/* Half of it begins like a message. */
		if (round & 8 && len >= 16) {
			memcpy(noise, "l\1\0\1", 4);
			memset(noise + 6, 0, 2);
			memset(noise + 14, 0, 2);
			noise[8] |= 1;
		}
		peer_write(&p, noise, len);
		peer_close(&p);
	}
	want_nothing(&other);
	peer_close(&other);
}

/* Who did not agree on descriptors gets the credentials without one. */
static void test_credentials_without_descriptors(void **state)
{
	struct peer p;
	struct got g;

	(void)state;
	peer_open(&p);
	peer_auth(&p, false);
	peer_hello(&p);
	want_return(&p, peer_driver(&p, "GetConnectionCredentials", "s", p.name), &g);
	assert_int_equal(g.n_fds, 0);
	got_free(&g);
	want_nothing(&p);
	peer_close(&p);
}

/* Nearly all of a message may be its path: its header fits no buffer of the usual size. */
static void test_header_as_large_as_a_message(void **state)
{
	static char path[(3U << 20) + 1];
	struct got g, h;
	WITH(a);
	WITH(b);
	WITH(c);

	(void)state;
	memset(path, 'p', sizeof(path) - 1);
	path[0] = '/';
	match(&b, "type='signal',member='Tick'");
	match(&c, "type='signal',member='Tick'");
	peer_signal(&a, NULL, path, FACE, "Tick", "s", "broadcast");
	peer_signal(&a, b.name, path, FACE, "Tick", "s", "unicast");
	want_signal(&b, a.name, "Tick", &g);
	assert_string_equal(g.h.path.s, path);
	assert_string_equal(got_string(&g), "broadcast");
	want_signal(&c, a.name, "Tick", &h);
	assert_string_equal(h.h.path.s, path);
	got_free(&g);
	got_free(&h);
	want_signal(&b, a.name, "Tick", &g);
	assert_string_equal(g.h.path.s, path);
	assert_string_equal(got_string(&g), "unicast");
	got_free(&g);
	want_nothing(&a);
	want_nothing(&b);
	want_nothing(&c);
	peer_close(&a);
	peer_close(&b);
	peer_close(&c);
}

/* Names of a sender times prefixes of a path are more keys than it pays to look for. */
static void test_many_names_and_a_deep_path(void **state)
{
	char path[2 * 500 + 1], name[64];
	struct got g;
	unsigned int i;
	WITH(a);
	WITH(b);
	WITH(other);

	(void)state;
	for (i = 0; i < 500; i++)
		memcpy(path + 2 * i, "/p", 3);
	for (i = 0; i < MAX_NAMES - 1; i++) {
		snprintf(name, sizeof(name), "org.example.N%u", i);
		peer_driver(&a, "RequestName", "su", name, 0);
		want_driver_signal(&a, "NameAcquired", name, NULL, NULL);
		want_u32(&a, a.serial, 1);
	}
	match(&b, "sender='org.example.N48',path_namespace='/p/p/p'");
	match(&other, "sender='org.example.N49',path_namespace='/p/p/p'");
	match(&other, "sender='org.example.N48',path_namespace='/p/q'");
	peer_signal(&a, NULL, path, FACE, "Tick", "");
	want_signal(&b, a.name, "Tick", &g);
	got_free(&g);
	peer_signal(&a, NULL, "/q", FACE, "Tick", "");
	want_nothing(&a);
	want_nothing(&b);
	want_nothing(&other);
	peer_close(&a);
	peer_close(&b);
	peer_close(&other);
}

/* An error may quote only a part of what was wrong, but whole characters of it. */
static void test_errors_about_long_names(void **state)
{
	static const char e_acute[] = "\303\251";
	static char name[8192];
	unsigned int at, i;
	WITH(a);

	(void)state;
	for (at = 0; at < 2; at++) {
		memset(name, 'n', at);
		for (i = 0; i < 3000; i++)
			memcpy(name + at + 2 * i, e_acute, sizeof(e_acute));
		want_error(&a, peer_driver(&a, "RequestName", "su", name, 0),
			   ERROR_NAME("InvalidArgs"));
		want_error(&a, peer_driver(&a, "GetConnectionUnixUser", "s", name),
			   ERROR_NAME("NameHasNoOwner"));
	}
	want_nothing(&a);
	peer_close(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow_reader_is_refused_to_its_sender_only),
		cmocka_unit_test(test_slow_reader_of_broadcasts_ends),
		cmocka_unit_test(test_who_reads_no_answers_is_not_read_from),
		cmocka_unit_test(test_replies_nobody_asked_for),
		cmocka_unit_test(test_sixty_thousand_open_calls),
		cmocka_unit_test(test_too_many_open_calls),
		cmocka_unit_test(test_too_many_rules),
		cmocka_unit_test(test_too_many_names),
		cmocka_unit_test(test_connections_that_never_authenticate),
		cmocka_unit_test(test_too_many_descriptors),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_credentials_without_descriptors),
		cmocka_unit_test(test_header_as_large_as_a_message),
		cmocka_unit_test(test_errors_about_long_names),
		cmocka_unit_test(test_many_names_and_a_deep_path),
	};

	memset(chunk, 'x', CHUNK);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
