/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DAEMON_CREDS_H
#define DAEMON_CREDS_H

/*
 * creds.h - who a client is: what the kernel says of its process when it connects
 *
 * 1. The socket says who connected (SO_PEERCRED); everything else is read in /proc of that pid,
 *    through one descriptor of its directory, which does not outlive the process. It is believed
 *    only if that process is the one that connected: its pidfd is still alive afterwards. Kernels
 *    that give no pidfd of a peer (before 6.5) leave the time from connect() to accept() open, in
 *    which a pid can be given to another process of the same uid.
 * 2. Ids are kept as the daemon sees them and translated for each receiver.
 * 3. What cannot be read is absent, never guessed.
 */

#include <sys/types.h>

#include "base.h"

#include "meta.h"
#include "policy.h"

/* One line of a uid_map or gid_map */
struct id_range {
	u32 inside;
	u32 outside;
	u32 count;
};

#define ID_RANGES_MAX 340

struct id_map {
	struct id_range *ranges;
	size_t n;
};

#define PIDNS_LEVELS 32

/**
 * struct creds - one process, as of when it opened a node
 * @core:	euid, egid, groups for policy
 * @cap_ipc_owner: over the daemon's user namespace
 * @meta:	values as the daemon sees them; its strings and arrays belong to this
 * @userns, @pidns, @mntns: inode numbers, 0 if unknown
 * @nspid, @nsppid: ids, and its parent's, in the pid namespaces from the daemon's own down
 * @pidns_chain: inode numbers of these namespaces
 * @uid_map, @gid_map: of its user namespace
 * @confined:	seccomp or no_new_privs
 * @root:	inode of its root directory
 */
struct creds {
	unsigned int refs;
	uid_t uid;
	pid_t pid;
	struct core_cred core;
	bool cap_ipc_owner;
	struct core_meta meta;
	u64 userns;
	u64 pidns;
	u64 mntns;
	u64 root_dev;
	u64 root_ino;
	bool confined;
	u32 nspid[PIDNS_LEVELS];
	u32 nsppid[PIDNS_LEVELS];
	u64 pidns_chain[PIDNS_LEVELS];
	unsigned int n_nspid;
	unsigned int n_nsppid;
	unsigned int n_pidns;
	struct id_map uid_map;
	struct id_map gid_map;
};

int creds_of_peer(int sock, struct creds **ret);
int creds_of_self(struct creds **ret);
struct creds *creds_ref(struct creds *creds);
struct creds *creds_unref(struct creds *creds);
bool creds_equal_authority(const struct creds *a, const struct creds *b);

/* As @to sees an id of the daemon's namespace; the overflow id if it cannot. */
u32 creds_map_uid(const struct creds *to, u32 uid);
u32 creds_map_gid(const struct creds *to, u32 gid);
/* From what @from calls it to what the daemon calls it. -EINVAL: no such id there. */
int creds_unmap_uid(const struct creds *from, u64 id, u32 *ret);
int creds_unmap_gid(const struct creds *from, u64 id, u32 *ret);
/* The pid of @of as @to sees it, 0 if it does not */
u32 creds_map_pid(const struct creds *to, const struct creds *of);
u32 creds_map_ppid(const struct creds *to, const struct creds *of);

#endif
