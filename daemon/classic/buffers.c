// SPDX-License-Identifier: LGPL-2.1-or-later
/* Counted memory and descriptors of messages that outlive a round. */
#include <stdlib.h>
#include <string.h>

#include "classic.h"

struct cbuf *cbuf_new(size_t size)
{
	struct cbuf *buf = malloc(sizeof(*buf) + size);

	if (!buf)
		return NULL;
	buf->refs = 1;
	buf->size = size;
	return buf;
}

struct cbuf *cbuf_ref(struct cbuf *buf)
{
	if (buf)
		buf->refs++;
	return buf;
}

struct cbuf *cbuf_unref(struct cbuf *buf)
{
	if (buf && !--buf->refs)
		free(buf);
	return NULL;
}

struct cfds *cfds_new(struct reaper *reaper, const int *fds, unsigned int n)
{
	struct cfds *f = malloc(sizeof(*f) + n * sizeof(*fds));

	if (!f)
		return NULL;
	f->refs = 1;
	f->n = n;
	f->reaper = reaper;
	memcpy(f->fds, fds, n * sizeof(*fds));
	return f;
}

struct cfds *cfds_ref(struct cfds *fds)
{
	if (fds)
		fds->refs++;
	return fds;
}

struct cfds *cfds_unref(struct cfds *fds)
{
	unsigned int i;

	if (!fds || --fds->refs)
		return NULL;
	for (i = 0; i < fds->n; i++)
		reaper_close(fds->reaper, fds->fds[i]);
	free(fds);
	return NULL;
}
