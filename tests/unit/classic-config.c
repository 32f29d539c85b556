// SPDX-License-Identifier: LGPL-2.1-or-later
/* dbus-daemon(1), "CONFIGURATION FILE"; what is accepted is what dbus-daemon 1.14 accepts. */
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/classic/config.h"
#include "daemon/classic/policy.h"

/* A private directory with files in it */
static char dir[64];

static char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(path_of(name), "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void make_dir(const char *name)
{
	assert_int_equal(mkdir(path_of(name), 0700), 0);
}

static int setup(void **state)
{
	const char *base = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%s/config-XXXXXX", base ? base : "/var/tmp");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static int teardown(void **state)
{
	return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- reading ---- */

static char warnings[4096];

static void note(void *arg, const char *text)
{
	strncat(warnings, text, sizeof(warnings) - strlen(warnings) - 2);
	strcat(warnings, "\n");
}

static int load_over(const char *name, const struct config *before, struct config **ret,
		     char **ret_error)
{
	const struct config_reading reading = { .before = before, .warn = note };

	*warnings = '\0';
	*ret_error = NULL;
	return config_load(path_of(name), &reading, ret, ret_error);
}

static struct config *must_load(const char *name)
{
	struct config *c = NULL;
	char *error = NULL;
	int r = load_over(name, NULL, &c, &error);

	if (error)
		print_error("%s\n", error);
	assert_int_equal(r, 0);
	return c;
}

static void must_fail_over(const char *name, const struct config *before, int expect,
			   const char *part)
{
	struct config *c = NULL;
	char *error = NULL;

	assert_int_equal(load_over(name, before, &c, &error), expect);
	assert_null(c);
	assert_non_null(error);
	if (!strstr(error, part))
		print_error("\"%s\" does not say \"%s\"\n", error, part);
	assert_non_null(strstr(error, part));
	free(error);
}

static void must_fail(const char *name, int expect, const char *part)
{
	must_fail_over(name, NULL, expect, part);
}

#define LISTEN "<listen>unix:tmpdir=/x</listen>"

static int parse(const char *body, struct config **ret, char **ret_error)
{
	const struct config_reading reading = { .warn = note };
	char *text;
	int r;

	*warnings = '\0';
	*ret_error = NULL;
	assert_true(asprintf(&text, "<busconfig>%s%s</busconfig>", LISTEN, body) > 0);
	r = config_parse("/etc/x.conf", text, strlen(text), &reading, ret, ret_error);
	free(text);
	return r;
}

static void check_accepted(const char *body, bool accepted)
{
	struct config *c = NULL;
	char *error = NULL;
	int r = parse(body, &c, &error);

	if ((r == 0) != accepted)
		print_error("%s: %d %s\n", body, r, error ? error : "");
	assert_int_equal(r, accepted ? 0 : -EINVAL);
	assert_int_equal(!error, accepted);
	if (!accepted && error)
		assert_int_equal(strncmp(error, "/etc/x.conf:1: ", 15), 0);
	free(error);
	config_unref(c);
}

/* ---- tests ---- */

static void test_elements_and_attributes_are_checked_strictly(void **state)
{
	static const struct {
		const char *body;
		bool accepted;
	} rows[] = {
		{ "", true },
		{ "<foo/>", false },
		{ "text", false },
		{ "<busconfig/>", false },
		{ "<type>a</type><type>b</type>", true },
		{ "<type a='b'>x</type>", false },
		{ "<type/>", false },
		{ "<type><fork/></type>", false },
		{ "<fork/><fork> </fork>", true },
		{ "<fork>x</fork>", false },
		{ "<listen/>", false },
		{ "<keep_umask/><syslog/><allow_anonymous/>", true },
		{ "<syslog a='b'/>", false },
		{ "<auth>EXTERNAL</auth><auth>ANONYMOUS</auth>", true },
		{ "<auth>DBUS_COOKIE_SHA1</auth>", true },
		{ "<auth>FOO</auth>", false },
		{ "<auth/>", false },
		{ "<include>nope</include>", false },
		{ "<include ignore_missing='yes'>nope</include>", true },
		{ "<include ignore_missing='true'>nope</include>", false },
		{ "<include if_selinux_enabled='yes' selinux_root_relative='yes'>x</include>",
		  true },
		{ "<include/>", false },
		{ "<includedir>nope.d</includedir>", true },
		{ "<includedir/>", false },
		{ "<servicedir>nope</servicedir><servicehelper>h</servicehelper>", true },
		{ "<servicedir/>", false },
		{ "<servicehelper/>", false },
		{ "<standard_session_servicedirs/><standard_system_servicedirs/>", true },
		{ "<standard_session_servicedirs>x</standard_session_servicedirs>", false },
		{ "<pidfile/>", false },
		{ "<user/>", false },
		{ "<user>nosuchuser</user>", true },
		{ "<selinux/><selinux><associate own='a.b' context='c'/></selinux>", true },
		{ "<selinux><associate own='a.b'/></selinux>", false },
		{ "<selinux><allow/></selinux>", false },
		{ "<selinux x='y'/>", false },
		{ "<apparmor/><apparmor mode='required'/><apparmor mode='disabled'/>", true },
		{ "<apparmor mode='x'/>", false },
		{ "<allow own='*'/>", false },
		{ "<policy/>", false },
		{ "<policy context='default'/>", true },
		{ "<policy context='foo'/>", false },
		{ "<policy context='default' user='0'/>", false },
		{ "<policy at_console='yes'/>", false },
		{ "<policy at_console='true'/><policy at_console='false'/>", true },
		{ "<policy user='nosuch'/><policy group='nosuch'/><policy user=''/>", true },
		{ "<policy context='default'>x</policy>", false },
		{ "<policy context='default'><foo/></policy>", false },
		{ "<policy context='default'><allow own='*'>x</allow></policy>", false },
		{ "<policy user='0'><allow user='0'/></policy>", false },
		{ "<policy group='0'><allow user='*'/></policy>", false },
		{ "<policy at_console='true'><allow user='0'/></policy>", true },
		{ "<policy context='mandatory'><deny group='0'/></policy>", true },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_accepted(rows[i].body, rows[i].accepted);
}

static void test_attributes_of_rules_go_together_or_not(void **state)
{
	static const struct {
		const char *attributes;
		bool accepted;
	} rows[] = {
		{ "", false },
		{ "bogus='x'", false },
		{ "own='*'", true },
		{ "own='a'", true },
		{ "own='a.b' own_prefix='c.d'", false },
		{ "own_prefix='a'", true },
		{ "user='*'", true },
		{ "user='nosuch'", true },
		{ "group='nosuch'", true },
		{ "user='0' group='0'", false },
		{ "user='0' own='*'", false },
		{ "send_interface='a.b'", true },
		{ "send_member='M'", false },
		{ "send_member='*'", false },
		{ "send_member='M' send_interface='a.b'", true },
		{ "send_member='M' send_path='/'", true },
		{ "receive_member='M'", false },
		{ "receive_member='M' receive_path='/'", true },
		{ "send_type='foo'", false },
		{ "send_type='*'", true },
		{ "send_broadcast='yes'", false },
		{ "send_broadcast='true'", true },
		{ "send_broadcast='true' send_type='method_call'", true },
		{ "send_broadcast='true' send_destination='a.b'", false },
		{ "send_broadcast='true' receive_type='signal'", false },
		{ "send_destination='a.b' send_destination_prefix='a.b'", false },
		{ "send_destination_prefix='a'", true },
		{ "send_destination='a.b' receive_sender='c.d'", false },
		{ "eavesdrop='true'", true },
		{ "eavesdrop='x'", false },
		{ "eavesdrop='true' own='*'", false },
		{ "eavesdrop='true' user='0'", false },
		{ "eavesdrop='true' max_fds='1'", true },
		{ "max_fds='1'", false },
		{ "min_fds='1' send_type='signal'", true },
		{ "min_fds='-1' send_type='signal'", false },
		{ "min_fds='x' send_type='signal'", false },
		{ "max_fds='33554432' send_type='signal'", true },
		{ "max_fds='33554433' send_type='signal'", false },
		{ "max_fds='1' own='*'", false },
		{ "log='true'", false },
		{ "log='true' own='*'", true },
		{ "log='x' send_type='signal'", true },
		{ "send_requested_reply='true'", true },
		{ "receive_requested_reply='true'", true },
		{ "receive_requested_reply='yes'", false },
		{ "send_requested_reply='true' receive_type='signal'", false },
		{ "send_interface='a.b' own='a.b'", false },
		{ "send_interface='a b' send_path='foo'", true },
		{ "send_type='signal' send_error='x.y'", true },
		{ "send_error='a.b' send_interface='c.d'", false },
		{ "send_error='*' send_interface='c.d'", false },
		{ "send_error='a.b' send_path='/'", true },
		{ "receive_error='a.b' receive_interface='c.d'", false },
	};
	char body[256];
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(body, sizeof(body), "<policy context='default'><%s %s/></policy>",
			 i % 2 ? "deny" : "allow", rows[i].attributes);
		check_accepted(body, rows[i].accepted);
	}
}

static void test_values_of_limits(void **state)
{
	static const struct {
		const char *name, *text;
		bool accepted;
		long value;
	} rows[] = {
		{ "max_names_per_connection", "0", true, 0 },
		{ "max_names_per_connection", "-1", false, 0 },
		{ "max_names_per_connection", "abc", false, 0 },
		{ "max_names_per_connection", "", false, 0 },
		{ "max_names_per_connection", " 5 ", true, 5 },
		{ "max_names_per_connection", "0x10", true, 16 },
		{ "max_names_per_connection", "5x", true, 5 },
		{ "max_names_per_connection", "2147483647", true, 2147483647 },
		{ "max_names_per_connection", "2147483648", false, 0 },
		{ "max_names_per_connection", "99999999999999999999", false, 0 },
		{ "max_names", "5", false, 0 },
	};
	char body[256];
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config *c = NULL;
		char *error = NULL;

		snprintf(body, sizeof(body), "<limit name='%s'>%s</limit>", rows[i].name,
			 rows[i].text);
		assert_int_equal(parse(body, &c, &error), rows[i].accepted ? 0 : -EINVAL);
		if (c)
			assert_int_equal(c->limits.max_names_per_connection, rows[i].value);
		free(error);
		config_unref(c);
	}
	check_accepted("<limit name='reply_timeout'>-1</limit>", false);
	check_accepted("<limit name='max_message_size'>5000000000</limit>", true);
	check_accepted("<limit>5</limit>", false);
}

static void test_each_limit_has_its_name_and_default(void **state)
{
	static const struct {
		const char *name;
		size_t offset;
		long value; /* default */
	} rows[] = {
#define ROW(field, value) { #field, offsetof(struct config_limits, field), value }
		ROW(max_incoming_bytes, 133169152),
		ROW(max_incoming_unix_fds, 64),
		ROW(max_outgoing_bytes, 133169152),
		ROW(max_outgoing_unix_fds, 64),
		ROW(max_message_size, 33554432),
		ROW(max_message_unix_fds, 16),
		ROW(service_start_timeout, 25000),
		ROW(auth_timeout, 30000),
		ROW(pending_fd_timeout, 150000),
		ROW(max_completed_connections, 2048),
		ROW(max_incomplete_connections, 64),
		ROW(max_connections_per_user, 256),
		ROW(max_pending_service_starts, 512),
		ROW(max_names_per_connection, 512),
		ROW(max_match_rules_per_connection, 512),
		ROW(max_replies_per_connection, 128),
		ROW(reply_timeout, -1),
	};
	struct config_limits expect = config_default_limits;
	size_t i;

	assert_int_equal(sizeof(rows) / sizeof(rows[0]), sizeof(expect) / sizeof(long));
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config *c = NULL;
		char *error = NULL, body[128];
		long *field = (long *)((char *)&expect + rows[i].offset);

		assert_int_equal(*field, rows[i].value);
		*field = 77;
		snprintf(body, sizeof(body), "<limit name='%s'>77</limit>", rows[i].name);
		assert_int_equal(parse(body, &c, &error), 0);
		assert_memory_equal(&c->limits, &expect, sizeof(expect));
		*field = rows[i].value;
		config_unref(c);
	}
}

static void test_values_arrive(void **state)
{
	struct config *c = NULL;
	char *error;

	assert_int_equal(parse("<type>session</type><user>u</user><pidfile>p</pidfile><fork/>"
			       "<listen>unix:path=/y</listen><auth>EXTERNAL</auth><syslog/>"
			       "<servicehelper>/h</servicehelper><servicedir>s</servicedir>"
			       "<servicedir>/etc/s</servicedir><apparmor mode='required'/>"
			       "<selinux><associate own='a.b' context='c'/></selinux>",
			       &c, &error),
			 0);
	assert_string_equal(c->type, "session");
	assert_string_equal(c->user, "u");
	assert_string_equal(c->pidfile, "/etc/p");
	assert_string_equal(c->servicehelper, "/h");
	assert_int_equal(c->listen.n, 2);
	assert_string_equal(c->listen.items[1], "unix:path=/y");
	assert_int_equal(c->auth.n, 1);
	assert_int_equal(c->n_servicedirs, 1);
	assert_string_equal(c->servicedirs[0].path, "/etc/s");
	assert_string_equal(c->associates[0].context, "c");
	assert_int_equal(c->apparmor, CONFIG_APPARMOR_REQUIRED);
	assert_true(c->fork && c->syslog && !c->keep_umask && !c->allow_anonymous);
	config_unref(c);
}

static void test_errors_name_file_line_and_reason(void **state)
{
	char expect[256];

	write_file("main.conf", "<busconfig>\n" LISTEN "\n<include>sub.conf</include></busconfig>");
	write_file("sub.conf", "<busconfig>\n<type>x</type>\n\n<limit name='x'>1</limit>\n"
			       "</busconfig>");
	snprintf(expect, sizeof(expect), "%s/sub.conf:4: There is no limit called \"x\"", dir);
	must_fail("main.conf", -EINVAL, expect);
	write_file("sub.conf", "<busconfig>\n<type>x</busconfig>");
	snprintf(expect, sizeof(expect), "%s/sub.conf:2: column ", dir);
	must_fail("main.conf", -EINVAL, expect);
	write_file("sub.conf", "");
	must_fail("main.conf", -EINVAL, "sub.conf:1: ");
	must_fail("nothing.conf", -ENOENT, "cannot read ");
	write_file("none.conf", "<busconfig/>");
	must_fail("none.conf", -EINVAL, "<listen>");
	write_file("root.conf", "<config/>");
	must_fail("root.conf", -EINVAL, "root.conf:1: Unknown element <config>");
}

static void test_circular_inclusion_is_refused(void **state)
{
	write_file("a.conf", "<busconfig>" LISTEN "<include>b.conf</include></busconfig>");
	write_file("b.conf", "<busconfig><include>a.conf</include></busconfig>");
	must_fail("a.conf", -EINVAL, "includes itself");
	write_file("c.conf", "<busconfig>" LISTEN "<include>c.conf</include></busconfig>");
	must_fail("c.conf", -EINVAL, "includes itself");
	assert_int_equal(symlink("c.conf", path_of("d.conf")), 0);
	must_fail("d.conf", -EINVAL, "includes itself");
}

static void test_included_files_count_where_they_are_included(void **state)
{
	struct config *c;

	write_file("main.conf", "<busconfig>" LISTEN "<type>a</type>"
				"<limit name='auth_timeout'>1</limit>"
				"<limit name='reply_timeout'>1</limit><include>sub.conf</include>"
				"<limit name='reply_timeout'>3</limit></busconfig>");
	write_file("sub.conf", "<busconfig><type>b</type><limit name='auth_timeout'>2</limit>"
			       "<limit name='reply_timeout'>2</limit></busconfig>");
	c = must_load("main.conf");
	assert_string_equal(c->type, "b");
	assert_int_equal(c->limits.auth_timeout, 2);
	assert_int_equal(c->limits.reply_timeout, 3);
	assert_int_equal(c->files.n, 2);
	config_unref(c);
}

static void test_directories_are_read_in_order_of_names(void **state)
{
	struct config *c;

	make_dir("x.d");
	write_file("main.conf", "<busconfig>" LISTEN "<includedir>x.d</includedir></busconfig>");
	write_file("x.d/b.conf", "<busconfig><type>b</type></busconfig>");
	write_file("x.d/a.conf", "<busconfig><type>a</type></busconfig>");
	write_file("x.d/z.txt", "<rubbish");
	c = must_load("main.conf");
	assert_string_equal(c->type, "b");
	assert_int_equal(c->files.n, 3);
	assert_int_equal(c->conf_dirs.n, 1);
	assert_string_equal(c->conf_dirs.items[0], path_of("x.d"));
	config_unref(c);
}

static void test_broken_file_of_a_directory_is_left_out_whole(void **state)
{
	struct config *c, *again = NULL;
	char *error = NULL;

	make_dir("x.d");
	write_file("main.conf", "<busconfig>" LISTEN "<includedir>x.d</includedir></busconfig>");
	write_file("x.d/a.conf", "<busconfig><type>a</type><bad/></busconfig>");
	c = must_load("main.conf");
	assert_null(c->type);
	assert_int_equal(c->skipped.n, 1);
	assert_non_null(strstr(warnings, "x.d/a.conf:1: Element <bad> not allowed"));
	/* known to be broken: no reason to refuse what else has changed */
	assert_int_equal(load_over("main.conf", c, &again, &error), 0);
	config_unref(again);
	/* broken since: the old configuration stays */
	write_file("x.d/b.conf", "<busconfig><worse/></busconfig>");
	must_fail_over("main.conf", c, -EINVAL, "x.d/b.conf:1: Element <worse> not allowed");
	config_unref(c);
}

static void test_unknown_users_are_warned_of(void **state)
{
	struct policy_verdict v;
	struct config *c = NULL;
	char *error;

	assert_int_equal(parse("<policy user='nosuch'><allow own='*'/></policy>"
			       "<policy context='default'><allow user='nosuch'/></policy>",
			       &c, &error),
			 0);
	assert_non_null(strstr(warnings, "Unknown username \"nosuch\": the policy applies"));
	assert_non_null(strstr(warnings, "Unknown username \"nosuch\": the rule applies"));
	v = policy_may_connect(c->policy, 4711, NULL, 0, false);
	assert_false(v.allowed);
	config_unref(c);
}

static void test_rules_say_where_they_stand(void **state)
{
	struct policy_verdict v;
	struct config *c;

	write_file("main.conf", "<busconfig>" LISTEN "\n<policy context='default'>\n"
				"<allow user='*'/>\n<deny user='4711'/></policy></busconfig>");
	c = must_load("main.conf");
	v = policy_may_connect(c->policy, 4711, NULL, 0, true);
	assert_false(v.allowed);
	assert_int_equal(v.rule->line, 4);
	assert_string_equal(v.rule->file, path_of("main.conf"));
	assert_true(policy_may_connect(c->policy, 1, NULL, 0, false).allowed);
	config_unref(c);
}

static void test_standard_service_directories(void **state)
{
	static const char *const session[] = {
		"/run/u/dbus-1/services",  "/data/dbus-1/services", "/etc/dbus-1/services",
		"/run/dbus-1/services",	   "/x/dbus-1/services",    "/y/dbus-1/services",
		"/usr/share/dbus-1/services",
	};
	struct config *c = NULL;
	char *error;
	size_t i;

	setenv("XDG_RUNTIME_DIR", "/run/u", 1);
	setenv("XDG_DATA_HOME", "/data", 1);
	setenv("XDG_DATA_DIRS", "/x:relative::/y:/usr/share", 1);
	assert_int_equal(parse("<standard_session_servicedirs/>", &c, &error), 0);
	assert_int_equal(c->n_servicedirs, sizeof(session) / sizeof(session[0]));
	for (i = 0; i < c->n_servicedirs; i++) {
		assert_string_equal(c->servicedirs[i].path, session[i]);
		assert_int_equal(c->servicedirs[i].strict, i == 0);
		assert_int_equal(c->servicedirs[i].unwatched, i == 0);
	}
	config_unref(c);
	assert_int_equal(parse("<standard_system_servicedirs/>", &c, &error), 0);
	assert_int_equal(c->n_servicedirs, 5);
	assert_string_equal(c->servicedirs[3].path, "/usr/share/dbus-1/system-services");
	config_unref(c);
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_elements_and_attributes_are_checked_strictly),
		test(test_attributes_of_rules_go_together_or_not),
		test(test_values_of_limits),
		test(test_each_limit_has_its_name_and_default),
		test(test_values_arrive),
		test(test_errors_name_file_line_and_reason),
		test(test_circular_inclusion_is_refused),
		test(test_included_files_count_where_they_are_included),
		test(test_directories_are_read_in_order_of_names),
		test(test_broken_file_of_a_directory_is_left_out_whole),
		test(test_unknown_users_are_warned_of),
		test(test_rules_say_where_they_stand),
		test(test_standard_service_directories),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
