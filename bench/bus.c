// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bus.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libkdbus.h>

#include "child.h"

/*
 * @name: of the program
 * @package: that brings it, NULL if it comes with this one
 * @start: into a bus that has its kind and version
 * @stop: before its process is ended and its directory goes, also after a failed start; optional
 */
struct type {
	const char *name;
	const char *package;
	int (*start)(struct bus *b, const struct options *o);
	void (*stop)(struct bus *b);
};
static const struct type types[N_BUSES];

static int bus_fail(const struct bus *b, int error, const char *what)
{
	if (error != -EINTR)
		fprintf(stderr, "kdbus-bench: %s: %s: %s\n", types[b->kind].name, what,
			strerror(-error));
	return error;
}

int bus_directory(struct bus *b)
{
	const char *base = getenv("XDG_RUNTIME_DIR");

	if (!base || access(base, W_OK) < 0)
		base = getenv("TMPDIR");
	snprintf(b->directory, sizeof(b->directory), "%s/kdbus-bench-XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(b->directory)) {
		int r = -errno;

		b->directory[0] = '\0';
		return bus_fail(b, r, "cannot make a directory for it");
	}
	return 0;
}

static void log_path(const struct bus *b, char *buf, size_t size)
{
	snprintf(buf, size, "%s/log", b->directory);
}

void bus_log(const struct bus *b)
{
	char path[128];
	int fd;

	log_path(b, path, sizeof(path));
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd >= 0)
		dup2(fd, STDERR_FILENO);
}

static void show_log(const struct bus *b)
{
	char path[128], line[256];
	FILE *f;

	log_path(b, path, sizeof(path));
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		fputs(line, stderr);
	if (f)
		fclose(f);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void remove_directory(struct bus *b)
{
	if (b->directory[0])
		nftw(b->directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	b->directory[0] = '\0';
}

/* ---- kdbusd ---- */

/* Beside this program in an installation, in the neighbouring folder after a build. */
static const char *find_kdbusd(const struct options *o, char *buf, size_t size)
{
	static const char *const places[] = { "kdbusd", "../daemon/kdbusd" };
	char self[512];
	ssize_t n;
	size_t i;

	if (o->kdbusd || getenv("KDBUSD"))
		return o->kdbusd;
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n <= 0)
		return NULL;
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(buf, size, "%s/%s", self, places[i]);
		if (access(buf, X_OK) == 0)
			return buf;
	}
	return NULL;
}

/* That somebody looks for the file system makes the kernel load the module, if it is installed. */
static bool has_kdbusfs(struct bus *b)
{
	int fd = fsopen("kdbusfs", FSOPEN_CLOEXEC);

	if (fd >= 0)
		close(fd);
	else
		snprintf(b->missing, sizeof(b->missing), "%s",
			 errno == EPERM ? "the kernel engine takes root, to mount a kdbusfs" :
					  "this kernel has no kdbusfs; make module, and load it");
	return fd >= 0;
}

static int start_kdbusd(struct bus *b, const struct options *o)
{
	bool kernel = !strcmp(o->engine, "kernel");
	struct libkdbus_daemon *d;
	char path[600];
	int r;

	if (kernel && !has_kdbusfs(b))
		return 0;
	/* For the daemon, and for clients and servers, which are forked later. */
	setenv("KDBUS_ENGINE", o->engine, 1);
	r = libkdbus_daemon_start(find_kdbusd(o, path, sizeof(path)), &d);
	if (r < 0)
		return r;
	b->own = d;
	b->pid = libkdbus_daemon_pid(d);
	snprintf(b->address, sizeof(b->address), "%s", libkdbus_daemon_bus(d));
	snprintf(b->version, sizeof(b->version), "%s%s", KDBUS_VERSION,
		 kernel ? ", kernel engine" : "");
	return 0;
}

/* ---- dbus-daemon ---- */

static const char daemon_config[] =
	"<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\"\n"
	" \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n"
	"<busconfig>\n"
	"  <type>session</type>\n"
	"  <keep_umask/>\n"
	"  <listen>unix:path=%s/bus</listen>\n"
	"  <auth>EXTERNAL</auth>\n"
	"  <policy context=\"default\">\n"
	"    <allow send_destination=\"*\" eavesdrop=\"true\"/>\n"
	"    <allow eavesdrop=\"true\"/>\n"
	"    <allow own=\"*\"/>\n"
	"  </policy>\n"
	"  <limit name=\"max_incoming_bytes\">1000000000</limit>\n"
	"  <limit name=\"max_outgoing_bytes\">1000000000</limit>\n"
	"  <limit name=\"max_message_size\">1000000000</limit>\n"
	"  <limit name=\"max_completed_connections\">100000</limit>\n"
	"  <limit name=\"max_connections_per_user\">100000</limit>\n"
	"  <limit name=\"max_match_rules_per_connection\">50000</limit>\n"
	"  <limit name=\"max_replies_per_connection\">50000</limit>\n"
	"</busconfig>\n";

static int write_config(const struct bus *b, char *path, size_t size)
{
	FILE *f;
	int r;

	snprintf(path, size, "%s/config", b->directory);
	f = fopen(path, "we");
	if (!f)
		return -errno;
	r = fprintf(f, daemon_config, b->directory) < 0 ? -EIO : 0;
	return fclose(f) == 0 ? r : -EIO;
}

