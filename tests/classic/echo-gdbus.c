// SPDX-License-Identifier: LGPL-2.1-or-later
/* The echo service with GDBus; see echo.h. */
#include <gio/gio.h>
#include <gio/gunixfdlist.h>
#include <string.h>

#include "echo.h"

/* ---- service ---- */

static GMainLoop *loop;

static const char xml[] =
	"<node><interface name='" ECHO_INTERFACE "'>"
	"<method name='Echo'><arg type='s' direction='in'/><arg type='s' direction='out'/></method>"
	"<method name='Sum'><arg type='au' direction='in'/><arg type='u' direction='out'/></method>"
	"<method name='Fail'/>"
	"<method name='Fd'><arg type='h' direction='in'/><arg type='h' direction='out'/></method>"
	"<method name='Emit'><arg type='u' direction='in'/></method>"
	"<method name='Quit'/>"
	"<signal name='Tick'><arg type='u'/></signal>"
	"</interface></node>";

static guint32 sum_of(GVariant *args)
{
	GVariantIter *iter;
	guint32 sum = 0, value;

	g_variant_get(args, "(au)", &iter);
	while (g_variant_iter_next(iter, "u", &value))
		sum += value;
	g_variant_iter_free(iter);
	return sum;
}

static void return_fd(GDBusMethodInvocation *call)
{
	GDBusMessage *message = g_dbus_method_invocation_get_message(call);
	GUnixFDList *fds = g_dbus_message_get_unix_fd_list(message), *back = g_unix_fd_list_new();
	int fd = g_unix_fd_list_get(fds, 0, NULL);

	g_unix_fd_list_append(back, fd, NULL);
	close(fd);
	g_dbus_method_invocation_return_value_with_unix_fd_list(call, g_variant_new("(h)", 0),
								back);
	g_object_unref(back);
}

