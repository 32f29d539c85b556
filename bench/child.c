// SPDX-License-Identifier: LGPL-2.1-or-later
#include "child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const int caught[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
#define N_CAUGHT (sizeof(caught) / sizeof(caught[0]))

static volatile sig_atomic_t came;
static int signal_pipe[2] = { -1, -1 };

static void on_signal(int sig)
{
	int saved = errno;

	came = sig;
	if (write(signal_pipe[1], "", 1) < 0 && errno != EAGAIN)
		_exit(128 + sig);
	errno = saved;
}

static void set_handlers(void (*handler)(int))
{
	struct sigaction sa = { .sa_handler = handler };
	size_t i;

	for (i = 0; i < N_CAUGHT; i++)
		sigaction(caught[i], &sa, NULL);
}

int child_catch_signals(void)
{
	if (pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	set_handlers(on_signal);
	signal(SIGPIPE, SIG_IGN);
	return 0;
}

int child_signal_fd(void)
{
	return signal_pipe[0];
}

bool child_interrupted(void)
{
	return came;
}

void child_die_of_signal(void)
{
	if (!came)
		return;
	signal(came, SIG_DFL);
	raise(came);
}

pid_t child_fork(void)
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	set_handlers(SIG_DFL);
	return 0;
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void child_kill(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	reap(pid);
}

void child_terminate(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGTERM);
	reap(pid);
}

static void exec_with(char *const *argv, int in, int out, bool quiet)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(in >= 0 ? in : null, STDIN_FILENO);
	dup2(out >= 0 ? out : null, STDOUT_FILENO);
	if (quiet)
		dup2(null, STDERR_FILENO);
	execvp(argv[0], argv);
	_exit(127);
}

int child_run(char *const *argv, int in, int out, bool quiet)
{
	pid_t pid = child_fork();
	int status = 0;

	if (pid == 0)
		exec_with(argv, in, out, quiet);
	if (pid < 0)
		return (int)pid;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return WIFEXITED(status) && WEXITSTATUS(status) == 127 ? -ENOENT : -EIO;
}

int child_wait_readable(int fd, int other)
{
	struct pollfd p[] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = other, .events = POLLIN },
		{ .fd = signal_pipe[0], .events = POLLIN },
	};

	for (;;) {
		if (came)
			return -EINTR;
		if (poll(p, 3, -1) < 0 && errno != EINTR)
			return -errno;
		if (p[0].revents || p[1].revents)
			return came ? -EINTR : 0;
	}
}

int child_pin(pid_t pid, int cpu)
{
	struct dirent *entry;
	char path[32];
	cpu_set_t set;
	int r = 0;
	DIR *dir;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' &&
		    sched_setaffinity((pid_t)atoi(entry->d_name), sizeof(set), &set) < 0)
			r = -errno;
	closedir(dir);
	return r;
}

static void spin_forever(void)
{
	volatile unsigned long n = 0;

	for (;;)
		n++;
}

int child_hogs(unsigned int n, pid_t *ret)
{
	unsigned int i;
	pid_t pid;

	for (i = 0; i < n; i++) {
		pid = child_fork();
		if (pid == 0)
			spin_forever();
		if (pid < 0) {
			while (i-- > 0)
				child_kill(ret[i]);
			return pid;
		}
		ret[i] = pid;
	}
	return 0;
}