/* The first line of what comes out of the pipe. */
static int read_line(int fd, char *buf, size_t size)
{
	size_t n = 0;
	int r;

	while (n + 1 < size) {
		r = child_wait_readable(fd, -1);
		if (r < 0)
			return r;
		if (read(fd, buf + n, 1) != 1)
			return -EPROTO;
		if (buf[n] == '\n')
			break;
		n++;
	}
	buf[n] = '\0';
	return n > 0 ? 0 : -EPROTO;
}

/* Start a program with the options of dbus-daemon; it says its address when it serves. */
static int run_daemon(struct bus *b, const char *program, const char *option)
{
	char print[32];
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	b->pid = child_fork();
	if (b->pid == 0) {
		int fd = dup(fds[1]);

		bus_log(b);
		snprintf(print, sizeof(print), "--print-address=%d", fd);
		execlp(program, program, "--nofork", option, print, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	r = b->pid < 0 ? (int)b->pid : read_line(fds[0], b->address, sizeof(b->address));
	close(fds[0]);
	return r;
}

static int run_configured(struct bus *b, const char *program)
{
	char config[128], option[160];
	int r = bus_directory(b);

	if (r < 0)
		return r;
	r = write_config(b, config, sizeof(config));
	snprintf(option, sizeof(option), "--config-file=%s", config);
	return r < 0 ? r : run_daemon(b, program, option);
}

static int start_dbus_daemon(struct bus *b, const struct options *o)
{
	return run_configured(b, types[b->kind].name);
}

/* The same program with the same configuration in its place */
static int start_classic_kdbusd(struct bus *b, const struct options *o)
{
	const char *program = o->kdbusd ? o->kdbusd : getenv("KDBUSD");
	char path[600];

	if (!program)
		program = find_kdbusd(o, path, sizeof(path));
	snprintf(b->version, sizeof(b->version), "%s", KDBUS_VERSION);
	return run_configured(b, program ? program : types[b->kind].name);
}

/* ---- dbus-broker ---- */

#ifndef HAVE_SDBUS
int broker_start(struct bus *b)
{
	snprintf(b->missing, sizeof(b->missing),
		 "this build cannot control it; install the package libsystemd-dev and build anew");
	return 0;
}

void broker_stop(struct bus *b)
{
}
#endif

static int start_dbus_broker(struct bus *b, const struct options *o)
{
	return broker_start(b);
}

/* ---- all ---- */

/* The last word of the first line of PROGRAM --version; false if there is no such program. */
static bool program_version(const char *program, char *buf, size_t size)
{
	char *argv[] = { (char *)program, (char *)"--version", NULL };
	int out = memfd_create("version", MFD_CLOEXEC);
	char line[128] = "", *last;
	bool found = out >= 0 && child_run(argv, -1, out, true) == 0;

	if (found)
		found = pread(out, line, sizeof(line) - 1, 0) > 0;
	if (out >= 0)
		close(out);
	line[strcspn(line, "\n")] = '\0';
	last = strrchr(line, ' ');
	snprintf(buf, size, "%.60s", last ? last + 1 : line);
	return found;
}

static void stop_kdbusd(struct bus *b)
{
	libkdbus_daemon_stop(b->own);
	b->pid = 0;
}

static const struct type types[N_BUSES] = {
	[BUS_KDBUS] = { "kdbusd", NULL, start_kdbusd, stop_kdbusd },
	[BUS_DBUS_DAEMON] = { "dbus-daemon", "dbus-daemon", start_dbus_daemon, NULL },
	[BUS_DBUS_BROKER] = { "dbus-broker", "dbus-broker", start_dbus_broker, broker_stop },
	[BUS_KDBUSD] = { "kdbusd", NULL, start_classic_kdbusd, NULL },
};

/* Whether there is something to start; if not, ret->missing is set. */
static bool is_installed(const struct type *t, struct bus *ret)
{
	if (!t->package || program_version(t->name, ret->version, sizeof(ret->version)))
		return true;
	snprintf(ret->missing, sizeof(ret->missing),
		 "%s is not installed; the package %s brings it", t->name, t->package);
	return false;
}

int bus_start(enum bus_kind kind, const struct options *o, struct bus *ret)
{
	const struct type *t = &types[kind];
	bool own;
	int r;

	*ret = (struct bus){ .kind = kind, .controller = -1 };
	if (!t->start || !is_installed(t, ret))
		return 0;
	r = t->start(ret, o);
	if (r == 0)
		return 0;
	own = !t->package;
	bus_fail(ret, r, own ? "cannot start it (try --kdbusd PATH)" : "cannot start it");
	show_log(ret);
	bus_stop(ret);
	/* Whoever said which program to run was wrong about it. */
	return own && o->kdbusd && r != -EINTR ? -EINVAL : r;
}

void bus_stop(struct bus *b)
{
	const struct type *t = &types[b->kind];

	if (t->stop)
		t->stop(b);
	child_terminate(b->pid);
	if (b->controller >= 0)
		close(b->controller);
	remove_directory(b);
	*b = (struct bus){ .controller = -1 };
}
