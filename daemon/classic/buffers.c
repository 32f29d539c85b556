// SPDX-License-Identifier: LGPL-2.1-or-later
/* Counted memory and descriptors of messages that outlive a round. */
#include <stdlib.h>
#include <string.h>

#include "classic.h"

/*
 * Large buffers come and go with each large message; pages fresh from the kernel would cost more
 * than what is copied into them. So a few that were given back stay, the last one first, until
 * nobody has wanted them for a while.
 */
#define SPARE_MIN   (32UL << 10)
#define SPARE_MAX   (16UL << 20) /* bytes of all */
#define SPARE_WASTE 4 /* one is used for no less than a part of its size */

static struct {
	struct cbuf *first;
	size_t bytes;
	unsigned int age; /* calls of cbuf_age() */
} spare;

static struct cbuf *take_spare(size_t size)
{
	struct cbuf **link, *buf;

	for (link = &spare.first; (buf = *link); link = &buf->next) {
		if (buf->room < size || buf->room / SPARE_WASTE > size)
			continue;
		*link = buf->next;
		spare.bytes -= buf->room;
		return buf;
	}
	return NULL;
}

/* Older ones make room: what is wanted now is most like what was wanted last. */
static void give_back(struct cbuf *buf)
{
	struct cbuf **link;

	if (buf->room < SPARE_MIN || buf->room > SPARE_MAX) {
		free(buf);
		return;
	}
	while (spare.first && spare.bytes + buf->room > SPARE_MAX) {
		for (link = &spare.first; (*link)->next; link = &(*link)->next)
			;
		spare.bytes -= (*link)->room;
		free(*link);
		*link = NULL;
	}
	buf->next = spare.first;
	buf->age = spare.age;
	spare.first = buf;
	spare.bytes += buf->room;
}

/* From the first that was given back before the last call on, all were. */
bool cbuf_age(void)
{
	struct cbuf **link = &spare.first, *buf;

	while (*link && (*link)->age == spare.age)
		link = &(*link)->next;
	while ((buf = *link)) {
		*link = buf->next;
		spare.bytes -= buf->room;
		free(buf);
	}
	spare.age++;
	return spare.first;
}

bool cbuf_kept(void)
{
	return spare.first;
}

void cbuf_trim(void)
{
	while (cbuf_age())
		;
}

struct cbuf *cbuf_new(size_t size)
{
	struct cbuf *buf = size >= SPARE_MIN ? take_spare(size) : NULL;

	if (!buf) {
		buf = malloc(sizeof(*buf) + size);
		if (!buf)
			return NULL;
		buf->room = size;
	}
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
		give_back(buf);
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
