// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Rules 6 to 8: no wake-up is lost, whatever is preempted where, and the naive protocols lose some.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cmocka.h>

#include "lane-sim.h"
#include "lane/alarm.h"
#include "lane/hooks.h"
#include "lane/look.h"
#include "lane/wait.h"

#define MESSAGES 24u
#define STEPS 200000u
#define SEEDS 1000u

enum reader_kind {
	GOOD, /* drain, arm, look, sleep */
	LOOK_THEN_ARM, /* naive: the look does not come after arming */
	DRAIN_LAST, /* naive: drains after the look */
	FUTEX, /* lane_futex() instead */
	FUTEX_LATE, /* naive: reads the word after the look */
	FUTEX_AFTER, /* naive: reads the word after it has said so, but before the look */
	ALARM, /* lane_await_alarm() instead */
	ALARM_LATE, /* naive: reads the word after the look */
	ALARM_AFTER, /* naive: reads the word after it has said so, but before the look */
};

struct world {
	struct lane_channel a, b; /* a writes, b reads */
	struct lane_clock clock;
	enum reader_kind kind;
	uint32_t length;
	bool futex_space;
	bool yields;

	unsigned int got;
	uint32_t limit;
};

static void wait_for_space(struct world *w, const struct lane_put *put)
{
	struct lane_word word;
	int r;

	if (w->futex_space) {
		r = lane_space_futex(&w->a, put, &word);
		if (r == -EAGAIN)
			sim_ops.sleep(&sim_ops, &word, 1, UINT64_MAX);
	} else {
		r = lane_space_arm(&w->a, put);
		if (r == -EAGAIN)
			sim_wait_readable(w->a.sock);
		lane_drain(&w->a);
	}
	lane_space_done(&w->a);
	if (r < 0 && r != -EAGAIN)
		sim_fail("waiting for space: %d", r);
}

static void send_one(struct world *w, unsigned int i)
{
	struct lane_put put = { .type = LANE_REC_MSG, .length = w->length, .subject = i };
	void *body;
	int r;

	while ((r = lane_put(&w->a, &put, &body)) == -EAGAIN)
		wait_for_space(w, &put);
	if (r < 0) {
		sim_fail("lane_put: %d", r);
		return;
	}
	memset(body, (int)i, w->length);
	lane_publish(&w->a, lane_clock_stamp(&w->clock, &sim_ops), 0);
	r = lane_ring(&w->a);
	if (r)
		sim_fail("lane_ring: %d", r);
}

static void writer(void *arg)
{
	unsigned int i;

	for (i = 0; i < MESSAGES; i++)
		send_one(arg, i);
}

static unsigned int take_all(struct world *w)
{
	static unsigned char body[1 << 16];
	struct lane_env env;
	unsigned int n = 0;

	if (lane_snapshot(&w->b, &w->limit) < 0)
		sim_fail("lane_snapshot");
	while (lane_peek(&w->b, w->limit, &env) == 0) {
		if (env.subject != w->got || env.length != w->length)
			sim_fail("message %u out of place", (unsigned int)env.subject);
		lane_take(&w->b, body);
		if (env.length && body[env.length - 1] != (unsigned char)w->got)
			sim_fail("message %u has another's body", w->got);
		lane_consume(&w->b);
		w->got++;
		n++;
	}
	return n;
}

static void sleep_on_alarm(struct world *w)
{
	struct lane_word word;

	lane_alarm_load(w->b.alarm, &word);
	lane_await_alarm(&w->b);
	lane_hook_fence();
	if (w->kind == ALARM_AFTER) {
		sim_yield();
		word.seen = *word.addr;
	}
	if (!take_all(w)) {
		sim_yield();
		if (w->kind == ALARM_LATE)
			word.seen = *word.addr;
		sim_ops.sleep(&sim_ops, &word, 1, UINT64_MAX);
	}
}

