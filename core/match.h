/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_MATCH_H
#define CORE_MATCH_H

#include "base.h"
#include "kdbus.h"

#include "limits.h"

/*
 * Matches: which connections want a signal (spec §11).
 *
 * A connection has a set of entries, each with a cookie and rules; a signal
 * passes a set if all rules of at least one entry hold. An index over all sets
 * of a bus finds the receivers of a broadcast without looking at the rest: each
 * entry is filed under a property that every signal it can match must have.
 *
 * Invariants
 *
 *  1. A signal passes a set iff it passes an entry of it; it passes an entry iff
 *     it satisfies all its rules. No entries: nothing passes. An entry without
 *     rules passes everything, notifications included (§11).
 *  2. A rule of the user group (BLOOM_MASK, NAME, ID, DST_ID) never holds for a
 *     notification, one of the kernel group never for a user signal (§11).
 *  3. Cookies need not be unique; removing and replacing concern all entries
 *     with the cookie. At most CORE_MATCH_MAX entries remain (§6.13).
 *  4. An entry that no broadcast can satisfy is filed nowhere: mixed groups,
 *     two types of notification, a DST_ID other than ~0, an empty name.
 *     Any other entry is filed under each of the keys of which a signal that
 *     passes it has exactly one, so it is looked at at most once per search.
 *  5. Per generation of the filter an entry with a mask is filed under one bit
 *     of the mask. A filter without that bit cannot pass it. From the fourth
 *     generation on one bit common to the remaining masks serves all of them.
 *  6. A search visits each receiver at most once, allocates nothing, and takes
 *     time for the properties of the signal and the entries filed under them,
 *     not for the number of sets and entries.
 *  7. Adding an entry allocates everything first; if that fails, nothing has
 *     changed. Removing allocates nothing and cannot fail.
 *
 * Lock rule: one sleeping lock per bus covers the index and all sets in it. It
 * is held exclusively for core_match_add(), core_match_remove(),
 * core_match_clear() and core_match_find() (which marks the sets it has
 * visited), at least shared for core_match_test(). It is also enough to hold it
 * shared for core_match_find_lane() if no other search uses the same lane:
 * each lane has marks of its own. Searching and testing read
 * the sender's names: the name registry's lock is held at least shared, and was
 * taken before.
 */

struct core_match_bucket;
struct core_name_holder;

/* How entries are filed; see match-index.h. */
#define CORE_MATCH_KINDS 10

/* Searches that can go on at once. */
#define CORE_MATCH_LANES 8

/**
 * struct core_match_index - all match entries of a bus
 * @bloom_size:	bytes of a bloom filter on this bus
 * @trees:	by kind of key, the buckets in order of their keys
 * @serial:	per lane, number of the current search
 */
struct core_match_index {
	size_t bloom_size;
	struct rb_root trees[CORE_MATCH_KINDS];
	u64 serial[CORE_MATCH_LANES];
};

/**
 * struct core_match_set - the match entries of one connection; embedded in it
 * @index:	the index of its bus
 * @entries:	in the order they were added
 * @n_entries:	how many
 * @serial:	per lane, the last search that visited it
 */
struct core_match_set {
	struct core_match_index *index;
	struct list_head entries;
	unsigned int n_entries;
	u64 serial[CORE_MATCH_LANES];
};

/**
 * struct core_signal - what is matched against the entries
 * @type:	0: a user signal; else the type of a broadcast notification:
 *		KDBUS_ITEM_NAME_ADD, _REMOVE, _CHANGE, KDBUS_ITEM_ID_ADD or _REMOVE
 * @user.src_id:	id of the sender
 * @user.dst_id:	the message's word: ~0 for a broadcast; 0 for a signal
 *			addressed by name alone (§11, DST_ID)
 * @user.names:		names of the sender, or NULL; only those it is primary owner of count
 * @user.generation:	generation of the bloom filter
 * @user.filter:	as many bytes as the index says, 8-aligned
 * @note.id:		ID_...: the connection's id
 * @note.old_id:	NAME_...: the old owner's id, or 0
 * @note.new_id:	NAME_...: the new owner's id, or 0
 * @note.name:		NAME_...: the name
 *
 * Everything pointed to stays the caller's.
 */
