// SPDX-License-Identifier: LGPL-2.1-or-later
/* The decision procedures: own, talk, see (spec §9.2). */
#include "base.h"
#include "kdbus.h"

#include "names.h"
#include "policy.h"

/*
 * The most permissive of the names decides (§9.2): which of them a message was
 * addressed to is not asked.
 */
static bool any_name_grants(const struct core_policy *policy, const struct core_cred *cred,
			    const struct core_name_holder *names, int level)
{
	const struct core_name_record *record;

	core_name_holder_for_each(record, names) {
		core_step();
		if (core_name_record_owns(record) &&
		    core_policy_level(policy, cred, record->name->name) >= level)
			return true;
	}
	return false;
}

bool core_policy_may_own(const struct core_policy_view *view, const char *name)
{
	if (view->endpoint &&
	    core_policy_level(view->endpoint, view->cred, name) < KDBUS_POLICY_OWN)
		return false;
	return view->bus_owner ||
	       core_policy_level(view->bus, view->cred, name) >= KDBUS_POLICY_OWN;
}

bool core_policy_may_talk(const struct core_policy_view *view, u32 uid,
			  const struct core_name_holder *names)
{
	if (view->endpoint &&
	    !any_name_grants(view->endpoint, view->cred, names, KDBUS_POLICY_TALK))
		return false;
	return view->bus_owner || view->cred->euid == uid ||
	       any_name_grants(view->bus, view->cred, names, KDBUS_POLICY_TALK);
}

bool core_policy_may_see_name(const struct core_policy_view *view, const char *name)
{
	return !view->endpoint ||
	       core_policy_level(view->endpoint, view->cred, name) >= KDBUS_POLICY_SEE;
}

bool core_policy_may_see(const struct core_policy_view *view, const struct core_name_holder *names)
{
	return !view->endpoint ||
	       any_name_grants(view->endpoint, view->cred, names, KDBUS_POLICY_SEE);
}
