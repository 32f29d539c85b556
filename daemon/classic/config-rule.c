// SPDX-License-Identifier: LGPL-2.1-or-later
/* <policy>, <allow> and <deny>: which attributes go together, and what they mean. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config-internal.h"
#include "dbus/header.h"

/* ---- <policy> ---- */

static bool policy_context(struct config_reader *r, const char *value)
{
	if (!strcmp(value, "default"))
		r->context = POLICY_DEFAULT;
	else if (!strcmp(value, "mandatory"))
		r->context = POLICY_MANDATORY;
	else
		return config_refuse(r,
				     "context attribute on <policy> must have the value "
				     "\"default\" or \"mandatory\", not \"%s\"",
				     value);
	return true;
}

static bool policy_at_console(struct config_reader *r, const char *value)
{
	if (!strcmp(value, "true"))
		r->context = POLICY_AT_CONSOLE;
	else if (!strcmp(value, "false"))
		r->context = POLICY_NOT_AT_CONSOLE;
	else
		return config_refuse(r, "Unknown value \"%s\" for at_console", value);
	return true;
}

static void policy_user(struct config_reader *r, const char *value)
{
	uid_t uid = 0;

	r->context = POLICY_USER;
	r->nobody = config_user_id(value, &uid, NULL) < 0;
	r->context_id = uid;
	if (r->nobody)
		config_warn(r, "Unknown username \"%s\": the policy applies to nobody", value);
}

static void policy_group(struct config_reader *r, const char *value)
{
	gid_t gid = 0;

	r->context = POLICY_GROUP;
	r->nobody = config_group_id(value, &gid) < 0;
	r->context_id = gid;
	if (r->nobody)
		config_warn(r, "Unknown group \"%s\": the policy applies to nobody", value);
}

bool config_start_policy(struct config_reader *r, const char **atts)
{
	const char *context = NULL, *user = NULL, *group = NULL, *at_console = NULL;
	const struct config_attribute known[] = {
		{ "context", &context },
		{ "user", &user },
		{ "group", &group },
		{ "at_console", &at_console },
	};

	if (!CONFIG_ATTRIBUTES(r, atts, known))
		return false;
	if (!!context + !!user + !!group + !!at_console != 1)
		return config_refuse(r, "<policy> element must have exactly one of "
					"(context|user|group|at_console) attributes");
	r->nobody = false;
	r->context_id = 0;
	if (context)
		return policy_context(r, context);
	if (at_console)
		return policy_at_console(r, at_console);
	if (user)
		policy_user(r, user);
	else
		policy_group(r, group);
	return true;
}

/* ---- <allow>, <deny> ---- */

/* The attributes of a rule as they stand in the file */
struct attributes {
	const char *send_interface, *send_member, *send_error, *send_destination;
	const char *send_destination_prefix, *send_path, *send_type, *send_broadcast;
	const char *send_requested_reply;
	const char *receive_interface, *receive_member, *receive_error, *receive_sender;
	const char *receive_path, *receive_type, *receive_requested_reply;
	const char *eavesdrop, *min_fds, *max_fds, *log;
	const char *own, *own_prefix, *user, *group;
};

#define ATTRIBUTE(name) { #name, &a->name }

static bool rule_attributes(struct config_reader *r, const char **atts, struct attributes *a)
{
	const struct config_attribute known[] = {
		ATTRIBUTE(send_interface),
		ATTRIBUTE(send_member),
		ATTRIBUTE(send_error),
		ATTRIBUTE(send_destination),
		ATTRIBUTE(send_destination_prefix),
		ATTRIBUTE(send_path),
		ATTRIBUTE(send_type),
		ATTRIBUTE(send_broadcast),
		ATTRIBUTE(send_requested_reply),
		ATTRIBUTE(receive_interface),
		ATTRIBUTE(receive_member),
		ATTRIBUTE(receive_error),
		ATTRIBUTE(receive_sender),
		ATTRIBUTE(receive_path),
		ATTRIBUTE(receive_type),
		ATTRIBUTE(receive_requested_reply),
		ATTRIBUTE(eavesdrop),
		ATTRIBUTE(min_fds),
		ATTRIBUTE(max_fds),
		ATTRIBUTE(log),
		ATTRIBUTE(own),
		ATTRIBUTE(own_prefix),
		ATTRIBUTE(user),
		ATTRIBUTE(group),
	};

	return CONFIG_ATTRIBUTES(r, atts, known);
}

