// SPDX-License-Identifier: LGPL-2.1-or-later
#include "link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child.h"
#include "storm.h"

/* Bytes that are compared of what is not read in full. */
#define PASS_CHECKED 4096

/* ---- what transports call ---- */

bool link_is_direct(const struct link *l)
{
	return !l->address[0];
}

int link_prepare_pair(struct link *l)
{
	if (!link_is_direct(l))
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, l->fds) < 0)
		return -errno;
	l->n_fds = 2;
	return 0;
}

void link_ready(struct link *l)
{
	if (write(l->ready, "r", 1) != 1)
		_exit(1);
}

int link_error(struct link *l, int error, const char *format, ...)
{
	va_list args;

	if (l->shared->error[0])
		return error;
	va_start(args, format);
	vsnprintf(l->shared->error, sizeof(l->shared->error), format, args);
	va_end(args);
	return error;
}

int link_check(struct link *l, struct payload *p, const void *data, size_t size, size_t expected)
{
	bool part = l->shared->job.unread && p == link_server_in(l) && size == expected;
	char error[160];
	int r;

	if (part && size > PASS_CHECKED)
		size = expected = PASS_CHECKED;
	r = payload_check(p, data, size, expected, error, sizeof(error));

	if (r < 0)
		link_error(l, r, "%s: %s", p == link_server_in(l) ? "request" : "reply", error);
	return r;
}

struct payload *link_server_in(struct link *l)
{
	return l->threads ? &l->server_in : &l->in;
}

struct payload *link_server_out(struct link *l)
{
	return l->threads ? &l->server_out : &l->out;
}

