// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a peer may do to the channel of the one it was introduced to: files that are no lanes,
 * buffers used wrongly, bells nobody asked for, hang-ups in between. It costs the peer its channel,
 * and nobody else anything. (hostile-peer.c: messages.)
 */
#include <sys/socket.h>

#include "hostile.h"

static void assert_lost(struct fixture *f)
{
	assert_int_equal(hostile_drain(f->victim), 0);
	assert_true(hostile_victims_end(f)->broken);
	hostile_assert_served(f);
}

static void a_record_as_send_writes_it_is_delivered(void **state)
{
	struct fixture *f = *state;

	hostile_publish(f, NULL);
	assert_int_equal(hostile_drain(f->victim), 1);
	assert_false(hostile_victims_end(f)->broken);
	hostile_assert_served(f);
}

/* ---- files ---- */

typedef void (*give_fn)(struct fixture *f, int fd);

/* With each file, on a fresh bus */
static void give_all(give_fn give)
{
	const char *name;
	unsigned int i;
	void *state;
	int fd;

	for (i = 0; i < HOSTILE_FILES; i++) {
		fd = hostile_file(i, &name);
		if (fd < 0) {
			print_message("# no memfd %s here\n", name);
			continue;
		}
		assert_int_equal(hostile_connect(&state), 0);
		give(state, fd);
		if (!hostile_victims_end(state)->broken)
			fail_msg("a file %s was taken", name);
		assert_lost(state);
		hostile_tear_down(&state);
		close(fd);
	}
}

static void as_lane(struct fixture *f, int fd)
{
	hostile_be_introduced(f);
	hostile_say(hostile_end(f), LANE_SOCK_LANE, 0, fd);
	assert_int_equal(hostile_drain(f->victim), 0);
}

static void what_is_no_lane_is_not_taken_for_one(void **state)
{
	give_all(as_lane);
}

/* Sealed as a lane is, but what is in it is none */
static void a_lane_without_a_head_is_none(void **state)
{
	struct fixture *f = *state;
	void *map;
	int fd;

	assert_int_equal(lane_memfd_make("hostile", LANE_HEAD_SIZE + LANE_RING_DEFAULT, &fd, &map),
			 0);
	as_lane(f, fd);
	lane_memfd_unmap(map, lane_memfd_round(LANE_HEAD_SIZE + LANE_RING_DEFAULT));
	close(fd);
	assert_lost(f);
}

static void a_second_lane_is_refused(void **state)
{
	struct fixture *f = *state;
	struct lane_channel other;
	int fd;

	lane_channel_init(&other, &lane_linux_ops, -1, 0);
	assert_int_equal(lane_channel_make(&other, LANE_RING_DEFAULT, &fd), 0);
	hostile_say(hostile_end(f), LANE_SOCK_LANE, 0, fd);
	close(fd);
	lane_channel_deinit(&other);
	hostile_publish(f, NULL);
	/* The record may be taken before the socket is looked at. */
	assert_true(hostile_drain(f->victim) <= 1);
	assert_lost(f);
}

static void introduce(struct fixture *f)
{
	uint64_t i;

	for (i = 0; !hostile_peer_at(f->hostile, f->victim) ||
		    hostile_peer_at(f->hostile, f->victim)->state != PEER_DIRECT;
	     i++) {
		assert_int_equal(hostile_send(f->hostile, f->victim, i), 0);
		assert_int_equal(hostile_await(f->victim), i);
	}
}

static void as_buffer(struct fixture *f, int fd)
{
	introduce(f);
	hostile_say(hostile_end(f), LANE_SOCK_BULK, 8, fd);
	hostile_drain(f->victim);
}

static void what_is_no_buffer_is_not_taken_for_one(void **state)
{
	give_all(as_buffer);
}

static void as_alarm(struct fixture *f, int fd)
{
	introduce(f);
	hostile_say(hostile_end(f), LANE_SOCK_ALARM, 0, fd);
	hostile_drain(f->victim);
}

static void what_is_no_alarm_is_not_taken_for_one(void **state)
{
	give_all(as_alarm);
}

/* ---- buffers ---- */

static void leave_alone(struct lane_channel *ch, struct lane_env *env)
{
}