static bool any_send(const struct attributes *a)
{
	return a->send_interface || a->send_member || a->send_error || a->send_destination ||
	       a->send_destination_prefix || a->send_path || a->send_type || a->send_broadcast ||
	       a->send_requested_reply;
}

/* A rule with nothing but eavesdrop is about receiving. */
static bool any_receive(const struct attributes *a)
{
	return a->receive_interface || a->receive_member || a->receive_error ||
	       a->receive_sender || a->receive_path || a->receive_type ||
	       a->receive_requested_reply || (a->eavesdrop && !any_send(a));
}

static bool invalid(struct config_reader *r, const char *element, const char *reason)
{
	return config_refuse(r, "Invalid combination of attributes on element <%s>: %s", element,
			     reason);
}

static bool check_families(struct config_reader *r, const char *element,
			   const struct attributes *a)
{
	bool send = any_send(a), receive = any_receive(a);
	bool message = send || receive || a->min_fds || a->max_fds;
	int families = message + !!a->own + !!a->own_prefix + !!a->user + !!a->group;

	if (!families || (families == 1 && message && !send && !receive))
		return config_refuse(r, "Element <%s> must have one or more attributes", element);
	if (families > 1)
		return invalid(r, element,
			       "own, own_prefix, user, group and the message-related attributes "
			       "cannot be combined");
	if (send && receive)
		return invalid(r, element, "send and receive attributes cannot be combined");
	return true;
}

static bool check_members(struct config_reader *r, const char *element,
			  const struct attributes *a)
{
	if ((a->send_member && !a->send_interface && !a->send_path) ||
	    (a->receive_member && !a->receive_interface && !a->receive_path))
		return config_refuse(r,
				     "On element <%s>, if you specify a member you must specify an "
				     "interface or a path. Keep in mind that not all messages have "
				     "an interface field.",
				     element);
	if (a->send_error && (a->send_member || a->send_interface))
		return invalid(r, element,
			       "send_error cannot be combined with send_member or send_interface");
	if (a->receive_error && (a->receive_member || a->receive_interface))
		return invalid(r, element,
			       "receive_error cannot be combined with receive_member or "
			       "receive_interface");
	if (a->send_destination && a->send_destination_prefix)
		return invalid(r, element,
			       "send_destination cannot be combined with "
			       "send_destination_prefix");
	return true;
}

/* "*" is no condition at all. */
static const char *wanted(const char *value)
{
	return value && strcmp(value, "*") ? value : NULL;
}

static bool true_or_false(struct config_reader *r, const char *name, const char *value, bool *ret)
{
	if (!value)
		return true;
	if (strcmp(value, "true") && strcmp(value, "false"))
		return config_refuse(r, "Bad value \"%s\" for %s attribute, must be true or false",
				     value, name);
	*ret = !strcmp(value, "true");
	return true;
}

static bool message_type(struct config_reader *r, const char *value, uint8_t *ret)
{
	static const char *const names[] = {
		[DBUSP_METHOD_CALL] = "method_call",
		[DBUSP_METHOD_RETURN] = "method_return",
		[DBUSP_ERROR] = "error",
		[DBUSP_SIGNAL] = "signal",
	};
	int i;

	if (!wanted(value))
		return true;
	for (i = DBUSP_METHOD_CALL; i <= DBUSP_SIGNAL; i++) {
		if (!strcmp(value, names[i])) {
			*ret = (uint8_t)i;
			return true;
		}
	}
	return config_refuse(r, "Bad message type \"%s\"", value);
}

static bool n_fds(struct config_reader *r, const char *name, const char *value, uint32_t *ret)
{
	char *end;
	long n;

	if (!value)
		return true;
	errno = 0;
	n = strtol(value, &end, 0);
	if (end == value || errno || n < 0 || n > CONFIG_FDS_MAX)
		return config_refuse(r,
				     "Bad value \"%s\" for %s attribute, must be an integer in "
				     "range 0 to %ld inclusive",
				     value, name, CONFIG_FDS_MAX);
	*ret = (uint32_t)n;
	return true;
}

static bool message_rule(struct config_reader *r, const struct attributes *a,
			 struct policy_rule *rule)
{
	rule->requested_reply = rule->allow;
	rule->max_fds = UINT32_MAX;
	return true_or_false(r, "eavesdrop", a->eavesdrop, &rule->eavesdrop) &&
	       n_fds(r, "min_fds", a->min_fds, &rule->min_fds) &&
	       n_fds(r, "max_fds", a->max_fds, &rule->max_fds);
}

