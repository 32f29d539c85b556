// SPDX-License-Identifier: LGPL-2.1-or-later
/* Spelling of strings, sysnames and well-known names: spec §5.4, §10.1, §1.1, §17.1 row 21. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "limits.h"
#include "syntax.h"

static int sysname(const char *str)
{
	return core_sysname_check(str, strlen(str) + 1);
}

/* §5.4: the first NUL is the last byte */
static void a_string_ends_with_its_only_nul(void **state)
{
	assert_true(core_str_valid("abc", 4));
	assert_false(core_str_valid("abc", 3));
	assert_false(core_str_valid("a\0c", 4));
	assert_false(core_str_valid("abc\0", 5));
	assert_false(core_str_valid("abc", 0));
}

/* §5.4: empty string passes the generic check */
static void an_empty_string_is_a_string(void **state)
{
	assert_true(core_str_valid("", 1));
}

/* §5.4: letters, digits, '_'; '-' and '.' inside */
static void a_sysname_has_a_small_alphabet(void **state)
{
	assert_int_equal(sysname("1000-demo"), 0);
	assert_int_equal(sysname("a"), 0);
	assert_int_equal(sysname("_a.B-9_"), 0);
	assert_int_equal(sysname("1000-blah@123"), -EINVAL);
	assert_int_equal(sysname("a b"), -EINVAL);
	assert_int_equal(sysname("a:b"), -EINVAL);
	assert_int_equal(sysname("a/b"), -EINVAL);
}

/* §5.4: not as first or last character */
static void a_sysname_neither_starts_nor_ends_with_a_separator(void **state)
{
	assert_int_equal(sysname("1000-blah-"), -EINVAL);
	assert_int_equal(sysname("1000-blah."), -EINVAL);
	assert_int_equal(sysname("-a"), -EINVAL);
	assert_int_equal(sysname(".a"), -EINVAL);
	assert_int_equal(sysname("-"), -EINVAL);
}

/* §5.4: 1..63 characters, ENAMETOOLONG before the contents are looked at */
static void a_sysname_is_at_most_63_characters(void **state)
{
	char name[80];

	memset(name, 'x', sizeof(name));
	name[63] = 0;
	assert_int_equal(core_sysname_check(name, 64), 0);
	name[63] = 'x';
	name[64] = 0;
	assert_int_equal(core_sysname_check(name, 65), -ENAMETOOLONG);
	name[0] = '@';
	assert_int_equal(core_sysname_check(name, 65), -ENAMETOOLONG);
	assert_int_equal(core_sysname_check(name, 64), -EINVAL);
	assert_int_equal(core_sysname_check("", 1), -EINVAL);
	assert_int_equal(core_sysname_check("", 0), -EINVAL);
	assert_int_equal(CORE_SYSNAME_MAX_LEN, 63);
}

static void a_sysname_has_its_nul_at_the_end(void **state)
{
	assert_int_equal(core_sysname_check("ab\0c", 5), -EINVAL);
	assert_int_equal(core_sysname_check("abcd", 4), -EINVAL);
}

/* §5.4 [QUIRK], §17.1 row 21: ASCII letters only */
static void latin_1_letters_are_refused(void **state)
{
	char name[] = "com.ex_mple", node[] = "a_b";
	int c;

	for (c = 0x80; c <= 0xff; c++) {
		name[6] = (char)c;
		node[1] = (char)c;
		assert_false(core_name_valid(name));
		assert_int_equal(sysname(node), -EINVAL);
	}
}

/* §1.1: must start with "<uid>-" */
static void a_node_is_named_after_the_uid_of_its_maker(void **state)
{
	assert_int_equal(core_sysname_check_uid("1000-demo", 1000), 0);
	assert_int_equal(core_sysname_check_uid("0-system", 0), 0);
	assert_int_equal(core_sysname_check_uid("4294967294-x", 4294967294U), 0);
	assert_int_equal(core_sysname_check_uid("foo", 1000), -EINVAL);
	assert_int_equal(core_sysname_check_uid("1001-demo", 1000), -EINVAL);
	assert_int_equal(core_sysname_check_uid("10000-demo", 1000), -EINVAL);
	assert_int_equal(core_sysname_check_uid("100-demo", 1000), -EINVAL);
	assert_int_equal(core_sysname_check_uid("01000-demo", 1000), -EINVAL);
	assert_int_equal(core_sysname_check_uid("1000", 1000), -EINVAL);
	assert_int_equal(core_sysname_check_uid("-demo", 0), -EINVAL);
}

