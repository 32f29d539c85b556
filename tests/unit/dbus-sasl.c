// SPDX-License-Identifier: LGPL-2.1-or-later
/* D-Bus specification, "Authentication Protocol"; both sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dbus-random.h"
#include "dbus-sasl.h"
#include "dbus/sasl.h"

#define GUID "0123456789abcdef0123456789abcdef"

static const struct dbusp_sasl_config external = {
	.mechanisms = DBUSP_SASL_EXTERNAL,
	.fds = true,
	.guid = GUID,
};

static const struct dbusp_sasl_config both = {
	.mechanisms = DBUSP_SASL_EXTERNAL | DBUSP_SASL_ANONYMOUS,
	.guid = GUID,
};

/* A server with its socket: what it was sent and did not consume, what it answered. */
struct session {
	struct dbusp_sasl_server server;
	enum dbusp_sasl_result result;
	char in[70000];
	size_t in_len;
	char out[20000];
	size_t out_len;
};

static void start(struct session *s, const struct dbusp_sasl_config *config, uint32_t uid)
{
	memset(s, 0, sizeof(*s));
	dbusp_sasl_server_init(&s->server, config, uid);
}

static void feed(struct session *s, const char *data, size_t len)
{
	size_t consumed, written;

	memcpy(s->in + s->in_len, data, len);
	s->in_len += len;
	do {
		/* its own allocation, so that a sanitizer sees a read past the end */
		char *exact = malloc(s->in_len ? s->in_len : 1);

		assert_non_null(exact);
		memcpy(exact, s->in, s->in_len);
		s->result = dbusp_sasl_server_step(&s->server, exact, s->in_len, &consumed,
						   s->out + s->out_len, DBUSP_SASL_REPLY_MAX,
						   &written);
		free(exact);
		assert_true(consumed <= s->in_len);
		assert_true(written <= DBUSP_SASL_REPLY_MAX);
		memmove(s->in, s->in + consumed, s->in_len - consumed);
		s->in_len -= consumed;
		s->out_len += written;
	} while (s->result == DBUSP_SASL_MORE && written);
}

static void feed_text(struct session *s, const char *text)
{
	feed(s, text, strlen(text));
}

/* The replies as one letter each, as in sasl_rows. */
static void summarize(const struct session *s, char *ret)
{
	const char *p = s->out, *end;

	for (; p < s->out + s->out_len; p = end + 2) {
		end = memmem(p, s->out + s->out_len - p, "\r\n", 2);
		assert_non_null(end);
		*ret++ = *p == 'O' ? 'K' : *p;
	}
	if (s->result == DBUSP_SASL_CLOSE)
		*ret++ = 'X';
	*ret = 0;
}

static void assert_row(const struct sasl_row *row, size_t piece)
{
	struct session *s = malloc(sizeof(*s));
	char replies[200];
	size_t i, n;

	start(s, &external, 0);
	feed(s, "", 1);
	for (i = 0; i < row->in.len; i += n) {
		n = row->in.len - i < piece ? row->in.len - i : piece;
		feed(s, row->in.s + i, n);
	}
	summarize(s, replies);
	if (strcmp(replies, row->replies))
		fail_msg("%s: %s", row->in.s, replies);
	free(s);
}

static void test_conversations_in_pieces_of_any_size(void **state)
{
	size_t i, piece;

	for (i = 0; i < N_SASL_ROWS; i++) {
		for (piece = 1; piece < 8; piece++)
			assert_row(&sasl_rows[i], piece);
		assert_row(&sasl_rows[i], SIZE_MAX);
	}
}

static void test_pipelined_handshake_stops_before_the_first_message(void **state)
{
	static const char in[] = "\0AUTH EXTERNAL 30\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\nl\1\0\1rest";
	struct session *s = malloc(sizeof(*s));

	start(s, &external, 0);
	feed(s, in, sizeof(in) - 1);
	assert_int_equal(s->result, DBUSP_SASL_DONE);
	assert_int_equal(s->server.mech, DBUSP_SASL_EXTERNAL);
	assert_true(s->server.fds);
	assert_int_equal(s->in_len, 8);
	assert_memory_equal(s->in, "l\1\0\1rest", 8);
	assert_string_equal(s->out, "OK " GUID "\r\nAGREE_UNIX_FD\r\n");
	/* it stays done, whatever comes */
	feed_text(s, "AUTH\r\n");
	assert_int_equal(s->result, DBUSP_SASL_DONE);
	assert_int_equal(s->in_len, 14);
	free(s);
}

