// SPDX-License-Identifier: LGPL-2.1-or-later
/* The writer's half of a lane: rules 3, 6, 7 (for space) and 18. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alarm.h"
#include "internal.h"

/* Ring bytes in the page that the head is in: a quiet lane stays within it. */
#define FIRST_PAGE (4096u - LANE_HEAD_SIZE)

static uint32_t position(const struct lane_channel *ch)
{
	return ch->write & (ch->ring - 1);
}

static bool empty(const struct lane_channel *ch)
{
	return ch->write == ch->acked;
}

/* Bytes that may be in use after a record, END's room and the replies' kept free. */
static uint32_t usable(const struct lane_channel *ch, unsigned int flags)
{
	uint32_t reserve = flags & LANE_F_REPLY ? 0 : ch->ring / 4;

	return ch->ring - LANE_ALIGN - reserve;
}

static unsigned int flights_max(unsigned int flags)
{
	return flags & LANE_F_REPLY ? LANE_FLIGHTS_MAX : LANE_MSGS_MAX;
}

/* A record does not wrap: what is left before the end of the ring is padded if it is too little. */
static uint32_t pad_for(const struct lane_channel *ch, uint32_t size)
{
	uint32_t left = ch->ring - position(ch);

	return size > left ? left : 0;
}

static bool fits(const struct lane_channel *ch, const struct lane_put *put, uint32_t size)
{
	uint32_t used = ch->write - ch->live;

	if (ch->flight_count >= flights_max(put->flags))
		return false;
	if (ch->flight_fds + put->fds > LANE_FDS_MAX ||
	    ch->flight_memfds + put->memfds > LANE_FDS_MAX)
		return false;
	return used + pad_for(ch, size) + size <= usable(ch, put->flags);
}

/*
 * An empty ring is used from its start again. The reader has seen nothing beyond its cursor, which
 * is ours, so it reads skip only after it has seen what is published next.
 */
static void go_back(struct lane_channel *ch, uint32_t size)
{
	uint32_t at = position(ch);

	if (!at || at + size <= FIRST_PAGE || !empty(ch))
		return;
	ch->skip = ch->write;
	word_store(&ch->own->skip, ch->skip);
	ch->write += ch->ring - at;
	ch->live = ch->write;
}

/* A skip that the reader has long passed must not be met again when the cursors have wrapped. */
static void forget_skip(struct lane_channel *ch)
{
	if (ch->write != ch->skip || !ch->skip)
		return;
	ch->skip = 0;
	word_store(&ch->own->skip, 0);
}

static int check_put(const struct lane_channel *ch, const struct lane_put *put)
{
	if (put->type == LANE_REC_PAD || put->type == LANE_REC_END || !put->type ||
	    (put->type > LANE_REC_GONE && put->type < LANE_REC_PROGRAM))
		return -EINVAL;
	if ((put->flags & ~LANE_F_ALL) || put->fds > LANE_FDS_MAX || put->memfds > LANE_FDS_MAX)
		return -EINVAL;
	return put->length > lane_body_max(ch->ring) ? -EMSGSIZE : 0;
}

uint32_t lane_load_reading(struct lane_channel *ch)
{
	if (ch->peer && mode_of(ch->peer_reading) != LANE_CLOSED) {
		ch->peer_reading = word_load(&ch->peer->reading); /* B6 */
		if (mode_of(ch->peer_reading) > LANE_CLOSED)
			lane_broke(ch);
	}
	return mode_of(ch->peer_reading);
}

static int check_open(struct lane_channel *ch)
{
	uint32_t reading;

	if (ch->broken)
		return -EPROTO;
	if (ch->hungup)
		return -ECONNRESET;
	if (!ch->own)
		return -ENOLINK;
	if (ch->end_sent)
		return -ESHUTDOWN;
	reading = lane_load_reading(ch);
	if (reading == LANE_OPEN)
		return 0;
	return reading == LANE_CLOSING ? -EINPROGRESS : -ESHUTDOWN;
}

static bool passed(const struct lane_channel *ch, uint32_t cursor, uint32_t consumed)
{
	return cursor - ch->acked <= consumed - ch->acked;
}

