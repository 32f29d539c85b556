/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_UNIT_CORE_NAMES_FIXTURE_H
#define TESTS_UNIT_CORE_NAMES_FIXTURE_H

/* Four connections that want one name, and what each step changes. */

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
#include "kdbus.h"
#include "limits.h"
#include "names.h"

#define NAME "foo.bla.blaz"

#define REPLACE	  KDBUS_NAME_REPLACE_EXISTING
#define ALLOW	  KDBUS_NAME_ALLOW_REPLACEMENT
#define QUEUE	  KDBUS_NAME_QUEUE
#define IN_QUEUE  KDBUS_NAME_IN_QUEUE
#define ACTIVATOR KDBUS_NAME_ACTIVATOR
#define PRIMARY	  KDBUS_NAME_PRIMARY
#define ACQUIRED  KDBUS_NAME_ACQUIRED

enum {
	A,
	B,
	C,
	D,
	N_HOLDERS
};

static struct core_names names;
static struct core_name_holder holders[N_HOLDERS];
static struct core_name_change last;

static inline int setup(void **state)
{
	core_names_init(&names);
	for (size_t i = 0; i < N_HOLDERS; i++)
		core_name_holder_init(&holders[i], i + 1);
	memset(&last, 0, sizeof(last));
	return 0;
}

static inline int teardown(void **state)
{
	core_name_change_done(&last);
	for (size_t i = 0; i < N_HOLDERS; i++) {
		while (core_names_release_next(&names, &holders[i], &last))
			core_name_change_done(&last);
		core_name_holder_deinit(&holders[i]);
	}
	core_names_deinit(&names);
	return failalloc_live() ? -1 : 0;
}

static inline void acquire_name(int who, const char *name, u64 flags, int result, u64 return_flags)
{
	u64 got = ~0ULL;

	core_name_change_done(&last);
	assert_int_equal(core_names_acquire(&names, &holders[who], name, flags, &got, &last),
			 result);
	assert_int_equal(got, return_flags);
}

static inline void acquire(int who, u64 flags, u64 return_flags)
{
	acquire_name(who, NAME, flags, 0, return_flags);
}

static inline void attach(int who, int result)
{
	core_name_change_done(&last);
	assert_int_equal(core_names_attach_activator(&names, &holders[who], NAME, &last), result);
}

static inline void release(int who, int result)
{
	core_name_change_done(&last);
	assert_int_equal(core_names_release(&names, &holders[who], NAME, &last), result);
}

static inline void nothing_changed(void)
{
	static const struct core_name_change nothing;

	assert_int_equal(last.type, 0);
	assert_memory_equal(&last, &nothing, sizeof(nothing));
}

static inline void changed(u64 type, int from, u64 old_flags, int to, u64 new_flags)
{
	assert_int_equal(last.type, type);
	assert_ptr_equal(last.old_holder, from < 0 ? NULL : &holders[from]);
	assert_int_equal(last.old_flags, old_flags);
	assert_ptr_equal(last.new_holder, to < 0 ? NULL : &holders[to]);
	assert_int_equal(last.new_flags, new_flags);
	assert_string_equal(last.name, NAME);
	assert_int_not_equal(last.name_id, 0);
}

static inline void nothing_moves(void)
{
	assert_null(last.move_from);
	assert_null(last.move_to);
}

static inline void messages_move(int from, int to)
{
	assert_ptr_equal(last.move_from, &holders[from]);
	assert_ptr_equal(last.move_to, &holders[to]);
}

/* The claim of @who; 0: none. */
static inline void claim(int who, u64 flags)
{
	struct core_name_record *record = core_name_holder_find(&holders[who], NAME);

	if (!flags) {
		assert_null(record);
		return;
	}
	assert_non_null(record);
	assert_int_equal(record->flags, flags);
	assert_int_equal(core_name_record_owns(record), !!(flags & PRIMARY));
}

static inline void owner_is(int who)
{
	struct core_name *name = core_names_find(&names, NAME);

	if (who < 0) {
		assert_null(name);
		return;
	}
	assert_non_null(name);
	assert_ptr_equal(core_name_owner(name)->holder, &holders[who]);
}

/* The queue, as a string of holders: "BCA". */
static inline void queue_is(const char *expected)
{
	struct core_name *name = core_names_find(&names, NAME);
	char got[N_HOLDERS + 1] = "";
	struct core_name_record *record;
	size_t n = 0;

	assert_non_null(name);
	core_name_for_each_queued(record, name)
		got[n++] = 'A' + (record->holder - holders);
	assert_string_equal(got, expected);
}

/* §10.3 row 1 */

#endif
