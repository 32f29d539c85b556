// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Native peers start the services of D-Bus by talking to them. The argument is a program that
 * serves as in echo.h, with a client library that knows nothing of kdbus.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "echo.h"
#include "native.h"
#include "own-bus.h"

#define LIMIT 100000 /* max_incoming_bytes */

static const char config[] =
	"<servicedir>%s</servicedir>"
	"<policy context='default'><deny send_destination='org.example.Forbidden'/></policy>"
	"<limit name='max_incoming_bytes'>%d</limit>"
	"<limit name='max_pending_service_starts'>3</limit>";

static char folder[160];
static const char *echo;
static struct own_bus bus;

static void put_service(const char *name, const char *exec)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.service", folder, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fprintf(f, "[D-BUS Service]\nName=%s\nExec=%s\n", name, exec) > 0);
	assert_int_equal(fclose(f), 0);
}

static void put_echo(const char *name)
{
	char exec[512];

	/* What it says is no result of this test. */
	snprintf(exec, sizeof(exec), "/bin/sh -c 'exec \"$0\" serve %s >&2' %s", name, echo);
	put_service(name, exec);
}

static void put_services(void)
{
	put_echo("org.example.Good");
	put_echo("org.example.Ordered");
	put_echo("org.example.Sync");
	put_echo("org.example.Both");
	put_service("org.example.Forbidden", "/bin/true");
	put_service("org.example.Missing", "/nowhere/program");
	put_service("org.example.Exits", "/bin/false");
	put_service("org.example.Broken", "\"no end of the quotes");
	/* A program that ends well may have left a daemon behind: the test is that daemon. */
	put_service("org.example.Later", "/bin/true");
	put_service("org.example.Dies", "/bin/true");
	put_service("org.example.Takes", "/bin/true");
	put_service("org.example.Leaves", "/bin/true");
	put_service("org.example.Limit", "/bin/true");
	put_service("org.example.Limit2", "/bin/true");
	put_service("org.example.Limit3", "/bin/true");
	put_service("org.example.Limit4", "/bin/true");
}

static int start(void **state)
{
	const char *tmp = getenv("TMPDIR");
	char text[512];

	snprintf(folder, sizeof(folder), "%s/services-XXXXXX", tmp ? tmp : P_tmpdir);
	assert_non_null(mkdtemp(folder));
	put_services();
	snprintf(text, sizeof(text), config, folder, LIMIT);
	own_bus_start(&bus, text, 0);
	native_path = bus.native;
	native_learn_names();
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int stop(void **state)
{
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return own_bus_stop(&bus);
}

/* ---- calls of the service ---- */

static uint8_t *call_message(const char *name, const char *member, uint32_t serial, bool reply,
			     const char *text, size_t *ret_len)
{
	return native_message((struct dbusp_desc){ .type = DBUSP_METHOD_CALL,
						   .flags = reply ? 0 : DBUSP_NO_REPLY_EXPECTED,
						   .serial = serial,
						   .path = DBUSP_STR(ECHO_PATH),
						   .interface = DBUSP_STR(ECHO_INTERFACE),
						   .member = dbusp_str(member),
						   .destination = dbusp_str(name) },
			      text, ret_len);
}

static int send_flags(struct libkdbus *h, const char *name, const char *member, uint32_t serial,
		      const char *text, uint64_t flags)
{
	const struct native_send how = {
		.dst_id = KDBUS_DST_ID_NAME, .dst_name = name, .flags = flags, .cookie = serial
	};
	size_t len;
	uint8_t *data =
		call_message(name, member, serial, flags & KDBUS_MSG_EXPECT_REPLY, text, &len);
	int r = native_send(h, &how, data, len);

	free(data);
	return r;
}

static int send_call(struct libkdbus *h, const char *name, uint32_t serial, const char *text)
{
	return send_flags(h, name, "Echo", serial, text, KDBUS_MSG_EXPECT_REPLY);
}

/* The reply to call @serial, with @text, from @src_id unless that is 0 */
static uint64_t want_reply(struct libkdbus *h, uint64_t serial, const char *text)
{
	const struct kdbus_msg *msg = native_next(h);
	struct dbusp_header header;
	uint64_t from = msg->src_id;

	assert_int_equal(msg->cookie_reply, serial);
	assert_string_equal(native_text(h, msg, &header), text);
	assert_int_equal(header.frame.type, DBUSP_METHOD_RETURN);
	libkdbus_done(h, msg);
	return from;
}

static void want_bus_error(struct libkdbus *h, uint64_t serial, const char *name)
{
	const struct kdbus_msg *msg = native_next(h);
	struct dbusp_header header;
	char unique[32];

	assert_int_equal(msg->cookie_reply, serial);
	assert_true(*native_text(h, msg, &header));
	assert_int_equal(header.frame.type, DBUSP_ERROR);
	assert_string_equal(header.error_name.s, name);
	assert_string_equal(header.sender.s, DBUS);
	assert_string_equal(header.destination.s, native_name(h, unique, sizeof(unique)));
	assert_int_equal(header.reply_serial, serial);
	libkdbus_done(h, msg);
}

static void want_dead(struct libkdbus *h, uint64_t serial)
{
	const struct kdbus_msg *msg = native_next(h);

	assert_int_equal(msg->src_id, 0);
	assert_int_equal(msg->cookie_reply, serial);
	assert_non_null(libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_REPLY_DEAD));
	libkdbus_done(h, msg);
}

