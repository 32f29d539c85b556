/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * UTF-8 as D-Bus strings want it: every Unicode scalar value except U+0000.
 *
 * 1. Surrogates (U+D800..U+DFFF), over-long forms, values above U+10FFFF and NUL are refused.
 * 2. Noncharacters such as U+FFFE are accepted (Unicode corrigendum 9, as libdbus does).
 */
#ifndef DBUSP_UTF8_H
#define DBUSP_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/**
 * dbusp_utf8_valid() - is this a valid D-Bus string?
 * @s: bytes, may be NULL when @len is 0
 * @len: number of bytes, without a terminating NUL
 *
 * One pass; ASCII is checked eight bytes at a time. No allocation. Any thread.
 * D-Bus specification, "Summary of types", STRING.
 *
 * Return: true if valid.
 */
bool dbusp_utf8_valid(const void *s, size_t len);

#endif
