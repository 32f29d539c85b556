// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reading the configuration again. Rules: reload.h. */
#include "reload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "access.h"
#include "carrier.h"
#include "driver.h"
#include "service-file.h"

static void warn(void *arg, const char *text)
{
	log_line("%s", text);
}

int services_start(struct classic *k)
{
	services_make_transient(k->config);
	return services_load(k->config, warn, NULL, &k->services);
}

static void tell_services(struct classic *k)
{
	struct dbusp_build b;

	driver_signal_begin(k, &b, CLASSIC_DRIVER, "ActivatableServicesChanged", "",
			    (struct dbusp_str){ NULL, 0 });
	driver_signal_all(k, &b);
}

static void renew_peer(struct cpeer *c)
{
	if (access_renew(c) < 0)
		cpeer_doom(c, "no memory for its part of the policy");
	else if (c->state == CPEER_ACTIVE)
		c->classic->carrier->set_max_names(
			c, (unsigned int)classic_limits(c->classic)->max_names_per_connection);
}

static void renew_peers(struct classic *k)
{
	struct cpeer *c, *next;

	list_for_each_entry_safe(c, next, &k->peers, entry)
		renew_peer(c);
	k->carrier->renew(k);
}

static void replace(struct classic *k, struct config *config, struct services *services)
{
	struct config *config_before = k->config;
	struct services *services_before = k->services;
	bool same = services_same_names(services_before, services);

	k->config = config;
	k->services = services;
	renew_peers(k);
	config_unref(config_before);
	services_free(services_before);
	if (!same)
		tell_services(k);
}

static int load(struct classic *k, char **ret_error)
{
	const struct config_reading reading = { .before = k->config, .warn = warn };
	struct services *services;
	struct config *config;
	int r = config_load(k->config->file, &reading, &config, ret_error);

	if (r < 0)
		return r;
	r = services_load(config, warn, NULL, &services);
	if (r < 0) {
		config_unref(config);
		*ret_error = NULL;
		return r;
	}
	replace(k, config, services);
	return 0;
}

/* Again, if a directory came into sight whose files may have changed after they were read. */
static int load_until_watched(struct classic *k, char **ret_error)
{
	int r, again = 3;
	bool more;

	do {
		r = load(k, ret_error);
		if (r < 0)
			return r;
		r = watch_renew(k, &more);
		if (r < 0) {
			*ret_error = NULL;
			return r;
		}
	} while (more && again--);
	return 0;
}

static void tell_manager_that_it_begins(void)
{
	struct timespec now;
	char text[64];

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
		 (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000);
	service_notify(text);
}

int classic_reload(struct classic *k, char **ret_error)
{
	int r;

	*ret_error = NULL;
	tell_manager_that_it_begins();
	r = load_until_watched(k, ret_error);
	if (r < 0)
		log_line("Unable to reload configuration: %s",
			 *ret_error ? *ret_error : "out of memory");
	else
		log_line("Reloaded configuration");
	service_notify("READY=1");
	return r;
}

void classic_reload_quietly(struct classic *k)
{
	char *error;

	classic_reload(k, &error);
	free(error);
}

/* ---- the driver ---- */

static void reload_config(struct driver_call *call)
{
	char *error;
	int r = classic_reload(call->classic, &error);

	if (r == 0)
		driver_reply(call);
	else if (error)
		driver_error(call->from, call->m, DBUS_ERROR("Failed"), "%s", error);
	else
		driver_error(call->from, call->m, DBUS_ERROR("NoMemory"),
			     "Memory allocation failure");
	free(error);
}

static const struct driver_method methods[] = {
	{ CLASSIC_DRIVER, "ReloadConfig", "", "", DRIVER_ANY_PATH, reload_config },
};

const struct driver_table driver_config = {
	.methods = methods,
	.n_methods = ARRAY_SIZE(methods),
};
