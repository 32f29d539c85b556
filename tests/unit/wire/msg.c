// SPDX-License-Identifier: LGPL-2.1-or-later
/* Messages to be sent: spec §6.14 steps 1 and 3 to 6, §7.2, §3.4, §7.11. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "limits.h"
#include "msg.h"
#include "wire.h"

#define ME 5
#define PEER 7
#define BLOOM 64

#define CALL KDBUS_MSG_EXPECT_REPLY
#define SIGNAL KDBUS_MSG_SIGNAL

static struct wire wire;
static struct core_msg m;
static struct core_msg_facts facts;

static int setup(void **state)
{
	facts = (struct core_msg_facts){ .id = ME, .bloom_size = BLOOM };
	memset(&m, 0x5a, sizeof(m));
	return 0;
}

/* Start a message; it is fine as it is if it goes to an id and is neither call nor signal. */
static void start(u64 dst, u64 flags)
{
	struct kdbus_msg *msg = (void *)wire.buf;

	wire_start(&wire, sizeof(*msg), flags);
	msg->dst_id = dst;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	msg->cookie = 1;
	if (flags & CALL)
		msg->timeout_ns = 1000;
}

static struct kdbus_msg *header(void)
{
	return (void *)wire.buf;
}

static int parse(bool negotiate)
{
	return core_msg_parse(wire_end(&wire), wire.size, negotiate, &m);
}

/* Parse and check, expecting the parser to have no objection. */
static int check(void)
{
	assert_int_equal(parse(false), 0);
	return core_msg_check(&m, &facts);
}

static void put_vec(u64 size, u64 address)
{
	u64 vec[2] = { size, address };

	wire_item(&wire, KDBUS_ITEM_PAYLOAD_VEC, vec, sizeof(vec));
}

static void put_memfd(u64 start_at, u64 size, int fd)
{
	struct kdbus_memfd memfd = { start_at, size, fd, 0 };

	wire_item(&wire, KDBUS_ITEM_PAYLOAD_MEMFD, &memfd, sizeof(memfd));
}

static void put_fds(size_t n)
{
	int fds[32] = { 0 };

	wire_item(&wire, KDBUS_ITEM_FDS, fds, n * sizeof(int));
}

static void put_bloom(size_t bytes)
{
	wire_item(&wire, KDBUS_ITEM_BLOOM_FILTER, NULL, 8 + bytes);
}

/* §6.14 step 1: 64..32768 */
static void a_message_has_a_range_of_sizes(void **state)
{
	assert_int_equal(core_msg_check_size(63), -EINVAL);
	assert_int_equal(core_msg_check_size(64), 0);
	/* §2: KDBUS_MSG_MAX_SIZE is not used */
	assert_int_equal(core_msg_check_size(8193), 0);
	assert_int_equal(core_msg_check_size(32768), 0);
	assert_int_equal(core_msg_check_size(32769), -EMSGSIZE);
}

/* §7.2: no minimum of items */
static void a_message_without_items_is_valid(void **state)
{
	start(PEER, 0);
	assert_int_equal(check(), 0);
	assert_int_equal(m.route, CORE_ROUTE_UNICAST);
	assert_int_equal(m.end, 64);
	assert_int_equal(m.n_vecs | m.n_memfds | m.n_fds | m.vec_size, 0);
}

static void unknown_message_flags_are_refused(void **state)
{
	int bit;

	for (bit = 0; bit < 63; bit++) {
		start(PEER, 1ULL << bit);
		assert_int_equal(parse(false), bit < 3 ? 0 : -EINVAL);
		assert_int_equal(parse(true), bit < 3 ? 0 : -EINVAL);
	}
}

/* §6.14 Items */
static void only_message_items_are_accepted(void **state)
{
	static const u64 refused[] = { 0x0,    0x3,    0x6,	0x7,	0x9,	0xb,	0xc,
				       0xd,    0xe,    0xf,	0x10,	0x1000, 0x1001, 0x1004,
				       0x100d, 0x2000, 0x8000, 0x8005, 0x8006, 0x11,   ~0ULL };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		start(PEER, 0);
		wire_item(&wire, refused[i], NULL, 0);
		assert_int_equal(parse(false), -EINVAL);
	}
}

