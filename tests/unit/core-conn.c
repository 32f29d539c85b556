// SPDX-License-Identifier: LGPL-2.1-or-later
/* Life of a connection (spec §1.6, §1.8, §6.4 to §6.6, §15.2, §15.8). */
#include "core-bus-fixture.h"

#define NAME "com.example.a"

static int hello_holder(struct fixture *f, struct host_conn *conn, u64 flags, const char *name)
{
	u64 buf[64];
	struct core_writer w = CORE_WRITER(buf, sizeof(buf));
	struct host_hello hello = { .flags = flags, .name = name };

	core_put_str(&w, KDBUS_ITEM_NAME, name);
	assert_int_equal(core_writer_end(&w, &hello.policy_size), 0);
	hello.policy = (struct kdbus_item *)buf;
	return host_connect(&f->host, conn, &hello);
}

static int update_policy(struct host_conn *conn, const char *name)
{
	const struct core_update update = { .set_policy = true };
	u64 buf[64];
	struct core_writer w = CORE_WRITER(buf, sizeof(buf));
	struct core_policy_set *set;
	size_t size;
	int r;

	core_put_str(&w, KDBUS_ITEM_NAME, name);
	assert_int_equal(core_writer_end(&w, &size), 0);
	r = core_policy_parse((struct kdbus_item *)buf, size, CORE_POLICY_ONE_NAME, NULL, NULL,
			      &set);
	if (r)
		return r;
	r = core_conn_update(&conn->core, &update, set);
	if (r)
		core_policy_set_free(set);
	return r;
}

static void s6_4_a_pool_size_that_cannot_be(void **state)
{
	struct fixture *f = *state;
	const struct host_hello hello = { .pool_size = 4097 };

	assert_int_equal(host_connect(&f->host, &f->a, &hello), -EINVAL);
	assert_int_equal(f->host.domain.last_id, f->host.bus.id);
}

static void s1_8_hello_of_an_ordinary_connection(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	match_all(&f->a);
	join(f, &f->b, 0, NULL);
	assert_notice(&f->a, KDBUS_ITEM_ID_ADD, f->b.core.id);
	assert_nothing(&f->a);
}

static void s12_hello_of_an_activator_when_the_name_is_free(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	match_all(&f->a);
	join(f, &f->b, KDBUS_HELLO_ACTIVATOR, NAME);
	assert_notice(&f->a, KDBUS_ITEM_ID_ADD, f->b.core.id);
	assert_name_notice(&f->a, KDBUS_ITEM_NAME_ADD, 0, 0, f->b.core.id,
			   KDBUS_NAME_ACTIVATOR | KDBUS_NAME_PRIMARY, NAME);
	assert_nothing(&f->a);
}

static void s10_5_an_activator_of_an_owned_name_is_silent(void **state)
{
	struct fixture *f = *state;
	u64 activator;

	join(f, &f->a, 0, NULL);
	acquire(&f->a, NAME, 0);
	match_all(&f->a);
	join(f, &f->b, KDBUS_HELLO_ACTIVATOR, NAME);
	activator = f->b.core.id;
	assert_notice(&f->a, KDBUS_ITEM_ID_ADD, f->b.core.id);
	assert_nothing(&f->a);
	assert_int_equal(core_name_holder_find(&f->b.core.names, NAME)->flags,
			 KDBUS_NAME_ACTIVATOR | KDBUS_NAME_IN_QUEUE);
	host_close(&f->b);
	assert_notice(&f->a, KDBUS_ITEM_ID_REMOVE, activator);
	assert_nothing(&f->a);
}

static void s6_4_a_failed_hello_was_seen_by_nobody(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, KDBUS_HELLO_ACTIVATOR, NAME);
	join(f, &f->b, KDBUS_HELLO_POLICY_HOLDER, "com.example.b");
	join(f, &f->c, 0, NULL);
	match_all(&f->c);
	join(f, &f->d, KDBUS_HELLO_MONITOR, NULL);
	assert_int_equal(hello_holder(f, &f->many[0], KDBUS_HELLO_ACTIVATOR, NAME), -EEXIST);
	assert_int_equal(hello_holder(f, &f->many[0], KDBUS_HELLO_ACTIVATOR, "com.example.b"),
			 -EEXIST);
	assert_null(core_names_find(&f->host.bus.names, "com.example.b"));
	assert_int_equal(hello_holder(f, &f->many[0], KDBUS_HELLO_POLICY_HOLDER, NAME), -EEXIST);
	assert_int_equal(hello_holder(f, &f->many[0], KDBUS_HELLO_POLICY_HOLDER, "example"),
			 -EINVAL);
	assert_int_equal(hello_holder(f, &f->many[0], KDBUS_HELLO_ACTIVATOR, "com.example.*"),
			 -EINVAL);
	assert_nothing(&f->c);
	assert_nothing(&f->d);
	assert_int_equal(f->a.core.user->n_conns, 4);
}

