// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"
#include "bus.h"
#include "conn.h"

void core_domain_init(struct core_domain *domain, const struct core_host_ops *ops)
{
	memset(domain, 0, sizeof(*domain));
	domain->ops = ops;
	domain->buses = RB_ROOT;
	INIT_LIST_HEAD(&domain->all);
	core_users_init(&domain->users);
}

void core_domain_deinit(struct core_domain *domain)
{
	if (!domain || !domain->all.next)
		return;
	BUG_ON(!list_empty(&domain->all));
	core_users_deinit(&domain->users);
}

u64 core_domain_new_id(struct core_domain *domain)
{
	return ++domain->last_id;
}

/* Where @name is, or would be linked. */
static struct rb_node **find_bus(const struct core_domain *domain, const char *name,
				 struct rb_node **ret_parent)
{
	struct rb_node **link = (struct rb_node **)&domain->buses.rb_node;
	int order;

	*ret_parent = NULL;
	while (*link) {
		core_step();
		order = strcmp(name, rb_entry(*link, struct core_bus, node)->name);
		if (!order)
			break;
		*ret_parent = *link;
		link = order < 0 ? &(*link)->rb_left : &(*link)->rb_right;
	}
	return link;
}

struct core_bus *core_domain_find(const struct core_domain *domain, const char *name)
{
	struct rb_node *parent;

	return rb_entry_safe(*find_bus(domain, name, &parent), struct core_bus, node);
}

/* RFC 4122, version 4. */
static void make_uuid(u8 *id128, const u8 *random)
{
	memcpy(id128, random, 16);
	id128[6] = (id128[6] & 0x0f) | 0x40;
	id128[8] = (id128[8] & 0x3f) | 0x80;
}

static void init_bus(struct core_bus *bus, struct core_domain *domain,
		     const struct core_bus_make *make)
{
	memset(bus, 0, sizeof(*bus));
	bus->domain = domain;
	bus->flags = make->flags;
	bus->bloom = make->bloom;
	bus->creator_mask = make->creator_mask;
	memcpy(bus->name, make->name, strlen(make->name) + 1);
	core_names_init(&bus->names);
	core_policy_init(&bus->policy);
	core_match_index_init(&bus->matches, make->bloom.size);
	bus->conns = RB_ROOT;
	bus->endpoints_by_name = RB_ROOT;
	INIT_LIST_HEAD(&bus->all);
	INIT_LIST_HEAD(&bus->monitors);
	INIT_LIST_HEAD(&bus->endpoints);
}

static void init_endpoint(struct core_endpoint *ep, struct core_bus *bus, const char *name,
			  u64 flags)
{
	memset(ep, 0, sizeof(*ep));
	ep->bus = bus;
	ep->flags = flags;
	memcpy(ep->name, name, strlen(name) + 1);
	core_policy_init(&ep->policy);
	core_policy_owner_init(&ep->owner);
	INIT_LIST_HEAD(&ep->conns);
}

static struct rb_node **find_endpoint(const struct core_bus *bus, const char *name,
				      struct rb_node **ret_parent)
{
	struct rb_node **link = (struct rb_node **)&bus->endpoints_by_name.rb_node;
	int order;

	*ret_parent = NULL;
	while (*link) {
		core_step();
		order = strcmp(name, rb_entry(*link, struct core_endpoint, node)->name);
		if (!order)
			break;
		*ret_parent = *link;
		link = order < 0 ? &(*link)->rb_left : &(*link)->rb_right;
	}
	return link;
}

static void link_endpoint(struct core_endpoint *ep)
{
	struct rb_node *parent, **link = find_endpoint(ep->bus, ep->name, &parent);

	rb_link_node(&ep->node, parent, link);
	rb_insert_color(&ep->node, &ep->bus->endpoints_by_name);
	list_add_tail(&ep->entry, &ep->bus->endpoints);
}

