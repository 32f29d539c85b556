// SPDX-License-Identifier: LGPL-2.1-or-later
/* Item lists: spec §3.3 (structure), §5.2 (payloads), §6.1 (bloom), and writing them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "item.h"
#include "limits.h"
#include "wire.h"

static struct wire wire;

/* Check the list in a buffer of exactly its size, so that a stray read is noticed. */
static int check(void)
{
	void *copy = malloc(wire.size ? wire.size : 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, wire.buf, wire.size);
	r = core_items_check(copy, wire.size);
	free(copy);
	return r;
}

/* Check one payload of @bytes bytes of a type. */
static int validate(u64 type, const void *payload, size_t bytes)
{
	wire_start(&wire, 0, 0);
	wire_item(&wire, type, payload, bytes);
	return core_item_validate((void *)wire.buf);
}

static void an_empty_list_is_sound(void **state)
{
	wire_start(&wire, 0, 0);
	assert_int_equal(check(), 0);
}

static void an_item_is_at_least_its_header(void **state)
{
	u64 size;

	for (size = 0; size < 16; size++) {
		wire_start(&wire, 0, 0);
		wire_item_sized(&wire, KDBUS_ITEM_ID, NULL, 0, size);
		assert_int_equal(check(), -EINVAL);
	}
	wire_start(&wire, 0, 0);
	wire_item(&wire, KDBUS_ITEM_ID, NULL, 0);
	assert_int_equal(check(), 0);
}

static void an_item_ends_inside_the_region(void **state)
{
	wire_start(&wire, 0, 0);
	wire_item_sized(&wire, KDBUS_ITEM_NAME, NULL, 8, 25);
	assert_int_equal(check(), -EINVAL);
	wire_start(&wire, 0, 0);
	wire_item_sized(&wire, KDBUS_ITEM_NAME, NULL, 8, 24);
	assert_int_equal(check(), 0);
}

static void an_item_does_not_wrap(void **state)
{
	wire_start(&wire, 0, 0);
	wire_item_sized(&wire, KDBUS_ITEM_NAME, NULL, 8, U64_MAX);
	assert_int_equal(check(), -EINVAL);
	wire_start(&wire, 0, 0);
	wire_item(&wire, KDBUS_ITEM_NAME, "abc", 4);
	wire_item_sized(&wire, KDBUS_ITEM_NAME, NULL, 8, U64_MAX - 15);
	assert_int_equal(check(), -EINVAL);
}

/* §3.3: trailing garbage of 1..15 bytes is rejected */
static void trailing_garbage_is_refused(void **state)
{
	size_t extra;

	for (extra = 1; extra < 16; extra++) {
		wire_start(&wire, 0, 0);
		wire_item(&wire, KDBUS_ITEM_ID, NULL, 8);
		wire.size += extra;
		assert_int_equal(check(), -EINVAL);
	}
}

/* §3.3: padding of the last item counts fully, partly or not at all */
static void padding_of_the_last_item_may_be_counted(void **state)
{
	size_t extra;

	for (extra = 0; extra < 8; extra++) {
		wire_start(&wire, 0, 0);
		wire_item(&wire, KDBUS_ITEM_NAME, "a", 1);
		wire.size += extra;
		assert_int_equal(check(), 0);
	}
	wire.size++;
	assert_int_equal(check(), -EINVAL);
}

static void items_start_at_multiples_of_8(void **state)
{
	const struct kdbus_item *item;
	u64 seen = 0;

	wire_start(&wire, 0, 0);
	wire_str(&wire, KDBUS_ITEM_NAME, "a.bc");
	wire_u64(&wire, KDBUS_ITEM_ID, 7);
	wire_item(&wire, KDBUS_ITEM_FDS, NULL, 0);
	assert_int_equal(check(), 0);
	core_item_for_each(item, wire.buf, wire.size)
		seen = seen << 16 | item->type;
	assert_int_equal(seen, 0x000f000e0005ULL);
	item = core_item_next((void *)wire.buf);
	assert_ptr_equal(item, wire.buf + 24);
	assert_int_equal(core_item_payload_size(item), 8);
	assert_int_equal(core_item_u64(item), 7);
	assert_string_equal(core_item_str((void *)wire.buf), "a.bc");
}

/* One row of §5.2: which payload lengths a type takes. */
struct length_rule {
	u64 type;
	size_t good[4];
	size_t bad[4];
};

