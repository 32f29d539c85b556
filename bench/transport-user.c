// SPDX-License-Identifier: LGPL-2.1-or-later
/* libkdbus: the bus as a native program uses it. Calls go to the service's name. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libkdbus.h>

#include "peers.h"
#include "transport.h"

#define CALL_TIMEOUT_NS 60000000000ULL

struct client {
	struct libkdbus *h;
	uint64_t cookie;
};

static int failed(struct link *l, int r, const char *what)
{
	link_error(l, r, "%s: %s", what, strerror(-r));
	return r;
}

/* What a message carries besides its addresses. */
struct content {
	const void *data;
	size_t size;
	int memfd;
};

static int compose(struct link *l, struct libkdbus_builder *b, const char *name,
		   const struct content *c, struct kdbus_msg **ret)
{
	struct kdbus_msg *msg;
	void *built;
	int r;

	if (name)
		libkdbus_build_string(b, KDBUS_ITEM_DST_NAME, name);
	if (c->memfd >= 0)
		libkdbus_build_memfd(b, c->memfd, 0, c->size);
	else if (c->size)
		libkdbus_build_vec(b, c->data, c->size);
	r = libkdbus_build_end(b, &built);
	if (r < 0)
		return failed(l, r, "building a message");
	msg = built;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	*ret = msg;
	return 0;
}

/* @job is that of a request, NULL for a reply. */
static int check(struct link *l, const struct job *job, struct libkdbus *h,
		 const struct kdbus_msg *msg)
{
	const struct kdbus_item *item = NULL;
	const void *data = NULL;
	size_t size = 0;
	int r;

	while ((item = libkdbus_item_next(msg, sizeof(*msg), item))) {
		if (item->type != KDBUS_ITEM_PAYLOAD_OFF && item->type != KDBUS_ITEM_PAYLOAD_MEMFD)
			continue;
		r = libkdbus_payload(h, msg, item, &data, &size);
		if (r < 0)
			return failed(l, r, "looking at a payload");
		/* It is mapped now, and the receiver's to close. */
		if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD)
			close(item->memfd.fd);
		break;
	}
	if (!data && size)
		return link_error(l, -EBADMSG, "a payload of zero bytes that nobody sent");
	if (!job)
		return link_check(l, &l->in, data, size, l->shared->job.reply);
	return link_check_mapped(l, job, data, size);
}

/*
 * A sixth of a pool is what a sender may have waiting in it. Two of the largest messages must fit:
 * one that the receiver has answered and is about to give back, and the next one.
 */
static const struct libkdbus_options roomy = { .pool_size = 8ULL * 2 * PEER_KDBUS_MAX };

/* Asleep until there is a message: in the library, or in poll(2) as an event loop would. */
static int await(struct link *l, struct libkdbus *h, bool in_poll, const struct kdbus_msg **ret)
{
	struct pollfd p = { .fd = libkdbus_fd(h), .events = POLLIN };
	int r = in_poll ? libkdbus_receive(h, ret) : -EAGAIN;

	while (r == -EAGAIN) {
		if (in_poll)
			r = poll(&p, 1, -1) < 0 ? -errno : 0;
		else
			r = libkdbus_wait(h, UINT64_MAX, -1);
		if (r < 0 && r != -EINTR)
			return failed(l, r, "waiting for a message");
		r = libkdbus_receive(h, ret);
	}
	return r < 0 ? failed(l, r, "RECV") : 0;
}

/* ---- server ---- */

static int answer(struct link *l, struct libkdbus *h, const struct kdbus_msg *msg)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct content c = { payload_next(link_server_out(l)), l->shared->job.reply, -1 };
	uint64_t buffer[64];
	struct libkdbus_builder b;
	struct kdbus_msg *reply;
	int r;

	libkdbus_build(&b, sizeof(*reply), buffer, sizeof(buffer));
	r = compose(l, &b, NULL, &c, &reply);
	if (r < 0)
		return r;
	reply->dst_id = msg->src_id;
	reply->cookie_reply = msg->cookie;
	cmd.msg_address = (uintptr_t)reply;
	r = libkdbus_send(h, &cmd);
	libkdbus_build_clear(&b);
	return r < 0 ? failed(l, r, "sending a reply") : 0;
}

