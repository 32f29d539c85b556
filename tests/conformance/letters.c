// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sending and receiving messages. */
#include <sys/mman.h>
#include <time.h>

#include "fixture.h"

static struct kdbus_msg *finish(struct libkdbus_builder *b, const struct letter *l)
{
	struct kdbus_msg *msg;
	void *built;

	assert_int_equal(libkdbus_build_end(b, &built), 0);
	msg = built;
	msg->flags = l->flags;
	msg->priority = l->priority;
	msg->dst_id = l->dst;
	msg->cookie = l->cookie;
	msg->cookie_reply = l->reply;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	return msg;
}

static void add_filter(struct libkdbus_builder *b, const struct letter *l)
{
	struct kdbus_bloom_filter *filter;

	filter = libkdbus_build_item(b, KDBUS_ITEM_BLOOM_FILTER, NULL, sizeof(*filter) + 64);
	assert_non_null(filter);
	filter->generation = l->generation;
	if (l->filter)
		memcpy(filter->data, l->filter, 64);
}

static struct kdbus_msg *compose(struct libkdbus_builder *b, const struct letter *l)
{
	size_t i;

	libkdbus_build(b, sizeof(struct kdbus_msg), NULL, 0);
	if (l->name)
		libkdbus_build_string(b, KDBUS_ITEM_DST_NAME, l->name);
	if (l->bloom)
		add_filter(b, l);
	if (l->size)
		libkdbus_build_vec(b, l->data, l->size);
	if (l->n_fds)
		libkdbus_build_fds(b, l->fds, l->n_fds);
	for (i = 0; i < l->n_memfds; i++)
		libkdbus_build_memfd(b, l->memfds[i], 0, 8);
	return finish(b, l);
}

static int send_message(struct libkdbus *h, struct kdbus_msg *msg)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd), .msg_address = (uintptr_t)msg };

	return libkdbus_send(h, &cmd);
}

int fixture_send(struct libkdbus *h, const struct letter *letter)
{
	struct libkdbus_builder b;
	int r = send_message(h, compose(&b, letter));

	libkdbus_build_clear(&b);
	return r;
}

int fixture_call(struct libkdbus *h, const struct letter *letter, int cancel_fd,
		 const struct kdbus_msg **ret_reply)
{
	struct libkdbus_builder b;
	int r = libkdbus_call(h, compose(&b, letter), cancel_fd, ret_reply);

	libkdbus_build_clear(&b);
	return r;
}

int fixture_memfd(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "kdbus memfd 1234567", 16), 16);
	assert_int_equal(libkdbus_memfd_seal(fd), 0);
	return fd;
}

static int send_big(struct libkdbus *h, const struct letter *l)
{
	static char big[131075];
	const char *last = "last 13 bytes";
	struct libkdbus_builder b;
	int fd = -1, r;

	libkdbus_build(&b, sizeof(struct kdbus_msg), NULL, 0);
	if (l->name)
		libkdbus_build_string(&b, KDBUS_ITEM_DST_NAME, l->name);
	if (l->bloom)
		add_filter(&b, l);
	libkdbus_build_vec(&b, big, sizeof(big));
	libkdbus_build_vec(&b, NULL, 8 - sizeof(big) % 8);
	libkdbus_build_vec(&b, last, 13);
	if (!l->bloom) {
		fd = fixture_memfd();
		libkdbus_build_memfd(&b, fd, 0, 16);
	}
	r = send_message(h, finish(&b, l));
	libkdbus_build_clear(&b);
	if (fd >= 0)
		close(fd);
	return r;
}

int fixture_send_default(struct libkdbus *h, uint64_t dst, const char *name, uint64_t cookie)
{
	const struct letter l = { .dst = dst, .name = name, .cookie = cookie };

	return send_big(h, &l);
}

int fixture_broadcast(struct libkdbus *h, uint64_t cookie)
{
	const struct letter l = { .dst = KDBUS_DST_ID_BROADCAST,
				  .flags = KDBUS_MSG_SIGNAL,
				  .cookie = cookie,
				  .bloom = true };

	return send_big(h, &l);
}

int fixture_recv(struct libkdbus *h, struct kdbus_cmd_recv *cmd)
{
	return fixture_recv_flags(h, 0, 0, cmd);
}

int fixture_recv_flags(struct libkdbus *h, uint64_t flags, int64_t priority,
		       struct kdbus_cmd_recv *cmd)
{
	*cmd = (struct kdbus_cmd_recv){ .size = sizeof(*cmd),
					.flags = flags,
					.priority = priority };
	return libkdbus_recv(h, cmd);
}

const struct kdbus_msg *fixture_message(struct libkdbus *h, uint64_t offset)
{
	return (const void *)((const char *)libkdbus_pool(h, NULL) + offset);
}

unsigned int fixture_drain(struct libkdbus *h)
{
	struct kdbus_cmd_recv cmd;
	unsigned int n = 0;

	for (; fixture_recv(h, &cmd) == 0; n++)
		assert_int_equal(fixture_free(h, cmd.msg.offset), 0);
	return n;
}

const struct kdbus_msg *fixture_await(struct libkdbus *h)
{
	const struct kdbus_msg *msg;
	uint64_t deadline = fixture_deadline(FIXTURE_TIMEOUT_MS);
	int r;

	while ((r = libkdbus_receive(h, &msg)) == -EAGAIN)
		assert_int_equal(libkdbus_wait(h, deadline, -1), 0);
	assert_int_equal(r, 0);
	return msg;
}

void fixture_expect(struct libkdbus *h, uint64_t cookie)
{
	const struct kdbus_msg *msg = fixture_await(h);

	assert_int_equal(msg->cookie, cookie);
	assert_int_equal(libkdbus_done(h, msg), 0);
}

void fixture_await_queued(struct libkdbus *h)
{
	struct kdbus_cmd_recv cmd;
	int r;

	while ((r = fixture_recv_flags(h, KDBUS_RECV_PEEK, 0, &cmd)) == -EAGAIN)
		assert_int_equal(libkdbus_wait(h, fixture_deadline(FIXTURE_TIMEOUT_MS), -1), 0);
	assert_int_equal(r, 0);
	assert_int_equal(fixture_free(h, cmd.msg.offset), 0);
}

void fixture_assert_empty(struct libkdbus *h)
{
	struct kdbus_cmd_recv cmd;

	assert_int_equal(fixture_recv(h, &cmd), -EAGAIN);
}

const struct kdbus_item *fixture_item(const struct kdbus_msg *msg, uint64_t type)
{
	return libkdbus_item_find(msg, sizeof(*msg), type);
}

uint64_t fixture_deadline(unsigned int ms)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec + ms * 1000000ULL;
}
