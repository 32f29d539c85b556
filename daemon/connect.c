// SPDX-License-Identifier: LGPL-2.1-or-later
/* HELLO and the end of a connection. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "classic/bridge.h"
#include "client.h"
#include "notify.h"

/* A client's reading of CLOCK_MONOTONIC that is older than this is of another time namespace. */
#define CLOCK_SLACK_NS 10000000000ULL

static int check_fakes(struct client *c, const struct core_hello *hello)
{
	u64 *ids, i;
	u32 id;

	if (!hello->fake)
		return 0;
	c->fake = true;
	if (hello->creds) {
		if (core_check_fake_creds(hello->creds) < 0)
			return -EINVAL;
		c->fake_creds = *hello->creds;
		ids = (u64 *)&c->fake_creds;
		for (i = 0; i < 8; i++) {
			if (ids[i] == 0xffffffff)
				continue;
			if ((i < 4 ? creds_unmap_uid : creds_unmap_gid)(c->creds, ids[i], &id) < 0)
				return -EINVAL;
			ids[i] = id;
		}
		c->fake_have |= KDBUS_ATTACH_CREDS;
	}
	if (hello->pids) {
		c->fake_pids = *hello->pids;
		c->fake_have |= KDBUS_ATTACH_PIDS;
	}
	if (hello->seclabel) {
		c->fake_label = strdup(hello->seclabel);
		if (!c->fake_label)
			return -ENOMEM;
		c->fake_have |= KDBUS_ATTACH_SECLABEL;
	}
	return 0;
}

static int take_hello(struct client *c, const struct kdbus_cmd_hello *cmd,
		      const struct core_args *args, struct core_hello *ret)
{
	const struct core_hello_facts facts = {
		.page_size = (u64)sysconf(_SC_PAGESIZE),
		.custom = c->ep->core->custom,
		.bus_owner = command_is_owner(c),
	};
	int r = core_check_hello(cmd, args, &facts, ret);

	if (r == 0)
		r = check_fakes(c, ret);
	if (r == 0 && ret->description) {
		c->description = strdup(ret->description);
		r = c->description ? 0 : -ENOMEM;
	}
	return r;
}

static unsigned int policy_flags(enum core_kind kind)
{
	return CORE_POLICY_ONE_NAME | (kind == CORE_KIND_ACTIVATOR ? CORE_POLICY_NO_WILDCARD : 0);
}

static int join_bus(struct client *c, struct core_hello *hello, const struct core_args *args)
{
	const struct core_opener opener = { .uid = c->creds->uid,
					    .cred = c->creds->core,
					    .cap_ipc_owner = c->creds->cap_ipc_owner };
	bool inbox = hello->kind == CORE_KIND_ACTIVATOR;
	bool policy = inbox || hello->kind == CORE_KIND_POLICY_HOLDER;
	u32 fake_uid = (u32)c->fake_creds.uid;
	struct core_connect connect = {
		.hello = hello,
		.opener = &opener,
		.fake_uid = hello->creds && c->fake_creds.uid != 0xffffffff ? &fake_uid : NULL,
		.deadlines = &c->ep->bus->core.deadlines,
		.sink = inbox ? NULL : &client_sink,
	};
	int r = 0;

	c->pool_size = hello->pool_size;
	if (!inbox)
		hello->pool_size = 0;
	if (inbox)
		r = activator_init(c);
	if (r == 0 && policy)
		r = command_policy(c, args, policy_flags(hello->kind), &connect.policy);
	if (r == 0)
		r = core_conn_hello(&c->conn, c->ep->core, &connect);
	if (r < 0) {
		core_policy_set_free(connect.policy);
		activator_clear(c);
	}
	return r;
}

/* The client's lane is there before it is known on the bus: ID_ADD may be for itself. */
static int open_lanes(struct client *c, int *ret_fd)
{
	int r;

	if (c->post->n_fds != 1)
		return -EINVAL;
	r = lane_channel_attach(&c->channel, c->post->fds[0]);
	if (r < 0)
		return r;
	/* Checked and mapped, it closes in no time. */
	close(c->post->fds[0]);
	c->post->fds[0] = -1;
	return lane_channel_make(&c->channel, LANE_RING_DEFAULT, ret_fd);
}

static bool same_clock(struct client *c, const struct ctl_hello *hello)
{
	u64 now = daemon_now(c->daemon);

	return hello->monotonic_ns <= now && now - hello->monotonic_ns < CLOCK_SLACK_NS;
}

