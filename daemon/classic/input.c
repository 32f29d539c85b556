// SPDX-License-Identifier: LGPL-2.1-or-later
/* Receiving. Rules: input.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "daemon/fds.h"
#include "dbus/body.h"
#include "input.h"

/* What one recvmsg() brought, and what is left of it */
struct take {
	struct cpeer *peer;
	int fds[2 * INPUT_FDS];
	unsigned int n_fds;
	unsigned int first_fd;
	u64 fds_until; /* how long the first of them may wait; 0: it has just come */
	size_t out_bytes; /* what waited for it, when that was looked at last */
	bool truncated;
};

static size_t max_size(const struct cpeer *c)
{
	return (size_t)classic_limits(c->classic)->max_message_size;
}

/* Whatever the configuration says: more could be received in pieces, but not be sent on. */
static unsigned int max_fds(const struct cpeer *c)
{
	long max = classic_limits(c->classic)->max_message_unix_fds;

	return max < INPUT_FDS ? (unsigned int)max : INPUT_FDS;
}

static struct reaper *reaper_of(const struct cpeer *c)
{
	return c->classic->daemon->reaper;
}

/* ---- descriptors ---- */

static void collect_fds(struct take *t, struct msghdr *msg)
{
	struct cmsghdr *cmsg;
	size_t n;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(t->fds + t->n_fds, CMSG_DATA(cmsg), n * sizeof(int));
		for (; n; n--, t->n_fds++)
			reaper_note_same(reaper_of(t->peer), t->fds[t->n_fds], t->peer->fd);
	}
	t->truncated = msg->msg_flags & MSG_CTRUNC;
}

static void close_fds(struct take *t)
{
	for (; t->first_fd < t->n_fds; t->first_fd++)
		reaper_close(reaper_of(t->peer), t->fds[t->first_fd]);
}

static int take_fds(struct take *t, struct cmsg *m)
{
	unsigned int n = m->header.n_fds;

	if (!n)
		return 0;
	if (n > t->n_fds - t->first_fd)
		return -EBADMSG;
	m->fds = cfds_new(reaper_of(t->peer), t->fds + t->first_fd, n);
	if (!m->fds)
		return -ENOMEM;
	t->first_fd += n;
	t->fds_until = 0;
	return 0;
}

/* ---- what is begun ---- */

static void free_partial(struct cpeer *c, bool close)
{
	struct partial *p = c->in;
	unsigned int i;

	if (!p)
		return;
	for (i = 0; close && i < p->n_fds; i++)
		reaper_close(reaper_of(c), p->fds[i]);
	timeout_clear(c->classic, &p->timeout);
	account_drop(c->account, p->charged);
	cbuf_unref(p->buf);
	free(p);
	c->in = NULL;
}

/* @n bytes more have come of what is begun. On failure the peer is doomed. */
static bool charge(struct partial *p, size_t n)
{
	if (account_hold(p->peer->account, n) < 0) {
		cpeer_doom(p->peer, "its user has begun more messages than there is room for");
		return false;
	}
	p->charged += n;
	return true;
}

void input_free(struct cpeer *c)
{
	free_partial(c, true);
}

static void fds_expired(struct timeout *t)
{
	struct cpeer *c = container_of(t, struct partial, timeout)->peer;

	cpeer_doom(c, "descriptors without a message waited too long (pending_fd_timeout=%ldms)",
		   classic_limits(c->classic)->pending_fd_timeout);
}

/* What is left over is kept: @buf with @have bytes of a message, and descriptors. */
static void keep(struct take *t, struct cbuf *buf, size_t have)
{
	struct cpeer *c = t->peer;
	unsigned int n = t->n_fds - t->first_fd;
	struct partial *p = n > INPUT_FDS ? NULL : malloc(sizeof(*p) + n * sizeof(int));

	if (!p) {
		cbuf_unref(buf);
		cpeer_doom(c, "no room for what it sends");
		return;
	}
	*p = (struct partial){ .buf = buf, .have = have, .peer = c, .n_fds = n };
	p->sized = buf && have >= DBUSP_FIXED_LEN;
	p->timeout.expired = fds_expired;
	memcpy(p->fds, t->fds + t->first_fd, n * sizeof(int));
	t->first_fd = t->n_fds;
	c->in = p;
	charge(p, have);
	if (n && t->fds_until)
		timeout_set_at(c->classic, &p->timeout, t->fds_until);
	else if (n)
		timeout_set(c->classic, &p->timeout,
			    (u64)classic_limits(c->classic)->pending_fd_timeout);
}

/* A buffer for the message that begins with these bytes, of the length it says it has. */
static struct cbuf *buffer_for(const unsigned char *data, size_t have, size_t total)
{
	struct cbuf *buf = cbuf_new(total ? total : DBUSP_FIXED_LEN);

	if (buf)
		memcpy(buf->data, data, have);
	return buf;
}

/* ---- messages ---- */

static void broke(struct cpeer *c, enum dbusp_why why)
{
	cpeer_doom(c, "it sent a message that is not valid: %s", dbusp_why_str(why));
}

