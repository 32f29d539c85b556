// SPDX-License-Identifier: LGPL-2.1-or-later
/* D-Bus specification, "Match Rules": grammar, equality, canonical form, evaluation. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dbus-random.h"
#include "dbus-rules.h"
#include "dbus/match.h"

static void parse(const char *text, struct dbusp_match_buf *ret)
{
	/* whatever was in the buffer must not show */
	memset(ret, random_below(&(uint64_t){ (uintptr_t)text | 1 }, 256), sizeof(*ret));
	assert_int_equal(dbusp_match_parse(ret, text, strlen(text), NULL), 0);
}

static void test_grammar(void **state)
{
	struct dbusp_match_buf m;
	enum dbusp_why why;
	size_t i;

	for (i = 0; i < N_RULE_ROWS; i++) {
		const char *rule = rule_rows[i].rule;
		int r;

		why = DBUSP_WHY_NONE;
		r = dbusp_match_parse(&m, rule, strlen(rule), &why);
		if (why != rule_rows[i].why || r != (why ? -EINVAL : 0))
			fail_msg("%s: %s", rule, dbusp_why_str(why));
	}
}

static void test_length_ends_at_1024(void **state)
{
	char rule[1100];
	struct dbusp_match_buf m;
	enum dbusp_why why;

	memset(rule, 'a', sizeof(rule));
	memcpy(rule, "arg0=", 5);
	assert_int_equal(dbusp_match_parse(&m, rule, 1024, NULL), 0);
	assert_int_equal(dbusp_match_arg_text(&m.match, 0).len, 1019);
	assert_int_equal(dbusp_match_parse(&m, rule, 1025, &why), -EMSGSIZE);
	assert_int_equal(why, DBUSP_WHY_RULE_LONG);
}

static void test_nul_is_refused(void **state)
{
	struct dbusp_match_buf m;

	assert_int_equal(dbusp_match_parse(&m, "arg0='\0'", 8, NULL), -EINVAL);
	assert_int_equal(dbusp_match_parse(&m, "\0", 1, NULL), -EINVAL);
}

static bool same(const char *a, const char *b)
{
	struct dbusp_match_buf ma, mb;
	bool equal;

	parse(a, &ma);
	parse(b, &mb);
	equal = dbusp_match_equal(&ma.match, &mb.match);
	assert_int_equal(equal, dbusp_match_equal(&mb.match, &ma.match));
	return equal;
}

static void assert_arg(const char *rule, const char *expect)
{
	struct dbusp_match_buf m;

	parse(rule, &m);
	assert_true(dbusp_str_eq(dbusp_match_arg_text(&m.match, 0), dbusp_str(expect)));
}

/* The two rules that the specification gives as the same, and quoting around them. */
static void test_quoting(void **state)
{
	const char *first = "arg0=''\\''',arg1='\\',arg2=',',arg3='\\\\'";
	const char *second = "arg0=\\',arg1=\\,arg2=',',arg3=\\\\";
	struct dbusp_match_buf m;

	assert_true(same(first, second));
	parse(first, &m);
	assert_int_equal(m.match.n_args, 4);
	assert_true(dbusp_str_eq(dbusp_match_arg_text(&m.match, 0), DBUSP_STR("'")));
	assert_true(dbusp_str_eq(dbusp_match_arg_text(&m.match, 1), DBUSP_STR("\\")));
	assert_true(dbusp_str_eq(dbusp_match_arg_text(&m.match, 2), DBUSP_STR(",")));
	assert_true(dbusp_str_eq(dbusp_match_arg_text(&m.match, 3), DBUSP_STR("\\\\")));

	assert_arg("arg0='a'b'c'", "abc");
	assert_arg("arg0='a,b'", "a,b");
	assert_arg("arg0=a\\'b", "a'b");
	assert_arg("arg0=a\\b", "a\\b");
	assert_arg("arg0=a\\\\", "a\\\\");
	assert_arg("arg0=a\\\\'", "a\\'");
	assert_arg("arg0='a\\'", "a\\");
	assert_arg("arg0=", "");
}

