// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the configuration files say, without how they are read. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config-internal.h"

#define MIB (1L << 20)

const struct config_limits config_default_limits = {
	.max_incoming_bytes = 127 * MIB,
	.max_incoming_unix_fds = 64,
	.max_outgoing_bytes = 127 * MIB,
	.max_outgoing_unix_fds = 64,
	.max_message_size = 32 * MIB,
	.max_message_unix_fds = 16,
	.service_start_timeout = 25000,
	.auth_timeout = 30000,
	.pending_fd_timeout = 150000,
	.max_completed_connections = 2048,
	.max_incomplete_connections = 64,
	.max_connections_per_user = 256,
	.max_pending_service_starts = 512,
	.max_names_per_connection = 512,
	.max_match_rules_per_connection = 512,
	.max_replies_per_connection = 128,
	.reply_timeout = -1,
};

struct config *config_new(void)
{
	struct config *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->refs = 1;
	c->limits = config_default_limits;
	c->policy = policy_new();
	return c->policy ? c : config_unref(c);
}

struct config *config_ref(struct config *config)
{
	config->refs++;
	return config;
}

static void free_list(struct config_list *list)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		free(list->items[i]);
	free(list->items);
}

static void free_servicedirs(struct config *c)
{
	size_t i;

	for (i = 0; i < c->n_servicedirs; i++)
		free(c->servicedirs[i].path);
	free(c->servicedirs);
}

static void free_associates(struct config *c)
{
	size_t i;

	for (i = 0; i < c->n_associates; i++) {
		free(c->associates[i].own);
		free(c->associates[i].context);
	}
	free(c->associates);
}

struct config *config_unref(struct config *config)
{
	if (!config || --config->refs)
		return NULL;
	free(config->file);
	free(config->type);
	free(config->user);
	free(config->servicehelper);
	free(config->pidfile);
	free_list(&config->listen);
	free_list(&config->auth);
	free_list(&config->conf_dirs);
	free_list(&config->files);
	free_list(&config->skipped);
	free_servicedirs(config);
	free_associates(config);
	policy_unref(config->policy);
	free(config);
	return NULL;
}

int config_set(char **field, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*field);
	*field = copy;
	return 0;
}

int config_listen_only(struct config *c, const char *address)
{
	struct config_list list = { NULL, 0 };
	int r = config_list_add(&list, address);

	if (r < 0)
		return r;
	free_list(&c->listen);
	c->listen = list;
	return 0;
}

int config_list_add(struct config_list *list, const char *item)
{
	char **more = reallocarray(list->items, list->n + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	list->items = more;
	more[list->n] = strdup(item);
	if (!more[list->n])
		return -ENOMEM;
	list->n++;
	return 0;
}

bool config_list_has(const struct config_list *list, const char *item)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (!strcmp(list->items[i], item))
			return true;
	return false;
}

