// SPDX-License-Identifier: LGPL-2.1-or-later
/* Opening and closing nodes of the user engine. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "user.h"

static const struct engine *const self = &engine_user;

static pthread_mutex_t handles_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(handles);

/* A path longer than sun_path is reached through a descriptor of its directory. */
static int connect_path(int sock, const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	const char *slash = strrchr(path, '/');
	char *parent;
	int dir, r;

	if (strlen(path) < sizeof(sa.sun_path)) {
		strcpy(sa.sun_path, path);
		return connect(sock, (struct sockaddr *)&sa, sizeof(sa)) < 0 ? -errno : 0;
	}
	if (!slash || strlen(slash) > 80)
		return -ENAMETOOLONG;
	parent = strndup(path, (size_t)(slash - path));
	if (!parent)
		return -ENOMEM;
	dir = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	free(parent);
	if (dir < 0)
		return -errno;
	snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d%s", dir, slash);
	r = connect(sock, (struct sockaddr *)&sa, sizeof(sa)) < 0 ? -errno : 0;
	close(dir);
	return r;
}

static int open_socket(const char *path)
{
	struct stat st;
	int sock, r;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EOPNOTSUPP;
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return -errno;
	r = connect_path(sock, path);
	if (r < 0) {
		close(sock);
		return r == -EPROTOTYPE ? -EOPNOTSUPP : r;
	}
	return sock;
}

void user_channel_start(struct user *u, int sock)
{
	struct lane_channel *ch = &u->daemon.channel;

	lane_channel_init(ch, &u->lane_ops, sock, LANE_PEER_IS_DAEMON | LANE_ALARMS);
	ch->message = user_on_message;
	ch->message_buf = u->datagram;
	ch->message_buf_size = CTL_DATAGRAM_MAX;
	ch->user = u;
}

static void init(struct user *u, const char *path)
{
	const char *name = strrchr(path, '/');
	size_t i;

	u->base.engine = self;
	u->lane_ops = user_lane_ops();
	pthread_mutex_init(&u->lock, NULL);
	pthread_mutex_init(&u->request_lock, NULL);
	pthread_mutex_init(&u->send_lock, NULL);
	u->handle = strcmp(name ? name + 1 : path, "control") ? CORE_HANDLE_ENDPOINT :
								CORE_HANDLE_CONTROL;
	u->epoll = u->look_event = u->own_event = u->timer = u->pool_fd = -1;
	u->alarm.fd = -1;
	u->timer_at = U64_MAX;
	u->daemon.held = 1;
	core_queue_init(&u->queue);
	core_replier_init(&u->daemon.replier);
	core_requester_init(&u->requester, &u->deadlines);
	INIT_LIST_HEAD(&u->waiters);
	INIT_LIST_HEAD(&u->looked);
	INIT_LIST_HEAD(&u->detached);
	INIT_LIST_HEAD(&u->keeping);
	for (i = 0; i < ARRAY_SIZE(u->spare); i++)
		u->spare[i].eventfd = -1;
}

static void release(struct user *u)
{
	struct core_reply *slot;
	void *answer;
	size_t i;

	while (u->connected && (slot = core_requester_first(&u->requester))) {
		answer = NULL;
		core_reply_orphan(slot, &answer);
		message_discard(u, answer);
	}
	message_free_all(u);
	peer_free_all(u);
	owed_clear(u);
	resolve_clear(u);
	if (u->daemon.looked)
		lane_look_remove(&u->look, &u->daemon.source);
	if (u->look.ops)
		lane_look_deinit(&u->look);
	lane_channel_deinit(&u->daemon.channel);
	lane_alarm_deinit(&u->alarm);
	if (u->page)
		lane_page_unmap(u->page);
	user_hello_undo(u);
	for (i = 0; i < ARRAY_SIZE(u->spare); i++)
		if (u->spare[i].eventfd >= 0)
			close(u->spare[i].eventfd);
	free(u->datagram);
	free(u->request);
	free(u);
}

