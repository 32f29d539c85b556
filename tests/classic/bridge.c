// SPDX-License-Identifier: LGPL-2.1-or-later
/* Native and classic peers on one bus: calls, replies, signals, descriptors, names and deaths. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dbus/bloom.h"
#include "native.h"
#include "own-bus.h"

#define NAME  "org.example.Bridge"
#define PATH  "/org/example/Bridge"
#define IFACE "org.example.Bridge1"

static struct own_bus bus;

static int start(void **state)
{
	own_bus_start(&bus, "", 0);
	native_path = bus.native;
	native_learn_names();
	return 0;
}

static int stop(void **state)
{
	return own_bus_stop(&bus);
}

/* ---- native peers ---- */

/* Everything there is, notifications included */
static void native_listen(struct libkdbus *h)
{
	struct kdbus_cmd_match cmd = { .size = sizeof(cmd), .cookie = 1 };

	assert_int_equal(libkdbus_match_add(h, &cmd), 0);
}

/* Peers of earlier tests may be on their way out. */
static void want_joined(struct libkdbus *h, const struct peer *p)
{
	const struct kdbus_msg *msg;
	bool joined = false;

	while (!joined) {
		msg = native_next(h);
		assert_int_equal(msg->src_id, KDBUS_SRC_ID_KERNEL);
		joined = msg->items[0].type == KDBUS_ITEM_ID_ADD &&
			 msg->items[0].id_change.id == native_id_of(p);
		libkdbus_done(h, msg);
	}
}

static void native_signal(struct libkdbus *h, uint64_t cookie, const char *text)
{
	struct dbusp_desc desc = { .type = DBUSP_SIGNAL,
				   .serial = (uint32_t)cookie,
				   .path = DBUSP_STR(PATH),
				   .interface = DBUSP_STR(IFACE),
				   .member = DBUSP_STR("Changed") };
	size_t len;
	uint8_t *data = native_message(desc, text, &len);

	assert_int_equal(native_send(h,
				     &(struct native_send){ .dst_id = KDBUS_DST_ID_BROADCAST,
							    .flags = KDBUS_MSG_SIGNAL,
							    .cookie = cookie },
				     data, len),
			 0);
	free(data);
}

static void ping(struct peer *p)
{
	want_done(p, peer_call(p, DBUS, DBUS_PATH, DBUS ".Peer", "Ping", ""));
}

/* ---- calls ---- */

static void test_classic_calls_native(void **state)
{
	struct libkdbus *h = native_join();
	const struct kdbus_msg *msg;
	struct dbusp_header header;
	char name[32];
	uint32_t serial;
	struct got g;

	WITH(p);
	assert_int_equal(libkdbus_acquire(h, NAME, 0, NULL), 0);
	want_string(&p, peer_driver(&p, "GetNameOwner", "s", NAME),
		    native_name(h, name, sizeof(name)));
	serial = peer_call(&p, NAME, PATH, IFACE, "Say", "s", "question");
	msg = native_next(h);
	assert_int_equal(msg->src_id, native_id_of(&p));
	assert_int_equal(msg->cookie, serial);
	assert_true(msg->flags & KDBUS_MSG_EXPECT_REPLY);
	assert_string_equal(native_text(h, msg, &header), "question");
	assert_string_equal(header.sender.s, p.name);
	assert_string_equal(header.member.s, "Say");
	assert_string_equal(header.destination.s, NAME);
	native_reply(h, msg, 77, "answer");
	want_return(&p, serial, &g);
	assert_string_equal(got_string(&g), "answer");
	assert_string_equal(g.h.sender.s, name);
	got_free(&g);
	libkdbus_done(h, msg);
	libkdbus_close(h);
	peer_close(&p);
}

