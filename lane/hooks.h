/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hooks.h - what a test that compiles lane/ with LANE_TEST_HOOKS supplies
 */
#ifndef LANE_HOOKS_H
#define LANE_HOOKS_H

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

#ifdef LANE_TEST_HOOKS
void lane_hook_yield(int point);
uint32_t lane_hook_load(const uint32_t *word);
void lane_hook_store(void *word, uint64_t value, unsigned int size);
void lane_hook_fence(void);
void lane_hook_copy(const void *from, size_t size); /* out of a peer's memory */
#endif

#endif