/* §7.2 [DOC≠ EEXIST]: the generic duplicate rule */
static void fds_bloom_and_name_come_once(void **state)
{
	start(PEER, 0);
	put_fds(1);
	put_fds(1);
	assert_int_equal(parse(false), -EINVAL);
	start(PEER, SIGNAL);
	put_bloom(BLOOM);
	put_bloom(BLOOM);
	assert_int_equal(parse(false), -EINVAL);
	start(PEER, 0);
	wire_str(&wire, KDBUS_ITEM_DST_NAME, "x.y");
	wire_str(&wire, KDBUS_ITEM_DST_NAME, "x.y");
	assert_int_equal(parse(false), -EINVAL);
}

static void the_message_is_taken_apart(void **state)
{
	start(0, 0);
	put_vec(10, 4096);
	put_memfd(1, 2, 3);
	put_vec(5, 0);
	put_fds(2);
	put_memfd(0, 9, 4);
	wire_str(&wire, KDBUS_ITEM_DST_NAME, "com.example.a");
	assert_int_equal(check(), 0);
	assert_int_equal(m.n_vecs, 2);
	assert_int_equal(m.vec_size, 15);
	assert_int_equal(m.n_memfds, 2);
	assert_int_equal(m.n_fds, 2);
	assert_string_equal(m.dst_name, "com.example.a");
	assert_null(m.bloom);
	assert_int_equal(m.end, wire.size);
	assert_int_equal(m.list.size, wire.size - 64);
}

/* Counted padding does not belong to the message. */
static void the_end_excludes_trailing_padding(void **state)
{
	start(0, 0);
	wire_str(&wire, KDBUS_ITEM_DST_NAME, "x.y");
	wire.size += 3;
	assert_int_equal(parse(false), 0);
	assert_int_equal(m.end, 64 + 20);
}

/* §6.14 step 3 */
static void the_sender_is_0_or_itself(void **state)
{
	start(PEER, 0);
	header()->src_id = ME;
	assert_int_equal(check(), 0);
	header()->src_id = PEER;
	assert_int_equal(check(), -EINVAL);
	header()->src_id = ~0ULL;
	assert_int_equal(check(), -EINVAL);
}

/* One row of "Header consistency": word 56 and the rest of the header. */
struct header_row {
	u64 dst;
	u64 flags;
	u64 word56;
	u64 payload_type;
	bool sync;
	int r;
};

static int check_row(const struct header_row *row)
{
	start(row->dst, row->flags);
	header()->timeout_ns = row->word56;
	header()->payload_type = row->payload_type;
	if (row->flags & SIGNAL)
		put_bloom(BLOOM);
	facts.sync = row->sync;
	return check();
}

