// SPDX-License-Identifier: LGPL-2.1-or-later
/* D-Bus specification, "Server Addresses" and "Unix Domain Sockets". */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dbus/dbus.h>

#include "dbus-random.h"
#include "dbus/address.h"

static enum dbusp_why check(const char *list)
{
	enum dbusp_why why = DBUSP_WHY_NONE;
	int r = dbusp_address_check(dbusp_str(list), &why);

	assert_int_equal(r, why ? -EINVAL : 0);
	return why;
}

static struct dbusp_address first(const char *list)
{
	struct dbusp_str rest = dbusp_str(list);
	struct dbusp_address a;

	assert_int_equal(dbusp_address_next(&rest, &a, NULL), 0);
	return a;
}

static void assert_get(const struct dbusp_address *a, const char *key, const char *expect)
{
	char buf[100];
	size_t len;

	assert_int_equal(dbusp_address_get(a, key, buf, sizeof(buf), &len), 0);
	assert_int_equal(len, strlen(expect));
	assert_string_equal(buf, expect);
}

static void test_chains_are_walked_in_order(void **state)
{
	struct dbusp_str rest = DBUSP_STR("kdbus:path=/x;unix:path=/run/bus,guid=ab;tcp:;");
	static const char *const transports[] = { "kdbus", "unix", "tcp" };
	struct dbusp_address a;
	size_t i;

	for (i = 0; i < 3; i++) {
		assert_int_equal(dbusp_address_next(&rest, &a, NULL), 0);
		assert_true(dbusp_str_eq(a.transport, dbusp_str(transports[i])));
		if (i == 1) {
			assert_get(&a, "path", "/run/bus");
			assert_get(&a, "guid", "ab");
		}
	}
	assert_int_equal(rest.len, 0);
	assert_int_equal(dbusp_address_next(&rest, &a, NULL), -EINVAL);
}

static void test_syntax(void **state)
{
	static const struct {
		const char *list;
		enum dbusp_why why;
	} rows[] = {
		{ "", DBUSP_WHY_ADDRESS_EMPTY },
		{ ";", DBUSP_WHY_ADDRESS_COLON },
		{ "unix", DBUSP_WHY_ADDRESS_COLON },
		{ "unix:", DBUSP_WHY_NONE },
		{ "unix:path=/a", DBUSP_WHY_NONE },
		{ "unix:path=/a;", DBUSP_WHY_NONE },
		{ "unix:path=/a;;", DBUSP_WHY_ADDRESS_COLON },
		{ ";unix:path=/a", DBUSP_WHY_ADDRESS_COLON },
		{ "unix:path=/a,", DBUSP_WHY_NONE },
		{ "unix:,path=/a", DBUSP_WHY_ADDRESS_KEY },
		{ "unix:path=/a,,x=y", DBUSP_WHY_ADDRESS_KEY },
		{ "unix:path", DBUSP_WHY_ADDRESS_KEY },
		{ "unix:=/a", DBUSP_WHY_ADDRESS_KEY },
		{ "unix:path=", DBUSP_WHY_ADDRESS_VALUE },
		{ "unix:path=,x=y", DBUSP_WHY_ADDRESS_VALUE },
		{ "unix:path=%2fa%2Fb", DBUSP_WHY_NONE },
		{ "unix:path=%2", DBUSP_WHY_ADDRESS_ESCAPE },
		{ "unix:path=%", DBUSP_WHY_ADDRESS_ESCAPE },
		{ "unix:path=%2,x=y", DBUSP_WHY_ADDRESS_ESCAPE },
		{ "unix:path=%zz", DBUSP_WHY_ADDRESS_ESCAPE },
		{ "unix:path=%z0", DBUSP_WHY_ADDRESS_ESCAPE },
		{ "unix:path=%0z", DBUSP_WHY_ADDRESS_ESCAPE },
		{ "unix:path=/a b", DBUSP_WHY_ADDRESS_BYTE },
		{ "unix:path=/a=b", DBUSP_WHY_ADDRESS_BYTE },
		{ "unix:path=/a:b", DBUSP_WHY_ADDRESS_BYTE },
		{ "unix:path=/\xc3\xa4", DBUSP_WHY_ADDRESS_BYTE },
		{ "unix:path=-_/.*\\", DBUSP_WHY_NONE },
		{ "future:anything=goes", DBUSP_WHY_NONE },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (check(rows[i].list) != rows[i].why)
			fail_msg("%s: %s", rows[i].list, dbusp_why_str(check(rows[i].list)));
	}
}

