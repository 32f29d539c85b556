// SPDX-License-Identifier: LGPL-2.1-or-later
#include <unistd.h>

#include "alarm.h"
#include "internal.h"
#include "memfd.h"

int lane_alarm_make(struct lane_alarm *alarm)
{
	void *map = NULL;
	int r = lane_memfd_make_common("kdbus-alarm", &alarm->fd, &map);

	if (r == 0)
		alarm->word = map;
	return r;
}

void lane_alarm_unmap(uint32_t *word)
{
	lane_memfd_unmap(word, lane_memfd_round(sizeof(*word)));
}

void lane_alarm_deinit(struct lane_alarm *alarm)
{
	if (!alarm->word)
		return;
	lane_alarm_unmap(alarm->word);
	close(alarm->fd);
	*alarm = (struct lane_alarm){ .fd = -1 };
}

static void say(struct lane_channel *ch, uint32_t bit)
{
	ch->alarm_bits |= bit;
	own_store(ch, alarm, ch->alarm_bits);
}

int lane_alarm_give(struct lane_channel *ch, const struct lane_alarm *alarm)
{
	int r;

	if (ch->alarm)
		return 0;
	if (!(ch->flags & LANE_ALARMS))
		return -EPERM;
	if (!ch->own)
		return -ENOLINK;
	r = lane_send_sock(ch, LANE_SOCK_ALARM, 0, &alarm->fd, 1);
	if (r < 0)
		return r;
	ch->alarm = alarm;
	say(ch, LANE_ALARM_GIVEN);
	return 0;
}

int lane_alarm_receive(struct lane_channel *ch, int fd)
{
	void *map = NULL;
	int r;

	if (!(ch->flags & LANE_ALARMS) || ch->peer_alarm)
		return -EPROTO;
	/* Without it the bell does. */
	if (fd < 0)
		return 0;
	r = lane_memfd_map_common(fd, &map);
	if (r < 0)
		return r == -ENOMEM ? 0 : -EPROTO;
	ch->peer_alarm = map;
	say(ch, LANE_ALARM_TAKEN);
	return 0;
}

void lane_alarm_look(struct lane_channel *ch)
{
	if (ch->flags & LANE_ALARMS && !ch->peer_alarm && ch->peer &&
	    word_load(&ch->peer->alarm) & LANE_ALARM_GIVEN)
		lane_drain(ch);
}

bool lane_alarm_works(const struct lane_channel *ch)
{
	return ch->alarm && ch->peer && word_load(&ch->peer->alarm) & LANE_ALARM_TAKEN;
}

void lane_alarm_load(const struct lane_alarm *alarm, struct lane_word *ret_word)
{
	*ret_word = (struct lane_word){ .addr = alarm->word, .seen = word_load(alarm->word) };
}

void lane_alarm_ring(const struct lane_ops *ops, uint32_t *word)
{
	word_count(word);
	LANE_YIELD(LANE_AT_CALL);
	ops->wake(ops, word);
}
