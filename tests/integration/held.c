// SPDX-License-Identifier: LGPL-2.1-or-later
/* A process that holds back its command line. Described in held.h. */
#include "held.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <libkdbus.h>

#define NAME	   "held"
#define PAGE	   4096
#define SOCK	   3
#define PATIENT_MS 120000 /* only ends a test that hangs */

enum what {
	HELD_READY, /* from it */
	HELD_CONNECT, /* to it: text is the bus, value whether to hold before HELLO */
	HELD_CONNECTED, /* from it: value is the id */
	HELD_HOLD, /* to it */
	HELD_HOLDS, /* from it */
	HELD_BROADCAST, /* to it: value is how many */
};

struct word {
	enum what what;
	uint64_t value;
	char text[256];
};

/* ---- the process ---- */

static const char *file;
static bool hold_before_hello;

static void require(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "held: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static void say(enum what what, uint64_t value)
{
	const struct word w = { .what = what, .value = value };

	require(send(SOCK, &w, sizeof(w), 0) == sizeof(w), "send");
}

/* A thread of this process that waits for the file system, and for nothing else */
struct waiter {
	void *(*run)(void *arg);
	int fd;
	pid_t tid;
};

/* What is being read is locked in the page cache. */
static void *run_reader(void *arg)
{
	struct waiter *w = arg;
	char byte;

	__atomic_store_n(&w->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	require(pread(w->fd, &byte, 1, 0) >= 0, "pread");
	return NULL;
}

/* A file opened for direct I/O leaves the page cache when it is mapped, if it is not locked. */
static void *run_mapper(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	return mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, w->fd, 0);
}

static char state_of(pid_t tid)
{
	char path[64], text[512], *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strrchr(text, ')');
	return at ? at[2] : '?';
}

/* Nothing tells that a thread waits in the kernel: look until it does. */
static void start_waiter(struct waiter *w)
{
	pthread_t thread;

	require(pthread_create(&thread, NULL, w->run, w) == 0, "thread");
	while (!__atomic_load_n(&w->tid, __ATOMIC_ACQUIRE) || state_of(w->tid) != 'D')
		usleep(1000);
}

static void hold(void)
{
	static struct waiter reader = { .run = run_reader }, mapper = { .run = run_mapper };

	reader.fd = open(file, O_RDONLY | O_CLOEXEC);
	mapper.fd = open(file, O_RDONLY | O_CLOEXEC);
	require(reader.fd >= 0 && mapper.fd >= 0, file);
	start_waiter(&reader);
	start_waiter(&mapper);
}

/* In the place of the C library's: the library's HELLO, the first with a descriptor, comes by. */
__attribute__((visibility("default"))) ssize_t sendmsg(int sock, const struct msghdr *msg,
						       int flags);
ssize_t sendmsg(int sock, const struct msghdr *msg, int flags)
{
	bool now = hold_before_hello && msg->msg_controllen;
	ssize_t n;

	if (now) {
		hold_before_hello = false;
		hold();
	}
	n = syscall(SYS_sendmsg, sock, msg, flags);
	if (now)
		say(HELD_HOLDS, 0);
	return n;
}

static struct libkdbus *join(const char *bus)
{
	const struct libkdbus_options options = { .attach_send = _KDBUS_ATTACH_ALL };
	struct libkdbus *h;

	errno = -libkdbus_connect(bus, &options, &h);
	require(errno == 0, "connect");
	return h;
}

static void broadcast(struct libkdbus *h, uint64_t cookie)
{
	const uint64_t size = libkdbus_identity(h)->bloom.size;
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct kdbus_bloom_filter *filter;
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	void *built;

	libkdbus_build(&b, sizeof(*msg), NULL, 0);
	filter = libkdbus_build_item(&b, KDBUS_ITEM_BLOOM_FILTER, NULL, sizeof(*filter) + size);
	require(filter, "memory");
	memset(filter, 0, sizeof(*filter) + size);
	require(libkdbus_build_end(&b, &built) == 0, "memory");
	msg = built;
	msg->dst_id = KDBUS_DST_ID_BROADCAST;
	msg->flags = KDBUS_MSG_SIGNAL;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	msg->cookie = cookie;
	cmd.msg_address = (uintptr_t)msg;
	errno = -libkdbus_send(h, &cmd);
	require(errno == 0, "send");
	libkdbus_build_clear(&b);
}

/* Once connected it sends a first broadcast: then all it needs for the next ones is there. */
static void serve(void)
{
	struct libkdbus *h = NULL;
	struct word w;
	uint64_t i;

	while (recv(SOCK, &w, sizeof(w), 0) == sizeof(w)) {
		if (w.what == HELD_CONNECT) {
			hold_before_hello = w.value;
			h = join(w.text);
			broadcast(h, 0);
			say(HELD_CONNECTED, libkdbus_identity(h)->id);
		} else if (w.what == HELD_HOLD) {
			hold();
			say(HELD_HOLDS, 0);
		}
		for (i = 1; w.what == HELD_BROADCAST && i <= w.value; i++)
			broadcast(h, i);
	}
	_exit(0);
}

void held_main(int argc, char **argv)
{
	if (strcmp(argv[0], NAME))
		return;
	require(argc == 2, "arguments");
	file = argv[1];
	say(HELD_READY, 0);
	serve();
}

/* ---- the file system: one file ---- */

static void answer(const struct held *h, uint64_t request, int error, const void *data, size_t size)
{
	const struct fuse_out_header head = { .len = (uint32_t)(sizeof(head) + size),
					      .error = error,
					      .unique = request };
	const struct iovec iov[2] = { { (void *)&head, sizeof(head) }, { (void *)data, size } };

	/* Who asked may have gone. */
	if (writev(h->fuse, iov, 2) < 0)
		assert_int_equal(errno, ENOENT);
}

static void give_page(const struct held *h, uint64_t request)
{
	char text[PAGE];

	memset(text, 'x', sizeof(text));
	answer(h, request, 0, text, sizeof(text));
}

static void page_wanted(struct held *h, uint64_t request)
{
	pthread_mutex_lock(&h->lock);
	if (h->given)
		give_page(h, request);
	else
		h->waits = request;
	pthread_mutex_unlock(&h->lock);
}

static void act(struct held *h, const struct fuse_in_header *in)
{
	const struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION,
					    .minor = FUSE_KERNEL_MINOR_VERSION,
					    .flags = FUSE_ASYNC_READ,
					    .max_readahead = PAGE,
					    .max_write = PAGE };
	const struct fuse_attr_out attr = { .attr_valid = 1000,
					    .attr = { .ino = FUSE_ROOT_ID,
						      .size = PAGE,
						      .blocks = 8,
						      .mode = S_IFREG | 0444,
						      .nlink = 1,
						      .blksize = PAGE } };
	const struct fuse_open_out opened = { .open_flags = h->opened ? FOPEN_DIRECT_IO : 0 };

	if (in->opcode == FUSE_INIT)
		answer(h, in->unique, 0, &init, sizeof(init));
	else if (in->opcode == FUSE_GETATTR)
		answer(h, in->unique, 0, &attr, sizeof(attr));
	else if (in->opcode == FUSE_OPEN && ++h->opened)
		answer(h, in->unique, 0, &opened, sizeof(opened));
	else if (in->opcode == FUSE_READ)
		page_wanted(h, in->unique);
	else if (in->opcode == FUSE_FLUSH || in->opcode == FUSE_RELEASE)
		answer(h, in->unique, 0, NULL, 0);
	else if (in->opcode != FUSE_FORGET && in->opcode != FUSE_INTERRUPT)
		answer(h, in->unique, -ENOSYS, NULL, 0);
}

