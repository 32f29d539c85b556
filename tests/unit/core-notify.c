// SPDX-License-Identifier: LGPL-2.1-or-later
/* Notifications, and what custom endpoints hide (spec §12, §9.2, §15.2, §15.4). */
#include "core-bus-fixture.h"

#define NAME "com.example.a"

static void match_id(struct host_conn *conn, u64 flags, u64 type, u64 id)
{
	const struct kdbus_notify_id_change rule = { .id = id };

	add_match(conn, 1, flags, type, &rule, sizeof(rule));
}

static void match_name(struct host_conn *conn, u64 type, const char *name)
{
	char rule[64] = { 0 };
	const struct kdbus_notify_name_change any = {
		.old_id.id = KDBUS_MATCH_ID_ANY,
		.new_id.id = KDBUS_MATCH_ID_ANY,
	};

	memcpy(rule, &any, 32);
	memcpy(rule + 32, name, strlen(name) + 1);
	add_match(conn, 1, 0, type, rule, 32 + strlen(name) + 1);
}

static void s15_4_match_id_add(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	match_id(&f->a, 0, KDBUS_ITEM_ID_ADD, KDBUS_MATCH_ID_ANY);
	join(f, &f->b, KDBUS_HELLO_ACCEPT_FD, NULL);
	assert_notice(&f->a, KDBUS_ITEM_ID_ADD, f->b.core.id);
	host_close(&f->b);
	assert_nothing(&f->a);
}

static void s12_id_notifications_carry_the_hello_flags(void **state)
{
	struct fixture *f = *state;
	const struct kdbus_notify_id_change *change;

	join(f, &f->a, 0, NULL);
	match_all(&f->a);
	join(f, &f->b, KDBUS_HELLO_ACCEPT_FD, NULL);
	change = core_item_payload(take(&f->a)->items);
	assert_int_equal(change->flags, KDBUS_HELLO_ACCEPT_FD);
}

static void s15_4_match_id_remove(void **state)
{
	struct fixture *f = *state;
	u64 b;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, 0, NULL);
	b = f->b.core.id;
	match_id(&f->a, 0, KDBUS_ITEM_ID_REMOVE, b);
	host_close(&f->c);
	host_close(&f->b);
	assert_notice(&f->a, KDBUS_ITEM_ID_REMOVE, b);
	assert_nothing(&f->a);
}

static void s15_4_match_replace(void **state)
{
	struct fixture *f = *state;
	u64 b;

	join(f, &f->a, 0, NULL);
	match_id(&f->a, 0, KDBUS_ITEM_ID_ADD, KDBUS_MATCH_ID_ANY);
	match_id(&f->a, KDBUS_MATCH_REPLACE, KDBUS_ITEM_ID_REMOVE, KDBUS_MATCH_ID_ANY);
	join(f, &f->b, 0, NULL);
	b = f->b.core.id;
	assert_nothing(&f->a);
	host_close(&f->b);
	assert_notice(&f->a, KDBUS_ITEM_ID_REMOVE, b);
}

static void s15_4_match_name_add_and_remove(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	match_name(&f->a, KDBUS_ITEM_NAME_ADD, NAME);
	match_name(&f->a, KDBUS_ITEM_NAME_REMOVE, NAME);
	acquire(&f->a, NAME, 0);
	assert_name_notice(&f->a, KDBUS_ITEM_NAME_ADD, 0, 0, f->a.core.id, KDBUS_NAME_PRIMARY,
			   NAME);
	acquire(&f->a, "com.example.b", 0);
	assert_int_equal(core_conn_release(&f->a.core, NAME), 0);
	assert_name_notice(&f->a, KDBUS_ITEM_NAME_REMOVE, f->a.core.id, KDBUS_NAME_PRIMARY, 0, 0,
			   NAME);
	assert_nothing(&f->a);
}

