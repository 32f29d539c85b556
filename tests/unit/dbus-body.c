// SPDX-License-Identifier: LGPL-2.1-or-later
/* D-Bus specification, "Marshaling (Wire Format)": checking and reading bodies. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dbus-random.h"
#include "dbus-raw.h"
#include "dbus/body.h"

/* Checks @len bytes as the body of a message with this signature; 0 or the reason. */
static enum dbusp_why check_fds(const char *sig, const void *body, size_t len, bool big,
				uint32_t n_fds)
{
	struct dbusp_header h = {
		.frame = { .big = big, .body_len = len },
		.signature = dbusp_str(sig),
		.n_fds = n_fds,
	};
	enum dbusp_why why = DBUSP_WHY_NONE;
	uint8_t *exact = malloc(len ? len : 1);
	int r;

	/* its own allocation, so that a sanitizer sees a read past the end */
	assert_non_null(exact);
	memcpy(exact, body, len);
	r = dbusp_body_check(&h, exact, &why);
	free(exact);
	assert_int_equal(r, why == DBUSP_WHY_NONE ? 0 : -EBADMSG);
	return why;
}

static enum dbusp_why check(const char *sig, const void *body, size_t len)
{
	return check_fds(sig, body, len, false, 0);
}

/* A literal, whose closing NUL is not part of it */
#define CHECK(sig, literal) check(sig, literal, sizeof(literal) - 1)

static void test_empty_body(void **state)
{
	assert_int_equal(CHECK("", ""), DBUSP_WHY_NONE);
	assert_int_equal(CHECK("", "\0"), DBUSP_WHY_TRAILING);
	assert_int_equal(CHECK("y", ""), DBUSP_WHY_TRUNCATED);
}

static void test_fixed_types_need_all_bytes_and_zero_padding(void **state)
{
	static const char types[] = "ybnqiuxtd";
	static const char zero[32];
	char sig[3] = "y";
	size_t i, len, full;

	for (i = 0; types[i]; i++) {
		sig[1] = types[i];
		full = dbusp_type_align(types[i]) + dbusp_type_size(types[i]);
		for (len = 0; len < full; len++)
			assert_int_equal(check(sig, zero, len), DBUSP_WHY_TRUNCATED);
		assert_int_equal(check(sig, zero, full), DBUSP_WHY_NONE);
		assert_int_equal(check(sig, zero, full + 1), DBUSP_WHY_TRAILING);
	}
	assert_int_equal(CHECK("yu", "\7\0\0\0\1\0\0\0"), DBUSP_WHY_NONE);
	assert_int_equal(CHECK("yu", "\7\0\0\1\1\0\0\0"), DBUSP_WHY_PADDING);
	assert_int_equal(CHECK("yt", "\7\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0"), DBUSP_WHY_PADDING);
}

static void test_booleans_are_0_or_1(void **state)
{
	assert_int_equal(CHECK("b", "\1\0\0\0"), DBUSP_WHY_NONE);
	assert_int_equal(CHECK("b", "\2\0\0\0"), DBUSP_WHY_BOOLEAN);
	assert_int_equal(CHECK("b", "\0\0\0\1"), DBUSP_WHY_BOOLEAN);
	assert_int_equal(check_fds("b", "\0\0\0\1", 4, true, 0), DBUSP_WHY_NONE);
	assert_int_equal(check_fds("b", "\1\0\0\0", 4, true, 0), DBUSP_WHY_BOOLEAN);
	assert_int_equal(CHECK("ab", "\10\0\0\0\1\0\0\0\2\0\0\0"), DBUSP_WHY_BOOLEAN);
	assert_int_equal(CHECK("ab", "\10\0\0\0\1\0\0\0\0\0\0\0"), DBUSP_WHY_NONE);
}

static void test_descriptor_indices_are_below_their_number(void **state)
{
	assert_int_equal(check_fds("h", "\0\0\0\0", 4, false, 0), DBUSP_WHY_FD_INDEX);
	assert_int_equal(check_fds("h", "\0\0\0\0", 4, false, 1), DBUSP_WHY_NONE);
	assert_int_equal(check_fds("h", "\0\0\0\1", 4, true, 1), DBUSP_WHY_FD_INDEX);
	assert_int_equal(check_fds("ah", "\4\0\0\0\2\0\0\0", 8, false, 2), DBUSP_WHY_FD_INDEX);
	assert_int_equal(check_fds("ah", "\4\0\0\0\1\0\0\0", 8, false, 2), DBUSP_WHY_NONE);
}

