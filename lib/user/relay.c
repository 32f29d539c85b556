// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sending through the daemon, and its verdict. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "lane/bulk.h"
#include "user.h"

/* Half of what is kept for replies and the like is used up. */
#define JAM_RECORDS (LANE_MSGS_MAX + LANE_MSGS_REPLIES / 2)
#define JAM_PLUCKED (LANE_PLUCK_MAX / 2)

/* May a reply find no room in the lane to us any more? */
bool relay_jammed(struct lane_channel *ch)
{
	u32 limit, pos = ch->read, n = ch->n_plucked, bulk = lane_bulk_held(ch);
	struct lane_env env;

	if (lane_snapshot(ch, &limit) < 0)
		return false;
	if (n > JAM_PLUCKED || limit - ch->read > ch->peer_ring / 8 * 7)
		return true;
	while (lane_scan(ch, limit, &pos, &env) == 0) {
		lane_scan_next(&pos, &env);
		bulk += env.bulk != 0;
		n++;
	}
	/* The daemon itself says if a reply waits for a large buffer, and needs none otherwise. */
	return n >= JAM_RECORDS || (bulk >= LANE_BULK_MAX && !(ch->flags & LANE_PEER_IS_DAEMON));
}

/*
 * With a full pool nothing leaves the lane of the daemon, or of @p, but what is picked out of it,
 * and what ends a wait finds no room in it one day: before that the program has to free memory, or
 * nothing would ever go on.
 */
int relay_check_way(struct user *u, struct peer *p)
{
	if (!u->connected || !relay_jammed(&p->channel))
		return 0;
	return user_pump(u, LANE_LOOK_POLL) == -EXFULL ? -EXFULL : 0;
}

static int write_relayed(struct user *u, const struct outgoing *out, const struct ctl_send *head)
{
	struct lane_put put;
	int r;

	for (;;) {
		put = (struct lane_put){ .type = CTL_REC_SEND };
		if (out->wire.m.route == CORE_ROUTE_REPLY)
			put.flags = LANE_F_REPLY;
		r = lane_write(u, &u->daemon.channel, out, &put, head, sizeof(*head), NULL);
		if (r != -EAGAIN)
			return r < 0 && r != -EMSGSIZE ? r : 0;
		/* The daemon may wait for us to hand back, and be able to say so no more. */
		r = relay_check_way(u, &u->daemon);
		if (r == 0)
			r = user_await_space(u, &u->daemon, &put, U64_MAX);
		if (r < 0)
			return r;
	}
}

/*
 * Pick the verdict out of the daemon's lane: nothing in front of it is for SEND. Of a program that
 * sends and never receives too many would be passed over: then all are taken up in order.
 */
static bool find_verdict(struct user *u, void *arg)
{
	struct verdict *v = arg;
	struct lane_channel *ch = &u->daemon.channel;
	struct lane_env env;
	struct ctl_verdict said;
	u32 limit, pos = ch->read, n = 0;

	if (v->done || u->dead || lane_snapshot(ch, &limit) < 0)
		return v->done || u->dead;
	while (lane_scan(ch, limit, &pos, &env) == 0) {
		if (env.type == CTL_REC_VERDICT && env.length == sizeof(said)) {
			/* It does no harm when its turn comes once more: then it is an old one. */
			if (lane_pluck(ch, pos, &env, &said) < 0)
				lane_copy_body(ch, pos, &env, &said);
			else
				lane_consume(ch);
			user_take_verdict(u, &said, pos + env.size);
			if (v->done)
				return true;
		}
		peer_foresee_gone(u, pos, &env);
		lane_scan_next(&pos, &env);
		n += 1 + (env.bulk ? CROWDED_BULK : 0);
	}
	/* A lane so full that the verdict may find no room: what is in it goes into the pool. */
	if (n > CROWDED_RECORDS || limit - ch->read > ch->peer_ring / CROWDED_RING)
		user_pump(u, LANE_LOOK_POLL);
	return v->done || u->dead;
}

static int await_verdict(struct user *u, struct verdict *v)
{
	int r;

	while (!v->done) {
		if (u->dead || u->daemon.channel.broken || u->daemon.channel.hungup)
			return -ECONNRESET;
		if (find_verdict(u, v))
			continue;
		r = user_sleep(u, NULL, find_verdict, v, U64_MAX, -1);
		if (r < 0 && r != -EINTR)
			return r;
	}
	return v->said.error;
}

