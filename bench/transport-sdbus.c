// SPDX-License-Identifier: LGPL-2.1-or-later
/* D-Bus by way of sd-bus, which stands for a client library that costs little. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <systemd/sd-bus.h>

#include "peers.h"

/* The timeout of calls is the same as with libkdbus. */
#define CALL_TIMEOUT_US 60000000ULL

static const char
	types[] = { [JOB_COPY] = 'y', [JOB_MEMFD] = 'h', [JOB_PASS] = 'h', [JOB_STRING] = 's' };

static int failed(struct link *l, int r, const char *what)
{
	return link_error(l, r, "%s: %s", what, strerror(-r));
}

/* Over the bus; or without one over the pair of sockets, whose ends the two processes have. */
static int choose_peer(struct link *l, sd_bus *bus, bool server)
{
	sd_id128_t id;
	int r, fd;

	if (!link_is_direct(l)) {
		r = sd_bus_set_address(bus, l->address);
		return r < 0 ? r : sd_bus_set_bus_client(bus, 1);
	}
	fd = dup(l->fds[server]);
	r = fd < 0 ? -errno : sd_bus_set_fd(bus, fd, fd);
	if (r >= 0 && server)
		r = sd_id128_randomize(&id);
	return r >= 0 && server ? sd_bus_set_server(bus, 1, id) : r;
}

static int connect_bus(struct link *l, bool server, sd_bus **ret)
{
	const char *name;
	sd_bus *bus = NULL;
	int r = sd_bus_new(&bus);

	if (r < 0)
		return failed(l, r, "sd_bus_new");
	r = choose_peer(l, bus, server);
	if (r >= 0)
		r = sd_bus_negotiate_fds(bus, 1);
	if (r >= 0)
		r = sd_bus_start(bus);
	/* Waits for the answer to Hello, without which there is no connection yet. */
	if (r >= 0 && !link_is_direct(l))
		r = sd_bus_get_unique_name(bus, &name);
	if (r < 0) {
		sd_bus_unref(bus);
		return failed(l, r, "connecting");
	}
	*ret = bus;
	return 0;
}

/* @job is NULL for a reply: those carry no memfd. */
static int append(struct link *l, struct payload *p, sd_bus_message *m, const struct job *job,
		  enum job_kind kind, size_t size)
{
	int fd = -1, r;

	if (kind == JOB_STRING) {
		r = sd_bus_message_append_basic(m, 's', payload_next_string(p, size));
		payload_end_string(p, size);
		return r;
	}
	if (kind == JOB_COPY)
		return sd_bus_message_append_array(m, 'y', payload_next(p), size);
	fd = link_memfd(l, job);
	if (fd < 0)
		return fd;
	r = sd_bus_message_append_basic(m, 'h', &fd);
	link_memfd_sent(job, fd);
	return r;
}

static int check(struct link *l, struct payload *p, sd_bus_message *m, enum job_kind kind,
		 size_t expected)
{
	const void *data = NULL;
	size_t size = 0;
	int fd = -1, r;

	if (kind == JOB_COPY)
		r = sd_bus_message_read_array(m, 'y', &data, &size);
	else
		r = sd_bus_message_read_basic(m, types[kind],
					      types[kind] == 'h' ? (void *)&fd : (void *)&data);
	if (r < 0 || (fd < 0 && !data && expected))
		return failed(l, r < 0 ? r : -EBADMSG, "reading a message");
	if (types[kind] == 'h')
		return link_check_memfd(l, &l->shared->job, fd);
	return link_check(l, p, data, kind == JOB_STRING && data ? strlen(data) : size, expected);
}

static enum job_kind reply_kind(const struct job *job)
{
	return job->kind == JOB_STRING ? JOB_STRING : JOB_COPY;
}

/* ---- server ---- */

static int on_call(sd_bus_message *m, void *arg, sd_bus_error *error)
{
	struct link *l = arg;
	const struct job *job = &l->shared->job;
	sd_bus_message *reply = NULL;
	int r = check(l, link_server_in(l), m, job->kind, job->request);

	if (r < 0)
		_exit(1);
	r = sd_bus_message_new_method_return(m, &reply);
	if (r >= 0)
		r = append(l, link_server_out(l), reply, NULL, reply_kind(job), job->reply);
	if (r >= 0)
		r = sd_bus_send(NULL, reply, NULL);
	sd_bus_message_unref(reply);
	if (r < 0) {
		failed(l, r, "replying");
		_exit(1);
	}
	return 1;
}

static int serve_sdbus(struct link *l)
{
	sd_bus *bus = NULL;
	int r = connect_bus(l, true, &bus);

	if (r < 0)
		return r;
	r = sd_bus_add_object(bus, NULL, PEER_PATH, on_call, l);
	if (r >= 0 && !link_is_direct(l))
		r = sd_bus_request_name(bus, l->service, 0);
	if (r < 0)
		failed(l, r, "taking a name");
	else
		link_ready(l);
	while (r >= 0) {
		r = sd_bus_process(bus, NULL);
		if (r == 0)
			r = sd_bus_wait(bus, UINT64_MAX);
		if (r == -EINTR)
			r = 0;
	}
	sd_bus_unref(bus);
	return failed(l, r, "the bus");
}

