// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where messages of classic peers go. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "access.h"
#include "activate.h"
#include "bridge.h"
#include "driver.h"
#include "monitor.h"

/* ---- names ---- */

static uint64_t first_id(const struct classic *k)
{
	return k->bus->core.id + 1;
}

struct dbusp_str unique_name(const struct peer *p, char *buf)
{
	uint64_t n = p->conn.id - p->conn.bus->id - 1;
	char digits[CLASSIC_UNIQUE_MAX];
	size_t i = sizeof(digits), len;

	do {
		digits[--i] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	len = sizeof(digits) - i;
	memcpy(buf, ":1.", 3);
	memcpy(buf + 3, digits + i, len);
	buf[3 + len] = '\0';
	return (struct dbusp_str){ buf, (uint32_t)(3 + len) };
}

uint64_t unique_id(const struct classic *k, struct dbusp_str name)
{
	uint64_t n = 0;
	uint32_t i;

	if (name.len < 4 || name.len > 22 || memcmp(name.s, ":1.", 3) ||
	    (name.s[3] == '0' && name.len > 4))
		return 0;
	for (i = 3; i < name.len; i++) {
		if (name.s[i] < '0' || name.s[i] > '9')
			return 0;
		n = n * 10 + (uint64_t)(name.s[i] - '0');
	}
	return n + first_id(k);
}

struct peer *route_find(const struct classic *k, struct dbusp_str name)
{
	struct core_bus *bus = &k->bus->core;
	struct core_conn *conn;
	struct core_name *n;

	if (name.len && name.s[0] == ':') {
		conn = core_bus_find_conn(bus, unique_id(k, name));
		return conn && conn->kind == CORE_KIND_ORDINARY ? peer_of(conn) : NULL;
	}
	n = core_names_find(&bus->names, name.s);
	if (!n)
		return NULL;
	return peer_of(container_of(core_name_owner(n)->holder, struct core_conn, names));
}

struct peer *route_owner(const struct classic *k, struct dbusp_str name)
{
	struct peer *p = route_find(k, name);

