// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"
#include "notify.h"

static void pack(struct core_bus *bus, const struct core_notice *notice,
		 struct core_parcel *ret_parcel)
{
	memset(ret_parcel, 0, sizeof(*ret_parcel));
	ret_parcel->bus = bus;
	ret_parcel->notice = notice;
	ret_parcel->seq = core_bus_next_seq(bus);
}

static bool is_name(const struct core_notice *notice)
{
	return notice->type == KDBUS_ITEM_NAME_ADD || notice->type == KDBUS_ITEM_NAME_REMOVE ||
	       notice->type == KDBUS_ITEM_NAME_CHANGE;
}

static bool may_see(const struct core_conn *to, const struct core_notice *notice)
{
	struct core_policy_view view;

	if (!is_name(notice))
		return true;
	core_conn_view(to, NULL, &view);
	return core_policy_may_see_name(&view, notice->name);
}

static void visit(struct core_match_set *set, void *data)
{
	struct core_conn *to = container_of(set, struct core_conn, matches);
	const struct core_parcel *parcel = data;

	if (may_see(to, parcel->notice) && core_deliver(parcel, to, 0, NULL))
		core_conn_lose(to);
}

void core_notify(struct core_bus *bus, const struct core_notice *notice)
{
	struct core_signal signal = { .type = notice->type };
	struct core_parcel parcel;

	pack(bus, notice, &parcel);
	if (is_name(notice)) {
		signal.note.old_id = notice->old_id.id;
		signal.note.new_id = notice->new_id.id;
		signal.note.name = notice->name;
	} else {
		signal.note.id = notice->new_id.id;
	}
	core_deliver_to_monitors(&parcel);
	core_match_find(&bus->matches, &signal, visit, &parcel);
}

void core_notify_id(struct core_conn *conn, u64 type)
{
	const struct core_notice notice = {
		.type = type,
		.new_id = { .id = conn->id, .flags = conn->flags },
	};

	if (conn->kind != CORE_KIND_MONITOR)
		core_notify(conn->bus, &notice);
}

void core_notify_name(struct core_bus *bus, const struct core_name_change *change)
{
	struct core_notice notice = { .type = change->type, .name = change->name };

	if (!change->type)
		return;
	if (change->old_holder) {
		notice.old_id.id = change->old_holder->id;
		notice.old_id.flags = change->old_flags;
	}
	if (change->new_holder) {
		notice.new_id.id = change->new_holder->id;
		notice.new_id.flags = change->new_flags;
	}
	core_notify(bus, &notice);
}

void core_notify_outcome(struct core_conn *to, enum core_reply_event event, u64 cookie)
{
	struct core_notice notice = { .dst_id = to->id, .cookie_reply = cookie };
	struct core_parcel parcel;

	if (event == CORE_REPLY_WAKE)
		to->bus->domain->ops->wake(to);
	if (event != CORE_REPLY_DEAD && event != CORE_REPLY_TIMEOUT)
		return;
	if (!core_conn_alive(to))
		return;
	notice.type = event == CORE_REPLY_DEAD ? KDBUS_ITEM_REPLY_DEAD : KDBUS_ITEM_REPLY_TIMEOUT;
	pack(to->bus, &notice, &parcel);
	core_deliver_to_monitors(&parcel);
	if (core_deliver(&parcel, to, 0, NULL))
		core_conn_lose(to);
}

void core_notify_dead(struct core_reply *slot)
{
	enum core_reply_event event;
	struct core_conn *to;
	u64 cookie;

	if (!slot || !slot->requester)
		return;
	to = container_of(slot->requester, struct core_conn, calls);
	cookie = slot->cookie;
	event = core_reply_kill(slot, -EPIPE);
	core_notify_outcome(to, event, cookie);
}

u64 core_bus_expire(struct core_deadlines *deadlines, u64 now)
{
	enum core_reply_event event;
	struct core_reply *slot;
	struct core_conn *to;
	void *answer;
	u64 cookie;

	while ((slot = core_deadlines_expired(deadlines, now)) != NULL) {
		to = container_of(slot->requester, struct core_conn, calls);
		cookie = slot->cookie;
		event = core_reply_expire(slot, &answer);
		if (answer)
			core_entry_end(to, answer);
		core_notify_outcome(to, event, cookie);
	}
	return core_deadlines_next(deadlines);
}
