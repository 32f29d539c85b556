// SPDX-License-Identifier: LGPL-2.1-or-later
#include <ftw.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "own-bus.h"

static const char template[] =
	"<busconfig><type>session</type><listen>unix:path=%s/bus</listen>"
	"<policy context='default'><allow send_destination='*' eavesdrop='true'/>"
	"<allow eavesdrop='true'/><allow own='*'/></policy>%s</busconfig>";

static void write_config(const struct own_bus *bus, const char *config)
{
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "%s/config", bus->folder);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fprintf(f, template, bus->folder, config) > 0);
	assert_int_equal(fclose(f), 0);
}

bool own_bus_on_module(void)
{
	const char *engine = getenv("KDBUS_ENGINE");

	return engine && strcmp(engine, "kernel") == 0;
}

/* The daemon mounts it itself, if it may. */
static void mount_domain(struct own_bus *bus)
{
	char domain[96];

	snprintf(domain, sizeof(domain), "%s/domain", bus->folder);
	assert_int_equal(mkdir(domain, 0755), 0);
	assert_int_equal(mount("kdbusfs", domain, "kdbusfs", 0, NULL), 0);
	bus->mounted = true;
}

static void unmount_domain(struct own_bus *bus)
{
	char domain[96];

	snprintf(domain, sizeof(domain), "%s/domain", bus->folder);
	assert_int_equal(umount2(domain, MNT_DETACH), 0);
	bus->mounted = false;
}

static void run(const struct own_bus *bus, int print, unsigned int fd_limit, bool plain)
{
	const struct rlimit limit = { fd_limit, fd_limit };
	const char *kdbusd = getenv("KDBUSD");
	char domain[96], config[96], address[32];

	snprintf(domain, sizeof(domain), "--domain=%s/domain", bus->folder);
	snprintf(config, sizeof(config), "--config-file=%s/config", bus->folder);
	snprintf(address, sizeof(address), "--print-address=%d", print);
	if (fd_limit)
		setrlimit(RLIMIT_NOFILE, &limit);
	if (plain) {
		prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE);
		prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN);
	}
	if (kdbusd)
		execl(kdbusd, "kdbusd", "--nofork", "--engine",
		      own_bus_on_module() ? "kernel" : "user", domain, config, address,
		      (char *)NULL);
	_exit(127);
}

static void start(struct own_bus *bus, const char *config, unsigned int fd_limit, bool plain)
{
	const char *tmp = getenv("TMPDIR");
	char line[256], address[128];
	int fds[2];
	FILE *f;

	assert_non_null(getenv("KDBUSD"));
	snprintf(bus->folder, sizeof(bus->folder), "%s/own-bus-XXXXXX",
		 tmp && strlen(tmp) < 50 ? tmp : P_tmpdir);
	assert_non_null(mkdtemp(bus->folder));
	write_config(bus, config);
	bus->mounted = false;
	if (plain && own_bus_on_module())
		mount_domain(bus);
	snprintf(bus->native, sizeof(bus->native), "%s/domain/%u-user/bus", bus->folder,
		 (unsigned int)geteuid());
	snprintf(address, sizeof(address), "unix:path=%s/bus", bus->folder);
	setenv("DBUS_ADDRESS", address, 1);
	assert_int_equal(pipe(fds), 0);
	bus->pid = fork();
	if (bus->pid == 0)
		run(bus, fds[1], fd_limit, plain);
	close(fds[1]);
	f = fdopen(fds[0], "re");
	assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
}

void own_bus_start(struct own_bus *bus, const char *config, unsigned int fd_limit)
{
	start(bus, config, fd_limit, false);
}

void own_bus_start_plain(struct own_bus *bus, const char *config, unsigned int fd_limit)
{
	start(bus, config, fd_limit, true);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

int own_bus_stop(struct own_bus *bus)
{
	int status;

	kill(bus->pid, SIGTERM);
	assert_int_equal(waitpid(bus->pid, &status, 0), bus->pid);
	if (bus->mounted)
		unmount_domain(bus);
	nftw(bus->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return status;
}