static void sleep_once(struct world *w)
{
	struct lane_word word;

	switch (w->kind) {
	case GOOD:
		lane_drain(&w->b);
		lane_arm(&w->b);
		if (!take_all(w))
			sim_wait_readable(w->b.sock);
		break;
	case LOOK_THEN_ARM:
		lane_drain(&w->b);
		if (!take_all(w)) {
			lane_arm(&w->b);
			sim_wait_readable(w->b.sock);
		}
		break;
	case DRAIN_LAST:
		lane_arm(&w->b);
		if (!take_all(w)) {
			lane_drain(&w->b);
			if (!sim_readable(w->b.sock))
				sim_wait_readable(w->b.sock);
		}
		break;
	case FUTEX:
		lane_futex(&w->b, &word);
		if (!take_all(w))
			sim_ops.sleep(&sim_ops, &word, 1, UINT64_MAX);
		break;
	case FUTEX_LATE:
		lane_futex(&w->b, &word);
		if (!take_all(w)) {
			sim_yield();
			word.seen = *word.addr;
			sim_ops.sleep(&sim_ops, &word, 1, UINT64_MAX);
		}
		break;
	case FUTEX_AFTER:
		lane_futex(&w->b, &word);
		sim_yield();
		word.seen = *word.addr;
		if (!take_all(w))
			sim_ops.sleep(&sim_ops, &word, 1, UINT64_MAX);
		break;
	case ALARM:
	case ALARM_LATE:
	case ALARM_AFTER:
		sleep_on_alarm(w);
		break;
	}
	lane_unarm(&w->b);
}

static void reader(void *arg)
{
	struct world *w = arg;

	while (w->got < MESSAGES) {
		if (!take_all(w))
			sleep_once(w);
	}
}

static enum sim_end run(struct world *w, uint64_t seed, bool fences)
{
	struct lane_alarm alarm = { .fd = -1 };
	enum sim_end end;

	sim_begin(seed);
	if (!fences)
		sim_no_fences();
	sim_channel(&w->a, &w->b, LANE_RING_MIN, LANE_ALARMS, LANE_ALARMS);
	if (w->kind >= ALARM)
		sim_alarm(&w->a, &w->b, &alarm);
	sim_spawn(writer, w);
	sim_spawn(reader, w);
	end = sim_run(STEPS);
	sim_channel_end(&w->a, &w->b);
	lane_alarm_deinit(&alarm);
	return end;
}

static void good(enum reader_kind kind, bool futex_space)
{
	static const uint32_t lengths[] = { 0, 100, 3000 };
	uint64_t seed;

	for (seed = 0; seed < SEEDS; seed++) {
		struct world w = { .kind = kind, .futex_space = futex_space,
				   .length = lengths[seed % 3] };
		enum sim_end end = run(&w, seed, true);

		if (end != SIM_OVER)
			print_error("seed %u: %d %s\n", (unsigned int)seed, end, sim_why());
		assert_int_equal(end, SIM_OVER);
		assert_int_equal(w.got, MESSAGES);
	}
}

/* The checker is worth something only if it catches these. */
static void naive(enum reader_kind kind, uint32_t length, bool futex_space, bool fences)
{
	unsigned int stuck = 0;
	uint64_t seed;

	for (seed = 0; seed < 4 * SEEDS && !stuck; seed++) {
		struct world w = { .kind = kind, .futex_space = futex_space, .length = length };

		stuck += run(&w, seed, fences) == SIM_STUCK;
	}
	assert_true(stuck > 0);
}

static void rule_7_drain_arm_look_sleep_loses_no_wakeup(void **state)
{
	good(GOOD, false);
}

static void rule_7_futex_sleep_loses_no_wakeup(void **state)
{
	good(FUTEX, true);
}

static void rule_7_sleep_on_the_alarm_loses_no_wakeup(void **state)
{
	good(ALARM, true);
}

static void naive_alarm_read_after_the_look_hangs(void **state)
{
	naive(ALARM_LATE, 100, false, true);
}

static void naive_alarm_read_after_the_number_hangs(void **state)
{
	naive(ALARM_AFTER, 0, false, true);
}

static void naive_look_before_arming_hangs(void **state)
{
	naive(LOOK_THEN_ARM, 100, false, true);
}

static void naive_drain_after_the_look_hangs(void **state)
{
	naive(DRAIN_LAST, 100, false, true);
}

static void naive_futex_word_read_after_the_look_hangs(void **state)
{
	naive(FUTEX_LATE, 100, false, true);
}

static void naive_futex_word_read_after_the_number_hangs(void **state)
{
	naive(FUTEX_AFTER, 0, false, true);
}

static void naive_without_fences_hangs_for_records(void **state)
{
	naive(GOOD, 0, false, false);
}

/* Large records: nearly all waits are for space, on the futex that no system call flushes for. */
static void naive_without_fences_hangs_for_space(void **state)
{
	naive(FUTEX, 3000, true, false);
}

/* Rule 8 ---------------------------------------------------------------------------------- */

