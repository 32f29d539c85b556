// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Order over any mixture of ways (design rules 10 to 16; order.h): real processes, real lanes, a
 * daemon, and delays between any two steps. What holds with the rules as they are fails within a
 * bounded number of turns with each of them broken.
 *
 * KDBUS_ORDER_SEED and KDBUS_ORDER_TURNS choose another run.
 */
#include <poll.h>
#include <regex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "helper.h"
#include "order.h"

#define TURNS	     40
#define TURNS_BROKEN 3000
#define RUNS_BROKEN  4

/* What is seen of a breach: the first of it has to be one of these. */
#define EFFECT_FIRST "which knew of [0-9]+$"
#define DAEMON_LATE  "\\((broadcast|[a-z ]*relayed[a-z ]*)\\) came after"
#define NOT_LOOKED   EFFECT_FIRST "|not readable|messages received$|without an outcome"
#define OLD_OWNER    "knew of owner [0-9]+ of a name"
#define AFTER_END    "broadcast [0-9]+ of slot 3 came|broadcasts of slot 3|came after its end"
#define LEFT_BEHIND  "BYEBYE, but [0-9]+ of [0-9]+ messages received"

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
	g->pids[slot] = helper_fork();
	assert_true(g->pids[slot] >= 0);
	if (g->pids[slot])
		return;
	_exit(order_worker(g->shared, slot, libkdbus_daemon_bus(g->daemon)));
}

/* Until a worker is over, or somebody has failed; by number of slot, none: SLOTS */
static unsigned int await_worker(struct game *g)
{
	struct pollfd p[SLOTS + 1];
	unsigned int slot, over = SLOTS;

	for (slot = 0; slot < SLOTS; slot++)
		p[slot] = (struct pollfd){ .fd = g->pids[slot] ? pidfd_open(g->pids[slot], 0) : -1,
					   .events = POLLIN };
	p[SLOTS] = (struct pollfd){ .fd = g->shared->bells[SLOTS], .events = POLLIN };
	assert_true(poll(p, SLOTS + 1, -1) > 0);
	for (slot = 0; slot < SLOTS; slot++) {
		if (p[slot].fd >= 0 && p[slot].revents)
			over = slot;
		if (p[slot].fd >= 0)
			close(p[slot].fd);
	}
	return over;
}

