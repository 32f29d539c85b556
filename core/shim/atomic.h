/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_SHIM_ATOMIC_H
#define CORE_SHIM_ATOMIC_H

/* The part of <linux/atomic.h> that counts references. */

typedef struct {
	int counter;
} atomic_t;

static inline void atomic_set(atomic_t *v, int i)
{
	__atomic_store_n(&v->counter, i, __ATOMIC_RELAXED);
}

static inline int atomic_read(const atomic_t *v)
{
	return __atomic_load_n(&v->counter, __ATOMIC_ACQUIRE);
}

static inline void atomic_inc(atomic_t *v)
{
	__atomic_fetch_add(&v->counter, 1, __ATOMIC_RELAXED);
}

static inline void atomic_dec(atomic_t *v)
{
	__atomic_fetch_sub(&v->counter, 1, __ATOMIC_RELEASE);
}

#endif
