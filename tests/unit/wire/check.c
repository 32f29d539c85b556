// SPDX-License-Identifier: LGPL-2.1-or-later
/* What single commands ask of their arguments: spec §4.9, §6.1 to §6.15, §8.5. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"
#include "wire.h"

static struct wire wire;
static struct core_args args;

static void start(enum core_cmd cmd, u64 flags)
{
	wire_start(&wire, core_cmd_size(cmd), flags);
}

static void *parse(enum core_cmd cmd)
{
	assert_int_equal(core_cmd_parse(cmd, wire_end(&wire), wire.size, &args), 0);
	return wire.buf;
}

/* §4.9: exactly ~0 stands for all bits, other unknown bits are refused */
static void attach_masks_have_14_bits(void **state)
{
	u64 mask = 1;

	assert_int_equal(core_attach_mask(0, &mask), 0);
	assert_int_equal(mask, 0);
	assert_int_equal(core_attach_mask(0x3fff, &mask), 0);
	assert_int_equal(mask, 0x3fff);
	assert_int_equal(core_attach_mask(~0ULL, &mask), 0);
	assert_int_equal(mask, 0x3fff);
	mask = 77;
	/* §15.5 connection-update: S = ALL + 1 */
	assert_int_equal(core_attach_mask(0x4000, &mask), -EINVAL);
	assert_int_equal(core_attach_mask(1ULL << 63, &mask), -EINVAL);
	assert_int_equal(core_attach_mask(~1ULL, &mask), -EINVAL);
	assert_int_equal(mask, 77);
}

static const struct core_maker maker = { .mapped = true, .uid = 1000 };

static struct core_bus_make bus_make;

static int make_bus(const char *name, u64 bloom_size, u64 n_hash, const u64 *mask,
		    const struct core_maker *by)
{
	u64 bloom[2] = { bloom_size, n_hash };

	start(CORE_CMD_BUS_MAKE, KDBUS_MAKE_ACCESS_GROUP);
	wire_str(&wire, KDBUS_ITEM_MAKE_NAME, name);
	wire_item(&wire, KDBUS_ITEM_BLOOM_PARAMETER, bloom, sizeof(bloom));
	if (mask)
		wire_u64(&wire, KDBUS_ITEM_ATTACH_FLAGS_SEND, *mask);
	parse(CORE_CMD_BUS_MAKE);
	return core_check_bus_make(&args, by, &bus_make);
}

/* §6.1 */
static void bus_make_yields_name_bloom_and_mask(void **state)
{
	u64 mask = ~0ULL;

	assert_int_equal(make_bus("1000-demo", 64, 1, &mask, &maker), 0);
	assert_string_equal(bus_make.name, "1000-demo");
	assert_int_equal(bus_make.flags, KDBUS_MAKE_ACCESS_GROUP);
	assert_int_equal(bus_make.bloom.size, 64);
	assert_int_equal(bus_make.bloom.n_hash, 1);
	assert_int_equal(bus_make.creator_mask, 0x3fff);
}

/* §1.2: creator mask defaults to 0 */
static void bus_make_without_a_mask_shows_nothing(void **state)
{
	assert_int_equal(make_bus("1000-demo", 64, 1, NULL, &maker), 0);
	assert_int_equal(bus_make.creator_mask, 0);
}

/* §6.1, §1.1, §15.2 bus-make */
static void bus_make_refuses_bad_parameters(void **state)
{
	struct core_maker nobody = { .mapped = false, .uid = 1000 };
	u64 mask = 0x4000;

	assert_int_equal(make_bus("1000-demo", 4, 1, NULL, &maker), -EINVAL);
	assert_int_equal(make_bus("1000-demo", 4104, 1, NULL, &maker), -EINVAL);
	assert_int_equal(make_bus("1000-demo", 64, 0, NULL, &maker), -EINVAL);
	assert_int_equal(make_bus("1000-demo", 64, 1, &mask, &maker), -EINVAL);
	assert_int_equal(make_bus("foo", 64, 1, NULL, &maker), -EINVAL);
	assert_int_equal(make_bus("1001-demo", 64, 1, NULL, &maker), -EINVAL);
	assert_int_equal(make_bus("1000-demo", 64, 1, NULL, &nobody), -EINVAL);
}

