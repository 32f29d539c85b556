// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Clients are killed in traffic (design rules 9, 14, 15): survivors get exactly their messages, in
 * order; every call has its outcome; nothing is left behind in the daemon or in a survivor.
 *
 * KDBUS_TORTURE_KILLS says how many; without it a thousand.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "helper.h"
#include "torture.h"

#define KILLS_DEFAULT 1000
#define STEPS_MAX     24 /* between birth and death, at most; none is often enough */
#define MEMORY_SLACK  4096 /* kB by which a heap may grow for other reasons than a leak */

struct game {
	struct libkdbus_daemon *daemon;
	struct shared *shared;
	pid_t pids[SLOTS];
	unsigned int fds_empty; /* of the daemon, without clients */
	unsigned int fds;
	unsigned int memory;
	unsigned int random;
};

static unsigned int draw(struct game *g, unsigned int n)
{
	g->random = g->random * 1103515245u + 12345u;
	return (g->random >> 8) % n;
}

static unsigned int kills_wanted(void)
{
	const char *text = getenv("KDBUS_TORTURE_KILLS");
	unsigned long n = text ? strtoul(text, NULL, 10) : KILLS_DEFAULT;

	return n && n < LIVES_MAX - 2 * SLOTS ? (unsigned int)n : KILLS_DEFAULT;
}

static void pause_briefly(struct game *g)
{
	assert_false(atomic_load(&g->shared->failed));
	usleep(200);
}

static void spawn(struct game *g, unsigned int slot)
{
	struct shared *s = g->shared;
	unsigned int life = atomic_fetch_add(&s->n_lives, 1);

	s->lives[life].slot = slot;
	atomic_store(&s->waiting[slot], 0);
	atomic_store(&s->current[slot], life);
	g->pids[slot] = helper_fork();
	assert_true(g->pids[slot] >= 0);
	if (g->pids[slot])
		return;
	_exit(worker_run(s, life, libkdbus_daemon_bus(g->daemon)));
}

static void spawn_all(struct game *g, unsigned int survivors)
{
	unsigned int slot;

	for (slot = 0; slot < SLOTS; slot++)
		if (SURVIVES(slot) == survivors)
			spawn(g, slot);
}

static struct life *life_in(struct game *g, unsigned int slot)
{
	return &g->shared->lives[atomic_load(&g->shared->current[slot])];
}

static void kill_slot(struct game *g, unsigned int slot)
{
	int status;

	atomic_store(&life_in(g, slot)->over, true);
	assert_int_equal(kill(g->pids[slot], SIGKILL), 0);
	assert_int_equal(waitpid(g->pids[slot], &status, 0), g->pids[slot]);
	assert_true(WIFSIGNALED(status));
	g->pids[slot] = 0;
}

static void kill_in_traffic(struct game *g, unsigned int kills)
{
	unsigned int slot, steps;

	while (kills--) {
		slot = 2 * draw(g, SLOTS / 2);
		steps = draw(g, STEPS_MAX);
		while (atomic_load(&life_in(g, slot)->steps) < steps)
			pause_briefly(g);
		kill_slot(g, slot);
		spawn(g, slot);
	}
}

static void wait_done(struct game *g, enum phase phase)
{
	unsigned int slot;

	for (slot = 0; slot < SLOTS; slot++)
		while (g->pids[slot] && atomic_load(&life_in(g, slot)->done) < (int)phase)
			pause_briefly(g);
}

static void pass(struct game *g, enum phase phase)
{
	atomic_store(&g->shared->phase, phase);
	wait_done(g, phase);
}