/* The length of the message that begins here; 0: not known yet, or the peer is doomed. */
static size_t total_of(struct cpeer *c, const unsigned char *data, size_t size,
		       struct dbusp_frame *ret_frame)
{
	enum dbusp_why why = DBUSP_WHY_NONE;
	int r = dbusp_frame_parse(ret_frame, data, size, max_size(c), &why);

	if (r == 0)
		return ret_frame->total_len;
	if (r != -EAGAIN)
		broke(c, why);
	return 0;
}

/* Where its header is, if it sent the same one before: that of a call and of a reply may differ. */
static struct dbusp_known *known_of(struct cpeer *c, const struct dbusp_frame *frame)
{
	return &c->classic->headers[(c->conn.id + frame->fields_len) % CLASSIC_HEADERS];
}

static void act(struct take *t, const unsigned char *data, const struct dbusp_frame *frame,
		struct cbuf *buf)
{
	struct cmsg *m = &t->peer->classic->msg;
	struct cpeer *c = t->peer;
	enum dbusp_why why = DBUSP_WHY_NONE;
	int r;

	r = dbusp_header_parse_known(known_of(c, frame), &m->header, frame, data, frame->total_len,
				     &why);
	if (r == 0)
		r = dbusp_body_check(&m->header, data + m->header.frame.header_len, &why);
	if (r < 0) {
		broke(c, why);
		return;
	}
	c->usual = frame->total_len;
	m->from = &c->peer;
	m->raw = data;
	m->body = data + m->header.frame.header_len;
	m->buf = buf;
	m->fds = NULL;
	m->head = NULL;
	m->joined = false;
	m->args_ready = false;
	m->policy_ready = false;
	m->sender = cpeer_name(c);
	if (m->header.n_fds > max_fds(c))
		cpeer_doom(c, "it sent %u descriptors at once (max_message_unix_fds=%u)",
			   m->header.n_fds, max_fds(c));
	else if (take_fds(t, m) < 0)
		cpeer_doom(c, "a message of it lacks descriptors");
	else
		route_message(c, m);
	m->fds = cfds_unref(m->fds);
}

/*
 * A peer that does not read its answers is not read from; but what was received at once may ask for
 * any number of large ones.
 */
static void bound_answers(struct take *t)
{
	struct cpeer *c = t->peer;
	const char *limit;
	long max;

	if (c->out_bytes < t->out_bytes + INPUT_ANSWERS)
		return;
	output_flush(c);
	t->out_bytes = c->out_bytes;
	limit = output_limit(c, &max);
	if (limit)
		cpeer_doom(c, "it asks for more than it reads: %zu bytes wait (%s=%ld)",
			   c->out_bytes, limit, max);
}

/* The bytes of one recvmsg(), from the first of a message on. */
static void act_all(struct take *t, const unsigned char *data, size_t size)
{
	struct cpeer *c = t->peer;
	struct dbusp_frame frame;
	size_t total = 0;
	struct cbuf *buf;

	while (size && cpeer_alive(c)) {
		total = total_of(c, data, size, &frame);
		if (!total || total > size)
			break;
		act(t, data, &frame, NULL);
		bound_answers(t);
		data += total;
		size -= total;
	}
	if (!cpeer_alive(c) || (!size && t->first_fd == t->n_fds))
		return;
	buf = size ? buffer_for(data, size, total) : NULL;
	if (size && !buf)
		cpeer_doom(c, "no memory for a message of %zu bytes", total);
	else
		keep(t, buf, size);
}

/* The beginning had no length: with more bytes it may have one, and a buffer that fits. */
static int resize(struct cpeer *c)
{
	struct partial *p = c->in;
	struct dbusp_frame frame;
	size_t total;
	struct cbuf *buf;

	if (p->sized || p->have < DBUSP_FIXED_LEN)
		return 0;
	total = total_of(c, p->buf->data, p->have, &frame);
	if (!total)
		return -EBADMSG;
	buf = buffer_for(p->buf->data, min(p->have, total), total);
	if (!buf) {
		cpeer_doom(c, "no memory for a message of %zu bytes", total);
		return -ENOMEM;
	}
	cbuf_unref(p->buf);
	p->buf = buf;
	p->sized = true;
	return 0;
}

/* ---- receiving ---- */

/* What a begun message has room for */
static size_t wanted(const struct partial *p)
{
	return p && p->buf ? p->buf->size - p->have : 0;
}

/* How much to receive behind a begun message. What is copied later had better be little. */
static size_t expected(const struct cpeer *c)
{
	if (c->usual <= INPUT_RECV / 2)
		return INPUT_RECV;
	return c->usual <= INPUT_WHOLE ? INPUT_RECV_MORE : INPUT_PEEK;
}

