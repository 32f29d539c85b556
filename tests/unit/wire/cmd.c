// SPDX-License-Identifier: LGPL-2.1-or-later
/* Commands: spec §1.4, §1.6 (where they work), §3.2 to §3.4 and §3.6 (common checks). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cmd.h"
#include "limits.h"
#include "wire.h"

static struct wire wire;
static struct core_args args;

static int parse(enum core_cmd cmd)
{
	memset(&args, 0x5a, sizeof(args));
	return core_cmd_parse(cmd, wire_end(&wire), wire.size, &args);
}

/* Start an argument of a command. */
static void start(enum core_cmd cmd, u64 flags)
{
	wire_start(&wire, core_cmd_size(cmd), flags);
}

/* Append an item of a type with a payload that §5.2 accepts. */
static void put_valid(u64 type)
{
	static const char name_change[36] = { [32] = 'x', '.', 'y' };
	static const u64 words[8] = { 8, 1 };

	switch (type) {
	case KDBUS_ITEM_PAYLOAD_VEC:
	case KDBUS_ITEM_PAYLOAD_OFF:
	case KDBUS_ITEM_BLOOM_PARAMETER:
	case KDBUS_ITEM_ID_ADD:
	case KDBUS_ITEM_ID_REMOVE:
		wire_item(&wire, type, words, 16);
		break;
	case KDBUS_ITEM_PAYLOAD_MEMFD:
	case KDBUS_ITEM_PIDS:
	case KDBUS_ITEM_POLICY_ACCESS:
		wire_item(&wire, type, words, 24);
		break;
	case KDBUS_ITEM_CREDS:
		wire_item(&wire, type, words, 64);
		break;
	case KDBUS_ITEM_CANCEL_FD:
		wire_item(&wire, type, words, 4);
		break;
	case KDBUS_ITEM_NAME_ADD:
	case KDBUS_ITEM_NAME_REMOVE:
	case KDBUS_ITEM_NAME_CHANGE:
		wire_item(&wire, type, name_change, sizeof(name_change));
		break;
	case KDBUS_ITEM_MAKE_NAME:
	case KDBUS_ITEM_NAME:
	case KDBUS_ITEM_DST_NAME:
	case KDBUS_ITEM_SECLABEL:
	case KDBUS_ITEM_CONN_DESCRIPTION:
		wire_str(&wire, type, "x.y");
		break;
	case KDBUS_ITEM_REPLY_TIMEOUT:
	case KDBUS_ITEM_REPLY_DEAD:
		wire_item(&wire, type, NULL, 0);
		break;
	default:
		wire_u64(&wire, type, 0);
		break;
	}
}

/* Every item type there is, and some there are not. */
static const u64 all_types[] = {
	0x0, 0x2, 0x3, 0x4, 0x5, 0x6, 0x7, 0x8, 0x9, 0xa, 0xb, 0xc, 0xd, 0xe, 0xf, 0x10,
	0x1000, 0x1001, 0x1002, 0x1003, 0x1004, 0x1005, 0x1006, 0x1007, 0x1008, 0x1009, 0x100a,
	0x100b, 0x100c, 0x100d, 0x2000, 0x8000, 0x8001, 0x8002, 0x8003, 0x8004, 0x8005, 0x8006,
	0x11, 0x100e, 0x2001, 0x8007, 0x10001, 0x10000000fULL, ~0ULL,
};

/* §6: what each command takes, written down again from the specification. */
struct expected {
	enum core_cmd cmd;
	u32 ioctl;
	size_t size;
	u64 flags;
	u64 must[3];
	u64 once[7];
	u64 many[10];
};

