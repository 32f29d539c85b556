// SPDX-License-Identifier: LGPL-2.1-or-later
/* SipHash-1-3 (Aumasson, Bernstein: "SipHash: a fast short-input PRF"). */
#include "dbus/hash.h"

#include <endian.h>
#include <string.h>

static uint64_t rotate(uint64_t x, unsigned int bits)
{
	return x << bits | x >> (64 - bits);
}

static void stir(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

static void take_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	stir(v);
	v[0] ^= word;
}

static void take_byte(struct dbusp_hash *hash, unsigned char byte)
{
	hash->tail |= (uint64_t)byte << hash->len % 8 * 8;
	if (++hash->len % 8)
		return;
	take_word(hash->v, hash->tail);
	hash->tail = 0;
}

void dbusp_hash_begin(struct dbusp_hash *hash, const struct dbusp_hash_key *key)
{
	*hash = (struct dbusp_hash){
		.v = { key->k[0] ^ 0x736f6d6570736575ULL, key->k[1] ^ 0x646f72616e646f6dULL,
		       key->k[0] ^ 0x6c7967656e657261ULL, key->k[1] ^ 0x7465646279746573ULL }
	};
}

void dbusp_hash_add(struct dbusp_hash *hash, const void *data, size_t size)
{
	const unsigned char *at = data;
	uint64_t word;

	for (; size && hash->len % 8; size--)
		take_byte(hash, *at++);
	for (; size >= sizeof(word); size -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		take_word(hash->v, le64toh(word));
		hash->len += sizeof(word);
	}
	for (; size; size--)
		take_byte(hash, *at++);
}

uint64_t dbusp_hash_end(const struct dbusp_hash *hash)
{
	uint64_t v[4];

	memcpy(v, hash->v, sizeof(v));
	take_word(v, hash->tail | hash->len << 56);
	v[2] ^= 0xff;
	stir(v);
	stir(v);
	stir(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t dbusp_hash_of(const struct dbusp_hash_key *key, const void *data, size_t size)
{
	struct dbusp_hash hash;

	dbusp_hash_begin(&hash, key);
	dbusp_hash_add(&hash, data, size);
	return dbusp_hash_end(&hash);
}
