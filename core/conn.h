/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_CONN_H
#define CORE_CONN_H

/*
 * A connection and its life (spec §1.6, §1.8, §6.4 to §6.6, §10.3 to §10.5).
 *
 * Invariants
 *
 *  1. States follow each other: new, active, disconnecting, dead. Only an active
 *     connection is in the tables of its bus.
 *  2. What HELLO fixes (id, flags, kind, privileges, credentials at open) never changes.
 *  3. A failed HELLO was seen by nobody: whatever can fail comes before the connection
 *     is linked. (The reference could show ID_ADD directly followed by ID_REMOVE.)
 *  4. The end has one order (§1.8): dead to the world, records removed, unlinked, names
 *     handed on, queue discarded, own calls dropped, owed answers reported, ID_REMOVE.
 *  5. Each change of a name is carried out completely – hand-over, notification – before
 *     the next begins.
 *  6. Messages go to the connection's *sink*: its inbox in core, or something of the
 *     host's.
 *
 * Locks: see core/bus.h.
 */

#include "bus.h"
#include "inbox.h"

/**
 * enum core_conn_state - life of a connection (§1.8)
 * @CORE_CONN_NEW:           made, known to nobody
 * @CORE_CONN_ACTIVE:        linked
 * @CORE_CONN_DISCONNECTING: no operation may start
 * @CORE_CONN_DEAD:          every command gets ECONNRESET
 */
enum core_conn_state {
	CORE_CONN_NEW,
	CORE_CONN_ACTIVE,
	CORE_CONN_DISCONNECTING,
	CORE_CONN_DEAD,
};

/**
 * struct core_sink - where messages to a connection go, if not to an inbox in core
 *
 * @deliver: take a message. @slot is the reply slot it opened, or NULL; the sink tells
 *	core_reply_request_left() nothing, the slot does not count it as queued. Return:
 *	0 or negative errno, as core_inbox_reserve().
 * @adopt: take over, in a hand-over, a message queued in the inbox of @from; its slice
 *	and @entry stay the caller's. Return: as @deliver.
 * @lose: a message for this connection was lost.
 * @busy: whether messages wait (BYEBYE, §6.6).
 */
struct core_sink {
	int (*deliver)(struct core_conn *to, const struct core_parcel *parcel,
		       struct core_reply *slot);
	int (*adopt)(struct core_conn *to, struct core_conn *from, struct core_entry *entry);
	void (*lose)(struct core_conn *to);
	bool (*busy)(const struct core_conn *conn);
};

/**
 * struct core_conn - a connection; embedded in the host's
 * @bus:         its bus
 * @ep:          the endpoint it came through
 * @user:        whom it, and what it sends, is charged to
 * @id:          unique id
 * @flags:       HELLO flags
 * @kind:        by @flags
 * @state:       life
 * @bus_owner:   core_policy_bus_owner() at open
 * @privileged:  core_policy_privileged() at open
 * @uid:         real uid of the opener
 * @cred:        credentials of the opener at open; the groups are the host's
 * @attach_send: metadata it releases
 * @attach_recv: metadata it wants
 * @names:       names it holds or waits for
 * @matches:     its match entries
 * @policy:      its records in the bus's database
 * @calls:       reply slots it has opened
 * @owed:        answers it owes
 * @sink:        where messages go; NULL: @inbox
 * @inbox:       pool, quota, queue and lost counter. With a sink only the pool is used,
 *               if there is one
 */
struct core_conn {
	struct core_bus *bus;
	struct core_endpoint *ep;
	struct core_user *user;
	u64 id;
	u64 flags;
	enum core_kind kind;
	enum core_conn_state state;
	bool bus_owner;
	bool privileged;
	u32 uid;
	struct core_cred cred;
	u64 attach_send;
	u64 attach_recv;
	struct core_name_holder names;
	struct core_match_set matches;
	struct core_policy_owner policy;
	struct core_requester calls;
	struct core_replier owed;
	const struct core_sink *sink;
	struct core_inbox inbox;
	struct rb_node node;
	struct list_head bus_entry;
	struct list_head ep_entry;
};

/**
 * struct core_opener - who opened the endpoint, as of then
 * @uid:           real uid
 * @cred:          credentials; the groups outlive the connection
 * @cap_ipc_owner: holds CAP_IPC_OWNER over the domain's user namespace
 */