static const struct expected expected[] = {
	{ CORE_CMD_BUS_MAKE, 0x40189500, 24, 0x3, { 0xb, 0x7 }, { 0xc }, { 0 } },
	{ CORE_CMD_ENDPOINT_MAKE, 0x40189510, 24, 0x3, { 0xb }, { 0 }, { 0 } },
	{ CORE_CMD_ENDPOINT_UPDATE, 0x40189511, 24, 0, { 0 }, { 0 }, { 0xf, 0x2000 } },
	{ CORE_CMD_HELLO, 0xc0609580, 96, 0xf, { 0 },
	  { 0xf, 0x1001, 0x1002, 0x100b, 0x100d }, { 0x2000 } },
	{ CORE_CMD_UPDATE, 0x40189581, 24, 0, { 0 }, { 0xc, 0xd }, { 0xf, 0x2000 } },
	{ CORE_CMD_BYEBYE, 0x40189582, 24, 0, { 0 }, { 0 }, { 0 } },
	{ CORE_CMD_FREE, 0x40209583, 32, 0, { 0 }, { 0 }, { 0 } },
	{ CORE_CMD_CONN_INFO, 0x80389584, 56, 0, { 0 }, { 0xf }, { 0 } },
	{ CORE_CMD_BUS_CREATOR_INFO, 0x80389585, 56, 0, { 0 }, { 0 }, { 0 } },
	{ CORE_CMD_LIST, 0x80289586, 40, 0xf, { 0 }, { 0 }, { 0 } },
	{ CORE_CMD_SEND, 0x40389590, 56, 0x1, { 0 }, { 0x6 }, { 0 } },
	{ CORE_CMD_RECV, 0x80409591, 64, 0x7, { 0 }, { 0 }, { 0 } },
	{ CORE_CMD_NAME_ACQUIRE, 0x401895a0, 24, 0x7, { 0xf }, { 0 }, { 0 } },
	{ CORE_CMD_NAME_RELEASE, 0x401895a1, 24, 0, { 0xf }, { 0 }, { 0 } },
	{ CORE_CMD_MATCH_ADD, 0x402095b0, 32, 0x1, { 0 }, { 0 },
	  { 0x9, 0xf, 0xe, 0x10, 0x8000, 0x8001, 0x8002, 0x8003, 0x8004 } },
	{ CORE_CMD_MATCH_REMOVE, 0x402095b1, 32, 0, { 0 }, { 0 }, { 0 } },
};

static bool among(const u64 *types, u64 type)
{
	for (; *types; types++) {
		if (*types == type)
			return true;
	}
	return false;
}

/* Start an argument that has all it must have. */
static void start_complete(const struct expected *e, u64 flags)
{
	const u64 *type;

	start(e->cmd, flags);
	for (type = e->must; *type; type++)
		put_valid(*type);
}

/* §3.7, §3.6: sixteen numbers, ENOTTY for any other */
static void ioctl_numbers_are_known(void **state)
{
	enum core_cmd cmd = CORE_CMD_N;
	size_t i;

	assert_int_equal(ARRAY_SIZE(expected), CORE_CMD_N);
	for (i = 0; i < ARRAY_SIZE(expected); i++) {
		assert_int_equal(core_cmd_lookup(expected[i].ioctl, &cmd), 0);
		assert_int_equal(cmd, expected[i].cmd);
		assert_int_equal(core_cmd_ioctl(cmd), expected[i].ioctl);
		assert_int_equal(core_cmd_size(cmd), expected[i].size);
		/* the number alone is not enough, direction and size belong to it */
		assert_int_equal(core_cmd_lookup(expected[i].ioctl ^ 0x80000, &cmd), -ENOTTY);
	}
	assert_int_equal(core_cmd_lookup(0, &cmd), -ENOTTY);
	assert_int_equal(core_cmd_lookup(0x40189501, &cmd), -ENOTTY);
}

/* §3.2 steps 2 and 3 */
static void the_size_has_a_range(void **state)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(expected); i++) {
		assert_int_equal(core_cmd_check_size(expected[i].cmd, 0), -EINVAL);
		assert_int_equal(core_cmd_check_size(expected[i].cmd, expected[i].size - 1),
				 -EINVAL);
		assert_int_equal(core_cmd_check_size(expected[i].cmd, expected[i].size), 0);
		assert_int_equal(core_cmd_check_size(expected[i].cmd, 32768), 0);
		assert_int_equal(core_cmd_check_size(expected[i].cmd, 32769), -EMSGSIZE);
		assert_int_equal(core_cmd_check_size(expected[i].cmd, U64_MAX), -EMSGSIZE);
	}
}

