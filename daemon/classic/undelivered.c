// SPDX-License-Identifier: LGPL-2.1-or-later
/* Messages that the kernel refuses to carry. Rules: undelivered.h. */
#include "undelivered.h"

#include <stdio.h>
#include <stdlib.h>

#include "driver.h"
#include "roster.h"

struct undelivered {
	struct list_head entry;
	char caller[CLASSIC_UNIQUE_MAX]; /* who waits */
	char callee[CLASSIC_UNIQUE_MAX];
	uint32_t serial; /* of the call */
	bool answered; /* it was the answer */
};

void undelivered_note(struct cpeer *to, const unsigned char *data, size_t len)
{
	struct undelivered *u;
	struct dbusp_header h;
	bool answered;

	if (dbusp_header_parse(&h, data, len, DBUSP_MESSAGE_MAX, NULL) < 0)
		return;
	answered = h.frame.type == DBUSP_METHOD_RETURN || h.frame.type == DBUSP_ERROR;
	/* Who eavesdrops does not wait for it, and may wait for another of that serial. */
	if (answered && h.destination.s && route_find(to->classic, h.destination) != &to->peer)
		return;
	if (!answered && (h.frame.type != DBUSP_METHOD_CALL ||
			  h.frame.flags & DBUSP_NO_REPLY_EXPECTED))
		return;
	u = calloc(1, sizeof(*u));
	if (!u)
		return;
	u->answered = answered;
	u->serial = answered ? h.reply_serial : h.frame.serial;
	/* The sender is what the bus wrote: a unique name, or its own. */
	snprintf(u->caller, sizeof(u->caller), "%s", answered ? to->name : h.sender.s);
	snprintf(u->callee, sizeof(u->callee), "%s", answered ? h.sender.s : to->name);
	list_add_tail(&u->entry, &to->classic->undelivered);
}

static void answer(struct classic *k, const struct undelivered *u)
{
	struct peer *caller = route_find(k, dbusp_str(u->caller));
	struct peer *callee = route_find(k, dbusp_str(u->callee));
	struct cpeer *c = caller ? classic_peer(caller) : NULL;

	/* The wait for an answer was over when that was queued. */
	if (c && (u->answered || (callee && reply_take(c, callee, u->serial))))
		driver_error_serial(c, u->serial, DBUS_ERROR("LimitsExceeded"), "%s",
				    UNDELIVERED_TEXT);
	else if (caller && !c && callee)
		driver_error_native(k, callee, caller, u->serial, DBUS_ERROR("LimitsExceeded"),
				    UNDELIVERED_TEXT);
}

bool undelivered_answer(struct classic *k)
{
	struct undelivered *u;
	bool any = false;

	while ((u = list_first_entry_or_null(&k->undelivered, struct undelivered, entry))) {
		list_del(&u->entry);
		answer(k, u);
		free(u);
		any = true;
	}
	return any;
}
