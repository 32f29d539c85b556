// SPDX-License-Identifier: LGPL-2.1-or-later
/* Who waits for services (daemon/classic/activate.c): what is given back, and what an end costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/classic/access.h"
#include "daemon/classic/carrier.h"
#include "daemon/classic/driver.h"

#define OTHERS 2000
#define OWN    10

unsigned long core_steps;

/* Of the front-end: services are known and never start, and nobody is told anything. */
static char service_name[] = "org.example.Service";
static const struct service_file service = { .name = service_name };

const struct service_file *services_find(const struct services *services, const char *name)
{
	return &service;
}

void activation_start(struct activation *a, const struct service_file *what)
{
}

void activations_tell_systemd(struct classic *k, bool waited)
{
}

void activations_ask_systemd(struct classic *k)
{
}

void launch_forget(struct launch *launch)
{
}

void launch_abandon_all(struct daemon *d)
{
}

void timeout_clear(struct classic *k, struct timeout *t)
{
}

void reaper_close(struct reaper *reaper, int fd)
{
}

void log_about(uid_t uid, const char *format, ...)
{
}

bool access_may_pass(struct peer *from, struct peer *to, struct cmsg *m)
{
	return true;
}

void route_to(struct cpeer *from, struct peer *to, struct cmsg *m)
{
	fail();
}

void driver_return_begin(struct cpeer *to, uint32_t serial, struct dbusp_build *b,
			 const char *signature)
{
	fail();
}

void driver_signal_to(struct cpeer *to, struct dbusp_build *b)
{
	fail();
}

void driver_error(struct cpeer *to, const struct cmsg *m, const char *name, const char *format, ...)
{
	fail();
}

void driver_error_serial(struct cpeer *to, uint32_t serial, const char *name, const char *format,
			 ...)
{
	fail();
}

static void start_ended(struct activation *a)
{
}

static const struct carrier carrier = { .start_ended = start_ended };

struct fixture {
	struct classic k;
	struct config config;
	struct account account;
	struct cpeer one, other;
	struct cmsg call;
};

static void init_peer(struct fixture *f, struct cpeer *c)
{
	c->kind = PEER_CLASSIC;
	c->state = CPEER_ACTIVE;
	c->classic = &f->k;
	c->account = &f->account;
}

static void set_up(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->k.config = &f->config;
	f->k.carrier = &carrier;
	f->config.limits.max_pending_service_starts = 1;
	f->config.limits.max_incoming_bytes = 1 << 20;
	init_peer(f, &f->one);
	init_peer(f, &f->other);
	assert_int_equal(activations_init(&f->k), 0);
}

static void ask(struct fixture *f, struct cpeer *c, unsigned int n)
{
	while (n--)
		activate_for_call(c, &f->call, &service);
}

/* In whatever order peers come and go, what they hold is what is theirs. */
static void test_all_is_given_back(void **state)
{
	static struct fixture f;
	size_t of_one;

	set_up(&f);
	ask(&f, &f.one, 1);
	of_one = f.one.starting;
	ask(&f, &f.other, 3);
	ask(&f, &f.one, 2);
	assert_int_equal(f.one.starting, 3 * of_one);
	assert_int_equal(f.account.bytes, 6 * of_one);
	activate_end(&f.k, &f.other.peer);
	assert_int_equal(f.other.starting, 0);
	assert_int_equal(f.account.bytes, 3 * of_one);
	ask(&f, &f.other, 1);
	activate_end(&f.k, &f.one.peer);
	assert_int_equal(f.one.starting, 0);
	assert_int_equal(f.account.bytes, of_one);
	activations_free(&f.k);
	assert_int_equal(f.other.starting, 0);
	assert_int_equal(f.account.bytes, 0);
}

/* An end costs what it ends, however many others wait. */
static void test_others_cost_nothing(void **state)
{
	static struct fixture f;
	unsigned long before;

	set_up(&f);
	ask(&f, &f.other, OTHERS);
	ask(&f, &f.one, OWN);
	ask(&f, &f.other, OTHERS);
	before = core_steps;
	activate_end(&f.k, &f.one.peer);
	assert_int_equal(core_steps - before, OWN);
	activations_free(&f.k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_is_given_back),
		cmocka_unit_test(test_others_cost_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
