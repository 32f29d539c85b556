// SPDX-License-Identifier: LGPL-2.1-or-later
/* How a service is started: its program, the helper of the system bus, or systemd. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "carrier.h"
#include "driver.h"
#include "roster.h"

#define TEXT_MAX 512

/* ---- failures ---- */

static void timed_out(struct timeout *t)
{
	struct activation *a = container_of(t, struct activation, timeout);
	char text[TEXT_MAX];

	snprintf(text, sizeof(text),
		 "Failed to activate service '%s': timed out (service_start_timeout=%ldms)",
		 a->name, classic_limits(a->classic)->service_start_timeout);
	activation_fail(a, DBUS_ERROR("TimedOut"), text);
}

/* Exit statuses of dbus-daemon-launch-helper, from 1 on */
static const struct {
	const char *error;
	const char *text;
} helper_errors[] = {
	{ DBUS_ERROR("NoMemory"), "Launcher could not run (out of memory)" },
	{ DBUS_ERROR("Spawn.ConfigInvalid"), "Invalid configuration (missing or empty <user>?)" },
	{ DBUS_ERROR("Spawn.FailedToSetup"), "Failed to setup environment correctly" },
	{ DBUS_ERROR("Spawn.ServiceNotValid"), "Bus name is not valid or missing" },
	{ DBUS_ERROR("Spawn.ServiceNotFound"), "Bus name not found in system service directory" },
	{ DBUS_ERROR("Spawn.PermissionsInvalid"),
	  "The permission of the setuid helper is not correct" },
	{ DBUS_ERROR("Spawn.FileInvalid"),
	  "The service file is incorrect or does not have all required attributes" },
	{ DBUS_ERROR("Spawn.ExecFailed"),
	  "Cannot launch daemon, file not found or permissions invalid" },
	{ DBUS_ERROR("InvalidArgs"), "Invalid arguments to command line" },
	{ DBUS_ERROR("Spawn.ChildSignaled"), "Launched child was signaled, it probably crashed" },
};

static void exited(struct activation *a, int status)
{
	char text[TEXT_MAX];

	if (a->by_helper && (size_t)status <= ARRAY_SIZE(helper_errors)) {
		activation_fail(a, helper_errors[status - 1].error, helper_errors[status - 1].text);
		return;
	}
	snprintf(text, sizeof(text), "Process %s exited with status %d", a->name, status);
	activation_fail(a, DBUS_ERROR("Spawn.ChildExited"), text);
}

static void program_ended(void *arg, const struct launch_end *end)
{
	struct activation *a = arg;
	char text[TEXT_MAX];

	a->launch = NULL;
	if (end->how == LAUNCH_EXITED && end->value == 0)
		return;
	if (end->how == LAUNCH_EXITED) {
		exited(a, end->value);
	} else if (end->how == LAUNCH_KILLED) {
		snprintf(text, sizeof(text), "Process %s received signal %d", a->name, end->value);
		activation_fail(a, DBUS_ERROR("Spawn.ChildSignaled"), text);
	} else {
		snprintf(text, sizeof(text), "Failed to execute program %s: %s", a->name,
			 strerror(end->value));
		activation_fail(a, DBUS_ERROR("Spawn.ExecFailed"), text);
	}
}

/* ---- a program ---- */

static bool is_type(const struct classic *k, const char *type)
{
	return k->config->type && !strcmp(k->config->type, type);
}

/* What says where the bus is; everything else is as UpdateActivationEnvironment left it. */
static int add_bus(struct environment *env, const struct classic *k)
{
	int r = environment_set(env, "DBUS_STARTER_ADDRESS", k->address);

	if (r == 0 && is_type(k, "session"))
		r = environment_set(env, "DBUS_STARTER_BUS_TYPE", "session");
	if (r == 0 && is_type(k, "session"))
		r = environment_set(env, "DBUS_SESSION_BUS_ADDRESS", k->address);
	if (r == 0 && is_type(k, "system"))
		r = environment_set(env, "DBUS_STARTER_BUS_TYPE", "system");
	if (r == 0 && is_type(k, "system"))
		r = environment_set(env, "DBUS_SYSTEM_BUS_ADDRESS", k->address);
	return r;
}

static int launch(struct activation *a, char *const *argv)
{
	struct classic *k = a->classic;
	struct environment env;
	int r = environment_copy(&env, k->activations->environment.items);

	if (r < 0)
		return r;
	r = add_bus(&env, k);
	if (r == 0)
		r = launch_start(k->daemon, argv, env.items, program_ended, a, &a->launch);
	environment_deinit(&env);
	return r;
}

static void refuse(struct activation *a, int error)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text), "Failed to start '%s': %s", a->name, strerror(-error));
	activation_fail(a, DBUS_ERROR("Spawn.ForkFailed"), text);
}

