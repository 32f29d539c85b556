// SPDX-License-Identifier: LGPL-2.1-or-later
/* Whose rules match a message. Rules: match.h. */
#include <string.h>

#include "match-internal.h"
#include "roster.h"

/* A search; hashes of the parts of its message, that of the first argument once it is asked for */
struct search {
	struct classic *classic;
	struct cmsg *m;
	const struct peer *to;
	void (*visit)(struct cpeer *c, struct cmsg *m);
	struct match_index *index;
	struct dbusp_match_subject subject;
	struct dbusp_str arg0;
	uint32_t interface, member, path, arg_hash;
	bool arg_ready;
};

/* ---- names of peers ---- */

static bool peer_is(const struct peer *p, struct dbusp_str name)
{
	char buf[CLASSIC_UNIQUE_MAX];
	char text[256];

	if (name.s[0] == ':')
		return dbusp_str_eq(unique_name(p, buf), name);
	if (name.len >= sizeof(text))
		return false;
	memcpy(text, name.s, name.len);
	text[name.len] = '\0';
	return peer_owns(p, text);
}

static bool sender_is(void *userdata, struct dbusp_str name)
{
	const struct search *s = userdata;

	return s->m->from ? peer_is(s->m->from, name) : dbusp_str_eq(name, s->m->sender);
}

static bool destination_is(void *userdata, struct dbusp_str name)
{
	const struct search *s = userdata;

	return s->to ? peer_is(s->to, name) : dbusp_str_eq(name, s->m->header.destination);
}

static size_t n_names(const struct peer *p)
{
	return p ? 1 + peer_count_names(p) : 1;
}

/* ---- arguments ---- */

static struct dbusp_args *args_of(struct cmsg *m)
{
	if (!m->args_ready)
		dbusp_args_init(&m->args, &m->header, m->body);
	m->args_ready = true;
	return &m->args;
}

/* s == NULL: there is none that a rule of that kind could be about. */
static struct dbusp_str text_of_arg(const struct search *s, unsigned int i, bool path)
{
	const struct dbusp_arg arg = dbusp_args_get(args_of(s->m), i);
	const bool fits = arg.type == 's' || (path && arg.type == 'o');

	return fits ? arg.text : (struct dbusp_str){ NULL, 0 };
}

static void read_arg0(struct search *s)
{
	if (s->arg_ready)
		return;
	s->arg0 = text_of_arg(s, 0, false);
	/* No rule is as long as what is not hashed. */
	if (s->arg0.len <= DBUSP_MATCH_TEXT_MAX)
		s->arg_hash = match_part_of(s->classic->matches, s->arg0, BY_ARG0);
	s->arg_ready = true;
}

/* ---- looking at rules ---- */

static void look_at(struct search *s, struct rule *rule)
{
	if (rule->owner->visited == s->classic->search || !cpeer_alive(rule->owner) ||
	    &rule->owner->peer == s->to || !dbusp_match_test(&rule->match, &s->subject))
		return;
	rule->owner->visited = s->classic->search;
	s->visit(rule->owner, s->m);
}

/* The last step to a key: what comes after the last part of it */
static void look(struct search *s, uint16_t shape, uint32_t key)
{
	struct rule *rule = *match_bucket(s->index, key), *next;

	for (; rule; rule = next) {
		next = rule->next;
		core_step();
		if (rule->key == key)
			look_at(s, rule);
	}
}

/* The first with that key whose path is not before @text */
static struct rb_node *first_path(const struct search *s, uint32_t key, struct dbusp_str text)
{
	struct rb_node *node = s->index->paths.rb_node, *first = NULL;

	while (node) {
		core_step();
		if (match_path_order(match_rule_at(node), key, text) < 0) {
			node = node->rb_right;
		} else {
			first = node;
			node = node->rb_left;
		}
	}
	return first;
}

/* Those with that path; with @below also those with a path that begins with it */
static void look_at_paths(struct search *s, uint32_t key, struct dbusp_str text, bool below)
{
	struct rb_node *node = first_path(s, key, text), *next;
	struct dbusp_str own;
	struct rule *rule;

	for (; node; node = next) {
		next = rb_next(node);
		core_step();
		rule = match_rule_at(node);
		own = match_filed_text(rule);
		if (rule->key != key || own.len < text.len || memcmp(own.s, text.s, text.len) ||
		    (!below && own.len > text.len))
			return;
		look_at(s, rule);
	}
}

/* All rules, when there are fewer of them than keys to look for */
static void look_everywhere(struct search *s)
{
	struct rule *rule, *next;
	struct rb_node *node;
	size_t i;

	for (node = rb_first(&s->index->paths); node; node = rb_next(node)) {
		core_step();
		look_at(s, match_rule_at(node));
	}
	for (i = 0; i < s->index->n_buckets; i++) {
		for (rule = s->index->buckets[i]; rule; rule = next) {
			next = rule->next;
			core_step();
			look_at(s, rule);
		}
	}
}

