// SPDX-License-Identifier: LGPL-2.1-or-later
/* Policy: decisions and uploads among many records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base.h"
#include "core-cost.h"
#include "item.h"
#include "kdbus.h"
#include "policy.h"

static u64 buffer[64];

/* An empty record for @format with @i in it. */
static void install(struct core_policy *policy, struct core_policy_owner *owner, const char *format,
		    size_t i)
{
	struct core_writer items = CORE_WRITER(buffer, sizeof(buffer));
	struct core_policy_set *set;
	char name[64];
	size_t size;

	snprintf(name, sizeof(name), format, i);
	core_put_str(&items, KDBUS_ITEM_NAME, name);
	assert_int_equal(core_writer_end(&items, &size), 0);
	assert_int_equal(
		core_policy_parse((void *)buffer, size, CORE_POLICY_ONE_NAME, NULL, NULL, &set), 0);
	assert_int_equal(core_policy_replace(policy, owner, set), 0);
}

static unsigned long measure(size_t n)
{
	static const char *const asked[] = { "com.example.n7", "com.example.x", "com.a.b.c" };
	const struct core_cred cred = { .euid = 1 };
	struct core_policy_owner *owners = calloc(n, sizeof(*owners));
	struct core_policy policy;
	unsigned long worst = 0;

	assert_non_null(owners);
	core_policy_init(&policy);
	for (size_t i = 0; i < n; i++) {
		core_policy_owner_init(&owners[i]);
		install(&policy, &owners[i], i % 2 ? "com.example.n%zu" : "com.example.n%zu.*", i);
	}
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		unsigned long before = core_steps;

		core_policy_level(&policy, &cred, asked[i]);
		cost_worst(&worst, before);
	}
	for (size_t i = 0; i < n; i += n / 10) {
		unsigned long before = core_steps;

		install(&policy, &owners[i], "com.fresh.n%zu", i);
		cost_worst(&worst, before);
	}
	for (size_t i = 0; i < n; i++)
		core_policy_clear(&policy, &owners[i]);
	free(owners);
	return worst;
}

void cost_of_policy(void **state)
{
	/* Two walks down a red-black tree, for exact record and wildcard. */
	cost_check("policy", 4, 4, measure);
}
