/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * D-Bus type signatures.
 *
 * A signature is a list of complete types: one basic type code, 'v', 'a' and an element type,
 * '(' types ')', or - only right after 'a' - '{' basic type, type '}'.
 *
 * 1. At most 255 bytes.
 * 2. At most 32 arrays and 32 structures around any type. A dict entry stands in an array, so
 *    that there are at most 32 of them as well.
 * 3. No empty structure; a dict entry has two types, the first of them basic.
 * 4. The codes 'r', 'e', 'm', '*', '?', '@', '&' and '^' never appear.
 */
#ifndef DBUSP_SIG_H
#define DBUSP_SIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DBUSP_SIG_MAX 255
#define DBUSP_SIG_DEPTH_MAX 32		/* arrays, and structures */
#define DBUSP_DEPTH_MAX 64		/* containers around a value in a message */

/*
 * A signature with the length of each complete type in it: @span[i] is the number of bytes of
 * the complete type that starts at byte i. Makes skipping over an element type O(1), so that a
 * hostile array of tiny elements with a long type costs no more than its bytes.
 */
struct dbusp_sigmap {
	const char *sig;
	uint8_t len;
	uint8_t span[DBUSP_SIG_MAX + 1];
};

/**
 * dbusp_sig_parse() - validate a signature and measure its types
 * @ret: filled in on success; keeps pointing to @sig
 * @sig: the signature; needs no terminating NUL
 * @len: its length in bytes
 *
 * One pass, no allocation. Any thread. "Valid Signatures", "Container types".
 *
 * Return: 0; -EBADMSG if the signature is invalid; -EMSGSIZE if it is longer than 255 bytes or
 * nested too deeply.
 */
int dbusp_sig_parse(struct dbusp_sigmap *ret, const char *sig, size_t len);

/**
 * dbusp_sig_valid() - is this a valid signature?
 * @sig: the signature
 * @len: its length in bytes
 *
 * Return: true if dbusp_sig_parse() would return 0.
 */
bool dbusp_sig_valid(const char *sig, size_t len);

/**
 * dbusp_sig_single() - is this exactly one complete type, as a variant needs?
 * @sig: the signature
 * @len: its length in bytes
 *
 * Return: true if so.
 */
bool dbusp_sig_single(const char *sig, size_t len);

/**
 * dbusp_sig_span() - bytes of the complete type (or dict entry) that stands first
 * @sig: a place in a valid signature, not at its end
 *
 * Return: its length, at least 1.
 */
size_t dbusp_sig_span(const char *sig);

/**
 * dbusp_type_align() - alignment of values of a type ("Summary of D-Bus marshalling")
 * @type: the first byte of a complete type, or '{'
 *
 * Return: 1, 2, 4 or 8; 0 if @type is no type code.
 */
unsigned int dbusp_type_align(char type);

/**
 * dbusp_type_size() - size of values of a fixed type
 * @type: the first byte of a complete type
 *
 * Return: 1, 2, 4 or 8 for fixed types; 0 for all others.
 */
unsigned int dbusp_type_size(char type);

/**
 * dbusp_type_basic() - is this a basic type (fixed or string-like)?
 * @type: the first byte of a complete type
 *
 * Return: true if so.
 */
bool dbusp_type_basic(char type);

#endif
