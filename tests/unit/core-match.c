// SPDX-License-Identifier: LGPL-2.1-or-later
/* Match entries, tested one by one and searched for (spec §6.13, §11, §15.4). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base.h"
#include "bloom.h"
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

static void fresh_items(void)
{
	items = CORE_WRITER(buffer, sizeof(buffer));
}

static int setup(void **state)
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

static void release_all(struct core_name_holder *holder)
{
	struct core_name_change change;

	while (core_names_release_next(&names, holder, &change))
		core_name_change_done(&change);
	core_name_holder_deinit(holder);
}

static int teardown(void **state)
{
	for (int i = 0; i < N_SETS; i++)
		core_match_clear(&sets[i]);
	release_all(&sender);
	release_all(&rival);
	core_names_deinit(&names);
	return failalloc_live() ? -1 : 0;
}

/* Rules */

static void rule_id(u64 type, u64 id)
{
	core_put_u64(&items, type, id);
}

static void rule_name(const char *name)
{
	core_put_str(&items, KDBUS_ITEM_NAME, name);
}

static void rule_id_change(u64 type, u64 id)
{
	struct kdbus_notify_id_change change = { .id = id, .flags = 0x5 };

	core_put(&items, type, &change, sizeof(change));
}

/* @name NULL: no name bytes */
static void rule_name_change(u64 type, u64 old_id, u64 new_id, const char *name)
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
static void rule_bits(size_t n_fields, const int *bits)
{
	u64 *mask = core_writer_item(&items, KDBUS_ITEM_BLOOM_MASK, n_fields * BLOOM);

	memset(mask, 0, n_fields * BLOOM);
	for (size_t i = 0; i < n_fields; i++)
		if (bits[i] >= 0)
			mask[i * BLOOM / 8 + bits[i] / 64] |= 1ULL << (bits[i] % 64);
}

static int add_flags(int who, u64 cookie, u64 flags)
{
	size_t size;

	assert_int_equal(core_writer_end(&items, &size), 0);
	fresh_items();
	return core_match_add(&sets[who], cookie, flags, (void *)buffer, size);
}

static void add(int who)
{
	assert_int_equal(add_flags(who, 1, 0), 0);
}

static void nothing_is_filed(void)
{
	for (int kind = 0; kind < CORE_MATCH_KINDS; kind++)
		assert_true(RB_EMPTY_ROOT(&match_index.trees[kind]));
}

/* Signals. Each is tested and searched for: both must say the same. */

static void visit(struct core_match_set *set, void *data)
{
	((unsigned int *)data)[set - sets]++;
}

static bool search_says(int who, const struct core_signal *signal)
{
	unsigned int visits[N_SETS] = { 0 };

	core_match_find(&match_index, signal, visit, visits);
	for (int i = 0; i < N_SETS; i++)
		assert_int_equal(visits[i], core_match_test(&sets[i], signal));
	return visits[who];
}

static struct core_signal user_signal(u64 dst_id)
{
	return (struct core_signal){ .user = { .src_id = SENDER,
					       .dst_id = dst_id,
					       .names = &sender,
					       .filter = filter.words } };
}

static bool gets_broadcast(int who)
{
	struct core_signal signal = user_signal(KDBUS_DST_ID_BROADCAST);

	return search_says(who, &signal);
}

static bool gets_generation(int who, u64 generation)
{
	struct core_signal signal = user_signal(KDBUS_DST_ID_BROADCAST);

	signal.user.generation = generation;
	return search_says(who, &signal);
}

static bool gets_unicast(int who, u64 dst_id)
{
	struct core_signal signal = user_signal(dst_id);

	return core_match_test(&sets[who], &signal);
}

static bool gets_id(int who, u64 type, u64 id)
{
	struct core_signal signal = { .type = type, .note = { .id = id } };

	return search_says(who, &signal);
}

static bool gets_name(int who, u64 type, u64 old_id, u64 new_id, const char *name)
{
	struct core_signal signal = {
		.type = type,
		.note = { .old_id = old_id, .new_id = new_id, .name = name },
	};

	return search_says(who, &signal);
}