/* §3.2 step 5 */
static void a_size_that_changes_while_copied_is_refused(void **state)
{
	start(CORE_CMD_BYEBYE, 0);
	wire_end(&wire);
	assert_int_equal(core_cmd_check_copy(wire.buf, 24), 0);
	assert_int_equal(core_cmd_check_copy(wire.buf, 32), -EINVAL);
}

/* §3.2 step 6, §15.2 "flags = 1<<32": any unknown bit, on each command */
static void unknown_flags_are_refused(void **state)
{
	size_t i;
	int bit;

	for (i = 0; i < ARRAY_SIZE(expected); i++) {
		for (bit = 0; bit < 63; bit++) {
			bool known = expected[i].flags >> bit & 1;

			start_complete(&expected[i], 1ULL << bit);
			assert_int_equal(parse(expected[i].cmd), known ? 0 : -EINVAL);
			if (known)
				assert_int_equal(args.flags, 1ULL << bit);
			/* Also when bit 63 is set. */
			start_complete(&expected[i], 1ULL << bit | KDBUS_FLAG_NEGOTIATE);
			assert_int_equal(parse(expected[i].cmd), known ? 0 : -EINVAL);
		}
	}
}

/* §3.3 item 1, §6: the item types of each command, and no other */
static void unknown_items_are_refused(void **state)
{
	const struct expected *e;
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(expected); i++) {
		e = &expected[i];
		for (k = 0; k < ARRAY_SIZE(all_types); k++) {
			bool known = among(e->once, all_types[k]) || among(e->many, all_types[k]);

			if (among(e->must, all_types[k]))
				continue;
			start_complete(e, 0);
			put_valid(all_types[k]);
			assert_int_equal(parse(e->cmd), known ? 0 : -EINVAL);
			if (known)
				assert_int_equal(core_args_get(&args, all_types[k])->type,
						 all_types[k]);
		}
	}
}

/* §3.3 item 3 */
static void only_repeatable_items_come_twice(void **state)
{
	const struct expected *e;
	const u64 *type;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(expected); i++) {
		e = &expected[i];
		for (type = e->must; *type; type++) {
			start_complete(e, 0);
			put_valid(*type);
			assert_int_equal(parse(e->cmd), -EINVAL);
		}
		for (type = e->once; *type; type++) {
			start_complete(e, 0);
			put_valid(*type);
			put_valid(*type);
			assert_int_equal(parse(e->cmd), -EINVAL);
		}
		for (type = e->many; *type; type++) {
			start_complete(e, 0);
			put_valid(*type);
			put_valid(*type);
			put_valid(*type);
			assert_int_equal(parse(e->cmd), 0);
		}
	}
}

/* §3.2 step 9 [DOC≠ EBADMSG]; §3.4: may be absent when negotiating */
static void mandatory_items_must_be_there_unless_negotiating(void **state)
{
	const struct expected *e;
	const u64 *type, *missing;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(expected); i++) {
		e = &expected[i];
		for (missing = e->must; *missing; missing++) {
			start(e->cmd, 0);
			for (type = e->must; *type; type++) {
				if (type != missing)
					put_valid(*type);
			}
			assert_int_equal(parse(e->cmd), -EINVAL);
			start(e->cmd, KDBUS_FLAG_NEGOTIATE);
			assert_int_equal(parse(e->cmd), 0);
		}
	}
}

/* §3.4: the flags word becomes the set of supported flags, bit 63 excluded */
static void negotiation_tells_the_supported_flags(void **state)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(expected); i++) {
		start(expected[i].cmd, KDBUS_FLAG_NEGOTIATE);
		assert_int_equal(parse(expected[i].cmd), 0);
		assert_true(args.negotiate);
		assert_int_equal(args.supported, expected[i].flags);
		assert_int_equal(args.flags, 0);
		start_complete(&expected[i], 0);
		assert_int_equal(parse(expected[i].cmd), 0);
		assert_false(args.negotiate);
	}
}

