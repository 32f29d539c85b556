/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_UNDELIVERED_H
#define CLASSIC_UNDELIVERED_H

/*
 * undelivered.h - messages that the kernel refuses to carry
 *
 * 1. How many descriptors of a user may be on their way in sockets, the kernel limits. It says so
 *    when a queue is emptied, long after the sender was told nothing was wrong.
 * 2. Who waits for an answer because of such a message gets LimitsExceeded: the caller, if it was a
 *    call; the receiver, if it was an answer.
 * 3. They are told when nothing walks over queues any more, at the end of the round.
 */

#include "classic.h"

#define UNDELIVERED_TEXT                                                                           \
	"The message was dropped: too many Unix file descriptors are on their way (RLIMIT_NOFILE)"

/* A message to @to is dropped: its header, as it would have been delivered. */
void undelivered_note(struct cpeer *to, const unsigned char *data, size_t len);
/* Tell those who wait. Returns whether there were any, so that something is to be sent again. */
bool undelivered_answer(struct classic *k);

#endif
