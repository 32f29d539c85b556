// SPDX-License-Identifier: LGPL-2.1-or-later
/* D-Bus by way of libdbus, the reference library. It passes no memfds here. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dbus/dbus.h>

#include "peers.h"

#define CALL_TIMEOUT_MS 60000

static int failed(struct link *l, DBusError *e, const char *what)
{
	link_error(l, -EIO, "%s: %s", what,
		   e && dbus_error_is_set(e) ? e->message : "out of memory or disconnected");
	if (e)
		dbus_error_free(e);
	return -EIO;
}

/* Where the server listens if there is no bus: an address that no file has to be removed for. */
static const char *address_of(struct link *l, char *buf, size_t size)
{
	if (!link_is_direct(l))
		return l->address;
	snprintf(buf, size, "unix:abstract=kdbus-bench-%d-%s", (int)getppid(), l->service);
	return buf;
}

static int connect_bus(struct link *l, DBusConnection **ret)
{
	DBusError e = DBUS_ERROR_INIT;
	char address[160];
	DBusConnection *c =
		dbus_connection_open_private(address_of(l, address, sizeof(address)), &e);

	if (!c)
		return failed(l, &e, "connecting");
	dbus_connection_set_exit_on_disconnect(c, FALSE);
	if (!link_is_direct(l) && !dbus_bus_register(c, &e)) {
		dbus_connection_close(c);
		dbus_connection_unref(c);
		return failed(l, &e, "connecting");
	}
	*ret = c;
	return 0;
}

static bool append(struct payload *p, DBusMessage *m, enum job_kind kind, size_t size)
{
	const void *data;
	dbus_bool_t ok;

	if (kind == JOB_STRING) {
		data = payload_next_string(p, size);
		ok = dbus_message_append_args(m, DBUS_TYPE_STRING, &data, DBUS_TYPE_INVALID);
		payload_end_string(p, size);
		return ok;
	}
	data = payload_next(p);
	return dbus_message_append_args(m, DBUS_TYPE_ARRAY, DBUS_TYPE_BYTE, &data, (int)size,
					DBUS_TYPE_INVALID);
}

static int check(struct link *l, struct payload *p, DBusMessage *m, enum job_kind kind,
		 size_t expected)
{
	DBusError e = DBUS_ERROR_INIT;
	const char *data = NULL;
	dbus_bool_t ok;
	int size = 0;

	if (kind == JOB_STRING)
		ok = dbus_message_get_args(m, &e, DBUS_TYPE_STRING, &data, DBUS_TYPE_INVALID);
	else
		ok = dbus_message_get_args(m, &e, DBUS_TYPE_ARRAY, DBUS_TYPE_BYTE, &data, &size,
					   DBUS_TYPE_INVALID);
	if (!ok)
		return failed(l, &e, "reading a message");
	return link_check(l, p, data, kind == JOB_STRING ? strlen(data) : (size_t)size, expected);
}

/* ---- server ---- */

static int answer(struct link *l, DBusConnection *c, DBusMessage *m)
{
	const struct job *job = &l->shared->job;
	DBusMessage *reply;
	bool ok;
	int r = check(l, link_server_in(l), m, job->kind, job->request);

	if (r < 0)
		return r;
	reply = dbus_message_new_method_return(m);
	ok = reply && append(link_server_out(l), reply, job->kind, job->reply) &&
	     dbus_connection_send(c, reply, NULL);
	if (reply)
		dbus_message_unref(reply);
	return ok ? 0 : failed(l, NULL, "replying");
}

static DBusHandlerResult on_message(DBusConnection *c, DBusMessage *m, void *arg)
{
	if (!dbus_message_is_method_call(m, PEER_INTERFACE, PEER_METHOD))
		return DBUS_HANDLER_RESULT_NOT_YET_HANDLED;
	if (answer(arg, c, m) < 0)
		_exit(1);
	return DBUS_HANDLER_RESULT_HANDLED;
}

