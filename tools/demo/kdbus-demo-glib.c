// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The other half of "make demo": a service and a client as any GLib program has them. Nothing here
 * knows of kdbus; the session bus is whatever DBUS_SESSION_BUS_ADDRESS says, kdbusd for example.
 */
#include <gio/gio.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME  "org.example.Forecast"
#define PATH  "/org/example/Forecast"
#define IFACE "org.example.Forecast1"
#define CALLS 500

static const char xml[] = "<node><interface name='" IFACE "'>"
			  "<method name='Ask'><arg name='place' type='s' direction='in'/>"
			  "<arg name='weather' type='s' direction='out'/></method>"
			  "<signal name='Changed'><arg name='weather' type='s'/></signal>"
			  "</interface></node>";

/* A demonstration that goes wrong says where, and ends. */
static void must(const void *what, GError *error, const char *text)
{
	if (what && !error)
		return;
	g_printerr("kdbus-demo-glib: %s: %s\n", text, error ? error->message : "it failed");
	exit(1);
}

static GDBusConnection *join(void)
{
	GError *error = NULL;
	GDBusConnection *bus = g_bus_get_sync(G_BUS_TYPE_SESSION, NULL, &error);

	must(bus, error, "the session bus");
	return bus;
}

/* ---- service ---- */

static void on_call(GDBusConnection *bus, const char *sender, const char *path,
		    const char *interface, const char *method, GVariant *args,
		    GDBusMethodInvocation *call, gpointer data)
{
	const char *place;

	g_variant_get(args, "(&s)", &place);
	if (*place)
		g_dbus_method_invocation_return_value(call, g_variant_new("(s)", "sunny"));
	else
		g_dbus_method_invocation_return_dbus_error(call, IFACE ".Error.Nowhere",
							   "Where is that?");
	if (!strcmp(place, "Bremen"))
		g_dbus_connection_emit_signal(bus, NULL, PATH, IFACE, "Changed",
					      g_variant_new("(s)", "rain"), NULL);
}

static const GDBusInterfaceVTable calls = { .method_call = on_call };

static void on_bus(GDBusConnection *bus, const char *name, gpointer data)
{
	GDBusNodeInfo *node = g_dbus_node_info_new_for_xml(xml, NULL);
	GError *error = NULL;

	if (!g_dbus_connection_register_object(bus, PATH, node->interfaces[0], &calls, NULL, NULL,
					       &error))
		must(NULL, error, "the object");
}

static void serve(void)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	g_bus_own_name(G_BUS_TYPE_SESSION, NAME, G_BUS_NAME_OWNER_FLAGS_NONE, on_bus, NULL, NULL,
		       NULL, NULL);
	g_main_loop_run(g_main_loop_new(NULL, FALSE));
}

/* ---- client ---- */

struct client {
	GDBusConnection *bus;
	GMainLoop *loop;
};

static char *ask(struct client *c, const char *place, GError **error)
{
	GVariant *reply = g_dbus_connection_call_sync(
		c->bus, NAME, PATH, IFACE, "Ask", g_variant_new("(s)", place),
		G_VARIANT_TYPE("(s)"), G_DBUS_CALL_FLAGS_NONE, -1, NULL, error);
	char *text = NULL;

	if (reply) {
		g_variant_get(reply, "(s)", &text);
		g_variant_unref(reply);
	}
	return text;
}

static void show_call(struct client *c)
{
	GError *error = NULL;
	char *text = ask(c, "Berlin", &error);

	must(text, error, "a call");
	g_print("2. A call\n   client  -> " NAME ": Ask('Berlin')\n   service -> client: '%s'\n\n",
		text);
	g_free(text);
}

static void show_error(struct client *c)
{
	GError *error = NULL;
	char *text = ask(c, "", &error), *name;

	must(error, NULL, "an error");
	g_free(text);
	name = g_dbus_error_get_remote_error(error);
	g_dbus_error_strip_remote_error(error);
	g_print("3. An error\n   service -> client: %s, '%s'\n\n", name, error->message);
	g_free(name);
	g_error_free(error);
}

static void on_changed(GDBusConnection *bus, const char *sender, const char *path,
		       const char *interface, const char *signal_name, GVariant *args,
		       gpointer data)
{
	struct client *c = data;
	const char *text;

	g_variant_get(args, "(&s)", &text);
	g_print("4. A signal\n   service -> all: %s('%s')\n\n", signal_name, text);
	g_main_loop_quit(c->loop);
}

static void show_signal(struct client *c)
{
	GError *error = NULL;
	guint id = g_dbus_connection_signal_subscribe(c->bus, NAME, IFACE, "Changed", PATH, NULL,
						      G_DBUS_SIGNAL_FLAGS_NONE, on_changed, c,
						      NULL);
	char *text = ask(c, "Bremen", &error);

	must(text, error, "a call");
	g_free(text);
	g_main_loop_run(c->loop);
	g_dbus_connection_signal_unsubscribe(c->bus, id);
}

static void show_many(struct client *c)
{
	gint64 start = g_get_monotonic_time();
	GError *error = NULL;
	char *text;
	int i;

	for (i = 0; i < CALLS; i++) {
		text = ask(c, "Ulm", &error);
		must(text, error, "a call");
		g_free(text);
	}
	g_print("5. %d more calls: %.1f us each, most of it in GLib\n\n", CALLS,
		(double)(g_get_monotonic_time() - start) / CALLS);
}

static void on_name(GDBusConnection *bus, const char *name, const char *owner, gpointer data)
{
	struct client *c = data;

	g_print("1. Names\n   client: %s, service: %s, known as " NAME "\n\n",
		g_dbus_connection_get_unique_name(bus), owner);
	g_main_loop_quit(c->loop);
}

static void run_client(void)
{
	struct client c = { .bus = join(), .loop = g_main_loop_new(NULL, FALSE) };
	guint watch = g_bus_watch_name_on_connection(
		c.bus, NAME, G_BUS_NAME_WATCHER_FLAGS_NONE, on_name, NULL, &c, NULL);

	g_main_loop_run(c.loop);
	g_bus_unwatch_name(watch);
	show_call(&c);
	show_error(&c);
	show_signal(&c);
	show_many(&c);
}

static int run(void)
{
	const char *address = g_getenv("DBUS_SESSION_BUS_ADDRESS");
	pid_t service;

	g_print("A GLib service and a GLib client, unmodified, on %s\n\n",
		address ? address : "the session bus");
	service = fork();
	if (service < 0)
		return 1;
	if (service == 0)
		serve();
	run_client();
	kill(service, SIGTERM);
	waitpid(service, NULL, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const char usage[] = "Usage: kdbus-demo-glib\n"
				    "A GLib service and a GLib client on the session bus.\n"
				    "For example: kdbus-run-session -- kdbus-demo-glib\n";
	const char *option = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 1)
		return run();
	if (!strcmp(option, "--help") || !strcmp(option, "--version")) {
		g_print("%s", option[2] == 'h' ? usage : "kdbus-demo-glib " KDBUS_VERSION "\n");
		return 0;
	}
	g_printerr("%s", usage);
	return 2;
}
