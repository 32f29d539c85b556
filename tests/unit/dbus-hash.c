// SPDX-License-Identifier: LGPL-2.1-or-later
/* SipHash-1-3: what others compute, and hashes of the beginnings of a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dbus/hash.h"

static uint64_t hash(const struct dbusp_hash_key *key, const char *text)
{
	return dbusp_hash_of(key, text, strlen(text));
}

/* The bytes 0 to 15 are the key, as in the paper: Rust's library tests itself with these. */
static void test_like_rust(void **state)
{
	static const struct dbusp_hash_key key = { { 0x0706050403020100, 0x0f0e0d0c0b0a0908 } };

	assert_true(dbusp_hash_of(&key, "", 0) == 0xabac0158050fc4dc);
	assert_true(dbusp_hash_of(&key, "\0", 1) == 0xc9f49bf37d57ca93);
}

/* What CPython says with PYTHONHASHSEED=0, for which the key is 0 */
static void test_like_python(void **state)
{
	static const struct dbusp_hash_key key = { { 0, 0 } };

	assert_true(hash(&key, "a") == 0x407448d2b89b1813);
	assert_true(hash(&key, "abcdefg") == 0x6db12aae9070f506);
	assert_true(hash(&key, "abcdefgh") == 0x3f7b849c0b8e35ea);
	assert_true(hash(&key, "org.freedesktop.DBus.Properties") == 0x0bbe7bf6bb8a50ae);
}

/* In whatever pieces a text comes, and whoever asked for the hash of a part of it before */
static void test_in_pieces(void **state)
{
	static const struct dbusp_hash_key key = { { 1, 2 } };
	static const char text[] = "/org/freedesktop/DBus/and/so/on";
	struct dbusp_hash h;
	size_t piece, i, n;

	for (piece = 1; piece < sizeof(text); piece++) {
		dbusp_hash_begin(&h, &key);
		for (i = 0; i < sizeof(text) - 1; i += n) {
			n = sizeof(text) - 1 - i < piece ? sizeof(text) - 1 - i : piece;
			assert_true(dbusp_hash_end(&h) == dbusp_hash_of(&key, text, i));
			dbusp_hash_add(&h, text + i, n);
		}
		assert_true(dbusp_hash_end(&h) == hash(&key, text));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_like_rust),
		cmocka_unit_test(test_like_python),
		cmocka_unit_test(test_in_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