static void s15_4_match_name_change(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	match_name(&f->a, KDBUS_ITEM_NAME_CHANGE, NAME);
	acquire(&f->a, NAME, 0);
	acquire(&f->b, NAME, KDBUS_NAME_QUEUE);
	assert_int_equal(core_conn_release(&f->a.core, NAME), 0);
	assert_name_notice(&f->a, KDBUS_ITEM_NAME_CHANGE, f->a.core.id, KDBUS_NAME_PRIMARY,
			   f->b.core.id, KDBUS_NAME_PRIMARY | KDBUS_NAME_QUEUE, NAME);
	assert_nothing(&f->a);
}

/* Let c look for these owners while NAME goes from a to b, then from b to nobody. */
static void change_is_seen(struct fixture *f, u64 old_id, u64 new_id, bool seen)
{
	const struct kdbus_notify_name_change owners = {
		.old_id.id = old_id,
		.new_id.id = new_id,
	};

	acquire(&f->a, NAME, 0);
	acquire(&f->b, NAME, KDBUS_NAME_QUEUE);
	add_match(&f->c, 1, KDBUS_MATCH_REPLACE, KDBUS_ITEM_NAME_CHANGE, &owners, 32);
	assert_int_equal(core_conn_release(&f->a.core, NAME), 0);
	if (seen)
		assert_name_notice(&f->c, KDBUS_ITEM_NAME_CHANGE, f->a.core.id, KDBUS_NAME_PRIMARY,
				   f->b.core.id, KDBUS_NAME_PRIMARY | KDBUS_NAME_QUEUE, NAME);
	assert_int_equal(core_conn_release(&f->b.core, NAME), 0);
	assert_nothing(&f->c);
}

static void s11_a_name_rule_may_tell_the_owners(void **state)
{
	const u64 any = KDBUS_MATCH_ID_ANY;
	struct fixture *f = *state;
	u64 a, b;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, 0, NULL);
	a = f->a.core.id;
	b = f->b.core.id;
	change_is_seen(f, any, any, true);
	change_is_seen(f, a, any, true);
	change_is_seen(f, any, b, true);
	change_is_seen(f, a, b, true);
	change_is_seen(f, b, any, false);
	change_is_seen(f, any, a, false);
	change_is_seen(f, b, a, false);
	change_is_seen(f, 0, any, false);
	change_is_seen(f, any, 0, false);
}

/* The sequence number in the TIMESTAMP item, which is the second. */
static u64 seq_of(const struct kdbus_msg *msg)
{
	const struct kdbus_item *item = core_item_next(msg->items);

	assert_int_equal(item->type, KDBUS_ITEM_TIMESTAMP);
	return ((const struct kdbus_timestamp *)core_item_payload(item))->seqnum;
}

static void s12_all_receivers_see_one_message_with_one_number(void **state)
{
	struct fixture *f = *state;
	u64 seq;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, KDBUS_HELLO_MONITOR, NULL);
	match_all(&f->a);
	match_all(&f->b);
	acquire(&f->b, NAME, 0);
	seq = seq_of(take(&f->a));
	assert_int_equal(seq_of(take(&f->b)), seq);
	assert_int_equal(seq_of(take(&f->c)), seq);
	assert_int_equal(f->host.bus.seq, seq);
}

static void s12_an_outcome_for_nobody_is_told_nobody(void **state)
{
	struct fixture *f = *state;
	u64 a;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	a = f->a.core.id;
	assert_int_equal(call(&f->a, &f->b, 1, U64_MAX), 0);
	assert_int_equal(call(&f->a, &f->a, 2, U64_MAX), 0);
	join(f, &f->c, KDBUS_HELLO_MONITOR, NULL);
	host_close(&f->a);
	assert_int_equal(take(&f->c)->items->type, KDBUS_ITEM_ID_REMOVE);
	assert_message(&f->b, a, 1);
	host_close(&f->b);
	assert_int_equal(take(&f->c)->items->type, KDBUS_ITEM_ID_REMOVE);
	assert_nothing(&f->c);
}

