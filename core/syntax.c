// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"

#include "limits.h"
#include "syntax.h"

/* Decimal digits of the largest u32. */
#define UID_DIGITS 10

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

bool core_str_valid(const char *str, size_t size)
{
	return size > 0 && memchr(str, 0, size) == str + size - 1;
}

int core_sysname_check(const char *str, size_t size)
{
	size_t i, len;

	/* One character and its NUL is the least an item of this kind can hold. */
	if (size < 2)
		return -EINVAL;
	len = size - 1;
	if (len > CORE_SYSNAME_MAX_LEN)
		return -ENAMETOOLONG;
	if (!core_str_valid(str, size))
		return -EINVAL;

	for (i = 0; i < len; i++) {
		if (is_word(str[i]))
			continue;
		if ((str[i] == '-' || str[i] == '.') && i > 0 && i < len - 1)
			continue;
		return -EINVAL;
	}
	return 0;
}

int core_sysname_check_uid(const char *name, u32 uid)
{
	char prefix[UID_DIGITS + 1];
	size_t pos = sizeof(prefix);

	prefix[--pos] = '-';
	do {
		prefix[--pos] = '0' + uid % 10;
		uid /= 10;
	} while (uid);
	return strncmp(name, prefix + pos, sizeof(prefix) - pos) ? -EINVAL : 0;
}

/*
 * Count the elements of the @len bytes at @name; 0 if they are not elements joined by
 * single dots.
 */
static size_t count_elements(const char *name, size_t len)
{
	size_t i, elements = 1;
	bool first = true;

	for (i = 0; i < len; i++) {
		if (name[i] == '.') {
			if (first)
				return 0;
			elements++;
			first = true;
			continue;
		}
		if (!is_word(name[i]) && name[i] != '-')
			return 0;
		if (first && is_digit(name[i]))
			return 0;
		first = false;
	}
	return first ? 0 : elements;
}

bool core_name_valid(const char *name)
{
	size_t len = strnlen(name, CORE_NAME_MAX_LEN + 1);

	return len <= CORE_NAME_MAX_LEN && count_elements(name, len) >= 2;
}

bool core_name_is_wildcard(const char *name)
{
	size_t len = strnlen(name, CORE_NAME_MAX_LEN + 1);

	if (len > CORE_NAME_MAX_LEN || len < 3)
		return false;
	return name[len - 1] == '*' && name[len - 2] == '.' && count_elements(name, len - 2) >= 1;
}
