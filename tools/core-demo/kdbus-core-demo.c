// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A bus of three connections in one process: names, a call, a broadcast, a death. All
 * rules are those of core/; everything around them is in host.c.
 */
#include <stdarg.h>
#include <stdlib.h>

#include "base.h"
#include "host.h"

#define NAME "org.example.Weather"

static struct host host;
static struct host_conn service, client, watcher;
static unsigned int step;

static const char *who(u64 id)
{
	if (id == KDBUS_SRC_ID_KERNEL)
		return "the bus";
	if (id == service.core.id)
		return "service";
	return id == client.core.id ? "client" : "watcher";
}

static void __attribute__((format(printf, 1, 2))) say(const char *format, ...)
{
	va_list args;

	printf("\n%u. ", ++step);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

/* What goes wrong here is a mistake of ours. */
static void must(const char *what, int r)
{
	if (r >= 0)
		return;
	fprintf(stderr, "kdbus-core-demo: %s failed with errno %d\n", what, -r);
	exit(1);
}

static void print_change(const char *what, const struct kdbus_item *item)
{
	const struct kdbus_notify_name_change *change = core_item_payload(item);

	printf("%s %s: owner %llu -> %llu\n", what, change->name,
	       (unsigned long long)change->old_id.id, (unsigned long long)change->new_id.id);
}

static void print_id(const char *what, const struct kdbus_item *item)
{
	const struct kdbus_notify_id_change *change = core_item_payload(item);

	printf("%s: connection %llu\n", what, (unsigned long long)change->id);
}

static void print_item(const struct kdbus_msg *msg, const struct kdbus_item *item)
{
	const struct kdbus_vec *vec = core_item_payload(item);

	switch (item->type) {
	case KDBUS_ITEM_PAYLOAD_OFF:
		printf("\"%.*s\"\n", (int)vec->size, (const char *)msg + vec->offset);
		break;
	case KDBUS_ITEM_NAME_ADD:
		print_change("NAME_ADD", item);
		break;
	case KDBUS_ITEM_NAME_REMOVE:
		print_change("NAME_REMOVE", item);
		break;
	case KDBUS_ITEM_ID_REMOVE:
		print_id("ID_REMOVE", item);
		break;
	case KDBUS_ITEM_REPLY_DEAD:
		printf("REPLY_DEAD for call %llu\n", (unsigned long long)msg->cookie_reply);
		break;
	default:
		break;
	}
}

/* Receive everything that waits, and show it. */
static u64 drain(struct host_conn *conn)
{
	const struct kdbus_msg *msg;
	struct core_received received;
	const struct kdbus_item *item;
	u64 cookie = 0;

	while (!host_recv(conn, 0, 0, &received, &msg)) {
		printf("   RECV  %-8s <- %-8s ", who(conn->core.id), who(msg->src_id));
		core_item_for_each(item, msg->items, msg->size - sizeof(*msg))
			print_item(msg, item);
		cookie = msg->cookie;
		must("FREE", host_free(conn, msg));
	}
	return cookie;
}

static void hello(struct host_conn *conn, const char *name)
{
	const struct host_hello args = { .pool_size = 65536 };

	must("HELLO", host_connect(&host, conn, &args));
	printf("   HELLO %-8s is connection %llu, with a pool of 64 KiB\n", name,
	       (unsigned long long)conn->core.id);
}

static void match(struct host_conn *conn, u64 type, const void *rule, size_t size)
{
	u64 buf[16];
	struct core_writer w = CORE_WRITER(buf, sizeof(buf));
	size_t end;

	core_put(&w, type, rule, size);
	must("MATCH_ADD", core_writer_end(&w, &end));
	must("MATCH_ADD", core_match_add(&conn->core.matches, 1, 0, (struct kdbus_item *)buf, end));
}

static void subscribe(void)
{
	const struct kdbus_notify_name_change any_name = {
		.old_id.id = KDBUS_MATCH_ID_ANY,
		.new_id.id = KDBUS_MATCH_ID_ANY,
	};
	const struct kdbus_notify_id_change any_id = { .id = KDBUS_MATCH_ID_ANY };
	u64 mask[HOST_BLOOM / 8] = { 0 };

	say("The watcher subscribes: names that come and go, departures, and one kind of signal");
	mask[0] = 0x5;
	match(&watcher, KDBUS_ITEM_NAME_ADD, &any_name, 32);
	match(&watcher, KDBUS_ITEM_NAME_REMOVE, &any_name, 32);
	match(&watcher, KDBUS_ITEM_ID_REMOVE, &any_id, sizeof(any_id));
	match(&watcher, KDBUS_ITEM_BLOOM_MASK, mask, sizeof(mask));
	printf("   MATCH_ADD four entries, the last a bloom mask with bits 0 and 2\n");
}

static void take_name(void)
{
	u64 flags = 0;

	say("The service takes a name; the bus tells who asked to know");
	must("NAME_ACQUIRE", core_conn_acquire(&service.core, NULL, NAME, 0, &flags));
	printf("   NAME_ACQUIRE %s -> %s\n", NAME, flags & KDBUS_NAME_PRIMARY ? "owner" : "queued");
	drain(&watcher);
}

static void call(u64 cookie, const char *text)
{
	const struct host_msg msg = {
		.name = NAME,
		.flags = KDBUS_MSG_EXPECT_REPLY,
		.cookie = cookie,
		.word = host.now + 1000000000,
		.payload = text,
		.size = strlen(text),
	};

	must("SEND", host_send(&client, &msg, NULL));
	printf("   SEND  %-8s -> %s: call %llu \"%s\"\n", "client", NAME,
	       (unsigned long long)cookie, text);
}

static void call_and_reply(void)
{
	static const char text[] = "sunny, 21 degrees";
	struct host_msg reply = { .payload = text, .size = sizeof(text) - 1, .cookie = 1 };

	say("The client calls the service by its name; the answer needs no permission");
	call(7, "weather in Berlin?");
	reply.word = drain(&service);
	reply.dst_id = client.core.id;
	must("SEND", host_send(&service, &reply, NULL));
	printf("   SEND  %-8s -> %-8s reply to call %llu\n", "service", "client",
	       (unsigned long long)reply.word);
	drain(&client);
	printf("   SEND  a second reply to the same call: errno %d (EBADSLT)\n",
	       -host_send(&service, &reply, NULL));
}

static void broadcast(u64 bits, const char *text)
{
	u64 filter[HOST_BLOOM / 8] = { 0 };
	const struct host_msg msg = {
		.dst_id = KDBUS_DST_ID_BROADCAST,
		.flags = KDBUS_MSG_SIGNAL,
		.bloom = filter,
		.payload = text,
		.size = strlen(text),
	};

	filter[0] = bits;
	must("SEND", host_send(&service, &msg, NULL));
	printf("   SEND  %-8s -> all      \"%s\" with filter bits 0x%llx\n", "service", text,
	       (unsigned long long)bits);
}

static void broadcasts(void)
{
	say("The service broadcasts; only who has a match gets it");
	broadcast(0x7, "storm warning");
	broadcast(0x3, "tide tables");
	drain(&watcher);
	drain(&client);
}

static void death(void)
{
	say("The service dies with a call unanswered: one outcome, in one order");
	call(8, "and tomorrow?");
	host_close(&service);
	drain(&client);
	drain(&watcher);
}

static void play(void)
{
	say("BUS_MAKE: a bus with its default endpoint");
	must("BUS_MAKE", host_init(&host));
	printf("   bus %llu \"%s\", bloom filters of %d bytes\n", (unsigned long long)host.bus.id,
	       host.bus.name, HOST_BLOOM);
	say("Three programs connect");
	hello(&service, "service");
	hello(&client, "client");
	hello(&watcher, "watcher");
	subscribe();
	take_name();
	call_and_reply();
	broadcasts();
	death();
	host_close(&client);
	host_close(&watcher);
	host_deinit(&host);
	printf("\nWhere to go next: README.md, the rules in core/*.h (begin with core/bus.h),\n"
	       "and \"make check\", which tests each of them.\n");
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--help")) {
		printf("usage: kdbus-core-demo [--help] [--version]\n"
		       "Plays a bus of three connections in one process, step by step.\n");
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		printf("kdbus-core-demo " VERSION "\n");
		return 0;
	}
	if (argc > 1) {
		fprintf(stderr, "kdbus-core-demo: unknown argument '%s'; try --help\n", argv[1]);
		return 2;
	}
	play();
	return 0;
}
