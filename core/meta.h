/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_META_H
#define CORE_META_H

#include "item.h"

/*
 * Metadata: which kinds go to whom, and their items (spec §8).
 *
 * 1. A sender cannot suppress what everybody may know (CORE_META_IMPLICIT), nor what the
 *    receiver could read in /proc anyway.
 * 2. Masks say what may be shown; struct core_meta.have says what there is. An item is
 *    written if both do.
 * 3. Items come in the order of spec §8.4, names in order of acquisition, whatever the
 *    order of the bits.
 * 4. Values are handed in as the receiver is to see them: ids translated into its
 *    namespaces by the host. Only the rule for capabilities is here (core_meta_caps()),
 *    as it is a rule of the bus.
 * 5. core_meta_size() and core_meta_put() agree as long as the values stay the same;
 *    names are covered by the lock of the registry, so both happen under it.
 *
 * Pure functions of their arguments: any thread, no allocation. Where a name holder is
 * given, the registry lock is held at least shared.
 */

struct core_name_holder;

/* Kinds that describe the task rather than the connection or the message. */
#define CORE_META_PROCESS                                                         \
	((u64)(KDBUS_ATTACH_CREDS | KDBUS_ATTACH_PIDS | KDBUS_ATTACH_AUXGROUPS |  \
	       KDBUS_ATTACH_TID_COMM | KDBUS_ATTACH_PID_COMM | KDBUS_ATTACH_EXE | \
	       KDBUS_ATTACH_CMDLINE | KDBUS_ATTACH_CGROUP | KDBUS_ATTACH_CAPS |   \
	       KDBUS_ATTACH_SECLABEL | KDBUS_ATTACH_AUDIT))

/* Kinds granted on every message (set I of spec §8.1). */
#define CORE_META_IMPLICIT                                                                   \
	((u64)(KDBUS_ATTACH_TIMESTAMP | KDBUS_ATTACH_NAMES | KDBUS_ATTACH_CONN_DESCRIPTION | \
	       KDBUS_ATTACH_CREDS | KDBUS_ATTACH_PIDS | KDBUS_ATTACH_AUXGROUPS))

/* Kinds granted on a message if the receiver could read them in /proc (set P). */
#define CORE_META_PROC (CORE_META_PROCESS & ~CORE_META_IMPLICIT)

/* Set for a notification, whatever the receiver asked for. */
#define CORE_META_NOTIFY ((u64)KDBUS_ATTACH_TIMESTAMP)

/**
 * core_meta_proc_wanted() - kinds for which the /proc rule has to be asked
 * @send: kinds the sender releases (S)
 * @recv: kinds the receiver wants (R)
 *
 * Return: 0 if the rule cannot change anything; then its facts need not be gathered.
 */
static inline u64 core_meta_proc_wanted(u64 send, u64 recv)
{
	return recv & CORE_META_PROC & ~send;
}

/**
 * struct core_meta_proc - what a receiver could read in /proc about a sender
 * @visible:    the sending thread has a pid in the receiver's pid namespace
 * @same:       the sender is the task that called HELLO for the receiver
 * @hidepid:    hidepid option of that namespace's /proc
 * @gid_exempt: effective gid of the receiver's opener is that /proc's gid option
 */
struct core_meta_proc {
	bool visible;
	bool same;
	u32 hidepid;
	bool gid_exempt;
};

/**
 * core_meta_proc_granted() - apply the /proc rule (set P of spec §8.1)
 * @facts: facts about sender and receiver
 *
 * Return: the kinds granted by it: all candidates or none.
 */
u64 core_meta_proc_granted(const struct core_meta_proc *facts);

/**
 * core_meta_for_message() - kinds to attach to a message
 * @send: kinds the sender releases
 * @recv: kinds the receiver wants
 * @proc: kinds granted by the /proc rule, 0 if it needed not be asked
 */
static inline u64 core_meta_for_message(u64 send, u64 recv, u64 proc)
{
	return (send | CORE_META_IMPLICIT | proc) & recv & _KDBUS_ATTACH_ALL;
}