static void test_first_byte_is_nul(void **state)
{
	struct session *s = malloc(sizeof(*s));

	start(s, &external, 0);
	feed(s, "", 0);
	assert_int_equal(s->result, DBUSP_SASL_MORE);
	feed_text(s, "A");
	assert_int_equal(s->result, DBUSP_SASL_CLOSE);
	assert_int_equal(s->server.why, DBUSP_WHY_SASL_NUL);
	assert_int_equal(s->out_len, 0);
	feed(s, "", 1);
	assert_int_equal(s->result, DBUSP_SASL_CLOSE);
	free(s);
}

static void test_descriptors_are_agreed_on_only_where_they_pass(void **state)
{
	struct session *s = malloc(sizeof(*s));

	start(s, &both, 0);
	feed(s, "", 1);
	feed_text(s, "AUTH EXTERNAL 30\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n");
	assert_int_equal(s->result, DBUSP_SASL_DONE);
	assert_false(s->server.fds);
	assert_non_null(strstr(s->out, "\r\nERROR "));

	/* a CANCEL takes the agreement back */
	start(s, &external, 0);
	feed(s, "", 1);
	feed_text(s, "AUTH EXTERNAL 30\r\nNEGOTIATE_UNIX_FD\r\nCANCEL\r\n");
	feed_text(s, "AUTH EXTERNAL 30\r\nBEGIN\r\n");
	assert_int_equal(s->result, DBUSP_SASL_DONE);
	assert_false(s->server.fds);
	free(s);
}

static enum dbusp_why why_rejected(const struct dbusp_sasl_config *config, uint32_t uid,
				   const char *line)
{
	struct session *s = malloc(sizeof(*s));
	enum dbusp_why why;

	start(s, config, uid);
	feed(s, "", 1);
	feed_text(s, line);
	assert_memory_equal(s->out, "REJECTED", 8);
	why = s->server.why;
	free(s);
	return why;
}

static void test_rejections_have_reasons(void **state)
{
	assert_int_equal(why_rejected(&external, 0, "AUTH EXTERNAL 726f6f74\r\n"),
			 DBUSP_WHY_SASL_IDENTITY);
	assert_int_equal(why_rejected(&external, 0, "AUTH EXTERNAL 2b30\r\n"),
			 DBUSP_WHY_SASL_IDENTITY);
	assert_int_equal(why_rejected(&external, 0, "AUTH EXTERNAL 34323934393637323936\r\n"),
			 DBUSP_WHY_SASL_IDENTITY);
	assert_int_equal(why_rejected(&external, 0, "AUTH EXTERNAL 34323934393637323935\r\n"),
			 DBUSP_WHY_SASL_IDENTITY);
	assert_int_equal(why_rejected(&external, 0, "AUTH EXTERNAL 31\r\n"),
			 DBUSP_WHY_SASL_CREDENTIALS);
	assert_int_equal(why_rejected(&external, -1, "AUTH EXTERNAL 34323934393637323935\r\n"),
			 DBUSP_WHY_SASL_CREDENTIALS);
	assert_int_equal(why_rejected(&external, -1, "AUTH EXTERNAL\r\n"),
			 DBUSP_WHY_SASL_CREDENTIALS);
	assert_int_equal(why_rejected(&external, 0, "AUTH DBUS_COOKIE_SHA1 30\r\n"),
			 DBUSP_WHY_SASL_COOKIE);
	assert_int_equal(why_rejected(&external, 0, "AUTH ANONYMOUS 61\r\n"),
			 DBUSP_WHY_SASL_MECHANISM);
	assert_int_equal(why_rejected(&both, 0, "AUTH ANONYMOUS ff\r\n"), DBUSP_WHY_SASL_TRACE);
}

static void test_largest_uid(void **state)
{
	struct session *s = malloc(sizeof(*s));

	start(s, &external, UINT32_MAX - 1);
	feed(s, "", 1);
	feed_text(s, "AUTH EXTERNAL 34323934393637323934\r\n");
	assert_string_equal(s->out, "OK " GUID "\r\n");
	free(s);
}