static void beyond_its_end(struct lane_channel *ch, struct lane_env *env)
{
	env->bulk_size = (uint32_t)ch->out[LANE_BULK_INDEX(env->bulk) - 1].size + 1;
}

static void never_passed(struct lane_channel *ch, struct lane_env *env)
{
	env->bulk = LANE_BULK_MAX;
}

static void next_generation(struct lane_channel *ch, struct lane_env *env)
{
	env->bulk += 1u << 4;
}

static void use_again(struct lane_channel *ch, struct lane_env *env)
{
	env->bulk_use--;
}

static void use_ahead(struct lane_channel *ch, struct lane_env *env)
{
	env->bulk_use++;
}

static void no_size(struct lane_channel *ch, struct lane_env *env)
{
	env->bulk_size = 0;
}

static void less_than_the_message(struct lane_channel *ch, struct lane_env *env)
{
	env->bulk_size = 100;
}

static void index_out_of_range(struct lane_channel *ch, struct lane_env *env)
{
	env->bulk = LANE_BULK_MAX + 1;
}

static void a_buffer_used_wrongly_costs_the_channel(void **state)
{
	static const hostile_tamper_fn tampers[] = {
		beyond_its_end, never_passed, next_generation,	     use_again,
		use_ahead,	no_size,      less_than_the_message, index_out_of_range,
	};
	struct fixture *f;
	unsigned int i;
	void *fresh;

	for (i = 0; i < ARRAY_SIZE(tampers); i++) {
		assert_int_equal(hostile_connect(&fresh), 0);
		f = fresh;
		introduce(f);
		hostile_publish(f, leave_alone);
		assert_int_equal(hostile_drain(f->victim), 1);
		hostile_publish(f, tampers[i]);
		if (hostile_drain(f->victim))
			fail_msg("tamper %u was delivered", i);
		assert_lost(f);
		hostile_tear_down(&fresh);
	}
}

static uint32_t held_bulk, held_use;

static void remember(struct lane_channel *ch, struct lane_env *env)
{
	held_bulk = env->bulk;
	held_use = env->bulk_use;
}

static void the_held_one(struct lane_channel *ch, struct lane_env *env)
{
	env->bulk = held_bulk;
	env->bulk_use = held_use + 1;
}

/* The application still reads the message in it. */
static void a_buffer_that_is_held_is_not_reused(void **state)
{
	struct fixture *f = *state;
	const struct kdbus_msg *msg;

	hostile_publish(f, remember);
	assert_int_equal(libkdbus_receive(f->victim, &msg), 0);
	assert_int_equal(lane_bulk_held(hostile_victims_end(f)), 1);
	hostile_publish(f, the_held_one);
	assert_lost(f);
	/* It outlives the channel. */
	assert_int_equal(libkdbus_done(f->victim, msg), 0);
	hostile_assert_served(f);
}

/* Nor replaced by another file. */
static void a_buffer_that_is_held_is_not_replaced(void **state)
{
	struct fixture *f = *state;
	const struct kdbus_msg *msg;
	void *map;
	int fd;

	hostile_publish(f, remember);
	assert_int_equal(libkdbus_receive(f->victim, &msg), 0);
	assert_int_equal(lane_memfd_make("hostile", LANE_BULK_MIN, &fd, &map), 0);
	hostile_say(hostile_end(f), LANE_SOCK_BULK, held_bulk + (1u << 4), fd);
	close(fd);
	lane_memfd_unmap(map, LANE_BULK_MIN);
	assert_lost(f);
	assert_int_equal(libkdbus_done(f->victim, msg), 0);
	hostile_assert_served(f);
}

/* ---- bells ---- */

static void a_bell_nobody_asked_for_costs_the_channel(void **state)
{
	struct fixture *f = *state;

	hostile_drain(f->victim);
	hostile_say(hostile_end(f), LANE_SOCK_BELL, hostile_victims_end(f)->number + 1, -1);
	assert_lost(f);
}

static void a_bell_rung_twice_costs_the_channel(void **state)
{
	struct fixture *f = *state;
	struct lane_channel *ch = hostile_victims_end(f);

	hostile_drain(f->victim);
	assert_true(lane_armed(ch));
	hostile_say(hostile_end(f), LANE_SOCK_BELL, ch->number, -1);
	hostile_say(hostile_end(f), LANE_SOCK_BELL, ch->number, -1);
	assert_lost(f);
}

