// SPDX-License-Identifier: LGPL-2.1-or-later
/* One look after the other, by hand: rules 8 to 12, 14 and 16 case by case. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "lane-sim.h"
#include "lane/hooks.h"
#include "lane/look.h"

#define PEERS 3u

/* Index 0 is the daemon. */
struct fixture {
	struct lane_channel theirs[PEERS], ours[PEERS];
	struct lane_source src[PEERS];
	struct lane_look look;
	struct lane_clock clock;
	struct lane_page_owner page;
	const struct lane_page *shared;
	unsigned int n_taken_up;
	unsigned int introduce; /* source that taken_up() adds */
	unsigned int cut; /* source that it cuts */
};

static void taken_up(struct lane_look *look, const struct lane_env *rec, uint64_t stamp,
		     const void *body)
{
	struct fixture *f = look->user;

	f->n_taken_up++;
	if (rec->type == LANE_REC_INTRO && f->introduce)
		assert_int_equal(lane_look_add(look, &f->src[f->introduce]), 0);
	if (rec->type == LANE_REC_GONE && f->cut)
		lane_look_cut(look, &f->src[f->cut], stamp);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	unsigned int i;
	int fd;

	assert_non_null(f);
	sim_begin(1);
	assert_int_equal(lane_page_make(&f->page, 1, &fd), 0);
	assert_int_equal(lane_page_map(fd, &f->shared), 0);
	close(fd);
	assert_int_equal(lane_look_init(&f->look, &sim_ops, epoll_create1(EPOLL_CLOEXEC),
					eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), f->shared,
					&f->clock), 0);
	f->look.user = f;
	f->look.taken_up = taken_up;
	for (i = 0; i < PEERS; i++) {
		sim_channel(&f->theirs[i], &f->ours[i], LANE_RING_MIN, 0,
			    i ? 0 : LANE_PEER_IS_DAEMON);
		f->src[i].id = i;
		f->src[i].ch = &f->ours[i];
	}
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	unsigned int i;

	lane_look_deinit(&f->look);
	close(f->look.epoll);
	close(f->look.eventfd);
	for (i = 0; i < PEERS; i++)
		sim_channel_end(&f->theirs[i], &f->ours[i]);
	lane_page_unmap(f->shared);
	lane_page_deinit(&f->page);
	free(f);
	return 0;
}

static void add(struct fixture *f, unsigned int i)
{
	assert_int_equal(lane_look_add(&f->look, &f->src[i]), 0);
}

static void publish(struct fixture *f, unsigned int i, uint16_t type, uint64_t stamp,
		    uint64_t round, uint64_t subject)
{
	struct lane_put put = { .type = type, .length = 8, .subject = subject };
	void *body;

	assert_int_equal(lane_put(&f->theirs[i], &put, &body), 0);
	memcpy(body, &subject, sizeof(subject));
	lane_publish(&f->theirs[i], stamp, round);
}

static void say(struct fixture *f, unsigned int i, uint64_t stamp, uint64_t subject)
{
	publish(f, i, LANE_REC_MSG, stamp, 0, subject);
	assert_true(lane_ring(&f->theirs[i]) >= 0);
}

static void expect(struct fixture *f, unsigned int i, uint64_t subject)
{
	struct lane_event ev;
	uint64_t body = 0;

	assert_int_equal(lane_look_next(&f->look, LANE_LOOK_ARM, &ev), 0);
	assert_int_equal(ev.type, LANE_EV_RECORD);
	assert_ptr_equal(ev.src, &f->src[i]);
	assert_int_equal(ev.rec.subject, subject);
	assert_int_equal(lane_look_take(&f->look, &ev, &body), 0);
	assert_int_equal(body, subject);
}

static void expect_type(struct fixture *f, unsigned int i, enum lane_event_type type)
{
	struct lane_event ev;

	assert_int_equal(lane_look_next(&f->look, LANE_LOOK_ARM, &ev), 0);
	assert_int_equal(ev.type, type);
	assert_ptr_equal(ev.src, &f->src[i]);
	lane_look_remove(&f->look, ev.src);
}