int config_add_servicedir(struct config *c, const char *path, bool strict, bool unwatched)
{
	struct config_servicedir *more;
	size_t i;

	for (i = 0; i < c->n_servicedirs; i++)
		if (!strcmp(c->servicedirs[i].path, path))
			return 0;
	more = reallocarray(c->servicedirs, c->n_servicedirs + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	c->servicedirs = more;
	more += c->n_servicedirs;
	*more = (struct config_servicedir){ strdup(path), strict, unwatched };
	if (!more->path)
		return -ENOMEM;
	c->n_servicedirs++;
	return 0;
}

int config_add_associate(struct config *c, const char *own, const char *context)
{
	struct config_associate *more =
		reallocarray(c->associates, c->n_associates + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	c->associates = more;
	more += c->n_associates;
	*more = (struct config_associate){ strdup(own), strdup(context) };
	if (!more->own || !more->context) {
		free(more->own);
		free(more->context);
		return -ENOMEM;
	}
	c->n_associates++;
	return 0;
}

/* ---- merging ---- */

static void take(char **to, char **from)
{
	if (!*from)
		return;
	free(*to);
	*to = *from;
	*from = NULL;
}

static int merge_list(struct config_list *to, const struct config_list *from)
{
	size_t i;
	int r = 0;

	for (i = 0; i < from->n && r == 0; i++)
		r = config_list_add(to, from->items[i]);
	return r;
}

static int merge_arrays(struct config *to, const struct config *from)
{
	size_t i;
	int r = 0;

	for (i = 0; i < from->n_servicedirs && r == 0; i++)
		r = config_add_servicedir(to, from->servicedirs[i].path,
					  from->servicedirs[i].strict,
					  from->servicedirs[i].unwatched);
	for (i = 0; i < from->n_associates && r == 0; i++)
		r = config_add_associate(to, from->associates[i].own, from->associates[i].context);
	return r;
}

/*
 * What an included file says comes after what the including one has said. It began with the limits
 * and the AppArmor mode as they were there, so that what it has at its end is what counts. If
 * memory runs out the whole configuration is given up, so nothing is undone.
 */
int config_merge(struct config *to, struct config *from)
{
	int r;

	take(&to->type, &from->type);
	take(&to->user, &from->user);
	take(&to->servicehelper, &from->servicehelper);
	take(&to->pidfile, &from->pidfile);
	to->fork |= from->fork;
	to->keep_umask |= from->keep_umask;
	to->syslog |= from->syslog;
	to->allow_anonymous |= from->allow_anonymous;
	to->apparmor = from->apparmor;
	to->limits = from->limits;
	r = merge_list(&to->listen, &from->listen);
	if (r == 0)
		r = merge_list(&to->auth, &from->auth);
	if (r == 0)
		r = merge_list(&to->conf_dirs, &from->conf_dirs);
	if (r == 0)
		r = merge_list(&to->files, &from->files);
	if (r == 0)
		r = merge_list(&to->skipped, &from->skipped);
	if (r == 0)
		r = merge_arrays(to, from);
	return r < 0 ? r : policy_append(to->policy, from->policy);
}

/* ---- standard directories ---- */

static int add_below(struct config *c, const char *dir, size_t len, const char *below, bool strict)
{
	char *path;
	int r;

	/* A relative directory in these variables does not count (XDG base directories). */
	if (!len || dir[0] != '/')
		return 0;
	if (asprintf(&path, "%.*s/%s", (int)len, dir, below) < 0)
		return -ENOMEM;
	r = config_add_servicedir(c, path, strict, strict);
	free(path);
	return r;
}

static int add_list(struct config *c, const char *dirs, const char *below)
{
	int r = 0;

	while (*dirs && r == 0) {
		size_t len = strcspn(dirs, ":");

		r = add_below(c, dirs, len, below, false);
		dirs += len + (dirs[len] == ':');
	}
	return r;
}

static const char *non_empty(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value ? value : NULL;
}

int config_session_servicedirs(struct config *c)
{
	const char *runtime = non_empty("XDG_RUNTIME_DIR"), *data = non_empty("XDG_DATA_HOME");
	const char *home = non_empty("HOME"), *dirs = non_empty("XDG_DATA_DIRS");
	int r = 0;

	if (runtime)
		r = add_below(c, runtime, strlen(runtime), "dbus-1/services", true);
	if (r == 0 && data)
		r = add_below(c, data, strlen(data), "dbus-1/services", false);
	else if (r == 0 && home)
		r = add_below(c, home, strlen(home), ".local/share/dbus-1/services", false);
	if (r == 0)
		r = add_list(c, "/etc:/run", "dbus-1/services");
	if (r == 0)
		r = add_list(c, dirs ? dirs : "/usr/local/share:/usr/share", "dbus-1/services");
	return r < 0 ? r : add_list(c, "/usr/share", "dbus-1/services");
}

int config_system_servicedirs(struct config *c)
{
	return add_list(c, "/etc:/run:/usr/local/share:/usr/share:/lib", "dbus-1/system-services");
}

/* ---- users ---- */

static bool is_number(const char *text, uint32_t *ret)
{
	unsigned long long n;
	char *end;

	if (!*text || text[strspn(text, "0123456789")])
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || n >= UINT32_MAX)
		return false;
	*ret = (uint32_t)n;
	return true;
}

int config_user_id(const char *user, uid_t *ret_uid, gid_t *ret_gid)
{
	const struct passwd *pw;
	uint32_t uid;

	if (is_number(user, &uid)) {
		if (ret_gid) {
			pw = getpwuid(uid);
			*ret_gid = pw ? pw->pw_gid : (gid_t)-1;
		}
		*ret_uid = uid;
		return 0;
	}
	pw = *user ? getpwnam(user) : NULL;
	if (!pw)
		return -ESRCH;
	*ret_uid = pw->pw_uid;
	if (ret_gid)
		*ret_gid = pw->pw_gid;
	return 0;
}

int config_group_id(const char *group, gid_t *ret_gid)
{
	const struct group *gr;
	uint32_t gid;

	if (is_number(group, &gid)) {
		*ret_gid = gid;
		return 0;
	}
	gr = *group ? getgrnam(group) : NULL;
	if (!gr)
		return -ESRCH;
	*ret_gid = gr->gr_gid;
	return 0;
}

bool config_user_at_console(uid_t uid)
{
	const struct passwd *pw = getpwuid(uid);
	char *path;
	bool there;

	if (!pw || strchr(pw->pw_name, '/') || asprintf(&path, "/run/console/%s", pw->pw_name) < 0)
		return false;
	there = access(path, F_OK) == 0;
	free(path);
	return there;
}
