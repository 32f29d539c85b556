// SPDX-License-Identifier: LGPL-2.1-or-later
/* Synchronous calls: §15.6. */
#include "bus.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

struct call {
	struct peer *from;
	uint64_t dst;
	uint64_t cookie;
	uint64_t timeout;
	int cancel;
	int expect;
};

/* Make the call; what it returns must be as expected. */
static void make_call(void *data)
{
	const struct call *call = data;
	struct kdbus_cmd_send *c;
	struct buf m, s;
	int r;

	msg_buf(&m, call->dst, call->cookie);
	m.msg.flags = KDBUS_MSG_EXPECT_REPLY;
	m.msg.timeout_ns = call->timeout ? call->timeout : NO_REPLY;
	start(&s, sizeof(s.send));
	c = &s.send;
	c->flags = KDBUS_SEND_SYNC_REPLY;
	c->msg_address = (uintptr_t)&m;
	if (call->cancel)
		put(&s, KDBUS_ITEM_CANCEL_FD, &call->cancel, sizeof(int));
	r = cmd(call->from->fd, KDBUS_CMD_SEND, &s);
	EQ(r, call->expect);
	if (!r) {
		const struct kdbus_msg *msg = (const void *)(call->from->pool + c->reply.offset);

		EQ(msg->cookie_reply, call->cookie);
		done(call->from, msg);
	}
}

static const struct kdbus_msg *wait_msg(struct peer *peer)
{
	struct pollfd p = { .fd = peer->fd, .events = POLLIN };
	const struct kdbus_msg *msg;

	EQ(poll(&p, 1, -1), 1);
	EQ(recv_msg(peer, &msg), 0);
	return msg;
}

static void sync_reply(void)
{
	struct peer a, b;
	struct call call = { .from = &a, .cookie = 5 };
	pid_t pid;

	hello(&a);
	hello(&b);
	call.dst = b.id;
	pid = spawn(0, make_call, &call);
	done(&b, wait_msg(&b));
	EQ(send_reply(&b, a.id, 4), -EBADSLT);
	EQ(send_reply(&b, a.id, 5), 0);
	join(pid);
	EQ(send_reply(&b, a.id, 5), -EBADSLT);
	/* the reply never went through the queue */
	CHECK(!readable(a.fd));
}

static void on_signal(int signal)
{
	(void)signal;
}

/* The restarted call goes on with the deadline it had, and is sent once. */
static void interrupted_call(void *data)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	EQ(sigaction(SIGINT, &action, NULL), 0);
	make_call(data);
}

static void sync_restart(void)
{
	const struct kdbus_msg *msg;
	struct peer a, b;
	struct call call = { .from = &a, .cookie = 5 };
	pid_t pid;

	hello(&a);
	hello(&b);
	call.dst = b.id;
	pid = spawn(0, interrupted_call, &call);
	done(&b, wait_msg(&b));
	for (int i = 0; i < 20; i++) {
		EQ(kill(pid, SIGINT), 0);
		usleep(5000);
	}
	EQ(recv_msg(&b, &msg), -EAGAIN);
	EQ(send_reply(&b, a.id, 5), 0);
	join(pid);
}

/* A reply that comes while the caller is in its handler waits for the restart. */
static struct peer *replier;
static uint64_t reply_to;

static void reply_in_handler(int signal)
{
	(void)signal;
	EQ(send_reply(replier, reply_to, 5), 0);
}

static void call_answered_by_handler(void *data)
{
	struct sigaction action = { .sa_handler = reply_in_handler, .sa_flags = SA_RESTART };

	EQ(sigaction(SIGINT, &action, NULL), 0);
	make_call(data);
}

static void sync_answer_between(void)
{
	const struct kdbus_msg *msg;
	struct peer a, b;
	struct call call = { .from = &a, .cookie = 5 };
	pid_t pid;

	hello(&a);
	hello(&b);
	call.dst = b.id;
	replier = &b;
	reply_to = a.id;
	pid = spawn(0, call_answered_by_handler, &call);
	done(&b, wait_msg(&b));
	EQ(kill(pid, SIGINT), 0);
	join(pid);
	EQ(recv_msg(&b, &msg), -EAGAIN);
}

static void sync_eintr(void)
{
	struct peer a, b;
	struct call call = { .from = &a, .cookie = 5, .expect = -EINTR };
	struct sigaction action = { .sa_handler = on_signal };
	pid_t pid;

	hello(&a);
	hello(&b);
	call.dst = b.id;
	EQ(sigaction(SIGINT, &action, NULL), 0);
	pid = spawn(0, make_call, &call);
	done(&b, wait_msg(&b));
	EQ(kill(pid, SIGINT), 0);
	join(pid);
}