static void test_native_calls_classic(void **state)
{
	struct libkdbus *h = native_join();
	const struct dbusp_desc desc = { .type = DBUSP_METHOD_CALL,
					 .serial = 5,
					 .path = DBUSP_STR(PATH),
					 .member = DBUSP_STR("Say"),
					 .destination = DBUSP_STR(NAME) };
	const struct native_send how = { .dst_id = KDBUS_DST_ID_NAME,
					 .dst_name = NAME,
					 .flags = KDBUS_MSG_EXPECT_REPLY,
					 .cookie = 5 };
	const struct kdbus_msg *msg;
	struct dbusp_header header;
	char name[32];
	uint8_t *data;
	struct got g;
	size_t len;

	WITH(p);
	peer_driver(&p, "RequestName", "su", NAME, 0);
	want_driver_signal(&p, "NameAcquired", NAME, NULL, NULL);
	want_u32(&p, p.serial, 1);
	data = native_message(desc, "question", &len);
	assert_int_equal(native_send(h, &how, data, len), 0);
	want_call(&p, "Say", &g);
	assert_string_equal(got_string(&g), "question");
	assert_string_equal(g.h.sender.s, native_name(h, name, sizeof(name)));
	peer_return(&p, &g, "s", "answer");
	msg = native_next(h);
	assert_int_equal(msg->cookie_reply, 5);
	assert_int_equal(msg->src_id, native_id_of(&p));
	assert_string_equal(native_text(h, msg, &header), "answer");
	assert_string_equal(header.sender.s, p.name);
	libkdbus_done(h, msg);
	got_free(&g);
	free(data);
	libkdbus_close(h);
	peer_close(&p);
}

/* A reply that was not asked for goes nowhere, in either direction. */
static void test_unasked_replies(void **state)
{
	struct libkdbus *h = native_join();
	const struct kdbus_msg call = { .cookie = 99 };
	struct dbusp_desc desc = { .type = DBUSP_METHOD_RETURN, .serial = 3, .reply_serial = 99 };
	const struct kdbus_msg *msg;
	uint8_t *data;
	size_t len;

	WITH(p);
	data = native_message(desc, "x", &len);
	assert_int_equal(native_send(h,
				     &(struct native_send){ .dst_id = native_id_of(&p),
							    .cookie = 3,
							    .cookie_reply = 99 },
				     data, len),
			 -EBADSLT);
	want_nothing(&p);
	native_listen(h);
	desc.destination = dbusp_str(native_name(h, (char[32]){ "" }, 32));
	peer_send(&p, desc);
	peer_signal(&p, NULL, PATH, IFACE, "Changed", "");
	msg = native_next_said(h);
	assert_int_equal(msg->dst_id, KDBUS_DST_ID_BROADCAST);
	assert_int_not_equal(msg->cookie_reply, call.cookie);
	libkdbus_done(h, msg);
	free(data);
	libkdbus_close(h);
	peer_close(&p);
}

/* ---- signals ---- */

static void test_classic_signal_for_natives(void **state)
{
	struct libkdbus *h = native_join();
	const struct kdbus_msg *msg;
	struct dbusp_header header;

	native_listen(h);
	WITH(p);
	want_joined(h, &p);
	peer_signal(&p, NULL, PATH, IFACE, "Changed", "s", "news");
	msg = native_next_said(h);
	assert_int_equal(msg->src_id, native_id_of(&p));
	assert_true(msg->flags & KDBUS_MSG_SIGNAL);
	assert_string_equal(native_text(h, msg, &header), "news");
	assert_string_equal(header.sender.s, p.name);
	libkdbus_done(h, msg);
	libkdbus_close(h);
	peer_close(&p);
}

/* The mask of a rule lets pass what matches it, and keeps the rest away. */
static void test_bloom_mask(void **state)
{
	static const char rule[] = "type='signal',interface='" IFACE "',arg0='wanted'";
	struct libkdbus *h = native_join();
	size_t size = libkdbus_identity(h)->bloom.size;
	struct kdbus_cmd_match *cmd;
	struct libkdbus_builder b;
	struct dbusp_match_buf buf;
	const struct kdbus_msg *msg;
	struct dbusp_header header;
	struct dbusp_bloom bloom;
	void *built;

	libkdbus_build(&b, sizeof(*cmd), NULL, 0);
	bloom = (struct dbusp_bloom){ .words = libkdbus_build_item(&b, KDBUS_ITEM_BLOOM_MASK, NULL,
								   size),
				      .n_words = size / 8,
				      .n_hash = (unsigned int)libkdbus_identity(h)->bloom.n_hash };
	memset(bloom.words, 0, size);
	assert_int_equal(dbusp_match_parse(&buf, rule, sizeof(rule) - 1, NULL), 0);
	dbusp_bloom_mask(&bloom, &buf.match);
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	assert_int_equal(libkdbus_match_add(h, built), 0);
	libkdbus_build_clear(&b);
	WITH(p);
	peer_signal(&p, NULL, PATH, IFACE, "Changed", "s", "not this");
	peer_signal(&p, NULL, PATH, "org.example.Other", "Changed", "s", "wanted");
	peer_signal(&p, NULL, PATH, IFACE, "Changed", "s", "wanted");
	msg = native_next(h);
	assert_string_equal(native_text(h, msg, &header), "wanted");
	assert_string_equal(header.interface.s, IFACE);
	libkdbus_done(h, msg);
	libkdbus_close(h);
	peer_close(&p);
}

