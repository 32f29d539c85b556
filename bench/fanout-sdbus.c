// SPDX-License-Identifier: LGPL-2.1-or-later
/* Signals over D-Bus by way of sd-bus. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <systemd/sd-bus.h>

#include "fanout.h"
#include "peers.h"

struct receivers {
	sd_bus **buses;
	int *fds;
};

static int failed(struct link *l, int r, const char *what)
{
	return link_error(l, r, "%s: %s", what, strerror(-r));
}

static int connect_bus(struct link *l, sd_bus **ret)
{
	const char *name;
	sd_bus *bus;
	int r = sd_bus_new(&bus);

	if (r < 0)
		return failed(l, r, "sd_bus_new");
	r = sd_bus_set_address(bus, l->address);
	if (r >= 0)
		r = sd_bus_set_bus_client(bus, 1);
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r >= 0)
		r = sd_bus_get_unique_name(bus, &name);
	if (r < 0) {
		sd_bus_unref(bus);
		return failed(l, r, "connecting");
	}
	*ret = bus;
	return 0;
}

static int on_signal(sd_bus_message *m, void *arg, sd_bus_error *error)
{
	struct link *l = arg;
	const void *data;
	size_t size;
	int r = sd_bus_message_read_array(m, 'y', &data, &size);

	if (r < 0)
		failed(l, r, "reading a signal");
	if (r < 0 || fanout_received(l, data, size) < 0)
		_exit(1);
	return 1;
}

static int add_receiver(struct link *l, struct receivers *all, unsigned int i)
{
	int r = connect_bus(l, &all->buses[i]);

	if (r < 0)
		return r;
	all->fds[i] = sd_bus_get_fd(all->buses[i]);
	if (i >= fanout_wanted(l))
		return 0;
	r = sd_bus_add_match(all->buses[i], NULL,
			     "type='signal',interface='" PEER_INTERFACE "',member='" PEER_METHOD
			     "'",
			     on_signal, l);
	return r < 0 ? failed(l, r, "adding a match") : 0;
}

static int ready(struct link *l, unsigned int i)
{
	struct receivers *all = l->state;
	int r;

	while ((r = sd_bus_process(all->buses[i], NULL)) > 0)
		;
	return r < 0 ? failed(l, r, "the bus") : 0;
}

static int serve_receivers(struct link *l, struct receivers *all)
{
	unsigned int i, n = fanout_total(l);
	int r = 0;

	l->state = all;
	for (i = 0; i < n && r == 0; i++)
		r = add_receiver(l, all, i);
	/* What came with the set-up, NameAcquired for one, lies in the libraries' buffers. */
	for (i = 0; i < n && r == 0; i++)
		r = ready(l, i);
	if (r == 0)
		r = fanout_poll(l, all->fds, n, ready);
	for (i = 0; i < n; i++)
		sd_bus_unref(all->buses[i]);
	return r;
}

static int serve_fanout(struct link *l)
{
	unsigned int n = fanout_total(l);
	struct receivers all = { calloc(n, sizeof(*all.buses)), calloc(n, sizeof(int)) };
	int r = -ENOMEM;

	if (all.buses && all.fds)
		r = serve_receivers(l, &all);
	else
		link_error(l, r, "out of memory");
	free(all.buses);
	free(all.fds);
	return r;
}

/* ---- client ---- */

static int open_fanout(struct link *l)
{
	sd_bus *bus = NULL;
	int r = connect_bus(l, &bus);

	if (r == 0)
		l->state = bus;
	return r;
}

static int send_one(struct link *l, const struct job *job)
{
	sd_bus *bus = l->state;
	sd_bus_message *m;
	int r = sd_bus_message_new_signal(bus, &m, PEER_PATH, PEER_INTERFACE, PEER_METHOD);

	if (r < 0)
		return failed(l, r, "building a signal");
	r = sd_bus_message_append_array(m, 'y', payload_next(&l->out), job->request);
	if (r >= 0)
		r = sd_bus_send(bus, m, NULL);
	sd_bus_message_unref(m);
	/* What the socket did not take at once waits in the library. */
	if (r >= 0)
		r = sd_bus_flush(bus);
	return r < 0 ? failed(l, r, "a signal") : 0;
}

static int call_fanout(struct link *l, const struct job *job)
{
	return fanout_send(l, job, 1, 1, send_one);
}

static int burst_fanout(struct link *l, const struct job *job, uint64_t count, unsigned int window)
{
	return fanout_send(l, job, count, window, send_one);
}

const struct transport transport_sdbus_fanout = {
	.name = "sd-bus",
	.serve = serve_fanout,
	.open = open_fanout,
	.call = call_fanout,
	.burst = burst_fanout,
};
