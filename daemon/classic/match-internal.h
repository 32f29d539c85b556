/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_MATCH_INTERNAL_H
#define CLASSIC_MATCH_INTERNAL_H

/* Between match.c (rules of peers), match-index.c (filing) and match-search.c. Rules: match.h. */

#include "dbus/match.h"
#include "match.h"

/* What a rule is filed by; bits of its shape */
enum {
	BY_SENDER = 1 << 0,
	BY_INTERFACE = 1 << 1,
	BY_MEMBER = 1 << 2,
	BY_PATH = 1 << 3,
	BY_PATH_PREFIX = 1 << 4,
	BY_DESTINATION = 1 << 5,
	/* one argument, at most one of these */
	BY_ARG0 = 1 << 6,
	BY_ARG0_PREFIX = 1 << 7,
	BY_ARG = 1 << 8,
	BY_ARG_PATH = 1 << 9,
	/* of a rule that eavesdrops: what is searched without those is signals anyway */
	BY_TYPE = 1 << 10,
};

/**
 * struct rule - a rule of a peer
 * @next, @link: under the same key, unless it is in a struct path_rule
 * @next_own:	in the same bucket of matches.own
 * @arg:	which of its conditions on arguments it is filed by, if it is by one
 * @match:	last: of variable length
 */
struct rule {
	struct rule *next, **link;
	struct rule *next_own;
	struct rule *next_of_owner, **link_of_owner;
	struct cpeer *owner;
	uint32_t key;
	uint32_t count;
	uint16_t shape;
	uint8_t arg;
	struct dbusp_match match;
};

/* One that is filed by a path in an argument: in match_index.paths */
struct path_rule {
	struct rb_node node;
	struct rule rule;
};

static inline struct rule *match_rule_at(struct rb_node *node)
{
	return &rb_entry(node, struct path_rule, node)->rule;
}

static inline uint32_t match_mix(uint32_t h)
{
	h ^= h >> 16;
	h *= 0x7feb352dU;
	h ^= h >> 15;
	h *= 0x846ca68bU;
	return h ^ h >> 16;
}

/*
 * What a hash adds to a key. Each part is told from the others by what it is, a bit of the shape,
 * so that they may be added in any order.
 */
static inline uint32_t match_part(uint64_t h, uint32_t what)
{
	return match_mix((uint32_t)(h ^ h >> 32) + what * 0x9e3779b9U);
}

static inline uint32_t match_part_of(const struct matches *m, struct dbusp_str s, uint32_t what)
{
	return match_part(dbusp_hash_of(&m->key, s.s, s.len), what);
}

static inline uint32_t match_shape_key(uint16_t shape)
{
	return shape * 0x85ebca6bU;
}

/* BY_ARG or BY_ARG_PATH of an argument other than the first, as match_part() has it */
static inline uint32_t match_by_arg(uint32_t what, unsigned int index)
{
	return what | index << 16;
}

static inline struct rule **match_bucket(const struct match_index *index, uint32_t key)
{
	return &index->buckets[match_mix(key) & (index->n_buckets - 1)];
}

/* The text of the condition that a rule is filed by */
static inline struct dbusp_str match_filed_text(const struct rule *rule)
{
	return dbusp_match_arg_text(&rule->match, rule->arg);
}

/* How a rule stands to a place in match_index.paths */
int match_path_order(const struct rule *rule, uint32_t key, struct dbusp_str text);

/* A rule that knows what it is filed by, and nothing else yet; NULL for want of memory. */
struct rule *match_rule_new(const struct matches *m, const struct dbusp_match *match);
void match_rule_free(struct rule *rule);
/* Return: 0; -ENOMEM. */
int match_index_add(struct match_index *index, struct rule *rule);
void match_index_remove(struct match_index *index, struct rule *rule);

#endif
