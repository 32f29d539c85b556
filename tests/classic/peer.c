// SPDX-License-Identifier: LGPL-2.1-or-later
/* See peer.h. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "peer.h"

bool bus_is_reference(void)
{
	return getenv("BUS_IS_REFERENCE") != NULL;
}

/* ---- connecting ---- */

static socklen_t fill_address(struct sockaddr_un *sa)
{
	static const char path[] = "unix:path=", abstract[] = "unix:abstract=";
	const char *address = getenv("DBUS_ADDRESS"), *from;
	size_t len;

	if (!address)
		address = "DBUS_ADDRESS is not set";
	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	if (!strncmp(address, path, sizeof(path) - 1)) {
		from = address + sizeof(path) - 1;
		len = strcspn(from, ",;");
		assert_true(len < sizeof(sa->sun_path));
		memcpy(sa->sun_path, from, len);
		return sizeof(*sa);
	}
	assert_true(!strncmp(address, abstract, sizeof(abstract) - 1));
	from = address + sizeof(abstract) - 1;
	len = strcspn(from, ",;");
	assert_true(len + 1 < sizeof(sa->sun_path));
	memcpy(sa->sun_path + 1, from, len);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

void peer_open(struct peer *p)
{
	struct sockaddr_un sa;
	socklen_t len = fill_address(&sa);

	memset(p, 0, sizeof(*p));
	p->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(p->fd >= 0);
	if (connect(p->fd, (struct sockaddr *)&sa, len) < 0)
		fail_msg("cannot connect to %s: %s", getenv("DBUS_ADDRESS"), strerror(errno));
}

/* Waits for something to read. */
static void wait_for_input(struct peer *p)
{
	struct pollfd pfd = { .fd = p->fd, .events = POLLIN };
	int r;

	do {
		r = poll(&pfd, 1, PEER_PATIENCE_MS);
	} while (r < 0 && errno == EINTR);
	if (r == 0)
		fail_msg("the bus is silent, serial %u", p->serial);
}

static void want_line(struct peer *p, const char *start)
{
	char line[256];
	size_t len = 0;

	do {
		wait_for_input(p);
		assert_int_equal(read(p->fd, line + len, 1), 1);
		len++;
		assert_true(len < sizeof(line) - 1);
	} while (line[len - 1] != '\n');
	line[len] = 0;
	if (strncmp(line, start, strlen(start)))
		fail_msg("%s where %s was expected", line, start);
}

static void auth_line(char *out, size_t size)
{
	char uid[16];
	size_t i, n;

	snprintf(uid, sizeof(uid), "%u", (unsigned int)geteuid());
	n = (size_t)snprintf(out, size, "AUTH EXTERNAL ");
	for (i = 0; uid[i]; i++)
		n += (size_t)snprintf(out + n, size - n, "%02x", uid[i]);
	snprintf(out + n, size - n, "\r\n");
}

void peer_auth(struct peer *p, bool fds)
{
	char line[80];

	auth_line(line, sizeof(line));
	peer_write(p, "", 1);
	peer_write(p, line, strlen(line));
	want_line(p, "OK ");
	if (fds) {
		peer_write(p, "NEGOTIATE_UNIX_FD\r\n", 19);
		want_line(p, "AGREE_UNIX_FD");
	}
	peer_write(p, "BEGIN\r\n", 7);
}

void peer_hello(struct peer *p)
{
	struct got g;

	want_return(p, peer_driver(p, "Hello", ""), &g);
	snprintf(p->name, sizeof(p->name), "%s", got_string(&g));
	got_free(&g);
	want_driver_signal(p, "NameAcquired", p->name, NULL, NULL);
}

void peer_join(struct peer *p)
{
	peer_open(p);
	peer_auth(p, true);
	peer_hello(p);
}

void peer_close(struct peer *p)
{
	unsigned int i;

	for (i = 0; i < p->n_fds; i++)
		close(p->fds[i]);
	if (p->fd >= 0)
		close(p->fd);
	free(p->buf);
	p->buf = NULL;
	p->len = p->size = 0;
	p->n_fds = 0;
	p->fd = -1;
}

/* ---- sending ---- */

void peer_write_fds(struct peer *p, const void *data, size_t len, const int *fds,
		    unsigned int n_fds)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(PEER_FDS_MAX * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (n_fds) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		*CMSG_FIRSTHDR(&msg) = (struct cmsghdr){ .cmsg_len = CMSG_LEN(n_fds * sizeof(int)),
							 .cmsg_level = SOL_SOCKET,
							 .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), fds, n_fds * sizeof(int));
	}
	while (iov.iov_len) {
		n = sendmsg(p->fd, &msg, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		/* It hung up: the test sees that when it reads. */
		if (n < 0)
			return;
		iov.iov_base = (char *)iov.iov_base + n;
		iov.iov_len -= (size_t)n;
		msg.msg_control = NULL;
		msg.msg_controllen = 0;
	}
}

