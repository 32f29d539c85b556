// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "closer.h"
#include "thread.h"

#define ROOM_MIN 64U

/* ---- what waits; all of it with the lock ---- */

static bool make_room(struct closer *c, int fd)
{
	unsigned int room = max(c->room, ROOM_MIN), i;
	struct closer_file *more;

	if ((unsigned int)fd < c->room)
		return true;
	while (room <= (unsigned int)fd)
		room *= 2;
	more = realloc(c->files, room * sizeof(*more));
	if (!more)
		return false;
	for (i = c->room; i < room; i++)
		more[i] = (struct closer_file){ 0 };
	c->files = more;
	c->room = room;
	return true;
}

static struct closer_origin *origin_of(struct closer *c, u32 origin)
{
	struct closer_origin *o;

	list_for_each_entry(o, &c->origins, entry)
		if (o->origin == origin)
			return o;
	o = origin ? malloc(sizeof(*o)) : NULL;
	if (o)
		*o = (struct closer_origin){ .origin = origin, .first = -1 };
	else
		o = &c->unknown;
	if (o != &c->unknown || list_empty(&o->entry))
		list_add_tail(&o->entry, &c->origins);
	return o;
}

static void forget_if_over(struct closer *c, struct closer_origin *o)
{
	if (o->first >= 0 || o->closing)
		return;
	list_del_init(&o->entry);
	if (o != &c->unknown)
		free(o);
}

static void put(struct closer *c, struct closer_origin *o, int fd)
{
	c->files[fd] = (struct closer_file){ .next = -1 };
	if (o->first < 0)
		o->first = fd;
	else
		c->files[o->last].next = fd;
	o->last = fd;
}

static bool may_close(const struct closer_origin *o)
{
	return o->first >= 0 && o->closing < CLOSER_SHARE;
}

/* One that may be closed now, of who has waited longest; -1: there is none. */
static int take(struct closer *c, struct closer_origin **ret_origin)
{
	struct closer_origin *o;
	int fd;

	list_for_each_entry(o, &c->origins, entry) {
		if (!may_close(o))
			continue;
		fd = o->first;
		o->first = c->files[fd].next;
		list_move_tail(&o->entry, &c->origins);
		*ret_origin = o;
		return fd;
	}
	return -1;
}

/* Are there more than @n that may be closed now? */
static bool has_more_than(const struct closer *c, unsigned int n)
{
	const struct closer_origin *o;
	unsigned int found = 0, of_it;
	int fd;

	list_for_each_entry(o, &c->origins, entry) {
		of_it = o->closing;
		for (fd = o->first; fd >= 0 && of_it < CLOSER_SHARE; fd = c->files[fd].next) {
			of_it++;
			if (++found > n)
				return true;
		}
	}
	return false;
}

/* ---- threads ---- */

static void close_one(struct closer *c, struct closer_origin *o, int fd)
{
	c->n_closing++;
	o->closing++;
	pthread_mutex_unlock(&c->lock);
	close(fd);
	pthread_mutex_lock(&c->lock);
	c->n_closing--;
	o->closing--;
	forget_if_over(c, o);
}

static void *run(void *arg)
{
	struct closer_origin *o;
	struct closer *c = arg;
	int fd;

	pthread_mutex_lock(&c->lock);
	for (;;) {
		fd = take(c, &o);
		if (fd >= 0)
			close_one(c, o, fd);
		else if (c->keep && !c->stop)
			pthread_cond_wait(&c->wake, &c->lock);
		else
			break;
	}
	c->n_threads--;
	pthread_cond_signal(&c->ended);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static bool start_thread(struct closer *c)
{
	if (c->n_threads == CLOSER_THREADS || thread_start(run, c) < 0)
		return false;
	c->n_threads++;
	return true;
}

/* Those that are not in close() look at what waits before they sleep or end. */
static void call_thread(struct closer *c)
{
	if (has_more_than(c, c->n_threads - c->n_closing))
		start_thread(c);
}

/* ---- start and end ---- */

static void deinit(struct closer *c)
{
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->wake);
	pthread_cond_destroy(&c->ended);
	free(c->files);
}

int closer_init(struct closer *c, unsigned int room, bool keep)
{
	bool started;

	*c = (struct closer){ .keep = keep, .room = room };
	/* Untouched as long as there are no descriptors of such numbers */
	c->files = room ? calloc(room, sizeof(*c->files)) : NULL;
	if (room && !c->files)
		return -ENOMEM;
	INIT_LIST_HEAD(&c->origins);
	INIT_LIST_HEAD(&c->unknown.entry);
	c->unknown.first = -1;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->wake, NULL);
	thread_cond_init(&c->ended);
	pthread_mutex_lock(&c->lock);
	started = !keep || start_thread(c);
	pthread_mutex_unlock(&c->lock);
	if (started)
		return 0;
	deinit(c);
	return -EAGAIN;
}

bool closer_stop(struct closer *c)
{
	bool ended;

	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_broadcast(&c->wake);
	ended = threads_ended(&c->ended, &c->lock, &c->n_threads);
	pthread_mutex_unlock(&c->lock);
	if (ended)
		deinit(c);
	return ended;
}

/* ---- for others ---- */

void closer_note(struct closer *c, int fd, u32 origin)
{
	if (fd < 0)
		return;
	pthread_mutex_lock(&c->lock);
	if (make_room(c, fd))
		c->files[fd].origin = origin;
	pthread_mutex_unlock(&c->lock);
}

void closer_note_same(struct closer *c, int fd, int as)
{
	if (fd < 0)
		return;
	pthread_mutex_lock(&c->lock);
	if (make_room(c, fd))
		c->files[fd].origin = (unsigned int)as < c->room ? c->files[as].origin : 0;
	pthread_mutex_unlock(&c->lock);
}

bool closer_close(struct closer *c, int fd)
{
	bool queued;

	pthread_mutex_lock(&c->lock);
	queued = make_room(c, fd) && (c->n_threads || start_thread(c));
	if (queued) {
		put(c, origin_of(c, c->files[fd].origin), fd);
		call_thread(c);
	}
	pthread_mutex_unlock(&c->lock);
	/* They look again before they sleep, and once one is awake the lock is free. */
	if (queued && c->keep)
		pthread_cond_signal(&c->wake);
	return queued;
}

/* ---- fork ---- */

void closer_before_fork(struct closer *c)
{
	pthread_mutex_lock(&c->lock);
}

void closer_after_fork(struct closer *c)
{
	pthread_mutex_unlock(&c->lock);
}

void closer_in_child(struct closer *c)
{
	struct closer_origin *o, *next;

	c->n_threads = 0;
	c->n_closing = 0;
	list_for_each_entry_safe(o, next, &c->origins, entry) {
		o->closing = 0;
		forget_if_over(c, o);
	}
	pthread_mutex_unlock(&c->lock);
}

void closer_resume(struct closer *c)
{
	pthread_mutex_lock(&c->lock);
	call_thread(c);
	pthread_mutex_unlock(&c->lock);
}
