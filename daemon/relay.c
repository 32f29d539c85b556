// SPDX-License-Identifier: LGPL-2.1-or-later
/* Messages that go through the daemon: taken from a lane, checked, routed, answered. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "classic/bridge.h"
#include "lane/bulk.h"
#include "client.h"
#include "send.h"

/* ---- routing (ABI 7.4 to 7.9): core's steps, but for slots, which native callers keep ---- */

static void visit(struct core_match_set *set, void *data)
{
	struct core_conn *to = container_of(set, struct core_conn, matches);
	const struct core_parcel *parcel = data;

	if (core_conn_may_talk(to, NULL, parcel->from) && core_deliver(parcel, to, 0, NULL) < 0)
		core_conn_lose(to);
}

static int route_broadcast(struct core_parcel *parcel)
{
	struct core_signal signal;

	core_deliver_to_monitors(parcel);
	core_send_signal(parcel, &signal);
	core_match_find(&parcel->bus->matches, &signal, visit, parcel);
	bridge_native_broadcast(parcel->host);
	return 0;
}

static int route_signal(struct core_parcel *parcel, const struct core_dst *dst)
{
	core_deliver_to_monitors(parcel);
	/*
	 * What goes wrong from here on is neither told nor counted (ABI 7.6). Of D-Bus a signal for
	 * one needs no match.
	 */
	if (peer_of(dst->conn)->kind == PEER_CLASSIC || core_send_wants(parcel, dst->conn))
		core_deliver(parcel, dst->conn, dst->name_id, NULL);
	return 0;
}

/* A caller that waits in SEND learns why its reply did not come (ABI 7.8). */
static void refuse_reply(struct peer *to, const struct core_parcel *parcel, int error)
{
	const struct ctl_refused body = { .peer = parcel->from->id,
					  .cookie = parcel->msg->msg->cookie_reply,
					  .error = error == -ECOMM ? EREMOTEIO : -error,
					  .flags = CTL_REFUSED_SYNC };
	const struct lane_put put = { .type = CTL_REC_REFUSED,
				      .flags = LANE_F_REPLY,
				      .length = sizeof(body) };

	if (to->conn.sink == &client_sink)
		client_put(native_peer(to), &put, &body);
}

static bool waits_for(const struct peer *to, const struct peer *from)
{
	if (link_exists(to, from))
		return true;
	return to->kind == PEER_NATIVE && from->kind == PEER_NATIVE &&
	       intro_exists(native_peer(to), native_peer(from));
}

/* Whoever never called the sender does not wait for its reply; the slot itself is with him. */
static int route_reply(struct core_parcel *parcel, const struct core_dst *dst)
{
	const struct relay *relay = parcel->host;
	struct peer *to = peer_of(dst->conn), *from = peer_of(parcel->from);
	int r;

	if (!waits_for(to, from))
		return -EBADSLT;
	core_deliver_to_monitors(parcel);
	r = core_deliver(parcel, dst->conn, dst->name_id, NULL);
	if (r < 0 && relay->sync)
		refuse_reply(to, parcel, r);
	return r;
}

static int route_plain(struct core_parcel *parcel, const struct core_dst *dst)
{
	struct peer *from = peer_of(parcel->from);
	int r;

	if (!core_conn_may_talk(parcel->from, from->creds ? &from->creds->core : NULL, dst->conn))
		return -EPERM;
	core_deliver_to_monitors(parcel);
	r = core_deliver(parcel, dst->conn, dst->name_id, NULL);
	if (r == 0 && parcel->msg->msg->flags & KDBUS_MSG_EXPECT_REPLY)
		r = link_call(from, peer_of(dst->conn));
	return r;
}

int relay_route(struct relay *relay, struct core_dst *ret_dst)
{
	struct core_bus *bus = relay->from->conn.bus;
	const struct core_msg *m = &relay->wire.m;
	struct core_parcel parcel = {
		.bus = bus,
		.from = &relay->from->conn,
		.msg = m,
		.seq = core_bus_next_seq(bus),
		.priority = m->msg->priority,
		.n_fds = m->n_fds,
		.host = relay,
	};
	int r;

	if (m->route == CORE_ROUTE_BROADCAST)
		return route_broadcast(&parcel);
	r = core_send_resolve(bus, m, ret_dst);
	if (r < 0)
		return r;
	relay->name_id = ret_dst->name_id;
	if (m->route == CORE_ROUTE_REPLY)
		return route_reply(&parcel, ret_dst);
	if (m->msg->flags & KDBUS_MSG_SIGNAL)
		return route_signal(&parcel, ret_dst);
	return route_plain(&parcel, ret_dst);
}

/* ---- records ---- */