static gboolean leave(gpointer data)
{
	(void)data;
	g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

static void on_call(GDBusConnection *bus, const char *sender, const char *path,
		    const char *interface, const char *method, GVariant *args,
		    GDBusMethodInvocation *call, gpointer data)
{
	(void)sender;
	(void)data;
	if (!strcmp(method, "Echo")) {
		g_dbus_method_invocation_return_value(call, args);
	} else if (!strcmp(method, "Sum")) {
		g_dbus_method_invocation_return_value(call, g_variant_new("(u)", sum_of(args)));
	} else if (!strcmp(method, "Fail")) {
		g_dbus_method_invocation_return_dbus_error(call, ECHO_ERROR, ECHO_ERROR_TEXT);
	} else if (!strcmp(method, "Fd")) {
		return_fd(call);
	} else if (!strcmp(method, "Emit")) {
		g_dbus_connection_emit_signal(bus, NULL, path, interface, "Tick", args, NULL);
		g_dbus_method_invocation_return_value(call, NULL);
	} else {
		g_dbus_method_invocation_return_value(call, NULL);
		g_dbus_connection_flush_sync(bus, NULL, NULL);
		g_idle_add(leave, NULL);
	}
}

static void on_acquired(GDBusConnection *bus, const char *name, gpointer data)
{
	(void)bus;
	(void)name;
	(void)data;
	echo_ready();
}

static void on_bus(GDBusConnection *bus, const char *name, gpointer data)
{
	static const GDBusInterfaceVTable table = { .method_call = on_call };
	GDBusNodeInfo *node = g_dbus_node_info_new_for_xml(xml, NULL);

	(void)name;
	(void)data;
	g_dbus_connection_register_object(bus, ECHO_PATH, node->interfaces[0], &table, NULL, NULL,
					  NULL);
	g_dbus_node_info_unref(node);
}

static int serve(const char *name)
{
	guint id;

	loop = g_main_loop_new(NULL, FALSE);
	id = g_bus_own_name(G_BUS_TYPE_SESSION, name, G_BUS_NAME_OWNER_FLAGS_NONE, on_bus,
			    on_acquired, NULL, NULL, NULL);
	g_main_loop_run(loop);
	g_bus_unown_name(id);
	g_main_loop_unref(loop);
	return 0;
}

/* ---- client ---- */

static GDBusConnection *bus;
static const char *service;
static guint32 ticked;
static bool gone;

static void client_open(const char *name)
{
	GError *error = NULL;

	service = name;
	loop = g_main_loop_new(NULL, FALSE);
	bus = g_bus_get_sync(G_BUS_TYPE_SESSION, NULL, &error);
	if (!bus)
		g_error("%s", error->message);
}

static void client_close(void)
{
	g_object_unref(bus);
	g_main_loop_unref(loop);
}

static GVariant *call(const char *method, GVariant *args, GError **error)
{
	return g_dbus_connection_call_sync(bus, service, ECHO_PATH, ECHO_INTERFACE, method, args,
					   NULL, G_DBUS_CALL_FLAGS_NONE, -1, NULL, error);
}

static bool client_echo(const char *text)
{
	GVariant *answer = call("Echo", g_variant_new("(s)", text), NULL);
	const char *back;
	bool good = false;

	if (answer) {
		g_variant_get(answer, "(&s)", &back);
		good = !strcmp(back, text);
		g_variant_unref(answer);
	}
	return good;
}

static uint32_t client_sum(uint32_t n)
{
	GVariantBuilder builder;
	GVariant *answer;
	guint32 sum = 0, i;

	g_variant_builder_init(&builder, G_VARIANT_TYPE("au"));
	for (i = 1; i <= n; i++)
		g_variant_builder_add(&builder, "u", i);
	answer = call("Sum", g_variant_new("(au)", &builder), NULL);
	if (!answer)
		return UINT32_MAX;
	g_variant_get(answer, "(u)", &sum);
	g_variant_unref(answer);
	return sum;
}

static bool client_fail(void)
{
	GError *error = NULL;
	char *name;
	bool good;

	if (call("Fail", NULL, &error))
		return false;
	name = g_dbus_error_get_remote_error(error);
	g_dbus_error_strip_remote_error(error);
	good = name && !strcmp(name, ECHO_ERROR) && !strcmp(error->message, ECHO_ERROR_TEXT);
	g_free(name);
	g_error_free(error);
	return good;
}

static bool client_unknown(void)
{
	GError *error = NULL;
	bool good;

	if (call("Nothing", NULL, &error))
		return false;
	good = g_error_matches(error, G_DBUS_ERROR, G_DBUS_ERROR_UNKNOWN_METHOD);
	g_error_free(error);
	return good;
}

static int client_fd(int fd)
{
	GUnixFDList *fds = g_unix_fd_list_new(), *back = NULL;
	GVariant *answer;
	int got = -1;

	g_unix_fd_list_append(fds, fd, NULL);
	answer = g_dbus_connection_call_with_unix_fd_list_sync(
		bus, service, ECHO_PATH, ECHO_INTERFACE, "Fd", g_variant_new("(h)", 0), NULL,
		G_DBUS_CALL_FLAGS_NONE, -1, fds, &back, NULL, NULL);
	g_object_unref(fds);
	if (!answer)
		return -1;
	if (back) {
		got = g_unix_fd_list_get(back, 0, NULL);
		g_object_unref(back);
	}
	g_variant_unref(answer);
	return got;
}

static void on_tick(GDBusConnection *c, const char *sender, const char *path,
		    const char *interface, const char *signal, GVariant *args, gpointer data)
{
	(void)c;
	(void)sender;
	(void)path;
	(void)interface;
	(void)signal;
	(void)data;
	g_variant_get(args, "(u)", &ticked);
	g_main_loop_quit(loop);
}

static uint32_t client_tick(uint32_t value)
{
	guint id = g_dbus_connection_signal_subscribe(bus, service, ECHO_INTERFACE, "Tick",
						      ECHO_PATH, NULL, G_DBUS_SIGNAL_FLAGS_NONE,
						      on_tick, NULL, NULL);
	GVariant *answer = call("Emit", g_variant_new("(u)", value), NULL);

	if (!answer)
		return 0;
	g_variant_unref(answer);
	g_main_loop_run(loop);
	g_dbus_connection_signal_unsubscribe(bus, id);
	return ticked;
}

static void on_vanished(GDBusConnection *c, const char *name, gpointer data)
{
	(void)c;
	(void)data;
	gone = !strcmp(name, service);
	g_main_loop_quit(loop);
}

static void on_appeared(GDBusConnection *c, const char *name, const char *owner, gpointer data)
{
	GVariant *answer = call("Quit", NULL, NULL);

	(void)c;
	(void)name;
	(void)owner;
	(void)data;
	if (answer)
		g_variant_unref(answer);
}

static bool client_quit(void)
{
	guint id = g_bus_watch_name_on_connection(bus, service, G_BUS_NAME_WATCHER_FLAGS_NONE,
						  on_appeared, on_vanished, NULL, NULL);

	g_main_loop_run(loop);
	g_bus_unwatch_name(id);
	return gone;
}

int main(int argc, char **argv)
{
	static const struct echo_client client = {
		.open = client_open,
		.echo = client_echo,
		.sum = client_sum,
		.fail = client_fail,
		.unknown = client_unknown,
		.fd = client_fd,
		.tick = client_tick,
		.quit = client_quit,
		.close = client_close,
	};

	return echo_main(argc, argv, serve, &client);
}
