// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>

#include "account.h"

int account_open(struct rb_root *accounts, uid_t uid, unsigned int max, struct account **ret)
{
	struct rb_node **link = &accounts->rb_node, *parent = NULL;
	struct account *a;

	while (*link) {
		parent = *link;
		a = rb_entry(parent, struct account, node);
		if (a->uid == uid) {
			if (max && a->handles >= max)
				return -EMFILE;
			a->handles++;
			*ret = a;
			return 0;
		}
		link = uid < a->uid ? &parent->rb_left : &parent->rb_right;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->uid = uid;
	a->handles = 1;
	rb_link_node(&a->node, parent, link);
	rb_insert_color(&a->node, accounts);
	*ret = a;
	return 0;
}

void account_close(struct rb_root *accounts, struct account *account)
{
	if (!account || --account->handles)
		return;
	rb_erase(&account->node, accounts);
	free(account);
}

int account_hold(struct account *account, size_t bytes)
{
	if (bytes > ACCOUNT_BYTES_MAX || account->bytes > ACCOUNT_BYTES_MAX - bytes)
		return -ENOBUFS;
	account->bytes += bytes;
	return 0;
}

void account_drop(struct account *account, size_t bytes)
{
	BUG_ON(bytes > account->bytes);
	account->bytes -= bytes;
}