static void verdict(struct client *c, const struct ctl_send *head, int error,
		    const struct core_dst *dst)
{
	struct client *to = dst->conn ? native_of(dst->conn) : NULL;
	const struct ctl_verdict body = {
		.tag = head->tag,
		.error = error,
		.flags = error == 0 && to && intro_may(c, to) ? CTL_VERDICT_DIRECT : 0,
		.dst_id = dst->conn ? dst->conn->id : 0,
		.name_id = dst->name_id,
	};
	/* Its receiver waits for nothing else: it passes what waits in front of the lane. */
	const struct lane_put put = { .type = CTL_REC_VERDICT,
				      .flags = LANE_F_REPLY,
				      .length = sizeof(body) };

	client_put(c, &put, &body);
}

static void close_files(struct client *c, struct relay *relay)
{
	unsigned int i;

	for (i = 0; i < relay->n_fds; i++)
		reaper_close(c->daemon->reaper, relay->fds[i]);
}

/* Check the message at @body and send it on. Returns its errno, or -EPROTO to break the lane. */
static int parse_and_route(struct client *c, const struct lane_env *env, unsigned char *body,
			   size_t size, const void *bulk, struct relay *relay,
			   struct core_dst *ret_dst)
{
	int r = wire_parse(body, size, bulk ? (ssize_t)env->bulk_size : -1, c->conn.bus->bloom.size,
			   env->fds, env->memfds, &relay->wire);

	if (r < 0)
		return r;
	relay->payload = bulk ? bulk : body + relay->wire.layout.payload_offset;
	r = wire_check_fds(&relay->wire, relay->fds);
	return r < 0 ? r : relay_route(relay, ret_dst);
}

static int take_send(struct client *c, const struct lane_env *env)
{
	struct daemon *d = c->daemon;
	struct relay relay = { .from = &c->peer, .stamp = env->stamp };
	struct core_dst dst = { 0 };
	struct ctl_send head;
	const void *bulk = NULL;
	bool start;
	int r;

	if (env->length < sizeof(head) + sizeof(struct kdbus_msg))
		return -EPROTO;
	r = lane_take(&c->channel, d->record);
	if (r == 0)
		r = lane_take_fds(&c->channel, env, relay.fds);
	if (r < 0)
		return -EPROTO;
	relay.n_fds = (unsigned int)env->fds + env->memfds;
	if (env->bulk && lane_bulk_data(&c->channel, env, &bulk) < 0) {
		close_files(c, &relay);
		return -EPROTO;
	}
	memcpy(&head, d->record, sizeof(head));
	relay.sync = head.flags & CTL_SEND_SYNC;
	r = parse_and_route(c, env, d->record + sizeof(head), env->length - sizeof(head), bulk,
			    &relay, &dst);
	start = r == -ESRCH && !(head.flags & CTL_SEND_AGAIN);
	if (start)
		r = bridge_start_service(&relay, &dst);
	if (bulk)
		lane_bulk_return(&c->channel, env->bulk, env->bulk_use);
	close_files(c, &relay);
	if (r == -EPROTO)
		return r;
	if (!(head.flags & CTL_SEND_AGAIN) && (r < 0 || relay.wire.m.route != CORE_ROUTE_BROADCAST))
		verdict(c, &head, r, &dst);
	if (start && r == 0)
		bridge_begin_starts(container_of(c->conn.bus, struct bus, core));
	return 0;
}

/* "Your call will not be answered", from a replier to a caller that is not introduced to it */
static int take_refused(struct client *c, const struct lane_env *env)
{
	struct lane_put put = { .type = CTL_REC_REFUSED, .length = sizeof(struct ctl_refused) };
	struct ctl_refused body;
	struct core_conn *to;

	if (env->length != sizeof(body) || lane_take(&c->channel, &body) < 0)
		return -EPROTO;
	if (body.flags & CTL_REFUSED_SYNC)
		put.flags = LANE_F_REPLY;
	to = core_bus_find_conn(c->conn.bus, body.peer);
	if (!to || to->sink != &client_sink || !link_exists(peer_of(to), &c->peer))
		return 0;
	body.peer = c->conn.id;
	client_put_soft(client_of(to), &put, &body);
	return 0;
}

int relay_record(struct client *c, const struct lane_env *env)
{
	int r = -EPROTO;

	if (c->conn.kind == CORE_KIND_ORDINARY && env->type == CTL_REC_SEND)
		r = take_send(c, env);
	else if (c->conn.kind == CORE_KIND_ORDINARY && env->type == CTL_REC_REFUSED)
		r = take_refused(c, env);
	if (r == -EPROTO)
		client_expel(c, "it sent a malformed record (type %u, %u bytes)", env->type,
			     env->length);
	return r;
}
