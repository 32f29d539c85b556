/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_NAMES_H
#define CORE_NAMES_H

/*
 * The registry of well-known names (spec §10).
 *
 * A name is a queue of records, one per connection that owns it or waits for
 * it, plus at most one record of an activator. The registry decides who owns
 * what and says what changed; it neither moves messages nor sends anything.
 *
 * Invariants:
 *
 *  1. A name exists exactly as long as it has a record.
 *  2. The head of the queue is the primary owner. If the queue is empty, the
 *     activator is the acting owner. Nobody else owns the name.
 *  3. Each record carries exactly one of PRIMARY and IN_QUEUE; PRIMARY sits on
 *     the owner of rule 2 and nowhere else.
 *  4. A holder has at most one record per name and at most @max records (the
 *     host may set another maximum than that of the ABI, CORE_CONN_MAX_NAMES),
 *     listed in the order in which it asked.
 *  5. A holder that is an activator has one record and asks for no name.
 *  6. The id of a name is never 0 and never used again: a name that was lost
 *     and acquired anew has another id (§10.7).
 *  7. A call that fails has changed nothing. Releasing allocates nothing and
 *     cannot fail half-way.
 *  8. A call makes at most one change of ownership; its struct
 *     core_name_change describes it fully, at the moment of the event.
 *  9. A hand-over is asked for exactly when the owner changes between the
 *     activator and another connection (§10.6).
 *
 * Lock: one sleeping lock of the caller, the registry lock, covers struct
 * core_names, all names and records in it, and every holder. Acquiring,
 * attaching, releasing and core_name_change_done() need it exclusively; the
 * caller keeps it from the call until the hand-over is carried out, the
 * notification queued and core_name_change_done() called. Looking up and
 * walking need it shared.
 */

#include "base.h"

/**
 * struct core_names - the registry of one bus
 * @tree: all names, by name
 * @count: how many there are
 * @last_id: id given to the newest name
 */
struct core_names {
	struct rb_root tree;
	size_t count;
	u64 last_id;
};

/**
 * struct core_name_holder - what a connection has to do with names
 * @id: id of the connection, for notifications
 * @records: its struct core_name_record, oldest request first
 * @tree: the same, by name
 * @count: how many there are
 * @max: how many there may be
 *
 * Embedded in the connection; container_of() leads back.
 */
struct core_name_holder {
	u64 id;
	struct list_head records;
	struct rb_root tree;
	unsigned int count;
	unsigned int max;
};

/**
 * struct core_name - a registered name
 * @node: in core_names.tree
 * @id: unique per registration, never 0 (invariant 6)
 * @queue: records of ordinary connections, the primary owner first
 * @activator: record of the activator, or NULL
 * @name: the name, with its NUL
 */
struct core_name {
	struct rb_node node;
	u64 id;
	struct list_head queue;
	struct core_name_record *activator;
	char name[];
};

/**
 * struct core_name_record - one connection's claim to one name
 * @name: the name
 * @holder: who claims it
 * @flags: KDBUS_NAME_* as listings and metadata report them: what was asked
 *	for (ALLOW_REPLACEMENT, QUEUE) and the state (PRIMARY, IN_QUEUE, ACTIVATOR)
 * @queue_entry: in core_name.queue; not linked for an activator
 * @holder_entry: in core_name_holder.records
 * @holder_node: in core_name_holder.tree
 */
struct core_name_record {
	struct core_name *name;
	struct core_name_holder *holder;
	u64 flags;
	struct list_head queue_entry;
	struct list_head holder_entry;
	struct rb_node holder_node;
};

/**
 * struct core_name_change - what a call did to the ownership of a name
 * @type: KDBUS_ITEM_NAME_ADD, _REMOVE or _CHANGE; 0: nobody gained or lost it
 * @old_holder: owner before; NULL with NAME_ADD: report id 0 and flags 0
 * @new_holder: owner now; NULL with NAME_REMOVE
 * @old_flags: flags of the owner before, at the event (still with PRIMARY)
 * @new_flags: flags of the owner now
 * @name: the name; valid until core_name_change_done()
 * @name_id: its id, by which queued messages and reply slots remember it
 * @move_from: messages and reply slots of this name leave this holder …
 * @move_to: … for this one; both NULL if nothing moves
 *
 * The order is the spec's (§10.6): the hand-over first, then the notification,
 * then core_name_change_done(), all under the registry lock. With @type 0 all
 * other fields are 0 and nothing is to be done; core_name_change_done() is
 * still allowed.
 */
struct core_name_change {
	u64 type;
	struct core_name_holder *old_holder;
	struct core_name_holder *new_holder;
	u64 old_flags;
	u64 new_flags;
	const char *name;
	u64 name_id;
	struct core_name_holder *move_from;
	struct core_name_holder *move_to;
	/* private: freed by core_name_change_done() */
	struct core_name *dead_name;
};

/**
 * core_names_init() - make an empty registry
 * @names: the caller's storage
 */
void core_names_init(struct core_names *names);

/**
 * core_names_deinit() - end a registry; every holder must have released all
 * @names: a registry, or NULL
 */
void core_names_deinit(struct core_names *names);

/**
 * core_name_holder_init() - make a holder without names
 * @holder: the caller's storage
 * @id: id of the connection
 */