static void test_native_signal_for_classic_peers(void **state)
{
	struct libkdbus *h = native_join();
	char name[32];
	struct got g;

	WITH(p);
	WITH(other);
	want_done(&p, peer_driver(&p, "AddMatch", "s", "interface='" IFACE "',arg0='news'"));
	native_signal(h, 1, "old");
	native_signal(h, 2, "news");
	want_signal(&p, native_name(h, name, sizeof(name)), "Changed", &g);
	assert_string_equal(got_string(&g), "news");
	got_free(&g);
	want_nothing(&p);
	want_nothing(&other);
	libkdbus_close(h);
	peer_close(&p);
	peer_close(&other);
}

/* Signals for one need no match on either side. */
static void test_unicast_signals(void **state)
{
	struct libkdbus *h = native_join();
	const struct dbusp_desc desc = { .type = DBUSP_SIGNAL,
					 .serial = 8,
					 .path = DBUSP_STR(PATH),
					 .interface = DBUSP_STR(IFACE),
					 .member = DBUSP_STR("Changed") };
	const struct kdbus_msg *msg;
	struct dbusp_header header;
	char name[32];
	uint8_t *data;
	struct got g;
	size_t len;

	WITH(p);
	native_name(h, name, sizeof(name));
	peer_signal(&p, name, PATH, IFACE, "Changed", "s", "for you");
	msg = native_next(h);
	assert_string_equal(native_text(h, msg, &header), "for you");
	libkdbus_done(h, msg);
	data = native_message(desc, "and for you", &len);
	assert_int_equal(native_send(h,
				     &(struct native_send){ .dst_id = native_id_of(&p),
							    .flags = KDBUS_MSG_SIGNAL,
							    .cookie = 8 },
				     data, len),
			 0);
	want_signal(&p, name, "Changed", &g);
	assert_string_equal(got_string(&g), "and for you");
	got_free(&g);
	free(data);
	libkdbus_close(h);
	peer_close(&p);
}

/* ---- order ---- */

#define MANY 200

static void test_order_to_native(void **state)
{
	struct libkdbus *h = native_join();
	const struct kdbus_msg *msg;
	struct dbusp_header header;
	char text[16], name[32];
	unsigned int i;

	native_listen(h);
	WITH(p);
	want_joined(h, &p);
	native_name(h, name, sizeof(name));
	for (i = 0; i < MANY; i++) {
		snprintf(text, sizeof(text), "%u", i);
		peer_signal(&p, i % 3 ? NULL : name, PATH, IFACE, "Changed", "s", text);
	}
	for (i = 0; i < MANY; i++) {
		snprintf(text, sizeof(text), "%u", i);
		msg = native_next_said(h);
		assert_string_equal(native_text(h, msg, &header), text);
		libkdbus_done(h, msg);
	}
	libkdbus_close(h);
	peer_close(&p);
}

static void test_order_to_classic(void **state)
{
	struct libkdbus *h = native_join();
	char text[16], name[32];
	unsigned int i;
	struct got g;

	WITH(p);
	native_name(h, name, sizeof(name));
	want_done(&p, peer_driver(&p, "AddMatch", "s", "interface='" IFACE "'"));
	for (i = 0; i < MANY; i++) {
		snprintf(text, sizeof(text), "%u", i);
		native_signal(h, i + 1, text);
	}
	for (i = 0; i < MANY; i++) {
		snprintf(text, sizeof(text), "%u", i);
		want_signal(&p, name, "Changed", &g);
		assert_string_equal(got_string(&g), text);
		got_free(&g);
	}
	libkdbus_close(h);
	peer_close(&p);
}

