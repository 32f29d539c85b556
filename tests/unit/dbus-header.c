// SPDX-License-Identifier: LGPL-2.1-or-later
/* D-Bus specification, "Message Format" and "Header Fields"; framing, parsing and rewriting. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dbus-raw.h"
#include "dbus/body.h"

static enum dbusp_why why;

static int parse(const struct raw *m, struct dbusp_header *h)
{
	int r;

	why = DBUSP_WHY_NONE;
	r = dbusp_header_parse(h, m->buf, m->len, DBUSP_MESSAGE_MAX, &why);
	assert_true(r == 0 || why != DBUSP_WHY_NONE);
	return r;
}

static enum dbusp_why refused(struct raw *m)
{
	struct dbusp_header h;

	raw_end(m);
	assert_true(parse(m, &h) < 0);
	return why;
}

static void accepted(struct raw *m, struct dbusp_header *h)
{
	raw_end(m);
	assert_int_equal(parse(m, h), 0);
}

static void assert_text(struct dbusp_str s, const char *expect)
{
	assert_non_null(s.s);
	assert_int_equal(s.len, strlen(expect));
	assert_string_equal(s.s, expect);
}

static void full_message(struct raw *m, bool big)
{
	raw_start(m, big, DBUSP_METHOD_CALL);
	m->buf[2] = DBUSP_NO_AUTO_START;
	raw_text_field(m, DBUSP_FIELD_PATH, "o", "/a/b");
	raw_text_field(m, DBUSP_FIELD_INTERFACE, "s", "org.example.Face");
	raw_text_field(m, DBUSP_FIELD_MEMBER, "s", "Do");
	raw_text_field(m, DBUSP_FIELD_DESTINATION, "s", "org.example.Dest");
	raw_text_field(m, DBUSP_FIELD_SENDER, "s", ":1.7");
	raw_text_field(m, DBUSP_FIELD_SIGNATURE, "g", "u");
	raw_u32_field(m, DBUSP_FIELD_UNIX_FDS, 3);
	raw_text_field(m, DBUSP_FIELD_ERROR_NAME, "s", "org.example.Err");
	raw_u32_field(m, DBUSP_FIELD_REPLY_SERIAL, 9);
	raw_fields_end(m);
	raw_u32(m, 4711);
}

static void test_every_field_is_found_in_both_byte_orders(void **state)
{
	struct dbusp_header h;
	struct raw m;
	int big;

	for (big = 0; big < 2; big++) {
		full_message(&m, big);
		accepted(&m, &h);
		assert_int_equal(h.frame.big, big);
		assert_int_equal(h.frame.type, DBUSP_METHOD_CALL);
		assert_int_equal(h.frame.flags, DBUSP_NO_AUTO_START);
		assert_int_equal(h.frame.serial, 77);
		assert_int_equal(h.frame.body_len, 4);
		assert_int_equal(h.frame.header_len, m.body);
		assert_int_equal(h.frame.total_len, m.len);
		assert_int_equal(h.present, 0x3fe);
		assert_false(h.unknown);
		assert_text(h.path, "/a/b");
		assert_text(h.interface, "org.example.Face");
		assert_text(h.member, "Do");
		assert_text(h.error_name, "org.example.Err");
		assert_text(h.destination, "org.example.Dest");
		assert_text(h.sender, ":1.7");
		assert_text(h.signature, "u");
		assert_int_equal(h.reply_serial, 9);
		assert_int_equal(h.n_fds, 3);
	}
}

static void test_absent_fields(void **state)
{
	struct dbusp_header h;
	struct raw m;

	raw_start(&m, false, DBUSP_METHOD_RETURN);
	raw_required(&m);
	accepted(&m, &h);
	assert_null(h.path.s);
	assert_null(h.sender.s);
	assert_text(h.signature, "");
	assert_int_equal(h.n_fds, 0);
	assert_int_equal(h.present, 1 << DBUSP_FIELD_REPLY_SERIAL);
}

static void test_framing_byte_by_byte(void **state)
{
	struct dbusp_header h;
	struct dbusp_frame f;
	struct raw m;
	size_t len;

	full_message(&m, true);
	raw_end(&m);
	for (len = 0; len < m.len; len++) {
		int r = dbusp_frame_parse(&f, m.buf, len, DBUSP_MESSAGE_MAX, NULL);

		assert_int_equal(r, len < 16 ? -EAGAIN : 0);
		if (r == 0)
			assert_int_equal(f.total_len, m.len);
		r = dbusp_header_parse(&h, m.buf, len, DBUSP_MESSAGE_MAX, NULL);
		assert_int_equal(r, len < m.body ? -EAGAIN : 0);
	}
}

static void test_fixed_part_rules(void **state)
{
	static const struct {
		uint8_t at, value;
		enum dbusp_why why;
	} rows[] = {
		{ 0, 'L', DBUSP_WHY_ENDIAN }, { 0, 0, DBUSP_WHY_ENDIAN },
		{ 0, 'b', DBUSP_WHY_ENDIAN }, { 1, 0, DBUSP_WHY_TYPE },
		{ 3, 0, DBUSP_WHY_VERSION },  { 3, 2, DBUSP_WHY_VERSION },
		{ 8, 0, DBUSP_WHY_SERIAL },
	};
	struct raw m;
	size_t i, len;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		raw_start(&m, false, DBUSP_METHOD_CALL);
		raw_required(&m);
		m.buf[rows[i].at] = rows[i].value;
		assert_int_equal(refused(&m), rows[i].why);
		/* known to be wrong as soon as the byte is there */
		len = rows[i].at < 4 ? rows[i].at + 1 : 16;
		for (; len <= 16; len++)
			assert_int_equal(dbusp_frame_parse(&(struct dbusp_frame){ 0 }, m.buf, len,
							   DBUSP_MESSAGE_MAX, NULL),
					 -EBADMSG);
	}
}

