/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_LIST_H
#define CORE_LIST_H

/*
 * Asking about others (spec §6.8, §10.8, §9.2 SEE).
 *
 * Invariants
 *
 *  1. What may not be seen looks exactly like what does not exist.
 *  2. A listing has the connections in the order they were made, without monitors, and the
 *     names of each in the order it asked for them.
 *  3. A name record that may not be seen is left out, and yet counts as selected: its
 *     connection gets no record of its own instead.
 *
 * Locks: bus, names, policy, all shared, from counting to writing.
 */

#include "conn.h"
#include "record.h"

/**
 * core_list() - walk the records of a listing (LIST, §6.10)
 * @asker: who lists
 * @cred:  current credentials of the caller; NULL: those at open
 * @flags: enum kdbus_list_flags
 * @emit:  called for each record, which is valid during the call
 * @data:  for @emit
 */
void core_list(const struct core_conn *asker, const struct core_cred *cred, u64 flags,
	       void (*emit)(void *data, const struct core_listed *record), void *data);

/**
 * core_list_size() - bytes of a whole listing
 * @asker: as core_list()
 * @cred:  as core_list()
 * @flags: as core_list()
 *
 * Return: bytes, a multiple of 8; 0: nothing matches, the answer is the empty slice.
 */
size_t core_list_size(const struct core_conn *asker, const struct core_cred *cred, u64 flags);

/**
 * core_list_write() - write a whole listing
 * @asker: as core_list()
 * @cred:  as core_list()
 * @flags: as core_list()
 * @dst:   memory, a multiple of 8
 * @size:  its bytes
 *
 * Return: 0; -EMSGSIZE: @size is less than core_list_size().
 */
int core_list_write(const struct core_conn *asker, const struct core_cred *cred, u64 flags,
		    void *dst, size_t size);

/**
 * core_info_find() - find whom a CONN_INFO is about (§6.8)
 * @asker:    who asks
 * @cred:     current credentials of the caller; NULL: those at open
 * @query:    from core_check_info()
 * @ret_conn: connection of any kind
 *
 * Return: 0; -ESRCH: the name is unowned, not visible, or not owned by the id; -ENXIO: no
 * such id, or not visible.
 */
int core_info_find(const struct core_conn *asker, const struct core_cred *cred,
		   const struct core_info_query *query, struct core_conn **ret_conn);

#endif
