// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a round trip costs on lanes, next to a pipe and a futex in the same run: 4 KiB there, 64
 * bytes back, each record filled, checked and copied out. A measuring program, not a test.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lane/look.h"
#include "lane/wait.h"

#define REQUEST 4096u
#define REPLY 64u

static const struct lane_ops *const ops = &lane_linux_ops;

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	need(sched_setaffinity(0, sizeof(set), &set) == 0, "sched_setaffinity");
}

/* One subject: serve() in a child, call() timed in this process. */
struct subject {
	const char *name;
	void *(*setup)(void);
	void (*serve)(void *world, unsigned int rounds);
	void (*call)(void *world, unsigned int rounds);
};

static double measure(const struct subject *s, int client_cpu, int server_cpu,
		      unsigned int rounds)
{
	void *world = s->setup();
	uint64_t start;
	pid_t pid = fork();
	int status;

	need(pid >= 0, "fork");
	if (pid == 0) {
		pin(server_cpu);
		s->serve(world, rounds + rounds / 10);
		_exit(0);
	}
	pin(client_cpu);
	s->call(world, rounds / 10);
	start = ops->now(ops);
	s->call(world, rounds);
	start = ops->now(ops) - start;
	need(waitpid(pid, &status, 0) == pid && status == 0, "child");
	free(world);
	return (double)start / rounds / 1000;
}

/* Pipe ---------------------------------------------------------------------------------------- */

struct pipes {
	int there[2], back[2];
	char buf[REQUEST];
};

static void *pipe_setup(void)
{
	struct pipes *p = calloc(1, sizeof(*p));

	need(p && pipe(p->there) == 0 && pipe(p->back) == 0, "pipe");
	return p;
}

static void pipe_serve(void *world, unsigned int rounds)
{
	struct pipes *p = world;

	while (rounds--) {
		need(read(p->there[0], p->buf, 1) == 1, "read");
		need(write(p->back[1], p->buf, 1) == 1, "write");
	}
}

static void pipe_call(void *world, unsigned int rounds)
{
	struct pipes *p = world;

	while (rounds--) {
		need(write(p->there[1], p->buf, 1) == 1, "write");
		need(read(p->back[0], p->buf, 1) == 1, "read");
	}
}

/* Futex --------------------------------------------------------------------------------------- */

static void *futex_setup(void)
{
	uint32_t **words = calloc(1, sizeof(*words));

	need(words, "calloc");
	*words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(*words != MAP_FAILED, "mmap");
	return words;
}

static void futex_turn(uint32_t *mine, uint32_t *other, uint32_t seen)
{
	struct lane_word word = { .addr = other, .seen = seen };

	while (__atomic_load_n(other, __ATOMIC_ACQUIRE) == seen)
		ops->sleep(ops, &word, 1, 1000000000);
	__atomic_add_fetch(mine, 1, __ATOMIC_SEQ_CST);
	ops->wake(ops, mine);
}

static void futex_serve(void *world, unsigned int rounds)
{
	uint32_t *words = *(uint32_t **)world, seen = 0;

	for (; seen < rounds; seen++)
		futex_turn(&words[32], &words[0], seen);
}

static void futex_call(void *world, unsigned int rounds)
{
	uint32_t *words = *(uint32_t **)world, seen = words[32];
	struct lane_word word;

	while (rounds--) {
		__atomic_add_fetch(&words[0], 1, __ATOMIC_SEQ_CST);
		ops->wake(ops, &words[0]);
		word = (struct lane_word){ .addr = &words[32], .seen = seen };
		while (__atomic_load_n(&words[32], __ATOMIC_ACQUIRE) == seen)
			ops->sleep(ops, &word, 1, 1000000000);
		seen++;
	}
}

/* Lanes --------------------------------------------------------------------------------------- */

struct lanes {
	int socks[2];
	struct lane_channel ch;
	struct lane_clock clock;
	struct lane_spin spin;
	struct lane_look look;
	struct lane_source src;
	uint32_t limit;
	struct lane_env env;
	char body[REQUEST];
	bool started;
};

static uint32_t spin_ns = LANE_SPIN_MAX_NS;

static void *lanes_setup(void)
{
	struct lanes *l = calloc(1, sizeof(*l));

	need(l && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, l->socks) == 0, "socketpair");
	return l;
}

/* After the fork: mappings of lanes do not survive one. */
static void lanes_start(struct lanes *l, int end)
{
	if (l->started)
		return;
	l->started = true;
	close(l->socks[!end]);
	lane_channel_init(&l->ch, ops, l->socks[end], 0);
	need(lane_channel_pass(&l->ch, LANE_RING_DEFAULT) == 0, "lane_channel_pass");
	while (!l->ch.peer)
		lane_channel_recv(&l->ch);
	lane_spin_init(&l->spin, spin_ns, lane_linux_cpus());
	need(lane_look_init(&l->look, ops, epoll_create1(0), eventfd(0, EFD_NONBLOCK), NULL,
			    &l->clock) == 0, "lane_look_init");
	l->src.ch = &l->ch;
	need(lane_look_add(&l->look, &l->src) == 0, "lane_look_add");
}

