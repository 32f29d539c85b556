// SPDX-License-Identifier: LGPL-2.1-or-later
/* What one client can do to others: floods, slow readers, too many connections. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "own-bus.h"
#include "peer.h"

#define PATH "/org/example/Flood"
#define IFACE "org.example.Flood1"
#define OUTGOING 200000

static const char limits[] = "<limit name='max_outgoing_bytes'>200000</limit>"
			     "<limit name='max_incomplete_connections'>4</limit>"
			     "<limit name='max_completed_connections'>12</limit>"
			     "<limit name='max_replies_per_connection'>3</limit>"
			     "<limit name='max_names_per_connection'>3</limit>"
			     "<limit name='max_match_rules_per_connection'>2</limit>";

static int start(void **state)
{
	static struct own_bus bus;

	own_bus_start(&bus, limits, 0);
	*state = &bus;
	return 0;
}

static int stop(void **state)
{
	return own_bus_stop(*state);
}

static char *long_text(size_t len)
{
	char *text = malloc(len + 1);

	memset(text, 'x', len);
	text[len] = '\0';
	return text;
}

/* The bus has made a round, and answers others. */
static void ping(struct peer *p)
{
	want_done(p, peer_call(p, DBUS, DBUS_PATH, DBUS ".Peer", "Ping", ""));
}

/* ---- slow readers ---- */

/* Numbered messages until one is refused, with the answer to something else behind each */
static void flood(struct peer *p, const char *to, const char *text, unsigned int *ret_refused,
		  struct got *ret_error)
{
	uint32_t serial;
	unsigned int n;
	struct got g;

	for (n = 0; n < 10000; n++) {
		peer_signal(p, to, PATH, IFACE, "Number", "us", n, text);
		serial = peer_driver(p, "GetId", "");
		assert_true(peer_next(p, &g));
		if (g.h.frame.type == DBUSP_ERROR) {
			*ret_error = g;
			*ret_refused = n;
			assert_true(peer_next(p, &g));
			assert_int_equal(g.h.reply_serial, serial);
			got_free(&g);
			return;
		}
		assert_int_equal(g.h.reply_serial, serial);
		got_free(&g);
	}
	fail_msg("10000 messages wait");
}

static void want_numbers(struct peer *p, const char *sender, unsigned int n)
{
	unsigned int i;
	struct got g;

	for (i = 0; i < n; i++) {
		want_signal(p, sender, "Number", &g);
		assert_int_equal(got_u32(&g), i);
		got_free(&g);
	}
}

/* Who sends to one that does not read is told, and goes on; the other gets what was accepted. */
static void test_slow_reader(void **state)
{
	char *text = long_text(5000);
	unsigned int refused;
	const char *error;
	struct got g;

	WITH(slow);
	WITH(p);
	WITH(other);
	flood(&p, slow.name, text, &refused, &g);
	assert_string_equal(g.h.error_name.s, ERROR_NAME("LimitsExceeded"));
	error = got_string(&g);
	assert_non_null(strstr(error, slow.name));
	assert_non_null(strstr(error, "max_outgoing_bytes=200000"));
	got_free(&g);
	assert_true(refused > OUTGOING / 5100);
	ping(&other);
	peer_signal(&p, other.name, PATH, IFACE, "Number", "us", 0, text);
	want_numbers(&other, p.name, 1);
	want_numbers(&slow, p.name, refused);
	want_nothing(&slow);
	peer_signal(&p, slow.name, PATH, IFACE, "Number", "us", 0, text);
	want_numbers(&slow, p.name, 1);
	free(text);
	peer_close(&slow);
	peer_close(&p);
	peer_close(&other);
}

