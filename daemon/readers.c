// SPDX-License-Identifier: LGPL-2.1-or-later
/* The threads that read in /proc. Rules: reading.h. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "creds.h"
#include "daemon.h"
#include "lib/thread.h"
#include "reading.h"

/**
 * struct reading - one process, on its way through the threads
 * @entry:	in readers.asked, .slow or .done, or in nobody's list while a thread has it
 * @queued:	no thread has it
 * @peer:	whose; NULL: it has ended. The daemon's thread alone looks at it
 * @uid:	as the socket says
 * @start:	of the process, if known
 * @want:	what is to be read
 * @pidfd, @proc: of the process
 * @creds:	what was read; this and the ones above are for whoever has the reading
 * @result:	0 or negative errno
 */
struct reading {
	struct list_head entry;
	bool queued;
	struct peer *peer;
	uid_t uid;
	u64 start;
	u64 want;
	int pidfd;
	int proc;
	struct creds *creds;
	int result;
};

/* What a thread for command lines is at */
struct place {
	bool taken;
	uid_t uid;
	u64 since;
};

/*
 * @asked:	for the thread that reads what takes no time
 * @slow:	have a command line to be read
 * @done:	for the daemon's thread
 * @n_slow:	threads for command lines
 */
struct readers {
	struct source source;
	struct daemon *daemon;
	int done_fd;
	pthread_mutex_t lock;
	pthread_cond_t wake_quick;
	pthread_cond_t wake_slow;
	pthread_cond_t ended;
	struct list_head asked;
	struct list_head slow;
	struct list_head done;
	struct place places[READERS_MAX];
	unsigned int n_slow;
	unsigned int n_threads;
	bool stop;
};

/* ---- a reading ---- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void free_reading(struct reading *g)
{
	close_fd(&g->pidfd);
	close_fd(&g->proc);
	creds_unref(g->creds);
	free(g);
}

static u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000 + (u64)ts.tv_nsec / 1000000;
}

/* Of the pid, the descriptor of the directory and the pidfd, one process is meant from here on. */
static void read_quick(struct reading *g)
{
	g->proc = creds_open(g->creds->pid);
	g->result = g->proc < 0 ?
			    -ESRCH :
			    creds_read(g->creds, g->proc, g->pidfd, g->uid, g->start, g->want);
	close_fd(&g->pidfd);
}

/* ---- threads; all of these but the reading itself with the lock held ---- */

static void finish(struct readers *r, struct reading *g)
{
	const u64 one = 1;

	close_fd(&g->proc);
	g->queued = true;
	list_add_tail(&g->entry, &r->done);
	if (write(r->done_fd, &one, sizeof(one)) < 0)
		return; /* it is readable as it is */
}

static bool start_thread(struct readers *r, void *(*fn)(void *))
{
	int e = thread_start(fn, r);

	r->n_threads += e == 0;
	return e == 0;
}

static void thread_ends(struct readers *r)
{
	r->n_threads--;
	pthread_cond_signal(&r->ended);
	pthread_mutex_unlock(&r->lock);
}

/* How many threads are at command lines of @uid, or of anybody; since when the last of them is */
static unsigned int busy_with(const struct readers *r, const uid_t *uid, u64 *ret_since)
{
	unsigned int n = 0, i;

	*ret_since = 0;
	for (i = 0; i < READERS_MAX; i++) {
		if (!r->places[i].taken || (uid && r->places[i].uid != *uid))
			continue;
		n++;
		*ret_since = max(*ret_since, r->places[i].since);
	}
	return n;
}

static bool may_begin(const struct readers *r, const struct reading *g)
{
	u64 since;

	return busy_with(r, &g->uid, &since) < READERS_MAX / 2;
}

/* All who could do it have been at what they do for long (rule 3). */
static bool is_hopeless(const struct readers *r, const struct reading *g, u64 now)
{
	u64 since;

	if (busy_with(r, &g->uid, &since) >= READERS_MAX / 2 && now - since >= READERS_PATIENCE_MS)
		return true;
	return busy_with(r, NULL, &since) >= READERS_MAX && now - since >= READERS_PATIENCE_MS;
}

static void give_up_hopeless(struct readers *r)
{
	struct reading *g, *next;
	u64 now = now_ms();

	list_for_each_entry_safe(g, next, &r->slow, entry) {
		if (!is_hopeless(r, g, now))
			continue;
		list_del(&g->entry);
		g->creds->read |= KDBUS_ATTACH_CMDLINE;
		finish(r, g);
	}
}

