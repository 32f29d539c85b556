/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * alarm.h - one word on which a connection sleeps for many lanes
 *
 * Whoever waits for several lanes would have to sleep on as many futex words, which costs more than
 * all the rest of a call. So each connection has one word of its own, in a page that it shares with
 * those whom it lets write it: whoever publishes counts it up and wakes.
 *
 * 1. It is the exception to rule 1: several write it. It tells nothing: nobody draws a conclusion
 *    from its value, but that a sleep whose value has changed is over.
 * 2. It is given only where LANE_ALARMS is set: to the daemon, and to peers of equal authority,
 *    which could do worse. What one of them can do by it: wake the sleeper for nothing, and, by
 *    putting back a value that another has just counted up, let it sleep on until LANE_FUTEX_NS is
 *    over; then it arms its lanes and looks (rule 7), so nothing is lost. Others keep to the bell.
 * 3. The giver passes it by LANE_SOCK_ALARM, then stores LANE_ALARM_GIVEN; it says LANE_ALARM to
 *    that peer only when it has read LANE_ALARM_TAKEN, for until then the message may lie unread.
 * 4. Its size is sealed, so that it can be written without SIGBUS; it is never read by the peer.
 */
#ifndef LANE_ALARM_H
#define LANE_ALARM_H

#include "channel.h"

/**
 * struct lane_alarm - the word, at its owner; without a word: not made
 */
struct lane_alarm {
	uint32_t *word;
	int fd;
};

/**
 * lane_alarm_make() - make the word
 *
 * Return: 0 or as lane_memfd_make().
 */
int lane_alarm_make(struct lane_alarm *alarm);

/**
 * lane_alarm_deinit() - after the channels that it was given over
 */
void lane_alarm_deinit(struct lane_alarm *alarm);

/**
 * lane_alarm_give() - pass it to the peer, once
 * @alarm:	lives as long as the channel
 *
 * Return: 0, also if it was given before; -EPERM: no LANE_ALARMS; -ENOLINK: no own lane; -EAGAIN:
 * socket full; else as lane_send_sock().
 */
int lane_alarm_give(struct lane_channel *ch, const struct lane_alarm *alarm);

/**
 * lane_alarm_look() - take up the peer's, if it says that it has given one
 *
 * Takes socket messages then: lane_look_touch() after it.
 */
void lane_alarm_look(struct lane_channel *ch);

/**
 * lane_alarm_works() - whether the peer has ours: lane_await_alarm() may be said to it
 */
bool lane_alarm_works(const struct lane_channel *ch);

/**
 * lane_alarm_load() - what to sleep on; before lane_await_alarm() of the lanes, which is before the
 * look that decides
 */
void lane_alarm_load(const struct lane_alarm *alarm, struct lane_word *ret_word);

/**
 * lane_await_alarm() - store ALARM with a new number; the caller fences after the last of them (B3)
 */
void lane_await_alarm(struct lane_channel *ch);

/**
 * lane_alarm_ring() - end the sleep on @word: a peer's, or the own one from another thread
 */
void lane_alarm_ring(const struct lane_ops *ops, uint32_t *word);

/* For channel.c. @fd: -1: the process had no room for it */
int lane_alarm_receive(struct lane_channel *ch, int fd);
void lane_alarm_unmap(uint32_t *word);

#endif
