// SPDX-License-Identifier: LGPL-2.1-or-later
/* Policy: ABI 15.8. */
#include <pthread.h>
#include <sched.h>

#include "fixture.h"

#define NAME  "com.example.policy-test"
#define USER  KDBUS_POLICY_ACCESS_USER
#define GROUP KDBUS_POLICY_ACCESS_GROUP
#define WORLD KDBUS_POLICY_ACCESS_WORLD
#define SEE   KDBUS_POLICY_SEE
#define TALK  KDBUS_POLICY_TALK
#define OWN   KDBUS_POLICY_OWN

static struct libkdbus *hold(const struct fixture *f, const struct access *access, size_t n)
{
	int r;
	struct libkdbus *h = fixture_special(f, KDBUS_HELLO_POLICY_HOLDER, access, n, &r);

	assert_int_equal(r, 0);
	return h;
}

static int set_name(struct libkdbus *holder, const char *name)
{
	const struct access access = { .name = name };

	return fixture_update_policy(holder, &access, 1);
}

static int try_holder(const struct fixture *f, const char *name)
{
	const struct access access = { .name = name };
	int r;

	libkdbus_close(fixture_special(f, KDBUS_HELLO_POLICY_HOLDER, &access, 1, &r));
	return r;
}

static void policy(void **state)
{
	const struct fixture *f = *state;
	const struct access one = { .name = "com.example.a" }, two = { .name = "com.example.b" };
	struct libkdbus *a, *b;

	assert_int_equal(try_holder(f, ".example.a"), -EINVAL);
	assert_int_equal(try_holder(f, "example"), -EINVAL);
	a = hold(f, &one, 1);
	b = hold(f, &two, 1);
	assert_int_equal(set_name(a, "com.example.a"), 0);
	assert_int_equal(set_name(b, "com.example.a"), -EEXIST);
	assert_int_equal(set_name(b, "com.example.a.*"), 0);
	assert_int_equal(set_name(a, "com.example.a.*"), -EEXIST);
	assert_int_equal(set_name(a, "com.example.*"), 0);
	assert_int_equal(set_name(b, "com.example.a"), 0);
	assert_int_equal(set_name(b, "com.example.*"), -EEXIST);
	assert_int_equal(set_name(b, ".example.*"), -EINVAL);
	assert_int_equal(set_name(b, "example"), -EINVAL);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void holder_excludes_activator(void **state)
{
	const struct fixture *f = *state;
	const struct access access = { .name = NAME };
	struct libkdbus *holder = hold(f, &access, 1);
	int r;

	assert_null(fixture_special(f, KDBUS_HELLO_ACTIVATOR, &access, 1, &r));
	assert_int_equal(r, -EEXIST);
	libkdbus_close(holder);
}

static void update_needs_a_holder(void **state)
{
	struct libkdbus *h = fixture_connect(*state);

	assert_int_equal(set_name(h, NAME), -EOPNOTSUPP);
	libkdbus_close(h);
}

/* ---- questions to the bus as another user; the exit status is the errno ---- */

static int acquire(void *arg)
{
	const struct fixture *f = arg;
	struct libkdbus *h = fixture_connect(f);
	int r = libkdbus_acquire(h, NAME, 0, NULL);

	libkdbus_close(h);
	return -r;
}

struct question {
	const struct fixture *f;
	uint64_t dst;
	const char *name;
};

static int send_one(void *arg)
{
	const struct question *q = arg;
	const struct letter l = { .dst = q->dst, .name = q->name, .cookie = 0x77 };
	struct libkdbus *h = fixture_connect(q->f);
	int r = fixture_send(h, &l);

	libkdbus_close(h);
	return -r;
}

static int nobody_sends(const struct fixture *f, uint64_t dst, const char *name)
{
	struct question q = { f, dst, name };

	return fixture_as_nobody(send_one, &q);
}

static int hold_as_nobody(void *arg)
{
	return -try_holder(arg, NAME);
}

static int broadcast_call(void *arg)
{
	const struct letter l = { .dst = KDBUS_DST_ID_BROADCAST,
				  .flags = KDBUS_MSG_SIGNAL | KDBUS_MSG_EXPECT_REPLY,
				  .reply = ~0ULL,
				  .bloom = true };
	struct libkdbus *h = fixture_connect(arg);
	int r = fixture_send(h, &l);

	libkdbus_close(h);
	return -r;
}

static void defaults(void **state)
{
	struct libkdbus *owner;

	FIXTURE_NEEDS_ROOT();
	owner = fixture_connect(*state);
	assert_int_equal(fixture_as_nobody(acquire, *state), EPERM);
	assert_int_equal(nobody_sends(*state, fixture_id(owner), NULL), EPERM);
	assert_int_equal(nobody_sends(*state, 9999999, NULL), ENXIO);
	assert_int_equal(nobody_sends(*state, 0, NAME), ESRCH);
	assert_int_equal(fixture_as_nobody(broadcast_call, *state), ENOTUNIQ);
	assert_int_equal(fixture_as_nobody(hold_as_nobody, *state), EPERM);
	fixture_assert_empty(owner);
	libkdbus_close(owner);
}

static int acquire_with(const struct fixture *f, const struct access *access, size_t n)
{
	struct libkdbus *holder = hold(f, access, n);
	int r = fixture_as_nobody(acquire, (void *)f);

	libkdbus_close(holder);
	return r;
}

#define ARRAY(a) a, sizeof(a) / sizeof(*(a))
#define NOBODY	 FIXTURE_NOBODY

static void own_granted(void **state)
{
	const struct access world[] = { { .name = NAME }, { NULL, WORLD, OWN, 0 } };
	const struct access group[] = { { .name = NAME }, { NULL, GROUP, OWN, NOBODY } };
	const struct access user[] = { { .name = NAME }, { NULL, USER, OWN, NOBODY } };
	const struct access middle[] = { { .name = NAME },
					 { NULL, USER, OWN, 1 },
					 { NULL, USER, OWN, NOBODY },
					 { NULL, USER, OWN, 3 } };

	FIXTURE_NEEDS_ROOT();
	assert_int_equal(acquire_with(*state, ARRAY(world)), 0);
	assert_int_equal(acquire_with(*state, ARRAY(group)), 0);
	assert_int_equal(acquire_with(*state, ARRAY(user)), 0);
	assert_int_equal(acquire_with(*state, ARRAY(middle)), 0);
}

static void own_refused(void **state)
{
	const struct access empty[] = { { .name = NAME } };
	const struct access group[] = { { .name = NAME }, { NULL, GROUP, OWN, 1 } };
	const struct access user[] = { { .name = NAME }, { NULL, USER, OWN, 1 } };
	const struct access less[] = { { .name = NAME },
				       { NULL, WORLD, TALK, 0 },
				       { NULL, WORLD, SEE, 0 } };

	FIXTURE_NEEDS_ROOT();
	assert_int_equal(acquire_with(*state, ARRAY(empty)), EPERM);
	assert_int_equal(acquire_with(*state, ARRAY(group)), EPERM);
	assert_int_equal(acquire_with(*state, ARRAY(user)), EPERM);
	assert_int_equal(acquire_with(*state, ARRAY(less)), EPERM);
	/* The record is gone with its holder. */
	assert_int_equal(fixture_as_nobody(acquire, *state), EPERM);
}

static void own_of_the_owner(void **state)
{
	const struct access empty[] = { { .name = NAME } };
	struct libkdbus *holder = hold(*state, ARRAY(empty)), *h = fixture_connect(*state);

	assert_int_equal(libkdbus_acquire(h, NAME, 0, NULL), 0);
	libkdbus_close(h);
	libkdbus_close(holder);
}

static int talk_with(const struct fixture *f, struct libkdbus *service, const struct access *access,
		     size_t n)
{
	struct libkdbus *holder = hold(f, access, n);
	int r = nobody_sends(f, 0, NAME);

	assert_int_equal(nobody_sends(f, fixture_id(service), NULL), r);
	libkdbus_close(holder);
	assert_int_equal(fixture_drain(service), r == 0 ? 2 : 0);
	return r;
}

static void talk(void **state)
{
	const struct access user[] = { { .name = NAME }, { NULL, USER, TALK, NOBODY } };
	const struct access group[] = { { .name = NAME }, { NULL, GROUP, TALK, NOBODY } };
	const struct access world[] = { { .name = NAME }, { NULL, WORLD, TALK, 0 } };
	const struct access own[] = { { .name = NAME }, { NULL, WORLD, OWN, 0 } };
	const struct access see[] = { { .name = NAME }, { NULL, USER, SEE, NOBODY } };
	const struct access root[] = { { .name = NAME }, { NULL, USER, TALK, 0 } };
	struct libkdbus *service;

	FIXTURE_NEEDS_ROOT();
	service = fixture_connect(*state);
	assert_int_equal(libkdbus_acquire(service, NAME, 0, NULL), 0);
	assert_int_equal(nobody_sends(*state, 0, NAME), EPERM);
	assert_int_equal(talk_with(*state, service, ARRAY(user)), 0);
	assert_int_equal(talk_with(*state, service, ARRAY(group)), 0);
	assert_int_equal(talk_with(*state, service, ARRAY(world)), 0);
	assert_int_equal(talk_with(*state, service, ARRAY(own)), 0);
	assert_int_equal(talk_with(*state, service, ARRAY(see)), EPERM);
	assert_int_equal(talk_with(*state, service, ARRAY(root)), EPERM);
	libkdbus_close(service);
}

static int talk_among_oneself(void *arg)
{
	struct libkdbus *a = fixture_connect(arg), *b = fixture_connect(arg);
	const struct letter l = { .dst = fixture_id(b), .cookie = 1 };

	assert_int_equal(fixture_send(a, &l), 0);
	fixture_expect(b, 1);
	/* The same for broadcasts. */
	assert_int_equal(helper_match_all(a), 0);
	assert_int_equal(helper_match_all(b), 0);
	assert_int_equal(fixture_broadcast(a, 2), 0);
	fixture_expect(a, 2);
	fixture_expect(b, 2);
	libkdbus_close(b);
	libkdbus_close(a);
	return 0;
}

static void talk_same_user(void **state)
{
	FIXTURE_NEEDS_ROOT();
	assert_int_equal(fixture_as_nobody(talk_among_oneself, *state), 0);
}

/* Sends by name (told 1), by id (told the id), or ends (told 0) */
static int send_as_told(struct companion *self, void *arg)
{
	struct letter l = { .cookie = 1 };
	struct libkdbus *h = fixture_connect(arg);

	while ((l.dst = companion_hear(self))) {
		l.name = l.dst == 1 ? NAME : NULL;
		l.dst = l.dst == 1 ? 0 : l.dst;
		companion_tell(self, (uint64_t)-fixture_send(h, &l));
	}
	libkdbus_close(h);
	return 0;
}

static uint64_t ask(struct companion *c, uint64_t whom)
{
	companion_tell(c, whom);
	return companion_hear(c);
}

/* The same connection again and again: what has been permitted once is not for ever. */
static void change_often(const struct fixture *f, struct companion *c, uint64_t whom)
{
	const struct access world[] = { { .name = NAME }, { NULL, WORLD, TALK, 0 } };
	const struct access nobody[] = { { .name = NAME } };
	struct libkdbus *holder;
	int i;

	assert_int_equal(ask(c, whom), EPERM);
	holder = hold(f, ARRAY(world));
	for (i = 0; i < 20; i++)
		assert_int_equal(ask(c, whom), 0);
	assert_int_equal(fixture_update_policy(holder, ARRAY(nobody)), 0);
	assert_int_equal(ask(c, whom), EPERM);
	assert_int_equal(fixture_update_policy(holder, ARRAY(world)), 0);
	for (i = 0; i < 20; i++)
		assert_int_equal(ask(c, whom), 0);
	libkdbus_close(holder);
	assert_int_equal(ask(c, whom), EPERM);
}

/* Who may talk because of a name may not any more without it, by id either. */
static void talk_goes_with_the_name(void **state)
{
	const struct access world[] = { { .name = NAME }, { NULL, WORLD, TALK, 0 } };
	struct libkdbus *service, *holder;
	struct companion c;
	int i, n;

	FIXTURE_NEEDS_ROOT();
	service = fixture_connect(*state);
	holder = hold(*state, ARRAY(world));
	companion_start(&c, NOBODY, send_as_told, *state);
	for (n = 0; n < 3; n++) {
		assert_int_equal(ask(&c, fixture_id(service)), EPERM);
		assert_int_equal(libkdbus_acquire(service, NAME, 0, NULL), 0);
		for (i = 0; i < 20; i++)
			assert_int_equal(ask(&c, fixture_id(service)), 0);
		assert_int_equal(libkdbus_release(service, NAME), 0);
	}
	companion_tell(&c, 0);
	assert_int_equal(companion_end(&c), 0);
	assert_int_equal(fixture_drain(service), 60);
	libkdbus_close(holder);
	libkdbus_close(service);
}

static void talk_changes_at_once(void **state)
{
	struct libkdbus *service;
	struct companion c;

	FIXTURE_NEEDS_ROOT();
	service = fixture_connect(*state);
	assert_int_equal(libkdbus_acquire(service, NAME, 0, NULL), 0);
	companion_start(&c, NOBODY, send_as_told, *state);
	change_often(*state, &c, 1);
	change_often(*state, &c, fixture_id(service));
	companion_tell(&c, 0);
	assert_int_equal(companion_end(&c), 0);
	assert_int_equal(fixture_drain(service), 80);
	libkdbus_close(service);
}

/* ---- broadcasts ---- */

/* Listens, and says each time it is asked what has come: cookies, up to the one of a unicast. */
static int listen(struct companion *self, void *arg)
{
	struct libkdbus *h = fixture_connect(arg);
	const struct kdbus_msg *msg;
	uint64_t broadcasts = 0;
	bool last;

	assert_int_equal(helper_match_all(h), 0);
	companion_tell(self, fixture_id(h));
	for (;;) {
		msg = fixture_await(h);
		last = msg->dst_id != KDBUS_DST_ID_BROADCAST;
		if (last && msg->cookie == 0xdead)
			break;
		broadcasts += !last;
		libkdbus_done(h, msg);
		if (last) {
			companion_tell(self, broadcasts);
			broadcasts = 0;
		}
	}
	libkdbus_done(h, msg);
	libkdbus_close(h);
	return 0;
}

/* How many broadcasts @c has heard; the bus owner may talk to anybody. */
static uint64_t heard(struct companion *c, struct libkdbus *owner, uint64_t id)
{
	const struct letter l = { .dst = id, .cookie = 1 };

	assert_int_equal(fixture_send(owner, &l), 0);
	return companion_hear(c);
}

static void dismiss(struct companion *c, struct libkdbus *owner, uint64_t id)
{
	const struct letter l = { .dst = id, .cookie = 0xdead };

	assert_int_equal(fixture_send(owner, &l), 0);
	assert_int_equal(companion_end(c), 0);
}

static void broadcasts_of_the_owner(void **state)
{
	const struct access world[] = { { .name = NAME }, { NULL, WORLD, TALK, 0 } };
	struct libkdbus *owner, *holder;
	struct companion c;
	uint64_t id;

	FIXTURE_NEEDS_ROOT();
	owner = fixture_connect(*state);
	assert_int_equal(libkdbus_acquire(owner, NAME, 0, NULL), 0);
	companion_start(&c, NOBODY, listen, *state);
	id = companion_hear(&c);
	assert_int_equal(fixture_broadcast(owner, 5), 0);
	assert_int_equal(heard(&c, owner, id), 0);
	holder = hold(*state, ARRAY(world));
	assert_int_equal(fixture_broadcast(owner, 6), 0);
	assert_int_equal(heard(&c, owner, id), 1);
	libkdbus_close(holder);
	assert_int_equal(fixture_broadcast(owner, 7), 0);
	assert_int_equal(heard(&c, owner, id), 0);
	dismiss(&c, owner, id);
	libkdbus_close(owner);
}

static int broadcast_one(void *arg)
{
	const struct fixture *f = arg;
	struct libkdbus *h = fixture_connect(f);
	struct kdbus_cmd_list list;

	assert_int_equal(fixture_broadcast(h, 9), 0);
	/* A command makes sure that the broadcast is on its way before the connection ends. */
	assert_int_equal(fixture_list(h, 0, &list), 0);
	libkdbus_close(h);
	return 0;
}

/* The owner hears everybody, restricted name or not; another user hears nobody but himself. */
static void broadcasts_of_others(void **state)
{
	const struct access user[] = { { .name = NAME }, { NULL, USER, TALK, 3 } };
	struct libkdbus *owner, *holder;
	struct companion c;
	uint64_t id;

	FIXTURE_NEEDS_ROOT();
	owner = fixture_connect(*state);
	holder = hold(*state, ARRAY(user));
	assert_int_equal(libkdbus_acquire(owner, NAME, 0, NULL), 0);
	assert_int_equal(helper_match_all(owner), 0);
	companion_start(&c, NOBODY - 1, listen, *state);
	id = companion_hear(&c);
	assert_int_equal(fixture_as_nobody(broadcast_one, *state), 0);
	fixture_expect(owner, 9);
	assert_int_equal(heard(&c, owner, id), 0);
	assert_int_equal(fixture_as_user(NOBODY - 1, broadcast_one, *state), 0);
	fixture_expect(owner, 9);
	assert_int_equal(heard(&c, owner, id), 1);
	dismiss(&c, owner, id);
	libkdbus_close(holder);
	libkdbus_close(owner);
}

/* ---- threads and namespaces (policy-ns) ---- */

struct sender {
	const struct question *q;
	int r;
};

static void *send_in_thread(void *arg)
{
	struct sender *s = arg;

	s->r = send_one((void *)s->q);
	return NULL;
}

static int send_threaded(void *arg)
{
	struct sender s[4];
	pthread_t threads[4];
	int i, r = 0;

	for (i = 0; i < 4; i++) {
		s[i].q = arg;
		assert_int_equal(pthread_create(&threads[i], NULL, send_in_thread, &s[i]), 0);
	}
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		r = r ? r : s[i].r;
	}
	return r;
}

