// SPDX-License-Identifier: LGPL-2.1-or-later
/* The reader's half of a lane: rules 3, 4, 7, 12 and 17. It trusts nothing it finds. */
#include <string.h>

#include "alarm.h"
#include "hooks.h"
#include "internal.h"
#include "page.h"

/* A record of the size that most messages have */
#define PREFETCH_MAX (4096u + 512u)

/* All is taken and there is more: it may begin at the start of the ring. */
static void follow_skip(struct lane_channel *ch)
{
	uint32_t at = ch->read & (ch->peer_ring - 1);

	if (!at || ch->read != ch->seen || ch->consumed != ch->read ||
	    word_load(&ch->peer->skip) != ch->read)
		return;
	ch->read += ch->peer_ring - at;
	ch->seen = ch->read;
	ch->floor = ch->read;
}

int lane_snapshot(struct lane_channel *ch, uint32_t *ret_limit)
{
	uint32_t published;

	if (ch->broken)
		return -EPROTO;
	if (!ch->peer)
		return -ENOLINK;
	ch->committed = UINT64_MAX;
	if (ch->page && !LANE_BROKEN(LANE_NO_COMMIT))
		ch->committed = lane_page_committed(ch->page); /* B7 */
	published = word_load(&ch->peer->published); /* B1 */
	if (published != ch->seen)
		follow_skip(ch);
	if (published - ch->floor > ch->peer_ring ||
	    published - ch->floor < ch->seen - ch->floor || published % LANE_ALIGN)
		return lane_broke(ch);
	ch->seen = published;
	*ret_limit = published;
	return 0;
}

bool lane_news(const struct lane_channel *ch)
{
	if (!ch->peer)
		return false;
	if (word_load(&ch->peer->published) != ch->seen)
		return true;
	/* Of the daemon's lane something may have been seen that did not count yet. */
	return ch->page && ch->read != ch->seen && lane_page_committed(ch->page) != ch->committed;
}

void lane_prefetch(const struct lane_channel *ch)
{
	uint32_t mask = ch->peer_ring - 1, from = ch->read, n, i;

	if (from & mask && word_load(&ch->peer->skip) == from)
		from += ch->peer_ring - (from & mask);
	n = word_load(&ch->peer->published) - from;
	if (n > PREFETCH_MAX)
		n = PREFETCH_MAX;
	for (i = 0; i < n; i += LANE_ALIGN)
		__builtin_prefetch(ring_of(ch->peer) + ((from + i) & mask));
}

static bool bare(const struct lane_env *env)
{
	return !env->flags && !env->round && !env->length && !env->fds && !env->memfds &&
	       !env->fd_seq && !env->bulk && !env->bulk_use && !env->bulk_size && !env->subject &&
	       !env->reserved;
}

static bool type_valid(const struct lane_channel *ch, uint16_t type)
{
	if (type == LANE_REC_INTRO || type == LANE_REC_GONE)
		return ch->flags & LANE_PEER_IS_DAEMON;
	return type == LANE_REC_MSG || type >= LANE_REC_PROGRAM;
}

static bool bulk_valid(const struct lane_env *env)
{
	if (!env->bulk)
		return !env->bulk_use && !env->bulk_size;
	return LANE_BULK_INDEX(env->bulk) >= 1 && LANE_BULK_INDEX(env->bulk) <= LANE_BULK_MAX &&
	       env->bulk_size >= 1 && env->bulk_size <= LANE_BULK_SIZE_MAX;
}

static bool fields_valid(const struct lane_channel *ch, const struct lane_env *env)
{
	bool fds = env->fds || env->memfds;

	if (!type_valid(ch, env->type) || (env->flags & ~LANE_F_ALL) || env->reserved)
		return false;
	if (env->size > lane_record_max(ch->peer_ring) ||
	    env->length > lane_body_max(ch->peer_ring) ||
	    LANE_ALIGN + align_up(env->length) != env->size)
		return false;
	if (env->fds > LANE_FDS_MAX || env->memfds > LANE_FDS_MAX || fds != !!env->fd_seq)
		return false;
	if (ch->flags & LANE_PEER_IS_DAEMON ? env->round < ch->round || !env->round : env->round)
		return false;
	return bulk_valid(env);
}

/* Is @env, a private copy, a record that may stand at @pos with @avail bytes published? */
static bool env_valid(const struct lane_channel *ch, const struct lane_env *env, uint32_t pos,
		      uint32_t avail)
{
	uint32_t left = ch->peer_ring - (pos & (ch->peer_ring - 1));

	if (env->size < LANE_ALIGN || env->size % LANE_ALIGN || env->size > avail ||
	    env->size > left)
		return false;
	if (env->type == LANE_REC_PAD)
		return env->size == left && !env->stamp && bare(env);
	if (env->type == LANE_REC_END)
		return env->size == LANE_ALIGN && bare(env);
	return fields_valid(ch, env);
}

static const struct lane_plucked *find_plucked(const struct lane_channel *ch, uint32_t pos)
{
	unsigned int i;

	for (i = 0; i < ch->n_plucked; i++)
		if (ch->plucked[i].pos == pos)
			return &ch->plucked[i];
	return NULL;
}

