// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where messages go (spec §7.4 to §7.10, §13, §15.4 to §15.6, §15.8). */
#include "core-bus-fixture.h"

#define NAME "com.example.a"

/* A record set of one name with one entry for everybody. */
/* A record for @name with one entry. Return: its bytes. */
static size_t write_record(u64 *buf, size_t size, const char *name,
			   const struct kdbus_policy_access *entry)
{
	struct core_writer w = CORE_WRITER(buf, size);
	size_t end;

	core_put_str(&w, KDBUS_ITEM_NAME, name);
	core_put(&w, KDBUS_ITEM_POLICY_ACCESS, entry, sizeof(*entry));
	assert_int_equal(core_writer_end(&w, &end), 0);
	return end;
}

static void allow(struct fixture *f, struct host_conn *holder, const char *name, u64 access)
{
	const struct kdbus_policy_access world = {
		.type = KDBUS_POLICY_ACCESS_WORLD,
		.access = access,
	};
	u64 buf[64];
	struct host_hello hello = {
		.flags = KDBUS_HELLO_POLICY_HOLDER,
		.name = name,
		.policy = (struct kdbus_item *)buf,
		.policy_size = write_record(buf, sizeof(buf), name, &world),
	};

	assert_int_equal(host_connect(&f->host, holder, &hello), 0);
}

/* UPDATE on a policy holder: only @uid may talk. */
static void narrow(struct host_conn *holder, const char *name, u32 uid)
{
	const struct core_update update = { .set_policy = true };
	const struct kdbus_policy_access user = {
		.type = KDBUS_POLICY_ACCESS_USER,
		.access = KDBUS_POLICY_TALK,
		.id = uid,
	};
	struct core_policy_set *set;
	u64 buf[64];
	size_t size = write_record(buf, sizeof(buf), name, &user);

	assert_int_equal(core_policy_parse((struct kdbus_item *)buf, size, CORE_POLICY_ONE_NAME,
					   NULL, NULL, &set), 0);
	assert_int_equal(core_conn_update(&holder->core, &update, set), 0);
}

static void s7_4_by_id(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	assert_int_equal(send_id(&f->a, &f->b, 7), 0);
	assert_message(&f->b, f->a.core.id, 7);
	assert_int_equal(send_id(&f->a, &f->a, 8), 0);
	assert_message(&f->a, f->a.core.id, 8);
	assert_int_equal(host_send(&f->a, &(struct host_msg){ .dst_id = 999 }, NULL), -ENXIO);
}

static void s7_4_by_name(void **state)
{
	struct fixture *f = *state;
	struct host_msg msg = { .name = NAME };

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, 0, NULL);
	assert_int_equal(host_send(&f->a, &msg, NULL), -ESRCH);
	acquire(&f->b, NAME, KDBUS_NAME_QUEUE);
	acquire(&f->c, NAME, KDBUS_NAME_QUEUE);
	assert_int_equal(host_send(&f->a, &msg, NULL), 0);
	msg.dst_id = f->b.core.id;
	assert_int_equal(host_send(&f->a, &msg, NULL), 0);
	msg.dst_id = f->c.core.id;
	assert_int_equal(host_send(&f->a, &msg, NULL), -EREMCHG);
	take(&f->b);
	take(&f->b);
	assert_nothing(&f->b);
	assert_nothing(&f->c);
}

static void s7_4_no_auto_start(void **state)
{
	struct fixture *f = *state;
	struct host_msg msg = { .name = NAME, .flags = KDBUS_MSG_NO_AUTO_START };

	join(f, &f->a, 0, NULL);
	join(f, &f->b, KDBUS_HELLO_ACTIVATOR, NAME);
	assert_int_equal(host_send(&f->a, &msg, NULL), -EADDRNOTAVAIL);
	msg.dst_id = 999;
	assert_int_equal(host_send(&f->a, &msg, NULL), -EREMCHG);
	msg.dst_id = 0;
	join(f, &f->c, 0, NULL);
	acquire(&f->c, NAME, 0);
	assert_int_equal(host_send(&f->a, &msg, NULL), 0);
	take(&f->c);
}