static int welcome(struct client *c, int lane_fd)
{
	struct bus *bus = c->ep->bus;
	struct kdbus_cmd_hello *out = (struct kdbus_cmd_hello *)c->answer_arg;
	const struct ctl_welcome said = {
		.flags = c->direct ? CTL_WELCOME_DIRECT : 0,
		.conn_flags = c->conn.flags,
	};
	u64 items[CORE_HELLO_ITEMS_SIZE / sizeof(u64)];
	int page = fcntl(c->daemon->page_fd, F_DUPFD_CLOEXEC, 0), r;

	if (page < 0)
		return -errno;
	out->bus_flags = bus->core.flags;
	out->id = c->conn.id;
	memcpy(out->id128, bus->core.id128, sizeof(out->id128));
	core_hello_items_write(&bus->core.bloom, items, sizeof(items));
	r = answer_add(c, &said, sizeof(said));
	if (r == 0)
		r = answer_add(c, items, sizeof(items));
	if (r < 0) {
		close(page);
		return r;
	}
	answer_add_own_fd(c, lane_fd);
	answer_add_own_fd(c, page);
	return 0;
}

static void monitors_changed(struct client *c)
{
	struct daemon *d = c->daemon;
	struct bus *bus;
	bool any = false;

	if (c->conn.kind != CORE_KIND_MONITOR)
		return;
	list_for_each_entry(bus, &d->buses, entry)
		any |= !list_empty(&bus->core.monitors);
	lane_page_monitors_changed(&d->page, any);
}

/* Undo the lanes of a HELLO that failed: the handle may try again (ABI 1.4). */
static void close_lanes(struct client *c)
{
	int sock = fcntl(c->channel.sock, F_DUPFD_CLOEXEC, 0);

	daemon_unwatch(c->daemon, c->channel.sock);
	lane_channel_deinit(&c->channel);
	if (client_start_channel(c, sock) < 0)
		client_expel(c, "cannot be watched any more");
}

/* A HELLO that failed has said nothing about the handle. */
static void forget_hello(struct client *c)
{
	free(c->description);
	c->description = NULL;
	free(c->fake_label);
	c->fake_label = NULL;
	c->fake_have = 0;
	c->fake = false;
	c->direct = false;
}

int connect_hello(struct client *c, struct kdbus_cmd_hello *cmd, const struct core_args *args,
		  const struct ctl_hello *ctl)
{
	struct core_hello hello;
	int lane_fd = -1, r;

	if (!ctl)
		return -EINVAL;
	r = take_hello(c, cmd, args, &hello);
	if (r < 0) {
		forget_hello(c);
		return r;
	}
	r = open_lanes(c, &lane_fd);
	c->direct = ctl->features & CTL_FEATURE_DIRECT && same_clock(c, ctl) &&
		    hello.kind == CORE_KIND_ORDINARY && !hello.fake;
	if (r == 0)
		r = join_bus(c, &hello, args);
	if (r < 0) {
		if (lane_fd >= 0)
			close(lane_fd);
		close_lanes(c);
		forget_hello(c);
		return r;
	}
	c->connected = true;
	c->handle = CORE_HANDLE_CONNECTED;
	client_has_become(c);
	c->ep->bus->wanted |= c->conn.attach_recv & CREDS_LATE;
	c->ep->bus->n_native++;
	monitors_changed(c);
	bridge_native_joined(c);
	if (hello.kind == CORE_KIND_ACTIVATOR || hello.kind == CORE_KIND_POLICY_HOLDER) {
		lane_page_policy_changed(&c->daemon->page);
		names_changed(c->ep->bus, hello.name);
		intro_review_bus(c->ep->bus);
	}
	r = welcome(c, lane_fd);
	if (r < 0) {
		close(lane_fd);
		client_expel(c, "no memory for its welcome");
	}
	return r;
}

/* Its records are gone (ABI 1.8): what others may do has changed. */
static void policy_ended(struct client *c)
{
	if (c->conn.kind != CORE_KIND_ACTIVATOR && c->conn.kind != CORE_KIND_POLICY_HOLDER)
		return;
	lane_page_policy_changed(&c->daemon->page);
	intro_review_bus(container_of(c->conn.bus, struct bus, core));
}

/* From shut to dead, in the order of ABI 1.8; core_conn_shut() has been called. */
void client_finish_disconnect(struct client *c)
{
	struct core_conn *conn = &c->conn;

	death_forget(c);
	container_of(conn->bus, struct bus, core)->n_native--;
	peer_wake_askers(&c->peer);
	c->connected = false;
	death_collect(c);
	core_conn_unlink(conn);
	policy_ended(c);
	names_end(&c->peer);
	core_conn_discard(conn);
	core_conn_drop_calls(conn);
	core_conn_fail_owed(conn);
	links_tell_gone(&c->peer);
	death_begin(c);
	intro_drop_all(c);
	core_notify_id(conn, KDBUS_ITEM_ID_REMOVE);
	bridge_native_left(c);
	core_conn_unaccount(conn);
	conn->state = CORE_CONN_DEAD;
	monitors_changed(c);
	links_drop(&c->peer);
	client_drop_flights(c);
	activator_clear(c);
	core_conn_deinit(conn);
}

void client_disconnect(struct client *c)
{
	if (core_conn_shut(&c->conn, true) == 0)
		client_finish_disconnect(c);
	c->connected = false;
}
