// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Services that native peers start on a bus of the module. Rules: module.h.
 *
 * 1. For each service there is an activator: what native peers send to its name waits there, and
 *    the module moves it to whoever comes to own the name, with the duty to answer.
 * 2. The first message that waits is looked at, and starts the service if the policy lets it pass.
 *    The others are for the policy when they are delivered.
 * 3. An activator cannot send. When the service does not start, the stand-in takes the name, and
 *    with it what waits; it answers all of that by the error, and gives the name back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/classic/driver.h"
#include "module.h"

#define STARTER_POOL (1U << 20)
#define AGAIN_MS     10
#define ANSWERS_MAX  4096 /* in the place of one service that did not start */

static void expired(struct timeout *t);

/* ---- which there are ---- */

static struct starter *find(struct module *m, const char *name)
{
	struct starter *s;

	list_for_each_entry(s, &m->starters, entry)
		if (!strcmp(s->name, name))
			return s;
	return NULL;
}

static int starter_open(struct module *m, struct starter *s)
{
	const struct kconn_hello hello = { .flags = KDBUS_HELLO_ACTIVATOR | KDBUS_HELLO_ACCEPT_FD,
					   .pool_size = STARTER_POOL,
					   .name = s->name };

	return inlet_open(m, &s->inlet, INLET_STARTER, &hello);
}

static void starter_close(struct module *m, struct starter *s)
{
	struct peer *p = mirror_find(m, s->inlet.conn.id);

	inlet_close(m, &s->inlet);
	if (p)
		mirror_remove(m, p);
}

static void starter_free(struct module *m, struct starter *s)
{
	starter_close(m, s);
	timeout_clear(m->classic, &s->again);
	list_del(&s->ready_entry);
	list_del(&s->entry);
	free(s->name);
	free(s);
}

static int starter_new(struct module *m, const char *name)
{
	struct starter *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	INIT_LIST_HEAD(&s->ready_entry);
	s->again.expired = expired;
	s->module = m;
	list_add_tail(&s->entry, &m->starters);
	s->inlet.conn = KCONN_NONE;
	s->listed = m->listing;
	s->name = strdup(name);
	r = s->name ? starter_open(m, s) : -ENOMEM;
	if (r < 0)
		starter_free(m, s);
	return r;
}

/* Where that does not succeed, native peers find no such name, and others do as ever. */
static void starter_want(struct module *m, const char *name)
{
	struct starter *s = find(m, name);
	int r;

	if (s) {
		s->listed = m->listing;
		return;
	}
	r = starter_new(m, name);
	if (r == -EEXIST)
		log_line("native peers do not start '%s': it has an activator", name);
	else if (r < 0)
		log_line("native peers do not start '%s': %s", name, strerror(-r));
}

void starters_renew(struct module *m)
{
	const struct services *services = m->classic->services;
	size_t n = services ? services_count(services) : 0, i;
	struct starter *s, *next;

	m->listing++;
	for (i = 0; i < n; i++)
		if (strcmp(services_nth(services, i)->name, CLASSIC_DRIVER))
			starter_want(m, services_nth(services, i)->name);
	list_for_each_entry_safe(s, next, &m->starters, entry)
		if (s->listed != m->listing)
			starter_free(m, s);
}

void starters_free(struct module *m)
{
	struct starter *s, *next;

	list_for_each_entry_safe(s, next, &m->starters, entry)
		starter_free(m, s);
}

/* ---- answering in the place of a service ---- */

static void answer(struct module *m, const struct kdbus_msg *msg, const char *error,
		   const char *text)
{
	module_refuse(m, NULL, msg, error, text);
}

/*
 * All that waits comes with the name, and is answered. Under a flood that never ends: the rest goes
 * back to where it was, and is for the next attempt.
 */
static void answer_all(struct module *m, const char *error, const char *text)
{
	struct inlet by = { .conn = m->standin };
	struct arrival a = { .inlet = &by };
	struct kconn_got got;
	unsigned int n;

	for (n = 0; n < ANSWERS_MAX && kconn_recv(&m->standin, 0, &got) == 0; n++) {
		a.msg = got.msg;
		answer(m, got.msg, error, text);
		module_discard(m, &a);
	}
}

static bool stand_in(struct module *m, const struct starter *s)
{
	u64 flags;

	return kconn_name(&m->standin, KDBUS_CMD_NAME_ACQUIRE, s->name, 0, &flags) == 0 &&
	       flags & KDBUS_NAME_PRIMARY;
}

