/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TOOLS_CORE_DEMO_HOST_H
#define TOOLS_CORE_DEMO_HOST_H

/*
 * The smallest host of core/: one domain with one bus in one process. Pools are plain
 * memory, descriptors plain numbers, and everybody has the same credentials unless said
 * otherwise. For the demo and for the tests of core/.
 */

#include <stdio.h>

#include "base.h"
#include "list.h"
#include "notify.h"
#include "recv.h"
#include "send.h"

/* Bytes of a bloom filter on the bus. */
#define HOST_BLOOM 64

/**
 * struct host - a domain with a bus
 * @domain:  domain
 * @bus:     bus "<1000>-demo" of user 1000
 * @now:     the clock, in ns
 * @entries: messages that are alive
 * @fail:    what filling the next image returns; for tests
 */
struct host {
	struct core_domain domain;
	struct core_bus bus;
	u64 now;
	unsigned long entries;
	int fail;
};

/**
 * struct host_conn - a connection
 * @core:    for core
 * @pool:    memory of its pool
 * @wakes:   how often it was woken
 * @opener:  who opened the endpoint
 */
struct host_conn {
	struct core_conn core;
	char *pool;
	unsigned long wakes;
	struct core_opener opener;
};

/**
 * struct host_hello - how to connect
 * @ep:        endpoint; NULL: the default one
 * @flags:     enum kdbus_hello_flags
 * @name:      of an activator or policy holder
 * @pool_size: bytes of the pool; 0: 64 KiB
 * @uid:       real and effective uid; 0: 1000, the owner of the bus
 * @policy:    items with its policy records, with the NAME item, or NULL
 * @policy_size: their bytes
 */
struct host_hello {
	struct core_endpoint *ep;
	u64 flags;
	const char *name;
	u64 pool_size;
	u32 uid;
	const struct kdbus_item *policy;
	size_t policy_size;
};

/**
 * struct host_msg - a message to send
 * @dst_id:  id, 0 or ~0
 * @name:    destination name, or NULL
 * @flags:   enum kdbus_msg_flags
 * @word:    timeout_ns or cookie_reply
 * @cookie:  cookie
 * @priority: priority
 * @sync:    SEND with KDBUS_SEND_SYNC_REPLY
 * @payload: bytes, or NULL
 * @size:    how many
 * @n_fds:   descriptors
 * @bloom:   HOST_BLOOM bytes; NULL with KDBUS_MSG_SIGNAL: all zeroes
 * @generation: of the bloom filter
 * @cred:    current credentials; NULL: those at open
 */
struct host_msg {
	u64 dst_id;
	const char *name;
	u64 flags;
	u64 word;
	u64 cookie;
	s64 priority;
	bool sync;
	const void *payload;
	size_t size;
	unsigned int n_fds;
	const u64 *bloom;
	u64 generation;
	const struct core_cred *cred;
};

/* Make a domain and a bus. Return: 0 or negative errno. */
int host_init(struct host *host);

/* End both. The connections are the caller's. */
void host_deinit(struct host *host);

/* Connect. Return: 0 or the errno of HELLO. */
int host_connect(struct host *host, struct host_conn *conn, const struct host_hello *hello);

/* Disconnect and free; harmless if it was never connected. */
void host_close(struct host_conn *conn);

/* Send; @ret_slot as for core_bus_send(), may be NULL. Return: 0 or the errno of SEND. */
int host_send(struct host_conn *from, const struct host_msg *msg, struct core_reply **ret_slot);

/*
 * Receive. @ret_msg: the message in the pool, NULL if it was dropped. Return: 0 or the
 * errno of RECV; @ret is set with -EAGAIN, too.
 */
int host_recv(struct host_conn *conn, u64 flags, s64 priority, struct core_received *ret,
	      const struct kdbus_msg **ret_msg);

/* Free what host_recv() returned. */
int host_free(struct host_conn *conn, const struct kdbus_msg *msg);

/* The connection of a core_conn. */
struct host_conn *host_conn(struct core_conn *conn);

#endif
