// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A client that lets nobody finish reading its command line in /proc holds up itself, and who asks
 * for it, and nobody else.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <libkdbus.h>

#include "held.h"

/* So many readings of one user may be held up at once (daemon/reading.h). */
#define PLACES 8

struct fixture {
	struct libkdbus_daemon *daemon;
	const char *bus;
};

static int set_up(void **state)
{
	static struct fixture f;

	f.daemon = NULL;
	*state = &f;
	if (!held_is_possible())
		return 0;
	assert_int_equal(libkdbus_daemon_start(NULL, &f.daemon), 0);
	f.bus = libkdbus_daemon_bus(f.daemon);
	return 0;
}

/* Not in set_up(): what skips there has failed. */
static struct fixture *needed(void **state)
{
	struct fixture *f = *state;

	if (!f->daemon) {
		print_message("# needs /dev/fuse and the right to mount: root\n");
		skip();
	}
	return f;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	libkdbus_daemon_stop(f->daemon);
	return 0;
}

static struct libkdbus *connect_wanting(const struct fixture *f, uint64_t attach)
{
	const struct libkdbus_options options = { .attach_send = _KDBUS_ATTACH_ALL,
						  .attach_recv = attach };
	struct libkdbus *h;

	assert_int_equal(libkdbus_connect(f->bus, &options, &h), 0);
	return h;
}

/* One that gets every broadcast and wants its sender's command line */
static struct libkdbus *connect_watcher(const struct fixture *f)
{
	struct libkdbus *h = connect_wanting(f, KDBUS_ATTACH_CMDLINE);
	struct libkdbus_builder b;
	void *built;

	libkdbus_build(&b, sizeof(struct kdbus_cmd_match), NULL, 0);
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	assert_int_equal(libkdbus_match_add(h, built), 0);
	libkdbus_build_clear(&b);
	return h;
}

static void send_to(struct libkdbus *from, struct libkdbus *to, uint64_t cookie)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct kdbus_msg msg = { .size = sizeof(msg),
				 .dst_id = libkdbus_identity(to)->id,
				 .payload_type = KDBUS_PAYLOAD_DBUS,
				 .cookie = cookie };

	cmd.msg_address = (uintptr_t)&msg;
	assert_int_equal(libkdbus_send(from, &cmd), 0);
}

static const struct kdbus_msg *await(struct libkdbus *h)
{
	const struct kdbus_msg *msg;
	int r;

	while ((r = libkdbus_receive(h, &msg)) == -EAGAIN)
		assert_int_equal(libkdbus_wait(h, UINT64_MAX, -1), 0);
	assert_int_equal(r, 0);
	return msg;
}

static bool is_of_held(const struct kdbus_item *line)
{
	return held_is_command_line(line->str, line->size - offsetof(struct kdbus_item, str));
}

/* The next message is @cookie of @id. What the bus itself says is passed over. */
static void expect(struct libkdbus *h, uint64_t id, uint64_t cookie, bool held)
{
	const struct kdbus_msg *msg = await(h);
	const struct kdbus_item *line;

	while (msg->src_id == KDBUS_SRC_ID_KERNEL) {
		libkdbus_done(h, msg);
		msg = await(h);
	}
	assert_int_equal(msg->src_id, id);
	assert_int_equal(msg->cookie, cookie);
	line = libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_CMDLINE);
	assert_non_null(line);
	assert_int_equal(is_of_held(line), held);
	libkdbus_done(h, msg);
}

/* Two others connect, and one sends the other and the watcher a message. */
static void others_go_on(const struct fixture *f, struct libkdbus *watcher)
{
	struct libkdbus *a = connect_wanting(f, 0), *b = connect_wanting(f, 0);

	send_to(a, b, 1);
	libkdbus_done(b, await(b));
	send_to(a, watcher, 2);
	expect(watcher, libkdbus_identity(a)->id, 2, false);
	libkdbus_close(b);
	libkdbus_close(a);
}

static void its_connection_waits_and_others_go_on(void **state)
{
	struct fixture *f = needed(state);
	struct libkdbus *watcher = connect_watcher(f);
	struct held h;

	held_start(&h);
	held_connect_holding(&h, f->bus);
	held_await_reader(&h, libkdbus_daemon_pid(f->daemon));
	others_go_on(f, watcher);
	assert_false(held_has_said_something(&h));
	held_release(&h);
	held_connected(&h);
	expect(watcher, h.id, 0, true);
	held_broadcast(&h, 1);
	expect(watcher, h.id, 1, true);
	held_end(&h);
	libkdbus_close(watcher);
}

/* It is connected when somebody comes who wants it. */
static void what_it_sends_waits_in_order(void **state)
{
	struct fixture *f = needed(state);
	struct libkdbus *watcher;
	struct held h;

	held_start(&h);
	held_connect(&h, f->bus);
	watcher = connect_watcher(f);
	held_hold(&h);
	held_broadcast(&h, 3);
	held_await_reader(&h, libkdbus_daemon_pid(f->daemon));
	others_go_on(f, watcher);
	held_release(&h);
	expect(watcher, h.id, 1, true);
	expect(watcher, h.id, 2, true);
	expect(watcher, h.id, 3, true);
	held_end(&h);
	libkdbus_close(watcher);
}