static void test_argument_numbers(void **state)
{
	static const struct {
		const char *rule;
		unsigned int index;
	} rows[] = {
		{ "arg0=x", 0 },   { "arg00=x", 0 },   { "arg010=x", 8 }, { "arg0x1f=x", 31 },
		{ "arg63=x", 63 }, { "arg077=x", 63 }, { "arg+9=x", 9 },  { "arg12path=x", 12 },
	};
	struct dbusp_match_buf m;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		parse(rows[i].rule, &m);
		assert_int_equal(m.match.n_args, 1);
		assert_int_equal(m.match.args[0].index, rows[i].index);
	}
}

static void test_conditions_can_be_read_back(void **state)
{
	struct dbusp_match_buf buf;
	const struct dbusp_match *m = &buf.match;

	parse("destination=':1.2',member='M',interface='a.b',path_namespace='/p',sender='s.t',"
	      "type='error',arg3path='/x',arg0namespace='n',eavesdrop='true'",
	      &buf);
	assert_int_equal(m->type, DBUSP_ERROR);
	assert_int_equal(m->keys, 0x1ff & ~DBUSP_MATCH_PATH);
	assert_true(dbusp_str_eq(dbusp_match_get(m, DBUSP_MATCH_SENDER), DBUSP_STR("s.t")));
	assert_true(dbusp_str_eq(dbusp_match_get(m, DBUSP_MATCH_INTERFACE), DBUSP_STR("a.b")));
	assert_true(dbusp_str_eq(dbusp_match_get(m, DBUSP_MATCH_MEMBER), DBUSP_STR("M")));
	assert_true(dbusp_str_eq(dbusp_match_get(m, DBUSP_MATCH_PATH_NAMESPACE), DBUSP_STR("/p")));
	assert_true(dbusp_str_eq(dbusp_match_get(m, DBUSP_MATCH_DESTINATION), DBUSP_STR(":1.2")));
	assert_null(dbusp_match_get(m, DBUSP_MATCH_PATH).s);
	assert_null(dbusp_match_get(m, DBUSP_MATCH_TYPE).s);
	assert_int_equal(m->n_args, 2);
	assert_int_equal(m->args[0].kind, DBUSP_ARG_NAMESPACE);
	assert_int_equal(m->args[1].kind, DBUSP_ARG_PATH);
	assert_int_equal(m->args[1].index, 3);
}

/* A usual rule takes 26 bytes and its text. */
static void test_rules_are_small(void **state)
{
	struct dbusp_match_buf m;

	parse("type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
	      "member='NameOwnerChanged',path='/org/freedesktop/DBus',arg0='org.example.Name'",
	      &m);
	assert_int_equal(dbusp_match_size(&m.match), 26 + 6 + 20 + 20 + 16 + 21 + 16);
}

static void test_equality_is_about_meaning(void **state)
{
	assert_true(same("type='signal',member='M'", " member=M, type='sig'nal,"));
	assert_true(same("arg1='a',arg00='b'", "arg0='b',arg0x1='a'"));
	assert_true(same("", "eavesdrop='false'"));
	assert_true(same("eavesdrop='true',eavesdrop='false'", "=x"));
	assert_false(same("", "eavesdrop='true'"));
	assert_false(same("", "type='signal'"));
	assert_false(same("type='error'", "type='signal'"));
	assert_false(same("path='/a'", "path_namespace='/a'"));
	assert_false(same("sender='a.b'", "destination='a.b'"));
	assert_false(same("arg0='/a'", "arg0path='/a'"));
	assert_false(same("arg0='a'", "arg0namespace='a'"));
	assert_false(same("arg0='a'", "arg1='a'"));
	assert_false(same("arg0='a'", "arg0='b'"));
	assert_false(same("arg0=''", ""));
	assert_false(same("arg0='ab',arg1='c'", "arg0='a',arg1='bc'"));
}