static void test_values_are_unescaped(void **state)
{
	struct dbusp_address a = first("unix:path=/a%20b%2c%3B%e2%82%ac,path=/second");
	char buf[11];
	size_t len = 77, size;

	assert_get(&a, "path", "/a b,;\xe2\x82\xac");
	for (size = 0; size <= 9; size++)
		assert_int_equal(dbusp_address_get(&a, "path", buf, size, &len), -ENOBUFS);
	assert_int_equal(len, 77);
	assert_int_equal(dbusp_address_get(&a, "path", buf, 10, &len), 0);
	assert_int_equal(len, 9);
	assert_int_equal(dbusp_address_get(&a, "pat", buf, 10, &len), -ENOENT);
	a = first("unix:abstract=a%00b");
	assert_int_equal(dbusp_address_get(&a, "abstract", buf, sizeof(buf), &len), 0);
	assert_int_equal(len, 3);
	assert_memory_equal(buf, "a\0b", 4);
}

static void test_all_bytes_survive_escaping(void **state)
{
	char all[256], text[1000] = "unix:path=", back[257];
	struct dbusp_address a;
	size_t i, len, size;

	for (i = 0; i < 256; i++)
		all[i] = i;
	len = dbusp_address_escape(all, 256, NULL, 0);
	assert_int_equal(len, 68 + 3 * (256 - 68));
	assert_int_equal(dbusp_address_escape(all, 256, text + 10, sizeof(text) - 10), len);
	assert_int_equal(strlen(text + 10), len);
	a = first(text);
	assert_int_equal(dbusp_address_get(&a, "path", back, sizeof(back), &len), 0);
	assert_int_equal(len, 256);
	assert_memory_equal(back, all, 256);

	for (size = 1; size < 8; size++) {
		assert_int_equal(dbusp_address_escape("a b", 3, text, size), 5);
		assert_int_equal(strlen(text), size < 2 ? 0 : size < 5 ? 1 : size < 6 ? 4 : 5);
	}
}

static void assert_unix(const char *list, enum dbusp_unix_kind kind, const char *value)
{
	struct dbusp_address a = first(list);
	enum dbusp_unix_kind k;
	char buf[20];
	size_t len;

	assert_int_equal(dbusp_address_unix(&a, &k, buf, sizeof(buf), &len, NULL), 0);
	assert_int_equal(k, kind);
	assert_string_equal(buf, value);
	assert_int_equal(len, strlen(value));
	assert_int_equal(dbusp_address_unix(&a, &k, buf, strlen(value), &len, NULL), -ENOBUFS);
}

static void test_unix_names_exactly_one_thing(void **state)
{
	static const char *const bad[] = {
		"unix:",
		"unix:path=/a,dir=/b",
		"unix:guid=00",
		"unix:runtime=yes,abstract=x",
	};
	struct dbusp_address a;
	enum dbusp_unix_kind k;
	enum dbusp_why why;
	char buf[20];
	size_t i, len;

	assert_unix("unix:path=/a%20b,guid=00", DBUSP_UNIX_PATH, "/a b");
	assert_unix("unix:abstract=/x", DBUSP_UNIX_ABSTRACT, "/x");
	assert_unix("unix:dir=/x", DBUSP_UNIX_DIR, "/x");
	assert_unix("unix:tmpdir=/x", DBUSP_UNIX_TMPDIR, "/x");
	assert_unix("unix:runtime=yes", DBUSP_UNIX_RUNTIME, "yes");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		a = first(bad[i]);
		assert_int_equal(dbusp_address_unix(&a, &k, buf, sizeof(buf), &len, &why), -EINVAL);
		assert_int_equal(why, DBUSP_WHY_ADDRESS_KIND);
	}
	a = first("unix:runtime=no");
	assert_int_equal(dbusp_address_unix(&a, &k, buf, sizeof(buf), &len, &why), -EINVAL);
	assert_int_equal(why, DBUSP_WHY_ADDRESS_RUNTIME);
}