static void s7_5_existence_comes_before_permission(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join_as(f, &f->b, 65534);
	assert_int_equal(host_send(&f->b, &(struct host_msg){ .dst_id = 999 }, NULL), -ENXIO);
	assert_int_equal(send_name(&f->b, NAME, 1), -ESRCH);
	acquire(&f->a, NAME, 0);
	assert_int_equal(send_id(&f->b, &f->a, 1), -EPERM);
	assert_int_equal(send_name(&f->b, NAME, 1), -EPERM);
	allow(f, &f->c, NAME, KDBUS_POLICY_SEE);
	assert_int_equal(send_id(&f->b, &f->a, 1), -EPERM);
	host_close(&f->c);
	allow(f, &f->c, NAME, KDBUS_POLICY_TALK);
	assert_int_equal(send_id(&f->b, &f->a, 1), 0);
	host_close(&f->c);
	assert_int_equal(send_name(&f->b, NAME, 1), -EPERM);
	assert_int_equal(send_id(&f->a, &f->b, 1), 0);
}

static void s15_8_policy_ns(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join_as(f, &f->b, 65534);
	acquire(&f->a, NAME, 0);
	assert_int_equal(send_id(&f->b, &f->a, 1), -EPERM);
	allow(f, &f->c, NAME, KDBUS_POLICY_TALK);
	assert_int_equal(send_name(&f->b, NAME, 1), 0);
	assert_int_equal(send_id(&f->b, &f->a, 2), 0);
	narrow(&f->c, NAME, 0);
	assert_int_equal(send_name(&f->b, NAME, 3), -EPERM);
	assert_int_equal(send_id(&f->b, &f->a, 3), -EPERM);
	narrow(&f->c, NAME, 65534);
	assert_int_equal(send_name(&f->b, NAME, 4), 0);
}

static void s9_2_the_current_credentials_decide(void **state)
{
	struct fixture *f = *state;
	const struct core_cred b_cred = { .euid = 2000 };
	struct host_msg msg = { 0 };

	join_as(f, &f->a, 2000);
	join_as(f, &f->b, 3000);
	msg.dst_id = f->a.core.id;
	assert_int_equal(host_send(&f->b, &msg, NULL), -EPERM);
	msg.cred = &b_cred;
	assert_int_equal(host_send(&f->b, &msg, NULL), 0);
}

static void s7_5_the_limit_on_calls_comes_before_the_queue(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	for (int i = 0; i < 8; i++)
		join(f, &f->many[i], 0, NULL);
	join(f, &f->b, KDBUS_HELLO_MONITOR, NULL);
	for (int i = 0; i < CORE_CONN_MAX_REQUESTS_PENDING; i++) {
		assert_int_equal(call(&f->a, &f->many[i % 8], i, U64_MAX), 0);
		take(&f->b);
	}
	assert_int_equal(call(&f->a, &f->many[0], 129, U64_MAX), -EMLINK);
	assert_nothing(&f->b);
}

static void s15_5_fds_to_who_does_not_accept_them(void **state)
{
	struct fixture *f = *state;
	struct host_msg msg = { .n_fds = 1, .flags = KDBUS_MSG_EXPECT_REPLY, .word = U64_MAX };
	struct core_reply *slot = NULL;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, KDBUS_HELLO_ACCEPT_FD, NULL);
	join(f, &f->d, KDBUS_HELLO_MONITOR, NULL);
	msg.dst_id = f->b.core.id;
	assert_int_equal(host_send(&f->a, &msg, NULL), -ECOMM);
	msg.sync = true;
	assert_int_equal(host_send(&f->a, &msg, &slot), -ECOMM);
	assert_null(slot);
	assert_nothing(&f->b);
	assert_int_equal(f->a.core.calls.n, 0);
	msg.sync = false;
	msg.dst_id = f->c.core.id;
	assert_int_equal(host_send(&f->a, &msg, NULL), 0);
	take(&f->c);
	/* monitors take anything, and have seen what failed */
	for (int i = 0; i < 3; i++)
		take(&f->d);
	assert_nothing(&f->d);
}

static void s7_5_a_call_that_fails_leaves_no_slot(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	f->host.fail = -EFAULT;
	assert_int_equal(call(&f->a, &f->b, 1, U64_MAX), -EFAULT);
	assert_int_equal(f->a.core.calls.n, 0);
	assert_null(core_replier_first(&f->b.core.owed));
	assert_nothing(&f->b);
	assert_int_equal(core_quota_get(&f->b.core.inbox.quota, f->a.core.user->number).msgs, 0);
}