static void expect_nothing(struct fixture *f)
{
	struct lane_event ev;

	assert_int_equal(lane_look_next(&f->look, LANE_LOOK_ARM, &ev), -EAGAIN);
	assert_false(sim_readable(f->look.epoll));
}

static void rule_10_a_batch_comes_in_stamp_order(void **state)
{
	struct fixture *f = *state;

	add(f, 1);
	add(f, 2);
	say(f, 1, 50, 1);
	say(f, 1, 70, 3);
	say(f, 2, 60, 2);
	say(f, 2, 80, 4);
	expect(f, 1, 1);
	/* Published after the look: not in its batch, though stamped before the rest of it. */
	say(f, 1, 75, 5);
	expect(f, 2, 2);
	expect(f, 1, 3);
	expect(f, 2, 4);
	expect(f, 1, 5);
	expect_nothing(f);
}

static void rule_11_a_stamp_ahead_counts_as_first_seen(void **state)
{
	struct fixture *f = *state;

	add(f, 1);
	add(f, 2);
	say(f, 1, UINT64_MAX - 5, 1);
	expect(f, 1, 1);
	assert_true(f->clock.last < 10000);
	say(f, 2, f->clock.last + 1, 2);
	say(f, 1, UINT64_MAX - 4, 3);
	expect(f, 2, 2);
	expect(f, 1, 3);
	expect_nothing(f);
}

static void rule_11_a_stamp_that_goes_back_counts_as_the_one_before(void **state)
{
	struct fixture *f = *state;
	struct lane_event ev;

	add(f, 1);
	add(f, 2);
	say(f, 1, 60, 1);
	say(f, 1, 10, 3);
	say(f, 2, 55, 0);
	expect(f, 2, 0);
	expect(f, 1, 1);
	assert_int_equal(lane_look_next(&f->look, LANE_LOOK_POLL, &ev), 0);
	assert_int_equal(ev.stamp, 60);
	assert_int_equal(ev.rec.subject, 3);
}

static void rule_12_a_record_of_an_uncommitted_round_is_not_there(void **state)
{
	struct fixture *f = *state;

	add(f, 0);
	add(f, 1);
	publish(f, 0, LANE_REC_MSG, 10, 1, 7);
	publish(f, 0, LANE_REC_MSG, 11, 2, 8);
	assert_true(lane_news(&f->ours[0]));
	expect_nothing(f);
	assert_false(lane_news(&f->ours[0]));
	lane_page_commit(&f->page, 1);
	assert_true(lane_news(&f->ours[0]));
	assert_int_equal(lane_ring(&f->theirs[0]), 0);
	assert_true(sim_readable(f->look.epoll));
	expect(f, 0, 7);
	expect_nothing(f);
	lane_page_commit(&f->page, 2);
	assert_int_equal(lane_ring(&f->theirs[0]), 0);
	expect(f, 0, 8);
	expect_nothing(f);
}

static void rule_10_an_introduction_holds_for_the_look_that_finds_it(void **state)
{
	struct fixture *f = *state;

	add(f, 0);
	add(f, 1);
	f->introduce = 2;
	publish(f, 0, LANE_REC_INTRO, 20, 1, 2);
	lane_page_commit(&f->page, 1);
	lane_ring(&f->theirs[0]);
	say(f, 2, 30, 100); /* the cause */
	say(f, 1, 40, 101); /* the effect */
	expect(f, 0, 2);
	assert_int_equal(f->n_taken_up, 1);
	expect(f, 2, 100);
	expect(f, 1, 101);
	expect_nothing(f);
	assert_int_equal(f->n_taken_up, 1);
}

static void rule_14_the_end_of_a_peer_cuts_its_lane(void **state)
{
	struct fixture *f = *state;

	add(f, 0);
	add(f, 1);
	f->cut = 1;
	say(f, 1, 10, 1);
	say(f, 1, 500, 2); /* false, and later than its end */
	publish(f, 0, LANE_REC_GONE, 20, 1, 1);
	lane_page_commit(&f->page, 1);
	lane_ring(&f->theirs[0]);
	expect(f, 1, 1);
	say(f, 1, 11, 3); /* after its end */
	expect(f, 1, 2);
	expect_type(f, 1, LANE_EV_OVER);
	expect(f, 0, 1);
	expect_nothing(f);
}