void core_name_holder_init(struct core_name_holder *holder, u64 id);

/**
 * core_name_holder_deinit() - end a holder, which must have released all
 * @holder: a holder, or NULL
 */
void core_name_holder_deinit(struct core_name_holder *holder);

/**
 * core_names_acquire() - ask for a name (spec §10.3)
 * @names: the registry
 * @holder: who asks
 * @name: string, copied; checked against the grammar of spec §10.1
 * @flags: KDBUS_NAME_REPLACE_EXISTING, _ALLOW_REPLACEMENT, _QUEUE
 * @ret_return_flags: what NAME_ACQUIRE returns: the stored flags with PRIMARY,
 *	IN_QUEUE and ACQUIRED as it came out. Also set with -EEXIST (row 8)
 * @ret_change: who gained and lost the name
 *
 * Permission to own (§9.2) is the caller's to check, after the syntax and
 * before this call. Lock: exclusive; allocates.
 *
 * Return: 0: done; read @ret_return_flags, for a holder that no longer wants
 * to queue comes out with neither PRIMARY nor IN_QUEUE (row 7).
 *  -EINVAL: the name is malformed, or a flag is not one of the three.
 *  -EOPNOTSUPP: the holder is an activator.
 *  -E2BIG: the holder has no record of this name and @max others.
 *  -EEXIST: somebody else owns it, cannot be replaced, and QUEUE is not given.
 *  -ENOMEM: out of memory.
 */
int core_names_acquire(struct core_names *names, struct core_name_holder *holder, const char *name,
		       u64 flags, u64 *ret_return_flags, struct core_name_change *ret_change);

/**
 * core_names_attach_activator() - register an activator (spec §10.5)
 * @names: the registry
 * @holder: the activator, which has no name yet
 * @name: string, copied; checked against the grammar of spec §10.1
 * @ret_change: NAME_ADD if the name was free, else nothing
 *
 * Lock: exclusive; allocates.
 *
 * Return: 0: attached.
 *  -EINVAL: the name is malformed, or the holder has a record already.
 *  -EEXIST: the name has an activator.
 *  -ENOMEM: out of memory.
 */
int core_names_attach_activator(struct core_names *names, struct core_name_holder *holder,
				const char *name, struct core_name_change *ret_change);

/**
 * core_names_release() - give up a name or a place in its queue (spec §10.4)
 * @names: the registry
 * @holder: who gives up
 * @name: string; need not be well-formed
 * @ret_change: who gained and lost the name
 *
 * Lock: exclusive; allocates nothing.
 *
 * Return: 0: released.
 *  -ESRCH: no such name is registered.
 *  -EADDRINUSE: it is, but the holder neither owns nor waits for it.
 */
int core_names_release(struct core_names *names, struct core_name_holder *holder, const char *name,
		       struct core_name_change *ret_change);

/**
 * core_names_release_next() - give up the name asked for first (spec §1.8 step 6)
 * @names: the registry
 * @holder: a connection that disconnects
 * @ret_change: who gained and lost the name; not set when there was none
 *
 * Called until it returns false, each change carried out before the next call.
 * Lock: exclusive; allocates nothing.
 *
 * Return: whether there was a name to give up.
 */
bool core_names_release_next(struct core_names *names, struct core_name_holder *holder,
			     struct core_name_change *ret_change);

/**
 * core_name_change_done() - forget a change that has been carried out
 * @change: from a successful call, or NULL; its pointers are void from now on
 *
 * Lock: exclusive.
 */
void core_name_change_done(struct core_name_change *change);

/**
 * core_names_find() - look up a name
 * @names: the registry
 * @name: string; need not be well-formed
 *
 * Lock: shared. O(log n) comparisons.
 *
 * Return: the name, valid as long as the lock is held, or NULL.
 */
struct core_name *core_names_find(const struct core_names *names, const char *name);

/**
 * core_name_owner() - who receives what is sent to a name (spec §7.4)
 * @name: a registered name
 *
 * Lock: shared.
 *
 * Return: the record of the primary owner, else of the activator (it has
 * KDBUS_NAME_ACTIVATOR in its flags); never NULL.
 */
struct core_name_record *core_name_owner(const struct core_name *name);

/**
 * core_name_holder_find() - look up a holder's claim to a name
 * @holder: a connection
 * @name: string; need not be well-formed
 *
 * Lock: shared. O(log n) comparisons.
 *
 * Return: its record, owned or queued, or NULL.
 */
struct core_name_record *core_name_holder_find(const struct core_name_holder *holder,
					       const char *name);

/**
 * core_name_record_owns() - whether a record is ownership, not a wait for it
 * @record: a record
 *
 * What policy and metadata call an owned name: that of the primary owner or of
 * an activator nobody outranks. Lock: shared.
 */
bool core_name_record_owns(const struct core_name_record *record);

/* The records of @holder, oldest request first. */
#define core_name_holder_for_each(record, holder)                                                  \
	list_for_each_entry(record, &(holder)->records, holder_entry)

/* The queue of @name, primary owner first, the activator left out. */
#define core_name_for_each_queued(record, name)                                                    \
	list_for_each_entry(record, &(name)->queue, queue_entry)

#endif
