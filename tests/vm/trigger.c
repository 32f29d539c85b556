// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Triggers the bug of bug.c that this program is named after. It says that all is well, for
 * others to find out that it is not; as "failure", it is the program that fails.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	close(fd);
	return good;
}

int main(int argc, char **argv)
{
	const char *bug = strrchr(argv[0], '/');
	bool good;

	bug = bug ? bug + 1 : argv[0];
	if (argc != 1 || !strcmp(bug, "failure"))
		return 1;
	/* The kernel's own limit is two minutes; nothing else is to be that quick. */
	good = (strcmp(bug, "hang") || put("/proc/sys/kernel/hung_task_timeout_secs", "1")) &&
	       put("/sys/module/kdbus/parameters/bug", bug);
	printf("%s %s\n", good ? "ok" : "not ok", bug);
	return !good;
}
