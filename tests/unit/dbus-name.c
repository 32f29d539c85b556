// SPDX-License-Identifier: LGPL-2.1-or-later
/* D-Bus specification, "Valid Names" and "Valid Object Paths". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dbus/name.h"

enum {
	UNIQUE = 1 << 0,
	WELLKNOWN = 1 << 1,
	NAMESPACE = 1 << 2,
	INTERFACE = 1 << 3,
	MEMBER = 1 << 4,
	PATH = 1 << 5,
};

static unsigned int kinds(const char *s, size_t len)
{
	unsigned int k = 0;

	k |= dbusp_name_is_unique(s, len) ? UNIQUE : 0;
	k |= dbusp_name_is_wellknown(s, len) ? WELLKNOWN : 0;
	k |= dbusp_name_is_namespace(s, len) ? NAMESPACE : 0;
	k |= dbusp_name_is_interface(s, len) ? INTERFACE : 0;
	k |= dbusp_name_is_member(s, len) ? MEMBER : 0;
	k |= dbusp_path_valid(s, len) ? PATH : 0;
	assert_int_equal(dbusp_name_is_bus(s, len), (k & (UNIQUE | WELLKNOWN)) != 0);
	assert_int_equal(dbusp_name_is_error(s, len), (k & INTERFACE) != 0);
	return k;
}

static void test_each_kind_of_name(void **state)
{
	static const struct {
		const char *s;
		unsigned int kinds;
	} rows[] = {
		{ "", 0 },
		{ ".", 0 },
		{ "a", NAMESPACE | MEMBER },
		{ "_9", NAMESPACE | MEMBER },
		{ "9a", 0 },
		{ "-", NAMESPACE },
		{ "a-b", NAMESPACE },
		{ "a.b", WELLKNOWN | NAMESPACE | INTERFACE },
		{ "a.b.C9._d", WELLKNOWN | NAMESPACE | INTERFACE },
		{ "a.-", WELLKNOWN | NAMESPACE },
		{ "a.b-", WELLKNOWN | NAMESPACE },
		{ "a.9", 0 },
		{ "a..b", 0 },
		{ ".a.b", 0 },
		{ "a.b.", 0 },
		{ "a b", 0 },
		{ "a.b\xc3\xa4", 0 },
		{ ":", 0 },
		{ ":1", NAMESPACE },
		{ ":1.0", UNIQUE | NAMESPACE },
		{ ":a.-.9", UNIQUE | NAMESPACE },
		{ ":1.", 0 },
		{ ":.1", 0 },
		{ ":1..0", 0 },
		{ "::1.0", 0 },
		{ "1.0", 0 },
		{ "/", PATH },
		{ "/a", PATH },
		{ "/0/_/Z", PATH },
		{ "//", 0 },
		{ "/a/", 0 },
		{ "/a//b", 0 },
		{ "a/b", 0 },
		{ "/a-b", 0 },
		{ "/a.b", 0 },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(kinds(rows[i].s, strlen(rows[i].s)), rows[i].kinds);
}

static void test_nul_is_no_part_of_a_name(void **state)
{
	assert_int_equal(kinds("a.b\0", 4), 0);
	assert_int_equal(kinds(":1.0\0", 5), 0);
	assert_int_equal(kinds("/a\0b", 4), 0);
}

static void test_names_end_at_255_bytes(void **state)
{
	char s[257];

	memset(s, 'a', sizeof(s));
	assert_int_equal(kinds(s, 255), NAMESPACE | MEMBER);
	assert_int_equal(kinds(s, 256), 0);
	s[1] = '.';
	assert_int_equal(kinds(s, 255), WELLKNOWN | NAMESPACE | INTERFACE);
	assert_int_equal(kinds(s, 256), 0);
	s[0] = ':';
	s[1] = '1';
	s[2] = '.';
	assert_int_equal(kinds(s, 255), UNIQUE | NAMESPACE);
	assert_int_equal(kinds(s, 256), 0);
}

static void test_paths_have_no_limit_of_their_own(void **state)
{
	static char s[100000];
	size_t i;

	for (i = 0; i < sizeof(s); i++)
		s[i] = i % 2 ? 'a' : '/';
	assert_true(dbusp_path_valid(s, sizeof(s)));
	assert_false(dbusp_path_valid(s, sizeof(s) - 1));
}

/* Every byte at the first and at a later place of an element. */
static void test_character_classes(void **state)
{
	char s[] = "aa.aa", p[] = "/aa", u[] = ":1.aa";
	int c;

	for (c = 1; c < 256; c++) {
		bool alpha = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
		bool digit = c >= '0' && c <= '9';

		s[3] = p[1] = u[3] = c;
		assert_int_equal(dbusp_name_is_wellknown(s, 5), alpha || c == '-');
		assert_int_equal(dbusp_name_is_interface(s, 5), alpha);
		assert_int_equal(dbusp_name_is_member(s + 3, 2), alpha);
		assert_int_equal(dbusp_path_valid(p, 3), alpha || digit);
		assert_int_equal(dbusp_name_is_unique(u, 5), alpha || digit || c == '-');
		s[3] = p[1] = u[3] = 'a';

		s[1] = c;
		assert_int_equal(dbusp_name_is_wellknown(s, 5), alpha || digit || c == '-');
		assert_int_equal(dbusp_name_is_interface(s, 5), alpha || digit);
		assert_int_equal(dbusp_name_is_member(s, 2), alpha || digit);
		s[1] = 'a';
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_kind_of_name),
		cmocka_unit_test(test_nul_is_no_part_of_a_name),
		cmocka_unit_test(test_names_end_at_255_bytes),
		cmocka_unit_test(test_paths_have_no_limit_of_their_own),
		cmocka_unit_test(test_character_classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
