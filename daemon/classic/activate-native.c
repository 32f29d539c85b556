// SPDX-License-Identifier: LGPL-2.1-or-later
/* Services that native peers start. Rules: activate.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "activations.h"
#include "bridge.h"
#include "driver.h"

/**
 * struct native_wait - a message of a native peer, until the name has an owner
 * @call:	it asks for a reply
 * @sync:	its sender waits for that in SEND
 * @cookie:	of the message
 * @stamp:	the sender's own
 * @fds, @n_fds: descriptors, FDS item first
 * @n_memfds:	how many of them are payload
 * @size:	bytes of @record: the message in record form, its payload area behind it
 */
struct native_wait {
	bool call;
	bool sync;
	u64 cookie;
	u64 stamp;
	int fds[LANE_SOCK_FDS_MAX];
	unsigned int n_fds;
	unsigned int n_memfds;
	size_t size;
	u64 record[];
};

static struct native_wait *message_of(const struct waiter *w)
{
	return w->native;
}

/* ---- the stand-in ---- */

static int init_standin(struct peer *p, struct bus *bus)
{
	static const struct core_hello hello = { .kind = CORE_KIND_ORDINARY };
	const struct core_opener opener = { .uid = geteuid() };
	int r;

	p->kind = PEER_CLASSIC;
	p->daemon = bus->daemon;
	p->creds = creds_ref(bus->creator);
	p->callers = RB_ROOT;
	INIT_LIST_HEAD(&p->calling);
	INIT_LIST_HEAD(&p->owed);
	INIT_LIST_HEAD(&p->askers);
	r = core_conn_init(&p->conn, bus->def.core, &hello, &opener, &bus->core.deadlines,
			   &classic_sink);
	return r < 0 ? r : core_users_get(&bus->core.domain->users, opener.uid, &p->conn.user);
}

static void standin_free(struct peer *p)
{
	links_drop(p);
	core_user_unref(p->conn.user);
	core_conn_deinit(&p->conn);
	creds_unref(p->creds);
	free(p);
}

static int standin_get(struct activation *a)
{
	struct peer *p;
	int r;

	if (a->standin)
		return 0;
	p = calloc(1, sizeof(*p));
	r = p ? init_standin(p, a->classic->bus) : -ENOMEM;
	if (r < 0 && p)
		standin_free(p);
	if (r == 0)
		a->standin = p;
	return r;
}

void standin_move(struct activation *a, struct peer *owner)
{
	if (!a->standin)
		return;
	links_note_move(a->standin, owner, a->standin->conn.id);
	links_settle_move(true);
}

/* Calls that are still its own end as those to a peer that has gone. */
void standin_end(struct activation *a)
{
	if (!a->standin)
		return;
	links_tell_gone(a->standin);
	/* Who was told that the name leads to it shall ask again. */
	names_changed(a->classic->bus, a->name);
	standin_free(a->standin);
	a->standin = NULL;
}

/* ---- what waits ---- */

void native_wait_free(struct waiter *w)
{
	struct native_wait *n = w->native;
	unsigned int i;

	for (i = 0; i < n->n_fds; i++)
		reaper_close(w->from->daemon->reaper, n->fds[i]);
	account_drop(w->from->account, w->held);
	free(n);
}

static int copy_fds(struct reaper *reaper, struct native_wait *n, const struct relay *relay)
{
	int fd;

	for (; n->n_fds < relay->n_fds; n->n_fds++) {
		fd = reaper_dup(reaper, relay->fds[n->n_fds]);
		if (fd < 0)
			return fd;
		n->fds[n->n_fds] = fd;
	}
	return 0;
}

static size_t record_size(const struct relay *relay)
{
	return relay->wire.layout.payload_offset + relay->wire.layout.payload_size;
}

static void fill(struct native_wait *n, const struct relay *relay)
{
	const struct kdbus_msg *msg = relay->wire.m.msg;

	n->call = msg->flags & KDBUS_MSG_EXPECT_REPLY;
	n->sync = relay->sync;
	n->cookie = msg->cookie;
	n->stamp = relay->stamp;
	n->n_memfds = relay->wire.m.n_memfds;
	n->size = record_size(relay);
	wire_image(&relay->wire, n->record);
	if (relay->wire.layout.payload_size)
		memcpy((char *)n->record + relay->wire.layout.payload_offset, relay->payload,
		       relay->wire.layout.payload_size);
}

