// SPDX-License-Identifier: LGPL-2.1-or-later
/* Nodes of kdbusfs: opening, closing, waiting, and the commands. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "kernel.h"

#define NS_PER_SEC 1000000000ULL

/* ---- all handles, and fork ---- */

static pthread_mutex_t handles_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(handles);
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_error;

static void before_fork(void)
{
	pthread_mutex_lock(&handles_lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&handles_lock);
}

/* Close the copies: with them the connection would outlive the parent's libkdbus_close(). */
static void in_child(void)
{
	struct kernel *k, *next;

	list_for_each_entry_safe(k, next, &handles, link) {
		close(k->fd);
		k->fd = -1;
		list_del(&k->link);
	}
	pthread_mutex_unlock(&handles_lock);
}

static void watch_fork(void)
{
	fork_error = -pthread_atfork(before_fork, after_fork, in_child);
}

/* ---- opening and closing ---- */

/* Only a regular file is opened: opening anything else may have effects. */
static int open_node(const char *path)
{
	struct statfs fs;
	struct stat st;
	int fd, r;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EOPNOTSUPP;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	r = fstatfs(fd, &fs) < 0 ? -errno : 0;
	if (r == 0 && fs.f_type != KERNEL_FS_MAGIC)
		r = -EOPNOTSUPP;
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

static void add(struct kernel *k)
{
	pthread_mutex_lock(&handles_lock);
	list_add_tail(&k->link, &handles);
	pthread_mutex_unlock(&handles_lock);
}

static int kernel_open(const char *path, struct libkdbus **ret)
{
	struct kernel *k;
	int fd;

	pthread_once(&fork_once, watch_fork);
	if (fork_error)
		return fork_error;
	fd = open_node(path);
	if (fd < 0)
		return fd;
	k = calloc(1, sizeof(*k));
	if (!k) {
		close(fd);
		return -ENOMEM;
	}
	k->base.engine = &engine_kernel;
	k->fd = fd;
	k->maps = RB_ROOT;
	pthread_mutex_init(&k->lock, NULL);
	add(k);
	*ret = &k->base;
	return 0;
}

/*
 * In a child there is nothing to do, unless it came about without the handlers of fork(): memory
 * of the handle is left alone, as locks in it may be taken; the pool is not mapped there.
 */
static void close_forked(struct kernel *k)
{
	if (k->fd >= 0)
		close(k->fd);
	k->fd = -1;
}

static void kernel_close(struct libkdbus *h, int forked)
{
	struct kernel *k = to_kernel(h);

	if (forked) {
		close_forked(k);
		return;
	}
	pthread_mutex_lock(&handles_lock);
	list_del(&k->link);
	pthread_mutex_unlock(&handles_lock);
	close(k->fd);
	kernel_unmap_all(k);
	if (k->pool)
		munmap(k->pool, k->pool_size);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

/* ---- commands ---- */

int kernel_ioctl(struct kernel *k, unsigned int cmd, void *arg)
{
	return ioctl(k->fd, cmd, arg) < 0 ? -errno : 0;
}

static int kernel_command(struct libkdbus *h, unsigned int cmd, void *arg)
{
	struct kernel *k = to_kernel(h);

	if (atomic_load(&k->dead))
		return -ECONNRESET;
	/* Every file knows some commands that are not of the bus. */
	if (_IOC_TYPE(cmd) != KDBUS_IOCTL_MAGIC)
		return -ENOTTY;
	if (cmd == KDBUS_CMD_HELLO)
		return kernel_hello(k, arg);
	if (cmd == KDBUS_CMD_FREE)
		return kernel_free(k, arg);
	return kernel_ioctl(k, cmd, arg);
}

/* ---- what a connection has ---- */

static int kernel_fd(struct libkdbus *h)
{
	struct kernel *k = to_kernel(h);

	return atomic_load(&k->connected) ? k->fd : -EBADFD;
}

static const void *kernel_pool(struct libkdbus *h, size_t *ret_size)
{
	struct kernel *k = to_kernel(h);

	if (!atomic_load(&k->connected))
		return NULL;
	if (ret_size)
		*ret_size = k->pool_size;
	return k->pool;
}

static const struct libkdbus_identity *kernel_identity(struct libkdbus *h)
{
	struct kernel *k = to_kernel(h);

	return atomic_load(&k->connected) ? &k->identity : NULL;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* The time left until @deadline_ns; NULL for ever. */
static const struct timespec *time_left(uint64_t deadline_ns, uint64_t now, struct timespec *buf)
{
	uint64_t left = deadline_ns > now ? deadline_ns - now : 0;

	if (deadline_ns == UINT64_MAX)
		return NULL;
	*buf = (struct timespec){ .tv_sec = (time_t)(left / NS_PER_SEC),
				  .tv_nsec = (long)(left % NS_PER_SEC) };
	return buf;
}

static int kernel_wait(struct libkdbus *h, uint64_t deadline_ns, int cancel_fd)
{
	struct kernel *k = to_kernel(h);
	struct pollfd p[] = { { .fd = k->fd, .events = POLLIN },
			      { .fd = cancel_fd, .events = POLLIN } };
	struct timespec left;
	uint64_t now;

	if (!atomic_load(&k->connected))
		return atomic_load(&k->dead) ? -ECONNRESET : -EBADFD;
	for (;;) {
		now = now_ns();
		if (ppoll(p, 2, time_left(deadline_ns, now, &left), NULL) < 0)
			return -errno;
		if (p[0].revents & POLLIN)
			return 0;
		if (p[0].revents)
			return -ECONNRESET;
		if (p[1].revents)
			return -ECANCELED;
		if (now >= deadline_ns)
			return -ETIMEDOUT;
	}
}

const struct engine engine_kernel = {
	.name = "kernel",
	.open = kernel_open,
	.command = kernel_command,
	.fd = kernel_fd,
	.pool = kernel_pool,
	.wait = kernel_wait,
	.payload = kernel_payload,
	.identity = kernel_identity,
	.close = kernel_close,
};
