/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_SHIM_TYPES_H
#define CORE_SHIM_TYPES_H

/* The kernel's integer types, from the compiler's own. */

typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef unsigned long long u64;
typedef __INT8_TYPE__ s8;
typedef __INT16_TYPE__ s16;
typedef __INT32_TYPE__ s32;
typedef long long s64;
typedef __SIZE_TYPE__ size_t;
typedef unsigned int gfp_t;

#ifndef __cplusplus
#ifndef bool
#define bool _Bool
#define true 1
#define false 0
#endif
#endif

#ifndef NULL
#define NULL ((void *)0)
#endif

#define U8_MAX ((u8)~0U)
#define U32_MAX ((u32)~0U)
#define U64_MAX ((u64)~0ULL)
#define S64_MAX ((s64)(U64_MAX >> 1))
#define S64_MIN ((s64)(-S64_MAX - 1))
#ifndef SIZE_MAX
#define SIZE_MAX __SIZE_MAX__
#endif

#endif
