// SPDX-License-Identifier: LGPL-2.1-or-later
/* Bloom masks and generations (spec §11, §15.4). */
#include "bloom.h"
#include "core-match-fixture.h"

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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(the_mask_of_the_checklist),
		T(an_empty_mask_is_the_wildcard),
		T(every_bit_of_the_mask_must_be_in_the_filter),
		T(the_newest_field_serves_all_later_generations),
		T(an_empty_field_is_a_wildcard_for_its_generation),
		T(a_mask_of_many_generations_finds_each),
		T(the_next_common_bit_is_in_all_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
