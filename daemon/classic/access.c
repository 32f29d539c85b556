// SPDX-License-Identifier: LGPL-2.1-or-later
/* Policy decisions about messages and names. Rules: access.h. */
#include "access.h"

#include <stdio.h>

#include "driver.h"

int access_begin(struct cpeer *c)
{
	return 0;
}

int access_renew(struct cpeer *c)
{
	return 0;
}

void access_end(struct cpeer *c)
{
}

bool access_may_own(struct cpeer *c, const char *name)
{
	return true;
}

bool access_may_pass(struct cpeer *from, struct peer *to, struct cmsg *m)
{
	return true;
}

bool access_may_broadcast(struct cpeer *from, struct cmsg *m)
{
	return true;
}

bool access_may_receive(struct cpeer *to, struct cmsg *m)
{
	return true;
}

bool access_may_eavesdrop(struct cpeer *to, struct cmsg *m)
{
	return true;
}

/* ---- the text of a refusal, as dbus-daemon writes it ---- */

static const char *type_name(const struct cmsg *m)
{
	static const char *const names[] = { "invalid", "method_call", "method_return", "error",
					     "signal" };

	return names[m->header.frame.type <= DBUSP_SIGNAL ? m->header.frame.type : 0];
}

static const char *or_unset(struct dbusp_str s)
{
	return s.s ? s.s : "(unset)";
}

void access_complain(struct cpeer *from, const struct cpeer *to, const struct cmsg *m,
		     const char *error, const char *what, unsigned int n_rules)
{
	bool reply = m->header.frame.type == DBUSP_METHOD_RETURN ||
		     m->header.frame.type == DBUSP_ERROR;
	char who[64] = "bus";

	if (to)
		snprintf(who, sizeof(who), "uid=%d pid=%d", (int)to->uid, (int)to->pid);
	driver_error(from, m, error,
		     "%s, %u matched rules; type=\"%s\", sender=\"%s\" (uid=%d pid=%d) "
		     "interface=\"%s\" member=\"%s\" error name=\"%s\" requested_reply=\"%d\" "
		     "destination=\"%s\" (%s)",
		     what, n_rules, type_name(m), from->name_len ? from->name : "(inactive)",
		     (int)from->uid, (int)from->pid, or_unset(m->header.interface),
		     or_unset(m->header.member), or_unset(m->header.error_name), reply,
		     m->header.destination.s ? m->header.destination.s : CLASSIC_DRIVER, who);
}

void access_refuse_full(struct cpeer *from, struct cpeer *to, struct cmsg *m)
{
	access_complain(from, to, m, DBUS_ERROR("LimitsExceeded"),
			"Rejected: destination has a full message queue", 0);
}
