// SPDX-License-Identifier: LGPL-2.1-or-later
/* The end of a channel: rules 14 and 15. */
#include <string.h>

#include "internal.h"

/* Longest sleep in which the death of a peer goes unnoticed. */
#define NAP_NS 10000000u

int lane_ask_end(struct lane_channel *ch)
{
	return lane_send_sock(ch, LANE_SOCK_ASK_END, 0, NULL, 0);
}

static void set_reading(struct lane_channel *ch, uint32_t value)
{
	ch->reading = state_of(value, next_number(number_of(ch->reading)));
	own_store(ch, reading, ch->reading);
	word_fence(); /* B5 */
}

/* Whoever waits for the word sleeps on it, on our cursor, or in ppoll. */
static void tell(struct lane_channel *ch)
{
	if (!ch->own)
		return;
	LANE_YIELD(LANE_AT_CALL);
	ch->ops->wake(ch->ops, &ch->own->reading);
	ch->ops->wake(ch->ops, &ch->own->consumed);
	lane_send_sock(ch, LANE_SOCK_CLOSED, 0, NULL, 0);
}

void lane_closing_start(struct lane_channel *ch)
{
	set_reading(ch, LANE_CLOSING);
}

/* A channel that came about after closing began has nothing to take back, or to say. */
void lane_closing_cancel(struct lane_channel *ch)
{
	if (mode_of(ch->reading) != LANE_CLOSING)
		return;
	set_reading(ch, LANE_OPEN);
	tell(ch);
}

void lane_closing_finish(struct lane_channel *ch)
{
	/* The peer counts on two changes of the word for each time it is told. */
	if (mode_of(ch->reading) == LANE_OPEN)
		lane_closing_start(ch);
	lane_consume(ch);
	set_reading(ch, LANE_CLOSED); /* B6 */
	tell(ch);
}

bool lane_final(struct lane_channel *ch)
{
	return lane_load_reading(ch) == LANE_CLOSED || ch->broken || ch->hungup;
}

int lane_closing_wait(struct lane_channel *ch, uint64_t deadline)
{
	struct lane_word word;
	uint64_t now;

	for (;;) {
		lane_drain(ch);
		if (lane_final(ch))
			return LANE_E_CLOSING;
		if (mode_of(ch->peer_reading) != LANE_CLOSING)
			return 0;
		now = ch->ops->now(ch->ops);
		if (now >= deadline)
			return -ETIMEDOUT;
		word.addr = &ch->peer->reading;
		word.seen = ch->peer_reading;
		LANE_YIELD(LANE_AT_CALL);
		ch->ops->sleep(ch->ops, &word, 1,
			       deadline - now < NAP_NS ? deadline - now : NAP_NS);
	}
}

int lane_take_back(struct lane_channel *ch, struct lane_back *ret)
{
	struct lane_flight *f;
	unsigned int i;

	if (!lane_final(ch))
		return -EBUSY;
	/* What it took is said in its lane, which may still be in the socket. */
	if (!ch->peer)
		lane_drain(ch);
	lane_reap(ch); /* a cursor that makes no sense took nothing */
	if (!ch->flight_count)
		return -ENOENT;
	f = &ch->flights[ch->flight_first];
	memset(ret, 0, sizeof(*ret));
	memcpy(&ret->env, ring_of(ch->own) + (f->start & (ch->ring - 1)), sizeof(ret->env));
	ret->tag = f->tag;
	ret->body = ring_of(ch->own) + (f->start & (ch->ring - 1)) + LANE_ALIGN;
	i = LANE_BULK_INDEX(f->bulk);
	if (i)
		ret->bulk = ch->out[i - 1].map;
	ret->fds = f->kept;
	ch->n_kept -= f->kept != NULL;
	f->kept = NULL;
	lane_land(ch);
	return 0;
}

static bool ours_over(struct lane_channel *ch)
{
	if (!ch->own || lane_final(ch))
		return true;
	return ch->end_sent && lane_passed(ch);
}

bool lane_over(struct lane_channel *ch)
{
	bool theirs = ch->ended || !ch->peer || mode_of(ch->reading) == LANE_CLOSED;

	return theirs && ours_over(ch);
}