static int read_env(struct lane_channel *ch, uint32_t pos, uint32_t limit, struct lane_env *ret)
{
	copy_once(ret, ring_of(ch->peer) + (pos & (ch->peer_ring - 1)), sizeof(*ret));
	return env_valid(ch, ret, pos, limit - pos) ? 0 : lane_broke(ch);
}

/* Bytes to skip at @pos: what was plucked, or a pad. 0: a record, which is in @ret then. */
static int skip_or_read(struct lane_channel *ch, uint32_t pos, uint32_t limit,
			struct lane_env *ret)
{
	const struct lane_plucked *plucked = find_plucked(ch, pos);
	int r;

	if (plucked)
		return (int)plucked->size;
	r = read_env(ch, pos, limit, ret);
	if (r < 0)
		return r;
	return ret->type == LANE_REC_PAD ? (int)ret->size : 0;
}

static void forget_plucked(struct lane_channel *ch, uint32_t pos)
{
	unsigned int i;

	for (i = 0; i < ch->n_plucked; i++)
		if (ch->plucked[i].pos == pos) {
			ch->plucked[i] = ch->plucked[--ch->n_plucked];
			return;
		}
}

static bool within(const struct lane_channel *ch, uint32_t pos, uint32_t limit)
{
	return pos - ch->read < limit - ch->read && limit - ch->read <= ch->seen - ch->read;
}

int lane_peek(struct lane_channel *ch, uint32_t limit, struct lane_env *ret)
{
	int r;

	if (ch->broken)
		return -EPROTO;
	/* Bounded: each turn uses up at least LANE_ALIGN bytes of what the snapshot allowed. */
	while (!ch->have_head) {
		if (ch->ended || !within(ch, ch->read, limit))
			return -EAGAIN;
		r = skip_or_read(ch, ch->read, limit, &ch->head);
		if (r < 0)
			return r;
		if (r > 0) {
			forget_plucked(ch, ch->read);
			ch->read += (uint32_t)r;
			continue;
		}
		if (ch->head.type == LANE_REC_END) {
			ch->read += LANE_ALIGN;
			ch->ended = true;
			return -EAGAIN;
		}
		ch->have_head = true;
	}
	if (ch->head.round > ch->committed || !within(ch, ch->read, limit))
		return -EAGAIN;
	*ret = ch->head;
	return 0;
}

void lane_copy_body(struct lane_channel *ch, uint32_t pos, const struct lane_env *env,
		    void *body)
{
	if (body && env->length)
		copy_once(body, ring_of(ch->peer) + (pos & (ch->peer_ring - 1)) + LANE_ALIGN,
			  env->length);
}

int lane_take(struct lane_channel *ch, void *body)
{
	if (!ch->have_head || ch->broken)
		return -EINVAL;
	lane_copy_body(ch, ch->read, &ch->head, body);
	ch->round = ch->head.round;
	ch->read += ch->head.size;
	ch->have_head = false;
	return 0;
}

int lane_ring_for_space(struct lane_channel *ch)
{
	uint32_t space = word_load(&ch->peer->space), want;
	int r;

	if (mode_of(space) == LANE_POLLING || number_of(space) == ch->space_rung)
		return 0;
	want = word_load(&ch->peer->want);
	if ((int32_t)(ch->consumed - want) < 0)
		return 0;
	ch->space_rung = number_of(space);
	LANE_YIELD(LANE_AT_CALL);
	if (mode_of(space) == LANE_FUTEX) {
		ch->ops->wake(ch->ops, &ch->own->consumed);
		return 0;
	}
	r = lane_send_sock(ch, LANE_SOCK_SPACE, ch->space_rung, NULL, 0);
	return r == -ECONNRESET ? r : 0; /* EAGAIN counts as rung */
}

/*
 * What was plucked and has come to the front is taken as well: its room is the writer's, and so is
 * what it charged for it. The next record may never come, for want of just that.
 */
static void skip_plucked(struct lane_channel *ch)
{
	struct lane_env env;
	int r;

	while (ch->n_plucked && !ch->have_head && within(ch, ch->read, ch->seen)) {
		r = skip_or_read(ch, ch->read, ch->seen, &env);
		if (r <= 0)
			return;
		forget_plucked(ch, ch->read);
		ch->read += (uint32_t)r;
	}
}

int lane_consume(struct lane_channel *ch)
{
	if (!ch->own)
		return -ENOLINK;
	skip_plucked(ch);
	if (ch->consumed == ch->read)
		return 0;
	ch->consumed = ch->read;
	ch->floor = ch->read;
	word_store(&ch->own->consumed, ch->consumed); /* B2 */
	word_fence(); /* B4 */
	return lane_ring_for_space(ch);
}

