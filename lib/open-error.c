// SPDX-License-Identifier: LGPL-2.1-or-later
/* What to tell people when a node could not be opened. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "kernel/kernel.h"

/* Whether @path would be on kdbusfs: the nearest directory above it that exists decides. */
static bool on_kdbusfs(const char *path)
{
	char *at = strdup(path), *slash;
	struct statfs fs = { 0 };

	while (at && *at && statfs(at, &fs) < 0) {
		slash = strrchr(at, '/');
		if (slash)
			*slash = '\0';
		else
			strcpy(at, strcmp(at, ".") ? "." : "");
	}
	free(at);
	return fs.f_type == KERNEL_FS_MAGIC;
}

/* The kernel engine is meant: somebody said so, or the path is where its domain is. */
static bool wants_kernel(const char *path)
{
	const char *engine = secure_getenv("KDBUS_ENGINE");

	if (engine && *engine)
		return !strcmp(engine, engine_kernel.name);
	return !strncmp(path, KERNEL_DOMAIN "/", sizeof(KERNEL_DOMAIN));
}

static void no_bus(const char *path, char *buf, size_t size)
{
	if (!wants_kernel(path))
		snprintf(buf, size,
			 "no bus at %s: start kdbusd, or set KDBUS_DOMAIN to the directory "
			 "of a running one",
			 path);
	else if (on_kdbusfs(path))
		snprintf(buf, size,
			 "no bus at %s: kdbusfs is mounted there, but nobody has made that bus; "
			 "start kdbusd --engine kernel",
			 path);
	else
		snprintf(buf, size,
			 "no bus at %s: kdbusfs is not mounted there; load the module (modprobe "
			 "kdbus) and start kdbusd --engine kernel",
			 path);
}

static void other_engine(const char *path, char *buf, size_t size)
{
	if (wants_kernel(path))
		snprintf(buf, size, "%s is not on kdbusfs, where the kernel engine has its nodes",
			 path);
	else
		snprintf(buf, size, "%s is not a node of the engine that was asked for", path);
}

const char *libkdbus_open_error(const char *path, int error, char *buf, size_t size)
{
	switch (error) {
	case -ENOENT:
		no_bus(path, buf, size);
		break;
	case -ECONNREFUSED:
		snprintf(buf, size, "nobody serves %s any more: kdbusd has ended; start it again",
			 path);
		break;
	case -EACCES:
		snprintf(buf, size, "no permission to open %s", path);
		break;
	case -EOPNOTSUPP:
		other_engine(path, buf, size);
		break;
	default:
		snprintf(buf, size, "cannot open %s: %s", path, strerror(-error));
	}
	return buf;
}
