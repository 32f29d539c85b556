// SPDX-License-Identifier: LGPL-2.1-or-later
/* D-Bus specification, "Summary of types", STRING: valid UTF-8 without NUL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dbus/utf8.h"

static bool valid(const char *s)
{
	return dbusp_utf8_valid(s, strlen(s));
}

/* Encodes any value below 2^21 in @n bytes, right or wrong. */
static void encode(uint32_t c, unsigned int n, char *out)
{
	static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	unsigned int i;

	if (n == 1) {
		out[0] = c;
		return;
	}
	for (i = n - 1; i; i--, c >>= 6)
		out[i] = 0x80 | (c & 0x3f);
	out[0] = lead[n] | c;
}

static unsigned int shortest(uint32_t c)
{
	return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

static void test_every_value_in_every_length(void **state)
{
	uint32_t c;
	unsigned int n;
	char buf[4];

	for (c = 1; c < 0x110000 + 0x100; c++) {
		bool scalar = c < 0x110000 && (c < 0xd800 || c > 0xdfff);

		for (n = shortest(c); n <= 4; n++) {
			encode(c, n, buf);
			assert_int_equal(dbusp_utf8_valid(buf, n), scalar && n == shortest(c));
		}
	}
}

static void test_nul_is_refused_at_every_place(void **state)
{
	char buf[40];
	size_t len, i;

	for (len = 1; len <= sizeof(buf); len++) {
		for (i = 0; i < len; i++) {
			memset(buf, 'a', sizeof(buf));
			assert_true(dbusp_utf8_valid(buf, len));
			buf[i] = 0;
			assert_false(dbusp_utf8_valid(buf, len));
			buf[i] = (char)0x80;
			assert_false(dbusp_utf8_valid(buf, len));
			buf[i] = 0x7f;
			assert_true(dbusp_utf8_valid(buf, len));
		}
	}
}

/* Long runs of ASCII are looked at in large steps. */
static void test_long_text_is_looked_at_byte_by_byte(void **state)
{
	char buf[1500];
	size_t at, i;

	for (at = 0; at < 3; at++) {
		const size_t len = sizeof(buf) - at;

		memset(buf, 'a', sizeof(buf));
		for (i = at; i + 1 < sizeof(buf); i++) {
			buf[i] = 0;
			assert_false(dbusp_utf8_valid(buf + at, len));
			buf[i] = (char)0xc3;
			assert_false(dbusp_utf8_valid(buf + at, len));
			buf[i + 1] = (char)0xa9;
			assert_true(dbusp_utf8_valid(buf + at, len));
			assert_false(dbusp_utf8_valid(buf + at, i + 1 - at));
			buf[i] = 0x7f;
			assert_false(dbusp_utf8_valid(buf + at, len));
			buf[i + 1] = 1;
			assert_true(dbusp_utf8_valid(buf + at, len));
			buf[i] = buf[i + 1] = 'a';
		}
	}
}

static void test_cut_sequences_are_refused(void **state)
{
	assert_true(valid("aaaaaaa\xe2\x82\xac"));
	assert_false(valid("aaaaaaa\xe2\x82"));
	assert_false(valid("aaaaaaa\xe2"));
	assert_false(valid("\xf0\x9f\x92"));
	assert_false(valid("\xc3"));
	assert_false(valid("\xe2\x82" "a"));
	assert_false(valid("\xf8\x88\x80\x80\x80"));
	assert_false(valid("\xff"));
}

static void test_noncharacters_are_accepted(void **state)
{
	assert_true(valid("\xef\xbf\xbe"));
	assert_true(valid("\xef\xb7\x90"));
}

static void test_empty_string_is_valid(void **state)
{
	assert_true(dbusp_utf8_valid(NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_value_in_every_length),
		cmocka_unit_test(test_nul_is_refused_at_every_place),
		cmocka_unit_test(test_long_text_is_looked_at_byte_by_byte),
		cmocka_unit_test(test_cut_sequences_are_refused),
		cmocka_unit_test(test_noncharacters_are_accepted),
		cmocka_unit_test(test_empty_string_is_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
