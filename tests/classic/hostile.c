// SPDX-License-Identifier: LGPL-2.1-or-later
/* What no library does: descriptors at odd places, messages to oneself, serials that wrap. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "peer.h"

#define PATH  "/org/example/Hostile"
#define IFACE "org.example.Hostile1"

/* A signal for @to that says it has a descriptor */
static uint8_t *signal_with_fd(const char *to, size_t *ret_len)
{
	const struct dbusp_desc desc = { .type = DBUSP_SIGNAL,
					 .serial = 77,
					 .n_fds = 1,
					 .path = DBUSP_STR(PATH),
					 .interface = DBUSP_STR(IFACE),
					 .member = DBUSP_STR("Passed"),
					 .destination = dbusp_str(to),
					 .signature = DBUSP_STR("s") };
	struct dbusp_build b;
	uint8_t *msg;

	dbusp_build_begin(&b, NULL, &desc);
	dbusp_put_string(&b, "a descriptor");
	assert_int_equal(dbusp_build_end(&b, &msg, ret_len), 0);
	return msg;
}

/* With the first byte, the last, or any between them: it is there when the message is. */
static void test_descriptors_at_any_byte(void **state)
{
	uint8_t *msg;
	size_t len, at;
	char byte = 0;
	int fds[2];
	struct got g;

	(void)state;
	WITH(p);
	WITH(receiver);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	msg = signal_with_fd(receiver.name, &len);
	for (at = 0; at < len; at++) {
		if (at)
			peer_write(&p, msg, at);
		peer_write_fds(&p, msg + at, len - at, &fds[1], 1);
		want_signal(&receiver, p.name, "Passed", &g);
		assert_int_equal(g.n_fds, 1);
		assert_int_equal(write(g.fds[0], "x", 1), 1);
		assert_int_equal(read(fds[0], &byte, 1), 1);
		got_free(&g);
	}
	free(msg);
	close(fds[0]);
	close(fds[1]);
	peer_close(&p);
	peer_close(&receiver);
}

/* Behind the last byte it is too late. */
static void test_descriptors_behind_their_message(void **state)
{
	uint8_t *msg;
	size_t len;

	(void)state;
	WITH(p);
	WITH(receiver);
	msg = signal_with_fd(receiver.name, &len);
	peer_write(&p, msg, len);
	want_end(&p);
	want_nothing(&receiver);
	free(msg);
	peer_close(&p);
	peer_close(&receiver);
}

/* They are nobody's, and nobody is hurt. */
static void test_descriptors_before_hello(void **state)
{
	static const int fds[2] = { STDERR_FILENO, STDERR_FILENO };
	struct peer p;

	(void)state;
	peer_open(&p);
	peer_write_fds(&p, "", 1, fds, 2);
	peer_write_fds(&p, "AUTH ", 5, fds, 1);
	peer_write(&p, "NONSENSE\r\n", 10);
	peer_close(&p);
	peer_join(&p);
	want_nothing(&p);
	peer_close(&p);
}

static void test_signals_to_oneself(void **state)
{
	struct got g;

	(void)state;
	WITH(p);
	want_done(&p, peer_driver(&p, "AddMatch", "s", "interface='" IFACE "'"));
	peer_signal(&p, p.name, PATH, IFACE, "Mine", "s", "one");
	want_signal(&p, p.name, "Mine", &g);
	got_free(&g);
	peer_signal(&p, NULL, PATH, IFACE, "Ours", "s", "two");
	want_signal(&p, p.name, "Ours", &g);
	got_free(&g);
	want_nothing(&p);
	peer_close(&p);
}

/* After the largest comes 1: a serial may be used again once its call has ended. */
static void test_serials_wrap(void **state)
{
	uint32_t serial;
	struct got g;
	int i;

	(void)state;
	WITH(p);
	WITH(callee);
	p.serial = UINT32_MAX - 2;
	for (i = 0; i < 6; i++) {
		serial = peer_call(&p, callee.name, PATH, IFACE, "Say", "s", "x");
		want_call(&callee, "Say", &g);
		assert_int_equal(g.h.frame.serial, serial);
		peer_return(&callee, &g, "s", "y");
		got_free(&g);
		want_string(&p, serial, "y");
		if (p.serial == UINT32_MAX)
			p.serial = 0;
	}
	want_nothing(&p);
	peer_close(&callee);
	peer_close(&p);
}

/* What a process calls itself need not be text: who is refused a message to it is told so. */
static void test_name_that_is_no_text(void **state)
{
	struct dbusp_desc desc = { .type = DBUSP_METHOD_RETURN, .reply_serial = 4711 };
	uint32_t serial;
	char before[16];
	struct got g;

	(void)state;
	WITH(p);
	WITH(receiver);
	/* The reference lets replies pass that nobody waits for. */
	if (!bus_is_reference()) {
		assert_int_equal(prctl(PR_GET_NAME, before), 0);
		assert_int_equal(prctl(PR_SET_NAME, "\xff\xfe"), 0);
		desc.destination = dbusp_str(receiver.name);
		serial = peer_send(&p, desc);
		assert_true(peer_next(&p, &g));
		assert_int_equal(g.h.frame.type, DBUSP_ERROR);
		assert_int_equal(g.h.reply_serial, serial);
		assert_string_equal(g.h.error_name.s, ERROR_NAME("AccessDenied"));
		assert_non_null(strstr(got_string(&g), "comm=\"  \""));
		got_free(&g);
		assert_int_equal(prctl(PR_SET_NAME, before), 0);
	}
	want_nothing(&p);
	want_nothing(&receiver);
	peer_close(&p);
	peer_close(&receiver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_descriptors_at_any_byte),
		cmocka_unit_test(test_descriptors_behind_their_message),
		cmocka_unit_test(test_descriptors_before_hello),
		cmocka_unit_test(test_signals_to_oneself),
		cmocka_unit_test(test_serials_wrap),
		cmocka_unit_test(test_name_that_is_no_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