static void assert_format(const char *rule, const char *expect)
{
	struct dbusp_match_buf m;
	char buf[200], cut[8];
	size_t len, i;

	parse(rule, &m);
	len = dbusp_match_format(&m.match, buf, sizeof(buf));
	assert_int_equal(len, strlen(expect));
	assert_string_equal(buf, expect);
	assert_int_equal(dbusp_match_format(&m.match, NULL, 0), len);
	for (i = 1; i < sizeof(cut); i++) {
		assert_int_equal(dbusp_match_format(&m.match, cut, i), len);
		assert_int_equal(strlen(cut), len < i ? len : i - 1);
		assert_memory_equal(cut, expect, strlen(cut));
	}
}

/* A buffer that is short of just the NUL is not written past. */
static void test_canonical_form_in_a_buffer_of_its_length(void **state)
{
	struct dbusp_match_buf m;
	char buf[9] = "xxxxxxxx";

	parse("arg0=a", &m);
	assert_int_equal(dbusp_match_format(&m.match, buf, 8), 8);
	assert_memory_equal(buf, "arg0='a\0\0", 9);
	buf[8] = 'x';
	assert_int_equal(dbusp_match_format(&m.match, buf, 8), 8);
	assert_int_equal(buf[8], 'x');
	assert_int_equal(dbusp_match_format(&m.match, buf, 9), 8);
	assert_string_equal(buf, "arg0='a'");
}

static void test_canonical_form(void **state)
{
	assert_format("", "");
	assert_format("arg10path=/b,arg2=\\',member=M,type=signal,eavesdrop=true,sender=a.b",
		      "type='signal',sender='a.b',member='M',arg2=''\\''',arg10path='/b',"
		      "eavesdrop='true'");
	assert_format("arg0namespace=a,path_namespace=/,destination=:1.0,interface=a.b",
		      "interface='a.b',path_namespace='/',destination=':1.0',arg0namespace='a'");
}

/* A rule from random pieces, valid or not. */
static void random_rule(uint64_t *rng, char *out)
{
	static const char *const keys[] = {
		"type",		  "sender",	   "interface", "member", "path",
		"path_namespace", "destination",   "eavesdrop", "arg0",	  "arg1",
		"arg1path",	  "arg0namespace", "arg63",	"arg07",
	};
	static const char *const values[] = {
		"signal", "error", "a.b", ":1.0", "M",	"/",   "/a",  "true", "false",
		"",	  "x y",   ",",	  "'",	  "\\", "\\'", "a'b", "/a/",
	};
	static const char *const quotes[] = { "'", "'", "", "\\" };
	unsigned int n = random_below(rng, 5);

	strcpy(out, "");
	while (n--) {
		const char *quote = quotes[random_below(rng, 4)];

		sprintf(out + strlen(out), "%s%s=%s%s%s%s", random_below(rng, 4) ? "" : " ",
			keys[random_below(rng, 14)], quote, values[random_below(rng, 17)], quote,
			n || random_below(rng, 2) ? "," : "");
	}
}

static void test_canonical_form_parses_to_the_same_rule(void **state)
{
	struct dbusp_match_buf m, again;
	unsigned int accepted = 0;
	char rule[1100], text[4200];
	uint64_t rng = 3;
	size_t len;
	int n;

	for (n = 0; n < 200000; n++) {
		random_rule(&rng, rule);
		if (dbusp_match_parse(&m, rule, strlen(rule), NULL) < 0)
			continue;
		accepted++;
		len = dbusp_match_format(&m.match, text, sizeof(text));
		assert_true(len < sizeof(text));
		assert_int_equal(dbusp_match_parse(&again, text, len, NULL), 0);
		assert_true(dbusp_match_equal(&m.match, &again.match));
	}
	assert_true(accepted > 20000);
}

