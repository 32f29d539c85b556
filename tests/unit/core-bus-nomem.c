// SPDX-License-Identifier: LGPL-2.1-or-later
/* Every allocation of every command fails once: nothing leaks, nothing has changed. */
#include "core-bus-fixture.h"

#define NAME "com.example.a"

/* The commands that allocate, on a bus in use. */
struct scene {
	struct fixture f;
	struct core_endpoint ep;
	struct core_bus bus;
	bool has_ep, has_bus;
	struct core_reply *slot;
};

static void *setup(void)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct fixture *f = &s->f;

	if (!s || host_init(&f->host))
		abort();
	join(f, &f->a, KDBUS_HELLO_ACTIVATOR, NAME);
	join(f, &f->b, 0, NULL);
	join(f, &f->c, 0, NULL);
	acquire(&f->c, "com.example.c", KDBUS_NAME_ALLOW_REPLACEMENT);
	if (call_name(&f->b, NAME, 1))
		abort();
	return s;
}

static void teardown(void *state)
{
	struct scene *s = state;

	host_close(&s->f.a);
	host_close(&s->f.b);
	host_close(&s->f.c);
	host_close(&s->f.d);
	if (s->has_ep)
		core_endpoint_teardown(&s->ep);
	if (s->has_bus)
		core_bus_teardown(&s->bus);
	host_deinit(&s->f.host);
	free(s);
}

static void dump_record(void *data, const struct core_listed *record)
{
	fprintf(data, "%llu %llx %s %llx\n", (unsigned long long)record->id,
		(unsigned long long)record->flags, record->name ? record->name : "-",
		(unsigned long long)record->name_flags);
}

static void dump_conn(const struct host_conn *conn, FILE *out)
{
	const struct core_inbox *inbox = &conn->core.inbox;
	const struct core_slice *slice;

	if (!conn->pool) {
		fprintf(out, "not connected\n");
		return;
	}
	fprintf(out, "%llu: state %d, %u queued, %u lost, %zu accounted, %u calls, %u matches, %u "
		     "of user\n",
		(unsigned long long)conn->core.id, conn->core.state, inbox->queue.n, inbox->lost,
		inbox->pool.accounted, conn->core.calls.n, conn->core.matches.n_entries,
		conn->core.user->n_conns);
	for (u32 user = 0; user < 8; user++)
		fprintf(out, "%u/%u ", core_quota_get(&inbox->quota, user).memory,
			core_quota_get(&inbox->quota, user).msgs);
	list_for_each_entry(slice, &inbox->pool.all, all)
		fprintf(out, "%zu+%zu%c ", slice->offset, slice->size, slice->busy ? '*' : ' ');
	fprintf(out, "\n");
}

static void dump(void *state, FILE *out)
{
	struct scene *s = state;
	struct core_bus *bus;

	dump_conn(&s->f.a, out);
	dump_conn(&s->f.b, out);
	dump_conn(&s->f.c, out);
	dump_conn(&s->f.d, out);
	core_list(&s->f.b.core, NULL, 0xf, dump_record, out);
	list_for_each_entry(bus, &s->f.host.domain.all, entry)
		fprintf(out, "bus %s of %u\n", bus->name, bus->user->n_buses);
	fprintf(out, "endpoint %d, %lu entries\n",
		!!core_bus_find_endpoint(&s->f.host.bus, "1000-ep"), s->f.host.entries);
}

static int act_bus_make(void *state)
{
	const struct core_bus_make make = { .name = "2000-x", .bloom = { HOST_BLOOM, 1 } };
	const u8 random[16] = { 0 };
	struct scene *s = state;
	int r = core_bus_make(&s->f.host.domain, &s->bus, &make, 2000, 2000, random);

	s->has_bus = !r;
	return r;
}

static int act_endpoint_make(void *state)
{
	struct scene *s = state;
	int r = core_endpoint_make(&s->f.host.bus, &s->ep, "1000-ep", 0);

	s->has_ep = !r;
	return r;
}

static int act_hello(void *state)
{
	struct scene *s = state;

	return host_connect(&s->f.host, &s->f.d, &(struct host_hello){ .uid = 3000 });
}

static int connect_special(struct scene *s, u64 flags, const char *name)
{
	const struct kdbus_policy_access world = {
		.type = KDBUS_POLICY_ACCESS_WORLD,
		.access = KDBUS_POLICY_TALK,
	};
	u64 buf[64];
	struct core_writer w = CORE_WRITER(buf, sizeof(buf));
	struct host_hello hello = { .flags = flags, .name = name };

	core_put_str(&w, KDBUS_ITEM_NAME, name);
	core_put(&w, KDBUS_ITEM_POLICY_ACCESS, &world, sizeof(world));
	if (core_writer_end(&w, &hello.policy_size))
		return -EINVAL;
	hello.policy = (struct kdbus_item *)buf;
	return host_connect(&s->f.host, &s->f.d, &hello);
}