static struct reading *next_slow(struct readers *r)
{
	struct reading *g;

	list_for_each_entry(g, &r->slow, entry)
		if (may_begin(r, g))
			return g;
	return NULL;
}

static struct place *free_place(struct readers *r)
{
	struct place *p = r->places;

	while (p->taken)
		p++;
	return p;
}

static void take_slow(struct readers *r, struct reading *g)
{
	struct place *p = free_place(r);

	*p = (struct place){ .taken = true, .uid = g->uid, .since = now_ms() };
	list_del_init(&g->entry);
	g->queued = false;
	pthread_mutex_unlock(&r->lock);
	creds_read_cmdline(g->creds, g->proc);
	pthread_mutex_lock(&r->lock);
	p->taken = false;
	finish(r, g);
}

static void *run_slow(void *arg)
{
	struct readers *r = arg;
	struct reading *g;

	pthread_mutex_lock(&r->lock);
	while (!r->stop) {
		g = next_slow(r);
		if (g) {
			take_slow(r, g);
			continue;
		}
		pthread_cond_wait(&r->wake_slow, &r->lock);
	}
	thread_ends(r);
	return NULL;
}

/* Are there more than @n that a thread may begin with? */
static bool has_more_than(const struct readers *r, unsigned int n)
{
	const struct reading *g;
	unsigned int found = 0;

	list_for_each_entry(g, &r->slow, entry)
		if (may_begin(r, g) && ++found > n)
			return true;
	return false;
}

/*
 * Those that are at no command line look before they sleep, but for one each: whoever is woken may
 * not come back. Returns whether there is a thread at all.
 */
static bool call_slow(struct readers *r)
{
	u64 since;
	unsigned int unbusy = r->n_slow - busy_with(r, NULL, &since);

	if (has_more_than(r, unbusy) && r->n_slow < READERS_MAX && start_thread(r, run_slow))
		r->n_slow++;
	pthread_cond_signal(&r->wake_slow);
	return r->n_slow;
}

static void queue_slow(struct readers *r, struct reading *g)
{
	g->queued = true;
	list_add_tail(&g->entry, &r->slow);
	if (call_slow(r))
		return;
	list_del(&g->entry);
	g->creds->read |= KDBUS_ATTACH_CMDLINE;
	finish(r, g);
}

