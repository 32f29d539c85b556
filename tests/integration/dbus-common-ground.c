// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * dbus-daemon and dbus/ on common ground: the same match rules are accepted, and the same
 * authentication gets the same answers. Starts a private dbus-daemon.
 *
 * Deviations:
 *  - names in rules: dbus-daemon takes unique names of one element (":1"), the specification does
 *    not ("Bus names"), nor do we;
 *  - a backslash before a comma outside of quotes: see match.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <dbus/dbus.h>

#include "dbus-random.h"
#include "dbus-rules.h"
#include "dbus-sasl.h"
#include "dbus/match.h"

struct daemon {
	pid_t pid;
	char dir[200];
	char config[250];
	char socket[250];
};

static void write_config(const struct daemon *d)
{
	FILE *f = fopen(d->config, "w");

	assert_non_null(f);
	fprintf(f,
		"<busconfig><type>session</type><listen>unix:path=%s</listen>"
		"<auth>EXTERNAL</auth><policy context=\"default\"><allow send_destination=\"*\" "
		"eavesdrop=\"true\"/><allow eavesdrop=\"true\"/></policy>"
		"<limit name=\"max_match_rules_per_connection\">1000000</limit></busconfig>",
		d->socket);
	assert_int_equal(fclose(f), 0);
}

/* Waits for the address, which the daemon prints once it listens. */
static void wait_for_address(int fd)
{
	char c = 0;

	while (c != '\n')
		assert_int_equal(read(fd, &c, 1), 1);
}

static int setup(void **state)
{
	const char *tmp = getenv("TMPDIR");
	struct daemon *d = calloc(1, sizeof(*d));
	int out[2];

	assert_non_null(d);
	assert_non_null(tmp);
	snprintf(d->dir, sizeof(d->dir), "%s/bus-XXXXXX", tmp);
	assert_non_null(mkdtemp(d->dir));
	snprintf(d->config, sizeof(d->config), "%s/conf", d->dir);
	snprintf(d->socket, sizeof(d->socket), "%s/socket", d->dir);
	write_config(d);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	d->pid = fork();
	assert_true(d->pid >= 0);
	if (!d->pid) {
		char option[300];

		dup2(out[1], STDOUT_FILENO);
		snprintf(option, sizeof(option), "--config-file=%s", d->config);
		execlp("dbus-daemon", "dbus-daemon", "--nofork", "--nopidfile", "--print-address",
		       option, NULL);
		_exit(127);
	}
	close(out[1]);
	wait_for_address(out[0]);
	close(out[0]);
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	struct daemon *d = *state;

	kill(d->pid, SIGTERM);
	waitpid(d->pid, NULL, 0);
	unlink(d->config);
	unlink(d->socket);
	rmdir(d->dir);
	free(d);
	return 0;
}

static DBusConnection *connect_bus(const struct daemon *d)
{
	char address[300];
	DBusConnection *bus;

	snprintf(address, sizeof(address), "unix:path=%s", d->socket);
	bus = dbus_connection_open_private(address, NULL);
	assert_non_null(bus);
	dbus_connection_set_exit_on_disconnect(bus, false);
	assert_true(dbus_bus_register(bus, NULL));
	return bus;
}

/* The name of the error that AddMatch ends with, "" for none. */
static void add_match(DBusConnection *bus, const char *rule, char *ret, size_t size)
{
	DBusError error = DBUS_ERROR_INIT;

	dbus_bus_add_match(bus, rule, &error);
	snprintf(ret, size, "%s", dbus_error_is_set(&error) ? error.name : "");
	dbus_error_free(&error);
}

static void assert_same_verdict(DBusConnection *bus, const char *rule)
{
	struct dbusp_match_buf m;
	enum dbusp_why why = DBUSP_WHY_NONE;
	char theirs[100];
	const char *ours = "";
	int r = dbusp_match_parse(&m, rule, strlen(rule), &why);

	if (r == -EMSGSIZE)
		ours = DBUS_ERROR_LIMITS_EXCEEDED;
	else if (r < 0)
		ours = DBUS_ERROR_MATCH_RULE_INVALID;
	add_match(bus, rule, theirs, sizeof(theirs));
	if (strcmp(ours, theirs))
		fail_msg("%s: %s, dbus-daemon: %s", rule, dbusp_why_str(why), theirs);
}

static void test_rules_of_the_table(void **state)
{
	DBusConnection *bus = connect_bus(*state);
	size_t i;

	for (i = 0; i < N_RULE_ROWS; i++) {
		/* the backslash that takes a comma along */
		if (!strstr(rule_rows[i].rule, "\\,"))
			assert_same_verdict(bus, rule_rows[i].rule);
	}
	dbus_connection_close(bus);
	dbus_connection_unref(bus);
}