/* §6.14 step 4, each row alone */
static void the_header_is_consistent(void **state)
{
	static const u64 all = KDBUS_DST_ID_BROADCAST;
	const struct header_row rows[] = {
		{ PEER, 0, 0, 0, false, -EINVAL },
		/* §2 [DOC≠]: any other payload type */
		{ PEER, 0, 0, 1, false, 0 },
		{ PEER, 0, 0, ~0ULL, false, 0 },
		{ all, 0, 0, 1, false, -EBADMSG },
		{ all, SIGNAL, 0, 1, false, 0 },
		{ all, SIGNAL, 9, 1, false, -ENOTUNIQ },
		/* §15.8: unprivileged broadcast with EXPECT_REPLY */
		{ all, SIGNAL | CALL, 9, 1, false, -ENOTUNIQ },
		/* §15.5 message-basic: EXPECT_REPLY with timeout 0 */
		{ PEER, CALL, 0, 1, false, -EINVAL },
		{ PEER, CALL, 9, 1, false, 0 },
		{ PEER, CALL | SIGNAL, 9, 1, false, -ENOTUNIQ },
		{ PEER, 0, 0, 1, true, -EINVAL },
		{ PEER, 0, 9, 1, true, -EINVAL },
		{ PEER, CALL, 9, 1, true, 0 },
		{ PEER, SIGNAL, 9, 1, false, -EINVAL },
		{ PEER, SIGNAL, 0, 1, false, 0 },
		{ PEER, 0, 9, 1, false, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(check_row(&rows[i]), rows[i].r);
}

/* §6.14 step 4: "first hit wins", each row against those below it */
static void header_checks_come_in_order(void **state)
{
	static const u64 all = KDBUS_DST_ID_BROADCAST;
	const struct header_row rows[] = {
		{ all, CALL, 0, 0, false, -EINVAL },
		{ all, CALL, 0, 1, true, -EBADMSG },
		{ all, SIGNAL | CALL, 9, 1, true, -ENOTUNIQ },
		{ all, SIGNAL | CALL, 0, 1, true, -EINVAL },
		{ PEER, SIGNAL | CALL, 0, 1, false, -EINVAL },
		{ PEER, SIGNAL | CALL, 9, 1, true, -ENOTUNIQ },
		{ all, SIGNAL, 0, 1, true, -EINVAL },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(check_row(&rows[i]), rows[i].r);
}

/* §6.14: sender before header, header before items */
static void steps_come_in_order(void **state)
{
	start(PEER, 0);
	header()->src_id = PEER;
	header()->dst_id = KDBUS_DST_ID_BROADCAST;
	put_fds(17);
	assert_int_equal(check(), -EINVAL);
	header()->src_id = 0;
	assert_int_equal(check(), -EBADMSG);
	header()->dst_id = PEER;
	assert_int_equal(check(), -EMFILE);
}

/* §2, §7.2: 2 MiB of vectors, zero vectors included */
static void vectors_have_a_total(void **state)
{
	start(PEER, 0);
	put_vec(2097152, 4096);
	assert_int_equal(check(), 0);
	assert_int_equal(m.vec_size, 2097152);
	put_vec(1, 0);
	assert_int_equal(check(), -EMSGSIZE);
	start(PEER, 0);
	put_vec(2097153, 0);
	assert_int_equal(check(), -EMSGSIZE);
	start(PEER, 0);
	put_vec(1, 4096);
	put_vec(SIZE_MAX, 4096);
	assert_int_equal(check(), -EMSGSIZE);
	assert_int_equal(CORE_MSG_MAX_PAYLOAD_VEC_SIZE, 2097152);
}

static bool only_low_addresses(u64 address, u64 size)
{
	return address + size <= 0x10000;
}

/* §7.2, §15.5 memory-access: a range that cannot be user memory */
static void vectors_lie_in_user_memory(void **state)
{
	start(PEER, 0);
	put_vec(0x1000, ~0ULL - 10);
	assert_int_equal(check(), -EFAULT);
	start(PEER, 0);
	put_vec(0x1000, 0x10000);
	assert_int_equal(check(), 0);
	facts.range_ok = only_low_addresses;
	assert_int_equal(check(), -EFAULT);
	start(PEER, 0);
	put_vec(0x1000, 0xf000);
	assert_int_equal(check(), 0);
	/* An address of 0 is no memory. */
	start(PEER, 0);
	put_vec(0x20000, 0);
	assert_int_equal(check(), 0);
}

/* §7.2 */
static void memfd_ranges_do_not_wrap(void **state)
{
	start(PEER, 0);
	put_memfd(~0ULL, 1, 0);
	assert_int_equal(check(), -EMSGSIZE);
	start(PEER, 0);
	put_memfd(~0ULL - 1, 1, 0);
	assert_int_equal(check(), 0);
}

/* §7.2, §15.5 fd-passing */
static void memfds_are_at_most_16(void **state)
{
	int i;

	start(PEER, 0);
	for (i = 0; i < 16; i++)
		put_memfd(0, 1, i);
	assert_int_equal(check(), 0);
	assert_int_equal(m.n_memfds, 16);
	put_memfd(0, 1, 16);
	assert_int_equal(check(), -E2BIG);
}

/* §5.2, §6.14 step 1: before everything else about the message */
static void a_negative_memfd_is_ebadf(void **state)
{
	start(KDBUS_DST_ID_BROADCAST, 0);
	put_memfd(0, 1, -1);
	assert_int_equal(parse(false), -EBADF);
}

/* §7.2, §15.5 fd-passing */
static void fds_are_at_most_16(void **state)
{
	start(PEER, 0);
	put_fds(16);
	assert_int_equal(check(), 0);
	assert_int_equal(m.n_fds, 16);
	start(PEER, 0);
	put_fds(17);
	assert_int_equal(check(), -EMFILE);
}

/* §15.5: 17 fds + 10 memfds → EMFILE; 16 + 17 → E2BIG */
static void limits_of_items_are_met_in_list_order(void **state)
{
	int i;

	start(PEER, 0);
	put_fds(17);
	for (i = 0; i < 17; i++)
		put_memfd(0, 1, i);
	assert_int_equal(check(), -EMFILE);
	start(PEER, 0);
	for (i = 0; i < 17; i++)
		put_memfd(0, 1, i);
	put_fds(17);
	assert_int_equal(check(), -E2BIG);
}

/* §7.2 [QUIRK], §17.1 row 4: treated as "no fds" */
static void an_empty_fds_item_is_no_fds(void **state)
{
	start(PEER, 0);
	put_fds(0);
	assert_int_equal(check(), 0);
	assert_int_equal(m.n_fds, 0);
	assert_int_equal(core_msg_fd(&m, 0), 0);
	start(KDBUS_DST_ID_BROADCAST, SIGNAL);
	put_fds(0);
	put_bloom(BLOOM);
	assert_int_equal(check(), 0);
}

/* §7.2 */
static void the_bloom_filter_has_the_size_of_the_bus(void **state)
{
	static const struct {
		size_t bytes;
		int r;
	} rows[] = { { 64, 0 },	 { 0, -EDOM },	 { 56, -EDOM }, { 72, -EDOM },
		     { 60, -EFAULT }, { 65, -EFAULT }, { 1, -EFAULT } };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		start(PEER, SIGNAL);
		put_bloom(rows[i].bytes);
		assert_int_equal(check(), rows[i].r);
	}
}

/* §6.14: EINVAL, EBADMSG, both in step 5 */
static void the_destination_name_is_a_name(void **state)
{
	static const char *const bad[] = { "foo", ".a.b", "a.b.*", "", "a.1b" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		start(0, 0);
		wire_str(&wire, KDBUS_ITEM_DST_NAME, bad[i]);
		assert_int_equal(check(), -EINVAL);
	}
	start(KDBUS_DST_ID_BROADCAST, SIGNAL);
	wire_str(&wire, KDBUS_ITEM_DST_NAME, "a.b");
	assert_int_equal(check(), -EBADMSG);
	start(KDBUS_DST_ID_BROADCAST, SIGNAL);
	wire_str(&wire, KDBUS_ITEM_DST_NAME, "a.*");
	assert_int_equal(check(), -EINVAL);
	/* §18: name and id together are allowed */
	start(PEER, 0);
	wire_str(&wire, KDBUS_ITEM_DST_NAME, "a.b");
	assert_int_equal(check(), 0);
}

/* §6.14 step 6 */
static void signal_and_bloom_filter_belong_together(void **state)
{
	start(PEER, SIGNAL);
	assert_int_equal(check(), -EBADMSG);
	start(PEER, 0);
	put_bloom(BLOOM);
	assert_int_equal(check(), -EBADMSG);
}

static void a_message_has_a_destination(void **state)
{
	start(0, 0);
	assert_int_equal(check(), -EDESTADDRREQ);
	/* The order of step 6: bloom, destination, descriptors. */
	start(0, SIGNAL);
	assert_int_equal(check(), -EBADMSG);
}

/* §15.5 fd-passing: broadcast with FDS / with memfd */
static void broadcasts_carry_memfds_but_no_fds(void **state)
{
	start(KDBUS_DST_ID_BROADCAST, SIGNAL);
	put_bloom(BLOOM);
	put_fds(1);
	assert_int_equal(check(), -ENOTUNIQ);
	start(KDBUS_DST_ID_BROADCAST, SIGNAL);
	put_bloom(BLOOM);
	put_memfd(0, 1, 3);
	assert_int_equal(check(), 0);
	/* §7.6: unicast signals may */
	start(PEER, SIGNAL);
	put_bloom(BLOOM);
	put_fds(1);
	assert_int_equal(check(), 0);
}

/* §6.14 routing selector */
static void the_route_follows_from_the_header(void **state)
{
	static const struct {
		struct header_row row;
		enum core_route route;
	} rows[] = {
		{ { KDBUS_DST_ID_BROADCAST, SIGNAL, 0, 1, false, 0 }, CORE_ROUTE_BROADCAST },
		{ { PEER, CALL, 9, 1, true, 0 }, CORE_ROUTE_SYNC_CALL },
		{ { PEER, CALL, 9, 1, false, 0 }, CORE_ROUTE_UNICAST },
		{ { PEER, 0, 0, 1, false, 0 }, CORE_ROUTE_UNICAST },
		{ { PEER, SIGNAL, 0, 1, false, 0 }, CORE_ROUTE_UNICAST },
		{ { PEER, 0, 9, 1, false, 0 }, CORE_ROUTE_REPLY },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(check_row(&rows[i].row), 0);
		assert_int_equal(m.route, rows[i].route);
	}
}

/* §3.4, §7.2: refused in its place among the items, nothing written back */
static void negotiate_in_a_message_to_be_sent_is_refused(void **state)
{
	static const u64 asked[2] = { KDBUS_ITEM_FDS, KDBUS_ITEM_ID };

	start(PEER, 0);
	wire_item(&wire, KDBUS_ITEM_NEGOTIATE, asked, sizeof(asked));
	put_fds(17);
	assert_int_equal(check(), -EINVAL);
	start(PEER, 0);
	put_fds(17);
	wire_item(&wire, KDBUS_ITEM_NEGOTIATE, asked, sizeof(asked));
	assert_int_equal(check(), -EMFILE);
	/* but only after the header has been looked at */
	start(KDBUS_DST_ID_BROADCAST, 0);
	wire_item(&wire, KDBUS_ITEM_NEGOTIATE, asked, sizeof(asked));
	assert_int_equal(check(), -EBADMSG);
}

/* §6.14: bit 63 only on the message → EINVAL */
static void a_message_does_not_negotiate_alone(void **state)
{
	start(PEER, KDBUS_FLAG_NEGOTIATE);
	assert_int_equal(parse(false), -EINVAL);
}

/* §6.14: flags word overwritten only if it has bit 63 too; items answered either way */
static void a_message_negotiates_with_its_command(void **state)
{
	static const u64 asked[3] = { KDBUS_ITEM_FDS, KDBUS_ITEM_ID, KDBUS_ITEM_NEGOTIATE };
	const u64 *answer;
	u64 flag;

	for (flag = 0; flag < 2; flag++) {
		start(PEER, flag ? KDBUS_FLAG_NEGOTIATE : 0);
		wire_item(&wire, KDBUS_ITEM_NEGOTIATE, asked, sizeof(asked));
		assert_int_equal(parse(true), 0);
		assert_int_equal(m.negotiate, flag);
		assert_int_equal(m.supported, 7);
		answer = core_item_payload(m.list.negotiate);
		assert_int_equal(answer[0], KDBUS_ITEM_FDS);
		assert_int_equal(answer[1], 0);
		assert_int_equal(answer[2], KDBUS_ITEM_NEGOTIATE);
	}
	/* The same rules: what is there is validated. */
	start(PEER, KDBUS_FLAG_NEGOTIATE);
	put_vec(0, 0);
	assert_int_equal(parse(true), -EINVAL);
}

static void a_failed_check_leaves_the_message_alone(void **state)
{
	struct core_msg before;

	start(PEER, 0);
	put_vec(7, 4096);
	put_fds(17);
	assert_int_equal(parse(false), 0);
	before = m;
	assert_int_equal(core_msg_check(&m, &facts), -EMFILE);
	assert_memory_equal(&m, &before, sizeof(m));
}

/* §7.11: all FDS entries, then memfds in item order */
static void descriptors_are_numbered_fds_first(void **state)
{
	start(PEER, 0);
	put_memfd(0, 1, 30);
	put_fds(2);
	put_memfd(0, 1, 31);
	assert_int_equal(check(), 0);
	assert_int_equal(core_msg_fd(&m, 0), 64 + 40 + 16);
	assert_int_equal(core_msg_fd(&m, 1), 64 + 40 + 20);
	assert_int_equal(core_msg_fd(&m, 2), 64 + 16 + 16);
	assert_int_equal(core_msg_fd(&m, 3), 64 + 40 + 24 + 16 + 16);
	assert_int_equal(core_msg_fd(&m, 4), 0);
}

#define TEST(_name) cmocka_unit_test_setup(_name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_message_has_a_range_of_sizes),
		TEST(a_message_without_items_is_valid),
		TEST(unknown_message_flags_are_refused),
		TEST(only_message_items_are_accepted),
		TEST(fds_bloom_and_name_come_once),
		TEST(the_message_is_taken_apart),
		TEST(the_end_excludes_trailing_padding),
		TEST(the_sender_is_0_or_itself),
		TEST(the_header_is_consistent),
		TEST(header_checks_come_in_order),
		TEST(steps_come_in_order),
		TEST(vectors_have_a_total),
		TEST(vectors_lie_in_user_memory),
		TEST(memfd_ranges_do_not_wrap),
		TEST(memfds_are_at_most_16),
		TEST(a_negative_memfd_is_ebadf),
		TEST(fds_are_at_most_16),
		TEST(limits_of_items_are_met_in_list_order),
		TEST(an_empty_fds_item_is_no_fds),
		TEST(the_bloom_filter_has_the_size_of_the_bus),
		TEST(the_destination_name_is_a_name),
		TEST(signal_and_bloom_filter_belong_together),
		TEST(a_message_has_a_destination),
		TEST(broadcasts_carry_memfds_but_no_fds),
		TEST(the_route_follows_from_the_header),
		TEST(negotiate_in_a_message_to_be_sent_is_refused),
		TEST(a_message_does_not_negotiate_alone),
		TEST(a_message_negotiates_with_its_command),
		TEST(a_failed_check_leaves_the_message_alone),
		TEST(descriptors_are_numbered_fds_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