static int fill_memfd(int fd, const void *data, size_t size)
{
	const unsigned char *at = data;
	ssize_t n;

	for (; size; at += n, size -= (size_t)n) {
		n = write(fd, at, size);
		if (n < 0)
			return -errno;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return -errno;
	return 0;
}

static int new_memfd(struct link *l, const void *data, size_t size)
{
	int fd = memfd_create("kdbus-bench", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return link_error(l, -errno, "cannot make a memfd: %m");
	r = fill_memfd(fd, data, size);
	if (r < 0) {
		close(fd);
		return link_error(l, r, "cannot fill a memfd: %s", strerror(-r));
	}
	return fd;
}

bool link_has_memfd(const struct job *job)
{
	return job->kind == JOB_MEMFD || job->kind == JOB_PASS;
}

int link_memfd(struct link *l, const struct job *job)
{
	if (job->kind == JOB_MEMFD)
		return new_memfd(l, payload_next(&l->out), job->request);
	if (l->pass_size == job->request)
		return l->pass_fd;
	if (l->pass_size)
		close(l->pass_fd);
	l->pass_size = 0;
	l->pass_fd = new_memfd(l, payload_fixed(&l->out), job->request);
	if (l->pass_fd >= 0)
		l->pass_size = job->request;
	return l->pass_fd;
}

void link_memfd_sent(const struct job *job, int fd)
{
	if (job->kind == JOB_MEMFD)
		close(fd);
}

/* What is passed again and again is not read in full: its size must not matter. */
int link_check_mapped(struct link *l, const struct job *job, const void *data, size_t size)
{
	size_t part = job->request < PASS_CHECKED ? job->request : PASS_CHECKED;
	struct payload *p = link_server_in(l);
	uint64_t seq = p->seq;
	int r;

	if (job->kind != JOB_PASS || size != job->request)
		return link_check(l, p, data, size, job->request);
	if (job->unread)
		return 0;
	p->seq = 0;
	r = link_check(l, p, data, part, part);
	p->seq = seq;
	return r;
}

int link_check_memfd(struct link *l, const struct job *job, int fd)
{
	int flags = MAP_PRIVATE | (job->kind == JOB_PASS ? 0 : MAP_POPULATE), r;
	off_t size = lseek(fd, 0, SEEK_END);
	void *map;

	if (size <= 0)
		return link_error(l, -EBADMSG, "a received memfd is empty");
	map = mmap(NULL, (size_t)size, PROT_READ, flags, fd, 0);
	if (map == MAP_FAILED)
		return link_error(l, -errno, "cannot map a received memfd: %m");
	r = link_check_mapped(l, job, map, (size_t)size);
	munmap(map, (size_t)size);
	return r;
}

/* ---- the client's process ---- */

static struct usage server_usage(struct link *l)
{
	return l->threads ? usage_of_thread(l->thread_clock, l->thread_id) : usage_of(l->server);
}

static void read_usage(struct link *l, struct usage *u)
{
	u[ROLE_SERVER] = server_usage(l);
	u[ROLE_DAEMON] = usage_of(l->relayed ? l->relay : l->daemon);
	u[ROLE_CLIENT] = usage_self(l->threads);
}

static int run_calls(struct link *l, const struct order *o, uint64_t count, uint64_t ns)
{
	struct result *res = &l->shared->result;
	uint64_t start = usage_now_ns(), last = start, now;
	int r;

	do {
		r = l->transport->call(l, &o->job);
		if (r < 0)
			return r;
		now = usage_now_ns();
		hist_add(&res->hist, now - last);
		last = now;
		res->ops++;
	} while (count ? res->ops < count : last - start < ns);
	res->ns = last - start;
	return 0;
}

static int run_burst(struct link *l, const struct order *o, uint64_t count)
{
	struct result *res = &l->shared->result;
	uint64_t start = usage_now_ns();
	int r = (o->kind == ORDER_FLOW ? l->transport->flow : l->transport->burst)(
		l, &o->job, count, o->window);

	res->ns = usage_now_ns() - start;
	res->ops = count;
	return r;
}

static void clear_result(struct result *res)
{
	res->ops = res->ns = 0;
	hist_clear(&res->hist);
}

static int warm_up(struct link *l, const struct order *o)
{
	int r = 0;

	clear_result(&l->shared->result);
	if (o->window > 1)
		r = run_burst(l, o, o->count / 10 + 1);
	else if (o->warm_ns)
		r = run_calls(l, o, 0, o->warm_ns);
	clear_result(&l->shared->result);
	return r;
}

static int obey(struct link *l)
{
	struct usage before[N_ROLES], after[N_ROLES];
	const struct order *o = &l->shared->order;
	int i, r;

	l->shared->job = o->job;
	if (o->kind != ORDER_PLAIN && o->kind != ORDER_FLOW)
		return storm_obey(l, o);
	r = warm_up(l, o);
	if (r < 0)
		return r;
	read_usage(l, before);
	if (o->window > 1)
		r = run_burst(l, o, o->count);
	else
		r = run_calls(l, o, o->count, o->ns);
	read_usage(l, after);
	for (i = 0; i < N_ROLES; i++)
		l->shared->result.usage[i] = usage_minus(after[i], before[i]);
	return r;
}

static void *thread_main(void *arg)
{
	struct link *l = arg;

	l->thread_id = (pid_t)syscall(SYS_gettid);
	l->transport->serve(l);
	/* serve() only comes back with an error. */
	_exit(1);
	return NULL;
}

static void start_thread(struct link *l, const struct options *o)
{
	cpu_set_t set;
	char c;

	if (payload_init(&l->server_in, 0) < 0 || payload_init(&l->server_out, 0) < 0 ||
	    pthread_create(&l->thread, NULL, thread_main, l) != 0)
		_exit(1);
	if (o->n_cpus) {
		CPU_ZERO(&set);
		CPU_SET(o->cpus[ROLE_SERVER % o->n_cpus], &set);
		pthread_setaffinity_np(l->thread, sizeof(set), &set);
	}
	pthread_getcpuclockid(l->thread, &l->thread_clock);
	if (read(l->life, &c, 1) != 1)
		_exit(1);
}

static void client_main(struct link *l, int control, const struct options *o)
{
	char c = 'r';

	if (o->n_cpus)
		child_pin(getpid(), o->cpus[0]);
	if (payload_init(&l->out, o->corrupt) < 0 || payload_init(&l->in, 0) < 0)
		_exit(1);
	if (l->threads)
		start_thread(l, o);
	if (l->transport->open(l) < 0)
		_exit(1);
	do {
		if (write(control, &c, 1) != 1)
			_exit(1);
		if (read(control, &c, 1) != 1)
			_exit(0);
	} while (obey(l) == 0);
	_exit(1);
}

/* ---- the main process ---- */

static int say(struct link *l, int error, const char *what)
{
	if (error != -EINTR)
		fprintf(stderr, "kdbus-bench: %s: %s\n", l->subject,
			l->shared->error[0] ? l->shared->error : what);
	return error;
}

static void server_main(struct link *l, int cpu)
{
	if (cpu >= 0)
		child_pin(getpid(), cpu);
	if (payload_init(&l->in, 0) < 0 || payload_init(&l->out, 0) < 0)
		_exit(1);
	l->transport->serve(l);
	_exit(1);
}

static int cpu_of(const struct options *o, enum role role)
{
	return o->n_cpus ? o->cpus[role % o->n_cpus] : -1;
}

static int start_server(struct link *l, const struct options *o)
{
	int ready[2], r;
	char c;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return -errno;
	l->life = ready[0];
	l->ready = ready[1];
	if (l->threads)
		return 0;
	l->server = child_fork();
	if (l->server == 0)
		server_main(l, cpu_of(o, ROLE_SERVER));
	close(l->ready);
	l->ready = -1;
	if (l->server < 0)
		return (int)l->server;
	r = child_wait_readable(l->life, -1);
	if (r == 0 && read(l->life, &c, 1) != 1)
		r = -EPIPE;
	return r < 0 ? say(l, r, "the server did not start") : 0;
}

static int start_relay(struct link *l, const struct options *o)
{
	if (!l->relayed)
		return 0;
	l->relay = child_fork();
	if (l->relay < 0)
		return (int)l->relay;
	if (l->relay > 0)
		return 0;
	if (o->n_cpus)
		child_pin(getpid(), cpu_of(o, ROLE_DAEMON));
	l->transport->relay(l);
	_exit(1);
}

static int start_client(struct link *l, const struct options *o)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	l->control = pair[0];
	l->client = child_fork();
	if (l->client == 0) {
		close(pair[0]);
		client_main(l, pair[1], o);
	}
	close(pair[1]);
	if (l->client < 0)
		return (int)l->client;
	return link_wait(l);
}

static struct link *new_link(const struct link_plan *plan)
{
	static unsigned int serial;
	struct link *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->shared = mmap(NULL, sizeof(*l->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (l->shared == MAP_FAILED) {
		free(l);
		return NULL;
	}
	l->transport = plan->transport;
	l->address = plan->address;
	l->daemon = plan->daemon;
	l->threads = plan->threads;
	l->relayed = plan->relayed;
	l->receivers = plan->receivers;
	l->matching = plan->matching;
	l->life = l->control = l->ready = -1;
	snprintf(l->service, sizeof(l->service), "org.kdbus.bench.s%u", ++serial);
	snprintf(l->subject, sizeof(l->subject), "%s", plan->subject);
	return l;
}

int link_start(const struct link_plan *plan, const struct options *options, struct link **ret)
{
	struct link *l = new_link(plan);
	int i, r;

	if (!l)
		return -ENOMEM;
	r = l->transport->prepare ? l->transport->prepare(l) : 0;
	if (r < 0)
		say(l, r, strerror(-r));
	if (r == 0)
		r = start_server(l, options);
	if (r == 0)
		r = start_relay(l, options);
	if (r == 0)
		r = start_client(l, options);
	for (i = 0; i < l->n_fds; i++)
		close(l->fds[i]);
	if (l->ready >= 0)
		close(l->ready);
	l->ready = -1;
	if (r < 0) {
		link_stop(l);
		return r;
	}
	*ret = l;
	return 0;
}

void link_stop(struct link *l)
{
	if (!l)
		return;
	child_kill(l->client);
	child_kill(l->relay);
	child_kill(l->server);
	if (l->control >= 0)
		close(l->control);
	if (l->life >= 0)
		close(l->life);
	munmap(l->shared, sizeof(*l->shared));
	free(l);
}

int link_order(struct link *l, const struct order *order)
{
	l->shared->order = *order;
	if (write(l->control, "g", 1) != 1)
		return say(l, -EPIPE, "the client has ended");
	return 0;
}

int link_wait(struct link *l)
{
	int r = child_wait_readable(l->control, l->threads ? -1 : l->life);
	char c;

	if (r < 0)
		return r;
	if (recv(l->control, &c, 1, MSG_DONTWAIT) == 1)
		return 0;
	return say(l, -EPIPE, "a process of the test has died");
}

int link_run(struct link *l, const struct order *order)
{
	int r = link_order(l, order);

	return r < 0 ? r : link_wait(l);
}
