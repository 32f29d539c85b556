// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "fixture.h"

static struct libkdbus_daemon *own_daemon;
static const char *domain;

int fixture_start(void **state)
{
	char *dir;

	(void)state;
	domain = getenv("KDBUS_DOMAIN");
	if (domain && *domain)
		return 0;
	if (libkdbus_daemon_start(NULL, &own_daemon) < 0)
		return -1;
	domain = libkdbus_daemon_domain(own_daemon);
	/* An unprivileged child has to get there. */
	dir = strdup(domain);
	chmod(dir, 0755);
	free(dir);
	return 0;
}

int fixture_end(void **state)
{
	(void)state;
	own_daemon = libkdbus_daemon_stop(own_daemon);
	return 0;
}

char *fixture_control(const struct fixture *f)
{
	char *path;

	assert_true(asprintf(&path, "%s/control", f->domain) > 0);
	return path;
}

struct libkdbus *fixture_open(const char *path)
{
	struct libkdbus *h;

	assert_int_equal(libkdbus_open(path, 0, &h), 0);
	return h;
}

int fixture_make_bus(struct libkdbus *control, const char *name, uint64_t flags)
{
	const struct kdbus_bloom_parameter bloom = { .size = 64, .n_hash = 1 };
	const uint64_t all = _KDBUS_ATTACH_ALL;
	struct libkdbus_builder b;
	struct kdbus_cmd *cmd;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(*cmd), NULL, 0);
	libkdbus_build_item(&b, KDBUS_ITEM_BLOOM_PARAMETER, &bloom, sizeof(bloom));
	libkdbus_build_item(&b, KDBUS_ITEM_ATTACH_FLAGS_SEND, &all, sizeof(all));
	libkdbus_build_string(&b, KDBUS_ITEM_MAKE_NAME, name);
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	cmd = built;
	cmd->flags = flags;
	r = libkdbus_bus_make(control, cmd);
	libkdbus_build_clear(&b);
	return r;
}

int fixture_setup(void **state)
{
	static unsigned int number;
	struct fixture *f = calloc(1, sizeof(*f));
	char *control;

	if (!f || asprintf(&f->name, "%u-test%d-%u", (unsigned int)geteuid(), (int)getpid(),
			   number++) < 0)
		return -1;
	f->domain = strdup(domain);
	if (!f->domain || asprintf(&f->dir, "%s/%s", domain, f->name) < 0 ||
	    asprintf(&f->path, "%s/bus", f->dir) < 0)
		return -1;
	control = fixture_control(f);
	f->owner = fixture_open(control);
	free(control);
	if (fixture_make_bus(f->owner, f->name, KDBUS_MAKE_ACCESS_WORLD) < 0)
		return -1;
	*state = f;
	return 0;
}

int fixture_teardown(void **state)
{
	struct fixture *f = *state;

	libkdbus_close(f->owner);
	free(f->domain);
	free(f->name);
	free(f->dir);
	free(f->path);
	free(f);
	return 0;
}

int fixture_hello(struct libkdbus *h, uint64_t flags, uint64_t attach_send, uint64_t attach_recv,
		  uint64_t pool_size, const char *name)
{
	struct libkdbus_builder b;
	struct kdbus_cmd_hello *cmd;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(*cmd), NULL, 0);
	if (name)
		libkdbus_build_string(&b, KDBUS_ITEM_NAME, name);
	libkdbus_build_string(&b, KDBUS_ITEM_CONN_DESCRIPTION, "this-is-my-name");
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	cmd = built;
	cmd->flags = flags;
	cmd->attach_flags_send = attach_send;
	cmd->attach_flags_recv = attach_recv;
	cmd->pool_size = pool_size;
	r = libkdbus_hello(h, cmd);
	if (r == 0)
		r = fixture_free(h, cmd->offset);
	libkdbus_build_clear(&b);
	return r;
}

struct libkdbus *fixture_connect_to(const char *path, uint64_t hello_flags)
{
	struct libkdbus *h = fixture_open(path);

	assert_int_equal(fixture_hello(h, hello_flags, _KDBUS_ATTACH_ALL, _KDBUS_ATTACH_ALL,
				       FIXTURE_POOL, NULL),
			 0);
	return h;
}

struct libkdbus *fixture_connect(const struct fixture *f)
{
	return fixture_connect_to(f->path, KDBUS_HELLO_ACCEPT_FD);
}

uint64_t fixture_id(struct libkdbus *h)
{
	return libkdbus_identity(h)->id;
}

int fixture_free(struct libkdbus *h, uint64_t offset)
{
	struct kdbus_cmd_free cmd = { .size = sizeof(cmd), .offset = offset };

	return libkdbus_free(h, &cmd);
}

int fixture_byebye(struct libkdbus *h)
{
	struct kdbus_cmd cmd = { .size = sizeof(cmd) };

	return libkdbus_byebye(h, &cmd);
}

void fixture_match_start(struct libkdbus_builder *b)
{
	libkdbus_build(b, sizeof(struct kdbus_cmd_match), NULL, 0);
}

int fixture_match(struct libkdbus *h, uint64_t cookie, uint64_t flags, struct libkdbus_builder *b)
{
	struct kdbus_cmd_match *cmd;
	void *built;
	int r;

	assert_int_equal(libkdbus_build_end(b, &built), 0);
	cmd = built;
	cmd->cookie = cookie;
	cmd->flags = flags;
	r = libkdbus_match_add(h, cmd);
	libkdbus_build_clear(b);
	return r;
}