/* The text has it after the limits and after EEXIST; see doc/compat.md. */
static void s6_4_malformed_policy_is_found_first(void **state)
{
	struct fixture *f = *state;
	const struct kdbus_policy_access bad = { .type = 9 };
	u64 buf[64], last;
	struct core_writer w = CORE_WRITER(buf, sizeof(buf));
	struct host_hello hello = {
		.flags = KDBUS_HELLO_ACTIVATOR,
		.name = NAME,
		.policy = (struct kdbus_item *)buf,
	};

	core_put_str(&w, KDBUS_ITEM_NAME, NAME);
	core_put(&w, KDBUS_ITEM_POLICY_ACCESS, &bad, sizeof(bad));
	assert_int_equal(core_writer_end(&w, &hello.policy_size), 0);
	join(f, &f->a, KDBUS_HELLO_ACTIVATOR, NAME);
	last = f->host.domain.last_id;
	assert_int_equal(host_connect(&f->host, &f->b, &hello), -EINVAL);
	assert_int_equal(f->host.domain.last_id, last);
	hello.policy_size -= CORE_ITEM_SPACE(sizeof(bad));
	assert_int_equal(host_connect(&f->host, &f->b, &hello), -EEXIST);
}

static void s13_a_monitor_comes_and_goes_unnoticed(void **state)
{
	struct fixture *f = *state;
	struct core_info_query query = { 0 };
	struct core_conn *found;

	join(f, &f->a, 0, NULL);
	match_all(&f->a);
	join(f, &f->b, KDBUS_HELLO_MONITOR, NULL);
	query.id = f->b.core.id;
	assert_int_equal(core_list_size(&f->a.core, NULL, KDBUS_LIST_UNIQUE), 24);
	assert_int_equal(send_id(&f->a, &f->b, 1), -ENXIO);
	assert_int_equal(core_info_find(&f->a.core, NULL, &query, &found), 0);
	assert_ptr_equal(found, &f->b.core);
	host_close(&f->b);
	assert_nothing(&f->a);
}

static void s1_6_special_kinds_are_not_addressable_by_id(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, KDBUS_HELLO_ACTIVATOR, NAME);
	join(f, &f->c, KDBUS_HELLO_POLICY_HOLDER, "com.example.b");
	assert_int_equal(send_id(&f->a, &f->b, 1), -ENXIO);
	assert_int_equal(send_id(&f->a, &f->c, 1), -ENXIO);
	assert_int_equal(send_name(&f->a, NAME, 1), 0);
}

static void s9_1_who_owns_the_bus(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join_as(f, &f->b, 65534);
	assert_true(f->a.core.bus_owner);
	assert_false(f->a.core.privileged);
	assert_false(f->b.core.bus_owner);
}

static void s15_2_byebye(void **state)
{
	struct fixture *f = *state;
	u64 b;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	b = f->b.core.id;
	match_all(&f->a);
	match_all(&f->b);
	assert_int_equal(broadcast(&f->a, 1), 0);
	assert_int_equal(core_conn_byebye(&f->b.core), -EBUSY);
	assert_true(core_conn_alive(&f->b.core));
	assert_message(&f->b, f->a.core.id, 1);
	assert_int_equal(core_conn_byebye(&f->b.core), 0);
	assert_int_equal(core_conn_byebye(&f->b.core), -ECONNRESET);
	assert_message(&f->a, f->a.core.id, 1);
	assert_notice(&f->a, KDBUS_ITEM_ID_REMOVE, b);
}

static void s6_6_a_peeked_message_is_still_there(void **state)
{
	struct fixture *f = *state;
	struct core_received received;
	const struct kdbus_msg *msg;

	join(f, &f->a, 0, NULL);
	assert_int_equal(send_id(&f->a, &f->a, 1), 0);
	assert_int_equal(host_recv(&f->a, KDBUS_RECV_PEEK, 0, &received, &msg), 0);
	assert_int_equal(core_conn_byebye(&f->a.core), -EBUSY);
}

