// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Rules 14 and 15: when a reader stops reading, or dies, each message is delivered or comes back,
 * never both, in order, and nothing is lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "lane-sim.h"
#include "lane/bulk.h"
#include "lane/hooks.h"

#define MESSAGES 16u
#define STEPS 100000u
#define SEEDS 1500u

enum how {
	CLOSE, /* as rule 15 says */
	CLOSE_AND_COME_BACK, /* taken back when it found something */
	DIE, /* at any instruction */
	CLOSED_BEFORE_CURSOR, /* naive */
	CURSOR_AFTER_GIVING_OUT, /* naive, dies at any instruction */
};

struct world {
	struct lane_channel a, b; /* a sends, b stops reading */
	struct lane_clock clock;
	enum how how;
	unsigned int stop_after;
	unsigned int sent;
	unsigned int delivered; /* 0..delivered-1 were given out */
	unsigned int came_back; /* first that came back */
	unsigned int n_back;
	int reader_task;
};

static int send_one(struct world *w)
{
	struct lane_put put = { .type = LANE_REC_MSG, .length = 40, .subject = w->sent,
				.tag = 1000 + w->sent };
	void *body;
	int r;

	r = lane_put(&w->a, &put, &body);
	if (r < 0)
		return r;
	memset(body, (int)w->sent, 40);
	w->sent++;
	lane_publish(&w->a, lane_clock_stamp(&w->clock, &sim_ops), 0);
	return lane_ring(&w->a);
}

static void take_back(struct world *w)
{
	struct lane_back back;
	int r;

	w->came_back = w->sent;
	while ((r = lane_take_back(&w->a, &back)) == 0) {
		if (!w->n_back++)
			w->came_back = (unsigned int)back.env.subject;
		if (back.env.subject != w->came_back + w->n_back - 1 ||
		    back.tag != 1000 + back.env.subject ||
		    *(const unsigned char *)back.body != (unsigned char)back.env.subject)
			sim_fail("what came back is not what was sent");
	}
	if (r != -ENOENT)
		sim_fail("lane_take_back: %d", r);
}

static void sender(void *arg)
{
	struct world *w = arg;
	int r = 0;

	while (w->sent < MESSAGES && (r == 0 || r == -EAGAIN)) {
		r = send_one(w);
		if (r == LANE_E_CLOSING || r == -EINPROGRESS)
			r = lane_closing_wait(&w->a, UINT64_MAX);
	}
	/* Nothing more to say: the end of the reader still has to be noticed. */
	while (!lane_final(&w->a)) {
		sim_wait_readable(w->a.sock);
		lane_drain(&w->a);
	}
	if (lane_closing_wait(&w->a, UINT64_MAX) != LANE_E_CLOSING)
		sim_fail("neither closed nor open");
	if (w->how == DIE || w->how == CURSOR_AFTER_GIVING_OUT)
		lane_drain(&w->a);
	take_back(w);
}

static bool take_one(struct world *w, bool cursor_first)
{
	struct lane_env env;
	uint32_t limit;

	if (lane_snapshot(&w->b, &limit) < 0 || lane_peek(&w->b, limit, &env) < 0)
		return false;
	lane_take(&w->b, NULL);
	if (cursor_first)
		lane_consume(&w->b);
	sim_yield();
	if (env.subject != w->delivered)
		sim_fail("out of order");
	w->delivered++;
	if (!cursor_first) {
		sim_yield();
		lane_consume(&w->b);
	}
	return true;
}

static void sleep_for_more(struct world *w)
{
	lane_drain(&w->b);
	lane_arm(&w->b);
	if (!take_one(w, w->how != CURSOR_AFTER_GIVING_OUT))
		sim_wait_readable(w->b.sock);
	lane_unarm(&w->b);
}

/* Naive: says that the cursor is final before it is. */
static void closed_before_cursor(struct world *w)
{
	struct lane_env env;
	uint32_t limit;

	lane_closing_start(&w->b);
	if (lane_snapshot(&w->b, &limit) < 0)
		return;
	while (lane_peek(&w->b, limit, &env) == 0) {
		lane_take(&w->b, NULL);
		w->delivered++;
	}
	lane_hook_store(&w->b.own->reading, LANE_CLOSED | 2u << LANE_NUMBER_SHIFT, 4);
	lane_hook_fence();
	sim_yield();
	lane_closing_finish(&w->b);
}

