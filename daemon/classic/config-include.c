// SPDX-License-Identifier: LGPL-2.1-or-later
/* <include> and <includedir>: which files are read, and what becomes of a broken one. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config-internal.h"

/* A name in a file counts from the directory of that file. */
char *config_full_path(const struct config_reader *r, const char *name)
{
	const char *slash = strrchr(r->path, '/');
	char *path;
	int n;

	if (*name == '/' || !slash)
		return strdup(name);
	n = asprintf(&path, "%.*s/%s", (int)(slash - r->path), r->path, name);
	return n < 0 ? NULL : path;
}

bool config_selinux_enabled(void)
{
	return access("/sys/fs/selinux/enforce", F_OK) == 0;
}

/* /etc/selinux/TYPE/NAME, with the type that is configured. */
static char *selinux_path(const char *name)
{
	FILE *file = fopen("/etc/selinux/config", "re");
	char line[256], type[64] = "targeted", *path;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, " SELINUXTYPE = %63s", type) == 1)
			break;
	if (file)
		fclose(file);
	return asprintf(&path, "/etc/selinux/%s/%s", type, name) < 0 ? NULL : path;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_circular(const struct config_reader *child)
{
	const struct config_reader *r;

	for (r = child->parent; r; r = r->parent)
		if (is_same(&r->st, &child->st) || !strcmp(r->path, child->path))
			return true;
	return child->depth > CONFIG_INCLUDES_MAX;
}

static void init_child(struct config_reader *child, const struct config_reader *r,
		       const char *path)
{
	*child = (struct config_reader){
		.parent = r,
		.reading = r->reading,
		.depth = r->depth + 1,
		.path = path,
		.config = config_new(),
	};
	if (!child->config) {
		child->result = -ENOMEM;
		return;
	}
	child->config->limits = r->config->limits;
	child->config->apparmor = r->config->apparmor;
	if (stat(path, &child->st) < 0)
		child->result = -errno;
}

/* Result and error text are in @child; its configuration is merged if all went well. */
static void read_child(struct config_reader *child, struct config_reader *r)
{
	if (child->result == 0 && is_circular(child)) {
		child->result = -EINVAL;
		config_refuse(r, "%s includes itself, or %d files include each other", child->path,
			      CONFIG_INCLUDES_MAX);
		return;
	}
	if (child->result == 0)
		child->result = config_read_file(child);
	if (child->result == 0)
		child->result = config_merge(r->config, child->config);
}

static bool adopt_error(struct config_reader *r, struct config_reader *child)
{
	if (child->result == -ENOMEM)
		return config_out_of_memory(r);
	if (!child->error)
		return config_refuse(r, "cannot read %s: %s", child->path,
				     strerror(-child->result));
	if (!r->result) {
		r->error = child->error;
		child->error = NULL;
		r->result = child->result;
	}
	return false;
}

static void deinit_child(struct config_reader *child)
{
	config_unref(child->config);
	free(child->error);
}

static bool include_path(struct config_reader *r, const char *path)
{
	struct config_reader child;
	bool ok;

	init_child(&child, r, path);
	read_child(&child, r);
	ok = child.result == 0 ||
	     (child.result == -ENOENT && !child.error && r->include.ignore_missing) ||
	     adopt_error(r, &child);
	deinit_child(&child);
	return ok;
}

bool config_include(struct config_reader *r, const char *name)
{
	char *path;
	bool ok;

	if (r->include.if_selinux_enabled && !config_selinux_enabled())
		return true;
	path = r->include.selinux_root_relative ? selinux_path(name) : config_full_path(r, name);
	if (!path)
		return config_out_of_memory(r);
	ok = include_path(r, path);
	free(path);
	return ok;
}

/* ---- <includedir> ---- */

/* config.h, rule 3 */
static bool may_skip(const struct config_reader *r, const char *path)
{
	const struct config *before = r->reading->before;

	return !before || config_list_has(&before->skipped, path);
}

static bool skip(struct config_reader *r, struct config_reader *child)
{
	if (child->error)
		config_warn(r, "left out: %s", child->error);
	else
		config_warn(r, "left out: cannot read %s: %s", child->path,
			    strerror(-child->result));
	return config_list_add(&r->config->skipped, child->path) == 0 || config_out_of_memory(r);
}

static bool include_from_dir(struct config_reader *r, const char *dir, const char *name)
{
	struct config_reader child;
	char *path;
	bool ok;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return config_out_of_memory(r);
	init_child(&child, r, path);
	read_child(&child, r);
	if (child.result == 0)
		ok = true;
	else if (child.result != -ENOMEM && !r->result && may_skip(r, path))
		ok = skip(r, &child);
	else
		ok = adopt_error(r, &child);
	deinit_child(&child);
	free(path);
	return ok;
}

static int is_conf(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return n > 5 && !strcmp(entry->d_name + n - 5, ".conf");
}

/* By bytes, whatever the locale */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static bool include_dir(struct config_reader *r, const char *dir)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, is_conf, by_name), i;
	bool ok = true;

	if (n < 0 && errno == ENOMEM)
		return config_out_of_memory(r);
	if (n < 0 && errno != ENOENT)
		config_warn(r, "left out: cannot read %s: %s", dir, strerror(errno));
	if (n < 0)
		return true;
	for (i = 0; i < n; i++) {
		ok = ok && include_from_dir(r, dir, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return ok;
}

bool config_includedir(struct config_reader *r, const char *name)
{
	char *dir = config_full_path(r, name);
	bool ok;

	if (!dir)
		return config_out_of_memory(r);
	ok = config_list_add(&r->config->conf_dirs, dir) == 0 ? include_dir(r, dir) :
								config_out_of_memory(r);
	free(dir);
	return ok;
}