static void test_anonymous_where_configured(void **state)
{
	static const char *const lines[] = {
		"AUTH ANONYMOUS\r\n",
		"AUTH ANONYMOUS 6c6962646275732031\r\n",
	};
	struct session *s = malloc(sizeof(*s));
	size_t i;

	for (i = 0; i < 2; i++) {
		start(s, &both, -1);
		feed(s, "", 1);
		feed_text(s, lines[i]);
		feed_text(s, "BEGIN\r\n");
		assert_int_equal(s->result, DBUSP_SASL_DONE);
		assert_int_equal(s->server.mech, DBUSP_SASL_ANONYMOUS);
	}
	start(s, &both, 0);
	feed(s, "", 1);
	feed_text(s, "AUTH\r\nAUTH X\r\nERROR\r\n");
	assert_string_equal(s->out, "REJECTED EXTERNAL ANONYMOUS\r\nREJECTED EXTERNAL ANONYMOUS\r\n"
				    "REJECTED EXTERNAL ANONYMOUS\r\n");
	free(s);
}

static void test_lines_end_at_16_kib(void **state)
{
	struct session *s = malloc(sizeof(*s));
	char *line = malloc(DBUSP_SASL_LINE_MAX + 1);

	memset(line, 'x', DBUSP_SASL_LINE_MAX + 1);
	start(s, &external, 0);
	feed(s, "", 1);
	feed(s, line, DBUSP_SASL_LINE_MAX - 2);
	assert_int_equal(s->result, DBUSP_SASL_MORE);
	feed_text(s, "\r\n");
	assert_int_equal(s->result, DBUSP_SASL_MORE);
	assert_int_equal(s->in_len, 0);
	assert_memory_equal(s->out, "ERROR ", 6);

	feed(s, line, DBUSP_SASL_LINE_MAX - 1);
	assert_int_equal(s->result, DBUSP_SASL_MORE);
	feed_text(s, "\r");
	assert_int_equal(s->result, DBUSP_SASL_CLOSE);
	assert_int_equal(s->server.why, DBUSP_WHY_SASL_LINE_LONG);

	/* carriage returns alone end no line */
	memset(line, '\r', DBUSP_SASL_LINE_MAX);
	start(s, &external, 0);
	feed(s, "", 1);
	feed(s, line, DBUSP_SASL_LINE_MAX - 1);
	assert_int_equal(s->result, DBUSP_SASL_MORE);
	feed_text(s, "\r");
	assert_int_equal(s->result, DBUSP_SASL_CLOSE);
	free(line);
	free(s);
}

/* A trace that fills a line fits where it is decoded. */
static void test_longest_anonymous_trace(void **state)
{
	struct session *s = malloc(sizeof(*s));
	char *line = malloc(DBUSP_SASL_LINE_MAX + 1);

	memset(line, '6', DBUSP_SASL_LINE_MAX);
	memcpy(line, "AUTH ANONYMOUS ", 15);
	start(s, &both, 0);
	feed(s, "", 1);
	feed(s, line, DBUSP_SASL_LINE_MAX - 3);
	feed_text(s, "\r\n");
	assert_string_equal(s->out, "OK " GUID "\r\n");
	free(line);
	free(s);
}

static void test_number_of_lines_is_bounded(void **state)
{
	struct session *s = malloc(sizeof(*s));
	int i;

	start(s, &external, 0);
	feed(s, "", 1);
	for (i = 0; i < DBUSP_SASL_LINES_MAX; i++) {
		feed_text(s, "FOO\r\n");
		assert_int_equal(s->result, DBUSP_SASL_MORE);
	}
	feed_text(s, "FOO\r\n");
	assert_int_equal(s->result, DBUSP_SASL_CLOSE);
	assert_int_equal(s->server.why, DBUSP_WHY_SASL_TOO_MANY);
	free(s);
}

static void test_without_room_for_a_reply_nothing_is_consumed(void **state)
{
	struct dbusp_sasl_server server;
	char out[DBUSP_SASL_REPLY_MAX];
	size_t consumed, written;

	dbusp_sasl_server_init(&server, &external, 0);
	assert_int_equal(dbusp_sasl_server_step(&server, "\0AUTH\r\n", 7, &consumed, out,
						sizeof(out) - 1, &written),
			 DBUSP_SASL_MORE);
	assert_int_equal(consumed, 0);
	assert_int_equal(written, 0);
	assert_int_equal(dbusp_sasl_server_step(&server, "\0AUTH\r\n", 7, &consumed, out,
						sizeof(out), &written),
			 DBUSP_SASL_MORE);
	assert_int_equal(consumed, 7);
	assert_int_equal(written, strlen("REJECTED EXTERNAL\r\n"));
}

