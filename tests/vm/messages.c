// SPDX-License-Identifier: LGPL-2.1-or-later
/* Messages, quota, descriptors, time: §15.5. */
#include "bus.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

static void message_basic(void)
{
	const struct kdbus_msg *msg;
	struct peer a, b;
	struct buf m;

	hello(&a);
	hello(&b);
	match_all(&a);
	match_all(&b);
	EQ(broadcast(&a, 5), 0);
	EQ(recv_cookie(&a), 5);
	EQ(recv_cookie(&b), 5);
	EQ(send_call(&a, b.id, 6, 0), -EINVAL);
	EQ(send_reply(&a, b.id, 4711), -EBADSLT);
	EQ(send_plain(&a, 4711, 1), -ENXIO);
	msg_buf(&m, b.id, 1);
	m.msg.src_id = b.id;
	EQ(send_msg(&a, &m, 0, NULL), -EINVAL);
	msg_buf(&m, b.id, 1);
	m.msg.payload_type = 0;
	EQ(send_msg(&a, &m, 0, NULL), -EINVAL);
	msg_buf(&m, 0, 1);
	EQ(send_msg(&a, &m, 0, NULL), -EDESTADDRREQ);
	msg_buf(&m, KDBUS_DST_ID_BROADCAST, 1);
	EQ(send_msg(&a, &m, 0, NULL), -EBADMSG);
	EQ(recv_msg(&b, &msg), -EAGAIN);
}

/* Appendix B.2, with a large vector in front: every byte is where it belongs. */
static void message_image(void)
{
	static char big[131075];
	const struct kdbus_item *item;
	const struct kdbus_msg *msg;
	const struct kdbus_vec *vec;
	struct kdbus_cmd_recv c;
	struct peer a, b;
	struct buf m;
	int n = 0;

	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 7 + 1);
	hello(&a);
	hello(&b);
	msg_buf(&m, b.id, 9);
	m.msg.priority = -3;
	put_vec(&m, big, sizeof(big));
	put_vec(&m, NULL, 5);
	put_vec(&m, "hello, world", 13);
	EQ(send_msg(&a, &m, 0, NULL), 0);
	EQ(recv_flags(&b, 0, 0, &c), 0);
	msg = (const void *)(b.pool + c.msg.offset);
	EQ(msg->src_id, a.id);
	EQ(msg->dst_id, b.id);
	EQ(msg->cookie, 9);
	EQ(msg->priority, -3);
	EQ(c.msg.msg_size % 8, 0);
	for (size_t at = sizeof(*msg); at < msg->size; at += (item->size + 7) & ~7UL) {
		item = (const void *)((const char *)msg + at);
		if (item->type != KDBUS_ITEM_PAYLOAD_OFF)
			continue;
		vec = payload(item);
		if (n == 0) {
			EQ(vec->size, sizeof(big));
			EQ(vec->offset, (msg->size + 7) & ~7UL);
			EQ(memcmp((const char *)msg + vec->offset, big, sizeof(big)), 0);
		} else if (n == 1) {
			EQ(vec->size, 5);
			EQ(vec->offset, ~0ULL);
		} else {
			EQ(vec->size, 13);
			EQ(vec->offset % 8, (sizeof(big) + 5) % 8);
			EQ(strcmp((const char *)msg + vec->offset, "hello, world"), 0);
			CHECK(vec->offset + 13 <= c.msg.msg_size);
		}
		n++;
	}
	EQ(n, 3);
	done(&b, msg);
}

static void peek_and_drop(void)
{
	struct kdbus_cmd_recv c, d;
	struct peer a, b;

	hello(&a);
	hello(&b);
	EQ(send_plain(&a, b.id, 1), 0);
	EQ(send_plain(&a, b.id, 2), 0);
	EQ(recv_flags(&b, KDBUS_RECV_PEEK, 0, &c), 0);
	EQ(free_slice(&b, c.msg.offset), 0);
	EQ(recv_flags(&b, KDBUS_RECV_PEEK, 0, &c), 0);
	EQ(recv_flags(&b, 0, 0, &d), 0);
	EQ(c.msg.offset, d.msg.offset);
	EQ(free_slice(&b, d.msg.offset), 0);
	EQ(free_slice(&b, d.msg.offset), -ENXIO);
	EQ(recv_flags(&b, KDBUS_RECV_DROP | KDBUS_RECV_USE_PRIORITY, 0, &c), -EINVAL);
	EQ(recv_flags(&b, KDBUS_RECV_DROP, 0, &c), 0);
	EQ(c.msg.offset, POOL);
	EQ(recv_flags(&b, 0, 0, &c), -EAGAIN);
	EQ(c.msg.offset, POOL);
}

