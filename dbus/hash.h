/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keyed hashes, for tables that are filled with what clients write.
 *
 * 1. SipHash-1-3: without the key nobody can say which texts meet in a table, so nobody can make a
 *    table slow. The key is handed in; it is secret, and random.
 * 2. A hash may be asked for at any time and continued after it: the prefixes of a text cost little
 *    more than the text.
 *
 * No allocation, no globals.
 */
#ifndef DBUSP_HASH_H
#define DBUSP_HASH_H

#include <stddef.h>
#include <stdint.h>

struct dbusp_hash_key {
	uint64_t k[2];
};

/* A hash on its way */
struct dbusp_hash {
	uint64_t v[4];
	uint64_t tail; /* the last len % 8 bytes */
	uint64_t len;
};

/**
 * dbusp_hash_begin() - of nothing so far
 * @hash: the caller's storage
 * @key: not needed any more afterwards
 */
void dbusp_hash_begin(struct dbusp_hash *hash, const struct dbusp_hash_key *key);

/**
 * dbusp_hash_add() - of more bytes
 * @hash: begun
 * @data: bytes
 * @size: how many
 */
void dbusp_hash_add(struct dbusp_hash *hash, const void *data, size_t size);

/**
 * dbusp_hash_end() - the hash of what was added so far
 * @hash: begun; more may be added afterwards
 *
 * Return: the hash.
 */
uint64_t dbusp_hash_end(const struct dbusp_hash *hash);

/**
 * dbusp_hash_of() - all in one
 * @key: the key
 * @data: bytes
 * @size: how many
 *
 * Return: the hash.
 */
uint64_t dbusp_hash_of(const struct dbusp_hash_key *key, const void *data, size_t size);

#endif