static void test_random_lines_in_random_pieces(void **state)
{
	static const char *const lines[] = {
		"AUTH",
		"AUTH EXTERNAL",
		"AUTH EXTERNAL 30",
		"DATA",
		"DATA 30",
		"CANCEL",
		"ERROR",
		"NEGOTIATE_UNIX_FD",
		"BEGIN",
		"FOO",
		"\r",
		"AUTH ANONYMOUS 61",
	};
	struct session *whole = malloc(sizeof(*whole)), *pieces = malloc(sizeof(*pieces));
	unsigned int done = 0, closed = 0;
	uint64_t rng = 12;
	int n, i;

	for (n = 0; n < 3000; n++) {
		char text[1000] = "";
		size_t len, at, step;

		for (i = random_below(&rng, 20); i; i--) {
			strcat(text, lines[random_below(&rng, 12)]);
			strcat(text, "\r\n");
		}
		len = strlen(text);
		start(whole, &both, 0);
		start(pieces, &both, 0);
		feed(whole, "", 1);
		feed(pieces, "", 1);
		feed(whole, text, len);
		for (at = 0; at < len; at += step) {
			step = 1 + random_below(&rng, 30);
			step = step < len - at ? step : len - at;
			feed(pieces, text + at, step);
		}
		assert_int_equal(whole->result, pieces->result);
		assert_int_equal(whole->in_len, pieces->in_len);
		assert_int_equal(whole->out_len, pieces->out_len);
		assert_memory_equal(whole->out, pieces->out, whole->out_len);
		done += whole->result == DBUSP_SASL_DONE;
		closed += whole->result == DBUSP_SASL_CLOSE;
	}
	assert_true(done > 100 && closed > 100);
	free(whole);
	free(pieces);
}

/* One direction between client and server: @seen of its bytes have arrived. */
struct pipe {
	char buf[1000];
	size_t len, seen;
};

/* @piece more bytes arrive. */
static void arrive(struct pipe *p, size_t piece)
{
	p->seen = p->len - p->seen < piece ? p->len : p->seen + piece;
}

static void consume(struct pipe *p, size_t n)
{
	memmove(p->buf, p->buf + n, p->len - n);
	p->len -= n;
	p->seen -= n;
}

/* Lets client and server talk until one gives up or both are done. */
static void talk(const struct dbusp_sasl_config *config, uint32_t socket_uid,
		 struct dbusp_sasl_client *c, struct dbusp_sasl_server *s, size_t piece)
{
	struct pipe up = { .len = 0 }, down = { .len = 0 };
	enum dbusp_sasl_result rc = DBUSP_SASL_MORE, rs = DBUSP_SASL_MORE;
	size_t consumed, written;
	int turn;

	dbusp_sasl_server_init(s, config, socket_uid);
	for (turn = 0; turn < 500; turn++) {
		arrive(&down, piece);
		rc = dbusp_sasl_client_step(c, down.buf, down.seen, &consumed, up.buf + up.len,
					    sizeof(up.buf) - up.len, &written);
		consume(&down, consumed);
		up.len += written;
		arrive(&up, piece);
		rs = dbusp_sasl_server_step(s, up.buf, up.seen, &consumed, down.buf + down.len,
					    sizeof(down.buf) - down.len, &written);
		consume(&up, consumed);
		down.len += written;
		if (rc == DBUSP_SASL_CLOSE || rs == DBUSP_SASL_CLOSE)
			return;
		if (rc == DBUSP_SASL_DONE && rs == DBUSP_SASL_DONE)
			return;
	}
	fail_msg("no end");
}

static void test_client_and_server_agree(void **state)
{
	struct dbusp_sasl_client c;
	struct dbusp_sasl_server s;
	size_t piece;
	int fds;

	for (piece = 1; piece < 100; piece += 7) {
		for (fds = 0; fds < 2; fds++) {
			dbusp_sasl_client_init(&c, DBUSP_SASL_EXTERNAL, 1000, fds);
			talk(&external, 1000, &c, &s, piece);
			assert_string_equal(c.guid, GUID);
			assert_int_equal(c.fds, fds);
			assert_int_equal(s.fds, fds);
			assert_int_equal(s.mech, DBUSP_SASL_EXTERNAL);

			/* the server knows better who we are */
			dbusp_sasl_client_init(&c, DBUSP_SASL_EXTERNAL, -1, fds);
			talk(&external, 1000, &c, &s, piece);
			assert_string_equal(c.guid, GUID);
			assert_int_equal(s.mech, DBUSP_SASL_EXTERNAL);

			/* this one passes no descriptors */
			dbusp_sasl_client_init(&c, DBUSP_SASL_ANONYMOUS, -1, fds);
			talk(&both, 1000, &c, &s, piece);
			assert_string_equal(c.guid, GUID);
			assert_false(c.fds);
			assert_int_equal(s.mech, DBUSP_SASL_ANONYMOUS);
		}
		dbusp_sasl_client_init(&c, DBUSP_SASL_EXTERNAL, 1001, true);
		talk(&external, 1000, &c, &s, piece);
		assert_int_equal(c.why, DBUSP_WHY_SASL_REJECTED);
		assert_string_equal(c.guid, "");
	}
}

