// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Two real processes on two CPUs: calls and replies in both directions at once, with one message
 * per poll at one end and short futex sleeps at the other, small rings that fill up, descriptors
 * and bulk payloads. Every message arrives once, in order, with its own contents.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lane/alarm.h"
#include "lane/bulk.h"
#include "lane/look.h"
#include "lane/memfd.h"
#include "lane/wait.h"

#define MESSAGES 15000u

static const struct lane_ops *const ops = &lane_linux_ops;

struct end {
	struct lane_channel ch;
	struct lane_source src;
	struct lane_look look;
	struct lane_clock clock;
	struct lane_spin spin;
	bool in_library; /* waits in lane_wait(), else in poll() */
	struct lane_alarm alarm; /* what it sleeps on there, if it was made */
	unsigned int sent, got;
	int null;
};

#define need(ok) need_at(ok, #ok, __LINE__)

static void need_at(bool ok, const char *what, int line)
{
	if (ok)
		return;
	fprintf(stderr, "lane-pair.c:%d: %s (errno %d)\n", line, what, errno);
	exit(1);
}

static uint32_t length_of(unsigned int i)
{
	return i % 97 * 31 % 3000;
}

static bool has_bulk(unsigned int i)
{
	return i % 50 == 7;
}

static bool has_fds(unsigned int i)
{
	return i % 40 == 3;
}

static unsigned char byte_of(unsigned int i)
{
	return (unsigned char)(i * 167 + 13);
}

static void begin(struct end *e, int sock, bool in_library, bool alarms)
{
	memset(e, 0, sizeof(*e));
	e->in_library = in_library;
	e->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	lane_channel_init(&e->ch, ops, sock, alarms ? LANE_ALARMS : 0);
	need(lane_channel_pass(&e->ch, LANE_RING_MIN) == 0);
	if (alarms && in_library) {
		need(lane_alarm_make(&e->alarm) == 0);
		need(lane_alarm_give(&e->ch, &e->alarm) == 0);
	}
	lane_spin_init(&e->spin, LANE_SPIN_MAX_NS, lane_linux_cpus());
	need(lane_look_init(&e->look, ops, epoll_create1(EPOLL_CLOEXEC),
			    eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), NULL, &e->clock) == 0);
	e->src.ch = &e->ch;
	need(lane_look_add(&e->look, &e->src) == 0);
}

/* Whether message @sent could be sent. */
static bool try_send(struct end *e)
{
	struct lane_put put = { .type = LANE_REC_MSG,
				.length = length_of(e->sent),
				.subject = e->sent };
	void *body, *bulk = NULL;
	int r;

	if (has_bulk(e->sent)) {
		r = lane_bulk_get(&e->ch, 100000, &put, &bulk);
		need(r == 0 || r == -EAGAIN);
		if (r < 0)
			return false;
		memset(bulk, byte_of(e->sent), 100000);
	}
	put.fds = has_fds(e->sent);
	r = lane_put(&e->ch, &put, &body);
	if (r == 0) {
		memset(body, byte_of(e->sent), put.length);
		if (put.fds) {
			r = lane_put_fds(&e->ch, &e->null, 1);
			if (r < 0)
				lane_cancel(&e->ch);
		}
	}
	if (r < 0) {
		need(r == -EAGAIN);
		lane_bulk_drop(&e->ch, &put);
		return false;
	}
	lane_publish(&e->ch, lane_clock_stamp(&e->clock, ops), 0);
	need(lane_ring(&e->ch) == 0);
	e->sent++;
	return true;
}

static void check_bulk(struct end *e, const struct lane_event *ev)
{
	const unsigned char *data;
	const void *p;

	need(!ev->rec.bulk == !has_bulk(e->got));
	if (!ev->rec.bulk)
		return;
	need(lane_bulk_data(&e->ch, &ev->rec, &p) == 0);
	data = p;
	need(ev->rec.bulk_size == 100000 && data[0] == byte_of(e->got) &&
	     data[99999] == byte_of(e->got));
	lane_bulk_return(&e->ch, ev->rec.bulk, ev->rec.bulk_use);
}

static void check_fds(struct end *e, const struct lane_event *ev)
{
	struct stat a, b;
	int fd;

	need(ev->rec.fds == has_fds(e->got));
	if (!ev->rec.fds)
		return;
	need(lane_look_fds(&e->look, ev, &fd) == 0);
	need(fstat(fd, &a) == 0 && fstat(e->null, &b) == 0 && a.st_rdev == b.st_rdev);
	close(fd);
}