static void s7_7_reply(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	assert_int_equal(call(&f->a, &f->b, 3, U64_MAX), 0);
	assert_message(&f->b, f->a.core.id, 3);
	assert_int_equal(reply(&f->b, &f->a, 4), -EBADSLT);
	assert_int_equal(reply(&f->b, &f->a, 3), 0);
	assert_int_equal(take(&f->a)->cookie_reply, 3);
	assert_int_equal(reply(&f->b, &f->a, 3), -EBADSLT);
	assert_int_equal(f->a.core.calls.n, 0);
}

static void s7_7_an_open_slot_is_the_permission(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join_as(f, &f->b, 65534);
	assert_int_equal(send_id(&f->b, &f->a, 1), -EPERM);
	assert_int_equal(call(&f->a, &f->b, 3, U64_MAX), 0);
	assert_int_equal(reply(&f->b, &f->a, 3), 0);
	assert_int_equal(send_id(&f->b, &f->a, 1), -EPERM);
}

static void s7_7_a_reply_that_does_not_fit_consumes_the_slot(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	assert_int_equal(call(&f->a, &f->b, 3, U64_MAX), 0);
	f->host.fail = -EFAULT;
	assert_int_equal(reply(&f->b, &f->a, 3), -EFAULT);
	assert_int_equal(reply(&f->b, &f->a, 3), -EBADSLT);
	assert_nothing(&f->a);
}

static void s15_5_timeout(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	for (u64 i = 4; i; i--)
		assert_int_equal(call(&f->a, &f->b, i, i * 100), 0);
	assert_int_equal(core_bus_expire(&f->host.bus.deadlines, 99), 100);
	assert_nothing(&f->a);
	assert_int_equal(core_bus_expire(&f->host.bus.deadlines, 250), 300);
	assert_notice(&f->a, KDBUS_ITEM_REPLY_TIMEOUT, 1);
	assert_notice(&f->a, KDBUS_ITEM_REPLY_TIMEOUT, 2);
	assert_nothing(&f->a);
	assert_int_equal(core_bus_expire(&f->host.bus.deadlines, 1000), U64_MAX);
	assert_notice(&f->a, KDBUS_ITEM_REPLY_TIMEOUT, 3);
	assert_notice(&f->a, KDBUS_ITEM_REPLY_TIMEOUT, 4);
	/* unread requests keep counting; nothing else comes of them */
	assert_int_equal(f->a.core.calls.n, 4);
	host_close(&f->b);
	assert_nothing(&f->a);
	assert_int_equal(f->a.core.calls.n, 0);
}

static void s7_10_dropping_a_call_is_its_outcome(void **state)
{
	struct fixture *f = *state;
	struct core_received received;
	const struct kdbus_msg *msg;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	assert_int_equal(call(&f->a, &f->b, 1, U64_MAX), 0);
	assert_int_equal(host_recv(&f->b, KDBUS_RECV_DROP | KDBUS_RECV_PEEK, 0, &received, &msg),
			 0);
	assert_int_equal(received.offset, 65536);
	assert_int_equal(received.size, 0);
	assert_notice(&f->a, KDBUS_ITEM_REPLY_DEAD, 1);
	host_close(&f->b);
	assert_nothing(&f->a);
}

static void s7_10_peek_then_receive(void **state)
{
	struct fixture *f = *state;
	struct core_received peeked, received;
	const struct kdbus_msg *msg;

	join(f, &f->a, 0, NULL);
	assert_int_equal(send_id(&f->a, &f->a, 9), 0);
	assert_int_equal(host_recv(&f->a, KDBUS_RECV_PEEK, 0, &peeked, &msg), 0);
	assert_int_equal(msg->cookie, 9);
	assert_int_equal(host_free(&f->a, msg), 0);
	assert_int_equal(host_recv(&f->a, 0, 0, &received, &msg), 0);
	assert_int_equal(peeked.offset, received.offset);
	assert_int_equal(host_free(&f->a, msg), 0);
	assert_int_equal(host_free(&f->a, msg), -ENXIO);
}

static int refuse(struct core_conn *conn, struct core_entry *entry, void *data)
{
	return -ENOMEM;
}