/* "UUIDs": 32 hex digits */
static void test_guid(void **state)
{
	static const char *const bad[] = {
		"unix:guid=0123456789abcdef0123456789abcde",
		"unix:guid=0123456789abcdef0123456789abcdef0",
		"unix:guid=0123456789abcdef0123456789abcdeg",
		"unix:guid=0123456789abcdef0123456789abcd%00f",
	};
	struct dbusp_address a = first("unix:path=/a,guid=0123456789abcdef0123456789ABCDEF");
	char guid[33];
	size_t i;

	assert_int_equal(dbusp_address_guid(&a, guid, NULL), 0);
	assert_string_equal(guid, "0123456789abcdef0123456789ABCDEF");
	a = first("unix:path=/a");
	assert_int_equal(dbusp_address_guid(&a, guid, NULL), -ENOENT);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		a = first(bad[i]);
		assert_int_equal(dbusp_address_guid(&a, guid, NULL), -EINVAL);
	}
}

/* Entry by entry, libdbus finds the same transport and the same value for "path". */
static void assert_same_entries(const char *text, DBusAddressEntry **theirs, int n)
{
	struct dbusp_str rest = dbusp_str(text);
	struct dbusp_address a;
	const char *value;
	char buf[300];
	size_t len;
	int i;

	for (i = 0; rest.len; i++) {
		assert_true(i < n);
		assert_int_equal(dbusp_address_next(&rest, &a, NULL), 0);
		assert_true(dbusp_str_eq(a.transport,
					 dbusp_str(dbus_address_entry_get_method(theirs[i]))));
		value = dbus_address_entry_get_value(theirs[i], "path");
		assert_int_equal(dbusp_address_get(&a, "path", buf, sizeof(buf), &len),
				 value ? 0 : -ENOENT);
		if (value)
			assert_string_equal(buf, value);
	}
	assert_int_equal(i, n);
}

static void test_libdbus_agrees(void **state)
{
	static const char *const pieces[] = {
		"unix", ":", "path", "=", "/a", ",", ";", "%2f", "x", "tcp:a=b", "unix:path=/a",
	};
	unsigned int accepted = 0, refused = 0;
	uint64_t rng = 6;
	int n, k;

	for (n = 0; n < 100000; n++) {
		DBusAddressEntry **entries = NULL;
		char text[300] = "";
		int n_entries = 0, theirs;

		for (k = random_below(&rng, 10); k; k--)
			strcat(text, pieces[random_below(&rng, 11)]);
		theirs = dbus_parse_address(text, &entries, &n_entries, NULL);
		/* libdbus looks at escaping when a value is asked for */
		if (check(text) != DBUSP_WHY_ADDRESS_BYTE)
			assert_int_equal(check(text) == DBUSP_WHY_NONE, theirs);
		if (check(text) == DBUSP_WHY_NONE)
			assert_same_entries(text, entries, n_entries);
		*(theirs ? &accepted : &refused) += 1;
		if (theirs)
			dbus_address_entries_free(entries);
	}
	assert_true(accepted > 1000 && refused > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chains_are_walked_in_order),
		cmocka_unit_test(test_syntax),
		cmocka_unit_test(test_values_are_unescaped),
		cmocka_unit_test(test_all_bytes_survive_escaping),
		cmocka_unit_test(test_unix_names_exactly_one_thing),
		cmocka_unit_test(test_guid),
		cmocka_unit_test(test_libdbus_agrees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