static bool send_rule(struct config_reader *r, const struct attributes *a,
		      struct policy_rule *rule)
{
	bool broadcast = false;

	rule->kind = POLICY_SEND;
	rule->interface = wanted(a->send_interface);
	rule->member = wanted(a->send_member);
	rule->error = wanted(a->send_error);
	rule->path = wanted(a->send_path);
	rule->name = wanted(a->send_destination);
	if (a->send_destination_prefix) {
		rule->name = a->send_destination_prefix;
		rule->prefix = true;
	}
	if (!message_rule(r, a, rule) || !message_type(r, a->send_type, &rule->type) ||
	    !true_or_false(r, "send_requested_reply", a->send_requested_reply,
			   &rule->requested_reply) ||
	    !true_or_false(r, "send_broadcast", a->send_broadcast, &broadcast))
		return false;
	if (a->send_broadcast)
		rule->broadcast = broadcast ? POLICY_TRUE : POLICY_FALSE;
	if (broadcast && rule->name)
		return config_refuse(r,
				     "Rule with send_broadcast=\"true\" and %s=\"%s\" cannot match "
				     "anything",
				     rule->prefix ? "send_destination_prefix" : "send_destination",
				     rule->name);
	return true;
}

static bool receive_rule(struct config_reader *r, const struct attributes *a,
			 struct policy_rule *rule)
{
	rule->kind = POLICY_RECEIVE;
	rule->interface = wanted(a->receive_interface);
	rule->member = wanted(a->receive_member);
	rule->error = wanted(a->receive_error);
	rule->path = wanted(a->receive_path);
	rule->name = wanted(a->receive_sender);
	return message_rule(r, a, rule) && message_type(r, a->receive_type, &rule->type) &&
	       true_or_false(r, "receive_requested_reply", a->receive_requested_reply,
			     &rule->requested_reply);
}

static void own_rule(const struct attributes *a, struct policy_rule *rule)
{
	rule->kind = POLICY_OWN;
	rule->name = a->own ? wanted(a->own) : a->own_prefix;
	rule->prefix = !a->own;
	rule->max_fds = UINT32_MAX;
}

/* False: for nobody, so there is no rule. */
static bool connect_rule(struct config_reader *r, const struct attributes *a,
			 struct policy_rule *rule)
{
	const char *who = a->user ? a->user : a->group;
	uid_t uid = 0;
	gid_t gid = 0;
	int result = 0;

	rule->kind = a->user ? POLICY_CONNECT_USER : POLICY_CONNECT_GROUP;
	rule->id = POLICY_EVERYBODY;
	if (!wanted(who))
		return true;
	if (a->user)
		result = config_user_id(who, &uid, NULL);
	else
		result = config_group_id(who, &gid);
	rule->id = a->user ? uid : gid;
	if (result < 0)
		config_warn(r, "Unknown %s \"%s\": the rule applies to nobody",
			    a->user ? "username" : "group", who);
	return result == 0;
}

static bool add_rule(struct config_reader *r, const char *element, struct policy_rule *rule)
{
	int result;

	rule->file = r->path;
	rule->line = (unsigned int)XML_GetCurrentLineNumber(r->xml);
	if (r->nobody)
		return true;
	if (rule->kind >= _POLICY_KIND_N &&
	    (r->context == POLICY_USER || r->context == POLICY_GROUP))
		return config_refuse(r,
				     "<%s> rule cannot be per-%s because it has bus-global "
				     "semantics",
				     element, r->context == POLICY_USER ? "user" : "group");
	result = policy_add(r->config->policy, r->context, r->context_id, rule);
	return result == 0 || config_out_of_memory(r);
}

bool config_start_rule(struct config_reader *r, const char **atts)
{
	const char *element = config_open_name(r);
	struct policy_rule rule = { .allow = *element == 'a' };
	struct attributes a = { NULL };

	if (!rule_attributes(r, atts, &a) || !check_families(r, element, &a) ||
	    !check_members(r, element, &a))
		return false;
	rule.log = a.log && !strcmp(a.log, "true");
	if (any_send(&a)) {
		if (!send_rule(r, &a, &rule))
			return false;
	} else if (any_receive(&a)) {
		if (!receive_rule(r, &a, &rule))
			return false;
	} else if (a.own || a.own_prefix) {
		own_rule(&a, &rule);
	} else if (!connect_rule(r, &a, &rule)) {
		return true;
	}
	return add_rule(r, element, &rule);
}