/* §3.4: items present are still validated */
static void negotiation_still_validates_items(void **state)
{
	start(CORE_CMD_NAME_ACQUIRE, KDBUS_FLAG_NEGOTIATE);
	wire_item(&wire, KDBUS_ITEM_NAME, "x", 1);
	assert_int_equal(parse(CORE_CMD_NAME_ACQUIRE), -EINVAL);
	start(CORE_CMD_NAME_ACQUIRE, KDBUS_FLAG_NEGOTIATE);
	wire_u64(&wire, KDBUS_ITEM_ID, 0);
	assert_int_equal(parse(CORE_CMD_NAME_ACQUIRE), -EINVAL);
}

/* §3.4: each command takes a NEGOTIATE item, with and without the flag */
static void negotiate_items_are_answered_in_place(void **state)
{
	const struct expected *e;
	const u64 *answer;
	size_t i, k;

	for (i = 0; i < 2 * ARRAY_SIZE(expected); i++) {
		e = &expected[i / 2];
		start_complete(e, i % 2 ? KDBUS_FLAG_NEGOTIATE : 0);
		wire_item(&wire, KDBUS_ITEM_NEGOTIATE, all_types, sizeof(all_types));
		assert_int_equal(parse(e->cmd), 0);
		assert_non_null(args.list.negotiate);
		answer = core_item_payload(args.list.negotiate);
		for (k = 0; k < ARRAY_SIZE(all_types); k++) {
			bool known = among(e->must, all_types[k]) ||
				     among(e->once, all_types[k]) || among(e->many, all_types[k]);

			assert_int_equal(answer[k], known ? all_types[k] : 0);
		}
	}
}

/* §3.4: NEGOTIATE itself counts as accepted, at most once, 8 bytes each */
static void a_negotiate_item_follows_the_rules_too(void **state)
{
	static const u64 itself = KDBUS_ITEM_NEGOTIATE;

	start(CORE_CMD_BYEBYE, 0);
	wire_item(&wire, KDBUS_ITEM_NEGOTIATE, &itself, 8);
	assert_int_equal(parse(CORE_CMD_BYEBYE), 0);
	assert_int_equal(core_item_u64(args.list.negotiate), KDBUS_ITEM_NEGOTIATE);
	wire_item(&wire, KDBUS_ITEM_NEGOTIATE, &itself, 8);
	assert_int_equal(parse(CORE_CMD_BYEBYE), -EINVAL);
	start(CORE_CMD_BYEBYE, 0);
	wire_item(&wire, KDBUS_ITEM_NEGOTIATE, &itself, 4);
	assert_int_equal(parse(CORE_CMD_BYEBYE), -EINVAL);
	start(CORE_CMD_BYEBYE, 0);
	wire_item(&wire, KDBUS_ITEM_NEGOTIATE, NULL, 0);
	assert_int_equal(parse(CORE_CMD_BYEBYE), 0);
}

/* §3.4: types are zeroed, and nothing else: neither the item before nor the one behind */
static void negotiation_leaves_other_items_alone(void **state)
{
	static const u64 unknown[3] = { 0x7777, 0x8888, 0x9999 };
	const struct kdbus_item *item;

	for (int n = 0; n <= 3; n++) {
		start(CORE_CMD_UPDATE, 0);
		wire_u64(&wire, KDBUS_ITEM_ATTACH_FLAGS_SEND, 0x1111);
		wire_item(&wire, KDBUS_ITEM_NEGOTIATE, unknown, n * sizeof(u64));
		wire_u64(&wire, KDBUS_ITEM_ATTACH_FLAGS_RECV, 0x2222);
		assert_int_equal(parse(CORE_CMD_UPDATE), 0);
		assert_int_equal(core_item_payload_size(args.list.negotiate), n * sizeof(u64));
		item = core_item_next(args.list.negotiate);
		assert_ptr_equal(item, core_args_get(&args, KDBUS_ITEM_ATTACH_FLAGS_RECV));
		assert_int_equal(item->size, 24);
		assert_int_equal(core_item_u64(item), 0x2222);
		item = core_args_get(&args, KDBUS_ITEM_ATTACH_FLAGS_SEND);
		assert_int_equal(core_item_u64(item), 0x1111);
	}
}