static void s6_15_descriptors_that_cannot_be_installed_leave_all_as_it_was(void **state)
{
	struct fixture *f = *state;
	struct core_received received = { .dropped = 77 };

	join(f, &f->a, 0, NULL);
	assert_int_equal(send_id(&f->a, &f->a, 9), 0);
	core_conn_lose(&f->a.core);
	assert_int_equal(core_bus_recv(&f->a.core, 0, 0, refuse, NULL, &received), -ENOMEM);
	assert_int_equal(received.dropped, 77);
	/* not published either: what the caller was not told of it cannot leak (§17.1 row 20) */
	assert_int_equal(core_pool_free(&f->a.core.inbox.pool, 0), -ENXIO);
	assert_int_equal(core_bus_recv(&f->a.core, KDBUS_RECV_PEEK, 0, refuse, NULL, &received),
			 0);
	assert_int_equal(received.dropped, 1);
	assert_message(&f->a, f->a.core.id, 9);
}

static void s15_5_broadcast_reaches_the_sender_too(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, 0, NULL);
	join(f, &f->d, KDBUS_HELLO_ACTIVATOR, NAME);
	match_all(&f->a);
	match_all(&f->b);
	assert_int_equal(broadcast(&f->a, 5), 0);
	assert_message(&f->a, f->a.core.id, 5);
	assert_message(&f->b, f->a.core.id, 5);
	assert_nothing(&f->c);
	assert_lost(&f->d, 0);
}

static void s15_4_match_bloom(void **state)
{
	struct fixture *f = *state;
	u8 mask[2 * HOST_BLOOM] = { [0] = 0x55, [63] = 0x80, [65] = 0xaa, [73] = 0x02 };
	u64 filter[HOST_BLOOM / 8] = { 0 };
	u8 *bytes = (u8 *)filter;
	struct host_msg msg = {
		.dst_id = KDBUS_DST_ID_BROADCAST,
		.flags = KDBUS_MSG_SIGNAL,
		.bloom = filter,
	};

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	add_match(&f->b, 1, 0, KDBUS_ITEM_BLOOM_MASK, mask, sizeof(mask));
	assert_int_equal(host_send(&f->a, &msg, NULL), 0);
	assert_nothing(&f->b);
	bytes[0] = 0x55;
	bytes[63] = 0x80;
	assert_int_equal(host_send(&f->a, &msg, NULL), 0);
	take(&f->b);
	bytes[0] = bytes[8] = bytes[63] = 0xff;
	assert_int_equal(host_send(&f->a, &msg, NULL), 0);
	take(&f->b);
	msg.generation = 1;
	assert_int_equal(host_send(&f->a, &msg, NULL), 0);
	assert_nothing(&f->b);
	bytes[1] = 0xaa;
	bytes[9] = 0x02;
	assert_int_equal(host_send(&f->a, &msg, NULL), 0);
	take(&f->b);
	assert_nothing(&f->b);
}

static void s7_6_a_unicast_signal_needs_a_match(void **state)
{
	struct fixture *f = *state;
	struct host_msg msg = { .flags = KDBUS_MSG_SIGNAL, .cookie = 1 };

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, KDBUS_HELLO_MONITOR, NULL);
	msg.dst_id = 999;
	assert_int_equal(host_send(&f->a, &msg, NULL), -ENXIO);
	msg.dst_id = f->b.core.id;
	assert_int_equal(host_send(&f->a, &msg, NULL), 0);
	assert_nothing(&f->b);
	add_match(&f->b, 1, 0, KDBUS_ITEM_DST_ID, &f->b.core.id, 8);
	msg.cookie = 2;
	assert_int_equal(host_send(&f->a, &msg, NULL), 0);
	assert_message(&f->b, f->a.core.id, 2);
	/* an error of queueing is not told to the sender, but counted (§17.1 row 15) */
	join_as(f, &f->d, 65534);
	add_match(&f->d, 1, 0, KDBUS_ITEM_DST_ID, &f->d.core.id, 8);
	msg.dst_id = f->b.core.id;
	msg.n_fds = 1;
	assert_int_equal(host_send(&f->a, &msg, NULL), 0);
	assert_lost(&f->b, 1);
	/* the receiver has no permission to talk to the sender */
	msg.n_fds = 0;
	msg.dst_id = f->d.core.id;
	assert_int_equal(host_send(&f->a, &msg, NULL), 0);
	assert_nothing(&f->d);
	/* the sender's permission is not asked for */
	msg.dst_id = f->b.core.id;
	msg.cookie = 3;
	assert_int_equal(host_send(&f->d, &msg, NULL), 0);
	assert_message(&f->b, f->d.core.id, 3);
	for (u64 cookie = 1; cookie < 3; cookie++)
		assert_message(&f->c, f->a.core.id, cookie);
}

