// SPDX-License-Identifier: LGPL-2.1-or-later
/* Authentication and the grammar of match rules, row by row as the tables of dbus/ have them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dbus-rules.h"
#include "dbus-sasl.h"
#include "peer.h"

/*
 * "00" is root, too. Some take any other uid with a leading zero for octal, so nobody but root has
 * a row like that.
 */
#define ROOT_WITH_ZEROES "3030\r\n"

/* The table is written for uid 0, "30" in hex; puts ours in its place. */
static size_t translate(const struct sasl_row *row, char *out)
{
	char uid[12], hex[24] = "";
	size_t i, n = 0;

	snprintf(uid, sizeof(uid), "%u", (unsigned int)geteuid());
	for (i = 0; uid[i]; i++)
		sprintf(hex + 2 * i, "%02x", uid[i]);
	out[n++] = 0;
	for (i = 0; i < row->in.len; i++) {
		const char *p = row->in.s + i;

		if (row->in.len - i >= 4 && !memcmp(p, "30\r\n", 4)) {
			n += (size_t)sprintf(out + n, "%s", hex);
			i++;
		} else {
			out[n++] = *p;
		}
	}
	return n;
}

/* One letter per reply line, X for the end; see dbus-sasl.h. */
static void replies(int fd, char *ret, size_t expected)
{
	char buf[4096];
	size_t len = 0, lines = 0, i;
	ssize_t n = 1;

	while (n > 0 && lines < expected && len < sizeof(buf)) {
		n = read(fd, buf + len, sizeof(buf) - len);
		for (i = len; n > 0 && i < len + (size_t)n; i++) {
			if (i == 0 || buf[i - 1] == '\n')
				*ret++ = buf[i] == 'O' ? 'K' : buf[i];
			lines += buf[i] == '\n';
		}
		len += n > 0 ? (size_t)n : 0;
	}
	if (n <= 0)
		*ret++ = 'X';
	*ret = 0;
}

static void converse(const struct sasl_row *row, size_t piece)
{
	static const char last[] = "FINALLY\r\n";
	char in[500], expected[100], got[100];
	size_t len = translate(row, in), at;
	struct peer p;

	memcpy(in + len, last, sizeof(last) - 1);
	len += sizeof(last) - 1;
	snprintf(expected, sizeof(expected), "%s%s", row->replies,
		 strchr(row->replies, 'X') ? "" : "E");
	peer_open(&p);
	for (at = 0; at < len; at += piece)
		peer_write(&p, in + at, len - at < piece ? len - at : piece);
	replies(p.fd, got, strlen(expected));
	peer_close(&p);
	if (strcmp(got, expected))
		fail_msg("%s: %s where %s was expected", row->in.s, got, expected);
}

static void test_authentication(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < N_SASL_ROWS; i++) {
		if (geteuid() != 0 && strstr(sasl_rows[i].in.s, ROOT_WITH_ZEROES))
			continue;
		converse(&sasl_rows[i], 500);
		converse(&sasl_rows[i], 1);
	}
}

static void hangs_up(const char *data, size_t len)
{
	struct peer p;
	char byte;

	peer_open(&p);
	peer_write(&p, data, len);
	while (read(p.fd, &byte, 1) == 1)
		;
	peer_close(&p);
}

static void test_first_byte_is_nul(void **state)
{
	(void)state;
	hangs_up("AUTH EXTERNAL\r\n", 15);
	hangs_up("\1AUTH EXTERNAL\r\n", 16);
}

static void test_endless_line(void **state)
{
	static char line[20000];

	(void)state;
	memset(line + 1, 'A', sizeof(line) - 1);
	hangs_up(line, sizeof(line));
}

/* Who leaves in the middle of it leaves nothing behind that hurts others. */
static void test_leaving_early(void **state)
{
	static const char all[] = "\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n";
	struct peer p;
	size_t n;

	(void)state;
	for (n = 0; n < sizeof(all); n++) {
		peer_open(&p);
		peer_write(&p, all, n);
		peer_close(&p);
	}
	peer_join(&p);
	want_nothing(&p);
	peer_close(&p);
}

static void test_rules(void **state)
{
	uint32_t serial;
	struct got g;
	bool accepted;
	size_t i;
	WITH(p);

	(void)state;
	for (i = 0; i < N_RULE_ROWS; i++) {
		/* the backslash that takes a comma along: see dbus/match.h */
		if (strstr(rule_rows[i].rule, "\\,"))
			continue;
		serial = peer_driver(&p, "AddMatch", "s", rule_rows[i].rule);
		assert_true(peer_next(&p, &g));
		/* Rules of the table match signals of the bus, too. */
		while (g.h.reply_serial != serial) {
			got_free(&g);
			assert_true(peer_next(&p, &g));
		}
		accepted = g.h.frame.type == DBUSP_METHOD_RETURN;
		if (accepted != (rule_rows[i].why == DBUSP_WHY_NONE))
			fail_msg("%s: %s", rule_rows[i].rule, accepted ? "accepted" : "refused");
		if (!accepted)
			assert_string_equal(g.h.error_name.s, ERROR_NAME("MatchRuleInvalid"));
		got_free(&g);
	}
	peer_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_authentication),
		cmocka_unit_test(test_first_byte_is_nul),
		cmocka_unit_test(test_endless_line),
		cmocka_unit_test(test_leaving_early),
		cmocka_unit_test(test_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