/**
 * core_meta_for_conn() - kinds to show about a connection
 * @send:  kinds the connection releases
 * @query: kinds asked for
 */
static inline u64 core_meta_for_conn(u64 send, u64 query)
{
	return send & query & ~(u64)KDBUS_ATTACH_TIMESTAMP;
}

/**
 * core_meta_for_creator() - kinds to show about the creator of a bus
 * @creator: kinds the creator released at BUS_MAKE (O)
 * @query:   kinds asked for
 */
static inline u64 core_meta_for_creator(u64 creator, u64 query)
{
	return creator & query & CORE_META_PROCESS;
}

/**
 * struct core_meta - metadata as one receiver is to see it
 * @have:         kinds that exist
 * @creds:        credentials
 * @pids:         process ids
 * @auxgroups:    supplementary groups; @n_auxgroups may be 0
 * @n_auxgroups:  how many
 * @tid_comm:     name of the thread
 * @pid_comm:     name of the process
 * @exe:          path of the executable
 * @cmdline:      arguments, each with its NUL
 * @cmdline_size: their bytes, the last NUL included
 * @cgroup:       path of the control group
 * @last_cap:     highest capability
 * @caps:         CORE_CAP_SETS sets of core_cap_words(@last_cap) words each
 * @seclabel:     security label
 * @audit:        audit ids
 * @names:        holder of the names, or NULL; those it owns are written
 * @description:  description of the connection
 * @timestamp:    time and number of the message
 *
 * Only the members whose bit is in @have are looked at. All belong to the caller.
 */
struct core_meta {
	u64 have;
	struct kdbus_creds creds;
	struct kdbus_pids pids;
	const u64 *auxgroups;
	size_t n_auxgroups;
	const char *tid_comm;
	const char *pid_comm;
	const char *exe;
	const char *cmdline;
	size_t cmdline_size;
	const char *cgroup;
	u32 last_cap;
	const u32 *caps;
	const char *seclabel;
	struct kdbus_audit audit;
	const struct core_name_holder *names;
	const char *description;
	struct kdbus_timestamp timestamp;
};

/**
 * core_meta_size() - bytes that metadata items take
 * @meta: values
 * @mask: kinds to write
 *
 * Return: bytes without padding after the last item; 0 if there is none.
 */
size_t core_meta_size(const struct core_meta *meta, u64 mask);

/**
 * core_meta_put() - write metadata items
 * @w:    where to
 * @meta: values
 * @mask: kinds to write
 */
void core_meta_put(struct core_writer *w, const struct core_meta *meta, u64 mask);

/* Sets of capabilities in an item: inheritable, permitted, effective, bounding. */
#define CORE_CAP_SETS 4

/**
 * core_cap_words() - 32-bit words of one set of capabilities
 * @last_cap: highest capability
 */
static inline size_t core_cap_words(u32 last_cap)
{
	return last_cap / 32 + 1;
}

/**
 * enum core_userns - where the sender's user namespace is, seen from the receiver's
 * @CORE_USERNS_SAME:     the same
 * @CORE_USERNS_ANCESTOR: above it
 * @CORE_USERNS_FOREIGN:  neither
 */
enum core_userns {
	CORE_USERNS_SAME,
	CORE_USERNS_ANCESTOR,
	CORE_USERNS_FOREIGN,
};

/**
 * core_meta_caps() - capabilities as a receiver is to see them
 * @userns:   relation of the user namespaces
 * @is_owner: with CORE_USERNS_ANCESTOR: the namespace on the path to the receiver's that
 *            is a direct child of the sender's is owned by the sender's euid
 * @last_cap: highest capability
 * @caps:     the sender's sets
 * @ret_caps: sets for the receiver, as many words; may be @caps
 *
 * Bits above @last_cap are cleared (spec §8.6).
 */
void core_meta_caps(enum core_userns userns, bool is_owner, u32 last_cap, const u32 *caps,
		    u32 *ret_caps);

#endif
