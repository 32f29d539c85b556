// SPDX-License-Identifier: LGPL-2.1-or-later
/* A private kdbusd for tests and demonstrations. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libkdbus.h"

struct libkdbus_daemon {
	pid_t pid;
	char *domain;
	char *bus;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

static int make_domain(char **ret)
{
	const char *base = secure_getenv("XDG_RUNTIME_DIR");
	char *path;

	if (!base || access(base, W_OK) < 0)
		base = secure_getenv("TMPDIR");
	if (asprintf(&path, "%s/kdbus-XXXXXX", base ? base : "/tmp") < 0)
		return -ENOMEM;
	if (!mkdtemp(path)) {
		int r = -errno;

		free(path);
		return r;
	}
	*ret = path;
	return 0;
}

/* In the child: kdbusd says on @ready_fd that it serves. */
static void run_daemon(const char *program, const char *domain, int ready_fd, pid_t parent)
{
	char option[64];

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	fcntl(ready_fd, F_SETFD, 0);
	snprintf(option, sizeof(option), "--print-address=%d", ready_fd);
	execlp(program, program, "--nofork", "--domain", domain, option, (char *)NULL);
	_exit(errno == ENOENT ? 127 : 126);
}

/* The address line ends in a newline once the daemon serves; end of file means that it died. */
static int wait_ready(int fd)
{
	char c = 0;
	ssize_t n;

	do {
		n = read(fd, &c, 1);
	} while ((n == 1 && c != '\n') || (n < 0 && errno == EINTR));
	return n == 1 ? 0 : -EPROTO;
}

static int reap(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static int start(struct libkdbus_daemon *d, const char *program)
{
	pid_t parent = getpid();
	int ready[2], r;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return -errno;
	d->pid = fork();
	if (d->pid == 0)
		run_daemon(program, d->domain, ready[1], parent);
	r = d->pid < 0 ? -errno : 0;
	close(ready[1]);
	if (r == 0)
		r = wait_ready(ready[0]);
	close(ready[0]);
	if (r == -EPROTO) {
		int status = reap(d->pid);

		d->pid = 0;
		if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
			r = -ENOENT;
	}
	return r;
}

int libkdbus_daemon_start(const char *program, struct libkdbus_daemon **ret)
{
	struct libkdbus_daemon *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	if (!program)
		program = secure_getenv("KDBUSD");
	r = make_domain(&d->domain);
	if (r == 0 && asprintf(&d->bus, "%s/%u-user/bus", d->domain, (unsigned int)geteuid()) < 0) {
		d->bus = NULL;
		r = -ENOMEM;
	}
	if (r == 0)
		r = start(d, program ? program : "kdbusd");
	if (r < 0) {
		libkdbus_daemon_stop(d);
		return r;
	}
	*ret = d;
	return 0;
}

const char *libkdbus_daemon_domain(const struct libkdbus_daemon *daemon)
{
	return daemon->domain;
}

const char *libkdbus_daemon_bus(const struct libkdbus_daemon *daemon)
{
	return daemon->bus;
}

pid_t libkdbus_daemon_pid(const struct libkdbus_daemon *daemon)
{
	return daemon->pid;
}

struct libkdbus_daemon *libkdbus_daemon_stop(struct libkdbus_daemon *daemon)
{
	if (!daemon)
		return NULL;
	if (daemon->pid > 0 && kill(daemon->pid, SIGTERM) == 0)
		reap(daemon->pid);
	/* A daemon of the kernel engine that was killed has left what it mounted. */
	if (daemon->domain)
		umount2(daemon->domain, MNT_DETACH | UMOUNT_NOFOLLOW);
	if (daemon->domain)
		nftw(daemon->domain, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(daemon->domain);
	free(daemon->bus);
	free(daemon);
	return NULL;
}