static int64_t recv_priority(struct peer *peer, int64_t threshold)
{
	const struct kdbus_msg *msg;
	struct kdbus_cmd_recv c;
	int64_t priority;
	int r = recv_flags(peer, KDBUS_RECV_USE_PRIORITY, threshold, &c);

	if (r)
		return 1000000 - r;
	msg = (const void *)(peer->pool + c.msg.offset);
	priority = msg->priority;
	done(peer, msg);
	return priority;
}

static void message_prio(void)
{
	static const int64_t queued[] = { 25,  -600, 10,   -35, -100, 20,
					  -15, -800, -150, 10,	-800, -10 };
	struct peer a, b;
	struct buf m;

	hello(&a);
	hello(&b);
	for (int i = 0; i < 12; i++) {
		msg_buf(&m, b.id, i + 1);
		m.msg.priority = queued[i];
		EQ(send_msg(&a, &m, 0, NULL), 0);
	}
	EQ(recv_priority(&b, -200), -800);
	EQ(recv_priority(&b, -100), -800);
	EQ(recv_priority(&b, -400), -600);
	EQ(recv_priority(&b, -400), 1000000 + EAGAIN);
	EQ(recv_priority(&b, 10), -150);
	EQ(recv_priority(&b, 10), -100);
	EQ(recv_cookie(&b), 1);
}

static int send_size(struct peer *from, uint64_t dst, const void *data, size_t size)
{
	struct buf m;

	msg_buf(&m, dst, size);
	put_vec(&m, data, size);
	return send_msg(from, &m, 0, NULL);
}

static void quota_of_pool(void)
{
	static char data[2 << 20];
	struct peer a, a2, b;

	hello(&a);
	hello(&a2);
	hello(&b);
	EQ(send_size(&a, b.id, data, sizeof(data)), 0);
	EQ(send_size(&a, b.id, data, sizeof(data)), -ENOBUFS);
	EQ(send_size(&a2, b.id, data, 128 << 10), 0);
	EQ(send_size(&a, b.id, data, sizeof(data) + 1), -EMSGSIZE);
	EQ(recv_cookie(&b), sizeof(data));
	EQ(recv_cookie(&b), 128 << 10);
}

static void quota_of_messages(void)
{
	struct peer a, b;

	hello(&a);
	hello(&b);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 256; i++)
			EQ(send_plain(&a, b.id, i), 0);
		EQ(send_plain(&a, b.id, 256), -ENOBUFS);
		drain(&b);
	}
}

static void quota_of_calls(void)
{
	struct peer a, b[8];

	hello(&a);
	for (int i = 0; i < 8; i++)
		hello(&b[i]);
	for (int i = 0; i < 128; i++)
		EQ(send_call(&a, b[i % 8].id, i + 1, NO_REPLY), 0);
	EQ(send_call(&a, b[0].id, 1000, NO_REPLY), -EMLINK);
	EQ(recv_cookie(&b[0]), 1);
	EQ(send_reply(&b[0], a.id, 1), 0);
	EQ(send_call(&a, b[0].id, 1000, NO_REPLY), 0);
}

static void quota_of_notifications(void)
{
	struct kdbus_notify_id_change rule = { ANY, 0 };
	struct kdbus_cmd_recv c;
	struct peer a, b, c1;
	int n = 0;

	hello(&a);
	hello(&b);
	EQ(match(&a, 1, 0, KDBUS_ITEM_ID_ADD, &rule, sizeof(rule)), 0);
	EQ(match(&a, 2, 0, KDBUS_ITEM_ID_REMOVE, &rule, sizeof(rule)), 0);
	for (int i = 0; i < 128; i++) {
		hello(&c1);
		bye(&c1);
	}
	EQ(send_plain(&b, a.id, 1), 0);
	hello(&c1);
	bye(&c1);
	hello(&c1);
	EQ(recv_flags(&a, 0, 0, &c), 0);
	EQ(c.return_flags, KDBUS_RECV_RETURN_DROPPED_MSGS);
	EQ(c.dropped_msgs, 3);
	for (n = 1; !recv_flags(&a, 0, 0, &c); n++)
		EQ(c.return_flags, 0);
	EQ(n, 257);
}

static void memory_access(void)
{
	const struct kdbus_msg *msg;
	struct peer a, b;
	struct buf m;
	char *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	hello(&a);
	hello(&b);
	msg_buf(&m, b.id, 1);
	put_vec(&m, (void *)0xffffffff81000000UL, 16);
	EQ(send_msg(&a, &m, 0, NULL), -EFAULT);
	msg_buf(&m, b.id, 1);
	put_vec(&m, gone, 16);
	EQ(send_msg(&a, &m, 0, NULL), -EFAULT);
	/* who is not there is told first */
	msg_buf(&m, 4711, 1);
	put_vec(&m, gone, 16);
	EQ(send_msg(&a, &m, 0, NULL), -ENXIO);
	EQ(recv_msg(&b, &msg), -EAGAIN);
	EQ(send_plain(&a, b.id, 2), 0);
	EQ(recv_cookie(&b), 2);
}