/* §17.1 row 8: in MATCH_ADD it is answered and is no rule */
static void a_negotiate_item_in_match_add_is_not_a_rule(void **state)
{
	static const u64 asked[2] = { KDBUS_ITEM_ID, KDBUS_ITEM_FDS };
	const u64 *answer;

	start(CORE_CMD_MATCH_ADD, 0);
	wire_item(&wire, KDBUS_ITEM_NEGOTIATE, asked, sizeof(asked));
	assert_int_equal(parse(CORE_CMD_MATCH_ADD), 0);
	answer = core_item_payload(args.list.negotiate);
	assert_int_equal(answer[0], KDBUS_ITEM_ID);
	assert_int_equal(answer[1], 0);
}

/* Conventions 4: a failed command changed nothing */
static void a_failed_parse_leaves_result_and_argument_alone(void **state)
{
	struct core_args before;
	struct wire copy;

	memset(&before, 0x5a, sizeof(before));
	start(CORE_CMD_NAME_ACQUIRE, 0);
	wire_item(&wire, KDBUS_ITEM_NEGOTIATE, all_types, sizeof(all_types));
	wire_end(&wire);
	copy = wire;
	assert_int_equal(parse(CORE_CMD_NAME_ACQUIRE), -EINVAL);
	assert_memory_equal(&args, &before, sizeof(args));
	assert_memory_equal(&wire, &copy, sizeof(wire));
}

/* §3.3: broken structure is EINVAL, even behind an item with another errno */
static void a_broken_list_precedes_bad_payloads(void **state)
{
	char longest[80];

	memset(longest, 'x', sizeof(longest));
	longest[64] = 0;
	start(CORE_CMD_ENDPOINT_MAKE, 0);
	wire_item(&wire, KDBUS_ITEM_MAKE_NAME, longest, 65);
	assert_int_equal(parse(CORE_CMD_ENDPOINT_MAKE), -ENAMETOOLONG);
	wire_item_sized(&wire, KDBUS_ITEM_NAME, NULL, 8, 15);
	assert_int_equal(parse(CORE_CMD_ENDPOINT_MAKE), -EINVAL);
}

/* §3.3: payload before duplicate, in list order */
static void payloads_precede_duplicates(void **state)
{
	char longest[80];

	memset(longest, 'x', sizeof(longest));
	longest[64] = 0;
	start(CORE_CMD_ENDPOINT_MAKE, 0);
	wire_str(&wire, KDBUS_ITEM_MAKE_NAME, "1000-x");
	wire_item(&wire, KDBUS_ITEM_MAKE_NAME, longest, 65);
	assert_int_equal(parse(CORE_CMD_ENDPOINT_MAKE), -ENAMETOOLONG);
	start(CORE_CMD_ENDPOINT_MAKE, 0);
	wire_str(&wire, KDBUS_ITEM_MAKE_NAME, "1000-x");
	wire_str(&wire, KDBUS_ITEM_MAKE_NAME, "1000-x");
	wire_item(&wire, KDBUS_ITEM_MAKE_NAME, longest, 65);
	assert_int_equal(parse(CORE_CMD_ENDPOINT_MAKE), -EINVAL);
}

/* §3.2: flags before items */
static void flags_precede_items(void **state)
{
	char longest[80];

	memset(longest, 'x', sizeof(longest));
	longest[64] = 0;
	start(CORE_CMD_ENDPOINT_MAKE, 0x4);
	wire_item(&wire, KDBUS_ITEM_MAKE_NAME, longest, 65);
	assert_int_equal(parse(CORE_CMD_ENDPOINT_MAKE), -EINVAL);
}

