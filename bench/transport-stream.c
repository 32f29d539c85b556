// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A UNIX stream socket and nothing else: each message is a length and its bytes. With a relay it
 * is two sockets and a process that copies between them, as a bus without any rules would.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "transport.h"

#define HEADER	  8U
#define BUFFER	  (PAYLOAD_MAX + 65536U)
#define RELAY_BUF (256U << 10)
#define QUIET	  (1ULL << 63) /* in a header: no reply is wanted */

/* What has been read and not yet used; a descriptor that came along. */
struct reader {
	int fd;
	int passed;
	size_t begin;
	size_t end;
	unsigned char *data;
};

static int reader_init(struct reader *r, int fd)
{
	*r = (struct reader){ .fd = fd, .passed = -1, .data = malloc(BUFFER) };
	return r->data ? 0 : -ENOMEM;
}

static void take_fd(struct reader *r, struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(&r->passed, CMSG_DATA(c), sizeof(int));
}

static int fill(struct reader *r, int flags)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov;
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	if (r->begin == r->end)
		r->begin = r->end = 0;
	if (BUFFER - r->end < 65536) {
		memmove(r->data, r->data + r->begin, r->end - r->begin);
		r->end -= r->begin;
		r->begin = 0;
	}
	iov = (struct iovec){ r->data + r->end, BUFFER - r->end };
	n = recvmsg(r->fd, &msg, flags | MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return n == 0 ? -EPIPE : -errno;
	take_fd(r, &msg);
	r->end += (size_t)n;
	return 0;
}

/* The next whole message, if it is here already. */
static bool have_message(const struct reader *r, const unsigned char **ret, size_t *ret_size)
{
	uint64_t size;

	if (r->end - r->begin < HEADER)
		return false;
	memcpy(&size, r->data + r->begin, HEADER);
	size &= ~QUIET;
	if (r->end - r->begin - HEADER < size)
		return false;
	*ret = r->data + r->begin + HEADER;
	*ret_size = size;
	return true;
}

static int next_message(struct link *l, struct reader *r, bool sleep_in_poll,
			const unsigned char **ret, size_t *ret_size)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };
	int e;

	while (!have_message(r, ret, ret_size)) {
		if (sleep_in_poll)
			poll(&p, 1, -1);
		e = fill(r, 0);
		if (e < 0 && e != -EINTR) {
			link_error(l, e, "receiving: %s", strerror(-e));
			return e;
		}
	}
	return 0;
}

static bool wants_reply(const struct reader *r)
{
	uint64_t size;

	memcpy(&size, r->data + r->begin, HEADER);
	return !(size & QUIET);
}

static void use_message(struct reader *r, size_t size)
{
	r->begin += HEADER + size;
}

static size_t compose(struct iovec *iov, uint64_t *header, const void *data, uint64_t size)
{
	*header = size;
	size &= ~QUIET;
	iov[0] = (struct iovec){ header, HEADER };
	iov[1] = (struct iovec){ (void *)data, size };
	return HEADER + size;
}

static void attach_fd(struct msghdr *msg, char *control, size_t control_size, int fd)
{
	struct cmsghdr *c;

	msg->msg_control = control;
	msg->msg_controllen = control_size;
	c = CMSG_FIRSTHDR(msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
}

/* @size may bear QUIET. */
static int send_message(struct link *l, int fd, const void *data, uint64_t size, int passed)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov[2];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	uint64_t header;
	size_t left = compose(iov, &header, data, size);
	ssize_t n;

	if (passed >= 0)
		attach_fd(&msg, control, sizeof(control), passed);
	for (;;) {
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return link_error(l, -errno, "sending: %m");
		left -= (size_t)n;
		if (left == 0)
			return 0;
		/* The header has gone: it is far smaller than a buffer. */
		msg.msg_control = NULL;
		msg.msg_controllen = 0;
		iov[0].iov_len = 0;
		iov[1].iov_base = (unsigned char *)data + (size & ~QUIET) - left;
		iov[1].iov_len = left;
	}
}

/* ---- server ---- */