static void reader(void *arg)
{
	struct world *w = arg;
	bool cursor_first = w->how != CURSOR_AFTER_GIVING_OUT, found;

	while (w->delivered < w->stop_after)
		if (!take_one(w, cursor_first))
			sleep_for_more(w);
	if (w->how == DIE || w->how == CURSOR_AFTER_GIVING_OUT)
		return;
	if (w->how == CLOSED_BEFORE_CURSOR) {
		closed_before_cursor(w);
		return;
	}
	do {
		lane_closing_start(&w->b);
		found = false;
		while (take_one(w, true))
			found = true;
		if (found && w->how == CLOSE_AND_COME_BACK)
			lane_closing_cancel(&w->b);
		else
			found = false;
	} while (found);
	lane_closing_finish(&w->b);
}

/* The kernel closes the socket of a process that is dead. */
static void undertaker(void *arg)
{
	struct world *w = arg;

	while (!sim_is_over(w->reader_task)) {
		if (w->a.sock < 0)
			return;
		sim_switch_one_in(2);
		sim_yield();
	}
	close(w->b.sock);
	w->b.sock = -1;
}

static enum sim_end run(struct world *w, uint64_t seed)
{
	enum sim_end end;

	sim_begin(seed);
	sim_channel(&w->a, &w->b, LANE_RING_MIN, 0, 0);
	sim_spawn(sender, w);
	w->reader_task = sim_spawn(reader, w);
	if (w->how == DIE || w->how == CURSOR_AFTER_GIVING_OUT) {
		sim_spawn(undertaker, w);
		sim_kill_later(w->reader_task, (unsigned int)sim_below(400));
	}
	end = sim_run(STEPS);
	sim_channel_end(&w->a, &w->b);
	return end;
}

/* A reader that died between its cursor and giving the message out takes that one with it. */
static bool right(const struct world *w)
{
	unsigned int taken = w->sent - w->n_back;

	if (w->n_back && w->came_back != taken)
		return false;
	return w->how == DIE ? taken == w->delivered || taken == w->delivered + 1
			     : taken == w->delivered;
}

static void all_right(enum how how)
{
	unsigned int with_back = 0, without = 0;
	uint64_t seed;

	for (seed = 0; seed < SEEDS; seed++) {
		struct world w = { .how = how, .stop_after = (unsigned int)(seed % MESSAGES) };
		enum sim_end end = run(&w, seed);

		if (end != SIM_OVER || !right(&w))
			print_error("seed %u: %d %s; sent %u, delivered %u, back %u\n",
				    (unsigned int)seed, end, sim_why(), w.sent, w.delivered,
				    w.n_back);
		assert_int_equal(end, SIM_OVER);
		assert_true(right(&w));
		if (w.n_back)
			with_back++;
		else
			without++;
	}
	/* Both outcomes were exercised. */
	assert_true(with_back > 0);
	assert_true(without > 0);
}

static void some_wrong(enum how how)
{
	unsigned int wrong = 0;
	uint64_t seed;

	for (seed = 0; seed < SEEDS && !wrong; seed++) {
		struct world w = { .how = how, .stop_after = (unsigned int)(seed % MESSAGES) };

		wrong += run(&w, seed) != SIM_OVER || !right(&w);
	}
	assert_true(wrong > 0);
}

static void rule_15_a_reader_that_closes_loses_and_doubles_nothing(void **state)
{
	all_right(CLOSE);
}

static void rule_15_closing_can_be_taken_back(void **state)
{
	all_right(CLOSE_AND_COME_BACK);
}

static void rule_15_the_cursor_of_a_dead_reader_is_final(void **state)
{
	all_right(DIE);
}

static void naive_closed_before_the_cursor_doubles(void **state)
{
	some_wrong(CLOSED_BEFORE_CURSOR);
}

/* Rule 4. */
static void naive_cursor_after_giving_out_doubles(void **state)
{
	some_wrong(CURSOR_AFTER_GIVING_OUT);
}

