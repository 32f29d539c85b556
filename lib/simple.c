// SPDX-License-Identifier: LGPL-2.1-or-later
/* The usual sequences in one call, written with the commands alone. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "libkdbus.h"

#define DEFAULT_POOL_SIZE (16ULL << 20)

static int run_hello(struct libkdbus *h, const struct libkdbus_options *options)
{
	struct libkdbus_builder b;
	struct kdbus_cmd_hello *cmd;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(*cmd), NULL, 0);
	if (options->name)
		libkdbus_build_string(&b, KDBUS_ITEM_NAME, options->name);
	if (options->description)
		libkdbus_build_string(&b, KDBUS_ITEM_CONN_DESCRIPTION, options->description);
	r = libkdbus_build_end(&b, &built);
	if (r == 0) {
		cmd = built;
		cmd->flags = options->flags;
		cmd->attach_flags_send = options->attach_send;
		cmd->attach_flags_recv = options->attach_recv;
		cmd->pool_size = options->pool_size ? options->pool_size : DEFAULT_POOL_SIZE;
		r = libkdbus_hello(h, cmd);
	}
	if (r == 0)
		libkdbus_free(h, &(struct kdbus_cmd_free){ .size = sizeof(struct kdbus_cmd_free),
							   .offset = cmd->offset });
	libkdbus_build_clear(&b);
	return r;
}

int libkdbus_connect(const char *path, const struct libkdbus_options *options,
		     struct libkdbus **ret)
{
	static const struct libkdbus_options ordinary = { .flags = KDBUS_HELLO_ACCEPT_FD };
	struct libkdbus *h = NULL;
	char *own = NULL;
	int r = 0;

	if (!path) {
		r = libkdbus_bus_path(NULL, &own);
		path = own;
	}
	if (r == 0)
		r = libkdbus_open(path, 0, &h);
	free(own);
	if (r < 0)
		return r;
	r = run_hello(h, options ? options : &ordinary);
	if (r < 0) {
		libkdbus_close(h);
		return r;
	}
	*ret = h;
	return 0;
}

typedef int (*name_command)(struct libkdbus *h, struct kdbus_cmd *cmd);

static int run_name(struct libkdbus *h, name_command command, const char *name, uint64_t flags,
		    uint64_t *ret_flags)
{
	uint64_t space[64];
	struct libkdbus_builder b;
	struct kdbus_cmd *cmd;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(*cmd), space, sizeof(space));
	libkdbus_build_string(&b, KDBUS_ITEM_NAME, name);
	r = libkdbus_build_end(&b, &built);
	if (r == 0) {
		cmd = built;
		cmd->flags = flags;
		r = command(h, cmd);
		if (r == 0 && ret_flags)
			*ret_flags = cmd->return_flags;
	}
	libkdbus_build_clear(&b);
	return r;
}

int libkdbus_acquire(struct libkdbus *h, const char *name, uint64_t flags, uint64_t *ret_flags)
{
	return run_name(h, libkdbus_name_acquire, name, flags, ret_flags);
}

int libkdbus_release(struct libkdbus *h, const char *name)
{
	return run_name(h, libkdbus_name_release, name, 0, NULL);
}

static const void *in_pool(struct libkdbus *h, uint64_t offset)
{
	return (const char *)libkdbus_pool(h, NULL) + offset;
}

int libkdbus_receive(struct libkdbus *h, const struct kdbus_msg **ret_msg)
{
	struct kdbus_cmd_recv cmd = { .size = sizeof(cmd) };
	int r = libkdbus_recv(h, &cmd);

	if (r == 0)
		*ret_msg = in_pool(h, cmd.msg.offset);
	return r;
}

int libkdbus_done(struct libkdbus *h, const void *slice)
{
	struct kdbus_cmd_free cmd = { .size = sizeof(cmd) };

	if (!slice)
		return 0;
	cmd.offset = (uint64_t)((const char *)slice - (const char *)libkdbus_pool(h, NULL));
	return libkdbus_free(h, &cmd);
}

int libkdbus_call(struct libkdbus *h, struct kdbus_msg *msg, int cancel_fd,
		  const struct kdbus_msg **ret_reply)
{
	uint64_t space[(sizeof(struct kdbus_cmd_send) + 24) / sizeof(uint64_t)];
	struct libkdbus_builder b;
	struct kdbus_cmd_send *cmd;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(*cmd), space, sizeof(space));
	if (cancel_fd >= 0)
		libkdbus_build_item(&b, KDBUS_ITEM_CANCEL_FD, &cancel_fd, sizeof(cancel_fd));
	r = libkdbus_build_end(&b, &built);
	if (r == 0) {
		cmd = built;
		cmd->flags = KDBUS_SEND_SYNC_REPLY;
		cmd->msg_address = (uintptr_t)msg;
		r = libkdbus_send(h, cmd);
		if (r == 0)
			*ret_reply = in_pool(h, cmd->reply.offset);
	}
	libkdbus_build_clear(&b);
	return r;
}

int libkdbus_memfd_seal(int fd)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

	return fcntl(fd, F_ADD_SEALS, seals) < 0 ? -errno : 0;
}