#define NONE SIZE_MAX

static const struct length_rule length_rules[] = {
	{ KDBUS_ITEM_NEGOTIATE, { 0, 8, 16, 80 }, { 1, 4, 7, 12 } },
	{ KDBUS_ITEM_FDS, { 0, 4, 8, 68 }, { 1, 2, 3, 5 } },
	{ KDBUS_ITEM_CANCEL_FD, { 4, NONE }, { 0, 3, 5, 8 } },
	{ KDBUS_ITEM_BLOOM_PARAMETER, { 16, NONE }, { 0, 8, 15, 17 } },
	{ KDBUS_ITEM_BLOOM_FILTER, { 8, 9, 16, 72 }, { 0, 1, 4, 7 } },
	{ KDBUS_ITEM_BLOOM_MASK, { 0, 1, 8, 72 }, { NONE } },
	{ KDBUS_ITEM_ATTACH_FLAGS_SEND, { 8, NONE }, { 0, 4, 7, 9 } },
	{ KDBUS_ITEM_ATTACH_FLAGS_RECV, { 8, NONE }, { 0, 4, 7, 9 } },
	{ KDBUS_ITEM_ID, { 8, NONE }, { 0, 4, 7, 9 } },
	{ KDBUS_ITEM_DST_ID, { 8, NONE }, { 0, 4, 7, 16 } },
	{ KDBUS_ITEM_CREDS, { 64, NONE }, { 0, 32, 63, 65 } },
	/* [QUIRK] unchecked in the reference, §17.1 row 10 */
	{ KDBUS_ITEM_PIDS, { 24, NONE }, { 0, 8, 23, 25 } },
	{ KDBUS_ITEM_POLICY_ACCESS, { 24, NONE }, { 0, 16, 23, 25 } },
	{ KDBUS_ITEM_ID_ADD, { 16, NONE }, { 0, 8, 15, 17 } },
	{ KDBUS_ITEM_ID_REMOVE, { 16, NONE }, { 0, 8, 15, 17 } },
	{ KDBUS_ITEM_NAME_ADD, { 32, 33, NONE }, { 0, 16, 31, 34 } },
	{ KDBUS_ITEM_NAME_REMOVE, { 32, 33, NONE }, { 0, 16, 31, 34 } },
	{ KDBUS_ITEM_NAME_CHANGE, { 32, 33, NONE }, { 0, 16, 31, 34 } },
	{ KDBUS_ITEM_DST_NAME, { 1, NONE }, { 0, 2, 3, 8 } },
	{ KDBUS_ITEM_NAME, { 1, NONE }, { 0, 2, 3, 8 } },
	{ KDBUS_ITEM_SECLABEL, { 1, NONE }, { 0, 2, 3, 8 } },
};

/* §5.2: payload lengths; zeroes as contents, hence the only string is the empty one */
static void payloads_have_the_length_of_their_type(void **state)
{
	const struct length_rule *rule;
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(length_rules); i++) {
		rule = &length_rules[i];
		for (k = 0; k < 4 && rule->good[k] != NONE && (k == 0 || rule->good[k]); k++)
			assert_int_equal(validate(rule->type, NULL, rule->good[k]), 0);
		for (k = 0; k < 4 && rule->bad[k] != NONE; k++)
			assert_int_equal(validate(rule->type, NULL, rule->bad[k]), -EINVAL);
	}
}

/* §5.2 PAYLOAD_VEC: exactly 16; size not 0 */
static void a_vector_is_not_empty(void **state)
{
	u64 vec[3] = { 1, 0, 0 };

	assert_int_equal(validate(KDBUS_ITEM_PAYLOAD_VEC, vec, 16), 0);
	assert_int_equal(validate(KDBUS_ITEM_PAYLOAD_VEC, vec, 15), -EINVAL);
	assert_int_equal(validate(KDBUS_ITEM_PAYLOAD_VEC, vec, 17), -EINVAL);
	assert_int_equal(validate(KDBUS_ITEM_PAYLOAD_VEC, vec, 24), -EINVAL);
	vec[0] = 0;
	assert_int_equal(validate(KDBUS_ITEM_PAYLOAD_VEC, vec, 16), -EINVAL);
	/* On 32 bit it could not be a buffer; on 64 bit the total is what refuses it. */
	vec[0] = 1ULL << 32;
	assert_int_equal(validate(KDBUS_ITEM_PAYLOAD_VEC, vec, 16),
			 sizeof(size_t) == 8 ? 0 : -EINVAL);
}

