// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Closing files of others (lib/closer.h), and sockets in which some lie. There is no thread for it
 * while there is nothing to close. Who files come from is told by the socket they came through.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../closer.h"
#include "user.h"

static struct closer closer;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	closer_before_fork(&closer);
}

static void after_fork(void)
{
	closer_after_fork(&closer);
}

static void in_child(void)
{
	closer_in_child(&closer);
}

static void begin(void)
{
	closer_init(&closer, 0, false);
	pthread_atfork(before_fork, after_fork, in_child);
}

/* Memory and pipes never wait; and what the other files are cannot be asked without waiting. */
static bool may_wait(int fd)
{
	return fcntl(fd, F_GET_SEALS) < 0 && fcntl(fd, F_GETPIPE_SZ) < 0;
}

void user_drop_fd(int fd)
{
	if (fd < 0)
		return;
	pthread_once(&once, begin);
	if (!may_wait(fd) || !closer_close(&closer, fd))
		close(fd);
}

void user_drop_resume(void)
{
	pthread_once(&once, begin);
	closer_resume(&closer);
}

static ssize_t op_recv(const struct lane_ops *ops, int sock, void *buf, size_t size, int *fds,
		       unsigned int *ret_n_fds, bool *ret_short)
{
	ssize_t n = lane_linux_ops.recv(ops, sock, buf, size, fds, ret_n_fds, ret_short);
	unsigned int i;

	if (n < 0 || !*ret_n_fds)
		return n;
	pthread_once(&once, begin);
	for (i = 0; i < *ret_n_fds; i++)
		closer_note(&closer, fds[i], (u32)sock + 1);
	return n;
}

static void op_close(const struct lane_ops *ops, int fd)
{
	user_drop_fd(fd);
}

/*
 * At its end a socket reads as an empty message does, which may have files, and others behind it.
 * But each message has credentials, for who asks. Looking takes no file that it has no room for.
 */
static bool has_message(int sock)
{
	char control[CMSG_SPACE(sizeof(struct ucred))] __attribute__((aligned(8)));
	struct msghdr msg = { .msg_control = control, .msg_controllen = sizeof(control) };
	int one = 1;

	return setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) == 0 &&
	       recvmsg(sock, &msg, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) >= 0 &&
	       (msg.msg_controllen || msg.msg_flags & MSG_CTRUNC);
}

/*
 * Files that lie in the socket unread would be closed with it. Nothing can be put there any more
 * once it is shut for reading.
 */
static void op_hang_up(const struct lane_ops *ops, int sock)
{
	int fds[LANE_SOCK_FDS_MAX];
	unsigned int n, i;
	bool short_of;
	ssize_t r;
	char byte;

	shutdown(sock, SHUT_RD);
	do {
		n = 0;
		r = ops->recv(ops, sock, &byte, sizeof(byte), fds, &n, &short_of);
		for (i = 0; i < n; i++)
			user_drop_fd(fds[i]);
	} while (r > 0 || r == -EMSGSIZE || (r == 0 && has_message(sock)));
	close(sock);
}

struct lane_ops user_lane_ops(void)
{
	struct lane_ops ops = lane_linux_ops;

	ops.recv = op_recv;
	ops.close = op_close;
	ops.hang_up = op_hang_up;
	return ops;
}
