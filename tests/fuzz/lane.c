// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A hostile peer: the bytes decide what it writes into everything it can write, at every yield
 * point of ours, and what we do meanwhile. Whatever it is: we do not crash, copy nothing from
 * outside its ring, do not loop without bound, and take up no record that breaks the format.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lane/alarm.h"
#include "lane/bulk.h"
#include "lane/hooks.h"
#include "lane/look.h"
#include "lane/memfd.h"
#include "lane/wait.h"

#define RING LANE_RING_MIN
#define STEPS_PER_CALL 100000u
#define OURS_MAX 200u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What we hold against one hostile peer. */
struct front {
	struct lane_channel ch;
	struct lane_source src;
	struct lane_head *theirs; /* as the peer writes it */
	int sock; /* the peer's end */
	uint64_t last_stamp;
	uint32_t bulk, bulk_use; /* to be handed back */
	bool gone;
};

static struct {
	const uint8_t *data;
	size_t left;
	struct front fronts[2]; /* a daemon and a client */
	struct lane_alarm alarm; /* given to them, or theirs given back */
	struct lane_look look;
	struct lane_clock clock;
	struct lane_page_owner page;
	const struct lane_page *shared;
	int null, good_bulk;
	uint64_t now;
	unsigned int steps;
	bool busy; /* the attacker is at work: no yield within */
} f;

static void check_at(bool ok, int line)
{
	if (ok)
		return;
	fprintf(stderr, "lane.c:%d: not so\n", line);
	abort();
}

#define check(ok) check_at(ok, __LINE__)

static uint32_t take(unsigned int bytes)
{
	uint32_t v = 0;

	while (bytes-- && f.left) {
		v = v << 8 | *f.data++;
		f.left--;
	}
	return v;
}

/* The attacker ------------------------------------------------------------------------------ */

/* Numbers near those that matter are worth more than random ones. */
static uint32_t number(struct front *p)
{
	switch (take(1) % 8) {
	case 0: return take(4);
	case 1: return p->theirs->published + LANE_ALIGN * take(1);
	case 2: return p->theirs->published - LANE_ALIGN * take(1);
	case 3: return p->ch.published;
	case 4: return p->ch.published - LANE_ALIGN * take(1);
	case 5: return p->ch.state;
	case 6: return RING - LANE_ALIGN * take(1);
	default: return take(1);
	}
}

static void write_word(struct front *p)
{
	static const uint8_t words[] = {
		offsetof(struct lane_head, published) / 4, offsetof(struct lane_head, bell) / 4,
		offsetof(struct lane_head, consumed) / 4, offsetof(struct lane_head, state) / 4,
		offsetof(struct lane_head, reading) / 4, offsetof(struct lane_head, space) / 4,
		offsetof(struct lane_head, want) / 4, offsetof(struct lane_head, returned) / 4,
		offsetof(struct lane_head, ring) / 4, offsetof(struct lane_head, skip) / 4,
	};

	((uint32_t *)p->theirs)[words[take(1) % sizeof(words)]] = number(p);
}

static void write_byte(struct front *p)
{
	unsigned char *ring = (unsigned char *)p->theirs + LANE_HEAD_SIZE;

	ring[take(2) % RING] = (uint8_t)take(1);
}

/* A record that is right but for what the next bytes change. */
static void write_record(struct front *p)
{
	uint32_t at = p->theirs->published & (RING - 1), length = take(1);
	unsigned char *ring = (unsigned char *)p->theirs + LANE_HEAD_SIZE;
	struct lane_env env = {
		.size = LANE_ALIGN + (length + LANE_ALIGN - 1) / LANE_ALIGN * LANE_ALIGN,
		.type = LANE_REC_MSG,
		.stamp = f.now + take(1) - 64,
		.round = p == &f.fronts[0],
		.length = length,
	};
	unsigned int twist = take(1);

	if (twist & 1)
		env.type = (uint16_t)take(1);
	if (twist & 2)
		((unsigned char *)&env)[take(1) % sizeof(env)] = (uint8_t)take(1);
	if (twist & 4) {
		env.fds = 1;
		env.fd_seq = take(1);
	}
	if (twist & 8) {
		env.bulk = take(1);
		env.bulk_use = take(1);
		env.bulk_size = take(3);
	}
	if (twist & 16) {
		memset(&env, 0, sizeof(env));
		env.type = LANE_REC_PAD;
		env.size = RING - at;
	}
	if (at % LANE_ALIGN || at + sizeof(env) > RING)
		return;
	memcpy(ring + at, &env, sizeof(env));
	if (!(twist & 32))
		p->theirs->published += env.size;
}

