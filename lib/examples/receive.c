// SPDX-License-Identifier: LGPL-2.1-or-later
/* Two connections in one program: what one sends, the other takes off its descriptor. */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libkdbus.h>

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	exit(1);
}

static void send_text(struct libkdbus *h, uint64_t to, const char *text)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	void *built;

	libkdbus_build(&b, sizeof(*msg), NULL, 0);
	libkdbus_build_vec(&b, text, strlen(text) + 1);
	must(libkdbus_build_end(&b, &built), "building a message");
	msg = built;
	msg->dst_id = to;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	cmd.msg_address = (uintptr_t)msg;
	must(libkdbus_send(h, &cmd), "SEND");
	libkdbus_build_clear(&b);
}

static void show(struct libkdbus *h, const struct kdbus_msg *msg)
{
	const struct kdbus_item *item = NULL;
	const void *data;
	size_t size;

	while ((item = libkdbus_item_next(msg, sizeof(*msg), item))) {
		if (item->type != KDBUS_ITEM_PAYLOAD_OFF && item->type != KDBUS_ITEM_PAYLOAD_MEMFD)
			continue;
		must(libkdbus_payload(h, msg, item, &data, &size), "looking at the payload");
		printf("%zu bytes: %s\n", size, data ? (const char *)data : "(zero bytes)");
	}
}

int main(void)
{
	const struct kdbus_msg *msg;
	struct libkdbus *from, *to;
	struct pollfd p = { .events = POLLIN };
	int r, n = 0;

	must(libkdbus_connect(NULL, NULL, &from), "connecting");
	must(libkdbus_connect(NULL, NULL, &to), "connecting");
	send_text(from, libkdbus_identity(to)->id, "one");
	send_text(from, libkdbus_identity(to)->id, "two");
	p.fd = libkdbus_fd(to);
	while (n < 2 && poll(&p, 1, -1) > 0) {
		while ((r = libkdbus_receive(to, &msg)) == 0) {
			show(to, msg);
			must(libkdbus_done(to, msg), "FREE");
			n++;
		}
		must(r == -EAGAIN ? 0 : r, "RECV");
	}
	libkdbus_close(to);
	libkdbus_close(from);
	return 0;
}
