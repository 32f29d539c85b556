// SPDX-License-Identifier: LGPL-2.1-or-later
/* What is being started, and who waits for it. Rules: activate.h. */
#include "activate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "access.h"
#include "carrier.h"
#include "driver.h"

/* ---- who waits ---- */

void waiter_add(struct activation *a, struct waiter *w, struct peer *from)
{
	w->from = from;
	w->next_of_from = from->starts;
	if (from->starts)
		from->starts->link_of_from = &w->next_of_from;
	w->link_of_from = &from->starts;
	from->starts = w;
	from->starting += w->held;
	from->starting_fds += w->held_fds;
	list_add_tail(&w->entry, &a->waiters);
}

static struct cbuf *copy_of(const struct cmsg *m)
{
	struct cbuf *buf = cbuf_new(m->header.frame.total_len);

	if (!buf)
		return NULL;
	memcpy(buf->data, m->raw, m->header.frame.header_len);
	memcpy(buf->data + m->header.frame.header_len, m->body, m->header.frame.body_len);
	return buf;
}

/* As of what waits for a peer (output.c), each gets half of what others of its user leave. */
static int hold(struct cpeer *from, size_t bytes)
{
	size_t others = from->account->bytes - from->starting;

	if (others >= ACCOUNT_BYTES_MAX ||
	    from->starting + bytes > (ACCOUNT_BYTES_MAX - others) / 2)
		return -ENOBUFS;
	return account_hold(from->account, bytes);
}

/* -ENOBUFS: too much is held for its user; -ENOMEM */
static int add_classic(struct activation *a, struct cpeer *from, const struct cmsg *m, bool start)
{
	struct waiter *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->start = start;
	w->serial = m->header.frame.serial;
	w->quiet = m->header.frame.flags & DBUSP_NO_REPLY_EXPECTED;
	w->held = sizeof(*w) + (start ? 0 : m->header.frame.total_len);
	r = hold(from, w->held);
	if (r == 0 && !start) {
		w->message = copy_of(m);
		r = w->message ? 0 : -ENOMEM;
		if (r < 0)
			account_drop(from->account, w->held);
	}
	if (r < 0) {
		free(w);
		return r;
	}
	w->fds = start ? NULL : cfds_ref(m->fds);
	w->held_fds = w->fds ? w->fds->n : 0;
	waiter_add(a, w, &from->peer);
	return 0;
}

static void waiter_free(struct classic *k, struct waiter *w)
{
	core_step();
	w->from->starting -= w->held;
	w->from->starting_fds -= w->held_fds;
	*w->link_of_from = w->next_of_from;
	if (w->next_of_from)
		w->next_of_from->link_of_from = w->link_of_from;
	list_del(&w->entry);
	if (w->native)
		k->carrier->waiter_free(w);
	else
		account_drop(w->from->account, w->held);
	cbuf_unref(w->message);
	cfds_unref(w->fds);
	free(w);
}

/* A classic one that is still there */
static struct cpeer *alive(const struct waiter *w)
{
	struct cpeer *c = classic_peer(w->from);

	return c && cpeer_alive(c) ? c : NULL;
}

/* The message that was held, as it came. */
static void deliver(struct waiter *w, struct cpeer *from, struct peer *owner)
{
	const unsigned char *raw = w->message->data;
	struct cmsg m = {
		.from = &from->peer,
		.raw = raw,
		.buf = w->message,
		.fds = w->fds,
		.sender = cpeer_name(from),
	};

	if (dbusp_header_parse(&m.header, raw, w->message->size, DBUSP_MESSAGE_MAX, NULL) < 0)
		return;
	m.body = raw + m.header.frame.header_len;
	route_to(from, owner, &m);
}

static void tell_started(struct waiter *w, uint32_t result)
{
	struct cpeer *to = alive(w);
	struct dbusp_build b;

	if (!w->start || w->quiet || !to)
		return;
	driver_return_begin(to, w->serial, &b, "u");
	dbusp_put_u32(&b, result);
	driver_signal_to(to, &b);
}

static void give(struct classic *k, struct waiter *w, struct peer *owner)
{
	struct cpeer *from = alive(w);

	if (w->native)
		k->carrier->waiter_deliver(w, owner);
	else if (!w->start && from)
		deliver(w, from, owner);
}

static void tell_failed(struct activation *a, struct waiter *w, const char *error, const char *text)
{
	struct cpeer *from = alive(w);

	if (w->native)
		a->classic->carrier->waiter_fail(a, w, error, text);
	else if (from)
		driver_error_serial(from, w->serial, error, "%s", text);
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
		waiter_free(a->classic, w);
	a->classic->carrier->start_ended(a);
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
	a->by = (uid_t)-1;
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

	log_about(a->by, "activating '%s' failed: %s", a->name, text);
	list_for_each_entry(w, &a->waiters, entry)
		tell_failed(a, w, error, text);
	launch_forget(a->launch);
	activation_free(a);
}

