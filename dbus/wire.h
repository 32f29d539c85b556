/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads, stores and rounding for the D-Bus wire format, in either byte order.
 *
 * Internal to dbus/. Everything works on unaligned memory: a message may lie anywhere in a
 * receive buffer.
 */
#ifndef DBUSP_WIRE_H
#define DBUSP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DBUSP_HOST_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

static inline uint16_t dbusp_get16(const void *p, bool big)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return big == DBUSP_HOST_BIG ? v : __builtin_bswap16(v);
}

static inline uint32_t dbusp_get32(const void *p, bool big)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return big == DBUSP_HOST_BIG ? v : __builtin_bswap32(v);
}

static inline uint64_t dbusp_get64(const void *p, bool big)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return big == DBUSP_HOST_BIG ? v : __builtin_bswap64(v);
}

static inline void dbusp_set16(void *p, uint16_t v, bool big)
{
	v = big == DBUSP_HOST_BIG ? v : __builtin_bswap16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void dbusp_set32(void *p, uint32_t v, bool big)
{
	v = big == DBUSP_HOST_BIG ? v : __builtin_bswap32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void dbusp_set64(void *p, uint64_t v, bool big)
{
	v = big == DBUSP_HOST_BIG ? v : __builtin_bswap64(v);
	memcpy(p, &v, sizeof(v));
}

/* @align is 1, 2, 4 or 8; @n stays below 2^28, so nothing overflows. */
static inline size_t dbusp_align(size_t n, size_t align)
{
	return (n + align - 1) & ~(align - 1);
}

#endif
