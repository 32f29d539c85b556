// SPDX-License-Identifier: LGPL-2.1-or-later
/* The way of a bus into service. Rules: startup.h. */
#include "startup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "classic/carrier.h"
#include "kernel.h"

/* ---- configuration ---- */

static void warn(void *arg, const char *text)
{
	log_line("%s", text);
}

/* Reading it again has to find it from / as well. */
static int absolute(const char *path, char **ret)
{
	char *dir = *path == '/' ? NULL : getcwd(NULL, 0);
	int n = dir ? asprintf(ret, "%s/%s", dir, path) : asprintf(ret, "%s", path);

	free(dir);
	return n < 0 ? -ENOMEM : 0;
}

static int read_config(struct startup *s)
{
	const struct config_reading reading = { .warn = warn };
	char *path, *error = NULL;
	int r = absolute(s->options->config_file, &path);

	if (r < 0)
		return r;
	r = config_load(path, &reading, &s->config, &error);
	free(path);
	if (r < 0)
		log_line("Failed to start message bus: %s", error ? error : strerror(-r));
	free(error);
	if (r == 0 && s->options->address)
		r = config_listen_only(s->config, s->options->address);
	return r;
}

/* What the configuration asks for and this daemon does not do must not go unnoticed. */
static int check_mediation(const struct config *c)
{
	if (c->apparmor == CONFIG_APPARMOR_REQUIRED) {
		log_line("Failed to start message bus: AppArmor mediation is required, and this "
			 "daemon has none");
		return -EOPNOTSUPP;
	}
	if (c->apparmor == CONFIG_APPARMOR_ENABLED &&
	    access("/sys/kernel/security/apparmor/features/dbus", F_OK) == 0)
		log_line("AppArmor rules about D-Bus do not count: this daemon does not mediate");
	if (c->n_associates && access("/sys/fs/selinux/enforce", F_OK) == 0)
		log_line("SELinux contexts of names (<associate>) do not count");
	return 0;
}

static int find_user(struct startup *s)
{
	const char *user = s->config->user;

	if (!user)
		return 0;
	if (config_user_id(user, &s->uid, &s->gid) < 0 || s->gid == (gid_t)-1) {
		log_line("Failed to start message bus: Could not get UID and GID for username "
			 "\"%s\"",
			 user);
		return -ESRCH;
	}
	s->change_user = s->uid != geteuid();
	return 0;
}

static void open_log(const struct startup *s)
{
	enum log_target to = s->options->log;

	if (to == LOG_TO_CONFIGURED)
		to = s->config->syslog ? LOG_TO_BOTH : LOG_TO_STDERR;
	log_open(s->options->program, to != LOG_TO_SYSLOG, to != LOG_TO_STDERR);
}

/* ---- where the domain is ---- */

/* A bus for D-Bus programs is found by its address: it need not have the name that all expect. */
static int kernel_domain(struct startup *s, unsigned int uid, const char *name)
{
	char *taken;
	int r;

	s->domain = strdup(KERNEL_DOMAIN);
	if (!s->domain)
		return -ENOMEM;
	if (!s->config)
		return 0;
	r = asprintf(&taken, "%s/%s", s->domain, s->bus_name);
	if (r < 0)
		return -ENOMEM;
	if (access(taken, F_OK) == 0)
		snprintf(s->bus_name, sizeof(s->bus_name), "%u-%d-%s", uid, (int)getpid(), name);
	free(taken);
	return 0;
}

static int default_domain(struct startup *s, unsigned int uid, const char *name)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (s->options->kernel)
		return kernel_domain(s, uid, name);
	if (geteuid() == 0)
		return asprintf(&s->domain, "/run/kdbus") < 0 ? -ENOMEM : 0;
	if (!runtime || !*runtime) {
		options_usage("no domain: neither %s nor --domain is set", "XDG_RUNTIME_DIR");
		return -ENXIO;
	}
	return asprintf(&s->domain, "%s/kdbus", runtime) < 0 ? -ENOMEM : 0;
}

/* In a directory where another user could remove it, if there is to be one. */
static int make_private(struct startup *s)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *tmp = getenv("TMPDIR"), *dir = P_tmpdir;

	if (tmp && *tmp == '/')
		dir = tmp;
	if (runtime && *runtime == '/' && !s->change_user && access(runtime, W_OK) == 0)
		dir = runtime;
	if (asprintf(&s->domain, "%s/kdbus-XXXXXX", dir) < 0) {
		s->domain = NULL;
		return -ENOMEM;
	}
	if (!mkdtemp(s->domain)) {
		log_line("cannot make a directory like %s: %s", s->domain, strerror(errno));
		return -errno;
	}
	s->private_domain = true;
	return 0;
}