static void s15_8_broadcast_defaults(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	match_all(&f->a);
	join_as(f, &f->b, 65534);
	join_as(f, &f->c, 65534);
	join_as(f, &f->d, 65533);
	take(&f->a);
	take(&f->a);
	take(&f->a);
	match_all(&f->b);
	match_all(&f->c);
	match_all(&f->d);
	assert_int_equal(broadcast(&f->a, 1), 0);
	assert_message(&f->a, f->a.core.id, 1);
	assert_nothing(&f->b);
	assert_int_equal(broadcast(&f->b, 2), 0);
	assert_message(&f->a, f->b.core.id, 2);
	assert_message(&f->b, f->b.core.id, 2);
	assert_message(&f->c, f->b.core.id, 2);
	assert_nothing(&f->d);
	acquire(&f->a, NAME, 0);
	assert_name_notice(&f->d, KDBUS_ITEM_NAME_ADD, 0, 0, f->a.core.id, KDBUS_NAME_PRIMARY,
			   NAME);
	allow(f, &f->many[0], NAME, KDBUS_POLICY_TALK);
	assert_notice(&f->d, KDBUS_ITEM_ID_ADD, f->many[0].core.id);
	assert_int_equal(broadcast(&f->a, 3), 0);
	assert_message(&f->d, f->a.core.id, 3);
}

static void s7_9_a_broadcast_that_does_not_fit_is_counted(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	match_all(&f->b);
	f->host.fail = -EFAULT;
	f->b.wakes = 0;
	assert_int_equal(broadcast(&f->a, 1), 0);
	assert_int_equal(f->b.wakes, 1);
	assert_lost(&f->b, 1);
	assert_lost(&f->b, 0);
}

static void s15_4_monitor(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, KDBUS_HELLO_MONITOR, NULL);
	assert_int_equal(send_id(&f->a, &f->b, 1), 0);
	assert_message(&f->b, f->a.core.id, 1);
	assert_int_equal(take(&f->c)->dst_id, f->b.core.id);
	assert_int_equal(broadcast(&f->a, 2), 0);
	assert_message(&f->c, f->a.core.id, 2);
	assert_int_equal(call(&f->a, &f->b, 3, 10), 0);
	assert_message(&f->c, f->a.core.id, 3);
	core_bus_expire(&f->host.bus.deadlines, 10);
	assert_int_equal(take(&f->c)->items->type, KDBUS_ITEM_REPLY_TIMEOUT);
	assert_int_equal(host_send(&f->a, &(struct host_msg){ .dst_id = 999 }, NULL), -ENXIO);
	assert_int_equal(reply(&f->b, &f->a, 3), -EBADSLT);
	assert_nothing(&f->c);
	f->host.fail = -EFAULT;
	assert_int_equal(send_id(&f->a, &f->b, 4), 0);
	assert_lost(&f->c, 1);
}

static void s1_2_each_message_takes_a_sequence_number(void **state)
{
	struct fixture *f = *state;
	u64 seq;

	join(f, &f->a, 0, NULL);
	seq = f->host.bus.seq;
	assert_int_equal(host_send(&f->a, &(struct host_msg){ .dst_id = 999 }, NULL), -ENXIO);
	assert_int_equal(f->host.bus.seq, seq + 1);
	join(f, &f->b, 0, NULL);
	assert_int_equal(f->host.bus.seq, seq + 2);
	assert_int_equal(host_send(&f->a, &(struct host_msg){ .sync = true }, NULL), -EINVAL);
	assert_int_equal(f->host.bus.seq, seq + 2);
}

static void s15_5_quota_of_the_bus_itself(void **state)
{
	struct fixture *f = *state;
	const struct kdbus_notify_id_change any = { .id = KDBUS_MATCH_ID_ANY };
	const struct host_hello hello = { .pool_size = 16 << 20 };
	struct core_received received;
	const struct kdbus_msg *msg;
	u64 dropped = 0, n = 0;

	assert_int_equal(host_connect(&f->host, &f->a, &hello), 0);
	add_match(&f->a, 1, 0, KDBUS_ITEM_ID_ADD, &any, sizeof(any));
	add_match(&f->a, 2, 0, KDBUS_ITEM_ID_REMOVE, &any, sizeof(any));
	for (int i = 0; i < 128; i++) {
		join(f, &f->b, 0, NULL);
		host_close(&f->b);
	}
	assert_int_equal(send_id(&f->a, &f->a, 1), 0);
	join(f, &f->b, 0, NULL);
	host_close(&f->b);
	join(f, &f->b, 0, NULL);
	while (!host_recv(&f->a, 0, 0, &received, &msg)) {
		if (!n++)
			dropped = received.dropped;
		else
			assert_int_equal(received.return_flags, 0);
	}
	assert_int_equal(dropped, 3);
	assert_int_equal(n, 257);
}

