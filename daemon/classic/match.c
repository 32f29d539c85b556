// SPDX-License-Identifier: LGPL-2.1-or-later
/* The index of match rules. Rules: match.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dbus/match.h"
#include "match.h"
#include "roster.h"

#define FIRST_BUCKETS 64

/* What a rule names; bits of its shape */
enum {
	BY_SENDER = 1 << 0,
	BY_INTERFACE = 1 << 1,
	BY_MEMBER = 1 << 2,
	BY_PATH = 1 << 3,
	BY_PATH_PREFIX = 1 << 4,
	BY_ARG0 = 1 << 5,
	BY_ARG0_PREFIX = 1 << 6,
};

struct rule {
	struct rule *next; /* under the same key; first in it: @link */
	struct rule **link;
	struct rule *next_own; /* in the same bucket of matches.own */
	struct rule *next_of_owner, **link_of_owner;
	struct cpeer *owner;
	uint32_t key;
	uint32_t count;
	uint8_t shape;
	struct dbusp_match match; /* last: of variable length */
};

/* ---- keys ---- */

static uint32_t mix(uint32_t h)
{
	h ^= h >> 16;
	h *= 0x7feb352dU;
	h ^= h >> 15;
	h *= 0x846ca68bU;
	return h ^ h >> 16;
}

/* Each part is told from the others by what it is, so that they may be added in any order. */
static uint32_t part(uint64_t h, unsigned int what)
{
	return mix((uint32_t)(h ^ h >> 32) + what * 0x9e3779b9U);
}

static uint32_t part_of(const struct matches *m, struct dbusp_str s, unsigned int what)
{
	return part(dbusp_hash_of(&m->key, s.s, s.len), what);
}

static uint32_t shape_key(uint8_t shape)
{
	return shape * 0x85ebca6bU;
}

/* The key of a rule while it is made */
struct filing {
	const struct matches *matches;
	const struct dbusp_match *rule;
	uint32_t sum;
	uint8_t shape;
};

static void add_text(struct filing *f, enum dbusp_match_key key, unsigned int what)
{
	if (!(f->rule->keys & key))
		return;
	f->shape |= (uint8_t)what;
	f->sum += part_of(f->matches, dbusp_match_get(f->rule, key), what);
}

static void add_arg0(struct filing *f)
{
	const struct dbusp_match *m = f->rule;
	unsigned int what;

	if (!m->n_args || m->args[0].index || m->args[0].kind == DBUSP_ARG_PATH)
		return;
	what = m->args[0].kind == DBUSP_ARG_EQUAL ? BY_ARG0 : BY_ARG0_PREFIX;
	/* Two kinds of prefix at once would be a product. */
	if (what == BY_ARG0_PREFIX && f->shape & BY_PATH_PREFIX)
		return;
	f->shape |= (uint8_t)what;
	f->sum += part_of(f->matches, dbusp_match_arg_text(m, 0), what);
}

static uint8_t shape_of(const struct matches *matches, const struct dbusp_match *rule,
			uint32_t *ret_key)
{
	struct filing f = { .matches = matches, .rule = rule };

	add_text(&f, DBUSP_MATCH_SENDER, BY_SENDER);
	add_text(&f, DBUSP_MATCH_INTERFACE, BY_INTERFACE);
	add_text(&f, DBUSP_MATCH_MEMBER, BY_MEMBER);
	add_text(&f, DBUSP_MATCH_PATH, BY_PATH);
	add_text(&f, DBUSP_MATCH_PATH_NAMESPACE, BY_PATH_PREFIX);
	add_arg0(&f);
	*ret_key = f.sum + shape_key(f.shape);
	return f.shape;
}

/* ---- tables ---- */

static void file_rule(struct match_index *index, struct rule *rule)
{
	struct rule **link = &index->buckets[mix(rule->key) & (index->n_buckets - 1)];

	rule->next = *link;
	if (rule->next)
		rule->next->link = &rule->next;
	rule->link = link;
	*link = rule;
}

