// SPDX-License-Identifier: LGPL-2.1-or-later
/* Introductions: how a peer comes by a channel. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "user.h"

static void close_fds(int *fds, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		user_drop_fd(fds[i]);
}

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
	if (r == 0 && peer_has_channel(p)) {
		p = idle_detach(u, p);
		r = p ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = peer_set_meta(p, intro + 1, intro->meta_size);
	if (r == 0)
		r = open_channel(u, p, intro, fds, n);
	close_fds(fds, n);
	if (r < 0) {
		if (p && !peer_has_channel(p) && p->channel.sock >= 0)
			peer_drop_channel(u, p);
		return r;
	}
	p->state = p->handed_back ? PEER_DEAD : PEER_DIRECT;
	p->intro = intro->flags;
	p->number = intro->number;
	p->used = u->activity;
	p->conn_flags = intro->conn_flags;
	r = join_look(u, p);
	if (r < 0)
		peer_drop_channel(u, p);
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
 * The second message to a peer, replies not counted, asks for an introduction. Nobody waits for
 * it: until it is made, and if it is not, messages go through the daemon.
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