static void stand_back(struct module *m, const struct starter *s)
{
	kconn_name(&m->standin, KDBUS_CMD_NAME_RELEASE, s->name, 0, NULL);
}

/* Only the first: what comes behind it goes back to where it was. */
static void refuse_first(struct module *m, struct starter *s, const char *error, const char *text)
{
	struct arrival a = { .inlet = &s->inlet };
	struct kconn_got got;

	if (kconn_recv(&s->inlet.conn, 0, &got) < 0)
		return;
	a.msg = got.msg;
	if (stand_in(m, s)) {
		answer(m, got.msg, error, text);
		stand_back(m, s);
	}
	module_discard(m, &a);
}

/* ---- starting ---- */

static int begin(struct module *m, struct starter *s, const struct service_file *service,
		 struct peer *from, const struct kdbus_msg *msg)
{
	struct activation *a;
	struct waiter *w;
	int r = activation_get(m->classic, service, &a);

	if (r < 0)
		return r;
	w = calloc(1, sizeof(*w));
	if (!w) {
		if (list_empty(&a->waiters))
			activation_free(a);
		return -ENOMEM;
	}
	w->native = s;
	/* It counts, so that it ends with its sender. */
	w->held = sizeof(*w);
	w->serial = (uint32_t)msg->cookie;
	w->quiet = !(msg->flags & KDBUS_MSG_EXPECT_REPLY);
	waiter_add(a, w, from);
	s->busy = true;
	inlet_watch(m, &s->inlet, false);
	return 0;
}

static void refuse(struct module *m, struct starter *s, int error)
{
	if (error == -EPERM)
		refuse_first(m, s, DBUS_ERROR("AccessDenied"),
			     "The policy of the bus does not allow this message");
	else if (error == -EBADMSG)
		refuse_first(m, s, DBUS_ERROR("InconsistentMessage"),
			     "Services are called with D-Bus messages");
	else if (error == -EMLINK)
		refuse_first(m, s, DBUS_ERROR("LimitsExceeded"),
			     "The maximum number of pending activations has been reached");
	else
		refuse_first(m, s, DBUS_ERROR("Failed"), strerror(-error));
}

void starter_returned(struct module *m, const char *name)
{
	struct starter *s = find(m, name);

	if (!s)
		return;
	s->returned = true;
	list_move_tail(&s->ready_entry, &m->ready_starters);
}

/*
 * The calls that an owner had taken and not answered are the activator's now, and nobody's: they
 * end with it.
 */
static void renew(struct module *m, struct starter *s)
{
	int r;

	starter_close(m, s);
	r = starter_open(m, s);
	/* A program that is just being started has a copy of it until it is executed. */
	if (r == -EEXIST) {
		timeout_set(m->classic, &s->again, AGAIN_MS);
		return;
	}
	if (r < 0) {
		log_line("native peers no longer start '%s': %s", s->name, strerror(-r));
		starter_free(m, s);
	}
}

static void expired(struct timeout *t)
{
	struct starter *s = container_of(t, struct starter, again);

	renew(s->module, s);
}

void starter_ready(struct module *m, struct starter *s)
{
	const struct service_file *service = services_find(m->classic->services, s->name);
	struct kconn_got got;
	bool returned = s->returned;
	struct peer *from;
	int r;

	s->returned = false;
	r = kconn_recv(&s->inlet.conn, KDBUS_RECV_PEEK, &got);
	if (r == -EAGAIN && returned)
		renew(m, s);
	if (r < 0)
		return;
	if (!service) {
		kconn_free(&s->inlet.conn, got.msg);
		return;
	}
	r = module_may_start(m, got.msg, &from);
	if (r == 0)
		r = begin(m, s, service, from, got.msg);
	kconn_free(&s->inlet.conn, got.msg);
	if (r < 0)
		refuse(m, s, r);
}

/* ---- the end ---- */

void starter_ended(struct activation *a)
{
	struct module *m = module_of(a->classic);
	struct starter *s = a->name ? find(m, a->name) : NULL;

	if (!s || !s->busy)
		return;
	s->busy = false;
	inlet_watch(m, &s->inlet, true);
}

void starter_fail(struct activation *a, struct waiter *w, const char *error, const char *text)
{
	struct module *m = module_of(a->classic);
	struct starter *s = find(m, a->name);

	if (!s || !stand_in(m, s))
		return;
	answer_all(m, error, text);
	stand_back(m, s);
}
