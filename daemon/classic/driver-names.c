// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names: Hello, RequestName, ReleaseName, and who has which. */
#include <errno.h>
#include <string.h>

#include "access.h"
#include "carrier.h"
#include "dbus/name.h"
#include "driver.h"
#include "monitor.h"
#include "roster.h"
#include "service-file.h"

enum {
	REQUEST_ALLOW_REPLACEMENT = 1,
	REQUEST_REPLACE_EXISTING = 2,
	REQUEST_DO_NOT_QUEUE = 4,
};

enum {
	REQUEST_PRIMARY_OWNER = 1,
	REQUEST_IN_QUEUE = 2,
	REQUEST_EXISTS = 3,
	REQUEST_ALREADY_OWNER = 4,
};

enum {
	RELEASE_RELEASED = 1,
	RELEASE_NON_EXISTENT = 2,
	RELEASE_NOT_OWNER = 3,
};

static bool is_driver(struct dbusp_str name)
{
	return dbusp_str_eq(name, DBUSP_STR(CLASSIC_DRIVER));
}

static void reply_u32(struct driver_call *call, uint32_t u)
{
	struct dbusp_build b;

	driver_reply_begin(call, &b, "u");
	dbusp_put_u32(&b, u);
	driver_reply_end(call, &b);
}

static void reply_string(struct driver_call *call, const char *s)
{
	struct dbusp_build b;

	driver_reply_begin(call, &b, "s");
	dbusp_put_string(&b, s);
	driver_reply_end(call, &b);
}

/* ---- signals ---- */

/* What is said to one who has gone only monitors hear. */
static void tell_one(struct peer *p, const char *member, const char *name)
{
	struct cpeer *c = p ? classic_peer(p) : NULL;
	struct dbusp_build b;

	if (!c || (!cpeer_alive(c) && list_empty(&c->classic->monitors)))
		return;
	driver_signal_begin(c->classic, &b, CLASSIC_DRIVER, member, "s", cpeer_name(c));
	dbusp_put_string(&b, name);
	if (cpeer_alive(c))
		driver_signal_to(c, &b);
	else
		driver_show(c->classic, &b, &c->peer);
}

static void tell_all(struct classic *k, const char *name, struct peer *before, struct peer *now)
{
	char old[CLASSIC_UNIQUE_MAX] = "", new[CLASSIC_UNIQUE_MAX] = "";
	struct dbusp_build b;

	if (!match_any(k) && list_empty(&k->monitors))
		return;
	if (before)
		unique_name(before, old);
	if (now)
		unique_name(now, new);
	driver_signal_begin(k, &b, CLASSIC_DRIVER, "NameOwnerChanged", "sss",
			    (struct dbusp_str){ 0 });
	dbusp_put_string(&b, name);
	dbusp_put_string(&b, old);
	dbusp_put_string(&b, new);
	driver_signal_all(k, &b);
}

/* Who loses it hears of that first, who gains it last (dbus-daemon, bus/services.c). */
void driver_owner_changed(struct classic *k, const char *name, struct peer *before,
			  struct peer *now)
{
	tell_one(before, "NameLost", name);
	tell_all(k, name, before, now);
	tell_one(now, "NameAcquired", name);
}

/* ---- Hello ---- */

static bool may_join(struct driver_call *call)
{
	const struct config_limits *limits = classic_limits(call->classic);
	struct cpeer *c = call->from;

	if (call->classic->n_active >= (unsigned long)limits->max_completed_connections) {
		driver_error(c, call->m, DBUS_ERROR("LimitsExceeded"),
			     "The maximum number of active connections has been reached "
			     "(max_completed_connections=%ld)",
			     limits->max_completed_connections);
		return false;
	}
	if (!c->anonymous &&
	    c->account->classic >= (unsigned long)limits->max_connections_per_user) {
		driver_error(c, call->m, DBUS_ERROR("LimitsExceeded"),
			     "The maximum number of active connections for UID %u has been reached "
			     "(max_connections_per_user=%ld)",
			     (unsigned int)c->uid, limits->max_connections_per_user);
		return false;
	}
	return true;
}

/* What the bus says */
static void refuse_join(struct driver_call *call, int error)
{
	if (error == -ENOMEM)
		driver_error(call->from, call->m, DBUS_ERROR("NoMemory"),
			     "Memory allocation failure");
	else if (error == -EMFILE || error == -ENFILE)
		driver_error(call->from, call->m, DBUS_ERROR("LimitsExceeded"),
			     "The bus takes no more connections");
	else if (error == -EPERM || error == -EACCES)
		driver_error(call->from, call->m, DBUS_ERROR("AccessDenied"),
			     "The bus does not let the daemon connect for others");
	else
		driver_error(call->from, call->m, DBUS_ERROR("Failed"), "Cannot connect: %s",
			     strerror(-error));
}

