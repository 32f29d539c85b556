// SPDX-License-Identifier: LGPL-2.1-or-later
/* D-Bus by way of GDBus, as GNOME programs use it. Strings only, as in the GLib table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gio/gio.h>

#include "peers.h"

#define CALL_TIMEOUT_MS 60000

static const char introspection[] = "<node><interface name='" PEER_INTERFACE
				    "'><method name='" PEER_METHOD "'>"
				    "<arg type='s' direction='in'/><arg type='s' direction='out'/>"
				    "</method></interface></node>";

static int failed(struct link *l, GError *e, const char *what)
{
	link_error(l, -EIO, "%s: %s", what, e ? e->message : "disconnected");
	g_clear_error(&e);
	return -EIO;
}

/* Without a bus: over the pair of sockets, whose ends the two processes have. */
static GDBusConnection *connect_direct(struct link *l, bool server, GError **e)
{
	GSocket *socket = g_socket_new_from_fd(dup(l->fds[server]), e);
	GDBusConnection *c = NULL;
	GSocketConnection *stream;
	char *guid = server ? g_dbus_generate_guid() : NULL;

	if (socket) {
		stream = g_socket_connection_factory_create_connection(socket);
		/* Nothing may be answered before there is an object to answer for. */
		c = g_dbus_connection_new_sync(
			G_IO_STREAM(stream), guid,
			server ? G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_SERVER |
					 G_DBUS_CONNECTION_FLAGS_DELAY_MESSAGE_PROCESSING :
				 G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT,
			NULL, NULL, e);
		g_object_unref(stream);
		g_object_unref(socket);
	}
	g_free(guid);
	return c;
}

static GDBusConnection *connect_address(struct link *l, GError **e)
{
	return g_dbus_connection_new_for_address_sync(
		l->address,
		G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT |
			G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION,
		NULL, NULL, e);
}

static int connect_bus(struct link *l, bool server, GDBusConnection **ret)
{
	GError *e = NULL;
	GDBusConnection *c = link_is_direct(l) ? connect_direct(l, server, &e) :
						 connect_address(l, &e);

	if (!c)
		return failed(l, e, "connecting");
	*ret = c;
	return 0;
}

static GVariant *compose(struct payload *p, size_t size)
{
	GVariant *v = g_variant_new("(s)", payload_next_string(p, size));

	payload_end_string(p, size);
	return v;
}

static int check(struct link *l, struct payload *p, GVariant *v, size_t expected)
{
	const char *s;

	g_variant_get(v, "(&s)", &s);
	return link_check(l, p, s, strlen(s), expected);
}

/* ---- server ---- */

static void on_call(GDBusConnection *c, const char *sender, const char *path, const char *interface,
		    const char *method, GVariant *parameters, GDBusMethodInvocation *invocation,
		    void *arg)
{
	struct link *l = arg;
	const struct job *job = &l->shared->job;

	if (check(l, link_server_in(l), parameters, job->request) < 0)
		_exit(1);
	g_dbus_method_invocation_return_value(invocation, compose(link_server_out(l), job->reply));
}

static int take_name(struct link *l, GDBusConnection *c)
{
	GError *e = NULL;
	GVariant *v = g_dbus_connection_call_sync(c, "org.freedesktop.DBus",
						  "/org/freedesktop/DBus", "org.freedesktop.DBus",
						  "RequestName",
						  g_variant_new("(su)", l->service, 0), NULL,
						  G_DBUS_CALL_FLAGS_NONE, -1, NULL, &e);

	if (!v)
		return failed(l, e, "taking a name");
	g_variant_unref(v);
	return 0;
}

static int register_object(struct link *l, GDBusConnection *c)
{
	static const GDBusInterfaceVTable vtable = { .method_call = on_call };
	GDBusNodeInfo *node = g_dbus_node_info_new_for_xml(introspection, NULL);
	GError *e = NULL;

	if (!g_dbus_connection_register_object(c, PEER_PATH, node->interfaces[0], &vtable, l, NULL,
					       &e))
		return failed(l, e, "registering");
	return 0;
}

static int serve_gdbus(struct link *l)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);
	GDBusConnection *c;
	int r;

	/* A direct peer is needed for connecting. */
	if (link_is_direct(l))
		link_ready(l);
	r = connect_bus(l, true, &c);
	if (r == 0)
		r = register_object(l, c);
	if (r == 0 && !link_is_direct(l))
		r = take_name(l, c);
	if (r < 0)
		return r;
	if (link_is_direct(l))
		g_dbus_connection_start_message_processing(c);
	else
		link_ready(l);
	g_main_loop_run(loop);
	return failed(l, NULL, "the bus");
}

/* ---- client ---- */

static int open_gdbus(struct link *l)
{
	GDBusConnection *c;
	int r = connect_bus(l, false, &c);

	if (r < 0)
		return r;
	l->state = c;
	return 0;
}

static void close_gdbus(struct link *l)
{
	g_dbus_connection_close_sync(l->state, NULL, NULL);
	g_object_unref(l->state);
	l->state = NULL;
}

static int call_gdbus(struct link *l, const struct job *job)
{
	GError *e = NULL;
	GVariant *v = g_dbus_connection_call_sync(l->state, link_is_direct(l) ? NULL : l->service,
						  PEER_PATH, PEER_INTERFACE, PEER_METHOD,
						  compose(&l->out, job->request),
						  G_VARIANT_TYPE("(s)"), G_DBUS_CALL_FLAGS_NONE,
						  CALL_TIMEOUT_MS, NULL, &e);
	int r;

	if (!v)
		return failed(l, e, "a call");
	r = check(l, &l->in, v, job->reply);
	g_variant_unref(v);
	return r;
}

const struct transport transport_gdbus = {
	.name = "GDBus",
	.prepare = link_prepare_pair,
	.serve = serve_gdbus,
	.open = open_gdbus,
	.call = call_gdbus,
	.close = close_gdbus,
};
