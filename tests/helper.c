// SPDX-License-Identifier: LGPL-2.1-or-later
#include "helper.h"

#include <signal.h>
#include <sys/prctl.h>
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