static void rule_15_a_lane_counts_as_full_while_its_reader_closes(void **state)
{
	struct lane_put put = { .type = LANE_REC_MSG };
	struct world w = { .how = CLOSE };
	struct lane_back back;
	void *body;

	sim_begin(1);
	sim_channel(&w.a, &w.b, LANE_RING_MIN, 0, 0);
	assert_int_equal(send_one(&w), 0);
	lane_closing_start(&w.b);
	assert_int_equal(lane_put(&w.a, &put, &body), -EINPROGRESS);
	assert_int_equal(lane_space_arm(&w.a, &put), -EAGAIN);
	assert_int_equal(lane_closing_wait(&w.a, 0), -ETIMEDOUT);
	assert_int_equal(lane_take_back(&w.a, &back), -EBUSY);
	lane_closing_cancel(&w.b);
	assert_int_equal(lane_closing_wait(&w.a, 0), 0);
	assert_int_equal(send_one(&w), 0);
	lane_closing_start(&w.b);
	assert_int_equal(send_one(&w), -EINPROGRESS);
	lane_closing_finish(&w.b);
	assert_int_equal(lane_put(&w.a, &put, &body), -ESHUTDOWN);
	assert_int_equal(lane_space_arm(&w.a, &put), -ESHUTDOWN);
	assert_int_equal(lane_closing_wait(&w.a, 0), LANE_E_CLOSING);
	take_back(&w);
	assert_int_equal(w.n_back, 2);
	sim_channel_end(&w.a, &w.b);
}

static void rule_15_end_by_agreement(void **state)
{
	struct world w = { .how = CLOSE };
	struct lane_env env;
	uint32_t limit;

	sim_begin(1);
	sim_channel(&w.a, &w.b, LANE_RING_MIN, 0, 0);
	assert_int_equal(send_one(&w), 0);
	assert_int_equal(lane_ask_end(&w.b), 0);
	assert_int_equal(lane_drain(&w.a), 0);
	assert_true(w.a.asked_end);
	assert_int_equal(lane_end(&w.a, lane_clock_stamp(&w.clock, &sim_ops)), 0);
	assert_int_equal(lane_end(&w.a, 1), -ESHUTDOWN);
	assert_int_equal(lane_ring(&w.a), 0);
	assert_int_equal(send_one(&w), -ESHUTDOWN);
	assert_true(take_one(&w, true));
	assert_int_equal(lane_snapshot(&w.b, &limit), 0);
	assert_int_equal(lane_peek(&w.b, limit, &env), -EAGAIN);
	assert_true(w.b.ended);
	assert_false(lane_over(&w.a));
	assert_int_equal(lane_consume(&w.b), 0);
	assert_false(lane_over(&w.a));
	assert_int_equal(lane_end(&w.b, 1), 0);
	assert_int_equal(lane_ring(&w.b), 0);
	assert_int_equal(lane_snapshot(&w.a, &limit), 0);
	assert_int_equal(lane_peek(&w.a, limit, &env), -EAGAIN);
	assert_int_equal(lane_consume(&w.a), 0);
	assert_true(lane_over(&w.a));
	assert_true(lane_over(&w.b));
	sim_channel_end(&w.a, &w.b);
}

/* A peer that hands a buffer back before it takes the record cannot get its payload exchanged. */
static void rule_15_what_comes_back_has_its_own_bulk_payload(void **state)
{
	struct world w = { .how = CLOSE };
	struct lane_put put = { .type = LANE_REC_MSG }, second = { .type = LANE_REC_MSG };
	struct lane_back back;
	void *data, *other, *body;

	sim_begin(1);
	sim_channel(&w.a, &w.b, LANE_RING_MIN, 0, 0);
	assert_int_equal(lane_bulk_get(&w.a, 1000, &put, &data), 0);
	memset(data, 'x', 1000);
	assert_int_equal(lane_put(&w.a, &put, &body), 0);
	lane_publish(&w.a, 5, 0);
	lane_hook_store(&w.b.own->returned[LANE_BULK_INDEX(put.bulk) - 1], put.bulk_use, 4);
	assert_int_equal(lane_bulk_get(&w.a, 1000, &second, &other), 0);
	assert_ptr_not_equal(other, data);
	lane_bulk_drop(&w.a, &second);
	lane_closing_start(&w.b);
	lane_closing_finish(&w.b);
	assert_int_equal(lane_take_back(&w.a, &back), 0);
	assert_int_equal(back.env.bulk_size, 1000);
	assert_memory_equal(back.bulk, "xxxxxxxx", 8);
	sim_channel_end(&w.a, &w.b);
}

