/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_SHIM_KERNEL_H
#define CORE_SHIM_KERNEL_H

#include "types.h"

/* Small helpers of <linux/kernel.h>, <linux/minmax.h>, <linux/bug.h> and <linux/overflow.h>. */

#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif

#define container_of(ptr, type, member)                                                            \
	((type *)(void *)((char *)(1 ? (ptr) : &((type *)0)->member) - offsetof(type, member)))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define min(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) min_a_ = (a);                                                        \
		__typeof__(b) min_b_ = (b);                                                        \
		min_a_ < min_b_ ? min_a_ : min_b_;                                                 \
	})
#define max(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) max_a_ = (a);                                                        \
		__typeof__(b) max_b_ = (b);                                                        \
		max_a_ > max_b_ ? max_a_ : max_b_;                                                 \
	})
#define min_t(type, a, b) min((type)(a), (type)(b))

/* a: a power of two */
#define ALIGN(x, a) (((x) + ((__typeof__(x))(a)-1)) & ~((__typeof__(x))(a)-1))
#define IS_ALIGNED(x, a) (((x) & ((__typeof__(x))(a)-1)) == 0)

#define unlikely(x) __builtin_expect(!!(x), 0)
#ifndef fallthrough
#define fallthrough __attribute__((__fallthrough__))
#endif

#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

#define check_add_overflow(a, b, d) __builtin_add_overflow(a, b, d)

#ifndef static_assert
#define static_assert _Static_assert
#endif

/* A broken invariant of ours, never of a client's: there is no way to go on. */
#define BUG_ON(cond)                                                                               \
	do {                                                                                       \
		if (unlikely(cond))                                                                \
			__builtin_trap();                                                          \
	} while (0)

#endif