static void write_socket(struct front *p)
{
	struct lane_sock msg = {
		.version = LANE_VERSION,
		.type = (uint16_t)(take(1) % 10),
		.value = number(p) % 64,
	};
	unsigned int how = take(1), n = how % 4, i;
	int good = how & 128 ? f.alarm.fd : f.good_bulk, fds[3];

	msg.count = n;
	if (how & 16)
		((unsigned char *)&msg)[take(1) % sizeof(msg)] = (uint8_t)take(1);
	for (i = 0; i < n; i++)
		fds[i] = how & 32 ? f.null : good;
	if (p->sock >= 0)
		lane_linux_ops.send(&lane_linux_ops, p->sock, &msg,
				    how & 64 ? take(1) % 16 : sizeof(msg), fds, n);
}

static void attack(void)
{
	unsigned int op = take(1);
	struct front *p = &f.fronts[op & 1];

	switch (op >> 1 & 7) {
	case 0: case 1: write_word(p); break;
	case 2: write_byte(p); break;
	case 3: case 4: write_record(p); break;
	case 5: case 6: write_socket(p); break;
	default:
		if (op >> 4 == 15 && p->sock >= 0) {
			close(p->sock);
			p->sock = -1;
		}
	}
}

bool lane_hook_broken(enum lane_breach breach)
{
	return false;
}

void lane_hook_yield(int point)
{
	if (f.busy)
		return;
	check(++f.steps < STEPS_PER_CALL);
	f.busy = true;
	if (f.left && (take(1) & 3) == 0)
		attack();
	f.busy = false;
}

uint32_t lane_hook_load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

void lane_hook_store(void *word, uint64_t value, unsigned int size)
{
	if (size == 4)
		*(uint32_t *)word = (uint32_t)value;
	else
		*(uint64_t *)word = value;
}

void lane_hook_fence(void)
{
}

void lane_hook_copy(const void *from, size_t size)
{
	const char *c = from;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		const char *head = (const char *)f.fronts[i].ch.peer;

		/* The one word of the head that is copied: the size of the ring, when attaching. */
		if (!head && size == sizeof(uint32_t))
			return;
		if (head && c >= head + LANE_HEAD_SIZE && c + size <= head + LANE_HEAD_SIZE + RING)
			return;
	}
	abort();
}

/* We ---------------------------------------------------------------------------------------- */

static uint64_t op_now(const struct lane_ops *ops)
{
	return f.now++;
}

static void op_wake(const struct lane_ops *ops, const uint32_t *word)
{
}

static int op_sleep(const struct lane_ops *ops, const struct lane_word *words, unsigned int n,
		    uint64_t timeout_ns)
{
	f.now += timeout_ns;
	return -ETIMEDOUT;
}

static void op_yield(const struct lane_ops *unused)
{
	f.now += 700;
}

static struct lane_ops ops;

static void check_record(const struct lane_event *ev)
{
	struct front *p = ev->src->user;
	const struct lane_env *env = &ev->rec;
	bool daemon = p == &f.fronts[0];

	check(!p->gone && !p->ch.broken);
	check(env->length <= RING / 4 - LANE_ALIGN && env->length <= env->size - LANE_ALIGN);
	check(env->size % LANE_ALIGN == 0 && env->size <= RING / 4 && !env->reserved);
	check(env->type == LANE_REC_MSG || env->type >= LANE_REC_PROGRAM ||
	      (daemon && (env->type == LANE_REC_INTRO || env->type == LANE_REC_GONE)));
	check(env->fds <= LANE_FDS_MAX && env->memfds <= LANE_FDS_MAX);
	check(daemon ? env->round && env->round <= f.page.committed : !env->round);
	check((ev->stamp >= p->last_stamp || p->src.cut) && ev->stamp < f.now);
	check(env->bulk_size <= LANE_BULK_SIZE_MAX);
}

