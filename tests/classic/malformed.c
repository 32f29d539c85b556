// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Messages that break the format ("Message Protocol" of the specification): the bus hangs up on
 * their sender, delivers nothing, and nobody else notices. What is odd, but allowed, passes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dbus-raw.h"
#include "peer.h"

static struct peer receiver;

/* A call of the receiver with all that it needs, without a body, still open. */
static void start(struct raw *m, uint8_t type)
{
	raw_start(m, false, type);
	raw_required(m);
	raw_text_field(m, DBUSP_FIELD_DESTINATION, "s", receiver.name);
}

static void call(struct raw *m)
{
	start(m, DBUSP_METHOD_CALL);
}

static void refused(struct raw *m)
{
	WITH(p);

	raw_end(m);
	peer_write(&p, m->buf, m->len);
	want_end(&p);
	peer_close(&p);
	want_nothing(&receiver);
}

/* Delivered; the sender's next message, too. */
static void passes(struct raw *m, struct got *g)
{
	WITH(p);

	raw_end(m);
	peer_write(&p, m->buf, m->len);
	want_nothing(&p);
	assert_true(peer_next(&receiver, g));
	assert_string_equal(g->h.sender.s, p.name);
	peer_close(&p);
}

static int setup(void **state)
{
	(void)state;
	peer_join(&receiver);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	peer_close(&receiver);
	return 0;
}

/* ---- the fixed part ---- */

static void patched(size_t offset, uint8_t value)
{
	struct raw m;

	call(&m);
	raw_end(&m);
	m.buf[offset] = value;
	refused(&m);
}

static void test_byte_order(void **state)
{
	(void)state;
	patched(0, 'L');
	patched(0, 0);
	patched(0, 'b');
}

static void test_type_zero(void **state)
{
	(void)state;
	patched(1, 0);
}

static void test_version(void **state)
{
	(void)state;
	patched(3, 0);
	patched(3, 2);
	patched(3, 255);
}

static void test_serial_zero(void **state)
{
	struct raw m;

	(void)state;
	call(&m);
	dbusp_set32(m.buf + 8, 0, false);
	refused(&m);
}

static void lengths(uint32_t body, uint32_t fields)
{
	uint8_t fixed[DBUSP_FIXED_LEN] = { 'l', DBUSP_METHOD_CALL, 0, 1 };
	WITH(p);

	dbusp_set32(fixed + 4, body, false);
	dbusp_set32(fixed + 8, 77, false);
	dbusp_set32(fixed + 12, fields, false);
	peer_write(&p, fixed, sizeof(fixed));
	want_end(&p);
	peer_close(&p);
}

/* The lengths are enough: nobody waits for the bytes. */
static void test_oversize_is_refused_at_once(void **state)
{
	(void)state;
	/* The reference looks at the size of the message only. */
	if (!bus_is_reference())
		lengths(0, DBUSP_FIELDS_MAX + 1);
	lengths(0, 0xffffffff);
	lengths(DBUSP_MESSAGE_MAX, 100);
	lengths(0xffffffff, 100);
	lengths(0xfffffff0, 0x10);
}

/* ---- header fields ---- */

static void test_field_zero(void **state)
{
	struct raw m;

	(void)state;
	call(&m);
	raw_text_field(&m, 0, "s", "x");
	refused(&m);
}

static void test_duplicate_field(void **state)
{
	static const uint8_t fields[] = { DBUSP_FIELD_DESTINATION, DBUSP_FIELD_MEMBER,
					  DBUSP_FIELD_PATH };
	static const char *const types[] = { "s", "s", "o" };
	static const char *const values[] = { "org.example.Other", "Other", "/other" };
	struct raw m;
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		call(&m);
		raw_text_field(&m, fields[i], types[i], values[i]);
		refused(&m);
	}
}

static void test_field_of_wrong_type(void **state)
{
	struct raw m;

	(void)state;
	call(&m);
	raw_text_field(&m, DBUSP_FIELD_INTERFACE, "o", "/a");
	refused(&m);
	call(&m);
	raw_text_field(&m, DBUSP_FIELD_SIGNATURE, "s", "u");
	refused(&m);
	call(&m);
	raw_text_field(&m, DBUSP_FIELD_UNIX_FDS, "s", "1");
	refused(&m);
	start(&m, DBUSP_SIGNAL);
	raw_text_field(&m, DBUSP_FIELD_REPLY_SERIAL, "s", "1");
	refused(&m);
}