static void timeouts(void)
{
	const struct kdbus_msg *msg;
	struct pollfd p = { .events = POLLIN };
	struct peer a, b;
	uint64_t seen = 0;

	hello(&a);
	hello(&b);
	p.fd = a.fd;
	for (int i = 1; i <= 4; i++)
		EQ(send_call(&a, b.id, i, now_ns() + i * 100000000ULL), 0);
	for (int i = 1; i <= 4; i++) {
		EQ(poll(&p, 1, -1), 1);
		EQ(recv_msg(&a, &msg), 0);
		EQ(msg->src_id, 0);
		EQ(msg->payload_type, 0);
		EQ(msg->dst_id, a.id);
		CHECK(msg_item(msg, KDBUS_ITEM_REPLY_TIMEOUT));
		seen |= 1ULL << msg->cookie_reply;
		done(&a, msg);
	}
	EQ(seen, 0x1e);
	EQ(send_reply(&b, a.id, 1), -EBADSLT);
}

static void reply_dead(void)
{
	const struct kdbus_msg *msg;
	struct kdbus_cmd_recv c;
	struct peer a, b;

	hello(&a);
	hello(&b);
	EQ(send_call(&a, b.id, 7, NO_REPLY), 0);
	EQ(send_call(&a, b.id, 8, NO_REPLY), 0);
	EQ(recv_flags(&b, KDBUS_RECV_DROP, 0, &c), 0);
	EQ(recv_msg(&a, &msg), 0);
	CHECK(msg_item(msg, KDBUS_ITEM_REPLY_DEAD));
	EQ(msg->cookie_reply, 7);
	done(&a, msg);
	bye(&b);
	EQ(recv_msg(&a, &msg), 0);
	CHECK(msg_item(msg, KDBUS_ITEM_REPLY_DEAD));
	EQ(msg->cookie_reply, 8);
	done(&a, msg);
	EQ(recv_msg(&a, &msg), -EAGAIN);
}

static int send_fds(struct peer *from, uint64_t dst, const int *fds, int n, int memfd, int memfds)
{
	struct kdbus_memfd item = { .size = 8, .fd = memfd };
	struct buf m;

	msg_buf(&m, dst, 3);
	if (dst == KDBUS_DST_ID_BROADCAST) {
		m.msg.flags = KDBUS_MSG_SIGNAL;
		put_filter(&m, NULL, 0);
	}
	if (n)
		put(&m, KDBUS_ITEM_FDS, fds, n * sizeof(int));
	for (int i = 0; i < memfds; i++)
		put(&m, KDBUS_ITEM_PAYLOAD_MEMFD, &item, sizeof(item));
	return send_msg(from, &m, 0, NULL);
}

static void close_all(const struct kdbus_msg *msg, int *ret_fds, int *ret_memfds)
{
	const struct kdbus_item *item;

	*ret_fds = *ret_memfds = 0;
	for (size_t at = sizeof(*msg); at < msg->size; at += (item->size + 7) & ~7UL) {
		item = (const void *)((const char *)msg + at);
		if (item->type == KDBUS_ITEM_FDS)
			for (size_t i = 0; i < payload_size(item) / sizeof(int); i++) {
				EQ(close(((const int *)payload(item))[i]), 0);
				++*ret_fds;
			}
		if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD) {
			EQ(close(((const struct kdbus_memfd *)payload(item))->fd), 0);
			++*ret_memfds;
		}
	}
}

static void refused_fds(void)
{
	struct peer a, b;
	int sock[2], plain, sealed = sealed_memfd("12345678", 8), one[1], path;

	hello(&a);
	hello(&b);
	EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sock), 0);
	EQ(send_fds(&a, b.id, &a.fd, 1, -1, 0), -EOPNOTSUPP);
	EQ(send_fds(&a, b.id, &bus_fd, 1, -1, 0), -EOPNOTSUPP);
	EQ(send_fds(&a, b.id, sock, 1, -1, 0), -EOPNOTSUPP);
	one[0] = 900;
	EQ(send_fds(&a, b.id, one, 1, -1, 0), -EBADF);
	path = open(bus_path, O_PATH);
	EQ(send_fds(&a, b.id, &path, 1, -1, 0), 0);
	drain(&b);
	plain = memfd_create("plain", MFD_ALLOW_SEALING);
	EQ(write(plain, "12345678", 8), 8);
	EQ(send_fds(&a, b.id, NULL, 0, plain, 1), -ETXTBSY);
	EQ(send_fds(&a, b.id, NULL, 0, 0, 1), -EMEDIUMTYPE);
	EQ(send_fds(&a, b.id, NULL, 0, 900, 1), -EBADF);
	one[0] = sealed_memfd("1234", 4);
	EQ(send_fds(&a, b.id, NULL, 0, one[0], 1), -EFAULT);
	EQ(send_fds(&a, b.id, NULL, 0, sealed, 17), -E2BIG);
	EQ(send_fds(&a, KDBUS_DST_ID_BROADCAST, &sealed, 1, -1, 0), -ENOTUNIQ);
	EQ(send_fds(&a, KDBUS_DST_ID_BROADCAST, NULL, 0, sealed, 1), 0);
}