/* Counted in, here and with the account of its uid. */
static int make_waiter(const struct relay *relay, struct waiter **ret)
{
	struct waiter *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->from = relay->from;
	w->held = sizeof(*w) + sizeof(struct native_wait) + record_size(relay);
	w->held_fds = relay->n_fds;
	w->native = calloc(1, sizeof(struct native_wait) + record_size(relay));
	r = w->native ? account_hold(relay->from->account, w->held) : -ENOMEM;
	if (r < 0) {
		free(w->native);
		free(w);
		return r;
	}
	fill(w->native, relay);
	r = copy_fds(w->from->daemon->reaper, w->native, relay);
	if (r < 0) {
		native_wait_free(w);
		free(w);
		return r;
	}
	*ret = w;
	return 0;
}

static int hold(struct activation *a, const struct relay *relay)
{
	struct waiter *w = NULL;
	int r = standin_get(a);

	if (r == 0)
		r = make_waiter(relay, &w);
	if (r)
		return r;
	r = message_of(w)->call ? link_call(relay->from, a->standin) : 0;
	if (r < 0) {
		native_wait_free(w);
		free(w);
		return r;
	}
	waiter_add(a, w, relay->from);
	return 0;
}

/* ---- asking ---- */

static bool may_ask(const struct relay *relay)
{
	const struct core_msg *m = &relay->wire.m;

	return m->msg && m->dst_name && m->msg->dst_id == KDBUS_DST_ID_NAME &&
	       m->route != CORE_ROUTE_REPLY && !(m->msg->flags & KDBUS_MSG_NO_AUTO_START);
}

static bool has_room(const struct classic *k, const struct relay *relay)
{
	size_t size = sizeof(struct waiter) + sizeof(struct native_wait) + record_size(relay);
	long max;

	return !waiter_limit(k, relay->from, size, relay->n_fds, &max);
}

int activate_for_native(const struct relay *relay, struct core_dst *ret_dst)
{
	struct classic *k = container_of(relay->from->conn.bus, struct bus, core)->classic;
	const struct service_file *service;
	struct activation *a;
	int r;

	service = may_ask(relay) ? services_find(k->services, relay->wire.m.dst_name) : NULL;
	if (!service)
		return -ESRCH;
	r = bridge_may_start(k, relay);
	if (r < 0)
		return r;
	if (!has_room(k, relay))
		return -ENOBUFS;
	r = activation_get(k, service, &a);
	if (r == 0)
		r = hold(a, relay);
	else
		return r == -EMLINK ? -ENOBUFS : r;
	if (r < 0) {
		if (list_empty(&a->waiters))
			activation_free(a);
		return r;
	}
	*ret_dst = (struct core_dst){ .conn = &a->standin->conn, .name_id = a->standin->conn.id };
	return 0;
}

/* ---- the end ---- */

/* A call that the owner does not get ends as if he had dropped it unread. */
static void refuse(struct waiter *w, const struct peer *owner)
{
	const struct native_wait *n = w->native;
	const struct ctl_refused body = { .peer = owner->conn.id,
					  .cookie = n->cookie,
					  .error = EPIPE,
					  .flags = n->sync ? CTL_REFUSED_SYNC : 0 };
	const struct lane_put put = { .type = CTL_REC_REFUSED,
				      .flags = n->sync ? LANE_F_REPLY : 0,
				      .length = sizeof(body) };

	if (n->call)
		client_put(native_peer(w->from), &put, &body);
}

void native_wait_deliver(struct waiter *w, struct peer *owner)
{
	struct native_wait *n = w->native;
	struct core_bus *bus = w->from->conn.bus;
	struct relay relay = { .from = w->from, .stamp = n->stamp, .sync = n->sync };
	struct core_dst dst = { 0 };
	int r;

	if (!core_conn_alive(&w->from->conn))
		return;
	relay.n_fds = n->n_fds;
	memcpy(relay.fds, n->fds, n->n_fds * sizeof(int));
	r = wire_parse(n->record, n->size, -1, bus->bloom.size, n->n_fds - n->n_memfds, n->n_memfds,
		       &relay.wire);
	relay.payload = (char *)n->record + relay.wire.layout.payload_offset;
	if (r == 0)
		r = relay_route(&relay, &dst);
	if (r == 0)
		return;
	log_client(native_peer(w->from), "what it sent to a service is not delivered: %s",
		   strerror(-r));
	refuse(w, owner);
}

void native_wait_fail(struct activation *a, struct waiter *w, const char *error, const char *text)
{
	if (message_of(w)->call && core_conn_alive(&w->from->conn))
		driver_error_native(a->classic, a->standin, w->from,
				    (uint32_t)message_of(w)->cookie, error, text);
}