void peer_write(struct peer *p, const void *data, size_t len)
{
	peer_write_fds(p, data, len, NULL, 0);
}

bool peer_try_write(struct peer *p, const void *data, size_t len, size_t *ret_written)
{
	ssize_t n = send(p->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	*ret_written = n > 0 ? (size_t)n : 0;
	return n >= 0 || errno == EAGAIN;
}

static struct dbusp_str text(const char *s)
{
	return s ? (struct dbusp_str){ s, strlen(s) } : (struct dbusp_str){ 0 };
}

static void put_one(struct dbusp_build *b, char type, va_list *args)
{
	uint8_t byte;

	switch (type) {
	case 'y':
		byte = (uint8_t)va_arg(*args, int);
		dbusp_put_fixed(b, 'y', &byte);
		break;
	case 'b':
		dbusp_put_bool(b, va_arg(*args, int));
		break;
	case 'u':
		dbusp_put_u32(b, va_arg(*args, unsigned int));
		break;
	case 'h':
		dbusp_put_fixed(b, 'h', &(uint32_t){ va_arg(*args, unsigned int) });
		break;
	default:
		dbusp_put_text(b, type, text(va_arg(*args, const char *)));
	}
}

size_t peer_build(uint8_t **ret, const struct dbusp_desc *desc, va_list args)
{
	struct dbusp_build b;
	size_t len, i;
	va_list rest;

	va_copy(rest, args);
	dbusp_build_begin(&b, NULL, desc);
	for (i = 0; i < desc->signature.len; i++)
		put_one(&b, desc->signature.s[i], &rest);
	va_end(rest);
	assert_int_equal(dbusp_build_end(&b, ret, &len), 0);
	return len;
}

static uint32_t send_list(struct peer *p, struct dbusp_desc *desc, va_list args)
{
	uint8_t *msg;
	size_t len;

	if (!desc->serial)
		desc->serial = ++p->serial;
	len = peer_build(&msg, desc, args);
	peer_write(p, msg, len);
	free(msg);
	return desc->serial;
}

uint32_t peer_send(struct peer *p, struct dbusp_desc desc, ...)
{
	uint32_t serial;
	va_list args;

	va_start(args, desc);
	serial = send_list(p, &desc, args);
	va_end(args);
	return serial;
}

uint32_t peer_call(struct peer *p, const char *destination, const char *path,
		   const char *interface, const char *member, const char *sig, ...)
{
	struct dbusp_desc desc = {
		.type = DBUSP_METHOD_CALL,
		.path = text(path),
		.interface = text(interface),
		.member = text(member),
		.destination = text(destination),
		.signature = text(sig),
	};
	uint32_t serial;
	va_list args;

	va_start(args, sig);
	serial = send_list(p, &desc, args);
	va_end(args);
	return serial;
}

uint32_t peer_driver(struct peer *p, const char *member, const char *sig, ...)
{
	struct dbusp_desc desc = {
		.type = DBUSP_METHOD_CALL,
		.path = DBUSP_STR(DBUS_PATH),
		.interface = DBUSP_STR(DBUS),
		.member = text(member),
		.destination = DBUSP_STR(DBUS),
		.signature = text(sig),
	};
	uint32_t serial;
	va_list args;

	va_start(args, sig);
	serial = send_list(p, &desc, args);
	va_end(args);
	return serial;
}

uint32_t peer_signal(struct peer *p, const char *destination, const char *path,
		     const char *interface, const char *member, const char *sig, ...)
{
	struct dbusp_desc desc = {
		.type = DBUSP_SIGNAL,
		.path = text(path),
		.interface = text(interface),
		.member = text(member),
		.destination = text(destination),
		.signature = text(sig),
	};
	uint32_t serial;
	va_list args;

	va_start(args, sig);
	serial = send_list(p, &desc, args);
	va_end(args);
	return serial;
}

uint32_t peer_return(struct peer *p, const struct got *call, const char *sig, ...)
{
	struct dbusp_desc desc = {
		.type = DBUSP_METHOD_RETURN,
		.reply_serial = call->h.frame.serial,
		.destination = call->h.sender,
		.signature = text(sig),
	};
	uint32_t serial;
	va_list args;

	va_start(args, sig);
	serial = send_list(p, &desc, args);
	va_end(args);
	return serial;
}

/* ---- receiving ---- */

static void keep_fds(struct peer *p, struct msghdr *msg)
{
	struct cmsghdr *c;
	size_t n;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		assert_int_equal(c->cmsg_type, SCM_RIGHTS);
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		assert_true(p->n_fds + n <= PEER_FDS_MAX);
		memcpy(p->fds + p->n_fds, CMSG_DATA(c), n * sizeof(int));
		p->n_fds += (unsigned int)n;
	}
}