static int frame_of(uint32_t body, uint32_t fields, size_t max, struct dbusp_frame *ret)
{
	struct raw m;

	raw_start(&m, false, DBUSP_METHOD_CALL);
	dbusp_set32(m.buf + 4, body, false);
	dbusp_set32(m.buf + 12, fields, false);
	why = DBUSP_WHY_NONE;
	return dbusp_frame_parse(ret, m.buf, 16, max, &why);
}

static void test_sizes_are_refused_from_the_first_16_bytes(void **state)
{
	const uint32_t max = DBUSP_MESSAGE_MAX;
	struct dbusp_frame f;

	assert_int_equal(frame_of(max - 16, 0, max, &f), 0);
	assert_int_equal(f.total_len, max);
	assert_int_equal(frame_of(max - 15, 0, max, &f), -EMSGSIZE);
	assert_int_equal(why, DBUSP_WHY_TOO_LARGE);
	assert_int_equal(frame_of(max - 24, 1, max, &f), 0);
	assert_int_equal(f.header_len, 24);
	assert_int_equal(frame_of(max - 23, 1, max, &f), -EMSGSIZE);
	assert_int_equal(frame_of(0, 64 << 20, max, &f), 0);
	assert_int_equal(frame_of(0, (64 << 20) + 1, max, &f), -EMSGSIZE);
	assert_int_equal(why, DBUSP_WHY_FIELDS_TOO_BIG);
	assert_int_equal(frame_of(UINT32_MAX, UINT32_MAX, SIZE_MAX, &f), -EMSGSIZE);
	assert_int_equal(frame_of(UINT32_MAX, 0, SIZE_MAX, &f), -EMSGSIZE);
	assert_int_equal(why, DBUSP_WHY_TOO_LARGE);
}

static void test_configured_maximum(void **state)
{
	struct dbusp_frame f;

	assert_int_equal(frame_of(1000 - 16, 0, 1000, &f), 0);
	assert_int_equal(frame_of(1000 - 15, 0, 1000, &f), -EMSGSIZE);
	assert_int_equal(why, DBUSP_WHY_OVER_MAX);
}

