// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where native and classic peers meet: what the native half tells (bridge.h). */
#include "bridge.h"

#include <errno.h>

#include "access.h"
#include "activate.h"
#include "classic.h"
#include "driver.h"
#include "undelivered.h"

void bridge_identify(struct peer *p)
{
	struct cpeer *c = cpeer_of(&p->conn);

	if (c->fd >= 0 && creds_of_socket(c->fd, &p->creds) == 0)
		p->conn.cred = p->creds->core;
}

int bridge_sock(const struct peer *p)
{
	return cpeer_of(&p->conn)->fd;
}

void bridge_was_read(struct peer *p)
{
	p->conn.cred = p->creds->core;
	cpeer_was_read(cpeer_of(&p->conn));
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

static struct bus *bus_of(const struct peer *p)
{
	return container_of(p->conn.bus, struct bus, core);
}

int bridge_start_service(const struct relay *relay, struct core_dst *ret_dst)
{
	return bus_of(relay->from)->classic ? activate_for_native(relay, ret_dst) : -ESRCH;
}

void bridge_begin_starts(struct bus *bus)
{
	activate_begin(bus->classic);
}

/* An activator has one name, so all calls move. Of others it is not known which. */
void bridge_calls_moved(struct peer *from, struct peer *to)
{
	if (from->conn.kind == CORE_KIND_ACTIVATOR)
		replies_move(from, to);
}

void bridge_call_lost(struct peer *to, u64 caller, u32 serial)
{
	struct core_conn *conn = core_bus_find_conn(to->conn.bus, caller);
	struct cpeer *c = conn ? classic_peer(peer_of(conn)) : NULL;

	if (c && cpeer_alive(c) && reply_take(c, to, serial))
		driver_error_serial(c, serial, DBUS_ERROR("LimitsExceeded"), "%s",
				    UNDELIVERED_TEXT);
}

void bridge_forget(struct peer *p)
{
	access_end(p);
}

static struct classic *front_end(const struct client *c)
{
	return c->conn.kind == CORE_KIND_ORDINARY ? bus_of(&c->peer)->classic : NULL;
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
	activate_end(k, &c->peer);
	driver_owner_changed(k, unique_name(&c->peer, name).s, &c->peer, NULL);
	replies_end(k, &c->peer);
}