/* ---- asking ---- */

const char *waiter_limit(const struct classic *k, const struct peer *from, size_t bytes,
			 unsigned int fds, long *ret_max)
{
	const struct config_limits *limits = classic_limits(k);

	*ret_max = limits->max_incoming_bytes;
	if (from->starting + bytes > (size_t)*ret_max)
		return "max_incoming_bytes";
	*ret_max = limits->max_incoming_unix_fds;
	return fds && from->starting_fds + fds > (unsigned long)*ret_max ? "max_incoming_unix_fds" :
									   NULL;
}

static void refuse_more(struct cpeer *from, const struct cmsg *m, const char *limit, long max)
{
	driver_error(from, m, DBUS_ERROR("LimitsExceeded"),
		     "Too much of \"%s\" waits for services that are being started (%s=%ld)",
		     from->name, limit, max);
}

static bool has_room(struct cpeer *from, const struct cmsg *m)
{
	size_t size = sizeof(struct waiter) + m->header.frame.total_len;
	const char *name;
	long max;

	name = waiter_limit(from->classic, &from->peer, size, m->fds ? m->fds->n : 0, &max);
	if (name)
		refuse_more(from, m, name, max);
	return !name;
}

static void refuse_memory(struct cpeer *from, const struct cmsg *m)
{
	driver_error(from, m, DBUS_ERROR("NoMemory"), "Memory allocation failure");
}

int activation_get(struct classic *k, const struct service_file *service, struct activation **ret)
{
	struct activation *a = find(k, service->name, strlen(service->name));

	if (!a && k->activations->n >= (unsigned long)classic_limits(k)->max_pending_service_starts)
		return -EMLINK;
	if (!a)
		a = activation_new(k, service);
	if (!a)
		return -ENOMEM;
	*ret = a;
	return 0;
}

static void refuse(struct cpeer *from, const struct cmsg *m, const char *name, int error)
{
	if (error == -EMLINK)
		driver_error(from, m, DBUS_ERROR("LimitsExceeded"),
			     "The maximum number of pending activations has been reached, "
			     "activation of %s failed (max_pending_service_starts=%ld)",
			     name, classic_limits(from->classic)->max_pending_service_starts);
	else
		refuse_memory(from, m);
}

static void begin(struct activation *a, const struct service_file *service)
{
	if (!a->begun) {
		a->begun = true;
		activation_start(a, service);
	}
}

static void fail_unknown(struct activation *a)
{
	char text[512];

	snprintf(text, sizeof(text), "The name %s was not provided by any .service files", a->name);
	activation_fail(a, DBUS_ERROR("ServiceUnknown"), text);
}

void activate_begin(struct classic *k)
{
	const struct service_file *service;
	struct activation *a, *next;

	list_for_each_entry_safe(a, next, &k->activations->list, entry) {
		if (a->begun)
			continue;
		service = services_find(k->services, a->name);
		if (service)
			begin(a, service);
		else
			fail_unknown(a); /* its file went in the round in which it was asked for */
	}
}

/*
 * Wait for @service. The first who asks starts it; that may fail at once, so he is on the list by
 * then and learns of it like everybody.
 */
static void join(struct cpeer *from, struct cmsg *m, const struct service_file *service, bool start)
{
	struct activation *a;
	int r;

	if (!has_room(from, m))
		return;
	r = activation_get(from->classic, service, &a);
	if (r < 0) {
		refuse(from, m, service->name, r);
		return;
	}
	r = add_classic(a, from, m, start);
	if (r == 0) {
		begin(a, service);
		return;
	}
	if (r == -ENOBUFS)
		refuse_more(from, m, "bytes of its user", ACCOUNT_BYTES_MAX);
	else
		refuse_memory(from, m);
	if (list_empty(&a->waiters))
		activation_free(a);
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

bool activate_asks_systemd(const struct classic *k, struct dbusp_str name)
{
	const struct service_file *service =
		k->systemd_activation ? services_find(k->services, name.s) : NULL;

	return service && service->systemd_service && !find(k, name.s, name.len);
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
		log_about(a->by, "'%s' was activated", name);
		launch_forget(a->launch);
		a->launch = NULL;
		k->carrier->start_owned(a, owner);
		list_for_each_entry(w, &a->waiters, entry)
			tell_started(w, ACTIVATE_STARTED);
		list_for_each_entry(w, &a->waiters, entry)
			give(k, w, owner);
		activation_free(a);
	}
	if (strcmp(name, ACTIVATE_SYSTEMD))
		return;
	activations_tell_systemd(k, true);
	activations_ask_systemd(k);
}

void activate_end(struct classic *k, struct peer *p)
{
	while (p->starts)
		waiter_free(k, p->starts);
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
	launch_abandon_all(k->daemon);
	environment_deinit(&k->activations->environment);
	environment_deinit(&k->activations->for_systemd);
	free(k->activations);
	k->activations = NULL;
}
