// SPDX-License-Identifier: LGPL-2.1-or-later
/* Metadata: spec §8.1 (masks), §8.3 and §8.4 (items), §8.6 (capabilities). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "item.h"
#include "meta.h"
#include "names.h"

#define TIMESTAMP KDBUS_ATTACH_TIMESTAMP
#define CREDS KDBUS_ATTACH_CREDS
#define CAPS KDBUS_ATTACH_CAPS

/* §8.1 rows I and P: TIMESTAMP, CREDS, PIDS, AUXGROUPS, NAMES, CONN_DESCRIPTION; the rest */
static void the_sets_of_kinds_are_those_of_the_spec(void **state)
{
	assert_int_equal(CORE_META_IMPLICIT, 0x201f);
	assert_int_equal(CORE_META_PROC, 0x1fe0);
	assert_int_equal(CORE_META_PROCESS, 0x1fee);
	assert_int_equal(CORE_META_NOTIFY, 0x0001);
}

/* §8.1: (S ∪ I ∪ P) ∩ R */
static void a_message_carries_what_is_released_implicit_or_readable(void **state)
{
	assert_int_equal(core_meta_for_message(0, 0x3fff, 0), 0x201f);
	assert_int_equal(core_meta_for_message(CAPS, 0x3fff, 0), 0x241f);
	assert_int_equal(core_meta_for_message(0, 0x3fff, CORE_META_PROC), 0x3fff);
	assert_int_equal(core_meta_for_message(0x3fff, 0, CORE_META_PROC), 0);
	assert_int_equal(core_meta_for_message(0, TIMESTAMP | CREDS, 0), TIMESTAMP | CREDS);
	assert_int_equal(core_meta_for_message(~0ULL, ~0ULL, ~0ULL), 0x3fff);
}

/* §8.1: evaluated only for requested bits outside S ∪ I */
static void the_proc_rule_is_asked_only_if_it_matters(void **state)
{
	assert_int_equal(core_meta_proc_wanted(0, 0x201f), 0);
	assert_int_equal(core_meta_proc_wanted(0x3fff, 0x3fff), 0);
	assert_int_equal(core_meta_proc_wanted(0, 0), 0);
	assert_int_equal(core_meta_proc_wanted(0, 0x3fff), CORE_META_PROC);
	assert_int_equal(core_meta_proc_wanted(CAPS, CAPS | TIMESTAMP), 0);
	assert_int_equal(core_meta_proc_wanted(TIMESTAMP, CAPS | TIMESTAMP), CAPS);
}