static void fd_limits(void)
{
	const struct kdbus_msg *msg;
	struct peer a, b, c;
	int fds[17], sealed = sealed_memfd("12345678", 8), n, memfds;

	hello(&a);
	hello(&b);
	hello_at(&c, bus_path, 0);
	for (int i = 0; i < 17; i++)
		fds[i] = sealed;
	EQ(send_fds(&a, b.id, fds, 17, -1, 0), -EMFILE);
	EQ(send_fds(&a, b.id, fds, 16, sealed, 16), 0);
	EQ(send_fds(&a, b.id, fds, 16, -1, 0), -EMFILE);
	EQ(send_fds(&a, b.id, NULL, 0, sealed, 1), 0);
	EQ(recv_msg(&b, &msg), 0);
	close_all(msg, &n, &memfds);
	EQ(n, 16);
	EQ(memfds, 16);
	done(&b, msg);
	drain(&b);
	EQ(send_fds(&a, c.id, fds, 1, -1, 0), -ECOMM);
	EQ(send_fds(&a, c.id, NULL, 0, sealed, 1), 0);
	EQ(recv_msg(&c, &msg), 0);
	close_all(msg, &n, &memfds);
	EQ(memfds, 1);
}

static void fds_travel(void)
{
	const struct kdbus_memfd *memfd;
	const struct kdbus_msg *msg;
	struct peer a, b;
	char text[16] = "";
	int pipe_fd[2], got, sealed = sealed_memfd("12345678", 8);

	hello(&a);
	hello(&b);
	EQ(pipe(pipe_fd), 0);
	EQ(send_fds(&a, b.id, &pipe_fd[0], 1, sealed, 1), 0);
	close(pipe_fd[0]);
	close(sealed);
	EQ(recv_msg(&b, &msg), 0);
	got = *(const int *)payload(msg_item(msg, KDBUS_ITEM_FDS));
	CHECK(got >= 0);
	EQ(fcntl(got, F_GETFD), FD_CLOEXEC);
	EQ(write(pipe_fd[1], "data", 5), 5);
	EQ(read(got, text, sizeof(text)), 5);
	EQ(strcmp(text, "data"), 0);
	memfd = payload(msg_item(msg, KDBUS_ITEM_PAYLOAD_MEMFD));
	EQ(pread(memfd->fd, text, 8, 0), 8);
	EQ(memcmp(text, "12345678", 8), 0);
	/* queued and never read: the receiver's end gives them back */
	EQ(send_fds(&a, b.id, &pipe_fd[1], 1, -1, 0), 0);
	close(pipe_fd[1]);
	bye(&b);
	EQ(read(got, text, sizeof(text)), 0);
}

static void policy_free_signal(void)
{
	struct peer a, b;
	struct buf m;

	hello(&a);
	hello(&b);
	msg_buf(&m, b.id, 4);
	m.msg.flags = KDBUS_MSG_SIGNAL;
	put_filter(&m, NULL, 0);
	EQ(send_msg(&a, &m, 0, NULL), 0);
	CHECK(!readable(b.fd));
	match_all(&b);
	EQ(send_msg(&a, &m, 0, NULL), 0);
	EQ(recv_cookie(&b), 4);
}

static const struct test tests[] = {
	{ "message-basic (§15.5)", message_basic },
	{ "image of a message (§7.3)", message_image },
	{ "peek and drop (§7.10)", peek_and_drop },
	{ "message-prio (§15.5)", message_prio },
	{ "message-quota: pool (§15.5)", quota_of_pool },
	{ "message-quota: count (§15.5)", quota_of_messages },
	{ "message-quota: requests (§15.5)", quota_of_calls },
	{ "message-quota: kernel (§15.5)", quota_of_notifications },
	{ "memory-access (§15.5)", memory_access },
	{ "timeout (§15.5)", timeouts },
	{ "calls that find no answer (§7.7)", reply_dead },
	{ "fd-passing: refused (§15.5)", refused_fds },
	{ "fd-passing: limits (§15.5)", fd_limits },
	{ "fd-passing: delivered (§15.5)", fds_travel },
	{ "unicast signal (§7.6)", policy_free_signal },
	{ NULL, NULL },
};

int main(void)
{
	return run_tests(tests);
}
