// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where names lead, remembered as long as the daemon's generations stand still. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user.h"

#define NAMES_MAX 1024

static struct resolved *find(struct user *u, const char *name, struct rb_node ***ret_link,
			     struct rb_node **ret_parent)
{
	struct rb_node **link = &u->names.rb_node, *parent = NULL;
	struct resolved *known;
	int order;

	while (*link) {
		parent = *link;
		known = rb_entry(parent, struct resolved, node);
		order = strcmp(name, known->name);
		if (order == 0)
			return known;
		link = order < 0 ? &parent->rb_left : &parent->rb_right;
	}
	*ret_link = link;
	*ret_parent = parent;
	return NULL;
}

const struct resolved *resolve_find(struct user *u, const char *name)
{
	struct rb_node **link, *parent;
	struct resolved *known = find(u, name, &link, &parent);

	return known && lane_page_same(u->page, name, &known->gens) ? known : NULL;
}

/* @gens are those from before the daemon was asked (design, page rule 2). */
void resolve_learn(struct user *u, const char *name, const struct lane_page_gens *gens,
		   const struct ctl_verdict *verdict)
{
	struct rb_node **link, *parent;
	struct resolved *known = find(u, name, &link, &parent);

	if (!known) {
		if (u->n_names >= NAMES_MAX) {
			resolve_clear(u);
			find(u, name, &link, &parent);
		}
		known = calloc(1, sizeof(*known) + strlen(name) + 1);
		if (!known)
			return;
		strcpy(known->name, name);
		rb_link_node(&known->node, parent, link);
		rb_insert_color(&known->node, &u->names);
		u->n_names++;
	}
	known->id = verdict->dst_id;
	known->name_id = verdict->name_id;
	known->gens = *gens;
}

void resolve_clear(struct user *u)
{
	struct rb_node *node;

	while ((node = rb_first(&u->names))) {
		rb_erase(node, &u->names);
		free(rb_entry(node, struct resolved, node));
	}
	u->n_names = 0;
}
