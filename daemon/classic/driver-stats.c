// SPDX-License-Identifier: LGPL-2.1-or-later
/* org.freedesktop.DBus.Debug.Stats, with the keys that dbus-daemon has. */
#include <stdlib.h>
#include <string.h>

#include "dbus/match.h"
#include "driver.h"
#include "roster.h"

#define STATS "org.freedesktop.DBus.Debug.Stats"

static void put(struct dbusp_build *b, const char *key, size_t value)
{
	dbusp_open(b, '{', NULL);
	dbusp_put_string(b, key);
	dbusp_open(b, 'v', "u");
	dbusp_put_u32(b, value > UINT32_MAX ? UINT32_MAX : (uint32_t)value);
	dbusp_close(b);
	dbusp_close(b);
}

/* ---- of the bus ---- */

static size_t n_rules(const struct classic *k)
{
	const struct cpeer *c;
	size_t n = 0;

	list_for_each_entry(c, &k->peers, entry)
		n += c->n_rules;
	return n;
}

static void get_stats(struct driver_call *call)
{
	const struct classic *k = call->classic;
	struct dbusp_build b;

	driver_reply_begin(call, &b, "a{sv}");
	dbusp_open(&b, 'a', NULL);
	put(&b, "Serial", k->serial);
	put(&b, "ActiveConnections", k->n_active);
	put(&b, "IncompleteConnections", k->n_incomplete);
	put(&b, "MatchRules", n_rules(k));
	put(&b, "BusNames", roster_count(k));
	dbusp_close(&b);
	driver_reply_end(call, &b);
}

/* ---- of a connection ---- */

static void get_connection_stats(struct driver_call *call)
{
	const struct dbusp_str name = driver_arg_string(call);
	struct peer *p = route_owner(call->classic, name);
	struct cpeer *c = p ? classic_peer(p) : NULL;
	struct dbusp_build b;

	if (!c) {
		driver_error(call->from, call->m, DBUS_ERROR("NameHasNoOwner"),
			     "Bus name '%s' has no owner that is a D-Bus connection", name.s);
		return;
	}
	driver_reply_begin(call, &b, "a{sv}");
	dbusp_open(&b, 'a', NULL);
	dbusp_open(&b, '{', NULL);
	dbusp_put_string(&b, "UniqueName");
	dbusp_open(&b, 'v', "s");
	dbusp_put_text(&b, 's', cpeer_name(c));
	dbusp_close(&b);
	dbusp_close(&b);
	put(&b, "MatchRules", c->n_rules);
	/* its unique name, too */
	put(&b, "BusNames", peer_count_names(&c->peer) + 1);
	put(&b, "OutgoingBytes", c->out_bytes);
	put(&b, "OutgoingFDs", c->out_fds);
	put(&b, "PendingReplies", c->n_calls);
	dbusp_close(&b);
	driver_reply_end(call, &b);
}

/* ---- all rules ---- */

static void put_rule(const struct dbusp_match *rule, unsigned int count, void *data)
{
	struct dbusp_build *b = data;
	size_t len = dbusp_match_format(rule, NULL, 0);
	char *text = malloc(len + 1);

	if (!text)
		return;
	dbusp_match_format(rule, text, len + 1);
	while (count--)
		dbusp_put_string(b, text);
	free(text);
}

static void get_all_match_rules(struct driver_call *call)
{
	const struct cpeer *c;
	struct dbusp_build b;

	driver_reply_begin(call, &b, "a{sas}");
	dbusp_open(&b, 'a', NULL);
	list_for_each_entry(c, &call->classic->peers, entry) {
		if (c->state != CPEER_ACTIVE)
			continue;
		dbusp_open(&b, '{', NULL);
		dbusp_put_text(&b, 's', cpeer_name(c));
		dbusp_open(&b, 'a', NULL);
		match_each(c, put_rule, &b);
		dbusp_close(&b);
		dbusp_close(&b);
	}
	dbusp_close(&b);
	driver_reply_end(call, &b);
}

static const struct driver_method methods[] = {
	{ STATS, "GetStats", "", "a{sv}", 0, get_stats },
	{ STATS, "GetConnectionStats", "s", "a{sv}", 0, get_connection_stats },
	{ STATS, "GetAllMatchRules", "", "a{sas}", 0, get_all_match_rules },
};

const struct driver_table driver_stats = {
	.methods = methods,
	.n_methods = ARRAY_SIZE(methods),
};
