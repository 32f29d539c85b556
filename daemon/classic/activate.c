// SPDX-License-Identifier: LGPL-2.1-or-later
/* What is being started, and who waits for it. Rules: activate.h. */
#include "activate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "access.h"
#include "activations.h"
#include "driver.h"

/* ---- who waits ---- */

static struct waiter *waiter_add(struct activation *a, struct cpeer *from, const struct cmsg *m,
				 bool start)
{
	struct waiter *w = calloc(1, sizeof(*w));
	size_t size = m->header.frame.total_len;

	if (!w)
		return NULL;
	w->start = start;
	w->from = from;
	w->serial = m->header.frame.serial;
	w->quiet = m->header.frame.flags & DBUSP_NO_REPLY_EXPECTED;
	if (!start) {
		w->message = cbuf_new(size);
		if (!w->message) {
			free(w);
			return NULL;
		}
		memcpy(w->message->data, m->raw, m->header.frame.header_len);
		memcpy(w->message->data + m->header.frame.header_len, m->body,
		       m->header.frame.body_len);
		w->fds = m->fds ? cfds_ref(m->fds) : NULL;
	}
	w->held = sizeof(*w) + (start ? 0 : size);
	from->held += w->held;
	from->held_fds += w->fds ? w->fds->n : 0;
	list_add_tail(&w->entry, &a->waiters);
	return w;
}

static void waiter_free(struct waiter *w)
{
	w->from->held -= w->held;
	w->from->held_fds -= w->fds ? w->fds->n : 0;
	list_del(&w->entry);
	cbuf_unref(w->message);
	cfds_unref(w->fds);
	free(w);
}

/* The message that was held, as it came. */
static void deliver(struct waiter *w, struct peer *owner)
{
	const unsigned char *raw = w->message->data;
	struct cmsg m = {
		.from = &w->from->peer,
		.raw = raw,
		.buf = w->message,
		.fds = w->fds,
		.sender = cpeer_name(w->from),
	};

	if (dbusp_header_parse(&m.header, raw, w->message->size, DBUSP_MESSAGE_MAX, NULL) < 0)
		return;
	m.body = raw + m.header.frame.header_len;
	route_to(w->from, owner, &m);
}

static void tell_started(struct waiter *w, uint32_t result)
{
	struct dbusp_build b;

	if (w->quiet)
		return;
	driver_return_begin(w->from, w->serial, &b, "u");
	dbusp_put_u32(&b, result);
	driver_signal_to(w->from, &b);
}

/* ---- activations ---- */

static struct activation *find(const struct classic *k, const char *name, size_t len)
{
	struct activation *a;

	list_for_each_entry(a, &k->activations->list, entry) {
		if (strlen(a->name) == len && !memcmp(a->name, name, len))
			return a;
	}
	return NULL;
}

void activation_free(struct activation *a)
{
	struct waiter *w, *next;

	list_for_each_entry_safe(w, next, &a->waiters, entry)
		waiter_free(w);
	timeout_clear(a->classic, &a->timeout);
	list_del(&a->entry);
	a->classic->activations->n--;
	free(a->name);
	free(a->unit);
	free(a);
}

static struct activation *activation_new(struct classic *k, const struct service_file *service)
{
	struct activation *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	INIT_LIST_HEAD(&a->waiters);
	a->classic = k;
	a->name = strdup(service->name);
	a->unit = service->systemd_service ? strdup(service->systemd_service) : NULL;
	list_add_tail(&a->entry, &k->activations->list);
	k->activations->n++;
	if (!a->name || (service->systemd_service && !a->unit)) {
		activation_free(a);
		return NULL;
	}
	return a;
}

/* Its end, bad: everybody learns why. */
void activation_fail(struct activation *a, const char *error, const char *text)
{
	struct waiter *w;

	log_line("activating '%s' failed: %s", a->name, text);
	list_for_each_entry(w, &a->waiters, entry) {
		if (cpeer_alive(w->from))
			driver_error_serial(w->from, w->serial, error, "%s", text);
	}
	launch_forget(a->launch);
	activation_free(a);
}

/* ---- asking ---- */

