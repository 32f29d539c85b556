// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../daemon.h"
#include "launch.h"

struct launch {
	struct source source;
	struct list_head entry; /* in daemon.launches */
	struct daemon *daemon;
	int pidfd;
	int error_fd; /* errno of execve() comes through it */
	void (*done)(void *arg, const struct launch_end *end);
	void *arg;
};

/* ---- in the child ---- */

static void reset_signals(void)
{
	sigset_t none;
	int i;

	for (i = 1; i < _NSIG; i++)
		signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Whatever the daemon is spared, services are not. */
static void reset_oom_score(void)
{
	int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16] = "";

	if (fd < 0)
		return;
	if (read(fd, text, sizeof(text) - 1) > 0 && text[0] == '-' && write(fd, "0", 1) < 0)
		errno = 0;
	close(fd);
}

static void reset_limit(const struct daemon *d)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = d->inherited_fd_limit;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void become(const struct daemon *d, char *const *argv, char *const *envp, int error_fd)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null >= 0)
		dup2(null, STDIN_FILENO);
	setsid();
	reset_oom_score();
	reset_limit(d);
	reset_signals();
	execvpe(argv[0], argv, envp);
	if (write(error_fd, &errno, sizeof(errno)) < 0)
		_exit(126);
	_exit(127);
}

/* ---- in the daemon ---- */

static void release(struct launch *launch)
{
	if (launch->pidfd >= 0) {
		daemon_unwatch(launch->daemon, launch->pidfd);
		close(launch->pidfd);
	}
	if (launch->error_fd >= 0)
		close(launch->error_fd);
	list_del(&launch->entry);
	free(launch);
}

static struct launch_end end_of(const struct launch *launch)
{
	siginfo_t info = { 0 };
	int error;

	if (waitid(P_PIDFD, (id_t)launch->pidfd, &info, WEXITED | WNOHANG) < 0)
		return (struct launch_end){ LAUNCH_EXITED, 255 };
	if (read(launch->error_fd, &error, sizeof(error)) == sizeof(error))
		return (struct launch_end){ LAUNCH_NOT_EXECUTED, error };
	if (info.si_code == CLD_EXITED)
		return (struct launch_end){ LAUNCH_EXITED, info.si_status };
	return (struct launch_end){ LAUNCH_KILLED, info.si_status };
}

static void ended(struct source *source, u32 events)
{
	struct launch *launch = container_of(source, struct launch, source);
	const struct launch_end end = end_of(launch);
	void (*done)(void *arg, const struct launch_end *end) = launch->done;
	void *arg = launch->arg;

	release(launch);
	if (done)
		done(arg, &end);
}

static int watch(struct launch *launch, pid_t pid)
{
	launch->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (launch->pidfd < 0)
		return -errno;
	return daemon_watch(launch->daemon, launch->pidfd, EPOLLIN, &launch->source);
}

/* Nobody could learn of its end: it is not to live. */
static void undo(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int spawn(struct launch *launch, char *const *argv, char *const *envp)
{
	int error[2], r;
	pid_t pid;

	if (pipe2(error, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	launch->error_fd = error[0];
	pid = fork();
	r = pid < 0 ? -errno : 0;
	if (pid == 0)
		become(launch->daemon, argv, envp, error[1]);
	close(error[1]);
	if (r < 0)
		return r;
	r = watch(launch, pid);
	if (r < 0)
		undo(pid);
	return r;
}

int launch_start(struct daemon *d, char *const *argv, char *const *envp,
		 void (*done)(void *arg, const struct launch_end *end), void *arg,
		 struct launch **ret)
{
	struct launch *launch = calloc(1, sizeof(*launch));
	int r;

	if (!launch)
		return -ENOMEM;
	*launch = (struct launch){ .source.ready = ended,
				   .daemon = d,
				   .pidfd = -1,
				   .error_fd = -1,
				   .done = done,
				   .arg = arg };
	list_add_tail(&launch->entry, &d->launches);
	r = spawn(launch, argv, envp);
	if (r < 0) {
		release(launch);
		return r;
	}
	*ret = launch;
	return 0;
}

void launch_forget(struct launch *launch)
{
	if (launch)
		launch->done = NULL;
}

void launch_abandon_all(struct daemon *d)
{
	struct launch *launch, *next;

	list_for_each_entry_safe(launch, next, &d->launches, entry)
		release(launch);
}