static void test_field_types_are_exact(void **state)
{
	static const char types[] = "?ossusssgu", wrong[] = "?sooosoosb";
	struct dbusp_header h;
	struct raw m;
	int code;

	for (code = 1; code < 10; code++) {
		char sig[3] = { wrong[code] };

		raw_start(&m, false, 200);
		raw_text_field(&m, code, sig, "/a");
		assert_int_equal(refused(&m), DBUSP_WHY_FIELD_TYPE);

		/* two complete types in the variant */
		sig[0] = types[code];
		sig[1] = 'u';
		raw_start(&m, false, 200);
		raw_text_field(&m, code, sig, "/a");
		assert_int_equal(refused(&m), DBUSP_WHY_FIELD_TYPE);
	}
	raw_start(&m, false, 200);
	accepted(&m, &h);
}

static void test_field_zero_is_refused(void **state)
{
	struct raw m;

	raw_start(&m, false, DBUSP_METHOD_CALL);
	raw_required(&m);
	raw_u32_field(&m, 0, 1);
	assert_int_equal(refused(&m), DBUSP_WHY_FIELD_ZERO);
}

static void test_known_fields_appear_once(void **state)
{
	struct raw m;

	raw_start(&m, false, DBUSP_METHOD_CALL);
	raw_required(&m);
	raw_text_field(&m, DBUSP_FIELD_PATH, "o", "/a");
	assert_int_equal(refused(&m), DBUSP_WHY_FIELD_TWICE);

	raw_start(&m, false, DBUSP_METHOD_RETURN);
	raw_required(&m);
	raw_u32_field(&m, DBUSP_FIELD_REPLY_SERIAL, 5);
	assert_int_equal(refused(&m), DBUSP_WHY_FIELD_TWICE);
}

static void test_unknown_fields_may_come_but_well_formed(void **state)
{
	struct dbusp_header h;
	struct raw m;

	raw_start(&m, false, DBUSP_METHOD_CALL);
	raw_required(&m);
	raw_u32_field(&m, 10, 1);
	raw_u32_field(&m, 10, 1);
	raw_text_field(&m, 255, "s", "x");
	raw_field(&m, 77, "v");
	raw_sig(&m, "as");
	raw_u32(&m, 6);
	raw_str(&m, "a");
	accepted(&m, &h);
	assert_true(h.unknown);

	raw_start(&m, false, DBUSP_METHOD_CALL);
	raw_required(&m);
	raw_text_field(&m, 10, "s", "\xff");
	assert_int_equal(refused(&m), DBUSP_WHY_STRING);

	raw_start(&m, false, DBUSP_METHOD_CALL);
	raw_required(&m);
	raw_u32(&m, 0);
	m.len = m.len / 8 * 8;
	raw_field(&m, 10, "uu");
	raw_u32(&m, 1);
	raw_u32(&m, 1);
	assert_int_equal(refused(&m), DBUSP_WHY_VARIANT);

	raw_start(&m, false, DBUSP_METHOD_CALL);
	raw_required(&m);
	raw_field(&m, 10, "z");
	assert_int_equal(refused(&m), DBUSP_WHY_SIGNATURE);
}

/* "Required In": leaving out any one of them is an error. */
static void test_required_fields(void **state)
{
	static const struct {
		uint8_t type;
		uint16_t fields;
	} rows[] = {
		{ DBUSP_METHOD_CALL, 1 << 1 | 1 << 3 },
		{ DBUSP_METHOD_RETURN, 1 << 5 },
		{ DBUSP_ERROR, 1 << 4 | 1 << 5 },
		{ DBUSP_SIGNAL, 1 << 1 | 1 << 2 | 1 << 3 },
		{ 5, 0 },
		{ 255, 0 },
	};
	static const char *const values[] = { "", "/a", "a.b", "Do", "a.E", "", "a.b", ":1.0" };
	struct dbusp_header h;
	struct raw m;
	unsigned int set, code;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (set = 0; set < 1 << 8; set += 2) {
			raw_start(&m, false, rows[i].type);
			for (code = 1; code < 8; code++) {
				if (!(set & 1 << code))
					continue;
				if (code == DBUSP_FIELD_REPLY_SERIAL)
					raw_u32_field(&m, code, 1);
				else
					raw_text_field(&m, code, code == 1 ? "o" : "s",
						       values[code]);
			}
			if ((set & rows[i].fields) == rows[i].fields)
				accepted(&m, &h);
			else
				assert_int_equal(refused(&m), DBUSP_WHY_FIELD_MISSING);
		}
	}
}