static int charge_bus(struct core_domain *domain, u32 uid, struct core_user **ret_user)
{
	struct core_user *user;
	int r;

	r = core_users_get(&domain->users, uid, &user);
	if (r)
		return r;
	r = core_user_add_bus(user);
	if (r) {
		core_user_unref(user);
		return r;
	}
	*ret_user = user;
	return 0;
}

int core_bus_make(struct core_domain *domain, struct core_bus *bus,
		  const struct core_bus_make *make, u32 uid, u32 euid, const u8 *random)
{
	struct rb_node *parent, **link = find_bus(domain, make->name, &parent);
	struct core_user *user;
	int r;

	if (*link)
		return -EEXIST;
	r = charge_bus(domain, uid, &user);
	if (r)
		return r;
	init_bus(bus, domain, make);
	bus->user = user;
	bus->uid = euid;
	bus->id = core_domain_new_id(domain);
	make_uuid(bus->id128, random);
	rb_link_node(&bus->node, parent, link);
	rb_insert_color(&bus->node, &domain->buses);
	list_add_tail(&bus->entry, &domain->all);
	init_endpoint(&bus->def, bus, "bus", make->flags);
	link_endpoint(&bus->def);
	return 0;
}

void core_bus_unlink(struct core_bus *bus)
{
	BUG_ON(!list_empty(&bus->endpoints));
	rb_erase(&bus->node, &bus->domain->buses);
	list_del_init(&bus->entry);
	core_user_remove_bus(bus->user);
	core_user_unref(bus->user);
	bus->user = NULL;
	core_names_deinit(&bus->names);
}

void core_bus_teardown(struct core_bus *bus)
{
	if (bus->dead)
		return;
	bus->dead = true;
	while (!list_empty(&bus->endpoints))
		core_endpoint_teardown(
			list_first_entry(&bus->endpoints, struct core_endpoint, entry));
	core_bus_unlink(bus);
}

u64 core_bus_next_seq(struct core_bus *bus)
{
	return ++bus->seq;
}

struct core_endpoint *core_bus_find_endpoint(const struct core_bus *bus, const char *name)
{
	struct rb_node *parent;

	return rb_entry_safe(*find_endpoint(bus, name, &parent), struct core_endpoint, node);
}

struct core_conn *core_bus_find_conn(const struct core_bus *bus, u64 id)
{
	struct rb_node *node = bus->conns.rb_node;
	struct core_conn *at;

	while (node) {
		at = rb_entry(node, struct core_conn, node);
		core_step();
		if (id == at->id)
			return at;
		node = id < at->id ? node->rb_left : node->rb_right;
	}
	return NULL;
}

int core_endpoint_make(struct core_bus *bus, struct core_endpoint *ep, const char *name,
		       u64 flags)
{
	struct core_user *user;
	int r;

	if (bus->dead)
		return -ESHUTDOWN;
	if (core_bus_find_endpoint(bus, name))
		return -EEXIST;
	r = core_users_get_anonymous(&bus->domain->users, &user);
	if (r)
		return r;
	init_endpoint(ep, bus, name, flags);
	ep->custom = true;
	ep->user = user;
	link_endpoint(ep);
	return 0;
}

int core_endpoint_update(struct core_endpoint *ep, struct core_policy_set *set)
{
	if (ep->dead)
		return -ESHUTDOWN;
	return core_policy_replace(&ep->policy, &ep->owner, set);
}

void core_endpoint_unlink(struct core_endpoint *ep)
{
	BUG_ON(!list_empty(&ep->conns));
	core_policy_clear(&ep->policy, &ep->owner);
	rb_erase(&ep->node, &ep->bus->endpoints_by_name);
	list_del_init(&ep->entry);
	core_user_unref(ep->user);
	ep->user = NULL;
}

void core_endpoint_teardown(struct core_endpoint *ep)
{
	if (!ep->bus || list_empty(&ep->entry))
		return;
	ep->dead = true;
	while (!list_empty(&ep->conns))
		core_conn_disconnect(list_first_entry(&ep->conns, struct core_conn, ep_entry));
	core_endpoint_unlink(ep);
}