static void use_bulk(struct front *p, const struct lane_env *env)
{
	const void *data;

	if (!env->bulk || p->bulk || lane_bulk_data(&p->ch, env, &data) < 0)
		return;
	/* All of it is there. */
	check(((const volatile char *)data)[env->bulk_size - 1] != 1);
	p->bulk = env->bulk;
	p->bulk_use = env->bulk_use;
}

static void hand_back(struct front *p)
{
	if (p->bulk)
		lane_bulk_return(&p->ch, p->bulk, p->bulk_use);
	p->bulk = 0;
}

static void receive(unsigned int how)
{
	struct lane_event ev;
	struct front *p;
	char *body;

	if (lane_look_next(&f.look, how & 1 ? LANE_LOOK_ARM : LANE_LOOK_POLL, &ev) < 0)
		return;
	p = ev.src->user;
	if (ev.type == LANE_EV_OVER || ev.type == LANE_EV_BROKEN) {
		check(!p->gone);
		p->gone = true;
		lane_look_remove(&f.look, ev.src);
	}
	if (ev.type != LANE_EV_RECORD)
		return;
	check_record(&ev);
	body = malloc(ev.rec.length);
	if (!(how & 2) && lane_look_take(&f.look, &ev, body) == 0) {
		p->last_stamp = ev.stamp;
		lane_drop_fds(&p->ch, &ev.rec);
		lane_look_touch(&f.look, ev.src);
		use_bulk(p, &ev.rec);
	}
	free(body);
}

static void send_one(struct front *p)
{
	struct lane_put put = {
		.type = LANE_REC_MSG,
		.flags = (uint16_t)(take(1) & 1),
		.length = take(2) % (RING / 4),
	};
	bool bulk = take(1) % 8 == 0;
	void *body, *data;

	if (bulk && lane_bulk_get(&p->ch, 1 + take(2), &put, &data) < 0)
		return;
	if (lane_put(&p->ch, &put, &body) < 0) {
		lane_bulk_drop(&p->ch, &put);
		lane_space_arm(&p->ch, &put);
		return;
	}
	memset(body, 'm', put.length);
	lane_publish(&p->ch, lane_clock_stamp(&f.clock, &ops), 0);
	lane_ring(&p->ch);
}

static void scan(struct front *p, bool pluck)
{
	uint32_t limit, pos = p->ch.read;
	struct lane_env env;
	char *body;

	if (lane_snapshot(&p->ch, &limit) < 0)
		return;
	while (lane_scan(&p->ch, limit, &pos, &env) == 0) {
		if (pluck && !(env.stamp & 1)) {
			body = malloc(env.length);
			lane_pluck(&p->ch, pos, &env, body);
			lane_consume(&p->ch);
			free(body);
		}
		lane_scan_next(&pos, &env);
	}
	if (!p->gone)
		lane_look_touch(&f.look, &p->src);
}

static void close_down(struct front *p, unsigned int how)
{
	struct lane_back back;

	if (how & 1)
		lane_closing_start(&p->ch);
	else if (how & 2)
		lane_closing_cancel(&p->ch);
	else
		lane_closing_finish(&p->ch);
	lane_closing_wait(&p->ch, f.now + 5);
	while (lane_take_back(&p->ch, &back) == 0)
		check(back.env.type == LANE_REC_MSG);
	if (!p->gone)
		lane_look_touch(&f.look, &p->src);
	lane_over(&p->ch);
}

static int never(void *arg)
{
	return 0;
}

