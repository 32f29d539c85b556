// SPDX-License-Identifier: LGPL-2.1-or-later
#include "helper.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

int helper_match_all(struct libkdbus *h)
{
	const uint64_t any = KDBUS_MATCH_ID_ANY;
	struct libkdbus_builder b;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(struct kdbus_cmd_match), NULL, 0);
	libkdbus_build_item(&b, KDBUS_ITEM_ID, &any, sizeof(any));
	r = libkdbus_build_end(&b, &built);
	if (r == 0)
		r = libkdbus_match_add(h, built);
	libkdbus_build_clear(&b);
	return r;
}

pid_t helper_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	return 0;
}

void helper_kill_all(const pid_t *pids, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (pids[i] <= 0)
			continue;
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

int helper_raw_connect(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (sock < 0)
		return -1;
	strncpy(sa.sun_path, path, sizeof(sa.sun_path) - 1);
	if (connect(sock, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return sock;
	close(sock);
	return -1;
}

int helper_halt(pid_t pid)
{
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
		return -1;
	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
		return -1;
	return waitpid(pid, NULL, __WALL) == pid ? 0 : -1;
}

int helper_go_on(pid_t pid)
{
	return ptrace(PTRACE_DETACH, pid, NULL, NULL) < 0 ? -1 : 0;
}