static void rule_16_what_does_not_fit_yet_holds_back_the_rest(void **state)
{
	struct fixture *f = *state;
	struct lane_event ev;
	unsigned int i;

	add(f, 1);
	add(f, 2);
	say(f, 1, 10, 1);
	say(f, 2, 20, 2);
	for (i = 0; i < 3; i++) {
		assert_int_equal(lane_look_next(&f->look, LANE_LOOK_ARM, &ev), 0);
		assert_int_equal(ev.rec.subject, 1);
		assert_true(sim_readable(f->look.epoll));
	}
	expect(f, 1, 1);
	expect(f, 2, 2);
	expect_nothing(f);
	assert_int_equal(lane_look_take(&f->look, &ev, NULL), -EINVAL);
}

static void rule_9_what_was_published_before_a_hang_up_still_comes(void **state)
{
	struct fixture *f = *state;

	add(f, 1);
	add(f, 2);
	expect_nothing(f);
	say(f, 1, 10, 1);
	say(f, 1, 20, 2);
	close(f->theirs[1].sock);
	f->theirs[1].sock = -1;
	expect(f, 1, 1);
	expect(f, 1, 2);
	expect_type(f, 1, LANE_EV_OVER);
	say(f, 2, 30, 3);
	expect(f, 2, 3);
	expect_nothing(f);
}

static void rule_3_a_peer_that_breaks_the_format_loses_only_its_channel(void **state)
{
	struct fixture *f = *state;

	add(f, 1);
	add(f, 2);
	say(f, 1, 10, 1);
	say(f, 2, 20, 2);
	lane_hook_store(&f->theirs[1].own->published, 0xffffff00, 4);
	expect_type(f, 1, LANE_EV_BROKEN);
	expect(f, 2, 2);
	expect_nothing(f);
}

static void ring_by_hand(struct fixture *f, const struct lane_sock *bell)
{
	int sock = f->theirs[1].sock;

	assert_int_equal(sim_ops.send(&sim_ops, sock, bell, sizeof(*bell), NULL, 0), 0);
}

static void rule_18_a_number_rung_twice_breaks_the_channel(void **state)
{
	struct lane_sock bell = { .version = LANE_VERSION, .type = LANE_SOCK_BELL };
	struct fixture *f = *state;

	add(f, 1);
	expect_nothing(f);
	bell.value = f->ours[1].number;
	ring_by_hand(f, &bell);
	expect_nothing(f);
	ring_by_hand(f, &bell);
	expect_type(f, 1, LANE_EV_BROKEN);
}

static void rule_10_only_a_synchronous_reply_overtakes(void **state)
{
	struct fixture *f = *state;
	struct lane_env env;
	uint32_t limit, pos;
	uint64_t body;

	add(f, 1);
	add(f, 2);
	say(f, 1, 10, 1);
	say(f, 1, 20, 2);
	say(f, 1, 30, 3);
	say(f, 2, 15, 9);
	lane_look_touch(&f->look, &f->src[1]);
	assert_int_equal(lane_snapshot(&f->ours[1], &limit), 0);
	pos = f->ours[1].read;
	while (lane_scan(&f->ours[1], limit, &pos, &env) == 0 && env.subject != 2)
		lane_scan_next(&pos, &env);
	assert_int_equal(lane_pluck(&f->ours[1], pos, &env, &body), 0);
	assert_int_equal(body, 2);
	expect(f, 1, 1);
	expect(f, 2, 9);
	expect(f, 1, 3);
	expect_nothing(f);
	assert_true(lane_passed(&f->theirs[1]));
}