static void end_worker(struct game *g, unsigned int slot)
{
	int status;

	assert_int_equal(waitpid(g->pids[slot], &status, 0), g->pids[slot]);
	g->pids[slot] = 0;
	if (!atomic_load(&g->shared->failed))
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* One that has seen a failure ends by itself, unless the breach keeps it asleep. */
static void end_workers(struct game *g)
{
	unsigned int left = SLOTS, slot;

	for (; left && !atomic_load(&g->shared->failed); left -= slot != SLOTS) {
		slot = await_worker(g);
		if (slot != SLOTS)
			end_worker(g, slot);
	}
	for (slot = 0; slot < SLOTS; slot++) {
		if (!g->pids[slot])
			continue;
		kill(g->pids[slot], SIGKILL);
		end_worker(g, slot);
	}
}

static int make_bell(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	assert_true(fd >= 0);
	return fd;
}

static void make_bells(struct order_shared *s)
{
	unsigned int i;

	for (i = 0; i <= SLOTS; i++)
		s->bells[i] = make_bell();
	for (i = 0; i < SLOTS; i++)
		s->cancels[i] = make_bell();
}

static void close_bells(const struct order_shared *s)
{
	unsigned int i;

	for (i = 0; i <= SLOTS; i++)
		close(s->bells[i]);
	for (i = 0; i < SLOTS; i++)
		close(s->cancels[i]);
}

static void play(struct game *g, unsigned int turns, enum lane_breach breach, enum order_mode mode,
		 unsigned int run)
{
	struct order_shared *s = g->shared;
	unsigned int slot;

	memset(s, 0, sizeof(*s));
	s->turns = turns;
	s->breach = breach;
	s->mode = mode;
	s->seed = from_environment("KDBUS_ORDER_SEED", 1) + run;
	make_bells(s);
	start_daemon(g);
	for (slot = 0; slot < SLOTS; slot++)
		start_worker(g, slot);
	end_workers(g);
	g->daemon = libkdbus_daemon_stop(g->daemon);
	close_bells(s);
	printf("# %u turns: %u direct, %u relayed (%u broadcasts, %u by name, %u lost), "
	       "%u and %u replies, %u ends heard\n",
	       s->turn, s->direct, s->relayed, s->broadcasts, s->named, s->lost, s->replies,
	       s->sync_replies, s->ends);
	if (s->failed)
		printf("# %s\n", s->why);
}

static void holds(void **state, enum order_mode mode)
{
	struct game *g = *state;
	const struct order_shared *s = g->shared;

	play(g, (unsigned int)from_environment("KDBUS_ORDER_TURNS", TURNS), LANE_NOTHING_BROKEN,
	     mode, 0);
	assert_false(s->failed);
	/* All ways were gone. */
	assert_true(s->direct > 1000 && s->relayed > 1000);
	assert_true(s->broadcasts > 100 && s->named > 100);
	assert_true(s->replies > 100 && s->sync_replies > 100);
	if (mode == LEAVING)
		assert_true(s->ends > 10);
}

static void rules_10_to_13_hold(void **state)
{
	holds(state, STAYING);
}

static void rules_10_to_15_hold_as_connections_end(void **state)
{
	holds(state, LEAVING);
}

static void rules_10_to_13_and_16_hold_in_tight_pools(void **state)
{
	holds(state, TIGHT);
}

static bool matches(const char *pattern, const char *text)
{
	regex_t regex;
	int r;

	assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
	r = regexec(&regex, text, 0, NULL, 0);
	regfree(&regex);
	return r == 0;
}

/*
 * What is seen first is one of the symptoms of that breach, and not of another. Who runs when has a
 * say in it, so one run of a few has to show that.
 */
static void fails(void **state, enum lane_breach breach, enum order_mode mode, const char *symptom)
{
	struct game *g = *state;
	unsigned int run;

	for (run = 0; run < RUNS_BROKEN; run++) {
		play(g, TURNS_BROKEN, breach, mode, run);
		if (g->shared->failed && matches(symptom, g->shared->why))
			return;
	}
	fail_msg("%s: no symptom of it", g->shared->failed ? g->shared->why : "nothing");
}

static void rule_10_one_pass_is_noticed(void **state)
{
	fails(state, LANE_ONE_PASS, STAYING, EFFECT_FIRST);
}

static void rule_8_drain_on_wake_is_noticed(void **state)
{
	fails(state, LANE_DRAIN_ON_WAKE, STAYING, NOT_LOOKED);
}

static void rule_11_old_stamps_are_noticed(void **state)
{
	fails(state, LANE_OLD_STAMP, STAYING, EFFECT_FIRST);
}

static void rule_12_a_broadcast_without_commit_is_noticed(void **state)
{
	fails(state, LANE_NO_COMMIT, STAYING, DAEMON_LATE);
}

static void rule_12_cursors_before_the_commit_are_noticed(void **state)
{
	fails(state, LANE_CURSOR_FIRST, STAYING, DAEMON_LATE);
}

static void rule_13_direct_at_once_is_noticed(void **state)
{
	fails(state, LANE_DIRECT_AT_ONCE, STAYING, DAEMON_LATE);
}

static void rule_13_old_names_are_noticed(void **state)
{
	fails(state, LANE_NAMES_FOR_EVER, STAYING, OLD_OWNER);
}

static void rule_14_an_end_before_the_last_message_is_noticed(void **state)
{
	fails(state, LANE_END_FIRST, LEAVING, AFTER_END);
}

static void rule_15_byebye_without_a_look_is_noticed(void **state)
{
	fails(state, LANE_NO_LAST_LOOK, LEAVING, LEFT_BEHIND);
}

static void rule_16_a_skipped_lane_is_noticed(void **state)
{
	fails(state, LANE_SKIP_FULL, TIGHT, EFFECT_FIRST);
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

	helper_kill_all(g->pids, SLOTS);
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
		TEST(rules_10_to_13_and_16_hold_in_tight_pools),
		TEST(rule_8_drain_on_wake_is_noticed),
		TEST(rule_10_one_pass_is_noticed),
		TEST(rule_11_old_stamps_are_noticed),
		TEST(rule_12_a_broadcast_without_commit_is_noticed),
		TEST(rule_12_cursors_before_the_commit_are_noticed),
		TEST(rule_13_direct_at_once_is_noticed),
		TEST(rule_13_old_names_are_noticed),
		TEST(rule_14_an_end_before_the_last_message_is_noticed),
		TEST(rule_15_byebye_without_a_look_is_noticed),
		TEST(rule_16_a_skipped_lane_is_noticed),
	};

	return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
