/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_USER_H
#define CORE_USER_H

/*
 * Accounting users (spec §1.5).
 *
 * Whoever makes buses and connections is charged for them, and what he sends is
 * charged to him at each receiver. There is one user per uid and domain, and one
 * without a uid per custom endpoint.
 *
 * Invariants
 *
 *  1. Each user has a small number that is nobody else's while the user is in
 *     use: quotas are keyed by it (core/quota.h). 0 is the bus itself.
 *  2. A user is in use as long as a bus, a connection or a queued message refers
 *     to it: closing all connections does not forget what is still queued.
 *  3. A user nobody refers to any more stays where it is, with its number, until a
 *     later core_users_get() collects it. So a reference can be dropped without
 *     the lock.
 *
 * Lock rule: one sleeping lock per domain covers the registry and the counters of
 * all its users. core_user_ref() and core_user_unref() need none.
 */

#include "base.h"

/**
 * struct core_user - who is charged
 * @number:  for quotas
 * @uid:     real uid; undefined for the user of a custom endpoint
 * @n_buses: live buses
 * @n_conns: live connections
 *
 * Owned by the registry. The other fields are private.
 */
struct core_user {
	u32 number;
	u32 uid;
	unsigned int n_buses;
	unsigned int n_conns;
	bool anonymous;
	atomic_t refs;
	struct rb_node node;
	struct list_head entry;
};

/**
 * struct core_users - the users of a domain
 *
 * The fields are private.
 */
struct core_users {
	struct rb_root by_uid;
	struct list_head all;
	struct list_head unused;
	u32 last_number;
};

/**
 * core_users_init() - make an empty registry
 * @users: to be initialised
 */
void core_users_init(struct core_users *users);

/**
 * core_users_deinit() - free all users, of whom none is in use
 * @users: may be NULL
 */
void core_users_deinit(struct core_users *users);

/**
 * core_users_get() - find or make the user of a uid
 * @users:    registry
 * @uid:      real uid
 * @ret_user: with a reference
 *
 * O(log n). Return: 0; -ENOMEM.
 */
int core_users_get(struct core_users *users, u32 uid, struct core_user **ret_user);

/**
 * core_users_get_anonymous() - make a user without a uid, for a custom endpoint
 * @users:    registry
 * @ret_user: with a reference
 *
 * Return: 0; -ENOMEM.
 */
int core_users_get_anonymous(struct core_users *users, struct core_user **ret_user);

/**
 * core_user_ref() - take a reference
 * @user: user to whom there is one already, or NULL
 *
 * Return: @user.
 */
static inline struct core_user *core_user_ref(struct core_user *user)
{
	if (user)
		atomic_inc(&user->refs);
	return user;
}

/**
 * core_user_unref() - drop a reference
 * @user: user, or NULL
 */
static inline void core_user_unref(struct core_user *user)
{
	if (user)
		atomic_dec(&user->refs);
}

/**
 * core_user_number() - the number quotas know a sender by
 * @user: user; NULL is the bus itself
 */
static inline u32 core_user_number(const struct core_user *user)
{
	return user ? user->number : 0;
}

/**
 * core_user_add_bus() - charge a bus
 * @user: user
 *
 * Return: 0; -EMFILE: CORE_USER_MAX_BUSES are live.
 */
int core_user_add_bus(struct core_user *user);

/**
 * core_user_add_conn() - charge a connection
 * @user: user
 *
 * Return: 0; -EMFILE: CORE_USER_MAX_CONN are live.
 */
int core_user_add_conn(struct core_user *user);

/* The counterparts of the two above. */
void core_user_remove_bus(struct core_user *user);
void core_user_remove_conn(struct core_user *user);

#endif
