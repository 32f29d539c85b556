/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_REPLY_H
#define CORE_REPLY_H

/*
 * Reply slots: who waits for whose answer (spec, sections 7.7, 7.8, 1.8, 10.6).
 *
 * A call opens a slot {requester R, expected replier P, cookie}. While it is
 * open, P may answer it, and somebody owes R an outcome.
 *
 * Invariants
 *
 * 1. One outcome per call: of reply, reply-dead, timeout and a waiter that gave
 *    up, the first closes the slot, and a closed slot produces nothing
 *    (defect 12 of section 17).
 * 2. A slot counts against its requester until it is closed *and* the request
 *    has left P's queue. At most CORE_CONN_MAX_REQUESTS_PENDING count.
 * 3. Cookies need not be unique: the slot opened last is found.
 * 4. A synchronous slot is not in the deadline tree while its caller waits: he
 *    looks at the clock himself. Left behind by a signal ("interrupted") it is,
 *    and whatever happens to it meanwhile is kept until the restarted call
 *    collects it or the deadline passes (defect 6 of section 17).
 * 5. A deadline of ~0 never passes, in synchronous calls either (defect 7).
 * 6. When R is gone its slots are orphans: closed, without a requester, and
 *    alive only while the request is still queued or an answer is on its way.
 *
 * Life of a synchronous slot
 *
 *	open --take--> taken --settle--> settled --collect--> gone
 *	open --kill--------------------> settled
 *	open, taken or settled --close--> gone (the caller gave up)
 *	interrupt and resume change who waits, not what happens
 *
 * An asynchronous slot is gone with the first of take, kill, expire and close.
 *
 * Cost: O(log n) in the outstanding replies of R or P, plus, for equal
 * cookies, at most as many steps as R has slots of that cookie.
 *
 * Lock rule: "R" is the lock that guards a struct core_requester, its slots and
 * its struct core_deadlines, "P" the one that guards a struct core_replier. Each
 * function names what it needs. R and P may be one lock; if they are two, lock
 * them in a fixed order. core_reply_open() allocates: sleeping locks.
 */

#include "base.h"

struct core_reply;

/**
 * struct core_deadlines - slots by deadline; all zeroes is empty
 *
 * One per requester, or one for all requesters under one lock. The field is
 * private.
 */
struct core_deadlines {
	struct rb_root tree;
};

/**
 * struct core_requester - the calls a connection has made; embedded in it
 * @n: slots that count (invariant 2)
 *
 * The other fields are private.
 */
struct core_requester {
	unsigned int n;
	struct core_deadlines *deadlines;
	struct list_head all;
	struct rb_root by_cookie;
};

/**
 * struct core_replier - the answers a connection owes; embedded in it
 *
 * The fields are private.
 */
struct core_replier {
	struct list_head owed;
	struct rb_root by_name;
};

/**
 * struct core_reply - a slot
 * @requester: R, NULL for an orphan (invariant 6); guarded by R
 * @replier:   P, the connection that is expected to answer; guarded by P
 * @cookie:    of the request
 * @name_id:   internal id of the name the request was addressed to, 0 if by id
 * @deadline:  CLOCK_MONOTONIC in ns, ~0 for none
 * @sync:      the caller blocks
 *
 * The other fields are private.
 */
struct core_reply {
	struct core_requester *requester;
	struct core_replier *replier;
	u64 cookie;
	u64 name_id;
	u64 deadline;
	bool sync;

	bool open;
	bool expected;
	bool queued;
	bool taken;
	bool interrupted;
	bool settled;
	bool timed;
	int result;
	void *answer;
	struct list_head all;
	struct list_head owed;
	struct rb_node cookie_node;
	struct rb_node name_node;
	struct rb_node deadline_node;
};

/**
 * struct core_reply_args - what a call says about its slot; see struct core_reply
 * @cookie:   of the request
 * @name_id:  name it is addressed to, or 0
 * @deadline: CLOCK_MONOTONIC in ns, ~0 for none
 * @sync:     the caller blocks
 */
struct core_reply_args {
	u64 cookie;
	u64 name_id;
	u64 deadline;
	bool sync;
};