static int user_open(const char *path, struct libkdbus **ret)
{
	struct user *u;
	int sock = open_socket(path);

	if (sock < 0)
		return sock;
	u = calloc(1, sizeof(*u));
	if (u) {
		init(u, path);
		u->datagram = malloc(CTL_DATAGRAM_MAX);
		u->request = malloc(CTL_DATAGRAM_MAX);
	}
	if (!u || !u->datagram || !u->request) {
		if (u) {
			free(u->datagram);
			free(u->request);
		}
		free(u);
		close(sock);
		return -ENOMEM;
	}
	user_channel_start(u, sock);
	user_drop_resume();
	pthread_mutex_lock(&handles_lock);
	list_add_tail(&u->link, &handles);
	pthread_mutex_unlock(&handles_lock);
	*ret = &u->base;
	return 0;
}

/* The bus has ended for us: everybody who waits is told, nothing else works any more. */
void user_disconnect(struct user *u)
{
	if (u->dead)
		return;
	u->dead = true;
	user_wake_waiters(u);
	user_update_events(u);
	/* Nothing is sent to a dead bus: the hang-up is what makes the descriptor say POLLHUP. */
	shutdown(u->daemon.channel.sock, SHUT_RDWR);
}

/*
 * close() is complete when the daemon has acted on it (ABI 1.4): it hangs up last, so wait for
 * that.
 */
static void await_hangup(struct user *u)
{
	int sock = u->daemon.channel.sock;
	char byte[16];
	ssize_t n;

	shutdown(sock, SHUT_WR);
	fcntl(sock, F_SETFL, fcntl(sock, F_GETFL) & ~O_NONBLOCK);
	do {
		n = recv(sock, byte, sizeof(byte), 0);
	} while (n > 0 || (n < 0 && errno == EINTR));
}

static void user_close(struct libkdbus *h, int forked)
{
	struct user *u = to_user(h);

	if (forked) {
		user_close_forked(u);
		return;
	}
	pthread_mutex_lock(&handles_lock);
	list_del(&u->link);
	pthread_mutex_unlock(&handles_lock);
	if (u->connected && !u->dead) {
		user_refuse_unread(u);
		closing_all(u);
	}
	if (!u->dead)
		await_hangup(u);
	release(u);
}

/*
 * The child holds copies of the descriptors, which would keep the connection alive; the mappings it
 * does not have (MADV_DONTFORK). Memory of the handle is left alone: locks in it may be taken.
 */
void user_close_forked(struct user *u)
{
	int fds[] = { u->daemon.channel.sock, u->epoll,	  u->look_event, u->own_event,
		      u->timer,		      u->pool_fd, u->alarm.fd };
	struct rb_node *node;
	struct peer *p;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	for (node = rb_first(&u->peers); node; node = rb_next(node)) {
		p = rb_entry(node, struct peer, node);
		if (p->channel.sock >= 0)
			close(p->channel.sock);
	}
	list_for_each_entry(p, &u->detached, detached_entry)
		if (p->channel.sock >= 0)
			close(p->channel.sock);
	user_drop_resume();
}

static int user_fd(struct libkdbus *h)
{
	struct user *u = to_user(h);

	return u->connected ? u->epoll : -EBADFD;
}

static const void *user_pool(struct libkdbus *h, size_t *ret_size)
{
	struct user *u = to_user(h);

	if (!u->connected)
		return NULL;
	if (ret_size)
		*ret_size = u->pool.size;
	return u->memory_ro;
}

static int user_payload(struct libkdbus *h, const struct kdbus_msg *msg,
			const struct kdbus_item *item, const void **ret_address, size_t *ret_size)
{
	struct user *u = to_user(h);
	int r;

	user_lock(u);
	r = message_payload(u, msg, item, ret_address, ret_size);
	user_unlock(u);
	return r;
}

static const struct libkdbus_identity *user_identity(struct libkdbus *h)
{
	struct user *u = to_user(h);

	return u->connected ? &u->identity : NULL;
}

/*
 * Descriptors of handles must not be sent (ABI 7.2). Their sockets are refused as sockets; the
 * pollable descriptor is the one a program can get hold of.
 */
bool user_is_handle_fd(int fd)
{
	struct user *u;
	bool found = false;

	pthread_mutex_lock(&handles_lock);
	list_for_each_entry(u, &handles, link)
		found |= u->epoll == fd;
	pthread_mutex_unlock(&handles_lock);
	return found;
}

const struct engine engine_user = {
	.name = "user",
	.open = user_open,
	.command = user_command,
	.fd = user_fd,
	.pool = user_pool,
	.wait = user_wait,
	.payload = user_payload,
	.identity = user_identity,
	.close = user_close,
};
