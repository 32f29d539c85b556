// SPDX-License-Identifier: LGPL-2.1-or-later
/* Room for the descriptors that come with what clients send (daemon.h). */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client.h"
#include "fds.h"

/* As many as come at once; of few, the part that is kept free. */
static unsigned int at_once(const struct daemon *d)
{
	return min(d->fd_limit - (unsigned int)fds_for_messages(d), (unsigned int)FDS_AT_ONCE);
}

/* Is there room for those in the part that is kept free? What is open there begins with it. */
static bool is_kept_free(const struct daemon *d)
{
	const unsigned int from = (unsigned int)fds_for_messages(d);
	unsigned int spare = d->fd_limit - from - at_once(d), fd;

	for (fd = from; fd < d->fd_limit; fd++)
		if (fcntl((int)fd, F_GETFD) >= 0 && !spare--)
			return false;
	return true;
}

/* Anywhere: what is taken up there now was sent before. */
static bool has_room(const struct daemon *d)
{
	int fds[FDS_AT_ONCE];
	unsigned int n = 0, i;

	while (n < at_once(d)) {
		fds[n] = fcntl(d->epoll, F_DUPFD_CLOEXEC, 0);
		if (fds[n] < 0)
			break;
		n++;
	}
	for (i = 0; i < n; i++)
		close(fds[i]);
	return n == at_once(d);
}

/* Is the part in use that is kept free? One look at a number while it never was. */
static bool is_in_use(struct daemon *d)
{
	if (reaper_highest(d->reaper) < fds_for_messages(d))
		return false;
	if (!is_kept_free(d))
		return true;
	reaper_forget_highest(d->reaper);
	return false;
}

/* Of what is only looked at descriptors are taken only if there is room for them here: none. */
static bool has_fds(int sock, struct iovec *iov, size_t n)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };

	return recvmsg(sock, &msg, MSG_PEEK | MSG_DONTWAIT) >= 0 && msg.msg_flags & MSG_CTRUNC;
}

bool fds_lack_room(struct daemon *d, int sock, struct iovec *iov, size_t n)
{
	if (!is_in_use(d) || !has_fds(sock, iov, n) || has_room(d))
		return false;
	log_about((uid_t)-1, "no descriptors left for what clients send (limit %u)", d->fd_limit);
	return true;
}

static struct daemon *daemon_of_ops(const struct lane_ops *ops)
{
	return container_of((struct lane_ops *)ops, struct daemon, lane_ops);
}

/* What is closed while something is received came with it. */
static void op_close(const struct lane_ops *ops, int fd)
{
	struct daemon *d = daemon_of_ops(ops);

	if (d->receiving >= 0)
		reaper_note_same(d->reaper, fd, d->receiving);
	reaper_close(d->reaper, fd);
}

static ssize_t op_recv(const struct lane_ops *ops, int sock, void *buf, size_t size, int *fds,
		       unsigned int *ret_n_fds, bool *ret_short)
{
	struct iovec iov = { .iov_base = buf, .iov_len = size };
	struct daemon *d = daemon_of_ops(ops);
	const int limit = fds_for_messages(d);
	unsigned int i;
	bool fits = true;
	ssize_t n;

	if (fds_lack_room(d, sock, &iov, 1))
		return -EMSGSIZE;
	d->receiving = sock;
	n = lane_linux_ops.recv(ops, sock, buf, size, fds, ret_n_fds, ret_short);
	d->receiving = -1;
	for (i = 0; n >= 0 && i < *ret_n_fds; i++) {
		reaper_note_same(d->reaper, fds[i], sock);
		fits &= fds[i] < limit;
	}
	if (fits)
		return n;
	log_about((uid_t)-1, "no descriptors left for what clients send (limit %u)", d->fd_limit);
	for (i = 0; i < *ret_n_fds; i++)
		reaper_close(d->reaper, fds[i]);
	return -EMSGSIZE;
}

void fds_init(struct daemon *d)
{
	d->receiving = -1;
	d->lane_ops = lane_linux_ops;
	d->lane_ops.close = op_close;
	d->lane_ops.hang_up = op_close;
	d->lane_ops.recv = op_recv;
}
