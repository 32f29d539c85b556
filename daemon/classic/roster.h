/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_ROSTER_H
#define CLASSIC_ROSTER_H

/*
 * roster.h - who is on the bus, and who has which name
 *
 * 1. Peers of both kinds and the names they own are in the registries of core. They are kept by
 *    whoever carries the bus (carrier.h): where that is this daemon they are the truth, else a copy
 *    of what it tells. The rest of the front-end reads them here, and changes nothing.
 * 2. What a peer waits for in the queue of a name counts for the policy as what it owns.
 */

#include "classic.h"

/* Who is behind a bus name; NULL: nobody */
struct peer *route_find(const struct classic *k, struct dbusp_str name);
/* The same without activators, which are no owners in D-Bus */
struct peer *route_owner(const struct classic *k, struct dbusp_str name);

void roster_each_peer(const struct classic *k, void (*visit)(struct peer *p, void *data),
		      void *data);
/* Well-known names that somebody owns */
void roster_each_name(const struct classic *k, void (*visit)(const char *name, void *data),
		      void *data);
/* Peers, and well-known names */
size_t roster_count(const struct classic *k);

/* Does it own the name? */
static inline bool peer_owns(const struct peer *p, const char *name)
{
	const struct core_name_record *record = core_name_holder_find(&p->conn.names, name);

	return record && core_name_record_owns(record);
}

/* Does it own or wait for it? */
static inline bool peer_claims(const struct peer *p, const char *name)
{
	return core_name_holder_find(&p->conn.names, name) ||
	       (p->waiting && core_name_holder_find(p->waiting, name));
}

/**
 * peer_next_name() - go through the names of a peer
 * @waiting:	those it waits for, too
 * @cursor:	NULL before the first
 *
 * Return: the name; NULL: there are no more.
 */
static inline const char *peer_next_name(const struct peer *p, bool waiting, void **cursor)
{
	const struct list_head *owns = &p->conn.names.records;
	const struct list_head *waits = waiting && p->waiting ? &p->waiting->records : NULL;
	const struct list_head *at = *cursor ? *cursor : owns;
	const struct core_name_record *record;

	for (;;) {
		at = at->next;
		if (at == owns && waits)
			at = waits->next;
		if (at == owns || at == waits)
			return NULL;
		record = list_entry(at, struct core_name_record, holder_entry);
		if (waiting || core_name_record_owns(record))
			break;
	}
	*cursor = (void *)at;
	return record->name->name;
}

/* Names it owns or waits for */
static inline unsigned int peer_count_names(const struct peer *p)
{
	return p->conn.names.count + (p->waiting ? p->waiting->count : 0);
}

#endif