static int check_request(struct link *l, struct reader *r, const unsigned char *data, size_t size)
{
	const struct job *job = &l->shared->job;
	int e;

	if (!link_has_memfd(job))
		return link_check(l, link_server_in(l), data, size, job->request);
	if (r->passed < 0)
		return link_error(l, -EBADMSG, "a request came without its memfd");
	e = link_check_memfd(l, job, r->passed);
	close(r->passed);
	r->passed = -1;
	return e;
}

static int serve_stream(struct link *l)
{
	struct payload *out = link_server_out(l);
	const unsigned char *data;
	struct reader r;
	bool answer;
	size_t size;
	int e = reader_init(&r, l->fds[1]);

	if (e < 0)
		return e;
	link_ready(l);
	while (e == 0) {
		e = next_message(l, &r, l->shared->job.poll, &data, &size);
		if (e == 0)
			e = check_request(l, &r, data, size);
		if (e < 0)
			break;
		answer = wants_reply(&r);
		use_message(&r, size);
		if (answer)
			e = send_message(l, l->fds[1], payload_next(out), l->shared->job.reply, -1);
	}
	free(r.data);
	return e;
}

/* ---- client ---- */

static int open_stream(struct link *l)
{
	struct reader *r = malloc(sizeof(*r));

	if (!r || reader_init(r, l->fds[0]) < 0) {
		free(r);
		return link_error(l, -ENOMEM, "out of memory");
	}
	l->state = r;
	return 0;
}

static int take_reply(struct link *l, const struct job *job)
{
	struct reader *r = l->state;
	const unsigned char *data;
	size_t size;
	int e = next_message(l, r, job->poll, &data, &size);

	if (e == 0)
		e = link_check(l, &l->in, data, size, job->reply);
	if (e == 0)
		use_message(r, size);
	return e;
}

static int send_memfd(struct link *l, const struct job *job)
{
	int fd = link_memfd(l, job);
	int e;

	if (fd < 0)
		return fd;
	e = send_message(l, l->fds[0], "", 1, fd);
	link_memfd_sent(job, fd);
	return e;
}

static int call_stream(struct link *l, const struct job *job)
{
	int e;

	if (link_has_memfd(job))
		e = send_memfd(l, job);
	else
		e = send_message(l, l->fds[0], payload_next(&l->out), job->request, -1);
	return e < 0 ? e : take_reply(l, job);
}

static int flow_stream(struct link *l, const struct job *job, uint64_t count, unsigned int window)
{
	uint64_t i;
	bool last;
	int e = 0;

	for (i = 1; e == 0 && i <= count; i++) {
		last = i == count || i % window == 0;
		e = send_message(l, l->fds[0], payload_next(&l->out),
				 job->request | (last ? 0 : QUIET), -1);
		if (e == 0 && last)
			e = take_reply(l, job);
	}
	return e;
}

/* A request that is partly sent. */
struct sending {
	uint64_t header;
	struct iovec iov[2];
	size_t left;
};

static void begin_sending(struct link *l, struct sending *s, size_t size)
{
	s->left = compose(s->iov, &s->header, payload_next(&l->out), size);
}

