/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_BUS_H
#define CORE_BUS_H

/*
 * Domain, bus and endpoint (spec §1): what contains what, who is known by which id and
 * name, and in which order it all ends.
 *
 * Core has no I/O, no clock and no locks. The host (kdbusd, kdbus.ko, a test) embeds
 * the structures below in objects of its own, brings what touches the world in struct
 * core_host_ops, and finds its object again with container_of().
 *
 * Steps and compositions
 *
 * Sending, disconnecting, taking names consist of *steps*, each a function that names
 * the locks it needs. A *composition* (marked so) makes all steps of a command in the
 * order of the spec. It is for a host that runs the whole bus in one thread; a
 * concurrent host writes the same sequence with its locks in between.
 *
 * Invariants
 *
 *  1. Ids come from one counter per domain, for buses and connections alike; none is
 *     used twice (§1.7).
 *  2. Names of buses are unique per domain, of endpoints per bus, and taken until the
 *     teardown is complete (§1.1).
 *  3. The default endpoint is called "bus", is part of its bus and has no policy. A
 *     custom endpoint has a policy of its own and charges an anonymous user (§1.3).
 *  4. A dead bus or endpoint accepts no endpoint or connection (ESHUTDOWN), and ends
 *     with all that is below it: endpoints in the order they were made, the connections
 *     of each in the order they were made (§1.9).
 *  5. Each sent message and each notification takes one sequence number of the bus,
 *     counting from 1 (§1.2).
 *  6. The host keeps the memory of a bus, an endpoint and their domain until the last
 *     connection of it has been passed to core_conn_deinit().
 *
 * Locks, in the order in which they nest. "shared" and "exclusive" are meant where a
 * lock is a reader-writer lock; all are sleeping locks.
 *
 *	domain		core_domain, its users and buses
 *	bus		endpoints, connection table, list of monitors, life of connections
 *	names		core_bus.names and every core_conn.names
 *	policy		core_bus.policy, core_endpoint.policy, every core_conn.policy
 *	matches		core_bus.matches and every core_conn.matches
 *	note		held from an event until its notification is delivered, so that all
 *			receivers see events in one order (§1.10)
 *	conn(c)		inbox, reply slots and masks of connection c; two of them in the
 *			order of their addresses
 *
 * The sequence number and the id counter may be kept atomic by the host instead.
 */

#include "base.h"
#include "kdbus.h"

#include "check.h"
#include "limits.h"
#include "match.h"
#include "names.h"
#include "policy.h"
#include "reply.h"
#include "user.h"

struct core_conn;
struct core_entry;
struct core_host_ops;
struct core_parcel;

/**
 * struct core_domain - where buses live
 * @ops:     the host
 * @last_id: last id given out
 * @users:   accounting users
 * @buses:   by name
 * @all:     struct core_bus.entry in the order they were made
 */
struct core_domain {
	const struct core_host_ops *ops;
	u64 last_id;
	struct core_users users;
	struct rb_root buses;
	struct list_head all;
};

/**
 * struct core_endpoint - a way into a bus
 * @bus:    its bus
 * @name:   file name
 * @flags:  enum kdbus_make_flags
 * @custom: not the default endpoint
 * @dead:   torn down
 * @policy: its database; empty denies all. Not consulted on the default endpoint
 * @owner:  owner of all records in @policy
 * @user:   whom connections are charged to; NULL on the default endpoint
 * @conns:  struct core_conn.ep_entry in the order they were made
 * @entry:  in core_bus.endpoints
 */
struct core_endpoint {
	struct core_bus *bus;
	char name[CORE_SYSNAME_MAX_LEN + 1];
	u64 flags;
	bool custom;
	bool dead;
	struct core_policy policy;
	struct core_policy_owner owner;
	struct core_user *user;
	struct list_head conns;
	struct list_head entry;
	struct rb_node node;
};

/**
 * struct core_bus - a bus
 * @domain:       its domain
 * @id:           from the domain's counter
 * @id128:        random UUID
 * @name:         file name
 * @flags:        as given to BUS_MAKE
 * @bloom:        bloom filter parameters
 * @creator_mask: metadata of the creator that may be shown
 * @uid:          owner of the node: effective uid of the creator
 * @dead:         torn down
 * @seq:          last sequence number used
 * @names:        name registry
 * @policy:       records of policy holders and activators
 * @matches:      match entries of all connections
 * @deadlines:    of calls, if the host keeps them per bus (core_conn_init())
 * @conns:        by id
 * @all:          struct core_conn.bus_entry in the order they were made, no monitors
 * @monitors:     struct core_conn.bus_entry of monitors
 * @def:          default endpoint
 * @endpoints:    struct core_endpoint.entry in the order they were made
 */
struct core_bus {
	struct core_domain *domain;
	u64 id;
	u8 id128[16];
	char name[CORE_SYSNAME_MAX_LEN + 1];
	u64 flags;
	struct kdbus_bloom_parameter bloom;
	u64 creator_mask;
	u32 uid;
	bool dead;
	u64 seq;
	struct core_user *user;
	struct core_names names;
	struct core_policy policy;
	struct core_match_index matches;
	struct core_deadlines deadlines;
	struct rb_root conns;
	struct list_head all;
	struct list_head monitors;
	struct core_endpoint def;
	struct list_head endpoints;
	struct rb_root endpoints_by_name;
	struct list_head entry;
	struct rb_node node;
};

