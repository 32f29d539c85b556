// SPDX-License-Identifier: LGPL-2.1-or-later
/* Peers: who they are, how messages get to them, and their end. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lane/hooks.h"
#include "user.h"

/* Room behind a peer's metadata in the scratch memory, for the TIMESTAMP of each message */
#define META_MAX (CORE_CMD_MAX_SIZE - 64)

/* So many peers are remembered before those of no use are looked for. */
#define PEERS_SWEEP_MIN 128U

struct peer *peer_find(struct user *u, u64 id)
{
	struct rb_node *node = u->peers.rb_node;
	struct peer *p;

	while (node) {
		p = rb_entry(node, struct peer, node);
		if (id == p->id)
			return p;
		node = id < p->id ? node->rb_left : node->rb_right;
	}
	return NULL;
}

static void insert(struct user *u, struct peer *fresh)
{
	struct rb_node **link = &u->peers.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = fresh->id < rb_entry(parent, struct peer, node)->id ? &parent->rb_left :
									     &parent->rb_right;
	}
	rb_link_node(&fresh->node, parent, link);
	rb_insert_color(&fresh->node, &u->peers);
}

static void leave_look(struct user *u, struct peer *p)
{
	if (!p->looked)
		return;
	lane_look_remove(&u->look, &p->source);
	p->looked = false;
	list_del(&p->looked_entry);
	u->n_looked--;
}

static bool has_channel(const struct peer *p)
{
	return p->state == PEER_DIRECT || p->state == PEER_ENDING || p->state == PEER_DEAD;
}

void peer_put(struct user *u, struct peer *p)
{
	if (p == &u->daemon || --p->held)
		return;
	list_del_init(&p->keeping_entry);
	if (p->channel.ops)
		lane_channel_deinit(&p->channel);
	free(p->meta);
	free(p);
}

/* Not known to the daemon any more, or never was: it goes once nothing refers to it. */
static void retire(struct user *u, struct peer *p)
{
	leave_look(u, p);
	rb_erase(&p->node, &u->peers);
	u->n_peers--;
	/* Messages in the pool may lie in its buffers for long. */
	if (p->channel.ops)
		lane_channel_hang_up(&p->channel);
	peer_put(u, p);
}

/* Of those that are only written to through the daemon nobody says when they are gone. */
static void sweep(struct user *u)
{
	struct rb_node *node, *next;
	struct peer *p;

	for (node = rb_first(&u->peers); node; node = next) {
		next = rb_next(node);
		p = rb_entry(node, struct peer, node);
		if (p->state == PEER_RELAYED && p->held == 1 && !p->looked && !p->handed_back &&
		    !core_replier_first(&p->replier))
			retire(u, p);
	}
	u->sweep_at = 2 * u->n_peers;
}

struct peer *peer_new(u64 id)
{
	struct peer *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->id = id;
	p->channel.sock = -1;
	p->held = 1;
	INIT_LIST_HEAD(&p->keeping_entry);
	core_replier_init(&p->replier);
	return p;
}

struct peer *peer_get(struct user *u, u64 id)
{
	struct peer *p = peer_find(u, id);

	if (p)
		return p;
	if (u->n_peers >= max(u->sweep_at, PEERS_SWEEP_MIN))
		sweep(u);
	p = peer_new(id);
	if (!p)
		return NULL;
	u->n_peers++;
	insert(u, p);
	return p;
}

static int set_meta(struct peer *p, const void *meta, size_t size)
{
	void *copy = NULL;

	if (size > META_MAX || size % 8)
		return -EPROTO;
	if (size) {
		copy = malloc(size);
		if (!copy)
			return -ENOMEM;
		memcpy(copy, meta, size);
	}
	free(p->meta);
	p->meta = copy;
	p->meta_size = size;
	return 0;
}

/* ---- introductions ---- */

static int open_channel(struct user *u, struct peer *p, const struct ctl_intro *intro, int *fds,
			u32 n_fds)
{
	bool asked = intro->flags & CTL_INTRO_ASKED;
	int r = 0;

	if (n_fds != (asked ? 1U : 2U))
		return -EPROTO;
	if (asked && p->state != PEER_ASKED)
		return -EPROTO;
	/* Both sides asked: the one the daemon heard first has made the channel. */
	if (!asked && p->state == PEER_ASKED)
		lane_channel_deinit(&p->channel);
	if (!asked)
		lane_channel_init(&p->channel, &u->lane_ops, fds[0], 0);
	else
		p->channel.sock = fds[0];
	if (intro->flags & CTL_INTRO_EQUAL)
		p->channel.flags |= LANE_ALARMS;
	fds[0] = -1;
	if (!asked)
		r = lane_channel_attach(&p->channel, fds[1]);
	return r;
}

