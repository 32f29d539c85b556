// SPDX-License-Identifier: LGPL-2.1-or-later
#include "native.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "dbus/bloom.h"

const char *native_path;

struct libkdbus *native_join(void)
{
	const struct libkdbus_options options = { .flags = KDBUS_HELLO_ACCEPT_FD };
	struct libkdbus *h;

	assert_int_equal(libkdbus_connect(native_path, &options, &h), 0);
	return h;
}

/* What is between the id of a connection and the number in its unique name */
static uint64_t id_of_zero;

void native_learn_names(void)
{
	const char name[] = "org.example.LearnsNames";
	struct libkdbus *h = native_join();
	struct got g;
	WITH(p);

	assert_int_equal(libkdbus_acquire(h, name, 0, NULL), 0);
	want_return(&p, peer_driver(&p, "GetNameOwner", "s", name), &g);
	id_of_zero = libkdbus_identity(h)->id - strtoull(got_string(&g) + 3, NULL, 10);
	got_free(&g);
	peer_close(&p);
	libkdbus_close(h);
}

const char *native_name(struct libkdbus *h, char *buf, size_t size)
{
	if (!id_of_zero)
		native_learn_names();
	snprintf(buf, size, ":1.%llu", (unsigned long long)(libkdbus_identity(h)->id - id_of_zero));
	return buf;
}

uint64_t native_id_of(const struct peer *p)
{
	if (!id_of_zero)
		native_learn_names();
	return strtoull(p->name + 3, NULL, 10) + id_of_zero;
}

uint64_t native_deadline(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + PEER_PATIENCE_MS * 1000000ULL;
}

uint8_t *native_message(struct dbusp_desc desc, const char *text, size_t *ret_len)
{
	struct dbusp_build b;
	uint8_t *msg;

	desc.signature = dbusp_str(!text ? NULL : desc.n_fds ? "sh" : "s");
	dbusp_build_begin(&b, NULL, &desc);
	if (text)
		dbusp_put_string(&b, text);
	if (text && desc.n_fds)
		dbusp_put_fixed(&b, 'h', &(uint32_t){ 0 });
	assert_int_equal(dbusp_build_end(&b, &msg, ret_len), 0);
	return msg;
}

static void put_bloom(struct libkdbus_builder *b, struct libkdbus *h, const uint8_t *data)
{
	size_t size = libkdbus_identity(h)->bloom.size;
	struct kdbus_bloom_filter *filter =
		libkdbus_build_item(b, KDBUS_ITEM_BLOOM_FILTER, NULL, sizeof(*filter) + size);
	struct dbusp_bloom bloom = { .words = (uint64_t *)filter->data,
				     .n_words = size / 8,
				     .n_hash = (unsigned int)libkdbus_identity(h)->bloom.n_hash };
	struct dbusp_header header;
	struct dbusp_args args;

	memset(filter, 0, sizeof(*filter) + size);
	assert_int_equal(
		dbusp_header_parse(&header, data, DBUSP_MESSAGE_MAX, DBUSP_MESSAGE_MAX, NULL), 0);
	dbusp_args_init(&args, &header, data + header.frame.header_len);
	dbusp_bloom_filter(&bloom, &header, &args);
}

static int make_memfd(const void *data, size_t len)
{
	int fd = memfd_create("bridge", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(write(fd, data, len), len);
	assert_int_equal(libkdbus_memfd_seal(fd), 0);
	return fd;
}

int native_send(struct libkdbus *h, const struct native_send *s, const void *data, size_t len)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	int memfd = s->memfd ? make_memfd(data, len) : -1, r;
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	void *built;

	libkdbus_build(&b, sizeof(*msg), NULL, 0);
	if (s->memfd)
		libkdbus_build_memfd(&b, memfd, 0, len);
	else
		libkdbus_build_vec(&b, data, len);
	if (s->dst_name)
		libkdbus_build_string(&b, KDBUS_ITEM_DST_NAME, s->dst_name);
	if (s->n_fds)
		libkdbus_build_fds(&b, s->fds, s->n_fds);
	if (s->flags & KDBUS_MSG_SIGNAL)
		put_bloom(&b, h, data);
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	msg = built;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	msg->dst_id = s->dst_id;
	msg->flags = s->flags;
	msg->cookie = s->cookie;
	msg->cookie_reply = s->cookie_reply;
	if (s->flags & KDBUS_MSG_EXPECT_REPLY)
		msg->timeout_ns = native_deadline();
	cmd.msg_address = (uintptr_t)msg;
	r = libkdbus_send(h, &cmd);
	libkdbus_build_clear(&b);
	if (memfd >= 0)
		close(memfd);
	return r;
}

const struct kdbus_msg *native_next(struct libkdbus *h)
{
	const struct kdbus_msg *msg;
	int r;

	while ((r = libkdbus_receive(h, &msg)) == -EAGAIN)
		assert_int_equal(libkdbus_wait(h, native_deadline(), -1), 0);
	assert_int_equal(r, 0);
	return msg;
}

const struct kdbus_msg *native_next_said(struct libkdbus *h)
{
	const struct kdbus_msg *msg = native_next(h);

	while (msg->src_id == KDBUS_SRC_ID_KERNEL) {
		libkdbus_done(h, msg);
		msg = native_next(h);
	}
	return msg;
}

const char *native_text(struct libkdbus *h, const struct kdbus_msg *msg,
			struct dbusp_header *ret_header)
{
	static struct dbusp_reader reader;
	const struct kdbus_item *item =
		libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_PAYLOAD_OFF);
	struct dbusp_str text = { "", 0 };
	const void *data;
	size_t size;

	if (!item)
		item = libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_PAYLOAD_MEMFD);
	assert_non_null(item);
	assert_int_equal(libkdbus_payload(h, msg, item, &data, &size), 0);
	if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD)
		close(item->memfd.fd);
	assert_int_equal(dbusp_header_parse(ret_header, data, size, DBUSP_MESSAGE_MAX, NULL), 0);
	assert_int_equal(ret_header->frame.total_len, size);
	dbusp_reader_init(&reader, ret_header, (const char *)data + ret_header->frame.header_len);
	if (dbusp_reader_type(&reader) == 's')
		assert_int_equal(dbusp_read_text(&reader, 's', &text), 0);
	return text.s;
}

void native_reply(struct libkdbus *h, const struct kdbus_msg *call, uint64_t cookie,
		  const char *text)
{
	struct dbusp_desc desc = { .type = DBUSP_METHOD_RETURN,
				   .serial = (uint32_t)cookie,
				   .reply_serial = (uint32_t)call->cookie };
	size_t len;
	uint8_t *data = native_message(desc, text, &len);

	assert_int_equal(native_send(h,
				     &(struct native_send){ .dst_id = call->src_id,
							    .cookie = cookie,
							    .cookie_reply = call->cookie },
				     data, len),
			 0);
	free(data);
}