/* Until the file system is unmounted */
static void *run_server(void *arg)
{
	static const size_t size = FUSE_MIN_READ_BUFFER + PAGE;
	struct fuse_in_header *in = malloc(size);
	struct held *h = arg;
	ssize_t n;

	while (in && ((n = read(h->fuse, in, size)) > 0 || errno == EINTR || errno == ENOENT))
		if (n >= (ssize_t)sizeof(*in))
			act(h, in);
	free(in);
	return NULL;
}

static int mount_file(int fuse, const char *path)
{
	char options[128];

	snprintf(options, sizeof(options), "fd=%d,rootmode=100444,user_id=%u,group_id=%u", fuse,
		 (unsigned int)getuid(), (unsigned int)getgid());
	return mount("held", path, "fuse", MS_NOSUID | MS_NODEV, options);
}

static void make_file(char path[64])
{
	int fd;

	strcpy(path, P_tmpdir "/kdbus-held-XXXXXX");
	fd = mkostemp(path, O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
}

static void serve_file(struct held *h)
{
	make_file(h->path);
	h->fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	assert_true(h->fuse >= 0);
	assert_int_equal(mount_file(h->fuse, h->path), 0);
	h->opened = 0;
	h->given = false;
	h->waits = 0;
	pthread_mutex_init(&h->lock, NULL);
	assert_int_equal(pthread_create(&h->server, NULL, run_server, h), 0);
}

/* What still waits for the file is told that there is none. */
static void end_file(struct held *h)
{
	assert_int_equal(umount2(h->path, MNT_FORCE | MNT_DETACH), 0);
	pthread_join(h->server, NULL);
	pthread_mutex_destroy(&h->lock);
	close(h->fuse);
	unlink(h->path);
}

/* ---- the test ---- */

bool held_is_possible(void)
{
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	bool possible = false;
	char path[64];

	if (fuse < 0)
		return false;
	make_file(path);
	if (mount_file(fuse, path) == 0)
		possible = umount2(path, MNT_DETACH) == 0;
	close(fuse);
	unlink(path);
	return possible;
}

static void wait_for(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, PATIENT_MS), 1);
}