/* The one watch that a server with one socket has, and the one connection it gets. */
struct listener {
	DBusWatch *watch;
	DBusConnection *connection;
};

static dbus_bool_t add_watch(DBusWatch *watch, void *arg)
{
	((struct listener *)arg)->watch = watch;
	return TRUE;
}

static void remove_watch(DBusWatch *watch, void *arg)
{
	((struct listener *)arg)->watch = NULL;
}

static void on_connection(DBusServer *server, DBusConnection *c, void *arg)
{
	((struct listener *)arg)->connection = dbus_connection_ref(c);
}

static int accept_direct(struct link *l, DBusConnection **ret)
{
	DBusError e = DBUS_ERROR_INIT;
	struct listener listener = { NULL, NULL };
	struct pollfd p = { .events = POLLIN };
	char address[160];
	DBusServer *s = dbus_server_listen(address_of(l, address, sizeof(address)), &e);

	if (!s)
		return failed(l, &e, "listening");
	dbus_server_set_new_connection_function(s, on_connection, &listener, NULL);
	if (!dbus_server_set_watch_functions(s, add_watch, remove_watch, NULL, &listener, NULL) ||
	    !listener.watch)
		return failed(l, NULL, "listening");
	link_ready(l);
	p.fd = dbus_watch_get_unix_fd(listener.watch);
	while (!listener.connection)
		if (poll(&p, 1, -1) == 1)
			dbus_watch_handle(listener.watch, DBUS_WATCH_READABLE);
	dbus_server_disconnect(s);
	dbus_server_unref(s);
	*ret = listener.connection;
	return 0;
}

static int join_bus(struct link *l, DBusConnection **ret)
{
	DBusError e = DBUS_ERROR_INIT;
	int r = connect_bus(l, ret);

	if (r == 0 && dbus_bus_request_name(*ret, l->service, 0, &e) < 0)
		r = failed(l, &e, "taking a name");
	return r;
}

static int serve_libdbus(struct link *l)
{
	static const DBusObjectPathVTable vtable = { .message_function = on_message };
	DBusConnection *c;
	int r = link_is_direct(l) ? accept_direct(l, &c) : join_bus(l, &c);

	if (r < 0)
		return r;
	if (!dbus_connection_register_object_path(c, PEER_PATH, &vtable, l))
		return failed(l, NULL, "registering");
	if (!link_is_direct(l))
		link_ready(l);
	while (dbus_connection_read_write_dispatch(c, -1))
		;
	return failed(l, NULL, "the bus");
}

/* ---- client ---- */

static int open_libdbus(struct link *l)
{
	DBusConnection *c;
	int r = connect_bus(l, &c);

	if (r < 0)
		return r;
	l->state = c;
	return 0;
}

static void close_libdbus(struct link *l)
{
	dbus_connection_close(l->state);
	dbus_connection_unref(l->state);
	l->state = NULL;
}

static int call_libdbus(struct link *l, const struct job *job)
{
	DBusMessage *m = dbus_message_new_method_call(link_is_direct(l) ? NULL : l->service,
						      PEER_PATH, PEER_INTERFACE, PEER_METHOD);
	DBusError e = DBUS_ERROR_INIT;
	DBusMessage *reply = NULL;
	int r;

	if (m && append(&l->out, m, job->kind, job->request))
		reply = dbus_connection_send_with_reply_and_block(l->state, m, CALL_TIMEOUT_MS, &e);
	if (m)
		dbus_message_unref(m);
	if (!reply)
		return failed(l, &e, "a call");
	r = check(l, &l->in, reply, job->kind, job->reply);
	dbus_message_unref(reply);
	return r;
}

const struct transport transport_libdbus = {
	.name = "libdbus",
	.serve = serve_libdbus,
	.open = open_libdbus,
	.call = call_libdbus,
	.close = close_libdbus,
};
