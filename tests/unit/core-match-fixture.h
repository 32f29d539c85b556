/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_UNIT_CORE_MATCH_FIXTURE_H
#define TESTS_UNIT_CORE_MATCH_FIXTURE_H

/* Three sets, and signals that are both tested and searched for. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base.h"
#include "failalloc.h"
#include "item.h"
#include "kdbus.h"
#include "limits.h"
#include "match.h"
#include "names.h"

#define BLOOM  64
#define ANY    KDBUS_MATCH_ID_ANY
#define SENDER 40

enum {
	A,
	B,
	C,
	N_SETS
};

static struct core_match_index match_index;
static struct core_match_set sets[N_SETS];
static struct core_names names;
static struct core_name_holder sender, rival;
static u64 buffer[CORE_CMD_MAX_SIZE / 8];
static struct core_writer items;
static union {
	u64 words[BLOOM / 8];
	u8 bytes[BLOOM];
} filter;

static inline void fresh_items(void)
{
	items = CORE_WRITER(buffer, sizeof(buffer));
}

static inline int setup(void **state)
{
	core_match_index_init(&match_index, BLOOM);
	for (int i = 0; i < N_SETS; i++)
		core_match_set_init(&sets[i], &match_index);
	core_names_init(&names);
	core_name_holder_init(&sender, SENDER);
	core_name_holder_init(&rival, SENDER + 1);
	memset(&filter, 0, sizeof(filter));
	fresh_items();
	return 0;
}

static inline void release_all(struct core_name_holder *holder)
{
	struct core_name_change change;

	while (core_names_release_next(&names, holder, &change))
		core_name_change_done(&change);
	core_name_holder_deinit(holder);
}

static inline int teardown(void **state)
{
	for (int i = 0; i < N_SETS; i++)
		core_match_clear(&sets[i]);
	release_all(&sender);
	release_all(&rival);
	core_names_deinit(&names);
	return failalloc_live() ? -1 : 0;
}

/* Rules */

static inline void rule_id(u64 type, u64 id)
{
	core_put_u64(&items, type, id);
}

static inline void rule_name(const char *name)
{
	core_put_str(&items, KDBUS_ITEM_NAME, name);
}

static inline void rule_id_change(u64 type, u64 id)
{
	struct kdbus_notify_id_change change = { .id = id, .flags = 0x5 };

	core_put(&items, type, &change, sizeof(change));
}

/* @name NULL: no name bytes */
static inline void rule_name_change(u64 type, u64 old_id, u64 new_id, const char *name)
{
	size_t size = name ? strlen(name) + 1 : 0;
	struct kdbus_notify_name_change *change = core_writer_item(&items, type, 32 + size);

	memset(change, 0xff, 32);
	change->old_id.id = old_id;
	change->new_id.id = new_id;
	if (name)
		memcpy((char *)change + 32, name, size);
}

/* A mask with one field per bit: bit < 0 leaves the field empty. */
static inline void rule_bits(size_t n_fields, const int *bits)
{
	u64 *mask = core_writer_item(&items, KDBUS_ITEM_BLOOM_MASK, n_fields * BLOOM);

	memset(mask, 0, n_fields * BLOOM);
	for (size_t i = 0; i < n_fields; i++)
		if (bits[i] >= 0)
			mask[i * BLOOM / 8 + bits[i] / 64] |= 1ULL << (bits[i] % 64);
}

static inline int add_flags(int who, u64 cookie, u64 flags)
{
	size_t size;

	assert_int_equal(core_writer_end(&items, &size), 0);
	fresh_items();
	return core_match_add(&sets[who], cookie, flags, (void *)buffer, size);
}

static inline void add(int who)
{
	assert_int_equal(add_flags(who, 1, 0), 0);
}

static inline void nothing_is_filed(void)
{
	for (int kind = 0; kind < CORE_MATCH_KINDS; kind++)
		assert_true(RB_EMPTY_ROOT(&match_index.trees[kind]));
}

/* Signals. Each is tested and searched for: both must say the same. */

static inline void visit(struct core_match_set *set, void *data)
{
	((unsigned int *)data)[set - sets]++;
}

static inline bool search_says(int who, const struct core_signal *signal)
{
	unsigned int visits[N_SETS] = { 0 };

	core_match_find(&match_index, signal, visit, visits);
	for (int i = 0; i < N_SETS; i++)
		assert_int_equal(visits[i], core_match_test(&sets[i], signal));
	return visits[who];
}

static inline struct core_signal user_signal(u64 dst_id)
{
	return (struct core_signal){ .user = { .src_id = SENDER,
					       .dst_id = dst_id,
					       .names = &sender,
					       .filter = filter.words } };
}

static inline bool gets_broadcast(int who)
{
	struct core_signal signal = user_signal(KDBUS_DST_ID_BROADCAST);

	return search_says(who, &signal);
}

static inline bool gets_generation(int who, u64 generation)
{
	struct core_signal signal = user_signal(KDBUS_DST_ID_BROADCAST);

	signal.user.generation = generation;
	return search_says(who, &signal);
}

static inline bool gets_unicast(int who, u64 dst_id)
{
	struct core_signal signal = user_signal(dst_id);

	return core_match_test(&sets[who], &signal);
}

static inline bool gets_id(int who, u64 type, u64 id)
{
	struct core_signal signal = { .type = type, .note = { .id = id } };

	return search_says(who, &signal);
}

static inline bool gets_name(int who, u64 type, u64 old_id, u64 new_id, const char *name)
{
	struct core_signal signal = {
		.type = type,
		.note = { .old_id = old_id, .new_id = new_id, .name = name },
	};

	return search_says(who, &signal);
}

static inline bool gets_notes(int who)
{
	return gets_id(who, KDBUS_ITEM_ID_ADD, 9) && gets_id(who, KDBUS_ITEM_ID_REMOVE, 9) &&
	       gets_name(who, KDBUS_ITEM_NAME_ADD, 0, 9, "a.b") &&
	       gets_name(who, KDBUS_ITEM_NAME_REMOVE, 9, 0, "a.b") &&
	       gets_name(who, KDBUS_ITEM_NAME_CHANGE, 8, 9, "a.b");
}

static inline bool gets_any_note(int who)
{
	return gets_id(who, KDBUS_ITEM_ID_ADD, 9) || gets_id(who, KDBUS_ITEM_ID_REMOVE, 9) ||
	       gets_name(who, KDBUS_ITEM_NAME_ADD, 0, 9, "a.b") ||
	       gets_name(who, KDBUS_ITEM_NAME_REMOVE, 9, 0, "a.b") ||
	       gets_name(who, KDBUS_ITEM_NAME_CHANGE, 8, 9, "a.b");
}

static inline void acquire(struct core_name_holder *holder, const char *name)
{
	struct core_name_change change;
	u64 flags;

	assert_int_equal(core_names_acquire(&names, holder, name,
					    KDBUS_NAME_QUEUE | KDBUS_NAME_ALLOW_REPLACEMENT, &flags,
					    &change),
			 0);
	core_name_change_done(&change);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