static bool gets_notes(int who)
{
	return gets_id(who, KDBUS_ITEM_ID_ADD, 9) && gets_id(who, KDBUS_ITEM_ID_REMOVE, 9) &&
	       gets_name(who, KDBUS_ITEM_NAME_ADD, 0, 9, "a.b") &&
	       gets_name(who, KDBUS_ITEM_NAME_REMOVE, 9, 0, "a.b") &&
	       gets_name(who, KDBUS_ITEM_NAME_CHANGE, 8, 9, "a.b");
}

static bool gets_any_note(int who)
{
	return gets_id(who, KDBUS_ITEM_ID_ADD, 9) || gets_id(who, KDBUS_ITEM_ID_REMOVE, 9) ||
	       gets_name(who, KDBUS_ITEM_NAME_ADD, 0, 9, "a.b") ||
	       gets_name(who, KDBUS_ITEM_NAME_REMOVE, 9, 0, "a.b") ||
	       gets_name(who, KDBUS_ITEM_NAME_CHANGE, 8, 9, "a.b");
}

static void acquire(struct core_name_holder *holder, const char *name)
{
	struct core_name_change change;
	u64 flags;

	assert_int_equal(core_names_acquire(&names, holder, name,
					    KDBUS_NAME_QUEUE | KDBUS_NAME_ALLOW_REPLACEMENT, &flags,
					    &change),
			 0);
	core_name_change_done(&change);
}

/* §11: entries and rules */

static void without_entries_nothing_passes(void **state)
{
	assert_false(gets_broadcast(A));
	assert_false(gets_unicast(A, A));
	assert_false(gets_any_note(A));
}

static void an_entry_without_rules_passes_everything(void **state)
{
	add(A);
	assert_true(gets_broadcast(A));
	assert_true(gets_unicast(A, 7));
	assert_true(gets_notes(A));
	assert_false(gets_broadcast(B));
}

static void a_negotiate_item_is_no_rule(void **state)
{
	static const u64 types[] = { KDBUS_ITEM_ID, 0 };

	core_put(&items, KDBUS_ITEM_NEGOTIATE, types, sizeof(types));
	add(A);
	assert_true(gets_broadcast(A));
	assert_true(gets_notes(A));
	core_put(&items, KDBUS_ITEM_NEGOTIATE, types, sizeof(types));
	rule_id(KDBUS_ITEM_ID, SENDER + 1);
	add(B);
	core_put(&items, KDBUS_ITEM_NEGOTIATE, types, sizeof(types));
	rule_id_change(KDBUS_ITEM_ID_ADD, 9);
	add(C);
	assert_false(gets_broadcast(B));
	assert_true(gets_id(C, KDBUS_ITEM_ID_ADD, 9));
}

static void one_entry_is_enough(void **state)
{
	rule_id(KDBUS_ITEM_ID, SENDER + 1);
	add(A);
	assert_false(gets_broadcast(A));
	rule_id(KDBUS_ITEM_ID, SENDER);
	add(A);
	assert_true(gets_broadcast(A));
}

static void all_rules_of_an_entry_must_hold(void **state)
{
	static const int bit[] = { 3 };

	rule_id(KDBUS_ITEM_ID, SENDER);
	rule_bits(1, bit);
	add(A);
	rule_bits(1, bit);
	rule_id(KDBUS_ITEM_ID, SENDER + 1);
	add(B);
	assert_false(gets_broadcast(A));
	filter.words[0] = 1 << 3;
	assert_true(gets_broadcast(A));
	assert_false(gets_broadcast(B));
}

static void rules_of_one_kind_must_all_hold(void **state)
{
	static const int first[] = { 3 }, second[] = { 70 };

	rule_bits(1, first);
	rule_bits(1, second);
	add(A);
	rule_id(KDBUS_ITEM_ID, SENDER);
	rule_id(KDBUS_ITEM_ID, SENDER + 1);
	add(B);
	rule_name_change(KDBUS_ITEM_NAME_CHANGE, 8, ANY, NULL);
	rule_name_change(KDBUS_ITEM_NAME_CHANGE, ANY, 9, NULL);
	add(C);
	filter.words[0] = 1 << 3;
	assert_false(gets_broadcast(A));
	filter.words[1] = 1 << 6;
	assert_true(gets_broadcast(A));
	assert_false(gets_broadcast(B));
	assert_true(gets_name(C, KDBUS_ITEM_NAME_CHANGE, 8, 9, "a.b"));
	assert_false(gets_name(C, KDBUS_ITEM_NAME_CHANGE, 8, 8, "a.b"));
	assert_false(gets_name(C, KDBUS_ITEM_NAME_CHANGE, 9, 9, "a.b"));
}

