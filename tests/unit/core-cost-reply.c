// SPDX-License-Identifier: LGPL-2.1-or-later
/* One service that owes many answers, all with one clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base.h"
#include "core-cost.h"
#include "limits.h"
#include "reply.h"

#define NAME_ID 7

struct world {
	struct core_deadlines deadlines;
	struct core_replier replier;
	struct core_replier heir;
	struct core_requester *requesters;
	size_t n_requesters;
	size_t n;
};

static struct core_reply *call(struct world *world, size_t i)
{
	struct core_reply_args args = { .cookie = i + 1, .name_id = NAME_ID, .deadline = i };
	struct core_reply *slot;

	assert_int_equal(core_reply_open(&world->requesters[i / CORE_CONN_MAX_REQUESTS_PENDING],
					 &world->replier, &args, &slot),
			 0);
	return slot;
}

/* @n calls, by as few connections as can be; the last one has made none. */
static void world_init(struct world *world, size_t n)
{
	*world = (struct world){ .n = n };
	world->n_requesters = n / CORE_CONN_MAX_REQUESTS_PENDING + 2;
	world->requesters = calloc(world->n_requesters, sizeof(*world->requesters));
	assert_non_null(world->requesters);
	core_replier_init(&world->replier);
	core_replier_init(&world->heir);
	for (size_t i = 0; i < world->n_requesters; i++)
		core_requester_init(&world->requesters[i], &world->deadlines);
	for (size_t i = 0; i < n; i++)
		call(world, i);
}

static void world_deinit(struct world *world)
{
	struct core_reply *slot;
	void *answer;

	for (size_t i = 0; i < world->n_requesters; i++)
		while ((slot = core_requester_first(&world->requesters[i])) != NULL)
			core_reply_orphan(slot, &answer);
	assert_null(core_replier_first(&world->replier));
	assert_null(core_replier_first(&world->heir));
	assert_int_equal(core_deadlines_next(&world->deadlines), U64_MAX);
	free(world->requesters);
}

static unsigned long steps_to_call_and_answer(size_t n)
{
	unsigned long worst = 0, before;
	struct core_reply *slot;
	struct world world;
	struct core_requester *requester;

	world_init(&world, n);
	for (size_t i = 0; i < n; i += 1 + n / 1000) {
		requester = &world.requesters[i / CORE_CONN_MAX_REQUESTS_PENDING];
		before = core_steps;
		slot = core_reply_find(requester, &world.replier, i + 1);
		assert_non_null(slot);
		assert_false(core_reply_take(slot));
		call(&world, i);
		cost_worst(&worst, before);
	}
	world_deinit(&world);
	return worst;
}

static unsigned long steps_per_expired_call(size_t n)
{
	unsigned long worst = 0, before;
	struct core_reply *slot;
	struct world world;
	void *answer;

	world_init(&world, n);
	for (size_t i = 0; i < n / 2; i++) {
		slot = core_deadlines_expired(&world.deadlines, n / 2);
		assert_non_null(slot);
		assert_int_equal(slot->deadline, i);
		assert_int_equal(core_reply_expire(slot, &answer), CORE_REPLY_TIMEOUT);
		before = core_steps;
		assert_int_equal(core_deadlines_next(&world.deadlines), i + 1);
		call(&world, i);
		assert_ptr_equal(core_deadlines_expired(&world.deadlines, i)->requester,
				 &world.requesters[i / CORE_CONN_MAX_REQUESTS_PENDING]);
		cost_worst(&worst, before);
		slot = core_deadlines_expired(&world.deadlines, i);
		core_reply_close(slot, &answer);
	}
	world_deinit(&world);
	return worst;
}

static unsigned long steps_per_call_handed_over(size_t n)
{
	unsigned long before;
	struct world world;

	world_init(&world, n);
	before = core_steps;
	assert_int_equal(core_reply_retarget(&world.replier, &world.heir, NAME_ID), n);
	before = core_steps - before;
	world_deinit(&world);
	return before / n;
}

static unsigned long steps_per_call_of_a_dead_service(size_t n)
{
	unsigned long before, taken;
	struct core_reply *slot;
	struct world world;

	world_init(&world, n);
	before = core_steps;
	while ((slot = core_replier_first(&world.replier)) != NULL)
		assert_int_equal(core_reply_kill(slot, -1), CORE_REPLY_DEAD);
	taken = core_steps - before;
	world_deinit(&world);
	return taken / n;
}

void cost_of_replies(void **state)
{
	cost_check("answering a call and making another", 24, 6, steps_to_call_and_answer);
	cost_check("expiring a call", 24, 6, steps_per_expired_call);
	cost_check("handing over a call", 4, 4, steps_per_call_handed_over);
	/* Not a single comparison: the service knows what it owes. */
	assert_int_equal(steps_per_call_of_a_dead_service(1000), 0);
}