static void test_strings(void **state)
{
	assert_int_equal(CHECK("s", "\0\0\0\0\0"), DBUSP_WHY_NONE);
	assert_int_equal(CHECK("s", "\2\0\0\0ab\0"), DBUSP_WHY_NONE);
	assert_int_equal(CHECK("s", "\2\0\0\0ab"), DBUSP_WHY_TRUNCATED);
	assert_int_equal(CHECK("s", "\2\0\0\0abc"), DBUSP_WHY_STRING);
	assert_int_equal(CHECK("s", "\2\0\0\0a\0\0"), DBUSP_WHY_STRING);
	assert_int_equal(CHECK("s", "\2\0\0\0\xc3\x28\0"), DBUSP_WHY_STRING);
	assert_int_equal(CHECK("s", "\377\377\377\377ab\0"), DBUSP_WHY_TRUNCATED);
	assert_int_equal(CHECK("s", "\2\0\0\0ab\0\0"), DBUSP_WHY_TRAILING);
	assert_int_equal(CHECK("o", "\2\0\0\0/a\0"), DBUSP_WHY_NONE);
	assert_int_equal(CHECK("o", "\2\0\0\0a/\0"), DBUSP_WHY_PATH);
	assert_int_equal(CHECK("o", "\0\0\0\0\0"), DBUSP_WHY_PATH);
	assert_int_equal(CHECK("g", "\2ai\0"), DBUSP_WHY_NONE);
	assert_int_equal(CHECK("g", "\0\0"), DBUSP_WHY_NONE);
	assert_int_equal(CHECK("g", "\1a\0"), DBUSP_WHY_SIGNATURE);
	assert_int_equal(CHECK("g", "\2ii"), DBUSP_WHY_TRUNCATED);
}

static void test_arrays(void **state)
{
	assert_int_equal(CHECK("ay", "\0\0\0\0"), DBUSP_WHY_NONE);
	assert_int_equal(CHECK("ay", "\3\0\0\0abc"), DBUSP_WHY_NONE);
	assert_int_equal(CHECK("ay", "\3\0\0\0ab"), DBUSP_WHY_TRUNCATED);
	assert_int_equal(CHECK("aq", "\3\0\0\0abc"), DBUSP_WHY_ARRAY_LENGTH);
	assert_int_equal(CHECK("as", "\6\0\0\0\1\0\0\0a\0"), DBUSP_WHY_NONE);
	/* the first element's padding is there even without elements, and not counted */
	assert_int_equal(CHECK("at", "\0\0\0\0"), DBUSP_WHY_TRUNCATED);
	assert_int_equal(CHECK("at", "\0\0\0\0\0\0\0\0"), DBUSP_WHY_NONE);
	assert_int_equal(CHECK("at", "\0\0\0\0\0\0\0\1"), DBUSP_WHY_PADDING);
	assert_int_equal(CHECK("a(y)", "\1\0\0\0\0\0\0\0x"), DBUSP_WHY_NONE);
	assert_int_equal(CHECK("a(y)", "\11\0\0\0\0\0\0\0x\0\0\0\0\0\0\0y"), DBUSP_WHY_NONE);
	/* an element must not reach over the end, nor padding be counted without an element */
	assert_int_equal(CHECK("as", "\5\0\0\0\1\0\0\0a\0"), DBUSP_WHY_TRUNCATED);
	assert_int_equal(CHECK("a(y)", "\10\0\0\0\0\0\0\0x\0\0\0\0\0\0\0"), DBUSP_WHY_TRUNCATED);
}

static void test_arrays_end_at_64_mib(void **state)
{
	const uint32_t max = 64 << 20;
	uint8_t *body = calloc(1, max + 8);

	assert_non_null(body);
	dbusp_set32(body, max, false);
	assert_int_equal(check("ay", body, max + 4), DBUSP_WHY_NONE);
	dbusp_set32(body, max + 1, false);
	assert_int_equal(check("ay", body, max + 5), DBUSP_WHY_ARRAY_TOO_BIG);
	free(body);
}

