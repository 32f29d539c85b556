// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"
#include "conn.h"
#include "handover.h"
#include "notify.h"
#include "recv.h"

static int init_inbox(struct core_conn *conn, u64 pool_size, const struct core_sink *sink)
{
	core_queue_init(&conn->inbox.queue);
	if (sink && !pool_size)
		return 0;
	if (pool_size > SIZE_MAX)
		return -ENOMEM;
	return core_inbox_init(&conn->inbox, pool_size);
}

static void init_identity(struct core_conn *conn, struct core_endpoint *ep,
			  const struct core_hello *hello, const struct core_opener *opener)
{
	conn->bus = ep->bus;
	conn->ep = ep;
	conn->flags = hello->flags;
	conn->kind = hello->kind;
	conn->uid = opener->uid;
	conn->cred = opener->cred;
	conn->privileged = core_policy_privileged(ep->custom, opener->cap_ipc_owner);
	conn->bus_owner = core_policy_bus_owner(ep->custom, opener->cap_ipc_owner,
						opener->cred.euid, ep->bus->uid);
	conn->attach_send = hello->attach_send;
	conn->attach_recv = hello->attach_recv;
}

int core_conn_init(struct core_conn *conn, struct core_endpoint *ep,
		   const struct core_hello *hello, const struct core_opener *opener,
		   struct core_deadlines *deadlines, const struct core_sink *sink)
{
	int r;

	memset(conn, 0, sizeof(*conn));
	r = init_inbox(conn, hello->pool_size, sink);
	if (r)
		return r;
	init_identity(conn, ep, hello, opener);
	conn->sink = sink;
	conn->id = core_domain_new_id(ep->bus->domain);
	core_name_holder_init(&conn->names, conn->id);
	core_match_set_init(&conn->matches, &ep->bus->matches);
	core_policy_owner_init(&conn->policy);
	core_requester_init(&conn->calls, deadlines);
	core_replier_init(&conn->owed);
	INIT_LIST_HEAD(&conn->bus_entry);
	INIT_LIST_HEAD(&conn->ep_entry);
	return 0;
}

void core_conn_deinit(struct core_conn *conn)
{
	if (!conn || !conn->bus)
		return;
	BUG_ON(conn->state == CORE_CONN_ACTIVE || conn->state == CORE_CONN_DISCONNECTING);
	core_name_holder_deinit(&conn->names);
	core_inbox_deinit(&conn->inbox);
	conn->bus = NULL;
}

int core_conn_account(struct core_conn *conn, const u32 *fake_uid)
{
	/* not set, or not faked at all: the real one (§17.1 row 11) */
	bool fake = conn->privileged && fake_uid && *fake_uid != U32_MAX;
	struct core_user *user;
	int r;

	if (conn->ep->custom) {
		user = core_user_ref(conn->ep->user);
		if (!user)
			return -ESHUTDOWN;
	} else {
		r = core_users_get(&conn->bus->domain->users, fake ? *fake_uid : conn->uid, &user);
		if (r)
			return r;
	}
	r = core_user_add_conn(user);
	if (r) {
		core_user_unref(user);
		return r;
	}
	conn->user = user;
	return 0;
}

void core_conn_unaccount(struct core_conn *conn)
{
	if (!conn->user)
		return;
	core_user_remove_conn(conn->user);
	core_user_unref(conn->user);
	conn->user = NULL;
}

int core_conn_link(struct core_conn *conn)
{
	struct rb_node **link = &conn->bus->conns.rb_node, *parent = NULL;

	if (conn->ep->dead || conn->bus->dead)
		return -ESHUTDOWN;
	while (*link) {
		parent = *link;
		core_step();
		if (conn->id < rb_entry(parent, struct core_conn, node)->id)
			link = &parent->rb_left;
		else
			link = &parent->rb_right;
	}
	rb_link_node(&conn->node, parent, link);
	rb_insert_color(&conn->node, &conn->bus->conns);
	list_add_tail(&conn->bus_entry, conn->kind == CORE_KIND_MONITOR ? &conn->bus->monitors :
									    &conn->bus->all);
	list_add_tail(&conn->ep_entry, &conn->ep->conns);
	conn->state = CORE_CONN_ACTIVE;
	return 0;
}

/*
 * Everything of an activator or policy holder that can fail. The name is taken, and not
 * told yet: @ret_change.
 */
static int install(struct core_conn *conn, const struct core_connect *connect,
		   struct core_name_change *ret_change)
{
	struct core_name_change undo;
	int r;

	memset(ret_change, 0, sizeof(*ret_change));
	if (conn->kind == CORE_KIND_ACTIVATOR) {
		r = core_names_attach_activator(&conn->bus->names, &conn->names,
						connect->hello->name, ret_change);
		if (r)
			return r;
	}
	if (!connect->policy)
		return 0;
	r = core_policy_replace(&conn->bus->policy, &conn->policy, connect->policy);
	if (!r)
		return 0;
	core_name_change_done(ret_change);
	if (core_names_release_next(&conn->bus->names, &conn->names, &undo))
		core_name_change_done(&undo);
	return r;
}