static void s1_8_everything_is_refused_by_the_dead(void **state)
{
	struct fixture *f = *state;
	struct core_received received;
	const struct kdbus_msg *msg;
	u64 flags;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	assert_int_equal(send_id(&f->b, &f->b, 1), 0);
	assert_int_equal(host_recv(&f->b, 0, 0, &received, &msg), 0);
	core_conn_disconnect(&f->b.core);
	core_conn_disconnect(&f->b.core);
	assert_int_equal(send_id(&f->b, &f->a, 1), -ECONNRESET);
	assert_int_equal(core_conn_acquire(&f->b.core, NULL, NAME, 0, &flags), -ECONNRESET);
	assert_int_equal(core_conn_release(&f->b.core, NAME), -ECONNRESET);
	assert_int_equal(core_conn_byebye(&f->b.core), -ECONNRESET);
	assert_int_equal(send_id(&f->a, &f->b, 1), -ENXIO);
	/* a published slice outlives the connection */
	assert_int_equal(host_free(&f->b, msg), 0);
	assert_int_equal(host_recv(&f->b, 0, 0, &received, &msg), -ECONNRESET);
}

static void s1_8_the_order_of_a_disconnect(void **state)
{
	struct fixture *f = *state;
	u64 b;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, 0, NULL);
	b = f->b.core.id;
	acquire(&f->b, "org.example.y", 0);
	acquire(&f->b, "org.example.x", KDBUS_NAME_QUEUE);
	acquire(&f->c, "org.example.x", KDBUS_NAME_QUEUE);
	match_all(&f->a);
	assert_int_equal(call(&f->a, &f->b, 1, U64_MAX), 0);
	assert_int_equal(call(&f->a, &f->b, 2, U64_MAX), 0);
	assert_message(&f->b, f->a.core.id, 1);
	host_close(&f->b);
	/* step 6, in the order of acquisition */
	assert_name_notice(&f->a, KDBUS_ITEM_NAME_REMOVE, b, KDBUS_NAME_PRIMARY, 0, 0,
			   "org.example.y");
	assert_name_notice(&f->a, KDBUS_ITEM_NAME_CHANGE, b, KDBUS_NAME_PRIMARY | KDBUS_NAME_QUEUE,
			   f->c.core.id, KDBUS_NAME_PRIMARY | KDBUS_NAME_QUEUE, "org.example.x");
	/* step 7: what was queued; step 9: what was received; each once */
	assert_notice(&f->a, KDBUS_ITEM_REPLY_DEAD, 2);
	assert_notice(&f->a, KDBUS_ITEM_REPLY_DEAD, 1);
	/* step 10 */
	assert_notice(&f->a, KDBUS_ITEM_ID_REMOVE, b);
	assert_nothing(&f->a);
}

static void s12_close_of_a_service_with_an_activator(void **state)
{
	struct fixture *f = *state;
	u64 service;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, KDBUS_HELLO_ACTIVATOR, NAME);
	join(f, &f->c, 0, NULL);
	service = f->c.core.id;
	acquire(&f->c, NAME, 0);
	match_all(&f->a);
	assert_int_equal(call(&f->a, &f->c, 5, U64_MAX), 0);
	host_close(&f->c);
	assert_name_notice(&f->a, KDBUS_ITEM_NAME_CHANGE, service, KDBUS_NAME_PRIMARY,
			   f->b.core.id, KDBUS_NAME_ACTIVATOR | KDBUS_NAME_PRIMARY, NAME);
	assert_notice(&f->a, KDBUS_ITEM_REPLY_DEAD, 5);
	assert_notice(&f->a, KDBUS_ITEM_ID_REMOVE, service);
	assert_nothing(&f->a);
}

static void s1_8_policy_ends_with_its_holder(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, KDBUS_HELLO_POLICY_HOLDER, NAME);
	host_close(&f->a);
	join(f, &f->a, KDBUS_HELLO_POLICY_HOLDER, NAME);
}

static void s15_8_policy(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(hello_holder(f, &f->c, KDBUS_HELLO_POLICY_HOLDER, ".example.a"), -EINVAL);
	assert_int_equal(hello_holder(f, &f->c, KDBUS_HELLO_POLICY_HOLDER, "example"), -EINVAL);
	join(f, &f->a, KDBUS_HELLO_POLICY_HOLDER, "com.example.a");
	join(f, &f->b, KDBUS_HELLO_POLICY_HOLDER, "com.example.b");
	assert_int_equal(update_policy(&f->a, "com.example.a"), 0);
	assert_int_equal(update_policy(&f->b, "com.example.a"), -EEXIST);
	assert_int_equal(update_policy(&f->b, "com.example.a.*"), 0);
	assert_int_equal(update_policy(&f->a, "com.example.a.*"), -EEXIST);
	assert_int_equal(update_policy(&f->a, "com.example.*"), 0);
	assert_int_equal(update_policy(&f->b, "com.example.a"), 0);
	assert_int_equal(update_policy(&f->b, "com.example.*"), -EEXIST);
	assert_int_equal(update_policy(&f->b, ".example.*"), -EINVAL);
	assert_int_equal(update_policy(&f->b, "example"), -EINVAL);
}

