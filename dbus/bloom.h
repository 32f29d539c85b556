/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bloom filters over D-Bus signals, and masks for match rules: which native receivers of a kdbus
 * want a signal is found out without looking into it.
 *
 * 1. A filter has bits for everything a match rule can ask of a signal, except who sent it: its
 *    "interface:NAME", "member:NAME", "path:PATH", "path-slash-prefix:P" for the path and each path
 *    above it, and for each of the first 64 arguments that is a string or object path "argN:TEXT",
 *    "argN-dot-prefix:P" for the text and each of its beginnings before a dot, and
 *    "argN-slash-prefix:P" for each of its beginnings up to and with a slash, and the whole.
 *    "message-type:signal" is in all. Text that is longer than any rule (DBUSP_MATCH_TEXT_MAX) has
 *    no bits: what a signal costs is bounded by how many arguments it has.
 * 2. A mask has the bits of what the rule names. A signal that matches the rule has all of them;
 *    one that has all of them need not match: receivers look at their rules again.
 * 3. Each string sets n_hash bits, by two hashes (64-bit FNV-1a and a mix of it) in the manner of
 *    Kirsch and Mitzenmacher: bit i is (h1 + i * h2) mod the number of bits.
 *
 * Pure functions: any thread, no allocation.
 */
#ifndef DBUSP_BLOOM_H
#define DBUSP_BLOOM_H

#include <stddef.h>
#include <stdint.h>

#include "dbus/args.h"
#include "dbus/match.h"

struct dbusp_bloom {
	uint64_t *words;	/* zero at first */
	size_t n_words;
	unsigned int n_hash;	/* bits of a string */
};

/**
 * dbusp_bloom_add() - set the bits of one string
 * @bloom: filter or mask
 * @key: "member"
 * @value: what follows the key and a colon
 */
void dbusp_bloom_add(const struct dbusp_bloom *bloom, const char *key, struct dbusp_str value);

/**
 * dbusp_bloom_filter() - set the bits of a signal
 * @bloom: filter
 * @header: its parsed header
 * @args: initialised for it
 */
void dbusp_bloom_filter(const struct dbusp_bloom *bloom, const struct dbusp_header *header,
			struct dbusp_args *args);

/**
 * dbusp_bloom_mask() - set the bits of a match rule
 * @bloom: mask
 * @match: the rule; sender and destination have no bits
 */
void dbusp_bloom_mask(const struct dbusp_bloom *bloom, const struct dbusp_match *match);

#endif
