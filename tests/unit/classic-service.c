// SPDX-License-Identifier: LGPL-2.1-or-later
/* D-Bus specification, "Message Bus Starting Services"; the quirks are dbus-daemon 1.14's. */
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
#include "daemon/classic/service-file.h"

#define HEAD "[D-BUS Service]\n"
#define NAME "Name=a.b\n"
#define EXEC "Exec=/bin/x\n"

static int parse(const char *text, size_t len, struct service_file *ret, unsigned int *ret_line)
{
	const char *reason = NULL;
	int r = service_file_parse(text, len, ret, ret_line, &reason);

	assert_int_equal(r == -EINVAL, reason != NULL);
	return r;
}

static void test_what_a_file_may_look_like(void **state)
{
	static const struct {
		const char *text;
		int line; /* of the error, 0 the whole; -1: none */
	} rows[] = {
		{ HEAD NAME EXEC, -1 },
		{ HEAD "Exec=/bin/x\nName=a.b", -1 },
		{ "\n# x\n \t\n" HEAD "# y\n" NAME EXEC "\n", -1 },
		{ "[D-BUS Service]\r\nName=a.b\r\nExec=/bin/x\r\n", -1 },
		{ HEAD "Name = a.b\nExec\t=\t/bin/x\n", -1 },
		{ "[Other]\nX=y\n" HEAD NAME EXEC, -1 },
		{ HEAD NAME "Name=a.c\n" EXEC, -1 },
		{ HEAD NAME EXEC HEAD "Name=a.c\n", -1 },
		{ HEAD NAME "Name[de]=a.c\n" EXEC, -1 },
		{ HEAD NAME "Exec=\n", -1 },
		{ HEAD NAME EXEC "X-More=1\n", -1 },
		{ HEAD "Name=a.b\\s\n" EXEC, 0 },
		{ HEAD "Name=a.b \n" EXEC, 0 },
		{ HEAD "Name=nodot\n" EXEC, 0 },
		{ HEAD "Name=:1.5\n" EXEC, 0 },
		{ HEAD "Name=org.freedesktop.DBus\n" EXEC, 0 },
		{ HEAD NAME, 0 },
		{ HEAD NAME "SystemdService=x\n", 0 },
		{ HEAD EXEC, 0 },
		{ "[d-bus service]\n" NAME EXEC, 0 },
		{ "", 0 },
		{ NAME EXEC, 1 },
		{ HEAD " Name=a.b\n" EXEC, 2 },
		{ HEAD NAME "  # comment\n" EXEC, 3 },
		{ HEAD NAME EXEC "junk\n", 4 },
		{ HEAD NAME EXEC "two words=1\n", 4 },
		{ HEAD NAME EXEC "under_score=1\n", 4 },
		{ HEAD NAME EXEC "=1\n", 4 },
		{ HEAD NAME "Exec=/\\q\n", 3 },
		{ HEAD NAME "Exec=/\\\n", 3 },
		{ "[D-BUS Service] \n" NAME EXEC, 1 },
		{ " [D-BUS Service]\n" NAME EXEC, 1 },
		{ "[]\n" HEAD NAME EXEC, 1 },
		{ HEAD NAME EXEC "X=\xff\n", 0 },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct service_file f;
		unsigned int line = 99;
		int r = parse(rows[i].text, strlen(rows[i].text), &f, &line);

		assert_int_equal(r, rows[i].line < 0 ? 0 : -EINVAL);
		if (r == 0) {
			assert_string_equal(f.name, "a.b");
			service_file_deinit(&f);
		} else {
			assert_int_equal(line, rows[i].line);
		}
	}
}

static void test_nul_is_no_text(void **state)
{
	static const char text[] = HEAD NAME EXEC "\0\n";
	struct service_file f;
	unsigned int line;

	assert_int_equal(parse(text, sizeof(text) - 1, &f, &line), -EINVAL);
}

