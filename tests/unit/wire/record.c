// SPDX-License-Identifier: LGPL-2.1-or-later
/* Notifications, answers and listings: spec §12, §6.8, §6.9, §10.8, §6.4, Appendix B.3, B.4. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record.h"

static char buf[1024] __attribute__((aligned(8)));
static const struct kdbus_timestamp stamp = { 101, 102, 103 };
static const char zero[8];

static const struct kdbus_msg *notify(const struct core_notice *notice)
{
	const struct kdbus_msg *msg = (void *)buf;
	size_t size = core_notice_size(notice);

	memset(buf, 0x5a, sizeof(buf));
	assert_int_equal(size % 8, 0);
	assert_int_equal(core_notice_write(notice, &stamp, buf, size - 1), -EMSGSIZE);
	memset(buf, 0x5a, sizeof(buf));
	assert_int_equal(core_notice_write(notice, &stamp, buf, size), 0);
	assert_int_equal(buf[size], 0x5a);
	assert_int_equal(msg->size, size);
	assert_int_equal(core_items_check(buf + 64, msg->size - 64), 0);
	/* §12: the common header */
	assert_int_equal(msg->src_id, 0);
	assert_int_equal(msg->payload_type, 0);
	assert_int_equal(msg->cookie, 0);
	assert_int_equal(msg->priority, 0);
	return msg;
}

/* The notification item is the first, TIMESTAMP follows unconditionally and is the last. */
static void expect_items(const struct kdbus_msg *msg, u64 type, u64 size)
{
	const struct kdbus_item *item = (void *)(buf + 64);

	assert_int_equal(item->type, type);
	assert_int_equal(item->size, size);
	item = core_item_next(item);
	assert_int_equal(item->type, KDBUS_ITEM_TIMESTAMP);
	assert_memory_equal(&item->timestamp, &stamp, sizeof(stamp));
	assert_ptr_equal(core_item_next(item), buf + msg->size);
}

/* §12 row 1 */
static void id_notifications_carry_id_and_hello_flags(void **state)
{
	struct core_notice notice = { .new_id = { 9, KDBUS_HELLO_ACTIVATOR } };
	const struct kdbus_item *item = (void *)(buf + 64);
	const struct kdbus_msg *msg;

	for (notice.type = KDBUS_ITEM_ID_ADD; notice.type <= KDBUS_ITEM_ID_REMOVE; notice.type++) {
		msg = notify(&notice);
		expect_items(msg, notice.type, 32);
		assert_int_equal(msg->size, 136);
		assert_int_equal(msg->dst_id, ~0ULL);
		assert_int_equal(msg->flags, KDBUS_MSG_SIGNAL);
		assert_int_equal(msg->cookie_reply, 0);
		assert_int_equal(item->id_change.id, 9);
		assert_int_equal(item->id_change.flags, KDBUS_HELLO_ACTIVATOR);
	}
}

/* §12 rows 2 to 4 */
static void name_notifications_carry_both_owners_and_the_name(void **state)
{
	struct core_notice notice = {
		.old_id = { 3, 0x21 },
		.new_id = { 4, 0x22 },
		.name = "x.yz",
	};
	const struct kdbus_item *item = (void *)(buf + 64);
	const struct kdbus_msg *msg;

	for (notice.type = KDBUS_ITEM_NAME_ADD; notice.type <= KDBUS_ITEM_NAME_CHANGE;
	     notice.type++) {
		msg = notify(&notice);
		expect_items(msg, notice.type, 16 + 32 + 5);
		assert_int_equal(msg->dst_id, ~0ULL);
		assert_int_equal(msg->flags, KDBUS_MSG_SIGNAL);
		assert_int_equal(item->name_change.old_id.id, 3);
		assert_int_equal(item->name_change.old_id.flags, 0x21);
		assert_int_equal(item->name_change.new_id.id, 4);
		assert_int_equal(item->name_change.new_id.flags, 0x22);
		assert_string_equal(item->name_change.name, "x.yz");
		assert_memory_equal(buf + 64 + 53, zero, 3);
	}
}

/* Appendix B.3 */
static void the_worked_notification_is_as_specified(void **state)
{
	struct core_notice notice = { .type = KDBUS_ITEM_NAME_ADD, .new_id = { 2, 0x20 },
				      .name = "a.b" };

	assert_int_equal(notify(&notice)->size, 160);
	assert_int_equal(((struct kdbus_item *)(buf + 64))->size, 52);
	assert_int_equal(((struct kdbus_item *)(buf + 120))->type, KDBUS_ITEM_TIMESTAMP);
	assert_memory_equal(buf + 64 + 52, zero, 4);
}

/* §12 rows 5 and 6 [DOC≠]: directed, no flags, cookie of the request */
static void reply_notifications_are_directed(void **state)
{
	struct core_notice notice = { .dst_id = 6, .cookie_reply = 0xc00c1e };
	const struct kdbus_msg *msg;

	for (notice.type = KDBUS_ITEM_REPLY_TIMEOUT; notice.type <= KDBUS_ITEM_REPLY_DEAD;
	     notice.type++) {
		assert_true(core_notice_is_reply(&notice));
		msg = notify(&notice);
		expect_items(msg, notice.type, 16);
		assert_int_equal(msg->size, 120);
		assert_int_equal(msg->dst_id, 6);
		assert_int_equal(msg->flags, 0);
		assert_int_equal(msg->cookie_reply, 0xc00c1e);
	}
	notice.type = KDBUS_ITEM_ID_ADD;
	assert_false(core_notice_is_reply(&notice));
}

