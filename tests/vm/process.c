// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What processes do with the descriptor of a connection: fork, exec, pass it on, share it
 * between threads, close it while it is in use, and die.
 */
#include "bus.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define KILLS	 60
#define THREADS	 4
#define MESSAGES 500

static const struct kdbus_pids *pids_of(const struct kdbus_msg *msg)
{
	return payload(msg_item(msg, KDBUS_ITEM_PIDS));
}

static void wait_readable(struct peer *peer)
{
	struct pollfd p = { .fd = peer->fd, .events = POLLIN };

	EQ(poll(&p, 1, -1), 1);
}

static bool is_there(struct peer *asker, uint64_t id)
{
	struct kdbus_cmd_info c = { .size = sizeof(c), .id = id };
	int r = cmd(asker->fd, KDBUS_CMD_CONN_INFO, &c);

	if (r) {
		EQ(r, -ENXIO);
		return false;
	}
	EQ(free_slice(asker, c.offset), 0);
	return true;
}

/* The last close of a file may be done by somebody else, a little later. */
static void wait_gone(struct peer *asker, uint64_t id)
{
	while (is_there(asker, id))
		usleep(1000);
}

/* A request that is blocked in the kernel, without a deadline. */
static int call_sync(struct peer *peer, uint64_t dst, uint64_t cookie, uint64_t *ret_offset)
{
	struct kdbus_msg_info reply;
	struct buf m;
	int r;

	msg_buf(&m, dst, cookie);
	m.msg.flags = KDBUS_MSG_EXPECT_REPLY;
	m.msg.timeout_ns = NO_REPLY;
	r = send_msg(peer, &m, KDBUS_SEND_SYNC_REPLY, &reply);
	*ret_offset = reply.offset;
	return r;
}

/* ---- fork, exec, passing on ---- */

struct two {
	struct peer *a;
	struct peer *b;
};

static void talk_in_child(void *data)
{
	struct two *two = data;

	EQ(recv_cookie(two->a), 1);
	EQ(send_plain(two->a, two->b->id, 2), 0);
}

static void child_shares(void)
{
	const struct kdbus_msg *msg;
	struct peer a, b;
	struct two two = { &a, &b };
	pid_t pid;

	hello(&a);
	hello(&b);
	EQ(send_plain(&b, a.id, 1), 0);
	pid = spawn(0, talk_in_child, &two);
	join(pid);
	EQ(recv_msg(&b, &msg), 0);
	/* who sends is who calls, not who has connected */
	EQ(msg->src_id, a.id);
	EQ(pids_of(msg)->pid, pid);
	EQ(pids_of(msg)->ppid, getpid());
	done(&b, msg);
	EQ(send_plain(&a, b.id, 3), 0);
	EQ(recv_cookie(&b), 3);
}

static void close_in_child(void *data)
{
	struct two *two = data;

	bye(two->a);
}

static void child_closes(void)
{
	struct peer a, b;
	struct two two = { &a, &b };

	hello(&a);
	hello(&b);
	in_child(0, close_in_child, &two);
	EQ(send_plain(&b, a.id, 1), 0);
	EQ(recv_cookie(&a), 1);
}

static void exec_with(void *data)
{
	struct two *two = data;
	char fd[16], dst[32];

	snprintf(fd, sizeof(fd), "%d", two->a->fd);
	snprintf(dst, sizeof(dst), "%llu", (unsigned long long)two->b->id);
	execl("/proc/self/exe", "process-after-exec", fd, dst, (char *)NULL);
	_exit(1);
}

/* What runs after exec: with a descriptor, and who is waiting for a message. */
static int after_exec(char **argv)
{
	struct peer peer = { .fd = atoi(argv[1]) };
	uint64_t dst = strtoull(argv[2], NULL, 10);

	if (fcntl(peer.fd, F_GETFD) < 0)
		return errno == EBADF ? 10 : 11;
	return send_plain(&peer, dst, 9) ? 12 : 0;
}

static void survives_exec(void)
{
	const struct kdbus_msg *msg;
	struct peer a, b;
	struct two two = { &a, &b };

	hello(&a);
	hello(&b);
	EQ(fcntl(a.fd, F_SETFD, 0), 0);
	in_child(0, exec_with, &two);
	EQ(recv_msg(&b, &msg), 0);
	EQ(msg->cookie, 9);
	EQ(strcmp(payload(msg_item(msg, KDBUS_ITEM_CMDLINE)), "process-after-exec"), 0);
}