static void test_all_keys_arrive(void **state)
{
	static const char text[] = HEAD NAME "Exec=/bin/a\\sb\\tc\\nd\\re\\\\f\nUser=u\n"
					     "SystemdService=s.service\nAssumedAppArmorLabel=l\n";
	struct service_file f;
	unsigned int line;

	assert_int_equal(parse(text, sizeof(text) - 1, &f, &line), 0);
	assert_string_equal(f.exec, "/bin/a b\tc\nd\re\\f");
	assert_string_equal(f.user, "u");
	assert_string_equal(f.systemd_service, "s.service");
	assert_string_equal(f.apparmor_label, "l");
	assert_null(f.file);
	service_file_deinit(&f);
}

static void test_command_lines_are_split_as_in_a_shell(void **state)
{
	static const struct {
		const char *exec;
		const char *argv[5]; /* none: refused */
	} rows[] = {
		{ "/bin/x", { "/bin/x" } },
		{ "  a  b\tc\n", { "a", "b", "c" } },
		{ "a 'b c' \"d e\"", { "a", "b c", "d e" } },
		{ "a'b'\"c\"d", { "abcd" } },
		{ "a '' \"\"", { "a", "", "" } },
		{ "a \\b\\ c", { "a", "b c" } },
		{ "a '\\n' \"\\n\\\"\\\\\\$\"", { "a", "\\n", "\\n\"\\$" } },
		{ "a b#c # d", { "a", "b#c" } },
		{ "a $HOME `x` *", { "a", "$HOME", "`x`", "*" } },
		{ "", { NULL } },
		{ "  ", { NULL } },
		{ "# x", { NULL } },
		{ "a \"b", { NULL } },
		{ "a 'b", { NULL } },
		{ "a \"b\\", { NULL } },
		{ "a \\", { NULL } },
	};
	size_t i, k;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *reason = NULL;
		char **argv = NULL;
		int r = service_exec_split(rows[i].exec, &argv, &reason);

		assert_int_equal(r, rows[i].argv[0] ? 0 : -EINVAL);
		assert_int_equal(reason != NULL, r != 0);
		if (r)
			continue;
		for (k = 0; rows[i].argv[k]; k++)
			assert_string_equal(argv[k], rows[i].argv[k]);
		assert_null(argv[k]);
		service_argv_free(argv);
	}
}

/* ---- directories ---- */

static char dir[64];