/* ---- descriptors ---- */

static void check_pipe(int in, int out)
{
	char c = 0;

	assert_int_equal(write(out, "x", 1), 1);
	assert_int_equal(read(in, &c, 1), 1);
	assert_int_equal(c, 'x');
}

static void test_descriptors_to_native(void **state)
{
	struct libkdbus *h = native_join();
	const struct kdbus_item *item;
	const struct kdbus_msg *msg;
	struct dbusp_header header;
	struct dbusp_desc desc = { .type = DBUSP_METHOD_CALL,
				   .flags = DBUSP_NO_REPLY_EXPECTED,
				   .serial = 9,
				   .n_fds = 1,
				   .path = DBUSP_STR(PATH),
				   .member = DBUSP_STR("Take") };
	char name[32];
	uint8_t *data;
	int fds[2];
	size_t len;

	WITH(p);
	assert_int_equal(pipe(fds), 0);
	desc.destination = dbusp_str(native_name(h, name, sizeof(name)));
	data = native_message(desc, "take it", &len);
	peer_write_fds(&p, data, len, &fds[1], 1);
	msg = native_next(h);
	assert_string_equal(native_text(h, msg, &header), "take it");
	assert_int_equal(header.n_fds, 1);
	item = libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_FDS);
	assert_non_null(item);
	check_pipe(fds[0], item->fds[0]);
	close(item->fds[0]);
	libkdbus_done(h, msg);
	close(fds[0]);
	close(fds[1]);
	free(data);
	libkdbus_close(h);
	peer_close(&p);
}

static void test_descriptors_to_classic(void **state)
{
	struct libkdbus *h = native_join();
	const struct dbusp_desc desc = { .type = DBUSP_METHOD_CALL,
					 .flags = DBUSP_NO_REPLY_EXPECTED,
					 .serial = 9,
					 .n_fds = 1,
					 .path = DBUSP_STR(PATH),
					 .member = DBUSP_STR("Take") };
	struct native_send how = { .cookie = 9, .n_fds = 1 };
	struct peer plain;
	uint8_t *data;
	int fds[2];
	struct got g;
	size_t len;

	WITH(p);
	peer_open(&plain);
	peer_auth(&plain, false);
	peer_hello(&plain);
	assert_int_equal(pipe(fds), 0);
	how.fds = &fds[1];
	how.dst_id = native_id_of(&p);
	data = native_message(desc, "take it", &len);
	assert_int_equal(native_send(h, &how, data, len), 0);
	want_call(&p, "Take", &g);
	assert_int_equal(g.n_fds, 1);
	check_pipe(fds[0], g.fds[0]);
	got_free(&g);
	how.dst_id = native_id_of(&plain);
	assert_int_equal(native_send(h, &how, data, len), -ECOMM);
	want_nothing(&plain);
	close(fds[0]);
	close(fds[1]);
	free(data);
	libkdbus_close(h);
	peer_close(&p);
	peer_close(&plain);
}

/* ---- names and deaths ---- */

static void test_names_of_both(void **state)
{
	struct libkdbus *h;
	char name[32];

	WITH(p);
	want_done(&p, peer_driver(&p, "AddMatch", "s", "member='NameOwnerChanged'"));
	h = native_join();
	native_name(h, name, sizeof(name));
	want_driver_signal(&p, "NameOwnerChanged", name, "", name);
	assert_int_equal(libkdbus_acquire(h, NAME, KDBUS_NAME_ALLOW_REPLACEMENT, NULL), 0);
	want_driver_signal(&p, "NameOwnerChanged", NAME, "", name);
	peer_driver(&p, "RequestName", "su", NAME, 2);
	want_driver_signal(&p, "NameOwnerChanged", NAME, name, p.name);
	want_driver_signal(&p, "NameAcquired", NAME, NULL, NULL);
	want_u32(&p, p.serial, 1);
	assert_int_equal(libkdbus_acquire(h, NAME, 0, NULL), -EEXIST);
	libkdbus_close(h);
	want_driver_signal(&p, "NameOwnerChanged", name, name, "");
	peer_close(&p);
}

