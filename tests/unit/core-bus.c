// SPDX-License-Identifier: LGPL-2.1-or-later
/* Domain, buses, endpoints, users (spec §1, §6.1 to §6.3, §15.2). */
#include "core-bus-fixture.h"

static const u8 zeroes[16];

static int make_bus(struct host *host, struct core_bus *bus, const char *name, u32 uid)
{
	const struct core_bus_make make = { .name = name, .bloom = { HOST_BLOOM, 1 } };

	return core_bus_make(&host->domain, bus, &make, uid, uid, zeroes);
}

static void s1_7_buses_and_connections_share_one_counter(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(f->host.bus.id, 1);
	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	assert_int_equal(f->a.core.id, 2);
	assert_int_equal(f->b.core.id, 3);
	host_close(&f->b);
	join(f, &f->b, 0, NULL);
	assert_int_equal(f->b.core.id, 4);
}

static void s1_2_the_id128_is_a_version_4_uuid(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(f->host.bus.id128[6] & 0xf0, 0x40);
	assert_int_equal(f->host.bus.id128[8] & 0xc0, 0x80);
	assert_int_equal(f->host.bus.id128[0], 1);
	assert_int_equal(f->host.bus.id128[15], 16);
}

static void s15_2_bus_make_same_name_on_a_second_handle(void **state)
{
	struct fixture *f = *state;
	struct core_bus bus;

	assert_int_equal(make_bus(&f->host, &bus, "1000-demo", 1), -EEXIST);
	assert_int_equal(make_bus(&f->host, &bus, "1000-other", 1000), 0);
	assert_ptr_equal(core_domain_find(&f->host.domain, "1000-other"), &bus);
	core_bus_teardown(&bus);
	assert_null(core_domain_find(&f->host.domain, "1000-other"));
	assert_int_equal(make_bus(&f->host, &bus, "1000-other", 1000), 0);
	core_bus_teardown(&bus);
	core_bus_teardown(&bus);
}

static void s1_5_at_most_16_buses_of_a_user(void **state)
{
	struct fixture *f = *state;
	struct core_bus buses[CORE_USER_MAX_BUSES], extra;
	char name[32];

	for (int i = 0; i < CORE_USER_MAX_BUSES - 1; i++) {
		snprintf(name, sizeof(name), "1000-%d", i);
		assert_int_equal(make_bus(&f->host, &buses[i], name, 1000), 0);
	}
	assert_int_equal(make_bus(&f->host, &extra, "1000-extra", 1000), -EMFILE);
	/* that the name is taken is found first */
	assert_int_equal(make_bus(&f->host, &extra, "1000-demo", 1000), -EEXIST);
	assert_int_equal(make_bus(&f->host, &extra, "1000-extra", 1001), 0);
	core_bus_teardown(&extra);
	core_bus_teardown(&buses[0]);
	assert_int_equal(make_bus(&f->host, &extra, "1000-extra", 1000), 0);
	core_bus_teardown(&extra);
	for (int i = 1; i < CORE_USER_MAX_BUSES - 1; i++)
		core_bus_teardown(&buses[i]);
}

static void s1_5_at_most_1024_connections_of_a_user(void **state)
{
	struct fixture *f = *state;
	struct core_user *user;

	join(f, &f->a, 0, NULL);
	user = f->a.core.user;
	for (int i = 1; i < CORE_USER_MAX_CONN; i++)
		assert_int_equal(core_user_add_conn(user), 0);
	assert_int_equal(host_connect(&f->host, &f->b, &(struct host_hello){ 0 }), -EMFILE);
	assert_int_equal(host_connect(&f->host, &f->b, &(struct host_hello){ .uid = 1 }), 0);
	for (int i = 1; i < CORE_USER_MAX_CONN; i++)
		core_user_remove_conn(user);
	assert_int_equal(host_connect(&f->host, &f->c, &(struct host_hello){ 0 }), 0);
}

static void s1_5_a_privileged_connection_is_charged_to_the_faked_uid(void **state)
{
	struct fixture *f = *state;
	const struct core_hello hello = { .pool_size = 65536 };
	struct core_opener opener = { .uid = 7, .cred.euid = 7 };
	struct core_conn conn;
	const u32 fake = 55;

	for (int privileged = 0; privileged < 2; privileged++) {
		opener.cap_ipc_owner = privileged;
		assert_int_equal(core_conn_init(&conn, &f->host.bus.def, &hello, &opener,
						&f->host.bus.deadlines, NULL), 0);
		assert_int_equal(core_conn_account(&conn, &fake), 0);
		assert_int_equal(conn.user->uid, privileged ? 55 : 7);
		core_conn_unaccount(&conn);
		core_conn_unaccount(&conn);
		core_conn_deinit(&conn);
	}
}

