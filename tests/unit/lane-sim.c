// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

#include "lane-sim.h"
#include "lane/alarm.h"
#include "lane/hooks.h"

#define TASKS 8
#define STACK (256u << 10)
#define STORES 16
#define REGIONS 32

struct store {
	void *word;
	uint64_t value;
	unsigned int size;
};

struct task {
	ucontext_t context;
	void *stack;
	void (*run)(void *arg);
	void *arg;
	bool over;
	bool background;
	bool sleeping; /* on words */
	int fd, other; /* or on descriptors, if not -1 */
	struct lane_word words[LANE_WORDS_MAX];
	unsigned int n_words;
	struct store stores[STORES];
	unsigned int n_stores;
	unsigned int kill_in;
	unsigned int pause; /* steps for which it is suspended */
};

struct region {
	const char *a, *b;
	size_t size;
};

static struct {
	struct task tasks[TASKS];
	unsigned int n_tasks;
	struct region regions[REGIONS];
	unsigned int n_regions;
	ucontext_t main;
	int current;
	uint64_t random;
	uint64_t clock;
	unsigned int one_in;
	bool no_fences;
	bool failed;
	char why[256];
} sim;

uint64_t sim_random(void)
{
	uint64_t z = sim.random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint64_t sim_below(uint64_t n)
{
	return sim_random() % n;
}

void sim_begin(uint64_t seed)
{
	unsigned int i;

	for (i = 0; i < sim.n_tasks; i++)
		munmap(sim.tasks[i].stack, STACK);
	memset(&sim, 0, sizeof(sim));
	sim.random = seed;
	sim.current = -1;
	sim.one_in = 3;
	sim.clock = 1000;
}

void sim_no_fences(void)
{
	sim.no_fences = true;
}

void sim_switch_one_in(unsigned int n)
{
	sim.one_in = n;
}

static struct task *self(void)
{
	return sim.current < 0 ? NULL : &sim.tasks[sim.current];
}

static void flush_one(struct task *t)
{
	struct store *s = &t->stores[0];
	uint32_t small = (uint32_t)s->value;

	if (s->size == sizeof(small))
		__atomic_store_n((uint32_t *)s->word, small, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n((uint64_t *)s->word, s->value, __ATOMIC_SEQ_CST);
	memmove(&t->stores[0], &t->stores[1], --t->n_stores * sizeof(t->stores[0]));
}

static void flush(struct task *t)
{
	while (t && t->n_stores)
		flush_one(t);
}

static void leave(struct task *t)
{
	swapcontext(&t->context, &sim.main);
}

void sim_yield(void)
{
	struct task *t = self();

	if (!t || sim_below(sim.one_in))
		return;
	if (sim_below(32) == 0)
		t->pause = (unsigned int)sim_below(400);
	leave(t);
}

void sim_delay(unsigned int steps)
{
	struct task *t = self();

	t->pause = (unsigned int)sim_below(steps);
	leave(t);
}

bool lane_hook_broken(enum lane_breach breach)
{
	return false;
}

void lane_hook_yield(int point)
{
	sim_yield();
}

uint32_t lane_hook_load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

void lane_hook_store(void *word, uint64_t value, unsigned int size)
{
	struct task *t = self();
	struct task none = { .n_stores = 0 };

	if (!t) {
		none.stores[0] = (struct store){ word, value, size };
		none.n_stores = 1;
		flush(&none);
		return;
	}
	if (t->n_stores == STORES)
		flush_one(t);
	t->stores[t->n_stores++] = (struct store){ word, value, size };
}

void lane_hook_fence(void)
{
	if (!sim.no_fences)
		flush(self());
}

void lane_hook_copy(const void *from, size_t size)
{
}

void sim_same_memory(const void *a, const void *b, size_t size)
{
	if (sim.n_regions == REGIONS)
		abort();
	sim.regions[sim.n_regions++] = (struct region){ a, b, size };
}

/* One address for both mappings. */
static const void *canonical(const void *p)
{
	const char *c = p;
	const struct region *r;
	unsigned int i;

	for (i = 0; i < sim.n_regions; i++) {
		r = &sim.regions[i];
		if (c >= r->b && c < r->b + r->size)
			return r->a + (c - r->b);
	}
	return p;
}

static uint64_t op_now(const struct lane_ops *ops)
{
	return ++sim.clock;
}

static void op_wake(const struct lane_ops *ops, const uint32_t *word)
{
	unsigned int i, j;
	struct task *t;

	flush(self());
	for (i = 0; i < sim.n_tasks; i++) {
		t = &sim.tasks[i];
		for (j = 0; t->sleeping && j < t->n_words; j++)
			if (canonical(t->words[j].addr) == canonical(word))
				t->sleeping = false;
	}
}

static void op_yield(const struct lane_ops *ops)
{
	lane_hook_yield(LANE_AT_CALL);
}

static int op_sleep(const struct lane_ops *ops, const struct lane_word *words, unsigned int n,
		    uint64_t timeout_ns)
{
	struct task *t = self();
	unsigned int i;

	if (!t)
		return -ETIMEDOUT;
	flush(t);
	for (i = 0; i < n; i++)
		if (lane_hook_load(words[i].addr) != words[i].seen)
			return 0;
	memcpy(t->words, words, n * sizeof(*words));
	t->n_words = n;
	t->sleeping = true;
	leave(t);
	return 0;
}

static int op_send(const struct lane_ops *ops, int sock, const void *data, size_t size,
		   const int *fds, unsigned int n_fds)
{
	flush(self());
	return lane_linux_ops.send(ops, sock, data, size, fds, n_fds);
}

static ssize_t op_recv(const struct lane_ops *ops, int sock, void *buf, size_t size, int *fds,
		       unsigned int *ret_n_fds, bool *ret_short)
{
	flush(self());
	return lane_linux_ops.recv(ops, sock, buf, size, fds, ret_n_fds, ret_short);
}

static int op_watch(const struct lane_ops *ops, int epoll, int fd, void *data)
{
	return lane_linux_ops.watch(ops, epoll, fd, data);
}

static void op_unwatch(const struct lane_ops *ops, int epoll, int fd)
{
	lane_linux_ops.unwatch(ops, epoll, fd);
}

static int op_ready(const struct lane_ops *ops, int epoll, void **data, unsigned int max)
{
	flush(self());
	return lane_linux_ops.ready(ops, epoll, data, max);
}

static void op_bell_set(const struct lane_ops *ops, int eventfd)
{
	flush(self());
	lane_linux_ops.bell_set(ops, eventfd);
}

static void op_bell_clear(const struct lane_ops *ops, int eventfd)
{
	flush(self());
	lane_linux_ops.bell_clear(ops, eventfd);
}

static void op_close(const struct lane_ops *ops, int fd)
{
	close(fd);
}

const struct lane_ops sim_ops = {
	.now = op_now,
	.wake = op_wake,
	.yield = op_yield,
	.sleep = op_sleep,
	.send = op_send,
	.recv = op_recv,
	.watch = op_watch,
	.unwatch = op_unwatch,
	.ready = op_ready,
	.bell_set = op_bell_set,
	.bell_clear = op_bell_clear,
	.close = op_close,
	.hang_up = op_close,
};

static void enter(void)
{
	struct task *t = self();

	t->run(t->arg);
	flush(t);
	t->over = true;
	for (;;)
		leave(t);
}

int sim_spawn(void (*run)(void *arg), void *arg)
{
	struct task *t = &sim.tasks[sim.n_tasks];

	if (sim.n_tasks == TASKS)
		abort();
	t->run = run;
	t->arg = arg;
	t->fd = -1;
	t->other = -1;
	t->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t->stack == MAP_FAILED)
		abort();
	getcontext(&t->context);
	t->context.uc_stack.ss_sp = t->stack;
	t->context.uc_stack.ss_size = STACK;
	makecontext(&t->context, enter, 0);
	return (int)sim.n_tasks++;
}

void sim_kill(int task)
{
	flush(&sim.tasks[task]);
	sim.tasks[task].over = true;
}

void sim_kill_later(int task, unsigned int steps)
{
	sim.tasks[task].kill_in = steps + 1;
}

void sim_background(int task)
{
	sim.tasks[task].background = true;
}

bool sim_is_over(int task)
{
	return sim.tasks[task].over;
}

bool sim_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

void sim_wait_two_readable(int fd, int other)
{
	struct task *t = self();

	flush(t);
	t->fd = fd;
	t->other = other;
	leave(t);
	t->fd = -1;
	t->other = -1;
}

void sim_wait_readable(int fd)
{
	sim_wait_two_readable(fd, -1);
}

void sim_fail(const char *format, ...)
{
	va_list ap;

	if (!sim.failed) {
		va_start(ap, format);
		vsnprintf(sim.why, sizeof(sim.why), format, ap);
		va_end(ap);
	}
	sim.failed = true;
}

const char *sim_why(void)
{
	return sim.why;
}

static bool can_run(const struct task *t)
{
	if (t->over || t->sleeping || t->pause)
		return false;
	return t->fd < 0 || sim_readable(t->fd) || (t->other >= 0 && sim_readable(t->other));
}

/* Asleep or not, a CPU's store buffer drains in the end. */
static void let_stores_out(bool all)
{
	unsigned int i;

	for (i = 0; i < sim.n_tasks; i++)
		while (sim.tasks[i].n_stores && (all || sim_below(8) == 0))
			flush_one(&sim.tasks[i]);
}

static void end_pauses(void)
{
	unsigned int i;

	for (i = 0; i < sim.n_tasks; i++)
		sim.tasks[i].pause = 0;
}

static int choose(void)
{
	int able[TASKS];
	unsigned int i, n = 0;

	for (i = 0; i < sim.n_tasks; i++)
		if (can_run(&sim.tasks[i]))
			able[n++] = (int)i;
	return n ? able[sim_below(n)] : -1;
}

static void count_down(void)
{
	unsigned int i;

	for (i = 0; i < sim.n_tasks; i++) {
		if (sim.tasks[i].pause)
			sim.tasks[i].pause--;
		if (sim.tasks[i].kill_in && !--sim.tasks[i].kill_in)
			sim_kill((int)i);
	}
}

static enum sim_end how_it_ended(void)
{
	unsigned int i;

	for (i = 0; i < sim.n_tasks; i++)
		if (!sim.tasks[i].over && !sim.tasks[i].background)
			return SIM_STUCK;
	return SIM_OVER;
}

enum sim_end sim_run(unsigned int max_steps)
{
	unsigned int step;
	int next;

	for (step = 0; step < max_steps; step++) {
		let_stores_out(false);
		count_down();
		next = choose();
		if (next < 0) {
			let_stores_out(true);
			end_pauses();
			next = choose();
		}
		if (next < 0)
			return sim.failed ? SIM_FAILED : how_it_ended();
		sim.current = next;
		swapcontext(&sim.main, &sim.tasks[next].context);
		sim.current = -1;
		if (sim.failed)
			return SIM_FAILED;
	}
	return SIM_LONG;
}

static void need(bool ok)
{
	if (!ok)
		abort();
}

void sim_channel(struct lane_channel *a, struct lane_channel *b, uint32_t ring,
		 unsigned int a_flags, unsigned int b_flags)
{
	int sv[2], fd_a, fd_b;

	need(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == 0);
	lane_channel_init(a, &sim_ops, sv[0], a_flags);
	lane_channel_init(b, &sim_ops, sv[1], b_flags);
	need(lane_channel_make(a, ring, &fd_a) == 0);
	need(lane_channel_make(b, ring, &fd_b) == 0);
	need(lane_channel_attach(a, fd_b) == 0);
	need(lane_channel_attach(b, fd_a) == 0);
	close(fd_a);
	close(fd_b);
	sim_same_memory(a->own, b->peer, a->own_size);
	sim_same_memory(b->own, a->peer, b->own_size);
}

void sim_alarm(struct lane_channel *a, struct lane_channel *b, struct lane_alarm *alarm)
{
	if (!alarm->word)
		need(lane_alarm_make(alarm) == 0);
	need(lane_alarm_give(b, alarm) == 0);
	need(lane_drain(a) == 0 && lane_alarm_works(b));
	sim_same_memory(alarm->word, a->peer_alarm, 4096);
}

void sim_channel_end(struct lane_channel *a, struct lane_channel *b)
{
	lane_channel_deinit(a);
	lane_channel_deinit(b);
}
