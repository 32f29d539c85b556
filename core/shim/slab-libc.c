// SPDX-License-Identifier: LGPL-2.1-or-later
/* The allocator of hosted programs. Not part of freestanding core. */
#include <stdlib.h>

#include "slab.h"

void *kmalloc(size_t size, gfp_t gfp)
{
	(void)gfp;
	return malloc(size);
}

void kfree(const void *p)
{
	free((void *)p);
}
