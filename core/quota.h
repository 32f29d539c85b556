/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_QUOTA_H
#define CORE_QUOTA_H

/*
 * What each sending user occupies at one receiver (spec, section 14.4).
 *
 * Half of a pool is the owner's own. Of what the others leave free of the rest,
 * one user may have a third.
 *
 * Invariants
 *
 * 1. A charge is undone by an equal uncharge, made when the message leaves the
 *    queue or could not be put there. A refused charge changes nothing.
 * 2. Users are known by a small dense number (core/user.h); 0 is the bus itself,
 *    which has a share like anybody else.
 * 3. A user that was never charged has charges of zero, however the table grew.
 *
 * Lock rule: every function needs the one lock that guards the quota and the
 * pool beside it; a sleeping lock for core_quota_charge(), which may allocate.
 */

#include "base.h"

/**
 * struct core_charge - what one user has queued
 * @memory: bytes
 * @msgs:   messages
 * @fds:    descriptors
 */
struct core_charge {
	u32 memory;
	u16 msgs;
	u16 fds;
};

/**
 * struct core_quota - charges of all users at one receiver
 *
 * All zeroes is a quota that charges nobody. The fields are private.
 */
struct core_quota {
	struct core_charge *users;
	u32 n_users;
};

/**
 * core_quota_deinit() - free the table
 * @quota: may be NULL; afterwards charges nobody
 */
void core_quota_deinit(struct core_quota *quota);

/**
 * core_quota_charge() - charge one message
 * @quota:     quota
 * @user:      number of the sending user, 0 for the bus itself
 * @pool_size: bytes of the receiver's pool
 * @accounted: bytes of the accounted slices in it, without this message
 * @memory:    bytes of this message's slice, a multiple of 8
 * @fds:       entries of its FDS item
 *
 * Return: 0; -ENOBUFS: the user's share of the memory or its number of messages
 * is used up; -EMFILE: its number of descriptors is; -ENOMEM.
 */
int core_quota_charge(struct core_quota *quota, u32 user, size_t pool_size, size_t accounted,
		      size_t memory, unsigned int fds);

/**
 * core_quota_uncharge() - take a charge back
 * @quota:  quota
 * @user:   as charged
 * @memory: as charged
 * @fds:    as charged
 */
void core_quota_uncharge(struct core_quota *quota, u32 user, size_t memory, unsigned int fds);

/**
 * core_quota_get() - what a user has queued
 * @quota: quota
 * @user:  number of the user
 *
 * Return: the charge; zeroes for a user never charged.
 */
struct core_charge core_quota_get(const struct core_quota *quota, u32 user);

#endif