/* The answer comes before NameAcquired, and both before anything else. */
static void hello(struct driver_call *call)
{
	struct cpeer *c = call->from;
	int r;

	if (c->state != CPEER_NEW) {
		driver_error(c, call->m, DBUS_ERROR("Failed"), "Already handled an Hello message");
		return;
	}
	if (!may_join(call))
		return;
	r = cpeer_join(c);
	if (r < 0) {
		refuse_join(call, r);
		return;
	}
	call->m->sender = cpeer_name(c);
	monitor_see(call->classic, call->m, NULL);
	reply_string(call, c->name);
	driver_owner_changed(call->classic, c->name, NULL, &c->peer);
}

/* ---- RequestName, ReleaseName ---- */

static bool may_request(struct driver_call *call, struct dbusp_str name)
{
	struct cpeer *c = call->from;

	if (!dbusp_name_is_bus(name.s, name.len))
		driver_error(c, call->m, DBUS_ERROR("InvalidArgs"),
			     "Requested bus name \"%s\" is not valid", name.s);
	else if (name.s[0] == ':')
		driver_error(c, call->m, DBUS_ERROR("InvalidArgs"),
			     "Cannot acquire a service starting with ':' such as \"%s\"", name.s);
	else if (is_driver(name))
		driver_error(c, call->m, DBUS_ERROR("InvalidArgs"),
			     "Connection \"%s\" is not allowed to own the service \"%s\"because it "
			     "is reserved for D-Bus' use only",
			     c->name, name.s);
	else if (!access_may_own(c, name.s))
		driver_error(c, call->m, DBUS_ERROR("AccessDenied"),
			     "Connection \"%s\" is not allowed to own the service \"%s\" due to "
			     "security policies in the configuration file",
			     c->name, name.s);
	else
		return true;
	return false;
}

static uint64_t kdbus_flags(uint32_t flags)
{
	return (flags & REQUEST_ALLOW_REPLACEMENT ? KDBUS_NAME_ALLOW_REPLACEMENT : 0) |
	       (flags & REQUEST_REPLACE_EXISTING ? KDBUS_NAME_REPLACE_EXISTING : 0) |
	       (flags & REQUEST_DO_NOT_QUEUE ? 0 : KDBUS_NAME_QUEUE);
}

static uint32_t request_result(uint64_t flags, bool owned)
{
	if (flags & KDBUS_NAME_PRIMARY)
		return owned ? REQUEST_ALREADY_OWNER : REQUEST_PRIMARY_OWNER;
	return flags & KDBUS_NAME_IN_QUEUE ? REQUEST_IN_QUEUE : REQUEST_EXISTS;
}

static void refuse_more(struct driver_call *call, unsigned long max)
{
	driver_error(call->from, call->m, DBUS_ERROR("LimitsExceeded"),
		     "Connection \"%s\" is not allowed to own more services (increase limits in "
		     "configuration file if required; max_names_per_connection=%lu)",
		     call->from->name, max);
}

/* What the bus says, which on the module has a policy and limits of its own */
static void refuse_name(struct driver_call *call, int error)
{
	struct cpeer *c = call->from;

	if (error == -ENOMEM)
		driver_error(c, call->m, DBUS_ERROR("NoMemory"), "Memory allocation failure");
	else if (error == -E2BIG)
		driver_error(c, call->m, DBUS_ERROR("LimitsExceeded"),
			     "The bus lets a connection own no more names");
	else if (error == -EPERM || error == -EACCES)
		driver_error(c, call->m, DBUS_ERROR("AccessDenied"),
			     "The bus does not let connection \"%s\" own the name", c->name);
	else
		driver_error(c, call->m, DBUS_ERROR("Failed"), "The bus does not give the name: %s",
			     strerror(-error));
}

static void request_name(struct driver_call *call)
{
	struct dbusp_str name = driver_arg_string(call);
	uint32_t flags = driver_arg_u32(call);
	const struct carrier *carrier = call->classic->carrier;
	unsigned long max = (unsigned long)classic_limits(call->classic)->max_names_per_connection;
	struct cpeer *c = call->from;
	uint64_t result;
	bool owned;
	int r;

	if (!may_request(call, name))
		return;
	owned = peer_owns(&c->peer, name.s);
	/* The unique name counts as one. */
	if (!peer_claims(&c->peer, name.s) && peer_count_names(&c->peer) + 1 >= max) {
		refuse_more(call, max);
		return;
	}
	r = carrier->acquire(c, name.s, kdbus_flags(flags), &result);
	if (r == 0 || r == -EEXIST)
		reply_u32(call, r == 0 ? request_result(result, owned) : REQUEST_EXISTS);
	else
		refuse_name(call, r);
}

static bool may_release(struct driver_call *call, struct dbusp_str name)
{
	if (!dbusp_name_is_bus(name.s, name.len))
		driver_error(call->from, call->m, DBUS_ERROR("InvalidArgs"),
			     "Given bus name \"%s\" is not valid", name.s);
	else if (name.s[0] == ':')
		driver_error(call->from, call->m, DBUS_ERROR("InvalidArgs"),
			     "Cannot release a service starting with ':' such as \"%s\"", name.s);
	else if (is_driver(name))
		driver_error(call->from, call->m, DBUS_ERROR("InvalidArgs"),
			     "Cannot release the %s service because it is owned by the bus",
			     CLASSIC_DRIVER);
	else
		return true;
	return false;
}

