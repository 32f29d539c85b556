// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dbus/utf8.h"

#include <stdint.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#define HIGH_BITS 0x8080808080808080ULL
#define LOW_SEVEN 0x7f7f7f7f7f7f7f7fULL

/* All eight bytes in 0x01..0x7f: no high bit, and adding 0x7f sets it in each (no carries). */
static bool ascii8(const uint8_t *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return !(w & HIGH_BITS) && ((w + LOW_SEVEN) & HIGH_BITS) == HIGH_BITS;
}

/* The same for a whole block, in registers as wide as the machine has them at least. */
#define BLOCK 64

typedef int8_t bytes __attribute__((vector_size(16)));

/* As signed numbers they are above zero. */
static bool ascii_block(const uint8_t *p)
{
	bytes v[BLOCK / sizeof(bytes)], above;
	uint64_t w[2];

	memcpy(v, p, sizeof(v));
	above = (v[0] > 0) & (v[1] > 0) & (v[2] > 0) & (v[3] > 0);
	memcpy(w, &above, sizeof(w));
	return (w[0] & w[1]) == UINT64_MAX;
}

#ifdef __x86_64__
#define WIDE 128

__attribute__((target("avx2"))) static size_t ascii_wide(const uint8_t *p, size_t len)
{
	const __m256i zero = _mm256_setzero_si256();
	__m256i v[WIDE / sizeof(__m256i)];
	size_t i;

	for (i = 0; len - i >= WIDE; i += WIDE) {
		const __m256i *from = (const __m256i *)(p + i);

		v[0] = _mm256_loadu_si256(from);
		v[1] = _mm256_loadu_si256(from + 1);
		v[2] = _mm256_loadu_si256(from + 2);
		v[3] = _mm256_loadu_si256(from + 3);
		v[0] = _mm256_min_epi8(v[0], v[1]);
		v[2] = _mm256_min_epi8(v[2], v[3]);
		v[0] = _mm256_cmpgt_epi8(_mm256_min_epi8(v[0], v[2]), zero);
		if (_mm256_movemask_epi8(v[0]) != -1)
			break;
	}
	return i;
}

/* Most machines have wider registers; long text takes half the time there. */
static size_t ascii_run(const uint8_t *p, size_t len)
{
	return len >= 4 * WIDE && __builtin_cpu_supports("avx2") ? ascii_wide(p, len) : 0;
}
#else
static size_t ascii_run(const uint8_t *p, size_t len)
{
	return 0;
}
#endif

static bool is_tail(uint8_t c)
{
	return (c & 0xc0) == 0x80;
}

/*
 * Length of the multi-byte sequence at @p, 0 if there is no valid one. The second byte's range
 * depends on the first: that is where over-long forms, surrogates and the upper end are cut off.
 */
static size_t sequence(const uint8_t *p, size_t left)
{
	uint8_t lo = 0x80, hi = 0xbf;
	size_t n;

	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (left < n)
		return 0;
	switch (p[0]) {
	case 0xe0:
		lo = 0xa0;
		break;
	case 0xed:
		hi = 0x9f;
		break;
	case 0xf0:
		lo = 0x90;
		break;
	case 0xf4:
		hi = 0x8f;
		break;
	}
	if (p[1] < lo || p[1] > hi)
		return 0;
	if (n > 2 && !is_tail(p[2]))
		return 0;
	if (n > 3 && !is_tail(p[3]))
		return 0;
	return n;
}

bool dbusp_utf8_valid(const void *s, size_t len)
{
	const uint8_t *p = s;
	size_t i = 0, n;

	while (i < len) {
		if (len - i >= BLOCK && ascii_block(p + i)) {
			i += BLOCK;
			i += ascii_run(p + i, len - i);
			continue;
		}
		if (len - i >= 8 && ascii8(p + i)) {
			i += 8;
			continue;
		}
		if (p[i] < 0x80) {
			if (!p[i])
				return false;
			i++;
			continue;
		}
		n = sequence(p + i, len - i);
		if (!n)
			return false;
		i += n;
	}
	return true;
}
