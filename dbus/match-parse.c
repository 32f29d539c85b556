// SPDX-License-Identifier: LGPL-2.1-or-later
/* The parser of match.h. */
#include <errno.h>
#include <string.h>

#include "dbus/hex.h"
#include "dbus/match.h"
#include "dbus/name.h"

struct slot {
	bool set;
	uint8_t kind;
	struct dbusp_match_text text; /* in parse.values */
};

/* A rule while it is read: conditions in the order they come, values unquoted. */
struct parse {
	const char *p, *end;
	enum dbusp_why why;
	uint16_t keys;
	uint8_t type;
	struct slot sender, interface, member, path, destination;
	struct slot args[DBUSP_ARGS_MAX];
	uint16_t len;
	char values[DBUSP_MATCH_TEXT_MAX];
};

static int bad(struct parse *s, enum dbusp_why why)
{
	s->why = why;
	return -EINVAL;
}

static bool is_white(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_white(struct parse *s)
{
	while (s->p < s->end && is_white(*s->p))
		s->p++;
}

/* The next key, and the '=' after it. An empty one is the end of the rule. */
static int take_key(struct parse *s, struct dbusp_str *ret)
{
	const char *start;

	skip_white(s);
	start = s->p;
	while (s->p < s->end && *s->p != '=' && !is_white(*s->p))
		s->p++;
	*ret = (struct dbusp_str){ start, s->p - start };
	if (!ret->len)
		return 0;
	skip_white(s);
	if (s->p == s->end || *s->p != '=')
		return bad(s, DBUSP_WHY_RULE_NO_EQUALS);
	s->p++;
	return 0;
}

/* A value up to a comma outside of quotes; there, \' is an apostrophe. */
static int take_value(struct parse *s, struct dbusp_match_text *ret)
{
	bool quoted = false;
	uint16_t start = s->len;
	char c;

	while (s->p < s->end) {
		c = *s->p++;
		if (c == '\'') {
			quoted = !quoted;
			continue;
		}
		if (!quoted && c == ',')
			break;
		if (!quoted && c == '\\' && s->p < s->end && *s->p == '\'')
			c = *s->p++;
		s->values[s->len++] = c;
	}
	if (quoted)
		return bad(s, DBUSP_WHY_RULE_QUOTE);
	*ret = (struct dbusp_match_text){ start, s->len - start };
	return 0;
}

static bool value_is(const struct parse *s, struct dbusp_match_text t, const char *what)
{
	return t.len == strlen(what) && !memcmp(s->values + t.at, what, t.len);
}

static int set_type(struct parse *s, struct dbusp_match_text t)
{
	static const char *const names[] = {
		[DBUSP_METHOD_CALL] = "method_call",
		[DBUSP_METHOD_RETURN] = "method_return",
		[DBUSP_ERROR] = "error",
		[DBUSP_SIGNAL] = "signal",
	};
	unsigned int type;

	if (s->type)
		return bad(s, DBUSP_WHY_RULE_TWICE);
	for (type = DBUSP_METHOD_CALL; type <= DBUSP_SIGNAL; type++) {
		if (value_is(s, t, names[type])) {
			s->type = type;
			s->keys |= DBUSP_MATCH_TYPE;
			return 0;
		}
	}
	return bad(s, DBUSP_WHY_RULE_TYPE);
}

static int set_eavesdrop(struct parse *s, struct dbusp_match_text t)
{
	if (value_is(s, t, "true"))
		s->keys |= DBUSP_MATCH_EAVESDROP;
	else if (value_is(s, t, "false"))
		s->keys &= ~DBUSP_MATCH_EAVESDROP;
	else
		return bad(s, DBUSP_WHY_RULE_EAVESDROP);
	return 0;
}

/* Keys whose value is a name or a path. */
static const struct text_key {
	const char *name;
	uint16_t key;
	uint16_t excludes; /* keys that must not have come before */
	enum dbusp_why twice, why; /* if one has, and if the value is invalid */
	bool (*valid)(const char *s, size_t len);
	size_t offset; /* of the slot in struct parse */
} text_keys[] = {
	{ "sender", DBUSP_MATCH_SENDER, DBUSP_MATCH_SENDER, DBUSP_WHY_RULE_TWICE, DBUSP_WHY_SENDER,
	  dbusp_name_is_bus, offsetof(struct parse, sender) },
	{ "interface", DBUSP_MATCH_INTERFACE, DBUSP_MATCH_INTERFACE, DBUSP_WHY_RULE_TWICE,
	  DBUSP_WHY_INTERFACE, dbusp_name_is_interface, offsetof(struct parse, interface) },
	{ "member", DBUSP_MATCH_MEMBER, DBUSP_MATCH_MEMBER, DBUSP_WHY_RULE_TWICE, DBUSP_WHY_MEMBER,
	  dbusp_name_is_member, offsetof(struct parse, member) },
	{ "path", DBUSP_MATCH_PATH, DBUSP_MATCH_PATH | DBUSP_MATCH_PATH_NAMESPACE,
	  DBUSP_WHY_RULE_PATHS, DBUSP_WHY_PATH, dbusp_path_valid, offsetof(struct parse, path) },
	{ "path_namespace", DBUSP_MATCH_PATH_NAMESPACE,
	  DBUSP_MATCH_PATH | DBUSP_MATCH_PATH_NAMESPACE, DBUSP_WHY_RULE_PATHS, DBUSP_WHY_PATH,
	  dbusp_path_valid, offsetof(struct parse, path) },
	{ "destination", DBUSP_MATCH_DESTINATION, DBUSP_MATCH_DESTINATION, DBUSP_WHY_RULE_TWICE,
	  DBUSP_WHY_DESTINATION, dbusp_name_is_bus, offsetof(struct parse, destination) },
};

static int set_text(struct parse *s, const struct text_key *key, struct dbusp_match_text t)
{
	struct slot *slot = (struct slot *)((char *)s + key->offset);

	if (s->keys & key->excludes)
		return bad(s, key->twice);
	if (!key->valid(s->values + t.at, t.len))
		return bad(s, key->why);
	*slot = (struct slot){ .set = true, .text = t };
	s->keys |= key->key;
	return 0;
}

static bool is_hex_prefix(const char *p, const char *end)
{
	return end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X') &&
	       dbusp_hex_digit(p[2]) < 16;
}

/*
 * A number as strtoul() with base 0 reads it, but for a sign of minus. Anything from 64 on comes
 * out as 64. Returns where it ends, or @p if there is none.
 */
static const char *take_number(const char *p, const char *end, unsigned int *ret)
{
	const char *start = p;
	unsigned int base = 10, n = 0;

	if (p < end && *p == '+')
		p++;
	if (p == end || dbusp_hex_digit(*p) > 9)
		return start;
	if (is_hex_prefix(p, end)) {
		base = 16;
		p += 2;
	} else if (*p == '0') {
		base = 8;
	}
	for (; p < end && dbusp_hex_digit(*p) < base; p++) {
		n = n * base + dbusp_hex_digit(*p);
		if (n > DBUSP_ARGS_MAX)
			n = DBUSP_ARGS_MAX;
	}
	*ret = n;
	return p;
}

/* argN, argNpath or arg0namespace: which argument, and how it is compared */
static int parse_arg_key(struct parse *s, struct dbusp_str key, unsigned int *ret_index,
			 uint8_t *ret_kind)
{
	const char *end = key.s + key.len, *p = take_number(key.s + 3, end, ret_index);
	const struct dbusp_str suffix = { p, end - p };

	if (p == key.s + 3)
		return bad(s, DBUSP_WHY_RULE_ARG);
	if (!suffix.len)
		*ret_kind = DBUSP_ARG_EQUAL;
	else if (dbusp_str_eq(suffix, DBUSP_STR("path")))
		*ret_kind = DBUSP_ARG_PATH;
	else if (dbusp_str_eq(key, DBUSP_STR("arg0namespace")))
		*ret_kind = DBUSP_ARG_NAMESPACE;
	else
		return bad(s, DBUSP_WHY_RULE_ARG);
	return *ret_index < DBUSP_ARGS_MAX ? 0 : bad(s, DBUSP_WHY_RULE_ARG_RANGE);
}

static int set_arg(struct parse *s, struct dbusp_str key, struct dbusp_match_text t)
{
	unsigned int index;
	uint8_t kind;
	int r;

	r = parse_arg_key(s, key, &index, &kind);
	if (r < 0)
		return r;
	if (s->args[index].set)
		return bad(s, DBUSP_WHY_RULE_TWICE);
	if (kind == DBUSP_ARG_NAMESPACE && !dbusp_name_is_namespace(s->values + t.at, t.len))
		return bad(s, DBUSP_WHY_RULE_NAMESPACE);
	s->args[index] = (struct slot){ .set = true, .kind = kind, .text = t };
	s->keys |= DBUSP_MATCH_ARGS;
	return 0;
}

static int set(struct parse *s, struct dbusp_str key, struct dbusp_match_text t)
{
	size_t i;

	if (dbusp_str_eq(key, DBUSP_STR("type")))
		return set_type(s, t);
	if (dbusp_str_eq(key, DBUSP_STR("eavesdrop")))
		return set_eavesdrop(s, t);
	for (i = 0; i < sizeof(text_keys) / sizeof(text_keys[0]); i++) {
		if (dbusp_str_eq(key, dbusp_str(text_keys[i].name)))
			return set_text(s, &text_keys[i], t);
	}
	if (key.len >= 3 && !memcmp(key.s, "arg", 3))
		return set_arg(s, key, t);
	return bad(s, DBUSP_WHY_RULE_KEY);
}

static int parse_rule(struct parse *s)
{
	struct dbusp_match_text value;
	struct dbusp_str key;
	int r;

	if (memchr(s->p, 0, s->end - s->p))
		return bad(s, DBUSP_WHY_RULE_NUL);
	while (s->p < s->end) {
		r = take_key(s, &key);
		if (r < 0)
			return r;
		if (!key.len)
			break;
		r = take_value(s, &value);
		if (r >= 0)
			r = set(s, key, value);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Puts text at the end of the rule; absent text is all zeroes. */
static struct dbusp_match_text place(const struct parse *s, const struct slot *slot,
				     struct dbusp_match *m)
{
	const struct dbusp_match_text t = { m->size, slot->text.len };

	if (!slot->set)
		return (struct dbusp_match_text){ 0, 0 };
	memcpy((char *)m + m->size, s->values + slot->text.at, t.len);
	m->size += t.len;
	return t;
}

/* One order for everything, so that the same conditions give the same bytes. */
static void assemble(const struct parse *s, struct dbusp_match *m)
{
	unsigned int i, n = 0;

	for (i = 0; i < DBUSP_ARGS_MAX; i++)
		n += s->args[i].set;
	m->keys = s->keys;
	m->type = s->type;
	m->n_args = n;
	m->size = offsetof(struct dbusp_match, args) + n * sizeof(m->args[0]);
	m->sender = place(s, &s->sender, m);
	m->interface = place(s, &s->interface, m);
	m->member = place(s, &s->member, m);
	m->path = place(s, &s->path, m);
	m->destination = place(s, &s->destination, m);
	for (i = n = 0; i < DBUSP_ARGS_MAX; i++) {
		if (!s->args[i].set)
			continue;
		m->args[n].index = i;
		m->args[n].kind = s->args[i].kind;
		m->args[n++].text = place(s, &s->args[i], m);
	}
}

int dbusp_match_parse(struct dbusp_match_buf *ret, const char *text, size_t len,
		      enum dbusp_why *ret_why)
{
	struct parse s;
	int r;

	_Static_assert(sizeof(struct dbusp_match) == 26, "padding would break equality");
	_Static_assert(sizeof(struct dbusp_match_arg) == 6, "padding would break equality");

	if (len > DBUSP_MATCH_TEXT_MAX)
		return dbusp_fail(ret_why, DBUSP_WHY_RULE_LONG, -EMSGSIZE);
	/* all but the values */
	memset(&s, 0, offsetof(struct parse, values));
	s.p = text;
	s.end = text + len;
	r = parse_rule(&s);
	if (r < 0)
		return dbusp_fail(ret_why, s.why, r);
	assemble(&s, &ret->match);
	return 0;
}