static void sync_timeout(void)
{
	struct peer a, b;
	struct call call = { .from = &a, .cookie = 5, .expect = -ETIMEDOUT };

	hello(&a);
	hello(&b);
	call.dst = b.id;
	/* a machine that is slow may find the deadline passed before it has sent */
	for (uint64_t ns = 50000000; !readable(b.fd); ns *= 2) {
		call.timeout = now_ns() + ns;
		make_call(&call);
	}
	done(&b, wait_msg(&b));
	EQ(send_reply(&b, a.id, 5), -EBADSLT);
	/* too late from the start: nothing is sent */
	make_call(&call);
	CHECK(!readable(b.fd));
}

static void sync_dead(void)
{
	struct kdbus_cmd_recv c;
	struct kdbus_cmd bye_cmd = { .size = sizeof(bye_cmd) };
	struct peer a, b;
	struct call call = { .from = &a, .cookie = 5, .expect = -EPIPE };
	pid_t pid;

	hello(&a);
	hello(&b);
	call.dst = b.id;
	pid = spawn(0, make_call, &call);
	while (recv_flags(&b, KDBUS_RECV_DROP, 0, &c))
		usleep(1000);
	join(pid);
	pid = spawn(0, make_call, &call);
	done(&b, wait_msg(&b));
	EQ(cmd(b.fd, KDBUS_CMD_BYEBYE, &bye_cmd), 0);
	join(pid);
}

static void sync_byebye(void)
{
	struct kdbus_cmd bye_cmd = { .size = sizeof(bye_cmd) };
	struct peer a, b;
	struct call call = { .from = &a, .cookie = 5, .expect = -ECONNRESET };
	pid_t pid;

	hello(&a);
	hello(&b);
	call.dst = b.id;
	pid = spawn(0, make_call, &call);
	done(&b, wait_msg(&b));
	EQ(cmd(a.fd, KDBUS_CMD_BYEBYE, &bye_cmd), 0);
	join(pid);
}

static void sync_cancel(void)
{
	struct peer a, b;
	struct call call = { .from = &a, .cookie = 5, .expect = -ECANCELED };
	uint64_t one = 1;
	pid_t pid;

	hello(&a);
	hello(&b);
	call.dst = b.id;
	call.cancel = eventfd(0, 0);
	pid = spawn(0, make_call, &call);
	done(&b, wait_msg(&b));
	EQ(write(call.cancel, &one, 8), 8);
	join(pid);
	EQ(send_reply(&b, a.id, 5), -EBADSLT);
	call.cancel = eventfd(0, 0);
	call.expect = 0;
	pid = spawn(0, make_call, &call);
	done(&b, wait_msg(&b));
	EQ(send_reply(&b, a.id, 5), 0);
	join(pid);
	call.cancel = 900;
	call.expect = -EBADF;
	make_call(&call);
}

static void sync_fds(void)
{
	struct peer a, b;
	struct call call = { .from = &a, .cookie = 5, .expect = -EREMOTEIO };
	int one[1] = { 0 };
	struct buf m;
	pid_t pid;

	hello_at(&a, bus_path, 0);
	hello(&b);
	call.dst = b.id;
	pid = spawn(0, make_call, &call);
	done(&b, wait_msg(&b));
	msg_buf(&m, a.id, 1);
	m.msg.cookie_reply = 5;
	put(&m, KDBUS_ITEM_FDS, &b.fd, sizeof(int));
	EQ(send_msg(&b, &m, 0, NULL), -EOPNOTSUPP);
	msg_buf(&m, a.id, 1);
	m.msg.cookie_reply = 5;
	put(&m, KDBUS_ITEM_FDS, one, sizeof(int));
	EQ(send_msg(&b, &m, 0, NULL), -ECOMM);
	join(pid);
	EQ(send_plain(&b, a.id, 9), 0);
	EQ(recv_cookie(&a), 9);
}

static const struct test tests[] = {
	{ "sync-reply (§15.6)", sync_reply },
	{ "sync-reply: restart after signals (§7.8)", sync_restart },
	{ "reply before the restart (§7.8)", sync_answer_between },
	{ "signal without SA_RESTART (§7.8)", sync_eintr },
	{ "deadline (§7.8)", sync_timeout },
	{ "replier drops or dies (§15.6)", sync_dead },
	{ "sync-byebye (§15.6)", sync_byebye },
	{ "cancel descriptor (§15.6)", sync_cancel },
	{ "descriptors in a reply (§15.5)", sync_fds },
	{ NULL, NULL },
};

int main(void)
{
	return run_tests(tests);
}
