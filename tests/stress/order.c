// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Order over any mixture of ways (design rules 10 to 15; order.h): real processes, real lanes, a
 * daemon, and delays between any two steps. What holds with the rules as they are fails within a
 * bounded number of turns with each of them broken.
 *
 * KDBUS_ORDER_SEED and KDBUS_ORDER_TURNS choose another run.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "order.h"

#define TURNS	     40
#define TURNS_BROKEN 3000

struct game {
	struct libkdbus_daemon *daemon;
	struct order_shared *shared;
	pid_t pids[SLOTS];
};

static uint64_t from_environment(const char *name, uint64_t or_else)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : or_else;
}

static void start_daemon(struct game *g)
{
	char seed[32], breach[32];

	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)g->shared->seed);
	snprintf(breach, sizeof(breach), "%d", g->shared->breach);
	setenv("KDBUS_TEST_SEED", seed, 1);
	setenv("KDBUS_TEST_BREACH", breach, 1);
	assert_int_equal(libkdbus_daemon_start(NULL, &g->daemon), 0);
	unsetenv("KDBUS_TEST_SEED");
	unsetenv("KDBUS_TEST_BREACH");
}

static void start_worker(struct game *g, unsigned int slot)
{
	pid_t parent = getpid();

	g->pids[slot] = fork();
	assert_true(g->pids[slot] >= 0);
	if (g->pids[slot])
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	_exit(order_worker(g->shared, slot, libkdbus_daemon_bus(g->daemon)));
}

/* One that has seen a failure ends by itself, unless the breach keeps it asleep. */
static void end_workers(struct game *g)
{
	unsigned int slot;
	int status;

	for (slot = 0; slot < SLOTS; slot++) {
		while (waitpid(g->pids[slot], &status, WNOHANG) == 0) {
			if (atomic_load(&g->shared->failed))
				kill(g->pids[slot], SIGKILL);
			usleep(1000);
		}
		g->pids[slot] = 0;
		if (!atomic_load(&g->shared->failed))
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

static void play(struct game *g, unsigned int turns, enum lane_breach breach, bool leaving)
{
	struct order_shared *s = g->shared;
	unsigned int slot;

	memset(s, 0, sizeof(*s));
	s->turns = turns;
	s->breach = breach;
	s->leaving = leaving;
	s->seed = from_environment("KDBUS_ORDER_SEED", 1);
	start_daemon(g);
	for (slot = 0; slot < SLOTS; slot++)
		start_worker(g, slot);
	end_workers(g);
	g->daemon = libkdbus_daemon_stop(g->daemon);
	printf("# %u turns: %u direct, %u relayed (%u broadcasts, %u by name, %u lost), "
	       "%u ends heard\n",
	       s->turn, s->direct, s->relayed, s->broadcasts, s->named, s->lost, s->ends);
	if (s->failed)
		printf("# %s\n", s->why);
}

static void holds(void **state, bool leaving)
{
	struct game *g = *state;
	const struct order_shared *s = g->shared;

	play(g, (unsigned int)from_environment("KDBUS_ORDER_TURNS", TURNS), LANE_NOTHING_BROKEN,
	     leaving);
	assert_false(s->failed);
	/* All ways were gone. */
	assert_true(s->direct > 1000 && s->relayed > 1000);
	assert_true(s->broadcasts > 100 && s->named > 100);
	if (leaving)
		assert_true(s->ends > 10);
}

static void rules_10_to_13_hold(void **state)
{
	holds(state, false);
}

static void rules_10_to_15_hold_as_connections_end(void **state)
{
	holds(state, true);
}

static void fails(void **state, enum lane_breach breach, bool leaving)
{
	struct game *g = *state;

	play(g, TURNS_BROKEN, breach, leaving);
	assert_true(g->shared->failed);
}

static void rule_10_one_pass_is_noticed(void **state)
{
	fails(state, LANE_ONE_PASS, false);
}

static void rule_8_drain_on_wake_is_noticed(void **state)
{
	fails(state, LANE_DRAIN_ON_WAKE, false);
}

static void rule_11_old_stamps_are_noticed(void **state)
{
	fails(state, LANE_OLD_STAMP, false);
}

static void rule_12_a_broadcast_without_commit_is_noticed(void **state)
{
	fails(state, LANE_NO_COMMIT, false);
}

static void rule_12_cursors_before_the_commit_are_noticed(void **state)
{
	fails(state, LANE_CURSOR_FIRST, false);
}

static void rule_13_direct_at_once_is_noticed(void **state)
{
	fails(state, LANE_DIRECT_AT_ONCE, false);
}

static void rule_13_old_names_are_noticed(void **state)
{
	fails(state, LANE_NAMES_FOR_EVER, false);
}

static void rule_14_an_end_before_the_last_message_is_noticed(void **state)
{
	fails(state, LANE_END_FIRST, true);
}

static void rule_15_byebye_without_a_look_is_noticed(void **state)
{
	fails(state, LANE_NO_LAST_LOOK, true);
}

static int setup(void **state)
{
	struct game *g = calloc(1, sizeof(*g));

	if (!g)
		return -1;
	g->shared = mmap(NULL, sizeof(*g->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*state = g;
	return g->shared == MAP_FAILED ? -1 : 0;
}

static int teardown(void **state)
{
	struct game *g = *state;
	unsigned int slot;

	for (slot = 0; slot < SLOTS; slot++) {
		if (g->pids[slot] <= 0)
			continue;
		kill(g->pids[slot], SIGKILL);
		waitpid(g->pids[slot], NULL, 0);
	}
	g->daemon = libkdbus_daemon_stop(g->daemon);
	munmap(g->shared, sizeof(*g->shared));
	free(g);
	return 0;
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rules_10_to_13_hold),
		TEST(rules_10_to_15_hold_as_connections_end),
		TEST(rule_8_drain_on_wake_is_noticed),
		TEST(rule_10_one_pass_is_noticed),
		TEST(rule_11_old_stamps_are_noticed),
		TEST(rule_12_a_broadcast_without_commit_is_noticed),
		TEST(rule_12_cursors_before_the_commit_are_noticed),
		TEST(rule_13_direct_at_once_is_noticed),
		TEST(rule_13_old_names_are_noticed),
		TEST(rule_14_an_end_before_the_last_message_is_noticed),
		TEST(rule_15_byebye_without_a_look_is_noticed),
	};

	return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