static void test_structs_and_dict_entries_align_to_8(void **state)
{
	assert_int_equal(CHECK("y(y)", "a\0\0\0\0\0\0\0b"), DBUSP_WHY_NONE);
	assert_int_equal(CHECK("y(y)", "a\0\0\0\1\0\0\0b"), DBUSP_WHY_PADDING);
	assert_int_equal(CHECK("a{yy}", "\2\0\0\0\0\0\0\0ab"), DBUSP_WHY_NONE);
	assert_int_equal(CHECK("a{yy}", "\1\0\0\0\0\0\0\0ab"), DBUSP_WHY_TRUNCATED);
	/* duplicate keys pass */
	assert_int_equal(CHECK("a{yy}", "\12\0\0\0\0\0\0\0ab\0\0\0\0\0\0ab"), DBUSP_WHY_NONE);
}

static void test_variants_hold_one_complete_type(void **state)
{
	assert_int_equal(CHECK("v", "\1y\0x"), DBUSP_WHY_NONE);
	assert_int_equal(CHECK("v", "\1u\0\0\1\0\0\0"), DBUSP_WHY_NONE);
	assert_int_equal(CHECK("v", "\1u\0\1\1\0\0\0"), DBUSP_WHY_PADDING);
	assert_int_equal(CHECK("v", "\0\0"), DBUSP_WHY_VARIANT);
	assert_int_equal(CHECK("v", "\2yy\0ab"), DBUSP_WHY_VARIANT);
	assert_int_equal(CHECK("v", "\1z\0a"), DBUSP_WHY_SIGNATURE);
	assert_int_equal(CHECK("v", "\1y\0"), DBUSP_WHY_TRUNCATED);
	assert_int_equal(CHECK("v", "\1y"), DBUSP_WHY_TRUNCATED);
	assert_int_equal(CHECK("v", ""), DBUSP_WHY_TRUNCATED);
}

/* @n variants around a byte */
static enum dbusp_why nested_variants(unsigned int n)
{
	uint8_t body[512];
	size_t len = 0;
	unsigned int i;

	for (i = 0; i < n; i++) {
		memcpy(body + len, i + 1 < n ? "\1v\0" : "\1y\0", 3);
		len += 3;
	}
	body[len++] = 'x';
	return check("v", body, len);
}

static void test_64_containers_at_most(void **state)
{
	assert_int_equal(nested_variants(64), DBUSP_WHY_NONE);
	assert_int_equal(nested_variants(65), DBUSP_WHY_TOO_DEEP);
	assert_int_equal(nested_variants(150), DBUSP_WHY_TOO_DEEP);
}

/* A long element type is measured once, not once per element. */
static void test_many_tiny_elements_of_a_long_type(void **state)
{
	const uint32_t n = 4 << 20;
	uint8_t *body = calloc(1, 8 + 16 * n);
	char sig[200] = "a(ya(";
	uint32_t i;

	memset(sig + 5, 'y', 150);
	strcpy(sig + 155, "))");
	assert_non_null(body);
	dbusp_set32(body, 16 * n, false);
	for (i = 0; i < n; i++)
		body[8 + 16 * i] = 1;
	assert_int_equal(check(sig, body, 8 + 16 * n), DBUSP_WHY_NONE);
	free(body);
}

/* Compares what a reader finds with what is told. */
static void see_fixed(void *userdata, char type, uint64_t value)
{
	uint64_t v8 = 0;
	uint32_t v4;
	uint16_t v2;
	uint8_t v1;
	const size_t size = dbusp_type_size(type);
	void *out = size == 8 ? (void *)&v8 :
		    size == 4 ? (void *)&v4 :
		    size == 2 ? (void *)&v2 :
				(void *)&v1;

	assert_int_equal(dbusp_reader_type(userdata), type);
	assert_int_equal(dbusp_read_fixed(userdata, type == 'y' ? 'u' : 'y', out), -ENOMSG);
	assert_int_equal(dbusp_read_fixed(userdata, type, out), 0);
	assert_int_equal(size == 8 ? v8 : size == 4 ? v4 : size == 2 ? v2 : v1, value);
}

static void see_text(void *userdata, char type, const char *value)
{
	struct dbusp_str s;

	assert_int_equal(dbusp_read_text(userdata, type, &s), 0);
	assert_int_equal(s.len, strlen(value));
	assert_string_equal(s.s, value);
}

