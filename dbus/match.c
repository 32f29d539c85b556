// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dbus/match.h"

#include <string.h>

static const char *const type_names[] = { "", "method_call", "method_return", "error", "signal" };

size_t dbusp_match_size(const struct dbusp_match *match)
{
	return match->size;
}

bool dbusp_match_equal(const struct dbusp_match *a, const struct dbusp_match *b)
{
	return a->size == b->size && !memcmp(a, b, a->size);
}

static struct dbusp_str text_at(const struct dbusp_match *m, struct dbusp_match_text t)
{
	return (struct dbusp_str){ (const char *)m + t.at, t.len };
}

struct dbusp_str dbusp_match_get(const struct dbusp_match *match, enum dbusp_match_key key)
{
	if (!(match->keys & key))
		return (struct dbusp_str){ NULL, 0 };
	switch (key) {
	case DBUSP_MATCH_SENDER:
		return text_at(match, match->sender);
	case DBUSP_MATCH_INTERFACE:
		return text_at(match, match->interface);
	case DBUSP_MATCH_MEMBER:
		return text_at(match, match->member);
	case DBUSP_MATCH_PATH:
	case DBUSP_MATCH_PATH_NAMESPACE:
		return text_at(match, match->path);
	case DBUSP_MATCH_DESTINATION:
		return text_at(match, match->destination);
	default:
		return (struct dbusp_str){ NULL, 0 };
	}
}

struct dbusp_str dbusp_match_arg_text(const struct dbusp_match *match, unsigned int i)
{
	return text_at(match, match->args[i].text);
}

/* Is @s the namespace or below it, where @sep separates the elements? */
static bool below(struct dbusp_str s, struct dbusp_str ns, char sep)
{
	if (s.len < ns.len || memcmp(s.s, ns.s, ns.len))
		return false;
	return s.len == ns.len || s.s[ns.len] == sep;
}

static bool path_below(struct dbusp_str path, struct dbusp_str ns)
{
	return ns.len == 1 || below(path, ns, '/');
}

/* Equal, or one of them ends with a slash and is a prefix of the other. */
static bool arg_paths_match(struct dbusp_str a, struct dbusp_str b)
{
	const struct dbusp_str shorter = a.len < b.len ? a : b;

	if (memcmp(a.s, b.s, shorter.len))
		return false;
	if (a.len == b.len)
		return true;
	return shorter.len && shorter.s[shorter.len - 1] == '/';
}

static bool arg_matches(const struct dbusp_match *m, unsigned int i, struct dbusp_args *args)
{
	const struct dbusp_str expect = dbusp_match_arg_text(m, i);
	const struct dbusp_arg arg = dbusp_args_get(args, m->args[i].index);
	const uint8_t kind = m->args[i].kind;

	if (arg.type != 's' && !(arg.type == 'o' && kind == DBUSP_ARG_PATH))
		return false;
	if (kind == DBUSP_ARG_PATH)
		return arg_paths_match(arg.text, expect);
	if (kind == DBUSP_ARG_NAMESPACE)
		return below(arg.text, expect, '.');
	return dbusp_str_eq(arg.text, expect);
}

/* Conditions that the header alone decides. */
static bool header_matches(const struct dbusp_match *m, const struct dbusp_header *h)
{
	if (m->type && m->type != h->frame.type)
		return false;
	if ((m->keys & DBUSP_MATCH_MEMBER) && !dbusp_str_eq(h->member, text_at(m, m->member)))
		return false;
	if ((m->keys & DBUSP_MATCH_INTERFACE) &&
	    !dbusp_str_eq(h->interface, text_at(m, m->interface)))
		return false;
	if ((m->keys & DBUSP_MATCH_PATH) && !dbusp_str_eq(h->path, text_at(m, m->path)))
		return false;
	if ((m->keys & DBUSP_MATCH_PATH_NAMESPACE) &&
	    (!h->path.s || !path_below(h->path, text_at(m, m->path))))
		return false;
	return true;
}

