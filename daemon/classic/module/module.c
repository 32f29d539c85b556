// SPDX-License-Identifier: LGPL-2.1-or-later
/* A bus of kdbus.ko behind the front-end: start, peers, end. Rules: module.h. */
#include "module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/classic/access.h"
#include "daemon/kernel.h"

/* ---- inlets ---- */

int inlet_open(struct module *m, struct inlet *inlet, enum inlet_kind kind,
	       const struct kconn_hello *hello)
{
	int r = kconn_open(&inlet->conn, m->node, hello);

	if (r < 0)
		return r;
	inlet->kind = kind;
	inlet->events = 0;
	inlet->swept = 0;
	if (kind != INLET_PEER)
		r = mirror_add(m, inlet->conn.id, CORE_KIND_POLICY_HOLDER, true);
	if (r == 0 && epoll_ctl(m->epoll, EPOLL_CTL_ADD, inlet->conn.fd,
				&(struct epoll_event){ .data.ptr = inlet }) < 0)
		r = -errno;
	if (r < 0)
		kconn_close(&inlet->conn);
	else
		inlet_watch(m, inlet, true);
	return r;
}

void inlet_watch(struct module *m, struct inlet *inlet, bool wanted)
{
	struct epoll_event ev = { .events = wanted ? EPOLLIN : 0, .data.ptr = inlet };

	if (inlet->conn.fd < 0 || ev.events == inlet->events)
		return;
	epoll_ctl(m->epoll, EPOLL_CTL_MOD, inlet->conn.fd, &ev);
	inlet->events = ev.events;
}

void inlet_close(struct module *m, struct inlet *inlet)
{
	if (inlet->conn.fd < 0)
		return;
	epoll_ctl(m->epoll, EPOLL_CTL_DEL, inlet->conn.fd, NULL);
	kconn_close(&inlet->conn);
}

/* ---- classic peers ---- */

static char *label_of(int sock, char *buf, size_t size)
{
	socklen_t len = (socklen_t)size - 1;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERSEC, buf, &len) < 0 || !len)
		return NULL;
	buf[len] = '\0';
	return buf;
}

/* An id that is not known is "unset": all ones, of 32 bits. */
static int hello_as(struct module *m, struct link_to_module *link, pid_t pid)
{
	const struct cpeer *c = link->peer;
	const u64 uid = (u32)(c->anonymous ? (uid_t)-1 : c->uid);
	const u64 gid = (u32)(c->anonymous ? (gid_t)-1 : c->gid);
	const struct kdbus_creds creds = { uid, uid, uid, uid, gid, gid, gid, gid };
	const struct kdbus_pids pids = { .pid = (u64)pid, .tid = (u64)pid };
	char label[512];
	const struct kconn_hello hello = { .flags = c->fds_ok ? KDBUS_HELLO_ACCEPT_FD : 0,
					   .creds = &creds,
					   .pids = &pids,
					   .label = label_of(c->fd, label, sizeof(label)) };

	return inlet_open(m, &link->inlet, INLET_PEER, &hello);
}

/* Signals to it by id, and by a name of its own. */
static int match_own(struct kconn *conn)
{
	const u64 by_name = KDBUS_DST_ID_NAME;
	int r = kconn_match(conn, KDBUS_ITEM_DST_ID, &conn->id, sizeof(conn->id));

	return r < 0 ? r : kconn_match(conn, KDBUS_ITEM_DST_ID, &by_name, sizeof(by_name));
}

static void link_free(struct module *m, struct link_to_module *link)
{
	inlet_close(m, &link->inlet);
	list_del(&link->held_entry);
	claim_drop_all(m, link);
	core_name_holder_deinit(&link->waiting);
	free(link);
}

static int join(struct cpeer *c)
{
	struct module *m = module_of(c->classic);
	struct link_to_module *link = calloc(1, sizeof(*link));
	int r;

	if (!link)
		return -ENOMEM;
	link->inlet.conn = KCONN_NONE;
	link->peer = c;
	INIT_LIST_HEAD(&link->held_entry);
	core_name_holder_init(&link->waiting, 0);
	link->waiting.max = U32_MAX;
	r = hello_as(m, link, c->pid);
	/* Its process may be over, and somebody else has its socket. */
	if (r == -EINVAL)
		r = hello_as(m, link, 0);
	if (r == 0)
		r = match_own(&link->inlet.conn);
	if (r == 0)
		r = mirror_link(m, &c->peer, link->inlet.conn.id, CORE_KIND_ORDINARY);
	if (r < 0) {
		link_free(m, link);
		return r;
	}
	c->link = link;
	c->waiting = &link->waiting;
	module_look(c->classic);
	return 0;
}

static void leave(struct cpeer *c)
{
	struct module *m = module_of(c->classic);

	if (!c->link)
		return;
	inlet_close(m, &c->link->inlet);
	/* Who follows as owner of its names is told by the bus: before it is said that it went. */
	module_look(c->classic);
	mirror_remove(m, &c->peer);
	link_free(m, c->link);
	c->link = NULL;
}

static void set_max_names(struct cpeer *c, unsigned int max)
{
}

/* ---- native peers ---- */

/* Whether a reply is awaited, the module finds out when it gets it. */
static bool is_called(const struct peer *to, const struct peer *from)
{
	return true;
}