struct looker {
	struct lane_channel a[2], b[2];
	struct lane_source src[2];
	struct lane_clock clock[2], own_clock;
	struct lane_look look;
	int epoll, eventfd;
	bool drain_on_wake; /* naive */
	unsigned int got;
};

static void looker_send(struct looker *l, unsigned int from, unsigned int i)
{
	struct lane_put put = { .type = LANE_REC_MSG, .length = 8, .subject = i };
	void *body;

	if (lane_put(&l->a[from], &put, &body) < 0)
		sim_fail("lane_put");
	memset(body, 0, 8);
	lane_publish(&l->a[from], lane_clock_stamp(&l->clock[from], &sim_ops), 0);
	if (lane_ring(&l->a[from]) < 0)
		sim_fail("lane_ring");
}

static void first_sender(void *arg)
{
	unsigned int i;

	for (i = 0; i < MESSAGES; i++)
		looker_send(arg, 0, i);
}

static void second_sender(void *arg)
{
	unsigned int i;

	for (i = 0; i < MESSAGES; i++)
		looker_send(arg, 1, i);
}

/* poll(), one message, poll() again: as a main loop does. */
static void one_per_poll(void *arg)
{
	struct looker *l = arg;
	struct lane_event ev;
	unsigned char body[8];

	while (l->got < 2 * MESSAGES) {
		sim_wait_readable(l->epoll);
		if (l->drain_on_wake) {
			lane_drain(&l->b[0]);
			lane_drain(&l->b[1]);
			l->look.ops->bell_clear(l->look.ops, l->eventfd);
			l->look.self_rung = true; /* it believes that somebody has rung */
		}
		if (lane_look_next(&l->look, LANE_LOOK_ARM, &ev) < 0)
			continue;
		if (ev.type != LANE_EV_RECORD || lane_look_take(&l->look, &ev, body) < 0)
			sim_fail("event %d", ev.type);
		l->got++;
	}
}

static enum sim_end run_looker(struct looker *l, uint64_t seed)
{
	enum sim_end end;
	unsigned int i;

	sim_begin(seed);
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(lane_look_init(&l->look, &sim_ops, l->epoll, l->eventfd, NULL,
					&l->own_clock), 0);
	for (i = 0; i < 2; i++) {
		sim_channel(&l->a[i], &l->b[i], LANE_RING_DEFAULT, 0, 0);
		l->src[i].id = i + 1;
		l->src[i].ch = &l->b[i];
		assert_int_equal(lane_look_add(&l->look, &l->src[i]), 0);
	}
	sim_spawn(first_sender, l);
	sim_spawn(second_sender, l);
	sim_spawn(one_per_poll, l);
	end = sim_run(STEPS);
	if (end == SIM_OVER && !l->drain_on_wake) {
		/* All taken, and armed: nothing to be read any more. */
		struct lane_event ev;

		assert_int_equal(lane_look_next(&l->look, LANE_LOOK_ARM, &ev), -EAGAIN);
		assert_false(sim_readable(l->epoll));
	}
	for (i = 0; i < 2; i++) {
		lane_look_remove(&l->look, &l->src[i]);
		sim_channel_end(&l->a[i], &l->b[i]);
	}
	lane_look_deinit(&l->look);
	close(l->epoll);
	close(l->eventfd);
	return end;
}

static void rule_8_one_message_per_poll_sees_all(void **state)
{
	uint64_t seed;

	for (seed = 0; seed < SEEDS; seed++) {
		struct looker l = { .got = 0 };
		enum sim_end end = run_looker(&l, seed);

		if (end != SIM_OVER)
			print_error("seed %u: %d %s\n", (unsigned int)seed, end, sim_why());
		assert_int_equal(end, SIM_OVER);
	}
}

static void naive_drain_on_wake_hangs(void **state)
{
	unsigned int stuck = 0;
	uint64_t seed;

	for (seed = 0; seed < SEEDS && !stuck; seed++) {
		struct looker l = { .drain_on_wake = true };

		stuck += run_looker(&l, seed) == SIM_STUCK;
	}
	assert_true(stuck > 0);
}

/* lane_wait ------------------------------------------------------------------------------- */

static int anything(void *arg)
{
	return take_all(arg) > 0;
}

/* With one CPU: no spin, but a yield before each sleep. */
static void wait_reader(void *arg)
{
	struct world *w = arg;
	struct lane_channel *chs[1] = { &w->b };
	struct lane_spin spin;

	lane_spin_init(&spin, w->yields ? LANE_SPIN_MAX_NS : 0, 1);
	while (w->got < MESSAGES)
		if (lane_wait(&spin, &sim_ops, chs, 1, anything, w, UINT64_MAX) < 0)
			sim_fail("lane_wait");
}