/* §6.2, §15.2 endpoint */
static void endpoint_make_checks_the_prefix(void **state)
{
	struct core_maker nobody = { .mapped = false, .uid = 1000 };
	const char *name = NULL;

	start(CORE_CMD_ENDPOINT_MAKE, 0);
	wire_str(&wire, KDBUS_ITEM_MAKE_NAME, "1001-foo");
	parse(CORE_CMD_ENDPOINT_MAKE);
	assert_int_equal(core_check_endpoint_make(&args, &maker, &name), -EINVAL);
	assert_null(name);
	start(CORE_CMD_ENDPOINT_MAKE, 0);
	wire_str(&wire, KDBUS_ITEM_MAKE_NAME, "1000-foo");
	parse(CORE_CMD_ENDPOINT_MAKE);
	assert_int_equal(core_check_endpoint_make(&args, &nobody, &name), -EINVAL);
	assert_int_equal(core_check_endpoint_make(&args, &maker, &name), 0);
	assert_string_equal(name, "1000-foo");
}

/* A HELLO, described by what its checks look at. */
struct hello {
	u64 flags;
	u64 pool_size;
	u64 send;
	u64 recv;
	const char *name;
	u64 fake; /* item type of a fake, or 0 */
	bool custom;
	bool bus_owner;
};

static struct core_hello hello;

static int say_hello(const struct hello *h)
{
	struct core_hello_facts facts = { 4096, h->custom, h->bus_owner };
	struct kdbus_cmd_hello *cmd;

	start(CORE_CMD_HELLO, h->flags);
	if (h->name)
		wire_str(&wire, KDBUS_ITEM_NAME, h->name);
	if (h->fake == KDBUS_ITEM_CREDS)
		wire_item(&wire, KDBUS_ITEM_CREDS, NULL, 64);
	if (h->fake == KDBUS_ITEM_PIDS)
		wire_item(&wire, KDBUS_ITEM_PIDS, NULL, 24);
	if (h->fake == KDBUS_ITEM_SECLABEL)
		wire_str(&wire, KDBUS_ITEM_SECLABEL, "label");
	wire_str(&wire, KDBUS_ITEM_CONN_DESCRIPTION, "peer");
	cmd = parse(CORE_CMD_HELLO);
	/* What the bus fills in may hold anything before. */
	memset(&cmd->bus_flags, 0xff, 16);
	memset(&cmd->offset, 0xff, 32);
	cmd->pool_size = h->pool_size;
	cmd->attach_flags_send = h->send;
	cmd->attach_flags_recv = h->recv;
	return core_check_hello(cmd, &args, &facts, &hello);
}

static void hello_yields_what_the_connection_is(void **state)
{
	assert_int_equal(say_hello(&(struct hello){ .flags = KDBUS_HELLO_ACCEPT_FD,
						    .pool_size = 8192, .send = ~0ULL, .recv = 3 }),
			 0);
	assert_int_equal(hello.flags, KDBUS_HELLO_ACCEPT_FD);
	assert_int_equal(hello.kind, CORE_KIND_ORDINARY);
	assert_int_equal(hello.pool_size, 8192);
	assert_int_equal(hello.attach_send, 0x3fff);
	assert_int_equal(hello.attach_recv, 3);
	assert_string_equal(hello.description, "peer");
	assert_null(hello.name);
	assert_false(hello.fake);
}