static void exec_closes(void)
{
	struct peer a, b;
	struct two two = { &a, &b };
	uint64_t id;
	int status;
	pid_t pid;

	hello(&a);
	hello(&b);
	id = a.id;
	pid = spawn(0, exec_with, &two);
	bye(&a);
	EQ(waitpid(pid, &status, 0), pid);
	EQ(WEXITSTATUS(status), 10);
	wait_gone(&b, id);
}

/* vfork borrows memory, not the table of descriptors */
static void after_vfork(void)
{
	struct peer a, b;
	int status;
	pid_t pid;

	hello(&a);
	hello(&b);
	/* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork) */
	pid = vfork();
	if (!pid) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Vfork) */
		close(a.fd);
		_exit(0);
	}
	EQ(waitpid(pid, &status, 0), pid);
	EQ(status, 0);
	EQ(send_plain(&b, a.id, 4), 0);
	EQ(recv_cookie(&a), 4);
}

static void shared_table(void)
{
	struct peer a, b;
	int status;
	pid_t pid;

	hello(&a);
	hello(&b);
	fflush(stdout);
	pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, NULL, NULL, 0);
	if (!pid) {
		close(a.fd);
		_exit(0);
	}
	EQ(waitpid(pid, &status, 0), pid);
	EQ(status, 0);
	EQ(send_plain(&a, b.id, 1), -EBADF);
	wait_gone(&b, a.id);
}

static void pass_fd(int sock, int fd)
{
	char control[CMSG_SPACE(sizeof(fd))] = { 0 }, byte = 0;
	struct iovec vec = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &vec,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	EQ(sendmsg(sock, &msg, 0), 1);
}

static int take_fd(int sock)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec vec = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &vec,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	const struct cmsghdr *c;

	EQ(recvmsg(sock, &msg, MSG_CMSG_CLOEXEC), 1);
	c = CMSG_FIRSTHDR(&msg);
	CHECK(c);
	return *(const int *)CMSG_DATA(c);
}

/* The connection moves: who made it has closed it before it is used. */
static void connect_and_pass(void *data)
{
	struct peer peer;

	hello(&peer);
	pass_fd(*(int *)data, peer.fd);
	bye(&peer);
}

static void moves_on(void)
{
	struct peer moved = { 0 }, b;
	const struct kdbus_msg *msg;
	int pair[2];

	EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	hello(&b);
	in_child(0, connect_and_pass, &pair[1]);
	moved.fd = take_fd(pair[0]);
	moved.pool = mmap(NULL, POOL, PROT_READ, MAP_SHARED, moved.fd, 0);
	CHECK(moved.pool != MAP_FAILED);
	EQ(send_plain(&moved, b.id, 6), 0);
	EQ(recv_msg(&b, &msg), 0);
	EQ(pids_of(msg)->pid, getpid());
	EQ(send_plain(&b, msg->src_id, 7), 0);
	EQ(recv_cookie(&moved), 7);
	moved.id = msg->src_id;
	bye(&moved);
	wait_gone(&b, moved.id);
}

/* ---- threads ---- */

struct shared {
	struct peer *to;
	uint8_t *seen;
	unsigned int *left;
};

