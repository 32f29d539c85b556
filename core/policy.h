/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_POLICY_H
#define CORE_POLICY_H

#include "base.h"
#include "kdbus.h"

/*
 * Policy: who may own, talk to and see a well-known name (spec §9).
 *
 * A database maps names and wildcards to records; a record lists who is
 * granted what. There is one database per bus, filled by policy holders and
 * activators, and one per custom endpoint, filled by the endpoint's owner.
 * Each record belongs to one owner (a connection or an endpoint), whose whole
 * set of records is replaced in one step. Decisions are pure functions of the
 * databases and of the facts they are given.
 *
 * Invariants
 *
 *  1. (name, wildcard?) is unique per database, across owners: "a.b" and
 *     "a.b.*" are different keys (§9.3).
 *  2. A record without entries grants nothing, but still reserves its key and
 *     still hides a wildcard that covers its name (§9.3, §9.4).
 *  3. The exact record decides alone. Only if there is none, the wildcard one
 *     level up is asked, and no other (§9.4).
 *  4. Entries only add: the level of a record is the maximum over the entries
 *     that match. There is no denying entry.
 *  5. A set is installed as a whole or not at all; until it is, the owner's
 *     previous set decides.
 *  6. Installing and clearing allocate nothing. Only parsing does.
 *  7. A decision allocates nothing, remembers nothing and is never cached: a
 *     change holds from the next decision on.
 *
 * Lock rule: one sleeping lock per database covers the database, its records
 * and every struct core_policy_owner that has records in it: held exclusively
 * for core_policy_replace() and core_policy_clear(), at least shared for
 * core_policy_level() and the core_policy_may_...() functions. The latter also
 * walk the names of the other side, so the name registry's lock is held at
 * least shared there; it is taken first. Parsing and freeing a set that is not
 * installed need no lock.
 */

struct core_name_holder;
struct core_policy_set;

/* Level of somebody to whom nothing is granted; else a KDBUS_POLICY_... value. */
#define CORE_POLICY_NONE (-1)

/**
 * struct core_cred - the credentials a decision is made about
 * @euid:	effective uid
 * @egid:	effective gid
 * @groups:	supplementary groups in ascending order, or NULL
 * @n_groups:	how many
 *
 * All ids are in the one numbering that the map_id callback of
 * core_policy_parse() converts to. @groups belongs to the caller.
 */
struct core_cred {
	u32 euid;
	u32 egid;
	const u32 *groups;
	size_t n_groups;
};

/**
 * struct core_policy - a database of policy records
 * @records:	all records by (name, wildcard)
 */
struct core_policy {
	struct rb_root records;
};

/**
 * struct core_policy_owner - whoever uploads records; embedded in a connection or endpoint
 * @records:	its installed records
 */
struct core_policy_owner {
	struct list_head records;
};

static inline void core_policy_init(struct core_policy *policy)
{
	policy->records = RB_ROOT;
}

static inline void core_policy_owner_init(struct core_policy_owner *owner)
{
	INIT_LIST_HEAD(&owner->records);
}

/* More than one NAME item is refused: HELLO and UPDATE (§9.3). */
#define CORE_POLICY_ONE_NAME	(1U << 0)
/* A wildcard name is refused: activators (§9.3). */
#define CORE_POLICY_NO_WILDCARD (1U << 1)

/**
 * typedef core_policy_map_id - convert an id of an access entry
 * @data:	as given to core_policy_parse()
 * @type:	KDBUS_POLICY_ACCESS_USER or KDBUS_POLICY_ACCESS_GROUP
 * @id:		the id as the uploader wrote it, in the uploader's user namespace
 * @ret_id:	the id as struct core_cred has it
 *
 * Return: 0, or -EINVAL if the id has no mapping.
 */
typedef int (*core_policy_map_id)(void *data, u64 type, u64 id, u32 *ret_id);

/**
 * core_policy_parse() - turn the items of a command into a set of records
 * @items:	item list that has passed the generic checks of §3.3 and §5
 * @size:	bytes of the list
 * @flags:	CORE_POLICY_... flags
 * @map_id:	converts ids; NULL takes them as they are and refuses what is no
 *		valid 32-bit id
 * @data:	for @map_id
 * @ret_set:	the set, owned by the caller until it is installed
 *
 * Each NAME opens a record, each POLICY_ACCESS adds an entry to the record
 * opened last (§9.3). Items of other types are passed over. A list without
 * NAME makes an empty set.
 *
 * Context: no lock; may sleep.
 * Return: 0 or
 *  * -EINVAL: access entry before any name; invalid name; a wildcard although
 *    it is refused; access type or level out of range; id without mapping
 *  * -E2BIG: more than one name although that is refused
 *  * -EEXIST: the same name twice
 *  * -ENOMEM
 */