/* ---- keys, part by part ---- */

/* What is done with a key that has one part more */
typedef void (*step_fn)(struct search *s, uint16_t shape, uint32_t key);

/* A text of which every prefix that ends before a separator is one way to go on, and all of it */
struct branches {
	struct dbusp_str text;
	char separator;
	uint32_t what;
};

static void look_prefixes(struct search *s, uint16_t shape, uint32_t key,
			  const struct branches *branches, step_fn step)
{
	const struct dbusp_str text = branches->text;

	const struct dbusp_hash_key *hash_key = &s->classic->matches->key;
	struct dbusp_hash h;
	uint32_t i, from = 0;

	dbusp_hash_begin(&h, hash_key);
	for (i = 0; i <= text.len && i <= DBUSP_MATCH_TEXT_MAX; i++) {
		if (i < text.len && text.s[i] != branches->separator)
			continue;
		dbusp_hash_add(&h, text.s + from, i - from);
		from = i;
		if (i)
			step(s, shape, key + match_part(dbusp_hash_end(&h), branches->what));
	}
	/* The root of all paths is a prefix that ends in a separator. */
	if (branches->separator == '/' && text.len > 1)
		step(s, shape, key + match_part(dbusp_hash_of(hash_key, "/", 1), branches->what));
}

static void look_arg0(struct search *s, uint16_t shape, uint32_t key)
{
	read_arg0(s);
	if (!s->arg0.s)
		return;
	if (shape & BY_ARG0_PREFIX)
		look_prefixes(s, shape, key, &(struct branches){ s->arg0, '.', BY_ARG0_PREFIX },
			      look);
	else if (s->arg0.len <= DBUSP_MATCH_TEXT_MAX)
		look(s, shape, key + s->arg_hash);
}

/* A rule's path that ends in a slash and the argument goes on behind, or the other way round */
static void look_paths(struct search *s, uint32_t key, struct dbusp_str text)
{
	uint32_t i;

	for (i = 1; i < text.len && i <= DBUSP_MATCH_TEXT_MAX; i++)
		if (text.s[i - 1] == '/')
			look_at_paths(s, key, (struct dbusp_str){ text.s, i }, false);
	if (text.len <= DBUSP_MATCH_TEXT_MAX)
		look_at_paths(s, key, text, text.len && text.s[text.len - 1] == '/');
}

static void look_args(struct search *s, uint16_t shape, uint32_t key)
{
	const bool path = shape & BY_ARG_PATH;
	uint64_t left = s->index->args[path ? MATCH_ARG_PATH : MATCH_ARG_EQUAL].used;
	struct dbusp_str text;
	unsigned int i;

	for (; left; left &= left - 1) {
		i = (unsigned int)__builtin_ctzll(left);
		text = text_of_arg(s, i, path);
		if (text.s && path)
			look_paths(s, key + match_part(0, match_by_arg(BY_ARG_PATH, i)), text);
		else if (text.s && text.len <= DBUSP_MATCH_TEXT_MAX)
			look(s, shape,
			     key + match_part_of(s->classic->matches, text,
						 match_by_arg(BY_ARG, i)));
	}
}

static void look_arg(struct search *s, uint16_t shape, uint32_t key)
{
	if (shape & (BY_ARG0 | BY_ARG0_PREFIX))
		look_arg0(s, shape, key);
	else if (shape & (BY_ARG | BY_ARG_PATH))
		look_args(s, shape, key);
	else
		look(s, shape, key);
}

static void look_path(struct search *s, uint16_t shape, uint32_t key)
{
	if (shape & BY_PATH_PREFIX)
		look_prefixes(s, shape, key,
			      &(struct branches){ s->m->header.path, '/', BY_PATH_PREFIX },
			      look_arg);
	else
		look_arg(s, shape, shape & BY_PATH ? key + s->path : key);
}

/* A peer is its unique name, and each name that it owns. */
static void look_names(struct search *s, uint16_t shape, uint32_t key, const struct peer *p,
		       struct dbusp_str unique, uint32_t what, step_fn step)
{
	const struct matches *m = s->classic->matches;
	const char *name;
	void *at = NULL;

	step(s, shape, key + match_part_of(m, unique, what));
	while (p && (name = peer_next_name(p, false, &at)))
		step(s, shape, key + match_part_of(m, dbusp_str(name), what));
}

static void look_destination(struct search *s, uint16_t shape, uint32_t key)
{
	char buf[CLASSIC_UNIQUE_MAX];
	struct dbusp_str name = s->to ? unique_name(s->to, buf) : s->m->header.destination;

	if (shape & BY_DESTINATION)
		look_names(s, shape, key, s->to, name, BY_DESTINATION, look_path);
	else
		look_path(s, shape, key);
}

static void look_sender(struct search *s, uint16_t shape, uint32_t key)
{
	if (shape & BY_SENDER)
		look_names(s, shape, key, s->m->from, s->m->sender, BY_SENDER, look_destination);
	else
		look_destination(s, shape, key);
}