static ssize_t receive(struct take *t, size_t first, unsigned char *rest, size_t size)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(INPUT_FDS * sizeof(int))];
	} control;
	struct cpeer *c = t->peer;
	struct iovec iov[2] = {
		{ first ? c->in->buf->data + c->in->have : NULL, first },
		{ rest, size },
	};
	struct msghdr msg = {
		.msg_iov = first ? iov : iov + 1,
		.msg_iovlen = first ? 2 : 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	if (fds_lack_room(c->classic->daemon, c->fd, msg.msg_iov, msg.msg_iovlen)) {
		cpeer_doom(c, "descriptors of it could not be taken");
		errno = EAGAIN;
		return -1;
	}
	n = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n >= 0 && msg.msg_controllen)
		collect_fds(t, &msg);
	return n;
}

static void recall_fds(struct take *t)
{
	struct partial *p = t->peer->in;

	if (!p || !p->n_fds)
		return;
	memcpy(t->fds, p->fds, p->n_fds * sizeof(int));
	t->n_fds = p->n_fds;
	t->fds_until = p->timeout.at;
	p->n_fds = 0;
}

/* @n bytes have come for the begun message. Returns whether it is complete. */
static bool grow(struct cpeer *c, size_t n)
{
	c->in->have += n;
	return charge(c->in, n) && resize(c) == 0 && c->in->sized &&
	       c->in->have == c->in->buf->size;
}

static void go_on(struct take *t, const unsigned char *rest, size_t size)
{
	struct cpeer *c = t->peer;
	struct dbusp_frame frame;
	struct cbuf *buf = NULL;
	size_t have = 0, n;

	if (c->in && c->in->buf) {
		buf = cbuf_ref(c->in->buf);
		have = c->in->have;
	}
	free_partial(c, false);
	if (buf) {
		/* Its length became known with the last byte received: what follows is in @rest. */
		n = min(buf->size - have, size);
		memcpy(buf->data + have, rest, n);
		have += n;
		rest += n;
		size -= n;
		if (have < buf->size) {
			keep(t, buf, have);
			return;
		}
		if (total_of(c, buf->data, buf->size, &frame))
			act(t, buf->data, &frame, buf);
		cbuf_unref(buf);
	}
	if (cpeer_alive(c))
		act_all(t, rest, size);
}

/* A part of the begun message came and nothing else: the usual case of a large one. */
static bool only_grew(struct take *t, size_t first, size_t n)
{
	struct cpeer *c = t->peer;

	if (!first)
		return false;
	if (grow(c, min(first, n)) || !cpeer_alive(c))
		return false;
	return n <= first && !t->n_fds;
}

/* There must be room for as many as come at once (daemon/fds.h). */
static bool has_too_many(const struct take *t)
{
	int limit = fds_for_messages(t->peer->classic->daemon);
	unsigned int i;

	for (i = 0; i < t->n_fds; i++)
		if (t->fds[i] >= limit)
			return true;
	return false;
}

static void check_fds(struct take *t)
{
	struct cpeer *c = t->peer;

	if (t->truncated || has_too_many(t))
		cpeer_doom(c, "descriptors of it could not be taken");
	else if (t->n_fds && !c->fds_ok && c->state != CPEER_AUTH)
		cpeer_doom(c, "it sent descriptors without having negotiated them");
}

static void authenticate(struct take *t, const unsigned char *data, size_t size)
{
	size_t consumed;

	/* Descriptors that come before the first message are nobody's. */
	close_fds(t);
	auth_take(t->peer, data, size, &consumed);
	if (t->peer->state != CPEER_AUTH && cpeer_alive(t->peer))
		act_all(t, data + consumed, size - consumed);
}

static void ended(struct cpeer *c, ssize_t n)
{
	c->ended = n == 0;
	if (n == 0 || errno == ECONNRESET)
		cpeer_doom(c, NULL);
	else if (errno != EAGAIN && errno != EINTR)
		cpeer_doom(c, "cannot be received from: %s", strerror(errno));
}

/* Returns whether there was as much as was asked for. */
static bool take(struct cpeer *c)
{
	struct classic *k = c->classic;
	size_t first = wanted(c->in), size = expected(c);
	struct take t;
	unsigned char *rest;
	bool full;
	ssize_t n;

	if (k->in_used + size > INPUT_SIZE)
		classic_flush(k);
	rest = k->in + k->in_used;
	t.peer = c;
	t.n_fds = 0;
	t.first_fd = 0;
	t.fds_until = 0;
	t.truncated = false;
	t.out_bytes = c->out_bytes;
	recall_fds(&t);
	n = receive(&t, first, rest, size);
	if (n <= 0) {
		if (t.n_fds && c->in)
			c->in->n_fds = t.n_fds;
		ended(c, n);
		return false;
	}
	full = (size_t)n == first + size;
	check_fds(&t);
	if (cpeer_alive(c) && !only_grew(&t, first, (size_t)n)) {
		n -= (ssize_t)min(first, (size_t)n);
		k->in_used += ALIGN((size_t)n, (size_t)8);
		if (c->state == CPEER_AUTH)
			authenticate(&t, rest, (size_t)n);
		else if (cpeer_alive(c))
			go_on(&t, rest, (size_t)n);
	}
	close_fds(&t);
	return full;
}

void input_ready(struct cpeer *c)
{
	if (take(c) && cpeer_alive(c) && wanted(c->in) > INPUT_PEEK)
		take(c);
}
