// SPDX-License-Identifier: LGPL-2.1-or-later
/* AddMatch and RemoveMatch. */
#include <errno.h>

#include "dbus/match.h"
#include "driver.h"

static bool parse(struct driver_call *call, struct dbusp_match_buf *ret)
{
	struct dbusp_str text = driver_arg_string(call);
	enum dbusp_why why = DBUSP_WHY_NONE;
	int r = dbusp_match_parse(ret, text.s, text.len, &why);

	if (r == 0)
		return true;
	if (r == -EMSGSIZE)
		driver_error(call->from, call->m, DBUS_ERROR("LimitsExceeded"),
			     "Match rule text is %u bytes, maximum is %d", text.len,
			     DBUSP_MATCH_TEXT_MAX);
	else
		driver_error(call->from, call->m, DBUS_ERROR("MatchRuleInvalid"),
			     "Match rule is not valid: %s", dbusp_why_str(why));
	return false;
}

static void add_match(struct driver_call *call)
{
	long max = classic_limits(call->classic)->max_match_rules_per_connection;
	struct cpeer *c = call->from;
	struct dbusp_match_buf buf;

	if (c->n_rules >= (unsigned long)max) {
		driver_error(c, call->m, DBUS_ERROR("LimitsExceeded"),
			     "Connection \"%s\" is not allowed to add more match rules (increase "
			     "limits in configuration file if required; "
			     "max_match_rules_per_connection=%ld)",
			     c->name, max);
		return;
	}
	if (!parse(call, &buf))
		return;
	if (match_add(c, &buf.match) == 0)
		driver_reply(call);
	else
		driver_error(c, call->m, DBUS_ERROR("NoMemory"), "Memory allocation failure");
}

static void remove_match(struct driver_call *call)
{
	struct dbusp_match_buf buf;

	if (!parse(call, &buf))
		return;
	if (match_remove(call->from, &buf.match) == 0)
		driver_reply(call);
	else
		driver_error(call->from, call->m, DBUS_ERROR("MatchRuleNotFound"),
			     "The given match rule wasn't found and can't be removed");
}

static const struct driver_method methods[] = {
	{ CLASSIC_DRIVER, "AddMatch", "s", "", DRIVER_ANY_PATH, add_match },
	{ CLASSIC_DRIVER, "RemoveMatch", "s", "", DRIVER_ANY_PATH, remove_match },
};

const struct driver_table driver_matches = {
	.methods = methods,
	.n_methods = ARRAY_SIZE(methods),
};