static int push(struct link *l, struct sending *s)
{
	struct msghdr msg = { .msg_iov = s->iov, .msg_iovlen = 2 };
	ssize_t n = sendmsg(l->fds[0], &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	size_t part;
	int i;

	if (n < 0)
		return errno == EAGAIN ? 0 : link_error(l, -errno, "sending: %m");
	s->left -= (size_t)n;
	for (i = 0; i < 2; i++, n -= (ssize_t)part) {
		part = (size_t)n < s->iov[i].iov_len ? (size_t)n : s->iov[i].iov_len;
		s->iov[i].iov_base = (unsigned char *)s->iov[i].iov_base + part;
		s->iov[i].iov_len -= part;
	}
	return 0;
}

/* All replies that are here; leaves @ret_done at their number. */
static int pull(struct link *l, const struct job *job, uint64_t *done)
{
	struct reader *r = l->state;
	const unsigned char *data;
	size_t size;
	int e = fill(r, MSG_DONTWAIT);

	if (e < 0 && e != -EAGAIN && e != -EINTR)
		return link_error(l, e, "receiving: %s", strerror(-e));
	while (have_message(r, &data, &size)) {
		e = link_check(l, &l->in, data, size, job->reply);
		if (e < 0)
			return e;
		use_message(r, size);
		++*done;
	}
	return 0;
}

static int burst_stream(struct link *l, const struct job *job, uint64_t count, unsigned int window)
{
	struct pollfd p = { .fd = l->fds[0] };
	uint64_t begun = 0, done = 0;
	struct sending s = { .left = 0 };
	int e = 0;

	while (e == 0 && done < count) {
		while (e == 0 && (s.left || (begun < count && begun - done < window))) {
			if (s.left == 0) {
				begin_sending(l, &s, job->request);
				begun++;
			}
			e = push(l, &s);
			if (s.left)
				break;
		}
		p.events = (short)(POLLIN | (s.left ? POLLOUT : 0));
		if (e == 0 && poll(&p, 1, -1) > 0 && p.revents & (POLLIN | POLLHUP | POLLERR))
			e = pull(l, job, &done);
	}
	return e;
}

/* ---- relay ---- */

static int prepare_stream(struct link *l)
{
	int i, size = 1 << 20, pairs = l->relayed ? 2 : 1;

	for (i = 0; i < pairs; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, l->fds + 2 * i) < 0)
			return -errno;
		l->n_fds += 2;
	}
	/* Capped by net.core.wmem_max, which is for the reader's machine to say. */
	for (i = 0; i < l->n_fds; i++)
		setsockopt(l->fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (l->relayed) {
		/* client 0 - relay 2, relay 3 - server 1 */
		int server = l->fds[3];

		l->fds[3] = l->fds[2];
		l->fds[2] = l->fds[1];
		l->fds[1] = server;
	}
	return 0;
}

struct pump {
	int from;
	int to;
	size_t begin;
	size_t end;
	unsigned char *data;
};

static int pump_once(struct pump *p)
{
	ssize_t n;

	if (p->begin == p->end) {
		n = recv(p->from, p->data, RELAY_BUF, MSG_DONTWAIT);
		if (n <= 0)
			return n < 0 && errno == EAGAIN ? 0 : -EPIPE;
		p->begin = 0;
		p->end = (size_t)n;
	}
	n = send(p->to, p->data + p->begin, p->end - p->begin, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN ? 0 : -EPIPE;
	p->begin += (size_t)n;
	return 0;
}

static void pump_wants(const struct pump *p, struct pollfd *from, struct pollfd *to)
{
	if (p->begin == p->end)
		from->events |= POLLIN;
	else
		to->events |= POLLOUT;
}

static int relay_stream(struct link *l)
{
	struct pump there = { l->fds[2], l->fds[3], 0, 0, malloc(RELAY_BUF) };
	struct pump back = { l->fds[3], l->fds[2], 0, 0, malloc(RELAY_BUF) };
	struct pollfd p[2];
	int e = there.data && back.data ? 0 : -ENOMEM;

	while (e == 0) {
		p[0] = (struct pollfd){ .fd = l->fds[2] };
		p[1] = (struct pollfd){ .fd = l->fds[3] };
		pump_wants(&there, &p[0], &p[1]);
		pump_wants(&back, &p[1], &p[0]);
		poll(p, 2, -1);
		e = p[0].revents & POLLIN || p[1].revents & POLLOUT ? pump_once(&there) : 0;
		if (e == 0 && (p[1].revents & POLLIN || p[0].revents & POLLOUT))
			e = pump_once(&back);
		if (e == 0 && (p[0].revents | p[1].revents) & (POLLHUP | POLLERR))
			e = -EPIPE;
	}
	free(there.data);
	free(back.data);
	return e;
}

const struct transport transport_stream = {
	.name = "socket",
	.prepare = prepare_stream,
	.serve = serve_stream,
	.relay = relay_stream,
	.open = open_stream,
	.call = call_stream,
	.burst = burst_stream,
	.flow = flow_stream,
};