static void test_native_dies(void **state)
{
	struct libkdbus *h = native_join();
	uint32_t serial;

	WITH(p);
	assert_int_equal(libkdbus_acquire(h, NAME, 0, NULL), 0);
	serial = peer_call(&p, NAME, PATH, IFACE, "Say", "s", "question");
	libkdbus_done(h, native_next(h));
	libkdbus_close(h);
	want_error_text(&p, serial, ERROR_NAME("NoReply"),
			"Message recipient disconnected from message bus without replying");
	serial = peer_call(&p, NAME, PATH, IFACE, "Say", "s", "question");
	want_error(&p, serial, ERROR_NAME("ServiceUnknown"));
	peer_close(&p);
}

static void test_classic_dies(void **state)
{
	struct libkdbus *h = native_join();
	const struct dbusp_desc desc = { .type = DBUSP_METHOD_CALL,
					 .serial = 5,
					 .path = DBUSP_STR(PATH),
					 .member = DBUSP_STR("Say") };
	struct native_send how = { .flags = KDBUS_MSG_EXPECT_REPLY, .cookie = 5 };
	const struct kdbus_item *item;
	const struct kdbus_msg *msg;
	uint8_t *data;
	struct got g;
	size_t len;

	WITH(p);
	how.dst_id = native_id_of(&p);
	data = native_message(desc, "question", &len);
	assert_int_equal(native_send(h, &how, data, len), 0);
	want_call(&p, "Say", &g);
	got_free(&g);
	peer_close(&p);
	msg = native_next(h);
	assert_int_equal(msg->cookie_reply, 5);
	item = libkdbus_item_next(msg, sizeof(*msg), NULL);
	while (item && item->type == KDBUS_ITEM_TIMESTAMP)
		item = libkdbus_item_next(msg, sizeof(*msg), item);
	assert_true(item && item->type == KDBUS_ITEM_REPLY_DEAD);
	libkdbus_done(h, msg);
	assert_int_equal(native_send(h, &how, data, len), -ENXIO);
	free(data);
	libkdbus_close(h);
}

/* ---- payloads ---- */

static void test_large_messages(void **state)
{
	const struct dbusp_desc desc = { .type = DBUSP_METHOD_CALL,
					 .flags = DBUSP_NO_REPLY_EXPECTED,
					 .serial = 5,
					 .path = DBUSP_STR(PATH),
					 .member = DBUSP_STR("Say") };
	static const size_t sizes[] = { 1500, 5000, 100000, 1000000, 3000000, 20000000 };
	struct libkdbus *h = native_join();
	const struct kdbus_msg *msg;
	struct dbusp_header header;
	char name[32], *text;
	unsigned int i;
	uint8_t *data;
	struct got g;
	size_t len;

	WITH(p);
	native_name(h, name, sizeof(name));
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		text = malloc(sizes[i] + 1);
		memset(text, 'a' + (int)i, sizes[i]);
		text[sizes[i]] = '\0';
		peer_signal(&p, name, PATH, IFACE, "Large", "s", text);
		msg = native_next(h);
		assert_true(!strcmp(native_text(h, msg, &header), text));
		libkdbus_done(h, msg);
		data = native_message(desc, text, &len);
		assert_int_equal(
			native_send(h,
				    &(struct native_send){ .dst_id = native_id_of(&p),
							   .cookie = 5,
							   .memfd = i % 2 || sizes[i] > 2000000 },
				    data, len),
			0);
		want_call(&p, "Say", &g);
		assert_true(!strcmp(got_string(&g), text));
		got_free(&g);
		free(data);
		free(text);
	}
	libkdbus_close(h);
	peer_close(&p);
}

