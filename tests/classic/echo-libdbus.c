// SPDX-License-Identifier: LGPL-2.1-or-later
/* The echo service with libdbus; see echo.h. */
#include <dbus/dbus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "echo.h"

static DBusConnection *bus;

static void die(const char *what, DBusError *error)
{
	fprintf(stderr, "%s: %s\n", what, error && error->message ? error->message : "?");
	exit(1);
}

static void connect_bus(void)
{
	DBusError error = DBUS_ERROR_INIT;

	bus = dbus_bus_get_private(DBUS_BUS_SESSION, &error);
	if (!bus)
		die("connect", &error);
	dbus_connection_set_exit_on_disconnect(bus, FALSE);
}

static void disconnect_bus(void)
{
	dbus_connection_flush(bus);
	dbus_connection_close(bus);
	dbus_connection_unref(bus);
}

/* ---- service ---- */

static bool leaving;

static dbus_uint32_t sum_of(DBusMessage *call)
{
	const dbus_uint32_t *values;
	dbus_uint32_t sum = 0;
	int n, i;

	if (!dbus_message_get_args(call, NULL, DBUS_TYPE_ARRAY, DBUS_TYPE_UINT32, &values, &n,
				   DBUS_TYPE_INVALID))
		return UINT32_MAX;
	for (i = 0; i < n; i++)
		sum += values[i];
	return sum;
}

static void emit(DBusMessage *call)
{
	DBusMessage *tick = dbus_message_new_signal(ECHO_PATH, ECHO_INTERFACE, "Tick");
	dbus_uint32_t value;

	dbus_message_get_args(call, NULL, DBUS_TYPE_UINT32, &value, DBUS_TYPE_INVALID);
	dbus_message_append_args(tick, DBUS_TYPE_UINT32, &value, DBUS_TYPE_INVALID);
	dbus_connection_send(bus, tick, NULL);
	dbus_message_unref(tick);
}

static void fill_answer(DBusMessage *call, DBusMessage *answer)
{
	const char *text;
	dbus_uint32_t sum;
	int fd;

	if (dbus_message_is_method_call(call, ECHO_INTERFACE, "Echo")) {
		dbus_message_get_args(call, NULL, DBUS_TYPE_STRING, &text, DBUS_TYPE_INVALID);
		dbus_message_append_args(answer, DBUS_TYPE_STRING, &text, DBUS_TYPE_INVALID);
	} else if (dbus_message_is_method_call(call, ECHO_INTERFACE, "Sum")) {
		sum = sum_of(call);
		dbus_message_append_args(answer, DBUS_TYPE_UINT32, &sum, DBUS_TYPE_INVALID);
	} else if (dbus_message_is_method_call(call, ECHO_INTERFACE, "Fd")) {
		dbus_message_get_args(call, NULL, DBUS_TYPE_UNIX_FD, &fd, DBUS_TYPE_INVALID);
		dbus_message_append_args(answer, DBUS_TYPE_UNIX_FD, &fd, DBUS_TYPE_INVALID);
		close(fd);
	} else if (dbus_message_is_method_call(call, ECHO_INTERFACE, "Emit")) {
		emit(call);
	} else if (dbus_message_is_method_call(call, ECHO_INTERFACE, "Quit")) {
		leaving = true;
	}
}

static DBusMessage *answer_to(DBusMessage *call)
{
	static const char *const methods[] = { "Echo", "Sum", "Fd", "Emit", "Quit" };
	DBusMessage *answer;
	size_t i;

	if (dbus_message_is_method_call(call, ECHO_INTERFACE, "Fail"))
		return dbus_message_new_error(call, ECHO_ERROR, ECHO_ERROR_TEXT);
	for (i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
		if (!dbus_message_is_method_call(call, ECHO_INTERFACE, methods[i]))
			continue;
		answer = dbus_message_new_method_return(call);
		fill_answer(call, answer);
		return answer;
	}
	return dbus_message_new_error(call, DBUS_ERROR_UNKNOWN_METHOD, "no such method");
}

static int serve(const char *name)
{
	DBusError error = DBUS_ERROR_INIT;
	DBusMessage *message, *answer;

	connect_bus();
	if (dbus_bus_request_name(bus, name, 0, &error) != DBUS_REQUEST_NAME_REPLY_PRIMARY_OWNER)
		die(name, &error);
	echo_ready();
	/* What came before the name was acquired may be there already. */
	do {
		while ((message = dbus_connection_pop_message(bus))) {
			if (dbus_message_get_type(message) == DBUS_MESSAGE_TYPE_METHOD_CALL) {
				answer = answer_to(message);
				dbus_connection_send(bus, answer, NULL);
				dbus_message_unref(answer);
			}
			dbus_message_unref(message);
		}
	} while (!leaving && dbus_connection_read_write(bus, -1));
	disconnect_bus();
	return 0;
}

/* ---- client ---- */

static const char *service;

static void client_open(const char *name)
{
	service = name;
	connect_bus();
}