/* §5.2 PAYLOAD_MEMFD: exactly 24; size not 0 is EINVAL, negative fd EBADF */
static void a_memfd_has_a_size_and_a_descriptor(void **state)
{
	struct kdbus_memfd memfd[2] = { { .size = 1, .fd = 0 } };

	assert_int_equal(validate(KDBUS_ITEM_PAYLOAD_MEMFD, memfd, 24), 0);
	assert_int_equal(validate(KDBUS_ITEM_PAYLOAD_MEMFD, memfd, 20), -EINVAL);
	assert_int_equal(validate(KDBUS_ITEM_PAYLOAD_MEMFD, memfd, 32), -EINVAL);
	memfd[0].fd = -1;
	assert_int_equal(validate(KDBUS_ITEM_PAYLOAD_MEMFD, memfd, 24), -EBADF);
	memfd[0].size = 0;
	assert_int_equal(validate(KDBUS_ITEM_PAYLOAD_MEMFD, memfd, 24), -EINVAL);
}

/* §5.2: NAME, DST_NAME, SECLABEL; §15.7 "NAME item of 17 bytes whose payload lacks the NUL" */
static void strings_end_with_their_only_nul(void **state)
{
	static const u64 types[] = { KDBUS_ITEM_NAME, KDBUS_ITEM_DST_NAME, KDBUS_ITEM_SECLABEL };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		assert_int_equal(validate(types[i], "x.y", 4), 0);
		assert_int_equal(validate(types[i], "not a name", 11), 0);
		assert_int_equal(validate(types[i], "x", 1), -EINVAL);
		assert_int_equal(validate(types[i], "x\0y", 4), -EINVAL);
		assert_int_equal(validate(types[i], "x.y\0", 5), -EINVAL);
	}
}

/* §5.2, §5.4: MAKE_NAME and CONN_DESCRIPTION are sysnames */
static void sysnames_are_checked_as_such(void **state)
{
	static const u64 types[] = { KDBUS_ITEM_MAKE_NAME, KDBUS_ITEM_CONN_DESCRIPTION };
	char longest[65];
	size_t i;

	memset(longest, 'x', sizeof(longest));
	longest[64] = 0;
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		assert_int_equal(validate(types[i], "1000-demo", 10), 0);
		assert_int_equal(validate(types[i], "", 1), -EINVAL);
		assert_int_equal(validate(types[i], "a b", 4), -EINVAL);
		assert_int_equal(validate(types[i], longest, 65), -ENAMETOOLONG);
		assert_int_equal(validate(types[i], longest + 1, 64), 0);
	}
}

/* §5.2: payload of at least 32 bytes; beyond that a valid string */
static void a_name_change_ends_with_a_string_or_nothing(void **state)
{
	char payload[64] = { 0 };
	u64 type;

	for (type = KDBUS_ITEM_NAME_ADD; type <= KDBUS_ITEM_NAME_CHANGE; type++) {
		memcpy(payload + 32, "x.y", 4);
		assert_int_equal(validate(type, payload, 32), 0);
		assert_int_equal(validate(type, payload, 36), 0);
		assert_int_equal(validate(type, payload, 35), -EINVAL);
		assert_int_equal(validate(type, payload, 37), -EINVAL);
		assert_int_equal(validate(type, payload, 33), -EINVAL);
	}
}

/* §6.1: size 8..4096, multiple of 8, at least one hash function */
static void bloom_parameters_have_a_range(void **state)
{
	static const u64 good[] = { 8, 16, 64, 4088, 4096 };
	static const u64 bad[] = { 0, 7, 9, 12, 4097, 4104, U64_MAX, 1ULL << 32 };
	struct kdbus_bloom_parameter param = { .n_hash = 1 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		param.size = good[i];
		assert_int_equal(core_bloom_parameter_check(&param), 0);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		param.size = bad[i];
		assert_int_equal(core_bloom_parameter_check(&param), -EINVAL);
	}
	param = (struct kdbus_bloom_parameter){ .size = 64, .n_hash = 0 };
	assert_int_equal(core_bloom_parameter_check(&param), -EINVAL);
	param.n_hash = U64_MAX;
	assert_int_equal(core_bloom_parameter_check(&param), 0);
}