/* The user engine */
static bool serves_itself(const struct game *g)
{
	struct stat st;

	return stat(libkdbus_daemon_bus(g->daemon), &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Clients' descriptors are closed by a thread of their own, soon. */
static unsigned int daemon_fds(struct game *g, unsigned int wanted)
{
	pid_t pid = libkdbus_daemon_pid(g->daemon);
	unsigned int tries;

	/* What clients have is in the module, and not its business. */
	if (!serves_itself(g))
		return wanted;
	for (tries = 0; tries < 500000 && count_fds(pid) > wanted; tries++)
		pause_briefly(g);
	return count_fds(pid);
}

/* Nobody does anything: what is still being closed is gone when the number no longer changes. */
static unsigned int settled_fds(struct game *g)
{
	pid_t pid = libkdbus_daemon_pid(g->daemon);
	unsigned int n = count_fds(pid), same = 0, now;

	while (same < 100) {
		pause_briefly(g);
		now = count_fds(pid);
		same = now == n ? same + 1 : 0;
		n = now;
	}
	return n;
}

static void report_life(unsigned int slot, const struct life *l)
{
	printf("# slot %u: %u descriptors (%u), %u kB (%u), shared %u kB (%u)\n", slot, l->fds[1],
	       l->fds[0], l->memory[1], l->memory[0], l->shared[1], l->shared[0]);
}

static void report(struct game *g)
{
	struct shared *s = g->shared;
	unsigned int slot;

	printf("# %u lives; calls: %u replied, %u reply-dead; synchronous: %u replied, %u EPIPE; "
	       "%u broadcasts lost\n",
	       s->n_lives, s->replied, s->dead, s->sync_replied, s->sync_dead, s->lost);
	printf("# daemon: %u descriptors (%u), %u kB (%u)\n",
	       count_fds(libkdbus_daemon_pid(g->daemon)), g->fds,
	       resident_kb(libkdbus_daemon_pid(g->daemon), "RssAnon"), g->memory);
	for (slot = 1; slot < SLOTS; slot += 2)
		report_life(slot, life_in(g, slot));
}

/* Freed memory stays in the sanitizer's quarantine. */
static void assert_memory(unsigned int before, unsigned int after, unsigned int slack)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true(after <= before + slack);
#endif
}

static void assert_nothing_left(struct game *g)
{
	pid_t daemon = libkdbus_daemon_pid(g->daemon);
	const struct life *l;
	unsigned int slot;

	/* Fewer if a thread of the daemon was slow to close something when they were counted. */
	assert_true(daemon_fds(g, g->fds) <= g->fds);
	/* Lanes and large buffers of survivors are mapped from them, and stay. */
	assert_memory(g->memory, resident_kb(daemon, "RssAnon"), MEMORY_SLACK);
	for (slot = 1; slot < SLOTS; slot += 2) {
		l = life_in(g, slot);
		/* One fewer for each channel between survivors that has become idle. */
		assert_in_range(l->fds[1], 1, l->fds[0]);
		assert_memory(l->memory[0], l->memory[1], MEMORY_SLACK);
		/*
		 * Pages of the pool stay once they were used, and it is mapped twice; so do large
		 * buffers.
		 */
		assert_memory(l->shared[0], l->shared[1],
			      SLOTS * MEMORY_SLACK + 2 * POOL_SIZE / 1024);
	}
}

static void end_survivors(struct game *g)
{
	unsigned int slot;
	int status;

	atomic_store(&g->shared->phase, PHASE_END);
	for (slot = 1; slot < SLOTS; slot += 2) {
		assert_int_equal(waitpid(g->pids[slot], &status, 0), g->pids[slot]);
		g->pids[slot] = 0;
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	assert_true(daemon_fds(g, g->fds_empty) <= g->fds_empty);
}

static void kills(void **state)
{
	struct game *g = *state;
	unsigned int slot, n = kills_wanted();

	atomic_store(&g->shared->phase, PHASE_WARM);
	spawn_all(g, 1);
	wait_done(g, PHASE_WARM);
	pass(g, PHASE_MEASURE);
	/* A socket for each is all that it keeps open: see the end. */
	g->fds = settled_fds(g);
	g->fds_empty = g->fds - SLOTS / 2;
	atomic_store(&g->shared->phase, PHASE_RUN);
	spawn_all(g, 0);
	/* A heap has its size after a while. */
	kill_in_traffic(g, n / 5);
	g->memory = resident_kb(libkdbus_daemon_pid(g->daemon), "RssAnon");
	kill_in_traffic(g, n - n / 5);
	pass(g, PHASE_QUIET);
	pass(g, PHASE_CHECK);
	for (slot = 0; slot < SLOTS; slot += 2)
		kill_slot(g, slot);
	pass(g, PHASE_ALONE);
	report(g);
	assert_nothing_left(g);
	end_survivors(g);
}

static int setup(void **state)
{
	struct game *g = calloc(1, sizeof(*g));
	unsigned int slot;

	if (!g || libkdbus_daemon_start(NULL, &g->daemon) < 0)
		return -1;
	g->shared = mmap(NULL, sizeof(*g->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (g->shared == MAP_FAILED)
		return -1;
	g->shared->one_queue = !serves_itself(g);
	for (slot = 0; slot < SLOTS; slot++)
		atomic_store(&g->shared->current[slot], NOBODY);
	*state = g;
	return 0;
}

static int teardown(void **state)
{
	struct game *g = *state;

	helper_kill_all(g->pids, SLOTS);
	g->daemon = libkdbus_daemon_stop(g->daemon);
	munmap(g->shared, sizeof(*g->shared));
	free(g);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kills, setup, teardown),
	};

	return cmocka_run_group_tests_name("torture", tests, NULL, NULL);
}