/**
 * enum core_reply_event - what the requester has to be told
 * @CORE_REPLY_NOTHING: nothing
 * @CORE_REPLY_DEAD:    a REPLY_DEAD notification for the cookie
 * @CORE_REPLY_TIMEOUT: a REPLY_TIMEOUT notification for the cookie
 * @CORE_REPLY_WAKE:    wake the synchronous caller, who will collect
 */
enum core_reply_event {
	CORE_REPLY_NOTHING,
	CORE_REPLY_DEAD,
	CORE_REPLY_TIMEOUT,
	CORE_REPLY_WAKE,
};

/**
 * core_requester_init() - make a requester without slots
 * @r:         to be initialised
 * @deadlines: where its deadlines go; must outlive it
 *
 * It is over when core_requester_first() finds nothing.
 */
void core_requester_init(struct core_requester *r, struct core_deadlines *deadlines);

/**
 * core_replier_init() - make a replier that owes nothing
 * @p: to be initialised
 *
 * It is over when core_replier_first() finds nothing.
 */
void core_replier_init(struct core_replier *p);

/**
 * core_reply_open() - open a slot for a call
 * @r:        requester
 * @p:        expected replier; may belong to the same connection
 * @args:     the call
 * @ret_slot: the slot, owned by @r
 *
 * Locks: R, P. Return: 0; -EMLINK: too many slots count; -ENOMEM.
 */
int core_reply_open(struct core_requester *r, struct core_replier *p,
		    const struct core_reply_args *args, struct core_reply **ret_slot);

/**
 * core_reply_request_queued() - the request is now in P's queue
 * @slot: open
 *
 * From core_reply_open() to this call nothing but the caller keeps the slot: where a
 * deadline or the death of P can strike in between, because R is not held throughout,
 * say it right after opening, and core_reply_request_left() if queueing fails.
 *
 * The queue entry may keep a pointer to @slot until
 * core_reply_request_left(). Locks: R.
 */
void core_reply_request_queued(struct core_reply *slot);

/**
 * core_reply_request_left() - the request has left P's queue
 * @slot: slot, or NULL; may be freed by this
 *
 * Locks: R; none if @slot is an orphan.
 */
void core_reply_request_left(struct core_reply *slot);

/**
 * core_reply_find() - find what a reply answers
 * @r:      requester the reply is sent to
 * @p:      the sender of the reply
 * @cookie: its cookie_reply
 *
 * Locks: R, P. Return: the open slot that was opened last; NULL: no such
 * request, or it has had its outcome (EBADSLT).
 */
struct core_reply *core_reply_find(struct core_requester *r, struct core_replier *p, u64 cookie);

/**
 * core_reply_take() - a reply is going to be delivered: nobody else may answer
 * @slot: found by core_reply_find(); gone if this returns false
 *
 * Locks: R, P. Return: true if the caller is synchronous; then
 * core_reply_settle() must follow, and until then @slot stays valid.
 */
bool core_reply_take(struct core_reply *slot);

/**
 * core_reply_settle() - hand the outcome to the synchronous caller
 * @slot:   taken; may be gone afterwards
 * @result: 0, or the error the caller gets
 * @answer: the reply for core_reply_collect(), NULL if there is none; stays
 *          the owner's of the call unless this returns 0
 *
 * Locks: R. Return: 0: the caller must be woken (unless interrupted, which
 * does no harm); -ECONNRESET: it no longer waits.
 */
int core_reply_settle(struct core_reply *slot, int result, void *answer);

/**
 * core_reply_kill() - the request will not be answered
 * @slot:  slot or NULL; may be gone afterwards
 * @error: what a synchronous caller gets, -EPIPE
 *
 * For a replier that dies (every slot it owes), discards the request, or loses
 * it in a hand-over. Harmless if the slot has had its outcome. Locks: R, P.
 * Return: what to tell the requester.
 */
enum core_reply_event core_reply_kill(struct core_reply *slot, int error);

