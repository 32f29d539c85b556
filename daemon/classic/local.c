// SPDX-License-Identifier: LGPL-2.1-or-later
/* The bus of this daemon, as the front-end reaches it. Rules: carrier.h; messages: bridge.h. */
#include <errno.h>

#include "access.h"
#include "activate.h"
#include "bridge.h"
#include "carrier.h"
#include "driver.h"
#include "notify.h"
#include "roster.h"

/* ---- coming and going ---- */

static const struct core_hello hello = {
	.flags = KDBUS_HELLO_ACCEPT_FD,
	.kind = CORE_KIND_ORDINARY,
	.attach_send = _KDBUS_ATTACH_ALL,
};

static int join(struct cpeer *c)
{
	struct core_bus *bus = &c->classic->bus->core;
	const struct core_opener opener = {
		.uid = c->uid,
		.cred = { .euid = c->uid, .egid = c->gid },
	};
	int r = core_conn_init(&c->conn, &bus->def, &hello, &opener, &bus->deadlines,
			       &classic_sink);

	if (r < 0)
		return r;
	if (c->creds)
		c->conn.cred = c->creds->core;
	/* The limits on connections are those of the configuration. */
	r = core_users_get(&bus->domain->users, c->uid, &c->conn.user);
	if (r == 0)
		r = core_conn_link(&c->conn);
	if (r < 0) {
		core_user_unref(c->conn.user);
		c->conn.user = NULL;
		core_conn_deinit(&c->conn);
		return r;
	}
	core_notify_id(&c->conn, KDBUS_ITEM_ID_ADD);
	return 0;
}

/* In the order of ABI 1.8, as for native ones */
static void leave(struct cpeer *c)
{
	struct core_conn *conn = &c->conn;

	if (core_conn_shut(conn, true) < 0)
		return;
	core_conn_unlink(conn);
	names_end(&c->peer);
	core_conn_discard(conn);
	core_conn_drop_calls(conn);
	core_conn_fail_owed(conn);
	links_tell_gone(&c->peer);
	core_notify_id(conn, KDBUS_ITEM_ID_REMOVE);
	driver_owner_changed(c->classic, c->name, &c->peer, NULL);
	replies_end(c->classic, &c->peer);
	core_user_unref(conn->user);
	conn->user = NULL;
	conn->state = CORE_CONN_DEAD;
	links_drop(&c->peer);
	core_conn_deinit(conn);
}

/* ---- names ---- */

static int acquire(struct cpeer *c, const char *name, uint64_t flags, uint64_t *ret_flags)
{
	u64 result = 0;
	int r = name_acquire(&c->peer, name, flags, &result);

	*ret_flags = result;
	return r;
}

static int release(struct cpeer *c, const char *name)
{
	return name_release(&c->peer, name);
}

static void set_max_names(struct cpeer *c, unsigned int max)
{
	c->conn.names.max = max;
}

static void each_claim(struct classic *k, const char *name,
		       void (*visit)(const char *unique, void *data), void *data)
{
	struct core_name *n = core_names_find(&k->bus->core.names, name);
	const struct core_name_record *record;
	char unique[CLASSIC_UNIQUE_MAX];
	struct peer *p;

	if (!n)
		return;
	core_name_for_each_queued(record, n) {
		p = peer_of(container_of(record->holder, struct core_conn, names));
		visit(unique_name(p, unique).s, data);
	}
}

/* ---- peers ---- */

static struct creds *creds(struct peer *p)
{
	return p->creds;
}

static int socket_of(const struct peer *p)
{
	return client_of(&p->conn)->channel.sock;
}

/* What the policy says about native peers is found out when it is asked for. */
static void renew(struct classic *k)
{
	struct client *native;

	list_for_each_entry(native, &k->daemon->clients, entry)
		access_end(&native->peer);
}

const struct carrier carrier_local = {
	.join = join,
	.leave = leave,
	.acquire = acquire,
	.release = release,
	.set_max_names = set_max_names,
	.each_claim = each_claim,
	.is_called = link_exists,
	.send = bridge_send,
	.answer = bridge_answer,
	.show = bridge_show_monitors,
	.broadcast = bridge_broadcast,
	.creds = creds,
	.socket = socket_of,
	.renew = renew,
	.start_owned = standin_move,
	.start_ended = standin_end,
	.waiter_free = native_wait_free,
	.waiter_deliver = native_wait_deliver,
	.waiter_fail = native_wait_fail,
};
