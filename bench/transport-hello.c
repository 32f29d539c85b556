// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A D-Bus client that only connects: authentication and Hello go out in one write, as a client in a
 * hurry sends them, and the reply to Hello ends it. No library has a part in it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "transport.h"

#define FIXED	    16U /* bytes of a D-Bus message up to the length of its header's fields */
#define TYPE_RETURN 2
#define ANSWER_MAX  4096

struct hello {
	int fd;
	size_t have;
	unsigned char in[ANSWER_MAX];
};

/* A method call in little endian: PATH, DESTINATION, INTERFACE and MEMBER, each to 8 bytes. */
static const unsigned char hello_call[] =
	"l\1\0\1\0\0\0\0\1\0\0\0\x6e\0\0\0"
	"\1\1o\0\x15\0\0\0/org/freedesktop/DBus\0\0\0"
	"\6\1s\0\x14\0\0\0org.freedesktop.DBus\0\0\0\0"
	"\2\1s\0\x14\0\0\0org.freedesktop.DBus\0\0\0\0"
	"\3\1s\0\5\0\0\0Hello\0\0"; /* and the literal's own NUL: the padding of the header */

/* The first unix:path= of a list of addresses, without what has to be escaped there. */
static int parse_address(struct link *l, struct sockaddr_un *sa)
{
	const char *at = strstr(l->address, "unix:path=");
	size_t n;

	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (!at)
		return link_error(l, -EAFNOSUPPORT, "no unix:path= in '%s'", l->address);
	at += strlen("unix:path=");
	n = strcspn(at, ",;%");
	if (at[n] == '%' || n >= sizeof(sa->sun_path))
		return link_error(l, -EINVAL, "cannot take the path of '%s'", l->address);
	memcpy(sa->sun_path, at, n);
	return 0;
}

/* "EXTERNAL" with the uid as hex digits of its decimal ones */
static size_t compose(char *out, size_t size)
{
	char uid[16], hex[2 * sizeof(uid) + 1];
	size_t n, i;

	snprintf(uid, sizeof(uid), "%u", (unsigned int)getuid());
	for (i = 0; uid[i]; i++)
		snprintf(hex + 2 * i, 3, "%02hhx", (unsigned char)uid[i]);
	out[0] = '\0'; /* the byte that once carried credentials */
	n = 1 + (size_t)snprintf(out + 1, size - 1,
				 "AUTH EXTERNAL %s\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n", hex);
	memcpy(out + n, hello_call, sizeof(hello_call));
	return n + sizeof(hello_call);
}

static int send_all(struct link *l, int fd)
{
	char out[512];
	size_t n = compose(out, sizeof(out));

	if (send(fd, out, n, MSG_NOSIGNAL) != (ssize_t)n)
		return link_error(l, -EIO, "sending Hello: %m");
	return 0;
}

/* Behind the two lines of the authentication; NULL: they are not here yet */
static const unsigned char *first_message(const struct hello *h)
{
	const unsigned char *at = memmem(h->in, h->have, "\r\n", 2), *end = h->in + h->have;

	if (at)
		at = memmem(at + 2, (size_t)(end - at - 2), "\r\n", 2);
	return at ? at + 2 : NULL;
}

static uint32_t word(const unsigned char *p, bool big)
{
	return big ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3] :
		     (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* Is the reply to Hello here? A bus says nothing before it. Or -EBADMSG. */
static int answered(const struct hello *h)
{
	const unsigned char *at = first_message(h);
	size_t left = at ? (size_t)(h->in + h->have - at) : 0;
	uint32_t fields, body;
	bool big;

	if (left < FIXED)
		return 0;
	big = at[0] == 'B';
	body = word(at + 4, big);
	fields = word(at + 12, big);
	if (memcmp(h->in, "OK ", 3) || at[1] != TYPE_RETURN || fields > ANSWER_MAX ||
	    body > ANSWER_MAX)
		return -EBADMSG;
	return left >= FIXED + ((fields + 7) & ~7U) + body;
}

static int wait_for_answer(struct link *l, struct hello *h)
{
	ssize_t n;
	int r;

	while ((r = answered(h)) == 0) {
		n = h->have < ANSWER_MAX ? recv(h->fd, h->in + h->have, ANSWER_MAX - h->have, 0) :
					   0;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return link_error(l, n ? -errno : -EPIPE, "no answer to Hello");
		h->have += (size_t)n;
	}
	return r < 0 ? link_error(l, r, "the bus did not say Hello") : 0;
}

static int greet(struct link *l, struct hello *h, const struct sockaddr_un *sa)
{
	int r;

	if (h->fd < 0)
		return link_error(l, -errno, "no socket: %m");
	if (connect(h->fd, (const struct sockaddr *)sa, sizeof(*sa)) < 0)
		return link_error(l, -errno, "connecting: %m");
	r = send_all(l, h->fd);
	return r < 0 ? r : wait_for_answer(l, h);
}

static int open_hello(struct link *l)
{
	struct sockaddr_un sa;
	struct hello *h;
	int r = parse_address(l, &sa);

	if (r < 0)
		return r;
	h = malloc(sizeof(*h));
	if (!h)
		return link_error(l, -ENOMEM, "out of memory");
	h->have = 0;
	h->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	r = greet(l, h, &sa);
	if (r == 0) {
		l->state = h;
		return 0;
	}
	if (h->fd >= 0)
		close(h->fd);
	free(h);
	return r;
}

static void close_hello(struct link *l)
{
	struct hello *h = l->state;

	if (!h)
		return;
	close(h->fd);
	free(h);
	l->state = NULL;
}

/* Nobody calls it. */
static int serve_nobody(struct link *l)
{
	link_ready(l);
	while (pause() < 0 && errno == EINTR)
		;
	return -errno;
}

const struct transport transport_hello = {
	.name = "hello",
	.serve = serve_nobody,
	.open = open_hello,
	.close = close_hello,
};
