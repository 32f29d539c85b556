/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_MATCH_H
#define CLASSIC_MATCH_H

/*
 * match.h - which peers want a message: an index of exact match rules
 *
 * 1. A rule is filed once, under a key made of everything in it that a message either has or has
 *    not: sender, interface, member, path or path_namespace, and the first argument or its
 *    namespace. Which of those a rule names is its *shape*; there are 72, and a bus uses few.
 * 2. A search makes one key for each shape in use and each way in which the message has it (the
 *    names its sender owns, the prefixes of its path), and looks at the rules under these keys
 *    only. So its cost does not depend on rules that do not concern the message.
 * 3. Rules that eavesdrop are in an index of their own, which is asked for messages with a
 *    destination, too. A rule that no broadcast can satisfy is in neither if it does not eavesdrop.
 * 4. What is filed under a key is tested with dbusp_match_test(): the key is a hash and no proof.
 * 5. A rule that a peer adds again is counted. Finding it among the peer's own is O(1).
 * 6. Tables grow by doubling and never shrink.
 * 7. Hashes are keyed: nobody can write rules that meet in one place of a table.
 */

#include "classic.h"
#include "dbus/hash.h"

struct rule;

/* Rules by key */
struct match_index {
	struct rule **buckets;
	size_t n_buckets; /* a power of two, or 0 */
	size_t n;
	/* by shape: how many rules, and which shapes are in use */
	uint32_t n_of_shape[128];
	uint8_t shapes[72];
	unsigned int n_shapes;
};

struct matches {
	struct dbusp_hash_key key;
	struct match_index plain;
	struct match_index eaves;
	struct rule **own; /* by owner and rule, to be found again */
	size_t n_own_buckets;
	size_t n_own;
};

/* Bytes that a rule takes, at most */
size_t match_memory(const struct dbusp_match *match);

#endif
