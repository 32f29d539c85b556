// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"
#include "limits.h"
#include "user.h"

void core_users_init(struct core_users *users)
{
	users->by_uid = RB_ROOT;
	INIT_LIST_HEAD(&users->all);
	INIT_LIST_HEAD(&users->unused);
	users->last_number = 0;
}

static void free_list(struct list_head *list)
{
	struct core_user *user, *next;

	list_for_each_entry_safe(user, next, list, entry) {
		BUG_ON(atomic_read(&user->refs));
		kfree(user);
	}
}

void core_users_deinit(struct core_users *users)
{
	if (!users || !users->all.next)
		return;
	free_list(&users->all);
	free_list(&users->unused);
	core_users_init(users);
}

/*
 * Two users are looked at for each one that is made: so the unused ones never
 * outnumber the used ones for long, at a constant price.
 */
static void collect(struct core_users *users)
{
	struct core_user *user;
	int i;

	for (i = 0; i < 2 && !list_empty(&users->all); i++) {
		user = list_first_entry(&users->all, struct core_user, entry);
		if (atomic_read(&user->refs)) {
			list_move_tail(&user->entry, &users->all);
			continue;
		}
		if (!user->anonymous)
			rb_erase(&user->node, &users->by_uid);
		list_move_tail(&user->entry, &users->unused);
	}
}

/* Unused users keep their numbers, which are the low ones to be used again. */
static struct core_user *user_new(struct core_users *users)
{
	struct core_user *user;
	u32 number;

	collect(users);
	user = list_first_entry_or_null(&users->unused, struct core_user, entry);
	if (user) {
		list_del(&user->entry);
		number = user->number;
	} else {
		user = kmalloc(sizeof(*user), CORE_GFP);
		if (!user)
			return NULL;
		number = ++users->last_number;
	}
	memset(user, 0, sizeof(*user));
	user->number = number;
	atomic_set(&user->refs, 1);
	list_add_tail(&user->entry, &users->all);
	return user;
}

int core_users_get(struct core_users *users, u32 uid, struct core_user **ret_user)
{
	struct rb_node **link, *parent;
	struct core_user *user, *at;

	/* twice: making one may collect others, which changes the tree */
	for (user = NULL;;) {
		parent = NULL;
		link = &users->by_uid.rb_node;
		while (*link) {
			parent = *link;
			at = rb_entry(parent, struct core_user, node);
			core_step();
			if (uid == at->uid) {
				atomic_inc(&at->refs);
				*ret_user = at;
				return 0;
			}
			link = uid < at->uid ? &parent->rb_left : &parent->rb_right;
		}
		if (user)
			break;
		user = user_new(users);
		if (!user)
			return -ENOMEM;
	}
	user->uid = uid;
	rb_link_node(&user->node, parent, link);
	rb_insert_color(&user->node, &users->by_uid);
	*ret_user = user;
	return 0;
}

int core_users_get_anonymous(struct core_users *users, struct core_user **ret_user)
{
	struct core_user *user = user_new(users);

	if (!user)
		return -ENOMEM;
	user->anonymous = true;
	*ret_user = user;
	return 0;
}

int core_user_add_bus(struct core_user *user)
{
	if (user->n_buses >= CORE_USER_MAX_BUSES)
		return -EMFILE;
	user->n_buses++;
	return 0;
}

int core_user_add_conn(struct core_user *user)
{
	if (user->n_conns >= CORE_USER_MAX_CONN)
		return -EMFILE;
	user->n_conns++;
	return 0;
}

void core_user_remove_bus(struct core_user *user)
{
	BUG_ON(!user->n_buses);
	user->n_buses--;
}

void core_user_remove_conn(struct core_user *user)
{
	BUG_ON(!user->n_conns);
	user->n_conns--;
}
