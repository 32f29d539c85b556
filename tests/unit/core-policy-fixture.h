/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_UNIT_CORE_POLICY_FIXTURE_H
#define TESTS_UNIT_CORE_POLICY_FIXTURE_H

/* Two databases, their owners, and lists of items to fill them with. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base.h"
#include "failalloc.h"
#include "item.h"
#include "kdbus.h"
#include "names.h"
#include "policy.h"

#define NONE  CORE_POLICY_NONE
#define SEE   KDBUS_POLICY_SEE
#define TALK  KDBUS_POLICY_TALK
#define OWN   KDBUS_POLICY_OWN
#define USER  KDBUS_POLICY_ACCESS_USER
#define GROUP KDBUS_POLICY_ACCESS_GROUP
#define WORLD KDBUS_POLICY_ACCESS_WORLD

static struct core_policy bus, endpoint;
static struct core_policy_owner a, b;
static struct core_names names;
static struct core_name_holder peer, other;
static u64 buffer[1024];
static struct core_writer items;

/* uid 1000, gid 100, and groups 5, 20 and 300 */
static const u32 groups[] = { 5, 20, 300 };
static const struct core_cred me = { .euid = 1000, .egid = 100, .groups = groups, .n_groups = 3 };
static const struct core_cred stranger = { .euid = 2000, .egid = 200 };

static inline void fresh_items(void)
{
	items = CORE_WRITER(buffer, sizeof(buffer));
}

static inline int setup(void **state)
{
	core_policy_init(&bus);
	core_policy_init(&endpoint);
	core_policy_owner_init(&a);
	core_policy_owner_init(&b);
	core_names_init(&names);
	core_name_holder_init(&peer, 7);
	core_name_holder_init(&other, 8);
	fresh_items();
	return 0;
}

static inline void release_all(struct core_name_holder *holder)
{
	struct core_name_change change;

	while (core_names_release_next(&names, holder, &change))
		core_name_change_done(&change);
	core_name_holder_deinit(holder);
}

static inline int teardown(void **state)
{
	core_policy_clear(&bus, &a);
	core_policy_clear(&bus, &b);
	release_all(&peer);
	release_all(&other);
	core_names_deinit(&names);
	return failalloc_live() ? -1 : 0;
}

static inline void name(const char *string)
{
	core_put_str(&items, KDBUS_ITEM_NAME, string);
}

static inline void access_item(u64 type, u64 level, u64 id)
{
	struct kdbus_policy_access access = { .type = type, .access = level, .id = id };

	core_put(&items, KDBUS_ITEM_POLICY_ACCESS, &access, sizeof(access));
}

/* Parses what was written since the last time. */
static inline int parse_mapped(unsigned int flags, core_policy_map_id map, void *data,
			       struct core_policy_set **ret_set)
{
	size_t size;

	assert_int_equal(core_writer_end(&items, &size), 0);
	fresh_items();
	return core_policy_parse((void *)buffer, size, flags, map, data, ret_set);
}

static inline int parse(unsigned int flags)
{
	struct core_policy_set *set = NULL;
	int r = parse_mapped(flags, NULL, NULL, &set);

	assert_true((r == 0) == (set != NULL));
	core_policy_set_free(set);
	return r;
}

static inline int install_in(struct core_policy *policy, struct core_policy_owner *owner)
{
	struct core_policy_set *set;
	int r;

	assert_int_equal(parse_mapped(0, NULL, NULL, &set), 0);
	r = core_policy_replace(policy, owner, set);
	if (r < 0)
		core_policy_set_free(set);
	return r;
}

static inline int install(struct core_policy_owner *owner)
{
	return install_in(&bus, owner);
}

/* a's only record: @string with one access entry */
static inline void only(const char *string, u64 type, u64 level, u64 id)
{
	name(string);
	access_item(type, level, id);
	assert_int_equal(install(&a), 0);
}

static inline int level(const char *string)
{
	return core_policy_level(&bus, &me, string);
}

/* §9.3: what may be uploaded */

#endif
