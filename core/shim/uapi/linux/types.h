/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_SHIM_UAPI_LINUX_TYPES_H
#define CORE_SHIM_UAPI_LINUX_TYPES_H

/* Stands in for the system's <linux/types.h> where core/ is built with -nostdinc. */

typedef __UINT8_TYPE__ __u8;
typedef __UINT16_TYPE__ __u16;
typedef __UINT32_TYPE__ __u32;
typedef unsigned long long __u64;
typedef __INT8_TYPE__ __s8;
typedef __INT16_TYPE__ __s16;
typedef __INT32_TYPE__ __s32;
typedef long long __s64;
#define __aligned_u64 __u64 __attribute__((aligned(8)))

#endif
