/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_MATCH_H
#define CLASSIC_MATCH_H

/*
 * match.h - which peers want a message: an index of exact match rules
 *
 * 1. A rule is filed once, under a key made of what in it a message either has or has not: sender,
 *    interface, member, path or path_namespace, destination, the type if it eavesdrops, and
 *    one argument: its value, the namespace of the first, or a path. Which of those it is filed by
 *    is its *shape*; there are 480, and a bus uses few.
 * 2. A search makes one key for each shape in use and each way in which the message has it (the
 *    names that its sender and its recipient own, the prefixes of its path, the arguments that
 *    some rule is filed by), and looks at the rules under these keys only. So its cost does not
 *    depend on rules that do not concern the message, but for those that only a second argument
 *    tells from it. Where that makes more keys than there are rules it looks at all of them
 *    instead, once.
 * 3. Paths in arguments match in both directions: a rule "/a/" the argument "/a/b", and a rule
 *    "/a/b" the argument "/a/". So these rules are in a tree, ordered by key and path, where what
 *    begins with an argument lies side by side.
 * 4. Rules that eavesdrop are in an index of their own, which is asked for messages with a
 *    destination, too. A rule that no broadcast can satisfy is in neither if it does not eavesdrop.
 * 5. What is filed under a key is tested with dbusp_match_test(): the key is a hash and no proof.
 * 6. A rule that a peer adds again is counted. Finding it among the peer's own is O(1).
 * 7. Tables grow by doubling and never shrink.
 * 8. Hashes are keyed: nobody can write rules that meet in one place of a table.
 */

#include "classic.h"
#include "dbus/hash.h"

struct rule;

/* Which arguments rules are filed by, besides the value of the first; bit i of @used: argument i */
struct match_args {
	uint64_t used;
	uint32_t n_of[DBUSP_ARGS_MAX];
};

enum {
	MATCH_ARG_EQUAL,
	MATCH_ARG_PATH,
	N_MATCH_ARGS
};

#define MATCH_SHAPES 480

/**
 * struct match_index - rules by key
 * @buckets:	by hash, all but those in @paths; @n_buckets: a power of two, or 0
 * @paths:	those that are filed by a path in an argument, by key and path
 * @n:		how many in both
 * @n_of_shape:	how many there are of each shape; in use are the first @n_shapes of @shapes
 * @args:	arguments in use, of all shapes together
 */
struct match_index {
	struct rule **buckets;
	size_t n_buckets;
	struct rb_root paths;
	size_t n;
	uint32_t n_of_shape[2048];
	uint16_t shapes[MATCH_SHAPES];
	unsigned int n_shapes;
	struct match_args args[N_MATCH_ARGS];
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