struct core_opener {
	u32 uid;
	struct core_cred cred;
	bool cap_ipc_owner;
};

/**
 * core_conn_init() - first step of HELLO: make a connection nobody knows
 * @conn:      to be initialised
 * @ep:        endpoint
 * @hello:     from core_check_hello(); not kept
 * @opener:    who opened it
 * @deadlines: for its calls: ep->bus->deadlines, or some of its own
 * @sink:      where messages go; NULL: an inbox with a pool of hello->pool_size bytes. With
 *             a sink there is a pool only if hello->pool_size is not 0
 *
 * Takes an id. Locks: domain. Return: 0; -EINVAL, -ENOMEM: no pool. After a failure
 * there is nothing to undo.
 */
int core_conn_init(struct core_conn *conn, struct core_endpoint *ep,
		   const struct core_hello *hello, const struct core_opener *opener,
		   struct core_deadlines *deadlines, const struct core_sink *sink);

/**
 * core_conn_deinit() - free what a new or dead connection has left
 * @conn: connection, all zeroes or NULL
 *
 * Until then published slices stay readable. Locks: none.
 */
void core_conn_deinit(struct core_conn *conn);

/**
 * core_conn_account() - step of HELLO: charge the connection (§1.5)
 * @conn:     new
 * @fake_uid: real uid of faked credentials, 0xffffffff if it is not set there; NULL
 *            without faked credentials, whatever else is faked. Counts for the
 *            privileged only
 *
 * Locks: domain. Return: 0; -EMFILE: the user has too many; -ESHUTDOWN: the endpoint is
 * gone; -ENOMEM.
 */
int core_conn_account(struct core_conn *conn, const u32 *fake_uid);

/**
 * core_conn_unaccount() - give the charge back; harmless if there is none
 * @conn: new or dead
 *
 * Locks: domain.
 */
void core_conn_unaccount(struct core_conn *conn);

/**
 * core_conn_link() - step of HELLO: make the connection known
 * @conn: new; active afterwards
 *
 * Locks: bus, exclusive. Return: 0; -ESHUTDOWN: endpoint or bus is dead.
 */
int core_conn_link(struct core_conn *conn);

/**
 * struct core_connect - what the composition of HELLO needs
 * @hello:     from core_check_hello()
 * @opener:    who opened the endpoint
 * @fake_uid:  see core_conn_account()
 * @policy:    records to install for an activator or policy holder, from
 *             core_policy_parse() with CORE_POLICY_ONE_NAME, and for an activator with
 *             CORE_POLICY_NO_WILDCARD; consumed on success. NULL for other kinds
 * @deadlines: see core_conn_init()
 * @sink:      see core_conn_init()
 */
struct core_connect {
	const struct core_hello *hello;
	const struct core_opener *opener;
	const u32 *fake_uid;
	struct core_policy_set *policy;
	struct core_deadlines *deadlines;
	const struct core_sink *sink;
};

/**
 * core_conn_hello() - connect (HELLO, §6.4)
 * @conn:    to be initialised
 * @ep:      endpoint
 * @connect: the rest
 *
 * Composition. What remains for the host is the slice with the bloom parameters. If there
 * is no memory for it, core_conn_disconnect() undoes the rest, and others have seen the
 * connection come and go; a host that cannot have that makes the steps itself, the slice
 * between core_conn_init() and core_conn_link().
 *
 * Return: 0; -EINVAL, -ENOMEM: no pool; -EMFILE: too many connections of the user;
 * -ESHUTDOWN: the endpoint is dead; -EEXIST: the name has an activator, or somebody else
 * has records for it. A failure was seen by nobody.
 */
int core_conn_hello(struct core_conn *conn, struct core_endpoint *ep,
		    const struct core_connect *connect);

/**
 * core_conn_alive() - may a command be executed on it?
 * @conn: connection
 *
 * Locks: bus shared, or conn.
 */
static inline bool core_conn_alive(const struct core_conn *conn)
{
	return conn->state == CORE_CONN_ACTIVE;
}

/**
 * core_conn_view() - the side of a policy decision that wants something
 * @conn:     who
 * @cred:     its current credentials; NULL: those at open (§9.2)
 * @ret_view: for the core_policy_may_...() functions
 */
void core_conn_view(const struct core_conn *conn, const struct core_cred *cred,
		    struct core_policy_view *ret_view);