static DBusMessage *new_call(const char *method)
{
	return dbus_message_new_method_call(service, ECHO_PATH, ECHO_INTERFACE, method);
}

static DBusMessage *ask(DBusMessage *call, DBusError *error)
{
	DBusMessage *answer = dbus_connection_send_with_reply_and_block(bus, call, -1, error);

	dbus_message_unref(call);
	return answer;
}

static bool client_echo(const char *text)
{
	DBusMessage *call = new_call("Echo"), *answer;
	const char *back;
	bool good;

	dbus_message_append_args(call, DBUS_TYPE_STRING, &text, DBUS_TYPE_INVALID);
	answer = ask(call, NULL);
	if (!answer)
		return false;
	good = dbus_message_get_args(answer, NULL, DBUS_TYPE_STRING, &back, DBUS_TYPE_INVALID) &&
	       !strcmp(back, text);
	dbus_message_unref(answer);
	return good;
}

static uint32_t client_sum(uint32_t n)
{
	dbus_uint32_t *values = calloc(n + 1, sizeof(*values)), i, sum = UINT32_MAX;
	DBusMessage *call = new_call("Sum"), *answer;

	for (i = 0; i < n; i++)
		values[i] = i + 1;
	dbus_message_append_args(call, DBUS_TYPE_ARRAY, DBUS_TYPE_UINT32, &values, (int)n,
				 DBUS_TYPE_INVALID);
	free(values);
	answer = ask(call, NULL);
	if (!answer)
		return sum;
	dbus_message_get_args(answer, NULL, DBUS_TYPE_UINT32, &sum, DBUS_TYPE_INVALID);
	dbus_message_unref(answer);
	return sum;
}

static bool fails_with(const char *method, const char *name, const char *text)
{
	DBusError error = DBUS_ERROR_INIT;
	DBusMessage *answer = ask(new_call(method), &error);
	bool good = !answer && dbus_error_has_name(&error, name) &&
		    (!text || !strcmp(error.message, text));

	if (answer)
		dbus_message_unref(answer);
	dbus_error_free(&error);
	return good;
}

static bool client_fail(void)
{
	return fails_with("Fail", ECHO_ERROR, ECHO_ERROR_TEXT);
}

static bool client_unknown(void)
{
	return fails_with("Nothing", DBUS_ERROR_UNKNOWN_METHOD, NULL);
}

static int client_fd(int fd)
{
	DBusMessage *call = new_call("Fd"), *answer;
	int back = -1;

	dbus_message_append_args(call, DBUS_TYPE_UNIX_FD, &fd, DBUS_TYPE_INVALID);
	answer = ask(call, NULL);
	if (!answer)
		return -1;
	dbus_message_get_args(answer, NULL, DBUS_TYPE_UNIX_FD, &back, DBUS_TYPE_INVALID);
	dbus_message_unref(answer);
	return back;
}

/* Waits for a signal; whatever else comes is dropped. */
static DBusMessage *wait_for(const char *interface, const char *member)
{
	DBusMessage *message;

	for (;;) {
		while ((message = dbus_connection_pop_message(bus))) {
			if (dbus_message_is_signal(message, interface, member))
				return message;
			dbus_message_unref(message);
		}
		if (!dbus_connection_read_write(bus, -1))
			die("the bus hung up", NULL);
	}
}

static uint32_t client_tick(uint32_t value)
{
	DBusMessage *call = new_call("Emit"), *message;
	dbus_uint32_t got = 0;

	dbus_bus_add_match(bus, "type='signal',interface='" ECHO_INTERFACE "'", NULL);
	dbus_message_append_args(call, DBUS_TYPE_UINT32, &value, DBUS_TYPE_INVALID);
	message = ask(call, NULL);
	if (!message)
		return 0;
	dbus_message_unref(message);
	message = wait_for(ECHO_INTERFACE, "Tick");
	dbus_message_get_args(message, NULL, DBUS_TYPE_UINT32, &got, DBUS_TYPE_INVALID);
	dbus_message_unref(message);
	return got;
}

static bool client_quit(void)
{
	const char *name, *before, *after;
	DBusMessage *message;
	char rule[300];
	bool gone;

	snprintf(rule, sizeof(rule), "type='signal',member='NameOwnerChanged',arg0='%s'", service);
	dbus_bus_add_match(bus, rule, NULL);
	message = ask(new_call("Quit"), NULL);
	if (!message)
		return false;
	dbus_message_unref(message);
	message = wait_for(DBUS_INTERFACE_DBUS, "NameOwnerChanged");
	gone = dbus_message_get_args(message, NULL, DBUS_TYPE_STRING, &name, DBUS_TYPE_STRING,
				     &before, DBUS_TYPE_STRING, &after, DBUS_TYPE_INVALID) &&
	       !strcmp(name, service) && *before && !*after;
	dbus_message_unref(message);
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
		.close = disconnect_bus,
	};

	return echo_main(argc, argv, serve, &client);
}
