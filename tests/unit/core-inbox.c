// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a connection receives into (spec §7.10, §14). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base.h"
#include "failalloc.h"
#include "inbox.h"
#include "limits.h"

#define POOL (64 * 1024)

static struct core_inbox inbox;
static struct core_entry entries[CORE_CONN_MAX_MSGS + 8];

static int setup(void **state)
{
	/* Nothing may count on what was there before. */
	memset(&inbox, 0xa5, sizeof(inbox));
	memset(entries, 0xa5, sizeof(entries));
	return core_inbox_init(&inbox, POOL);
}

static int teardown(void **state)
{
	struct core_entry *entry;

	while ((entry = core_inbox_first(&inbox)) != NULL) {
		core_inbox_remove(&inbox, entry);
		core_inbox_release(&inbox, entry);
	}
	core_inbox_deinit(&inbox);
	return failalloc_live() != 0;
}

static int receive(struct core_entry *entry, u32 user, size_t size, unsigned int fds)
{
	int r = core_inbox_reserve(&inbox, entry, user, size, fds);

	return r ? r : core_inbox_push(&inbox, entry, 0);
}

static void s14_4_a_message_is_charged_until_it_leaves_the_queue(void **state)
{
	assert_int_equal(receive(&entries[0], 2, 100, 3), 0);
	assert_int_equal(core_quota_get(&inbox.quota, 2).memory, 104);
	assert_int_equal(core_quota_get(&inbox.quota, 2).msgs, 1);
	assert_int_equal(core_quota_get(&inbox.quota, 2).fds, 3);
	core_inbox_publish(&inbox, &entries[0]);
	core_inbox_remove(&inbox, &entries[0]);
	core_inbox_release(&inbox, &entries[0]);
	assert_int_equal(core_quota_get(&inbox.quota, 2).memory, 0);
	assert_int_equal(core_quota_get(&inbox.quota, 2).msgs, 0);
	assert_int_equal(core_quota_get(&inbox.quota, 2).fds, 0);
	assert_int_equal(inbox.pool.accounted, 0);
	assert_int_equal(core_pool_free(&inbox.pool, 0), 0);
}

/* The pool is in use by its owner, the quota is not (§17.1 row 5). */
static void s17_1_row_5_a_full_pool_leaves_no_charge(void **state)
{
	struct core_slice *slice;

	assert_int_equal(core_pool_alloc(&inbox.pool, POOL - 64, false, &slice), 0);
	for (int i = 0; i < CORE_CONN_MAX_MSGS + 4; i++)
		assert_int_equal(receive(&entries[0], 1, 128, 1), -EXFULL);
	assert_int_equal(core_quota_get(&inbox.quota, 1).memory, 0);
	assert_int_equal(core_quota_get(&inbox.quota, 1).msgs, 0);
	assert_int_equal(core_quota_get(&inbox.quota, 1).fds, 0);
	core_pool_release(&inbox.pool, slice);
	assert_int_equal(receive(&entries[0], 1, 128, 16), 0);
}

static void s14_4_unfreed_slices_are_no_quota(void **state)
{
	int r, i = 0;

	while (!(r = receive(&entries[0], 1, 8192, 0))) {
		core_inbox_publish(&inbox, &entries[0]);
		core_inbox_remove(&inbox, &entries[0]);
		core_inbox_release(&inbox, &entries[0]);
		assert_true(++i <= POOL / 8192);
	}
	assert_int_equal(r, -EXFULL);
	assert_int_equal(i, POOL / 8192);
}

static void s14_4_exactly_256_again_after_draining(void **state)
{
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < CORE_CONN_MAX_MSGS; i++)
			assert_int_equal(receive(&entries[i], 1, 8, 0), 0);
		assert_int_equal(receive(&entries[CORE_CONN_MAX_MSGS], 1, 8, 0), -ENOBUFS);
		for (int i = 0; i < CORE_CONN_MAX_MSGS; i++) {
			core_inbox_remove(&inbox, &entries[i]);
			core_inbox_release(&inbox, &entries[i]);
		}
	}
}

static void s7_10_a_peeked_message_keeps_its_slice(void **state)
{
	assert_int_equal(receive(&entries[0], 1, 64, 0), 0);
	core_inbox_publish(&inbox, core_inbox_select(&inbox, false, 0));
	assert_int_equal(core_pool_free(&inbox.pool, 0), 0);
	assert_ptr_equal(core_inbox_select(&inbox, false, 0), &entries[0]);
	core_inbox_publish(&inbox, &entries[0]);
	core_inbox_remove(&inbox, &entries[0]);
	core_inbox_release(&inbox, &entries[0]);
	assert_int_equal(core_pool_free(&inbox.pool, 0), 0);
	assert_int_equal(core_pool_free(&inbox.pool, 0), -ENXIO);
}

static void s7_10_lost_messages_make_readable_until_reported(void **state)
{
	assert_false(core_inbox_readable(&inbox));
	assert_true(core_inbox_lose(&inbox));
	assert_false(core_inbox_lose(&inbox));
	assert_true(core_inbox_readable(&inbox));
	assert_int_equal(core_inbox_report_lost(&inbox), 2);
	assert_int_equal(core_inbox_report_lost(&inbox), 0);
	assert_false(core_inbox_readable(&inbox));
	assert_true(core_inbox_lose(&inbox));
	inbox.lost = U32_MAX;
	assert_false(core_inbox_lose(&inbox));
	assert_int_equal(core_inbox_report_lost(&inbox), U32_MAX);
}

