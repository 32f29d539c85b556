// SPDX-License-Identifier: LGPL-2.1-or-later
/* What entries are filed under (core/match.h, invariants 4 and 5). */
#include "match-index.h"
#include "core-match-fixture.h"

static size_t crowd(enum core_match_kind kind, u64 a, u64 b, const char *name)
{
	struct core_match_key key = { .kind = kind, .a = a, .b = b, .name = name };

	return core_match_index_crowd(&match_index, &key);
}

static size_t buckets(enum core_match_kind kind)
{
	size_t n = 0;

	for (struct rb_node *node = rb_first(&match_index.trees[kind]); node; node = rb_next(node))
		n++;
	return n;
}

/* A mask of one field with these low bits. */
static void rule_low_bits(u64 bits)
{
	u64 mask[BLOOM / 8] = { bits };

	core_put(&items, KDBUS_ITEM_BLOOM_MASK, mask, sizeof(mask));
}

static void equal_masks_spread_over_their_bits(void **state)
{
	for (int i = 0; i < 24; i++) {
		rule_low_bits(0x8421);
		add(A);
	}
	assert_int_equal(buckets(CORE_MATCH_BLOOM_TAIL), 4);
	for (int bit = 0; bit < 16; bit += 5)
		assert_int_equal(crowd(CORE_MATCH_BLOOM_TAIL, 0, bit, NULL), 6);
}

static void a_mask_takes_the_bit_that_fewest_others_took(void **state)
{
	rule_low_bits(1);
	add(A);
	rule_low_bits(1);
	add(A);
	rule_low_bits(2);
	add(B);
	rule_low_bits(3);
	add(C);
	assert_int_equal(crowd(CORE_MATCH_BLOOM_TAIL, 0, 1, NULL), 2);
	assert_int_equal(crowd(CORE_MATCH_BLOOM_TAIL, 0, 0, NULL), 2);
}

static void a_mask_has_a_key_per_generation_up_to_four(void **state)
{
	static const int bits[] = { 1, 2, -1, 4, 4, 4 };

	rule_bits(6, bits);
	add(A);
	assert_int_equal(crowd(CORE_MATCH_BLOOM, 0, 1, NULL), 1);
	assert_int_equal(crowd(CORE_MATCH_BLOOM, 1, 2, NULL), 1);
	/* no bit in this generation: the number past the last */
	assert_int_equal(crowd(CORE_MATCH_BLOOM, 2, BLOOM * 8, NULL), 1);
	assert_int_equal(crowd(CORE_MATCH_BLOOM_TAIL, 3, 4, NULL), 1);
}

static void an_empty_mask_tells_nothing(void **state)
{
	static const int empty[] = { -1, -1 };

	rule_bits(2, empty);
	rule_id(KDBUS_ITEM_ID, ANY);
	add(A);
	assert_int_equal(crowd(CORE_MATCH_USER, 0, 0, NULL), 1);
	assert_int_equal(buckets(CORE_MATCH_BLOOM) + buckets(CORE_MATCH_BLOOM_TAIL), 0);
}

static void a_sender_tells_more_than_a_bit(void **state)
{
	rule_low_bits(1);
	rule_id(KDBUS_ITEM_ID, SENDER);
	add(A);
	rule_name("a.b");
	rule_low_bits(1);
	add(A);
	assert_int_equal(crowd(CORE_MATCH_SRC_ID, SENDER, 0, NULL), 1);
	assert_int_equal(crowd(CORE_MATCH_NAME, 0, 0, "a.b"), 1);
	assert_int_equal(buckets(CORE_MATCH_BLOOM_TAIL), 0);
}