static void missing(uint8_t type, uint8_t without)
{
	struct raw m;

	raw_start(&m, false, type);
	if (type == DBUSP_METHOD_CALL || type == DBUSP_SIGNAL) {
		if (without != DBUSP_FIELD_PATH)
			raw_text_field(&m, DBUSP_FIELD_PATH, "o", "/a");
		if (without != DBUSP_FIELD_MEMBER)
			raw_text_field(&m, DBUSP_FIELD_MEMBER, "s", "Frob");
	}
	if (type == DBUSP_SIGNAL && without != DBUSP_FIELD_INTERFACE)
		raw_text_field(&m, DBUSP_FIELD_INTERFACE, "s", "a.b");
	if (type == DBUSP_ERROR && without != DBUSP_FIELD_ERROR_NAME)
		raw_text_field(&m, DBUSP_FIELD_ERROR_NAME, "s", "a.b");
	if ((type == DBUSP_ERROR || type == DBUSP_METHOD_RETURN) &&
	    without != DBUSP_FIELD_REPLY_SERIAL)
		raw_u32_field(&m, DBUSP_FIELD_REPLY_SERIAL, 5);
	raw_text_field(&m, DBUSP_FIELD_DESTINATION, "s", receiver.name);
	refused(&m);
}

static void test_missing_field(void **state)
{
	(void)state;
	missing(DBUSP_METHOD_CALL, DBUSP_FIELD_PATH);
	missing(DBUSP_METHOD_CALL, DBUSP_FIELD_MEMBER);
	missing(DBUSP_SIGNAL, DBUSP_FIELD_PATH);
	missing(DBUSP_SIGNAL, DBUSP_FIELD_MEMBER);
	missing(DBUSP_SIGNAL, DBUSP_FIELD_INTERFACE);
	missing(DBUSP_ERROR, DBUSP_FIELD_ERROR_NAME);
	missing(DBUSP_ERROR, DBUSP_FIELD_REPLY_SERIAL);
	missing(DBUSP_METHOD_RETURN, DBUSP_FIELD_REPLY_SERIAL);
}

static void test_reply_serial_zero(void **state)
{
	struct raw m;

	(void)state;
	raw_start(&m, false, DBUSP_METHOD_RETURN);
	raw_u32_field(&m, DBUSP_FIELD_REPLY_SERIAL, 0);
	raw_text_field(&m, DBUSP_FIELD_DESTINATION, "s", receiver.name);
	refused(&m);
}

/* A call with one field of our choice in it. */
static void bad_field(uint8_t code, const char *sig, const char *value)
{
	struct raw m;

	raw_start(&m, false, DBUSP_METHOD_CALL);
	if (code != DBUSP_FIELD_PATH)
		raw_text_field(&m, DBUSP_FIELD_PATH, "o", "/a");
	if (code != DBUSP_FIELD_MEMBER)
		raw_text_field(&m, DBUSP_FIELD_MEMBER, "s", "Frob");
	if (code != DBUSP_FIELD_DESTINATION)
		raw_text_field(&m, DBUSP_FIELD_DESTINATION, "s", receiver.name);
	raw_text_field(&m, code, sig, value);
	refused(&m);
}

