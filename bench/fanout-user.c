// SPDX-License-Identifier: LGPL-2.1-or-later
/* Broadcasts over libkdbus: a bloom filter in the message, a bloom mask in the match. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <libkdbus.h>

#include "fanout.h"

#define POOL_SIZE   (256U << 10)
#define FILTER_BYTE 0x21

struct receivers {
	struct libkdbus **handles;
	int *fds;
};

static int failed(struct link *l, int r, const char *what)
{
	return link_error(l, r, "%s: %s", what, strerror(-r));
}

/* The bits that filter and mask have in common. */
static void fill_bloom(unsigned char *bits, size_t size)
{
	memset(bits, 0, size);
	bits[0] = FILTER_BYTE;
	bits[size / 2] = FILTER_BYTE;
}

static int add_match(struct link *l, struct libkdbus *h)
{
	size_t size = libkdbus_identity(h)->bloom.size;
	struct libkdbus_builder b;
	unsigned char *mask;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(struct kdbus_cmd_match), NULL, 0);
	mask = libkdbus_build_item(&b, KDBUS_ITEM_BLOOM_MASK, NULL, size);
	if (mask)
		fill_bloom(mask, size);
	r = libkdbus_build_end(&b, &built);
	if (r == 0)
		r = libkdbus_match_add(h, built);
	libkdbus_build_clear(&b);
	return r < 0 ? failed(l, r, "adding a match") : 0;
}

static int add_receiver(struct link *l, struct receivers *all, unsigned int i)
{
	const struct libkdbus_options options = { .flags = KDBUS_HELLO_ACCEPT_FD,
						  .pool_size = POOL_SIZE };
	int r = libkdbus_connect(l->address, &options, &all->handles[i]);

	if (r < 0)
		return link_error(l, r, "connecting receiver %u: %s", i + 1, strerror(-r));
	all->fds[i] = libkdbus_fd(all->handles[i]);
	return i < fanout_wanted(l) ? add_match(l, all->handles[i]) : 0;
}

static int take(struct link *l, struct libkdbus *h, const struct kdbus_msg *msg)
{
	const struct kdbus_item *item =
		libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_PAYLOAD_OFF);
	const void *data = NULL;
	size_t size = 0;
	int r = item ? libkdbus_payload(h, msg, item, &data, &size) : -EBADMSG;

	return r < 0 ? failed(l, r, "looking at a payload") : fanout_received(l, data, size);
}

static int ready(struct link *l, unsigned int i)
{
	struct receivers *all = l->state;
	const struct kdbus_msg *msg;
	int r;

	while ((r = libkdbus_receive(all->handles[i], &msg)) == 0) {
		r = take(l, all->handles[i], msg);
		libkdbus_done(all->handles[i], msg);
		if (r < 0)
			return r;
	}
	return r == -EAGAIN ? 0 : failed(l, r, "RECV");
}

static int serve_receivers(struct link *l, struct receivers *all)
{
	unsigned int i, n = fanout_total(l);
	int r = 0;

	l->state = all;
	for (i = 0; i < n && r == 0; i++)
		r = add_receiver(l, all, i);
	if (r == 0)
		r = fanout_poll(l, all->fds, n, ready);
	for (i = 0; i < n; i++)
		libkdbus_close(all->handles[i]);
	return r;
}

static int serve_fanout(struct link *l)
{
	unsigned int n = fanout_total(l);
	struct receivers all = { calloc(n, sizeof(*all.handles)), calloc(n, sizeof(int)) };
	int r = -ENOMEM;

	if (all.handles && all.fds)
		r = serve_receivers(l, &all);
	else
		link_error(l, r, "out of memory");
	free(all.handles);
	free(all.fds);
	return r;
}

/* ---- client ---- */

static int open_fanout(struct link *l)
{
	struct libkdbus *h;
	int r = libkdbus_connect(l->address, NULL, &h);

	if (r < 0)
		return failed(l, r, "connecting");
	l->state = h;
	return 0;
}

static int compose(struct link *l, struct libkdbus_builder *b, const struct job *job,
		   struct kdbus_msg **ret)
{
	struct libkdbus *h = l->state;
	size_t size = libkdbus_identity(h)->bloom.size;
	struct kdbus_bloom_filter *filter;
	void *built;
	int r;

	filter = libkdbus_build_item(b, KDBUS_ITEM_BLOOM_FILTER, NULL, sizeof(*filter) + size);
	if (filter)
		fill_bloom((unsigned char *)filter->data, size);
	libkdbus_build_vec(b, payload_next(&l->out), job->request);
	r = libkdbus_build_end(b, &built);
	if (r < 0)
		return failed(l, r, "building a message");
	*ret = built;
	(*ret)->dst_id = KDBUS_DST_ID_BROADCAST;
	(*ret)->flags = KDBUS_MSG_SIGNAL;
	(*ret)->payload_type = KDBUS_PAYLOAD_DBUS;
	(*ret)->cookie = l->sent;
	return 0;
}

static int send_one(struct link *l, const struct job *job)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct libkdbus_builder b;
	struct kdbus_msg *msg = NULL;
	uint64_t buffer[64];
	int r;

	libkdbus_build(&b, sizeof(*msg), buffer, sizeof(buffer));
	r = compose(l, &b, job, &msg);
	if (r < 0)
		return r;
	cmd.msg_address = (uintptr_t)msg;
	r = libkdbus_send(l->state, &cmd);
	libkdbus_build_clear(&b);
	return r < 0 ? failed(l, r, "a broadcast") : 0;
}

static int call_fanout(struct link *l, const struct job *job)
{
	return fanout_send(l, job, 1, 1, send_one);
}

static int burst_fanout(struct link *l, const struct job *job, uint64_t count, unsigned int window)
{
	return fanout_send(l, job, count, window, send_one);
}

const struct transport transport_user_fanout = {
	.name = "libkdbus",
	.serve = serve_fanout,
	.open = open_fanout,
	.call = call_fanout,
	.burst = burst_fanout,
};
