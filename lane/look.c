// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdlib.h>
#include <string.h>

#include "hooks.h"
#include "internal.h"
#include "look.h"

#define LOOKS_MAX 4u
#define ASK_EVERY 64u

int lane_look_init(struct lane_look *look, const struct lane_ops *ops, int epoll, int eventfd,
		   const struct lane_page *page, struct lane_clock *clock)
{
	memset(look, 0, sizeof(*look));
	look->ops = ops;
	look->epoll = epoll;
	look->eventfd = eventfd;
	look->page = page;
	look->clock = clock;
	return ops->watch(ops, epoll, eventfd, NULL);
}

void lane_look_deinit(struct lane_look *look)
{
	if (!look)
		return;
	free(look->active);
	free(look->ready);
	look->active = NULL;
	look->ready = NULL;
}

static int make_room(struct lane_look *look)
{
	unsigned int room = look->room ? 2 * look->room : 8;
	void *active, *ready;

	if (look->n_sources < look->room)
		return 0;
	active = realloc(look->active, room * sizeof(*look->active));
	if (!active)
		return -ENOMEM;
	look->active = active;
	ready = realloc(look->ready, (room + 1) * sizeof(*look->ready));
	if (!ready)
		return -ENOMEM;
	look->ready = ready;
	look->room = room;
	return 0;
}

static void activate(struct lane_look *look, struct lane_source *src)
{
	if (src->polled)
		return;
	src->polled = true;
	src->index = look->n_active;
	look->active[look->n_active++] = src;
	lane_unarm(src->ch);
}

static void deactivate(struct lane_look *look, struct lane_source *src)
{
	struct lane_source *last;

	if (!src->polled)
		return;
	src->polled = false;
	last = look->active[--look->n_active];
	last->index = src->index;
	look->active[src->index] = last;
}

/* Rule 8: while anything is polled, something must make the descriptor readable. */
static void self_ring(struct lane_look *look)
{
	if (look->loud || look->self_rung)
		return;
	look->self_rung = true;
	look->ops->bell_set(look->ops, look->eventfd);
}

int lane_look_add(struct lane_look *look, struct lane_source *src)
{
	bool daemon = src->ch->flags & LANE_PEER_IS_DAEMON;
	int r;

	if (daemon && look->daemon)
		return -EEXIST;
	r = make_room(look);
	if (r < 0)
		return r;
	r = look->ops->watch(look->ops, look->epoll, src->ch->sock, src);
	if (r < 0)
		return r;
	look->n_sources++;
	if (daemon) {
		look->daemon = src;
		src->ch->page = look->page;
	}
	src->limit = src->ch->read;
	src->taken_up = src->ch->read;
	activate(look, src);
	self_ring(look);
	return 0;
}

void lane_look_remove(struct lane_look *look, struct lane_source *src)
{
	deactivate(look, src);
	look->ops->unwatch(look->ops, look->epoll, src->ch->sock);
	look->n_sources--;
	if (look->daemon == src)
		look->daemon = NULL;
	/* Its doorbell may have been the one that was left. */
	look->loud = false;
	if (look->n_active)
		self_ring(look);
}

/* Rule 11: how a stamp counts. */
static uint64_t counted(const struct lane_look *look, const struct lane_source *src, uint64_t stamp,
			uint64_t last)
{
	uint64_t now;

	if (stamp >= look->t) {
		now = look->ops->now(look->ops);
		if (stamp > now)
			stamp = now;
	}
	if (stamp < last)
		stamp = last;
	if (src->cut && stamp > src->cut_stamp)
		stamp = src->cut_stamp;
	return stamp;
}

/* A peer that has ended may have passed its lane before: it is in the socket then. */
static void last_snapshot(struct lane_look *look, struct lane_source *src)
{
	if (!src->ch->peer) {
		lane_drain(src->ch);
		look->loud = false;
	}
	if (lane_snapshot(src->ch, &src->limit) < 0)
		src->limit = src->ch->read;
}

/* Cursor snapshot of one lane; a lane that is cut has had its last. */
static void snapshot(struct lane_look *look, struct lane_source *src)
{
	if (src->cut || src->gone)
		return;
	/* What was hung up by now has published its last before. */
	src->gone = src->ch->hungup;
	if (src->gone)
		last_snapshot(look, src);
	else if (lane_snapshot(src->ch, &src->limit) < 0)
		src->limit = src->ch->read;
}

