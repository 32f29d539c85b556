// SPDX-License-Identifier: LGPL-2.1-or-later
/* The image of a delivered message: spec §7.3, Appendix B.2, §17.1 rows 2 and 3. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layout.h"
#include "meta.h"
#include "wire.h"

static struct wire wire;
static struct core_msg m;
static struct core_layout layout;

/* The sender's memory: addresses are made up, as core never follows one. */
#define MEMORY_BASE 0x7000
static char memory[4096];
static size_t memory_used;

/* Let the sender have @bytes; returns their address. */
static u64 have(const char *bytes, size_t n)
{
	assert_true(memory_used + n <= sizeof(memory));
	memcpy(memory + memory_used, bytes, n);
	memory_used += n;
	return MEMORY_BASE + memory_used - n;
}

static void start(void)
{
	struct kdbus_msg *msg = (void *)wire.buf;

	memory_used = 0;
	wire_start(&wire, sizeof(*msg), 0);
	msg->dst_id = 7;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	msg->cookie = 0x1234;
	msg->priority = -3;
}

static void put_vec(u64 size, u64 address)
{
	u64 vec[2] = { size, address };

	wire_item(&wire, KDBUS_ITEM_PAYLOAD_VEC, vec, sizeof(vec));
}

static void put_memfd(u64 size)
{
	struct kdbus_memfd memfd = { 0, size, 9, 0x77 };

	wire_item(&wire, KDBUS_ITEM_PAYLOAD_MEMFD, &memfd, sizeof(memfd));
}

static void lay_out(size_t meta_size)
{
	struct core_msg_facts facts = { .id = 5, .bloom_size = 64 };

	assert_int_equal(core_msg_parse(wire_end(&wire), wire.size, false, &m), 0);
	assert_int_equal(core_msg_check(&m, &facts), 0);
	core_layout_init(&m, meta_size, &layout);
}

/*
 * Deliver as a host would: image, metadata, pieces. What is not written stays 0xee. Also
 * proves layout.h invariant 5.
 */
static char slice[8192] __attribute__((aligned(8)));

static void deliver(const struct core_meta *meta, u64 mask)
{
	struct core_layout_cursor cursor;
	struct core_writer w;
	struct core_piece piece;
	size_t written;

	memset(slice, 0xee, sizeof(slice));
	lay_out(meta ? core_meta_size(meta, mask) : 0);
	core_layout_write(&m, &layout, 5, slice);
	written = layout.meta_offset;
	if (meta) {
		w = CORE_WRITER(slice + written, layout.msg_size - written);
		core_meta_put(&w, meta, mask);
		assert_int_equal(core_writer_end(&w, &written), 0);
		assert_int_equal(layout.meta_offset + written, layout.msg_size);
	}
	written = layout.msg_size;
	core_layout_start(&cursor, &m, &layout);
	while (core_layout_next(&cursor, &piece)) {
		assert_int_equal(piece.offset, written);
		assert_true(piece.size > 0);
		if (piece.address)
			memcpy(slice + piece.offset, memory + piece.address - MEMORY_BASE,
			       piece.size);
		else
			memset(slice + piece.offset, 0, piece.size);
		written += piece.size;
	}
	assert_int_equal(written, layout.slice_size);
	assert_int_equal(layout.slice_size % 8, 0);
	assert_int_equal((unsigned char)slice[written], 0xee);
}

static struct kdbus_item *item_at(size_t offset)
{
	return (void *)(slice + offset);
}

