/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hooks.h - what a test that compiles lane/ with LANE_TEST_HOOKS supplies
 *
 * lib/ and daemon/ may be compiled so, too: then the test can break one of the rules on purpose, to
 * see that it would notice (tests/stress/order.h).
 */
#ifndef LANE_HOOKS_H
#define LANE_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lane_point {
	LANE_AT_LOAD, /* before a shared word is read */
	LANE_AT_STORE, /* before a shared word is stored */
	LANE_AT_FENCE, /* before a full fence */
	LANE_AT_COPY, /* before ring memory is copied out */
	LANE_AT_WRITE, /* before ring memory is written */
	LANE_AT_CALL, /* before an operation of struct lane_ops */
};

/* How a rule is broken */
enum lane_breach {
	LANE_NOTHING_BROKEN,
	LANE_ONE_PASS, /* 10: the smallest stamp after one pass over the lanes, whatever T */
	LANE_DRAIN_ON_WAKE, /* 8, 10: doorbells are drained before the look asks for them */
	LANE_OLD_STAMP, /* 11: taken before the section, smaller than what was delivered */
	LANE_NO_COMMIT, /* 12: a record counts at once */
	LANE_CURSOR_FIRST, /* 12: the daemon advances its cursors before it commits */
	LANE_DIRECT_AT_ONCE, /* 13: directly while something is on its way through the daemon */
	LANE_NAMES_FOR_EVER, /* 13: a name leads where it led once */
	LANE_END_FIRST, /* 14: a client's end is acted on before its lane is drained */
	LANE_NO_LAST_LOOK, /* 15: BYEBYE does not look once it has stored CLOSING */
	LANE_SKIP_FULL, /* 16: what does not fit the pool holds back its own lane alone */
};

#ifdef LANE_TEST_HOOKS
#define LANE_BROKEN(breach) lane_hook_broken(breach)
bool lane_hook_broken(enum lane_breach breach);
void lane_hook_yield(int point);
uint32_t lane_hook_load(const uint32_t *word);
void lane_hook_store(void *word, uint64_t value, unsigned int size);
void lane_hook_fence(void);
void lane_hook_copy(const void *from, size_t size); /* out of a peer's memory */
#else
#define LANE_BROKEN(breach) false
#endif

#endif