/* A signal with these arguments: pairs of type and text, up to NULL. */
static uint8_t *message(const struct dbusp_desc *desc, const char *const *args)
{
	struct dbusp_desc d = *desc;
	struct dbusp_build b;
	char sig[65] = "";
	uint8_t *msg;
	size_t len, i;

	for (i = 0; args && args[i]; i += 2)
		strcat(sig, args[i]);
	d.signature = dbusp_str(sig);
	dbusp_build_begin(&b, NULL, &d);
	for (i = 0; args && args[i]; i += 2) {
		if (args[i][0] == 'u')
			dbusp_put_u32(&b, 1);
		else
			dbusp_put_text(&b, args[i][0], dbusp_str(args[i + 1]));
	}
	assert_int_equal(dbusp_build_end(&b, &msg, &len), 0);
	return msg;
}

static bool matches_as(const char *rule, const struct dbusp_desc *desc, const char *const *args,
		       struct dbusp_match_subject s)
{
	uint8_t *msg = message(desc, args);
	struct dbusp_header h;
	struct dbusp_args a;
	struct dbusp_match_buf m;
	bool result;

	assert_int_equal(dbusp_header_parse(&h, msg, SIZE_MAX, DBUSP_MESSAGE_MAX, NULL), 0);
	dbusp_args_init(&a, &h, msg + h.frame.header_len);
	parse(rule, &m);
	s.header = &h;
	s.args = &a;
	result = dbusp_match_test(&m.match, &s);
	/* asked twice, the arguments are still there */
	assert_int_equal(dbusp_match_test(&m.match, &s), result);
	free(msg);
	return result;
}

static const struct dbusp_desc signal_desc = {
	.type = DBUSP_SIGNAL,
	.serial = 1,
	.path = { "/a/b", 4 },
	.interface = { "i.f", 3 },
	.member = { "M", 1 },
	.sender = { ":1.5", 4 },
};

static bool matches(const char *rule, const struct dbusp_desc *desc)
{
	return matches_as(rule, desc, NULL, (struct dbusp_match_subject){ .monitor = false });
}

static void test_each_header_key(void **state)
{
	static const struct {
		const char *rule;
		bool match;
	} rows[] = {
		{ "", true },
		{ "type='signal'", true },
		{ "type='error'", false },
		{ "type='method_call'", false },
		{ "sender=':1.5'", true },
		{ "sender=':1.6'", false },
		{ "interface='i.f'", true },
		{ "interface='i.g'", false },
		{ "interface='i.ff'", false },
		{ "member='M'", true },
		{ "member='N'", false },
		{ "path='/a/b'", true },
		{ "path='/a'", false },
		{ "path='/a/b/c'", false },
		{ "path_namespace='/a/b'", true },
		{ "path_namespace='/a'", true },
		{ "path_namespace='/'", true },
		{ "path_namespace='/a/b/c'", false },
		{ "path_namespace='/a/bc'", false },
		{ "path_namespace='/x'", false },
		{ "path_namespace='/x/b'", false },
		{ "destination=':1.6'", false },
		{ "arg0='x'", false },
		{ "eavesdrop='true'", true },
		{ "type='signal',sender=':1.5',interface='i.f',member='M',path='/a/b'", true },
		{ "type='signal',sender=':1.5',interface='i.f',member='N',path='/a/b'", false },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (matches(rows[i].rule, &signal_desc) != rows[i].match)
			fail_msg("%s", rows[i].rule);
	}
}

static void test_path_namespace_ends_at_an_element(void **state)
{
	struct dbusp_desc d = signal_desc;

	d.path = DBUSP_STR("/com/example/foobar");
	assert_false(matches("path_namespace='/com/example/foo'", &d));
	d.path = DBUSP_STR("/com/example/foo/bar");
	assert_true(matches("path_namespace='/com/example/foo'", &d));
	d.path = DBUSP_STR("/com/example/foo");
	assert_true(matches("path_namespace='/com/example/foo'", &d));
	d.path = DBUSP_STR("/");
	assert_true(matches("path_namespace='/'", &d));
	assert_false(matches("path_namespace='/com'", &d));
}

