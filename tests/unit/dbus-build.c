// SPDX-License-Identifier: LGPL-2.1-or-later
/* Building messages: what would be invalid is refused when it is put in, errors stick. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dbus/body.h"
#include "dbus/build.h"

static struct dbusp_desc signal_desc(const char *sig)
{
	return (struct dbusp_desc){
		.type = DBUSP_SIGNAL,
		.serial = 1,
		.path = DBUSP_STR("/a"),
		.interface = DBUSP_STR("a.b"),
		.member = DBUSP_STR("C"),
		.signature = dbusp_str(sig),
	};
}

static void begin(struct dbusp_build *b, const char *sig)
{
	const struct dbusp_desc desc = signal_desc(sig);

	assert_int_equal(dbusp_build_begin(b, NULL, &desc), 0);
}

/* The error sticks and the end reports it. */
static void assert_stuck(struct dbusp_build *b, int err)
{
	uint8_t *msg = NULL;
	size_t len = 5;

	assert_int_equal(dbusp_put_u32(b, 1), err);
	assert_int_equal(dbusp_put_string(b, "x"), err);
	assert_int_equal(dbusp_open(b, 'a', NULL), err);
	assert_int_equal(dbusp_close(b), err);
	assert_int_equal(dbusp_build_end(b, &msg, &len), err);
	assert_null(msg);
	assert_int_equal(len, 5);
}

static void test_bytes_of_a_known_message(void **state)
{
	/* the fields end with the signature's NUL, one byte of padding follows */
	static const uint8_t expect[] =
		"l\4\0\1\4\0\0\0\1\0\0\0\67\0\0\0"
		"\1\1o\0\2\0\0\0/a\0\0\0\0\0\0"
		"\2\1s\0\3\0\0\0a.b\0\0\0\0\0"
		"\3\1s\0\1\0\0\0C\0\0\0\0\0\0\0"
		"\10\1g\0\1u\0\0"
		"\7\0\0\0";
	struct dbusp_build b;
	uint8_t *msg;
	size_t len;

	begin(&b, "u");
	assert_int_equal(dbusp_put_u32(&b, 7), 0);
	assert_int_equal(dbusp_build_end(&b, &msg, &len), 0);
	assert_int_equal(len, sizeof(expect) - 1);
	assert_memory_equal(msg, expect, len);
	free(msg);
}

static void test_headers_that_break_a_rule_are_refused(void **state)
{
	static const struct dbusp_desc rows[] = {
		{ .type = 0, .serial = 1 },
		{ .type = 200, .serial = 0 },
		{ .type = DBUSP_SIGNAL, .serial = 1 },
		{ .type = 200, .serial = 1, .path = { "a", 1 } },
		{ .type = 200, .serial = 1, .path = { "", 0 } },
		{ .type = 200, .serial = 1, .interface = { "a", 1 } },
		{ .type = 200, .serial = 1, .member = { "a.b", 3 } },
		{ .type = 200, .serial = 1, .destination = { "a", 1 } },
		{ .type = 200, .serial = 1, .sender = { ":", 1 } },
		{ .type = 200, .serial = 1, .error_name = { "a", 1 } },
		{ .type = 200, .serial = 1, .signature = { "a", 1 } },
		{ .type = 200, .serial = 1, .interface = { "org.freedesktop.DBus.Local", 26 } },
		{ .type = DBUSP_METHOD_RETURN, .serial = 1 },
	};
	struct dbusp_build b;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(dbusp_build_begin(&b, NULL, &rows[i]), -EINVAL);
		assert_stuck(&b, -EINVAL);
	}
}

static void test_a_signature_longer_than_255_is_refused(void **state)
{
	char sig[257];
	struct dbusp_desc desc;
	struct dbusp_build b;

	memset(sig, 'y', 256);
	sig[256] = 0;
	desc = signal_desc(sig);
	assert_int_equal(dbusp_build_begin(&b, NULL, &desc), -EINVAL);
	dbusp_build_abort(&b);
	sig[255] = 0;
	desc = signal_desc(sig);
	assert_int_equal(dbusp_build_begin(&b, NULL, &desc), 0);
	dbusp_build_abort(&b);
	dbusp_build_abort(&b);
}

static void test_values_follow_the_signature(void **state)
{
	struct dbusp_build b;
	uint8_t *msg;
	size_t len;

	begin(&b, "us");
	assert_int_equal(dbusp_put_string(&b, "x"), -EINVAL);
	assert_stuck(&b, -EINVAL);

	begin(&b, "u");
	assert_int_equal(dbusp_put_u32(&b, 1), 0);
	assert_int_equal(dbusp_put_u32(&b, 1), -EINVAL);
	assert_stuck(&b, -EINVAL);

	begin(&b, "u");
	assert_int_equal(dbusp_build_end(&b, &msg, &len), -EINVAL);

	begin(&b, "(uu)");
	assert_int_equal(dbusp_open(&b, '(', NULL), 0);
	assert_int_equal(dbusp_put_u32(&b, 1), 0);
	assert_int_equal(dbusp_close(&b), -EINVAL);
	assert_stuck(&b, -EINVAL);

	begin(&b, "au");
	assert_int_equal(dbusp_open(&b, 'a', NULL), 0);
	assert_int_equal(dbusp_build_end(&b, &msg, &len), -EINVAL);

	begin(&b, "");
	assert_int_equal(dbusp_close(&b), -EINVAL);
	assert_stuck(&b, -EINVAL);
}

