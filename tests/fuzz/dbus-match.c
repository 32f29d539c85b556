// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Match rules: what is accepted has a canonical form that means the same, and can be asked about
 * any message. Input: a rule, a NUL byte, a message.
 */
#include <errno.h>

#include "dbus/body.h"
#include "dbus/match.h"
#include "dbus/name.h"
#include "fuzz.h"

static void check_text(const struct dbusp_match *m, struct dbusp_str s)
{
	const char *start = (const char *)m;

	FUZZ_CHECK(s.s >= start && s.s <= start + m->size && s.len <= start + m->size - s.s);
}

static void check_rule(const struct dbusp_match *m)
{
	static const enum dbusp_match_key keys[] = {
		DBUSP_MATCH_SENDER, DBUSP_MATCH_INTERFACE,	DBUSP_MATCH_MEMBER,
		DBUSP_MATCH_PATH,   DBUSP_MATCH_PATH_NAMESPACE, DBUSP_MATCH_DESTINATION,
	};
	size_t i;

	FUZZ_CHECK(m->size <= sizeof(struct dbusp_match_buf) && m->type <= DBUSP_SIGNAL);
	FUZZ_CHECK(!m->type == !(m->keys & DBUSP_MATCH_TYPE));
	FUZZ_CHECK(!m->n_args == !(m->keys & DBUSP_MATCH_ARGS));
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct dbusp_str s = dbusp_match_get(m, keys[i]);

		FUZZ_CHECK(!s.s == !(m->keys & keys[i]));
		if (s.s)
			check_text(m, s);
	}
	for (i = 0; i < m->n_args; i++) {
		check_text(m, dbusp_match_arg_text(m, i));
		FUZZ_CHECK(m->args[i].index < DBUSP_ARGS_MAX);
		FUZZ_CHECK(!i || m->args[i].index > m->args[i - 1].index);
	}
}

static void check_canonical(const struct dbusp_match *m)
{
	static char text[8 * DBUSP_MATCH_TEXT_MAX], again[8 * DBUSP_MATCH_TEXT_MAX];
	const size_t len = dbusp_match_format(m, text, sizeof(text));
	struct dbusp_match_buf copy;
	int r;

	FUZZ_CHECK(len < sizeof(text) && strlen(text) == len);
	r = dbusp_match_parse(&copy, text, len, NULL);
	FUZZ_CHECK(r == (len > DBUSP_MATCH_TEXT_MAX ? -EMSGSIZE : 0));
	if (r < 0)
		return;
	FUZZ_CHECK(dbusp_match_equal(m, &copy.match));
	FUZZ_CHECK(dbusp_match_format(&copy.match, again, sizeof(again)) == len);
	FUZZ_CHECK(!memcmp(text, again, len));
}

/* A rule that matches goes on matching when a monitor asks. */
static void check_test(const struct dbusp_match *m, const uint8_t *msg, size_t size)
{
	struct dbusp_match_subject s = { .monitor = false };
	struct dbusp_header h;
	struct dbusp_args args;
	bool plain;

	if (dbusp_header_parse(&h, msg, size, DBUSP_MESSAGE_MAX, NULL) < 0 ||
	    size < h.frame.total_len)
		return;
	dbusp_args_init(&args, &h, msg + h.frame.header_len);
	s.header = &h;
	s.args = &args;
	plain = dbusp_match_test(m, &s);
	FUZZ_CHECK(!plain || !h.destination.s || (m->keys & DBUSP_MATCH_EAVESDROP));
	FUZZ_CHECK(!plain || !m->type || m->type == h.frame.type);
	s.monitor = true;
	FUZZ_CHECK(!plain || dbusp_match_test(m, &s));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
	const size_t rule_len = nul ? (size_t)(nul - data) : size;
	char *rule = fuzz_copy(data, rule_len);
	struct dbusp_match_buf *m = malloc(sizeof(*m));
	uint8_t *msg;
	int r;

	FUZZ_CHECK(m);
	memset(m, 0xa5, sizeof(*m));
	r = dbusp_match_parse(m, rule, rule_len, NULL);
	FUZZ_CHECK(r == 0 || r == (rule_len > DBUSP_MATCH_TEXT_MAX ? -EMSGSIZE : -EINVAL));
	if (r == 0) {
		const size_t match_size = dbusp_match_size(&m->match);
		struct dbusp_match *match;

		/* in memory of exactly its size */
		FUZZ_CHECK(match_size >= sizeof(*match));
		match = fuzz_copy(&m->match, match_size);
		check_rule(match);
		check_canonical(match);
		if (nul) {
			msg = fuzz_copy(nul + 1, size - rule_len - 1);
			check_test(match, msg, size - rule_len - 1);
			free(msg);
		}
		free(match);
	}
	free(m);
	free(rule);
	return 0;
}
