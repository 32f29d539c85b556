// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"

#include "bloom.h"

bool core_bloom_passes(const u64 *filter, const u64 *field, size_t n_words)
{
	size_t i;

	for (i = 0; i < n_words; i++)
		if ((filter[i] & field[i]) != field[i])
			return false;
	return true;
}

const u64 *core_bloom_field(const u64 *mask, size_t n_fields, size_t n_words, u64 generation)
{
	return mask + n_words * (size_t)min_t(u64, generation, n_fields - 1);
}

static u64 common_word(const u64 *fields, size_t n_fields, size_t n_words, size_t word)
{
	u64 common = fields[word];
	size_t i;

	for (i = 1; common && i < n_fields; i++)
		common &= fields[i * n_words + word];
	return common;
}

size_t core_bloom_next_bit(const u64 *fields, size_t n_fields, size_t n_words, size_t from)
{
	size_t word = from / 64;
	u64 bits;

	if (word >= n_words)
		return n_words * 64;
	bits = common_word(fields, n_fields, n_words, word) & (U64_MAX << (from % 64));
	while (!bits) {
		if (++word == n_words)
			return n_words * 64;
		bits = common_word(fields, n_fields, n_words, word);
	}
	return word * 64 + (size_t)__builtin_ctzll(bits);
}
