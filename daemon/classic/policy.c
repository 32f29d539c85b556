// SPDX-License-Identifier: LGPL-2.1-or-later
/* The rules of a policy as they are read, and who may connect. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy-internal.h"

/* ---- strings ---- */

/* FNV-1a: byte by byte, so that the hashes of all prefixes fall out on the way. */
uint32_t policy_hash_start(void)
{
	return 2166136261U;
}

uint32_t policy_hash_byte(uint32_t hash, char c)
{
	return (hash ^ (unsigned char)c) * 16777619U;
}

static uint32_t hash_of(const char *s, uint32_t len)
{
	uint32_t hash = policy_hash_start(), i;

	for (i = 0; i < len; i++)
		hash = policy_hash_byte(hash, s[i]);
	return hash;
}

/* The low bits of FNV-1a are its weaker ones. */
static uint32_t slot_of(uint32_t hash, uint32_t n_slots)
{
	return (hash ^ hash >> 15) & (n_slots - 1);
}

uint32_t policy_string_find(const struct policy_strings *t, const char *s, uint32_t len,
			    uint32_t hash)
{
	uint32_t i, id;

	if (!t->n)
		return POLICY_UNKNOWN;
	for (i = slot_of(hash, t->n_slots); (id = t->slots[i]); i = (i + 1) & (t->n_slots - 1)) {
		const struct policy_string *p = &t->strings[id - 1];

		POLICY_LOOK();
		if (p->hash == hash && p->len == len && !memcmp(p->s, s, len))
			return id;
	}
	return POLICY_UNKNOWN;
}

uint32_t policy_string_id(const struct policy_strings *t, const char *s, uint32_t len)
{
	return policy_string_find(t, s, len, hash_of(s, len));
}

static void put(uint32_t *slots, uint32_t n_slots, uint32_t hash, uint32_t id)
{
	uint32_t i = slot_of(hash, n_slots);

	while (slots[i])
		i = (i + 1) & (n_slots - 1);
	slots[i] = id;
}