static void test_bad_names(void **state)
{
	static const char *const interfaces[] = { "",	 "a",	  ".a.b", "a..b", "a.b.",
						  "a.1b", "a-b.c", "a.b c", "\xc3\xa4.b" };
	static const char *const members[] = { "", "1a", "a.b", "a-b", "a b" };
	static const char *const paths[] = { "", "a", "/a/", "//", "/a//b", "/a-b", "/a.b" };
	static const char *const names[] = { "", "a", ".a.b", "a..b", "1a.b", "a.b!" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(interfaces) / sizeof(*interfaces); i++)
		bad_field(DBUSP_FIELD_INTERFACE, "s", interfaces[i]);
	for (i = 0; i < sizeof(members) / sizeof(*members); i++)
		bad_field(DBUSP_FIELD_MEMBER, "s", members[i]);
	for (i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		bad_field(DBUSP_FIELD_PATH, "o", paths[i]);
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		bad_field(DBUSP_FIELD_DESTINATION, "s", names[i]);
}

static void test_overlong_names(void **state)
{
	char name[300];

	(void)state;
	memset(name, 'a', 256);
	name[256] = 0;
	bad_field(DBUSP_FIELD_MEMBER, "s", name);
	name[1] = '.';
	bad_field(DBUSP_FIELD_INTERFACE, "s", name);
	bad_field(DBUSP_FIELD_DESTINATION, "s", name);
}

static void test_local_path_and_interface(void **state)
{
	(void)state;
	bad_field(DBUSP_FIELD_PATH, "o", "/org/freedesktop/DBus/Local");
	bad_field(DBUSP_FIELD_INTERFACE, "s", "org.freedesktop.DBus.Local");
}

static void test_padding_in_the_header(void **state)
{
	struct raw m;
	size_t i;

	(void)state;
	call(&m);
	raw_end(&m);
	/* Zero bytes between the fields: find some, and make one not zero. */
	for (i = DBUSP_FIXED_LEN; i + 8 <= m.len; i++) {
		if (i % 8 == 7 && m.buf[i] == 0 && m.buf[i - 1] == 0 && m.buf[i - 2] == 0)
			break;
	}
	assert_true(i + 8 <= m.len);
	m.buf[i] = 1;
	refused(&m);
}

/* ---- bodies ---- */

static void body(struct raw *m, const char *sig)
{
	call(m);
	raw_text_field(m, DBUSP_FIELD_SIGNATURE, "g", sig);
	raw_fields_end(m);
}

static void test_body_without_signature(void **state)
{
	struct raw m;

	(void)state;
	call(&m);
	raw_fields_end(&m);
	raw_u32(&m, 1);
	refused(&m);
}

static void test_body_too_short_or_long(void **state)
{
	struct raw m;

	(void)state;
	body(&m, "u");
	refused(&m);
	body(&m, "uu");
	raw_u32(&m, 1);
	refused(&m);
	body(&m, "u");
	raw_u32(&m, 1);
	raw_u32(&m, 1);
	refused(&m);
}

static void test_bad_signature(void **state)
{
	static const char *const sigs[] = { "z", "a", "(", "()", "a{vs}", "{ss}", "a{s}", "(s" };
	struct raw m;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(sigs) / sizeof(*sigs); i++) {
		body(&m, sigs[i]);
		refused(&m);
	}
}

static void test_bad_values(void **state)
{
	struct raw m;

	(void)state;
	body(&m, "b");
	raw_u32(&m, 2);
	refused(&m);
	body(&m, "s");
	raw_str(&m, "\xff");
	refused(&m);
	body(&m, "s");
	raw_u32(&m, 3);
	raw_bytes(&m, "a\0b", 4);
	refused(&m);
	body(&m, "s");
	raw_u32(&m, 1);
	raw_bytes(&m, "ab", 2);
	refused(&m);
	body(&m, "o");
	raw_str(&m, "a");
	refused(&m);
	body(&m, "g");
	raw_sig(&m, "z");
	refused(&m);
	body(&m, "v");
	raw_sig(&m, "uu");
	raw_u32(&m, 1);
	raw_u32(&m, 1);
	refused(&m);
	body(&m, "yu");
	raw_u8(&m, 1);
	raw_bytes(&m, "\0\1\0", 3);
	raw_u32(&m, 1);
	refused(&m);
}

static void test_bad_arrays(void **state)
{
	struct raw m;

	(void)state;
	body(&m, "au");
	raw_u32(&m, 64 << 20);
	refused(&m);
	body(&m, "au");
	raw_u32(&m, 3);
	raw_bytes(&m, "abc", 3);
	refused(&m);
	body(&m, "ay");
	raw_u32(&m, (64 << 20) + 1);
	refused(&m);
}