static void s15_5_quota_of_the_pool(void **state)
{
	struct fixture *f = *state;
	const struct host_hello hello = { .pool_size = 16 << 20 };
	static char payload[2 << 20];
	struct host_msg msg = { .payload = payload, .size = sizeof(payload), .cookie = 1 };

	assert_int_equal(host_connect(&f->host, &f->a, &hello), 0);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, 0, NULL);
	msg.dst_id = f->a.core.id;
	assert_int_equal(host_send(&f->b, &msg, NULL), 0);
	assert_int_equal(host_send(&f->b, &msg, NULL), -ENOBUFS);
	msg.size = 128 << 10;
	msg.cookie = 2;
	assert_int_equal(host_send(&f->c, &msg, NULL), 0);
	assert_message(&f->a, f->b.core.id, 1);
	assert_message(&f->a, f->c.core.id, 2);
}

static void s15_5_quota_of_messages(void **state)
{
	struct fixture *f = *state;
	const struct host_hello hello = { .pool_size = 16 << 20 };

	assert_int_equal(host_connect(&f->host, &f->a, &hello), 0);
	join(f, &f->b, 0, NULL);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < CORE_CONN_MAX_MSGS; i++)
			assert_int_equal(send_id(&f->b, &f->a, i), 0);
		assert_int_equal(send_id(&f->b, &f->a, 0), -ENOBUFS);
		for (int i = 0; i < CORE_CONN_MAX_MSGS; i++)
			assert_message(&f->a, f->b.core.id, i);
	}
}

static void s15_5_quota_of_descriptors(void **state)
{
	struct fixture *f = *state;
	struct host_msg msg = { .n_fds = 16 };

	join(f, &f->a, KDBUS_HELLO_ACCEPT_FD, NULL);
	msg.dst_id = f->a.core.id;
	assert_int_equal(host_send(&f->a, &msg, NULL), 0);
	msg.n_fds = 1;
	assert_int_equal(host_send(&f->a, &msg, NULL), -EMFILE);
	msg.n_fds = 0;
	assert_int_equal(host_send(&f->a, &msg, NULL), 0);
}

static void s15_6_sync_reply(void **state)
{
	struct fixture *f = *state;
	struct kdbus_msg_info info;
	struct core_reply *slot;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	f->host.now = 10;
	assert_int_equal(call_sync(&f->a, &f->b, 5, 10, &slot), -ETIMEDOUT);
	assert_nothing(&f->b);
	assert_int_equal(call_sync(&f->a, &f->b, 5, 20, &slot), 0);
	assert_non_null(slot);
	assert_false(core_reply_settled(slot));
	assert_message(&f->b, f->a.core.id, 5);
	assert_int_equal(reply(&f->b, &f->a, 6), -EBADSLT);
	f->a.wakes = 0;
	assert_int_equal(reply(&f->b, &f->a, 5), 0);
	assert_int_equal(f->a.wakes, 1);
	assert_nothing(&f->a);
	assert_int_equal(f->a.core.inbox.quota.users[f->b.core.user->number].msgs, 1);
	assert_int_equal(core_send_collect(&f->a.core, slot, NULL, NULL, &info), 0);
	assert_int_equal(f->a.core.inbox.quota.users[f->b.core.user->number].msgs, 0);
	assert_int_equal(((struct kdbus_msg *)(f->a.pool + info.offset))->cookie_reply, 5);
	assert_int_equal(info.return_flags, 0);
	assert_int_equal(core_pool_free(&f->a.core.inbox.pool, info.offset), 0);
	assert_int_equal(core_pool_free(&f->a.core.inbox.pool, info.offset), -ENXIO);
	assert_int_equal(reply(&f->b, &f->a, 5), -EBADSLT);
}

