/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DAEMON_ACCOUNT_H
#define DAEMON_ACCOUNT_H

/*
 * account.h - what all clients of one uid make the daemon hold
 *
 * 1. A pool is the client's own memory and its size the client's own claim; what waits in front of
 *    it is the daemon's. So besides the shares of core/quota.h there is a bound for each uid:
 *    ACCOUNT_BYTES_MAX of messages that wait for clients of that uid, that they hand back, or that
 *    they have sent to services that are still to be started.
 * 2. Handles of other uids than the daemon's own and root are bounded, connected or not: nobody
 *    can use up the daemon's descriptors for everybody else.
 * 3. Handles that have become nothing yet are bounded for every uid: who only connects, and does so
 *    ever more often, is refused before others are.
 * 4. An account lives as long as it has handles.
 */

#include <stddef.h>
#include <sys/types.h>

#include "base.h"

#define ACCOUNT_BYTES_MAX   (256UL << 20)
#define ACCOUNT_HANDLES_MAX 4096U
#define ACCOUNT_BEGUN_MAX   1024U
#define ACCOUNT_FILE_BYTES  (64UL << 10) /* what a descriptor that is handed back counts as */

/*
 * @handles:	all of it, connected or not
 * @begun:	native ones that are neither connections nor owners of something
 * @classic:	those that are classic peers and have said Hello
 * @bytes:	that are held for it
 */
struct account {
	struct rb_node node;
	uid_t uid;
	unsigned int handles;
	unsigned int begun;
	unsigned int classic;
	size_t bytes;
};

/**
 * account_open() - a handle of @uid
 * @accounts:	all accounts, by uid
 * @max:	how many handles it may have; 0: any number
 *
 * Return: 0; -EMFILE: too many; -ENOMEM.
 */
int account_open(struct rb_root *accounts, uid_t uid, unsigned int max, struct account **ret);

/**
 * account_close() - the end of a handle
 * @account:	NULL is fine
 */
void account_close(struct rb_root *accounts, struct account *account);

/**
 * account_hold() - @bytes are held for it
 *
 * Return: 0, or -ENOBUFS.
 */
int account_hold(struct account *account, size_t bytes);

void account_drop(struct account *account, size_t bytes);

#endif