int lane_scan(struct lane_channel *ch, uint32_t limit, uint32_t *pos, struct lane_env *ret)
{
	uint32_t at = *pos;
	bool front;
	int r;

	if (ch->broken)
		return -EPROTO;
	if (at - ch->read > limit - ch->read)
		at = ch->read; /* what the caller remembers has been taken meanwhile */
	for (;;) {
		if (ch->ended || !within(ch, at, limit))
			return -EAGAIN;
		front = at == ch->read;
		if (front && ch->have_head) {
			*ret = ch->head;
			break;
		}
		r = skip_or_read(ch, at, limit, ret);
		if (r < 0)
			return r;
		if (r == 0)
			break;
		if (front) {
			forget_plucked(ch, at);
			ch->read += (uint32_t)r;
			lane_consume(ch); /* which may go on */
			at = ch->read;
			continue;
		}
		at += (uint32_t)r;
	}
	if (ret->type == LANE_REC_END || ret->round > ch->committed)
		return -EAGAIN;
	*pos = at;
	return 0;
}

void lane_scan_next(uint32_t *pos, const struct lane_env *env)
{
	*pos += env->size;
}

int lane_pluck(struct lane_channel *ch, uint32_t pos, const struct lane_env *env, void *body)
{
	if (ch->broken)
		return -EPROTO;
	if (pos == ch->read) {
		ch->head = *env;
		ch->have_head = true;
		lane_take(ch, body);
		return 0;
	}
	if (ch->n_plucked == LANE_PLUCK_MAX)
		return -ENOBUFS;
	lane_copy_body(ch, pos, env, body);
	ch->plucked[ch->n_plucked++] = (struct lane_plucked){ .pos = pos, .size = env->size };
	return 0;
}

/* Take batch @i out; its descriptors go to @fds, or are closed if that is NULL. */
static void remove_batch(struct lane_channel *ch, unsigned int i, int *fds)
{
	unsigned int j, first = 0, count = ch->batches[i].count;

	for (j = 0; j < i; j++)
		first += ch->batches[j].count;
	for (j = 0; j < count; j++) {
		if (fds)
			fds[j] = ch->fds[first + j];
		else if (ch->fds[first + j] >= 0)
			ch->ops->close(ch->ops, ch->fds[first + j]);
	}
	ch->n_fds -= count;
	memmove(&ch->fds[first], &ch->fds[first + count],
		(ch->n_fds - first) * sizeof(ch->fds[0]));
	ch->n_batches--;
	memmove(&ch->batches[i], &ch->batches[i + 1],
		(ch->n_batches - i) * sizeof(ch->batches[0]));
}

static int find_batch(const struct lane_channel *ch, uint32_t seq)
{
	unsigned int i;

	for (i = 0; i < ch->n_batches; i++)
		if (ch->batches[i].seq == seq)
			return (int)i;
	return -1;
}

int lane_take_fds(struct lane_channel *ch, const struct lane_env *env, int *fds)
{
	unsigned int tries = 0, wanted = (unsigned int)env->fds + env->memfds;
	int i;

	if (!wanted)
		return 0;
	/* They were sent before the record was published, so they are here or never. */
	while ((i = find_batch(ch, env->fd_seq)) < 0)
		if (tries++ == LANE_DRAIN_MAX || lane_channel_recv(ch) < 0)
			return lane_broke(ch);
	if (ch->batches[i].count != wanted)
		return lane_broke(ch);
	remove_batch(ch, (unsigned int)i, fds);
	return 0;
}

void lane_drop_fds(struct lane_channel *ch, const struct lane_env *env)
{
	int fds[LANE_SOCK_FDS_MAX] = { 0 }, n = env->fds + env->memfds, i;

	if (!n || lane_take_fds(ch, env, fds) < 0)
		return;
	for (i = 0; i < n; i++)
		if (fds[i] >= 0)
			ch->ops->close(ch->ops, fds[i]);
}

static void set_state(struct lane_channel *ch, uint32_t mode)
{
	/* Without a lane the peer takes us for armed with the first number, whatever we say. */
	if (mode != LANE_POLLING && ch->own)
		ch->number = next_number(ch->number);
	ch->state = state_of(mode, ch->number);
	own_store(ch, state, ch->state);
}

void lane_arm(struct lane_channel *ch)
{
	ch->bell_rung = false;
	set_state(ch, LANE_ARMED);
	word_fence(); /* B3 */
}

void lane_unarm(struct lane_channel *ch)
{
	if (mode_of(ch->state) != LANE_POLLING)
		set_state(ch, LANE_POLLING);
}

bool lane_armed(const struct lane_channel *ch)
{
	return mode_of(ch->state) == LANE_ARMED;
}

bool lane_rung_out(const struct lane_channel *ch)
{
	return ch->last_bell == ch->number;
}

void lane_futex(struct lane_channel *ch, struct lane_word *ret_word)
{
	/* First, so that a wake for the number that follows comes after this load. */
	ret_word->addr = &ch->peer->bell;
	ret_word->seen = word_load(&ch->peer->bell);
	set_state(ch, LANE_FUTEX);
	word_fence(); /* B3 */
}

void lane_await_alarm(struct lane_channel *ch)
{
	set_state(ch, LANE_ALARM);
}
