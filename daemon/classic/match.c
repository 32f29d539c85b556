// SPDX-License-Identifier: LGPL-2.1-or-later
/* Match rules of peers: adding and removing them. Rules: match.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "match-internal.h"

#define FIRST_BUCKETS 64

/* ---- a rule among those of its peer ---- */

static size_t own_bucket(const struct matches *m, const struct cpeer *owner,
			 const struct dbusp_match *match)
{
	uint64_t h = dbusp_hash_of(&m->key, match, dbusp_match_size(match));

	return match_mix((uint32_t)h + (uint32_t)owner->conn.id * 0x9e3779b9U) &
	       (m->n_own_buckets - 1);
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
	rule = match_rule_new(m, match);
	if (!rule || (index && match_index_add(index, rule) < 0)) {
		match_rule_free(rule);
		return -ENOMEM;
	}
	rule->owner = c;
	rule->count = 1;
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
		match_index_remove(index, rule);
	match_rule_free(rule);
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

void match_each(const struct cpeer *c,
		void (*visit)(const struct dbusp_match *rule, unsigned int count, void *data),
		void *data)
{
	const struct rule *rule;

	for (rule = c->rules; rule; rule = rule->next_of_owner)
		visit(&rule->match, rule->count, data);
}
