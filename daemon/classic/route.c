// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where messages of classic peers go. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "access.h"
#include "activate.h"
#include "carrier.h"
#include "driver.h"
#include "monitor.h"
#include "undelivered.h"
#include "roster.h"

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

void route_eavesdrop(struct cpeer *from, struct cmsg *m)
{
	struct classic *k = from->classic;

	if (!match_any_eavesdrops(k) || from->state != CPEER_ACTIVE || !m->header.destination.s)
		return;
	m->sender = cpeer_name(from); /* Hello had none when it came */
	if (cmsg_head(k, m) == 0)
		match_find(k, m, NULL, eavesdrop);
}

static void deliver(struct cpeer *from, struct cpeer *to, struct cmsg *m)
{
	if (!may_go(from, to, m))
		return;
	if (cmsg_head(to->classic, m) < 0) {
		cpeer_doom(from, "a message of it is too large with its sender");
		return;
	}
	from->classic->carrier->show(&from->peer, &to->peer, m);
	output_add(to, m);
	match_find(to->classic, m, &to->peer, eavesdrop);
}

/* ---- to native peers ---- */

static void refuse_native(struct cpeer *from, const struct cmsg *m, int error)
{
	const char *to = m->header.destination.s;

	if (error == -EPERM)
		driver_error(from, m, DBUS_ERROR("AccessDenied"),
			     "The policy of \"%s\" does not allow this message", to);
	else if (error == -ECOMM || error == -EMFILE)
		driver_error(from, m, DBUS_ERROR("NotSupported"),
			     "\"%s\" does not take this many Unix file descriptors", to);
	else if (error == -ETOOMANYREFS)
		driver_error(from, m, DBUS_ERROR("LimitsExceeded"), "%s", UNDELIVERED_TEXT);
	else if (error == -EMLINK)
		driver_error(from, m, DBUS_ERROR("LimitsExceeded"),
			     "The bus keeps track of no more calls of \"%s\"", from->name);
	else if (error == -ENOBUFS || error == -EXFULL)
		driver_error(from, m, DBUS_ERROR("LimitsExceeded"),
			     "The message queue of \"%s\" is full", to);
	else if (error == -ECONNRESET || error == -ENXIO || error == -ESRCH ||
		 error == -EADDRNOTAVAIL)
		driver_error(from, m, DBUS_ERROR("ServiceUnknown"),
			     "The name %s was not provided by any .service files", to);
	else
		driver_error(from, m, DBUS_ERROR("Failed"),
			     "The message cannot be delivered to \"%s\": %s", to, strerror(-error));
}

/* -ESTALE: the roster is behind, and nothing was sent; else the sender knows. */
static int send_native(struct cpeer *from, struct peer *to, struct cmsg *m)
{
	bool call = cmsg_wants_reply(m);
	int r;

	if (!access_may_pass(&from->peer, to, m))
		return 0;
	r = call ? reply_expect(from, to, m->header.frame.serial) : 0;
	if (r < 0) {
		route_refuse_call(from, m, r);
		return 0;
	}
	r = cmsg_head(from->classic, m);
	if (r == 0)
		r = from->classic->carrier->send(from, to, m);
	if (r == 0)
		return 0;
	if (call)
		reply_forget(from, m->header.frame.serial);
	if (r == -EBADSLT)
		access_refuse_reply(from, to, m);
	else if (r != -ESTALE && m->header.frame.type == DBUSP_METHOD_CALL)
		refuse_native(from, m, r);
	return r == -ESTALE ? r : 0;
}

/* ---- unicast: the way ---- */

/* A reply that nobody waits for is nobody's business: it may even be forged. */
static bool is_wanted(struct cpeer *from, struct peer *to, const struct cmsg *m)
{
	struct cpeer *c = classic_peer(to);

	if (!is_reply(m))
		return true;
	return c ? reply_take(c, &from->peer, m->header.reply_serial) :
		   from->classic->carrier->is_called(to, &from->peer);
}

/* As send_native() */
static int try_to(struct cpeer *from, struct peer *to, struct cmsg *m)
{
	struct cpeer *c = classic_peer(to);

	if (!is_wanted(from, to, m))
		access_refuse_reply(from, to, m);
	else if (c)
		deliver(from, c, m);
	else
		return send_native(from, to, m);
	return 0;
}

void route_to(struct cpeer *from, struct peer *to, struct cmsg *m)
{
	if (try_to(from, to, m) < 0 && m->header.frame.type == DBUSP_METHOD_CALL)
		refuse_native(from, m, -ESRCH);
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

/* Its head is made for the first who wants it: often there is nobody. */
void route_to_matches(struct classic *k, struct cmsg *m)
{
	match_find(k, m, NULL, receive);
}

void route_broadcast(struct classic *k, struct cmsg *m)
{
	struct cpeer *from = m->from ? classic_peer(m->from) : NULL;

	route_to_matches(k, m);
	/* What monitors were told of refusals meanwhile may have taken the room of its head. */
	if (from && access_may_broadcast(from, m) && cmsg_head_kept(k, m) == 0)
		k->carrier->broadcast(k, m);
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

#define TRIES_MAX 8 /* of a name that changes hands all the time */

static void route_unicast(struct cpeer *c, struct cmsg *m)
{
	struct peer *to;
	int i;

	for (i = 0; i < TRIES_MAX && cpeer_alive(c); i++) {
		to = route_find(c->classic, m->header.destination);
		if (!to)
			break;
		if (try_to(c, to, m) == 0)
			return;
		classic_look(c->classic);
	}
	if (!cpeer_alive(c))
		return;
	if (m->header.frame.flags & DBUSP_NO_AUTO_START || !activate_for_message(c, m))
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