/* §6.4 rows 1 to 4, §15.2 hello */
static void hello_refuses_bad_parameters(void **state)
{
	static const struct hello bad[] = {
		{ .pool_size = 0 },
		{ .pool_size = 4097 },
		{ .pool_size = 2048 },
		{ .pool_size = 4096, .flags = 0x6, .name = "a.b", .bus_owner = true },
		{ .pool_size = 4096, .flags = 0xa, .name = "a.b", .bus_owner = true },
		{ .pool_size = 4096, .flags = 0xc, .name = "a.b", .bus_owner = true },
		{ .pool_size = 4096, .flags = 0xe, .name = "a.b", .bus_owner = true },
		{ .pool_size = 4096, .name = "a.b" },
		{ .pool_size = 4096, .flags = KDBUS_HELLO_MONITOR, .name = "a.b",
		  .bus_owner = true },
		{ .pool_size = 4096, .flags = KDBUS_HELLO_ACTIVATOR, .bus_owner = true },
		{ .pool_size = 4096, .flags = KDBUS_HELLO_POLICY_HOLDER, .bus_owner = true },
		{ .pool_size = 4096, .flags = KDBUS_HELLO_POLICY_HOLDER, .name = ".example.a",
		  .bus_owner = true },
		{ .pool_size = 4096, .flags = KDBUS_HELLO_POLICY_HOLDER, .name = "example",
		  .bus_owner = true },
		{ .pool_size = 4096, .send = 0x4000 },
		{ .pool_size = 4096, .recv = 0x4000 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(say_hello(&bad[i]), -EINVAL);
}

/* §6.4: "wildcard suffix tolerated here; see §9.3" */
static void hello_leaves_wildcards_to_the_policy(void **state)
{
	struct hello h = { .pool_size = 4096, .flags = KDBUS_HELLO_POLICY_HOLDER,
			   .name = "com.example.*", .bus_owner = true };

	assert_int_equal(say_hello(&h), 0);
	assert_int_equal(hello.kind, CORE_KIND_POLICY_HOLDER);
	assert_string_equal(hello.name, "com.example.*");
	h.flags = KDBUS_HELLO_ACTIVATOR;
	assert_int_equal(say_hello(&h), 0);
}

/* §6.4 rows 5 to 7, §13 */
static void special_connections_need_the_bus_owner(void **state)
{
	struct hello h = { .pool_size = 4096, .flags = KDBUS_HELLO_MONITOR };

	assert_int_equal(say_hello(&h), -EPERM);
	h.bus_owner = true;
	assert_int_equal(say_hello(&h), 0);
	assert_int_equal(hello.kind, CORE_KIND_MONITOR);
	h.custom = true;
	h.bus_owner = false;
	assert_int_equal(say_hello(&h), -EOPNOTSUPP);
	h.flags = KDBUS_HELLO_ACTIVATOR;
	h.name = "a.b";
	assert_int_equal(say_hello(&h), -EPERM);
	h.flags = KDBUS_HELLO_POLICY_HOLDER;
	assert_int_equal(say_hello(&h), -EPERM);
}

/* §6.4 row 7, §8.5 */
static void fakes_need_the_bus_owner(void **state)
{
	static const u64 fakes[] = { KDBUS_ITEM_CREDS, KDBUS_ITEM_PIDS, KDBUS_ITEM_SECLABEL };
	struct hello h = { .pool_size = 4096 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fakes); i++) {
		h.fake = fakes[i];
		h.bus_owner = false;
		assert_int_equal(say_hello(&h), -EPERM);
		h.bus_owner = true;
		assert_int_equal(say_hello(&h), 0);
		assert_true(hello.fake);
		assert_int_equal(!!hello.creds, fakes[i] == KDBUS_ITEM_CREDS);
		assert_int_equal(!!hello.pids, fakes[i] == KDBUS_ITEM_PIDS);
		assert_int_equal(!!hello.seclabel, fakes[i] == KDBUS_ITEM_SECLABEL);
	}
}

/* §6.4 "Condition (in order)": of two faults the first in the table tells the errno */
static void hello_checks_come_in_order(void **state)
{
	struct hello h = { .pool_size = 1, .flags = KDBUS_HELLO_MONITOR, .custom = true };

	assert_int_equal(say_hello(&h), -EINVAL);
	h.pool_size = 4096;
	h.name = "a.b";
	assert_int_equal(say_hello(&h), -EINVAL);
	h.name = NULL;
	assert_int_equal(say_hello(&h), -EOPNOTSUPP);
	h.custom = false;
	h.send = 0x4000;
	assert_int_equal(say_hello(&h), -EPERM);
	h.flags = 0;
	assert_int_equal(say_hello(&h), -EINVAL);
}

/* §8.5 [QUIRK]: bits above 31 are refused, not dropped */
static void fake_ids_have_32_bits(void **state)
{
	struct kdbus_creds creds = { 0 };
	u64 *ids = (u64 *)&creds;
	size_t i;

	assert_int_equal(core_check_fake_creds(&creds), 0);
	for (i = 0; i < 8; i++) {
		ids[i] = 0xffffffff;
		assert_int_equal(core_check_fake_creds(&creds), 0);
		ids[i] = 0x100000000ULL;
		assert_int_equal(core_check_fake_creds(&creds), -EINVAL);
		ids[i] = ~0ULL;
		assert_int_equal(core_check_fake_creds(&creds), -EINVAL);
		ids[i] = 0;
	}
}

static struct core_update update;

#define SEND 1
#define RECV 2
#define NAME 4
#define ACCESS 8

static int do_update(enum core_kind kind, int items, u64 mask)
{
	start(CORE_CMD_UPDATE, 0);
	if (items & ACCESS)
		wire_item(&wire, KDBUS_ITEM_POLICY_ACCESS, NULL, 24);
	if (items & NAME)
		wire_str(&wire, KDBUS_ITEM_NAME, "a.b");
	if (items & RECV)
		wire_u64(&wire, KDBUS_ITEM_ATTACH_FLAGS_RECV, mask);
	if (items & SEND)
		wire_u64(&wire, KDBUS_ITEM_ATTACH_FLAGS_SEND, mask);
	parse(CORE_CMD_UPDATE);
	memset(&update, 0x5a, sizeof(update));
	return core_check_update(&args, kind, &update);
}

/* §1.6 rows UPDATE, §6.5 */
static void update_depends_on_the_kind(void **state)
{
	static const struct {
		int item;
		int ok[4]; /* ordinary, activator, policy holder, monitor */
	} rows[] = {
		{ SEND, { 1, 0, 0, 1 } },
		{ RECV, { 1, 1, 0, 1 } },
		{ NAME, { 0, 0, 1, 0 } },
		{ ACCESS, { 0, 0, 1, 0 } },
		{ 0, { 1, 1, 1, 1 } },
	};
	size_t i;
	int kind;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		for (kind = 0; kind < 4; kind++) {
			assert_int_equal(do_update(kind, rows[i].item, 1),
					 rows[i].ok[kind] ? 0 : -EOPNOTSUPP);
		}
	}
}