/* Is all of the snapshot taken? What was plucked may lie behind it. */
static bool exhausted(const struct lane_source *src)
{
	return (int32_t)(src->limit - src->ch->read) <= 0;
}

static bool has_news(const struct lane_source *src)
{
	return src->have || !exhausted(src);
}

static bool is_news(uint16_t type)
{
	return type == LANE_REC_INTRO || type == LANE_REC_GONE;
}

static void report(struct lane_look *look, struct lane_source *src, uint32_t pos,
		   const struct lane_env *env)
{
	void *body = malloc(env->length ? env->length : 1);

	/* Without memory it is late, when its turn comes, not lost. */
	if (!body)
		return;
	lane_copy_body(src->ch, pos, env, body);
	look->taken_up(look, env, src->taken_up_stamp, body);
	free(body);
}

/* The daemon's lane comes first: introductions and ends that are in it hold for this look. */
static void take_up_daemon(struct lane_look *look)
{
	struct lane_source *src = look->daemon;
	struct lane_env env;
	uint32_t pos;

	if (!src || src->ch->broken)
		return;
	snapshot(look, src);
	pos = src->ch->read;
	if (lane_scan(src->ch, src->limit, &pos, &env) == 0)
		activate(look, src);
	if (src->taken_up - src->ch->read > src->limit - src->ch->read)
		src->taken_up = src->ch->read;
	pos = src->taken_up;
	while (look->taken_up && lane_scan(src->ch, src->limit, &pos, &env) == 0) {
		src->taken_up_stamp = counted(look, src, env.stamp, src->taken_up_stamp);
		if (is_news(env.type))
			report(look, src, pos, &env);
		lane_scan_next(&pos, &env);
		src->taken_up = pos;
	}
}

/*
 * A socket that is readable with nothing in the lane: descriptors, requests, a hang-up, or the
 * bell of something taken up before. Find out, or it would be so for ever. A number whose bell was
 * drained is used up: an armed lane needs another one before the look (rule 7).
 */
static void look_at_socket(struct lane_look *look, struct lane_source *src)
{
	if (!src->readable || has_news(src))
		return;
	lane_drain(src->ch);
	if (mode_of(src->ch->state) == LANE_ARMED)
		lane_arm(src->ch);
	look->loud = false;
	/* What came since is in this look, so what it says of other lanes must be too. */
	if (src == look->daemon)
		take_up_daemon(look);
	else
		snapshot(look, src);
}

static unsigned int mark_readable(struct lane_look *look, unsigned int n)
{
	struct lane_source *src;
	unsigned int i, found = 0;

	for (i = 0; i < n; i++) {
		src = look->ready[i];
		if (!src)
			continue;
		look->loud = true;
		found += !src->readable;
		activate(look, src);
		src->readable = true;
	}
	return found;
}

/*
 * Is there anything that only the sockets tell? Armed lanes (but the daemon's, which every look
 * takes up directly), and lanes that the peer may have passed by now.
 */
static bool must_ask(const struct lane_look *look)
{
	unsigned int armed = look->n_sources - look->n_active, i;

	for (i = 0; i < look->n_active; i++)
		if (!look->active[i]->ch->peer)
			return true;
	return armed > (look->daemon && !look->daemon->polled ? 1u : 0u);
}

/* What no look does: see LANE_DRAIN_ON_WAKE. */
static void drain_ready(struct lane_look *look)
{
	int i, n = look->ops->ready(look->ops, look->epoll, look->ready, look->room + 1);
	struct lane_source *src;

	for (i = 0; i < n; i++) {
		src = look->ready[i];
		if (src)
			lane_drain(src->ch);
	}
}

/*
 * Armed lanes: one that has something has rung its socket. If some are polled and none but the
 * daemon's is armed, the question is asked only now and then, for hang-ups and the like; if all are
 * armed, something has woken us, which may be the daemon's end.
 */
