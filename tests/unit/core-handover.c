// SPDX-License-Identifier: LGPL-2.1-or-later
/* What moves with a name (spec §10.6, §15.3, §15.5). */
#include "core-bus-fixture.h"

#define NAME "com.example.a"

static void s15_3_a_message_to_an_activator_is_received_by_the_service(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, KDBUS_HELLO_ACTIVATOR, NAME);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, 0, NULL);
	f->a.wakes = 0;
	assert_int_equal(send_name(&f->b, NAME, 1), 0);
	assert_int_equal(f->a.wakes, 1);
	assert_true(core_inbox_readable(&f->a.core.inbox));
	f->c.wakes = 0;
	acquire(&f->c, NAME, KDBUS_NAME_REPLACE_EXISTING);
	assert_int_equal(f->c.wakes, 1);
	assert_nothing(&f->a);
	assert_message(&f->c, f->b.core.id, 1);
}

static void s15_3_activator_and_permission(void **state)
{
	struct fixture *f = *state;
	u64 flags;

	join(f, &f->a, KDBUS_HELLO_ACTIVATOR, NAME);
	join_as(f, &f->b, 65534);
	assert_int_equal(send_id(&f->b, &f->a, 1), -ENXIO);
	assert_int_equal(send_name(&f->b, NAME, 1), -EPERM);
	assert_nothing(&f->a);
	assert_int_equal(core_conn_acquire(&f->b.core, NULL, NAME, 0, &flags), -EPERM);
	join(f, &f->c, 0, NULL);
	acquire(&f->c, NAME, 0);
	assert_int_equal(core_conn_acquire(&f->b.core, NULL, NAME, 0, &flags), -EPERM);
	assert_int_equal(send_name(&f->b, NAME, 1), -EPERM);
	host_close(&f->a);
	assert_int_equal(send_name(&f->b, NAME, 1), -EPERM);
	assert_nothing(&f->c);
	assert_int_equal(send_name(&f->c, NAME, 2), 0);
	assert_message(&f->c, f->c.core.id, 2);
}

static void s10_6_messages_move_in_order_and_others_stay(void **state)
{
	struct fixture *f = *state;
	struct core_received received;
	const struct kdbus_msg *msg;

	join(f, &f->a, KDBUS_HELLO_ACTIVATOR, NAME);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, 0, NULL);
	assert_int_equal(send_id(&f->b, &f->c, 10), 0);
	for (u64 i = 1; i < 4; i++) {
		const struct host_msg out = { .name = NAME, .cookie = i, .priority = -(s64)i };

		assert_int_equal(host_send(&f->b, &out, NULL), 0);
	}
	acquire(&f->c, NAME, 0);
	assert_int_equal(send_id(&f->b, &f->c, 11), 0);
	assert_int_equal(send_name(&f->b, NAME, 4), 0);
	/* back to the activator: not those by id */
	assert_int_equal(core_conn_release(&f->c.core, NAME), 0);
	assert_message(&f->c, f->b.core.id, 10);
	assert_message(&f->c, f->b.core.id, 11);
	assert_nothing(&f->c);
	assert_int_equal(host_recv(&f->a, KDBUS_RECV_USE_PRIORITY, -3, &received, &msg), 0);
	assert_int_equal(msg->cookie, 3);
	assert_int_equal(msg->src_id, f->b.core.id);
	assert_message(&f->a, f->b.core.id, 1);
	assert_message(&f->a, f->b.core.id, 2);
	assert_message(&f->a, f->b.core.id, 4);
}