static void update_yields_what_is_to_change(void **state)
{
	assert_int_equal(do_update(CORE_KIND_ORDINARY, SEND | RECV, ~0ULL), 0);
	assert_true(update.set_send);
	assert_true(update.set_recv);
	assert_false(update.set_policy);
	assert_int_equal(update.attach_send, 0x3fff);
	assert_int_equal(update.attach_recv, 0x3fff);
	assert_int_equal(do_update(CORE_KIND_ORDINARY, 0, 0), 0);
	assert_false(update.set_send || update.set_recv || update.set_policy);
	assert_int_equal(do_update(CORE_KIND_POLICY_HOLDER, NAME | ACCESS, 0), 0);
	assert_true(update.set_policy);
}

/* §6.5: SEND mask, RECV mask, policy; bits right after the kind test of their mask */
static void update_checks_come_in_order(void **state)
{
	assert_int_equal(do_update(CORE_KIND_ORDINARY, SEND | NAME, 0x4000), -EINVAL);
	assert_int_equal(do_update(CORE_KIND_ORDINARY, RECV | NAME, 0x4000), -EINVAL);
	assert_int_equal(do_update(CORE_KIND_ACTIVATOR, SEND | RECV, 0x4000), -EOPNOTSUPP);
	assert_int_equal(do_update(CORE_KIND_ACTIVATOR, RECV | NAME, 0x4000), -EINVAL);
	assert_int_equal(do_update(CORE_KIND_ACTIVATOR, RECV | NAME, 1), -EOPNOTSUPP);
}

static struct core_info_query query;

static int ask(enum core_cmd which, u64 id, const char *name, u64 mask)
{
	struct kdbus_cmd_info *cmd;

	start(which, 0);
	if (name)
		wire_str(&wire, KDBUS_ITEM_NAME, name);
	cmd = parse(which);
	cmd->id = id;
	cmd->attach_flags = mask;
	cmd->offset = ~0ULL;
	return core_check_info(cmd, &args, &query);
}

