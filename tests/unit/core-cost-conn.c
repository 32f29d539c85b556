// SPDX-License-Identifier: LGPL-2.1-or-later
/* Many connections on one bus, of many users. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base.h"
#include "bus.h"
#include "conn.h"
#include "core-cost.h"
#include "kdbus.h"
#include "limits.h"
#include "send.h"

struct world {
	struct core_domain domain;
	struct core_bus bus;
	struct core_conn *conns;
	size_t n;
};

static unsigned long delivered;

static int swallow(struct core_conn *to, const struct core_parcel *parcel, struct core_reply *slot)
{
	delivered++;
	return 0;
}

static void lose(struct core_conn *to)
{
}

static bool never_busy(const struct core_conn *conn)
{
	return false;
}

static const struct core_sink sink = { .deliver = swallow, .lose = lose, .busy = never_busy };

static void wake(struct core_conn *conn)
{
}

static const struct core_host_ops ops = { .wake = wake };

static void connect(struct world *world, size_t i)
{
	const struct core_hello hello = { .kind = CORE_KIND_ORDINARY };
	const struct core_opener opener = { .uid = 1 + i / CORE_USER_MAX_CONN,
					    .cred = { .euid = 1 + i / CORE_USER_MAX_CONN } };
	const struct core_connect args = { .hello = &hello, .opener = &opener,
					   .deadlines = &world->bus.deadlines, .sink = &sink };

	assert_int_equal(core_conn_hello(&world->conns[i], &world->bus.def, &args), 0);
}

/* Room for one more connection is left. */
static void world_init(struct world *world, size_t n)
{
	static const struct core_bus_make make = { .name = "0-bus", .bloom = { .size = 64 } };
	static const u8 random[16];

	world->n = n;
	world->conns = calloc(n + 1, sizeof(*world->conns));
	assert_non_null(world->conns);
	core_domain_init(&world->domain, &ops);
	assert_int_equal(core_bus_make(&world->domain, &world->bus, &make, 0, 0, random), 0);
	for (size_t i = 0; i < n; i++)
		connect(world, i);
}

static void world_deinit(struct world *world)
{
	core_bus_teardown(&world->bus);
	for (size_t i = 0; i <= world->n; i++)
		core_conn_deinit(&world->conns[i]);
	core_domain_deinit(&world->domain);
	free(world->conns);
}

static unsigned long steps_to_find(size_t n)
{
	unsigned long worst = 0, before;
	struct world world;

	world_init(&world, n);
	for (size_t i = 0; i < n; i += 1 + n / 1000) {
		before = core_steps;
		assert_ptr_equal(core_bus_find_conn(&world.bus, world.conns[i].id),
				 &world.conns[i]);
		cost_worst(&worst, before);
	}
	world_deinit(&world);
	return worst;
}

static unsigned long steps_to_send(size_t n)
{
	struct kdbus_msg image = { .cookie = 1 };
	const struct core_msg msg = { .msg = &image, .route = CORE_ROUTE_UNICAST };
	unsigned long worst = 0, before, sent = 0;
	struct world world;

	delivered = 0;
	world_init(&world, n);
	for (size_t i = 0; i < n; i += 1 + n / 1000) {
		const struct core_send send = { .from = &world.conns[i], .msg = &msg };

		/* To itself, whom it may talk to whatever its user. */
		image.dst_id = world.conns[i].id;
		before = core_steps;
		assert_int_equal(core_bus_send(&send, NULL), 0);
		cost_worst(&worst, before);
		sent++;
	}
	assert_int_equal(delivered, sent);
	world_deinit(&world);
	return worst;
}

static unsigned long steps_to_connect_and_disconnect(size_t n)
{
	unsigned long worst = 0, before;
	struct world world;

	world_init(&world, n);
	for (int i = 0; i < 10; i++) {
		before = core_steps;
		connect(&world, n);
		core_conn_disconnect(&world.conns[n]);
		cost_worst(&worst, before);
		core_conn_deinit(&world.conns[n]);
	}
	world_deinit(&world);
	return worst;
}

/* One user per uid, entered in ascending order, the worst one for a tree. */
static unsigned long steps_to_find_a_user(size_t n)
{
	unsigned long worst = 0, before;
	struct core_user *user, **used = calloc(n, sizeof(struct core_user *));
	struct core_users users;

	assert_non_null(used);
	core_users_init(&users);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(core_users_get(&users, i, &used[i]), 0);
	for (size_t i = 0; i < n; i += 1 + n / 1000) {
		before = core_steps;
		assert_int_equal(core_users_get(&users, i, &user), 0);
		cost_worst(&worst, before);
		assert_ptr_equal(user, used[i]);
		core_user_unref(user);
	}
	for (size_t i = 0; i < n; i++)
		core_user_unref(used[i]);
	core_users_deinit(&users);
	free(used);
	return worst;
}

static unsigned long steps_to_make_and_end_an_endpoint(size_t n)
{
	struct core_endpoint *eps = calloc(n, sizeof(*eps)), ep;
	unsigned long worst = 0, before;
	struct world world;
	char name[32];

	assert_non_null(eps);
	world_init(&world, 0);
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "0-%08zu", i);
		assert_int_equal(core_endpoint_make(&world.bus, &eps[i], name, 0), 0);
	}
	for (int i = 0; i < 10; i++) {
		before = core_steps;
		snprintf(name, sizeof(name), "0-%08zux", n * i / 10);
		assert_int_equal(core_endpoint_make(&world.bus, &ep, name, 0), 0);
		core_endpoint_teardown(&ep);
		cost_worst(&worst, before);
	}
	world_deinit(&world);
	free(eps);
	return worst;
}

void cost_of_connections(void **state)
{
	cost_check("finding a connection", 2, 2, steps_to_find);
	cost_check("finding a user", 2, 2, steps_to_find_a_user);
	cost_check("making and ending an endpoint", 4, 4, steps_to_make_and_end_an_endpoint);
	cost_check("sending to an id", 2, 2, steps_to_send);
	/* Into the tables of connections and of users, with its two notifications. */
	cost_check("connecting and disconnecting", 16, 4, steps_to_connect_and_disconnect);
}