/* 64 containers: 32 arrays and 32 structs is the most a signature may hold. */
static void test_nesting(void **state)
{
	char sig[80];
	struct raw m;

	(void)state;
	memset(sig, 'a', 33);
	strcpy(sig + 33, "y");
	body(&m, sig);
	raw_u32(&m, 0);
	refused(&m);
	memset(sig, '(', 33);
	sig[33] = 'y';
	memset(sig + 34, ')', 33);
	sig[67] = 0;
	body(&m, sig);
	raw_u8(&m, 0);
	refused(&m);
}

static void test_variants_nested_too_deep(void **state)
{
	struct raw m;
	int i;

	(void)state;
	body(&m, "v");
	for (i = 0; i < 66; i++)
		raw_sig(&m, "v");
	raw_sig(&m, "y");
	raw_u8(&m, 7);
	refused(&m);
}

/* ---- descriptors ---- */

static void test_descriptors_promised_but_not_sent(void **state)
{
	struct raw m;

	(void)state;
	call(&m);
	raw_u32_field(&m, DBUSP_FIELD_UNIX_FDS, 1);
	refused(&m);
}

static void with_fds(unsigned int n, bool negotiated)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), fds[2] = { fd, fd };
	struct peer p;
	struct raw m;

	peer_open(&p);
	peer_auth(&p, negotiated);
	peer_hello(&p);
	call(&m);
	if (!negotiated)
		raw_u32_field(&m, DBUSP_FIELD_UNIX_FDS, n);
	raw_end(&m);
	peer_write_fds(&p, m.buf, m.len, fds, n);
	want_end(&p);
	peer_close(&p);
	close(fd);
	want_nothing(&receiver);
}

static void test_descriptors_not_agreed_on(void **state)
{
	(void)state;
	with_fds(1, false);
	with_fds(2, false);
}

static void test_descriptor_index_out_of_range(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct raw m;
	WITH(p);

	(void)state;
	call(&m);
	raw_u32_field(&m, DBUSP_FIELD_UNIX_FDS, 1);
	raw_text_field(&m, DBUSP_FIELD_SIGNATURE, "g", "h");
	raw_fields_end(&m);
	raw_u32(&m, 1);
	raw_end(&m);
	peer_write_fds(&p, m.buf, m.len, &fd, 1);
	close(fd);
	/* The specification leaves open who checks the index; whoever passes it on passes all. */
	if (!bus_is_reference())
		want_end(&p);
	peer_close(&p);
	if (!bus_is_reference())
		want_nothing(&receiver);
	else
		peer_close(&receiver), peer_join(&receiver);
}

/* ---- what is allowed ---- */

/* "Unknown types must be ignored": the sender may be told so, but stays. */
static void test_unknown_type_costs_nothing(void **state)
{
	struct raw m;
	struct got g;
	WITH(p);

	(void)state;
	start(&m, 9);
	raw_end(&m);
	peer_write(&p, m.buf, m.len);
	p.serial = 1000;
	peer_driver(&p, "GetId", "");
	assert_true(peer_next(&p, &g));
	if (g.h.frame.type == DBUSP_ERROR) {
		assert_string_equal(g.h.error_name.s, ERROR_NAME("AccessDenied"));
		got_free(&g);
		assert_true(peer_next(&p, &g));
	}
	assert_int_equal(g.h.reply_serial, p.serial);
	got_free(&g);
	peer_close(&p);
	want_nothing(&receiver);
}

static void test_unknown_flags_are_kept(void **state)
{
	struct raw m;
	struct got g;

	(void)state;
	call(&m);
	m.buf[2] = 0xf1;
	passes(&m, &g);
	assert_int_equal(g.h.frame.flags, 0xf1);
	got_free(&g);
}

static void test_unknown_fields_are_removed(void **state)
{
	struct raw m;
	struct got g;

	(void)state;
	call(&m);
	raw_text_field(&m, 100, "s", "secret");
	passes(&m, &g);
	assert_false(g.h.unknown);
	got_free(&g);
}

static void test_sender_is_not_believed(void **state)
{
	struct raw m;
	struct got g;

	(void)state;
	call(&m);
	raw_text_field(&m, DBUSP_FIELD_SENDER, "s", "org.example.Forged");
	passes(&m, &g);
	got_free(&g);
	call(&m);
	raw_text_field(&m, DBUSP_FIELD_SENDER, "s", ":1.12345678901234567890");
	passes(&m, &g);
	got_free(&g);
}