static void s15_4_monitor_update_of_the_mask(void **state)
{
	struct fixture *f = *state;
	struct core_update update = { .set_recv = true };
	size_t with, without;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, KDBUS_HELLO_MONITOR, NULL);
	assert_int_equal(send_id(&f->a, &f->a, 1), 0);
	with = take(&f->b)->size;
	assert_int_equal(core_conn_update(&f->b.core, &update, NULL), 0);
	assert_int_equal(send_id(&f->a, &f->a, 1), 0);
	without = take(&f->b)->size;
	assert_int_equal(with - without, 40);
	update = (struct core_update){ .set_send = true, .attach_send = 5 };
	assert_int_equal(core_conn_update(&f->b.core, &update, NULL), 0);
	assert_int_equal(f->b.core.attach_send, 5);
	assert_int_equal(f->b.core.attach_recv, 0);
}

static void s6_11_permission_is_tested_before_the_name(void **state)
{
	struct fixture *f = *state;
	u64 flags;

	join(f, &f->a, 0, NULL);
	join_as(f, &f->b, 65534);
	acquire(&f->a, NAME, 0);
	assert_int_equal(core_conn_acquire(&f->b.core, NULL, NAME, 0, &flags), -EPERM);
	assert_int_equal(core_conn_acquire(&f->b.core, NULL, "no.such", 0, &flags), -EPERM);
}

static void s15_3_chat_and_name_conflict(void **state)
{
	struct fixture *f = *state;
	u64 flags = 0;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	assert_int_equal(acquire(&f->a, NAME, 0), KDBUS_NAME_PRIMARY | KDBUS_NAME_ACQUIRED);
	assert_int_equal(acquire(&f->a, NAME, 0), KDBUS_NAME_PRIMARY);
	assert_int_equal(core_conn_acquire(&f->b.core, NULL, NAME,
					   KDBUS_NAME_ALLOW_REPLACEMENT, &flags), -EEXIST);
	assert_int_equal(flags, KDBUS_NAME_ALLOW_REPLACEMENT);
	assert_int_equal(core_conn_release(&f->b.core, NAME), -EADDRINUSE);
	assert_int_equal(core_conn_release(&f->a.core, NAME), 0);
	assert_int_equal(core_conn_release(&f->a.core, NAME), -ESRCH);
	assert_int_equal(core_conn_release(&f->a.core, "."), -ESRCH);
}

static void destructors_take_anything(void **state)
{
	struct core_conn conn;

	core_conn_deinit(NULL);
	memset(&conn, 0, sizeof(conn));
	core_conn_deinit(&conn);
	core_domain_deinit(NULL);
	core_users_deinit(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		on_bus(s6_4_a_pool_size_that_cannot_be),
		on_bus(s1_8_hello_of_an_ordinary_connection),
		on_bus(s12_hello_of_an_activator_when_the_name_is_free),
		on_bus(s10_5_an_activator_of_an_owned_name_is_silent),
		on_bus(s6_4_a_failed_hello_was_seen_by_nobody),
		on_bus(s6_4_malformed_policy_is_found_first),
		on_bus(s13_a_monitor_comes_and_goes_unnoticed),
		on_bus(s1_6_special_kinds_are_not_addressable_by_id),
		on_bus(s9_1_who_owns_the_bus),
		on_bus(s15_2_byebye),
		on_bus(s6_6_a_peeked_message_is_still_there),
		on_bus(s1_8_everything_is_refused_by_the_dead),
		on_bus(s1_8_the_order_of_a_disconnect),
		on_bus(s12_close_of_a_service_with_an_activator),
		on_bus(s1_8_policy_ends_with_its_holder),
		on_bus(s15_8_policy),
		on_bus(s15_4_monitor_update_of_the_mask),
		on_bus(s6_11_permission_is_tested_before_the_name),
		on_bus(s15_3_chat_and_name_conflict),
		cmocka_unit_test(destructors_take_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
