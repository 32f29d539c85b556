/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * wait.h - spinning, yielding and short sleeps
 *
 * 1. Spinning follows what it has been earning. With one usable CPU it never happens; after waits
 *    that it did not shorten the budget halves down to nothing, and then only a probe in
 *    LANE_SPIN_PROBE_EVERY waits (more and more, up to LANE_SPIN_PROBE_RARELY, while probes fail)
 *    finds out whether that has changed. A wait that was over while it spun doubles it, up to the
 *    maximum. A probe is as long as the maximum, for the first one has to outlast the peer's
 *    wake-up.
 * 2. Before it sleeps it lets others run on its CPU. If the peer is among them, the answer comes
 *    without a sleep and a wake-up. A yield that ended the wait soon earns LANE_YIELD_COST_NS,
 *    up to LANE_YIELD_CREDIT_NS. Yields that ended nothing cost as much; one that ended the wait,
 *    but took so long that a third process must have had the CPU, costs that time. What is not
 *    paid for is followed by LANE_YIELD_REST times as long without a yield; twice as long the next
 *    time, up to LANE_YIELD_RESTS_MAX times, unless all credit has been earned in between.
 * 3. The futex is slept on for at most LANE_FUTEX_NS at a time, because it does not notice a
 *    death; after that the caller arms its lanes and sleeps in ppoll (rules 7 and 9).
 * 4. It is one word, the alarm, for all lanes whose peers have that, and one more for each of the
 *    others: to wait for several in one system call takes half as long again as for one.
 */
#ifndef LANE_WAIT_H
#define LANE_WAIT_H

#include "channel.h"

#define LANE_SPIN_MAX_NS 50000u /* default maximum: somewhat more than two wake-ups across CPUs */
#define LANE_SPIN_MIN_NS 2000u
#define LANE_SPIN_PROBE_EVERY 64u
#define LANE_SPIN_PROBE_RARELY 1024u
#define LANE_YIELDS 2u /* in one wait */
#define LANE_YIELD_MAX_NS 500000u /* less than the kernel lets one process run for */
#define LANE_YIELD_REST 200u
#define LANE_YIELD_RESTS_MAX 5u
#define LANE_YIELD_COST_NS 1000u /* of those in vain, and of the sleep that one saves */
#define LANE_YIELD_LOSS_NS 10000000u /* at most: whole machines stand still at times */
#define LANE_YIELD_CREDIT_NS 1000000u
#define LANE_FUTEX_NS 10000000u

/**
 * struct lane_spin - adaptive budget, one per connection
 */
struct lane_spin {
	uint32_t max_ns; /* 0: never spin or yield */
	uint32_t budget_ns;
	uint32_t waits; /* since the last probe */
	uint32_t every; /* waits between probes */
	unsigned int cpus;
	uint64_t yield_after; /* CLOCK_MONOTONIC ns */
	uint32_t yield_credit_ns; /* what yields have saved and not yet cost */
	uint32_t yield_rests; /* since they last earned all credit */
};

/**
 * lane_spin_init() - start with half the maximum
 * @max_ns:	lane_linux_spin_ns()
 * @cpus:	usable CPUs, lane_linux_cpus()
 */
void lane_spin_init(struct lane_spin *spin, uint32_t max_ns, unsigned int cpus);

/**
 * lane_spin_begin() - how long to spin in this wait, in ns; often 0
 * lane_spin_end() - how it went
 * @won:	the wait was over within the spin
 * @spent_ns:	how long it spun; much more than the budget: it was preempted
 */
uint32_t lane_spin_begin(struct lane_spin *spin);
void lane_spin_end(struct lane_spin *spin, bool won, uint64_t spent_ns);

/**
 * lane_yield_due() - may a wait yield now?
 * lane_yield_end() - it has
 * @now:	CLOCK_MONOTONIC ns
 * @won:	the wait is over
 * @spent_ns:	how long others had the CPU
 */
bool lane_yield_due(const struct lane_spin *spin, uint64_t now);
void lane_yield_end(struct lane_spin *spin, bool won, uint64_t now, uint64_t spent_ns);

/**
 * lane_linux_spin_ns() - the maximum that KDBUS_SPIN_US sets, LANE_SPIN_MAX_NS without it
 * lane_linux_cpus() - how many CPUs this process may use
 */
uint32_t lane_linux_spin_ns(void);
unsigned int lane_linux_cpus(void);

/**
 * lane_ready_fn - has what the caller waits for come? Called often; may take records up.
 *
 * Return: positive: yes; 0: no; negative errno: stop waiting with it.
 */
typedef int (*lane_ready_fn)(void *arg);

/**
 * lane_wait() - spin, yield, then sleep on the alarm or the lanes' futex words
 * @chs:	lanes that may bring it, 1..LANE_WORDS_MAX; of all others nothing is noticed
 * @deadline:	CLOCK_MONOTONIC ns, UINT64_MAX for none
 *
 * Leaves all @chs in LANE_POLLING. May take socket messages: lane_look_touch() after it.
 *
 * Return: what @ready said if not 0; 0: nothing within LANE_FUTEX_NS, or the deadline is reached:
 * arm, look and sleep in ppoll; -EINTR: a signal. Without futex_waitv: 0 after the spin.
 */
int lane_wait(struct lane_spin *spin, const struct lane_ops *ops, struct lane_channel *const *chs,
	      unsigned int n, lane_ready_fn ready, void *arg, uint64_t deadline);

/**
 * lane_yield() - where the caller may not sleep: only yield, if that is due
 *
 * As lane_wait(), without the spin and the sleep.
 */
int lane_yield(struct lane_spin *spin, const struct lane_ops *ops, struct lane_channel *const *chs,
	       unsigned int n, lane_ready_fn ready, void *arg);

#endif