static void see_open(void *userdata, char kind, const char *inside)
{
	struct dbusp_reader *reader = userdata;

	assert_int_equal(dbusp_reader_enter(reader, kind == '(' ? 'a' : '('), -ENOMSG);
	assert_int_equal(dbusp_reader_enter(reader, kind), 0);
	if (kind == 'v')
		assert_int_equal(dbusp_reader_type(reader), inside[0]);
}

static void see_close(void *userdata)
{
	assert_int_equal(dbusp_reader_type(userdata), 0);
	assert_int_equal(dbusp_reader_skip(userdata), -ENOMSG);
	assert_int_equal(dbusp_reader_exit(userdata), 0);
}

static void test_what_is_marshalled_reads_back_equal(void **state)
{
	struct dbusp_reader reader;
	const struct listener compare = {
		.fixed = see_fixed,
		.text = see_text,
		.open = see_open,
		.close = see_close,
		.userdata = &reader,
	};
	struct random_message m;
	struct dbusp_header h;
	uint64_t seed;
	uint8_t *msg;
	size_t len;

	for (seed = 0; seed < 4000; seed++) {
		random_describe(seed, &m);
		msg = random_marshal(&m, seed & 1, &len);
		assert_int_equal(dbusp_header_parse(&h, msg, len, len, NULL), 0);
		assert_int_equal(h.frame.total_len, len);
		assert_int_equal(dbusp_body_check(&h, msg + h.frame.header_len, NULL), 0);
		assert_int_equal(h.frame.type, m.desc.type);
		assert_int_equal(h.frame.flags, m.desc.flags);
		assert_int_equal(h.frame.serial, m.desc.serial);
		assert_int_equal(h.reply_serial, m.desc.reply_serial);
		assert_true(dbusp_str_eq(h.path, m.desc.path));
		assert_true(dbusp_str_eq(h.interface, m.desc.interface));
		assert_true(dbusp_str_eq(h.member, m.desc.member));
		assert_true(dbusp_str_eq(h.error_name, m.desc.error_name));
		assert_true(dbusp_str_eq(h.destination, m.desc.destination));
		assert_true(dbusp_str_eq(h.sender, m.desc.sender));
		assert_true(dbusp_str_eq(h.signature, dbusp_str(m.sig)));
		dbusp_reader_init(&reader, &h, msg + h.frame.header_len);
		random_tell(&m, &compare);
		assert_int_equal(dbusp_reader_type(&reader), 0);
		free(msg);
	}
}

/* Skipping values and leaving containers early meets the same end as reading everything. */
static void test_skipping_ends_where_reading_ends(void **state)
{
	struct dbusp_reader reader;
	struct random_message m;
	struct dbusp_header h;
	uint64_t seed;
	uint8_t *msg;
	size_t len;
	char type;

	for (seed = 0; seed < 4000; seed++) {
		random_describe(seed, &m);
		msg = random_marshal(&m, seed & 1, &len);
		assert_int_equal(dbusp_header_parse(&h, msg, len, len, NULL), 0);
		dbusp_reader_init(&reader, &h, msg + h.frame.header_len);
		while ((type = dbusp_reader_type(&reader))) {
			if (seed & 2 && strchr("a(v", type)) {
				assert_int_equal(dbusp_reader_enter(&reader, type), 0);
				if (seed & 4)
					dbusp_reader_skip(&reader);
				assert_int_equal(dbusp_reader_exit(&reader), 0);
			} else {
				assert_int_equal(dbusp_reader_skip(&reader), 0);
			}
		}
		assert_int_equal(reader.cursor.pos, h.frame.body_len);
		free(msg);
	}
}

/* On a body nobody checked, a reader that visits everything agrees with the checker. */
static int read_all(struct dbusp_reader *reader)
{
	struct dbusp_str s;
	uint64_t v;
	char type;
	int r = 0;

	while (r == 0 && (type = dbusp_reader_type(reader))) {
		if (dbusp_type_size(type)) {
			r = dbusp_read_fixed(reader, type, &v);
		} else if (dbusp_type_basic(type)) {
			r = dbusp_read_text(reader, type, &s);
		} else {
			r = dbusp_reader_enter(reader, type);
			if (r == 0)
				r = read_all(reader);
			if (r == 0)
				r = dbusp_reader_exit(reader);
		}
	}
	return r;
}

