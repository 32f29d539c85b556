/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_BLOOM_H
#define CORE_BLOOM_H

#include "base.h"

/*
 * Bloom filters and masks (spec §11).
 *
 * A sender sets bits in a filter for the properties of a signal; a subscriber
 * sets bits in a mask for the properties it wants. A mask holds a bit field per
 * generation; a filter of generation g is compared with field min(g, last).
 *
 *  1. A filter passes iff every bit of the field is set in it. (The manual of
 *     the time states it the other way round.)
 *  2. Hence a field without bits passes everything, and a filter that lacks one
 *     bit of the field, whichever, fails.
 *  3. Bits are numbered by 64-bit words in host order: sender and subscriber
 *     are on one machine, and the numbers never leave it.
 *
 * Pure functions: any thread, no lock. Sizes are in 64-bit words, positive.
 */

/**
 * core_bloom_passes() - does a filter have every bit of a field
 * @filter:	the filter
 * @field:	the field
 * @n_words:	words of each
 */
bool core_bloom_passes(const u64 *filter, const u64 *field, size_t n_words);

/**
 * core_bloom_field() - the field of a mask that a generation is compared with
 * @mask:	the mask
 * @n_fields:	how many fields it has
 * @n_words:	words of one field
 * @generation:	of the filter
 */
const u64 *core_bloom_field(const u64 *mask, size_t n_fields, size_t n_words, u64 generation);

/**
 * core_bloom_next_bit() - next bit that is set in all of some fields
 * @fields:	the fields, one after the other
 * @n_fields:	how many
 * @n_words:	words of one
 * @from:	first bit to look at
 *
 * Return: its number, or @n_words * 64 if there is none.
 */
size_t core_bloom_next_bit(const u64 *fields, size_t n_fields, size_t n_words, size_t from);

#endif
