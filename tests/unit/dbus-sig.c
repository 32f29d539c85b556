// SPDX-License-Identifier: LGPL-2.1-or-later
/* D-Bus specification, "Valid Signatures" and "Container types". */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dbus/sig.h"

static int parse(const char *sig)
{
	struct dbusp_sigmap map;

	return dbusp_sig_parse(&map, sig, strlen(sig));
}

/* @depth times @open, then "y", then @depth times @close */
static int nested(const char *open, unsigned int depth, const char *close)
{
	char sig[1024] = "";
	unsigned int i;

	for (i = 0; i < depth; i++)
		strcat(sig, open);
	strcat(sig, "y");
	for (i = 0; i < depth; i++)
		strcat(sig, close);
	return parse(sig);
}

static void test_lists_of_complete_types(void **state)
{
	assert_int_equal(parse(""), 0);
	assert_int_equal(parse("ybnqiuxtdsoghv"), 0);
	assert_int_equal(parse("a{sv}a(yas)aav(i(ii))"), 0);
	assert_int_equal(parse("a{s(ya{uv})}"), 0);
}

static void test_arrays_need_an_element_type(void **state)
{
	assert_int_equal(parse("a"), -EBADMSG);
	assert_int_equal(parse("ya"), -EBADMSG);
	assert_int_equal(parse("(a)"), -EBADMSG);
	assert_int_equal(parse("a{sa}"), -EBADMSG);
}

static void test_structs_balance_and_are_not_empty(void **state)
{
	assert_int_equal(parse("("), -EBADMSG);
	assert_int_equal(parse(")"), -EBADMSG);
	assert_int_equal(parse("()"), -EBADMSG);
	assert_int_equal(parse("(i"), -EBADMSG);
	assert_int_equal(parse("i)"), -EBADMSG);
	assert_int_equal(parse("(i}"), -EBADMSG);
	assert_int_equal(parse("a{sv)"), -EBADMSG);
}

static void test_dict_entries(void **state)
{
	assert_int_equal(parse("{sv}"), -EBADMSG);
	assert_int_equal(parse("({sv})"), -EBADMSG);
	assert_int_equal(parse("a{}"), -EBADMSG);
	assert_int_equal(parse("a{s}"), -EBADMSG);
	assert_int_equal(parse("a{svs}"), -EBADMSG);
	assert_int_equal(parse("a{vs}"), -EBADMSG);
	assert_int_equal(parse("a{ays}"), -EBADMSG);
	assert_int_equal(parse("a{(s)s}"), -EBADMSG);
	assert_int_equal(parse("a{{ss}s}"), -EBADMSG);
	assert_int_equal(parse("a{sa{sv}}"), 0);
	assert_int_equal(parse("a{s{sv}}"), -EBADMSG);
}

static void test_reserved_and_unknown_codes(void **state)
{
	int c;

	for (c = 0; c < 256; c++) {
		char sig = c;
		bool known = c && strchr("ybnqiuxtdsoghv", c);

		assert_int_equal(dbusp_sig_valid(&sig, 1), known);
		assert_int_equal(dbusp_sig_single(&sig, 1), known);
		assert_int_equal(dbusp_type_basic(sig), known && c != 'v');
		if (known)
			assert_int_not_equal(dbusp_type_align(sig), 0);
	}
}

static void test_nesting_ends_at_32_and_32(void **state)
{
	char sig[256];

	assert_int_equal(nested("a", 32, ""), 0);
	assert_int_equal(nested("a", 33, ""), -EMSGSIZE);
	assert_int_equal(nested("(", 32, ")"), 0);
	assert_int_equal(nested("(", 33, ")"), -EMSGSIZE);
	assert_int_equal(nested("a(", 32, ")"), 0);
	assert_int_equal(nested("a{y", 32, "}"), 0);
	assert_int_equal(nested("a{y(", 32, ")}"), 0);

	/* siblings do not add up */
	memset(sig, 0, sizeof(sig));
	memset(sig, 'a', 32);
	sig[32] = 'y';
	memset(sig + 33, 'a', 32);
	sig[65] = 'y';
	assert_int_equal(parse(sig), 0);
}

static void test_length_ends_at_255(void **state)
{
	char sig[257];

	memset(sig, 'y', sizeof(sig));
	assert_true(dbusp_sig_valid(sig, 255));
	assert_false(dbusp_sig_valid(sig, 256));
}

static void test_single_complete_type(void **state)
{
	assert_false(dbusp_sig_single("", 0));
	assert_false(dbusp_sig_single("ii", 2));
	assert_false(dbusp_sig_single("aii", 3));
	assert_true(dbusp_sig_single("(ii)", 4));
	assert_true(dbusp_sig_single("aa{sv}", 6));
}

static void test_spans_measure_every_complete_type(void **state)
{
	const char *sig = "a{s(uav)}ay(x)";
	struct dbusp_sigmap map;

	assert_int_equal(dbusp_sig_parse(&map, sig, strlen(sig)), 0);
	assert_int_equal(map.len, strlen(sig));
	assert_int_equal(map.span[0], 9);	/* a{s(uav)} */
	assert_int_equal(map.span[1], 8);	/* {s(uav)} */
	assert_int_equal(map.span[2], 1);	/* s */
	assert_int_equal(map.span[3], 5);	/* (uav) */
	assert_int_equal(map.span[5], 2);	/* av */
	assert_int_equal(map.span[6], 1);	/* v */
	assert_int_equal(map.span[9], 2);	/* ay */
	assert_int_equal(map.span[10], 1);	/* y */
	assert_int_equal(map.span[11], 3);	/* (x) */
}

static void test_alignment_and_size_table(void **state)
{
	static const struct {
		char type;
		unsigned int align, size;
	} rows[] = {
		{ 'y', 1, 1 }, { 'b', 4, 4 }, { 'n', 2, 2 }, { 'q', 2, 2 }, { 'i', 4, 4 },
		{ 'u', 4, 4 }, { 'x', 8, 8 }, { 't', 8, 8 }, { 'd', 8, 8 }, { 'h', 4, 4 },
		{ 's', 4, 0 }, { 'o', 4, 0 }, { 'g', 1, 0 }, { 'a', 4, 0 }, { '(', 8, 0 },
		{ '{', 8, 0 }, { 'v', 1, 0 }, { 'r', 0, 0 }, { 'e', 0, 0 }, { '\xff', 0, 0 },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(dbusp_type_align(rows[i].type), rows[i].align);
		assert_int_equal(dbusp_type_size(rows[i].type), rows[i].size);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists_of_complete_types),
		cmocka_unit_test(test_arrays_need_an_element_type),
		cmocka_unit_test(test_structs_balance_and_are_not_empty),
		cmocka_unit_test(test_dict_entries),
		cmocka_unit_test(test_reserved_and_unknown_codes),
		cmocka_unit_test(test_nesting_ends_at_32_and_32),
		cmocka_unit_test(test_length_ends_at_255),
		cmocka_unit_test(test_single_complete_type),
		cmocka_unit_test(test_spans_measure_every_complete_type),
		cmocka_unit_test(test_alignment_and_size_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