static void quit(struct libkdbus *h, const char *name)
{
	const struct kdbus_msg *msg;

	assert_int_equal(send_flags(h, name, "Quit", 99, NULL, KDBUS_MSG_EXPECT_REPLY), 0);
	msg = native_next(h);
	assert_int_equal(msg->cookie_reply, 99);
	libkdbus_done(h, msg);
}

/* ---- it starts ---- */

static void test_call_starts(void **state)
{
	struct libkdbus *h = native_join();
	uint64_t owner;

	assert_int_equal(send_call(h, "org.example.Good", 7, "good morning"), 0);
	owner = want_reply(h, 7, "good morning");
	/* It is there now, and no one else answers. */
	assert_int_equal(send_call(h, "org.example.Good", 8, "again"), 0);
	assert_int_equal(want_reply(h, 8, "again"), owner);
	quit(h, "org.example.Good");
	libkdbus_close(h);
}

static void test_messages_stay_in_order(void **state)
{
	struct libkdbus *h = native_join();
	char text[16];
	uint32_t i;

	for (i = 1; i <= 20; i++) {
		snprintf(text, sizeof(text), "%u", i);
		assert_int_equal(send_call(h, "org.example.Ordered", i, text), 0);
	}
	for (i = 1; i <= 20; i++) {
		snprintf(text, sizeof(text), "%u", i);
		want_reply(h, i, text);
	}
	quit(h, "org.example.Ordered");
	libkdbus_close(h);
}

static void test_synchronous_call(void **state)
{
	struct libkdbus *h = native_join();
	const struct kdbus_msg *reply;
	struct libkdbus_builder b;
	struct dbusp_header header;
	struct kdbus_msg *msg;
	void *built;
	size_t len;
	uint8_t *data = call_message("org.example.Sync", "Echo", 4, true, "now", &len);

	libkdbus_build(&b, sizeof(*msg), NULL, 0);
	libkdbus_build_vec(&b, data, len);
	libkdbus_build_string(&b, KDBUS_ITEM_DST_NAME, "org.example.Sync");
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	msg = built;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	msg->flags = KDBUS_MSG_EXPECT_REPLY;
	msg->cookie = 4;
	msg->timeout_ns = native_deadline();
	assert_int_equal(libkdbus_call(h, msg, -1, &reply), 0);
	assert_string_equal(native_text(h, reply, &header), "now");
	libkdbus_done(h, reply);
	libkdbus_build_clear(&b);
	free(data);
	quit(h, "org.example.Sync");
	libkdbus_close(h);
}

/* One service for all who ask: those who speak D-Bus, and those who do not. */
static void test_both_kinds_wait(void **state)
{
	struct libkdbus *h = native_join();
	uint32_t serial;
	struct got g;

	WITH(p);
	assert_int_equal(send_call(h, "org.example.Both", 1, "native"), 0);
	serial = peer_call(&p, "org.example.Both", ECHO_PATH, ECHO_INTERFACE, "Echo", "s",
			   "classic");
	want_return(&p, serial, &g);
	assert_string_equal(got_string(&g), "classic");
	got_free(&g);
	want_reply(h, 1, "native");
	quit(h, "org.example.Both");
	peer_close(&p);
	libkdbus_close(h);
}

/* ---- the owner is native, too ---- */

