// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"
#include "limits.h"
#include "quota.h"

/* The table grows in steps of this many users. */
#define GROW 8

void core_quota_deinit(struct core_quota *quota)
{
	if (!quota)
		return;
	kfree(quota->users);
	quota->users = NULL;
	quota->n_users = 0;
}

static int make_room(struct core_quota *quota, u32 user)
{
	struct core_charge *users;
	u32 n;

	if (user < quota->n_users)
		return 0;
	if (check_add_overflow(user, (u32)GROW, &n))
		return -ENOMEM;
	n -= n % GROW;
	/* zeroed throughout: invariant 3, defect 23 of section 17 */
	users = kcalloc(n, sizeof(*users), CORE_GFP);
	if (!users)
		return -ENOMEM;
	if (quota->n_users)
		memcpy(users, quota->users, quota->n_users * sizeof(*users));
	kfree(quota->users);
	quota->users = users;
	quota->n_users = n;
	return 0;
}

/* Section 14.4, steps 1 to 3. */
static bool memory_allowed(size_t pool_size, size_t accounted, u32 charged, size_t memory)
{
	size_t half = pool_size / 2;
	size_t share;

	if (half < accounted)
		return false;
	share = (half - accounted + charged) / 3;
	if (share < charged || share - charged < memory)
		return false;
	return memory <= CORE_CONN_MAX_QUOTA_MEMORY - charged;
}

int core_quota_charge(struct core_quota *quota, u32 user, size_t pool_size, size_t accounted,
		      size_t memory, unsigned int fds)
{
	struct core_charge *charge;
	int r;

	r = make_room(quota, user);
	if (r)
		return r;
	charge = &quota->users[user];
	if (!memory_allowed(pool_size, accounted, charge->memory, memory))
		return -ENOBUFS;
	if (charge->msgs >= CORE_CONN_MAX_MSGS)
		return -ENOBUFS;
	if (fds > CORE_CONN_MAX_FDS_PER_USER || charge->fds + fds > CORE_CONN_MAX_FDS_PER_USER)
		return -EMFILE;
	charge->memory += memory;
	charge->msgs++;
	charge->fds += fds;
	return 0;
}

void core_quota_uncharge(struct core_quota *quota, u32 user, size_t memory, unsigned int fds)
{
	struct core_charge *charge;

	BUG_ON(user >= quota->n_users);
	charge = &quota->users[user];
	BUG_ON(charge->memory < memory || !charge->msgs || charge->fds < fds);
	charge->memory -= memory;
	charge->msgs--;
	charge->fds -= fds;
}

struct core_charge core_quota_get(const struct core_quota *quota, u32 user)
{
	return user < quota->n_users ? quota->users[user] : (struct core_charge){ 0 };
}
