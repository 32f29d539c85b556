/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * D-Bus addresses: "unix:path=/run/user/1000/bus,guid=...;tcp:host=localhost,port=1".
 *
 * A list of entries separated by semicolons, to be tried in order; each is a transport, a colon
 * and key=value pairs separated by commas, with bytes outside of [-0-9A-Za-z_/.*\] written as %xx.
 *
 * 1. Entries and pairs are views into the address; nothing is allocated. Any thread.
 * 2. As in libdbus: a semicolon may end the list and a comma the pairs, empty entries are an
 *    error, a pair needs a key and a value of at least one byte, the first of two pairs with the
 *    same key counts. Unknown transports and keys are left to the caller.
 * 3. Unlike libdbus, which looks at the escaping only when a value is asked for, all of it is
 *    checked.
 *
 * D-Bus specification, "Server Addresses".
 */
#ifndef DBUSP_ADDRESS_H
#define DBUSP_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "dbus/str.h"
#include "dbus/why.h"

/* One entry of a list. */
struct dbusp_address {
	struct dbusp_str transport;	/* "unix" */
	struct dbusp_str pairs;		/* "path=/run/bus,guid=..." */
};

/**
 * dbusp_address_next() - take the first entry off a list
 * @list: the list; on success what follows the entry and its semicolon
 * @ret: the entry, checked completely
 * @ret_why: reason on failure, or NULL
 *
 * Call it until list->len is 0.
 *
 * Return: 0; -EINVAL if the entry is malformed or the list empty.
 */
int dbusp_address_next(struct dbusp_str *list, struct dbusp_address *ret,
		       enum dbusp_why *ret_why);

/**
 * dbusp_address_pair() - take the first pair off an entry
 * @pairs: pairs of a checked entry; on return what follows the first and its comma
 * @ret_key: its key
 * @ret_value: its value, still escaped
 *
 * Return: true; false if there are no more.
 */
bool dbusp_address_pair(struct dbusp_str *pairs, struct dbusp_str *ret_key,
			struct dbusp_str *ret_value);

/**
 * dbusp_address_check() - is this a valid list of addresses?
 * @list: the list
 * @ret_why: reason on failure, or NULL
 *
 * Return: 0; -EINVAL if not, or if it is empty.
 */
int dbusp_address_check(struct dbusp_str list, enum dbusp_why *ret_why);

/**
 * dbusp_address_get() - the value of a key, unescaped
 * @address: an entry
 * @key: the key
 * @buf: receives the value and a NUL; the value may contain NULs of its own ("%00")
 * @size: bytes at @buf
 * @ret_len: length of the value
 *
 * Return: 0; -ENOENT if there is no such key; -ENOBUFS if the value does not fit.
 */
int dbusp_address_get(const struct dbusp_address *address, const char *key, char *buf,
		      size_t size, size_t *ret_len);

/**
 * dbusp_address_escape() - escape a value
 * @value: bytes of any kind
 * @len: their number
 * @buf: receives the escaped value and a NUL; NULL to measure
 * @size: bytes at @buf
 *
 * Return: length without the NUL, at most 3 * @len. As with snprintf(), a result not below @size
 * means that the value was cut.
 */
size_t dbusp_address_escape(const void *value, size_t len, char *buf, size_t size);

/* What a unix: address names. */
enum dbusp_unix_kind {
	DBUSP_UNIX_PATH,	/* a socket in the file system */
	DBUSP_UNIX_ABSTRACT,	/* a name in the abstract namespace */
	DBUSP_UNIX_DIR,		/* listen: some new name in this directory */
	DBUSP_UNIX_TMPDIR,	/* listen: the same, possibly abstract */
	DBUSP_UNIX_RUNTIME,	/* listen: "bus" in XDG_RUNTIME_DIR */
};

/**
 * dbusp_address_unix() - what a unix: entry names
 * @address: an entry with transport "unix"
 * @ret_kind: which key it is
 * @buf: receives its value, unescaped, and a NUL; "yes" for DBUSP_UNIX_RUNTIME
 * @size: bytes at @buf
 * @ret_len: length of the value
 * @ret_why: reason on failure, or NULL
 *
 * Return: 0; -EINVAL if not exactly one of the keys is there, or runtime is not "yes"; -ENOBUFS
 * if the value does not fit.
 */
int dbusp_address_unix(const struct dbusp_address *address, enum dbusp_unix_kind *ret_kind,
		       char *buf, size_t size, size_t *ret_len, enum dbusp_why *ret_why);

/**
 * dbusp_address_guid() - the guid of an entry
 * @address: an entry
 * @ret: receives 32 hex digits and a NUL
 * @ret_why: reason on failure, or NULL
 *
 * Return: 0; -ENOENT if it has none; -EINVAL if it is not 32 hex digits.
 */
int dbusp_address_guid(const struct dbusp_address *address, char ret[33],
		       enum dbusp_why *ret_why);

#endif