static void test_native_owner(void **state)
{
	struct libkdbus *h = native_join(), *owner = native_join();
	const struct kdbus_msg *msg;
	struct dbusp_header header;

	assert_int_equal(send_flags(h, "org.example.Later", "Note", 1, "first", 0), 0);
	assert_int_equal(send_call(h, "org.example.Later", 2, "second"), 0);
	assert_int_equal(libkdbus_acquire(owner, "org.example.Later", 0, NULL), 0);
	msg = native_next(owner);
	assert_int_equal(msg->src_id, libkdbus_identity(h)->id);
	assert_string_equal(native_text(owner, msg, &header), "first");
	libkdbus_done(owner, msg);
	msg = native_next(owner);
	assert_string_equal(native_text(owner, msg, &header), "second");
	native_reply(owner, msg, 70, "answer");
	libkdbus_done(owner, msg);
	assert_int_equal(want_reply(h, 2, "answer"), libkdbus_identity(owner)->id);
	/* From now on they may talk past the daemon. */
	assert_int_equal(send_call(h, "org.example.Later", 3, "third"), 0);
	msg = native_next(owner);
	native_reply(owner, msg, 71, "another");
	libkdbus_done(owner, msg);
	assert_int_equal(want_reply(h, 3, "another"), libkdbus_identity(owner)->id);
	libkdbus_close(owner);
	libkdbus_close(h);
}

/* A call that waited is one like any other: its callee may die. */
static void test_owner_dies(void **state)
{
	struct libkdbus *h = native_join(), *owner = native_join();

	assert_int_equal(send_call(h, "org.example.Dies", 5, "hello"), 0);
	assert_int_equal(libkdbus_acquire(owner, "org.example.Dies", 0, NULL), 0);
	libkdbus_done(owner, native_next(owner));
	libkdbus_close(owner);
	want_dead(h, 5);
	libkdbus_close(h);
}

static void test_descriptor_waits(void **state)
{
	struct libkdbus *h = native_join(), *owner = native_join();
	const struct kdbus_item *item;
	const struct kdbus_msg *msg;
	struct stat sent, got;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	size_t len;
	uint8_t *data = native_message((struct dbusp_desc){ .type = DBUSP_METHOD_CALL,
							    .serial = 6,
							    .n_fds = 1,
							    .path = DBUSP_STR(ECHO_PATH),
							    .member = DBUSP_STR("Take") },
				       "here", &len);

	assert_int_equal(native_send(h,
				     &(struct native_send){ .dst_name = "org.example.Takes",
							    .flags = KDBUS_MSG_EXPECT_REPLY,
							    .cookie = 6,
							    .fds = &fd,
							    .n_fds = 1 },
				     data, len),
			 0);
	assert_int_equal(libkdbus_acquire(owner, "org.example.Takes", 0, NULL), 0);
	msg = native_next(owner);
	item = libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_FDS);
	assert_non_null(item);
	assert_int_equal(fstat(fd, &sent), 0);
	assert_int_equal(fstat(item->fds[0], &got), 0);
	assert_true(sent.st_rdev == got.st_rdev);
	close(item->fds[0]);
	close(fd);
	libkdbus_done(owner, msg);
	free(data);
	libkdbus_close(owner);
	libkdbus_close(h);
}

/* What a peer has waiting ends with it. */
static void test_sender_leaves(void **state)
{
	struct libkdbus *h = native_join(), *owner = native_join(), *other = native_join();
	const struct kdbus_msg *msg;
	struct dbusp_header header;

	assert_int_equal(send_call(h, "org.example.Leaves", 1, "gone"), 0);
	assert_int_equal(send_call(other, "org.example.Leaves", 2, "there"), 0);
	libkdbus_close(h);
	assert_int_equal(libkdbus_acquire(owner, "org.example.Leaves", 0, NULL), 0);
	msg = native_next(owner);
	/* In the module it is there as long as nobody has looked at it. */
	if (own_bus_on_module() && !strcmp(native_text(owner, msg, &header), "gone")) {
		libkdbus_done(owner, msg);
		msg = native_next(owner);
	}
	assert_string_equal(native_text(owner, msg, &header), "there");
	libkdbus_done(owner, msg);
	libkdbus_close(owner);
	libkdbus_close(other);
}

/* ---- it does not ---- */

static void test_service_fails(void **state)
{
	struct libkdbus *h = native_join();

	assert_int_equal(send_call(h, "org.example.Missing", 1, "hello"), 0);
	want_bus_error(h, 1, ERROR_NAME("Spawn.ExecFailed"));
	assert_int_equal(send_call(h, "org.example.Exits", 2, "hello"), 0);
	want_bus_error(h, 2, ERROR_NAME("Spawn.ChildExited"));
	/* This one fails before anything is started, and after SEND has returned all the same. */
	assert_int_equal(send_call(h, "org.example.Broken", 4, "hello"), 0);
	want_bus_error(h, 4, ERROR_NAME("Spawn.FileInvalid"));
	/* Everybody may try again. */
	assert_int_equal(send_call(h, "org.example.Exits", 3, "hello"), 0);
	want_bus_error(h, 3, ERROR_NAME("Spawn.ChildExited"));
	libkdbus_close(h);
}

