// SPDX-License-Identifier: LGPL-2.1-or-later
/* The constants and structures of uapi/kdbus.h against the tables of spec §2 to §6.0. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "kdbus.h"

static int failures;

static void expect(const char *what, unsigned long long is, unsigned long long should)
{
	if (is == should)
		return;
	failures++;
	fprintf(stderr, "%s is 0x%llx, spec says 0x%llx\n", what, is, should);
}

#define NOTHING(...)
#define MEMBER(_type, _member) (((_type *)0)->_member)

static void test_values(void **state)
{
	failures = 0;
#define VALUE(_name, _value) expect(#_name, (_name), (_value));
#define SIZE NOTHING
#define FIELD NOTHING
#define TAIL NOTHING
#include "table.h"
#undef VALUE
#undef SIZE
#undef FIELD
#undef TAIL
	assert_int_equal(failures, 0);
}

static void test_layouts(void **state)
{
	failures = 0;
#define VALUE NOTHING
#define SIZE(_type, _bytes)                                                                        \
	expect("sizeof(" #_type ")", sizeof(_type), (_bytes));                                     \
	expect("alignment of " #_type, __alignof__(_type), 8);
#define FIELD(_type, _member, _offset, _bytes)                                                     \
	expect("offset of " #_type "." #_member, offsetof(_type, _member), (_offset));             \
	expect("size of " #_type "." #_member, sizeof(MEMBER(_type, _member)), (_bytes));
#define TAIL(_type, _member, _offset, _bytes)                                                      \
	expect("offset of " #_type "." #_member, offsetof(_type, _member), (_offset));             \
	expect("unit of " #_type "." #_member, sizeof(MEMBER(_type, _member)[0]), (_bytes));
#include "table.h"
#undef VALUE
#undef SIZE
#undef FIELD
#undef TAIL
	assert_int_equal(failures, 0);
}

/* §4.9: item type = 0x1000 + bit number */
static void test_attach_bits(void **state)
{
	assert_int_equal(KDBUS_ITEM_CONN_DESCRIPTION - _KDBUS_ITEM_ATTACH_BASE, 13);
	assert_int_equal(1 << (KDBUS_ITEM_CONN_DESCRIPTION - _KDBUS_ITEM_ATTACH_BASE),
			 KDBUS_ATTACH_CONN_DESCRIPTION);
	assert_int_equal(1 << (KDBUS_ITEM_OWNED_NAME - _KDBUS_ITEM_ATTACH_BASE),
			 KDBUS_ATTACH_NAMES);
	assert_int_equal(1 << (KDBUS_ITEM_CAPS - _KDBUS_ITEM_ATTACH_BASE), KDBUS_ATTACH_CAPS);
}

/* Appendix B.1 and B.6, with the structures as a program would use them */
static void test_worked_layouts(void **state)
{
	assert_int_equal(offsetof(struct kdbus_cmd, items) + 32 +
				 offsetof(struct kdbus_item, str) + sizeof("1000-demo"),
			 82);
	assert_int_equal(offsetof(struct kdbus_cmd_match, items) +
				 offsetof(struct kdbus_item, name_change.name) + sizeof("x.y"),
			 84);
	assert_int_equal(offsetof(struct kdbus_cmd_send, items) +
				 offsetof(struct kdbus_item, fds) + sizeof(int),
			 76);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_attach_bits),
		cmocka_unit_test(test_worked_layouts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
