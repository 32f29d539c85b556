// SPDX-License-Identifier: LGPL-2.1-or-later
/* Filters of signals and masks of rules: what a rule can ask for is found, nothing else counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dbus/bloom.h"
#include "dbus/build.h"

#define N_WORDS 512

struct filter {
	uint64_t words[N_WORDS];
};

/* Of a signal with one argument */
static void make_filter(struct filter *f, const char *path, const char *arg)
{
	const struct dbusp_bloom bloom = { .words = f->words, .n_words = N_WORDS, .n_hash = 8 };
	const struct dbusp_desc desc = { .type = DBUSP_SIGNAL,
					 .serial = 1,
					 .path = dbusp_str(path),
					 .interface = DBUSP_STR("org.example.Face"),
					 .member = DBUSP_STR("Changed"),
					 .signature = DBUSP_STR("s") };
	struct dbusp_header header;
	struct dbusp_build b;
	struct dbusp_args args;
	uint8_t *msg;
	size_t len;

	memset(f, 0, sizeof(*f));
	dbusp_build_begin(&b, NULL, &desc);
	dbusp_put_string(&b, arg);
	assert_int_equal(dbusp_build_end(&b, &msg, &len), 0);
	assert_int_equal(dbusp_header_parse(&header, msg, len, DBUSP_MESSAGE_MAX, NULL), 0);
	dbusp_args_init(&args, &header, msg + header.frame.header_len);
	dbusp_bloom_filter(&bloom, &header, &args);
	free(msg);
}

static bool passes(const char *rule, const struct filter *f)
{
	struct filter mask = { { 0 } };
	const struct dbusp_bloom bloom = { .words = mask.words, .n_words = N_WORDS, .n_hash = 8 };
	struct dbusp_match_buf buf;
	size_t i;

	assert_int_equal(dbusp_match_parse(&buf, rule, strlen(rule), NULL), 0);
	dbusp_bloom_mask(&bloom, &buf.match);
	for (i = 0; i < N_WORDS; i++)
		if (mask.words[i] & ~f->words[i])
			return false;
	return true;
}

static void test_rules_pass(void **state)
{
	static const char *const rules[] = {
		"type='signal'",
		"interface='org.example.Face',member='Changed'",
		"path='/org/example/Thing'",
		"path_namespace='/org/example'",
		"path_namespace='/org/example/Thing'",
		"path_namespace='/'",
		"arg0='a.b.c'",
		"arg0namespace='a.b'",
		"arg0namespace='a.b.c'",
		"arg0path='a.b.c'",
	};
	struct filter f = { .words = { 0 } };
	size_t i;

	(void)state;
	make_filter(&f, "/org/example/Thing", "a.b.c");
	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		assert_true(passes(rules[i], &f));
	assert_false(passes("member='Other'", &f));
	assert_false(passes("path_namespace='/org/exam'", &f));
	assert_false(passes("arg0='a.b'", &f));
	assert_false(passes("arg0namespace='b'", &f));
}

/* @n times @part, and @end */
static char *repeat(const char *part, size_t n, const char *end)
{
	char *text = calloc(1, n * strlen(part) + strlen(end) + 1), *at = text;

	assert_non_null(text);
	while (n--)
		at = stpcpy(at, part);
	strcpy(at, end);
	return text;
}

/* The longest that a rule can ask for is found. */
static void test_long_text_passes(void **state)
{
	char *arg = repeat("ab.", 300, "end"), *path = repeat("/abc", 200, ""), *rule;
	struct filter f = { .words = { 0 } };

	(void)state;
	make_filter(&f, path, arg);
	assert_true(asprintf(&rule, "arg0='%s'", arg) > 0);
	assert_true(passes(rule, &f));
	free(rule);
	assert_true(asprintf(&rule, "path='%s'", path) > 0);
	assert_true(passes(rule, &f));
	free(rule);
	assert_true(asprintf(&rule, "path_namespace='%s'", path) > 0);
	assert_true(passes(rule, &f));
	free(rule);
	free(arg);
	free(path);
}

/* What is behind the length of a rule makes no difference, so it need not be looked at. */
static void test_what_no_rule_asks_for(void **state)
{
	struct filter one = { .words = { 0 } }, other = { .words = { 0 } };
	char *arg, *path;

	(void)state;
	arg = repeat("ab.", 400, "");
	path = repeat("/abc", 300, "");
	make_filter(&one, path, arg);
	free(arg);
	free(path);
	arg = repeat("ab.", 400, "x.y/z/and.so.on");
	path = repeat("/abc", 300, "/x/y/z");
	make_filter(&other, path, arg);
	assert_memory_equal(&one, &other, sizeof(one));
	free(arg);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules_pass),
		cmocka_unit_test(test_long_text_passes),
		cmocka_unit_test(test_what_no_rule_asks_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
