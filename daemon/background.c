// SPDX-License-Identifier: LGPL-2.1-or-later
/* Becoming a daemon. Rules: background.h. */
#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "background.h"
#include "daemon.h"

static void redirect(int first, int last)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC), i;

	if (fd < 0)
		return;
	for (i = first; i <= last; i++)
		dup2(fd, i);
	if (fd > last)
		close(fd);
}

/* The parent: it ends as the child begins, or as it failed to. */
static void wait_for_child(pid_t child, int fd)
{
	int status = 0;
	char byte;
	ssize_t n;

	while ((n = read(fd, &byte, 1)) < 0 && errno == EINTR)
		;
	if (n == 1)
		_exit(0);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1);
}

int background_start(bool keep_umask)
{
	int fds[2];
	pid_t child;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	child = fork();
	if (child < 0) {
		log_line("cannot go to the background: %s", strerror(errno));
		close(fds[0]);
		close(fds[1]);
		return -EAGAIN;
	}
	close(fds[child ? 1 : 0]);
	if (child)
		wait_for_child(child, fds[0]);
	setsid();
	if (chdir("/") < 0)
		log_line("cannot go to /: %s", strerror(errno));
	if (!keep_umask)
		umask(022);
	redirect(0, 0);
	return fds[1];
}

void background_ready(int fd)
{
	if (fd < 0)
		return;
	redirect(1, 2);
	/* Who started us may have been killed meanwhile. */
	if (write(fd, "", 1) < 0 && errno != EPIPE)
		log_line("cannot tell the parent: %s", strerror(errno));
	close(fd);
}

int pidfile_check(const char *path)
{
	if (!path || access(path, F_OK) < 0)
		return 0;
	log_line("The pid file \"%s\" exists, if the message bus is not running, remove this file",
		 path);
	return -EEXIST;
}

int pidfile_write(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), r = 0;

	if (fd < 0 || dprintf(fd, "%d\n", (int)getpid()) < 0)
		r = -errno;
	if (fd >= 0 && close(fd) < 0 && r == 0)
		r = -errno;
	if (r < 0)
		log_line("cannot write the pid file %s: %s", path, strerror(-r));
	return r;
}

int privileges_drop(uid_t uid, gid_t gid, bool others)
{
	int r = 0;

	if (geteuid() == uid)
		return 0;
	if (geteuid() == 0) {
		capng_clear(CAPNG_SELECT_BOTH);
		if (others)
			r = capng_updatev(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_CHOWN,
					  CAP_FOWNER, CAP_DAC_OVERRIDE, -1);
		if (r == 0)
			r = capng_change_id((int)uid, (int)gid, CAPNG_DROP_SUPP_GRP);
	}
	if (r < 0 || geteuid() != uid) {
		log_line("cannot become uid %u: %s", (unsigned int)uid,
			 r < 0 ? "the capabilities cannot be had" : "only root can");
		return -EPERM;
	}
	return 0;
}