static void test_refused_at_once(void **state)
{
	struct libkdbus *h = native_join();
	struct native_send how = { .dst_name = "org.example.Missing", .cookie = 1 };

	assert_int_equal(send_call(h, "org.example.Nobody", 1, "hello"), -ESRCH);
	/* On a bus of the module a message waits at an activator, and is refused from there. */
	assert_int_equal(send_flags(h, "org.example.Missing", "Echo", 1, "hello",
				    KDBUS_MSG_EXPECT_REPLY | KDBUS_MSG_NO_AUTO_START),
			 own_bus_on_module() ? -EADDRNOTAVAIL : -ESRCH);
	assert_int_equal(send_call(h, "org.example.Forbidden", 1, "hello"),
			 own_bus_on_module() ? 0 : -EPERM);
	if (own_bus_on_module())
		want_bus_error(h, 1, ERROR_NAME("AccessDenied"));
	how.cookie = 2;
	how.flags = own_bus_on_module() ? KDBUS_MSG_EXPECT_REPLY : 0;
	assert_int_equal(native_send(h, &how, "no D-Bus message", 16),
			 own_bus_on_module() ? 0 : -EBADMSG);
	if (own_bus_on_module())
		want_bus_error(h, 2, ERROR_NAME("InconsistentMessage"));
	libkdbus_close(h);
}

/* What waits counts for the module, as all that it holds for a user. */
static void test_limits_of_module(void)
{
	struct libkdbus *h = native_join();

	assert_int_equal(send_call(h, "org.example.Limit", 1, "small"), 0);
	assert_int_equal(send_call(h, "org.example.Limit2", 2, "small"), 0);
	assert_int_equal(send_call(h, "org.example.Limit3", 3, "small"), 0);
	assert_int_equal(send_call(h, "org.example.Limit4", 4, "small"), 0);
	want_bus_error(h, 4, ERROR_NAME("LimitsExceeded"));
	libkdbus_close(h);
}

static void test_limits(void **state)
{
	struct libkdbus *h, *owner;
	char *text;
	struct dbusp_header header;
	const struct kdbus_msg *msg;

	if (own_bus_on_module()) {
		test_limits_of_module();
		return;
	}
	h = native_join();
	owner = native_join();
	text = malloc(LIMIT);
	memset(text, 'x', LIMIT - 1);
	text[LIMIT * 2 / 3] = '\0';
	assert_int_equal(send_call(h, "org.example.Limit", 1, text), 0);
	assert_int_equal(send_call(h, "org.example.Limit", 2, text), -ENOBUFS);
	/* Others have room of their own, and so has he for something smaller. */
	assert_int_equal(send_call(owner, "org.example.Limit", 3, text), 0);
	assert_int_equal(send_call(h, "org.example.Limit2", 4, "small"), 0);
	assert_int_equal(send_call(h, "org.example.Limit3", 5, "small"), 0);
	/* That would be the fourth at the same time. */
	assert_int_equal(send_call(h, "org.example.Limit4", 6, "small"), -ENOBUFS);
	assert_int_equal(libkdbus_acquire(owner, "org.example.Limit", 0, NULL), 0);
	msg = native_next(owner);
	assert_string_equal(native_text(owner, msg, &header), text);
	assert_int_equal(msg->src_id, libkdbus_identity(h)->id);
	libkdbus_done(owner, msg);
	/* What was given away does not count any more. */
	assert_int_equal(send_call(h, "org.example.Limit4", 7, "small"), 0);
	assert_int_equal(send_call(h, "org.example.Limit2", 8, text), 0);
	free(text);
	libkdbus_close(owner);
	libkdbus_close(h);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call_starts),
		cmocka_unit_test(test_messages_stay_in_order),
		cmocka_unit_test(test_synchronous_call),
		cmocka_unit_test(test_both_kinds_wait),
		cmocka_unit_test(test_native_owner),
		cmocka_unit_test(test_owner_dies),
		cmocka_unit_test(test_descriptor_waits),
		cmocka_unit_test(test_sender_leaves),
		cmocka_unit_test(test_service_fails),
		cmocka_unit_test(test_refused_at_once),
		cmocka_unit_test(test_limits),
	};

	if (argc != 2) {
		fputs("usage: classic-native-start ECHO\n", stderr);
		return 2;
	}
	echo = argv[1];
	return cmocka_run_group_tests(tests, start, stop);
}