static bool peer_matches(struct dbusp_str name, struct dbusp_str in_header,
			 bool (*is)(void *userdata, struct dbusp_str name), void *userdata)
{
	return is ? is(userdata, name) : dbusp_str_eq(name, in_header);
}

static bool peers_match(const struct dbusp_match *m, const struct dbusp_match_subject *s)
{
	const struct dbusp_header *h = s->header;

	/* a broadcast has no destination to compare with */
	if ((m->keys & DBUSP_MATCH_DESTINATION) &&
	    (!h->destination.s || !peer_matches(text_at(m, m->destination), h->destination,
						s->destination_is, s->userdata)))
		return false;
	if ((m->keys & DBUSP_MATCH_SENDER) &&
	    !peer_matches(text_at(m, m->sender), h->sender, s->sender_is, s->userdata))
		return false;
	return true;
}

bool dbusp_match_test(const struct dbusp_match *match, const struct dbusp_match_subject *subject)
{
	unsigned int i;

	if (subject->header->destination.s && !subject->monitor &&
	    !(match->keys & DBUSP_MATCH_EAVESDROP))
		return false;
	if (!header_matches(match, subject->header))
		return false;
	for (i = 0; i < match->n_args; i++) {
		if (!arg_matches(match, i, subject->args))
			return false;
	}
	return peers_match(match, subject);
}

/* Text that is measured beyond the end of its buffer. */
struct output {
	char *buf;
	size_t size, len;
};

static void put(struct output *out, const char *s, size_t len)
{
	size_t room = out->len < out->size ? out->size - out->len : 0;

	if (room)
		memcpy(out->buf + out->len, s, len < room ? len : room);
	out->len += len;
}

/* key='value', where an apostrophe leaves the quotes: ' becomes '\'' */
static void put_pair(struct output *out, const char *key, struct dbusp_str value)
{
	uint32_t i;

	if (out->len)
		put(out, ",", 1);
	put(out, key, strlen(key));
	put(out, "='", 2);
	for (i = 0; i < value.len; i++) {
		if (value.s[i] == '\'')
			put(out, "'\\''", 4);
		else
			put(out, value.s + i, 1);
	}
	put(out, "'", 1);
}

static void put_args(struct output *out, const struct dbusp_match *m)
{
	static const char *const suffix[] = { "", "path", "namespace" };
	char key[] = "arg00namespace", *p;
	unsigned int i;

	for (i = 0; i < m->n_args; i++) {
		const struct dbusp_match_arg *arg = &m->args[i];

		p = key + 3;
		if (arg->index > 9)
			*p++ = '0' + arg->index / 10;
		*p++ = '0' + arg->index % 10;
		strcpy(p, suffix[arg->kind]);
		put_pair(out, key, dbusp_match_arg_text(m, i));
	}
}

size_t dbusp_match_format(const struct dbusp_match *match, char *buf, size_t size)
{
	static const struct {
		enum dbusp_match_key key;
		const char *name;
	} rows[] = {
		{ DBUSP_MATCH_SENDER, "sender" },
		{ DBUSP_MATCH_INTERFACE, "interface" },
		{ DBUSP_MATCH_MEMBER, "member" },
		{ DBUSP_MATCH_PATH, "path" },
		{ DBUSP_MATCH_PATH_NAMESPACE, "path_namespace" },
		{ DBUSP_MATCH_DESTINATION, "destination" },
	};
	struct output out = { .buf = buf, .size = buf ? size : 0 };
	size_t i;

	if (match->type)
		put_pair(&out, "type", dbusp_str(type_names[match->type]));
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (match->keys & rows[i].key)
			put_pair(&out, rows[i].name, dbusp_match_get(match, rows[i].key));
	}
	put_args(&out, match);
	if (match->keys & DBUSP_MATCH_EAVESDROP)
		put_pair(&out, "eavesdrop", DBUSP_STR("true"));
	if (out.size)
		buf[out.len < out.size ? out.len : out.size - 1] = 0;
	return out.len;
}