static void test_absent_fields_match_no_condition(void **state)
{
	struct dbusp_desc d = { .type = DBUSP_METHOD_RETURN, .serial = 1, .reply_serial = 1 };

	assert_true(matches("type='method_return'", &d));
	assert_false(matches("interface='i.f'", &d));
	assert_false(matches("member='M'", &d));
	assert_false(matches("path='/a'", &d));
	assert_false(matches("path_namespace='/'", &d));
	assert_false(matches("sender=':1.5'", &d));
	assert_false(matches("destination=':1.5'", &d));
}

static void test_unicast_needs_eavesdrop(void **state)
{
	const struct dbusp_match_subject monitor = { .monitor = true };
	struct dbusp_desc d = signal_desc;

	d.destination = DBUSP_STR(":1.6");
	assert_false(matches("", &d));
	assert_false(matches("destination=':1.6'", &d));
	assert_true(matches("eavesdrop='true'", &d));
	assert_true(matches("eavesdrop='true',destination=':1.6'", &d));
	assert_false(matches("eavesdrop='true',destination=':1.7'", &d));
	assert_true(matches_as("destination=':1.6'", &d, NULL, monitor));
	assert_false(matches_as("destination=':1.7'", &d, NULL, monitor));
}

static bool owns_org_example(void *userdata, struct dbusp_str name)
{
	return dbusp_str_eq(name, dbusp_str(userdata)) ||
	       dbusp_str_eq(name, DBUSP_STR("org.example"));
}

/* "sender", "destination": a well-known name stands for its owner of the moment. */
static void test_names_are_asked_for(void **state)
{
	struct dbusp_match_subject s = {
		.sender_is = owns_org_example,
		.userdata = (void *)":1.5",
	};
	struct dbusp_desc d = signal_desc;

	assert_true(matches_as("sender='org.example'", &d, NULL, s));
	assert_true(matches_as("sender=':1.5'", &d, NULL, s));
	assert_false(matches_as("sender='org.other'", &d, NULL, s));
	s.destination_is = owns_org_example;
	assert_false(matches_as("destination='org.example'", &d, NULL, s));
	d.destination = DBUSP_STR(":1.5");
	assert_true(matches_as("eavesdrop='true',destination='org.example'", &d, NULL, s));
	assert_false(matches_as("eavesdrop='true',destination='org.other'", &d, NULL, s));
}

static void assert_arg_match(const char *rule, const char *type, const char *value, bool match)
{
	const char *const args[] = { type, value, NULL };

	if (matches_as(rule, &signal_desc, args, (struct dbusp_match_subject){ 0 }) != match)
		fail_msg("%s against %s '%s'", rule, type, value);
}

static void test_string_arguments(void **state)
{
	assert_arg_match("arg0='x'", "s", "x", true);
	assert_arg_match("arg0='x'", "s", "xy", false);
	assert_arg_match("arg0='x'", "s", "", false);
	assert_arg_match("arg0=''", "s", "", true);
	assert_arg_match("arg0='/x'", "o", "/x", false);
	assert_arg_match("arg0='s'", "g", "s", false);
	assert_arg_match("arg0='x'", "u", NULL, false);
	assert_arg_match("arg1='x'", "s", "x", false);
}