static void subscribers_of_one_sender_are_told_apart_by_their_bits(void **state)
{
	static int bit[1];

	for (int i = 0; i < 200; i++) {
		bit[0] = i;
		rule_id(KDBUS_ITEM_ID, SENDER);
		rule_bits(1, bit);
		add(A);
	}
	assert_int_equal(crowd(CORE_MATCH_SRC_ID, SENDER, 0, NULL), 17);
	assert_int_equal(buckets(CORE_MATCH_BLOOM_TAIL), 200 - 17);
}

static void a_rule_for_one_destination_is_filed_nowhere(void **state)
{
	rule_id(KDBUS_ITEM_DST_ID, 7);
	add(A);
	rule_id(KDBUS_ITEM_DST_ID, ANY);
	rule_id(KDBUS_ITEM_ID, SENDER);
	rule_id(KDBUS_ITEM_DST_ID, 0);
	add(A);
	nothing_is_filed();
}

static void the_most_telling_notification_rule_counts(void **state)
{
	const u64 type = KDBUS_ITEM_NAME_CHANGE;

	rule_name_change(type, ANY, ANY, NULL);
	rule_name_change(type, ANY, 9, NULL);
	rule_name_change(type, ANY, 9, "a.b");
	add(A);
	assert_int_equal(crowd(CORE_MATCH_NOTE_NAME, type, 0, "a.b"), 1);
	rule_name_change(type, ANY, ANY, NULL);
	rule_name_change(type, ANY, 9, NULL);
	add(A);
	assert_int_equal(crowd(CORE_MATCH_NOTE_NEW, type, 9, NULL), 1);
	rule_name_change(type, 8, ANY, NULL);
	add(A);
	assert_int_equal(crowd(CORE_MATCH_NOTE_OLD, type, 8, NULL), 1);
	rule_name_change(type, ANY, ANY, NULL);
	add(A);
	assert_int_equal(crowd(CORE_MATCH_NOTE, type, 0, NULL), 1);
}

static void an_id_of_somebody_tells_more_than_nobody(void **state)
{
	rule_name_change(KDBUS_ITEM_NAME_ADD, 0, 9, NULL);
	add(A);
	rule_name_change(KDBUS_ITEM_NAME_REMOVE, 9, 0, NULL);
	add(A);
	rule_name_change(KDBUS_ITEM_NAME_REMOVE, ANY, 0, NULL);
	add(A);
	assert_int_equal(crowd(CORE_MATCH_NOTE_NEW, KDBUS_ITEM_NAME_ADD, 9, NULL), 1);
	assert_int_equal(crowd(CORE_MATCH_NOTE_OLD, KDBUS_ITEM_NAME_REMOVE, 9, NULL), 1);
	assert_int_equal(crowd(CORE_MATCH_NOTE_NEW, KDBUS_ITEM_NAME_REMOVE, 0, NULL), 1);
}

static void buckets_are_found_in_order(void **state)
{
	struct core_match_key key = { .kind = CORE_MATCH_SRC_ID };
	struct core_match_bucket *bucket;
	u64 id;

	for (u64 i = 0; i < 100; i++) {
		rule_id(KDBUS_ITEM_ID, 3 * (i * 37 % 100));
		add(A);
	}
	for (id = 0; id <= 297; id++) {
		key.a = id;
		bucket = core_match_index_ceil(&match_index, &key);
		assert_non_null(bucket);
		assert_int_equal(bucket->key.a, (id + 2) / 3 * 3);
	}
	key.a = id;
	assert_null(core_match_index_ceil(&match_index, &key));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(equal_masks_spread_over_their_bits),
		T(a_mask_takes_the_bit_that_fewest_others_took),
		T(a_mask_has_a_key_per_generation_up_to_four),
		T(an_empty_mask_tells_nothing),
		T(a_sender_tells_more_than_a_bit),
		T(subscribers_of_one_sender_are_told_apart_by_their_bits),
		T(a_rule_for_one_destination_is_filed_nowhere),
		T(the_most_telling_notification_rule_counts),
		T(an_id_of_somebody_tells_more_than_nobody),
		T(buckets_are_found_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
