/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bulk.h - bulk buffers: large payloads in memfds that both sides keep mapped
 *
 * 1. A buffer belongs to the writer of a lane. It is passed once (LANE_SOCK_BULK), mapped once at
 *    the reader, and used again and again: the steady state has no page faults.
 * 2. Buffer i has use numbers. A record names buffer and use; the reader hands the buffer back by
 *    storing that number in returned[i] of its own lane's head (barrier B8). The writer uses it
 *    again only when returned[i] is the number of its last use. Only that one value counts: any
 *    other is "not yet".
 * 3. A buffer that is too small is replaced: LANE_SOCK_BULK and the records name index and
 *    generation (LANE_BULK_GEN), and a generation ends only when its last use was handed back.
 * 4. The writer can change the contents at any time. Read in place only from a sender of equal
 *    authority, else copy first (the caller decides: it knows from the introduction).
 */
#ifndef LANE_BULK_H
#define LANE_BULK_H

#include "channel.h"

/**
 * lane_bulk_get() - a free buffer of the own lane, made and passed to the peer if need be
 * @size:	bytes needed, 1..LANE_BULK_SIZE_MAX
 * @put:	bulk, bulk_use and bulk_size are set
 * @ret_data:	where to write
 *
 * Follow with lane_put() and lane_publish(), or with lane_bulk_drop().
 *
 * Return: 0; -EAGAIN: all are in use (@put says so to lane_space_arm()), or the socket is full;
 * -EMSGSIZE: @size; else as
 * lane_memfd_make() or ops->send().
 */
int lane_bulk_get(struct lane_channel *ch, size_t size, struct lane_put *put, void **ret_data);

/**
 * lane_bulk_drop() - the buffer of lane_bulk_get() is not used after all
 */
void lane_bulk_drop(struct lane_channel *ch, struct lane_put *put);

/**
 * lane_bulk_data() - the payload of a taken record
 * @env:	its envelope
 * @ret_data:	env->bulk_size bytes, until lane_bulk_return()
 *
 * Return: 0; -EPROTO: no such buffer, too small, use number not the next, or held already.
 */
int lane_bulk_data(struct lane_channel *ch, const struct lane_env *env, const void **ret_data);

/**
 * lane_bulk_held() - how many buffers of the peer's lane are held: with all of them, the peer
 * can send nothing large
 */
unsigned int lane_bulk_held(const struct lane_channel *ch);

/**
 * lane_bulk_return() - hand a buffer back; any order
 * @bulk:	env.bulk of the record
 * @use:	the use number of the record
 */
void lane_bulk_return(struct lane_channel *ch, uint32_t bulk, uint32_t use);

#endif