static void test_values_are_validated(void **state)
{
	static const struct {
		char type;
		const char *text;
	} rows[] = { { 's', "\xff" }, { 'o', "a" }, { 'o', "" }, { 'g', "a" }, { 'y', "a" } };
	struct dbusp_build b;
	char sig[2] = "";
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sig[0] = rows[i].type;
		begin(&b, sig);
		assert_int_equal(dbusp_put_text(&b, rows[i].type, dbusp_str(rows[i].text)),
				 -EINVAL);
		assert_stuck(&b, -EINVAL);
	}
	begin(&b, "b");
	assert_int_equal(dbusp_put_fixed(&b, 'b', &(uint32_t){ 2 }), -EINVAL);
	assert_stuck(&b, -EINVAL);
	begin(&b, "h");
	assert_int_equal(dbusp_put_fixed(&b, 'h', &(uint32_t){ 0 }), -EINVAL);
	assert_stuck(&b, -EINVAL);
	begin(&b, "s");
	assert_int_equal(dbusp_put_text(&b, 's', (struct dbusp_str){ "a\0b", 3 }), -EINVAL);
	assert_stuck(&b, -EINVAL);
}

static void test_variants_need_one_complete_type(void **state)
{
	static const char *const rows[] = { "", "uu", "a", "{sv}", NULL };
	struct dbusp_build b;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(&b, "v");
		assert_int_equal(dbusp_open(&b, 'v', rows[i]), -EINVAL);
		assert_stuck(&b, -EINVAL);
	}
}

static void test_nesting_ends_at_64(void **state)
{
	struct dbusp_build b;
	int i;

	begin(&b, "v");
	for (i = 0; i < 64; i++)
		assert_int_equal(dbusp_open(&b, 'v', "v"), 0);
	assert_int_equal(dbusp_open(&b, 'v', "v"), -EINVAL);
	assert_stuck(&b, -EINVAL);
}

static void test_sizes_end_at_the_limits_of_the_format(void **state)
{
	const size_t max = 64 << 20;
	uint8_t *data = calloc(1, max + 1), *msg;
	struct dbusp_header h;
	struct dbusp_build b;
	size_t len;

	begin(&b, "ay");
	assert_int_equal(dbusp_put_bytes(&b, data, max), 0);
	assert_int_equal(dbusp_build_end(&b, &msg, &len), 0);
	assert_int_equal(dbusp_header_parse(&h, msg, len, len, NULL), 0);
	assert_int_equal(dbusp_body_check(&h, msg + h.frame.header_len, NULL), 0);
	free(msg);

	begin(&b, "ay");
	assert_int_equal(dbusp_put_bytes(&b, data, max + 1), -EMSGSIZE);
	assert_stuck(&b, -EMSGSIZE);

	begin(&b, "ayay");
	assert_int_equal(dbusp_put_bytes(&b, data, max), 0);
	assert_int_equal(dbusp_put_bytes(&b, data, max), -EMSGSIZE);
	assert_stuck(&b, -EMSGSIZE);
	free(data);
}

/* Memory that runs out at the @left-th request. */
struct scarce {
	int left;
	int live;
};

static void *scarce_resize(void *userdata, void *old, size_t size)
{
	struct scarce *s = userdata;

	if (!s->left--)
		return NULL;
	s->live += !old;
	return realloc(old, size);
}

static void scarce_release(void *userdata, void *old)
{
	struct scarce *s = userdata;

	s->live--;
	free(old);
}

static int build_with(const struct dbusp_alloc *alloc, uint8_t **ret, size_t *ret_len)
{
	const struct dbusp_desc desc = signal_desc("a{sv}ay");
	char key[200];
	struct dbusp_build b;
	int i;

	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = 0;
	dbusp_build_begin(&b, alloc, &desc);
	dbusp_open(&b, 'a', NULL);
	for (i = 0; i < 100; i++) {
		dbusp_open(&b, '{', NULL);
		dbusp_put_string(&b, key);
		dbusp_open(&b, 'v', "b");
		dbusp_put_bool(&b, true);
		dbusp_close(&b);
		dbusp_close(&b);
	}
	dbusp_close(&b);
	dbusp_put_bytes(&b, key, 7);
	return dbusp_build_end(&b, ret, ret_len);
}

static void test_each_allocation_fails_once_in_turn(void **state)
{
	struct scarce scarce = { 0 };
	const struct dbusp_alloc alloc = { scarce_resize, scarce_release, &scarce };
	uint8_t *msg, *whole;
	size_t len, whole_len;
	int n, r = -ENOMEM;

	assert_int_equal(build_with(NULL, &whole, &whole_len), 0);
	for (n = 0; r == -ENOMEM; n++) {
		scarce.left = n;
		msg = NULL;
		r = build_with(&alloc, &msg, &len);
		assert_int_equal(scarce.live, r == 0);
		assert_true((r == 0) == (msg != NULL));
	}
	assert_int_equal(r, 0);
	assert_true(n > 4);
	assert_int_equal(len, whole_len);
	assert_memory_equal(msg, whole, len);
	scarce_release(&scarce, msg);
	free(whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_of_a_known_message),
		cmocka_unit_test(test_headers_that_break_a_rule_are_refused),
		cmocka_unit_test(test_a_signature_longer_than_255_is_refused),
		cmocka_unit_test(test_values_follow_the_signature),
		cmocka_unit_test(test_values_are_validated),
		cmocka_unit_test(test_variants_need_one_complete_type),
		cmocka_unit_test(test_nesting_ends_at_64),
		cmocka_unit_test(test_sizes_end_at_the_limits_of_the_format),
		cmocka_unit_test(test_each_allocation_fails_once_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