static int grow_index(struct match_index *index)
{
	size_t n = index->n_buckets ? index->n_buckets * 2 : FIRST_BUCKETS, n_old, i;
	struct rule **buckets = calloc(n, sizeof(*buckets)), **old = index->buckets, *rule, *next;

	if (!buckets)
		return -ENOMEM;
	n_old = index->n_buckets;
	index->buckets = buckets;
	index->n_buckets = n;
	for (i = 0; i < n_old; i++) {
		for (rule = old[i]; rule; rule = next) {
			next = rule->next;
			file_rule(index, rule);
		}
	}
	free(old);
	return 0;
}

static int index_add(struct match_index *index, struct rule *rule)
{
	if (index->n >= index->n_buckets && grow_index(index) < 0 && !index->buckets)
		return -ENOMEM;
	file_rule(index, rule);
	index->n++;
	if (!index->n_of_shape[rule->shape]++)
		index->shapes[index->n_shapes++] = rule->shape;
	return 0;
}

static void index_remove(struct match_index *index, struct rule *rule)
{
	unsigned int i;

	*rule->link = rule->next;
	if (rule->next)
		rule->next->link = rule->link;
	index->n--;
	if (--index->n_of_shape[rule->shape])
		return;
	for (i = 0; index->shapes[i] != rule->shape; i++)
		;
	index->shapes[i] = index->shapes[--index->n_shapes];
}

static size_t own_bucket(const struct matches *m, const struct cpeer *owner,
			 const struct dbusp_match *match)
{
	uint64_t h = dbusp_hash_of(&m->key, match, dbusp_match_size(match));

	return mix((uint32_t)h + (uint32_t)owner->conn.id * 0x9e3779b9U) & (m->n_own_buckets - 1);
}

static int grow_own(struct matches *m)
{
	size_t n_old = m->n_own_buckets, i, b;
	struct rule **old = m->own, *rule, *next, **own;

	own = calloc(n_old ? n_old * 2 : FIRST_BUCKETS, sizeof(*own));
	if (!own)
		return -ENOMEM;
	m->own = own;
	m->n_own_buckets = n_old ? n_old * 2 : FIRST_BUCKETS;
	for (i = 0; i < n_old; i++) {
		for (rule = old[i]; rule; rule = next) {
			next = rule->next_own;
			b = own_bucket(m, rule->owner, &rule->match);
			rule->next_own = own[b];
			own[b] = rule;
		}
	}
	free(old);
	return 0;
}

static struct rule **find_own(const struct matches *m, const struct cpeer *owner,
			      const struct dbusp_match *match)
{
	struct rule **link = &m->own[own_bucket(m, owner, match)];

	while (*link && ((*link)->owner != owner || !dbusp_match_equal(&(*link)->match, match)))
		link = &(*link)->next_own;
	return link;
}

/* NULL: no search ever asks for it. */
static struct match_index *index_for(struct matches *m, const struct dbusp_match *match)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): what is dropped was found */
	if (match->keys & DBUSP_MATCH_EAVESDROP)
		return &m->eaves;
	if ((match->type && match->type != DBUSP_SIGNAL) || match->keys & DBUSP_MATCH_DESTINATION)
		return NULL;
	return &m->plain;
}

/* ---- adding and removing ---- */

int matches_init(struct classic *k)
{
	k->matches = calloc(1, sizeof(*k->matches));
	if (!k->matches)
		return -ENOMEM;
	k->matches->key = k->hash_key;
	return grow_own(k->matches);
}

void matches_free(struct classic *k)
{
	if (!k->matches)
		return;
	free(k->matches->plain.buckets);
	free(k->matches->eaves.buckets);
	free(k->matches->own);
	free(k->matches);
	k->matches = NULL;
}

static struct rule *new_rule(struct cpeer *c, const struct dbusp_match *match)
{
	struct matches *m = c->classic->matches;
	size_t size = dbusp_match_size(match);
	struct rule *rule = malloc(offsetof(struct rule, match) + size);

	if (!rule)
		return NULL;
	memset(rule, 0, offsetof(struct rule, match));
	memcpy(&rule->match, match, size);
	rule->owner = c;
	rule->count = 1;
	rule->shape = shape_of(m, match, &rule->key);
	return rule;
}

/* Two tables are up to twice as large as what is in them, and malloc() has its own head. */
size_t match_memory(const struct dbusp_match *match)
{
	return offsetof(struct rule, match) + dbusp_match_size(match) + 2 * 2 * sizeof(void *) +
	       2 * sizeof(void *);
}

