// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a round of the daemon looks at: clients that something waits for, as they do not read, cost
 * those nothing that have nothing to do with them. The daemon runs in a thread of this process; its
 * looks are counted.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define main kdbusd_main
int kdbusd_main(int argc, char **argv);
/* All but main() of it. NOLINTNEXTLINE(bugprone-suspicious-include) */
#include "../../daemon/main.c"
#undef main

#include <libkdbus.h>

#include "helper.h"

#define HANG_SECONDS 300
#define SLEEPERS     40
#define COMMANDS     500
#define SENDERS	     20
#define PAYLOAD	     16384 /* of all of them there is no room in a lane */

void __real_client_settle(struct client *c);
void __wrap_client_settle(struct client *c);

static struct {
	struct daemon daemon;
	pthread_t thread;
	char dir[128];
	char name[32];
	char bus[192];
	atomic_uint looks; /* at clients for which something may have waited */
} w;

void __wrap_client_settle(struct client *c)
{
	atomic_fetch_add(&w.looks, 1);
	__real_client_settle(c);
}

static void *run(void *arg)
{
	assert_int_equal(daemon_run(arg), 0);
	return NULL;
}

/* The first message from one to another goes through the daemon. */
static void send_first(struct libkdbus *from, struct libkdbus *to)
{
	static const char payload[PAYLOAD];
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	void *built;

	libkdbus_build(&b, sizeof(*msg), NULL, 0);
	libkdbus_build_vec(&b, payload, sizeof(payload));
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	msg = built;
	msg->dst_id = libkdbus_identity(to)->id;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	cmd.msg_address = (uintptr_t)msg;
	assert_int_equal(libkdbus_send(from, &cmd), 0);
	libkdbus_build_clear(&b);
}

static struct libkdbus *come(void)
{
	struct libkdbus *h;

	assert_int_equal(libkdbus_connect(w.bus, NULL, &h), 0);
	return h;
}

/* It has nothing to do, so its memory is not written to. */
static unsigned int waiting(void)
{
	const struct client *c;
	unsigned int n = 0;

	list_for_each_entry(c, &w.daemon.clients, entry)
		n += c->waits;
	return n;
}

static int set_up(void **state)
{
	alarm(HANG_SECONDS);
	snprintf(w.dir, sizeof(w.dir), "%s/rounds-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(w.dir));
	snprintf(w.name, sizeof(w.name), "%u-rounds", (unsigned int)geteuid());
	snprintf(w.bus, sizeof(w.bus), "%s/%s/bus", w.dir, w.name);
	assert_int_equal(daemon_init(&w.daemon), 0);
	assert_int_equal(domain_start(&w.daemon, w.dir, w.name, 0), 0);
	assert_int_equal(pthread_create(&w.thread, NULL, run, &w.daemon), 0);
	return 0;
}

/* Its last round is for somebody who comes and goes. */
static int tear_down(void **state)
{
	int sock = helper_raw_connect(w.bus);

	w.daemon.stop = true;
	close(sock);
	pthread_join(w.thread, NULL);
	daemon_deinit(&w.daemon);
	return 0;
}

static void those_that_do_not_read_cost_others_nothing(void **state)
{
	struct libkdbus *sleepers[SLEEPERS], *senders[SENDERS], *other = come();
	unsigned int i, j, before;

	for (i = 0; i < SLEEPERS; i++)
		sleepers[i] = come();
	for (i = 0; i < SENDERS; i++) {
		senders[i] = come();
		for (j = 0; j < SLEEPERS; j++)
			send_first(senders[i], sleepers[j]);
	}
	before = atomic_load(&w.looks);
	for (i = 0; i < COMMANDS; i++) {
		assert_int_equal(libkdbus_acquire(other, "test.rounds", 0, NULL), 0);
		assert_int_equal(libkdbus_release(other, "test.rounds"), 0);
	}
	assert_true(atomic_load(&w.looks) - before < COMMANDS);
	assert_int_equal(waiting(), SLEEPERS);
	for (i = 0; i < SLEEPERS; i++)
		libkdbus_close(sleepers[i]);
	for (i = 0; i < SENDERS; i++)
		libkdbus_close(senders[i]);
	libkdbus_close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(those_that_do_not_read_cost_others_nothing, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