static void ask_epoll(struct lane_look *look)
{
	unsigned int i, found;
	int n;

	for (i = 0; i < look->n_active; i++)
		look->active[i]->readable = false;
	if (!must_ask(look) && look->n_active && ++look->unasked % ASK_EVERY)
		return;
	look->loud = false;
	if (LANE_BROKEN(LANE_DRAIN_ON_WAKE))
		drain_ready(look);
	do {
		n = look->ops->ready(look->ops, look->epoll, look->ready, look->room + 1);
		found = n > 0 ? mark_readable(look, (unsigned int)n) : 0;
	} while (found);
}

/* Rule 10. */
static void take_up(struct lane_look *look)
{
	unsigned int i;

	look->t = look->ops->now(look->ops);
	clock_fence(); /* B9 */
	take_up_daemon(look);
	ask_epoll(look);
	for (i = 0; i < look->n_active; i++)
		if (look->active[i] != look->daemon)
			snapshot(look, look->active[i]);
	for (i = 0; i < look->n_active; i++)
		look_at_socket(look, look->active[i]);
	look->batch = true;
}

/* Make have, env and stamp those of the next record within the snapshot, if there is one. */
static void refresh(struct lane_look *look, struct lane_source *src)
{
	if (src->have && src->at == src->ch->read && src->ch->have_head && !src->ch->broken)
		return;
	src->have = false;
	if (lane_peek(src->ch, src->limit, &src->env) < 0)
		return;
	src->have = true;
	src->at = src->ch->read;
	src->stamp = counted(look, src, src->env.stamp, src->last);
}

static bool deliverable(const struct lane_look *look, const struct lane_source *src)
{
	if (LANE_BROKEN(LANE_SKIP_FULL) && src->skipped)
		return false;
	return src->have && (src->stamp < look->t || LANE_BROKEN(LANE_ONE_PASS));
}

static bool sooner(const struct lane_source *a, const struct lane_source *b)
{
	if (!b || a->stamp != b->stamp)
		return !b || a->stamp < b->stamp;
	/* What a peer that has ended left comes before the news of its end. */
	return a->cut && !b->cut;
}

/* A lane that has ended is over once more when the other side lets go of the socket. */
static bool ends(const struct lane_source *src)
{
	const struct lane_channel *ch = src->ch;

	if (src->have)
		return false;
	if (src->told)
		return ch->hungup && !src->told_hungup;
	return ch->broken || ch->ended || ((src->cut || src->gone) && exhausted(src));
}

/* The peer has stopped reading while something of ours was on its way (rule 15). */
static bool stopped(struct lane_source *src)
{
	struct lane_channel *ch = src->ch;

	if (!ch->closed_rung || src->told_closed || lane_load_reading(ch) != LANE_CLOSED)
		return false;
	src->told_closed = true;
	return true;
}

/* What a peer said besides its records, each once; 0: nothing */
static enum lane_event_type word_of(struct lane_source *src)
{
	if (stopped(src))
		return LANE_EV_CLOSED;
	if (!src->ch->asked_end || src->told_asked)
		return 0;
	src->told_asked = true;
	return LANE_EV_ASKED;
}

static bool batch_next(struct lane_look *look, struct lane_event *ret)
{
	struct lane_source *src, *best = NULL;
	enum lane_event_type type;
	unsigned int i;

	for (i = 0; i < look->n_active; i++) {
		src = look->active[i];
		type = word_of(src);
		if (type) {
			memset(ret, 0, sizeof(*ret));
			ret->type = type;
			ret->src = src;
			return true;
		}
		refresh(look, src);
		if (ends(src)) {
			src->told = true;
			src->told_hungup = src->ch->hungup;
			lane_consume(src->ch);
			memset(ret, 0, sizeof(*ret));
			ret->type = src->ch->broken ? LANE_EV_BROKEN : LANE_EV_OVER;
			ret->src = src;
			return true;
		}
		if (deliverable(look, src) && sooner(src, best))
			best = src;
	}
	if (!best)
		return false;
	ret->type = LANE_EV_RECORD;
	ret->src = best;
	ret->stamp = best->stamp;
	ret->rec = best->env;
	return true;
}

static bool anything_held(const struct lane_look *look)
{
	unsigned int i;

	for (i = 0; i < look->n_active; i++)
		if (look->active[i]->have)
			return true;
	return false;
}