/* HELLO, and the service's name. */
static int serve_user(struct link *l)
{
	const struct kdbus_msg *msg;
	struct libkdbus *h;
	int r = libkdbus_connect(l->address, &roomy, &h);

	if (r < 0)
		return failed(l, r, "connecting");
	r = libkdbus_acquire(h, l->service, 0, NULL);
	if (r < 0)
		return failed(l, r, "taking a name");
	link_ready(l);
	while (r == 0) {
		r = await(l, h, l->shared->job.poll || l->shared->job.poll_server, &msg);
		if (r < 0)
			break;
		r = check(l, &l->shared->job, h, msg);
		if (r == 0 && msg->flags & KDBUS_MSG_EXPECT_REPLY)
			r = answer(l, h, msg);
		libkdbus_done(h, msg);
	}
	libkdbus_close(h);
	return r;
}

/* ---- client ---- */

static int open_user(struct link *l)
{
	struct client *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return link_error(l, -ENOMEM, "out of memory");
	r = libkdbus_connect(l->address, &roomy, &c->h);
	if (r < 0) {
		free(c);
		return failed(l, r, "connecting");
	}
	l->state = c;
	return 0;
}

static void close_user(struct link *l)
{
	struct client *c = l->state;

	libkdbus_close(c->h);
	free(c);
	l->state = NULL;
}

static int own_user(struct link *l, const char *name)
{
	struct client *c = l->state;
	int r = libkdbus_acquire(c->h, name, 0, NULL);

	return r < 0 ? failed(l, r, "taking a name") : 0;
}

/* The mask has one bit of its own, as a rule about an interface has a few. */
static int match_user(struct link *l, unsigned int i)
{
	struct client *c = l->state;
	size_t size = libkdbus_identity(c->h)->bloom.size;
	struct libkdbus_builder b;
	unsigned char *mask;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(struct kdbus_cmd_match), NULL, 0);
	mask = libkdbus_build_item(&b, KDBUS_ITEM_BLOOM_MASK, NULL, size);
	if (mask) {
		memset(mask, 0, size);
		mask[i / 8 % size] = (unsigned char)(1 << i % 8);
	}
	r = libkdbus_build_end(&b, &built);
	if (r == 0)
		r = libkdbus_match_add(c->h, built);
	libkdbus_build_clear(&b);
	return r < 0 ? failed(l, r, "adding a match") : 0;
}

static int compose_request(struct link *l, struct libkdbus_builder *b, const struct job *job,
			   int memfd, struct kdbus_msg **ret)
{
	struct client *c = l->state;
	struct content content = { NULL, job->request, memfd };
	int r;

	if (memfd < 0)
		content.data = payload_next(&l->out);
	r = compose(l, b, l->service, &content, ret);
	if (r < 0)
		return r;
	(*ret)->cookie = ++c->cookie;
	(*ret)->flags = KDBUS_MSG_EXPECT_REPLY;
	(*ret)->timeout_ns = usage_now_ns() + CALL_TIMEOUT_NS;
	return 0;
}

/* -ENOBUFS, unsaid, if too much is open: then nothing has happened. */
static int send_request(struct link *l, const struct job *job, int memfd)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct client *c = l->state;
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	uint64_t buffer[64];
	int r;

	libkdbus_build(&b, sizeof(*msg), buffer, sizeof(buffer));
	r = compose_request(l, &b, job, memfd, &msg);
	if (r < 0)
		return r;
	cmd.msg_address = (uintptr_t)msg;
	r = libkdbus_send(c->h, &cmd);
	libkdbus_build_clear(&b);
	if (r == -ENOBUFS && memfd < 0)
		l->out.seq--;
	return r < 0 && r != -ENOBUFS ? failed(l, r, "SEND") : r;
}

static int take_reply(struct link *l, const struct job *job)
{
	const struct kdbus_msg *reply;
	struct client *c = l->state;
	int r = await(l, c->h, job->poll, &reply);

	if (r < 0)
		return r;
	r = check(l, NULL, c->h, reply);
	libkdbus_done(c->h, reply);
	return r;
}