static void s7_10_lost_notifications_are_counted(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	match_all(&f->a);
	f->host.fail = -EXFULL;
	join(f, &f->b, 0, NULL);
	assert_true(core_inbox_readable(&f->a.core.inbox));
	assert_lost(&f->a, 1);
}

struct custom {
	struct core_endpoint ep;
	struct host_hello hello;
};

static void make_endpoint(struct fixture *f, struct custom *custom)
{
	memset(custom, 0, sizeof(*custom));
	custom->hello.ep = &custom->ep;
	assert_int_equal(core_endpoint_make(&f->host.bus, &custom->ep, "1000-foo", 0), 0);
}

/* One name, one entry for everybody. */
static void set_policy(struct core_endpoint *ep, const char *name, u64 access)
{
	const struct kdbus_policy_access world = {
		.type = KDBUS_POLICY_ACCESS_WORLD,
		.access = access,
	};
	u64 buf[64];
	struct core_writer w = CORE_WRITER(buf, sizeof(buf));
	struct core_policy_set *set;
	size_t size;

	core_put_str(&w, KDBUS_ITEM_NAME, name);
	core_put(&w, KDBUS_ITEM_POLICY_ACCESS, &world, sizeof(world));
	assert_int_equal(core_writer_end(&w, &size), 0);
	assert_int_equal(core_policy_parse((struct kdbus_item *)buf, size, 0, NULL, NULL, &set), 0);
	assert_int_equal(core_endpoint_update(ep, set), 0);
}

static int info(struct host_conn *asker, u64 id, const char *name)
{
	const struct core_info_query query = { .id = id, .name = name };
	struct core_conn *conn;

	return core_info_find(&asker->core, NULL, &query, &conn);
}

static void s15_2_endpoint(void **state)
{
	struct fixture *f = *state;
	struct custom custom;

	make_endpoint(f, &custom);
	assert_int_equal(host_connect(&f->host, &f->a, &custom.hello), 0);
	match_id(&f->a, 0, KDBUS_ITEM_ID_ADD, KDBUS_MATCH_ID_ANY);
	match_name(&f->a, KDBUS_ITEM_NAME_ADD, NAME);
	assert_int_equal(host_connect(&f->host, &f->b, &custom.hello), 0);
	assert_notice(&f->a, KDBUS_ITEM_ID_ADD, f->b.core.id);
	match_name(&f->b, KDBUS_ITEM_NAME_ADD, NAME);
	join(f, &f->c, 0, NULL);
	assert_notice(&f->a, KDBUS_ITEM_ID_ADD, f->c.core.id);
	acquire(&f->c, NAME, 0);
	assert_nothing(&f->a);
	assert_int_equal(info(&f->a, 0, NAME), -ESRCH);
	assert_int_equal(info(&f->a, 0, "no.such"), -ESRCH);
	assert_int_equal(info(&f->a, f->c.core.id, NULL), -ENXIO);
	assert_int_equal(info(&f->a, f->a.core.id, NULL), -ENXIO);
	assert_int_equal(info(&f->a, 999, NULL), -ENXIO);
	set_policy(&custom.ep, NAME, KDBUS_POLICY_SEE);
	assert_int_equal(core_conn_release(&f->c.core, NAME), 0);
	acquire(&f->c, NAME, 0);
	assert_name_notice(&f->a, KDBUS_ITEM_NAME_ADD, 0, 0, f->c.core.id, KDBUS_NAME_PRIMARY,
			   NAME);
	assert_name_notice(&f->b, KDBUS_ITEM_NAME_ADD, 0, 0, f->c.core.id, KDBUS_NAME_PRIMARY,
			   NAME);
	assert_int_equal(info(&f->a, 0, NAME), 0);
	assert_int_equal(info(&f->a, f->c.core.id, NULL), 0);
	core_endpoint_teardown(&custom.ep);
}