static int join_look(struct user *u, struct peer *p)
{
	int r;

	p->source = (struct lane_source){ .id = p->id, .ch = &p->channel, .user = p };
	r = lane_look_add(&u->look, &p->source);
	p->looked = r == 0;
	if (r == 0) {
		list_add(&p->looked_entry, &u->looked);
		u->n_looked++;
	}
	return r;
}

static void close_fds(int *fds, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		user_drop_fd(fds[i]);
}

/* It goes once no message in the pool refers to it any more. */
static void release_detached(struct user *u, struct peer *p)
{
	leave_look(u, p);
	list_del(&p->detached_entry);
	p->detached = false;
	if (p->channel.ops)
		lane_channel_hang_up(&p->channel);
	peer_put(u, p);
}

/*
 * As if it had not been introduced. Buffers that messages in the pool lie in stay, with what is
 * left of the channel.
 */
static void drop_channel(struct user *u, struct peer *p)
{
	leave_look(u, p);
	list_del_init(&p->keeping_entry);
	if (p->detached || (lane_bulk_held(&p->channel) && idle_detach(u, p))) {
		release_detached(u, p);
		return;
	}
	if (lane_bulk_held(&p->channel)) {
		/* No memory for that: it remains as it is, without a channel for good. */
		lane_channel_hang_up(&p->channel);
		p->state = PEER_DEAD;
		return;
	}
	lane_channel_deinit(&p->channel);
	p->channel.sock = -1;
	p->state = PEER_RELAYED;
	p->intro = 0;
	p->number = 0;
	p->sent = 0;
	p->asking = false;
	p->withdrawn = false;
}

/* The daemon knows of no introduction: what the other side did not take is simply sent again. */
static void drop_withdrawn(struct user *u, struct peer *p)
{
	closing_resend(u, p);
	drop_channel(u, p);
}

