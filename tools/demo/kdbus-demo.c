// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The demonstration of "make demo": a private kdbusd, a service and a client in processes of their
 * own, and what they say to each other, step by step.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <libkdbus.h>

#define SERVICE "org.example.Weather"
#define BIG	(1U << 20)
#define WAIT_NS 10000000000ULL
#define CALLS	2000

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	fflush(stdout);
}

/* A demonstration that goes wrong says where, and ends. */
static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "kdbus-demo: %s: %s\n", what, strerror(-r));
	exit(1);
}

/* ---- messages ---- */

struct post {
	const char *name;
	uint64_t id;
	uint64_t cookie;
	uint64_t reply; /* cookie of the call this answers */
	bool call;
	bool signal;
	const void *data;
	size_t size;
	int memfd;
};

static struct kdbus_msg *compose(struct libkdbus_builder *b, const struct post *p)
{
	struct kdbus_msg *msg;
	void *built;

	libkdbus_build(b, sizeof(*msg), NULL, 0);
	if (p->name)
		libkdbus_build_string(b, KDBUS_ITEM_DST_NAME, p->name);
	if (p->signal)
		libkdbus_build_item(b, KDBUS_ITEM_BLOOM_FILTER, NULL, sizeof(uint64_t) + 64);
	if (p->memfd >= 0)
		libkdbus_build_memfd(b, p->memfd, 0, p->size);
	else if (p->size)
		libkdbus_build_vec(b, p->data, p->size);
	must(libkdbus_build_end(b, &built), "building a message");
	msg = built;
	msg->dst_id = p->signal ? KDBUS_DST_ID_BROADCAST : p->id;
	msg->cookie = p->cookie;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	msg->cookie_reply = p->reply;
	msg->flags = p->signal ? KDBUS_MSG_SIGNAL : 0;
	if (p->call) {
		msg->flags = KDBUS_MSG_EXPECT_REPLY;
		msg->timeout_ns = now_ns() + WAIT_NS;
	}
	return msg;
}

static void send_post(struct libkdbus *h, const struct post *p)
{
	struct libkdbus_builder b;
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd),
				      .msg_address = (uintptr_t)compose(&b, p) };

	must(libkdbus_send(h, &cmd), "SEND");
	libkdbus_build_clear(&b);
}

static const struct kdbus_msg *call(struct libkdbus *h, const struct post *p)
{
	const struct kdbus_msg *reply;
	struct libkdbus_builder b;

	must(libkdbus_call(h, compose(&b, p), -1, &reply), "a call");
	libkdbus_build_clear(&b);
	return reply;
}

static const struct kdbus_msg *await(struct libkdbus *h)
{
	const struct kdbus_msg *msg;
	int r;

	do {
		r = libkdbus_wait(h, now_ns() + WAIT_NS, -1);
		must(r == -EINTR ? 0 : r, "waiting for a message");
		r = libkdbus_receive(h, &msg);
	} while (r == -EAGAIN);
	must(r, "RECV");
	return msg;
}

static const void *payload(struct libkdbus *h, const struct kdbus_msg *msg, size_t *ret_size)
{
	const struct kdbus_item *item = NULL;
	const void *data;

	*ret_size = 0;
	while ((item = libkdbus_item_next(msg, sizeof(*msg), item))) {
		if (item->type != KDBUS_ITEM_PAYLOAD_OFF && item->type != KDBUS_ITEM_PAYLOAD_MEMFD)
			continue;
		must(libkdbus_payload(h, msg, item, &data, ret_size), "looking at a payload");
		return data;
	}
	return NULL;
}

static unsigned int sum(const unsigned char *data, size_t size)
{
	unsigned int total = 0;
	size_t i;

	for (i = 0; i < size; i++)
		total += data[i];
	return total;
}

/* ---- the service ---- */

