/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_BASE_H
#define CORE_BASE_H

/*
 * The primitives core/ stands on. In the module they are the kernel's own; in
 * user space core/shim/ supplies the same names with the same meaning. Every
 * file in core/ includes this header first and no other from outside core/
 * and uapi/.
 */

#ifdef __KERNEL__
#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/rbtree.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/types.h>
#else
#include "shim/atomic.h"
#include "shim/errno.h"
#include "shim/kernel.h"
#include "shim/list.h"
#include "shim/rbtree.h"
#include "shim/slab.h"
#include "shim/string.h"
#include "shim/types.h"
#endif

/*
 * What core/ allocates is memory that a client made the bus hold: in the
 * kernel it is charged to the client's memory control group.
 */
#ifdef __KERNEL__
#define CORE_GFP GFP_KERNEL_ACCOUNT
#else
#define CORE_GFP GFP_KERNEL
#endif

/*
 * Cost is proved by counting, not by timing: a unit benchmark compiles core/
 * with CORE_COUNT_STEPS and reads how many keys were compared or records
 * visited. Otherwise the macro is nothing.
 */
#ifdef CORE_COUNT_STEPS
extern unsigned long core_steps;
#define core_step() ((void)core_steps++)
#else
#define core_step() ((void)0)
#endif

/* A variable that is written before it is read, so that it need not be cleared first. */
#if __has_attribute(__uninitialized__)
#define core_uninitialized __attribute__((__uninitialized__))
#else
#define core_uninitialized
#endif

#endif
