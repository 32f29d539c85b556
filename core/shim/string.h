/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_SHIM_STRING_H
#define CORE_SHIM_STRING_H

#include "types.h"

/*
 * Provided by the C library where there is one. A freestanding user supplies
 * them itself, as every compiler demands of it for the first four anyway.
 */

#ifdef __cplusplus
extern "C" {
#endif

extern void *memcpy(void *__restrict dst, const void *__restrict src, size_t n);
extern void *memmove(void *dst, const void *src, size_t n);
extern void *memset(void *dst, int c, size_t n);
extern int memcmp(const void *a, const void *b, size_t n);
extern void *memchr(const void *s, int c, size_t n);
extern size_t strlen(const char *s);
extern size_t strnlen(const char *s, size_t n);
extern int strcmp(const char *a, const char *b);
extern int strncmp(const char *a, const char *b, size_t n);
extern char *strrchr(const char *s, int c);
extern char *strchr(const char *s, int c);

#ifdef __cplusplus
}
#endif

#endif