/* What was stamped after T needs one more look; the bound is for a clock that stands still. */
static bool new_batch(struct lane_look *look, struct lane_event *ret)
{
	unsigned int tries = 0;

	do {
		take_up(look);
		if (batch_next(look, ret))
			return true;
	} while (anything_held(look) && ++tries < LOOKS_MAX);
	look->batch = false;
	return false;
}

static bool untouched(const struct lane_source *src)
{
	const struct lane_channel *ch = src->ch;

	return !src->have && !src->cut && !src->gone && !ch->broken && !ch->ended &&
	       (!ch->peer || word_load(&ch->peer->published) == ch->read);
}

/* A look that needs no clock: all lanes but the daemon's are there and polled, all are empty. */
static bool plainly_empty(struct lane_look *look)
{
	unsigned int i;

	if (must_ask(look) || ++look->unasked % ASK_EVERY == 0)
		return false;
	for (i = 0; i < look->n_active; i++)
		if (!untouched(look->active[i]))
			return false;
	return !look->daemon || untouched(look->daemon);
}

/* Rule 7: drain, arm with a new number, fence; the look comes after it. */
static void arm_all(struct lane_look *look)
{
	unsigned int i;

	if (look->self_rung)
		look->ops->bell_clear(look->ops, look->eventfd);
	look->self_rung = false;
	look->loud = false;
	for (i = 0; i < look->n_active; i++) {
		lane_drain(look->active[i]->ch);
		lane_arm(look->active[i]->ch);
	}
}

/* Lanes where the look found nothing stay armed; the others are polled from here on. */
static void disarm_found(struct lane_look *look, bool found)
{
	struct lane_source *src;
	unsigned int i;

	for (i = look->n_active; i-- > 0;) {
		src = look->active[i];
		if (src->have || (found && has_news(src)))
			lane_unarm(src->ch);
		else if (mode_of(src->ch->state) == LANE_ARMED)
			deactivate(look, src);
	}
}

int lane_look_next(struct lane_look *look, int mode, struct lane_event *ret)
{
	bool found = look->batch && batch_next(look, ret);

	if (!found && !plainly_empty(look))
		found = new_batch(look, ret);
	if (!found && mode == LANE_LOOK_ARM) {
		arm_all(look);
		found = new_batch(look, ret);
		disarm_found(look, found);
	}
	if (look->n_active)
		self_ring(look);
	return found ? 0 : -EAGAIN;
}

int lane_look_take(struct lane_look *look, const struct lane_event *ev, void *body)
{
	struct lane_source *src = ev->src;
	int r;

	if (ev->type != LANE_EV_RECORD || !src->have || src->at != src->ch->read)
		return -EINVAL;
	if (!src->ch->own)
		return -ENOLINK;
	r = lane_take(src->ch, body);
	if (r < 0)
		return r;
	src->have = false;
	src->last = src->stamp;
	lane_clock_saw(look->clock, src->stamp);
	lane_consume(src->ch);
	return 0;
}

int lane_look_fds(struct lane_look *look, const struct lane_event *ev, int *fds)
{
	int r = lane_take_fds(ev->src->ch, &ev->rec, fds);

	if (ev->rec.fds || ev->rec.memfds)
		lane_look_touch(look, ev->src);
	return r;
}

void lane_look_cut(struct lane_look *look, struct lane_source *src, uint64_t stamp)
{
	if (src->cut)
		return;
	activate(look, src);
	if (!src->gone)
		last_snapshot(look, src);
	src->cut = true;
	src->cut_stamp = stamp;
	if (src->have && src->stamp > stamp)
		src->stamp = stamp;
}

#ifdef LANE_TEST_HOOKS
void lane_look_skip(struct lane_look *look, struct lane_source *src)
{
	unsigned int i;

	if (src)
		src->skipped = true;
	for (i = 0; !src && i < look->n_active; i++)
		look->active[i]->skipped = false;
}
#endif

void lane_look_touch(struct lane_look *look, struct lane_source *src)
{
	activate(look, src);
	/* Whether a doorbell is left is not known any more. */
	look->loud = false;
	self_ring(look);
}

void lane_look_break(struct lane_look *look, struct lane_source *src)
{
	src->have = false;
	src->ch->broken = true;
	lane_look_touch(look, src);
}
