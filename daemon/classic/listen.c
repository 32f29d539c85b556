// SPDX-License-Identifier: LGPL-2.1-or-later
/* Listening sockets. Rules: listen.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/random.h"
#include "dbus/address.h"
#include "listen.h"

#define BACKLOG 1024
#define ACCEPTS_A_ROUND 1

/* ---- accepting ---- */

static bool too_many(const struct classic *k)
{
	return k->n_incomplete >= (unsigned long)classic_limits(k)->max_incomplete_connections;
}

static void ready(struct source *source, u32 events)
{
	struct listener *l = container_of(source, struct listener, source);
	int fd, i;

	for (i = 0; i < ACCEPTS_A_ROUND && !too_many(l->classic); i++) {
		fd = node_accept(l->classic->daemon, l->fd, l->address);
		if (fd >= 0)
			cpeer_accept(l->classic, l, fd);
		else if (fd != -ECONNABORTED)
			break;
	}
	listen_review(l->classic);
}

void listen_review(struct classic *k)
{
	bool want = !too_many(k);
	struct listener *l;

	list_for_each_entry(l, &k->listeners, entry) {
		if (l->watched == want)
			continue;
		if (want && daemon_watch(k->daemon, l->fd, EPOLLIN, &l->source) < 0)
			continue;
		if (!want)
			daemon_unwatch(k->daemon, l->fd);
		l->watched = want;
	}
}

/* ---- making sockets ---- */

static void free_listener(struct listener *l)
{
	if (l->watched)
		daemon_unwatch(l->classic->daemon, l->fd);
	reaper_close(l->classic->daemon->reaper, l->fd);
	if (l->path)
		unlink(l->path);
	free(l->path);
	free(l->address);
	list_del(&l->entry);
	free(l);
}

static unsigned int mechanisms(const struct config *config)
{
	unsigned int known = DBUSP_SASL_EXTERNAL, allowed = 0;
	size_t i;

	if (config->allow_anonymous)
		known |= DBUSP_SASL_ANONYMOUS;
	if (!config->auth.n)
		return known;
	for (i = 0; i < config->auth.n; i++) {
		if (!strcmp(config->auth.items[i], "EXTERNAL"))
			allowed |= DBUSP_SASL_EXTERNAL;
		if (!strcmp(config->auth.items[i], "ANONYMOUS"))
			allowed |= DBUSP_SASL_ANONYMOUS;
	}
	return allowed & known;
}

static struct listener *new_listener(struct classic *k, int fd)
{
	struct listener *l = calloc(1, sizeof(*l));

	if (!l) {
		close(fd);
		return NULL;
	}
	l->source.ready = ready;
	l->classic = k;
	l->fd = fd;
	l->sasl.mechanisms = mechanisms(k->config);
	l->sasl.fds = true;
	memcpy(l->sasl.guid, k->guid, sizeof(k->guid));
	list_add_tail(&l->entry, &k->listeners);
	return l;
}

static int fill_address(struct sockaddr_un *sa, bool abstract, const char *name, size_t len,
			socklen_t *ret_len)
{
	size_t at = abstract ? 1 : 0;

	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (!len || len + at + !abstract > sizeof(sa->sun_path))
		return -ENAMETOOLONG;
	memcpy(sa->sun_path + at, name, len);
	*ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + at + len + !abstract);
	return 0;
}