/* A broadcast that does not fit ends the one it does not fit, and nobody else. */
static void test_slow_reader_of_broadcasts(void **state)
{
	char *text = long_text(5000);
	unsigned int n;
	struct got g;

	WITH(slow);
	WITH(p);
	WITH(other);
	want_done(&slow, peer_driver(&slow, "AddMatch", "s", "interface='" IFACE "'"));
	want_done(&other, peer_driver(&other, "AddMatch", "s", "interface='" IFACE "'"));
	want_done(&other, peer_driver(&other, "AddMatch", "s", "member='NameOwnerChanged'"));
	for (n = 0; n < 10000; n++) {
		peer_signal(&p, NULL, PATH, IFACE, "Number", "us", n, text);
		assert_true(peer_next(&other, &g));
		if (!strcmp(g.h.member.s, "NameOwnerChanged"))
			break;
		assert_int_equal(got_u32(&g), n);
		got_free(&g);
	}
	assert_true(n < 10000);
	assert_string_equal(got_string(&g), slow.name);
	got_free(&g);
	ping(&p);
	free(text);
	peer_close(&slow);
	peer_close(&p);
	peer_close(&other);
}

/* One that reads no answers is not read from, until it does. */
static void test_asks_and_does_not_read(void **state)
{
	struct dbusp_desc desc = { .type = DBUSP_METHOD_CALL,
				   .serial = 100,
				   .path = DBUSP_STR(DBUS_PATH),
				   .interface = DBUSP_STR(DBUS),
				   .member = DBUSP_STR("ListActivatableNames"),
				   .destination = DBUSP_STR(DBUS) };
	unsigned int sent = 0, refused = 0, i;
	size_t len, at = 0, n;
	struct dbusp_build b;
	uint8_t *msg;
	struct got g;

	WITH(p);
	WITH(other);
	dbusp_build_begin(&b, NULL, &desc);
	assert_int_equal(dbusp_build_end(&b, &msg, &len), 0);
	while (refused < 4 && sent < 1000000) {
		assert_true(peer_try_write(&p, msg + at, len - at, &n));
		at += n;
		if (at == len) {
			at = 0;
			sent++;
		}
		refused = n ? 0 : refused + 1;
		/* Two answers: between them there was a round in which the bus could have read. */
		if (!n) {
			ping(&other);
			ping(&other);
		}
	}
	assert_true(sent < 1000000);
	for (i = 0; i < sent; i++) {
		want_return(&p, 100, &g);
		got_free(&g);
	}
	if (at)
		peer_write(&p, msg + at, len - at);
	if (at) {
		want_return(&p, 100, &g);
		got_free(&g);
	}
	ping(&p);
	free(msg);
	peer_close(&p);
	peer_close(&other);
}

/* ---- connections ---- */

/* Silent connections keep others waiting at most until they are gone. */
static void test_incomplete_connections(void **state)
{
	struct peer silent[4], p;
	unsigned int i;

	WITH(before);
	for (i = 0; i < 4; i++)
		peer_open(&silent[i]);
	ping(&before);
	peer_open(&p); /* waits in the backlog */
	ping(&before);
	for (i = 0; i < 4; i++)
		peer_close(&silent[i]);
	peer_auth(&p, true);
	peer_hello(&p);
	ping(&p);
	peer_close(&p);
	peer_close(&before);
}

static void test_completed_connections(void **state)
{
	struct peer peers[12], late;
	uint32_t serial;
	unsigned int i;

	for (i = 0; i < 12; i++)
		peer_join(&peers[i]);
	peer_open(&late);
	peer_auth(&late, true);
	serial = peer_driver(&late, "Hello", "");
	want_error_text(&late, serial, ERROR_NAME("LimitsExceeded"),
			"The maximum number of active connections has been reached "
			"(max_completed_connections=12)");
	peer_close(&peers[0]);
	/* Its end is noticed with or before this. */
	ping(&peers[1]);
	ping(&peers[1]);
	peer_hello(&late);
	ping(&late);
	for (i = 1; i < 12; i++)
		peer_close(&peers[i]);
	peer_close(&late);
}