static int find_domain(struct startup *s)
{
	unsigned int uid = (unsigned int)geteuid();
	bool system = s->options->system;

	if (s->config)
		system = s->config->type && !strcmp(s->config->type, "system");
	/* On the kernel engine the bus is of the user that it is served as. */
	if (s->change_user && s->options->kernel)
		uid = s->uid;
	snprintf(s->bus_name, sizeof(s->bus_name), "%u-%s", uid, system ? "system" : "user");
	if (s->options->domain) {
		s->domain = strdup(s->options->domain);
		return s->domain ? 0 : -ENOMEM;
	}
	if (s->config && !s->options->kernel)
		return make_private(s);
	return default_domain(s, uid, system ? "system" : "user");
}

/* ---- the way ---- */

static int begin_classic(struct startup *s)
{
	const struct options *o = s->options;
	int r = read_config(s);

	if (r < 0)
		return r;
	open_log(s);
	r = check_mediation(s->config);
	if (r == 0)
		r = find_user(s);
	if (r == 0 && o->pidfile)
		r = pidfile_check(s->config->pidfile);
	if (r == 0 && !o->nofork && (o->fork || s->config->fork)) {
		s->background = background_start(s->config->keep_umask);
		r = s->background < 0 ? s->background : 0;
	}
	return r;
}

int startup_begin(struct startup *s, const struct options *o)
{
	int r = 0;

	*s = (struct startup){ .options = o, .background = -1 };
	if (o->config_file)
		r = begin_classic(s);
	return r == 0 ? find_domain(s) : r;
}

int startup_serve(struct startup *s, struct bus *bus, const struct carrier *carrier)
{
	return s->config ? classic_start(bus, s->config, carrier, s->options->systemd_activation) :
			   0;
}

/* The user it runs as must be able to remove it. */
static int give_away(const char *dir, const char *bus_name, uid_t uid, gid_t gid)
{
	char *bus;
	int r;

	if (asprintf(&bus, "%s/%s", dir, bus_name) < 0)
		return -ENOMEM;
	r = chown(dir, uid, gid) < 0 || chown(bus, uid, gid) < 0 ? -errno : 0;
	if (r < 0)
		log_line("cannot give %s away: %s", dir, strerror(-r));
	free(bus);
	return r;
}

static int change_user(struct startup *s)
{
	int r = 0;

	if (!s->change_user)
		return 0;
	if (s->private_domain && geteuid() == 0)
		r = give_away(s->domain, s->bus_name, s->uid, s->gid);
	return r == 0 ? privileges_drop(s->uid, s->gid, !s->private_domain) : r;
}

static int write_pidfile(struct startup *s)
{
	int r;

	if (!s->config || !s->config->pidfile || !s->options->pidfile)
		return 0;
	r = pidfile_write(s->config->pidfile);
	if (r < 0)
		return r;
	s->pidfile = strdup(s->config->pidfile);
	return s->pidfile ? 0 : -ENOMEM;
}

static int print_address(const struct startup *s, const struct bus *bus)
{
	const char *classic = bus && bus->classic ? bus->classic->address : "";
	int fd = s->options->address_fd, n;

	if (fd < 0)
		return 0;
	if (s->private_domain)
		n = dprintf(fd, "%s\n", classic);
	else
		n = dprintf(fd, "kdbus:path=%s/%s/bus%s%s\n", s->domain, s->bus_name,
			    *classic ? ";" : "", classic);
	if (n < 0)
		log_line("cannot print the address to descriptor %d: %s", fd, strerror(errno));
	return n < 0 ? -EBADF : 0;
}

static int print_pid(const struct startup *s)
{
	int fd = s->options->pid_fd;

	if (fd < 0 || dprintf(fd, "%d\n", (int)getpid()) >= 0)
		return 0;
	log_line("cannot print the process id to descriptor %d: %s", fd, strerror(errno));
	return -EBADF;
}

/* Who waits for the end of what we print gets it. */
static void close_printed(const struct options *o)
{
	if (o->address_fd > 2)
		close(o->address_fd);
	if (o->pid_fd > 2 && o->pid_fd != o->address_fd)
		close(o->pid_fd);
}

int startup_end(struct startup *s, const struct bus *bus)
{
	int r = write_pidfile(s);

	if (r == 0)
		r = change_user(s);
	if (r == 0)
		r = print_address(s, bus);
	if (r == 0)
		r = print_pid(s);
	if (r < 0)
		return r;
	close_printed(s->options);
	background_ready(s->background);
	s->background = -1;
	return 0;
}

void startup_deinit(struct startup *s)
{
	if (s->pidfile)
		unlink(s->pidfile);
	free(s->pidfile);
	/* The daemon has removed it, unless it did not come as far as making its nodes. */
	if (s->private_domain)
		rmdir(s->domain);
	free(s->domain);
	config_unref(s->config);
}