static void s6_6_byebye_needs_an_empty_queue(void **state)
{
	assert_int_equal(receive(&entries[0], 1, 64, 0), 0);
	assert_int_equal(core_inbox_shut(&inbox, false), -EBUSY);
	core_inbox_publish(&inbox, &entries[0]);
	assert_int_equal(core_inbox_shut(&inbox, false), -EBUSY);
	assert_int_equal(receive(&entries[1], 1, 64, 0), 0);
	assert_int_equal(core_inbox_shut(&inbox, true), 0);
	assert_int_equal(receive(&entries[2], 1, 64, 0), -ECONNRESET);
}

static void s6_6_no_message_is_accepted_and_lost(void **state)
{
	assert_int_equal(core_inbox_reserve(&inbox, &entries[0], 1, 64, 0), 0);
	assert_int_equal(core_inbox_shut(&inbox, false), 0);
	assert_int_equal(core_inbox_push(&inbox, &entries[0], 0), -ECONNRESET);
	core_inbox_release(&inbox, &entries[0]);
}

static void s10_6_entries_are_found_by_name_in_order(void **state)
{
	for (int i = 0; i < 6; i++) {
		assert_int_equal(receive(&entries[i], 1, 64, 0), 0);
		entries[i].name_id = i % 3;
	}
	assert_ptr_equal(core_inbox_next_by_name(&inbox, NULL, 1), &entries[1]);
	assert_ptr_equal(core_inbox_next_by_name(&inbox, &entries[1], 1), &entries[4]);
	assert_null(core_inbox_next_by_name(&inbox, &entries[4], 1));
	assert_null(core_inbox_next_by_name(&inbox, NULL, 7));
}

/* half = 32768: after 8192 bytes of user 1, user 2 gets (32768 - 8192) / 3. */
static void s14_4_what_others_queue_lowers_the_share(void **state)
{
	assert_int_equal(receive(&entries[0], 1, 8192, 0), 0);
	assert_int_equal(inbox.pool.accounted, 8192);
	assert_int_equal(receive(&entries[1], 2, 8200, 0), -ENOBUFS);
	assert_int_equal(receive(&entries[1], 2, 8192, 0), 0);
	core_inbox_remove(&inbox, &entries[0]);
	core_inbox_release(&inbox, &entries[0]);
	assert_int_equal(receive(&entries[2], 3, 8200, 0), -ENOBUFS);
	core_inbox_remove(&inbox, &entries[1]);
	core_inbox_release(&inbox, &entries[1]);
	assert_int_equal(receive(&entries[2], 3, 8200, 0), 0);
}

static void releasing_nothing_does_nothing(void **state)
{
	core_inbox_release(&inbox, NULL);
	assert_int_equal(core_inbox_reserve(&inbox, &entries[0], 1, 64, 1), 0);
	core_inbox_release(&inbox, &entries[0]);
	core_inbox_release(&inbox, &entries[0]);
	assert_int_equal(core_quota_get(&inbox.quota, 1).msgs, 0);
}

static void odd_sizes_are_refused(void **state)
{
	assert_int_equal(receive(&entries[0], 1, 0, 0), -EINVAL);
	assert_int_equal(receive(&entries[0], 1, SIZE_MAX, 0), -ENOBUFS);
}

static void *fail_setup(void)
{
	if (core_inbox_init(&inbox, POOL) || receive(&entries[0], 1, 64, 0))
		abort();
	return &inbox;
}

static int fail_act(void *state)
{
	return receive(&entries[1], 30, 64, 2);
}

static void fail_dump(void *state, FILE *out)
{
	struct core_slice *slice;

	fprintf(out, "%u queued, %zu accounted\n", inbox.queue.n, inbox.pool.accounted);
	for (u32 user = 0; user < 40; user++)
		fprintf(out, "%u: %u %u\n", user, core_quota_get(&inbox.quota, user).memory,
			core_quota_get(&inbox.quota, user).msgs);
	list_for_each_entry(slice, &inbox.pool.all, all)
		fprintf(out, "%zu+%zu %d\n", slice->offset, slice->size, slice->busy);
}

static void fail_teardown(void *state)
{
	teardown(NULL);
}

static void an_allocation_that_fails_changes_nothing(void **state)
{
	static const struct failalloc_scenario scenario = {
		.setup = fail_setup,
		.act = fail_act,
		.dump = fail_dump,
		.teardown = fail_teardown,
	};

	assert_int_equal(failalloc_each(&scenario), 2);
}

#define with_inbox(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		with_inbox(s14_4_a_message_is_charged_until_it_leaves_the_queue),
		with_inbox(s17_1_row_5_a_full_pool_leaves_no_charge),
		with_inbox(s14_4_unfreed_slices_are_no_quota),
		with_inbox(s14_4_exactly_256_again_after_draining),
		with_inbox(s7_10_a_peeked_message_keeps_its_slice),
		with_inbox(s7_10_lost_messages_make_readable_until_reported),
		with_inbox(s6_6_byebye_needs_an_empty_queue),
		with_inbox(s6_6_no_message_is_accepted_and_lost),
		with_inbox(s10_6_entries_are_found_by_name_in_order),
		with_inbox(s14_4_what_others_queue_lowers_the_share),
		with_inbox(releasing_nothing_does_nothing),
		with_inbox(odd_sizes_are_refused),
		cmocka_unit_test(an_allocation_that_fails_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
