/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_MATCH_ENTRY_H
#define CORE_MATCH_ENTRY_H

#include "base.h"
#include "kdbus.h"

#include "match-index.h"
#include "match.h"

/*
 * One entry of a match set: a copy of the items of its MATCH_ADD, which are its
 * rules, and what filing and testing need to know about them.
 *
 *  1. An entry never changes after it was made; only its slots do.
 *  2. It is filed under one key at most once.
 */

/* Keys of one entry: one per generation of a mask, as far as invariant 5 of match.h goes. */
#define CORE_MATCH_KEYS_MAX 4

/* Which signals an entry is about. */
enum core_match_group {
	CORE_MATCH_GROUP_ALL, /* no rules: everything */
	CORE_MATCH_GROUP_USER, /* user signals */
	CORE_MATCH_GROUP_KERNEL, /* one type of notification */
	CORE_MATCH_GROUP_NONE, /* rules that exclude each other */
};

/**
 * struct core_match_entry - one MATCH_ADD
 * @link:	in core_match_set.entries
 * @set:	that set
 * @cookie:	as given
 * @group:	what it is about
 * @type:	CORE_MATCH_GROUP_KERNEL: the type of notification
 * @n_slots:	how many of @slots are in use
 * @slots:	where it is filed
 * @size:	bytes of @items
 * @items:	the rules
 */
struct core_match_entry {
	struct list_head link;
	struct core_match_set *set;
	u64 cookie;
	enum core_match_group group;
	u64 type;
	unsigned int n_slots;
	struct core_match_slot slots[CORE_MATCH_KEYS_MAX];
	size_t size;
	u64 items[];
};

/**
 * core_match_entry_new() - check the rules and copy them
 * @set:	the set it is for; not yet added
 * @cookie:	of the entry
 * @items:	checked item list
 * @size:	bytes of the list
 * @ret_entry:	the entry, filed nowhere; kfree() it in that state
 *
 * Return: 0, -EDOM, -EINVAL or -ENOMEM as core_match_add().
 */
int core_match_entry_new(struct core_match_set *set, u64 cookie, const struct kdbus_item *items,
			 size_t size, struct core_match_entry **ret_entry);

/**
 * core_match_entry_passes() - do all rules of an entry hold
 * @entry:	the entry
 * @signal:	the signal
 *
 * Context: index lock and name registry lock at least shared.
 */
bool core_match_entry_passes(const struct core_match_entry *entry,
			     const struct core_signal *signal);

/**
 * core_match_entry_keys() - choose what to file an entry under
 * @entry:	the entry
 * @keys:	set to the keys; names in them are the entry's
 *
 * Return: number of keys; 0 if no broadcast can pass the entry.
 */
unsigned int core_match_entry_keys(const struct core_match_entry *entry,
				   struct core_match_key keys[CORE_MATCH_KEYS_MAX]);

#endif