static const struct kdbus_info *inform(const struct core_info *info)
{
	const struct kdbus_info *record = (void *)buf;
	size_t size = core_info_size(info);

	assert_int_equal(size % 8, 0);
	assert_int_equal(core_info_write(info, buf, size - 1), -EMSGSIZE);
	memset(buf, 0x5a, sizeof(buf));
	assert_int_equal(core_info_write(info, buf, size), 0);
	assert_int_equal(buf[size], 0x5a);
	assert_int_equal(record->size, size);
	assert_int_equal(core_items_check(buf + 24, size - 24), 0);
	return record;
}

/* §6.0 kdbus_info, §6.8 */
static void conn_info_is_a_record_with_metadata(void **state)
{
	struct core_meta meta = { .have = KDBUS_ATTACH_CREDS | KDBUS_ATTACH_CONN_DESCRIPTION,
				  .description = "me" };
	struct core_info info = { .id = 8, .flags = KDBUS_HELLO_ACCEPT_FD, .meta = &meta,
				  .mask = _KDBUS_ATTACH_ALL };
	const struct kdbus_info *record = inform(&info);

	assert_int_equal(record->size, 24 + 80 + 24);
	assert_int_equal(record->id, 8);
	assert_int_equal(record->flags, KDBUS_HELLO_ACCEPT_FD);
	assert_int_equal(((struct kdbus_item *)(buf + 24))->type, KDBUS_ITEM_CREDS);
	assert_int_equal(((struct kdbus_item *)(buf + 104))->type, KDBUS_ITEM_CONN_DESCRIPTION);
	assert_memory_equal(buf + 104 + 19, zero, 5);
	/* §15.7: mask 0 */
	info.mask = 0;
	assert_int_equal(inform(&info)->size, 24);
}

/* §6.9: MAKE_NAME first */
static void creator_info_begins_with_the_name_of_the_bus(void **state)
{
	struct core_meta meta = { .have = KDBUS_ATTACH_PIDS };
	struct core_info info = { .id = 1, .flags = 2, .bus_name = "1000-demo", .meta = &meta,
				  .mask = KDBUS_ATTACH_PIDS };
	const struct kdbus_item *item = (void *)(buf + 24);
	const struct kdbus_info *record = inform(&info);

	assert_int_equal(record->size, 24 + 32 + 40);
	assert_int_equal(item->type, KDBUS_ITEM_MAKE_NAME);
	assert_string_equal(item->str, "1000-demo");
	assert_int_equal(core_item_next(item)->type, KDBUS_ITEM_PIDS);
}

static const struct kdbus_info *list(const struct core_listed *listed)
{
	const struct kdbus_info *record = (void *)buf;
	size_t size = core_listed_size(listed);

	assert_int_equal(core_listed_write(listed, buf, size - 1), -EMSGSIZE);
	memset(buf, 0x5a, sizeof(buf));
	assert_int_equal(core_listed_write(listed, buf, size), 0);
	assert_int_equal(buf[size], 0x5a);
	assert_int_equal(record->size, size);
	return record;
}

/* Appendix B.4 */
static void the_worked_list_record_is_as_specified(void **state)
{
	struct core_listed listed = { 4, 1, "com.example.a", KDBUS_NAME_PRIMARY };
	const struct kdbus_item *item = (void *)(buf + 24);
	const struct kdbus_info *record = list(&listed);

	assert_int_equal(record->size, 64);
	assert_int_equal(record->id, 4);
	assert_int_equal(record->flags, 1);
	assert_int_equal(item->size, 38);
	assert_int_equal(item->type, KDBUS_ITEM_OWNED_NAME);
	assert_int_equal(item->name.flags, KDBUS_NAME_PRIMARY);
	assert_string_equal(item->name.name, "com.example.a");
	assert_memory_equal(buf + 24 + 38, zero, 2);
}

/* §10.8 step 2: a record without items */
static void a_connection_is_listed_without_items(void **state)
{
	struct core_listed listed = { 4, 1, NULL, 0x5a };

	assert_int_equal(list(&listed)->size, 24);
}

/* §6.4: exactly one BLOOM_PARAMETER item, 32 bytes, no enclosing struct */
static void hello_returns_the_bloom_parameters(void **state)
{
	struct kdbus_bloom_parameter bloom = { 64, 1 };
	const struct kdbus_item *item = (void *)buf;

	assert_int_equal(CORE_HELLO_ITEMS_SIZE, 32);
	assert_int_equal(core_hello_items_write(&bloom, buf, 31), -EMSGSIZE);
	assert_int_equal(core_hello_items_write(&bloom, buf, 32), 0);
	assert_int_equal(item->size, 32);
	assert_int_equal(item->type, KDBUS_ITEM_BLOOM_PARAMETER);
	assert_int_equal(item->bloom_parameter.size, 64);
	assert_int_equal(item->bloom_parameter.n_hash, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(id_notifications_carry_id_and_hello_flags),
		cmocka_unit_test(name_notifications_carry_both_owners_and_the_name),
		cmocka_unit_test(the_worked_notification_is_as_specified),
		cmocka_unit_test(reply_notifications_are_directed),
		cmocka_unit_test(conn_info_is_a_record_with_metadata),
		cmocka_unit_test(creator_info_begins_with_the_name_of_the_bus),
		cmocka_unit_test(the_worked_list_record_is_as_specified),
		cmocka_unit_test(a_connection_is_listed_without_items),
		cmocka_unit_test(hello_returns_the_bloom_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