/* §6.8 [DOC≠]: by id, by name, or both */
static void conn_info_takes_an_id_a_name_or_both(void **state)
{
	assert_int_equal(ask(CORE_CMD_CONN_INFO, 7, NULL, ~0ULL), 0);
	assert_int_equal(query.id, 7);
	assert_null(query.name);
	assert_int_equal(query.attach, 0x3fff);
	assert_int_equal(ask(CORE_CMD_CONN_INFO, 0, "x.y", 0), 0);
	assert_int_equal(query.id, 0);
	assert_string_equal(query.name, "x.y");
	assert_int_equal(ask(CORE_CMD_CONN_INFO, 7, "x.y", 0), 0);
	assert_int_equal(query.id, 7);
	assert_string_equal(query.name, "x.y");
	/* §5.4: the grammar of names is not enforced here */
	assert_int_equal(ask(CORE_CMD_CONN_INFO, 0, "no name", 0), 0);
}

static void conn_info_refuses_nothing_and_unknown_bits(void **state)
{
	assert_int_equal(ask(CORE_CMD_CONN_INFO, 0, NULL, 0), -EINVAL);
	assert_int_equal(ask(CORE_CMD_CONN_INFO, 7, NULL, 0x4000), -EINVAL);
}

/* §6.0: the id is ignored by BUS_CREATOR_INFO */
static void creator_info_ignores_the_id(void **state)
{
	assert_int_equal(ask(CORE_CMD_BUS_CREATOR_INFO, 99, NULL, 1), 0);
	assert_int_equal(query.id, 0);
	assert_int_equal(query.attach, 1);
	assert_int_equal(ask(CORE_CMD_BUS_CREATOR_INFO, 0, NULL, 0x8000), -EINVAL);
}

/* §6.15 */
static void recv_does_not_drop_by_priority(void **state)
{
	u64 flags;

	for (flags = 0; flags < 8; flags++) {
		start(CORE_CMD_RECV, flags);
		parse(CORE_CMD_RECV);
		assert_int_equal(core_check_recv(&args), (flags & 6) == 6 ? -EINVAL : 0);
	}
}

/* §6.11, §15.3 name-basics */
static void name_acquire_wants_a_name(void **state)
{
	static const char *const bad[] = { ".bla.blaz", "foo", "foo.bla.bl.*", "" };
	const char *name = NULL;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		start(CORE_CMD_NAME_ACQUIRE, 0);
		wire_str(&wire, KDBUS_ITEM_NAME, bad[i]);
		parse(CORE_CMD_NAME_ACQUIRE);
		assert_int_equal(core_check_name_acquire(&args, &name), -EINVAL);
		assert_null(name);
	}
	start(CORE_CMD_NAME_ACQUIRE, 0);
	wire_str(&wire, KDBUS_ITEM_NAME, "foo.bla.blaz");
	parse(CORE_CMD_NAME_ACQUIRE);
	assert_int_equal(core_check_name_acquire(&args, &name), 0);
	assert_string_equal(name, "foo.bla.blaz");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attach_masks_have_14_bits),
		cmocka_unit_test(bus_make_yields_name_bloom_and_mask),
		cmocka_unit_test(bus_make_without_a_mask_shows_nothing),
		cmocka_unit_test(bus_make_refuses_bad_parameters),
		cmocka_unit_test(endpoint_make_checks_the_prefix),
		cmocka_unit_test(hello_yields_what_the_connection_is),
		cmocka_unit_test(hello_refuses_bad_parameters),
		cmocka_unit_test(hello_leaves_wildcards_to_the_policy),
		cmocka_unit_test(special_connections_need_the_bus_owner),
		cmocka_unit_test(fakes_need_the_bus_owner),
		cmocka_unit_test(hello_checks_come_in_order),
		cmocka_unit_test(fake_ids_have_32_bits),
		cmocka_unit_test(update_depends_on_the_kind),
		cmocka_unit_test(update_yields_what_is_to_change),
		cmocka_unit_test(update_checks_come_in_order),
		cmocka_unit_test(conn_info_takes_an_id_a_name_or_both),
		cmocka_unit_test(conn_info_refuses_nothing_and_unknown_bits),
		cmocka_unit_test(creator_info_ignores_the_id),
		cmocka_unit_test(recv_does_not_drop_by_priority),
		cmocka_unit_test(name_acquire_wants_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