static void lanes_send(struct lanes *l, uint32_t length, char fill)
{
	struct lane_put put = { .type = LANE_REC_MSG, .length = length };
	void *body;

	need(lane_put(&l->ch, &put, &body) == 0, "lane_put");
	memset(body, fill, length);
	lane_publish(&l->ch, lane_clock_stamp(&l->clock, ops), 0);
	need(lane_ring(&l->ch) == 0, "lane_ring");
}

static int lanes_ready(void *arg)
{
	struct lanes *l = arg;

	return lane_news(&l->ch);
}

static void lanes_wait(struct lanes *l)
{
	struct lane_channel *chs[1] = { &l->ch };

	while (lane_wait(&l->spin, ops, chs, 1, lanes_ready, l, UINT64_MAX) <= 0)
		;
}

/* As a synchronous caller does: its reply lane only. */
static void lanes_take(struct lanes *l, uint32_t length)
{
	uint32_t pos;

	lanes_wait(l);
	need(lane_snapshot(&l->ch, &l->limit) == 0, "lane_snapshot");
	pos = l->ch.read;
	need(lane_scan(&l->ch, l->limit, &pos, &l->env) == 0, "lane_scan");
	need(l->env.length == length, "length");
	need(lane_pluck(&l->ch, pos, &l->env, l->body) == 0, "lane_pluck");
	lane_consume(&l->ch);
}

/* As a server does that waits in the library: a look over all its lanes. */
static void lanes_next(struct lanes *l, uint32_t length)
{
	struct lane_event ev;

	while (lane_look_next(&l->look, LANE_LOOK_POLL, &ev) < 0)
		lanes_wait(l);
	need(ev.type == LANE_EV_RECORD && ev.rec.length == length, "record");
	need(lane_look_take(&l->look, &ev, l->body) == 0, "lane_look_take");
}

static void lanes_serve(void *world, unsigned int rounds)
{
	struct lanes *l = world;

	lanes_start(l, 1);
	while (rounds--) {
		lanes_next(l, REQUEST);
		lanes_send(l, REPLY, l->body[REQUEST - 1]);
	}
}

static void lanes_call(void *world, unsigned int rounds)
{
	struct lanes *l = world;

	lanes_start(l, 0);
	while (rounds--) {
		lanes_send(l, REQUEST, (char)rounds);
		lanes_take(l, REPLY);
		need(l->body[REPLY - 1] == (char)rounds, "reply");
	}
}

static const struct subject subjects[] = {
	{ "pipe", pipe_setup, pipe_serve, pipe_call },
	{ "futex", futex_setup, futex_serve, futex_call },
	{ "lane", lanes_setup, lanes_serve, lanes_call },
};

struct cost {
	double us; /* a round trip */
	double cpu; /* CPU time of both ends for it, in us */
};

static double cpu_us(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static struct cost run_apart(const struct subject *s, int client, int server,
			     unsigned int rounds)
{
	struct cost us = { .us = 0 };
	int pipefd[2], status;
	pid_t pid;

	need(pipe(pipefd) == 0, "pipe");
	pid = fork();
	need(pid >= 0, "fork");
	if (pid == 0) {
		us.us = measure(s, client, server, rounds);
		us.cpu = (cpu_us(RUSAGE_SELF) + cpu_us(RUSAGE_CHILDREN)) / (rounds * 1.1);
		need(write(pipefd[1], &us, sizeof(us)) == sizeof(us), "write");
		_exit(0);
	}
	need(waitpid(pid, &status, 0) == pid && status == 0, "child");
	need(read(pipefd[0], &us, sizeof(us)) == sizeof(us), "read");
	close(pipefd[0]);
	close(pipefd[1]);
	return us;
}

static void row(const char *title, int client, int server, unsigned int rounds)
{
	struct cost c[3];
	unsigned int i;

	for (i = 0; i < 3; i++)
		c[i] = run_apart(&subjects[i], client, server, rounds);
	printf("%-10s pipe %.2f, futex %.2f, lane %.2f us: lane/pipe 1/%.1f, lane/futex %.2f\n"
	       "%-10s of CPU %.2f, %.2f, %.2f us: lane/futex %.2f\n",
	       title, c[0].us, c[1].us, c[2].us, c[0].us / c[2].us, c[2].us / c[1].us, "",
	       c[0].cpu, c[1].cpu, c[2].cpu, c[2].cpu / c[1].cpu);
	fflush(stdout);
}

static void help(void)
{
	puts("Usage: lane-bench [ROUNDS]\n"
	     "Round trips of 4 KiB and 64 bytes over lanes, next to a pipe and a futex.\n"
	     "KDBUS_SPIN_US: longest spin in microseconds.");
}

int main(int argc, char **argv)
{
	unsigned int rounds = 20000;
	const char *spin = getenv("KDBUS_SPIN_US");

	if (argc > 1 && !strcmp(argv[1], "--help")) {
		help();
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "--version")) {
		puts("lane-bench 0.1.0");
		return 0;
	}
	if (argc > 1)
		rounds = (unsigned int)strtoul(argv[1], NULL, 10);
	if (rounds < 10) {
		fputs("lane-bench: ROUNDS is a number from 10 on, such as 20000\n", stderr);
		return 2;
	}
	if (spin)
		spin_ns = (uint32_t)strtoul(spin, NULL, 10) * 1000;
	row("one CPU", 0, 0, rounds);
	if (lane_linux_cpus() > 1)
		row("two CPUs", 0, 1, rounds);
	row("not pinned", -1, -1, rounds);
	return 0;
}
