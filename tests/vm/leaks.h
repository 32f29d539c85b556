/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_VM_LEAKS_H
#define TESTS_VM_LEAKS_H

/*
 * What the kernel knows of memory that the module has not given back.
 *
 *  1. The slab allocator keeps who has allocated each object (kernel argument
 *     slub_debug=U). An object counts whenever a function of the module is on the stack
 *     of its allocation, so what the kernel allocates for the module counts as well.
 *  2. A debug kernel also searches all memory for pointers to each object (kmemleak).
 */

/* Objects that exist now and that the module has allocated, or -1. */
long leaks_live(void);

/* Print who has allocated them, two spaces in front. */
void leaks_print(void);

/* Shared memory in use, in KiB, or -1: what pools are made of. */
long leaks_shmem_kib(void);

/* Let kmemleak forget what was there before the module. */
void leaks_start(void);

/* Objects that kmemleak cannot find a pointer to, printed; 0 if the kernel has none. */
int leaks_unreferenced(void);

#endif