/* As root of a user namespace of one's own, which counts for nothing outside */
static int send_from_userns(void *arg)
{
	if (unshare(CLONE_NEWUSER) < 0)
		return 77;
	return send_one(arg);
}

static void narrowed(void **state)
{
	const struct access world[] = { { .name = NAME }, { NULL, WORLD, TALK, 0 } };
	const struct access root[] = { { .name = NAME }, { NULL, USER, TALK, 0 } };
	struct libkdbus *service, *holder;
	struct question q = { *state, 0, NAME };
	int r;

	FIXTURE_NEEDS_ROOT();
	service = fixture_connect(*state);
	assert_int_equal(libkdbus_acquire(service, NAME, 0, NULL), 0);
	holder = hold(*state, ARRAY(world));
	assert_int_equal(fixture_as_nobody(send_one, &q), 0);
	assert_int_equal(fixture_as_nobody(send_threaded, &q), 0);
	assert_int_equal(fixture_drain(service), 5);
	assert_int_equal(fixture_update_policy(holder, ARRAY(root)), 0);
	assert_int_equal(fixture_as_nobody(send_one, &q), EPERM);
	assert_int_equal(nobody_sends(*state, fixture_id(service), NULL), EPERM);
	r = fixture_as_nobody(send_from_userns, &q);
	if (r == 77)
		print_message("# no user namespaces here\n");
	else
		assert_int_equal(r, EPERM);
	fixture_assert_empty(service);
	libkdbus_close(holder);
	libkdbus_close(service);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(policy),
		FIXTURE_TEST(holder_excludes_activator),
		FIXTURE_TEST(update_needs_a_holder),
		FIXTURE_TEST(defaults),
		FIXTURE_TEST(own_granted),
		FIXTURE_TEST(own_refused),
		FIXTURE_TEST(own_of_the_owner),
		FIXTURE_TEST(talk),
		FIXTURE_TEST(talk_same_user),
		FIXTURE_TEST(talk_changes_at_once),
		FIXTURE_TEST(talk_goes_with_the_name),
		FIXTURE_TEST(broadcasts_of_the_owner),
		FIXTURE_TEST(broadcasts_of_others),
		FIXTURE_TEST(narrowed),
	};

	return FIXTURE_RUN(tests);
}