/* Appendix B.2 */
static void the_worked_message_is_laid_out_as_specified(void **state)
{
	static const char zero[8];
	struct core_meta meta = {
		.have = KDBUS_ATTACH_TIMESTAMP | KDBUS_ATTACH_CREDS,
		.creds = { .uid = 1000, .fsgid = 100 },
		.timestamp = { 1, 2, 3 },
	};
	const struct kdbus_msg *msg = (void *)slice;

	start();
	put_vec(5, have("abcde", 5));
	put_vec(3, 0);
	put_vec(4, have("WXYZ", 4));
	deliver(&meta, _KDBUS_ATTACH_ALL);

	assert_int_equal(msg->size, 280);
	assert_int_equal(msg->src_id, 5);
	assert_int_equal(msg->dst_id, 7);
	assert_int_equal(item_at(64)->type, KDBUS_ITEM_PAYLOAD_OFF);
	assert_int_equal(item_at(64)->vec.size, 5);
	assert_int_equal(item_at(64)->vec.offset, 280);
	assert_int_equal(item_at(96)->type, KDBUS_ITEM_PAYLOAD_OFF);
	assert_int_equal(item_at(96)->vec.size, 3);
	assert_int_equal(item_at(96)->vec.offset, ~0ULL);
	assert_int_equal(item_at(128)->vec.size, 4);
	assert_int_equal(item_at(128)->vec.offset, 288);
	assert_int_equal(item_at(160)->type, KDBUS_ITEM_CREDS);
	assert_int_equal(item_at(160)->size, 80);
	assert_int_equal(item_at(240)->type, KDBUS_ITEM_TIMESTAMP);
	assert_int_equal(item_at(240)->size, 40);
	assert_memory_equal(slice + 280, "abcde", 5);
	assert_memory_equal(slice + 285, zero, 3);
	assert_memory_equal(slice + 288, "WXYZ", 4);
	assert_memory_equal(slice + 292, zero, 4);
	assert_int_equal(layout.slice_size, 296);
	assert_int_equal(core_items_check(slice + 64, msg->size - 64), 0);
}

/* §7.3: everything but src_id, size and the rewritten items is verbatim, padding too */
static void header_and_items_are_copied_verbatim(void **state)
{
	const struct kdbus_msg *msg = (void *)slice;

	start();
	wire_str(&wire, KDBUS_ITEM_DST_NAME, "com.example.a");
	put_vec(8, have("payload", 8));
	deliver(NULL, 0);
	assert_int_equal(msg->priority, -3);
	assert_int_equal(msg->cookie, 0x1234);
	assert_int_equal(msg->payload_type, KDBUS_PAYLOAD_DBUS);
	assert_memory_equal(slice + 64, wire.buf + 64, 32);
	assert_int_equal((unsigned char)slice[64 + 30], 0xa5);
}

/* §6.0: msg.size excludes payload and trailing padding; msg_size is the whole slice */
static void the_message_size_is_not_the_slice_size(void **state)
{
	const struct kdbus_msg *msg = (void *)slice;

	start();
	wire_str(&wire, KDBUS_ITEM_DST_NAME, "x.y");
	deliver(NULL, 0);
	assert_int_equal(msg->size, 64 + 20);
	assert_int_equal(layout.slice_size, 64 + 24);
	/* the same if the sender counted its padding */
	wire.size = 64 + 24;
	deliver(NULL, 0);
	assert_int_equal(msg->size, 64 + 20);
	assert_int_equal(layout.slice_size, 64 + 24);
	assert_int_equal(slice[64 + 20] | slice[64 + 23], 0);
}

static void a_message_without_items_is_its_header(void **state)
{
	start();
	deliver(NULL, 0);
	assert_int_equal(layout.msg_size, 64);
	assert_int_equal(layout.slice_size, 64);
}

/* §5.1: the gap between the sender's last item and the metadata is the bus's, hence zero */
static void the_gap_before_metadata_is_zero(void **state)
{
	struct core_meta meta = { .have = KDBUS_ATTACH_TIMESTAMP };
	static const char zero[8];

	start();
	wire_str(&wire, KDBUS_ITEM_DST_NAME, "x.y");
	deliver(&meta, _KDBUS_ATTACH_ALL);
	assert_memory_equal(slice + 64 + 20, zero, 4);
	assert_int_equal(item_at(64 + 24)->type, KDBUS_ITEM_TIMESTAMP);
	wire.size += 4;
	deliver(&meta, _KDBUS_ATTACH_ALL);
	assert_memory_equal(slice + 64 + 20, zero, 4);
}