static void mixing_user_and_kernel_rules_makes_a_dead_entry(void **state)
{
	rule_id(KDBUS_ITEM_ID, ANY);
	rule_id_change(KDBUS_ITEM_ID_ADD, ANY);
	add(A);
	rule_id_change(KDBUS_ITEM_ID_ADD, ANY);
	rule_id(KDBUS_ITEM_DST_ID, ANY);
	add(A);
	assert_false(gets_broadcast(A));
	assert_false(gets_any_note(A));
	nothing_is_filed();
}

static void rules_for_two_types_of_notification_make_a_dead_entry(void **state)
{
	rule_id_change(KDBUS_ITEM_ID_ADD, ANY);
	rule_id_change(KDBUS_ITEM_ID_REMOVE, ANY);
	add(A);
	assert_false(gets_any_note(A));
}

static void user_rules_do_not_hold_for_notifications(void **state)
{
	static const int wildcard[] = { -1 };

	rule_id(KDBUS_ITEM_ID, ANY);
	add(A);
	rule_id(KDBUS_ITEM_DST_ID, ANY);
	add(A);
	rule_bits(1, wildcard);
	add(A);
	rule_name("a.b");
	add(A);
	assert_false(gets_any_note(A));
	assert_true(gets_broadcast(A));
}

static void kernel_rules_do_not_hold_for_user_signals(void **state)
{
	rule_id_change(KDBUS_ITEM_ID_ADD, ANY);
	add(A);
	rule_name_change(KDBUS_ITEM_NAME_ADD, ANY, ANY, NULL);
	add(A);
	assert_false(gets_broadcast(A));
	assert_false(gets_unicast(A, 7));
}

/* §11: ID, NAME, DST_ID */

static void an_id_rule_wants_the_sender(void **state)
{
	rule_id(KDBUS_ITEM_ID, SENDER);
	add(A);
	rule_id(KDBUS_ITEM_ID, SENDER + 1);
	add(B);
	rule_id(KDBUS_ITEM_ID, ANY);
	add(C);
	assert_true(gets_broadcast(A));
	assert_false(gets_broadcast(B));
	assert_true(gets_broadcast(C));
}

static void a_name_rule_wants_the_primary_owner(void **state)
{
	struct core_name_change change;

	rule_name("a.b");
	add(A);
	assert_false(gets_broadcast(A));
	acquire(&rival, "a.b");
	acquire(&sender, "a.b");
	assert_false(gets_broadcast(A));
	assert_int_equal(core_names_release(&names, &rival, "a.b", &change), 0);
	core_name_change_done(&change);
	assert_true(gets_broadcast(A));
	acquire(&sender, "a.c");
	assert_true(gets_broadcast(A));
	rule_name("a.c");
	add(B);
	rule_name("a.bb");
	add(C);
	assert_true(gets_broadcast(B));
	assert_false(gets_broadcast(C));
}

static void a_sender_without_names_satisfies_no_name_rule(void **state)
{
	struct core_signal signal = user_signal(ANY);

	signal.user.names = NULL;
	rule_name("a.b");
	add(A);
	assert_false(search_says(A, &signal));
}

static void a_dst_id_rule_wants_the_word_of_the_message(void **state)
{
	rule_id(KDBUS_ITEM_DST_ID, 7);
	add(A);
	rule_id(KDBUS_ITEM_DST_ID, 0);
	add(B);
	rule_id(KDBUS_ITEM_DST_ID, ANY);
	add(C);
	assert_true(gets_unicast(A, 7));
	assert_false(gets_unicast(A, 8));
	assert_false(gets_unicast(A, 0));
	assert_false(gets_broadcast(A));
	assert_true(gets_unicast(B, 0));
	assert_false(gets_unicast(B, 7));
	assert_false(gets_broadcast(B));
	assert_true(gets_unicast(C, 7));
	assert_true(gets_broadcast(C));
}

/* §11: notifications */

