// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dbus/name.h"

#include <stdint.h>

/* character classes */
enum {
	C_ALPHA = 1 << 0,	/* A-Z a-z _ */
	C_DIGIT = 1 << 1,
	C_DASH = 1 << 2,
};

#define A C_ALPHA
#define D C_DIGIT
#define H C_DASH
static const uint8_t classes[256] = {
	['-'] = H,
	['0'] = D, D, D, D, D, D, D, D, D, D,
	['A'] = A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A,
	['_'] = A,
	['a'] = A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A,
};
#undef A
#undef D
#undef H

/*
 * Elements separated by @sep, each of one byte of class @first and more of class @rest.
 * Returns their number, 0 if anything is wrong (an empty element included).
 */
static size_t elements(const char *s, size_t len, char sep, uint8_t first, uint8_t rest)
{
	const unsigned char *p = (const unsigned char *)s, *end = p + len;
	size_t n = 1;

	for (;; n++, p++) {
		if (p == end || !(classes[*p++] & first))
			return 0;
		while (p < end && classes[*p] & rest)
			p++;
		if (p == end)
			return n;
		if (*p != (unsigned char)sep)
			return 0;
	}
}

static size_t unique_elements(const char *s, size_t len)
{
	const uint8_t any = C_ALPHA | C_DIGIT | C_DASH;

	if (!len || len > DBUSP_NAME_MAX || s[0] != ':')
		return 0;
	return elements(s + 1, len - 1, '.', any, any);
}

static size_t wellknown_elements(const char *s, size_t len)
{
	if (len > DBUSP_NAME_MAX)
		return 0;
	return elements(s, len, '.', C_ALPHA | C_DASH, C_ALPHA | C_DIGIT | C_DASH);
}

bool dbusp_name_is_unique(const char *s, size_t len)
{
	return unique_elements(s, len) >= 2;
}

bool dbusp_name_is_wellknown(const char *s, size_t len)
{
	return wellknown_elements(s, len) >= 2;
}

bool dbusp_name_is_bus(const char *s, size_t len)
{
	return len && s[0] == ':' ? dbusp_name_is_unique(s, len) : dbusp_name_is_wellknown(s, len);
}

bool dbusp_name_is_namespace(const char *s, size_t len)
{
	if (len && s[0] == ':')
		return unique_elements(s, len) >= 1;
	return wellknown_elements(s, len) >= 1;
}

bool dbusp_name_is_interface(const char *s, size_t len)
{
	if (len > DBUSP_NAME_MAX)
		return false;
	return elements(s, len, '.', C_ALPHA, C_ALPHA | C_DIGIT) >= 2;
}

bool dbusp_name_is_error(const char *s, size_t len)
{
	return dbusp_name_is_interface(s, len);
}

bool dbusp_name_is_member(const char *s, size_t len)
{
	if (len > DBUSP_NAME_MAX)
		return false;
	return elements(s, len, '.', C_ALPHA, C_ALPHA | C_DIGIT) == 1;
}

bool dbusp_path_valid(const char *s, size_t len)
{
	const uint8_t any = C_ALPHA | C_DIGIT;

	if (!len || s[0] != '/')
		return false;
	return len == 1 || elements(s + 1, len - 1, '/', any, any) > 0;
}