/* The module does not look into messages: there the call gets the answer, and nobody the rest. */
static void want_refused(struct libkdbus *h, const struct native_send *how, const void *data,
			 size_t len)
{
	const struct kdbus_msg *msg;
	struct dbusp_header header;

	assert_int_equal(native_send(h, how, data, len), own_bus_on_module() ? 0 : -EBADMSG);
	if (!own_bus_on_module() || !(how->flags & KDBUS_MSG_EXPECT_REPLY))
		return;
	msg = native_next(h);
	assert_int_equal(msg->cookie_reply, how->cookie);
	native_text(h, msg, &header);
	assert_string_equal(header.error_name.s, ERROR_NAME("InconsistentMessage"));
	libkdbus_done(h, msg);
}

/* Only a whole and valid D-Bus message gets to a classic peer. */
static void test_garbage(void **state)
{
	struct libkdbus *h = native_join();
	const struct dbusp_desc desc = { .type = DBUSP_METHOD_CALL,
					 .flags = DBUSP_NO_REPLY_EXPECTED,
					 .serial = 5,
					 .path = DBUSP_STR(PATH),
					 .member = DBUSP_STR("Say") };
	struct native_send how = { .cookie = 5 };
	uint8_t *data;
	size_t len;

	WITH(p);
	how.dst_id = native_id_of(&p);
	want_refused(h, &how, "garbage", 7);
	data = native_message(desc, "text", &len);
	want_refused(h, &how, data, len - 1);
	how.cookie = 6;
	want_refused(h, &how, data, len);
	how.cookie = 5;
	how.flags = KDBUS_MSG_EXPECT_REPLY;
	want_refused(h, &how, data, len);
	data[len - 1] = 1; /* the NUL of the string */
	how.flags = 0;
	want_refused(h, &how, data, len);
	want_nothing(&p);
	free(data);
	libkdbus_close(h);
	peer_close(&p);
}

/* ---- monitors and activators ---- */

static struct libkdbus *native_join_as(uint64_t flags, const char *name)
{
	const struct libkdbus_options options = { .flags = KDBUS_HELLO_ACCEPT_FD | flags,
						  .name = name };
	struct libkdbus *h;

	assert_int_equal(libkdbus_connect(bus.native, &options, &h), 0);
	return h;
}

/*
 * A native monitor sees what classic peers say to each other. On a bus of the module that does not
 * get there.
 */
static void test_native_monitor(void **state)
{
	const struct kdbus_msg *msg;
	struct dbusp_header header;
	struct libkdbus *h;
	uint32_t serial;
	struct got g;

	WITH(p);
	WITH(callee);
	h = native_join_as(KDBUS_HELLO_MONITOR, NULL);
	serial = peer_call(&p, callee.name, PATH, IFACE, "Say", "s", "question");
	want_call(&callee, "Say", &g);
	peer_return(&callee, &g, "s", "answer");
	got_free(&g);
	want_string(&p, serial, "answer");
	peer_signal(&p, NULL, PATH, IFACE, "Changed", "s", "news");
	msg = native_next_said(h);
	assert_int_equal(msg->src_id, native_id_of(&p));
	if (!own_bus_on_module()) {
		assert_int_equal(msg->dst_id, native_id_of(&callee));
		assert_string_equal(native_text(h, msg, &header), "question");
		libkdbus_done(h, msg);
		msg = native_next_said(h);
		assert_int_equal(msg->cookie_reply, serial);
		assert_string_equal(native_text(h, msg, &header), "answer");
		libkdbus_done(h, msg);
		msg = native_next_said(h);
	}
	assert_string_equal(native_text(h, msg, &header), "news");
	libkdbus_done(h, msg);
	libkdbus_close(h);
	peer_close(&p);
	peer_close(&callee);
}