static void show(struct peer *from, struct peer *to, struct cmsg *m)
{
}

static int socket_of(const struct peer *p)
{
	return -1;
}

static void renew(struct classic *k)
{
	struct module *m = module_of(k);
	struct remote *remote;

	list_for_each_entry(remote, &m->remotes, entry)
		access_end(&remote->peer);
	starters_renew(m);
}

/* What waits is in the module, which gives it to the owner. */
static void start_owned(struct activation *a, struct peer *owner)
{
}

static void waiter_free(struct waiter *w)
{
}

static void waiter_deliver(struct waiter *w, struct peer *owner)
{
}

/* ---- start and end ---- */

/* A round has begun, and looks. */
static void ready(struct source *source, u32 events)
{
}

static int open_ear(struct module *m)
{
	const struct kdbus_notify_id_change any = { .id = KDBUS_MATCH_ID_ANY };
	const struct kdbus_notify_name_change name = { .old_id = any, .new_id = any };
	struct kconn *ear = &m->ear.conn;
	int r = inlet_open(m, &m->ear, INLET_EAR, &(struct kconn_hello){ 0 });

	if (r == 0)
		r = kconn_match(ear, KDBUS_ITEM_ID_ADD, &any, sizeof(any));
	if (r == 0)
		r = kconn_match(ear, KDBUS_ITEM_ID_REMOVE, &any, sizeof(any));
	if (r == 0)
		r = kconn_match(ear, KDBUS_ITEM_NAME_ADD, &name, sizeof(name));
	if (r == 0)
		r = kconn_match(ear, KDBUS_ITEM_NAME_CHANGE, &name, sizeof(name));
	if (r == 0)
		r = kconn_match(ear, KDBUS_ITEM_NAME_REMOVE, &name, sizeof(name));
	return r;
}

static int open_listener(struct module *m)
{
	const u64 anybody = KDBUS_MATCH_ID_ANY;
	int r = inlet_open(m, &m->listener, INLET_LISTENER, &(struct kconn_hello){ 0 });

	return r < 0 ? r : kconn_match(&m->listener.conn, KDBUS_ITEM_ID, &anybody, sizeof(anybody));
}

static int open_standin(struct module *m)
{
	int r = kconn_open(&m->standin, m->node,
			   &(struct kconn_hello){ .flags = KDBUS_HELLO_ACCEPT_FD });

	return r < 0 ? r : mirror_add(m, m->standin.id, CORE_KIND_POLICY_HOLDER, true);
}

/* Ids count from the first that can be somebody else's: so the first client is ":1.0". */
static void number_peers(struct module *m)
{
	struct core_bus *bus = &m->classic->bus->core;

	bus->id = m->standin.id;
	memcpy(bus->id128, m->standin.bus_id, sizeof(bus->id128));
}

static int open_all(struct module *m)
{
	int r;

	m->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (m->epoll < 0)
		return -errno;
	m->source.ready = ready;
	r = daemon_watch(m->classic->daemon, m->epoll, EPOLLIN, &m->source);
	if (r == 0)
		r = open_ear(m);
	if (r == 0)
		r = open_listener(m);
	if (r == 0)
		r = open_standin(m);
	return r;
}

static int start(struct classic *k)
{
	struct module *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->classic = k;
	m->node = k->bus->kernel->node;
	m->epoll = -1;
	m->ear.conn = m->listener.conn = m->standin = KCONN_NONE;
	INIT_LIST_HEAD(&m->remotes);
	INIT_LIST_HEAD(&m->starters);
	INIT_LIST_HEAD(&m->ready_starters);
	INIT_LIST_HEAD(&m->held_back);
	core_names_init(&m->waiting);
	k->carrier_data = m;
	r = open_all(m);
	if (r < 0) {
		log_line("cannot serve D-Bus clients on %s: %s", m->node, strerror(-r));
		return r;
	}
	number_peers(m);
	/* Who was there before? */
	m->looking = true;
	mirror_renew(m);
	m->looking = false;
	starters_renew(m);
	return 0;
}

static void stop(struct classic *k)
{
	struct module *m = module_of(k);
	struct remote *remote, *next;

	if (!m)
		return;
	starters_free(m);
	inlet_close(m, &m->ear);
	inlet_close(m, &m->listener);
	kconn_close(&m->standin);
	list_for_each_entry_safe(remote, next, &m->remotes, entry)
		mirror_forget(m, remote);
	core_names_deinit(&m->waiting);
	if (m->epoll >= 0) {
		daemon_unwatch(k->daemon, m->epoll);
		close(m->epoll);
	}
	free(m->arrivals);
	free(m);
	k->carrier_data = NULL;
}

const struct carrier carrier_module = {
	.start = start,
	.stop = stop,
	.look = module_look,
	.settle = module_settle,
	.join = join,
	.leave = leave,
	.acquire = claim_name,
	.release = claim_release,
	.set_max_names = set_max_names,
	.each_claim = claims_each,
	.is_called = is_called,
	.send = module_send,
	.answer = module_answer,
	.show = show,
	.broadcast = module_broadcast,
	.creds = mirror_creds,
	.socket = socket_of,
	.renew = renew,
	.start_owned = start_owned,
	.start_ended = starter_ended,
	.waiter_free = waiter_free,
	.waiter_deliver = waiter_deliver,
	.waiter_fail = starter_fail,
};