static void link_to_owner(struct cpeer *c, struct rule *rule)
{
	rule->next_of_owner = c->rules;
	if (c->rules)
		c->rules->link_of_owner = &rule->next_of_owner;
	rule->link_of_owner = &c->rules;
	c->rules = rule;
}

int match_add(struct cpeer *c, const struct dbusp_match *match)
{
	struct matches *m = c->classic->matches;
	struct match_index *index = index_for(m, match);
	struct rule **link = find_own(m, c, match), *rule = *link;

	if (rule) {
		rule->count++;
		c->n_rules++;
		return 0;
	}
	rule = new_rule(c, match);
	if (!rule || (index && index_add(index, rule) < 0)) {
		free(rule);
		return -ENOMEM;
	}
	rule->next_own = NULL;
	*link = rule;
	link_to_owner(c, rule);
	c->n_rules++;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the rule was found in it */
	if (++m->n_own > m->n_own_buckets)
		grow_own(m); /* or it gets slower */
	return 0;
}

static void drop(struct matches *m, struct rule **link)
{
	struct rule *rule = *link;
	struct match_index *index = index_for(m, &rule->match);

	*link = rule->next_own;
	m->n_own--;
	*rule->link_of_owner = rule->next_of_owner;
	if (rule->next_of_owner)
		rule->next_of_owner->link_of_owner = rule->link_of_owner;
	if (index)
		index_remove(index, rule);
	free(rule);
}

int match_remove(struct cpeer *c, const struct dbusp_match *match)
{
	struct matches *m = c->classic->matches;
	struct rule **link = find_own(m, c, match);

	if (!*link)
		return -ENOENT;
	c->n_rules--;
	if (!--(*link)->count)
		drop(m, link);
	return 0;
}

void matches_end(struct cpeer *c)
{
	struct matches *m = c->classic->matches;

	while (c->rules)
		drop(m, find_own(m, c, &c->rules->match));
	c->n_rules = 0;
}

/* ---- searching ---- */

/* Hashes of the parts of a message, made when a shape asks for them */
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

static struct dbusp_args *args_of(struct cmsg *m)
{
	if (!m->args_ready)
		dbusp_args_init(&m->args, &m->header, m->body);
	m->args_ready = true;
	return &m->args;
}

static void look_at(struct search *s, struct rule *rule)
{
	if (rule->owner->visited == s->classic->search || !cpeer_alive(rule->owner) ||
	    &rule->owner->peer == s->to || !dbusp_match_test(&rule->match, &s->subject))
		return;
	rule->owner->visited = s->classic->search;
	s->visit(rule->owner, s->m);
}

static void look(struct search *s, uint32_t key)
{
	struct rule *rule = s->index->buckets[mix(key) & (s->index->n_buckets - 1)];
	struct rule *next;

	for (; rule; rule = next) {
		next = rule->next;
		core_step();
		if (rule->key == key)
			look_at(s, rule);
	}
}

/* All rules of a shape, when there are fewer than keys to look for */
static void look_everywhere(struct search *s, uint8_t shape)
{
	struct rule *rule, *next;
	size_t i;

	for (i = 0; i < s->index->n_buckets; i++) {
		for (rule = s->index->buckets[i]; rule; rule = next) {
			next = rule->next;
			core_step();
			if (rule->shape == shape)
				look_at(s, rule);
		}
	}
}

static void read_arg0(struct search *s)
{
	if (s->arg_ready)
		return;
	s->arg0 = dbusp_args_get(args_of(s->m), 0).text;
	s->arg_hash = part_of(s->classic->matches, s->arg0, BY_ARG0);
	s->arg_ready = true;
}

/* With every prefix of @text that ends before a @separator, and all of it */
static void look_prefixes(struct search *s, uint32_t key, struct dbusp_str text, char separator,
			  unsigned int what)
{
	const struct dbusp_hash_key *hash_key = &s->classic->matches->key;
	struct dbusp_hash h;
	uint32_t i, from = 0;

	dbusp_hash_begin(&h, hash_key);
	for (i = 0; i <= text.len && i <= DBUSP_MATCH_TEXT_MAX; i++) {
		if (i < text.len && text.s[i] != separator)
			continue;
		dbusp_hash_add(&h, text.s + from, i - from);
		from = i;
		if (i)
			look(s, key + part(dbusp_hash_end(&h), what));
	}
	/* The root of all paths is a prefix that ends in a separator. */
	if (separator == '/' && text.len > 1)
		look(s, key + part(dbusp_hash_of(hash_key, "/", 1), what));
}