int peer_introduced(struct user *u, const struct lane_env *env, const struct ctl_intro *intro)
{
	int fds[LANE_SOCK_FDS_MAX];
	u32 n = (u32)env->fds + env->memfds;
	struct peer *p;
	int r;

	/* Taken up ahead of its turn already, with others perhaps. */
	if ((int32_t)(env->fd_seq - u->intro_seq) <= 0)
		return 0;
	u->intro_seq = env->fd_seq;
	r = lane_take_fds(&u->daemon.channel, env, fds);
	if (r < 0)
		return r;
	p = peer_get(u, intro->peer);
	r = p ? 0 : -ENOMEM;
	/* The end of an earlier one has not come to its end here, or its turn has not come. */
	if (r == 0 && has_channel(p)) {
		p = idle_detach(u, p);
		r = p ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = set_meta(p, intro + 1, intro->meta_size);
	if (r == 0)
		r = open_channel(u, p, intro, fds, n);
	close_fds(fds, n);
	if (r < 0) {
		if (p && !has_channel(p) && p->channel.sock >= 0)
			drop_channel(u, p);
		return r;
	}
	p->state = p->handed_back ? PEER_DEAD : PEER_DIRECT;
	p->intro = intro->flags;
	p->number = intro->number;
	p->used = u->activity;
	p->conn_flags = intro->conn_flags;
	r = join_look(u, p);
	if (r < 0)
		drop_channel(u, p);
	return r;
}

static bool intro_complete(const struct lane_env *env, const struct ctl_intro *intro)
{
	return env->length >= sizeof(*intro) && env->length - sizeof(*intro) >= intro->meta_size;
}

/* For who waits for what the new channel may bring, with a pool too full to look. */
void peer_foresee_intro(struct user *u, u32 pos, const struct lane_env *env)
{
	void *body = malloc(env->length + 8);

	if (!body)
		return;
	lane_copy_body(&u->daemon.channel, pos, env, body);
	if (intro_complete(env, body))
		peer_introduced(u, env, body);
	free(body);
}

static bool concerns(const struct ctl_gone *gone, const struct peer *p)
{
	return p->id == gone->peer && (gone->reason == CTL_GONE_DEAD || p->number == gone->number);
}

static void cut(struct user *u, const struct ctl_gone *gone, u64 stamp)
{
	struct peer *p = peer_find(u, gone->peer), *old;

	if (p && p->looked && concerns(gone, p))
		lane_look_cut(&u->look, &p->source, stamp);
	list_for_each_entry(old, &u->detached, detached_entry)
		if (old->looked && concerns(gone, old))
			lane_look_cut(&u->look, &old->source, stamp);
}

/* In the middle of a look, when the daemon's lane is taken up (design rules 10, 14). */
void peer_taken_up(struct lane_look *look, const struct lane_env *rec, uint64_t stamp,
		   const void *body)
{
	struct user *u = look->user;
	const struct ctl_intro *intro = body;
	const struct ctl_gone *gone = body;

	if (rec->type == LANE_REC_INTRO && intro_complete(rec, intro))
		peer_introduced(u, rec, intro);
	else if (rec->type == LANE_REC_GONE && rec->length == sizeof(*gone))
		cut(u, gone, stamp);
}

void peer_not_introduced(struct user *u, const struct ctl_no_intro *said)
{
	struct peer *p = peer_find(u, said->peer);

	if (!p || p->state != PEER_ASKED)
		return;
	lane_channel_deinit(&p->channel);
	p->channel.sock = -1;
	p->state = PEER_RELAYED;
	p->again_ns = user_now() + said->pause_ns;
}

/*
 * The second message to a peer asks for an introduction. Nobody waits for it: until it is made, and
 * if it is not, messages go through the daemon.
 */
void peer_ask(struct user *u, struct peer *p)
{
	struct ctl_ask_intro ask = { .version = CTL_VERSION, .type = CTL_ASK_INTRO, .peer = p->id };
	int fd, r;

	if (!u->may_go_direct || p->state != PEER_RELAYED || p->sent++ < 1)
		return;
	if (p->again_ns && p->again_ns > user_now())
		return;
	lane_channel_init(&p->channel, &u->lane_ops, -1, 0);
	r = lane_channel_make(&p->channel, LANE_RING_DEFAULT, &fd);
	if (r == 0) {
		r = lane_linux_ops.send(&lane_linux_ops, u->daemon.channel.sock, &ask, sizeof(ask),
					&fd, 1);
		close(fd);
	}
	if (r < 0) {
		lane_channel_deinit(&p->channel);
		p->channel.sock = -1;
		return;
	}
	p->state = PEER_ASKED;
}

/* Whoever was introduced by the other side makes its lane when it first has to write or consume. */
int peer_own_lane(struct user *u, struct peer *p)
{
	if (p->channel.own)
		return 0;
	return lane_channel_pass(&p->channel, LANE_RING_DEFAULT);
}

int peer_new_meta(struct user *u, const struct ctl_peer *update, size_t size)
{
	struct peer *p;

	if (size < sizeof(*update) || size - sizeof(*update) < update->meta_size)
		return -EPROTO;
	p = peer_find(u, update->peer);
	return p ? set_meta(p, update + 1, update->meta_size) : 0;
}

/* ---- hand-over and ends ---- */

void peer_moved(struct user *u, const struct ctl_moved *moved)
{
	struct peer *from = peer_find(u, moved->from), *to;

	if (!from || !moved->name_id)
		return;
	from->held++;
	to = peer_get(u, moved->to);
	if (to)
		core_reply_retarget(&from->replier, &to->replier, moved->name_id);
	from->held--;
}

static void kill_calls(struct user *u, struct peer *p)
{
	struct core_reply *slot;
	u64 cookie;

	while ((slot = core_replier_first(&p->replier))) {
		cookie = slot->cookie;
		if (core_reply_kill(slot, -EPIPE) == CORE_REPLY_DEAD)
			user_notify_reply(u, KDBUS_ITEM_REPLY_DEAD, cookie);
	}
	user_wake_waiters(u);
	user_update_events(u);
}

/* By agreement: we stop writing, and read on until the other side stops too. */
static void end_writing(struct user *u, struct peer *p)
{
	if (!p->channel.own || p->channel.end_sent || p->channel.broken)
		return;
	if (lane_end(&p->channel, lane_clock_stamp(&u->clock, &lane_linux_ops)) == 0)
		lane_ring(&p->channel);
}

static void hand_back(struct user *u, u64 id, struct peer *p)
{
	if (p && p->handed_back)
		return;
	if (p && has_channel(p))
		p->state = PEER_DEAD;
	if (!p) {
		closing_hand_back(u, id, NULL);
		return;
	}
	p->handed_back = true;
	/* The socket may be full: another thread may go on to forget the peer meanwhile. */
	p->held++;
	closing_hand_back(u, id, p);
	peer_put(u, p);
}

/* Its introduction may stand in front of the news of its end, not taken up either. */
static void foresee_end(struct user *u, u64 id)
{
	struct peer *p = peer_get(u, id);

	if (!p || p->over)
		return;
	p->over = true;
	user_wake_waiters(u);
	hand_back(u, p->id, p);
}

/*
 * The daemon takes nothing from us until we have handed back, so whoever waits for the daemon has
 * to do that although it is not the record's turn yet (and may not be before this thread has freed
 * memory). It concerns only what we have sent.
 */
void peer_foresee_gone(struct user *u, u32 pos, const struct lane_env *env)
{
	struct ctl_ahead ahead;
	struct ctl_gone gone;

	if (env->type == LANE_REC_GONE && env->length == sizeof(gone)) {
		lane_copy_body(&u->daemon.channel, pos, env, &gone);
		if (gone.reason == CTL_GONE_DEAD)
			foresee_end(u, gone.peer);
	} else if (env->type == CTL_REC_AHEAD && env->length == sizeof(ahead)) {
		lane_copy_body(&u->daemon.channel, pos, env, &ahead);
		if (!ahead.to && !ahead.cookie)
			foresee_end(u, ahead.from);
	}
}

/* The same when its turn has come; that of the record it stands for has not. */
void peer_ahead(struct user *u, const struct ctl_ahead *ahead)
{
	struct peer *from = peer_find(u, ahead->from), *to;
	struct core_reply *slot, *next;

	if (!ahead->to && !ahead->cookie)
		foresee_end(u, ahead->from);
	else if (!ahead->to && from)
		from->reply_waits = ahead->cookie;
	if (!ahead->to)
		return;
	to = from && ahead->name_id ? peer_get(u, ahead->to) : NULL;
	from = to ? peer_find(u, ahead->from) : NULL;
	if (!from)
		return;
	list_for_each_entry_safe(slot, next, &from->replier.owed, owed)
		if (slot->sync && slot->name_id == ahead->name_id)
			core_reply_retarget_slot(slot, &to->replier);
	user_wake_waiters(u);
}

/* The same for all of the daemon's lane. */
void peer_scan_gone(struct user *u)
{
	struct lane_channel *ch = &u->daemon.channel;
	struct lane_env env;
	u32 limit, pos = ch->read;

	if (!u->connected || lane_snapshot(ch, &limit) < 0)
		return;
	while (lane_scan(ch, limit, &pos, &env) == 0) {
		peer_foresee_gone(u, pos, &env);
		lane_scan_next(&pos, &env);
	}
}

static void withdrawn(struct user *u, struct peer *p)
{
	p->intro &= ~(u64)(CTL_INTRO_OUT_MESSAGES | CTL_INTRO_IN_MESSAGES);
	if (p->state == PEER_DIRECT)
		p->state = PEER_ENDING;
	p->withdrawn = has_channel(p);
	/* Without a lane of our own we have taken nothing: it comes back when we hang up. */
	if (p->looked && !p->channel.own) {
		drop_withdrawn(u, p);
		return;
	}
	/* The look in it may bring the news of its death, and it is forgotten then. */
	p->held++;
	closing_stop_reading(u, p);
	end_writing(u, p);
	if (p->state == PEER_DEAD && !p->looked && (p->detached || peer_find(u, p->id) == p))
		drop_withdrawn(u, p);
	peer_put(u, p);
}

static void died(struct user *u, struct peer *p)
{
	struct peer *old;

	/* Of earlier channels nobody knows but us: what is left in them is simply sent again. */
	while ((old = idle_find(u, p->id, 0))) {
		old->channel.hungup = true;
		drop_withdrawn(u, old);
	}
	p->intro &= ~(u64)CTL_INTRO_OUT_MESSAGES;
	hand_back(u, p->id, p);
	owed_forget(u, p->id);
	kill_calls(u, p);
	retire(u, p);
}

void peer_gone(struct user *u, const struct ctl_gone *gone)
{
	struct peer *p = peer_find(u, gone->peer);

	if (gone->reason == CTL_GONE_WITHDRAWN) {
		if (!p || p->number != gone->number)
			p = idle_find(u, gone->peer, gone->number);
		if (p)
			withdrawn(u, p);
	} else if (p) {
		died(u, p);
	} else if (gone->reason == CTL_GONE_DEAD) {
		hand_back(u, gone->peer, NULL);
	}
}

/* Both lanes are over: the channel goes, and the daemon may introduce the two again. */
static void let_go(struct user *u, struct peer *p)
{
	if (!p->withdrawn)
		idle_tell(u, p);
	drop_channel(u, p);
}

/* It reads no more, but is alive: what it did not take is relayed, and we are done writing. */
void peer_closed(struct user *u, struct peer *p)
{
	if (p == &u->daemon)
		return;
	p->stuck = false;
	if (p->state == PEER_DIRECT)
		p->state = PEER_ENDING;
	p->held++;
	closing_resend(u, p);
	if (p->state == PEER_ENDING) {
		end_writing(u, p);
		if (lane_over(&p->channel))
			let_go(u, p);
	}
	peer_put(u, p);
}

/*
 * A peer that did not finish closing in time: the message in its lane may be taken or come back,
 * so nothing newer may pass it on any way (doc/lanes.md, the bound).
 */
int peer_unstick(struct user *u, struct peer *p)
{
	int r;

	if (!p->stuck)
		return 0;
	r = lane_closing_wait(&p->channel, user_now());
	if (p->looked)
		lane_look_touch(&u->look, &p->source);
	if (r == -ETIMEDOUT)
		return -ENOBUFS;
	p->stuck = false;
	if (r != 0)
		peer_closed(u, p);
	return 0;
}

/* Nothing comes from this lane any more: the end was agreed on, or the peer hung up or broke it. */
void peer_over(struct user *u, struct peer *p)
{
	if (p == &u->daemon) {
		user_disconnect(u);
		return;
	}
	if (p->channel.broken || p->channel.hungup) {
		/* The daemon will say whether it is dead; until then nothing goes either way. */
		p->state = PEER_DEAD;
		leave_look(u, p);
		p->held++;
		if (p->withdrawn || idle_agreed(p))
			drop_withdrawn(u, p);
		peer_put(u, p);
		return;
	}
	peer_end(u, p);
}

/* We write no more; the channel goes when the other side does not either. */
void peer_end(struct user *u, struct peer *p)
{
	p->state = PEER_ENDING;
	end_writing(u, p);
	if (!lane_over(&p->channel))
		return;
	p->held++;
	closing_resend(u, p);
	if (p->state == PEER_ENDING)
		let_go(u, p);
	peer_put(u, p);
}

bool peer_is_gone(struct user *u, u64 id)
{
	struct peer *p = peer_find(u, id);

	return p && p->state == PEER_DEAD;
}

/* Only of an introduced peer is that known here; for the others the daemon checks. */
bool peer_refuses_fds(struct user *u, u64 id)
{
	struct peer *p = peer_find(u, id);

	return p && has_channel(p) && !(p->conn_flags & KDBUS_HELLO_ACCEPT_FD);
}

/* May this message go directly (rule 5 of user.h)? */
bool peer_usable(struct user *u, struct peer *p)
{
	return p->state == PEER_DIRECT && !p->channel.broken && !p->channel.hungup &&
	       !p->channel.asked_end && !lane_page_monitored(u->page) &&
	       (lane_passed(&u->daemon.channel) || LANE_BROKEN(LANE_DIRECT_AT_ONCE)) &&
	       !lane_page_waiting(u->page, p->id);
}

/* Tell a caller that its call will not be answered, or that the reply could not be taken. */
int peer_refuse(struct user *u, u64 requester, u64 cookie, int error, bool sync)
{
	const struct ctl_refused body = { .peer = requester,
					  .cookie = cookie,
					  .error = error,
					  .flags = sync ? CTL_REFUSED_SYNC : 0 };
	struct peer *p = peer_find(u, requester);
	struct lane_channel *ch;
	struct lane_put put = { .type = CTL_REC_REFUSED,
				.flags = LANE_F_REPLY,
				.length = sizeof(body),
				.subject = cookie };
	void *to;
	int r;

	ch = p && peer_usable(u, p) && peer_own_lane(u, p) == 0 ? &p->channel : &u->daemon.channel;
	r = lane_put(ch, &put, &to);
	if (r < 0)
		return r;
	memcpy(to, &body, sizeof(body));
	lane_publish(ch, lane_clock_stamp(&u->clock, &lane_linux_ops), 0);
	r = lane_ring(ch);
	return r < 0 ? r : 0;
}

void peer_free_all(struct user *u)
{
	struct rb_node *node;

	while (!list_empty(&u->detached))
		release_detached(u, list_first_entry(&u->detached, struct peer, detached_entry));
	while ((node = rb_first(&u->peers)))
		retire(u, rb_entry(node, struct peer, node));
}
