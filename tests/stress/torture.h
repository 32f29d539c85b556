/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_STRESS_TORTURE_H
#define TESTS_STRESS_TORTURE_H

/*
 * torture.h - processes that exchange messages, some of which are killed
 *
 * 1. SLOTS workers run at a time, each a process with one connection; odd slots are never killed.
 *    Each process that ever ran in a slot is a *life* with an entry in the ledger, which lies in
 *    memory shared by all.
 * 2. Every message tells the life that sent it and three numbers: of all messages of that life, of
 *    its unicasts to that slot, and of its broadcasts. What SEND accepted is entered in the ledger
 *    after SEND is over, so a killed life may have sent one more than the ledger says.
 * 3. Each receiver checks: the first number grows; the second has no gap (in a survivor); the third
 *    has no gap but for broadcasts it was told were lost, and synchronous calls that failed for
 *    want of room, whose sender cannot know how far they came; nor was their reply taken.
 * 4. Each call has one outcome, known to its sender. At the end nobody waits for one.
 * 5. Synchronous calls go to lower slots only: nobody waits in a circle.
 * 6. Where all that a connection gets waits in one queue (the kernel engine), a reply that finds it
 *    full is lost with its call (ABI 7.7). So the queue is kept from filling up: only replies are
 *    sent to a slot for which ROOM unicasts wait, and no broadcast as long as there is one.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <libkdbus.h>

#define SLOTS	       6
#define LIVES_MAX      (20000 + SLOTS)
#define NOBODY	       (LIVES_MAX - 1) /* an empty slot's life */
#define POOL_SIZE      (32u << 20) /* a crowd of messages fits while a worker waits for a reply */
#define ROOM	       64
#define SURVIVES(slot) ((slot)&1)

enum phase {
	PHASE_WARM = 1, /* survivors only: get to know each other */
	PHASE_MEASURE,
	PHASE_RUN,
	PHASE_QUIET, /* send nothing new, answer, wait for answers */
	PHASE_CHECK, /* what was sent has to be there */
	PHASE_ALONE, /* survivors only: what they have has to be what it was */
	PHASE_END,
};

struct life {
	_Atomic uint64_t id; /* connection id, 0 while it has none */
	uint32_t slot;
	atomic_bool over; /* it was killed */
	atomic_int done; /* the last phase that it has done its part of */
	atomic_uint steps;
	atomic_uint accepted[SLOTS]; /* unicasts to each slot */
	atomic_uint unsure[SLOTS]; /* of these, calls that failed before or after they went out */
	atomic_uint broadcasts;
	unsigned int fds[2]; /* of a survivor, before and after */
	unsigned int memory[2]; /* kB of heap */
	unsigned int shared[2]; /* kB of pool, lanes and the like */
};

struct shared {
	atomic_int phase;
	atomic_bool failed;
	atomic_uint n_lives;
	bool one_queue; /* see rule 6 */
	atomic_int waiting[SLOTS];
	atomic_uint current[SLOTS]; /* the life of each slot */
	atomic_uint replied, dead, sync_replied, sync_dead, lost;
	struct life lives[LIVES_MAX];
};

/* Play one life to its end. Only survivors return; the others are killed. */
int worker_run(struct shared *shared, unsigned int life, const char *bus);

/* Descriptors but eventfds of a process, and kB of a kind in memory ("RssAnon", "RssShmem") */
unsigned int count_fds(pid_t pid);
unsigned int resident_kb(pid_t pid, const char *what);

#endif