static bool try_receive(struct end *e)
{
	static unsigned char body[LANE_RING_MIN];
	struct lane_event ev;
	uint32_t i;

	if (lane_look_next(&e->look, e->in_library ? LANE_LOOK_POLL : LANE_LOOK_ARM, &ev) < 0)
		return false;
	/* The other side had sent all, and was done first. */
	if (ev.type == LANE_EV_OVER && e->got == MESSAGES)
		return true;
	need(ev.type == LANE_EV_RECORD && ev.rec.subject == e->got &&
	     ev.rec.length == length_of(e->got));
	need(lane_look_take(&e->look, &ev, body) == 0);
	for (i = 0; i < ev.rec.length; i++)
		need(body[i] == byte_of(e->got));
	check_fds(e, &ev);
	check_bulk(e, &ev);
	e->got++;
	return true;
}

static int news(void *arg)
{
	struct end *e = arg;

	return lane_news(&e->ch);
}

/* Nothing to receive. If there is more to send than room, room wakes us too. */
static void wait_for_anything(struct end *e)
{
	struct lane_put put = { .type = LANE_REC_MSG, .length = 3000, .fds = 1 };
	struct lane_channel *chs[1] = { &e->ch };
	struct pollfd p = { .fd = e->look.epoll, .events = POLLIN };
	struct lane_event ev;
	int r = e->in_library ? lane_wait(&e->spin, ops, chs, 1, news, e, UINT64_MAX) : 0;

	if (e->in_library)
		lane_look_touch(&e->look, &e->src);
	if (r > 0)
		return;
	r = lane_look_next(&e->look, LANE_LOOK_ARM, &ev);
	/* The look has drained the socket: ask for room after it, or its ring may be lost. */
	if (r == -EAGAIN && e->sent < MESSAGES) {
		r = lane_space_arm(&e->ch, &put);
		need(r == 0 || r == -EAGAIN);
	}
	if (r == -EAGAIN)
		need(poll(&p, 1, 300000) > 0);
	lane_drain(&e->ch);
	lane_look_touch(&e->look, &e->src);
	lane_space_done(&e->ch);
}

static void run(struct end *e)
{
	unsigned int burst, i;

	while (e->sent < MESSAGES || e->got < MESSAGES) {
		burst = 1 + e->got % 5;
		for (i = 0; i < burst && e->sent < MESSAGES && try_send(e); i++)
			;
		if (!try_receive(e) && (e->sent == MESSAGES || i < burst))
			wait_for_anything(e);
	}
	need(lane_end(&e->ch, lane_clock_stamp(&e->clock, ops)) == 0);
	need(lane_ring(&e->ch) >= -ECONNRESET);
}

static void end(struct end *e)
{
	lane_look_remove(&e->look, &e->src);
	lane_look_deinit(&e->look);
	close(e->look.epoll);
	close(e->look.eventfd);
	close(e->null);
	lane_channel_deinit(&e->ch);
	lane_alarm_deinit(&e->alarm);
}

static int run_pair(bool first_in_library, bool second_in_library, bool alarms)
{
	static struct end e;
	int sv[2], status;
	pid_t pid;

	fflush(stdout);
	need(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == 0);
	pid = fork();
	need(pid >= 0);
	close(sv[pid ? 1 : 0]);
	begin(&e, sv[pid ? 0 : 1], pid ? first_in_library : second_in_library, alarms);
	run(&e);
	if (!pid)
		exit(0);
	need(waitpid(pid, &status, 0) == pid);
	end(&e);
	return status;
}

int main(void)
{
	static const struct {
		bool first_in_library, second_in_library, alarms;
		const char *what;
	} modes[] = {
		{ false, false, false, "poll and poll" },
		{ true, true, false, "library and library" },
		{ true, false, false, "library and poll" },
		{ true, true, true, "library and library, with alarms" },
		{ true, false, true, "library and poll, with an alarm" },
	};
	const unsigned int n = sizeof(modes) / sizeof(modes[0]);
	unsigned int i;

	printf("TAP version 13\n1..%u\n", n);
	for (i = 0; i < n; i++)
		printf("%s %u - %s\n",
		       run_pair(modes[i].first_in_library, modes[i].second_in_library,
				modes[i].alarms) ?
			       "not ok" :
			       "ok",
		       i + 1, modes[i].what);
	return 0;
}