static void *take_some(void *data)
{
	struct shared *shared = data;
	const struct kdbus_msg *msg;

	while (__atomic_load_n(shared->left, __ATOMIC_SEQ_CST)) {
		if (recv_msg(shared->to, &msg))
			continue;
		__atomic_add_fetch(&shared->seen[msg->cookie], 1, __ATOMIC_SEQ_CST);
		done(shared->to, msg);
		__atomic_sub_fetch(shared->left, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void threads_share(void)
{
	static uint8_t seen[MESSAGES];
	unsigned int left = MESSAGES;
	pthread_t thread[THREADS];
	struct peer a, b;
	struct shared shared = { &b, seen, &left };
	int r;

	hello(&a);
	hello(&b);
	for (int i = 0; i < THREADS; i++)
		EQ(pthread_create(&thread[i], NULL, take_some, &shared), 0);
	for (int i = 0; i < MESSAGES; i++) {
		do {
			r = send_plain(&a, b.id, i);
		} while (r == -ENOBUFS);
		EQ(r, 0);
	}
	for (int i = 0; i < THREADS; i++)
		EQ(pthread_join(thread[i], NULL), 0);
	for (int i = 0; i < MESSAGES; i++)
		EQ(seen[i], 1);
}

struct call {
	struct peer peer;
	uint64_t dst;
	int result;
	uint64_t offset;
};

static void *call_in_thread(void *data)
{
	struct call *call = data;

	call->result = call_sync(&call->peer, call->dst, 5, &call->offset);
	return NULL;
}

/* The call holds the file: it ends as if nobody had closed the descriptor, and then all is over. */
static void closed_in_a_call(void)
{
	struct call call = { .result = 1 };
	pthread_t thread;
	struct peer b;

	hello(&call.peer);
	hello(&b);
	call.dst = b.id;
	EQ(pthread_create(&thread, NULL, call_in_thread, &call), 0);
	wait_readable(&b);
	EQ(recv_cookie(&b), 5);
	EQ(close(call.peer.fd), 0);
	EQ(send_plain(&b, call.peer.id, 1), 0);
	EQ(send_reply(&b, call.peer.id, 5), 0);
	EQ(pthread_join(thread, NULL), 0);
	EQ(call.result, 0);
	/* the mapping holds the pool, not the connection */
	wait_gone(&b, call.peer.id);
	EQ(((const struct kdbus_msg *)(call.peer.pool + call.offset))->cookie_reply, 5);
}

static void *poll_in_thread(void *data)
{
	struct pollfd p = { .fd = *(int *)data, .events = POLLIN };

	return (void *)(intptr_t)(poll(&p, 1, -1) == 1 ? p.revents : -1);
}

/* All threads but one sleep: for that there is no event. */
static void wait_asleep(pid_t tid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	while (state != 'S') {
		f = fopen(path, "re");
		CHECK(f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1);
		fclose(f);
	}
}

struct poller {
	int fd;
	volatile pid_t tid;
};

static void *named_poll(void *data)
{
	struct poller *poller = data;
	int fd = poller->fd;

	poller->tid = gettid();
	return poll_in_thread(&fd);
}

static void closed_in_poll(void)
{
	struct poller poller = { 0 };
	struct peer a, b;
	pthread_t thread;
	void *events;

	hello(&a);
	hello(&b);
	poller.fd = a.fd;
	EQ(pthread_create(&thread, NULL, named_poll, &poller), 0);
	while (!poller.tid)
		usleep(100);
	wait_asleep(poller.tid);
	EQ(close(a.fd), 0);
	EQ(send_plain(&b, a.id, 1), 0);
	EQ(pthread_join(thread, &events), 0);
	/* it looks its descriptors up again when it wakes up */
	EQ((intptr_t)events, POLLNVAL);
	wait_gone(&b, a.id);
}

/* ---- death ---- */

static void call_for_ever(void *data)
{
	struct two *two = data;
	struct peer peer;
	uint64_t offset;

	hello(&peer);
	call_sync(&peer, two->b->id, 5, &offset);
	_exit(1);
}

static void reap(pid_t pid)
{
	int status;

	EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Blocked in a call that is in the queue, has been taken, or is being answered */
static void killed_in_a_call(void)
{
	const struct kdbus_msg *msg;
	struct peer b;
	struct two two = { NULL, &b };
	uint64_t from;
	pid_t pid;
	int r;

	hello(&b);
	for (int i = 0; i < KILLS; i++) {
		pid = spawn(0, call_for_ever, &two);
		wait_readable(&b);
		if (i % 3 == 0)
			EQ(kill(pid, SIGKILL), 0);
		EQ(recv_msg(&b, &msg), 0);
		from = msg->src_id;
		done(&b, msg);
		if (i % 3 == 1)
			EQ(kill(pid, SIGKILL), 0);
		else if (i % 3 == 2)
			kill(pid, SIGKILL);
		r = send_reply(&b, from, 5);
		CHECK(!r || r == -ENXIO || r == -EBADSLT || r == -ECONNRESET || r == -EPIPE);
		reap(pid);
		wait_gone(&b, from);
		drain(&b);
	}
	EQ(send_plain(&b, b.id, 3), 0);
	EQ(recv_cookie(&b), 3);
}

static void busy_for_ever(void *data)
{
	struct two *two = data;
	const struct kdbus_msg *msg;
	struct peer peer;
	struct buf m;

	hello(&peer);
	acquire(&peer, "a.killed", KDBUS_NAME_QUEUE, NULL);
	match_all(&peer);
	for (;;) {
		msg_buf(&m, two->b->id, 1);
		put(&m, KDBUS_ITEM_FDS, &peer.pool, sizeof(int));
		send_msg(&peer, &m, 0, NULL);
		send_plain(&peer, peer.id, 2);
		send_plain(&peer, two->b->id, 3);
		send_call(&peer, two->b->id, 4, NO_REPLY);
		if (!recv_msg(&peer, &msg))
			done(&peer, msg);
	}
}

/* At any instruction: after as many messages as chance will have it. */
static void killed_at_any_time(void)
{
	unsigned int seed = 1, n;
	struct peer b;
	struct two two = { NULL, &b };
	uint64_t from = 0;
	pid_t pid;

	hello(&b);
	for (int i = 0; i < KILLS; i++) {
		pid = spawn(0, busy_for_ever, &two);
		seed = seed * 1103515245 + 12345;
		n = 1 + (seed >> 16) % 40;
		while (n) {
			const struct kdbus_msg *msg;

			if (recv_msg(&b, &msg))
				continue;
			if (msg->src_id != KDBUS_SRC_ID_KERNEL) {
				from = msg->src_id;
				n--;
			}
			done(&b, msg);
		}
		EQ(kill(pid, SIGKILL), 0);
		reap(pid);
		wait_gone(&b, from);
		drain(&b);
	}
	EQ(acquire(&b, "a.killed", 0, NULL), 0);
	EQ(send_name(&b, "a.killed", 8), 0);
	EQ(recv_cookie(&b), 8);
}

/* ---- what others may know ---- */

static void receive_as_nobody(void *data)
{
	int *pair = data;
	const struct kdbus_msg *msg;
	struct peer peer;
	char path[64];

	hello(&peer);
	EQ(write(pair[1], &peer.id, sizeof(peer.id)), (ssize_t)sizeof(peer.id));
	wait_readable(&peer);
	EQ(recv_msg(&peer, &msg), 0);
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pids_of(msg)->pid);
	CHECK(open(path, O_RDONLY) < 0 && errno == EACCES);
	CHECK(payload_size(msg_item(msg, KDBUS_ITEM_CMDLINE)) > 1);
	CHECK(payload_size(msg_item(msg, KDBUS_ITEM_EXE)) > 1);
	CHECK(msg_item(msg, KDBUS_ITEM_CAPS));
}

/* The kernel vouches for it: nobody needs to be allowed to look into the sender. */
static void without_ptrace(void)
{
	struct peer a;
	uint64_t id;
	int pair[2];
	pid_t pid;

	EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	hello(&a);
	pid = spawn(2000, receive_as_nobody, pair);
	EQ(read(pair[0], &id, sizeof(id)), (ssize_t)sizeof(id));
	EQ(prctl(PR_SET_DUMPABLE, 0), 0);
	EQ(send_plain(&a, id, 1), 0);
	join(pid);
}

/* ---- limits of descriptors ---- */

/* Of three there is room for two. */
static void room_for_some(void)
{
	int fds[3] = { STDIN_FILENO, STDIN_FILENO, STDIN_FILENO }, next;
	const struct kdbus_msg *msg;
	struct kdbus_cmd_recv c;
	struct rlimit limit;
	struct peer a, b;
	struct buf m;
	const int *got;

	hello(&a);
	hello(&b);
	msg_buf(&m, b.id, 1);
	put(&m, KDBUS_ITEM_FDS, fds, sizeof(fds));
	EQ(send_msg(&a, &m, 0, NULL), 0);
	next = dup(STDIN_FILENO);
	close(next);
	EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = next + 2;
	EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	EQ(recv_flags(&b, 0, 0, &c), 0);
	EQ(c.msg.return_flags, KDBUS_RECV_RETURN_INCOMPLETE_FDS);
	msg = (const void *)(b.pool + c.msg.offset);
	got = payload(msg_item(msg, KDBUS_ITEM_FDS));
	EQ(got[0], next);
	EQ(got[1], next + 1);
	EQ(got[2], -1);
	EQ(fcntl(got[0], F_GETFD), FD_CLOEXEC);
}

static const struct test tests[] = {
	{ "a child uses the connection, as itself (§8.2)", child_shares },
	{ "a child closes its descriptor", child_closes },
	{ "a descriptor that survives exec", survives_exec },
	{ "a descriptor that exec closes", exec_closes },
	{ "vfork", after_vfork },
	{ "a table of descriptors that is shared", shared_table },
	{ "a connection is passed to another process", moves_on },
	{ "threads share a connection, each message goes to one", threads_share },
	{ "closed while a call waits (§7.8)", closed_in_a_call },
	{ "closed while somebody polls (§7.10)", closed_in_poll },
	{ "killed in a synchronous call (§7.8)", killed_in_a_call },
	{ "killed at any time", killed_at_any_time },
	{ "metadata needs no right to look into the sender (§8.2)", without_ptrace },
	{ "room for some of the descriptors (§7.11)", room_for_some },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return argc == 3 ? after_exec(argv) : run_tests(tests);
}
