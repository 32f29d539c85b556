// SPDX-License-Identifier: LGPL-2.1-or-later
/* Random bytes. Rules: random.h. */
#include "random.h"

#include <errno.h>
#include <sys/random.h>

static int fill(void *buf, size_t len, unsigned int flags)
{
	const ssize_t n = getrandom(buf, len, flags);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int random_fill(void *buf, size_t len)
{
	const int r = fill(buf, len, GRND_INSECURE);

	return r == -EINVAL ? fill(buf, len, 0) : r;
}
