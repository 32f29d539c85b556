// SPDX-License-Identifier: LGPL-2.1-or-later
/* Deliveries that go wrong, and what is left of them (spec §1.5, §7.5, §7.8, §10.6, §12). */
#include "core-bus-fixture.h"

#define NAME "com.example.service"

/* §6.4: masks are taken as given, each for its own direction */
static void s6_4_hello_keeps_both_masks(void **state)
{
	static const struct core_sink sink = { 0 };
	const struct core_hello hello = { .attach_send = 5, .attach_recv = 10 };
	const struct core_opener opener = { .uid = 1000 };
	struct fixture *f = *state;
	struct core_conn conn;

	memset(&conn, 0xa5, sizeof(conn));
	assert_int_equal(core_conn_init(&conn, &f->host.bus.def, &hello, &opener,
					&f->host.bus.deadlines, &sink),
			 0);
	assert_int_equal(conn.attach_send, 5);
	assert_int_equal(conn.attach_recv, 10);
	core_conn_deinit(&conn);
}

/* Steps 5 to 9 of a disconnect that has been begun. */
static void finish_disconnect(struct core_conn *conn)
{
	core_conn_unlink(conn);
	core_conn_release_all(conn);
	core_conn_discard(conn);
	core_conn_drop_calls(conn);
	core_conn_fail_owed(conn);
	core_conn_unaccount(conn);
	conn->state = CORE_CONN_DEAD;
}

/* §7.5: the receiver is still in the tables, but no longer accepts anything */
static void s7_5_a_receiver_that_went_dead_meanwhile(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	assert_int_equal(core_conn_shut(&f->b.core, true), 0);
	assert_int_equal(send_id(&f->a, &f->b, 1), -ECONNRESET);
	assert_int_equal(call(&f->a, &f->b, 2, U64_MAX), -ECONNRESET);
	assert_int_equal(f->a.core.calls.n, 0);
	assert_null(core_replier_first(&f->b.core.owed));
	finish_disconnect(&f->b.core);
	assert_int_equal(send_id(&f->a, &f->b, 3), -ENXIO);
}

/* §1.5, core/user.h invariants 2 and 3 */
static void s1_5_a_queued_message_keeps_its_senders_user_in_use(void **state)
{
	struct fixture *f = *state;
	bool reused = false;
	u32 number;

	join_as(f, &f->a, 2000);
	join(f, &f->b, 0, NULL);
	match_all(&f->b);
	number = f->a.core.user->number;
	assert_int_equal(broadcast(&f->a, 1), 0);
	assert_int_equal(core_match_remove(&f->b.core.matches, 1), 0);
	assert_int_equal(core_quota_get(&f->b.core.inbox.quota, number).msgs, 1);
	host_close(&f->a);
	for (int i = 0; i < 8; i++) {
		join_as(f, &f->many[i], 3000 + i);
		assert_int_not_equal(f->many[i].core.user->number, number);
	}
	take(&f->b);
	assert_int_equal(core_quota_get(&f->b.core.inbox.quota, number).msgs, 0);
	for (int i = 8; i < 16; i++) {
		join_as(f, &f->many[i], 3000 + i);
		reused |= f->many[i].core.user->number == number;
	}
	assert_true(reused);
}

static void match_new_owner(struct host_conn *conn, u64 cookie, u64 id)
{
	const struct kdbus_notify_name_change change = {
		.old_id = { .id = KDBUS_MATCH_ID_ANY },
		.new_id = { .id = id },
	};
	u64 buf[16];
	struct core_writer w = CORE_WRITER(buf, sizeof(buf));
	size_t size;

	core_put(&w, KDBUS_ITEM_NAME_CHANGE, &change, sizeof(change));
	assert_int_equal(core_writer_end(&w, &size), 0);
	assert_int_equal(core_match_add(&conn->core.matches, cookie, KDBUS_MATCH_REPLACE,
					(struct kdbus_item *)buf, size),
			 0);
}