static void test_names_in_fields_are_validated(void **state)
{
	static const struct {
		uint8_t code;
		const char *sig, *value;
		enum dbusp_why why;
	} rows[] = {
		{ DBUSP_FIELD_PATH, "o", "/a/", DBUSP_WHY_PATH },
		{ DBUSP_FIELD_PATH, "o", "", DBUSP_WHY_PATH },
		{ DBUSP_FIELD_INTERFACE, "s", "a", DBUSP_WHY_INTERFACE },
		{ DBUSP_FIELD_INTERFACE, "s", "a.b-c", DBUSP_WHY_INTERFACE },
		{ DBUSP_FIELD_MEMBER, "s", "a.b", DBUSP_WHY_MEMBER },
		{ DBUSP_FIELD_MEMBER, "s", "", DBUSP_WHY_MEMBER },
		{ DBUSP_FIELD_ERROR_NAME, "s", "Failed", DBUSP_WHY_ERROR_NAME },
		{ DBUSP_FIELD_DESTINATION, "s", "a", DBUSP_WHY_DESTINATION },
		{ DBUSP_FIELD_DESTINATION, "s", "a..b", DBUSP_WHY_DESTINATION },
		{ DBUSP_FIELD_SENDER, "s", "", DBUSP_WHY_SENDER },
		{ DBUSP_FIELD_SENDER, "s", ":1..2", DBUSP_WHY_SENDER },
		{ DBUSP_FIELD_SIGNATURE, "g", "a", DBUSP_WHY_SIGNATURE },
	};
	struct raw m;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		raw_start(&m, false, 200);
		raw_text_field(&m, rows[i].code, rows[i].sig, rows[i].value);
		assert_int_equal(refused(&m), rows[i].why);
	}
}

static void test_local_path_and_interface_are_reserved(void **state)
{
	struct dbusp_header h;
	struct raw m;

	raw_start(&m, false, 200);
	raw_text_field(&m, DBUSP_FIELD_PATH, "o", "/org/freedesktop/DBus/Local");
	assert_int_equal(refused(&m), DBUSP_WHY_LOCAL_PATH);
	raw_start(&m, false, 200);
	raw_text_field(&m, DBUSP_FIELD_INTERFACE, "s", "org.freedesktop.DBus.Local");
	assert_int_equal(refused(&m), DBUSP_WHY_LOCAL_INTERFACE);
	raw_start(&m, false, 200);
	raw_text_field(&m, DBUSP_FIELD_PATH, "o", "/org/freedesktop/DBus/Local/x");
	raw_text_field(&m, DBUSP_FIELD_INTERFACE, "s", "org.freedesktop.DBus.Locale");
	accepted(&m, &h);
}

static void test_reply_serial_zero_is_refused(void **state)
{
	struct raw m;

	raw_start(&m, false, 200);
	raw_u32_field(&m, DBUSP_FIELD_REPLY_SERIAL, 0);
	assert_int_equal(refused(&m), DBUSP_WHY_REPLY_SERIAL);
}

static void test_padding_is_zero_between_fields_and_after_them(void **state)
{
	struct dbusp_header h;
	struct raw m;
	size_t at;

	/* "/a" leaves 5 bytes before the next field, "Do" 5 before the body */
	raw_start(&m, false, DBUSP_METHOD_CALL);
	raw_text_field(&m, DBUSP_FIELD_PATH, "o", "/a");
	raw_text_field(&m, DBUSP_FIELD_MEMBER, "s", "Do");
	accepted(&m, &h);
	assert_int_equal(m.len, 48);
	for (at = 0; at < m.len; at++) {
		if (!((at >= 27 && at < 32) || at >= 43))
			continue;
		m.buf[at] = 1;
		assert_true(parse(&m, &h) < 0);
		assert_int_equal(why, DBUSP_WHY_PADDING);
		m.buf[at] = 0;
	}
	assert_int_equal(parse(&m, &h), 0);
}

