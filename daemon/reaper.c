// SPDX-License-Identifier: LGPL-2.1-or-later
/* Closing what clients sent (lib/closer.h). Origins are users: uid + 1, as 0 is nobody. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon.h"
#include "lib/closer.h"

struct reaper {
	struct closer closer;
	int highest;
};

int reaper_start(unsigned int fd_limit, struct reaper **ret)
{
	struct reaper *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return -ENOMEM;
	e = closer_init(&r->closer, fd_limit, true);
	if (e < 0)
		free(r);
	else
		*ret = r;
	return e;
}

/* Threads that are stuck have what they need until the process ends. */
static struct reaper *left_behind;

struct reaper *reaper_stop(struct reaper *reaper)
{
	if (!reaper)
		return NULL;
	if (closer_stop(&reaper->closer))
		free(reaper);
	else
		left_behind = reaper;
	return NULL;
}

void reaper_note(struct reaper *reaper, int fd, uid_t uid)
{
	reaper->highest = max(reaper->highest, fd);
	closer_note(&reaper->closer, fd, uid + 1);
}

void reaper_note_same(struct reaper *reaper, int fd, int as)
{
	reaper->highest = max(reaper->highest, fd);
	closer_note_same(&reaper->closer, fd, as);
}

int reaper_highest(const struct reaper *reaper)
{
	return reaper->highest;
}

void reaper_forget_highest(struct reaper *reaper)
{
	reaper->highest = -1;
}

int reaper_dup(struct reaper *reaper, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return -errno;
	reaper_note_same(reaper, copy, fd);
	return copy;
}

void reaper_close(struct reaper *reaper, int fd)
{
	/* There are a thread and room, but perhaps for one that is beyond the limit. */
	if (fd >= 0 && !closer_close(&reaper->closer, fd))
		close(fd);
}

void reaper_close_socket(struct reaper *reaper, int fd)
{
	shutdown(fd, SHUT_RDWR);
	reaper_close(reaper, fd);
}