/* Of the copies of its descriptors. */
static void let_go(struct lane_channel *ch, struct lane_flight *f)
{
	unsigned int i;

	if (!f->kept)
		return;
	for (i = 0; i < (unsigned int)f->fds + f->memfds; i++)
		ch->ops->close(ch->ops, f->kept[i]);
	free(f->kept);
	f->kept = NULL;
	ch->n_kept--;
}

void lane_land(struct lane_channel *ch)
{
	struct lane_flight *f = &ch->flights[ch->flight_first];

	ch->flight_fds -= f->fds;
	ch->flight_memfds -= f->memfds;
	let_go(ch, f);
	lane_bulk_landed(ch, f->bulk);
	ch->flight_first = (ch->flight_first + 1) % LANE_FLIGHTS_MAX;
	ch->flight_count--;
}

uint64_t lane_oldest_tag(const struct lane_channel *ch)
{
	return ch->flight_count ? ch->flights[ch->flight_first].tag : UINT64_MAX;
}

int lane_reap(struct lane_channel *ch)
{
	uint32_t consumed;

	if (!ch->peer || !ch->own)
		return 0;
	consumed = word_load(&ch->peer->consumed); /* B2 */
	if (consumed - ch->acked > ch->published - ch->acked || consumed % LANE_ALIGN)
		return lane_broke(ch);
	while (ch->flight_count && passed(ch, ch->flights[ch->flight_first].end, consumed))
		lane_land(ch);
	ch->acked = consumed;
	/* At each step, for cursors that are more than half of all numbers apart do not compare. */
	if ((int32_t)(ch->acked - ch->live) > 0)
		ch->live = ch->acked;
	return 0;
}

/* Who has come to the end stays there until there is more: his word need not be asked again. */
bool lane_passed(struct lane_channel *ch)
{
	return ch->acked == ch->published || (lane_reap(ch) == 0 && ch->acked == ch->published);
}

static void write_env(struct lane_channel *ch, uint32_t cursor, const struct lane_env *env)
{
	LANE_YIELD(LANE_AT_WRITE);
	memcpy(ring_of(ch->own) + (cursor & (ch->ring - 1)), env, sizeof(*env));
}

static void write_pad(struct lane_channel *ch, uint32_t size)
{
	struct lane_env pad = { .size = size, .type = LANE_REC_PAD };

	write_env(ch, ch->write, &pad);
}

/*
 * Is it time to see whether the ring is empty? In a burst that is so each time that twice as much
 * is in it: the reader's cursor is a cache line that it keeps writing.
 */
static bool may_go_back(const struct lane_channel *ch, uint32_t size)
{
	return position(ch) && position(ch) + size > FIRST_PAGE &&
	       (int32_t)(ch->write - ch->look_at) >= 0;
}

int lane_put(struct lane_channel *ch, const struct lane_put *put, void **ret_body)
{
	uint32_t size, pad;
	int r;

	r = check_open(ch);
	if (r < 0)
		return r;
	r = check_put(ch, put);
	if (r < 0)
		return r;
	size = LANE_ALIGN + align_up(put->length);
	if (!fits(ch, put, size) || may_go_back(ch, size)) {
		r = lane_reap(ch);
		if (r < 0)
			return r;
		ch->look_at = ch->write + (ch->write - ch->live);
		if (!fits(ch, put, size))
			return -EAGAIN;
	}
	go_back(ch, size);
	forget_skip(ch);
	pad = pad_for(ch, size);
	if (pad)
		write_pad(ch, pad);
	ch->put = *put;
	ch->put_start = ch->write + pad;
	ch->put_size = size;
	ch->putting = true;
	ch->fds_sent = false;
	ch->put_kept = NULL;
	*ret_body = ring_of(ch->own) + (ch->put_start & (ch->ring - 1)) + LANE_ALIGN;
	return 0;
}

int lane_put_fds(struct lane_channel *ch, const int *fds, unsigned int n)
{
	int r;

	if (!ch->putting || ch->fds_sent || !n || n != (unsigned int)ch->put.fds + ch->put.memfds)
		return -EINVAL;
	r = lane_send_sock(ch, LANE_SOCK_FDS, ch->fd_seq + 1, fds, n);
	if (r < 0)
		return r;
	ch->fd_seq++;
	ch->fds_sent = true;
	return 0;
}