static bool has_room(struct cpeer *from, const struct cmsg *m)
{
	const struct config_limits *limits = classic_limits(from->classic);
	size_t size = sizeof(struct waiter) + m->header.frame.total_len;
	unsigned int fds = m->fds ? m->fds->n : 0;
	const char *name = "max_incoming_bytes";
	long max = limits->max_incoming_bytes;

	if (from->held + size <= (size_t)max) {
		name = "max_incoming_unix_fds";
		max = limits->max_incoming_unix_fds;
		if (!fds || from->held_fds + fds <= (unsigned long)max)
			return true;
	}
	driver_error(from, m, DBUS_ERROR("LimitsExceeded"),
		     "Too much of \"%s\" waits for services that are being started (%s=%ld)",
		     from->name, name, max);
	return false;
}

static void refuse_memory(struct cpeer *from, const struct cmsg *m)
{
	driver_error(from, m, DBUS_ERROR("NoMemory"), "Memory allocation failure");
}

static struct activation *begin(struct cpeer *from, struct cmsg *m,
				const struct service_file *service)
{
	struct classic *k = from->classic;
	long max = classic_limits(k)->max_pending_service_starts;
	struct activation *a;

	if (k->activations->n >= (unsigned long)max) {
		driver_error(from, m, DBUS_ERROR("LimitsExceeded"),
			     "The maximum number of pending activations has been reached, "
			     "activation of %s failed (max_pending_service_starts=%ld)",
			     service->name, max);
		return NULL;
	}
	a = activation_new(k, service);
	if (!a)
		refuse_memory(from, m);
	return a;
}

/*
 * Wait for @service. The first who asks starts it; that may fail at once, so he is on the list by
 * then and learns of it like everybody.
 */
static void join(struct cpeer *from, struct cmsg *m, const struct service_file *service, bool start)
{
	struct activation *a = find(from->classic, service->name, strlen(service->name));
	bool first = !a;

	if (!has_room(from, m))
		return;
	if (first)
		a = begin(from, m, service);
	if (!a)
		return;
	if (!waiter_add(a, from, m, start)) {
		refuse_memory(from, m);
		if (first)
			activation_free(a);
		return;
	}
	if (first)
		activation_start(a, from, service);
}

bool activate_for_message(struct cpeer *from, struct cmsg *m)
{
	const struct service_file *service =
		services_find(from->classic->services, m->header.destination.s);

	if (!service)
		return false;
	if (access_may_pass(&from->peer, NULL, m))
		join(from, m, service, false);
	return true;
}

void activate_for_call(struct cpeer *from, struct cmsg *m, const struct service_file *service)
{
	join(from, m, service, true);
}

/* ---- the end ---- */

void activate_owned(struct classic *k, const char *name, struct peer *owner)
{
	struct activation *a = find(k, name, strlen(name));
	struct waiter *w;

	if (a) {
		log_line("'%s' was activated", name);
		launch_forget(a->launch);
		a->launch = NULL;
		list_for_each_entry(w, &a->waiters, entry) {
			if (w->start && cpeer_alive(w->from))
				tell_started(w, ACTIVATE_STARTED);
		}
		list_for_each_entry(w, &a->waiters, entry) {
			if (!w->start && cpeer_alive(w->from))
				deliver(w, owner);
		}
		activation_free(a);
	}
	if (!strcmp(name, ACTIVATE_SYSTEMD))
		activations_ask_systemd(k);
}

void activate_end(struct cpeer *c)
{
	struct waiter *w, *next;
	struct activation *a;

	if (!c->held)
		return;
	list_for_each_entry(a, &c->classic->activations->list, entry) {
		list_for_each_entry_safe(w, next, &a->waiters, entry) {
			if (w->from == c)
				waiter_free(w);
		}
	}
}

int activations_init(struct classic *k)
{
	struct activations *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	INIT_LIST_HEAD(&all->list);
	if (environment_copy(&all->environment, environ) < 0) {
		free(all);
		return -ENOMEM;
	}
	k->activations = all;
	return 0;
}

void activations_free(struct classic *k)
{
	struct activation *a, *next;

	if (!k->activations)
		return;
	list_for_each_entry_safe(a, next, &k->activations->list, entry)
		activation_free(a);
	environment_deinit(&k->activations->environment);
	free(k->activations);
	k->activations = NULL;
}