static void start_helper(struct activation *a)
{
	char *const argv[] = { a->classic->config->servicehelper, a->name, NULL };
	int r;

	a->by_helper = true;
	r = launch(a, argv);
	if (r < 0)
		refuse(a, r);
}

static void start_program(struct activation *a, const struct service_file *service)
{
	const char *reason = "no Exec= line";
	char **argv = NULL;
	char text[TEXT_MAX];
	int r = service->exec ? service_exec_split(service->exec, &argv, &reason) : -EINVAL;

	if (r == -EINVAL) {
		snprintf(text, sizeof(text), "Cannot start '%s' as %s says: %s", a->name,
			 service->file, reason);
		activation_fail(a, DBUS_ERROR("Spawn.FileInvalid"), text);
		return;
	}
	if (r == 0)
		r = launch(a, argv);
	service_argv_free(argv);
	if (r < 0)
		refuse(a, r);
}

/* ---- systemd ---- */

static struct cpeer *systemd(const struct classic *k)
{
	struct peer *p = route_owner(k, DBUSP_STR(ACTIVATE_SYSTEMD));

	return p ? classic_peer(p) : NULL;
}

static void build_request(const struct activation *a, struct dbusp_build *b)
{
	driver_signal_begin(a->classic, b, "org.freedesktop.systemd1.Activator",
			    "ActivationRequest", "s", DBUSP_STR(ACTIVATE_SYSTEMD));
	dbusp_put_string(b, a->unit);
}

static void ask_systemd(struct activation *a, struct cpeer *to)
{
	struct dbusp_build b;

	a->awaits_systemd = false;
	build_request(a, &b);
	driver_signal_unseen(to, &b);
}

/* Monitors see it when it is made, not when systemd comes. */
static void request_unit(struct activation *a)
{
	struct cpeer *to = systemd(a->classic);
	struct dbusp_build b;

	build_request(a, &b);
	driver_show(a->classic, &b, to ? &to->peer : NULL);
	a->awaits_systemd = true;
	if (to)
		ask_systemd(a, to);
}

/*
 * What it starts shall have them, too. Nobody waits for its answer. As of dbus-daemon, a call that
 * has waited for systemd is addressed by name.
 */
void activations_tell_systemd(struct classic *k, bool waited)
{
	struct environment *env = &k->activations->for_systemd;
	struct cpeer *to = systemd(k);
	struct dbusp_build b;
	size_t i;

	if (!to || !k->activations->tell_systemd)
		return;
	k->activations->tell_systemd = false;
	driver_call_begin(k, &b, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
			  "SetEnvironment", "as",
			  waited ? DBUSP_STR(ACTIVATE_SYSTEMD) : cpeer_name(to));
	dbusp_open(&b, 'a', NULL);
	for (i = 0; i < env->n; i++)
		dbusp_put_string(&b, env->items[i]);
	dbusp_close(&b);
	driver_signal_to(to, &b);
	environment_deinit(env);
}

void activations_ask_systemd(struct classic *k)
{
	struct cpeer *to = systemd(k);
	struct activation *a;

	if (!to)
		return;
	list_for_each_entry(a, &k->activations->list, entry) {
		if (a->awaits_systemd)
			ask_systemd(a, to);
	}
}

void activations_unit_failed(struct classic *k, const char *unit, const char *error,
			     const char *text)
{
	struct activation *a, *next;

	list_for_each_entry_safe(a, next, &k->activations->list, entry) {
		if (a->unit && !strcmp(a->unit, unit))
			activation_fail(a, error, text);
	}
}

/* ---- which of them ---- */

static void log_start(struct activation *a)
{
	struct peer *by = list_first_entry(&a->waiters, struct waiter, entry)->from;
	const struct cpeer *c = classic_peer(by);
	const struct creds *creds = c ? NULL : a->classic->carrier->creds(by);
	bool unit = a->classic->systemd_activation && a->unit;
	int uid = c ? (int)c->uid : -1, pid = c ? (int)c->pid : 0;
	char name[CLASSIC_UNIQUE_MAX];

	if (creds) {
		uid = (int)creds->uid;
		pid = (int)creds->pid;
	}
	a->by = (uid_t)uid;
	log_about(a->by, "activating '%s'%s%s, asked for by '%s' (uid=%d pid=%d)", a->name,
		  unit ? " as unit " : "", unit ? a->unit : "", unique_name(by, name).s, uid, pid);
}

void activation_start(struct activation *a, const struct service_file *service)
{
	struct classic *k = a->classic;
	long timeout = classic_limits(k)->service_start_timeout;

	log_start(a);
	a->timeout.expired = timed_out;
	if (timeout >= 0)
		timeout_set(k, &a->timeout, (u64)timeout);
	if (k->systemd_activation && a->unit) {
		request_unit(a);
	} else if (k->config->servicehelper) {
		start_helper(a);
	} else {
		start_program(a, service);
	}
}
