/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_STRESS_ORDER_H
#define TESTS_STRESS_ORDER_H

/*
 * order.h - processes that check in what order messages reach them (design rules 10 to 16)
 *
 * 1. SLOTS workers, each a process with one connection, run in turns of TURN_STEPS random steps;
 *    after each turn all meet (see 6). They send by id and by name, broadcast, call and answer,
 *    give names up, take them and take them over, say BYEBYE or close and connect again, and react
 *    to what they get. One attaches and detaches a monitor. All delay themselves at random steps
 *    of the lanes (delays.h).
 * 2. Every message bears a vector clock: for each worker, how many messages it had sent when this
 *    one was sent, as far as the sender could know. A message that is delivered after one that
 *    knew of it came too late: an effect before its cause, or two of one sender in wrong order.
 * 3. A name has an *epoch*, one more with each owner, counted by the owner once it is one. A
 *    message by name bears what its sender knew; who gets it must have owned the name since
 *    (rule 13).
 * 4. After the notification that a connection has ended nothing of it may come (rule 14).
 * 5. What was sent to a connection before its BYEBYE began has been received by it if the BYEBYE
 *    succeeds (rule 15).
 * 6. When all meet nobody sends. After a command, before which the daemon has taken all that was
 *    sent, a connection for which anything is left is readable (rule 8), and RECV until EAGAIN
 *    finds every message to its id and every broadcast, also of those who closed right after it
 *    (rules 7, 12, 14): nothing is late, whatever a clock says. (Descriptors and buffers in flight
 *    are few: what waits for them in the daemon comes with the next command.)
 * 7. The reply to a synchronous call overtakes what is on its way to the caller, and tells nothing
 *    of it; what the caller sends after it knows all that the reply knew. Other replies are
 *    messages like any other. Each call has one outcome by the end of a turn.
 * 8. Where pools are tight a message that does not fit holds back what is later (rule 16).
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <libkdbus.h>

#include "delays.h"

#define SLOTS	   4
#define NAMES	   2
#define LIVES_MAX  4096 /* connections of one slot */
#define TURN_STEPS 150
#define MEETINGS   5 /* points of a turn where all wait for all */

enum order_mode {
	STAYING,
	LEAVING, /* connections end, too */
	TIGHT, /* messages are kept, and fill the pools */
};

struct order_life {
	_Atomic uint64_t id; /* 0 while there is no connection */
	atomic_uint sent; /* messages to the id whose SEND is over */
	atomic_uint unanswered; /* calls of it whose reply found no room */
};

struct order_slot {
	atomic_uint life; /* the current one */
	atomic_uint broadcasts; /* whose SEND is over */
	atomic_uint callers; /* who wait for an answer of it */
	struct order_life lives[LIVES_MAX];
};

struct order_shared {
	unsigned int turns; /* at most so many */
	uint64_t seed;
	enum lane_breach breach;
	enum order_mode mode;
	int bells[SLOTS + 1]; /* eventfds: of each slot, and of who started them */
	int cancels[SLOTS]; /* eventfds: the call that waits there has no answer coming */
	atomic_uint met[MEETINGS];
	atomic_uint turn; /* how many are over */
	atomic_bool failing, failed;
	char why[400]; /* of whoever failed first */
	atomic_uint epochs[NAMES];
	atomic_bool naming[NAMES]; /* somebody takes it */
	atomic_uint replies, sync_replies;
	atomic_uint direct, relayed, broadcasts, named, lost, ends;
	struct order_slot slots[SLOTS];
};

/* Play one slot until all turns are over or anybody has failed. */
int order_worker(struct order_shared *shared, unsigned int slot, const char *bus);

#endif