static void test_reader_and_checker_agree_on_damaged_bodies(void **state)
{
	struct dbusp_reader reader;
	struct random_message m;
	struct dbusp_header h;
	uint64_t seed, rng = 99;
	unsigned int accepted = 0, refused = 0;
	uint8_t *msg, *body;
	size_t len;
	int r, i;

	for (seed = 0; seed < 3000; seed++) {
		random_describe(seed, &m);
		msg = random_marshal(&m, seed & 1, &len);
		assert_int_equal(dbusp_header_parse(&h, msg, len, len, NULL), 0);
		body = msg + h.frame.header_len;
		for (i = 0; h.frame.body_len && i < 10; i++) {
			uint8_t *at = body + random_below(&rng, h.frame.body_len), old = *at;

			*at = random_below(&rng, 3) ? random_below(&rng, 256) : *at + 1;
			dbusp_reader_init(&reader, &h, body);
			r = read_all(&reader);
			if (r == 0 && reader.cursor.pos != h.frame.body_len)
				r = -EBADMSG;
			assert_int_equal(r, dbusp_body_check(&h, body, NULL));
			*(r ? &refused : &accepted) += 1;
			*at = old;
		}
		free(msg);
	}
	assert_true(accepted > 1000 && refused > 1000);
}

static void test_reader_stays_after_an_error(void **state)
{
	static const uint8_t body[] = "\1\0\0\0\2\0\0\0\3\0\0\0/x/\0";
	struct dbusp_header h = {
		.frame = { .body_len = sizeof(body) - 1 },
		.signature = DBUSP_STR("ubo"),
	};
	struct dbusp_reader reader;
	struct dbusp_str s = { NULL, 0 };
	uint32_t v = 0;

	dbusp_reader_init(&reader, &h, body);
	assert_int_equal(dbusp_reader_exit(&reader), -EINVAL);
	assert_int_equal(dbusp_read_fixed(&reader, 's', &v), -EINVAL);
	assert_int_equal(dbusp_read_text(&reader, 'u', &s), -EINVAL);
	assert_int_equal(dbusp_reader_enter(&reader, 'u'), -EINVAL);
	assert_int_equal(dbusp_reader_enter(&reader, ')'), -EINVAL);
	assert_int_equal(dbusp_read_fixed(&reader, 'u', &v), 0);
	assert_int_equal(v, 1);
	for (v = 0; v < 3; v++) {
		assert_int_equal(dbusp_read_fixed(&reader, 'b', &(uint32_t){ 0 }), -EBADMSG);
		assert_int_equal(dbusp_reader_why(&reader), DBUSP_WHY_BOOLEAN);
		assert_int_equal(dbusp_reader_skip(&reader), -EBADMSG);
		assert_int_equal(dbusp_reader_type(&reader), 'b');
	}
}

static void test_every_reason_has_words(void **state)
{
	int why;

	for (why = 0; why < _DBUSP_WHY_MAX; why++)
		assert_string_not_equal(dbusp_why_str(why), "unknown reason");
	assert_string_equal(dbusp_why_str(_DBUSP_WHY_MAX), "unknown reason");
	assert_string_equal(dbusp_why_str(-1), "unknown reason");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_body),
		cmocka_unit_test(test_fixed_types_need_all_bytes_and_zero_padding),
		cmocka_unit_test(test_booleans_are_0_or_1),
		cmocka_unit_test(test_descriptor_indices_are_below_their_number),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_arrays),
		cmocka_unit_test(test_arrays_end_at_64_mib),
		cmocka_unit_test(test_structs_and_dict_entries_align_to_8),
		cmocka_unit_test(test_variants_hold_one_complete_type),
		cmocka_unit_test(test_64_containers_at_most),
		cmocka_unit_test(test_many_tiny_elements_of_a_long_type),
		cmocka_unit_test(test_what_is_marshalled_reads_back_equal),
		cmocka_unit_test(test_skipping_ends_where_reading_ends),
		cmocka_unit_test(test_reader_and_checker_agree_on_damaged_bodies),
		cmocka_unit_test(test_reader_stays_after_an_error),
		cmocka_unit_test(test_every_reason_has_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