int fixture_match_all(struct libkdbus *h)
{
	const uint64_t any = KDBUS_MATCH_ID_ANY;
	struct libkdbus_builder b;

	fixture_match_start(&b);
	libkdbus_build_item(&b, KDBUS_ITEM_ID, &any, sizeof(any));
	return fixture_match(h, 0, 0, &b);
}

/* ---- messages ---- */

static struct kdbus_msg *finish(struct libkdbus_builder *b, const struct letter *l)
{
	struct kdbus_msg *msg;
	void *built;

	assert_int_equal(libkdbus_build_end(b, &built), 0);
	msg = built;
	msg->flags = l->flags;
	msg->priority = l->priority;
	msg->dst_id = l->dst;
	msg->cookie = l->cookie;
	msg->cookie_reply = l->reply;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	return msg;
}

static struct kdbus_msg *compose(struct libkdbus_builder *b, const struct letter *l)
{
	libkdbus_build(b, sizeof(struct kdbus_msg), NULL, 0);
	if (l->name)
		libkdbus_build_string(b, KDBUS_ITEM_DST_NAME, l->name);
	if (l->bloom)
		libkdbus_build_item(b, KDBUS_ITEM_BLOOM_FILTER, NULL, sizeof(uint64_t) + 64);
	if (l->size)
		libkdbus_build_vec(b, l->data, l->size);
	if (l->n_fds)
		libkdbus_build_fds(b, l->fds, l->n_fds);
	return finish(b, l);
}

static int send_message(struct libkdbus *h, struct kdbus_msg *msg)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd), .msg_address = (uintptr_t)msg };

	return libkdbus_send(h, &cmd);
}

int fixture_send(struct libkdbus *h, const struct letter *letter)
{
	struct libkdbus_builder b;
	int r = send_message(h, compose(&b, letter));

	libkdbus_build_clear(&b);
	return r;
}

int fixture_call(struct libkdbus *h, const struct letter *letter, int cancel_fd,
		 const struct kdbus_msg **ret_reply)
{
	struct libkdbus_builder b;
	int r = libkdbus_call(h, compose(&b, letter), cancel_fd, ret_reply);

	libkdbus_build_clear(&b);
	return r;
}

static int sealed_memfd(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "kdbus memfd 1234567", 16), 16);
	assert_int_equal(libkdbus_memfd_seal(fd), 0);
	return fd;
}

static int send_big(struct libkdbus *h, const struct letter *l)
{
	static char big[131075];
	const char *last = "last 13 bytes";
	struct libkdbus_builder b;
	int fd = -1, r;

	libkdbus_build(&b, sizeof(struct kdbus_msg), NULL, 0);
	if (l->name)
		libkdbus_build_string(&b, KDBUS_ITEM_DST_NAME, l->name);
	if (l->bloom)
		libkdbus_build_item(&b, KDBUS_ITEM_BLOOM_FILTER, NULL, sizeof(uint64_t) + 64);
	libkdbus_build_vec(&b, big, sizeof(big));
	libkdbus_build_vec(&b, NULL, 8 - sizeof(big) % 8);
	libkdbus_build_vec(&b, last, 13);
	if (!l->bloom) {
		fd = sealed_memfd();
		libkdbus_build_memfd(&b, fd, 0, 16);
	}
	r = send_message(h, finish(&b, l));
	libkdbus_build_clear(&b);
	if (fd >= 0)
		close(fd);
	return r;
}

int fixture_send_default(struct libkdbus *h, uint64_t dst, const char *name, uint64_t cookie)
{
	const struct letter l = { .dst = dst, .name = name, .cookie = cookie };

	return send_big(h, &l);
}

int fixture_broadcast(struct libkdbus *h, uint64_t cookie)
{
	const struct letter l = { .dst = KDBUS_DST_ID_BROADCAST,
				  .flags = KDBUS_MSG_SIGNAL,
				  .cookie = cookie,
				  .bloom = true };

	return send_big(h, &l);
}

int fixture_recv(struct libkdbus *h, struct kdbus_cmd_recv *cmd)
{
	*cmd = (struct kdbus_cmd_recv){ .size = sizeof(*cmd) };
	return libkdbus_recv(h, cmd);
}

const struct kdbus_msg *fixture_await(struct libkdbus *h)
{
	const struct kdbus_msg *msg;
	uint64_t deadline = fixture_deadline(FIXTURE_TIMEOUT_NS / 1000000);
	int r;

	while ((r = libkdbus_receive(h, &msg)) == -EAGAIN)
		assert_int_equal(libkdbus_wait(h, deadline, -1), 0);
	assert_int_equal(r, 0);
	return msg;
}

void fixture_assert_empty(struct libkdbus *h)
{
	struct kdbus_cmd_recv cmd;

	assert_int_equal(fixture_recv(h, &cmd), -EAGAIN);
}

const struct kdbus_item *fixture_item(const struct kdbus_msg *msg, uint64_t type)
{
	return libkdbus_item_find(msg, sizeof(*msg), type);
}

uint64_t fixture_deadline(unsigned int ms)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec + ms * 1000000ULL;
}

/* ---- other users ---- */

bool fixture_can_change_user(void)
{
	return geteuid() == 0;
}

static int become_nobody(void)
{
	if (setgroups(0, NULL) < 0 || setresgid(FIXTURE_NOBODY, FIXTURE_NOBODY, FIXTURE_NOBODY) < 0)
		return -1;
	return setresuid(FIXTURE_NOBODY, FIXTURE_NOBODY, FIXTURE_NOBODY);
}

int fixture_as_nobody(int (*fn)(void *arg), void *arg)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(become_nobody() < 0 ? 99 : fn(arg));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
