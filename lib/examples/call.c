// SPDX-License-Identifier: LGPL-2.1-or-later
/* A service answers one call of another process. */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <libkdbus.h>

#define NAME "org.example.Echo"

static void must(int r, const char *what)
{
	if (r < 0)
		errx(1, "%s: %s", what, strerror(-r));
}

static struct kdbus_msg *compose(struct libkdbus_builder *b, const char *name, const char *text)
{
	void *built;

	libkdbus_build(b, sizeof(struct kdbus_msg), NULL, 0);
	if (name)
		libkdbus_build_string(b, KDBUS_ITEM_DST_NAME, name);
	libkdbus_build_vec(b, text, strlen(text) + 1);
	must(libkdbus_build_end(b, &built), "building a message");
	((struct kdbus_msg *)built)->payload_type = KDBUS_PAYLOAD_DBUS;
	return built;
}

static int run_client(void)
{
	const struct kdbus_msg *reply;
	struct libkdbus_builder b;
	struct kdbus_msg *msg = compose(&b, NAME, "are you there?");
	struct timespec now;
	struct libkdbus *h;

	must(libkdbus_connect(NULL, NULL, &h), "the client connects");
	clock_gettime(CLOCK_MONOTONIC, &now);
	msg->flags = KDBUS_MSG_EXPECT_REPLY;
	msg->cookie = 1;
	msg->timeout_ns = (uint64_t)(now.tv_sec + 10) * 1000000000ULL;
	must(libkdbus_call(h, msg, -1, &reply), "the call");
	libkdbus_build_clear(&b);
	printf("a reply to call %llu\n", (unsigned long long)reply->cookie_reply);
	libkdbus_done(h, reply);
	libkdbus_close(h);
	return 0;
}

int main(void)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	const struct kdbus_msg *call;
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	struct libkdbus *h;

	must(libkdbus_connect(NULL, NULL, &h), "the service connects");
	must(libkdbus_acquire(h, NAME, 0, NULL), "NAME_ACQUIRE");
	if (fork() == 0)
		return run_client();
	must(libkdbus_wait(h, UINT64_MAX, -1), "waiting for the call");
	must(libkdbus_receive(h, &call), "RECV");
	msg = compose(&b, NULL, "yes");
	msg->dst_id = call->src_id;
	msg->cookie_reply = call->cookie;
	libkdbus_done(h, call);
	cmd.msg_address = (uintptr_t)msg;
	must(libkdbus_send(h, &cmd), "the reply");
	libkdbus_build_clear(&b);
	wait(NULL);
	libkdbus_close(h);
	return 0;
}