/**
 * struct core_host_ops - what touches the world
 *
 * @prepare: make an entry for a message and say how large its image is for this
 *	receiver (header, items, metadata by the receiver's mask, payload). @ret_entry:
 *	embedded in an object of the host's, uninitialised. Return: 0 or negative errno.
 *	conn(to) need not be held.
 * @fill: write the image into entry->slice of the receiver's pool. Return: 0 or
 *	negative errno, -EFAULT for unreadable payload. conn(to) need not be held.
 * @copy: copy an image that moves in a hand-over: @bytes from one pool to another, both
 *	conn() locks held. Return: 0 or negative errno.
 * @free: end an entry of @prepare: drop file references, free the object. It has no
 *	slice any more.
 * @wake: something changed for pollers or a synchronous caller: first message, first
 *	loss, an outcome, death. May be called with any lock but domain held.
 * @lost: a connection has lost a message; for statistics, may be NULL. conn(to) is held.
 * @charge: memory that is allocated from here on is on account of @to, in whose inbox it
 *	stays, or, with NULL, of the caller again; may be NULL.
 *
 * The first four are needed for connections with an inbox (core/conn.h) only. No
 * operation may change the bus, not even end a connection that fails: that comes after
 * the command.
 */
struct core_host_ops {
	int (*prepare)(struct core_conn *to, const struct core_parcel *parcel, size_t *ret_size,
		       struct core_entry **ret_entry);
	int (*fill)(struct core_conn *to, const struct core_parcel *parcel,
		    struct core_entry *entry);
	int (*copy)(struct core_conn *from, size_t from_offset, struct core_conn *to,
		    size_t to_offset, size_t bytes);
	void (*free)(struct core_conn *conn, struct core_entry *entry);
	void (*wake)(struct core_conn *conn);
	void (*lost)(struct core_conn *conn);
	void (*charge)(struct core_conn *to);
};

/**
 * core_domain_init() - make a domain without buses
 * @domain: to be initialised
 * @ops:    the host; outlives @domain
 */
void core_domain_init(struct core_domain *domain, const struct core_host_ops *ops);

/**
 * core_domain_deinit() - end a domain, all of whose buses are torn down
 * @domain: may be NULL
 */
void core_domain_deinit(struct core_domain *domain);

/**
 * core_domain_new_id() - the next id (§1.7)
 * @domain: domain
 *
 * Locks: domain.
 */
u64 core_domain_new_id(struct core_domain *domain);

/**
 * core_domain_find() - look up a bus
 * @domain: domain
 * @name:   its name
 *
 * Locks: domain. Return: the bus, dead or alive, or NULL.
 */
struct core_bus *core_domain_find(const struct core_domain *domain, const char *name);

/**
 * core_bus_make() - make a bus with its default endpoint (BUS_MAKE, §6.1)
 * @domain: domain
 * @bus:    to be initialised; the host's until core_bus_deinit()
 * @make:   from core_check_bus_make()
 * @uid:    real uid of the maker, who is charged
 * @euid:   effective uid of the maker, who will own the node
 * @random: 16 random bytes; become a version-4 UUID
 *
 * Locks: domain. Return: 0; -EEXIST: the name is taken; -EMFILE: too many buses of
 * @uid; -ENOMEM. After a failure @bus is as before.
 */
int core_bus_make(struct core_domain *domain, struct core_bus *bus,
		  const struct core_bus_make *make, u32 uid, u32 euid, const u8 *random);

/**
 * core_bus_unlink() - the last step of a teardown: give name and charge back
 * @bus: dead, without endpoints and connections
 *
 * Locks: domain.
 */
void core_bus_unlink(struct core_bus *bus);

/**
 * core_bus_teardown() - end a bus and all below it (§1.9)
 * @bus: bus; nothing happens if it is dead already
 *
 * Composition. The connections are dead afterwards, and still the host's to deinit.
 */
void core_bus_teardown(struct core_bus *bus);

/**
 * core_bus_next_seq() - take a sequence number
 * @bus: bus
 *
 * Locks: none but what makes it atomic.
 */
u64 core_bus_next_seq(struct core_bus *bus);

/**
 * core_bus_find_endpoint() - look up an endpoint, the default one included
 * @bus:  bus
 * @name: its name
 *
 * Locks: bus, shared. Return: the endpoint, or NULL.
 */
struct core_endpoint *core_bus_find_endpoint(const struct core_bus *bus, const char *name);

/**
 * core_bus_find_conn() - look up a connection of any kind
 * @bus: bus
 * @id:  its id
 *
 * O(log n). Locks: bus, shared. Return: the connection, or NULL.
 */
struct core_conn *core_bus_find_conn(const struct core_bus *bus, u64 id);

/**
 * core_endpoint_make() - make a custom endpoint (ENDPOINT_MAKE, §6.2)
 * @bus:   bus
 * @ep:    to be initialised; the host's until it is torn down
 * @name:  from core_check_endpoint_make()
 * @flags: enum kdbus_make_flags
 *
 * Locks: domain, bus. Return: 0; -ESHUTDOWN: the bus is dead; -EEXIST; -ENOMEM.
 */
int core_endpoint_make(struct core_bus *bus, struct core_endpoint *ep, const char *name,
		       u64 flags);

/**
 * core_endpoint_update() - replace the policy of an endpoint (ENDPOINT_UPDATE, §6.3)
 * @ep:  custom endpoint
 * @set: from core_policy_parse(); consumed on success
 *
 * Locks: policy, exclusive. Return: 0; -ESHUTDOWN: the endpoint is dead.
 */
int core_endpoint_update(struct core_endpoint *ep, struct core_policy_set *set);

/**
 * core_endpoint_unlink() - the last step of a teardown: give name and policy back
 * @ep: dead, without connections
 *
 * Locks: bus and policy, exclusive.
 */
void core_endpoint_unlink(struct core_endpoint *ep);

/**
 * core_endpoint_teardown() - end an endpoint and its connections
 * @ep: endpoint; nothing happens if it is dead already, or all zeroes
 *
 * Composition.
 */
void core_endpoint_teardown(struct core_endpoint *ep);

#endif