static void s15_6_the_replier_dies(void **state)
{
	struct fixture *f = *state;
	struct kdbus_msg_info info;
	struct core_reply *slot;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	for (int read = 0; read < 2; read++) {
		assert_int_equal(call_sync(&f->a, &f->b, 5, U64_MAX, &slot), 0);
		if (read)
			take(&f->b);
		host_close(&f->b);
		assert_true(core_reply_settled(slot));
		assert_int_equal(core_send_collect(&f->a.core, slot, NULL, NULL, &info), -EPIPE);
		assert_nothing(&f->a);
		join(f, &f->b, 0, NULL);
	}
	/* BYEBYE of the replier after it received the request */
	assert_int_equal(call_sync(&f->a, &f->b, 5, U64_MAX, &slot), 0);
	take(&f->b);
	assert_int_equal(core_conn_byebye(&f->b.core), 0);
	assert_int_equal(core_send_collect(&f->a.core, slot, NULL, NULL, &info), -EPIPE);
}

static void s7_8_the_caller_gives_up(void **state)
{
	struct fixture *f = *state;
	struct core_reply *slot;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	assert_int_equal(call_sync(&f->a, &f->b, 5, 100, &slot), 0);
	core_send_give_up(&f->a.core, slot);
	assert_int_equal(reply(&f->b, &f->a, 5), -EBADSLT);
	/* also with the reply at hand, and by disconnecting */
	assert_int_equal(call_sync(&f->a, &f->b, 6, 100, &slot), 0);
	assert_int_equal(reply(&f->b, &f->a, 6), 0);
	core_send_give_up(&f->a.core, slot);
	assert_int_equal(call_sync(&f->a, &f->b, 7, 100, &slot), 0);
	assert_int_equal(reply(&f->b, &f->a, 7), 0);
	host_close(&f->a);
}

static void s15_6_sync_byebye_of_the_caller(void **state)
{
	struct fixture *f = *state;
	struct core_reply *slot;
	u64 a;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	a = f->a.core.id;
	assert_int_equal(call_sync(&f->a, &f->b, 5, 100, &slot), 0);
	f->a.wakes = 0;
	assert_int_equal(core_conn_byebye(&f->a.core), 0);
	assert_true(f->a.wakes > 0);
	assert_false(core_conn_alive(&f->a.core));
	assert_message(&f->b, a, 5);
	assert_int_equal(reply(&f->b, &f->a, 5), -ENXIO);
}

static void s15_5_a_reply_with_fds_to_a_caller_without(void **state)
{
	struct fixture *f = *state;
	struct host_msg msg = { .n_fds = 1, .word = 5 };
	struct kdbus_msg_info info;
	struct core_reply *slot;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	assert_int_equal(call_sync(&f->a, &f->b, 5, 100, &slot), 0);
	msg.dst_id = f->a.core.id;
	assert_int_equal(host_send(&f->b, &msg, NULL), -ECOMM);
	assert_int_equal(core_send_collect(&f->a.core, slot, NULL, NULL, &info), -EREMOTEIO);
	assert_int_equal(call_sync(&f->a, &f->b, 5, 100, &slot), 0);
	f->host.fail = -EFAULT;
	assert_int_equal(reply(&f->b, &f->a, 5), -EFAULT);
	assert_int_equal(core_send_collect(&f->a.core, slot, NULL, NULL, &info), -EFAULT);
	assert_int_equal(call_sync(&f->a, &f->b, 5, 100, &slot), 0);
	assert_int_equal(reply(&f->b, &f->a, 5), 0);
	assert_int_equal(core_send_collect(&f->a.core, slot, refuse, NULL, &info), -ENOMEM);
	assert_int_equal(core_quota_get(&f->a.core.inbox.quota, f->b.core.user->number).msgs, 0);
}