struct question {
	struct libkdbus *asker;
	uint64_t id;
	uint64_t attach;
	int error;
	bool held;
};

static void *ask(void *arg)
{
	struct question *q = arg;
	struct kdbus_cmd_info cmd = { .size = sizeof(cmd), .id = q->id, .attach_flags = q->attach };
	const struct kdbus_item *line;
	const struct kdbus_info *info;

	q->held = false;
	q->error = libkdbus_conn_info(q->asker, &cmd);
	if (q->error)
		return NULL;
	info = (const void *)((const char *)libkdbus_pool(q->asker, NULL) + cmd.offset);
	line = libkdbus_item_find(info, sizeof(*info), KDBUS_ITEM_CMDLINE);
	q->held = line && is_of_held(line);
	libkdbus_done(q->asker, info);
	return NULL;
}

static void who_asks_for_it_waits_and_who_asks_for_less_does_not(void **state)
{
	struct fixture *f = needed(state);
	struct question q = { .asker = connect_wanting(f, 0), .attach = KDBUS_ATTACH_CMDLINE };
	struct question less = { .asker = connect_wanting(f, 0),
				 .attach = KDBUS_ATTACH_CREDS | KDBUS_ATTACH_PID_COMM };
	pthread_t thread;
	struct held h;

	held_start(&h);
	held_connect(&h, f->bus);
	held_hold(&h);
	q.id = less.id = h.id;
	assert_int_equal(pthread_create(&thread, NULL, ask, &q), 0);
	held_await_reader(&h, libkdbus_daemon_pid(f->daemon));
	ask(&less);
	assert_int_equal(less.error, 0);
	held_release(&h);
	pthread_join(thread, NULL);
	assert_int_equal(q.error, 0);
	assert_true(q.held);
	held_end(&h);
	libkdbus_close(less.asker);
	libkdbus_close(q.asker);
}

static void its_death_ends_the_question(void **state)
{
	struct fixture *f = needed(state);
	struct question q = { .asker = connect_wanting(f, 0), .attach = KDBUS_ATTACH_CMDLINE };
	pthread_t thread;
	struct held h;

	held_start(&h);
	held_connect(&h, f->bus);
	held_hold(&h);
	q.id = h.id;
	assert_int_equal(pthread_create(&thread, NULL, ask, &q), 0);
	held_await_reader(&h, libkdbus_daemon_pid(f->daemon));
	held_end(&h);
	pthread_join(thread, NULL);
	assert_true(q.error == -ENXIO || q.error == 0);
	libkdbus_close(q.asker);
}

/* All who may read for this user are held up: others of it do without command lines. */
static void many_of_them_do_not_hold_up_others(void **state)
{
	struct fixture *f = needed(state);
	struct libkdbus *watcher = connect_watcher(f), *late;
	struct held h[PLACES];
	const struct kdbus_msg *msg;
	unsigned int i;

	for (i = 0; i < PLACES; i++) {
		held_start(&h[i]);
		held_connect_holding(&h[i], f->bus);
		held_await_reader(&h[i], libkdbus_daemon_pid(f->daemon));
	}
	late = connect_wanting(f, 0);
	send_to(late, watcher, 1);
	do {
		msg = await(watcher);
	} while (msg->src_id == KDBUS_SRC_ID_KERNEL && libkdbus_done(watcher, msg) == 0);
	assert_int_equal(msg->cookie, 1);
	assert_null(libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_CMDLINE));
	libkdbus_done(watcher, msg);
	libkdbus_close(late);
	for (i = 0; i < PLACES; i++) {
		held_release(&h[i]);
		held_connected(&h[i]);
		expect(watcher, h[i].id, 0, true);
	}
	for (i = 0; i < PLACES; i++)
		held_end(&h[i]);
	libkdbus_close(watcher);
}

/* The kernel lets it go when its thread is; its clients know before. */
static void the_daemon_ends_all_the_same(void **state)
{
	struct fixture *f = needed(state);
	struct libkdbus *watcher = connect_watcher(f);
	const struct kdbus_msg *msg;
	struct held h;
	int r;

	held_start(&h);
	held_connect_holding(&h, f->bus);
	held_await_reader(&h, libkdbus_daemon_pid(f->daemon));
	assert_int_equal(kill(libkdbus_daemon_pid(f->daemon), SIGTERM), 0);
	while ((r = libkdbus_receive(watcher, &msg)) == 0 || r == -EAGAIN) {
		if (r == 0)
			libkdbus_done(watcher, msg);
		else
			libkdbus_wait(watcher, UINT64_MAX, -1);
	}
	assert_int_equal(r, -ECONNRESET);
	held_end(&h);
	f->daemon = libkdbus_daemon_stop(f->daemon);
	libkdbus_close(watcher);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(its_connection_waits_and_others_go_on, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_it_sends_waits_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			who_asks_for_it_waits_and_who_asks_for_less_does_not, set_up, tear_down),
		cmocka_unit_test_setup_teardown(its_death_ends_the_question, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_of_them_do_not_hold_up_others, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_daemon_ends_all_the_same, set_up, tear_down),
	};

	held_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
