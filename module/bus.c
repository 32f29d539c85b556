// SPDX-License-Identifier: GPL-2.0-only
#include <linux/random.h>
#include <linux/slab.h>

#include "creds.h"
#include "endpoint.h"
#include "fs.h"

static void free_bus(struct kref *ref)
{
	struct kbus_bus *bus = container_of(ref, struct kbus_bus, ref);
	unsigned int i;

	kbus_proc_release(&bus->creator);
	for (i = 0; i < CORE_MATCH_LANES; i++)
		mutex_destroy(&bus->lanes[i]);
	kfree(bus);
}

struct kbus_bus *kbus_bus_get(struct kbus_bus *bus)
{
	kref_get(&bus->ref);
	return bus;
}

void kbus_bus_put(struct kbus_bus *bus)
{
	if (bus)
		kref_put(&bus->ref, free_bus);
}

static struct kbus_bus *new_bus(u64 creator_mask)
{
	struct kbus_bus *bus = kzalloc(sizeof(*bus), GFP_KERNEL_ACCOUNT);
	unsigned int i;

	if (!bus)
		return NULL;
	kref_init(&bus->ref);
	init_rwsem(&bus->lock);
	for (i = 0; i < CORE_MATCH_LANES; i++)
		mutex_init(&bus->lanes[i]);
	kbus_proc_gather(&bus->creator, creator_mask);
	return bus;
}

/* The default endpoint: core has made it with the bus. */
static int add_default(struct kbus_bus *bus)
{
	struct kbus_endpoint *ep = kzalloc(sizeof(*ep), GFP_KERNEL_ACCOUNT);
	int r;

	if (!ep)
		return -ENOMEM;
	kref_init(&ep->ref);
	ep->core = &bus->core.def;
	ep->bus = kbus_bus_get(bus);
	r = kbus_fs_add_endpoint(ep, &ep->dentry);
	/* from here on its inode keeps it */
	kbus_endpoint_put(ep);
	return r;
}

static void teardown(struct kbus_bus *bus)
{
	down_write(&bus->lock);
	core_bus_teardown(&bus->core);
	up_write(&bus->lock);
}

static int make_locked(struct kbus_domain *domain, struct kbus_bus *bus,
		       const struct core_bus_make *make)
{
	u8 random[16];
	int r;

	get_random_bytes(random, sizeof(random));
	r = core_bus_make(&domain->core, &bus->core, make, __kuid_val(current_uid()),
			  __kuid_val(current_euid()), random);
	if (r)
		return r;
	r = kbus_fs_add_bus(bus, &bus->dir);
	if (r) {
		teardown(bus);
		return r;
	}
	r = add_default(bus);
	if (r) {
		teardown(bus);
		kbus_fs_remove(bus->dir);
	}
	return r;
}

int kbus_bus_make(struct kbus_domain *domain, struct kbus_arg *arg, struct kbus_bus **ret_bus)
{
	struct core_bus_make make;
	struct core_maker maker;
	struct kbus_bus *bus;
	int r;

	kbus_maker(domain, &maker);
	r = core_check_bus_make(&arg->args, &maker, &make);
	if (r)
		return r;
	bus = new_bus(make.creator_mask);
	if (!bus)
		return -ENOMEM;
	mutex_lock(&domain->lock);
	r = make_locked(domain, bus, &make);
	mutex_unlock(&domain->lock);
	if (r)
		kbus_bus_put(bus);
	else
		*ret_bus = bus;
	return r;
}

void kbus_bus_end(struct kbus_bus *bus)
{
	struct kbus_domain *domain = kbus_domain_of(bus->core.domain);

	mutex_lock(&domain->lock);
	teardown(bus);
	kbus_fs_remove(bus->dir);
	mutex_unlock(&domain->lock);
}
