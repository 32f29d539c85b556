// SPDX-License-Identifier: LGPL-2.1-or-later
/* A small file as a whole. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "slurp.h"

struct text {
	char *s;
	size_t len;
	size_t room;
};

static int make_room(struct text *t, size_t max)
{
	size_t room = t->room ? 2 * t->room : 16384;
	char *more;

	if (t->len < t->room)
		return 0;
	if (t->len > max)
		return -EFBIG;
	if (room > max + 1)
		room = max + 1;
	more = realloc(t->s, room);
	if (!more)
		return -ENOMEM;
	t->s = more;
	t->room = room;
	return 0;
}

int slurp_fd(int fd, size_t max, char **ret_text, size_t *ret_len)
{
	struct text t = { NULL, 0, 0 };
	ssize_t n = 1;
	int r = 0;

	while (n) {
		r = make_room(&t, max);
		if (r < 0)
			break;
		n = read(fd, t.s + t.len, t.room - t.len);
		if (n > 0)
			t.len += (size_t)n;
		else if (n < 0 && errno != EINTR) {
			r = -errno;
			break;
		}
	}
	if (r < 0) {
		free(t.s);
		return r;
	}
	*ret_text = t.s;
	*ret_len = t.len;
	return 0;
}
