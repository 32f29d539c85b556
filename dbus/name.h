/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The names of D-Bus: buses, interfaces, members, errors and object paths.
 *
 * All checks are one pass over the bytes with a table of character classes, allocate nothing, and
 * may run on any thread. Names end at 255 bytes, object paths have no limit of their own.
 * D-Bus specification, "Valid Names" and "Valid Object Paths".
 */
#ifndef DBUSP_NAME_H
#define DBUSP_NAME_H

#include <stdbool.h>
#include <stddef.h>

#define DBUSP_NAME_MAX 255

/**
 * dbusp_name_is_unique() - a unique connection name, such as ":1.42"
 * @s: bytes, need no NUL
 * @len: their number
 *
 * After the colon two or more non-empty elements of [A-Za-z0-9_-]; digits may come first.
 *
 * Return: true if valid.
 */
bool dbusp_name_is_unique(const char *s, size_t len);

/**
 * dbusp_name_is_wellknown() - a well-known bus name, such as "org.example.Service1"
 * @s: bytes, need no NUL
 * @len: their number
 *
 * Two or more non-empty elements of [A-Za-z0-9_-], none beginning with a digit.
 *
 * Return: true if valid.
 */
bool dbusp_name_is_wellknown(const char *s, size_t len);

/**
 * dbusp_name_is_bus() - a unique or a well-known bus name
 * @s: bytes, need no NUL
 * @len: their number
 *
 * Return: true if valid.
 */
bool dbusp_name_is_bus(const char *s, size_t len);

/**
 * dbusp_name_is_namespace() - a bus name or a prefix of one that ends before a dot
 * @s: bytes, need no NUL
 * @len: their number
 *
 * As dbusp_name_is_bus(), but one element is enough ("Match Rules", arg0namespace).
 *
 * Return: true if valid.
 */
bool dbusp_name_is_namespace(const char *s, size_t len);

/**
 * dbusp_name_is_interface() - an interface name, such as "org.example.Player"
 * @s: bytes, need no NUL
 * @len: their number
 *
 * Two or more non-empty elements of [A-Za-z0-9_], none beginning with a digit.
 *
 * Return: true if valid.
 */
bool dbusp_name_is_interface(const char *s, size_t len);

/**
 * dbusp_name_is_error() - an error name; the same rules as for interfaces
 * @s: bytes, need no NUL
 * @len: their number
 *
 * Return: true if valid.
 */
bool dbusp_name_is_error(const char *s, size_t len);

/**
 * dbusp_name_is_member() - a method or signal name: [A-Za-z_][A-Za-z0-9_]*
 * @s: bytes, need no NUL
 * @len: their number
 *
 * Return: true if valid.
 */
bool dbusp_name_is_member(const char *s, size_t len);

/**
 * dbusp_path_valid() - an object path: "/" or non-empty elements of [A-Za-z0-9_] after slashes
 * @s: bytes, need no NUL
 * @len: their number
 *
 * Return: true if valid.
 */
bool dbusp_path_valid(const char *s, size_t len);

#endif