/**
 * core_reply_close() - close a slot silently
 * @slot:       slot or NULL; may be gone afterwards
 * @ret_answer: an answer that had been attached, now the caller's; NULL if none
 *
 * For a request that could not be queued and for a caller that gives up.
 * Locks: R, P.
 */
void core_reply_close(struct core_reply *slot, void **ret_answer);

/**
 * core_reply_resume() - find the slot an interrupted call left behind
 * @r:      requester
 * @cookie: of the restarted call
 *
 * Afterwards its caller waits again. Locks: R. Return: the slot; NULL: this is
 * not a restart.
 */
struct core_reply *core_reply_resume(struct core_requester *r, u64 cookie);

/**
 * core_reply_interrupt() - a signal makes the synchronous caller leave
 * @slot: open, taken or settled
 *
 * Locks: R.
 */
void core_reply_interrupt(struct core_reply *slot);

/**
 * core_reply_settled() - whether the synchronous caller can collect
 * @slot: slot
 *
 * Locks: R.
 */
bool core_reply_settled(const struct core_reply *slot);

/**
 * core_reply_collect() - the synchronous caller takes the outcome
 * @slot:       settled; gone afterwards, except for its request (invariant 2)
 * @ret_answer: the reply, now the caller's; NULL if there is none
 *
 * Locks: R. Return: the result given to core_reply_settle() or core_reply_kill().
 */
int core_reply_collect(struct core_reply *slot, void **ret_answer);

/**
 * core_deadlines_next() - when to look again
 * @deadlines: deadlines
 *
 * Locks: R. Return: the earliest deadline in ns, ~0 if there is none.
 */
u64 core_deadlines_next(const struct core_deadlines *deadlines);

/**
 * core_deadlines_expired() - the slot whose deadline passed first
 * @deadlines: deadlines
 * @now:       CLOCK_MONOTONIC in ns
 *
 * Locks: R. Return: a slot for core_reply_expire(); NULL: none is due.
 */
struct core_reply *core_deadlines_expired(const struct core_deadlines *deadlines, u64 now);

/**
 * core_reply_expire() - the deadline of a slot has passed
 * @slot:       from core_deadlines_expired(); may be gone afterwards
 * @ret_answer: an answer nobody came back for, now the caller's; NULL if none
 *
 * Locks: R, P. Return: CORE_REPLY_TIMEOUT, or CORE_REPLY_NOTHING for the slot of
 * an interrupted call, which is reaped silently.
 */
enum core_reply_event core_reply_expire(struct core_reply *slot, void **ret_answer);

/**
 * core_requester_first() - a slot of a requester that is going
 * @r: requester
 *
 * Locks: R. Return: the oldest slot, for core_reply_orphan(); NULL: none left.
 */
struct core_reply *core_requester_first(const struct core_requester *r);

/**
 * core_reply_orphan() - the requester is gone (section 1.8 step 8)
 * @slot:       from core_requester_first(); may be gone afterwards
 * @ret_answer: an answer that had been attached, now the caller's; NULL if none
 *
 * Locks: R, P.
 */
void core_reply_orphan(struct core_reply *slot, void **ret_answer);

/**
 * core_replier_first() - a slot that a dying replier owes (section 1.8 step 9)
 * @p: replier
 *
 * Locks: P. Return: the slot that came to @p first, for core_reply_kill();
 * NULL: none left.
 */
struct core_reply *core_replier_first(const struct core_replier *p);

/**
 * core_reply_retarget() - who owns the name now owes the answer (section 10.6 step 1)
 * @from:    replier up to now
 * @to:      replier from now on
 * @name_id: internal id of the name; not 0
 *
 * Includes slots opened by the connection of @to itself (defect 14 of section
 * 17), and requests already received. Locks: P of @from and of @to.
 * Return: the number of slots moved.
 */
unsigned int core_reply_retarget(struct core_replier *from, struct core_replier *to, u64 name_id);

/**
 * core_reply_retarget_slot() - the same for one slot, ahead of the others
 * @slot: of a synchronous call that waits for its outcome
 * @to:   replier from now on
 *
 * Locks: P of its replier and of @to.
 */
void core_reply_retarget_slot(struct core_reply *slot, struct core_replier *to);

#endif