/* Appendix B.1: 82 or 88 bytes */
static void the_worked_bus_make_is_accepted(void **state)
{
	static const u64 bloom[2] = { 64, 1 };

	start(CORE_CMD_BUS_MAKE, KDBUS_MAKE_ACCESS_WORLD);
	wire_item(&wire, KDBUS_ITEM_BLOOM_PARAMETER, bloom, sizeof(bloom));
	wire_str(&wire, KDBUS_ITEM_MAKE_NAME, "1000-demo");
	assert_int_equal(wire.size, 82);
	assert_int_equal(parse(CORE_CMD_BUS_MAKE), 0);
	assert_string_equal(core_args_str(&args, KDBUS_ITEM_MAKE_NAME), "1000-demo");
	wire.size = 88;
	assert_int_equal(parse(CORE_CMD_BUS_MAKE), 0);
	assert_null(core_args_get(&args, KDBUS_ITEM_ATTACH_FLAGS_SEND));
	assert_null(core_args_str(&args, KDBUS_ITEM_ATTACH_FLAGS_SEND));
	wire.size = 89;
	assert_int_equal(parse(CORE_CMD_BUS_MAKE), -EINVAL);
}

/* Appendix B.6 and B.7 */
static void the_other_worked_arguments_are_accepted(void **state)
{
	int fd = 3;

	start(CORE_CMD_MATCH_ADD, 0);
	wire_name_change(&wire, KDBUS_ITEM_NAME_CHANGE, ~0ULL, ~0ULL, "x.y");
	assert_int_equal(wire.size, 84);
	assert_int_equal(parse(CORE_CMD_MATCH_ADD), 0);
	start(CORE_CMD_SEND, 0);
	wire_item(&wire, KDBUS_ITEM_CANCEL_FD, &fd, sizeof(fd));
	assert_int_equal(wire.size, 76);
	assert_int_equal(parse(CORE_CMD_SEND), 0);
	wire.size = 80;
	assert_int_equal(parse(CORE_CMD_SEND), 0);
}

/* §1.4, §3.6: the handle a command needs, EBADFD on any other */
static void commands_need_their_handle(void **state)
{
	int cmd, handle;

	for (cmd = 0; cmd < CORE_CMD_N; cmd++) {
		for (handle = 0; handle <= CORE_HANDLE_CONNECTED; handle++) {
			bool ok = false;

			if (cmd == CORE_CMD_BUS_MAKE)
				ok = handle == CORE_HANDLE_CONTROL;
			else if (cmd == CORE_CMD_ENDPOINT_MAKE || cmd == CORE_CMD_HELLO)
				ok = handle == CORE_HANDLE_ENDPOINT;
			else if (cmd == CORE_CMD_ENDPOINT_UPDATE)
				ok = handle == CORE_HANDLE_EP_OWNER;
			else
				ok = handle == CORE_HANDLE_CONNECTED;
			assert_int_equal(core_cmd_check_handle(cmd, handle, false),
					 ok ? 0 : -EBADFD);
		}
	}
}

/* §3.6: death is found first where a handle looks at its node or connection */
static void death_precedes_a_wrong_handle(void **state)
{
	int cmd;

	for (cmd = 0; cmd < CORE_CMD_N; cmd++) {
		bool setup = cmd == CORE_CMD_BUS_MAKE || cmd == CORE_CMD_ENDPOINT_MAKE ||
			     cmd == CORE_CMD_HELLO;

		assert_int_equal(core_cmd_check_handle(cmd, CORE_HANDLE_CONTROL, true),
				 setup ? -ESHUTDOWN : -EBADFD);
		assert_int_equal(core_cmd_check_handle(cmd, CORE_HANDLE_ENDPOINT, true),
				 setup ? -ESHUTDOWN : -EBADFD);
		assert_int_equal(core_cmd_check_handle(cmd, CORE_HANDLE_BUS_OWNER, true), -EBADFD);
		assert_int_equal(core_cmd_check_handle(cmd, CORE_HANDLE_EP_OWNER, true),
				 setup ? -EBADFD : -ESHUTDOWN);
		assert_int_equal(core_cmd_check_handle(cmd, CORE_HANDLE_CONNECTED, true),
				 setup ? -EBADFD : -ECONNRESET);
	}
}