/* A socket nobody listens on is what a dead daemon left; anything else is not ours. */
static int clear_path(const struct sockaddr_un *sa, socklen_t len)
{
	struct stat st;
	int sock, r;

	if (lstat(sa->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EADDRINUSE;
	sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return -errno;
	r = connect(sock, (const struct sockaddr *)sa, len) < 0 ? -errno : 0;
	close(sock);
	if (r != -ECONNREFUSED)
		return -EADDRINUSE;
	return unlink(sa->sun_path) < 0 ? -errno : 0;
}

static int bind_socket(int fd, const struct sockaddr_un *sa, socklen_t len)
{
	bool path = sa->sun_path[0];
	int r = path ? clear_path(sa, len) : 0;

	if (r < 0)
		return r;
	if (bind(fd, (const struct sockaddr *)sa, len) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	/* Who may connect, policy says; as dbus-daemon does it, by a file that all may write. */
	return path && chmod(sa->sun_path, 0777) < 0 ? -errno : 0;
}

static int set_address(struct listener *l, const char *key, const char *value, size_t len)
{
	size_t size = dbusp_address_escape(value, len, NULL, 0) + 1;
	char *escaped = malloc(size);
	int r;

	if (!escaped)
		return -ENOMEM;
	dbusp_address_escape(value, len, escaped, size);
	r = asprintf(&l->address, "unix:%s=%s,guid=%s", key, escaped, l->sasl.guid);
	free(escaped);
	return r < 0 ? -ENOMEM : 0;
}

static int listen_at(struct classic *k, bool abstract, const char *name, size_t len)
{
	struct sockaddr_un sa;
	struct listener *l;
	socklen_t sa_len;
	int fd, r = fill_address(&sa, abstract, name, len, &sa_len);

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	r = bind_socket(fd, &sa, sa_len);
	if (r < 0) {
		close(fd);
		return r;
	}
	l = new_listener(k, fd);
	if (!l)
		return -ENOMEM;
	if (!abstract)
		l->path = strndup(name, len);
	return set_address(l, abstract ? "abstract" : "path", name, len);
}

/* A name of our own in a directory */
static int listen_in(struct classic *k, const char *dir)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "abcdefghijklmnopqrstuvwxyz0123456789";
	unsigned char random[10];
	char name[16], *path;
	size_t i;
	int r;

	r = random_fill(random, sizeof(random));
	if (r < 0)
		return r;
	for (i = 0; i < sizeof(random); i++)
		name[i] = letters[random[i] % (sizeof(letters) - 1)];
	name[i] = '\0';
	if (asprintf(&path, "%s/dbus-%s", dir, name) < 0)
		return -ENOMEM;
	r = listen_at(k, false, path, strlen(path));
	free(path);
	return r;
}

static int listen_runtime(struct classic *k)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");
	char *path;
	int r;

	if (!dir || !*dir)
		return -ENOENT;
	if (asprintf(&path, "%s/bus", dir) < 0)
		return -ENOMEM;
	r = listen_at(k, false, path, strlen(path));
	free(path);
	return r;
}

static int listen_unix(struct classic *k, const struct dbusp_address *a)
{
	enum dbusp_unix_kind kind;
	char value[256];
	size_t len;
	int r = dbusp_address_unix(a, &kind, value, sizeof(value), &len, NULL);

	if (r < 0)
		return r;
	switch (kind) {
	case DBUSP_UNIX_PATH:
		return listen_at(k, false, value, len);
	case DBUSP_UNIX_ABSTRACT:
		return listen_at(k, true, value, len);
	case DBUSP_UNIX_RUNTIME:
		return listen_runtime(k);
	default:
		return listen_in(k, value);
	}
}

/* ---- sockets of the service manager ---- */

static int adopt(struct classic *k, int fd)
{
	struct sockaddr_un sa = { .sun_family = AF_UNSPEC };
	socklen_t len = sizeof(sa);
	struct listener *l;
	size_t n;

	if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0 || sa.sun_family != AF_UNIX)
		return -EAFNOSUPPORT;
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	l = new_listener(k, fd);
	if (!l)
		return -ENOMEM;
	n = len - offsetof(struct sockaddr_un, sun_path);
	if (sa.sun_path[0])
		return set_address(l, "path", sa.sun_path, strnlen(sa.sun_path, n));
	return set_address(l, "abstract", sa.sun_path + 1, n - 1);
}

static bool is_stream(int fd)
{
	int type = 0, listens = 0;
	socklen_t len = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens;
}

/* Those of another type are nodes of the domain (domain.c). */
static int listen_systemd(struct classic *k)
{
	int n = service_listen_fds(), i, r, found = 0;

	for (i = SERVICE_FDS_START; i < SERVICE_FDS_START + n; i++) {
		if (!is_stream(i))
			continue;
		r = adopt(k, i);
		if (r < 0)
			return r;
		found++;
	}
	return found ? 0 : -ENOENT;
}

/* ---- addresses ---- */

static bool is_transport(const struct dbusp_address *a, const char *name)
{
	return dbusp_str_eq(a->transport, dbusp_str(name));
}

static int listen_entry(struct classic *k, const struct dbusp_address *a)
{
	if (is_transport(a, "unix"))
		return listen_unix(k, a);
	if (is_transport(a, "systemd"))
		return listen_systemd(k);
	return -EPROTONOSUPPORT;
}

/* The first address of a list that works is the one, as dbus-daemon takes it. */
static int listen_text(struct classic *k, const char *text)
{
	struct dbusp_str list = dbusp_str(text);
	enum dbusp_why why = DBUSP_WHY_NONE;
	struct dbusp_address a;
	int r = -EINVAL;

	while (list.len) {
		r = dbusp_address_next(&list, &a, &why);
		if (r < 0) {
			log_line("the address \"%s\" is invalid: %s", text, dbusp_why_str(why));
			return r;
		}
		r = listen_entry(k, &a);
		if (r == 0)
			return 0;
	}
	log_line("cannot listen at \"%s\": %s", text,
		 r == -EPROTONOSUPPORT ? "only unix: and systemd: are supported" : strerror(-r));
	return r;
}

static int join_addresses(struct classic *k)
{
	struct listener *l;
	size_t size = 1;

	list_for_each_entry(l, &k->listeners, entry)
		size += strlen(l->address) + 1;
	k->address = calloc(1, size);
	if (!k->address)
		return -ENOMEM;
	list_for_each_entry(l, &k->listeners, entry) {
		if (*k->address)
			strcat(k->address, ";");
		strcat(k->address, l->address);
	}
	return 0;
}

int listen_start(struct classic *k)
{
	size_t i;
	int r = 0;

	if (!mechanisms(k->config)) {
		log_line("nobody could authenticate: of what <auth> lists, EXTERNAL is supported, "
			 "and ANONYMOUS with <allow_anonymous/>");
		return -EPROTONOSUPPORT;
	}
	for (i = 0; i < k->config->listen.n && r == 0; i++)
		r = listen_text(k, k->config->listen.items[i]);
	if (r < 0)
		return r;
	listen_review(k);
	return join_addresses(k);
}

void listen_stop(struct classic *k)
{
	struct listener *l, *next;

	list_for_each_entry_safe(l, next, &k->listeners, entry)
		free_listener(l);
}