static void s10_6_a_received_message_is_not_handed_over(void **state)
{
	struct fixture *f = *state;
	struct core_received received;
	const struct kdbus_msg *msg;

	join(f, &f->a, KDBUS_HELLO_ACTIVATOR, NAME);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, 0, NULL);
	assert_int_equal(send_name(&f->b, NAME, 1), 0);
	assert_int_equal(send_name(&f->b, NAME, 2), 0);
	assert_int_equal(host_recv(&f->a, 0, 0, &received, &msg), 0);
	assert_int_equal(host_recv(&f->a, KDBUS_RECV_PEEK, 0, &received, &msg), 0);
	acquire(&f->c, NAME, 0);
	/* the peeked one moved; its slice stays with who peeked */
	assert_message(&f->c, f->b.core.id, 2);
	assert_nothing(&f->c);
	assert_int_equal(msg->cookie, 2);
	assert_int_equal(host_free(&f->a, msg), 0);
}

static void s10_6_the_charge_moves_with_the_message(void **state)
{
	struct fixture *f = *state;
	struct core_charge at_a, at_c;
	u32 user;

	join(f, &f->a, KDBUS_HELLO_ACTIVATOR, NAME);
	join_as(f, &f->b, 1000);
	join(f, &f->c, 0, NULL);
	user = f->b.core.user->number;
	assert_int_equal(send_name(&f->b, NAME, 1), 0);
	at_a = core_quota_get(&f->a.core.inbox.quota, user);
	acquire(&f->c, NAME, 0);
	at_c = core_quota_get(&f->c.core.inbox.quota, user);
	assert_int_equal(at_a.memory, at_c.memory);
	assert_int_equal(at_c.msgs, 1);
	assert_int_equal(core_quota_get(&f->a.core.inbox.quota, user).msgs, 0);
	assert_int_equal(f->a.core.inbox.pool.accounted, 0);
}

static void s10_6_answers_are_expected_of_the_new_owner(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, KDBUS_HELLO_ACTIVATOR, NAME);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, 0, NULL);
	assert_int_equal(call_name(&f->b, NAME, 1), 0);
	assert_int_equal(call_name(&f->b, NAME, 2), 0);
	assert_message(&f->a, f->b.core.id, 1);
	acquire(&f->c, NAME, 0);
	assert_message(&f->c, f->b.core.id, 2);
	assert_int_equal(reply(&f->c, &f->b, 1), 0);
	assert_int_equal(reply(&f->c, &f->b, 2), 0);
	assert_int_equal(take(&f->b)->cookie_reply, 1);
	assert_int_equal(take(&f->b)->cookie_reply, 2);
	host_close(&f->a);
	assert_nothing(&f->b);
}

/* §17.1 row 14: somebody calls a name and then takes it himself. */
static void s17_1_row_14_ones_own_call_moves_too(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, KDBUS_HELLO_ACTIVATOR, NAME);
	join(f, &f->b, 0, NULL);
	assert_int_equal(call_name(&f->b, NAME, 1), 0);
	acquire(&f->b, NAME, 0);
	assert_message(&f->b, f->b.core.id, 1);
	assert_int_equal(reply(&f->b, &f->b, 1), 0);
	assert_int_equal(take(&f->b)->cookie_reply, 1);
}

/* §17.1 row 14: what does not fit is reported, not left to time out. */
static void s17_1_row_14_a_call_lost_on_the_way_is_dead(void **state)
{
	struct fixture *f = *state;
	struct host_msg msg = {
		.name = NAME, .flags = KDBUS_MSG_EXPECT_REPLY, .cookie = 1, .word = U64_MAX,
		.n_fds = 1,
	};
	struct kdbus_msg_info info;
	struct core_reply *slot;

	join(f, &f->a, KDBUS_HELLO_ACTIVATOR | KDBUS_HELLO_ACCEPT_FD, NAME);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, 0, NULL);
	assert_int_equal(host_send(&f->b, &msg, NULL), 0);
	msg.sync = true;
	msg.cookie = 2;
	assert_int_equal(host_send(&f->b, &msg, &slot), 0);
	assert_int_equal(call_name(&f->b, NAME, 3), 0);
	acquire(&f->c, NAME, 0);
	assert_notice(&f->b, KDBUS_ITEM_REPLY_DEAD, 1);
	assert_true(core_reply_settled(slot));
	assert_int_equal(core_send_collect(&f->b.core, slot, NULL, NULL, &info), -EPIPE);
	assert_nothing(&f->b);
	assert_int_equal(core_inbox_report_lost(&f->c.core.inbox), 2);
	assert_message(&f->c, f->b.core.id, 3);
	assert_nothing(&f->c);
}