static void test_both_byte_orders_are_kept(void **state)
{
	struct raw m;
	struct got g;
	int big;

	(void)state;
	for (big = 0; big < 2; big++) {
		raw_start(&m, big, DBUSP_METHOD_CALL);
		raw_required(&m);
		raw_text_field(&m, DBUSP_FIELD_DESTINATION, "s", receiver.name);
		raw_text_field(&m, DBUSP_FIELD_SIGNATURE, "g", "us");
		raw_fields_end(&m);
		raw_u32(&m, 0x01020304);
		raw_str(&m, "text");
		passes(&m, &g);
		assert_int_equal(g.h.frame.big, big);
		assert_int_equal(got_u32(&g), 0x01020304);
		assert_string_equal(got_string(&g), "text");
		got_free(&g);
	}
}

static void test_empty_signature_field(void **state)
{
	struct raw m;
	struct got g;

	(void)state;
	call(&m);
	raw_text_field(&m, DBUSP_FIELD_SIGNATURE, "g", "");
	passes(&m, &g);
	got_free(&g);
}

/* Whatever the pieces, the same messages. */
static void test_any_pieces(void **state)
{
	uint8_t two[8192];
	struct raw m;
	struct got g;
	size_t len, at, piece;
	WITH(p);

	(void)state;
	call(&m);
	raw_end(&m);
	memcpy(two, m.buf, m.len);
	memcpy(two + m.len, m.buf, m.len);
	len = 2 * m.len;
	for (piece = 1; piece <= len; piece += piece < 20 ? 1 : 37) {
		/* The same serial again is refused while a call is open. */
		dbusp_set32(two + 8, ++p.serial, false);
		dbusp_set32(two + m.len + 8, ++p.serial, false);
		for (at = 0; at < len; at += piece)
			peer_write(&p, two + at, at + piece > len ? len - at : piece);
		for (at = 0; at < 2; at++) {
			want_call(&receiver, "Frob", &g);
			peer_return(&receiver, &g, "");
			got_free(&g);
		}
		want_done(&p, p.serial - 1);
		want_done(&p, p.serial);
	}
	peer_close(&p);
}

/* Half a message is nothing. */
static void test_close_in_mid_message(void **state)
{
	struct raw m;
	size_t at;

	(void)state;
	for (at = 1; at < 60; at += 7) {
		WITH(p);

		call(&m);
		raw_end(&m);
		peer_write(&p, m.buf, m.len - at);
		peer_close(&p);
	}
	want_nothing(&receiver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_byte_order),
		cmocka_unit_test(test_type_zero),
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_serial_zero),
		cmocka_unit_test(test_oversize_is_refused_at_once),
		cmocka_unit_test(test_field_zero),
		cmocka_unit_test(test_duplicate_field),
		cmocka_unit_test(test_field_of_wrong_type),
		cmocka_unit_test(test_missing_field),
		cmocka_unit_test(test_reply_serial_zero),
		cmocka_unit_test(test_bad_names),
		cmocka_unit_test(test_overlong_names),
		cmocka_unit_test(test_local_path_and_interface),
		cmocka_unit_test(test_padding_in_the_header),
		cmocka_unit_test(test_body_without_signature),
		cmocka_unit_test(test_body_too_short_or_long),
		cmocka_unit_test(test_bad_signature),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_bad_arrays),
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_variants_nested_too_deep),
		cmocka_unit_test(test_descriptors_promised_but_not_sent),
		cmocka_unit_test(test_descriptors_not_agreed_on),
		cmocka_unit_test(test_descriptor_index_out_of_range),
		cmocka_unit_test(test_unknown_type_costs_nothing),
		cmocka_unit_test(test_unknown_flags_are_kept),
		cmocka_unit_test(test_unknown_fields_are_removed),
		cmocka_unit_test(test_sender_is_not_believed),
		cmocka_unit_test(test_both_byte_orders_are_kept),
		cmocka_unit_test(test_empty_signature_field),
		cmocka_unit_test(test_any_pieces),
		cmocka_unit_test(test_close_in_mid_message),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