/**
 * core_conn_may_talk() - TALK from one connection to another (§9.2)
 * @x:    who wants to; for signals the receiver
 * @cred: credentials of @x to use; NULL: those at open
 * @y:    the other one
 *
 * Locks: names, policy, both shared.
 */
bool core_conn_may_talk(const struct core_conn *x, const struct core_cred *cred,
			const struct core_conn *y);

/**
 * core_conn_update() - change masks and policy (UPDATE, §6.5)
 * @conn:   connection
 * @update: from core_check_update()
 * @set:    records to install if update->set_policy; consumed on success
 *
 * Locks: policy exclusive, conn. Return: 0; -EEXIST: somebody else has records for the
 * name.
 */
int core_conn_update(struct core_conn *conn, const struct core_update *update,
		     struct core_policy_set *set);

/**
 * core_conn_acquire() - take a name (NAME_ACQUIRE, §6.11)
 * @conn:      ordinary connection
 * @cred:      current credentials of the caller
 * @name:      from core_check_name_acquire()
 * @flags:     command flags
 * @ret_flags: return flags; also set with -EEXIST
 *
 * Composition. Return: 0; -EPERM: no OWN permission, whatever the state of the name;
 * -E2BIG, -EEXIST, -ENOMEM: see core_names_acquire().
 */
int core_conn_acquire(struct core_conn *conn, const struct core_cred *cred, const char *name,
		      u64 flags, u64 *ret_flags);

/**
 * core_conn_release() - give a name back (NAME_RELEASE, §6.12)
 * @conn: ordinary connection
 * @name: any string
 *
 * Composition. Return: 0; -ESRCH; -EADDRINUSE.
 */
int core_conn_release(struct core_conn *conn, const char *name);

/**
 * core_conn_apply() - carry out a change of a name: hand over, notify, forget it
 * @bus:    bus
 * @change: from the name registry
 *
 * A step, for each of the four functions of core/names.h that make a change. Locks:
 * names exclusive; matches, note, conn of both owners and of whoever is notified.
 */
void core_conn_apply(struct core_bus *bus, struct core_name_change *change);

/*
 * The steps of a disconnect, in order (§1.8). The locks are those of what a step calls;
 * the names say which step of the spec it is.
 */

/**
 * core_conn_shut() - step 1: no operation may start, no message is accepted
 * @conn:  active
 * @force: even if messages are queued; false for BYEBYE
 *
 * Locks: bus, conn. Return: 0; -EBUSY: messages are queued, nothing has changed;
 * -ECONNRESET: not active.
 */
int core_conn_shut(struct core_conn *conn, bool force);

/**
 * core_conn_unlink() - steps 4 and 5: remove records, matches, and from all tables
 * @conn: shut; all commands on it have left
 *
 * Locks: bus, policy, matches, all exclusive.
 */
void core_conn_unlink(struct core_conn *conn);

/**
 * core_conn_release_all() - step 6: hand names on
 * @conn: unlinked
 *
 * Locks: as core_conn_apply().
 */
void core_conn_release_all(struct core_conn *conn);

/**
 * core_conn_discard() - step 7: discard the queue, reporting calls in it dead
 * @conn: unlinked
 *
 * Locks: conn of @conn and of each caller, note.
 */
void core_conn_discard(struct core_conn *conn);

/**
 * core_conn_drop_calls() - step 8: drop its own reply slots
 * @conn: unlinked
 *
 * Locks: conn of @conn and of each replier.
 */
void core_conn_drop_calls(struct core_conn *conn);

/**
 * core_conn_fail_owed() - step 9: nobody gets an answer from it
 * @conn: unlinked
 *
 * Locks: conn of @conn and of each caller, note.
 */
void core_conn_fail_owed(struct core_conn *conn);

/**
 * core_conn_disconnect() - end a connection
 * @conn: active; nothing happens if it is not
 *
 * Composition of all steps, ID_REMOVE included. Dead afterwards.
 */
void core_conn_disconnect(struct core_conn *conn);

/**
 * core_conn_byebye() - end a connection that has nothing left to read (BYEBYE, §6.6)
 * @conn: ordinary connection
 *
 * Composition. Return: 0; -EBUSY: messages are queued, nothing has changed;
 * -ECONNRESET: not active.
 */
int core_conn_byebye(struct core_conn *conn);

#endif