static void s9_2_a_custom_endpoint_restricts_talking_and_owning(void **state)
{
	struct fixture *f = *state;
	struct custom custom;
	u64 flags;

	make_endpoint(f, &custom);
	assert_int_equal(host_connect(&f->host, &f->a, &custom.hello), 0);
	join(f, &f->b, 0, NULL);
	acquire(&f->b, NAME, 0);
	assert_int_equal(send_id(&f->a, &f->b, 1), -EPERM);
	set_policy(&custom.ep, NAME, KDBUS_POLICY_TALK);
	/* the same real uid is enough on the bus itself */
	assert_int_equal(send_id(&f->a, &f->b, 1), 0);
	assert_int_equal(core_conn_acquire(&f->a.core, NULL, NAME, 0, &flags), -EPERM);
	set_policy(&custom.ep, "com.example.*", KDBUS_POLICY_OWN);
	/* and yet it is no owner of the bus */
	assert_int_equal(core_conn_acquire(&f->a.core, NULL, "com.example.x", 0, &flags), -EPERM);
	core_endpoint_teardown(&custom.ep);
}

/* What is listed: pairs of id and name flags, ~0 for a record without a name. */
struct listing {
	u64 id[16], flags[16];
	size_t n;
};

static void remember(void *data, const struct core_listed *record)
{
	struct listing *l = data;

	assert_in_range(l->n, 0, 15);
	l->id[l->n] = record->id;
	l->flags[l->n++] = record->name ? record->name_flags : U64_MAX;
}

static void assert_listing(struct host_conn *asker, u64 flags, size_t n, const u64 *want)
{
	struct listing l = { .n = 0 };

	core_list(&asker->core, NULL, flags, remember, &l);
	assert_int_equal(l.n, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(l.id[i], want[2 * i]);
		assert_int_equal(l.flags[i], want[2 * i + 1]);
	}
}

static void s10_8_list(void **state)
{
	struct fixture *f = *state;
	u64 a, b, c;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, KDBUS_HELLO_ACTIVATOR, "com.example.act");
	join(f, &f->c, 0, NULL);
	join(f, &f->d, KDBUS_HELLO_MONITOR, NULL);
	a = f->a.core.id;
	b = f->b.core.id;
	c = f->c.core.id;
	acquire(&f->a, NAME, 0);
	acquire(&f->c, NAME, KDBUS_NAME_QUEUE);
	assert_listing(&f->d, 0, 0, NULL);
	assert_listing(&f->d, KDBUS_LIST_UNIQUE, 3,
		       (u64[]){ a, U64_MAX, b, U64_MAX, c, U64_MAX });
	assert_listing(&f->d, KDBUS_LIST_NAMES, 1, (u64[]){ a, KDBUS_NAME_PRIMARY });
	assert_listing(&f->d, KDBUS_LIST_QUEUED, 1,
		       (u64[]){ c, KDBUS_NAME_QUEUE | KDBUS_NAME_IN_QUEUE });
	assert_listing(&f->d, KDBUS_LIST_ACTIVATORS, 1,
		       (u64[]){ b, KDBUS_NAME_ACTIVATOR | KDBUS_NAME_PRIMARY });
	acquire(&f->c, "com.example.act", 0);
	assert_listing(&f->d, KDBUS_LIST_ACTIVATORS, 1,
		       (u64[]){ b, KDBUS_NAME_ACTIVATOR | KDBUS_NAME_IN_QUEUE });
	assert_listing(&f->d, KDBUS_LIST_UNIQUE | KDBUS_LIST_NAMES, 3,
		       (u64[]){ a, KDBUS_NAME_PRIMARY, b, U64_MAX, c, KDBUS_NAME_PRIMARY });
}

