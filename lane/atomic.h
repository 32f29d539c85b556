/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * atomic.h - access to shared words, and yield points (private to lane/)
 *
 * Every access to a word that two processes share goes through these functions, and LANE_YIELD()
 * stands between any two steps of the protocol. Normally it is nothing. Compiled with
 * LANE_TEST_HOOKS all of them call into the test, which can run the other side there, and can hold
 * back stores as a CPU does.
 */
#ifndef LANE_ATOMIC_H
#define LANE_ATOMIC_H

#include <stdint.h>
#include <string.h>
#include "hooks.h"

#ifdef LANE_TEST_HOOKS

#define LANE_YIELD(point) lane_hook_yield(point)

static inline uint32_t word_load(const uint32_t *word)
{
	lane_hook_yield(LANE_AT_LOAD);
	return lane_hook_load(word);
}

static inline void word_store(uint32_t *word, uint32_t value)
{
	lane_hook_yield(LANE_AT_STORE);
	lane_hook_store(word, value, sizeof(*word));
}

static inline void word_fence(void)
{
	lane_hook_yield(LANE_AT_FENCE);
	lane_hook_fence();
}

#else

#define LANE_YIELD(point) ((void)0)

static inline uint32_t word_load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void word_store(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline void word_fence(void)
{
#ifdef __SANITIZE_THREAD__
	/* ThreadSanitizer knows no fences; a read-modify-write of one word orders as much. */
	static uint32_t dummy;

	__atomic_fetch_add(&dummy, 0, __ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

#endif

/* The one word that several write: a read-modify-write, which is a full fence as well. */
static inline void word_count(uint32_t *word)
{
	LANE_YIELD(LANE_AT_STORE);
#ifdef LANE_TEST_HOOKS
	lane_hook_fence();
#endif
	__atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
}

static inline uint64_t word64_load(const uint64_t *word)
{
	LANE_YIELD(LANE_AT_LOAD);
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void word64_store(uint64_t *word, uint64_t value)
{
#ifdef LANE_TEST_HOOKS
	lane_hook_yield(LANE_AT_STORE);
	lane_hook_store(word, value, sizeof(*word));
#else
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
#endif
}

/*
 * Between reading the clock and the loads that come after it (B9). The vDSO orders what is before
 * its reading of the counter, not what follows.
 */
static inline void clock_fence(void)
{
	LANE_YIELD(LANE_AT_FENCE);
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_lfence();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#else
	word_fence();
#endif
}

/* Copy out of memory that a peer may be changing; the compiler must not read it a second time. */
static inline void copy_once(void *to, const void *from, size_t size)
{
	LANE_YIELD(LANE_AT_COPY);
#ifdef LANE_TEST_HOOKS
	lane_hook_copy(from, size);
#endif
	memcpy(to, from, size);
	__asm__ volatile("" ::: "memory");
}

#endif