static void a_reply_at_the_front_of_a_batch_can_be_plucked(void **state)
{
	struct fixture *f = *state;
	struct lane_event ev;
	struct lane_env env;
	uint32_t limit, pos;

	add(f, 1);
	say(f, 1, 10, 1);
	say(f, 1, 20, 2);
	assert_int_equal(lane_look_next(&f->look, LANE_LOOK_ARM, &ev), 0);
	assert_int_equal(lane_snapshot(&f->ours[1], &limit), 0);
	pos = f->ours[1].read;
	assert_int_equal(lane_scan(&f->ours[1], limit, &pos, &env), 0);
	assert_int_equal(lane_pluck(&f->ours[1], pos, &env, NULL), 0);
	lane_consume(&f->ours[1]);
	assert_int_equal(lane_look_take(&f->look, &ev, NULL), -EINVAL);
	expect(f, 1, 2);
	expect_nothing(f);
}

static void put_with_fds(struct fixture *f, unsigned int i, int fd, bool send)
{
	struct lane_put put = { .type = LANE_REC_MSG, .fds = 1, .memfds = 1 };
	int fds[2] = { fd, fd };
	void *body;

	assert_int_equal(lane_put(&f->theirs[i], &put, &body), 0);
	if (send)
		assert_int_equal(lane_put_fds(&f->theirs[i], fds, 2), 0);
	else
		f->theirs[i].fds_sent = true; /* says so, but does not */
	lane_publish(&f->theirs[i], 10, 0);
	assert_true(lane_ring(&f->theirs[i]) >= 0);
}

static void rule_6_descriptors_come_with_their_record(void **state)
{
	struct fixture *f = *state;
	struct stat a, b;
	struct lane_event ev;
	int fds[2], fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	add(f, 1);
	expect_nothing(f);
	put_with_fds(f, 1, fd, true);
	say(f, 1, 20, 2);
	assert_int_equal(lane_look_next(&f->look, LANE_LOOK_ARM, &ev), 0);
	assert_int_equal(lane_look_take(&f->look, &ev, NULL), 0);
	assert_int_equal(lane_look_fds(&f->look, &ev, fds), 0);
	/* Whatever was drained on the way to them, something is left to read. */
	assert_true(sim_readable(f->look.epoll));
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(fstat(fds[0], &b), 0);
	assert_int_equal(a.st_rdev, b.st_rdev);
	assert_int_equal(fcntl(fds[1], F_GETFD), FD_CLOEXEC);
	close(fds[0]);
	close(fds[1]);
	close(fd);
	expect(f, 1, 2);
	expect_nothing(f);
}

static void rule_6_descriptors_that_were_not_sent_first_break_the_channel(void **state)
{
	struct fixture *f = *state;
	struct lane_event ev;
	int fds[2];

	add(f, 1);
	f->theirs[1].fd_seq = 1;
	put_with_fds(f, 1, -1, false);
	assert_int_equal(lane_look_next(&f->look, LANE_LOOK_ARM, &ev), 0);
	assert_int_equal(lane_look_take(&f->look, &ev, NULL), 0);
	assert_int_equal(lane_look_fds(&f->look, &ev, fds), -EPROTO);
	expect_type(f, 1, LANE_EV_BROKEN);
}

