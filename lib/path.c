// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where domains and buses are. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/kernel.h"

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* A value of a D-Bus address up to the next comma or semicolon, unescaped; NULL if it is bad. */
static char *address_value(const char *value)
{
	size_t n = strcspn(value, ",;"), i, o = 0;
	char *text = malloc(n + 1);

	if (!text)
		return NULL;
	for (i = 0; i < n; i++) {
		int high, low;

		if (value[i] != '%') {
			text[o++] = value[i];
			continue;
		}
		high = i + 2 < n ? hex_value(value[i + 1]) : -1;
		low = i + 2 < n ? hex_value(value[i + 2]) : -1;
		if (high < 0 || low < 0 || (!high && !low)) {
			free(text);
			return NULL;
		}
		text[o++] = (char)(high * 16 + low);
		i += 2;
	}
	text[o] = '\0';
	return text;
}

/*
 * The path= of the first kdbus: entry of a bus address:
 * ``kdbus:path=DOMAIN/1000-user/bus;unix:...``
 */
static char *address_path(const char *address)
{
	const char *entry, *key;

	for (entry = address; entry && *entry; entry = strchr(entry, ';')) {
		entry += *entry == ';';
		if (strncmp(entry, "kdbus:", 6))
			continue;
		for (key = entry + 6; *key && *key != ';'; key += *key == ',') {
			if (!strncmp(key, "path=", 5))
				return address_value(key + 5);
			key += strcspn(key, ",;");
		}
	}
	return NULL;
}

/* Cut @n components off the end of @path. */
static char *parent_path(char *path, int n)
{
	char *slash;

	while (path && n--) {
		slash = strrchr(path, '/');
		if (!slash || slash == path) {
			free(path);
			return NULL;
		}
		*slash = '\0';
	}
	return path;
}

static int duplicate(const char *text, char **ret)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

static int join(char **ret, const char *a, const char *b)
{
	char *text;

	if (asprintf(&text, "%s/%s", a, b) < 0)
		return -ENOMEM;
	*ret = text;
	return 0;
}

int libkdbus_domain_path(char **ret_path)
{
	const char *domain = secure_getenv("KDBUS_DOMAIN");
	const char *address = secure_getenv("DBUS_SESSION_BUS_ADDRESS");
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	const char *engine = secure_getenv("KDBUS_ENGINE");
	char *path;

	if (domain && *domain)
		return duplicate(domain, ret_path);
	path = address ? parent_path(address_path(address), 2) : NULL;
	if (path) {
		*ret_path = path;
		return 0;
	}
	if (engine && !strcmp(engine, engine_kernel.name))
		return duplicate(KERNEL_DOMAIN, ret_path);
	if (geteuid() == 0)
		return duplicate("/run/kdbus", ret_path);
	if (!runtime || !*runtime)
		return -ENXIO;
	return join(ret_path, runtime, "kdbus");
}

/*
 * ABI 5.4: letters, digits and _, inside also - and . ; the uid in front; no path may hide in it.
 */
static int check_bus_name(const char *name)
{
	size_t n = strlen(name), digits = strspn(name, "0123456789");

	if (!digits || name[digits] != '-' || !name[digits + 1] || n > 63)
		return -EINVAL;
	if (strspn(name, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-.") != n)
		return -EINVAL;
	return strchr("-.", name[n - 1]) ? -EINVAL : 0;
}

static int bus_path_below(const char *domain, const char *name, char **ret_path)
{
	char *path;
	int r;

	if (name)
		r = asprintf(&path, "%s/%s/bus", domain, name);
	else
		r = asprintf(&path, "%s/%u-user/bus", domain, (unsigned int)geteuid());
	if (r < 0)
		return -ENOMEM;
	*ret_path = path;
	return 0;
}

int libkdbus_bus_path(const char *name, char **ret_path)
{
	const char *address = secure_getenv("DBUS_SESSION_BUS_ADDRESS");
	const char *domain_variable = secure_getenv("KDBUS_DOMAIN");
	char *domain, *path;
	int r = name ? check_bus_name(name) : 0;

	if (r < 0)
		return r;
	if (!name && address && !(domain_variable && *domain_variable)) {
		path = address_path(address);
		if (path) {
			*ret_path = path;
			return 0;
		}
	}
	r = libkdbus_domain_path(&domain);
	if (r < 0)
		return r;
	r = bus_path_below(domain, name, ret_path);
	free(domain);
	return r;
}