/*
 * §1.6: the command matrix, a row per command, a letter per kind; whoever may LIST may FREE
 * (§17.1 row 22)
 */
static void commands_need_their_kind_of_connection(void **state)
{
	static const struct {
		enum core_cmd cmd;
		const char *kinds; /* ordinary, activator, policy holder, monitor */
	} matrix[] = {
		{ CORE_CMD_BYEBYE, "y---" },	   { CORE_CMD_NAME_ACQUIRE, "y---" },
		{ CORE_CMD_NAME_RELEASE, "y---" }, { CORE_CMD_MATCH_ADD, "y---" },
		{ CORE_CMD_MATCH_REMOVE, "y---" }, { CORE_CMD_SEND, "y---" },
		{ CORE_CMD_RECV, "yy-y" },	   { CORE_CMD_FREE, "yyyy" },
		{ CORE_CMD_LIST, "yyyy" },	   { CORE_CMD_CONN_INFO, "yyyy" },
		{ CORE_CMD_UPDATE, "yyyy" },	   { CORE_CMD_BUS_CREATOR_INFO, "yyyy" },
	};
	size_t i;
	int kind;

	for (i = 0; i < ARRAY_SIZE(matrix); i++) {
		for (kind = 0; kind < 4; kind++)
			assert_int_equal(core_cmd_check_kind(matrix[i].cmd, kind),
					 matrix[i].kinds[kind] == 'y' ? 0 : -EOPNOTSUPP);
	}
}

/* §4.2 */
static void hello_flags_tell_the_kind(void **state)
{
	assert_int_equal(core_kind(0), CORE_KIND_ORDINARY);
	assert_int_equal(core_kind(KDBUS_HELLO_ACCEPT_FD), CORE_KIND_ORDINARY);
	assert_int_equal(core_kind(KDBUS_HELLO_ACTIVATOR), CORE_KIND_ACTIVATOR);
	assert_int_equal(core_kind(KDBUS_HELLO_POLICY_HOLDER), CORE_KIND_POLICY_HOLDER);
	assert_int_equal(core_kind(KDBUS_HELLO_MONITOR | 1), CORE_KIND_MONITOR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ioctl_numbers_are_known),
		cmocka_unit_test(the_size_has_a_range),
		cmocka_unit_test(a_size_that_changes_while_copied_is_refused),
		cmocka_unit_test(unknown_flags_are_refused),
		cmocka_unit_test(unknown_items_are_refused),
		cmocka_unit_test(only_repeatable_items_come_twice),
		cmocka_unit_test(mandatory_items_must_be_there_unless_negotiating),
		cmocka_unit_test(negotiation_tells_the_supported_flags),
		cmocka_unit_test(negotiation_still_validates_items),
		cmocka_unit_test(negotiate_items_are_answered_in_place),
		cmocka_unit_test(a_negotiate_item_follows_the_rules_too),
		cmocka_unit_test(negotiation_leaves_other_items_alone),
		cmocka_unit_test(a_negotiate_item_in_match_add_is_not_a_rule),
		cmocka_unit_test(a_failed_parse_leaves_result_and_argument_alone),
		cmocka_unit_test(a_broken_list_precedes_bad_payloads),
		cmocka_unit_test(payloads_precede_duplicates),
		cmocka_unit_test(flags_precede_items),
		cmocka_unit_test(the_worked_bus_make_is_accepted),
		cmocka_unit_test(the_other_worked_arguments_are_accepted),
		cmocka_unit_test(commands_need_their_handle),
		cmocka_unit_test(death_precedes_a_wrong_handle),
		cmocka_unit_test(commands_need_their_kind_of_connection),
		cmocka_unit_test(hello_flags_tell_the_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