/* §10.1, §15.3 name-basics */
static void a_name_has_two_or_more_elements(void **state)
{
	assert_true(core_name_valid("foo.bla"));
	assert_true(core_name_valid("foo.bla.blaz"));
	assert_true(core_name_valid("a.b.c.d.e"));
	assert_false(core_name_valid("foo"));
	assert_false(core_name_valid(""));
	assert_false(core_name_valid(".bla.blaz"));
	assert_false(core_name_valid("bla.blaz."));
	assert_false(core_name_valid("bla..blaz"));
	assert_false(core_name_valid("."));
}

/* §10.1: element characters; '-' and '_' may come first, a digit may not */
static void an_element_does_not_start_with_a_digit(void **state)
{
	assert_true(core_name_valid("-a._b"));
	assert_true(core_name_valid("a1.b2-c_D"));
	assert_false(core_name_valid("a.1b"));
	assert_false(core_name_valid("1a.b"));
	assert_false(core_name_valid("a.b c"));
	assert_false(core_name_valid("a.b/c"));
	assert_false(core_name_valid("a.b:c"));
}

/* §10.1: total length up to 255 */
static void a_name_is_at_most_255_characters(void **state)
{
	char name[300];

	memset(name, 'a', sizeof(name));
	name[1] = '.';
	name[255] = 0;
	assert_true(core_name_valid(name));
	name[255] = 'a';
	name[256] = 0;
	assert_false(core_name_valid(name));
	assert_int_equal(CORE_NAME_MAX_LEN, 255);
}

/* §10.1: the final element may be exactly '*' where wildcards are permitted */
static void a_wildcard_ends_with_a_star_element(void **state)
{
	assert_true(core_name_is_wildcard("foo.*"));
	assert_true(core_name_is_wildcard("foo.bar.*"));
	assert_false(core_name_is_wildcard("foo.bar"));
	assert_false(core_name_is_wildcard("*"));
	assert_false(core_name_is_wildcard(".*"));
	assert_false(core_name_is_wildcard("foo.bar*"));
	assert_false(core_name_is_wildcard("foo.*.bar"));
	assert_false(core_name_is_wildcard("foo.*.*"));
	assert_false(core_name_is_wildcard("foo.**"));
	assert_false(core_name_is_wildcard("foo..*"));
	assert_false(core_name_is_wildcard("1foo.*"));
}

static void a_wildcard_is_no_name(void **state)
{
	assert_false(core_name_valid("foo.bla.bl.*"));
	assert_false(core_name_valid("foo.*"));
}

static void a_wildcard_is_at_most_255_characters(void **state)
{
	char name[300];

	memset(name, 'a', sizeof(name));
	memcpy(name + 253, ".*", 3);
	assert_true(core_name_is_wildcard(name));
	memset(name, 'a', sizeof(name));
	memcpy(name + 254, ".*", 3);
	assert_false(core_name_is_wildcard(name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_string_ends_with_its_only_nul),
		cmocka_unit_test(an_empty_string_is_a_string),
		cmocka_unit_test(a_sysname_has_a_small_alphabet),
		cmocka_unit_test(a_sysname_neither_starts_nor_ends_with_a_separator),
		cmocka_unit_test(a_sysname_is_at_most_63_characters),
		cmocka_unit_test(a_sysname_has_its_nul_at_the_end),
		cmocka_unit_test(latin_1_letters_are_refused),
		cmocka_unit_test(a_node_is_named_after_the_uid_of_its_maker),
		cmocka_unit_test(a_name_has_two_or_more_elements),
		cmocka_unit_test(an_element_does_not_start_with_a_digit),
		cmocka_unit_test(a_name_is_at_most_255_characters),
		cmocka_unit_test(a_wildcard_ends_with_a_star_element),
		cmocka_unit_test(a_wildcard_is_no_name),
		cmocka_unit_test(a_wildcard_is_at_most_255_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
