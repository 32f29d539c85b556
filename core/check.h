/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_CHECK_H
#define CORE_CHECK_H

#include "cmd.h"

/*
 * What single commands ask of their arguments beyond the common rules (spec §6). Each
 * function makes the tests that need nothing but the argument and the facts it is
 * given, in the order of the spec; what needs the state of the bus comes after it.
 *
 * 1. Arguments have passed core_cmd_parse() for the command and are not negotiating.
 * 2. Results point into the argument and live as long as it does.
 * 3. Fields the spec calls "out" are not read: programs leave them uninitialised.
 *
 * Pure functions of their arguments: any thread, no lock, no allocation.
 */

/**
 * core_attach_mask() - take a mask of metadata kinds from a program
 * @mask:     mask as given; all 64 bits stand for all kinds
 * @ret_mask: enum kdbus_attach_flags
 *
 * Return: 0, or -EINVAL if there are unknown bits (spec §4.9).
 */
int core_attach_mask(u64 mask, u64 *ret_mask);

/**
 * struct core_maker - who makes a bus or endpoint
 * @mapped: has a user id in the user namespace of the domain
 * @uid:    current effective user id there
 */
struct core_maker {
	bool mapped;
	u32 uid;
};

/**
 * struct core_bus_make - what BUS_MAKE asks for
 * @name:         name of the bus
 * @flags:        enum kdbus_make_flags
 * @bloom:        bloom filter parameters
 * @creator_mask: metadata about the creator that may be shown, 0 if not given
 */
struct core_bus_make {
	const char *name;
	u64 flags;
	struct kdbus_bloom_parameter bloom;
	u64 creator_mask;
};

/**
 * core_check_bus_make() - check the argument of BUS_MAKE
 * @args:  parsed argument
 * @maker: caller
 * @ret:   what is asked for
 *
 * Return: 0, or -EINVAL (bloom parameters, attach mask, missing "<uid>-" prefix, maker
 * not mapped) (spec §6.1).
 */
int core_check_bus_make(const struct core_args *args, const struct core_maker *maker,
			struct core_bus_make *ret);

/**
 * core_check_endpoint_make() - check the argument of ENDPOINT_MAKE
 * @args:     parsed argument
 * @maker:    caller
 * @ret_name: name of the endpoint
 *
 * Return: 0, or -EINVAL (missing "<uid>-" prefix, maker not mapped) (spec §6.2).
 */
int core_check_endpoint_make(const struct core_args *args, const struct core_maker *maker,
			     const char **ret_name);

/**
 * struct core_hello_facts - what HELLO depends on besides its argument
 * @page_size: bytes of a page
 * @custom:    the handle was opened on a custom endpoint
 * @bus_owner: core_policy_bus_owner() of the opener
 */
struct core_hello_facts {
	u64 page_size;
	bool custom;
	bool bus_owner;
};

/**
 * struct core_hello - what HELLO asks for
 * @flags:       connection flags (enum kdbus_hello_flags)
 * @kind:        kind of connection
 * @pool_size:   bytes of the pool
 * @attach_send: metadata released
 * @attach_recv: metadata wanted
 * @name:        name of an activator or policy holder, maybe a wildcard; else NULL
 * @description: description, or NULL
 * @creds:       credentials to show instead of the real ones, or NULL
 * @pids:        process ids to show instead of the real ones, or NULL
 * @seclabel:    security label to show instead of the real one, or NULL
 * @fake:        one of the last three is given; then nothing real is recorded (§8.5)
 */
struct core_hello {
	u64 flags;
	enum core_kind kind;
	u64 pool_size;
	u64 attach_send;
	u64 attach_recv;
	const char *name;
	const char *description;
	const struct kdbus_creds *creds;
	const struct kdbus_pids *pids;
	const char *seclabel;
	bool fake;
};

/**
 * core_check_hello() - check the argument of HELLO
 * @cmd:   private copy of the argument
 * @args:  the same, parsed
 * @facts: facts
 * @ret:   what is asked for
 *
 * Return: 0, or -EINVAL (pool size, two special kinds, name where none belongs or none
 * where one does, bad name, unknown attach bits), -EOPNOTSUPP (monitor on a custom
 * endpoint), -EPERM (special kind or fakes without being bus owner), in the order of
 * spec §6.4.
 */
int core_check_hello(const struct kdbus_cmd_hello *cmd, const struct core_args *args,
		     const struct core_hello_facts *facts, struct core_hello *ret);

/**
 * core_check_fake_creds() - check the range of credentials given at HELLO
 * @creds: credentials
 *
 * Ids are 32-bit numbers, 0xffffffff meaning "not set". The reference dropped the upper
 * bits; here they are refused. The host maps the ids afterwards.
 *
 * Return: 0, or -EINVAL (spec §8.5).
 */
int core_check_fake_creds(const struct kdbus_creds *creds);

/**
 * struct core_update - what UPDATE asks for
 * @set_send:    there is a new mask of metadata released
 * @set_recv:    there is a new mask of metadata wanted
 * @set_policy:  there are policy items; the records are to be replaced
 * @attach_send: the mask released
 * @attach_recv: the mask wanted
 */
struct core_update {
	bool set_send;
	bool set_recv;
	bool set_policy;
	u64 attach_send;
	u64 attach_recv;
};

/**
 * core_check_update() - check the argument of UPDATE
 * @args: parsed argument
 * @kind: kind of the connection
 * @ret:  what is asked for
 *
 * Return: 0, or -EOPNOTSUPP (a thing this kind cannot change), -EINVAL (unknown attach
 * bits), tested mask by mask and policy last (spec §6.5).
 */
int core_check_update(const struct core_args *args, enum core_kind kind, struct core_update *ret);

/**
 * struct core_info_query - what CONN_INFO or BUS_CREATOR_INFO asks for
 * @id:     connection, or 0 if only a name is given; 0 for the creator
 * @name:   name whose owner is asked for, or NULL; given with @id it must be the owner
 * @attach: metadata wanted
 */
struct core_info_query {
	u64 id;
	const char *name;
	u64 attach;
};

/**
 * core_check_info() - check the argument of CONN_INFO or BUS_CREATOR_INFO
 * @cmd:  private copy of the argument
 * @args: the same, parsed
 * @ret:  what is asked for
 *
 * Return: 0, or -EINVAL (unknown attach bits; CONN_INFO with neither id nor name)
 * (spec §6.8, §6.9).
 */
int core_check_info(const struct kdbus_cmd_info *cmd, const struct core_args *args,
		    struct core_info_query *ret);

/**
 * core_check_recv() - check the argument of RECV
 * @args: parsed argument
 *
 * Return: 0, or -EINVAL if a message is to be dropped by priority: the one that was
 * peeked may not be the one dropped (spec §6.15).
 */
int core_check_recv(const struct core_args *args);

/**
 * core_check_name_acquire() - check the argument of NAME_ACQUIRE
 * @args:     parsed argument
 * @ret_name: name
 *
 * Return: 0, or -EINVAL if it is not a well-known name (spec §6.11).
 */
int core_check_name_acquire(const struct core_args *args, const char **ret_name);

#endif
