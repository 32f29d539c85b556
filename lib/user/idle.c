// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Channels that are no longer needed: idle ones are closed by agreement, and what still hangs on an
 * old one does not stand in the way of the next.
 */
#include <errno.h>

#include "user.h"

/*
 * A channel is idle after so many messages to and from others; one channel is looked at for each
 * so many. A process that does nothing keeps what it has.
 */
#define IDLE_AFTER 4096
#define IDLE_EVERY 64

/* Nothing in either lane, nothing read in place, nobody who waits for an answer. */
static bool is_idle(struct user *u, struct peer *p)
{
	struct lane_channel *ch = &p->channel;

	if (p->state != PEER_DIRECT || p->asking || p->stuck || ch->broken || ch->hungup)
		return false;
	if (u->activity - p->used < IDLE_AFTER || p->source.have || lane_bulk_held(ch))
		return false;
	/* A program that only sends has not looked for the lane that says what was taken. */
	if (!ch->peer) {
		lane_drain(ch);
		lane_look_touch(&u->look, &p->source);
	}
	if ((ch->own && !lane_passed(ch)) || lane_news(ch) || ch->read != ch->seen)
		return false;
	return !core_replier_first(&p->replier) && !owed_any(u, p->id);
}

static void ask_end(struct peer *p)
{
	if (!p->asking)
		p->asking = lane_ask_end(&p->channel) == 0;
}

/* A message was sent or taken: to or from @p, or through the daemon. */
void idle_tick(struct user *u, struct peer *p)
{
	p->used = ++u->activity;
	if (u->activity % IDLE_EVERY || list_empty(&u->looked))
		return;
	p = list_first_entry(&u->looked, struct peer, looked_entry);
	list_move_tail(&p->looked_entry, &u->looked);
	if (is_idle(u, p))
		ask_end(p);
}

/* The other side has no use for the channel: we write no more, and ask likewise. */
void idle_asked(struct user *u, struct peer *p)
{
	if (p == &u->daemon || p->state != PEER_DIRECT)
		return;
	ask_end(p);
	peer_end(u, p);
}

/* Both lanes are over, as agreed: the daemon may introduce the two again. */
void idle_tell(struct user *u, struct peer *p)
{
	const struct ctl_end_intro end = {
		.version = CTL_VERSION, .type = CTL_END_INTRO, .peer = p->id, .number = p->number
	};

	user_send_datagram(u, &end, sizeof(end), NULL, 0);
}

/*
 * Was it agreed that the channel ends? Then its hang-up is no death: the other side has taken all
 * of our lane and lets go first.
 */
bool idle_agreed(const struct peer *p)
{
	const struct lane_channel *ch = &p->channel;

	return !ch->broken && (ch->ended || !ch->peer) && (ch->end_sent || !ch->own);
}

/*
 * Another takes its place, and its calls: to this one remains what its channel still brings, and
 * the buffers that messages in the pool refer to. Returns NULL without memory.
 */
struct peer *idle_detach(struct user *u, struct peer *p)
{
	struct peer *fresh = peer_new(p->id);
	struct core_reply *slot;

	if (!fresh)
		return NULL;
	fresh->conn_flags = p->conn_flags;
	fresh->again_ns = p->again_ns;
	fresh->over = p->over;
	fresh->handed_back = p->handed_back;
	fresh->reply_waits = p->reply_waits;
	rb_replace_node(&p->node, &fresh->node, &u->peers);
	while ((slot = core_replier_first(&p->replier)))
		core_reply_retarget_slot(slot, &fresh->replier);
	p->detached = true;
	list_add_tail(&p->detached_entry, &u->detached);
	user_wake_waiters(u);
	return fresh;
}

/* Of those of one id that were detached the one with that introduction, or, with 0, any. */
struct peer *idle_find(struct user *u, u64 id, u64 number)
{
	struct peer *p;

	list_for_each_entry(p, &u->detached, detached_entry)
		if (p->id == id && (!number || p->number == number))
			return p;
	return NULL;
}