static void s15_5_quota_of_an_activator(void **state)
{
	struct fixture *f = *state;
	struct core_received received;
	const struct kdbus_msg *msg;
	u64 queued = 0, moved = 0, gone = 0;
	int r;

	join(f, &f->a, KDBUS_HELLO_ACTIVATOR, NAME);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, 0, NULL);
	while (!(r = send_name(&f->b, NAME, queued)))
		queued++;
	assert_int_equal(r, -ENOBUFS);
	assert_true(queued < CORE_CONN_MAX_MSGS);
	assert_int_equal(send_name(&f->c, NAME, 0), -ENOBUFS);
	assert_int_equal(send_id(&f->c, &f->a, 0), -ENXIO);
	assert_int_equal(broadcast(&f->b, 0), 0);
	/* a nearly full queue takes some of them */
	while (!(r = send_id(&f->b, &f->c, 1000)))
		;
	assert_int_equal(r, -ENOBUFS);
	for (int i = 0; i < 10; i++)
		take(&f->c);
	acquire(&f->c, NAME, 0);
	while (!host_recv(&f->c, 0, 0, &received, &msg)) {
		if (received.dropped)
			gone = received.dropped;
		moved += msg->cookie != 1000;
		assert_int_equal(host_free(&f->c, msg), 0);
	}
	assert_in_range(moved, 1, 10);
	assert_int_equal(gone, queued - moved);
	assert_lost(&f->a, 0);
}

static void s10_6_an_owner_with_an_activator_behind(void **state)
{
	struct fixture *f = *state;
	u64 b;

	join(f, &f->a, KDBUS_HELLO_ACTIVATOR, NAME);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, 0, NULL);
	b = f->b.core.id;
	acquire(&f->c, NAME, 0);
	assert_int_equal(call_name(&f->b, NAME, 1), 0);
	assert_int_equal(call_name(&f->b, NAME, 2), 0);
	take(&f->c);
	/* the queued one is saved by the activator; the received one too, as a slot */
	host_close(&f->c);
	assert_nothing(&f->b);
	assert_message(&f->a, b, 2);
	join(f, &f->c, 0, NULL);
	acquire(&f->c, NAME, 0);
	assert_int_equal(reply(&f->c, &f->b, 1), 0);
	assert_int_equal(reply(&f->c, &f->b, 2), 0);
}

static void s10_7_messages_do_not_follow_a_forgotten_name(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	acquire(&f->a, NAME, 0);
	assert_int_equal(send_name(&f->b, NAME, 1), 0);
	assert_int_equal(core_conn_release(&f->a.core, NAME), 0);
	acquire(&f->a, NAME, 0);
	join(f, &f->c, KDBUS_HELLO_ACTIVATOR, NAME);
	assert_int_equal(core_conn_release(&f->a.core, NAME), 0);
	assert_message(&f->a, f->b.core.id, 1);
	assert_nothing(&f->c);
}

static void s10_3_row_4_nothing_moves_between_ordinary_owners(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	acquire(&f->a, NAME, KDBUS_NAME_ALLOW_REPLACEMENT);
	assert_int_equal(call_name(&f->b, NAME, 1), 0);
	acquire(&f->b, NAME, KDBUS_NAME_REPLACE_EXISTING);
	assert_nothing(&f->b);
	assert_message(&f->a, f->b.core.id, 1);
	assert_int_equal(reply(&f->a, &f->b, 1), 0);
}