/* §17.1 row 6: the reply comes between signal and restart; the request is sent once. */
static void s17_1_row_6_an_interrupted_call_is_resumed(void **state)
{
	struct fixture *f = *state;
	struct core_reply *slot, *again;
	struct kdbus_msg_info info;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	assert_int_equal(call_sync(&f->a, &f->b, 5, 100, &slot), 0);
	core_reply_interrupt(slot);
	assert_message(&f->b, f->a.core.id, 5);
	assert_int_equal(reply(&f->b, &f->a, 5), 0);
	f->host.now = 200;
	assert_int_equal(call_sync(&f->a, &f->b, 5, 100, &again), 0);
	assert_ptr_equal(again, slot);
	assert_nothing(&f->b);
	assert_int_equal(core_send_collect(&f->a.core, slot, NULL, NULL, &info), 0);
	/* one that nobody comes back for is reaped, with its reply */
	f->host.now = 50;
	assert_int_equal(call_sync(&f->a, &f->b, 6, 100, &slot), 0);
	core_reply_interrupt(slot);
	assert_int_equal(reply(&f->b, &f->a, 6), 0);
	assert_int_equal(core_bus_expire(&f->host.bus.deadlines, 100), U64_MAX);
	assert_nothing(&f->a);
	assert_int_equal(core_quota_get(&f->a.core.inbox.quota, f->b.core.user->number).msgs, 0);
}

static void s7_10_messages_carry_their_priority(void **state)
{
	struct fixture *f = *state;
	struct core_received received;
	const struct kdbus_msg *msg;
	struct host_msg out = { 0 };

	join(f, &f->a, 0, NULL);
	out.dst_id = f->a.core.id;
	for (int i = 3; i; i--) {
		out.priority = -i * 10;
		assert_int_equal(host_send(&f->a, &out, NULL), 0);
	}
	assert_int_equal(host_recv(&f->a, KDBUS_RECV_USE_PRIORITY, -40, &received, &msg), -EAGAIN);
	assert_int_equal(received.offset, 65536);
	assert_int_equal(host_recv(&f->a, KDBUS_RECV_USE_PRIORITY, -10, &received, &msg), 0);
	assert_int_equal(msg->priority, -30);
	assert_int_equal(take(&f->a)->priority, -20);
}

/* Defect 16: an outcome that finds the share of the bus used up. */
static void s17_1_row_16_a_lost_outcome_is_counted(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	assert_int_equal(call(&f->a, &f->b, 1, 10), 0);
	f->host.fail = -ENOMEM;
	core_bus_expire(&f->host.bus.deadlines, 10);
	assert_lost(&f->a, 1);
	assert_int_equal(call(&f->a, &f->b, 2, U64_MAX), 0);
	f->host.fail = -ENOMEM;
	host_close(&f->b);
	assert_lost(&f->a, 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		on_bus(s7_4_by_id),
		on_bus(s7_4_by_name),
		on_bus(s7_4_no_auto_start),
		on_bus(s7_5_existence_comes_before_permission),
		on_bus(s15_8_policy_ns),
		on_bus(s9_2_the_current_credentials_decide),
		on_bus(s7_5_the_limit_on_calls_comes_before_the_queue),
		on_bus(s15_5_fds_to_who_does_not_accept_them),
		on_bus(s7_5_a_call_that_fails_leaves_no_slot),
		on_bus(s7_7_reply),
		on_bus(s7_7_an_open_slot_is_the_permission),
		on_bus(s7_7_a_reply_that_does_not_fit_consumes_the_slot),
		on_bus(s15_5_timeout),
		on_bus(s7_10_dropping_a_call_is_its_outcome),
		on_bus(s7_10_peek_then_receive),
		on_bus(s6_15_descriptors_that_cannot_be_installed_leave_all_as_it_was),
		on_bus(s15_5_broadcast_reaches_the_sender_too),
		on_bus(s15_4_match_bloom),
		on_bus(s7_6_a_unicast_signal_needs_a_match),
		on_bus(s15_8_broadcast_defaults),
		on_bus(s7_9_a_broadcast_that_does_not_fit_is_counted),
		on_bus(s15_4_monitor),
		on_bus(s1_2_each_message_takes_a_sequence_number),
		on_bus(s15_5_quota_of_the_bus_itself),
		on_bus(s15_5_quota_of_the_pool),
		on_bus(s15_5_quota_of_messages),
		on_bus(s15_5_quota_of_descriptors),
		on_bus(s7_10_messages_carry_their_priority),
		on_bus(s17_1_row_16_a_lost_outcome_is_counted),
		on_bus(s15_6_sync_reply),
		on_bus(s15_6_the_replier_dies),
		on_bus(s7_8_the_caller_gives_up),
		on_bus(s15_6_sync_byebye_of_the_caller),
		on_bus(s15_5_a_reply_with_fds_to_a_caller_without),
		on_bus(s17_1_row_6_an_interrupted_call_is_resumed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
