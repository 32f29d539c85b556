// SPDX-License-Identifier: LGPL-2.1-or-later
/* Filing match rules. Rules: match.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "match-internal.h"

#define FIRST_BUCKETS 64

/* ---- keys ---- */

static const struct {
	enum dbusp_match_key key;
	uint16_t what;
} texts[] = {
	{ DBUSP_MATCH_SENDER, BY_SENDER },
	{ DBUSP_MATCH_INTERFACE, BY_INTERFACE },
	{ DBUSP_MATCH_MEMBER, BY_MEMBER },
	{ DBUSP_MATCH_PATH, BY_PATH },
	{ DBUSP_MATCH_PATH_NAMESPACE, BY_PATH_PREFIX },
	{ DBUSP_MATCH_DESTINATION, BY_DESTINATION },
};
#define N_TEXTS (sizeof(texts) / sizeof(texts[0]))

/* The bit for a condition on an argument */
static uint16_t what_arg(const struct dbusp_match_arg *arg)
{
	if (arg->kind == DBUSP_ARG_PATH)
		return BY_ARG_PATH;
	if (arg->kind == DBUSP_ARG_EQUAL)
		return arg->index ? BY_ARG : BY_ARG0;
	return BY_ARG0_PREFIX;
}

/* One is enough to tell most rules apart: that one which a message is asked about most cheaply. */
static uint16_t choose_arg(const struct dbusp_match *match, unsigned int *ret_arg)
{
	static const uint16_t order[] = { BY_ARG0, BY_ARG, BY_ARG0_PREFIX, BY_ARG_PATH };
	unsigned int i, j;

	*ret_arg = 0;
	for (j = 0; j < sizeof(order) / sizeof(order[0]); j++)
		for (i = 0; i < match->n_args; i++)
			if (what_arg(&match->args[i]) == order[j]) {
				*ret_arg = i;
				return order[j];
			}
	return 0;
}

static uint16_t shape_of(const struct dbusp_match *match, unsigned int *ret_arg)
{
	uint16_t shape = choose_arg(match, ret_arg);
	size_t i;

	if (match->type && match->keys & DBUSP_MATCH_EAVESDROP)
		shape |= BY_TYPE;
	for (i = 0; i < N_TEXTS; i++)
		if (match->keys & texts[i].key)
			shape |= texts[i].what;
	return shape;
}

/* The text of a path is in the tree itself. */
static uint32_t arg_part(const struct matches *m, const struct rule *rule)
{
	const uint32_t what = rule->shape & (BY_ARG0 | BY_ARG0_PREFIX | BY_ARG | BY_ARG_PATH);
	unsigned int index;

	if (!what)
		return 0;
	index = rule->match.args[rule->arg].index;
	if (what == BY_ARG_PATH)
		return match_part(0, match_by_arg(what, index));
	return match_part_of(m, match_filed_text(rule), match_by_arg(what, index));
}

static uint32_t key_of(const struct matches *m, const struct rule *rule)
{
	uint32_t key = match_shape_key(rule->shape) + arg_part(m, rule);
	size_t i;

	if (rule->shape & BY_TYPE)
		key += match_part(rule->match.type, BY_TYPE);
	for (i = 0; i < N_TEXTS; i++)
		if (rule->match.keys & texts[i].key)
			key += match_part_of(m, dbusp_match_get(&rule->match, texts[i].key),
					     texts[i].what);
	return key;
}

/* ---- memory ---- */

static size_t size_of(const struct dbusp_match *match, bool path)
{
	return (path ? offsetof(struct path_rule, rule) : 0) + offsetof(struct rule, match) +
	       dbusp_match_size(match);
}

static struct rule *allocate(const struct dbusp_match *match, bool path)
{
	struct path_rule *p;

	if (!path)
		return malloc(size_of(match, false));
	p = malloc(size_of(match, true));
	/* cppcheck-suppress memleak ; match_rule_free() finds it again */
	return p ? &p->rule : NULL;
}

struct rule *match_rule_new(const struct matches *m, const struct dbusp_match *match)
{
	unsigned int arg;
	const uint16_t shape = shape_of(match, &arg);
	struct rule *rule = allocate(match, shape & BY_ARG_PATH);

	if (!rule)
		return NULL;
	memset(rule, 0, offsetof(struct rule, match));
	memcpy(&rule->match, match, dbusp_match_size(match));
	rule->shape = shape;
	rule->arg = (uint8_t)arg;
	rule->key = key_of(m, rule);
	return rule;
}