static void an_id_notification_rule_wants_type_and_id(void **state)
{
	rule_id_change(KDBUS_ITEM_ID_ADD, 9);
	add(A);
	rule_id_change(KDBUS_ITEM_ID_REMOVE, ANY);
	add(B);
	assert_true(gets_id(A, KDBUS_ITEM_ID_ADD, 9));
	assert_false(gets_id(A, KDBUS_ITEM_ID_ADD, 10));
	assert_false(gets_id(A, KDBUS_ITEM_ID_REMOVE, 9));
	assert_true(gets_id(B, KDBUS_ITEM_ID_REMOVE, 9));
	assert_false(gets_id(B, KDBUS_ITEM_ID_ADD, 9));
}

static void a_name_notification_rule_wants_both_ids_and_the_name(void **state)
{
	static const u64 types[] = {
		KDBUS_ITEM_NAME_ADD,
		KDBUS_ITEM_NAME_REMOVE,
		KDBUS_ITEM_NAME_CHANGE,
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		rule_name_change(types[i], 8, 9, "a.b");
		assert_int_equal(add_flags(A, 1, KDBUS_MATCH_REPLACE), 0);
		assert_true(gets_name(A, types[i], 8, 9, "a.b"));
		assert_false(gets_name(A, types[i], 7, 9, "a.b"));
		assert_false(gets_name(A, types[i], 8, 7, "a.b"));
		assert_false(gets_name(A, types[i], 8, 9, "a.c"));
		assert_false(gets_name(A, types[(i + 1) % 3], 8, 9, "a.b"));
		rule_name_change(types[i], 8, ANY, NULL);
		assert_int_equal(add_flags(A, 1, KDBUS_MATCH_REPLACE), 0);
		assert_true(gets_name(A, types[i], 8, 7, "a.c"));
		assert_false(gets_name(A, types[i], 9, 7, "a.c"));
		rule_name_change(types[i], ANY, 9, NULL);
		assert_int_equal(add_flags(A, 1, KDBUS_MATCH_REPLACE), 0);
		assert_true(gets_name(A, types[i], 7, 9, "a.c"));
		assert_false(gets_name(A, types[i], 7, 8, "a.c"));
		rule_name_change(types[i], ANY, ANY, NULL);
		assert_int_equal(add_flags(A, 1, KDBUS_MATCH_REPLACE), 0);
		assert_true(gets_name(A, types[i], 7, 8, "a.d"));
	}
}

static void nobody_has_the_id_zero(void **state)
{
	rule_name_change(KDBUS_ITEM_NAME_ADD, 0, 9, NULL);
	add(A);
	rule_name_change(KDBUS_ITEM_NAME_ADD, 9, ANY, NULL);
	add(B);
	rule_name_change(KDBUS_ITEM_NAME_REMOVE, ANY, 0, NULL);
	add(C);
	assert_true(gets_name(A, KDBUS_ITEM_NAME_ADD, 0, 9, "a.b"));
	assert_false(gets_name(B, KDBUS_ITEM_NAME_ADD, 0, 9, "a.b"));
	assert_true(gets_name(C, KDBUS_ITEM_NAME_REMOVE, 9, 0, "a.b"));
}

static void an_empty_name_of_33_bytes_never_matches(void **state)
{
	rule_name_change(KDBUS_ITEM_NAME_ADD, ANY, ANY, "");
	add(A);
	assert_false(gets_any_note(A));
	nothing_is_filed();
	rule_name_change(KDBUS_ITEM_NAME_ADD, ANY, ANY, NULL);
	add(A);
	assert_true(gets_name(A, KDBUS_ITEM_NAME_ADD, 0, 9, "a.b"));
}

static void id_and_name_rules_do_not_filter_notifications(void **state)
{
	rule_id(KDBUS_ITEM_ID, 9);
	add(A);
	rule_name("a.b");
	add(A);
	assert_false(gets_any_note(A));
}

/* §11: bloom */

static void put_mask(const u8 (*bytes)[3], size_t n_bytes, size_t n_fields)
{
	u8 *mask = core_writer_item(&items, KDBUS_ITEM_BLOOM_MASK, n_fields * BLOOM);

	memset(mask, 0, n_fields * BLOOM);
	for (size_t i = 0; i < n_bytes; i++)
		mask[bytes[i][0] * BLOOM + bytes[i][1]] = bytes[i][2];
}