static int act_hello_activator(void *state)
{
	return connect_special(state, KDBUS_HELLO_ACTIVATOR, "com.example.d");
}

static int act_hello_holder(void *state)
{
	return connect_special(state, KDBUS_HELLO_POLICY_HOLDER, "com.example.*");
}

static int act_acquire_new(void *state)
{
	struct scene *s = state;
	u64 flags;

	return core_conn_acquire(&s->f.b.core, NULL, "com.example.new", 0, &flags);
}

static int act_acquire_replace(void *state)
{
	struct scene *s = state;
	u64 flags;

	return core_conn_acquire(&s->f.b.core, NULL, "com.example.c",
				 KDBUS_NAME_REPLACE_EXISTING, &flags);
}

static int act_match_add(void *state)
{
	struct scene *s = state;

	return core_match_add(&s->f.b.core.matches, 1, 0, NULL, 0);
}

static int act_send(void *state)
{
	struct scene *s = state;

	return send_id(&s->f.b, &s->f.c, 1);
}

static int act_call(void *state)
{
	struct scene *s = state;

	return call(&s->f.b, &s->f.c, 1, 100);
}

static int act_call_sync(void *state)
{
	struct scene *s = state;

	return call_sync(&s->f.b, &s->f.c, 1, 100, &s->slot);
}

static void each_allocation_of_each_command(void **state)
{
	static const struct {
		int (*act)(void *state);
		unsigned long at_least;
	} commands[] = {
		{ act_bus_make, 1 },	     { act_endpoint_make, 1 },	{ act_hello, 2 },
		{ act_hello_activator, 5 }, { act_hello_holder, 3 },	{ act_acquire_new, 2 },
		{ act_acquire_replace, 1 }, { act_match_add, 1 },	{ act_send, 2 },
		{ act_call, 3 },	     { act_call_sync, 3 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		const struct failalloc_scenario scenario = {
			.setup = setup,
			.act = commands[i].act,
			.dump = dump,
			.teardown = teardown,
		};

		assert_true(failalloc_each(&scenario) >= commands[i].at_least);
	}
}

/*
 * What cannot fail must get by without memory, or lose nothing but a message that is
 * counted: each allocation fails in turn.
 */
static void each_allocation_of_an_end(void **state)
{
	struct scene *s;
	bool hit = true;

	for (unsigned long nth = 1; hit; nth++) {
		s = setup();
		match_all(&s->f.b);
		failalloc_arm(nth);
		host_close(&s->f.c);
		core_bus_expire(&s->f.host.bus.deadlines, 1);
		host_close(&s->f.a);
		hit = failalloc_hit();
		failalloc_arm(0);
		/* two names and two connections gone, a call dead: arrived or counted */
		assert_int_equal(s->f.b.core.inbox.queue.n + s->f.b.core.inbox.lost, 5);
		assert_int_equal(s->f.b.core.calls.n, 0);
		teardown(s);
		assert_int_equal(failalloc_live(), 0);
	}
}

/* A hand-over for which there is no memory reports the call dead, or counts that too. */
static void each_allocation_of_a_hand_over(void **state)
{
	struct scene *s;
	bool hit = true;
	u64 flags;
	int r;

	for (unsigned long nth = 1; hit; nth++) {
		s = setup();
		match_all(&s->f.c);
		failalloc_arm(nth);
		r = core_conn_acquire(&s->f.c.core, NULL, NAME, 0, &flags);
		hit = failalloc_hit();
		failalloc_arm(0);
		if (r) {
			assert_int_equal(r, -ENOMEM);
			assert_int_equal(s->f.a.core.inbox.queue.n, 1);
			assert_int_equal(s->f.c.core.inbox.queue.n, 0);
		} else {
			/* the call and the NAME_CHANGE */
			assert_int_equal(s->f.a.core.inbox.queue.n, 0);
			assert_int_equal(s->f.c.core.inbox.queue.n + s->f.c.core.inbox.lost, 2);
		}
		teardown(s);
		assert_int_equal(failalloc_live(), 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation_of_each_command),
		cmocka_unit_test(each_allocation_of_an_end),
		cmocka_unit_test(each_allocation_of_a_hand_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
