// SPDX-License-Identifier: LGPL-2.1-or-later
/* Those who only look on. Rules: monitor.h. */
#include "monitor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dbus/match.h"
#include "driver.h"

/* ---- looking on ---- */

static size_t padded(const struct dbusp_match *rule)
{
	return (dbusp_match_size(rule) + 1) & ~(size_t)1;
}

static bool wants(const struct monitor *monitor, struct classic *k, struct cmsg *m,
		  const struct peer *to)
{
	const unsigned char *at = monitor->rules;
	const struct dbusp_match *rule;
	size_t i;

	for (i = 0; i < monitor->n; i++) {
		rule = (const struct dbusp_match *)at;
		if (match_shows(k, rule, m, to))
			return true;
		at += padded(rule);
	}
	return monitor->n == 0;
}

static void show_one(struct cpeer *c, struct cmsg *m)
{
	if (m->fds && !c->fds_ok)
		return;
	if (output_full(c))
		cpeer_doom(c, "a monitor that does not read: %zu bytes wait", c->out_bytes);
	else if (output_add(c, m) < 0)
		cpeer_doom(c, "no memory for what it looks at");
}

void monitor_show(struct classic *k, struct cmsg *m, const struct peer *to)
{
	struct monitor *monitor;

	list_for_each_entry(monitor, &k->monitors, entry) {
		if (cpeer_alive(monitor->peer) && wants(monitor, k, m, to) && cmsg_head(k, m) == 0)
			show_one(monitor->peer, m);
	}
}

void monitor_end(struct cpeer *c)
{
	struct monitor *monitor, *next;

	list_for_each_entry_safe(monitor, next, &c->classic->monitors, entry) {
		if (monitor->peer != c)
			continue;
		list_del(&monitor->entry);
		free(monitor);
	}
}

/* ---- becoming one ---- */

static int append(struct monitor **monitor, const struct dbusp_match *rule)
{
	struct monitor *more = realloc(*monitor, sizeof(*more) + (*monitor)->size + padded(rule));

	if (!more)
		return -ENOMEM;
	memcpy(more->rules + more->size, rule, dbusp_match_size(rule));
	more->size += padded(rule);
	more->n++;
	*monitor = more;
	return 0;
}

static void refuse_rule(struct driver_call *call, int error, enum dbusp_why why)
{
	if (error == -ENOMEM)
		driver_error(call->from, call->m, DBUS_ERROR("NoMemory"),
			     "Memory allocation failure");
	else
		driver_error(call->from, call->m,
			     error == -EMSGSIZE ? DBUS_ERROR("LimitsExceeded")
						: DBUS_ERROR("MatchRuleInvalid"),
			     "%s", dbusp_why_str(why));
}

/* The rules of the call, or NULL: the caller was told. */
static struct monitor *read_rules(struct driver_call *call)
{
	struct monitor *monitor = calloc(1, sizeof(*monitor));
	enum dbusp_why why = DBUSP_WHY_NONE;
	struct dbusp_match_buf rule;
	struct dbusp_str text;
	int r = monitor ? dbusp_reader_enter(&call->args, 'a') : -ENOMEM;

	while (r == 0 && dbusp_reader_type(&call->args)) {
		text = driver_arg_string(call);
		r = dbusp_match_parse(&rule, text.s, text.len, &why);
		if (r == 0)
			r = append(&monitor, &rule.match);
	}
	if (r == 0)
		r = dbusp_reader_exit(&call->args);
	if (r == 0)
		return monitor;
	refuse_rule(call, r, why);
	free(monitor);
	return NULL;
}

/* The answer first: then it is nobody any more, and learns that, too. */
static void become_monitor(struct driver_call *call)
{
	struct monitor *monitor = read_rules(call);
	struct cpeer *c = call->from;

	if (!monitor)
		return;
	if (driver_arg_u32(call) != 0) {
		driver_error(c, call->m, DBUS_ERROR("InvalidArgs"),
			     "BecomeMonitor knows no flags so far");
		free(monitor);
		return;
	}
	driver_reply(call);
	cpeer_leave(c);
	c->state = CPEER_MONITOR;
	monitor->peer = c;
	list_add_tail(&monitor->entry, &c->classic->monitors);
	cpeer_log(c, "became a monitor");
}

static const struct driver_method methods[] = {
	{ "org.freedesktop.DBus.Monitoring", "BecomeMonitor", "asu", "", DRIVER_PRIVILEGED,
	  become_monitor },
};

const struct driver_table driver_monitor = {
	.methods = methods,
	.n_methods = ARRAY_SIZE(methods),
};