static void answer(struct libkdbus *h, const struct kdbus_msg *msg)
{
	size_t size;
	const char *data = payload(h, msg, &size);
	char text[64];
	struct post p = { .id = msg->src_id, .reply = msg->cookie, .data = text, .memfd = -1 };

	if (size && !strcmp(data, "weather in Berlin?"))
		snprintf(text, sizeof(text), "sunny, 21 degrees");
	else
		snprintf(text, sizeof(text), "%zu bytes, sum %u", size,
			 sum((const unsigned char *)data, size));
	p.size = strlen(text) + 1;
	send_post(h, &p);
}

static void run_service(const char *bus, int ready)
{
	struct post storm = { .signal = true, .data = "storm", .size = 6, .memfd = -1 };
	const struct kdbus_msg *msg;
	struct libkdbus *h;
	bool quit = false;

	must(libkdbus_connect(bus, NULL, &h), "the service connects");
	must(libkdbus_acquire(h, SERVICE, 0, NULL), "the service takes its name");
	if (write(ready, "", 1) != 1)
		exit(1);
	while (!quit) {
		msg = await(h);
		if (msg->flags & KDBUS_MSG_EXPECT_REPLY)
			answer(h, msg);
		else
			send_post(h, &storm);
		quit = !(msg->flags & KDBUS_MSG_EXPECT_REPLY);
		libkdbus_done(h, msg);
	}
	libkdbus_close(h);
	exit(0);
}

static pid_t start_service(const char *bus)
{
	int ready[2];
	pid_t pid;
	char c;

	must(pipe(ready), "a pipe");
	pid = fork();
	must(pid < 0 ? -errno : 0, "fork");
	if (pid == 0)
		run_service(bus, ready[1]);
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		exit(1);
	close(ready[0]);
	return pid;
}

/* ---- the client's steps ---- */

static void step_call(struct libkdbus *h)
{
	const char *question = "weather in Berlin?";
	const struct post p = { .name = SERVICE,
				.cookie = 1,
				.call = true,
				.data = question,
				.size = strlen(question) + 1,
				.memfd = -1 };
	const struct kdbus_msg *reply = call(h, &p);
	size_t size;

	say("3. A call by name\n   client  -> %s: \"%s\"\n", SERVICE, question);
	say("   service -> client: \"%s\"\n\n", (const char *)payload(h, reply, &size));
	libkdbus_done(h, reply);
}

static void step_many(struct libkdbus *h)
{
	struct post p = {
		.name = SERVICE, .call = true, .data = "weather in Berlin?", .size = 19, .memfd = -1
	};
	uint64_t start = now_ns();
	unsigned int i;

	for (i = 0; i < CALLS; i++) {
		p.cookie = 100 + i;
		libkdbus_done(h, call(h, &p));
	}
	say("4. %u more calls, from the second on without the daemon: %.1f us each\n\n", CALLS,
	    (double)(now_ns() - start) / 1000 / CALLS);
}

