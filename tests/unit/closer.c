// SPDX-License-Identifier: LGPL-2.1-or-later
/* Closing files of others (lib/closer.h). close() is the test's: it lasts as long as that likes. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/closer.h"

#define HANG_SECONDS 300 /* ends a test that hangs */
#define FILES	     (CLOSER_THREADS + CLOSER_SHARE)
#define FIRST	     500 /* number of the first of them */

/* Files of these numbers, which are not open: close() of one lasts until it is let go. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stuck[FILES];
	bool closed[FILES];
	unsigned int closing;
	unsigned int most;
	bool no_threads;
} files = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

int __wrap_close(int fd);
int __real_close(int fd);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);

int __wrap_close(int fd)
{
	unsigned int i = (unsigned int)(fd - FIRST);

	if (i >= FILES)
		return __real_close(fd);
	pthread_mutex_lock(&files.lock);
	files.closing++;
	if (files.closing > files.most)
		files.most = files.closing;
	pthread_cond_broadcast(&files.changed);
	while (files.stuck[i])
		pthread_cond_wait(&files.changed, &files.lock);
	files.closing--;
	files.closed[i] = true;
	pthread_cond_broadcast(&files.changed);
	pthread_mutex_unlock(&files.lock);
	return 0;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg)
{
	return files.no_threads ? EAGAIN : __real_pthread_create(thread, attr, fn, arg);
}

static int set_up(void **state)
{
	static struct closer closer;
	unsigned int i;

	alarm(HANG_SECONDS);
	for (i = 0; i < FILES; i++)
		files.stuck[i] = files.closed[i] = false;
	files.most = 0;
	assert_int_equal(closer_init(&closer, 0, false), 0);
	*state = &closer;
	return 0;
}

static void let_all_go(void)
{
	unsigned int i;

	pthread_mutex_lock(&files.lock);
	for (i = 0; i < FILES; i++)
		files.stuck[i] = false;
	pthread_cond_broadcast(&files.changed);
	pthread_mutex_unlock(&files.lock);
}

/* All that waited is closed by then: threads end when there is nothing left. */
static int tear_down(void **state)
{
	let_all_go();
	while (!closer_stop(*state))
		;
	return 0;
}

static void close_from(struct closer *c, unsigned int i, u32 origin, bool stuck)
{
	files.stuck[i] = stuck;
	closer_note(c, (int)(FIRST + i), origin);
	assert_true(closer_close(c, (int)(FIRST + i)));
}

static void await_closed(unsigned int i)
{
	pthread_mutex_lock(&files.lock);
	while (!files.closed[i])
		pthread_cond_wait(&files.changed, &files.lock);
	pthread_mutex_unlock(&files.lock);
}

static void await_closing(unsigned int n)
{
	pthread_mutex_lock(&files.lock);
	while (files.closing != n)
		pthread_cond_wait(&files.changed, &files.lock);
	pthread_mutex_unlock(&files.lock);
}

static void one_origin_keeps_no_file_of_another_open(void **state)
{
	unsigned int i;

	for (i = 0; i < FILES - 1; i++)
		close_from(*state, i, 1, true);
	close_from(*state, FILES - 1, 2, false);
	await_closed(FILES - 1);
	await_closing(CLOSER_SHARE);
	let_all_go();
	for (i = 0; i < FILES; i++)
		await_closed(i);
	assert_in_range(files.most, CLOSER_SHARE, CLOSER_SHARE + 1);
}

static void one_that_is_stuck_keeps_no_other_open(void **state)
{
	close_from(*state, 0, 1, true);
	await_closing(1);
	close_from(*state, 1, 1, false);
	await_closed(1);
	close_from(*state, 2, 0, false);
	await_closed(2);
}

static void several_origins_share_the_threads(void **state)
{
	unsigned int i;

	for (i = 0; i < FILES; i++)
		close_from(*state, i, 1 + i % 8, true);
	await_closing(CLOSER_THREADS);
	let_all_go();
	for (i = 0; i < FILES; i++)
		await_closed(i);
	assert_int_equal(files.most, CLOSER_THREADS);
}

static void a_copy_is_of_the_same_origin(void **state)
{
	unsigned int i;

	closer_note(*state, FIRST, 1);
	for (i = FILES - 1; i; i--) {
		files.stuck[i] = true;
		closer_note_same(*state, (int)(FIRST + i), FIRST);
		assert_true(closer_close(*state, (int)(FIRST + i)));
	}
	await_closing(CLOSER_SHARE);
	closer_note(*state, FIRST, 2);
	assert_true(closer_close(*state, FIRST));
	await_closed(0);
}

static void without_a_thread_it_is_the_callers(void **state)
{
	files.no_threads = true;
	assert_false(closer_close(*state, FIRST));
	files.no_threads = false;
	close_from(*state, 1, 0, false);
	await_closed(1);
	assert_false(files.closed[0]);
}

/* What waits in front of it all are stuck, in both of them; in the child only until it says so. */
static void run_child(struct closer *c)
{
	unsigned int i;

	alarm(HANG_SECONDS);
	pthread_mutex_init(&files.lock, NULL);
	pthread_cond_init(&files.changed, NULL);
	let_all_go();
	closer_resume(c);
	for (i = CLOSER_SHARE; i < FILES; i++)
		await_closed(i);
	_exit(0);
}

static void a_child_closes_what_waited(void **state)
{
	unsigned int i;
	int status;
	pid_t pid;

	for (i = 0; i < FILES; i++)
		close_from(*state, i, 1, true);
	await_closing(CLOSER_SHARE);
	closer_before_fork(*state);
	pid = fork();
	if (!pid) {
		closer_in_child(*state);
		run_child(*state);
	}
	closer_after_fork(*state);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(one_origin_keeps_no_file_of_another_open),
		CASE(one_that_is_stuck_keeps_no_other_open),
		CASE(several_origins_share_the_threads),
		CASE(a_copy_is_of_the_same_origin),
		CASE(without_a_thread_it_is_the_callers),
		CASE(a_child_closes_what_waited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
