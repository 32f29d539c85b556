// SPDX-License-Identifier: LGPL-2.1-or-later
/* The lock of a handle, and waking its sleepers. */
#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "user.h"

/*
 * A synchronous caller spins and sleeps on a futex with the lock held, because it reads lanes while
 * it does. It looks at contenders while it spins, and this wakes it from the futex; if it falls
 * asleep just after, on a word that is not the alarm, the sleep is short by itself (LANE_FUTEX_NS).
 */
void user_lock(struct user *u)
{
	const u32 *word;
	u32 *alarm;

	if (pthread_mutex_trylock(&u->lock) == 0)
		return;
	atomic_fetch_add(&u->contenders, 1);
	word = atomic_load(&u->sleeping_on);
	alarm = atomic_load(&u->alarm_word);
	if (word)
		lane_linux_ops.wake(&lane_linux_ops, word);
	if (word && alarm)
		lane_alarm_ring(&lane_linux_ops, alarm);
	pthread_mutex_lock(&u->lock);
	atomic_fetch_sub(&u->contenders, 1);
}

static void wake(struct waiter *w)
{
	if (w->eventfd < 0 || w->woken)
		return;
	w->woken = true;
	lane_linux_ops.bell_set(&lane_linux_ops, w->eventfd);
}

/* A doorbell is good for one: the next may come only after the lane was armed anew. */
static bool disturbed(const struct waiter *w)
{
	const struct waiter_channel *c;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(w->watched); i++) {
		c = &w->watched[i];
		if (c->ch && !c->room && (c->ch->bell_rung || c->ch->state != c->state))
			return true;
		if (c->ch && c->room &&
		    (c->ch->space != c->space || c->ch->last_space != c->last_space))
			return true;
	}
	return false;
}

void user_unlock(struct user *u)
{
	struct waiter *w;

	list_for_each_entry(w, &u->waiters, link)
		if (disturbed(w))
			wake(w);
	pthread_mutex_unlock(&u->lock);
}

/* Eventfds are kept for the next waiter: making one costs more than the wait it serves. */
void user_waiter_init(struct user *u, struct waiter *w)
{
	size_t i;

	*w = (struct waiter){ .eventfd = -1 };
	for (i = 0; i < ARRAY_SIZE(u->spare) && w->eventfd < 0; i++) {
		w->eventfd = u->spare[i].eventfd;
		u->spare[i].eventfd = -1;
	}
	if (w->eventfd < 0)
		w->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	list_add_tail(&w->link, &u->waiters);
}

/* What the sleep relies on: to be called when the last look is over. */
void user_waiter_watch(struct waiter *w, const struct lane_channel *ch, bool room)
{
	struct waiter_channel *c = &w->watched[w->watched[0].ch != NULL];

	*c = (struct waiter_channel){ .ch = ch,
				      .room = room,
				      .state = ch->state,
				      .space = ch->space,
				      .last_space = ch->last_space };
}

/* Does another thread sleep on the armed number of a lane? */
bool user_others_read(const struct user *u)
{
	const struct waiter *w;

	list_for_each_entry(w, &u->waiters, link)
		if (w->watched[0].ch && !w->watched[0].room)
			return true;
	return false;
}

void user_waiter_done(struct user *u, struct waiter *w)
{
	size_t i;

	list_del_init(&w->link);
	if (w->eventfd < 0)
		return;
	lane_linux_ops.bell_clear(&lane_linux_ops, w->eventfd);
	for (i = 0; i < ARRAY_SIZE(u->spare); i++) {
		if (u->spare[i].eventfd < 0) {
			u->spare[i].eventfd = w->eventfd;
			return;
		}
	}
	close(w->eventfd);
}

void user_wake_waiters(struct user *u)
{
	struct waiter *w;

	list_for_each_entry(w, &u->waiters, link)
		wake(w);
}

u64 user_now(void)
{
	return lane_linux_ops.now(&lane_linux_ops);
}