static void s10_8_what_may_not_be_seen_is_left_out(void **state)
{
	struct fixture *f = *state;
	struct custom custom;

	make_endpoint(f, &custom);
	assert_int_equal(host_connect(&f->host, &f->a, &custom.hello), 0);
	join(f, &f->b, 0, NULL);
	acquire(&f->b, NAME, 0);
	assert_listing(&f->a, KDBUS_LIST_NAMES, 0, NULL);
	assert_listing(&f->a, KDBUS_LIST_UNIQUE | KDBUS_LIST_NAMES, 1,
		       (u64[]){ f->a.core.id, U64_MAX });
	assert_listing(&f->a, KDBUS_LIST_UNIQUE, 2,
		       (u64[]){ f->a.core.id, U64_MAX, f->b.core.id, U64_MAX });
	core_endpoint_teardown(&custom.ep);
}

static void s10_8_a_listing_is_packed_records(void **state)
{
	struct fixture *f = *state;
	struct kdbus_info *info;
	u64 buf[32];

	join(f, &f->a, 0, NULL);
	join(f, &f->b, KDBUS_HELLO_ACCEPT_FD, NULL);
	acquire(&f->a, NAME, 0);
	assert_int_equal(core_list_size(&f->a.core, NULL, KDBUS_LIST_UNIQUE | KDBUS_LIST_NAMES),
			 64 + 24);
	assert_int_equal(core_list_write(&f->a.core, NULL, KDBUS_LIST_UNIQUE | KDBUS_LIST_NAMES,
					 buf, 64 + 16), -EMSGSIZE);
	assert_int_equal(core_list_write(&f->a.core, NULL, KDBUS_LIST_UNIQUE | KDBUS_LIST_NAMES,
					 buf, sizeof(buf)), 0);
	info = (struct kdbus_info *)buf;
	assert_int_equal(info->size, 64);
	assert_int_equal(info->id, f->a.core.id);
	info = (struct kdbus_info *)(buf + 8);
	assert_int_equal(info->size, 24);
	assert_int_equal(info->id, f->b.core.id);
	assert_int_equal(info->flags, KDBUS_HELLO_ACCEPT_FD);
	assert_int_equal(core_list_size(&f->a.core, NULL, KDBUS_LIST_QUEUED), 0);
}

static void s6_8_conn_info(void **state)
{
	struct fixture *f = *state;

	join(f, &f->a, 0, NULL);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, KDBUS_HELLO_POLICY_HOLDER, "com.example.c");
	acquire(&f->a, NAME, KDBUS_NAME_QUEUE);
	acquire(&f->b, NAME, KDBUS_NAME_QUEUE);
	assert_int_equal(info(&f->a, f->b.core.id, NULL), 0);
	assert_int_equal(info(&f->a, f->c.core.id, NULL), 0);
	assert_int_equal(info(&f->b, 0, NAME), 0);
	assert_int_equal(info(&f->b, f->a.core.id, NAME), 0);
	assert_int_equal(info(&f->b, f->b.core.id, NAME), -ESRCH);
	assert_int_equal(info(&f->b, 0, "not a name"), -ESRCH);
	assert_int_equal(info(&f->b, 999, NULL), -ENXIO);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		on_bus(s15_4_match_id_add),
		on_bus(s12_id_notifications_carry_the_hello_flags),
		on_bus(s15_4_match_id_remove),
		on_bus(s15_4_match_replace),
		on_bus(s15_4_match_name_add_and_remove),
		on_bus(s15_4_match_name_change),
		on_bus(s11_a_name_rule_may_tell_the_owners),
		on_bus(s12_all_receivers_see_one_message_with_one_number),
		on_bus(s12_an_outcome_for_nobody_is_told_nobody),
		on_bus(s7_10_lost_notifications_are_counted),
		on_bus(s15_2_endpoint),
		on_bus(s9_2_a_custom_endpoint_restricts_talking_and_owning),
		on_bus(s10_8_list),
		on_bus(s10_8_what_may_not_be_seen_is_left_out),
		on_bus(s10_8_a_listing_is_packed_records),
		on_bus(s6_8_conn_info),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