int core_conn_hello(struct core_conn *conn, struct core_endpoint *ep,
		    const struct core_connect *connect)
{
	struct core_name_change change;
	int r;

	r = core_conn_init(conn, ep, connect->hello, connect->opener, connect->deadlines,
			   connect->sink);
	if (r)
		return r;
	r = core_conn_account(conn, connect->fake_uid);
	if (r)
		goto deinit;
	if (ep->dead || ep->bus->dead) {
		r = -ESHUTDOWN;
		goto unaccount;
	}
	r = install(conn, connect, &change);
	if (r)
		goto unaccount;
	r = core_conn_link(conn);
	BUG_ON(r);
	core_notify_id(conn, KDBUS_ITEM_ID_ADD);
	core_conn_apply(conn->bus, &change);
	return 0;

unaccount:
	core_conn_unaccount(conn);
deinit:
	core_conn_deinit(conn);
	return r;
}

void core_conn_view(const struct core_conn *conn, const struct core_cred *cred,
		    struct core_policy_view *ret_view)
{
	ret_view->bus = &conn->bus->policy;
	ret_view->endpoint = conn->ep->custom ? &conn->ep->policy : NULL;
	ret_view->bus_owner = conn->bus_owner;
	ret_view->cred = cred ? cred : &conn->cred;
}

bool core_conn_may_talk(const struct core_conn *x, const struct core_cred *cred,
			const struct core_conn *y)
{
	struct core_policy_view view;

	core_conn_view(x, cred, &view);
	return core_policy_may_talk(&view, y->uid, &y->names);
}

int core_conn_update(struct core_conn *conn, const struct core_update *update,
		     struct core_policy_set *set)
{
	int r;

	if (update->set_policy) {
		r = core_policy_replace(&conn->bus->policy, &conn->policy, set);
		if (r)
			return r;
	}
	if (update->set_send)
		WRITE_ONCE(conn->attach_send, update->attach_send);
	if (update->set_recv)
		WRITE_ONCE(conn->attach_recv, update->attach_recv);
	return 0;
}

void core_conn_apply(struct core_bus *bus, struct core_name_change *change)
{
	if (change->move_from)
		core_hand_over(container_of(change->move_from, struct core_conn, names),
			       container_of(change->move_to, struct core_conn, names),
			       change->name_id);
	core_notify_name(bus, change);
	core_name_change_done(change);
}

int core_conn_acquire(struct core_conn *conn, const struct core_cred *cred, const char *name,
		      u64 flags, u64 *ret_flags)
{
	struct core_policy_view view;
	struct core_name_change change;
	int r;

	if (!core_conn_alive(conn))
		return -ECONNRESET;
	core_conn_view(conn, cred, &view);
	if (!core_policy_may_own(&view, name))
		return -EPERM;
	r = core_names_acquire(&conn->bus->names, &conn->names, name, flags, ret_flags, &change);
	if (!r)
		core_conn_apply(conn->bus, &change);
	return r;
}

int core_conn_release(struct core_conn *conn, const char *name)
{
	struct core_name_change change;
	int r;

	if (!core_conn_alive(conn))
		return -ECONNRESET;
	r = core_names_release(&conn->bus->names, &conn->names, name, &change);
	if (!r)
		core_conn_apply(conn->bus, &change);
	return r;
}

int core_conn_shut(struct core_conn *conn, bool force)
{
	int r;

	if (!core_conn_alive(conn))
		return -ECONNRESET;
	if (!force && conn->sink && conn->sink->busy(conn))
		return -EBUSY;
	r = core_inbox_shut(&conn->inbox, force);
	if (r)
		return r;
	conn->state = CORE_CONN_DISCONNECTING;
	conn->bus->domain->ops->wake(conn);
	return 0;
}

void core_conn_unlink(struct core_conn *conn)
{
	core_policy_clear(&conn->bus->policy, &conn->policy);
	core_match_clear(&conn->matches);
	rb_erase(&conn->node, &conn->bus->conns);
	list_del_init(&conn->bus_entry);
	list_del_init(&conn->ep_entry);
}

void core_conn_release_all(struct core_conn *conn)
{
	struct core_name_change change;

	while (core_names_release_next(&conn->bus->names, &conn->names, &change))
		core_conn_apply(conn->bus, &change);
}

void core_conn_discard(struct core_conn *conn)
{
	struct core_received received;
	struct core_entry *entry;

	while ((entry = core_inbox_first(&conn->inbox)) != NULL)
		core_recv_take(conn, entry, KDBUS_RECV_DROP, &received);
}

void core_conn_drop_calls(struct core_conn *conn)
{
	struct core_reply *slot;
	void *answer;

	while ((slot = core_requester_first(&conn->calls)) != NULL) {
		core_reply_orphan(slot, &answer);
		if (answer)
			core_entry_end(conn, answer);
	}
}

void core_conn_fail_owed(struct core_conn *conn)
{
	struct core_reply *slot;

	while ((slot = core_replier_first(&conn->owed)) != NULL)
		core_notify_dead(slot);
}

static void disconnect(struct core_conn *conn)
{
	core_conn_unlink(conn);
	core_conn_release_all(conn);
	core_conn_discard(conn);
	core_conn_drop_calls(conn);
	core_conn_fail_owed(conn);
	core_notify_id(conn, KDBUS_ITEM_ID_REMOVE);
	core_conn_unaccount(conn);
	conn->state = CORE_CONN_DEAD;
}

void core_conn_disconnect(struct core_conn *conn)
{
	if (!core_conn_shut(conn, true))
		disconnect(conn);
}

int core_conn_byebye(struct core_conn *conn)
{
	int r;

	r = core_conn_shut(conn, false);
	if (!r)
		disconnect(conn);
	return r;
}