/* Out of descriptors the bus goes on for those it has, and takes new ones when there are some. */
static void test_out_of_descriptors(void **state)
{
	enum { MANY = 200 };
	struct peer peers[MANY];
	struct own_bus bus = { 0 };
	unsigned int i;

	own_bus_start(&bus, "", 64);
	WITH(p);
	for (i = 0; i < MANY; i++) {
		peer_open(&peers[i]);
		if (i % 10 == 0)
			ping(&p);
	}
	ping(&p);
	for (i = 0; i < MANY; i++)
		close(peers[i].fd);
	ping(&p);
	ping(&p);
	{
		WITH(late);
		ping(&late);
		peer_close(&late);
	}
	peer_close(&p);
	assert_int_equal(own_bus_stop(&bus), 0);
}

/* One that does not authenticate is not kept for ever. */
static void test_auth_timeout(void **state)
{
	struct own_bus bus = { 0 };
	struct peer silent;

	own_bus_start(&bus, "<limit name='auth_timeout'>1</limit>", 0);
	peer_open(&silent);
	want_end(&silent);
	peer_close(&silent);
	assert_int_equal(own_bus_stop(&bus), 0);
}

/* Nor is one that does and then says nothing: it keeps others out as well. */
static void test_hello_timeout(void **state)
{
	static const char auth[] = "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n";
	struct own_bus bus = { 0 };
	struct peer silent;
	char answer[256];

	own_bus_start(&bus,
		      "<limit name='auth_timeout'>1000</limit>"
		      "<limit name='max_incomplete_connections'>1</limit>",
		      0);
	peer_open(&silent);
	peer_write(&silent, auth, sizeof(auth) - 1);
	{
		WITH(p);
		ping(&p);
		peer_close(&p);
	}
	while (read(silent.fd, answer, sizeof(answer)) > 0)
		;
	peer_close(&silent);
	assert_int_equal(own_bus_stop(&bus), 0);
}

static size_t build_empty(uint8_t **ret, const struct dbusp_desc *desc, ...)
{
	va_list none;
	size_t len;

	va_start(none, desc);
	len = peer_build(ret, desc, none);
	va_end(none);
	return len;
}

/* A few calls at once ask for much more than the caller may have waiting. */
static void test_asks_for_more_than_it_may_have(void **state)
{
	enum { NAMES = 250, CALLS = 250, NAME = 200 };
	const size_t whole = (size_t)NAMES * CALLS * NAME;
	char name[256], chunk[65536];
	struct own_bus bus = { 0 };
	uint8_t *all, *msg;
	size_t len = 0, got = 0, n;
	unsigned int i;
	ssize_t r;
	struct dbusp_desc desc = { .type = DBUSP_METHOD_CALL,
				   .path = dbusp_str("/"),
				   .member = dbusp_str("ListNames"),
				   .destination = dbusp_str(DBUS) };

	own_bus_start(&bus, "<limit name='max_outgoing_bytes'>200000</limit>", 0);
	WITH(owner);
	WITH(p);
	for (i = 0; i < NAMES; i++) {
		memset(name, 'n', NAME);
		snprintf(name + NAME, sizeof(name) - NAME, ".n%u", i);
		peer_driver(&owner, "RequestName", "su", name, 0);
		want_driver_signal(&owner, "NameAcquired", name, NULL, NULL);
		want_u32(&owner, owner.serial, 1);
	}
	all = malloc(CALLS * 256);
	assert_non_null(all);
	for (i = 0; i < CALLS; i++) {
		desc.serial = 100 + i;
		n = build_empty(&msg, &desc);
		assert_true(n < 256);
		memcpy(all + len, msg, n);
		len += n;
		free(msg);
	}
	peer_write(&p, all, len);
	free(all);
	/* Who reads as fast as the bus answers may ask for all of it: first let it answer. */
	ping(&owner);
	/* The end may come in the middle of an answer. */
	while (got < whole && (r = read(p.fd, chunk, sizeof(chunk))) > 0)
		got += (size_t)r;
	assert_true(got < whole);
	ping(&owner);
	peer_close(&p);
	peer_close(&owner);
	assert_int_equal(own_bus_stop(&bus), 0);
}

