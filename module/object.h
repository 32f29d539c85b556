/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MODULE_OBJECT_H
#define MODULE_OBJECT_H

/*
 * The objects of the kernel engine around those of core/, who keeps them alive, and the
 * locks.
 *
 * Invariants
 *
 *  1. A domain is a mounted superblock and lives as long: open files keep it mounted, so
 *     a superblock that goes has neither buses nor endpoints nor connections.
 *  2. An endpoint is referred to by the inode of its file and by each open file; it
 *     refers to its bus. A connection refers to its endpoint.
 *  3. A connection is its open file's. Others reach it through the tables of the bus
 *     only, under the lock of the bus, and after its disconnect not at all.
 *
 * Locks, in the order in which they nest; all sleep:
 *
 *	domain.lock	ids, accounting users, life of buses, endpoints, connections
 *	bus.lock	everything of the bus, as a reader-writer lock: *exclusive* for what
 *			changes endpoints, connections, names, policy or matches; it stands
 *			for every other lock of core/bus.h then. *Shared* for sending and
 *			receiving
 *	bus.lanes	one of them for a search of the match index, which leaves marks there;
 *			several broadcasts go on at once
 *	conn.lock	inbox and reply slots of a connection. Only taken with bus.lock held
 *			shared. Two of them in the order of their addresses
 *
 *  4. User memory is not touched under bus.lock or below: a page that its owner makes
 *     slow must not stop a bus.
 */

#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/path.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rwsem.h>
#include <linux/user_namespace.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "base.h"
#include "bus.h"
#include "conn.h"
#include "pool-file.h"
#include "proc.h"

/**
 * struct kbus_domain - a mount of kdbusfs
 * @core:    domain
 * @lock:    see above
 * @sb:      superblock; its user namespace is that of the domain
 */
struct kbus_domain {
	struct core_domain core;
	struct mutex lock;
	struct super_block *sb;
};

/**
 * struct kbus_bus - a bus
 * @core:       bus
 * @ref:        endpoints, and the file that owns it
 * @lock:       see above
 * @lanes:      see above
 * @dir:        its directory; valid until the bus is torn down
 * @creator:    metadata of the maker, as much as may be shown
 * @wanted:     kinds of metadata that any connection has ever wanted
 */
struct kbus_bus {
	struct core_bus core;
	struct kref ref;
	struct rw_semaphore lock;
	struct mutex lanes[CORE_MATCH_LANES];
	struct dentry *dir;
	struct kbus_proc creator;
	u64 wanted;
};

/**
 * struct kbus_endpoint - an endpoint
 * @core:   @own, or the default endpoint inside the bus
 * @own:    a custom endpoint
 * @ref:    inode, open files, connections
 * @bus:    with a reference
 * @dentry: its file; valid until endpoint or bus is torn down
 */
struct kbus_endpoint {
	struct core_endpoint *core;
	struct core_endpoint own;
	struct kref ref;
	struct kbus_bus *bus;
	struct dentry *dentry;
};

/**
 * struct kbus_conn - a connection
 * @core:        connection
 * @ep:          with a reference
 * @lock:        see above
 * @wait:        whoever polls, or waits for the outcome of a synchronous call
 * @pool:        file that holds the pool
 * @mark:        the page of it that was written last; under the locks of the inbox
 * @spare:       entry for the next message, or NULL; under the locks of the inbox
 * @deadlines:   of its calls
 * @expire:      runs when the first of @deadlines passes
 * @opener:      credentials of the opener of the endpoint file
 * @pid_ns:      pid namespace of the caller of HELLO
 * @pid:         the caller of HELLO
 * @root:        its root directory
 * @fake:        shows faked metadata
 * @proc:        process metadata as of HELLO
 * @description: description, or an empty string
 * @sent:        messages it has sent
 * @received:    messages it has taken; under the locks of the inbox
 * @lost:        messages it has lost; likewise
 */
struct kbus_conn {
	struct core_conn core;
	struct kbus_endpoint *ep;
	struct mutex lock;
	wait_queue_head_t wait;
	struct file *pool;
	struct kbus_pool_mark mark;
	struct kbus_entry *spare;
	struct core_deadlines deadlines;
	struct delayed_work expire;
	const struct cred *opener;
	struct pid_namespace *pid_ns;
	struct pid *pid;
	struct path root;
	bool fake;
	struct kbus_proc proc;
	char description[CORE_SYSNAME_MAX_LEN + 1];
	atomic64_t sent;
	u64 received;
	u64 lost;
};

static inline struct kbus_domain *kbus_domain_of(struct core_domain *core)
{
	return container_of(core, struct kbus_domain, core);
}

static inline struct kbus_bus *kbus_bus_of(struct core_bus *core)
{
	return container_of(core, struct kbus_bus, core);
}

static inline struct kbus_conn *kbus_conn_of(const struct core_conn *core)
{
	return container_of(core, struct kbus_conn, core);
}

#endif