/* What waits at a native activator goes to the classic service that takes the name. */
static void test_classic_service_of_an_activator(void **state)
{
	struct libkdbus *h = native_join_as(KDBUS_HELLO_ACTIVATOR, NAME), *caller = native_join();
	const struct dbusp_desc desc = { .type = DBUSP_METHOD_CALL,
					 .serial = 5,
					 .path = DBUSP_STR(PATH),
					 .member = DBUSP_STR("Say"),
					 .destination = DBUSP_STR(NAME) };
	const struct kdbus_msg *msg;
	struct dbusp_header header;
	struct got first, second;
	uint32_t serial;
	uint8_t *data;
	size_t len;

	WITH(p);
	WITH(service);
	want_error(&p, peer_driver(&p, "GetNameOwner", "s", NAME), ERROR_NAME("NameHasNoOwner"));
	serial = peer_call(&p, NAME, PATH, IFACE, "Say", "s", "first");
	ping(&p);
	data = native_message(desc, "second", &len);
	assert_int_equal(native_send(caller,
				     &(struct native_send){ .dst_id = KDBUS_DST_ID_NAME,
							    .dst_name = NAME,
							    .flags = KDBUS_MSG_EXPECT_REPLY,
							    .cookie = 5 },
				     data, len),
			 0);
	peer_driver(&service, "RequestName", "su", NAME, 0);
	/* The module tells of the new owner; what the daemon makes of it comes first. */
	if (own_bus_on_module())
		want_driver_signal(&service, "NameAcquired", NAME, NULL, NULL);
	want_call(&service, "Say", &first);
	want_call(&service, "Say", &second);
	assert_string_equal(got_string(&first), "first");
	assert_string_equal(got_string(&second), "second");
	if (!own_bus_on_module())
		want_driver_signal(&service, "NameAcquired", NAME, NULL, NULL);
	want_u32(&service, service.serial, 1);
	peer_return(&service, &first, "s", "one");
	peer_return(&service, &second, "s", "two");
	want_string(&p, serial, "one");
	msg = native_next(caller);
	assert_int_equal(msg->cookie_reply, 5);
	assert_string_equal(native_text(caller, msg, &header), "two");
	libkdbus_done(caller, msg);
	got_free(&first);
	got_free(&second);
	free(data);
	libkdbus_close(caller);
	libkdbus_close(h);
	peer_close(&p);
	peer_close(&service);
}

/* ---- facts ---- */

static void test_credentials(void **state)
{
	const struct libkdbus_options shown = { .attach_send = _KDBUS_ATTACH_ALL };
	struct libkdbus *h;
	struct kdbus_cmd_info cmd = { .size = sizeof(cmd),
				      .attach_flags = KDBUS_ATTACH_CREDS | KDBUS_ATTACH_PIDS };
	const struct kdbus_item *item;
	const struct kdbus_info *info;
	char name[32];
	size_t size;

	WITH(p);
	/* The module does not tell what a peer does not show. */
	assert_int_equal(libkdbus_connect(bus.native, &shown, &h), 0);
	native_name(h, name, sizeof(name));
	want_u32(&p, peer_driver(&p, "GetConnectionUnixProcessID", "s", name), (uint32_t)getpid());
	want_u32(&p, peer_driver(&p, "GetConnectionUnixUser", "s", name), geteuid());
	cmd.id = native_id_of(&p);
	assert_int_equal(libkdbus_conn_info(h, &cmd), 0);
	info = (const void *)((const char *)libkdbus_pool(h, &size) + cmd.offset);
	assert_int_equal(info->id, native_id_of(&p));
	item = libkdbus_item_find(info, sizeof(*info), KDBUS_ITEM_PIDS);
	assert_non_null(item);
	assert_int_equal(item->pids.pid, getpid());
	libkdbus_close(h);
	peer_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classic_calls_native),
		cmocka_unit_test(test_native_calls_classic),
		cmocka_unit_test(test_unasked_replies),
		cmocka_unit_test(test_classic_signal_for_natives),
		cmocka_unit_test(test_bloom_mask),
		cmocka_unit_test(test_native_signal_for_classic_peers),
		cmocka_unit_test(test_unicast_signals),
		cmocka_unit_test(test_order_to_native),
		cmocka_unit_test(test_order_to_classic),
		cmocka_unit_test(test_descriptors_to_native),
		cmocka_unit_test(test_descriptors_to_classic),
		cmocka_unit_test(test_names_of_both),
		cmocka_unit_test(test_native_dies),
		cmocka_unit_test(test_classic_dies),
		cmocka_unit_test(test_large_messages),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_native_monitor),
		cmocka_unit_test(test_classic_service_of_an_activator),
		cmocka_unit_test(test_credentials),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