static void put_some(struct core_writer *w)
{
	core_put_str(w, KDBUS_ITEM_NAME, "x.y");
	core_put_u64(w, KDBUS_ITEM_ID, 42);
	core_put_name(w, KDBUS_NAME_PRIMARY, "com.example.a");
	core_put(w, KDBUS_ITEM_FDS, NULL, 0);
}

/* 4 + 8 + 22 + 0 bytes of payload: 24, 24, 38 padded to 40, 16 */
#define SOME_SIZE (24 + 24 + 40 + 16)

static void counting_and_writing_agree(void **state)
{
	_Alignas(8) char buf[128];
	struct core_writer counter = CORE_COUNTER, w = CORE_WRITER(buf, sizeof(buf));
	size_t counted = 0, written = 0;

	put_some(&counter);
	assert_int_equal(core_writer_end(&counter, &counted), 0);
	put_some(&w);
	assert_int_equal(core_writer_end(&w, &written), 0);
	assert_int_equal(counted, SOME_SIZE);
	assert_int_equal(written, SOME_SIZE);
	assert_int_equal(core_items_check(buf, written), 0);
}

/* §5.1: the kernel zero-fills padding between items it generates */
static void written_padding_is_zero(void **state)
{
	_Alignas(8) char buf[128];
	struct core_writer w = CORE_WRITER(buf, sizeof(buf));
	static const char zero[8];
	size_t size;

	memset(buf, 0x5a, sizeof(buf));
	put_some(&w);
	core_put_str(&w, KDBUS_ITEM_NAME, "abc.d");
	assert_int_equal(core_writer_end(&w, &size), 0);
	assert_int_equal(size, SOME_SIZE + 22);
	assert_memory_equal(buf + 20, zero, 4);
	assert_memory_equal(buf + 48 + 38, zero, 2);
	assert_memory_equal(buf + size, zero, 2);
}

static void a_full_writer_stays_within_its_memory(void **state)
{
	_Alignas(8) char buf[128];
	struct core_writer w;
	size_t room, size;

	for (room = 0; room < SOME_SIZE; room++) {
		memset(buf, 0x5a, sizeof(buf));
		w = CORE_WRITER(buf, room);
		put_some(&w);
		size = 12345;
		assert_int_equal(core_writer_end(&w, &size), -EMSGSIZE);
		assert_int_equal(size, 12345);
		assert_true(w.pos <= room);
		assert_int_equal(buf[room], 0x5a);
	}
}

static void a_header_can_precede_the_items(void **state)
{
	_Alignas(8) char buf[64];
	struct core_writer w = CORE_WRITER(buf, sizeof(buf));
	struct kdbus_info *info;
	size_t size;

	memset(buf, 0x5a, sizeof(buf));
	info = core_writer_raw(&w, sizeof(*info));
	assert_ptr_equal(info, buf);
	assert_int_equal(info->size | info->id | info->flags, 0);
	core_put_u64(&w, KDBUS_ITEM_ID, 3);
	assert_int_equal(core_writer_end(&w, &size), 0);
	assert_int_equal(size, 24 + 24);
	assert_int_equal(core_item_u64((void *)(buf + 24)), 3);
	assert_null(core_writer_raw(&w, 24));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_list_is_sound),
		cmocka_unit_test(an_item_is_at_least_its_header),
		cmocka_unit_test(an_item_ends_inside_the_region),
		cmocka_unit_test(an_item_does_not_wrap),
		cmocka_unit_test(trailing_garbage_is_refused),
		cmocka_unit_test(padding_of_the_last_item_may_be_counted),
		cmocka_unit_test(items_start_at_multiples_of_8),
		cmocka_unit_test(payloads_have_the_length_of_their_type),
		cmocka_unit_test(a_vector_is_not_empty),
		cmocka_unit_test(a_memfd_has_a_size_and_a_descriptor),
		cmocka_unit_test(strings_end_with_their_only_nul),
		cmocka_unit_test(sysnames_are_checked_as_such),
		cmocka_unit_test(a_name_change_ends_with_a_string_or_nothing),
		cmocka_unit_test(bloom_parameters_have_a_range),
		cmocka_unit_test(counting_and_writing_agree),
		cmocka_unit_test(written_padding_is_zero),
		cmocka_unit_test(a_full_writer_stays_within_its_memory),
		cmocka_unit_test(a_header_can_precede_the_items),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