/* §15.4 match-bloom */
static void the_mask_of_the_checklist(void **state)
{
	static const u8 mask[][3] = {
		{ 0, 0, 0x55 },
		{ 0, 63, 0x80 },
		{ 1, 1, 0xaa },
		{ 1, 9, 0x02 },
	};

	put_mask(mask, ARRAY_SIZE(mask), 2);
	add(A);
	assert_false(gets_generation(A, 0));
	filter.bytes[0] = 0x55;
	filter.bytes[63] = 0x80;
	assert_true(gets_generation(A, 0));
	filter.bytes[0] = 0xff;
	filter.bytes[8] = 0xff;
	filter.bytes[63] = 0xff;
	assert_true(gets_generation(A, 0));
	assert_false(gets_generation(A, 1));
	filter.bytes[1] = 0xaa;
	filter.bytes[9] = 0x02;
	assert_true(gets_generation(A, 1));
	filter.bytes[0] = 0;
	assert_true(gets_generation(A, 1));
	assert_false(gets_generation(A, 0));
}

static void an_empty_mask_is_the_wildcard(void **state)
{
	static const int wildcard[] = { -1 };

	rule_bits(1, wildcard);
	add(A);
	assert_true(gets_broadcast(A));
	assert_true(gets_generation(A, ~0ULL));
}

static void every_bit_of_the_mask_must_be_in_the_filter(void **state)
{
	static const u8 full[][3] = { { 0, 0, 0xff }, { 0, 40, 0x81 } };

	put_mask(full, ARRAY_SIZE(full), 1);
	add(A);
	memset(filter.bytes, 0xff, BLOOM);
	assert_true(gets_broadcast(A));
	for (int bit = 0; bit < 8; bit++) {
		filter.bytes[0] = (u8) ~(1 << bit);
		assert_false(gets_broadcast(A));
	}
	filter.bytes[0] = 0xff;
	filter.bytes[40] = 0x7f;
	assert_false(gets_broadcast(A));
}

static void the_newest_field_serves_all_later_generations(void **state)
{
	static const int bits[] = { 1, 100 };

	rule_bits(2, bits);
	add(A);
	filter.words[0] = 2;
	assert_true(gets_generation(A, 0));
	assert_false(gets_generation(A, 1));
	assert_false(gets_generation(A, 2));
	filter.words[1] = 1ULL << 36;
	assert_true(gets_generation(A, 1));
	assert_true(gets_generation(A, 2));
	assert_true(gets_generation(A, 1000));
	assert_true(gets_generation(A, ~0ULL));
}

static void an_empty_field_is_a_wildcard_for_its_generation(void **state)
{
	static const int middle[] = { 1, -1, 3 }, last[] = { 1, 2, -1 };

	rule_bits(3, middle);
	add(A);
	rule_bits(3, last);
	add(B);
	assert_false(gets_generation(A, 0));
	assert_true(gets_generation(A, 1));
	assert_false(gets_generation(A, 2));
	assert_false(gets_generation(A, 9));
	assert_false(gets_generation(B, 0));
	assert_false(gets_generation(B, 1));
	assert_true(gets_generation(B, 2));
	assert_true(gets_generation(B, 9));
}

/* more fields than keys: match.h, invariant 5 */
static void a_mask_of_many_generations_finds_each(void **state)
{
	static const int same[] = { 1, 2, 3, 4, 4, 4, 4 }, other[] = { 9, 9, 9, 9, 8, 7, 6 };

	rule_bits(7, same);
	add(A);
	rule_bits(7, other);
	add(B);
	for (u64 generation = 0; generation < 9; generation++) {
		size_t field = min_t(u64, generation, 6);

		for (int bit = 0; bit < 12; bit++) {
			filter.words[0] = 1ULL << bit;
			assert_int_equal(gets_generation(A, generation), bit == same[field]);
			assert_int_equal(gets_generation(B, generation), bit == other[field]);
		}
	}
}

/* §6.13: commands */