static void wait_a_little(struct front *p)
{
	struct lane_channel *chs[1] = { &p->ch };
	struct lane_spin spin;

	lane_spin_init(&spin, 10, 2);
	lane_alarm_give(&p->ch, &f.alarm);
	lane_wait(&spin, &ops, chs, 1, never, NULL, f.now + 1000);
	if (!p->gone)
		lane_look_touch(&f.look, &p->src);
}

static void act(void)
{
	unsigned int op = take(1);
	struct front *p = &f.fronts[op & 1];

	f.steps = 0;
	switch (op >> 1 & 15) {
	case 0: send_one(p); break;
	case 1: scan(p, op & 128); break;
	case 2: close_down(p, op >> 6); break;
	case 3: wait_a_little(p); break;
	case 4: hand_back(p); break;
	case 5: lane_page_commit(&f.page, f.page.committed + 1); break;
	default: receive(op >> 6);
	}
}

static void taken_up(struct lane_look *look, const struct lane_env *rec, uint64_t stamp,
		     const void *body)
{
	if (rec->type == LANE_REC_GONE && !f.fronts[1].gone)
		lane_look_cut(look, &f.fronts[1].src, stamp);
}

static void begin_front(struct front *p, unsigned int flags)
{
	int sv[2], fd, r;
	void *map;

	r = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv);
	check(r == 0);
	lane_channel_init(&p->ch, &ops, sv[0], flags);
	p->sock = sv[1];
	check(lane_channel_make(&p->ch, RING, &fd) == 0);
	close(fd);
	check(lane_memfd_make("hostile", LANE_HEAD_SIZE + RING, &fd, &map) == 0);
	p->theirs = map;
	p->theirs->magic = LANE_MAGIC;
	p->theirs->version = LANE_VERSION;
	p->theirs->ring = RING;
	check(lane_channel_attach(&p->ch, fd) == 0);
	close(fd);
	p->src.ch = &p->ch;
	p->src.user = p;
	check(lane_look_add(&f.look, &p->src) == 0);
}

static void end_front(struct front *p)
{
	if (!p->gone)
		lane_look_remove(&f.look, &p->src);
	hand_back(p);
	lane_channel_deinit(&p->ch);
	if (p->sock >= 0)
		close(p->sock);
	lane_memfd_unmap(p->theirs, lane_memfd_round(LANE_HEAD_SIZE + RING));
}

static void begin(void)
{
	void *map;
	int fd;

	memset(&f, 0, sizeof(f));
	f.busy = true;
	f.now = 1000;
	ops = lane_linux_ops;
	ops.now = op_now;
	ops.wake = op_wake;
	ops.yield = op_yield;
	ops.sleep = op_sleep;
	f.null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	check(lane_memfd_make("bulk", LANE_BULK_MIN, &f.good_bulk, &map) == 0);
	lane_memfd_unmap(map, LANE_BULK_MIN);
	check(lane_alarm_make(&f.alarm) == 0);
	check(lane_page_make(&f.page, 1, &fd) == 0);
	check(lane_page_map(fd, &f.shared) == 0);
	close(fd);
	check(lane_look_init(&f.look, &ops, epoll_create1(EPOLL_CLOEXEC),
			     eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), f.shared, &f.clock) == 0);
	f.look.taken_up = taken_up;
	begin_front(&f.fronts[0], LANE_PEER_IS_DAEMON | LANE_ALARMS);
	begin_front(&f.fronts[1], LANE_ALARMS);
	f.busy = false;
}

static void end(void)
{
	f.busy = true;
	end_front(&f.fronts[0]);
	end_front(&f.fronts[1]);
	lane_look_deinit(&f.look);
	close(f.look.epoll);
	close(f.look.eventfd);
	close(f.null);
	close(f.good_bulk);
	lane_alarm_deinit(&f.alarm);
	lane_page_unmap(f.shared);
	lane_page_deinit(&f.page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int i;

	begin();
	f.data = data;
	f.left = size;
	for (i = 0; i < OURS_MAX && f.left; i++)
		act();
	end();
	return 0;
}
