// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sockets in the domain directory: making them, and taking over those of a daemon that died. */
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

#include "client.h"
#include "fds.h"

#define BACKLOG 1024

static int address(const char *path, struct sockaddr_un *sa)
{
	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(sa->sun_path))
		return -ENAMETOOLONG;
	strcpy(sa->sun_path, path);
	return 0;
}

/* A socket nobody listens on is what a dead daemon left. */
static int clear_path(const struct sockaddr_un *sa)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

	if (sock < 0)
		return -errno;
	r = connect(sock, (const struct sockaddr *)sa, sizeof(*sa)) < 0 ? -errno : 0;
	close(sock);
	if (r == 0 || r == -EAGAIN)
		return -EADDRINUSE;
	if (r == -ECONNREFUSED)
		return unlink(sa->sun_path) < 0 ? -errno : 0;
	return r == -ENOENT ? 0 : r;
}

static int own(const char *path, mode_t mode, uid_t uid, gid_t gid)
{
	if (chmod(path, mode) < 0)
		return -errno;
	if (geteuid() == 0 && (uid || gid) && lchown(path, uid, gid) < 0)
		return -errno;
	return 0;
}

static int bind_node(int fd, const char *path, mode_t mode, uid_t uid, gid_t gid)
{
	struct sockaddr_un sa;
	mode_t old;
	int r = address(path, &sa);

	if (r == 0)
		r = clear_path(&sa);
	if (r < 0)
		return r;
	/* Closed to everybody until owner and mode are right. */
	old = umask(0777);
	r = bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ? -errno : 0;
	umask(old);
	if (r == 0)
		r = own(path, mode, uid, gid);
	if (r == 0 && listen(fd, BACKLOG) < 0)
		r = -errno;
	return r;
}

static int spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void refuse(struct daemon *d, int fd, const char *where)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t size = sizeof(peer);

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
	reaper_note(d->reaper, fd, peer.uid);
	log_about(peer.uid,
		  "refused a client at %s (uid %d, pid %d): no descriptors left (limit %u)", where,
		  (int)peer.uid, (int)peer.pid, d->fd_limit);
	reaper_close_socket(d->reaper, fd);
}

/* Closed with all that is in it, or the socket it came to would stay readable for ever. */
static void refuse_next(struct daemon *d, int listening, const char *where)
{
	int fd;

	close(d->null_fd);
	fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		refuse(d, fd, where);
	d->null_fd = spare();
}

int node_accept(struct daemon *d, int listening, const char *where)
{
	int fd;

	/* One that was refused may have had its place until now; the next must not take it. */
	if (d->null_fd < 0)
		d->null_fd = spare();
	if (d->null_fd < 0)
		return -EAGAIN;
	fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0 && fd < fds_for_clients(d))
		return fd;
	if (fd >= 0)
		refuse(d, fd, where);
	else if (errno == EMFILE || errno == ENFILE)
		refuse_next(d, listening, where);
	else if (errno != EINTR)
		return -errno;
	return -ECONNABORTED;
}

static void node_ready(struct source *source, u32 events)
{
	struct node *node = container_of(source, struct node, source);
	int fd, i;

	for (i = 0; i < 64; i++) {
		fd = node_accept(node->daemon, node->fd, node->path);
		if (fd >= 0)
			client_accept(node, fd);
		else if (fd != -ECONNABORTED)
			return;
	}
}

static int start(struct node *node)
{
	node->source.ready = node_ready;
	return daemon_watch(node->daemon, node->fd, EPOLLIN, &node->source);
}

int node_open(struct node *node, struct daemon *d, struct endpoint *ep, const char *path,
	      mode_t mode, uid_t uid, gid_t gid)
{
	int r;

	*node = (struct node){ .daemon = d, .ep = ep, .fd = -1 };
	node->path = strdup(path);
	node->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	r = node->path ? (node->fd < 0 ? -errno : 0) : -ENOMEM;
	if (r == 0)
		r = bind_node(node->fd, path, mode, uid, gid);
	node->bound = r == 0;
	if (r == 0)
		r = start(node);
	if (r < 0)
		node_close(node);
	return r;
}

/* A listening socket of the service manager serves as the node it is bound to. */
int node_adopt(struct node *node, struct daemon *d, struct endpoint *ep, const char *path, int fd)
{
	*node = (struct node){ .daemon = d, .ep = ep, .fd = fd };
	node->path = strdup(path);
	if (!node->path)
		return -ENOMEM;
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	return start(node);
}

void node_close(struct node *node)
{
	if (node->fd >= 0) {
		daemon_unwatch(node->daemon, node->fd);
		/* Those nobody accepted have perhaps sent something. */
		reaper_close(node->daemon->reaper, node->fd);
	}
	if (node->bound)
		unlink(node->path);
	free(node->path);
	node->path = NULL;
	node->fd = -1;
	node->bound = false;
}