	return p && p->conn.kind == CORE_KIND_ORDINARY ? p : NULL;
}

/* ---- unicast ---- */

static bool is_reply(const struct cmsg *m)
{
	return m->header.frame.type == DBUSP_METHOD_RETURN || m->header.frame.type == DBUSP_ERROR;
}

static void refuse_fds(struct cpeer *from, const struct cmsg *m)
{
	driver_error(from, m, DBUS_ERROR("NotSupported"),
		     "Tried to send message with Unix file descriptors to a client that doesn't "
		     "support that.");
}

void route_refuse_call(struct cpeer *from, const struct cmsg *m, int error)
{
	if (error == -EEXIST)
		driver_error(from, m, DBUS_ERROR("AccessDenied"),
			     "Message has the same reply serial as a currently-outstanding "
			     "existing method call");
	else if (error == -EMLINK)
		driver_error(from, m, DBUS_ERROR("LimitsExceeded"),
			     "The maximum number of pending replies for \"%s\" (uid=%d pid=%d) has "
			     "been reached (max_replies_per_connection=%ld)",
			     from->name, (int)from->uid, (int)from->pid,
			     classic_limits(from->classic)->max_replies_per_connection);
	else
		driver_error(from, m, DBUS_ERROR("NoMemory"), "Memory allocation failure");
}

/* Everything that must hold before a message goes to a classic peer; the sender is told. */
static bool may_go(struct cpeer *from, struct cpeer *to, struct cmsg *m)
{
	int r;

	if (!access_may_pass(&from->peer, &to->peer, m))
		return false;
	if (output_full(to)) {
		access_refuse_full(from, to, m);
		return false;
	}
	if (m->fds && !to->fds_ok) {
		refuse_fds(from, m);
		return false;
	}
	if (!cmsg_wants_reply(m))
		return true;
	r = reply_expect(from, &to->peer, m->header.frame.serial);
	if (r < 0)
		route_refuse_call(from, m, r);
	return r == 0;
}

static void eavesdrop(struct cpeer *c, struct cmsg *m)
{
	if (!access_may_eavesdrop(c, m) || output_full(c) || (m->fds && !c->fds_ok))
		return;
	output_add(c, m);
}

static void deliver(struct cpeer *from, struct cpeer *to, struct cmsg *m)
{
	if (!may_go(from, to, m))
		return;
	if (cmsg_head(to->classic, m) < 0) {
		cpeer_doom(from, "a message of it is too large with its sender");
		return;
	}
	if (!list_empty(&from->conn.bus->monitors))
		bridge_show_monitors(&from->peer, &to->peer, m);
	output_add(to, m);
	match_find(to->classic, m, &to->peer, eavesdrop);
}

/* A reply that nobody waits for is nobody's business: it may even be forged. */
static bool is_wanted(struct cpeer *from, struct peer *to, const struct cmsg *m)
{
	struct cpeer *c = classic_peer(to);

	if (!is_reply(m))
		return true;
	return c ? reply_take(c, &from->peer, m->header.reply_serial) :
		   link_exists(to, &from->peer);
}

void route_to(struct cpeer *from, struct peer *to, struct cmsg *m)
{
	struct cpeer *c = classic_peer(to);

	if (!is_wanted(from, to, m)) {
		access_refuse_reply(from, to, m);
		return;
	}
	if (c)
		deliver(from, c, m);
	else
		bridge_send(from, native_peer(to), m);
}

/* ---- broadcast ---- */

static void receive(struct cpeer *c, struct cmsg *m)
{
	const char *limit;
	long max;

	if (!access_may_receive(c, m))
		return;
	if (m->fds && !c->fds_ok) {
		cpeer_log(c, "a broadcast is not delivered to it: it takes no descriptors");
		return;
	}
	limit = output_limit(c, &max);
	if (limit)
		cpeer_doom(c, "it does not read: %zu bytes wait (%s=%ld)", c->out_bytes, limit,
			   max);
	else
		output_add(c, m);
}

void route_to_matches(struct classic *k, struct cmsg *m)
{
	if (cmsg_head(k, m) == 0)
		match_find(k, m, NULL, receive);
}

void route_broadcast(struct classic *k, struct cmsg *m)
{
	struct cpeer *from = m->from ? classic_peer(m->from) : NULL;

	route_to_matches(k, m);
	if (from && access_may_broadcast(from, m))
		bridge_broadcast(k, m);
}

/* ---- what a peer sends ---- */

static void no_such_name(struct cpeer *from, const struct cmsg *m)
{
	struct dbusp_str name = m->header.destination;

	if (m->header.frame.flags & DBUSP_NO_AUTO_START)
		driver_error(from, m, DBUS_ERROR("NameHasNoOwner"), "Name \"%s\" does not exist",
			     name.s);
	else
		driver_error(from, m, DBUS_ERROR("ServiceUnknown"),
			     "The name %s was not provided by any .service files", name.s);
}

static void route_unicast(struct cpeer *c, struct cmsg *m)
{
	struct peer *to = route_find(c->classic, m->header.destination);

	if (to)
		route_to(c, to, m);
	else if (m->header.frame.flags & DBUSP_NO_AUTO_START || !activate_for_message(c, m))
		no_such_name(c, m);
}

static bool is_for_driver(const struct cmsg *m)
{
	return m->header.destination.len == sizeof(CLASSIC_DRIVER) - 1 &&
	       !memcmp(m->header.destination.s, CLASSIC_DRIVER, sizeof(CLASSIC_DRIVER) - 1);
}

static void route_active(struct cpeer *c, struct cmsg *m)
{
	if (m->header.frame.type > DBUSP_SIGNAL)
		return; /* of a later version of the protocol */
	if (is_for_driver(m) || (!m->header.destination.s && !cmsg_is_signal(m)))
		driver_call(c, m);
	else if (m->header.destination.s)
		route_unicast(c, m);
	else
		route_broadcast(c->classic, m);
}

/* To monitors, whatever becomes of it. */
static void show(struct cpeer *c, struct cmsg *m)
{
	struct dbusp_str to = m->header.destination;

	monitor_show(c->classic, m, to.s && !is_for_driver(m) ? route_find(c->classic, to) : NULL);
}

/* What the bus does at once because of it, monitors see first, as they do with dbus-daemon. */
static bool is_shown_late(const struct cpeer *c, const struct cmsg *m)
{
	struct dbusp_str to = m->header.destination;

	if (!to.s)
		return false;
	if (is_for_driver(m))
		return driver_is_activation_failure(m);
	return !route_find(c->classic, to) && activate_asks_systemd(c->classic, to);
}

static void route_and_show(struct cpeer *c, struct cmsg *m)
{
	bool late = is_shown_late(c, m);

	if (!late)
		show(c, m);
	route_active(c, m);
	if (late)
		show(c, m);
}

void route_message(struct cpeer *c, struct cmsg *m)
{
	/* Hello is shown once its sender has a name (driver-names.c). */
	if (c->state == CPEER_ACTIVE && !list_empty(&c->classic->monitors))
		route_and_show(c, m);
	else if (c->state == CPEER_ACTIVE)
		route_active(c, m);
	else if (c->state == CPEER_MONITOR)
		cpeer_doom(c, "a monitor must not send messages");
	else if (is_for_driver(m))
		driver_call(c, m);
	else
		cpeer_doom(c, "it sent a message to somebody else before Hello");
}