struct core_signal {
	u64 type;
	union {
		struct {
			u64 src_id;
			u64 dst_id;
			const struct core_name_holder *names;
			u64 generation;
			const u64 *filter;
		} user;
		struct {
			u64 id;
			u64 old_id;
			u64 new_id;
			const char *name;
		} note;
	};
};

/**
 * core_match_index_init() - make an empty index
 * @index:	the index; needs no destructor once all its sets are cleared
 * @bloom_size:	bytes of the bloom filters of the bus, a positive multiple of 8
 *
 * Context: before anybody else sees it.
 */
void core_match_index_init(struct core_match_index *index, size_t bloom_size);

/**
 * core_match_set_init() - make an empty set
 * @set:	the set
 * @index:	outlives it
 *
 * Context: before anybody else sees it.
 */
void core_match_set_init(struct core_match_set *set, struct core_match_index *index);

/**
 * core_match_add() - add an entry (KDBUS_CMD_MATCH_ADD, §6.13)
 * @set:	the connection's set
 * @cookie:	names the entry for removal
 * @flags:	KDBUS_MATCH_REPLACE or 0: first drop all entries with @cookie
 * @items:	the rules: an item list that has passed the generic checks of §3.3
 *		and §5 for this command. Copied. A NEGOTIATE item is no rule.
 * @size:	bytes of the list
 *
 * O(r log n) for r rules (the masks' bits count up to a fixed number).
 *
 * Context: index lock held exclusively; may sleep.
 * Return: 0 or
 *  * -EDOM: payload of a mask not a positive multiple of the bloom size
 *  * -EINVAL: NAME rule with an invalid or wildcard name
 *  * -EMFILE: there would be more than CORE_MATCH_MAX entries
 *  * -ENOMEM
 */
int core_match_add(struct core_match_set *set, u64 cookie, u64 flags,
		   const struct kdbus_item *items, size_t size);

/**
 * core_match_remove() - remove all entries with a cookie (KDBUS_CMD_MATCH_REMOVE)
 * @set:	the connection's set
 * @cookie:	of the entries
 *
 * Context: index lock held exclusively.
 * Return: 0, or -EBADSLT if there is no such entry.
 */
int core_match_remove(struct core_match_set *set, u64 cookie);

/**
 * core_match_clear() - remove all entries; the destructor of a set
 * @set:	may have none, may be cleared already
 *
 * Context: index lock held exclusively. Cannot fail.
 */
void core_match_clear(struct core_match_set *set);

/**
 * core_match_test() - does one connection want a signal
 * @set:	its set
 * @signal:	a unicast signal to it, or any other
 *
 * Looks at each entry of the set, hence at CORE_MATCH_MAX at most.
 *
 * Context: index lock held at least shared.
 */
bool core_match_test(const struct core_match_set *set, const struct core_signal *signal);

/**
 * core_match_find() - visit all connections that want a broadcast
 * @index:	the index of the bus
 * @signal:	a notification, or a user signal to ~0
 * @visit:	called once for each set that passes, in no particular order. Must
 *		not call anything that needs the index lock: neither change a
 *		set nor search again.
 * @data:	for @visit
 *
 * Policy (TALK, SEE) is not looked at; that is up to @visit.
 *
 * Context: index lock held exclusively, also while @visit runs.
 */
void core_match_find(struct core_match_index *index, const struct core_signal *signal,
		     void (*visit)(struct core_match_set *set, void *data), void *data);

/**
 * core_match_find_lane() - the same, along with other searches
 * @index:	the index of the bus
 * @lane:	less than CORE_MATCH_LANES; one search at a time has it
 * @signal:	see core_match_find()
 * @visit:	see core_match_find()
 * @data:	for @visit
 *
 * Context: index lock held at least shared, also while @visit runs, and
 * whatever makes sure that nobody else has the lane.
 */
void core_match_find_lane(struct core_match_index *index, unsigned int lane,
			  const struct core_signal *signal,
			  void (*visit)(struct core_match_set *set, void *data), void *data);

#endif