int core_policy_parse(const struct kdbus_item *items, size_t size, unsigned int flags,
		      core_policy_map_id map_id, void *data, struct core_policy_set **ret_set);

/**
 * core_policy_set_free() - drop a set that was not installed
 * @set:	the set, or NULL
 *
 * Context: no lock.
 */
void core_policy_set_free(struct core_policy_set *set);

/**
 * core_policy_replace() - install a set in place of all records of an owner
 * @policy:	the database; the one @owner has its records in, if it has any
 * @owner:	whose records they become
 * @set:	consumed on success; still the caller's on failure
 *
 * Context: database lock held exclusively. Allocates nothing.
 * Return: 0, or -EEXIST if another owner holds one of the keys; then nothing
 * has changed (§9.3).
 */
int core_policy_replace(struct core_policy *policy, struct core_policy_owner *owner,
			struct core_policy_set *set);

/**
 * core_policy_clear() - remove all records of an owner
 * @policy:	the database
 * @owner:	may have none
 *
 * Part of disconnecting and of endpoint teardown (§1.8 step 4).
 *
 * Context: database lock held exclusively. Cannot fail.
 */
void core_policy_clear(struct core_policy *policy, struct core_policy_owner *owner);

/**
 * core_policy_level() - the highest access granted to somebody on a name
 * @policy:	the database
 * @cred:	who asks
 * @name:	a well-known name, never a wildcard
 *
 * O(log n) in the number of records (§9.4).
 *
 * Context: database lock held at least shared.
 * Return: CORE_POLICY_NONE, KDBUS_POLICY_SEE, KDBUS_POLICY_TALK or
 * KDBUS_POLICY_OWN.
 */
int core_policy_level(const struct core_policy *policy, const struct core_cred *cred,
		      const char *name);

/**
 * struct core_policy_view - the side of a decision that wants something
 * @bus:	database of the bus
 * @endpoint:	database of its custom endpoint; NULL on the default endpoint
 * @bus_owner:	the frozen predicate of §9.1 (core_policy_bus_owner())
 * @cred:	its current creds, or those at open, as the tables of §9.2 say
 */
struct core_policy_view {
	const struct core_policy *bus;
	const struct core_policy *endpoint;
	bool bus_owner;
	const struct core_cred *cred;
};

/**
 * core_policy_may_own() - may it acquire this name (§9.2 OWN)
 * @view:	the acquirer, with its current creds
 * @name:	the name
 *
 * Context: see the lock rule; the name registry is not looked at.
 */
bool core_policy_may_own(const struct core_policy_view *view, const char *name);

/**
 * core_policy_may_talk() - may it send to that connection (§9.2 TALK)
 * @view:	X of the spec: the sender of a unicast, with its current creds; the
 *		*receiver* of a signal, with its creds at open
 * @uid:	real uid of the opener of Y, the other connection
 * @names:	names of Y
 *
 * Replies, monitor copies and kernel messages are not to be asked about.
 * O(k log n) for the k names of Y, and only if nothing simpler decides.
 *
 * Context: see the lock rule.
 */
bool core_policy_may_talk(const struct core_policy_view *view, u32 uid,
			  const struct core_name_holder *names);

/**
 * core_policy_may_see_name() - may it learn of this name (§9.2 SEE name)
 * @view:	whoever asks, or the receiver of a NAME_... notification
 * @name:	the name
 *
 * Context: see the lock rule; the name registry is not looked at.
 */
bool core_policy_may_see_name(const struct core_policy_view *view, const char *name);

/**
 * core_policy_may_see() - may it learn of that connection (§9.2 SEE connection)
 * @view:	whoever asks
 * @names:	names of the other connection
 *
 * Context: see the lock rule.
 */
bool core_policy_may_see(const struct core_policy_view *view, const struct core_name_holder *names);

/**
 * core_policy_privileged() - the predicate "privileged" (§9.1)
 * @custom:		the connection came through a custom endpoint
 * @cap_ipc_owner:	the opener holds CAP_IPC_OWNER over the domain's user namespace
 */
static inline bool core_policy_privileged(bool custom, bool cap_ipc_owner)
{
	return !custom && cap_ipc_owner;
}

/**
 * core_policy_bus_owner() - the predicate "bus owner" (§9.1)
 * @custom:		the connection came through a custom endpoint
 * @cap_ipc_owner:	as above
 * @euid:		effective uid of the opener
 * @bus_uid:		uid of the bus node
 */
static inline bool core_policy_bus_owner(bool custom, bool cap_ipc_owner, u32 euid, u32 bus_uid)
{
	return !custom && (euid == bus_uid || cap_ipc_owner);
}

#endif