static uint64_t hear(const struct held *h, enum what what)
{
	struct word w;

	wait_for(h->sock);
	assert_int_equal(recv(h->sock, &w, sizeof(w), 0), sizeof(w));
	assert_int_equal(w.what, what);
	return w.value;
}

static void tell(const struct held *h, const struct word *w)
{
	assert_int_equal(send(h->sock, w, sizeof(*w), MSG_NOSIGNAL), sizeof(*w));
}

static void run(int sock, char *path)
{
	char *argv[] = { (char *)NAME, path, NULL };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (sock == SOCK)
		fcntl(sock, F_SETFD, 0);
	else
		dup2(sock, SOCK);
	execv("/proc/self/exe", argv);
	_exit(127);
}

void held_start(struct held *h)
{
	int pair[2];

	serve_file(h);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	h->pid = fork();
	assert_true(h->pid >= 0);
	if (h->pid == 0)
		run(pair[1], h->path);
	close(pair[1]);
	h->sock = pair[0];
	hear(h, HELD_READY);
}

static void connect_it(struct held *h, const char *bus, bool holding)
{
	struct word w = { .what = HELD_CONNECT, .value = holding };

	assert_true(strlen(bus) < sizeof(w.text));
	strcpy(w.text, bus);
	tell(h, &w);
}

void held_connect(struct held *h, const char *bus)
{
	connect_it(h, bus, false);
	held_connected(h);
}

void held_connect_holding(struct held *h, const char *bus)
{
	connect_it(h, bus, true);
	hear(h, HELD_HOLDS);
}

void held_hold(struct held *h)
{
	const struct word w = { .what = HELD_HOLD };

	tell(h, &w);
	hear(h, HELD_HOLDS);
}

void held_connected(struct held *h)
{
	h->id = hear(h, HELD_CONNECTED);
}

bool held_has_said_something(const struct held *h)
{
	struct pollfd p = { .fd = h->sock, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

void held_broadcast(struct held *h, uint64_t n)
{
	const struct word w = { .what = HELD_BROADCAST, .value = n };

	tell(h, &w);
}

static bool has_open(pid_t process, const char *path)
{
	char where[64], link[64];
	struct dirent *entry;
	bool found = false;
	ssize_t n;
	DIR *dir;

	snprintf(where, sizeof(where), "/proc/%d/fd", (int)process);
	dir = opendir(where);
	assert_non_null(dir);
	while (!found && (entry = readdir(dir))) {
		n = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = '\0';
		found = !strcmp(link, path);
	}
	closedir(dir);
	return found;
}

/* Nothing tells that it waits: look until it does. */
void held_await_reader(const struct held *h, pid_t reader)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)h->pid);
	while (!has_open(reader, path))
		usleep(1000);
}

void held_release(struct held *h)
{
	pthread_mutex_lock(&h->lock);
	h->given = true;
	if (h->waits)
		give_page(h, h->waits);
	pthread_mutex_unlock(&h->lock);
}

void held_end(struct held *h)
{
	kill(h->pid, SIGKILL);
	end_file(h);
	assert_int_equal(waitpid(h->pid, NULL, 0), h->pid);
	close(h->sock);
}

bool held_is_command_line(const char *text, uint64_t size)
{
	return size > sizeof(NAME) && !memcmp(text, NAME, sizeof(NAME));
}
