/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_POLICY_INTERNAL_H
#define CLASSIC_POLICY_INTERNAL_H

/*
 * policy-internal.h - how rules are kept and found
 *
 * Every string that a rule mentions has a number in its policy. A message is turned into numbers
 * once; a string that no rule mentions has none, so that no rule that wants it can match.
 *
 * A view files each rule under its *shape*, the set of fields it names, and their numbers. As a
 * path, member or error that a rule names also matches a message without one (policy.h, rule 3),
 * the rule is filed once more under POLICY_ABSENT in its place. So a decision is one probe for each
 * shape, and the latest rule that is found and applies wins.
 */

#include "policy.h"

#define POLICY_UNKNOWN 0U /* no rule mentions it */
#define POLICY_ABSENT UINT32_MAX /* the message has none */

struct policy_string {
	char *s;
	uint32_t len;
	uint32_t hash;
};

/* Number n is strings[n - 1]; slots is an open hash table of numbers, a power of 2 in size. */
struct policy_strings {
	struct policy_string *strings;
	uint32_t n;
	uint32_t *slots;
	uint32_t n_slots;
};

enum policy_field {
	POLICY_PATH,
	POLICY_INTERFACE,
	POLICY_MEMBER,
	POLICY_ERROR,
	POLICY_NAME,
	_POLICY_FIELD_N,
};

#define POLICY_SHAPE_NAME (1U << POLICY_NAME)
#define POLICY_SHAPE_PREFIX (1U << _POLICY_FIELD_N)

/* A rule with the numbers of its strings; they are 0 where it wants none */
struct policy_entry {
	struct policy_rule rule;
	uint32_t ids[_POLICY_FIELD_N];
	uint32_t section;
};

/* The rules of all <policy> for the same people */
struct policy_section {
	enum policy_context context;
	uint32_t id;
};

struct policy {
	unsigned int refs;
	struct policy_strings strings;
	struct policy_entry **entries;
	size_t n_entries;
	struct policy_section *sections;
	uint32_t n_sections;
	struct policy_view *views;
};

/* Tests count how often something is looked at; elsewhere this is nothing. */
#ifdef POLICY_COUNT_LOOKS
extern unsigned long policy_looks;
#define POLICY_LOOK() ((void)policy_looks++)
#else
#define POLICY_LOOK() ((void)0)
#endif

uint32_t policy_hash_start(void);
uint32_t policy_hash_byte(uint32_t hash, char c);
/* POLICY_UNKNOWN: no rule mentions it */
uint32_t policy_string_find(const struct policy_strings *strings, const char *s, uint32_t len,
			    uint32_t hash);
uint32_t policy_string_id(const struct policy_strings *strings, const char *s, uint32_t len);

#endif