static int call_sync(struct link *l, const struct job *job, int memfd)
{
	const struct kdbus_msg *reply;
	struct client *c = l->state;
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	uint64_t buffer[64];
	int r;

	libkdbus_build(&b, sizeof(*msg), buffer, sizeof(buffer));
	r = compose_request(l, &b, job, memfd, &msg);
	if (r < 0)
		return r;
	r = libkdbus_call(c->h, msg, -1, &reply);
	libkdbus_build_clear(&b);
	if (r < 0)
		return failed(l, r, "a call");
	r = check(l, NULL, c->h, reply);
	libkdbus_done(c->h, reply);
	return r;
}

static int call_user(struct link *l, const struct job *job)
{
	int memfd = -1, r;

	if (link_has_memfd(job)) {
		memfd = link_memfd(l, job);
		if (memfd < 0)
			return memfd;
	}
	if (job->poll) {
		r = send_request(l, job, memfd);
		r = r == 0 ? take_reply(l, job) : failed(l, r, "SEND");
	} else {
		r = call_sync(l, job, memfd);
	}
	if (memfd >= 0)
		link_memfd_sent(job, memfd);
	return r;
}

static int burst_user(struct link *l, const struct job *job, uint64_t count, unsigned int window)
{
	uint64_t begun = 0, done = 0;
	int r = 0;

	while (r == 0 && done < count) {
		while (r == 0 && begun < count && begun - done < window) {
			r = send_request(l, job, -1);
			begun += r == 0;
		}
		if (r == 0 || (r == -ENOBUFS && begun > done))
			r = take_reply(l, job);
		done++;
	}
	return r;
}

/* One that nobody answers; -ENOBUFS, unsaid, if the lane is full. */
static int send_quiet(struct link *l, const struct job *job)
{
	struct content content = { payload_next(&l->out), job->request, -1 };
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct client *c = l->state;
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	uint64_t buffer[64];
	int r;

	libkdbus_build(&b, sizeof(*msg), buffer, sizeof(buffer));
	r = compose(l, &b, l->service, &content, &msg);
	if (r < 0)
		return r;
	msg->cookie = ++c->cookie;
	cmd.msg_address = (uintptr_t)msg;
	r = libkdbus_send(c->h, &cmd);
	libkdbus_build_clear(&b);
	if (r == -ENOBUFS)
		l->out.seq--;
	return r < 0 && r != -ENOBUFS ? failed(l, r, "SEND") : r;
}

/* A call waits for room, so that is what there is to do when the lane is full. */
static int flow_user(struct link *l, const struct job *job, uint64_t count, unsigned int window)
{
	uint64_t i;
	int r = 0;

	for (i = 1; r == 0 && i <= count; i++) {
		r = i == count || i % window == 0 ? -ENOBUFS : send_quiet(l, job);
		if (r == -ENOBUFS)
			r = call_sync(l, job, -1);
	}
	return r;
}

const struct transport transport_user = {
	.name = "libkdbus",
	.serve = serve_user,
	.open = open_user,
	.call = call_user,
	.burst = burst_user,
	.flow = flow_user,
	.close = close_user,
	.own = own_user,
	.match = match_user,
};

/* ---- the same with a part of the library switched off ---- */

static int serve_asleep(struct link *l)
{
	setenv("KDBUS_SPIN_US", "0", 1);
	return serve_user(l);
}

static int open_asleep(struct link *l)
{
	setenv("KDBUS_SPIN_US", "0", 1);
	return open_user(l);
}

const struct transport transport_user_asleep = {
	.name = "libkdbus without spinning",
	.serve = serve_asleep,
	.open = open_asleep,
	.call = call_user,
	.flow = flow_user,
};

static int serve_relayed(struct link *l)
{
	setenv("KDBUS_DIRECT", "0", 1);
	return serve_user(l);
}

static int open_relayed(struct link *l)
{
	setenv("KDBUS_DIRECT", "0", 1);
	return open_user(l);
}

const struct transport transport_user_relayed = {
	.name = "libkdbus through kdbusd",
	.serve = serve_relayed,
	.open = open_relayed,
	.call = call_user,
	.flow = flow_user,
};