static void s10_6_a_taken_over_message_comes_before_the_notification(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, KDBUS_HELLO_ACTIVATOR, NAME);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, 0, NULL);
	match_all(&f->c);
	assert_int_equal(send_name(&f->b, NAME, 1), 0);
	acquire(&f->c, NAME, 0);
	assert_message(&f->c, f->b.core.id, 1);
	assert_name_notice(&f->c, KDBUS_ITEM_NAME_CHANGE, f->a.core.id,
			   KDBUS_NAME_ACTIVATOR | KDBUS_NAME_PRIMARY, f->c.core.id,
			   KDBUS_NAME_PRIMARY, NAME);
}

/* --- a receiver with a sink of the host's --- */

static int delivered, adopted, lost, refuse_with;

static int sink_deliver(struct core_conn *to, const struct core_parcel *parcel,
			struct core_reply *slot)
{
	delivered++;
	return refuse_with;
}

static int sink_adopt(struct core_conn *to, struct core_conn *from, struct core_entry *entry)
{
	adopted++;
	return refuse_with;
}

static void sink_lose(struct core_conn *to)
{
	lost++;
}

static bool sink_busy(const struct core_conn *conn)
{
	return delivered;
}

static void a_sink_takes_the_place_of_the_inbox(void **state)
{
	static const struct core_sink sink = { sink_deliver, sink_adopt, sink_lose, sink_busy };
	struct fixture *f = *state;
	const struct core_hello hello = { .attach_recv = 0 };
	struct core_opener opener = { .uid = 1000, .cred.euid = 1000 };
	const struct core_connect connect = {
		.hello = &hello, .opener = &opener, .sink = &sink,
		.deadlines = &f->host.bus.deadlines,
	};
	struct host_conn own = { .wakes = 0 };

	delivered = adopted = lost = refuse_with = 0;
	join(f, &f->a, KDBUS_HELLO_ACTIVATOR, NAME);
	join(f, &f->b, 0, NULL);
	assert_int_equal(core_conn_hello(&own.core, &f->host.bus.def, &connect), 0);
	assert_int_equal(call_name(&f->b, NAME, 1), 0);
	assert_int_equal(call_name(&f->b, NAME, 2), 0);
	acquire(&own, NAME, 0);
	assert_int_equal(adopted, 2);
	assert_nothing(&f->a);
	assert_int_equal(reply(&own, &f->b, 1), 0);
	refuse_with = -ENOBUFS;
	assert_int_equal(call_name(&f->b, NAME, 3), -ENOBUFS);
	match_all(&own);
	assert_int_equal(broadcast(&f->b, 4), 0);
	assert_int_equal(lost, 1);
	assert_int_equal(core_conn_byebye(&own.core), -EBUSY);
	assert_int_equal(take(&f->b)->cookie_reply, 1);
	core_conn_disconnect(&own.core);
	core_conn_deinit(&own.core);
	/* the name goes back to the activator, and the call with it */
	assert_nothing(&f->b);
	host_close(&f->a);
	assert_notice(&f->b, KDBUS_ITEM_REPLY_DEAD, 2);
	assert_int_equal(f->b.core.calls.n, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		on_bus(s15_3_a_message_to_an_activator_is_received_by_the_service),
		on_bus(s15_3_activator_and_permission),
		on_bus(s10_6_messages_move_in_order_and_others_stay),
		on_bus(s10_6_a_received_message_is_not_handed_over),
		on_bus(s10_6_the_charge_moves_with_the_message),
		on_bus(s10_6_answers_are_expected_of_the_new_owner),
		on_bus(s17_1_row_14_ones_own_call_moves_too),
		on_bus(s17_1_row_14_a_call_lost_on_the_way_is_dead),
		on_bus(s15_5_quota_of_an_activator),
		on_bus(s10_6_an_owner_with_an_activator_behind),
		on_bus(s10_7_messages_do_not_follow_a_forgotten_name),
		on_bus(s10_3_row_4_nothing_moves_between_ordinary_owners),
		on_bus(s10_6_a_taken_over_message_comes_before_the_notification),
		on_bus(a_sink_takes_the_place_of_the_inbox),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