static void test_client_gives_up_on_strange_servers(void **state)
{
	static const struct {
		const char *reply;
		enum dbusp_why why;
	} rows[] = {
		{ "OK\r\n", DBUSP_WHY_SASL_REPLY },
		{ "OK 0123\r\n", DBUSP_WHY_SASL_REPLY },
		{ "OK 0123456789abcdef0123456789abcdeg\r\n", DBUSP_WHY_SASL_REPLY },
		{ "HELLO\r\n", DBUSP_WHY_SASL_REPLY },
		{ "ERROR\r\n", DBUSP_WHY_SASL_REPLY },
		{ "DATA 61\r\n", DBUSP_WHY_SASL_REPLY },
		{ "REJECTED\r\n", DBUSP_WHY_SASL_REJECTED },
		{ "OK " GUID "\r\nHELLO\r\n", DBUSP_WHY_SASL_REPLY },
	};
	struct dbusp_sasl_client c;
	char out[300];
	size_t i, consumed, written;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		dbusp_sasl_client_init(&c, DBUSP_SASL_EXTERNAL, 0, true);
		assert_int_equal(dbusp_sasl_client_step(&c, rows[i].reply, strlen(rows[i].reply),
							&consumed, out, sizeof(out), &written),
				 DBUSP_SASL_CLOSE);
		assert_int_equal(c.why, rows[i].why);
	}
	dbusp_sasl_client_init(&c, DBUSP_SASL_EXTERNAL, 0, true);
	assert_int_equal(dbusp_sasl_client_step(&c, "", 0, &consumed, out, DBUSP_SASL_REPLY_MAX - 1,
						&written),
			 DBUSP_SASL_MORE);
	assert_int_equal(written, 0);
	assert_int_equal(dbusp_sasl_client_step(&c, "", 0, &consumed, out, DBUSP_SASL_REPLY_MAX,
						&written),
			 DBUSP_SASL_MORE);
	assert_int_equal(written, strlen("_AUTH EXTERNAL 30\r\n"));
	assert_memory_equal(out, "\0AUTH EXTERNAL 30\r\n", written);
}

static void test_client_bounds_the_line_it_waits_for(void **state)
{
	char *line = malloc(DBUSP_SASL_LINE_MAX), out[DBUSP_SASL_REPLY_MAX * 2];
	struct dbusp_sasl_client c;
	size_t consumed, written;

	assert_non_null(line);
	memset(line, 'x', DBUSP_SASL_LINE_MAX);
	dbusp_sasl_client_init(&c, DBUSP_SASL_EXTERNAL, 0, true);
	assert_int_equal(dbusp_sasl_client_step(&c, line, DBUSP_SASL_LINE_MAX - 1, &consumed, out,
						sizeof(out), &written),
			 DBUSP_SASL_MORE);
	assert_int_equal(dbusp_sasl_client_step(&c, line, DBUSP_SASL_LINE_MAX, &consumed, out,
						sizeof(out), &written),
			 DBUSP_SASL_CLOSE);
	assert_int_equal(c.why, DBUSP_WHY_SASL_LINE_LONG);
	free(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conversations_in_pieces_of_any_size),
		cmocka_unit_test(test_pipelined_handshake_stops_before_the_first_message),
		cmocka_unit_test(test_first_byte_is_nul),
		cmocka_unit_test(test_descriptors_are_agreed_on_only_where_they_pass),
		cmocka_unit_test(test_rejections_have_reasons),
		cmocka_unit_test(test_largest_uid),
		cmocka_unit_test(test_anonymous_where_configured),
		cmocka_unit_test(test_lines_end_at_16_kib),
		cmocka_unit_test(test_longest_anonymous_trace),
		cmocka_unit_test(test_number_of_lines_is_bounded),
		cmocka_unit_test(test_without_room_for_a_reply_nothing_is_consumed),
		cmocka_unit_test(test_random_lines_in_random_pieces),
		cmocka_unit_test(test_client_and_server_agree),
		cmocka_unit_test(test_client_gives_up_on_strange_servers),
		cmocka_unit_test(test_client_bounds_the_line_it_waits_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