static void step_big(struct libkdbus *h)
{
	unsigned char *big = malloc(BIG);
	struct post p = {
		.name = SERVICE, .cookie = 2, .call = true, .data = big, .size = BIG, .memfd = -1
	};
	const struct kdbus_msg *reply;
	size_t size;

	must(big ? 0 : -ENOMEM, "a megabyte");
	memset(big, 3, BIG);
	reply = call(h, &p);
	say("5. A megabyte, as a payload vector\n   service -> client: \"%s\"\n",
	    (const char *)payload(h, reply, &size));
	libkdbus_done(h, reply);
	p.memfd = memfd_create("demo", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (p.memfd < 0 || write(p.memfd, big, BIG) != BIG)
		must(-errno, "a memfd");
	must(libkdbus_memfd_seal(p.memfd), "sealing it");
	p.cookie = 3;
	reply = call(h, &p);
	say("   The same as a sealed memfd, passed and not copied\n");
	say("   service -> client: \"%s\"\n\n", (const char *)payload(h, reply, &size));
	libkdbus_done(h, reply);
	close(p.memfd);
	free(big);
}

static void watch(struct libkdbus *h)
{
	const uint64_t any = KDBUS_MATCH_ID_ANY;
	struct kdbus_notify_name_change *gone;
	struct libkdbus_builder b;
	void *built;

	libkdbus_build(&b, sizeof(struct kdbus_cmd_match), NULL, 0);
	libkdbus_build_item(&b, KDBUS_ITEM_ID, &any, sizeof(any));
	must(libkdbus_build_end(&b, &built), "a match");
	must(libkdbus_match_add(h, built), "MATCH_ADD");
	libkdbus_build_clear(&b);
	libkdbus_build(&b, sizeof(struct kdbus_cmd_match), NULL, 0);
	gone = libkdbus_build_item(&b, KDBUS_ITEM_NAME_REMOVE, NULL, sizeof(*gone));
	if (gone)
		gone->old_id.id = gone->new_id.id = KDBUS_MATCH_ID_ANY;
	must(libkdbus_build_end(&b, &built), "a match");
	must(libkdbus_match_add(h, built), "MATCH_ADD");
	libkdbus_build_clear(&b);
}

static void step_signal(struct libkdbus *h, pid_t service)
{
	const struct post last = { .name = SERVICE, .data = "bye", .size = 4, .memfd = -1 };
	const struct kdbus_msg *msg;
	size_t size;

	watch(h);
	send_post(h, &last);
	msg = await(h);
	say("6. A broadcast, to whoever has a match\n   service -> all: \"%s\"\n\n",
	    (const char *)payload(h, msg, &size));
	libkdbus_done(h, msg);
	waitpid(service, NULL, 0);
	msg = await(h);
	say("7. The service has gone, and the bus says so\n   bus     -> client: %s, %s\n\n",
	    msg->items->type == KDBUS_ITEM_NAME_REMOVE ? "NAME_REMOVE" : "?",
	    msg->items->name_change.name);
	libkdbus_done(h, msg);
}

static int run(const char *program)
{
	struct libkdbus_daemon *daemon;
	struct libkdbus *h;
	const char *bus;
	pid_t service;
	int r = libkdbus_daemon_start(program, &daemon);

	if (r < 0) {
		fprintf(stderr, "kdbus-demo: cannot start kdbusd (%s): try --kdbusd PATH\n",
			strerror(-r));
		return 1;
	}
	bus = libkdbus_daemon_bus(daemon);
	say("1. A private kdbusd serves a bus\n   %s\n\n", bus);
	service = start_service(bus);
	must(libkdbus_connect(bus, NULL, &h), "the client connects");
	say("2. Two processes are on it: a service that owns %s, and a client\n\n", SERVICE);
	step_call(h);
	step_many(h);
	step_big(h);
	step_signal(h, service);
	libkdbus_close(h);
	libkdbus_daemon_stop(daemon);
	say("Where next: lib/libkdbus.h is the library's manual, README.md the way around;\n"
	    "kdbusd --help tells how to start a bus of your own.\n");
	return 0;
}

static const char help_text[] =
	"Usage: kdbus-demo [--kdbusd PATH]\n"
	"Start a private kdbusd and show two programs talking over it, step by step.\n"
	"\n"
	"  --kdbusd PATH   the daemon to start (default: KDBUSD, else kdbusd in PATH)\n"
	"  --help          show this help\n"
	"  --version       show the version\n";

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "kdbusd", required_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	const char *program = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'h' || c == 'v') {
			fputs(c == 'h' ? help_text : "kdbus-demo " KDBUS_VERSION "\n", stdout);
			return 0;
		}
		if (c != 'k')
			return 2;
		program = optarg;
	}
	if (optind < argc) {
		fprintf(stderr, "kdbus-demo: unexpected argument '%s'; try --help\n", argv[optind]);
		return 2;
	}
	return run(program);
}