static void test_fields_end_where_their_length_says(void **state)
{
	struct dbusp_header h;
	struct raw m;
	uint32_t len, right;

	raw_start(&m, false, DBUSP_METHOD_CALL);
	raw_text_field(&m, DBUSP_FIELD_PATH, "o", "/a");
	raw_text_field(&m, DBUSP_FIELD_MEMBER, "s", "Do");
	accepted(&m, &h);
	right = m.len - 5 - 16;
	for (len = 0; len <= m.len - 16; len++) {
		dbusp_set32(m.buf + 12, len, false);
		assert_int_equal(parse(&m, &h), len == right ? 0 : -EBADMSG);
	}
}

static void test_string_fields_end_with_nul(void **state)
{
	struct dbusp_header h;
	struct raw m;

	raw_start(&m, false, DBUSP_METHOD_CALL);
	raw_text_field(&m, DBUSP_FIELD_PATH, "o", "/a");
	raw_text_field(&m, DBUSP_FIELD_MEMBER, "s", "Do");
	accepted(&m, &h);
	m.buf[42] = 'x';
	assert_int_equal(parse(&m, &h), -EBADMSG);
	m.buf[42] = 0;
	dbusp_set32(m.buf + 36, UINT32_MAX, false);
	assert_int_equal(parse(&m, &h), -EBADMSG);
	assert_int_equal(why, DBUSP_WHY_TRUNCATED);
}

static void test_a_refused_header_leaves_the_result_alone(void **state)
{
	struct dbusp_header h, before;
	struct raw m;

	memset(&h, 0x5a, sizeof(h));
	before = h;
	full_message(&m, false);
	m.buf[9] = 0;
	m.buf[8] = 0;
	raw_end(&m);
	assert_true(parse(&m, &h) < 0);
	assert_memory_equal(&h, &before, sizeof(h));
	full_message(&m, false);
	raw_end(&m);
	m.buf[m.body - 8] = 0;
	assert_true(parse(&m, &h) < 0);
	assert_memory_equal(&h, &before, sizeof(h));
}

/* Rewrites the header, puts the body behind it and parses the result. */
static void rewrite(const struct raw *m, const char *sender, bool strip, struct raw *ret,
		    struct dbusp_header *ret_h)
{
	struct dbusp_header h;
	uint32_t len;
	size_t room, size;

	assert_int_equal(parse(m, &h), 0);
	memset(ret, 0x5a, sizeof(*ret));
	room = dbusp_header_room(&h, sender ? strlen(sender) : 0);
	assert_true(room <= sizeof(ret->buf));
	assert_int_equal(dbusp_header_rewrite(&h, m->buf, dbusp_str(sender), strip, ret->buf, room,
					      &len),
			 0);
	assert_true(len <= room);
	assert_int_equal(len % 8, 0);
	for (size = 0; size < len; size++) {
		uint8_t *small = malloc(size + 1);

		assert_int_equal(dbusp_header_rewrite(&h, m->buf, dbusp_str(sender), strip, small,
						      size, &(uint32_t){ 0 }),
				 -ENOBUFS);
		free(small);
	}
	memcpy(ret->buf + len, m->buf + h.frame.header_len, h.frame.body_len);
	ret->len = len + h.frame.body_len;
	assert_int_equal(parse(ret, ret_h), 0);
	assert_int_equal(ret_h->frame.header_len, len);
	assert_int_equal(ret_h->frame.total_len, ret->len);
	assert_int_equal(dbusp_body_check(ret_h, ret->buf + len, NULL),
			 dbusp_body_check(&h, m->buf + h.frame.header_len, NULL));
}

static void test_sender_is_added_replaced_removed(void **state)
{
	static const char *const senders[] = { NULL, ":1.0", ":1.12345678",
					       "org.freedesktop.DBus" };
	struct dbusp_header h;
	struct raw m, out, again;
	size_t i;
	int big;

	for (big = 0; big < 2; big++) {
		full_message(&m, big);
		raw_end(&m);
		for (i = 0; i < 4; i++) {
			rewrite(&m, senders[i], true, &out, &h);
			if (senders[i])
				assert_text(h.sender, senders[i]);
			else
				assert_null(h.sender.s);
			assert_text(h.path, "/a/b");
			assert_text(h.signature, "u");
			assert_int_equal(h.reply_serial, 9);
			assert_int_equal(h.n_fds, 3);
			/* from "no sender" to one, and the same again */
			rewrite(&out, ":1.99", false, &again, &h);
			assert_text(h.sender, ":1.99");
			assert_int_equal(h.present, 0x3fe);
		}
	}
}