void match_rule_free(struct rule *rule)
{
	if (rule && rule->shape & BY_ARG_PATH)
		free(container_of(rule, struct path_rule, rule));
	else
		free(rule);
}

/* Two tables are up to twice as large as what is in them, and malloc() has its own head. */
size_t match_memory(const struct dbusp_match *match)
{
	unsigned int arg;

	return size_of(match, shape_of(match, &arg) & BY_ARG_PATH) + 2 * 2 * sizeof(void *) +
	       2 * sizeof(void *);
}

/* ---- by hash ---- */

static void hash_rule(struct match_index *index, struct rule *rule)
{
	struct rule **link = match_bucket(index, rule->key);

	rule->next = *link;
	if (rule->next)
		rule->next->link = &rule->next;
	rule->link = link;
	*link = rule;
}

static void unhash_rule(struct rule *rule)
{
	*rule->link = rule->next;
	if (rule->next)
		rule->next->link = rule->link;
}

static int grow(struct match_index *index)
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
			hash_rule(index, rule);
		}
	}
	free(old);
	return 0;
}

/* ---- by the order of paths ---- */

int match_path_order(const struct rule *rule, uint32_t key, struct dbusp_str text)
{
	const struct dbusp_str own = match_filed_text(rule);
	int order;

	if (rule->key != key)
		return rule->key < key ? -1 : 1;
	order = memcmp(own.s, text.s, own.len < text.len ? own.len : text.len);
	if (order)
		return order;
	return own.len < text.len ? -1 : own.len > text.len;
}

static struct rb_node *node_of(struct rule *rule)
{
	return &container_of(rule, struct path_rule, rule)->node;
}

/* Equal ones, of several peers, follow each other. */
static void plant_rule(struct match_index *index, struct rule *rule)
{
	const struct dbusp_str text = match_filed_text(rule);
	struct rb_node **link = &index->paths.rb_node, *parent = NULL;

	while (*link) {
		core_step();
		parent = *link;
		link = match_path_order(match_rule_at(parent), rule->key, text) > 0 ?
			       &parent->rb_left :
			       &parent->rb_right;
	}
	rb_link_node(node_of(rule), parent, link);
	rb_insert_color(node_of(rule), &index->paths);
}

/* ---- what is in use ---- */

static void count_arg(struct match_index *index, const struct rule *rule)
{
	struct match_args *args =
		&index->args[rule->shape & BY_ARG_PATH ? MATCH_ARG_PATH : MATCH_ARG_EQUAL];
	const unsigned int i = rule->match.args[rule->arg].index;

	if (!args->n_of[i]++)
		args->used |= 1ULL << i;
}

static void uncount_arg(struct match_index *index, const struct rule *rule)
{
	struct match_args *args =
		&index->args[rule->shape & BY_ARG_PATH ? MATCH_ARG_PATH : MATCH_ARG_EQUAL];
	const unsigned int i = rule->match.args[rule->arg].index;

	if (!--args->n_of[i])
		args->used &= ~(1ULL << i);
}

static void count(struct match_index *index, const struct rule *rule)
{
	index->n++;
	if (!index->n_of_shape[rule->shape]++)
		index->shapes[index->n_shapes++] = rule->shape;
	if (rule->shape & (BY_ARG | BY_ARG_PATH))
		count_arg(index, rule);
}

static void uncount(struct match_index *index, const struct rule *rule)
{
	unsigned int i;

	index->n--;
	if (rule->shape & (BY_ARG | BY_ARG_PATH))
		uncount_arg(index, rule);
	if (--index->n_of_shape[rule->shape])
		return;
	for (i = 0; index->shapes[i] != rule->shape; i++)
		;
	index->shapes[i] = index->shapes[--index->n_shapes];
}

int match_index_add(struct match_index *index, struct rule *rule)
{
	if (index->n >= index->n_buckets && grow(index) < 0 && !index->buckets)
		return -ENOMEM;
	if (rule->shape & BY_ARG_PATH)
		plant_rule(index, rule);
	else
		hash_rule(index, rule);
	count(index, rule);
	return 0;
}

void match_index_remove(struct match_index *index, struct rule *rule)
{
	if (rule->shape & BY_ARG_PATH)
		rb_erase(node_of(rule), &index->paths);
	else
		unhash_rule(rule);
	uncount(index, rule);
}
