// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>
#include <unistd.h>

#include "bulk.h"
#include "internal.h"
#include "memfd.h"

static uint32_t bulk_word(unsigned int index, uint32_t gen)
{
	return (index + 1) | gen << 4;
}

/*
 * Handed back before the record is consumed counts for nothing: the record may come back
 * (lane_take_back()), and must come back with the payload it had.
 */
static bool handed_back(struct lane_channel *ch, unsigned int i)
{
	if (ch->out[i].held || ch->out[i].flying)
		return false;
	if (!ch->out[i].uses)
		return true;
	return ch->peer && word_load(&ch->peer->returned[i]) == ch->out[i].uses; /* B8 */
}

static size_t good_size(size_t size)
{
	size_t n = LANE_BULK_MIN;

	while (n < size)
		n *= 2;
	return n;
}

/* Make a buffer and pass it; what was there before has been handed back. */
static int replace(struct lane_channel *ch, unsigned int i, size_t size)
{
	struct lane_bulk *b = &ch->out[i];
	uint32_t gen = b->map ? b->gen + 1 : 0;
	void *map;
	int fd, r;

	size = good_size(size);
	r = lane_memfd_make("kdbus-bulk", size, &fd, &map);
	if (r < 0)
		return r;
	r = lane_send_sock(ch, LANE_SOCK_BULK, bulk_word(i, gen), &fd, 1);
	close(fd);
	if (r < 0) {
		lane_memfd_unmap(map, lane_memfd_round(size));
		return r;
	}
	lane_memfd_unmap(b->map, b->size);
	b->map = map;
	b->size = lane_memfd_round(size);
	b->gen = gen;
	return 0;
}

/* The best buffer: one that is free and large enough, else an unused place, else one to replace. */
static int choose(struct lane_channel *ch, size_t size)
{
	int place = -1, small = -1;
	unsigned int i;

	for (i = 0; i < LANE_BULK_MAX; i++) {
		if (!ch->out[i].map) {
			if (place < 0)
				place = (int)i;
		} else if (handed_back(ch, i)) {
			if (ch->out[i].size >= size)
				return (int)i;
			small = (int)i;
		}
	}
	return small >= 0 ? small : place;
}

bool lane_bulk_free(struct lane_channel *ch, size_t size)
{
	return choose(ch, size) >= 0;
}

unsigned int lane_bulk_held(const struct lane_channel *ch)
{
	unsigned int i, n = 0;

	for (i = 0; i < LANE_BULK_MAX; i++)
		n += ch->in[i].held;
	return n;
}

int lane_bulk_get(struct lane_channel *ch, size_t size, struct lane_put *put, void **ret_data)
{
	int i, r;

	if (ch->broken)
		return -EPROTO;
	if (ch->hungup)
		return -ECONNRESET;
	if (!size || size > LANE_BULK_SIZE_MAX)
		return -EMSGSIZE;
	r = lane_reap(ch);
	if (r < 0)
		return r;
	i = choose(ch, size);
	if (i < 0) {
		put->bulk_size = (uint32_t)size;
		return -EAGAIN;
	}
	if (ch->out[i].size < size) {
		r = replace(ch, (unsigned int)i, size);
		if (r < 0)
			return r;
	}
	ch->out[i].held = true;
	put->bulk = bulk_word((unsigned int)i, ch->out[i].gen);
	put->bulk_use = ch->out[i].uses + 1;
	put->bulk_size = (uint32_t)size;
	*ret_data = ch->out[i].map;
	return 0;
}

void lane_bulk_drop(struct lane_channel *ch, struct lane_put *put)
{
	if (!put->bulk)
		return;
	ch->out[LANE_BULK_INDEX(put->bulk) - 1].held = false;
	put->bulk = 0;
	put->bulk_use = 0;
	put->bulk_size = 0;
}

void lane_bulk_published(struct lane_channel *ch, const struct lane_put *put)
{
	struct lane_bulk *b;

	if (!put->bulk)
		return;
	b = &ch->out[LANE_BULK_INDEX(put->bulk) - 1];
	assert(b->held && put->bulk_use == b->uses + 1);
	b->uses = put->bulk_use;
	b->held = false;
	b->flying = true;
}

void lane_bulk_landed(struct lane_channel *ch, uint32_t bulk)
{
	if (bulk)
		ch->out[LANE_BULK_INDEX(bulk) - 1].flying = false;
}

int lane_bulk_receive(struct lane_channel *ch, uint32_t bulk, int fd)
{
	unsigned int i = LANE_BULK_INDEX(bulk) - 1;
	struct lane_bulk *b;
	const void *map;
	size_t size;

	if (i >= LANE_BULK_MAX)
		return -EPROTO;
	b = &ch->in[i];
	/* The peer may replace what it has back, nothing else. */
	if (b->held || LANE_BULK_GEN(bulk) != (b->map ? b->gen + 1 : 0))
		return -EPROTO;
	if (lane_memfd_map_shared(fd, LANE_BULK_MIN, LANE_BULK_SIZE_MAX, &map, &size) < 0)
		return -EPROTO;
	lane_memfd_unmap(b->map, b->size);
	b->map = (void *)map;
	b->size = size;
	b->gen = LANE_BULK_GEN(bulk);
	return 0;
}

/* The buffer was passed before the record was published, so it is here or never. */
static int await_buffer(struct lane_channel *ch, const struct lane_bulk *b, uint32_t gen)
{
	unsigned int tries = 0;

	while (!b->map || b->gen != gen)
		if (tries++ == LANE_DRAIN_MAX || lane_channel_recv(ch) < 0)
			return lane_broke(ch);
	return 0;
}

int lane_bulk_data(struct lane_channel *ch, const struct lane_env *env, const void **ret_data)
{
	unsigned int i = LANE_BULK_INDEX(env->bulk) - 1;
	struct lane_bulk *b;
	int r;

	if (i >= LANE_BULK_MAX)
		return lane_broke(ch);
	b = &ch->in[i];
	if (b->held || env->bulk_use != b->uses + 1)
		return lane_broke(ch);
	r = await_buffer(ch, b, LANE_BULK_GEN(env->bulk));
	if (r < 0)
		return r;
	if (env->bulk_size > b->size)
		return lane_broke(ch);
	b->held = true;
	*ret_data = b->map;
	return 0;
}

void lane_bulk_return(struct lane_channel *ch, uint32_t bulk, uint32_t use)
{
	unsigned int i = LANE_BULK_INDEX(bulk) - 1;
	struct lane_bulk *b;

	assert(i < LANE_BULK_MAX);
	b = &ch->in[i];
	assert(b->held && use == b->uses + 1);
	b->uses = use;
	b->held = false;
	own_store(ch, returned[i], use); /* B8 */
	/* The writer may wait for a buffer; a ring that fails is as good as none. */
	word_fence(); /* B4 */
	if (ch->own && ch->peer && !ch->broken && !ch->hungup)
		lane_ring_for_space(ch);
}

void lane_bulk_deinit(struct lane_channel *ch)
{
	unsigned int i;

	for (i = 0; i < LANE_BULK_MAX; i++) {
		lane_memfd_unmap(ch->out[i].map, ch->out[i].size);
		lane_memfd_unmap(ch->in[i].map, ch->in[i].size);
	}
	memset(ch->out, 0, sizeof(ch->out));
	memset(ch->in, 0, sizeof(ch->in));
}