static void a_flood_of_bells_costs_the_channel(void **state)
{
	struct fixture *f = *state;
	unsigned int i;

	for (i = 0; i < 20000; i++)
		hostile_say(hostile_end(f), i & 1 ? LANE_SOCK_BELL : LANE_SOCK_SPACE, i, -1);
	assert_lost(f);
}

static void bells_of_a_closing_that_is_none_cost_the_channel(void **state)
{
	struct fixture *f = *state;

	hostile_say(hostile_end(f), LANE_SOCK_CLOSED, 0, -1);
	assert_lost(f);
}

/* ---- hang-ups ---- */

static void hang_up(struct fixture *f)
{
	shutdown(hostile_end(f)->sock, SHUT_RDWR);
}

/* What was published before is there; the victim goes on through the daemon. */
static void assert_goes_on(struct fixture *f, unsigned int published)
{
	assert_int_equal(hostile_drain(f->victim), published);
	assert_int_equal(hostile_send(f->victim, f->hostile, 7), 0);
	assert_int_equal(hostile_await(f->hostile), 7);
	hostile_assert_served(f);
}

static void a_hang_up_before_the_first_record(void **state)
{
	struct fixture *f = *state;

	hostile_be_introduced(f);
	hang_up(f);
	assert_goes_on(f, 0);
}

static void a_hang_up_after_records(void **state)
{
	struct fixture *f = *state;

	hostile_publish(f, NULL);
	hostile_publish(f, leave_alone);
	hang_up(f);
	assert_goes_on(f, 2);
}

static void a_hang_up_in_the_middle_of_a_record(void **state)
{
	struct lane_put put = { .type = LANE_REC_MSG, .length = 200, .fds = 1 };
	struct fixture *f = *state;
	struct lane_channel *ch = hostile_end(f);
	const int fd = 0;
	void *body;

	hostile_publish(f, NULL);
	assert_int_equal(lane_put(ch, &put, &body), 0);
	memset(body, 0xff, put.length);
	assert_int_equal(lane_put_fds(ch, &fd, 1), 0);
	hang_up(f);
	assert_goes_on(f, 1);
}

/* It stops reading and does not say how far it came: nobody waits for it. */
static void a_hang_up_in_the_middle_of_closing(void **state)
{
	struct fixture *f = *state;

	/* The victim writes, too. */
	assert_int_equal(hostile_send(f->victim, f->hostile, 1), 0);
	assert_int_equal(hostile_await(f->hostile), 1);
	lane_closing_start(hostile_end(f));
	hang_up(f);
	assert_goes_on(f, 0);
}

#define CONNECTED(fn)  cmocka_unit_test_setup_teardown(fn, hostile_connect, hostile_tear_down)
#define INTRODUCED(fn) cmocka_unit_test_setup_teardown(fn, hostile_introduce, hostile_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		INTRODUCED(a_record_as_send_writes_it_is_delivered),
		cmocka_unit_test(what_is_no_lane_is_not_taken_for_one),
		CONNECTED(a_lane_without_a_head_is_none),
		INTRODUCED(a_second_lane_is_refused),
		cmocka_unit_test(what_is_no_buffer_is_not_taken_for_one),
		cmocka_unit_test(what_is_no_alarm_is_not_taken_for_one),
		cmocka_unit_test(a_buffer_used_wrongly_costs_the_channel),
		INTRODUCED(a_buffer_that_is_held_is_not_reused),
		INTRODUCED(a_buffer_that_is_held_is_not_replaced),
		INTRODUCED(a_bell_nobody_asked_for_costs_the_channel),
		INTRODUCED(a_bell_rung_twice_costs_the_channel),
		INTRODUCED(a_flood_of_bells_costs_the_channel),
		INTRODUCED(bells_of_a_closing_that_is_none_cost_the_channel),
		CONNECTED(a_hang_up_before_the_first_record),
		INTRODUCED(a_hang_up_after_records),
		INTRODUCED(a_hang_up_in_the_middle_of_a_record),
		INTRODUCED(a_hang_up_in_the_middle_of_closing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