static void a_mask_must_be_a_multiple_of_the_bloom_size(void **state)
{
	static const size_t bad[] = { 0, 8, BLOOM - 8, BLOOM + 8, BLOOM - 1, 2 * BLOOM - 8 };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		memset(core_writer_item(&items, KDBUS_ITEM_BLOOM_MASK, bad[i]), 0, bad[i]);
		assert_int_equal(add_flags(A, 1, 0), -EDOM);
	}
	assert_int_equal(sets[A].n_entries, 0);
}

static void a_name_rule_must_be_valid_and_no_wildcard(void **state)
{
	static const char *const bad[] = { "", "a", "a..b", "a.b.*", ".a.b" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		rule_name(bad[i]);
		assert_int_equal(add_flags(A, 1, 0), -EINVAL);
	}
	assert_int_equal(sets[A].n_entries, 0);
}

static void the_name_of_a_notification_rule_is_not_checked(void **state)
{
	rule_name_change(KDBUS_ITEM_NAME_ADD, ANY, ANY, "no well-known name");
	assert_int_equal(add_flags(A, 1, 0), 0);
	assert_false(gets_any_note(A));
}

static void the_257th_entry_is_refused(void **state)
{
	for (int i = 0; i < CORE_MATCH_MAX; i++)
		assert_int_equal(add_flags(A, 5 + i % 2, 0), 0);
	assert_int_equal(add_flags(A, 7, 0), -EMFILE);
	assert_int_equal(add_flags(A, 7, KDBUS_MATCH_REPLACE), -EMFILE);
	assert_int_equal(sets[A].n_entries, CORE_MATCH_MAX);
	/* the limit counts what is left after replacing */
	assert_int_equal(add_flags(A, 5, KDBUS_MATCH_REPLACE), 0);
	assert_int_equal(sets[A].n_entries, CORE_MATCH_MAX / 2 + 1);
	assert_int_equal(add_flags(B, 1, 0), 0);
}

static void a_malformed_entry_is_refused_before_the_limit(void **state)
{
	for (int i = 0; i < CORE_MATCH_MAX; i++)
		assert_int_equal(add_flags(A, 5, 0), 0);
	rule_name("a");
	assert_int_equal(add_flags(A, 5, 0), -EINVAL);
}

static void remove_takes_all_entries_with_the_cookie(void **state)
{
	rule_id(KDBUS_ITEM_ID, SENDER);
	assert_int_equal(add_flags(A, 1, 0), 0);
	assert_int_equal(add_flags(A, 1, 0), 0);
	rule_id_change(KDBUS_ITEM_ID_ADD, 9);
	assert_int_equal(add_flags(A, 2, 0), 0);
	assert_int_equal(add_flags(B, 1, 0), 0);
	assert_int_equal(core_match_remove(&sets[A], 3), -EBADSLT);
	assert_int_equal(core_match_remove(&sets[A], 1), 0);
	assert_int_equal(core_match_remove(&sets[A], 1), -EBADSLT);
	assert_false(gets_broadcast(A));
	assert_true(gets_broadcast(B));
	assert_true(gets_id(A, KDBUS_ITEM_ID_ADD, 9));
}

/* §15.4 match-replace */
static void replace_drops_all_entries_with_the_cookie(void **state)
{
	rule_id_change(KDBUS_ITEM_ID_ADD, ANY);
	assert_int_equal(add_flags(A, 1, 0), 0);
	rule_id_change(KDBUS_ITEM_ID_ADD, 9);
	assert_int_equal(add_flags(A, 1, 0), 0);
	rule_id(KDBUS_ITEM_ID, ANY);
	assert_int_equal(add_flags(A, 2, 0), 0);
	rule_id_change(KDBUS_ITEM_ID_REMOVE, ANY);
	assert_int_equal(add_flags(A, 1, KDBUS_MATCH_REPLACE), 0);
	assert_false(gets_id(A, KDBUS_ITEM_ID_ADD, 9));
	assert_true(gets_id(A, KDBUS_ITEM_ID_REMOVE, 9));
	assert_true(gets_broadcast(A));
}

static void a_refused_replace_keeps_the_old_entry(void **state)
{
	rule_id(KDBUS_ITEM_ID, SENDER);
	add(A);
	rule_name("a");
	assert_int_equal(add_flags(A, 1, KDBUS_MATCH_REPLACE), -EINVAL);
	assert_true(gets_broadcast(A));
}

