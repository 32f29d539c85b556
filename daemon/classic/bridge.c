// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where native and classic peers meet: what the native half tells (bridge.h). */
#include "bridge.h"

#include "access.h"
#include "activate.h"
#include "classic.h"
#include "driver.h"

void bridge_read_creds(struct peer *p)
{
	struct cpeer *c = cpeer_of(&p->conn);

	if (c->fd >= 0 && creds_of_peer(c->fd, &p->creds) == 0)
		p->conn.cred = p->creds->core;
}

/* A peer that D-Bus takes for an owner; activators are a thing of kdbus. */
static struct peer *as_owner(struct peer *p)
{
	return p && p->conn.kind == CORE_KIND_ORDINARY ? p : NULL;
}

void bridge_name_changed(struct bus *bus, const char *name, struct peer *before, struct peer *now)
{
	before = as_owner(before);
	now = as_owner(now);
	if (!bus->classic || before == now)
		return;
	driver_owner_changed(bus->classic, name, before, now);
	if (now)
		activate_owned(bus->classic, name, now);
}

/* An activator has one name, so all calls move. Of others it is not known which. */
void bridge_calls_moved(struct peer *from, struct peer *to)
{
	if (from->conn.kind == CORE_KIND_ACTIVATOR)
		replies_move(from, to);
}

void bridge_forget(struct peer *p)
{
	access_end(p);
}

static struct classic *front_end(const struct client *c)
{
	struct bus *bus = container_of(c->conn.bus, struct bus, core);

	return c->conn.kind == CORE_KIND_ORDINARY ? bus->classic : NULL;
}

void bridge_native_joined(struct client *c)
{
	struct classic *k = front_end(c);
	char name[CLASSIC_UNIQUE_MAX];

	if (k)
		driver_owner_changed(k, unique_name(&c->peer, name).s, NULL, &c->peer);
}

void bridge_native_left(struct client *c)
{
	struct classic *k = front_end(c);
	char name[CLASSIC_UNIQUE_MAX];

	if (!k)
		return;
	driver_owner_changed(k, unique_name(&c->peer, name).s, &c->peer, NULL);
	replies_end(k, &c->peer);
}
