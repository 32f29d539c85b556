// SPDX-License-Identifier: LGPL-2.1-or-later
/* StartServiceByName, UpdateActivationEnvironment, and systemd's bad news. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "activations.h"
#include "dbus/name.h"
#include "driver.h"
#include "roster.h"

static void reply_u32(struct driver_call *call, uint32_t value)
{
	struct dbusp_build b;

	driver_reply_begin(call, &b, "u");
	dbusp_put_u32(&b, value);
	driver_reply_end(call, &b);
}

/* The flags mean nothing so far. */
static void start_service_by_name(struct driver_call *call)
{
	const struct dbusp_str name = driver_arg_string(call);
	const struct service_file *service = services_find(call->classic->services, name.s);

	if (dbusp_str_eq(name, DBUSP_STR(CLASSIC_DRIVER)) || route_owner(call->classic, name))
		reply_u32(call, ACTIVATE_RUNNING);
	else if (service)
		activate_for_call(call->from, call->m, service);
	else
		driver_error(call->from, call->m, DBUS_ERROR("ServiceUnknown"),
			     "The name %s was not provided by any .service files", name.s);
}

/* ---- the environment ---- */

/* All of them, or none. */
static int read_variables(struct driver_call *call, struct environment *env)
{
	struct dbusp_reader *args = &call->args;
	struct dbusp_str name, value;
	int r = dbusp_reader_enter(args, 'a');

	while (r == 0 && dbusp_reader_type(args)) {
		r = dbusp_reader_enter(args, '{');
		if (r == 0)
			r = dbusp_read_text(args, 's', &name);
		if (r == 0)
			r = dbusp_read_text(args, 's', &value);
		if (r == 0)
			r = environment_set(env, name.s, value.s);
		if (r == 0)
			r = dbusp_reader_exit(args);
	}
	return r;
}

static void update_activation_environment(struct driver_call *call)
{
	static char *const none[] = { NULL };
	struct activations *all = call->classic->activations;
	const char *type = call->classic->config->type;
	struct environment env;
	int r;

	if (type && !strcmp(type, "system")) {
		driver_error(call->from, call->m, DBUS_ERROR("AccessDenied"),
			     "Cannot change activation environment on a system bus.");
		return;
	}
	r = environment_copy(&env, none);
	if (r == 0)
		r = read_variables(call, &env);
	if (r == 0)
		r = environment_merge(&all->environment, &env);
	if (r == 0 && call->classic->systemd_activation)
		r = environment_merge(&all->for_systemd, &env);
	if (r == 0) {
		all->tell_systemd = call->classic->systemd_activation;
		activations_tell_systemd(call->classic, false);
		driver_reply(call);
	} else if (r == -ENOMEM) {
		driver_error(call->from, call->m, DBUS_ERROR("NoMemory"),
			     "Memory allocation failure");
	} else {
		driver_error(call->from, call->m, DBUS_ERROR("InvalidArgs"),
			     "The name of a variable is empty or has a '=' in it");
	}
	environment_deinit(&env);
}

/* ---- org.freedesktop.systemd1.Activator ---- */

bool driver_is_activation_failure(const struct cmsg *m)
{
	return cmsg_is_signal(m) &&
	       dbusp_str_eq(m->header.interface, DBUSP_STR("org.freedesktop.systemd1.Activator")) &&
	       dbusp_str_eq(m->header.member, DBUSP_STR("ActivationFailure"));
}

void driver_activation_failure(struct cpeer *from, struct cmsg *m)
{
	struct peer *owner = route_owner(from->classic, DBUSP_STR(ACTIVATE_SYSTEMD));
	struct dbusp_str unit, error, text;
	struct dbusp_reader args;

	dbusp_reader_init(&args, &m->header, m->body);
	if (owner != &from->peer || !driver_is_activation_failure(m) ||
	    !dbusp_str_eq(m->header.signature, DBUSP_STR("sss")))
		return;
	if (dbusp_read_text(&args, 's', &unit) == 0 && dbusp_read_text(&args, 's', &error) == 0 &&
	    dbusp_read_text(&args, 's', &text) == 0 && dbusp_name_is_error(error.s, error.len))
		activations_unit_failed(from->classic, unit.s, error.s, text.s);
}

static const struct driver_method methods[] = {
	{ CLASSIC_DRIVER, "StartServiceByName", "su", "u", DRIVER_ANY_PATH,
	  start_service_by_name },
	{ CLASSIC_DRIVER, "UpdateActivationEnvironment", "a{ss}", "", DRIVER_PRIVILEGED,
	  update_activation_environment },
};

static const struct driver_signal signals[] = {
	{ CLASSIC_DRIVER, "ActivatableServicesChanged", "" },
};

const struct driver_table driver_activation = {
	.methods = methods,
	.n_methods = ARRAY_SIZE(methods),
	.signals = signals,
	.n_signals = ARRAY_SIZE(signals),
};
