/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_SYNTAX_H
#define CORE_SYNTAX_H

#include "base.h"

/*
 * The spelling of strings and names (spec §5.4, 10.1).
 *
 * 1. A string is its bytes up to and including the first NUL, and that NUL is the last
 *    byte of its item.
 * 2. Letters are the ASCII letters. (The reference let Latin-1 letters pass.)
 * 3. Where a name is asked for and where a wildcard is asked for are different
 *    questions: a wildcard is never a name.
 *
 * Pure functions of their arguments: any thread, no lock.
 */

/**
 * core_str_valid() - is a payload exactly one string?
 * @str:  first byte of the payload
 * @size: bytes of the payload, the NUL included
 *
 * Return: true if the only NUL is the last byte. The empty string is valid (spec §5.4).
 */
bool core_str_valid(const char *str, size_t size);

/**
 * core_sysname_check() - check the name of a bus or endpoint, or a description
 * @str:  first byte of the payload
 * @size: bytes of the payload, the NUL included
 *
 * Return: 0, or -EINVAL (not a string, empty, a character that is not allowed, or '-'
 * or '.' at either end), or -ENAMETOOLONG (more than 63 characters, tested before the
 * contents) (spec §5.4).
 */
int core_sysname_check(const char *str, size_t size);

/**
 * core_sysname_check_uid() - check that a bus or endpoint is named after its maker
 * @name: valid sysname
 * @uid:  effective user id of the maker as the user namespace of the domain sees it
 *
 * A maker without an id there is refused by the caller; the spec's errno is the same.
 *
 * Return: 0, or -EINVAL if @name does not begin with "<uid>-" (spec §1.1).
 */
int core_sysname_check_uid(const char *name, u32 uid);

/**
 * core_name_valid() - is this a well-known name?
 * @name: string
 *
 * Return: whether @name follows the grammar of spec §10.1, wildcards excluded.
 */
bool core_name_valid(const char *name);

/**
 * core_name_is_wildcard() - is this a wildcard for well-known names?
 * @name: string
 *
 * A wildcard is one or more elements of a name followed by ".*".
 *
 * Return: whether @name is a wildcard (spec §10.1).
 */
bool core_name_is_wildcard(const char *name);

#endif
