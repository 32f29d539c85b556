/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_UNIT_CORE_BUS_FIXTURE_H
#define TESTS_UNIT_CORE_BUS_FIXTURE_H

/* A bus with four connections that are made when a test asks for them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base.h"
#include "failalloc.h"
#include "host.h"

#define ROOM 128

/**
 * struct fixture - a bus
 * @host: host
 * @a, @b, @c, @d: connections, closed by the teardown if they are open
 * @many: more of them
 */
struct fixture {
	struct host host;
	struct host_conn a, b, c, d;
	struct host_conn many[ROOM];
};

static inline int fixture_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	return f ? host_init(&f->host) : -1;
}

static inline int fixture_teardown(void **state)
{
	struct fixture *f = *state;
	int r;

	host_close(&f->a);
	host_close(&f->b);
	host_close(&f->c);
	host_close(&f->d);
	for (int i = 0; i < ROOM; i++)
		host_close(&f->many[i]);
	host_deinit(&f->host);
	r = f->host.entries || failalloc_live();
	free(f);
	return r;
}

#define on_bus(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

/* Connect with these HELLO flags, and a name for activators and policy holders. */
static inline void join(struct fixture *f, struct host_conn *conn, u64 flags, const char *name)
{
	u64 buf[64];
	struct core_writer w = CORE_WRITER(buf, sizeof(buf));
	struct host_hello hello = { .flags = flags, .name = name };

	if (name) {
		core_put_str(&w, KDBUS_ITEM_NAME, name);
		assert_int_equal(core_writer_end(&w, &hello.policy_size), 0);
		hello.policy = (struct kdbus_item *)buf;
	}
	assert_int_equal(host_connect(&f->host, conn, &hello), 0);
}

/* Connect as somebody who does not own the bus. */
static inline void join_as(struct fixture *f, struct host_conn *conn, u32 uid)
{
	const struct host_hello hello = { .uid = uid };

	assert_int_equal(host_connect(&f->host, conn, &hello), 0);
}

/* An entry without rules matches everything. */
static inline void match_all(struct host_conn *conn)
{
	assert_int_equal(core_match_add(&conn->core.matches, 1, 0, NULL, 0), 0);
}

/* An entry with one rule. */
static inline void add_match(struct host_conn *conn, u64 cookie, u64 flags, u64 type,
			     const void *rule, size_t size)
{
	u64 buf[64];
	struct core_writer w = CORE_WRITER(buf, sizeof(buf));
	size_t end;

	core_put(&w, type, rule, size);
	assert_int_equal(core_writer_end(&w, &end), 0);
	assert_int_equal(core_match_add(&conn->core.matches, cookie, flags,
					(struct kdbus_item *)buf, end), 0);
}

static inline u64 acquire(struct host_conn *conn, const char *name, u64 flags)
{
	u64 ret = 0;

	assert_int_equal(core_conn_acquire(&conn->core, NULL, name, flags, &ret), 0);
	return ret;
}

static inline int send_id(struct host_conn *from, struct host_conn *to, u64 cookie)
{
	const struct host_msg msg = { .dst_id = to->core.id, .cookie = cookie };

	return host_send(from, &msg, NULL);
}

static inline int send_name(struct host_conn *from, const char *name, u64 cookie)
{
	const struct host_msg msg = { .name = name, .cookie = cookie };

	return host_send(from, &msg, NULL);
}

static inline int broadcast(struct host_conn *from, u64 cookie)
{
	const struct host_msg msg = {
		.dst_id = KDBUS_DST_ID_BROADCAST,
		.flags = KDBUS_MSG_SIGNAL,
		.cookie = cookie,
	};

	return host_send(from, &msg, NULL);
}

static inline int call(struct host_conn *from, struct host_conn *to, u64 cookie, u64 deadline)
{
	const struct host_msg msg = {
		.dst_id = to->core.id,
		.flags = KDBUS_MSG_EXPECT_REPLY,
		.cookie = cookie,
		.word = deadline,
	};

	return host_send(from, &msg, NULL);
}