/* Reads at most @want bytes more; false at the end. */
static bool receive(struct peer *p, size_t want)
{
	char control[CMSG_SPACE(PEER_FDS_MAX * sizeof(int))];
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	ssize_t n;

	if (p->len + want > p->size) {
		p->size = p->len + want;
		p->buf = realloc(p->buf, p->size);
		assert_non_null(p->buf);
	}
	wait_for_input(p);
	iov = (struct iovec){ p->buf + p->len, want };
	n = recvmsg(p->fd, &msg, MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return false;
	keep_fds(p, &msg);
	p->len += (size_t)n;
	return true;
}

/* Reads on until there are @need bytes, never more: descriptors come with their message. */
static bool receive_up_to(struct peer *p, size_t need)
{
	while (p->len < need) {
		if (!receive(p, need - p->len))
			return false;
	}
	return true;
}

bool peer_next(struct peer *p, struct got *g)
{
	enum dbusp_why why = DBUSP_WHY_NONE;
	struct dbusp_frame frame;

	memset(g, 0, sizeof(*g));
	if (!receive_up_to(p, DBUSP_FIXED_LEN)) {
		p->ended = true;
		return false;
	}
	assert_int_equal(dbusp_frame_parse(&frame, p->buf, p->len, DBUSP_MESSAGE_MAX, &why), 0);
	assert_true(receive_up_to(p, frame.total_len));
	g->msg = p->buf;
	if (dbusp_header_parse(&g->h, g->msg, p->len, DBUSP_MESSAGE_MAX, &why) < 0 ||
	    dbusp_body_check(&g->h, g->msg + frame.header_len, &why) < 0)
		fail_msg("the bus sent a broken message: %s", dbusp_why_str(why));
	dbusp_reader_init(&g->body, &g->h, g->msg + frame.header_len);
	assert_int_equal(p->n_fds, g->h.n_fds);
	memcpy(g->fds, p->fds, sizeof(g->fds));
	g->n_fds = p->n_fds;
	p->n_fds = 0;
	p->buf = NULL;
	p->len = p->size = 0;
	return true;
}

void got_free(struct got *g)
{
	unsigned int i;

	for (i = 0; i < g->n_fds; i++)
		close(g->fds[i]);
	free(g->msg);
	memset(g, 0, sizeof(*g));
}

const char *got_string(struct got *g)
{
	struct dbusp_str s = { 0 };

	assert_int_equal(dbusp_read_text(&g->body, dbusp_reader_type(&g->body), &s), 0);
	return s.s;
}

uint32_t got_u32(struct got *g)
{
	uint32_t v = 0;

	assert_int_equal(dbusp_read_fixed(&g->body, dbusp_reader_type(&g->body) == 'b' ? 'b' : 'u',
					  &v),
			 0);
	return v;
}

/* ---- expectations ---- */

static const char *printable(struct dbusp_str s)
{
	return s.s ? s.s : "(none)";
}

static void want_any(struct peer *p, struct got *g, const char *wanted)
{
	if (!peer_next(p, g))
		fail_msg("the bus hung up where %s was expected", wanted);
}

static void wrong(struct got *g, const char *wanted)
{
	fail_msg("message of type %u, member %s, error %s, reply to %u, where %s was expected",
		 g->h.frame.type, printable(g->h.member), printable(g->h.error_name),
		 g->h.reply_serial, wanted);
}

static bool equal(struct dbusp_str s, const char *to)
{
	return s.s && s.len == strlen(to) && !memcmp(s.s, to, s.len);
}

void want_return(struct peer *p, uint32_t serial, struct got *g)
{
	char wanted[64];

	snprintf(wanted, sizeof(wanted), "the reply to %u", serial);
	want_any(p, g, wanted);
	if (g->h.frame.type != DBUSP_METHOD_RETURN || g->h.reply_serial != serial)
		wrong(g, wanted);
}

void want_done(struct peer *p, uint32_t serial)
{
	struct got g;

	want_return(p, serial, &g);
	got_free(&g);
}

void want_u32(struct peer *p, uint32_t serial, uint32_t value)
{
	struct got g;

	want_return(p, serial, &g);
	assert_int_equal(got_u32(&g), value);
	got_free(&g);
}

void want_string(struct peer *p, uint32_t serial, const char *value)
{
	struct got g;

	want_return(p, serial, &g);
	assert_string_equal(got_string(&g), value);
	got_free(&g);
}

void want_error_text(struct peer *p, uint32_t serial, const char *name, const char *text)
{
	char wanted[160];
	struct got g;

	snprintf(wanted, sizeof(wanted), "error %s to %u", name, serial);
	want_any(p, &g, wanted);
	if (g.h.frame.type != DBUSP_ERROR || g.h.reply_serial != serial ||
	    !equal(g.h.error_name, name))
		wrong(&g, wanted);
	if (text)
		assert_string_equal(got_string(&g), text);
	got_free(&g);
}

void want_error(struct peer *p, uint32_t serial, const char *name)
{
	want_error_text(p, serial, name, NULL);
}

void want_signal(struct peer *p, const char *sender, const char *member, struct got *g)
{
	want_any(p, g, member);
	if (g->h.frame.type != DBUSP_SIGNAL || !equal(g->h.member, member) ||
	    !equal(g->h.sender, sender))
		wrong(g, member);
}

void want_driver_signal(struct peer *p, const char *member, const char *a, const char *b,
			  const char *c)
{
	struct got g;

	want_signal(p, DBUS, member, &g);
	if (a)
		assert_string_equal(got_string(&g), a);
	if (b)
		assert_string_equal(got_string(&g), b);
	if (c)
		assert_string_equal(got_string(&g), c);
	got_free(&g);
}

void want_call(struct peer *p, const char *member, struct got *g)
{
	want_any(p, g, member);
	if (g->h.frame.type != DBUSP_METHOD_CALL || !equal(g->h.member, member))
		wrong(g, member);
}

void want_nothing(struct peer *p)
{
	want_done(p, peer_call(p, DBUS, DBUS_PATH, DBUS ".Peer", "Ping", ""));
}

void want_end(struct peer *p)
{
	struct got g;

	if (peer_next(p, &g))
		wrong(&g, "the end");
}
