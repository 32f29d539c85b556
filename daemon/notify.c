// SPDX-License-Identifier: LGPL-2.1-or-later
/* The service manager's two simple protocols: sockets it made for us, and telling it our state. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon.h"

void service_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	size_t n = path ? strlen(path) : 0;
	int sock;

	if (n < 2 || n >= sizeof(sa.sun_path) || (*path != '/' && *path != '@'))
		return;
	memcpy(sa.sun_path, path, n);
	if (*path == '@')
		sa.sun_path[0] = '\0';
	sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return;
	if (sendto(sock, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&sa,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
		log_line("cannot tell the service manager \"%s\": %s", state, strerror(errno));
	close(sock);
}

/* How many sockets it passed to us, from descriptor 3 on; they are for us, not for children. */
int service_listen_fds(void)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	static int known = -1;
	int n = 0, i;

	if (known >= 0)
		return known;
	if (pid && fds && strtol(pid, NULL, 10) == (long)getpid())
		n = (int)strtol(fds, NULL, 10);
	for (i = 0; i < n; i++)
		fcntl(SERVICE_FDS_START + i, F_SETFD, FD_CLOEXEC);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	known = n > 0 ? n : 0;
	return known;
}