/* What the verdict teaches: where a name leads, and that the peer can be met directly. */
static void learn(struct user *u, const struct outgoing *out, const struct lane_page_gens *gens,
		  const struct verdict *v)
{
	struct peer *p;

	if (out->wire.m.dst_name)
		resolve_learn(u, out->wire.m.dst_name, gens, &v->said);
	if (!(v->said.flags & CTL_VERDICT_DIRECT) || v->said.dst_id == u->identity.id)
		return;
	/* Who calls asks: if who answers asked at the same time, one lane would be made in vain. */
	if (out->wire.m.route == CORE_ROUTE_REPLY)
		return;
	p = peer_get(u, v->said.dst_id);
	if (p)
		peer_ask(u, p);
}

static int relay_locked(struct user *u, struct outgoing *out, struct core_reply **ret_slot)
{
	const struct kdbus_msg *msg = out->wire.m.msg;
	struct core_reply_args call = { .cookie = msg->cookie,
					.deadline = out->deadline,
					.sync = out->sync };
	struct verdict v = { .tag = ++u->tag };
	struct ctl_send head = { .tag = v.tag,
				 .flags = out->sync || out->to_sync ? CTL_SEND_SYNC : 0 };
	struct lane_page_gens gens;
	int r;

	if (u->dead)
		return -ECONNRESET;
	if (msg->flags & KDBUS_MSG_EXPECT_REPLY) {
		if (u->requester.n >= CORE_CONN_MAX_REQUESTS_PENDING)
			return -EMLINK;
		v.call = &call;
	}
	/* Nothing comes back for a broadcast. */
	r = out->wire.m.route == CORE_ROUTE_BROADCAST ? 0 : relay_check_way(u, &u->daemon);
	if (r < 0)
		return r;
	lane_page_gens(u->page, out->wire.m.dst_name, &gens);
	r = write_relayed(u, out, &head);
	if (r < 0 || out->wire.m.route == CORE_ROUTE_BROADCAST)
		return r == -EPROTO ? -ECONNRESET : r;
	u->verdict = &v;
	r = await_verdict(u, &v);
	u->verdict = NULL;
	if (r < 0)
		return r;
	learn(u, out, &gens, &v);
	out->since = v.end;
	*ret_slot = v.slot;
	idle_tick(u, &u->daemon);
	user_update_events(u);
	return 0;
}

/* Called without the lock; verdicts come in the order of the records, one sender at a time. */
int relay_send(struct user *u, struct outgoing *out, struct core_reply **ret_slot)
{
	int r;

	pthread_mutex_lock(&u->send_lock);
	user_lock(u);
	r = relay_locked(u, out, ret_slot);
	user_unlock(u);
	pthread_mutex_unlock(&u->send_lock);
	return r;
}

static int put_again(struct user *u, const struct lane_back *back, struct lane_put *put)
{
	struct lane_channel *ch = &u->daemon.channel;
	const struct ctl_send head = { .flags = CTL_SEND_AGAIN, .name_id = back->tag };
	void *body = NULL, *bulk = NULL;
	int r = 0;

	if (back->bulk)
		r = lane_bulk_get(ch, back->env.bulk_size, put, &bulk);
	if (r == 0)
		r = lane_put(ch, put, &body);
	if (r < 0) {
		if (bulk)
			lane_bulk_drop(ch, put);
		return r;
	}
	assert(body);
	memcpy(body, &head, sizeof(head));
	memcpy((char *)body + sizeof(head), back->body, back->env.length);
	if (bulk)
		memcpy(bulk, back->bulk, back->env.bulk_size);
	if (put->fds + put->memfds)
		r = lane_put_fds(ch, back->fds, put->fds + put->memfds);
	if (r < 0) {
		lane_cancel(ch);
		if (bulk)
			lane_bulk_drop(ch, put);
		return r;
	}
	lane_publish(ch, lane_clock_stamp(&u->clock, &lane_linux_ops), 0);
	lane_ring(ch);
	return 0;
}

/* A message that came back goes the way of the daemon, ahead of everything newer to that peer. */
void relay_again(struct user *u, const struct lane_back *back)
{
	struct lane_put put;
	int r;

	if (back->env.type != LANE_REC_MSG)
		return;
	do {
		put = (struct lane_put){ .type = CTL_REC_SEND,
					 .length = (u32)sizeof(struct ctl_send) + back->env.length,
					 .fds = back->env.fds,
					 .memfds = back->env.memfds };
		r = put_again(u, back, &put);
		if (r == -EAGAIN)
			r = user_await_space(u, &u->daemon, &put, U64_MAX) < 0 ? -ECONNRESET :
										 -EAGAIN;
	} while (r == -EAGAIN);
}