void lane_keep_fds(struct lane_channel *ch, int *fds)
{
	assert(ch->putting);
	ch->put_kept = fds;
}

bool lane_keeps_fds(const struct lane_channel *ch)
{
	return ch->n_kept;
}

bool lane_fds_fit(struct lane_channel *ch, unsigned int n)
{
	if (ch->flight_fds + n > LANE_FDS_MAX)
		lane_reap(ch);
	return ch->flight_fds + n <= LANE_FDS_MAX;
}

void lane_cancel(struct lane_channel *ch)
{
	/* The peer has the descriptors of a record whose body nobody wrote: a mistake of ours. */
	assert(!ch->putting || !ch->fds_sent);
	ch->putting = false;
}

static void fly(struct lane_channel *ch)
{
	unsigned int i = (ch->flight_first + ch->flight_count++) % LANE_FLIGHTS_MAX;
	struct lane_flight *f = &ch->flights[i];

	f->start = ch->put_start;
	f->end = ch->put_start + ch->put_size;
	f->bulk = ch->put.bulk;
	f->tag = ch->put.tag;
	f->fds = ch->put.fds;
	f->memfds = ch->put.memfds;
	f->kept = ch->put_kept;
	ch->n_kept += f->kept != NULL;
	ch->flight_fds += f->fds;
	ch->flight_memfds += f->memfds;
}

static void store_published(struct lane_channel *ch)
{
	ch->published = ch->write;
	word_store(&ch->own->published, ch->published); /* B1 */
}

void lane_publish(struct lane_channel *ch, uint64_t stamp, uint64_t round)
{
	struct lane_env env = {
		.size = ch->put_size,
		.type = ch->put.type,
		.flags = ch->put.flags,
		.stamp = stamp,
		.round = round,
		.length = ch->put.length,
		.fds = ch->put.fds,
		.memfds = ch->put.memfds,
		.fd_seq = ch->fds_sent ? ch->fd_seq : 0,
		.bulk = ch->put.bulk,
		.bulk_use = ch->put.bulk_use,
		.bulk_size = ch->put.bulk_size,
		.subject = ch->put.subject,
	};

	assert(ch->putting && ch->fds_sent == (ch->put.fds + ch->put.memfds > 0));
	fly(ch);
	write_env(ch, ch->put_start, &env);
	lane_bulk_published(ch, &ch->put);
	ch->write = ch->put_start + ch->put_size;
	ch->putting = false;
	store_published(ch);
}

int lane_end(struct lane_channel *ch, uint64_t stamp)
{
	struct lane_env env = { .size = LANE_ALIGN, .type = LANE_REC_END, .stamp = stamp };

	if (!ch->own)
		return -ENOLINK;
	if (ch->end_sent)
		return -ESHUTDOWN;
	assert(!ch->putting);
	forget_skip(ch);
	write_env(ch, ch->write, &env);
	ch->write += LANE_ALIGN;
	ch->end_sent = true;
	store_published(ch);
	return 0;
}

/* The peer may have passed its lane since: its first message, before any ring of its. */
static void take_up_lane(struct lane_channel *ch)
{
	while (!ch->peer && lane_channel_recv(ch) == 0)
		;
}

static int ring_once(struct lane_channel *ch, uint32_t mode)
{
	if (mode == LANE_ARMED)
		return lane_send_sock(ch, LANE_SOCK_BELL, ch->rung, NULL, 0);
	if (mode == LANE_ALARM && ch->peer_alarm) {
		lane_alarm_ring(ch->ops, ch->peer_alarm);
		return 0;
	}
	/* The reader loaded the bell before it stored the number: from now on it is another. */
	word_store(&ch->own->bell, ++ch->bell);
	LANE_YIELD(LANE_AT_CALL);
	ch->ops->wake(ch->ops, &ch->own->bell);
	return 0;
}

