// SPDX-License-Identifier: LGPL-2.1-or-later
/* The echo service with sd-bus; see echo.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include "echo.h"

#define MUST(expr)                                                                                 \
	do {                                                                                       \
		int must_r = (expr);                                                               \
		if (must_r < 0) {                                                                  \
			fprintf(stderr, "%s: %s\n", #expr, strerror(-must_r));                     \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static sd_bus *bus;

/* ---- service ---- */

static bool leaving;

static int on_echo(sd_bus_message *m, void *data, sd_bus_error *error)
{
	const char *text;
	int r = sd_bus_message_read(m, "s", &text);

	(void)data;
	(void)error;
	return r < 0 ? r : sd_bus_reply_method_return(m, "s", text);
}

static int on_sum(sd_bus_message *m, void *data, sd_bus_error *error)
{
	const uint32_t *values;
	uint32_t sum = 0;
	size_t size, i;
	int r = sd_bus_message_read_array(m, 'u', (const void **)&values, &size);

	(void)data;
	(void)error;
	if (r < 0)
		return r;
	for (i = 0; i < size / sizeof(*values); i++)
		sum += values[i];
	return sd_bus_reply_method_return(m, "u", sum);
}

static int on_fail(sd_bus_message *m, void *data, sd_bus_error *error)
{
	(void)m;
	(void)data;
	return sd_bus_error_set(error, ECHO_ERROR, ECHO_ERROR_TEXT);
}

static int on_fd(sd_bus_message *m, void *data, sd_bus_error *error)
{
	int fd, r = sd_bus_message_read(m, "h", &fd);

	(void)data;
	(void)error;
	return r < 0 ? r : sd_bus_reply_method_return(m, "h", fd);
}

static int on_emit(sd_bus_message *m, void *data, sd_bus_error *error)
{
	uint32_t value;
	int r = sd_bus_message_read(m, "u", &value);

	(void)data;
	(void)error;
	if (r >= 0)
		r = sd_bus_emit_signal(bus, ECHO_PATH, ECHO_INTERFACE, "Tick", "u", value);
	return r < 0 ? r : sd_bus_reply_method_return(m, "");
}

static int on_quit(sd_bus_message *m, void *data, sd_bus_error *error)
{
	(void)data;
	(void)error;
	leaving = true;
	return sd_bus_reply_method_return(m, "");
}

static const sd_bus_vtable table[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD("Echo", "s", "s", on_echo, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD("Sum", "au", "u", on_sum, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD("Fail", "", "", on_fail, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD("Fd", "h", "h", on_fd, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD("Emit", "u", "", on_emit, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD("Quit", "", "", on_quit, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_SIGNAL("Tick", "u", 0),
	SD_BUS_VTABLE_END,
};

/* Handles what has arrived, or waits for something. */
static void turn(void)
{
	int r = sd_bus_process(bus, NULL);

	MUST(r);
	if (r == 0 && !leaving)
		MUST(sd_bus_wait(bus, UINT64_MAX));
}

static int serve(const char *name)
{
	MUST(sd_bus_open_user(&bus));
	MUST(sd_bus_add_object_vtable(bus, NULL, ECHO_PATH, ECHO_INTERFACE, table, NULL));
	MUST(sd_bus_request_name(bus, name, 0));
	echo_ready();
	while (!leaving)
		turn();
	MUST(sd_bus_flush(bus));
	sd_bus_unref(bus);
	return 0;
}

/* ---- client ---- */

static const char *service;
static uint32_t ticked;
static bool has_ticked, gone;

static void client_open(const char *name)
{
	service = name;
	MUST(sd_bus_open_user(&bus));
}

static void client_close(void)
{
	sd_bus_flush_close_unref(bus);
}

static bool client_echo(const char *text)
{
	sd_bus_message *answer = NULL;
	const char *back;
	bool good = sd_bus_call_method(bus, service, ECHO_PATH, ECHO_INTERFACE, "Echo", NULL,
				       &answer, "s", text) >= 0 &&
		    sd_bus_message_read(answer, "s", &back) >= 0 && !strcmp(back, text);

	sd_bus_message_unref(answer);
	return good;
}

static uint32_t client_sum(uint32_t n)
{
	uint32_t *values = calloc(n + 1, sizeof(*values)), i, sum = UINT32_MAX;
	sd_bus_message *m = NULL, *answer = NULL;

	for (i = 0; i < n; i++)
		values[i] = i + 1;
	MUST(sd_bus_message_new_method_call(bus, &m, service, ECHO_PATH, ECHO_INTERFACE, "Sum"));
	MUST(sd_bus_message_append_array(m, 'u', values, n * sizeof(*values)));
	if (sd_bus_call(bus, m, 0, NULL, &answer) >= 0)
		MUST(sd_bus_message_read(answer, "u", &sum));
	sd_bus_message_unref(m);
	sd_bus_message_unref(answer);
	free(values);
	return sum;
}

static bool fails_with(const char *method, const char *name, const char *text)
{
	sd_bus_error error = SD_BUS_ERROR_NULL;
	bool good = sd_bus_call_method(bus, service, ECHO_PATH, ECHO_INTERFACE, method, &error,
				       NULL, "") < 0 &&
		    sd_bus_error_has_name(&error, name) && (!text || !strcmp(error.message, text));

	sd_bus_error_free(&error);
	return good;
}

static bool client_fail(void)
{
	return fails_with("Fail", ECHO_ERROR, ECHO_ERROR_TEXT);
}

static bool client_unknown(void)
{
	return fails_with("Nothing", SD_BUS_ERROR_UNKNOWN_METHOD, NULL);
}

static int client_fd(int fd)
{
	sd_bus_message *answer = NULL;
	int back = -1;

	if (sd_bus_call_method(bus, service, ECHO_PATH, ECHO_INTERFACE, "Fd", NULL, &answer, "h",
			       fd) >= 0) {
		MUST(sd_bus_message_read(answer, "h", &back));
		back = fcntl(back, F_DUPFD_CLOEXEC, 3);
	}
	sd_bus_message_unref(answer);
	return back;
}

static int on_tick(sd_bus_message *m, void *data, sd_bus_error *error)
{
	(void)data;
	(void)error;
	has_ticked = true;
	return sd_bus_message_read(m, "u", &ticked);
}

static uint32_t client_tick(uint32_t value)
{
	sd_bus_slot *slot = NULL;

	MUST(sd_bus_match_signal(bus, &slot, service, ECHO_PATH, ECHO_INTERFACE, "Tick", on_tick,
				 NULL));
	MUST(sd_bus_call_method(bus, service, ECHO_PATH, ECHO_INTERFACE, "Emit", NULL, NULL, "u",
				value));
	while (!has_ticked)
		turn();
	sd_bus_slot_unref(slot);
	return ticked;
}

static int on_owner_changed(sd_bus_message *m, void *data, sd_bus_error *error)
{
	const char *name, *before, *after;

	(void)data;
	(void)error;
	MUST(sd_bus_message_read(m, "sss", &name, &before, &after));
	gone |= !strcmp(name, service) && *before && !*after;
	return 0;
}

static bool client_quit(void)
{
	char rule[300];

	snprintf(rule, sizeof(rule),
		 "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='%s'",
		 service);
	MUST(sd_bus_add_match(bus, NULL, rule, on_owner_changed, NULL));
	MUST(sd_bus_call_method(bus, service, ECHO_PATH, ECHO_INTERFACE, "Quit", NULL, NULL, ""));
	while (!gone)
		turn();
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