/* §7.3: metadata items that end off a multiple of 8 are followed by a pad */
static void payload_starts_at_a_multiple_of_8(void **state)
{
	struct core_meta meta = { .have = KDBUS_ATTACH_CONN_DESCRIPTION, .description = "abc" };

	start();
	put_vec(3, have("xyz", 3));
	deliver(&meta, _KDBUS_ATTACH_ALL);
	assert_int_equal(layout.meta_offset, 96);
	assert_int_equal(layout.msg_size, 96 + 20);
	assert_int_equal(layout.payload_offset, 120);
	assert_int_equal(item_at(64)->vec.offset, 120);
	assert_memory_equal(slice + 120, "xyz", 3);
	assert_int_equal(layout.slice_size, 128);
}

/* §7.3, §17.1 row 3: ~0 exactly, whatever the base is */
static void zero_vectors_read_all_ones(void **state)
{
	start();
	put_vec(2097152, 0);
	deliver(NULL, 0);
	assert_int_equal(item_at(64)->vec.size, 2097152);
	assert_int_equal(item_at(64)->vec.offset, ~0ULL);
	assert_int_equal(layout.slice_size, 96);
}

/* §7.3: n mod 8 zero bytes for a skipped part, not 8 - n mod 8 */
static void skipped_parts_leave_congruent_positions(void **state)
{
	static const char bytes[64] = "0123456789";
	u64 n, logical;
	int memfd;

	for (n = 1; n < 40; n++) {
		for (memfd = 0; memfd < 2; memfd++) {
			start();
			put_vec(3, have(bytes, 3));
			if (memfd)
				put_memfd(n);
			else
				put_vec(n, 0);
			put_vec(5, have(bytes, 5));
			put_vec(2, have(bytes, 2));
			deliver(NULL, 0);
			logical = 3 + n;
			assert_int_equal(item_at(memfd ? 136 : 128)->vec.offset,
					 layout.payload_offset + 3 + n % 8);
			assert_int_equal((item_at(memfd ? 136 : 128)->vec.offset - logical) % 8, 0);
			/* consecutive vectors are packed */
			assert_int_equal(item_at(memfd ? 168 : 160)->vec.offset,
					 item_at(memfd ? 136 : 128)->vec.offset + 5);
			assert_int_equal(layout.payload_size, 3 + n % 8 + 5 + 2);
		}
	}
}

/* §7.10, §17.1 rows 1 and 2 [SHOULD]: -1 until installed, never the sender's number */
static void descriptors_read_minus_one(void **state)
{
	int fds[3] = { 10, 11, 12 };
	u32 i;

	start();
	put_memfd(16);
	wire_item(&wire, KDBUS_ITEM_FDS, fds, sizeof(fds));
	put_memfd(16);
	deliver(NULL, 0);
	for (i = 0; i < 5; i++)
		assert_int_equal(*(int *)(slice + core_msg_fd(&m, i)), -1);
	assert_int_equal(item_at(64)->memfd.size, 16);
	assert_int_equal(item_at(64)->memfd.__pad, 0x77);
	assert_int_equal(item_at(104)->size, 28);
}

/* The sender's copy is used for every receiver of a broadcast. */
static void the_senders_message_is_not_touched(void **state)
{
	static struct wire before;

	start();
	put_vec(5, have("abcde", 5));
	put_memfd(4);
	lay_out(0);
	before = wire;
	deliver(NULL, 0);
	assert_memory_equal(&wire, &before, sizeof(wire));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_worked_message_is_laid_out_as_specified),
		cmocka_unit_test(header_and_items_are_copied_verbatim),
		cmocka_unit_test(the_message_size_is_not_the_slice_size),
		cmocka_unit_test(a_message_without_items_is_its_header),
		cmocka_unit_test(the_gap_before_metadata_is_zero),
		cmocka_unit_test(payload_starts_at_a_multiple_of_8),
		cmocka_unit_test(zero_vectors_read_all_ones),
		cmocka_unit_test(skipped_parts_leave_congruent_positions),
		cmocka_unit_test(descriptors_read_minus_one),
		cmocka_unit_test(the_senders_message_is_not_touched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