/* A peer that has made no lane yet: the first bell comes, and none is lost when it has. */
static void a_lane_is_made_and_passed_before_the_first_record_is_taken(void **state)
{
	struct fixture *f = *state;
	struct lane_channel a, b;
	struct lane_source src = { .id = 9, .ch = &b };
	struct lane_put put = { .type = LANE_REC_MSG };
	struct lane_event ev;
	void *body;
	int sv[2], fd;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	lane_channel_init(&a, &sim_ops, sv[0], 0);
	lane_channel_init(&b, &sim_ops, sv[1], 0);
	assert_int_equal(lane_channel_make(&a, LANE_RING_MIN, &fd), 0);
	assert_int_equal(lane_channel_attach(&b, fd), 0);
	close(fd);
	assert_int_equal(lane_look_add(&f->look, &src), 0);
	expect_nothing(f);
	assert_int_equal(lane_put(&a, &put, &body), 0);
	lane_publish(&a, 10, 0);
	assert_int_equal(lane_ring(&a), 0);
	assert_true(sim_readable(f->look.epoll));
	assert_int_equal(lane_look_next(&f->look, LANE_LOOK_ARM, &ev), 0);
	assert_int_equal(lane_look_take(&f->look, &ev, NULL), -ENOLINK);
	assert_int_equal(lane_channel_pass(&b, LANE_RING_MIN), 0);
	assert_int_equal(lane_look_take(&f->look, &ev, NULL), 0);
	expect_nothing(f);
	/* The writer has not read its socket: it must not go by what it believed before. */
	assert_null(a.peer);
	assert_int_equal(lane_put(&a, &put, &body), 0);
	lane_publish(&a, 20, 0);
	assert_int_equal(lane_ring(&a), 0);
	assert_non_null(a.peer);
	assert_true(sim_readable(f->look.epoll));
	lane_look_remove(&f->look, &src);
	lane_channel_deinit(&a);
	lane_channel_deinit(&b);
}

static void rule_8_a_doorbell_drained_elsewhere_is_made_up_for(void **state)
{
	struct fixture *f = *state;

	add(f, 1);
	expect_nothing(f);
	say(f, 1, 10, 1);
	lane_drain(&f->ours[1]);
	assert_false(sim_readable(f->look.epoll));
	lane_look_touch(&f->look, &f->src[1]);
	assert_true(sim_readable(f->look.epoll));
	expect(f, 1, 1);
	expect_nothing(f);
}

static void rule_15_a_peer_that_stops_reading_is_an_event(void **state)
{
	struct fixture *f = *state;
	struct lane_put put = { .type = LANE_REC_MSG };
	struct lane_back back;
	struct lane_event ev;
	void *body;

	add(f, 1);
	expect_nothing(f);
	assert_int_equal(lane_put(&f->ours[1], &put, &body), 0);
	lane_publish(&f->ours[1], 5, 0);
	lane_ring(&f->ours[1]);
	lane_closing_start(&f->theirs[1]);
	lane_closing_finish(&f->theirs[1]);
	assert_true(sim_readable(f->look.epoll));
	assert_int_equal(lane_look_next(&f->look, LANE_LOOK_ARM, &ev), 0);
	assert_int_equal(ev.type, LANE_EV_CLOSED);
	assert_int_equal(lane_take_back(&f->ours[1], &back), 0);
	assert_int_equal(lane_take_back(&f->ours[1], &back), -ENOENT);
	/* It may still send. */
	say(f, 1, 10, 1);
	expect(f, 1, 1);
	expect_nothing(f);
}

#define look_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		look_test(rule_10_a_batch_comes_in_stamp_order),
		look_test(rule_11_a_stamp_ahead_counts_as_first_seen),
		look_test(rule_11_a_stamp_that_goes_back_counts_as_the_one_before),
		look_test(rule_12_a_record_of_an_uncommitted_round_is_not_there),
		look_test(rule_10_an_introduction_holds_for_the_look_that_finds_it),
		look_test(rule_14_the_end_of_a_peer_cuts_its_lane),
		look_test(rule_16_what_does_not_fit_yet_holds_back_the_rest),
		look_test(rule_9_what_was_published_before_a_hang_up_still_comes),
		look_test(rule_3_a_peer_that_breaks_the_format_loses_only_its_channel),
		look_test(rule_18_a_number_rung_twice_breaks_the_channel),
		look_test(rule_10_only_a_synchronous_reply_overtakes),
		look_test(a_reply_at_the_front_of_a_batch_can_be_plucked),
		look_test(rule_6_descriptors_come_with_their_record),
		look_test(rule_6_descriptors_that_were_not_sent_first_break_the_channel),
		look_test(a_lane_is_made_and_passed_before_the_first_record_is_taken),
		look_test(rule_8_a_doorbell_drained_elsewhere_is_made_up_for),
		look_test(rule_15_a_peer_that_stops_reading_is_an_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