static void test_length_of_rules(void **state)
{
	DBusConnection *bus = connect_bus(*state);
	char rule[1026];

	memset(rule, 'a', sizeof(rule));
	memcpy(rule, "arg0=", 5);
	rule[1025] = 0;
	assert_same_verdict(bus, rule);
	rule[1024] = 0;
	assert_same_verdict(bus, rule);
	dbus_connection_close(bus);
	dbus_connection_unref(bus);
}

static void random_rule(uint64_t *rng, char *out)
{
	static const char *const keys[] = {
		"type",	       "sender",    "interface", "member", "path",     "path_namespace",
		"destination", "eavesdrop", "arg0",	 "arg1",   "arg1path", "arg0namespace",
		"arg63",       "arg07",	    "arg0x9",	 "arg64",  "",	       "arg+3",
		"arg8x",
	};
	static const char *const values[] = {
		"signal", "error", "a.b", ":1.0",  "M",	    "/",   "/a", "true",
		"false",  "",	   "x y", "a.b-c", "'\\''", "/a/", "=",	 "9",
	};
	static const char *const blanks[] = { "", "", "", "", "", " ", "\t", "\n" };
	unsigned int n = random_below(rng, 5);

	strcpy(out, random_below(rng, 20) ? "" : ",");
	while (n--) {
		const char *quote = random_below(rng, 3) ? "'" : "";

		sprintf(out + strlen(out), "%s%s%s=%s%s%s%s", blanks[random_below(rng, 8)],
			keys[random_below(rng, 19)], blanks[random_below(rng, 8)], quote,
			values[random_below(rng, 16)], random_below(rng, 20) ? quote : "",
			n || random_below(rng, 2) ? "," : "");
	}
}

static void test_random_rules(void **state)
{
	DBusConnection *bus = connect_bus(*state);
	uint64_t rng = 77;
	char rule[500];
	int n;

	for (n = 0; n < 3000; n++) {
		random_rule(&rng, rule);
		assert_same_verdict(bus, rule);
	}
	dbus_connection_close(bus);
	dbus_connection_unref(bus);
}

/*
 * "00" is root, too. The daemon takes any other uid with a leading zero for octal, so nobody but
 * root has a row like that.
 */
#define ROOT_WITH_ZEROES "3030\r\n"

/* The table is written for uid 0, "30" in hex; puts ours in its place. */
static size_t translate(const struct sasl_row *row, char *out)
{
	char uid[12], hex[24] = "";
	size_t i, n = 0;

	snprintf(uid, sizeof(uid), "%u", getuid());
	for (i = 0; uid[i]; i++)
		sprintf(hex + 2 * i, "%02x", uid[i]);
	out[n++] = 0;
	for (i = 0; i < row->in.len; i++) {
		const char *p = row->in.s + i;

		if (row->in.len - i >= 4 && !memcmp(p, "30\r\n", 4)) {
			n += sprintf(out + n, "%s", hex);
			i++;
		} else {
			out[n++] = *p;
		}
	}
	return n;
}

static int connect_socket(const struct daemon *d)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_true(strlen(d->socket) < sizeof(addr.sun_path));
	strcpy(addr.sun_path, d->socket);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/*
 * One letter per reply line, X for the end. As many as are expected are waited for; a command that
 * is always answered follows, so that an answer too many would be seen before its answer.
 */
static void replies(int fd, char *ret, size_t expected)
{
	char buf[4096];
	size_t len = 0, lines = 0, i;
	ssize_t n = 1;

	while (n > 0 && lines < expected && len < sizeof(buf)) {
		n = read(fd, buf + len, sizeof(buf) - len);
		for (i = len; n > 0 && i < len + n; i++) {
			if (i == 0 || buf[i - 1] == '\n')
				*ret++ = buf[i] == 'O' ? 'K' : buf[i];
			lines += buf[i] == '\n';
		}
		len += n > 0 ? n : 0;
	}
	if (n <= 0)
		*ret++ = 'X';
	*ret = 0;
}

static void test_authentication(void **state)
{
	static const char last[] = "FINALLY\r\n";
	char in[500], expect[100], got[100];
	size_t i, len;
	int fd;

	for (i = 0; i < N_SASL_ROWS; i++) {
		if (getuid() != 0 && strstr(sasl_rows[i].in.s, ROOT_WITH_ZEROES))
			continue;
		len = translate(&sasl_rows[i], in);
		memcpy(in + len, last, sizeof(last) - 1);
		snprintf(expect, sizeof(expect), "%s%s", sasl_rows[i].replies,
			 strchr(sasl_rows[i].replies, 'X') ? "" : "E");
		fd = connect_socket(*state);
		len += sizeof(last) - 1;
		assert_int_equal(send(fd, in, len, MSG_NOSIGNAL), len);
		replies(fd, got, strlen(expect));
		close(fd);
		if (strcmp(got, expect))
			fail_msg("%s: %s", sasl_rows[i].in.s, got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules_of_the_table),
		cmocka_unit_test(test_length_of_rules),
		cmocka_unit_test(test_random_rules),
		cmocka_unit_test(test_authentication),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