/* Faked PIDS or SECLABEL alone move no charge: there is no uid to move it to. */
static void s17_1_row_11_without_faked_credentials_the_opener_is_charged(void **state)
{
	struct fixture *f = *state;
	const struct core_hello hello = { .pool_size = 65536, .fake = true };
	const struct core_opener opener = { .uid = 7, .cred.euid = 7, .cap_ipc_owner = true };
	struct core_conn conn;

	assert_int_equal(core_conn_init(&conn, &f->host.bus.def, &hello, &opener,
					&f->host.bus.deadlines, NULL), 0);
	assert_int_equal(core_conn_account(&conn, NULL), 0);
	assert_int_equal(conn.user->uid, 7);
	core_conn_unaccount(&conn);
	core_conn_deinit(&conn);
}

/* An id may be left unset in faked credentials; that is no user (§8.5). */
static void s8_5_an_unset_faked_uid_moves_no_charge(void **state)
{
	struct fixture *f = *state;
	const struct core_hello hello = { .pool_size = 65536, .fake = true };
	const struct core_opener opener = { .uid = 7, .cred.euid = 7, .cap_ipc_owner = true };
	const u32 unset = 0xffffffff;
	struct core_conn conn;

	assert_int_equal(core_conn_init(&conn, &f->host.bus.def, &hello, &opener,
					&f->host.bus.deadlines, NULL), 0);
	assert_int_equal(core_conn_account(&conn, &unset), 0);
	assert_int_equal(conn.user->uid, 7);
	core_conn_unaccount(&conn);
	core_conn_deinit(&conn);
}

static void s15_2_endpoint_name_in_use(void **state)
{
	struct fixture *f = *state;
	struct core_endpoint ep, other;

	assert_int_equal(core_endpoint_make(&f->host.bus, &ep, "1000-foo", 0), 0);
	assert_int_equal(core_endpoint_make(&f->host.bus, &other, "1000-foo", 0), -EEXIST);
	assert_int_equal(core_endpoint_make(&f->host.bus, &other, "bus", 0), -EEXIST);
	assert_ptr_equal(core_bus_find_endpoint(&f->host.bus, "1000-foo"), &ep);
	assert_ptr_equal(core_bus_find_endpoint(&f->host.bus, "bus"), &f->host.bus.def);
	core_endpoint_teardown(&ep);
	assert_null(core_bus_find_endpoint(&f->host.bus, "1000-foo"));
	assert_int_equal(core_endpoint_make(&f->host.bus, &ep, "1000-foo", 0), 0);
	core_endpoint_teardown(&ep);
	core_endpoint_teardown(&ep);
	assert_int_equal(core_endpoint_update(&ep, NULL), -ESHUTDOWN);
}

static void s1_3_a_custom_endpoint_has_one_anonymous_user(void **state)
{
	struct fixture *f = *state;
	struct core_endpoint ep;
	const struct host_hello hello = { .ep = &ep, .uid = 5 }, hello2 = { .ep = &ep };

	assert_int_equal(core_endpoint_make(&f->host.bus, &ep, "1000-foo", 0), 0);
	assert_int_equal(host_connect(&f->host, &f->a, &hello), 0);
	assert_int_equal(host_connect(&f->host, &f->b, &hello2), 0);
	join(f, &f->c, 0, NULL);
	assert_ptr_equal(f->a.core.user, f->b.core.user);
	assert_ptr_not_equal(f->b.core.user, f->c.core.user);
	assert_int_equal(f->a.core.user->n_conns, 2);
	assert_false(f->b.core.bus_owner);
	assert_true(f->c.core.bus_owner);
	core_endpoint_teardown(&ep);
}

static void s1_9_an_endpoint_ends_with_its_connections_in_order(void **state)
{
	struct fixture *f = *state;
	struct core_endpoint ep;
	const struct host_hello hello = { .ep = &ep };
	u64 a, b;

	assert_int_equal(core_endpoint_make(&f->host.bus, &ep, "1000-foo", 0), 0);
	join(f, &f->c, 0, NULL);
	match_all(&f->c);
	assert_int_equal(host_connect(&f->host, &f->a, &hello), 0);
	assert_int_equal(host_connect(&f->host, &f->b, &hello), 0);
	a = f->a.core.id;
	b = f->b.core.id;
	core_endpoint_teardown(&ep);
	core_endpoint_teardown(&ep);
	core_endpoint_teardown(&(struct core_endpoint){ 0 });
	assert_notice(&f->c, KDBUS_ITEM_ID_ADD, a);
	assert_notice(&f->c, KDBUS_ITEM_ID_ADD, b);
	assert_notice(&f->c, KDBUS_ITEM_ID_REMOVE, a);
	assert_notice(&f->c, KDBUS_ITEM_ID_REMOVE, b);
	assert_nothing(&f->c);
	assert_int_equal(f->a.core.state, CORE_CONN_DEAD);
	assert_int_equal(send_id(&f->a, &f->c, 1), -ECONNRESET);
	assert_int_equal(host_connect(&f->host, &f->d, &hello), -ESHUTDOWN);
}

