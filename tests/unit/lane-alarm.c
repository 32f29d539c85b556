// SPDX-License-Identifier: LGPL-2.1-or-later
/* The alarm word (lane/alarm.h): how it is given, and what of a peer's is refused. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "lane/alarm.h"
#include "lane/memfd.h"
#include "lane/wait.h"

#define SIZES (F_SEAL_SHRINK | F_SEAL_GROW)

struct pair {
	struct lane_channel a, b;
	struct lane_alarm alarm;
};

static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	int sv[2], fd;

	assert_non_null(p);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	lane_channel_init(&p->a, &lane_linux_ops, sv[0], LANE_ALARMS);
	lane_channel_init(&p->b, &lane_linux_ops, sv[1], LANE_ALARMS);
	assert_int_equal(lane_channel_make(&p->a, LANE_RING_MIN, &fd), 0);
	assert_int_equal(lane_channel_attach(&p->b, fd), 0);
	close(fd);
	assert_int_equal(lane_channel_pass(&p->b, LANE_RING_MIN), 0);
	assert_int_equal(lane_drain(&p->a), 0);
	assert_int_equal(lane_alarm_make(&p->alarm), 0);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	lane_channel_deinit(&p->a);
	lane_channel_deinit(&p->b);
	lane_alarm_deinit(&p->alarm);
	free(p);
	return 0;
}

static void say_alarm(struct pair *p, int fd)
{
	const struct lane_sock msg = { .version = LANE_VERSION, .type = LANE_SOCK_ALARM,
				       .count = 1 };

	assert_int_equal(lane_linux_ops.send(&lane_linux_ops, p->b.sock, &msg, sizeof(msg), &fd,
					     1), 0);
}

static void it_is_used_once_the_peer_has_it(void **state)
{
	struct pair *p = *state;
	struct lane_word word;

	lane_alarm_look(&p->a);
	assert_null(p->a.peer_alarm);
	assert_int_equal(lane_alarm_give(&p->b, &p->alarm), 0);
	assert_false(lane_alarm_works(&p->b));
	lane_alarm_look(&p->a);
	assert_non_null(p->a.peer_alarm);
	assert_true(lane_alarm_works(&p->b));
	assert_false(lane_alarm_works(&p->a));
	/* A second time nothing is sent. */
	assert_int_equal(lane_alarm_give(&p->b, &p->alarm), 0);
	assert_int_equal(lane_channel_recv(&p->a), -EAGAIN);
	lane_alarm_load(&p->alarm, &word);
	lane_alarm_ring(&lane_linux_ops, p->a.peer_alarm);
	assert_int_equal(*p->alarm.word, word.seen + 1);
	assert_int_equal(lane_linux_ops.sleep(&lane_linux_ops, &word, 1, UINT64_MAX / 2), 0);
}

static int never(void *arg)
{
	return 0;
}

static int news(void *arg)
{
	struct pair *p = arg;

	return lane_news(&p->b);
}

/* What was published between the look and the sleep, by a peer that reads what we say. */
static int publish(void *arg)
{
	struct lane_put put = { .type = LANE_REC_MSG };
	struct lane_clock clock = { 0 };
	struct pair *p = arg;
	void *body;

	if (p->a.published || (p->b.state & LANE_MODE_MASK) == LANE_POLLING)
		return news(arg);
	assert_int_equal(p->b.state & LANE_MODE_MASK, LANE_ALARM);
	assert_int_equal(lane_put(&p->a, &put, &body), 0);
	lane_publish(&p->a, lane_clock_stamp(&clock, &lane_linux_ops), 0);
	assert_int_equal(lane_ring(&p->a), 0);
	return 0;
}

static void a_message_after_the_look_ends_the_sleep(void **state)
{
	struct pair *p = *state;
	struct lane_channel *chs[1] = { &p->b };
	struct lane_spin spin;

	lane_spin_init(&spin, 0, 1);
	assert_int_equal(lane_alarm_give(&p->b, &p->alarm), 0);
	lane_alarm_look(&p->a);
	assert_int_equal(lane_wait(&spin, &lane_linux_ops, chs, 1, publish, p, UINT64_MAX), 1);
	assert_int_equal(*p->alarm.word, 1);
}

/* Until its peer has the alarm a lane's own word is slept on, which the bell ends. */
static void without_it_the_bell_does(void **state)
{
	struct pair *p = *state;
	struct lane_channel *chs[1] = { &p->b };
	struct lane_spin spin;

	lane_spin_init(&spin, 0, 1);
	assert_int_equal(lane_alarm_give(&p->b, &p->alarm), 0);
	assert_int_equal(lane_wait(&spin, &lane_linux_ops, chs, 1, never, p, 0), 0);
	assert_int_equal(p->b.state & LANE_MODE_MASK, LANE_POLLING);
	assert_int_equal(*p->alarm.word, 0);
}

static void it_is_neither_given_nor_taken_without_leave(void **state)
{
	struct pair *p = *state;

	p->b.flags = 0;
	assert_int_equal(lane_alarm_give(&p->b, &p->alarm), -EPERM);
	p->a.flags = 0;
	say_alarm(p, p->alarm.fd);
	assert_int_equal(lane_drain(&p->a), -EPROTO);
	assert_null(p->a.peer_alarm);
}

static void it_comes_only_once(void **state)
{
	struct pair *p = *state;

	assert_int_equal(lane_alarm_give(&p->b, &p->alarm), 0);
	say_alarm(p, p->alarm.fd);
	assert_int_equal(lane_drain(&p->a), -EPROTO);
}

static int file(size_t size, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void refused(struct pair *p, int fd)
{
	assert_true(fd >= 0);
	say_alarm(p, fd);
	close(fd);
	assert_int_equal(lane_drain(&p->a), -EPROTO);
	assert_null(p->a.peer_alarm);
	p->a.broken = false;
}

static void what_could_fault_is_refused(void **state)
{
	size_t page = lane_memfd_round(1);
	struct pair *p = *state;

	refused(p, file(page, SIZES));
	refused(p, file(page, F_SEAL_GROW | F_SEAL_SEAL));
	refused(p, file(0, SIZES | F_SEAL_SEAL));
	refused(p, file(2 * page, SIZES | F_SEAL_SEAL));
	/* One that cannot be written would be of no use. */
	refused(p, file(page, SIZES | F_SEAL_SEAL | F_SEAL_WRITE));
	refused(p, open("/dev/null", O_RDWR | O_CLOEXEC));
}

/* The bell is still there, so nobody loses a channel for it. */
static void a_process_without_room_for_descriptors_does_without(void **state)
{
	struct pair *p = *state;
	struct rlimit old, none;
	int lowest = dup(0);

	assert_true(lowest >= 0);
	close(lowest);
	assert_int_equal(lane_alarm_give(&p->b, &p->alarm), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = (rlim_t)lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	lane_alarm_look(&p->a);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_false(p->a.broken);
	assert_false(lane_alarm_works(&p->b));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(it_is_used_once_the_peer_has_it),
		CASE(a_message_after_the_look_ends_the_sleep),
		CASE(without_it_the_bell_does),
		CASE(it_is_neither_given_nor_taken_without_leave),
		CASE(it_comes_only_once),
		CASE(what_could_fault_is_refused),
		CASE(a_process_without_room_for_descriptors_does_without),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
