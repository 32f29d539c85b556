// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Buses and endpoints of one unprivileged user, and what another one may do there: ABI 1.3, 9.1 and
 * 15.8, with two users neither of which is the domain's.
 */
#include <grp.h>
#include <stdio.h>

#include "fixture.h"

#define OWNER 20001
#define GUEST 20002

#define NAME "com.example.users"

enum order { END, ALLOW, FORBID, COUNT };

/* ---- who may open the node of a bus ---- */

static const struct {
	const char *name;
	uint64_t flags;
} buses[] = {
	{ "20001-closed", 0 },
	{ "20001-group", KDBUS_MAKE_ACCESS_GROUP },
	{ "20001-open", KDBUS_MAKE_ACCESS_WORLD },
};

#define N_BUSES (sizeof(buses) / sizeof(*buses))

static int own_buses(struct companion *self, void *arg)
{
	struct libkdbus *h[N_BUSES];
	size_t i;

	(void)arg;
	for (i = 0; i < N_BUSES; i++) {
		h[i] = fixture_open(FIXTURE_CONTROL);
		assert_int_equal(fixture_make_bus(h[i], "20002-mine", 0), -EINVAL);
		assert_int_equal(fixture_make_bus(h[i], buses[i].name, buses[i].flags), 0);
	}
	companion_meet(self);
	companion_meet(self);
	for (i = 0; i < N_BUSES; i++)
		libkdbus_close(h[i]);
	return 0;
}

/* Which of them can be opened, one bit each */
static int open_buses(void *arg)
{
	struct libkdbus *h;
	char path[64];
	int found = 0, r;
	size_t i;

	(void)arg;
	for (i = 0; i < N_BUSES; i++) {
		snprintf(path, sizeof(path), "%s/bus", buses[i].name);
		r = libkdbus_open(path, 0, &h);
		assert_true(r == 0 || r == -EACCES);
		if (r == 0)
			libkdbus_close(h);
		found |= (r == 0) << i;
	}
	return found;
}

/* Of the owner's group, but another user */
static int open_buses_as_member(void *arg)
{
	if (setgroups(0, NULL) < 0 || setresgid(OWNER, OWNER, OWNER) < 0 ||
	    setresuid(GUEST, GUEST, GUEST) < 0)
		return 99;
	return open_buses(arg);
}

static void nodes_have_their_mode(void **state)
{
	struct companion owner;

	FIXTURE_NEEDS_ROOT();
	companion_start(&owner, OWNER, own_buses, *state);
	companion_meet(&owner);
	assert_int_equal(fixture_as_user(OWNER, open_buses, NULL), 7);
	assert_int_equal(fixture_as_user(GUEST, open_buses, NULL), 4);
	assert_int_equal(fixture_as_user(0, open_buses_as_member, NULL), 6);
	companion_meet(&owner);
	assert_int_equal(companion_end(&owner), 0);
}

/* ---- what a guest may do on the bus of another ---- */

static const struct access talk[] = {
	{ .name = NAME },
	{ NULL, KDBUS_POLICY_ACCESS_USER, KDBUS_POLICY_TALK, GUEST },
};

static struct libkdbus *make_open_bus(struct fixture *f)
{
	struct libkdbus *h = fixture_open(FIXTURE_CONTROL);

	f->name = (char *)"20001-open";
	f->path = (char *)"20001-open/bus";
	assert_int_equal(fixture_make_bus(h, f->name, KDBUS_MAKE_ACCESS_WORLD), 0);
	return h;
}

/* The owner of a bus with a service, who lets the guest talk through an endpoint or not. */
static int own_endpoint(struct companion *self, void *arg)
{
	struct fixture f;
	struct libkdbus *bus = make_open_bus(&f), *endpoint, *service, *holder;
	enum order order;
	int r;

	(void)arg;
	service = fixture_connect(&f);
	assert_int_equal(libkdbus_acquire(service, NAME, 0, NULL), 0);
	holder = fixture_special(&f, KDBUS_HELLO_POLICY_HOLDER, talk, 2, &r);
	assert_int_equal(r, 0);
	endpoint = fixture_open(f.path);
	assert_int_equal(fixture_make_endpoint(endpoint, "20001-guests", KDBUS_MAKE_ACCESS_WORLD),
			 0);
	companion_tell(self, fixture_id(service));
	while ((order = (enum order)companion_hear(self)) != END) {
		if (order == COUNT)
			r = (int)fixture_drain(service);
		else
			r = fixture_update_endpoint(endpoint, talk, order == ALLOW ? 2 : 0);
		companion_tell(self, (uint64_t)r);
	}
	libkdbus_close(endpoint);
	libkdbus_close(holder);
	libkdbus_close(service);
	libkdbus_close(bus);
	return 0;
}