/* Room for one more string, at most half full */
static int grow(struct policy_strings *t)
{
	uint32_t n_slots = t->n_slots ? t->n_slots : 32, i, *slots;
	struct policy_string *strings = reallocarray(t->strings, t->n + 1, sizeof(*strings));

	if (!strings)
		return -ENOMEM;
	t->strings = strings;
	if (t->n_slots && 2 * (t->n + 1) <= t->n_slots)
		return 0;
	while (n_slots < 2 * (t->n + 1))
		n_slots *= 2;
	slots = calloc(n_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (i = 0; i < t->n; i++)
		put(slots, n_slots, strings[i].hash, i + 1);
	free(t->slots);
	t->slots = slots;
	t->n_slots = n_slots;
	return 0;
}

/* The number of @s; NULL has 0. */
static int intern(struct policy_strings *t, const char *s, uint32_t *ret)
{
	const uint32_t len = s ? (uint32_t)strlen(s) : 0, hash = s ? hash_of(s, len) : 0;
	uint32_t id = s ? policy_string_find(t, s, len, hash) : 0;
	char *copy;

	if (s && !id) {
		if (grow(t) < 0)
			return -ENOMEM;
		copy = strdup(s);
		if (!copy)
			return -ENOMEM;
		t->strings[t->n] = (struct policy_string){ copy, len, hash };
		id = ++t->n;
		put(t->slots, t->n_slots, hash, id);
	}
	*ret = id;
	return 0;
}

static const char *string_of(const struct policy_strings *t, uint32_t id)
{
	return id ? t->strings[id - 1].s : NULL;
}

/* ---- making ---- */

struct policy *policy_new(void)
{
	struct policy *p = calloc(1, sizeof(*p));

	if (p)
		p->refs = 1;
	return p;
}

struct policy *policy_ref(struct policy *policy)
{
	policy->refs++;
	return policy;
}

static void remove_entries(struct policy *p)
{
	size_t i;

	for (i = 0; i < p->n_entries; i++)
		free(p->entries[i]);
	free(p->entries);
	p->entries = NULL;
	p->n_entries = 0;
}

struct policy *policy_unref(struct policy *policy)
{
	uint32_t i;

	if (!policy || --policy->refs)
		return NULL;
	remove_entries(policy);
	for (i = 0; i < policy->strings.n; i++)
		free(policy->strings.strings[i].s);
	free(policy->strings.strings);
	free(policy->strings.slots);
	free(policy->sections);
	free(policy);
	return NULL;
}

static int find_section(struct policy *p, enum policy_context context, uint32_t id, uint32_t *ret)
{
	struct policy_section *more;
	uint32_t i;

	for (i = 0; i < p->n_sections; i++)
		if (p->sections[i].context == context && p->sections[i].id == id)
			break;
	if (i == p->n_sections) {
		more = reallocarray(p->sections, i + 1, sizeof(*more));
		if (!more)
			return -ENOMEM;
		p->sections = more;
		more[i] = (struct policy_section){ context, id };
		p->n_sections++;
	}
	*ret = i;
	return 0;
}

static int intern_strings(struct policy *p, struct policy_entry *e)
{
	const char **fields[] = {
		[POLICY_PATH] = &e->rule.path,	   [POLICY_INTERFACE] = &e->rule.interface,
		[POLICY_MEMBER] = &e->rule.member, [POLICY_ERROR] = &e->rule.error,
		[POLICY_NAME] = &e->rule.name,
	};
	uint32_t file;
	int i;

	for (i = 0; i < _POLICY_FIELD_N; i++) {
		if (intern(&p->strings, *fields[i], &e->ids[i]) < 0)
			return -ENOMEM;
		*fields[i] = string_of(&p->strings, e->ids[i]);
	}
	if (intern(&p->strings, e->rule.file, &file) < 0)
		return -ENOMEM;
	e->rule.file = string_of(&p->strings, file);
	return 0;
}

/* A name is no message: conditions of messages hold. */
static void normalise(struct policy_rule *rule)
{
	if (rule->kind != POLICY_OWN)
		return;
	rule->requested_reply = !rule->allow;
	rule->type = 0;
	rule->broadcast = POLICY_ANY;
	rule->min_fds = 0;
	rule->max_fds = UINT32_MAX;
}

static bool is_per_connection(enum policy_context context)
{
	return context == POLICY_GROUP || context == POLICY_USER;
}

int policy_add(struct policy *p, enum policy_context context, uint32_t id,
	       const struct policy_rule *rule)
{
	struct policy_entry **more, *e;

	assert(!p->views);
	if (rule->kind >= _POLICY_KIND_N && is_per_connection(context))
		return -EINVAL;
	e = calloc(1, sizeof(*e));
	more = reallocarray(p->entries, p->n_entries + 1, sizeof(struct policy_entry *));
	if (more)
		p->entries = more;
	if (!e || !more)
		goto no_memory;
	e->rule = *rule;
	normalise(&e->rule);
	if (intern_strings(p, e) < 0 || find_section(p, context, id, &e->section) < 0)
		goto no_memory;
	p->entries[p->n_entries++] = e;
	return 0;

no_memory:
	free(e);
	return -ENOMEM;
}

int policy_append(struct policy *policy, struct policy *other)
{
	size_t i;
	int r = 0;

	for (i = 0; i < other->n_entries && r == 0; i++) {
		const struct policy_section *s = &other->sections[other->entries[i]->section];

		r = policy_add(policy, s->context, s->id, &other->entries[i]->rule);
	}
	remove_entries(other);
	return r;
}

/* ---- who may connect ---- */

static bool has_gid(const gid_t *gids, size_t n, uint32_t gid)
{
	size_t i;

	for (i = 0; i < n && gids[i] != gid; i++)
		;
	return i < n;
}

static bool is_about(const struct policy_rule *rule, uid_t uid, const gid_t *gids, size_t n_gids)
{
	if (rule->kind < _POLICY_KIND_N)
		return false;
	if (rule->id == POLICY_EVERYBODY)
		return true;
	return rule->kind == POLICY_CONNECT_USER ? rule->id == uid :
						   has_gid(gids, n_gids, rule->id);
}

struct policy_verdict policy_may_connect(const struct policy *p, uid_t uid, const gid_t *gids,
					 size_t n_gids, bool owner)
{
	static const enum policy_context order[] = { POLICY_DEFAULT, POLICY_MANDATORY };
	struct policy_verdict v = { .allowed = owner };
	size_t k, i;

	for (k = 0; k < 2; k++) {
		for (i = 0; i < p->n_entries; i++) {
			const struct policy_rule *rule = &p->entries[i]->rule;

			if (p->sections[p->entries[i]->section].context == order[k] &&
			    is_about(rule, uid, gids, n_gids))
				v = (struct policy_verdict){ rule->allow, rule };
		}
	}
	return v;
}

bool policy_has_users(const struct policy *p)
{
	uint32_t i;

	for (i = 0; i < p->n_sections; i++)
		if (p->sections[i].context == POLICY_USER)
			return true;
	return false;
}

bool policy_has_groups(const struct policy *p)
{
	uint32_t i;
	size_t k;

	for (i = 0; i < p->n_sections; i++)
		if (p->sections[i].context == POLICY_GROUP)
			return true;
	for (k = 0; k < p->n_entries; k++)
		if (p->entries[k]->rule.kind == POLICY_CONNECT_GROUP &&
		    p->entries[k]->rule.id != POLICY_EVERYBODY)
			return true;
	return false;
}

bool policy_has_console(const struct policy *p)
{
	uint32_t i;

	for (i = 0; i < p->n_sections; i++)
		if (p->sections[i].context == POLICY_AT_CONSOLE ||
		    p->sections[i].context == POLICY_NOT_AT_CONSOLE)
			return true;
	return false;
}