int lane_ring(struct lane_channel *ch)
{
	uint32_t state = state_of(LANE_ARMED, LANE_FIRST_NUMBER), reading;
	int r = 0;

	word_store(&ch->own->bell, ++ch->bell);
	word_fence(); /* B3 */
	take_up_lane(ch);
	if (ch->peer)
		state = word_load(&ch->peer->state);
	reading = lane_load_reading(ch);
	if (mode_of(state) != LANE_POLLING && number_of(state) != ch->rung) {
		ch->rung = number_of(state);
		r = ring_once(ch, mode_of(state));
	}
	if (ch->broken)
		return -EPROTO;
	if (ch->hungup || r == -ECONNRESET)
		return -ECONNRESET;
	return reading == LANE_OPEN ? 0 : LANE_E_CLOSING;
}

/* How far the reader must have come for a refused record to fit. */
static uint32_t want_for(const struct lane_channel *ch, const struct lane_put *put, uint32_t size)
{
	uint32_t limit = usable(ch, put->flags), end = ch->write + pad_for(ch, size) + size;
	uint32_t want = end - ch->live > limit ? end - limit : ch->acked;
	unsigned int i, fds = ch->flight_fds, memfds = ch->flight_memfds;
	const struct lane_flight *f;

	for (i = 0; i < ch->flight_count; i++) {
		if (ch->flight_count - i < flights_max(put->flags) &&
		    fds + put->fds <= LANE_FDS_MAX && memfds + put->memfds <= LANE_FDS_MAX)
			break;
		f = &ch->flights[(ch->flight_first + i) % LANE_FLIGHTS_MAX];
		fds -= f->fds;
		memfds -= f->memfds;
		if (f->end - ch->acked > want - ch->acked)
			want = f->end;
	}
	return want;
}

/* A buffer comes back at any time, by itself: the next thing that the reader does rings. */
static bool wants_buffer(const struct lane_put *put)
{
	return put->bulk_size && !put->bulk;
}

static bool has_room(struct lane_channel *ch, const struct lane_put *put, uint32_t size)
{
	return fits(ch, put, size) && (!wants_buffer(put) || lane_bulk_free(ch, put->bulk_size));
}

static void arm_space(struct lane_channel *ch, uint32_t mode, uint32_t want)
{
	ch->space_number = next_number(ch->space_number);
	ch->space = state_of(mode, ch->space_number);
	word_store(&ch->own->want, want);
	word_store(&ch->own->space, ch->space);
	word_fence(); /* B4 */
}

static bool may_go_on(uint32_t reading, bool room)
{
	return reading == LANE_OPEN ? room : reading != LANE_CLOSING;
}

static int space_wait(struct lane_channel *ch, const struct lane_put *put, uint32_t mode,
		      struct lane_word *ret_word)
{
	uint32_t size = LANE_ALIGN + align_up(put->length);
	int r;

	r = check_open(ch);
	if (r == 0 || r == -EINPROGRESS)
		r = check_put(ch, put);
	if (r < 0)
		return r;
	arm_space(ch, mode, want_for(ch, put, size));
	take_up_lane(ch);
	r = lane_reap(ch);
	if (r == 0 && ret_word && ch->peer)
		*ret_word = (struct lane_word){ .addr = &ch->peer->consumed, .seen = ch->acked };
	if (r == 0 && may_go_on(lane_load_reading(ch), has_room(ch, put, size)))
		lane_space_done(ch);
	else if (r == 0)
		r = -EAGAIN;
	return r;
}

int lane_space_arm(struct lane_channel *ch, const struct lane_put *put)
{
	return space_wait(ch, put, LANE_ARMED, NULL);
}

int lane_space_futex(struct lane_channel *ch, const struct lane_put *put,
		     struct lane_word *ret_word)
{
	if (!ch->peer)
		return -ENOLINK;
	return space_wait(ch, put, LANE_FUTEX, ret_word);
}

int lane_passed_arm(struct lane_channel *ch)
{
	if (!ch->own)
		return -ENOLINK;
	arm_space(ch, LANE_ARMED, ch->published);
	if (!lane_passed(ch))
		return ch->broken ? -EPROTO : -EAGAIN;
	lane_space_done(ch);
	return 0;
}

void lane_space_done(struct lane_channel *ch)
{
	ch->space = LANE_POLLING;
	own_store(ch, space, ch->space);
}
