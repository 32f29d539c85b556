// SPDX-License-Identifier: LGPL-2.1-or-later
/* A header that is known says what it says when it is checked: rule 1 of dbus/known.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dbus-raw.h"
#include "dbus/known.h"

static void same_text(struct dbusp_str a, struct dbusp_str b)
{
	assert_int_equal(a.len, b.len);
	if (a.len)
		assert_ptr_equal(a.s, b.s);
	else
		assert_int_equal(!a.s, !b.s);
}

static void same_header(const struct dbusp_header *a, const struct dbusp_header *b)
{
	assert_int_equal(a->frame.big, b->frame.big);
	assert_int_equal(a->frame.type, b->frame.type);
	assert_int_equal(a->frame.flags, b->frame.flags);
	assert_int_equal(a->frame.serial, b->frame.serial);
	assert_int_equal(a->frame.body_len, b->frame.body_len);
	assert_int_equal(a->frame.total_len, b->frame.total_len);
	assert_int_equal(a->present, b->present);
	assert_int_equal(a->unknown, b->unknown);
	assert_int_equal(a->reply_serial, b->reply_serial);
	assert_int_equal(a->reply_serial_at, b->reply_serial_at);
	assert_int_equal(a->n_fds, b->n_fds);
	same_text(a->path, b->path);
	same_text(a->interface, b->interface);
	same_text(a->member, b->member);
	same_text(a->error_name, b->error_name);
	same_text(a->destination, b->destination);
	same_text(a->sender, b->sender);
	same_text(a->signature, b->signature);
}

/* Both ways to look at a message agree. Returns what they say. */
static int look(struct dbusp_known *known, const struct raw *m)
{
	enum dbusp_why why = DBUSP_WHY_NONE, why_known = DBUSP_WHY_NONE;
	struct dbusp_header h, h_known;
	struct dbusp_frame frame;
	int r;

	if (dbusp_frame_parse(&frame, m->buf, m->len, DBUSP_MESSAGE_MAX, NULL) < 0)
		return -1;
	r = dbusp_header_parse_behind(&h, &frame, m->buf, m->len, &why);
	assert_int_equal(
		dbusp_header_parse_known(known, &h_known, &frame, m->buf, m->len, &why_known), r);
	assert_int_equal(why_known, why);
	if (r == 0)
		same_header(&h_known, &h);
	return r;
}

static void message(struct raw *m, bool big, uint8_t type)
{
	raw_start(m, big, type);
	raw_required(m);
	raw_text_field(m, DBUSP_FIELD_DESTINATION, "s", "org.example.Dest");
	raw_text_field(m, DBUSP_FIELD_SIGNATURE, "g", "u");
	raw_fields_end(m);
	raw_u32(m, 4711);
	raw_end(m);
}

/* It was found valid in another place, and that is gone. */
static void learn(struct dbusp_known *known, const struct raw *m)
{
	struct raw copy = *m;

	memset(known, 0, sizeof(*known));
	assert_int_equal(look(known, &copy), 0);
	memset(&copy, 0xff, sizeof(copy));
}

static void test_the_same_header_says_the_same(void **state)
{
	struct dbusp_known known;
	struct raw m;
	unsigned int type;
	int big;

	for (type = DBUSP_METHOD_CALL; type <= DBUSP_SIGNAL + 1; type++) {
		for (big = 0; big < 2; big++) {
			message(&m, big, (uint8_t)type);
			learn(&known, &m);
			assert_int_equal(known.header.frame.type, type);
			m.buf[2] = DBUSP_NO_AUTO_START;
			dbusp_set32(m.buf + 8, 1234567, big);
			assert_int_equal(look(&known, &m), 0);
			assert_int_equal(known.header.frame.serial, 77);
			raw_u32(&m, 12);
			raw_end(&m);
			assert_int_equal(look(&known, &m), 0);
		}
	}
}

static void test_any_other_byte_is_looked_at(void **state)
{
	struct dbusp_known known;
	struct raw m, other;
	size_t i;
	unsigned int type;
	int big, bit;

	for (type = DBUSP_METHOD_CALL; type <= DBUSP_SIGNAL + 1; type++) {
		for (big = 0; big < 2; big++) {
			message(&m, big, (uint8_t)type);
			for (i = 0; i < m.body * 8; i++) {
				bit = (int)(i % 8);
				learn(&known, &m);
				other = m;
				other.buf[i / 8] ^= 1U << bit;
				look(&known, &other);
				/* What was refused is not remembered. */
				assert_int_equal(look(&known, &m), 0);
			}
		}
	}
}

static void test_a_reply_to_nothing_is_refused(void **state)
{
	struct dbusp_known known;
	struct dbusp_header h;
	struct raw m;

	message(&m, false, DBUSP_METHOD_RETURN);
	assert_int_equal(dbusp_header_parse(&h, m.buf, m.len, DBUSP_MESSAGE_MAX, NULL), 0);
	learn(&known, &m);
	dbusp_set32(m.buf + h.reply_serial_at, 0x01020304, false);
	assert_int_equal(look(&known, &m), 0);
	dbusp_set32(m.buf + h.reply_serial_at, 0, false);
	assert_true(look(&known, &m) < 0);
}

static void test_cut_headers_are_refused(void **state)
{
	struct dbusp_known known;
	struct raw m;
	size_t len;

	message(&m, false, DBUSP_METHOD_CALL);
	learn(&known, &m);
	for (len = m.body, m.len = DBUSP_FIXED_LEN; m.len < len; m.len++)
		assert_true(look(&known, &m) < 0);
	assert_int_equal(look(&known, &m), 0);
}

static void test_unknown_fields_are_known_again(void **state)
{
	struct dbusp_known known;
	struct raw m;

	raw_start(&m, true, DBUSP_SIGNAL);
	raw_text_field(&m, 99, "s", "first");
	raw_required(&m);
	raw_end(&m);
	learn(&known, &m);
	assert_true(known.header.unknown);
	assert_int_equal(look(&known, &m), 0);
}

/* Around the length up to which headers are remembered */
static void test_long_headers_are_looked_at_each_time(void **state)
{
	char path[DBUSP_KNOWN_MAX + 16] = "/";
	struct dbusp_known known;
	struct raw m;
	size_t len;

	for (len = 1; len < sizeof(path) - 1; len++) {
		path[len] = 'p';
		raw_start(&m, false, DBUSP_METHOD_CALL);
		raw_text_field(&m, DBUSP_FIELD_MEMBER, "s", "M");
		raw_text_field(&m, DBUSP_FIELD_PATH, "o", path);
		raw_end(&m);
		learn(&known, &m);
		assert_int_equal(known.len, m.body - DBUSP_FIXED_LEN <= DBUSP_KNOWN_MAX ?
						    m.body - DBUSP_FIXED_LEN :
						    0);
		assert_int_equal(look(&known, &m), 0);
		m.buf[m.body - 10] = '?';
		look(&known, &m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same_header_says_the_same),
		cmocka_unit_test(test_any_other_byte_is_looked_at),
		cmocka_unit_test(test_a_reply_to_nothing_is_refused),
		cmocka_unit_test(test_cut_headers_are_refused),
		cmocka_unit_test(test_unknown_fields_are_known_again),
		cmocka_unit_test(test_long_headers_are_looked_at_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