/* While command lines wait for threads, look now and then whether there is hope. */
static void wait_for_more(struct readers *r)
{
	struct timespec ts;

	if (list_empty(&r->slow)) {
		pthread_cond_wait(&r->wake_quick, &r->lock);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += READERS_PATIENCE_MS % 1000 * 1000000L / 4;
	ts.tv_sec += READERS_PATIENCE_MS / 4000 + ts.tv_nsec / 1000000000L;
	ts.tv_nsec %= 1000000000L;
	pthread_cond_timedwait(&r->wake_quick, &r->lock, &ts);
}

static void take_quick(struct readers *r, struct reading *g)
{
	list_del_init(&g->entry);
	g->queued = false;
	pthread_mutex_unlock(&r->lock);
	read_quick(g);
	pthread_mutex_lock(&r->lock);
	if (g->result == 0 && g->want & KDBUS_ATTACH_CMDLINE)
		queue_slow(r, g);
	else
		finish(r, g);
}

static void *run_quick(void *arg)
{
	struct readers *r = arg;
	struct reading *g;

	pthread_mutex_lock(&r->lock);
	while (!r->stop) {
		g = list_first_entry_or_null(&r->asked, struct reading, entry);
		if (g)
			take_quick(r, g);
		give_up_hopeless(r);
		/* Perhaps a thread can be had by now. */
		if (next_slow(r))
			call_slow(r);
		if (list_empty(&r->asked) && !r->stop)
			wait_for_more(r);
	}
	thread_ends(r);
	return NULL;
}

/* ---- the daemon's thread ---- */

static void conclude(struct reading *g)
{
	struct peer *p = g->peer;

	if (p) {
		p->reading = NULL;
		if (g->result == 0) {
			creds_absorb(p->creds, g->creds);
			g->creds = NULL;
		} else {
			creds_give_up(p->creds);
		}
		peer_read(p);
	}
	free_reading(g);
}

static void done_ready(struct source *source, u32 events)
{
	struct readers *r = container_of(source, struct readers, source);
	struct reading *g;
	LIST_HEAD(done);
	u64 n;

	if (read(r->done_fd, &n, sizeof(n)) < 0)
		return;
	pthread_mutex_lock(&r->lock);
	list_splice_tail_init(&r->done, &done);
	pthread_mutex_unlock(&r->lock);
	while ((g = list_first_entry_or_null(&done, struct reading, entry))) {
		list_del(&g->entry);
		conclude(g);
	}
}

static int begin(struct readers *r, struct peer *p, u64 want)
{
	struct reading *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->creds = creds_new(p->creds->pid);
	if (!g->creds) {
		free(g);
		return -ENOMEM;
	}
	g->peer = p;
	g->uid = p->account->uid;
	g->start = p->creds->start;
	g->want = want;
	g->proc = -1;
	g->pidfd = creds_pidfd(peer_sock(p));
	/* It has ended: its pid may be somebody else's. */
	if (g->pidfd < 0 && g->pidfd != -ENOPROTOOPT)
		g->creds->pid = 0;
	g->queued = true;
	p->reading = g;
	pthread_mutex_lock(&r->lock);
	list_add_tail(&g->entry, &r->asked);
	pthread_mutex_unlock(&r->lock);
	pthread_cond_signal(&r->wake_quick);
	return 0;
}

bool reading_needed(struct peer *p, u64 want)
{
	u64 lacks = creds_lacks(p->creds, want | CREDS_WHO);

	if (!lacks)
		return false;
	/* Without memory it is as if the process could not be read. */
	if (!p->reading && begin(p->daemon->readers, p, lacks) < 0) {
		creds_give_up(p->creds);
		return false;
	}
	return true;
}

void reading_forget(struct peer *p)
{
	struct reading *g = p->reading;
	struct readers *r = p->daemon->readers;
	bool queued;

	if (!g)
		return;
	p->reading = NULL;
	pthread_mutex_lock(&r->lock);
	queued = g->queued;
	if (queued)
		list_del(&g->entry);
	else
		g->peer = NULL;
	pthread_mutex_unlock(&r->lock);
	if (queued)
		free_reading(g);
}

/* ---- start and end ---- */

static void init_lists(struct readers *r)
{
	INIT_LIST_HEAD(&r->asked);
	INIT_LIST_HEAD(&r->slow);
	INIT_LIST_HEAD(&r->done);
	pthread_mutex_init(&r->lock, NULL);
	thread_cond_init(&r->wake_quick);
	thread_cond_init(&r->wake_slow);
	thread_cond_init(&r->ended);
}

int readers_start(struct daemon *d, struct readers **ret)
{
	struct readers *r = calloc(1, sizeof(*r));
	bool started;
	int e;

	if (!r)
		return -ENOMEM;
	init_lists(r);
	r->daemon = d;
	r->source.ready = done_ready;
	r->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->done_fd < 0) {
		e = -errno;
		free(r);
		return e;
	}
	pthread_mutex_lock(&r->lock);
	started = start_thread(r, run_quick);
	pthread_mutex_unlock(&r->lock);
	e = started ? daemon_watch(d, r->done_fd, EPOLLIN, &r->source) : -EAGAIN;
	if (e < 0) {
		readers_stop(r);
		return e;
	}
	*ret = r;
	return 0;
}

static void free_all(struct list_head *list)
{
	struct reading *g, *next;

	list_for_each_entry_safe(g, next, list, entry)
		free_reading(g);
}

/* Returns whether all threads have ended. */
static bool end_threads(struct readers *r)
{
	bool ended;

	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_broadcast(&r->wake_quick);
	pthread_cond_broadcast(&r->wake_slow);
	ended = threads_ended(&r->ended, &r->lock, &r->n_threads);
	pthread_mutex_unlock(&r->lock);
	return ended;
}

/* Those that are stuck in somebody's memory have what they need until the process ends. */
static struct readers *left_behind;

struct readers *readers_stop(struct readers *r)
{
	if (!r)
		return NULL;
	if (!end_threads(r)) {
		left_behind = r;
		return NULL;
	}
	free_all(&r->asked);
	free_all(&r->slow);
	free_all(&r->done);
	close(r->done_fd);
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->wake_quick);
	pthread_cond_destroy(&r->wake_slow);
	pthread_cond_destroy(&r->ended);
	free(r);
	return NULL;
}