static void look_arg(struct search *s, uint8_t shape, uint32_t key)
{
	if (!(shape & (BY_ARG0 | BY_ARG0_PREFIX))) {
		look(s, key);
		return;
	}
	read_arg0(s);
	if (!s->arg0.s)
		return;
	if (shape & BY_ARG0)
		look(s, key + s->arg_hash);
	else
		look_prefixes(s, key, s->arg0, '.', BY_ARG0_PREFIX);
}

static void look_path_prefixes(struct search *s, uint8_t shape, uint32_t key)
{
	if (shape & BY_ARG0) {
		read_arg0(s);
		if (!s->arg0.s)
			return;
		key += s->arg_hash;
	}
	look_prefixes(s, key, s->m->header.path, '/', BY_PATH_PREFIX);
}

static void look_path(struct search *s, uint8_t shape, uint32_t key)
{
	if (shape & BY_PATH_PREFIX)
		look_path_prefixes(s, shape, key);
	else
		look_arg(s, shape, shape & BY_PATH ? key + s->path : key);
}

/* The sender is its unique name, and each name that it owns. */
static void look_senders(struct search *s, uint8_t shape, uint32_t key)
{
	const char *name;
	void *at = NULL;

	look_path(s, shape, key + part_of(s->classic->matches, s->m->sender, BY_SENDER));
	if (!s->m->from)
		return;
	while ((name = peer_next_name(s->m->from, false, &at)))
		look_path(s, shape, key + part_of(s->classic->matches, dbusp_str(name), BY_SENDER));
}

static bool has(struct dbusp_str s, uint8_t shape, unsigned int bit)
{
	return !(shape & bit) || s.s;
}

/*
 * Names of the sender times prefixes of the path: a sender may have hundreds of both, for each
 * shape there is.
 */
static bool has_many_keys(const struct search *s, uint8_t shape)
{
	size_t names = s->m->from ? peer_count_names(s->m->from) + 1 : 1, prefixes = 1;

	if (!(shape & BY_SENDER))
		return false;
	if (shape & (BY_PATH_PREFIX | BY_ARG0_PREFIX))
		prefixes = DBUSP_MATCH_TEXT_MAX / 2;
	if (shape & BY_PATH_PREFIX && s->m->header.path.len < DBUSP_MATCH_TEXT_MAX)
		prefixes = s->m->header.path.len / 2 + 1;
	return names > 1 && names * prefixes > s->index->n_buckets + s->index->n;
}

static void look_shape(struct search *s, uint8_t shape)
{
	const struct dbusp_header *h = &s->m->header;
	uint32_t key = shape_key(shape);

	if (!has(h->interface, shape, BY_INTERFACE) || !has(h->member, shape, BY_MEMBER) ||
	    !has(h->path, shape, BY_PATH | BY_PATH_PREFIX))
		return;
	if (shape & BY_INTERFACE)
		key += s->interface;
	if (shape & BY_MEMBER)
		key += s->member;
	if (has_many_keys(s, shape))
		look_everywhere(s, shape);
	else if (shape & BY_SENDER)
		look_senders(s, shape, key);
	else
		look_path(s, shape, key);
}

static void look_all(struct search *s, struct match_index *index)
{
	unsigned int i;

	s->index = index;
	for (i = 0; i < index->n_shapes; i++)
		look_shape(s, index->shapes[i]);
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
	s.interface = part_of(k->matches, h->interface, BY_INTERFACE);
	s.member = part_of(k->matches, h->member, BY_MEMBER);
	s.path = part_of(k->matches, h->path, BY_PATH);
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

void match_each(const struct cpeer *c,
		void (*visit)(const struct dbusp_match *rule, unsigned int count, void *data),
		void *data)
{
	const struct rule *rule;

	for (rule = c->rules; rule; rule = rule->next_of_owner)
		visit(&rule->match, rule->count, data);
}
