// SPDX-License-Identifier: LGPL-2.1-or-later
/* A message of several pieces: bytes, a sealed memfd and a descriptor; then a walk over it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <libkdbus.h>

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	exit(1);
}

static int sealed_memfd(const char *text)
{
	int fd = memfd_create("example", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
		perror("memfd");
		exit(1);
	}
	must(libkdbus_memfd_seal(fd), "sealing the memfd");
	return fd;
}

static void show(const struct kdbus_msg *msg)
{
	const struct kdbus_item *item = NULL;

	while ((item = libkdbus_item_next(msg, sizeof(*msg), item))) {
		if (item->type == KDBUS_ITEM_PAYLOAD_OFF)
			printf("%llu bytes\n", (unsigned long long)item->vec.size);
		if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD)
			printf("a memfd of %llu bytes, %s\n", (unsigned long long)item->memfd.size,
			       close(item->memfd.fd) ? "missing" : "ours to close");
		if (item->type == KDBUS_ITEM_FDS)
			printf("a descriptor, %s\n",
			       close(item->fds[0]) ? "missing" : "ours to close");
	}
}

int main(void)
{
	const int out = STDOUT_FILENO, memfd = sealed_memfd("a big thing");
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	const struct kdbus_msg *got;
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	struct libkdbus *h;
	void *built;

	must(libkdbus_connect(NULL, NULL, &h), "connecting");
	libkdbus_build(&b, sizeof(*msg), NULL, 0);
	libkdbus_build_vec(&b, "some bytes", 10);
	libkdbus_build_memfd(&b, memfd, 0, strlen("a big thing"));
	libkdbus_build_fds(&b, &out, 1);
	must(libkdbus_build_end(&b, &built), "building a message");
	msg = built;
	msg->dst_id = libkdbus_identity(h)->id;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	cmd.msg_address = (uintptr_t)msg;
	must(libkdbus_send(h, &cmd), "SEND to oneself");
	libkdbus_build_clear(&b);
	must(libkdbus_receive(h, &got), "RECV");
	show(got);
	libkdbus_done(h, got);
	libkdbus_close(h);
	close(memfd);
	return 0;
}
