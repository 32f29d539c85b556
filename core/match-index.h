/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_MATCH_INDEX_H
#define CORE_MATCH_INDEX_H

#include "base.h"

#include "match.h"

/*
 * The index over all match entries of a bus: per kind of key a tree of buckets,
 * per bucket the entries filed under that key.
 *
 *  1. A bucket exists exactly as long as an entry is filed in it.
 *  2. Filing allocates at most the bucket; taking out allocates nothing.
 *
 * Private to match*.c. Lock rule: that of match.h.
 */

struct core_match_entry;

enum core_match_kind {
	CORE_MATCH_ALL, /* no rules: passes everything */
	CORE_MATCH_USER, /* passes user signals that nothing cheap tells apart */
	CORE_MATCH_SRC_ID, /* a: the sender's id */
	CORE_MATCH_NAME, /* name: a name of the sender */
	CORE_MATCH_BLOOM, /* a: generation of the filter; b: a bit that is set in it */
	CORE_MATCH_BLOOM_TAIL, /* a: lowest generation of the filter; b: a bit that is set in it */
	CORE_MATCH_NOTE, /* a: type of notification */
	CORE_MATCH_NOTE_OLD, /* a: type; b: old id */
	CORE_MATCH_NOTE_NEW, /* a: type; b: new id, or the id of ID_ADD and ID_REMOVE */
	CORE_MATCH_NOTE_NAME, /* a: type; name: the name */
};

/**
 * struct core_match_key - what an entry is filed under
 * @kind:	which tree
 * @a:		by kind, else 0
 * @b:		by kind, else 0
 * @name:	by kind, else NULL
 *
 * A bit number one past the last stands for no bit at all: the field of that
 * generation is empty and passes every filter.
 */
struct core_match_key {
	enum core_match_kind kind;
	u64 a;
	u64 b;
	const char *name;
};

/**
 * struct core_match_slot - an entry's place in a bucket
 * @link:	in core_match_bucket.slots
 * @bucket:	that bucket
 * @entry:	the entry
 */
struct core_match_slot {
	struct list_head link;
	struct core_match_bucket *bucket;
	struct core_match_entry *entry;
};

/**
 * struct core_match_bucket - all entries filed under one key
 * @node:	in core_match_index.trees
 * @key:	the key; its name points to @name
 * @slots:	of the entries
 * @n_slots:	how many
 * @name:	copy of the key's name
 */
struct core_match_bucket {
	struct rb_node node;
	struct core_match_key key;
	struct list_head slots;
	size_t n_slots;
	char name[];
};

/**
 * core_match_index_file() - file an entry under a key
 * @index:	the index
 * @key:	the key; copied
 * @slot:	an unused slot of the entry
 *
 * Return: 0 or -ENOMEM.
 */
int core_match_index_file(struct core_match_index *index, const struct core_match_key *key,
			  struct core_match_slot *slot);

/**
 * core_match_index_take() - take an entry out of a bucket
 * @index:	the index
 * @slot:	a used slot
 */
void core_match_index_take(struct core_match_index *index, struct core_match_slot *slot);

/**
 * core_match_index_find() - the bucket of a key
 * @index:	the index
 * @key:	the key
 *
 * Return: the bucket, or NULL if nothing is filed under the key.
 */
struct core_match_bucket *core_match_index_find(const struct core_match_index *index,
						const struct core_match_key *key);

/**
 * core_match_index_ceil() - the first bucket at or after a key, in its tree
 * @index:	the index
 * @key:	the key
 *
 * Return: the bucket, or NULL if there is none.
 */
struct core_match_bucket *core_match_index_ceil(const struct core_match_index *index,
						const struct core_match_key *key);

/**
 * core_match_index_crowd() - number of entries filed under a key
 * @index:	the index
 * @key:	the key
 */
size_t core_match_index_crowd(const struct core_match_index *index,
			      const struct core_match_key *key);

#endif
