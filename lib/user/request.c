// SPDX-License-Identifier: LGPL-2.1-or-later
/* Requests to the daemon, and their answers. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user.h"

static size_t pad8(size_t n)
{
	return ALIGN(n, (size_t)8);
}

/* The answer's bytes from the memfd that carries what does not fit a datagram. */
static int read_memfd(int fd, void *to, size_t size)
{
	size_t done = 0;
	ssize_t n;

	while (done < size) {
		n = pread(fd, (char *)to + done, size - done, (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EPROTO;
		done += (size_t)n;
	}
	return 0;
}

static int fill_answer(struct answer *a, const struct ctl_reply *reply, size_t size, int *fds,
		       unsigned int n_fds)
{
	bool memfd = reply->flags & CTL_REPLY_MEMFD;
	size_t head = pad8(reply->arg_size), inline_size = memfd ? 0 : reply->extra_size;
	unsigned int i;
	char *data;

	if (reply->arg_size > CORE_CMD_MAX_SIZE || inline_size > CTL_DATAGRAM_MAX ||
	    size < sizeof(*reply) + head + inline_size || (memfd && !n_fds))
		return -EPROTO;
	data = malloc(head + reply->extra_size + 8);
	if (!data)
		return -ENOMEM;
	memcpy(data, reply + 1, head + inline_size);
	if (memfd && read_memfd(fds[0], data + head, reply->extra_size) < 0) {
		free(data);
		return -EPROTO;
	}
	a->data = data;
	a->arg = data;
	a->arg_size = reply->arg_size;
	a->extra = data + head;
	a->extra_size = reply->extra_size;
	for (i = memfd ? 1 : 0; i < n_fds; i++) {
		a->fds[a->n_fds++] = fds[i];
		fds[i] = -1;
	}
	a->error = reply->error;
	return 0;
}

int user_on_message(struct lane_channel *ch, const void *data, size_t size, int *fds,
		    unsigned int n_fds)
{
	const struct ctl_reply *reply = data;
	struct user *u = ch->user;
	struct answer *a = u->answer;
	int r;

	if (size < sizeof(*reply) || reply->version != CTL_VERSION || reply->type != CTL_REPLY)
		return -EPROTO;
	/* Late: its request was given up because the pool was full. */
	if (!a || a->done || reply->serial != a->serial)
		return 0;
	r = fill_answer(a, reply, size, fds, n_fds);
	if (r == -EPROTO)
		return r;
	if (r < 0)
		a->error = r;
	a->done = true;
	user_wake_waiters(u);
	return 0;
}

void user_answer_clear(struct answer *answer)
{
	unsigned int i;

	for (i = 0; i < answer->n_fds; i++)
		user_drop_fd(answer->fds[i]);
	free(answer->data);
	memset(answer, 0, sizeof(*answer));
}

/* Sleep until the daemon's socket has something (or room), or another thread took it up. */
static void sleep_for(struct user *u, short events)
{
	struct waiter w;
	struct pollfd p[2] = { { .fd = u->daemon.channel.sock, .events = events },
			       { .events = POLLIN } };

	user_waiter_init(u, &w);
	p[1].fd = w.eventfd;
	user_unlock(u);
	poll(p, 2, -1);
	user_lock(u);
	user_waiter_done(u, &w);
}

int user_send_datagram(struct user *u, const void *data, size_t size, const int *fds,
		       unsigned int n_fds)
{
	int r;

	for (;;) {
		r = lane_linux_ops.send(&lane_linux_ops, u->daemon.channel.sock, data, size, fds,
					n_fds);
		if (r != -EAGAIN)
			return r == -EPIPE ? -ECONNRESET : r;
		sleep_for(u, POLLOUT);
	}
}

static size_t build_datagram(struct user *u, u32 nr, const void *arg, size_t arg_size,
			     const struct ctl_hello *hello)
{
	struct ctl_request *request = (struct ctl_request *)u->request;
	char *end = (char *)(request + 1);

	*request = (struct ctl_request){
		.version = CTL_VERSION,
		.type = CTL_REQUEST,
		.serial = ++u->serial,
		.nr = nr,
		.arg_size = (u32)arg_size,
		.extra_size = hello ? sizeof(*hello) : 0,
	};
	memcpy(end, arg, arg_size);
	memset(end + arg_size, 0, pad8(arg_size) - arg_size);
	end += pad8(arg_size);
	if (hello)
		memcpy(end, hello, sizeof(*hello));
	return sizeof(*request) + pad8(arg_size) + request->extra_size;
}

/* Descriptors of records stand before the answer in the socket: take the records up. */
static int make_way(struct user *u)
{
	int r = user_pump(u, LANE_LOOK_POLL);

	if (r != -EXFULL)
		return 0;
	/* The pool is full of what only this program can free: it has to do so first. */
	return -EXFULL;
}

/*
 * The daemon does not answer before it has been handed back what a dead peer did not take: armed,
 * its lane rings when it says so (design rule 7).
 */
static void sleep_for_answer(struct user *u)
{
	if (!u->connected) {
		sleep_for(u, POLLIN);
		return;
	}
	lane_arm(&u->daemon.channel);
	peer_scan_gone(u);
	sleep_for(u, POLLIN);
	lane_unarm(&u->daemon.channel);
}

static int await_answer(struct user *u, struct answer *a)
{
	int r;

	while (!a->done) {
		r = lane_channel_recv(&u->daemon.channel);
		if (r == -EAGAIN)
			sleep_for_answer(u);
		else if (r == -EBUSY)
			r = make_way(u);
		if (r < 0 && r != -EAGAIN && r != -EBUSY)
			return r == -EPROTO ? -ECONNRESET : r;
	}
	return 0;
}

int user_request(struct user *u, u32 nr, const void *arg, size_t arg_size,
		 const struct ctl_hello *hello, int fd, struct answer *ret)
{
	int r;

	memset(ret, 0, sizeof(*ret));
	pthread_mutex_lock(&u->request_lock);
	user_lock(u);
	r = u->dead ? -ECONNRESET : relay_check_way(u, &u->daemon);
	if (r == 0)
		r = user_send_datagram(u, u->request, build_datagram(u, nr, arg, arg_size, hello),
				       &fd, fd >= 0);
	if (r == 0) {
		ret->serial = u->serial;
		u->answer = ret;
		r = await_answer(u, ret);
		u->answer = NULL;
	}
	if (r == -ECONNRESET)
		user_disconnect(u);
	if (u->connected && !u->dead)
		lane_look_touch(&u->look, &u->daemon.source);
	user_unlock(u);
	pthread_mutex_unlock(&u->request_lock);
	return r;
}