static void release_name(struct driver_call *call)
{
	struct dbusp_str name = driver_arg_string(call);
	int r;

	if (!may_release(call, name))
		return;
	r = call->classic->carrier->release(call->from, name.s);
	if (r == 0)
		reply_u32(call, RELEASE_RELEASED);
	else
		reply_u32(call, r == -EADDRINUSE ? RELEASE_NOT_OWNER : RELEASE_NON_EXISTENT);
}

/* ---- who has which ---- */

static void no_such_name(struct driver_call *call, const char *what, struct dbusp_str name)
{
	driver_error(call->from, call->m, DBUS_ERROR("NameHasNoOwner"),
		     "Could not get %s of name '%s': no such name", what, name.s);
}

static void name_has_owner(struct driver_call *call)
{
	struct dbusp_str name = driver_arg_string(call);
	struct dbusp_build b;

	driver_reply_begin(call, &b, "b");
	dbusp_put_bool(&b, is_driver(name) || route_owner(call->classic, name));
	driver_reply_end(call, &b);
}

static void get_name_owner(struct driver_call *call)
{
	struct dbusp_str name = driver_arg_string(call);
	struct peer *owner = route_owner(call->classic, name);
	char unique[CLASSIC_UNIQUE_MAX];

	if (is_driver(name))
		reply_string(call, CLASSIC_DRIVER);
	else if (owner)
		reply_string(call, unique_name(owner, unique).s);
	else
		no_such_name(call, "owner", name);
}

static void put_name(const char *name, void *data)
{
	dbusp_put_string(data, name);
}

static void put_unique_name(struct peer *p, void *data)
{
	char unique[CLASSIC_UNIQUE_MAX];

	dbusp_put_string(data, unique_name(p, unique).s);
}

static void list_queued_owners(struct driver_call *call)
{
	struct dbusp_str name = driver_arg_string(call);
	struct peer *owner = route_owner(call->classic, name);
	struct dbusp_build b;

	if (!owner && !is_driver(name)) {
		no_such_name(call, "owners", name);
		return;
	}
	driver_reply_begin(call, &b, "as");
	dbusp_open(&b, 'a', NULL);
	if (is_driver(name))
		dbusp_put_string(&b, CLASSIC_DRIVER);
	else if (name.s[0] == ':')
		put_unique_name(owner, &b);
	else
		call->classic->carrier->each_claim(call->classic, name.s, put_name, &b);
	dbusp_close(&b);
	driver_reply_end(call, &b);
}

static void list_names(struct driver_call *call)
{
	struct dbusp_build b;

	driver_reply_begin(call, &b, "as");
	dbusp_open(&b, 'a', NULL);
	dbusp_put_string(&b, CLASSIC_DRIVER);
	roster_each_name(call->classic, put_name, &b);
	roster_each_peer(call->classic, put_unique_name, &b);
	dbusp_close(&b);
	driver_reply_end(call, &b);
}

static void list_activatable_names(struct driver_call *call)
{
	const struct services *services = call->classic->services;
	size_t n = services ? services_count(services) : 0, i;
	struct dbusp_build b;

	driver_reply_begin(call, &b, "as");
	dbusp_open(&b, 'a', NULL);
	dbusp_put_string(&b, CLASSIC_DRIVER);
	for (i = 0; i < n; i++)
		if (strcmp(services_nth(services, i)->name, CLASSIC_DRIVER))
			dbusp_put_string(&b, services_nth(services, i)->name);
	dbusp_close(&b);
	driver_reply_end(call, &b);
}

static const struct driver_method methods[] = {
	{ CLASSIC_DRIVER, "Hello", "", "s", DRIVER_ANY_PATH | DRIVER_BEFORE_HELLO, hello },
	{ CLASSIC_DRIVER, "RequestName", "su", "u", DRIVER_ANY_PATH, request_name },
	{ CLASSIC_DRIVER, "ReleaseName", "s", "u", DRIVER_ANY_PATH, release_name },
	{ CLASSIC_DRIVER, "NameHasOwner", "s", "b", DRIVER_ANY_PATH, name_has_owner },
	{ CLASSIC_DRIVER, "GetNameOwner", "s", "s", DRIVER_ANY_PATH, get_name_owner },
	{ CLASSIC_DRIVER, "ListQueuedOwners", "s", "as", DRIVER_ANY_PATH, list_queued_owners },
	{ CLASSIC_DRIVER, "ListNames", "", "as", DRIVER_ANY_PATH, list_names },
	{ CLASSIC_DRIVER, "ListActivatableNames", "", "as", DRIVER_ANY_PATH,
	  list_activatable_names },
};

static const struct driver_signal signals[] = {
	{ CLASSIC_DRIVER, "NameOwnerChanged", "sss" },
	{ CLASSIC_DRIVER, "NameLost", "s" },
	{ CLASSIC_DRIVER, "NameAcquired", "s" },
};

const struct driver_table driver_names = {
	.methods = methods,
	.n_methods = ARRAY_SIZE(methods),
	.signals = signals,
	.n_signals = ARRAY_SIZE(signals),
};