static inline int call_name(struct host_conn *from, const char *name, u64 cookie)
{
	const struct host_msg msg = {
		.name = name,
		.flags = KDBUS_MSG_EXPECT_REPLY,
		.cookie = cookie,
		.word = U64_MAX,
	};

	return host_send(from, &msg, NULL);
}

static inline int call_sync(struct host_conn *from, struct host_conn *to, u64 cookie, u64 deadline,
			    struct core_reply **ret_slot)
{
	const struct host_msg msg = {
		.dst_id = to->core.id,
		.flags = KDBUS_MSG_EXPECT_REPLY,
		.cookie = cookie,
		.word = deadline,
		.sync = true,
	};

	return host_send(from, &msg, ret_slot);
}

static inline int reply(struct host_conn *from, struct host_conn *to, u64 cookie)
{
	const struct host_msg msg = { .dst_id = to->core.id, .word = cookie };

	return host_send(from, &msg, NULL);
}

/*
 * Receive one message and free it at once; what it says stays readable until the next
 * message arrives.
 */
static inline const struct kdbus_msg *take(struct host_conn *conn)
{
	struct core_received received;
	const struct kdbus_msg *msg;

	assert_int_equal(host_recv(conn, 0, 0, &received, &msg), 0);
	assert_int_equal(host_free(conn, msg), 0);
	return msg;
}

static inline void assert_nothing(struct host_conn *conn)
{
	struct core_received received;
	const struct kdbus_msg *msg;

	assert_int_equal(host_recv(conn, 0, 0, &received, &msg), -EAGAIN);
}

static inline void assert_lost(struct host_conn *conn, u64 n)
{
	struct core_received received;
	const struct kdbus_msg *msg;

	assert_int_equal(host_recv(conn, 0, 0, &received, &msg), -EAGAIN);
	assert_int_equal(received.dropped, n);
	assert_int_equal(received.return_flags, n ? KDBUS_RECV_RETURN_DROPPED_MSGS : 0);
}

static inline void assert_message(struct host_conn *conn, u64 src_id, u64 cookie)
{
	const struct kdbus_msg *msg = take(conn);

	assert_int_equal(msg->src_id, src_id);
	assert_int_equal(msg->cookie, cookie);
}

/* An ID_... or REPLY_... notification; @id: connection, or cookie of the call. */
static inline void assert_notice(struct host_conn *conn, u64 type, u64 id)
{
	const struct kdbus_msg *msg = take(conn);
	const struct kdbus_notify_id_change *change = core_item_payload(msg->items);

	assert_int_equal(msg->src_id, KDBUS_SRC_ID_KERNEL);
	assert_int_equal(msg->payload_type, KDBUS_PAYLOAD_KERNEL);
	assert_int_equal(msg->items->type, type);
	if (type == KDBUS_ITEM_ID_ADD || type == KDBUS_ITEM_ID_REMOVE) {
		assert_int_equal(msg->dst_id, KDBUS_DST_ID_BROADCAST);
		assert_int_equal(msg->flags, KDBUS_MSG_SIGNAL);
		assert_int_equal(change->id, id);
	} else {
		assert_int_equal(msg->dst_id, conn->core.id);
		assert_int_equal(msg->flags, 0);
		assert_int_equal(msg->cookie_reply, id);
	}
}

static inline void assert_name_notice(struct host_conn *conn, u64 type, u64 old_id, u64 old_flags,
				      u64 new_id, u64 new_flags, const char *name)
{
	const struct kdbus_msg *msg = take(conn);
	const struct kdbus_notify_name_change *change = core_item_payload(msg->items);

	assert_int_equal(msg->src_id, KDBUS_SRC_ID_KERNEL);
	assert_int_equal(msg->items->type, type);
	assert_int_equal(change->old_id.id, old_id);
	assert_int_equal(change->old_id.flags, old_flags);
	assert_int_equal(change->new_id.id, new_id);
	assert_int_equal(change->new_id.flags, new_flags);
	assert_string_equal(change->name, name);
}

#endif