static void test_header_filtering_strips_unknown_fields(void **state)
{
	struct dbusp_header h;
	struct raw m, out;
	int sender;

	for (sender = 0; sender < 2; sender++) {
		raw_start(&m, true, DBUSP_SIGNAL);
		raw_text_field(&m, 99, "s", "first");
		if (sender)
			raw_text_field(&m, DBUSP_FIELD_SENDER, "s", ":1.1");
		raw_field(&m, 98, "av");
		raw_u32(&m, 0);
		raw_required(&m);
		raw_text_field(&m, 10, "g", "last");
		/* "last" is no signature, though: */
		m.len -= 6;
		raw_sig(&m, "ay");
		raw_end(&m);

		rewrite(&m, ":1.5", true, &out, &h);
		assert_false(h.unknown);
		assert_text(h.sender, ":1.5");
		assert_text(h.member, "Frob");
		assert_null(memmem(out.buf, out.len, "first", 5));

		rewrite(&m, ":1.5", false, &out, &h);
		assert_true(h.unknown);
		assert_text(h.sender, ":1.5");
		assert_non_null(memmem(out.buf, out.len, "first", 5));
	}
}

static void test_rewriting_refuses_bad_senders_and_keeps_limits(void **state)
{
	struct dbusp_header h;
	struct raw m;
	uint8_t out[4096];
	uint32_t len = 12345, fits, need;

	raw_start(&m, false, DBUSP_METHOD_CALL);
	raw_required(&m);
	accepted(&m, &h);
	assert_int_equal(dbusp_header_rewrite(&h, m.buf, dbusp_str("x"), true, out, sizeof(out),
					      &len),
			 -EINVAL);
	/* what a sender adds: the end of a field, 8 + 4 + 1 bytes, and padding */
	need = dbusp_header_room(&h, 4) - h.frame.header_len;
	assert_int_equal(need, 16);
	dbusp_set32(m.buf + 4, DBUSP_MESSAGE_MAX - m.len - need, false);
	assert_int_equal(parse(&m, &h), 0);
	assert_int_equal(dbusp_header_rewrite(&h, m.buf, dbusp_str(":1.0"), true, out, sizeof(out),
					      &fits),
			 0);
	assert_int_equal(fits, m.len + need);
	dbusp_set32(m.buf + 4, DBUSP_MESSAGE_MAX - m.len - need + 1, false);
	assert_int_equal(parse(&m, &h), 0);
	assert_int_equal(dbusp_header_rewrite(&h, m.buf, dbusp_str(":1.0"), true, out, sizeof(out),
					      &len),
			 -EMSGSIZE);
	assert_int_equal(len, 12345);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_field_is_found_in_both_byte_orders),
		cmocka_unit_test(test_absent_fields),
		cmocka_unit_test(test_framing_byte_by_byte),
		cmocka_unit_test(test_fixed_part_rules),
		cmocka_unit_test(test_sizes_are_refused_from_the_first_16_bytes),
		cmocka_unit_test(test_configured_maximum),
		cmocka_unit_test(test_field_types_are_exact),
		cmocka_unit_test(test_field_zero_is_refused),
		cmocka_unit_test(test_known_fields_appear_once),
		cmocka_unit_test(test_unknown_fields_may_come_but_well_formed),
		cmocka_unit_test(test_required_fields),
		cmocka_unit_test(test_names_in_fields_are_validated),
		cmocka_unit_test(test_local_path_and_interface_are_reserved),
		cmocka_unit_test(test_reply_serial_zero_is_refused),
		cmocka_unit_test(test_padding_is_zero_between_fields_and_after_them),
		cmocka_unit_test(test_fields_end_where_their_length_says),
		cmocka_unit_test(test_string_fields_end_with_nul),
		cmocka_unit_test(test_a_refused_header_leaves_the_result_alone),
		cmocka_unit_test(test_sender_is_added_replaced_removed),
		cmocka_unit_test(test_header_filtering_strips_unknown_fields),
		cmocka_unit_test(test_rewriting_refuses_bad_senders_and_keeps_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