/* The example of the specification: arg0path='/aa/bb/' */
static void test_path_arguments(void **state)
{
	static const struct {
		const char *value;
		bool match;
	} rows[] = {
		{ "/", true },		{ "/aa/", true },      { "/aa/bb/", true },
		{ "/aa/bb/cc/", true }, { "/aa/bb/cc", true }, { "/aa/b", false },
		{ "/aa", false },	{ "/aa/bb", false },   { "", false },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_arg_match("arg0path='/aa/bb/'", "s", rows[i].value, rows[i].match);
	assert_arg_match("arg0path='/aa/bb'", "o", "/aa/bb", true);
	assert_arg_match("arg0path='/aa/bb'", "o", "/aa/bb/cc", false);
	assert_arg_match("arg0path='/aa/'", "o", "/aa/bb/cc", true);
	assert_arg_match("arg0path='/aa/bb'", "o", "/", true);
	assert_arg_match("arg0path='y'", "g", "y", false);
	assert_arg_match("arg0path=''", "s", "", true);
	assert_arg_match("arg0path=''", "s", "/", false);
}

static void test_namespace_argument(void **state)
{
	assert_arg_match("arg0namespace='com.example.backend1'", "s", "com.example.backend1", true);
	assert_arg_match("arg0namespace='com.example.backend1'", "s", "com.example.backend1.foo",
			 true);
	assert_arg_match("arg0namespace='com.example.backend1'", "s", "com.example.backend10",
			 false);
	assert_arg_match("arg0namespace='com.example.backend1'", "s", "com.example", false);
	assert_arg_match("arg0namespace='com'", "s", "com.example", true);
	assert_arg_match("arg0namespace='net'", "s", "com.example", false);
	assert_arg_match("arg0namespace='net'", "s", "com", false);
	assert_arg_match("arg0namespace='com'", "o", "/com", false);
}

static void test_arguments_are_found_behind_others(void **state)
{
	static const char *const args[] = { "u", "", "s", "one", "o", "/two", "s", "three", NULL };
	const struct dbusp_match_subject s = { 0 };
	const char **many = calloc(2 * 64 + 1, sizeof(*many));
	int i;

	assert_true(matches_as("arg3='three',arg1='one'", &signal_desc, args, s));
	assert_true(matches_as("arg2path='/two',arg1='one'", &signal_desc, args, s));
	assert_false(matches_as("arg3='three',arg1='two'", &signal_desc, args, s));
	assert_false(matches_as("arg4='x'", &signal_desc, args, s));
	for (i = 0; i < 64; i++) {
		many[2 * i] = i == 63 ? "s" : "u";
		many[2 * i + 1] = "last";
	}
	assert_true(matches_as("arg63='last'", &signal_desc, many, s));
	assert_false(matches_as("arg62='last'", &signal_desc, many, s));
	free(many);
}

/* A body nobody checked gives the arguments before the damage, and no crash. */
static void test_damaged_bodies_end_the_arguments(void **state)
{
	static const char body[] = "\1\0\0\0a\0\0\0\1\0\0\0bb";
	struct dbusp_header h = {
		.frame = { .body_len = sizeof(body) - 1 },
		.signature = DBUSP_STR("sss"),
	};
	struct dbusp_args a;

	dbusp_args_init(&a, &h, body);
	assert_int_equal(dbusp_args_get(&a, 2).type, 0);
	assert_int_equal(dbusp_args_get(&a, 1).type, 0);
	assert_int_equal(dbusp_args_get(&a, 0).type, 's');
	h.signature = DBUSP_STR("a");
	dbusp_args_init(&a, &h, body);
	assert_int_equal(dbusp_args_get(&a, 0).type, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grammar),
		cmocka_unit_test(test_length_ends_at_1024),
		cmocka_unit_test(test_nul_is_refused),
		cmocka_unit_test(test_quoting),
		cmocka_unit_test(test_argument_numbers),
		cmocka_unit_test(test_conditions_can_be_read_back),
		cmocka_unit_test(test_rules_are_small),
		cmocka_unit_test(test_equality_is_about_meaning),
		cmocka_unit_test(test_canonical_form_in_a_buffer_of_its_length),
		cmocka_unit_test(test_canonical_form),
		cmocka_unit_test(test_canonical_form_parses_to_the_same_rule),
		cmocka_unit_test(test_each_header_key),
		cmocka_unit_test(test_path_namespace_ends_at_an_element),
		cmocka_unit_test(test_absent_fields_match_no_condition),
		cmocka_unit_test(test_unicast_needs_eavesdrop),
		cmocka_unit_test(test_names_are_asked_for),
		cmocka_unit_test(test_string_arguments),
		cmocka_unit_test(test_path_arguments),
		cmocka_unit_test(test_namespace_argument),
		cmocka_unit_test(test_arguments_are_found_behind_others),
		cmocka_unit_test(test_damaged_bodies_end_the_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