/* A record with one end of a pipe, of which the channel keeps a copy; returns the copy. */
static int send_pipe_end(struct world *w, int end)
{
	struct lane_put put = { .type = LANE_REC_MSG, .fds = 1 };
	int *kept = malloc(sizeof(*kept)), copy = dup(end);
	void *body;

	assert_non_null(kept);
	assert_true(copy >= 0);
	*kept = copy;
	assert_int_equal(lane_put(&w->a, &put, &body), 0);
	assert_int_equal(lane_put_fds(&w->a, &end, 1), 0);
	lane_keep_fds(&w->a, kept);
	lane_publish(&w->a, 5, 0);
	return copy;
}

/* The writer's copy goes with the reader's cursor, not before, at the latest with the channel. */
static void descriptors_are_kept_until_the_reader_has_them(void **state)
{
	struct world w = { .how = CLOSE };
	struct lane_env env;
	uint32_t limit;
	int pipes[2], copy, fd;

	sim_begin(1);
	sim_channel(&w.a, &w.b, LANE_RING_MIN, 0, 0);
	assert_int_equal(pipe(pipes), 0);
	copy = send_pipe_end(&w, pipes[1]);
	assert_int_equal(lane_reap(&w.a), 0);
	assert_true(lane_keeps_fds(&w.a));
	assert_true(fcntl(copy, F_GETFD) >= 0);
	assert_int_equal(lane_snapshot(&w.b, &limit), 0);
	assert_int_equal(lane_peek(&w.b, limit, &env), 0);
	assert_int_equal(lane_take(&w.b, NULL), 0);
	assert_int_equal(lane_consume(&w.b), 0);
	assert_int_equal(lane_take_fds(&w.b, &env, &fd), 0);
	assert_int_equal(lane_reap(&w.a), 0);
	assert_false(lane_keeps_fds(&w.a));
	assert_int_equal(fcntl(copy, F_GETFD), -1);
	close(fd);
	copy = send_pipe_end(&w, pipes[1]);
	sim_channel_end(&w.a, &w.b);
	assert_int_equal(fcntl(copy, F_GETFD), -1);
	/* Nobody has the other end but this test. */
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &env, 1), 0);
	close(pipes[0]);
}

static void rule_15_what_comes_back_has_its_descriptors(void **state)
{
	struct world w = { .how = CLOSE };
	struct lane_back back;
	int pipes[2], copy;

	sim_begin(1);
	sim_channel(&w.a, &w.b, LANE_RING_MIN, 0, 0);
	assert_int_equal(pipe(pipes), 0);
	copy = send_pipe_end(&w, pipes[1]);
	lane_closing_start(&w.b);
	lane_closing_finish(&w.b);
	assert_int_equal(lane_take_back(&w.a, &back), 0);
	assert_int_equal(back.env.fds, 1);
	assert_non_null(back.fds);
	assert_int_equal(back.fds[0], copy);
	free(back.fds);
	assert_false(lane_keeps_fds(&w.a));
	assert_int_equal(lane_take_back(&w.a, &back), -ENOENT);
	assert_int_equal(write(copy, "x", 1), 1);
	close(copy);
	sim_channel_end(&w.a, &w.b);
	close(pipes[0]);
	close(pipes[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_15_a_reader_that_closes_loses_and_doubles_nothing),
		cmocka_unit_test(rule_15_closing_can_be_taken_back),
		cmocka_unit_test(rule_15_the_cursor_of_a_dead_reader_is_final),
		cmocka_unit_test(naive_closed_before_the_cursor_doubles),
		cmocka_unit_test(naive_cursor_after_giving_out_doubles),
		cmocka_unit_test(rule_15_a_lane_counts_as_full_while_its_reader_closes),
		cmocka_unit_test(rule_15_end_by_agreement),
		cmocka_unit_test(rule_15_what_comes_back_has_its_own_bulk_payload),
		cmocka_unit_test(descriptors_are_kept_until_the_reader_has_them),
		cmocka_unit_test(rule_15_what_comes_back_has_its_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