/* ---- client ---- */

struct client {
	sd_bus *bus;
	const struct job *job;
	uint64_t done;
	int error;
};

static int open_sdbus(struct link *l)
{
	struct client *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return link_error(l, -ENOMEM, "out of memory");
	r = connect_bus(l, false, &c->bus);
	if (r < 0) {
		free(c);
		return r;
	}
	l->state = c;
	return 0;
}

static void close_sdbus(struct link *l)
{
	struct client *c = l->state;

	sd_bus_flush_close_unref(c->bus);
	free(c);
	l->state = NULL;
}

static int own_sdbus(struct link *l, const char *name)
{
	struct client *c = l->state;
	int r = sd_bus_request_name(c->bus, name, 0);

	return r < 0 ? failed(l, r, "taking a name") : 0;
}

static int ignore(sd_bus_message *m, void *arg, sd_bus_error *error)
{
	return 0;
}

static int match_sdbus(struct link *l, unsigned int i)
{
	struct client *c = l->state;
	char rule[128];
	int r;

	snprintf(rule, sizeof(rule),
		 "type='signal',interface='" PEER_INTERFACE ".i%u',member='" PEER_METHOD "'", i);
	r = sd_bus_add_match(c->bus, NULL, rule, ignore, NULL);
	return r < 0 ? failed(l, r, "adding a match rule") : 0;
}

static int compose(struct link *l, const struct job *job, sd_bus_message **ret)
{
	struct client *c = l->state;
	sd_bus_message *m = NULL;
	int r = sd_bus_message_new_method_call(c->bus, &m, link_is_direct(l) ? NULL : l->service,
					       PEER_PATH, PEER_INTERFACE, PEER_METHOD);

	if (r < 0)
		return failed(l, r, "building a message");
	r = append(l, &l->out, m, job, job->kind, job->request);
	if (r < 0) {
		sd_bus_message_unref(m);
		return failed(l, r, "building a message");
	}
	*ret = m;
	return 0;
}

static int call_sync(struct link *l, const struct job *job)
{
	sd_bus_error error = SD_BUS_ERROR_NULL;
	sd_bus_message *m = NULL, *reply = NULL;
	struct client *c = l->state;
	int r = compose(l, job, &m);

	if (r < 0)
		return r;
	r = sd_bus_call(c->bus, m, CALL_TIMEOUT_US, &error, &reply);
	sd_bus_message_unref(m);
	if (r < 0)
		link_error(l, r, "a call: %s", error.message ? error.message : strerror(-r));
	else
		r = check(l, &l->in, reply, reply_kind(job), job->reply);
	sd_bus_message_unref(reply);
	sd_bus_error_free(&error);
	return r < 0 ? r : 0;
}

static int on_reply(sd_bus_message *m, void *arg, sd_bus_error *error)
{
	struct link *l = arg;
	struct client *c = l->state;
	const sd_bus_error *e = sd_bus_message_get_error(m);

	if (e)
		c->error = link_error(l, -EIO, "a call: %s", e->message ? e->message : e->name);
	else
		c->error = check(l, &l->in, m, reply_kind(c->job), c->job->reply);
	c->done++;
	return 1;
}

static int send_async(struct link *l, const struct job *job)
{
	struct client *c = l->state;
	sd_bus_message *m = NULL;
	int r = compose(l, job, &m);

	if (r < 0)
		return r;
	r = sd_bus_call_async(c->bus, NULL, m, on_reply, l, CALL_TIMEOUT_US);
	sd_bus_message_unref(m);
	return r < 0 ? failed(l, r, "a call") : 0;
}

static int burst_sdbus(struct link *l, const struct job *job, uint64_t count, unsigned int window)
{
	struct client *c = l->state;
	uint64_t begun = 0;
	int r = 0;

	c->job = job;
	c->done = 0;
	c->error = 0;
	while (r >= 0 && c->done < count) {
		while (r >= 0 && begun < count && begun - c->done < window) {
			r = send_async(l, job);
			begun++;
		}
		if (r >= 0)
			r = sd_bus_process(c->bus, NULL);
		if (r == 0 && c->done < count)
			r = sd_bus_wait(c->bus, UINT64_MAX);
		if (r == -EINTR)
			r = 0;
		if (c->error)
			return c->error;
	}
	return r < 0 ? failed(l, r, "the bus") : 0;
}

static int call_sdbus(struct link *l, const struct job *job)
{
	return job->poll ? burst_sdbus(l, job, 1, 1) : call_sync(l, job);
}

const struct transport transport_sdbus = {
	.name = "sd-bus",
	.prepare = link_prepare_pair,
	.serve = serve_sdbus,
	.open = open_sdbus,
	.call = call_sdbus,
	.burst = burst_sdbus,
	.close = close_sdbus,
	.own = own_sdbus,
	.match = match_sdbus,
};