/* Hears to whom it should send: an id, 1 for the name, 0 for nobody any more; tells the errno. */
static int send_as_told(struct companion *self, void *arg)
{
	struct libkdbus *h = fixture_connect_to(arg, 0);
	uint64_t dst;

	while ((dst = companion_hear(self))) {
		const struct letter l = { .name = dst == 1 ? NAME : NULL,
					  .dst = dst == 1 ? 0 : dst,
					  .cookie = 1 };

		companion_tell(self, (uint64_t)-fixture_send(h, &l));
	}
	libkdbus_close(h);
	return 0;
}

static int ask(struct companion *c, uint64_t what)
{
	companion_tell(c, what);
	return (int)companion_hear(c);
}

/* Often enough for the two to get a way of their own. */
static int send_often(struct companion *guest, uint64_t dst)
{
	int i, n = 0;

	for (i = 0; i < 20; i++)
		n += ask(guest, dst) == 0;
	return n;
}

static void an_endpoint_lets_the_guest_talk(void **state)
{
	struct companion owner, guest;
	uint64_t id;
	int turn;

	FIXTURE_NEEDS_ROOT();
	companion_start(&owner, OWNER, own_endpoint, *state);
	id = companion_hear(&owner);
	companion_start(&guest, GUEST, send_as_told, (void *)"20001-open/20001-guests");
	for (turn = 0; turn < 3; turn++) {
		/* What may not be talked to is not even there. */
		assert_int_equal(send_often(&guest, 1), 0);
		assert_int_equal(send_often(&guest, id), 0);
		assert_int_equal(ask(&owner, COUNT), 0);
		assert_int_equal(ask(&owner, ALLOW), 0);
		assert_int_equal(send_often(&guest, 1), 20);
		assert_int_equal(send_often(&guest, id), 20);
		assert_int_equal(ask(&owner, COUNT), 40);
		assert_int_equal(ask(&owner, FORBID), 0);
	}
	companion_tell(&guest, 0);
	assert_int_equal(companion_end(&guest), 0);
	companion_tell(&owner, END);
	assert_int_equal(companion_end(&owner), 0);
}

static int try_privileges(void *arg)
{
	const struct fixture f = { .name = (char *)"20001-open", .path = (char *)"20001-open/bus" };
	struct libkdbus *h = fixture_open(f.path);
	int r;

	(void)arg;
	assert_int_equal(fixture_make_endpoint(h, "20002-own", 0), -EPERM);
	libkdbus_close(h);
	fixture_special(&f, KDBUS_HELLO_MONITOR, NULL, 0, &r);
	assert_int_equal(r, -EPERM);
	fixture_special(&f, KDBUS_HELLO_POLICY_HOLDER, talk, 2, &r);
	assert_int_equal(r, -EPERM);
	fixture_special(&f, KDBUS_HELLO_ACTIVATOR, talk, 2, &r);
	assert_int_equal(r, -EPERM);
	h = fixture_connect(&f);
	assert_int_equal(libkdbus_acquire(h, "com.example.guest", 0, NULL), -EPERM);
	assert_int_equal(libkdbus_acquire(h, NAME, KDBUS_NAME_REPLACE_EXISTING, NULL), -EPERM);
	libkdbus_close(h);
	return 0;
}

static void a_guest_has_no_privilege(void **state)
{
	struct companion owner;

	FIXTURE_NEEDS_ROOT();
	companion_start(&owner, OWNER, own_endpoint, *state);
	companion_hear(&owner);
	assert_int_equal(fixture_as_user(GUEST, try_privileges, NULL), 0);
	companion_tell(&owner, END);
	assert_int_equal(companion_end(&owner), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(nodes_have_their_mode),
		FIXTURE_TEST(an_endpoint_lets_the_guest_talk),
		FIXTURE_TEST(a_guest_has_no_privilege),
	};

	return FIXTURE_RUN(tests);
}