/* §11: the rule asks for the new owner, the notification says who that is */
static void s12_a_name_change_says_who_the_new_owner_is(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, 0, NULL);
	acquire(&f->a, NAME, KDBUS_NAME_QUEUE);
	acquire(&f->b, NAME, KDBUS_NAME_QUEUE);
	match_new_owner(&f->c, 1, f->b.core.id);
	assert_int_equal(core_conn_release(&f->a.core, NAME), 0);
	assert_name_notice(&f->c, KDBUS_ITEM_NAME_CHANGE, f->a.core.id,
			   KDBUS_NAME_PRIMARY | KDBUS_NAME_QUEUE, f->b.core.id,
			   KDBUS_NAME_PRIMARY | KDBUS_NAME_QUEUE, NAME);
	acquire(&f->a, NAME, KDBUS_NAME_QUEUE);
	assert_int_equal(core_conn_release(&f->b.core, NAME), 0);
	assert_nothing(&f->c);
}

/* §7.8: nothing but being woken tells the caller to look */
static void s7_8_the_death_of_the_replier_wakes_the_caller(void **state)
{
	struct kdbus_msg_info info = { .offset = 7 };
	struct fixture *f = *state;
	struct core_reply *slot;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	assert_int_equal(call_sync(&f->a, &f->b, 1, U64_MAX, &slot), 0);
	assert_false(core_reply_settled(slot));
	f->a.wakes = 0;
	host_close(&f->b);
	assert_int_equal(f->a.wakes, 1);
	assert_true(core_reply_settled(slot));
	assert_int_equal(core_send_collect(&f->a.core, slot, NULL, NULL, &info), -EPIPE);
	assert_int_equal(info.offset, 7);
	assert_int_equal(f->a.core.calls.n, 0);
}

static int copy_fails(struct core_conn *from, size_t from_offset, struct core_conn *to,
		      size_t to_offset, size_t bytes)
{
	return -EFAULT;
}

/* §10.6 step 3 */
static void s10_6_a_message_that_cannot_be_copied_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	const struct core_host_ops *ops = f->host.domain.ops;
	struct core_host_ops failing = *ops;

	failing.copy = copy_fails;
	join(f, &f->d, KDBUS_HELLO_ACTIVATOR, NAME);
	join(f, &f->a, 0, NULL);
	join(f, &f->c, 0, NULL);
	assert_int_equal(call_name(&f->a, NAME, 1), 0);
	f->host.domain.ops = &failing;
	acquire(&f->c, NAME, 0);
	f->host.domain.ops = ops;
	assert_int_equal(f->c.core.inbox.pool.accounted, 0);
	assert_int_equal(core_quota_get(&f->c.core.inbox.quota, f->a.core.user->number).msgs, 0);
	assert_lost(&f->c, 1);
	assert_nothing(&f->d);
	assert_notice(&f->a, KDBUS_ITEM_REPLY_DEAD, 1);
	assert_int_equal(f->a.core.calls.n, 0);
}

/* §7.10: without USE_PRIORITY the oldest message comes first, whatever its priority */
static void s7_10_a_plain_receive_does_not_look_at_priorities(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	for (u64 i = 1; i <= 3; i++) {
		const struct host_msg msg = { .dst_id = f->b.core.id, .cookie = i,
					      .priority = i == 2 ? -5 : 5 };

		assert_int_equal(host_send(&f->a, &msg, NULL), 0);
	}
	for (u64 i = 1; i <= 3; i++)
		assert_message(&f->b, f->a.core.id, i);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		on_bus(s6_4_hello_keeps_both_masks),
		on_bus(s7_5_a_receiver_that_went_dead_meanwhile),
		on_bus(s1_5_a_queued_message_keeps_its_senders_user_in_use),
		on_bus(s12_a_name_change_says_who_the_new_owner_is),
		on_bus(s7_8_the_death_of_the_replier_wakes_the_caller),
		on_bus(s7_10_a_plain_receive_does_not_look_at_priorities),
		on_bus(s10_6_a_message_that_cannot_be_copied_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
