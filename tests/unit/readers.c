// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The threads that read in /proc (daemon/readers.c). What they read is the test's, and so is when a
 * thread that was woken goes on.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "creds.h"
#include "daemon.h"
#include "reading.h"

#define HANG_SECONDS 300 /* ends a test that hangs */
#define PEOPLE	     4

/* A peer whose pid is its place, from 1 on */
struct person {
	struct peer peer;
	struct creds creds;
	bool read;
};

/*
 * @stuck:	who reads their command lines waits
 * @quick:	what the thread for everything else sleeps on, as it is the first one to sleep
 * @asleep:	threads that sleep
 * @late:	the others do not go on when they are woken
 */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stuck[PEOPLE];
	pthread_cond_t *quick;
	unsigned int asleep;
	bool late;
	struct source *source;
	int done_fd;
	struct account account;
	struct daemon daemon;
	struct person people[PEOPLE];
} world = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* ---- sleep ---- */

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);

/* Between the signal and the moment when a thread has the lock again others may have it. */
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	pthread_mutex_lock(&world.lock);
	if (!world.quick)
		world.quick = cond;
	world.asleep++;
	pthread_cond_broadcast(&world.changed);
	pthread_mutex_unlock(&world.lock);
	__real_pthread_cond_wait(cond, lock);
	pthread_mutex_unlock(lock);
	pthread_mutex_lock(&world.lock);
	world.asleep--;
	while (world.late && cond != world.quick)
		__real_pthread_cond_wait(&world.changed, &world.lock);
	pthread_mutex_unlock(&world.lock);
	return pthread_mutex_lock(lock);
}

static void await_asleep(unsigned int n)
{
	pthread_mutex_lock(&world.lock);
	while (world.asleep != n)
		__real_pthread_cond_wait(&world.changed, &world.lock);
	pthread_mutex_unlock(&world.lock);
}

static void set(bool *what, bool value)
{
	pthread_mutex_lock(&world.lock);
	*what = value;
	pthread_cond_broadcast(&world.changed);
	pthread_mutex_unlock(&world.lock);
}

/* ---- what is read ---- */

struct creds *creds_new(pid_t pid)
{
	struct creds *c = calloc(1, sizeof(*c));

	c->pid = pid;
	return c;
}

struct creds *creds_unref(struct creds *creds)
{
	free(creds);
	return NULL;
}

int creds_pidfd(int sock)
{
	return -ENOPROTOOPT;
}

int creds_open(pid_t pid)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int creds_read(struct creds *c, int proc, int pidfd, uid_t euid, u64 start, u64 want)
{
	c->read |= want & ~KDBUS_ATTACH_CMDLINE;
	return 0;
}

void creds_read_cmdline(struct creds *c, int proc)
{
	pthread_mutex_lock(&world.lock);
	while (world.stuck[c->pid - 1])
		__real_pthread_cond_wait(&world.changed, &world.lock);
	pthread_mutex_unlock(&world.lock);
	c->read |= KDBUS_ATTACH_CMDLINE;
}

u64 creds_lacks(const struct creds *creds, u64 want)
{
	return want & ~creds->read;
}

void creds_absorb(struct creds *to, struct creds *from)
{
	to->read |= from->read;
	free(from);
}

void creds_give_up(struct creds *creds)
{
	fail();
}

/* ---- the daemon ---- */

int peer_sock(const struct peer *p)
{
	return -1;
}

void peer_read(struct peer *p)
{
	container_of(p, struct person, peer)->read = true;
}

int daemon_watch(struct daemon *d, int fd, u32 events, struct source *source)
{
	world.source = source;
	world.done_fd = fd;
	return 0;
}

static void ask(unsigned int i, u64 want)
{
	assert_true(reading_needed(&world.people[i].peer, want));
}

static void await_read(unsigned int i)
{
	struct pollfd p = { .fd = world.done_fd, .events = POLLIN };

	while (!world.people[i].read) {
		assert_int_equal(poll(&p, 1, -1), 1);
		world.source->ready(world.source, POLLIN);
	}
}

static int set_up(void **state)
{
	struct person *p;
	int i;

	alarm(HANG_SECONDS);
	world.quick = NULL;
	world.asleep = 0;
	for (i = 0; i < PEOPLE; i++) {
		p = &world.people[i];
		*p = (struct person){ .creds.pid = i + 1 };
		p->peer.daemon = &world.daemon;
		p->peer.creds = &p->creds;
		p->peer.account = &world.account;
	}
	assert_int_equal(readers_start(&world.daemon, &world.daemon.readers), 0);
	await_asleep(1);
	return 0;
}

static int tear_down(void **state)
{
	world.daemon.readers = readers_stop(world.daemon.readers);
	return 0;
}

/*
 * One thread for command lines is idle; it is woken for two, and late. When it goes on, the first
 * one is stuck; the other has to be read by a second thread.
 */
static void a_thread_that_is_called_twice_is_one(void **state)
{
	ask(0, KDBUS_ATTACH_CMDLINE);
	await_read(0);
	await_asleep(2);
	set(&world.late, true);
	set(&world.stuck[1], true);
	ask(1, KDBUS_ATTACH_CMDLINE);
	ask(2, KDBUS_ATTACH_CMDLINE);
	/* What takes no time is read in order: by then the two wait for the other thread. */
	ask(3, 0);
	await_read(3);
	set(&world.late, false);
	await_read(2);
	assert_false(world.people[1].read);
	set(&world.stuck[1], false);
	await_read(1);
}

static void one_that_is_stuck_is_the_only_one_that_waits(void **state)
{
	set(&world.stuck[0], true);
	ask(0, KDBUS_ATTACH_CMDLINE);
	ask(1, 0);
	ask(2, KDBUS_ATTACH_CMDLINE);
	await_read(1);
	await_read(2);
	assert_false(world.people[0].read);
	set(&world.stuck[0], false);
	await_read(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_thread_that_is_called_twice_is_one, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(one_that_is_stuck_is_the_only_one_that_waits,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