/*
 * Descriptors wait for the rest of their message so long and no longer, however often a byte of it
 * comes. There are enough bytes for many times that.
 */
static void test_descriptors_that_wait(void **state)
{
	struct dbusp_desc desc = { .type = DBUSP_SIGNAL, .serial = 7, .n_fds = 1 };
	char *path = long_text(60000);
	struct own_bus bus = { 0 };
	size_t len, at = 20;
	struct pollfd end;
	uint8_t *msg;

	path[0] = '/';
	own_bus_start(&bus, "<limit name='pending_fd_timeout'>1000</limit>", 0);
	WITH(a);
	desc.path = dbusp_str(path);
	desc.interface = dbusp_str(IFACE);
	desc.member = dbusp_str("Slow");
	desc.destination = dbusp_str(a.name);
	len = build_empty(&msg, &desc);
	peer_write_fds(&a, msg, at, &a.fd, 1);
	end = (struct pollfd){ .fd = a.fd, .events = POLLIN };
	while (at < len && poll(&end, 1, 1) == 0 &&
	       send(a.fd, msg + at, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1)
		at++;
	assert_true(at < len);
	want_end(&a);
	free(msg);
	free(path);
	peer_close(&a);
	assert_int_equal(own_bus_stop(&bus), 0);
}

/* What comes in pieces may have more descriptors than the kernel passes on in one. */
static void test_descriptors_in_pieces(void **state)
{
	enum { PIECES = 4 };
	struct dbusp_desc desc = { .type = DBUSP_SIGNAL, .serial = 7 };
	struct own_bus bus = { 0 };
	int fds[PEER_FDS_MAX];
	unsigned int i;
	uint8_t *msg;
	size_t len;

	own_bus_start(&bus,
		      "<limit name='max_message_unix_fds'>4096</limit>"
		      "<limit name='max_outgoing_unix_fds'>4096</limit>",
		      0);
	WITH(a);
	WITH(b);
	for (i = 0; i < PEER_FDS_MAX; i++)
		fds[i] = a.fd;
	desc.n_fds = PIECES * PEER_FDS_MAX;
	desc.path = dbusp_str(PATH);
	desc.interface = dbusp_str(IFACE);
	desc.member = dbusp_str("Many");
	desc.destination = dbusp_str(b.name);
	len = build_empty(&msg, &desc);
	for (i = 0; i < PIECES - 1; i++)
		peer_write_fds(&a, msg + 16 * i, 16, fds, PEER_FDS_MAX);
	peer_write_fds(&a, msg + 16 * i, len - 16 * i, fds, PEER_FDS_MAX);
	free(msg);
	want_end(&a);
	want_nothing(&b);
	peer_close(&a);
	peer_close(&b);
	assert_int_equal(own_bus_stop(&bus), 0);
}

/* ---- calls, names, rules ---- */

static void test_calls(void **state)
{
	uint32_t serial;

	WITH(p);
	WITH(callee);
	peer_call(&p, callee.name, PATH, IFACE, "A", "");
	peer_call(&p, callee.name, PATH, IFACE, "B", "");
	peer_call(&p, callee.name, PATH, IFACE, "C", "");
	serial = peer_call(&p, callee.name, PATH, IFACE, "D", "");
	want_error(&p, serial, ERROR_NAME("LimitsExceeded"));
	peer_close(&callee);
	want_error(&p, serial - 3, ERROR_NAME("NoReply"));
	want_error(&p, serial - 2, ERROR_NAME("NoReply"));
	want_error(&p, serial - 1, ERROR_NAME("NoReply"));
	peer_close(&p);
}

/* A reply that comes too late finds nobody who waits. */
static void test_reply_timeout(void **state)
{
	struct own_bus bus = { 0 };
	uint32_t serial;
	struct got g;

	own_bus_start(&bus, "<limit name='reply_timeout'>1</limit>", 0);
	WITH(p);
	WITH(callee);
	serial = peer_call(&p, callee.name, PATH, IFACE, "Slow", "");
	want_error(&p, serial, ERROR_NAME("NoReply"));
	want_call(&callee, "Slow", &g);
	peer_return(&callee, &g, "");
	got_free(&g);
	want_error(&callee, callee.serial, ERROR_NAME("AccessDenied"));
	want_nothing(&p);
	peer_close(&p);
	peer_close(&callee);
	assert_int_equal(own_bus_stop(&bus), 0);
}

/* The unique name counts. */
static void test_names(void **state)
{
	static const char *const names[] = { "org.example.A", "org.example.B" };
	char text[256];
	unsigned int i;

	WITH(p);
	for (i = 0; i < 2; i++) {
		peer_driver(&p, "RequestName", "su", names[i], 0);
		want_driver_signal(&p, "NameAcquired", names[i], NULL, NULL);
		want_u32(&p, p.serial, 1);
	}
	snprintf(text, sizeof(text),
		 "Connection \"%s\" is not allowed to own more services (increase limits in "
		 "configuration file if required; max_names_per_connection=3)",
		 p.name);
	want_error_text(&p, peer_driver(&p, "RequestName", "su", "org.example.C", 0),
			ERROR_NAME("LimitsExceeded"), text);
	peer_close(&p);
}

static void test_rules(void **state)
{
	char text[256];

	WITH(p);
	want_done(&p, peer_driver(&p, "AddMatch", "s", "member='A'"));
	want_done(&p, peer_driver(&p, "AddMatch", "s", "member='A'"));
	snprintf(text, sizeof(text),
		 "Connection \"%s\" is not allowed to add more match rules (increase limits in "
		 "configuration file if required; max_match_rules_per_connection=2)",
		 p.name);
	want_error_text(&p, peer_driver(&p, "AddMatch", "s", "member='B'"),
			ERROR_NAME("LimitsExceeded"), text);
	want_done(&p, peer_driver(&p, "RemoveMatch", "s", "member='A'"));
	want_done(&p, peer_driver(&p, "AddMatch", "s", "member='B'"));
	peer_close(&p);
}

/* ---- begun messages ---- */

/* As many bytes of a message as are asked for; its length says that there is one more. */
static void begin_message(struct peer *p, size_t len)
{
	uint8_t *data = calloc(1, len);
	uint32_t body = (uint32_t)(len - DBUSP_FIXED_LEN - 16 + 1), fields = 16, serial = 1;

	assert_non_null(data);
	memcpy(data, "l\1\0\1", 4);
	memcpy(data + 4, &body, 4);
	memcpy(data + 8, &serial, 4);
	memcpy(data + 12, &fields, 4);
	peer_write(p, data, len);
	free(data);
}

/* 256 MiB are what a user may have waiting: eight times 30 MiB fit, nine times do not. */
static void test_begun_messages(void **state)
{
	enum { FIT = 8, SIZE = 30 << 20 };
	static struct own_bus bus;
	struct peer begun[FIT];
	struct peer more;
	unsigned int i;

	own_bus_start(&bus, "", 0);
	WITH(p);
	for (i = 0; i < FIT; i++) {
		peer_join(&begun[i]);
		begin_message(&begun[i], SIZE);
		ping(&p);
	}
	peer_join(&more);
	begin_message(&more, SIZE);
	want_end(&more);
	peer_close(&more);
	/* Once the others have gone there is room again. */
	for (i = 0; i < FIT; i++)
		peer_close(&begun[i]);
	for (i = 0; i < FIT; i++) {
		peer_join(&begun[i]);
		begin_message(&begun[i], SIZE);
	}
	ping(&p);
	for (i = 0; i < FIT; i++)
		peer_close(&begun[i]);
	peer_close(&p);
	assert_int_equal(own_bus_stop(&bus), 0);
}

/* ---- messages to services that are still to be started ---- */

/* Its program ends well, and nobody takes the name: what is sent there waits. */
static void make_service(char *folder)
{
	char path[128];
	FILE *f;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/quiet.service", folder);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs("[D-BUS Service]\nName=org.example.Quiet\nExec=/bin/true\n", f);
	assert_int_equal(fclose(f), 0);
}

static void remove_service(const char *folder)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/quiet.service", folder);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

/* How many of @n are refused; for what is held for the user as a whole. */
static unsigned int send_to_service(struct peer *p, const char *text, unsigned int n)
{
	unsigned int refused = 0, i;
	uint32_t serial;
	struct got g;

	for (i = 0; i < n; i++)
		peer_signal(p, "org.example.Quiet", PATH, IFACE, "Held", "s", text);
	serial = peer_driver(p, "GetId", "");
	for (;; refused++) {
		assert_true(peer_next(p, &g));
		if (g.h.reply_serial == serial)
			break;
		assert_string_equal(g.h.error_name.s, ERROR_NAME("LimitsExceeded"));
		assert_non_null(strstr(got_string(&g), "bytes of its user="));
		got_free(&g);
	}
	got_free(&g);
	return refused;
}

/* All connections of a user together; and what one leaves others have. */
static void test_held_messages(void **state)
{
	enum { SENDERS = 4, EACH = 4, SIZE = 31 << 20, MAX = 256 << 20 };
	const char *tmp = getenv("TMPDIR");
	char folder[96], config[192];
	unsigned int held = 0, refused, i;
	struct peer senders[SENDERS];
	char *text = long_text(SIZE);
	struct own_bus bus = { 0 };

	snprintf(folder, sizeof(folder), "%s/held-XXXXXX", tmp ? tmp : P_tmpdir);
	make_service(folder);
	snprintf(config, sizeof(config),
		 "<servicedir>%s</servicedir><limit name='service_start_timeout'>100000000</limit>",
		 folder);
	own_bus_start(&bus, config, 0);
	for (i = 0; i < SENDERS; i++) {
		peer_join(&senders[i]);
		refused = send_to_service(&senders[i], text, EACH);
		held += EACH - refused;
		assert_true(refused < EACH || i);
	}
	assert_true(held < MAX / SIZE);
	for (i = 0; i < SENDERS; i++)
		peer_close(&senders[i]);
	WITH(late);
	/* Their end is noticed with or before this. */
	ping(&late);
	assert_int_equal(send_to_service(&late, text, EACH), 0);
	peer_close(&late);
	free(text);
	assert_int_equal(own_bus_stop(&bus), 0);
	remove_service(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_slow_reader, start, stop),
		cmocka_unit_test_setup_teardown(test_slow_reader_of_broadcasts, start, stop),
		cmocka_unit_test_setup_teardown(test_asks_and_does_not_read, start, stop),
		cmocka_unit_test_setup_teardown(test_incomplete_connections, start, stop),
		cmocka_unit_test_setup_teardown(test_completed_connections, start, stop),
		cmocka_unit_test(test_out_of_descriptors),
		cmocka_unit_test(test_auth_timeout),
		cmocka_unit_test(test_hello_timeout),
		cmocka_unit_test(test_descriptors_that_wait),
		cmocka_unit_test(test_descriptors_in_pieces),
		cmocka_unit_test(test_asks_for_more_than_it_may_have),
		cmocka_unit_test(test_begun_messages),
		cmocka_unit_test_setup_teardown(test_calls, start, stop),
		cmocka_unit_test(test_reply_timeout),
		cmocka_unit_test_setup_teardown(test_names, start, stop),
		cmocka_unit_test_setup_teardown(test_rules, start, stop),
		cmocka_unit_test(test_held_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