static void lane_wait_loses_no_wakeup(void **state)
{
	uint64_t seed;

	for (seed = 0; seed < SEEDS; seed++) {
		struct world w = { .length = seed % 2 ? 3000 : 0,
				   .futex_space = seed % 3 == 0,
				   .yields = seed % 4 >= 2 };

		sim_begin(seed);
		sim_channel(&w.a, &w.b, LANE_RING_MIN, 0, 0);
		sim_spawn(writer, &w);
		sim_spawn(wait_reader, &w);
		assert_int_equal(sim_run(STEPS), SIM_OVER);
		sim_channel_end(&w.a, &w.b);
	}
}

/* Two writers, one word; and the same with one peer that has not been given it. */

struct pair {
	struct world w[2];
	struct lane_alarm alarm;
};

static bool all_got(const struct pair *p)
{
	return p->w[0].got == MESSAGES && p->w[1].got == MESSAGES;
}

static int anything_of_two(void *arg)
{
	struct pair *p = arg;
	unsigned int n = take_all(&p->w[0]) + take_all(&p->w[1]);

	/* As a call does, it may take what comes for nothing and wait on. */
	return n > 2 || all_got(p);
}

static void wait_reader_of_two(void *arg)
{
	struct pair *p = arg;
	struct lane_channel *chs[2] = { &p->w[0].b, &p->w[1].b };
	struct lane_spin spin;

	lane_spin_init(&spin, 0, 2);
	while (!all_got(p))
		if (lane_wait(&spin, &sim_ops, chs, 2, anything_of_two, p, UINT64_MAX) < 0)
			sim_fail("lane_wait");
}

static void lane_wait_for_two(bool second_has_it)
{
	struct pair p = { .alarm = { .fd = -1 } };
	uint64_t seed;
	unsigned int i;

	for (seed = 0; seed < SEEDS; seed++) {
		sim_begin(seed);
		for (i = 0; i < 2; i++) {
			p.w[i] = (struct world){ .length = seed % 2 ? 3000 : 0,
						 .futex_space = seed % 3 == 0 };
			sim_channel(&p.w[i].a, &p.w[i].b, LANE_RING_MIN, LANE_ALARMS, LANE_ALARMS);
		}
		sim_alarm(&p.w[0].a, &p.w[0].b, &p.alarm);
		if (second_has_it)
			sim_alarm(&p.w[1].a, &p.w[1].b, &p.alarm);
		sim_spawn(writer, &p.w[0]);
		sim_spawn(writer, &p.w[1]);
		sim_spawn(wait_reader_of_two, &p);
		assert_int_equal(sim_run(STEPS), SIM_OVER);
		for (i = 0; i < 2; i++) {
			assert_int_equal(p.w[i].got, MESSAGES);
			sim_channel_end(&p.w[i].a, &p.w[i].b);
		}
		lane_alarm_deinit(&p.alarm);
	}
}

static void lane_wait_on_the_alarm_loses_no_wakeup(void **state)
{
	lane_wait_for_two(true);
}

static void lane_wait_on_alarm_and_bell_loses_no_wakeup(void **state)
{
	lane_wait_for_two(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_7_drain_arm_look_sleep_loses_no_wakeup),
		cmocka_unit_test(rule_7_futex_sleep_loses_no_wakeup),
		cmocka_unit_test(rule_7_sleep_on_the_alarm_loses_no_wakeup),
		cmocka_unit_test(naive_alarm_read_after_the_look_hangs),
		cmocka_unit_test(naive_alarm_read_after_the_number_hangs),
		cmocka_unit_test(naive_look_before_arming_hangs),
		cmocka_unit_test(naive_drain_after_the_look_hangs),
		cmocka_unit_test(naive_futex_word_read_after_the_look_hangs),
		cmocka_unit_test(naive_futex_word_read_after_the_number_hangs),
		cmocka_unit_test(naive_without_fences_hangs_for_records),
		cmocka_unit_test(naive_without_fences_hangs_for_space),
		cmocka_unit_test(rule_8_one_message_per_poll_sees_all),
		cmocka_unit_test(naive_drain_on_wake_hangs),
		cmocka_unit_test(lane_wait_loses_no_wakeup),
		cmocka_unit_test(lane_wait_on_the_alarm_loses_no_wakeup),
		cmocka_unit_test(lane_wait_on_alarm_and_bell_loses_no_wakeup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