static void write_file(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
	static const char *const below[] = { "one", "two", "strict" };
	const char *base = getenv("TMPDIR");
	char path[256];
	size_t i;

	snprintf(dir, sizeof(dir), "%s/service-XXXXXX", base ? base : "/var/tmp");
	if (!mkdtemp(dir))
		return -1;
	for (i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, below[i]);
		if (mkdir(path, 0700) < 0)
			return -1;
	}
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static int teardown(void **state)
{
	return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static char warnings[4096];

static void note(void *arg, const char *text)
{
	strncat(warnings, text, sizeof(warnings) - strlen(warnings) - 1);
}

static struct services *load(void)
{
	char one[128], two[128], strict[128], none[128];
	struct config_servicedir dirs[] = {
		{ one, false, false }, { none, false, false }, { two, false, false },
		{ strict, true, true },
	};
	struct config c = { .servicedirs = dirs, .n_servicedirs = 4 };
	struct services *s = NULL;

	snprintf(one, sizeof(one), "%s/one", dir);
	snprintf(two, sizeof(two), "%s/two", dir);
	snprintf(strict, sizeof(strict), "%s/strict", dir);
	snprintf(none, sizeof(none), "%s/none", dir);
	*warnings = '\0';
	assert_int_equal(services_load(&c, note, NULL, &s), 0);
	return s;
}

static void check_exec(const struct services *s, const char *name, const char *exec)
{
	const struct service_file *f = services_find(s, name);

	assert_int_equal(f != NULL, exec != NULL);
	if (f)
		assert_string_equal(f->exec, exec);
}

static void test_first_directory_and_proper_file_name_count(void **state)
{
	struct services *s;

	write_file("one/zz.service", HEAD "Name=a.a\nExec=1z\n");
	write_file("one/a.a.service", HEAD "Name=a.a\nExec=1a\n");
	write_file("one/b.service", HEAD "Name=a.b\nExec=1b\n");
	write_file("one/c.service", HEAD "Name=a.b\nExec=1c\n");
	write_file("two/a.a.service", HEAD "Name=a.a\nExec=2a\n");
	write_file("two/c.c.service", HEAD "Name=c.c\nExec=2c\n");
	write_file("two/.hidden.service", HEAD "Name=h.h\nExec=2h\n");
	write_file("two/noend", HEAD "Name=n.n\nExec=2n\n");
	write_file("strict/d.d.service", HEAD "Name=d.d\nExec=3d\n");
	write_file("strict/x.service", HEAD "Name=x.x\nExec=3x\n");
	s = load();
	assert_int_equal(services_count(s), 5);
	check_exec(s, "a.a", "1a");
	check_exec(s, "a.b", "1b");
	check_exec(s, "c.c", "2c");
	check_exec(s, "d.d", "3d");
	check_exec(s, "h.h", "2h");
	check_exec(s, "n.n", NULL);
	check_exec(s, "x.x", NULL);
	assert_string_equal(services_nth(s, 0)->name, "a.a");
	assert_string_equal(services_nth(s, 4)->name, "h.h");
	assert_non_null(strstr(warnings, "strict/x.service"));
	services_free(s);
}

static void test_broken_files_leave_the_others_alone(void **state)
{
	struct services *s;
	char path[128];

	write_file("one/a.service", HEAD "Name=a.a\nrubbish\n");
	write_file("one/b.service", HEAD "Name=b.b\nExec=b\n");
	snprintf(path, sizeof(path), "%s/one/c.service", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/one/d.service", dir);
	assert_int_equal(symlink("nowhere", path), 0);
	s = load();
	assert_int_equal(services_count(s), 1);
	check_exec(s, "b.b", "b");
	assert_non_null(strstr(warnings, "one/a.service:3: "));
	assert_non_null(strstr(warnings, "one/c.service: "));
	assert_non_null(strstr(warnings, "one/d.service: "));
	services_free(s);
}

static void test_a_change_of_names_is_told_from_other_changes(void **state)
{
	struct services *s, *same, *other;

	s = load();
	same = load();
	assert_true(services_same_names(s, same));
	services_free(same);
	services_free(s);
	write_file("one/a.service", HEAD "Name=a.a\nExec=1\n");
	s = load();
	write_file("one/a.service", HEAD "Name=a.a\nExec=2\n");
	same = load();
	write_file("one/a.service", HEAD "Name=a.b\nExec=2\n");
	other = load();
	assert_true(services_same_names(s, same));
	assert_false(services_same_names(s, other));
	services_free(s);
	services_free(same);
	services_free(other);
}

static void test_directory_for_transient_services_is_made(void **state)
{
	char path[128];
	struct config_servicedir dirs[] = { { path, true, true }, { dir, false, false } };
	struct config c = { .servicedirs = dirs, .n_servicedirs = 2 };
	struct stat st;

	snprintf(path, sizeof(path), "%s/nowhere/dbus-1/services", dir);
	services_make_transient(&c);
	assert_int_equal(stat(path, &st), -1);
	snprintf(path, sizeof(path), "%s/dbus-1/services", dir);
	services_make_transient(&c);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	services_make_transient(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_file_may_look_like),
		cmocka_unit_test(test_nul_is_no_text),
		cmocka_unit_test(test_all_keys_arrive),
		cmocka_unit_test(test_command_lines_are_split_as_in_a_shell),
		cmocka_unit_test_setup_teardown(test_first_directory_and_proper_file_name_count,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_broken_files_leave_the_others_alone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_directory_for_transient_services_is_made,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_change_of_names_is_told_from_other_changes,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