/* ---- shapes ---- */

static size_t n_separators(struct dbusp_str text, char separator)
{
	size_t n = 0;
	uint32_t i;

	for (i = 0; i < text.len && i <= DBUSP_MATCH_TEXT_MAX; i++)
		n += text.s[i] == separator;
	return n;
}

static size_t n_arg_keys(const struct search *s, uint16_t shape)
{
	const bool path = shape & BY_ARG_PATH;
	uint64_t left = s->index->args[path ? MATCH_ARG_PATH : MATCH_ARG_EQUAL].used;
	struct dbusp_str text;
	size_t n = 0;

	if (shape & BY_ARG0_PREFIX)
		return 1 + n_separators(text_of_arg(s, 0, false), '.');
	if (!(shape & (BY_ARG | BY_ARG_PATH)))
		return 1;
	for (; left; left &= left - 1) {
		text = text_of_arg(s, (unsigned int)__builtin_ctzll(left), path);
		n += 1 + (path ? n_separators(text, '/') : 0);
	}
	return n;
}

static size_t n_keys(const struct search *s, uint16_t shape)
{
	size_t n = n_arg_keys(s, shape);

	if (shape & BY_SENDER)
		n *= n_names(s->m->from);
	if (shape & BY_DESTINATION)
		n *= n_names(s->to);
	if (shape & BY_PATH_PREFIX)
		n *= 2 + n_separators(s->m->header.path, '/');
	return n;
}

static bool has(struct dbusp_str s, uint16_t shape, unsigned int bit)
{
	return !(shape & bit) || s.s;
}

/* Does the message have what rules of this shape are about? */
static bool concerns(const struct search *s, uint16_t shape)
{
	const struct dbusp_header *h = &s->m->header;

	return has(h->interface, shape, BY_INTERFACE) && has(h->member, shape, BY_MEMBER) &&
	       has(h->path, shape, BY_PATH | BY_PATH_PREFIX) &&
	       has(h->destination, shape, BY_DESTINATION);
}

/*
 * Names of the sender times prefixes of the path and so on: a message may have hundreds of each,
 * for each shape there is. All shapes together must not cost more than all rules.
 */
static bool has_many_keys(const struct search *s)
{
	const struct match_index *index = s->index;
	size_t all = index->n_buckets + index->n, n = 0;
	unsigned int i;

	for (i = 0; i < index->n_shapes && n <= all; i++)
		if (concerns(s, index->shapes[i]))
			n += n_keys(s, index->shapes[i]);
	return n > all;
}

static void look_shape(struct search *s, uint16_t shape)
{
	uint32_t key = match_shape_key(shape);

	if (!concerns(s, shape))
		return;
	if (shape & BY_TYPE)
		key += match_part(s->m->header.frame.type, BY_TYPE);
	if (shape & BY_INTERFACE)
		key += s->interface;
	if (shape & BY_MEMBER)
		key += s->member;
	look_sender(s, shape, key);
}

static void look_all(struct search *s, struct match_index *index)
{
	unsigned int i;

	s->index = index;
	if (has_many_keys(s)) {
		look_everywhere(s);
		return;
	}
	for (i = 0; i < index->n_shapes; i++)
		look_shape(s, index->shapes[i]);
}

bool match_any(const struct classic *k)
{
	return k->matches->plain.n || k->matches->eaves.n;
}

bool match_any_eavesdrops(const struct classic *k)
{
	return k->matches->eaves.n;
}

void match_find(struct classic *k, struct cmsg *m, const struct peer *to,
		void (*visit)(struct cpeer *c, struct cmsg *m))
{
	const struct dbusp_header *h = &m->header;
	struct search s;

	if (!k->matches->eaves.n && (to || !k->matches->plain.n))
		return;
	k->search++;
	s.classic = k;
	s.m = m;
	s.to = to;
	s.visit = visit;
	s.arg_ready = false;
	s.subject = (struct dbusp_match_subject){ .header = h,
						  .args = args_of(m),
						  .sender_is = sender_is,
						  .destination_is = destination_is,
						  .userdata = &s };
	s.interface = match_part_of(k->matches, h->interface, BY_INTERFACE);
	s.member = match_part_of(k->matches, h->member, BY_MEMBER);
	s.path = match_part_of(k->matches, h->path, BY_PATH);
	if (!to)
		look_all(&s, &k->matches->plain);
	look_all(&s, &k->matches->eaves);
}

bool match_shows(struct classic *k, const struct dbusp_match *rule, struct cmsg *m,
		 const struct peer *to)
{
	struct search s = { .classic = k, .m = m, .to = to };

	s.subject = (struct dbusp_match_subject){ .header = &m->header,
						  .args = args_of(m),
						  .sender_is = sender_is,
						  .destination_is = destination_is,
						  .userdata = &s,
						  .monitor = true };
	return dbusp_match_test(rule, &s.subject);
}
