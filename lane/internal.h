/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * internal.h - shared by the files of lane/, not for programs
 */
#ifndef LANE_INTERNAL_H
#define LANE_INTERNAL_H

#include <errno.h>
#include "atomic.h"
#include "channel.h"

static inline uint32_t align_up(uint32_t n)
{
	return (n + LANE_ALIGN - 1) & ~(LANE_ALIGN - 1);
}

static inline unsigned char *ring_of(const struct lane_head *head)
{
	return (unsigned char *)head + LANE_HEAD_SIZE;
}

/* A peer broke the format: from here on every call says so. */
static inline int lane_broke(struct lane_channel *ch)
{
	ch->broken = true;
	return -EPROTO;
}

static inline uint32_t mode_of(uint32_t state)
{
	return state & LANE_MODE_MASK;
}

static inline uint32_t number_of(uint32_t state)
{
	return state >> LANE_NUMBER_SHIFT;
}

static inline uint32_t state_of(uint32_t mode, uint32_t number)
{
	return mode | number << LANE_NUMBER_SHIFT;
}

/* Numbers have 30 bits and wrap. */
static inline uint32_t next_number(uint32_t number)
{
	return (number + 1) & (UINT32_MAX >> LANE_NUMBER_SHIFT);
}

/* Is @number one of those after @last up to @asked? */
static inline bool was_asked(uint32_t number, uint32_t last, uint32_t asked)
{
	uint32_t mask = UINT32_MAX >> LANE_NUMBER_SHIFT;

	return number <= mask && ((number - last) & mask) - 1 < ((asked - last) & mask);
}

/* Store a word of the own lane's head; before the lane is made only the master counts. */
#define own_store(ch, field, value)                               \
	do {                                                      \
		if ((ch)->own)                                    \
			word_store(&(ch)->own->field, value);     \
	} while (0)

int lane_send_sock(struct lane_channel *ch, uint16_t type, uint32_t value, const int *fds,
		   unsigned int n_fds);

/* The peer's reading word, LANE_OPEN etc.; CLOSED stays CLOSED. writer.c */
uint32_t lane_load_reading(struct lane_channel *ch);
/* Take the oldest record off the list of those in flight. writer.c */
void lane_land(struct lane_channel *ch);

/* Ring the writer of the peer's lane if it waits for what has come to pass. reader.c */
int lane_ring_for_space(struct lane_channel *ch);

/* bulk.c */
bool lane_bulk_free(struct lane_channel *ch, size_t size);
int lane_bulk_receive(struct lane_channel *ch, uint32_t bulk, int fd);
void lane_bulk_deinit(struct lane_channel *ch);
void lane_bulk_landed(struct lane_channel *ch, uint32_t bulk);
void lane_bulk_published(struct lane_channel *ch, const struct lane_put *put);

#endif