/* The step looks for itself: a concurrent host may find the endpoint dead only here. */
static void s1_8_nobody_is_linked_to_a_dead_endpoint(void **state)
{
	struct fixture *f = *state;
	const struct core_hello hello = { .pool_size = 65536 };
	const struct core_opener opener = { .uid = 7, .cred.euid = 7 };
	struct core_endpoint ep;
	struct core_conn conn;

	assert_int_equal(core_endpoint_make(&f->host.bus, &ep, "1000-foo", 0), 0);
	assert_int_equal(core_conn_init(&conn, &ep, &hello, &opener, &f->host.bus.deadlines,
					NULL), 0);
	assert_int_equal(core_conn_account(&conn, NULL), 0);
	core_endpoint_teardown(&ep);
	assert_int_equal(core_conn_link(&conn), -ESHUTDOWN);
	assert_int_equal(conn.state, CORE_CONN_NEW);
	assert_null(core_bus_find_conn(&f->host.bus, conn.id));
	core_conn_unaccount(&conn);
	core_conn_deinit(&conn);
}

static void s1_9_a_bus_ends_with_everything_on_it(void **state)
{
	struct fixture *f = *state;
	struct core_endpoint ep, late;

	assert_int_equal(core_endpoint_make(&f->host.bus, &ep, "1000-foo", 0), 0);
	join(f, &f->a, 0, NULL);
	assert_int_equal(host_connect(&f->host, &f->b, &(struct host_hello){ .ep = &ep }), 0);
	join(f, &f->c, KDBUS_HELLO_MONITOR, NULL);
	acquire(&f->a, "org.example.a", 0);
	assert_int_equal(call(&f->a, &f->a, 1, 100), 0);
	core_bus_teardown(&f->host.bus);
	assert_int_equal(f->a.core.state, CORE_CONN_DEAD);
	assert_int_equal(f->b.core.state, CORE_CONN_DEAD);
	assert_int_equal(f->c.core.state, CORE_CONN_DEAD);
	assert_int_equal(core_endpoint_make(&f->host.bus, &late, "1000-l", 0), -ESHUTDOWN);
	assert_int_equal(host_connect(&f->host, &f->d, &(struct host_hello){ 0 }), -ESHUTDOWN);
	assert_true(list_empty(&f->host.domain.all));
}

static void s1_5_numbers_of_users_are_distinct_and_used_again(void **state)
{
	struct core_user *user[8], *again;
	struct core_users users;

	core_users_init(&users);
	for (u32 i = 0; i < 8; i++) {
		assert_int_equal(core_users_get(&users, 100 + i, &user[i]), 0);
		assert_int_equal(core_user_number(user[i]), i + 1);
	}
	assert_int_equal(core_users_get(&users, 103, &again), 0);
	assert_ptr_equal(again, user[3]);
	core_user_unref(again);
	for (u32 i = 0; i < 8; i += 2)
		core_user_unref(user[i]);
	/* those in use keep their numbers, and a number belongs to one of them */
	for (u32 i = 0; i < 64; i++) {
		assert_int_equal(core_users_get(&users, 1000 + i, &again), 0);
		for (u32 j = 1; j < 8; j += 2)
			assert_int_not_equal(core_user_number(again), core_user_number(user[j]));
		core_user_unref(again);
	}
	assert_in_range(users.last_number, 8, 12);
	for (u32 i = 1; i < 8; i += 2)
		core_user_unref(user[i]);
	core_users_deinit(&users);
	assert_int_equal(core_user_number(NULL), 0);
}

/* A user with a queued message is the same user when he comes back. */
static void s1_5_leaving_does_not_clear_the_quota(void **state)
{
	struct fixture *f = *state;
	u32 number;
	int r;

	join(f, &f->a, 0, NULL);
	join_as(f, &f->b, 1000);
	while (!(r = send_id(&f->b, &f->a, 1)))
		;
	assert_int_equal(r, -ENOBUFS);
	number = f->b.core.user->number;
	host_close(&f->b);
	for (u32 i = 0; i < 64; i++) {
		join_as(f, &f->c, 2000 + i);
		assert_int_not_equal(f->c.core.user->number, number);
		host_close(&f->c);
	}
	join_as(f, &f->b, 1000);
	assert_int_equal(f->b.core.user->number, number);
	assert_int_equal(send_id(&f->b, &f->a, 1), -ENOBUFS);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		on_bus(s1_7_buses_and_connections_share_one_counter),
		on_bus(s1_2_the_id128_is_a_version_4_uuid),
		on_bus(s15_2_bus_make_same_name_on_a_second_handle),
		on_bus(s1_5_at_most_16_buses_of_a_user),
		on_bus(s1_5_at_most_1024_connections_of_a_user),
		on_bus(s1_5_a_privileged_connection_is_charged_to_the_faked_uid),
		on_bus(s17_1_row_11_without_faked_credentials_the_opener_is_charged),
		on_bus(s8_5_an_unset_faked_uid_moves_no_charge),
		on_bus(s15_2_endpoint_name_in_use),
		on_bus(s1_3_a_custom_endpoint_has_one_anonymous_user),
		on_bus(s1_9_an_endpoint_ends_with_its_connections_in_order),
		on_bus(s1_8_nobody_is_linked_to_a_dead_endpoint),
		on_bus(s1_9_a_bus_ends_with_everything_on_it),
		on_bus(s1_5_numbers_of_users_are_distinct_and_used_again),
		on_bus(s1_5_leaving_does_not_clear_the_quota),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
