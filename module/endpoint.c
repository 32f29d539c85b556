// SPDX-License-Identifier: GPL-2.0-only
#include <linux/slab.h>

#include "creds.h"
#include "endpoint.h"
#include "fs.h"

static void free_endpoint(struct kref *ref)
{
	struct kbus_endpoint *ep = container_of(ref, struct kbus_endpoint, ref);

	kbus_bus_put(ep->bus);
	kfree(ep);
}

struct kbus_endpoint *kbus_endpoint_get(struct kbus_endpoint *ep)
{
	kref_get(&ep->ref);
	return ep;
}

void kbus_endpoint_put(struct kbus_endpoint *ep)
{
	if (ep)
		kref_put(&ep->ref, free_endpoint);
}

static void teardown(struct kbus_endpoint *ep)
{
	down_write(&ep->bus->lock);
	core_endpoint_teardown(ep->core);
	up_write(&ep->bus->lock);
}

static int make_locked(struct kbus_endpoint *ep, const char *name, u64 flags)
{
	struct kbus_bus *bus = ep->bus;
	int r;

	down_write(&bus->lock);
	r = core_endpoint_make(&bus->core, ep->core, name, flags);
	up_write(&bus->lock);
	if (r)
		return r;
	r = kbus_fs_add_endpoint(ep, &ep->dentry);
	if (r)
		teardown(ep);
	return r;
}

int kbus_endpoint_make(struct kbus_bus *bus, struct kbus_arg *arg, struct kbus_endpoint **ret_ep)
{
	struct kbus_domain *domain = kbus_domain_of(bus->core.domain);
	struct core_maker maker;
	struct kbus_endpoint *ep;
	const char *name;
	int r;

	kbus_maker(domain, &maker);
	r = core_check_endpoint_make(&arg->args, &maker, &name);
	if (r)
		return r;
	ep = kzalloc(sizeof(*ep), GFP_KERNEL_ACCOUNT);
	if (!ep)
		return -ENOMEM;
	kref_init(&ep->ref);
	ep->core = &ep->own;
	ep->bus = kbus_bus_get(bus);
	mutex_lock(&domain->lock);
	r = make_locked(ep, name, arg->args.flags);
	mutex_unlock(&domain->lock);
	if (r)
		kbus_endpoint_put(ep);
	else
		*ret_ep = ep;
	return r;
}

int kbus_endpoint_update(struct kbus_endpoint *ep, struct kbus_arg *arg)
{
	struct core_policy_set *set;
	int r;

	r = core_policy_parse(arg->args.list.items, arg->args.list.size, 0, kbus_map_id, NULL,
			      &set);
	if (r)
		return r;
	down_write(&ep->bus->lock);
	r = core_endpoint_update(ep->core, set);
	up_write(&ep->bus->lock);
	if (r)
		core_policy_set_free(set);
	return r;
}

void kbus_endpoint_end(struct kbus_endpoint *ep)
{
	struct kbus_domain *domain = kbus_domain_of(ep->bus->core.domain);
	bool alive;

	mutex_lock(&domain->lock);
	/* with the bus goes the whole directory */
	alive = !ep->bus->core.dead;
	teardown(ep);
	if (alive)
		kbus_fs_remove(ep->dentry);
	mutex_unlock(&domain->lock);
}