static void a_receiver_is_visited_once_however_many_entries_match(void **state)
{
	static const int bit[] = { 3 }, two[] = { 3, 4 };

	acquire(&sender, "a.b");
	add(A);
	rule_id(KDBUS_ITEM_ID, SENDER);
	add(A);
	rule_id(KDBUS_ITEM_ID, ANY);
	add(A);
	rule_name("a.b");
	add(A);
	rule_bits(1, bit);
	add(A);
	rule_bits(2, two);
	add(A);
	filter.words[0] = 0x18;
	/* search_says() compares the number of visits */
	assert_true(gets_generation(A, 0));
	assert_true(gets_generation(A, 1));
	assert_true(gets_generation(A, 0));
}

static void clearing_takes_an_entry_out_of_every_search(void **state)
{
	static const int bits[] = { 3, 4, 5, 6, 7 };

	add(A);
	rule_bits(5, bits);
	add(A);
	rule_name("a.b");
	add(A);
	rule_name_change(KDBUS_ITEM_NAME_ADD, ANY, 7, "a.b");
	add(A);
	core_match_clear(&sets[A]);
	core_match_clear(&sets[A]);
	assert_int_equal(failalloc_live(), 0);
	nothing_is_filed();
	assert_false(gets_broadcast(A));
}

/* core/bloom.h */

static void the_next_common_bit_is_in_all_fields(void **state)
{
	static const u64 fields[] = { 0x5, 1ULL << 63, 0x4, 1ULL << 63 | 1 };

	assert_int_equal(core_bloom_next_bit(fields, 1, 2, 0), 0);
	assert_int_equal(core_bloom_next_bit(fields, 1, 2, 1), 2);
	assert_int_equal(core_bloom_next_bit(fields, 1, 2, 3), 127);
	assert_int_equal(core_bloom_next_bit(fields, 1, 2, 127), 127);
	assert_int_equal(core_bloom_next_bit(fields, 1, 2, 128), 128);
	assert_int_equal(core_bloom_next_bit(fields, 2, 2, 0), 2);
	assert_int_equal(core_bloom_next_bit(fields, 2, 2, 3), 127);
	assert_int_equal(core_bloom_next_bit(fields, 1, 1, 3), 64);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(without_entries_nothing_passes),
		T(an_entry_without_rules_passes_everything),
		T(a_negotiate_item_is_no_rule),
		T(one_entry_is_enough),
		T(all_rules_of_an_entry_must_hold),
		T(rules_of_one_kind_must_all_hold),
		T(mixing_user_and_kernel_rules_makes_a_dead_entry),
		T(rules_for_two_types_of_notification_make_a_dead_entry),
		T(user_rules_do_not_hold_for_notifications),
		T(kernel_rules_do_not_hold_for_user_signals),
		T(an_id_rule_wants_the_sender),
		T(a_name_rule_wants_the_primary_owner),
		T(a_sender_without_names_satisfies_no_name_rule),
		T(a_dst_id_rule_wants_the_word_of_the_message),
		T(an_id_notification_rule_wants_type_and_id),
		T(a_name_notification_rule_wants_both_ids_and_the_name),
		T(nobody_has_the_id_zero),
		T(an_empty_name_of_33_bytes_never_matches),
		T(id_and_name_rules_do_not_filter_notifications),
		T(the_mask_of_the_checklist),
		T(an_empty_mask_is_the_wildcard),
		T(every_bit_of_the_mask_must_be_in_the_filter),
		T(the_newest_field_serves_all_later_generations),
		T(an_empty_field_is_a_wildcard_for_its_generation),
		T(a_mask_of_many_generations_finds_each),
		T(a_mask_must_be_a_multiple_of_the_bloom_size),
		T(a_name_rule_must_be_valid_and_no_wildcard),
		T(the_name_of_a_notification_rule_is_not_checked),
		T(the_257th_entry_is_refused),
		T(a_malformed_entry_is_refused_before_the_limit),
		T(remove_takes_all_entries_with_the_cookie),
		T(replace_drops_all_entries_with_the_cookie),
		T(a_refused_replace_keeps_the_old_entry),
		T(a_receiver_is_visited_once_however_many_entries_match),
		T(clearing_takes_an_entry_out_of_every_search),
		T(the_next_common_bit_is_in_all_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
