/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_SHIM_SLAB_H
#define CORE_SHIM_SLAB_H

#include "string.h"
#include "types.h"

/*
 * Memory comes from whoever links core/: the daemon takes slab-libc.c, a test
 * takes an allocator that fails when told to. kfree(NULL) does nothing.
 */

#define GFP_KERNEL ((gfp_t)0)

void *kmalloc(size_t size, gfp_t gfp);
void kfree(const void *p);

static inline void *kzalloc(size_t size, gfp_t gfp)
{
	void *p = kmalloc(size, gfp);

	return p ? memset(p, 0, size) : NULL;
}

static inline void *kcalloc(size_t n, size_t size, gfp_t gfp)
{
	size_t bytes;

	return __builtin_mul_overflow(n, size, &bytes) ? NULL : kzalloc(bytes, gfp);
}

static inline void *kmemdup(const void *src, size_t size, gfp_t gfp)
{
	void *p = kmalloc(size, gfp);

	return p ? memcpy(p, src, size) : NULL;
}

#endif