/* §8.1 rule P, points 1 to 4 in order */
static void the_proc_rule_follows_its_four_points(void **state)
{
	static const struct {
		struct core_meta_proc facts;
		bool granted;
	} rows[] = {
		{ { .visible = false, .same = true, .hidepid = 0, .gid_exempt = true }, false },
		{ { .visible = true, .same = true, .hidepid = 2, .gid_exempt = false }, true },
		{ { .visible = true, .same = false, .hidepid = 0, .gid_exempt = false }, true },
		{ { .visible = true, .same = false, .hidepid = 1, .gid_exempt = false }, false },
		{ { .visible = true, .same = false, .hidepid = 2, .gid_exempt = false }, false },
		{ { .visible = true, .same = false, .hidepid = 1, .gid_exempt = true }, true },
		{ { .visible = true, .same = false, .hidepid = 4, .gid_exempt = true }, true },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(core_meta_proc_granted(&rows[i].facts),
				 rows[i].granted ? CORE_META_PROC : 0);
}

/* §8.1: S(target) ∩ Q; no implicit set; TIMESTAMP never */
static void conn_info_shows_only_what_is_released(void **state)
{
	assert_int_equal(core_meta_for_conn(0, 0x3fff), 0);
	assert_int_equal(core_meta_for_conn(0x3fff, 0x3fff), 0x3ffe);
	assert_int_equal(core_meta_for_conn(CREDS | CAPS, CREDS | TIMESTAMP), CREDS);
}

/* §8.1: O ∩ Q, process items only */
static void creator_info_shows_process_items(void **state)
{
	assert_int_equal(core_meta_for_creator(0x3fff, 0x3fff), CORE_META_PROCESS);
	assert_int_equal(core_meta_for_creator(CREDS, 0x3fff), CREDS);
	assert_int_equal(core_meta_for_creator(0x3fff, CAPS), CAPS);
	assert_int_equal(core_meta_for_creator(0, 0x3fff), 0);
}

static struct core_names names;
static struct core_name_holder holder, other;

static void acquire(struct core_name_holder *who, const char *name, u64 flags)
{
	struct core_name_change change;
	u64 return_flags;

	assert_int_equal(core_names_acquire(&names, who, name, flags, &return_flags, &change), 0);
	core_name_change_done(&change);
}

static int setup(void **state)
{
	core_names_init(&names);
	core_name_holder_init(&holder, 2);
	core_name_holder_init(&other, 3);
	return 0;
}

static int teardown(void **state)
{
	struct core_name_change change;

	while (core_names_release_next(&names, &holder, &change))
		core_name_change_done(&change);
	while (core_names_release_next(&names, &other, &change))
		core_name_change_done(&change);
	core_name_holder_deinit(&holder);
	core_name_holder_deinit(&other);
	core_names_deinit(&names);
	return 0;
}

static const u64 groups[] = { 10, 65534, 4294967295ULL };
static const u32 caps[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };

static struct core_meta full(void)
{
	return (struct core_meta){
		.have = _KDBUS_ATTACH_ALL,
		.creds = { 1, 2, 3, 4, 5, 6, 7, 8 },
		.pids = { 11, 12, 13 },
		.auxgroups = groups,
		.n_auxgroups = 3,
		.tid_comm = "thread",
		.pid_comm = "leader",
		.exe = "/bin/true",
		.cmdline = "true\0--now",
		.cmdline_size = 11,
		.cgroup = "/",
		.last_cap = 40,
		.caps = caps,
		.seclabel = "unconfined",
		.audit = { 21, 22 },
		.names = &holder,
		.description = "peer",
		.timestamp = { 31, 32, 33 },
	};
}

static char buf[4096] __attribute__((aligned(8)));
static size_t size;

static void write_meta(const struct core_meta *meta, u64 mask)
{
	struct core_writer w = CORE_WRITER(buf, sizeof(buf));

	memset(buf, 0x5a, sizeof(buf));
	core_meta_put(&w, meta, mask);
	assert_int_equal(core_writer_end(&w, &size), 0);
	assert_int_equal(size, core_meta_size(meta, mask));
	assert_int_equal(core_items_check(buf, size), 0);
}

/* §8.4 */
static void items_come_in_the_order_of_the_spec(void **state)
{
	static const u64 order[] = {
		KDBUS_ITEM_CREDS,	KDBUS_ITEM_PIDS,       KDBUS_ITEM_AUXGROUPS,
		KDBUS_ITEM_TID_COMM,	KDBUS_ITEM_PID_COMM,   KDBUS_ITEM_EXE,
		KDBUS_ITEM_CMDLINE,	KDBUS_ITEM_CGROUP,     KDBUS_ITEM_CAPS,
		KDBUS_ITEM_SECLABEL,	KDBUS_ITEM_AUDIT,      KDBUS_ITEM_OWNED_NAME,
		KDBUS_ITEM_OWNED_NAME,	KDBUS_ITEM_CONN_DESCRIPTION, KDBUS_ITEM_TIMESTAMP,
	};
	struct core_meta meta = full();
	const struct kdbus_item *item;
	size_t i = 0;

	acquire(&holder, "z.z", 0);
	acquire(&holder, "a.a", 0);
	write_meta(&meta, _KDBUS_ATTACH_ALL);
	core_item_for_each(item, buf, size) {
		assert_true(i < ARRAY_SIZE(order));
		assert_int_equal(item->type, order[i++]);
	}
	assert_int_equal(i, ARRAY_SIZE(order));
}

/* Find the only item of a type. */
static const struct kdbus_item *only(u64 type)
{
	const struct kdbus_item *item, *found = NULL;

	core_item_for_each(item, buf, size) {
		if (item->type != type)
			continue;
		assert_null(found);
		found = item;
	}
	assert_non_null(found);
	return found;
}

static void expect_str(u64 type, const char *str)
{
	const struct kdbus_item *item = only(type);

	assert_int_equal(core_item_payload_size(item), strlen(str) + 1);
	assert_string_equal(core_item_str(item), str);
}

/* §5.3, §8.3 */
static void items_have_the_contents_of_the_spec(void **state)
{
	struct core_meta meta = full();

	acquire(&holder, "a.b", KDBUS_NAME_ALLOW_REPLACEMENT);
	write_meta(&meta, _KDBUS_ATTACH_ALL);
	assert_int_equal(only(KDBUS_ITEM_CREDS)->size, 80);
	assert_memory_equal(&only(KDBUS_ITEM_CREDS)->creds, &meta.creds, 64);
	assert_int_equal(only(KDBUS_ITEM_PIDS)->size, 40);
	assert_memory_equal(&only(KDBUS_ITEM_PIDS)->pids, &meta.pids, 24);
	assert_int_equal(only(KDBUS_ITEM_AUXGROUPS)->size, 16 + 24);
	assert_memory_equal(only(KDBUS_ITEM_AUXGROUPS)->data64, groups, 24);
	expect_str(KDBUS_ITEM_TID_COMM, "thread");
	expect_str(KDBUS_ITEM_PID_COMM, "leader");
	expect_str(KDBUS_ITEM_EXE, "/bin/true");
	assert_int_equal(only(KDBUS_ITEM_CMDLINE)->size, 16 + 11);
	assert_memory_equal(only(KDBUS_ITEM_CMDLINE)->str, "true\0--now", 11);
	expect_str(KDBUS_ITEM_CGROUP, "/");
	expect_str(KDBUS_ITEM_SECLABEL, "unconfined");
	assert_int_equal(only(KDBUS_ITEM_AUDIT)->audit.sessionid, 21);
	assert_int_equal(only(KDBUS_ITEM_AUDIT)->audit.loginuid, 22);
	assert_int_equal(only(KDBUS_ITEM_OWNED_NAME)->name.flags,
			 KDBUS_NAME_PRIMARY | KDBUS_NAME_ALLOW_REPLACEMENT);
	assert_string_equal(only(KDBUS_ITEM_OWNED_NAME)->name.name, "a.b");
	expect_str(KDBUS_ITEM_CONN_DESCRIPTION, "peer");
	assert_memory_equal(&only(KDBUS_ITEM_TIMESTAMP)->timestamp, &meta.timestamp, 24);
}

/* Appendix B.5: size 52, occupying 56 */
static void the_caps_item_is_as_worked_out(void **state)
{
	struct core_meta meta = full();
	const struct kdbus_item *item;

	write_meta(&meta, KDBUS_ATTACH_CAPS | KDBUS_ATTACH_AUDIT);
	item = only(KDBUS_ITEM_CAPS);
	assert_int_equal(item->size, 52);
	assert_int_equal(item->caps.last_cap, 40);
	assert_memory_equal(item->caps.caps, caps, 32);
	assert_ptr_equal(only(KDBUS_ITEM_AUDIT), (char *)item + 56);
}

/* §8.3: W = ceil((last_cap + 1) / 32) */
static void capability_sets_have_whole_words(void **state)
{
	assert_int_equal(core_cap_words(0), 1);
	assert_int_equal(core_cap_words(31), 1);
	assert_int_equal(core_cap_words(32), 2);
	assert_int_equal(core_cap_words(40), 2);
	assert_int_equal(core_cap_words(63), 2);
	assert_int_equal(core_cap_words(64), 3);
}

/* §8.1: before dropping items that do not exist */
static void what_does_not_exist_is_left_out(void **state)
{
	struct core_meta meta = full();
	const struct kdbus_item *item;
	int bit, n;

	for (bit = 0; bit < 14; bit++) {
		meta.have = 1 << bit;
		if (bit == 4)
			acquire(&holder, "a.b", 0);
		write_meta(&meta, _KDBUS_ATTACH_ALL);
		assert_int_equal(only(0x1000 + bit)->type, 0x1000 + bit);
		n = 0;
		core_item_for_each(item, buf, size)
			n++;
		assert_int_equal(n, 1);
		write_meta(&meta, _KDBUS_ATTACH_ALL & ~(1 << bit));
		assert_int_equal(size, 0);
	}
}

/* §8.3: AUXGROUPS is there even if there are none */
static void auxgroups_may_be_empty(void **state)
{
	struct core_meta meta = { .have = KDBUS_ATTACH_AUXGROUPS };

	write_meta(&meta, _KDBUS_ATTACH_ALL);
	assert_int_equal(only(KDBUS_ITEM_AUXGROUPS)->size, 16);
}

/* §8.3: primary owner or idle activator, IN_QUEUE excluded, in order of acquisition */
static void only_owned_names_are_shown(void **state)
{
	struct core_meta meta = { .have = KDBUS_ATTACH_NAMES, .names = &holder };
	const struct kdbus_item *item;

	write_meta(&meta, _KDBUS_ATTACH_ALL);
	assert_int_equal(size, 0);
	acquire(&other, "queued.for", 0);
	acquire(&holder, "b.first", 0);
	acquire(&holder, "queued.for", KDBUS_NAME_QUEUE);
	acquire(&holder, "a.second", 0);
	write_meta(&meta, _KDBUS_ATTACH_ALL);
	item = (void *)buf;
	assert_string_equal(item->name.name, "b.first");
	item = core_item_next(item);
	assert_string_equal(item->name.name, "a.second");
	assert_ptr_equal(core_item_next(item), buf + ALIGN(size, (size_t)8));
	meta.names = NULL;
	write_meta(&meta, _KDBUS_ATTACH_ALL);
	assert_int_equal(size, 0);
}

static void an_idle_activator_shows_its_name(void **state)
{
	struct core_meta meta = { .have = KDBUS_ATTACH_NAMES, .names = &holder };
	struct core_name_change change;

	assert_int_equal(core_names_attach_activator(&names, &holder, "a.b", &change), 0);
	core_name_change_done(&change);
	write_meta(&meta, _KDBUS_ATTACH_ALL);
	assert_int_equal(only(KDBUS_ITEM_OWNED_NAME)->name.flags,
			 KDBUS_NAME_PRIMARY | KDBUS_NAME_ACTIVATOR);
	acquire(&other, "a.b", 0);
	write_meta(&meta, _KDBUS_ATTACH_ALL);
	assert_int_equal(size, 0);
}

static u32 shown[8];

static void show(enum core_userns userns, bool is_owner, u32 last_cap, u32 word)
{
	u32 in[8];
	size_t i;

	for (i = 0; i < 8; i++)
		in[i] = word;
	memset(shown, 0x5a, sizeof(shown));
	core_meta_caps(userns, is_owner, last_cap, in, shown);
}

/* §8.6: R = N → verbatim; bits above last_cap cleared */
static void capabilities_are_verbatim_in_the_same_namespace(void **state)
{
	static const u32 expect[8] = { ~0U, 0x1ff, ~0U, 0x1ff, ~0U, 0x1ff, ~0U, 0x1ff };

	show(CORE_USERNS_SAME, true, 40, ~0U);
	assert_memory_equal(shown, expect, sizeof(expect));
	show(CORE_USERNS_SAME, false, 40, 0x105);
	assert_int_equal(shown[0], 0x105);
	assert_int_equal(shown[7], 0x105);
}

/* §8.6: N a strict ancestor of R, child of N owned by the sender's euid */
static void an_owner_has_all_capabilities_below(void **state)
{
	static const u32 expect[8] = { 0, 0, ~0U, 0x1ff, ~0U, 0x1ff, ~0U, 0x1ff };

	show(CORE_USERNS_ANCESTOR, true, 40, 0x10);
	assert_memory_equal(shown, expect, sizeof(expect));
	show(CORE_USERNS_ANCESTOR, false, 40, 0x10);
	assert_int_equal(shown[0], 0x10);
	assert_int_equal(shown[6], 0x10);
}

/* §8.6: N neither R nor an ancestor of R → all sets zero */
static void a_foreigner_has_no_capabilities(void **state)
{
	static const u32 expect[8];

	show(CORE_USERNS_FOREIGN, true, 40, ~0U);
	assert_memory_equal(shown, expect, sizeof(expect));
}

static void bits_above_the_last_capability_are_cleared(void **state)
{
	show(CORE_USERNS_SAME, false, 31, ~0U);
	assert_int_equal(shown[0], ~0U);
	assert_int_equal(shown[3], ~0U);
	assert_int_equal(shown[4], 0x5a5a5a5a);
	show(CORE_USERNS_SAME, false, 0, ~0U);
	assert_int_equal(shown[0], 1);
	show(CORE_USERNS_ANCESTOR, true, 32, 0);
	assert_int_equal(shown[2], ~0U);
	assert_int_equal(shown[3], 1);
}

#define NAMED(_name) cmocka_unit_test_setup_teardown(_name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sets_of_kinds_are_those_of_the_spec),
		cmocka_unit_test(a_message_carries_what_is_released_implicit_or_readable),
		cmocka_unit_test(the_proc_rule_is_asked_only_if_it_matters),
		cmocka_unit_test(the_proc_rule_follows_its_four_points),
		cmocka_unit_test(conn_info_shows_only_what_is_released),
		cmocka_unit_test(creator_info_shows_process_items),
		NAMED(items_come_in_the_order_of_the_spec),
		NAMED(items_have_the_contents_of_the_spec),
		NAMED(the_caps_item_is_as_worked_out),
		cmocka_unit_test(capability_sets_have_whole_words),
		NAMED(what_does_not_exist_is_left_out),
		NAMED(auxgroups_may_be_empty),
		NAMED(only_owned_names_are_shown),
		NAMED(an_idle_activator_shows_its_name),
		cmocka_unit_test(capabilities_are_verbatim_in_the_same_namespace),
		cmocka_unit_test(an_owner_has_all_capabilities_below),
		cmocka_unit_test(a_foreigner_has_no_capabilities),
		cmocka_unit_test(bits_above_the_last_capability_are_cleared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
