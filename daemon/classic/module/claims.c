// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names that classic peers own or wait for on a bus of the module. Rules: module.h. */
#include <errno.h>
#include <string.h>

#include "daemon/classic/roster.h"
#include "module.h"

/* ---- who waits ---- */

/* The head of such a queue owns nothing: it is the bus that says who does. */

static int wait_for(struct module *m, struct link_to_module *link, const char *name)
{
	struct core_name_change change;
	u64 flags;
	int r = core_names_acquire(&m->waiting, &link->waiting, name, KDBUS_NAME_QUEUE, &flags,
				   &change);

	if (r == 0)
		core_name_change_done(&change);
	return r;
}

static void wait_no_more(struct module *m, struct link_to_module *link, const char *name)
{
	struct core_name_change change;

	if (core_names_release(&m->waiting, &link->waiting, name, &change) == 0)
		core_name_change_done(&change);
}

void claim_waits_no_more(struct module *m, struct peer *p, const char *name)
{
	struct cpeer *c = classic_peer(p);

	if (c && c->link)
		wait_no_more(m, c->link, name);
}

void claim_drop_all(struct module *m, struct link_to_module *link)
{
	struct core_name_change change;

	while (core_names_release_next(&m->waiting, &link->waiting, &change))
		core_name_change_done(&change);
}

/* ---- names ---- */

int claim_name(struct cpeer *c, const char *name, uint64_t flags, uint64_t *ret_flags)
{
	struct module *m = module_of(c->classic);
	struct link_to_module *link = c->link;
	u64 result = 0;
	int r = kconn_name(&link->inlet.conn, KDBUS_CMD_NAME_ACQUIRE, name, flags, &result);

	if (r < 0)
		return r;
	*ret_flags = result;
	if (!(result & KDBUS_NAME_IN_QUEUE))
		wait_no_more(m, link, name);
	else if (wait_for(m, link, name) < 0)
		r = -ENOMEM;
	/* It is not told that it waits, so it must not. */
	if (r < 0)
		kconn_name(&link->inlet.conn, KDBUS_CMD_NAME_RELEASE, name, 0, NULL);
	module_look(c->classic);
	return r;
}

int claim_release(struct cpeer *c, const char *name)
{
	struct link_to_module *link = c->link;
	int r = kconn_name(&link->inlet.conn, KDBUS_CMD_NAME_RELEASE, name, 0, NULL);

	if (r < 0)
		return r;
	wait_no_more(module_of(c->classic), link, name);
	module_look(c->classic);
	return 0;
}

/* ---- the queue of a name ---- */

/*
 * The module lists claims in no particular order. That of the classic peers among themselves is
 * known; native ones come behind them.
 */
static void visit_classic(struct module *m, const char *name,
			  void (*visit)(const char *unique, void *data), void *data)
{
	const struct core_name *n = core_names_find(&m->waiting, name);
	const struct core_name_record *record;
	struct link_to_module *link;

	if (!n)
		return;
	core_name_for_each_queued(record, n) {
		link = container_of(record->holder, struct link_to_module, waiting);
		visit(link->peer->name, data);
	}
}

static void visit_native(struct module *m, const char *name,
			 void (*visit)(const char *unique, void *data), void *data)
{
	char unique[CLASSIC_UNIQUE_MAX];
	const struct kdbus_info *all, *info;
	const struct kdbus_item *item;
	struct peer *p;
	u64 size;

	if (kconn_list(&m->ear.conn, KDBUS_LIST_QUEUED, &all, &size) < 0 || !all)
		return;
	for (info = all; (const char *)info < (const char *)all + size;
	     info = (const void *)((const char *)info + ALIGN(info->size, 8ULL))) {
		p = mirror_find(m, info->id);
		if (!p || p->kind != PEER_REMOTE)
			continue;
		kconn_items(item, info, info->items, info->size)
			if (item->type == KDBUS_ITEM_OWNED_NAME && !strcmp(item->name.name, name))
				visit(unique_name(p, unique).s, data);
	}
	kconn_free(&m->ear.conn, all);
}

void claims_each(struct classic *k, const char *name, void (*visit)(const char *unique, void *data),
		 void *data)
{
	struct peer *owner = route_owner(k, dbusp_str(name));
	struct module *m = module_of(k);
	char unique[CLASSIC_UNIQUE_MAX];

	if (owner)
		visit(unique_name(owner, unique).s, data);
	visit_classic(m, name, visit, data);
	visit_native(m, name, visit, data);
}
