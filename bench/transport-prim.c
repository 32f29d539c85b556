// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The floor under all buses: one 32-bit number goes over and comes back. It counts up and is
 * checked at both ends; the job's sizes have no meaning here.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "transport.h"

static int wrong(struct link *l, const char *side, uint64_t got, uint64_t expected)
{
	return link_error(l, -EBADMSG, "%s is %llu, not %llu", side, (unsigned long long)got,
			  (unsigned long long)expected);
}

/* The number that is due; never 0, which an eventfd cannot carry. */
static uint32_t next(struct payload *p)
{
	uint32_t n = (uint32_t)p->seq++;

	if (n == 0)
		n = (uint32_t)p->seq++;
	return n;
}

static uint32_t next_out(struct payload *p)
{
	uint64_t seq = p->seq;

	return next(p) ^ (seq == p->corrupt ? 1U << 20 : 0);
}

/* ---- descriptors: fds[0] client reads, [1] server writes, [2] server reads, [3] client writes */

static int prepare_pipe(struct link *l)
{
	if (pipe2(l->fds, O_CLOEXEC) < 0)
		return -errno;
	l->n_fds = 2;
	if (pipe2(l->fds + 2, O_CLOEXEC) < 0)
		return -errno;
	l->n_fds = 4;
	return 0;
}

static int prepare_eventfd(struct link *l)
{
	int i;

	for (i = 0; i < 4; i += 2) {
		l->fds[i] = eventfd(0, EFD_CLOEXEC);
		if (l->fds[i] < 0)
			return -errno;
		l->fds[i + 1] = dup(l->fds[i]);
		if (l->fds[i + 1] < 0) {
			close(l->fds[i]);
			return -errno;
		}
		l->n_fds += 2;
	}
	return 0;
}

static int prepare_unix(struct link *l)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	l->fds[0] = pair[0];
	l->fds[1] = pair[1];
	l->fds[2] = dup(pair[1]);
	l->fds[3] = dup(pair[0]);
	l->n_fds = 4;
	return l->fds[2] < 0 || l->fds[3] < 0 ? -EMFILE : 0;
}

static int put(struct link *l, int fd, uint64_t n)
{
	return write(fd, &n, sizeof(n)) == sizeof(n) ? 0 : link_error(l, -EIO, "write: %m");
}

static int take(struct link *l, int fd, uint64_t *ret)
{
	return read(fd, ret, sizeof(*ret)) == sizeof(*ret) ? 0 : link_error(l, -EIO, "read: %m");
}

static int serve_fds(struct link *l)
{
	struct payload *in = link_server_in(l), *out = link_server_out(l);
	uint32_t expected;
	uint64_t n;
	int r = 0;

	link_ready(l);
	while (r == 0) {
		r = take(l, l->fds[2], &n);
		expected = next(in);
		if (r == 0 && n != expected)
			r = wrong(l, "request", n, expected);
		if (r == 0)
			r = put(l, l->fds[1], next_out(out));
	}
	return r;
}

static int call_fds(struct link *l, const struct job *job)
{
	uint32_t expected = next(&l->in);
	uint64_t n;
	int r = put(l, l->fds[3], next_out(&l->out));

	if (r == 0)
		r = take(l, l->fds[0], &n);
	if (r == 0 && n != expected)
		r = wrong(l, "reply", n, expected);
	return r;
}

static int open_nothing(struct link *l)
{
	return 0;
}

/* ---- words in shared memory ---- */

static void set_word(volatile uint32_t *word, uint32_t n, bool wake)
{
	__atomic_store_n(word, n, __ATOMIC_SEQ_CST);
	if (wake)
		syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

/* Wait until the word is not @old any more. */
static uint32_t await_word(volatile uint32_t *word, uint32_t old, bool sleep)
{
	uint32_t n;

	while ((n = __atomic_load_n(word, __ATOMIC_ACQUIRE)) == old) {
		if (sleep)
			syscall(SYS_futex, word, FUTEX_WAIT, old, NULL, NULL, 0);
		else
			relax();
	}
	return n;
}

static int serve_words(struct link *l, bool sleep)
{
	struct payload *in = link_server_in(l), *out = link_server_out(l);
	uint32_t expected, n = 0;

	link_ready(l);
	for (;;) {
		n = await_word(l->shared->word[0], n, sleep);
		expected = next(in);
		if (n != expected)
			return wrong(l, "request", n, expected);
		set_word(l->shared->word[1], next_out(out), sleep);
	}
}

static int call_words(struct link *l, bool sleep)
{
	uint32_t expected = next(&l->in), old = *l->shared->word[1], n;

	set_word(l->shared->word[0], next_out(&l->out), sleep);
	n = await_word(l->shared->word[1], old, sleep);
	return n == expected ? 0 : wrong(l, "reply", n, expected);
}

static int serve_futex(struct link *l)
{
	return serve_words(l, true);
}

static int call_futex(struct link *l, const struct job *job)
{
	return call_words(l, true);
}

static int serve_spin(struct link *l)
{
	return serve_words(l, false);
}

static int call_spin(struct link *l, const struct job *job)
{
	return call_words(l, false);
}

const struct transport transport_pipe = {
	.name = "pipe",
	.prepare = prepare_pipe,
	.serve = serve_fds,
	.open = open_nothing,
	.call = call_fds,
};

const struct transport transport_eventfd = {
	.name = "eventfd",
	.prepare = prepare_eventfd,
	.serve = serve_fds,
	.open = open_nothing,
	.call = call_fds,
};

const struct transport transport_unix = {
	.name = "unix socket",
	.prepare = prepare_unix,
	.serve = serve_fds,
	.open = open_nothing,
	.call = call_fds,
};

const struct transport transport_futex = {
	.name = "futex",
	.serve = serve_futex,
	.open = open_nothing,
	.call = call_futex,
};

const struct transport transport_spin = {
	.name = "spin",
	.serve = serve_spin,
	.open = open_nothing,
	.call = call_spin,
};
