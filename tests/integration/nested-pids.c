// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * PIDS of a sender as seen from each pid namespace above it, and from those that do not see it
 * (§8.5, doc/compat.md). Namespaces are for root; without them there is nothing to be tested.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <libkdbus.h>

#define LEVELS 3 /* below the daemon's namespace */

/* A process on each level, parent of the next; the first is in the daemon's namespace. */
struct level {
	uint64_t id; /* of its connection */
	pid_t child; /* the next process, as this one sees it */
	int ask[2]; /* whom to greet, by id */
	int tell[2]; /* its id; then whom it saw */
};

struct seen {
	uint64_t src;
	struct kdbus_pids pids;
};

static void greet(struct libkdbus *h, uint64_t to)
{
	struct kdbus_msg msg = {
		.size = sizeof(msg), .dst_id = to, .payload_type = KDBUS_PAYLOAD_DBUS, .cookie = 1
	};
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd), .msg_address = (uintptr_t)&msg };

	if (libkdbus_send(h, &cmd) < 0)
		_exit(3);
}

static void see(struct libkdbus *h, struct seen *ret)
{
	const struct kdbus_item *item;
	const struct kdbus_msg *msg;

	while (libkdbus_receive(h, &msg) < 0)
		if (libkdbus_wait(h, UINT64_MAX, -1) < 0)
			_exit(4);
	item = libkdbus_item_find(msg, sizeof(*msg), KDBUS_ITEM_PIDS);
	memset(ret, 0, sizeof(*ret));
	ret->src = msg->src_id;
	if (item)
		ret->pids = item->pids;
	libkdbus_done(h, msg);
}

/* Greet whom we are asked to; with 0, tell whom we see. */
static void serve(struct libkdbus *h, const struct level *l)
{
	struct seen seen;
	uint64_t to;

	while (read(l->ask[0], &to, sizeof(to)) == sizeof(to)) {
		if (to) {
			greet(h, to);
			continue;
		}
		see(h, &seen);
		if (write(l->tell[1], &seen, sizeof(seen)) != sizeof(seen))
			_exit(5);
	}
}

/* In the process of level 0: below it there are others, in namespaces of their own. */
static struct level *descend(struct level *levels)
{
	struct level *l;

	for (l = levels; l < levels + LEVELS; l++) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWPID) < 0)
			_exit(77);
		l->child = fork();
		if (l->child < 0)
			_exit(1);
		if (l->child)
			return l;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return l;
}

static void run(const char *bus, struct level *levels)
{
	const struct libkdbus_options options = { .attach_send = _KDBUS_ATTACH_ALL,
						  .attach_recv = KDBUS_ATTACH_PIDS };
	struct level *l = descend(levels);
	struct libkdbus *h;
	uint64_t id;

	if (libkdbus_connect(bus, &options, &h) < 0)
		_exit(2);
	id = libkdbus_identity(h)->id;
	if (write(l->tell[1], &id, sizeof(id)) != sizeof(id) ||
	    write(l->tell[1], &l->child, sizeof(l->child)) != sizeof(l->child))
		_exit(5);
	serve(h, l);
	_exit(0);
}

static void ask(const struct level *l, uint64_t what)
{
	assert_int_equal(write(l->ask[1], &what, sizeof(what)), sizeof(what));
}

static struct seen greeting(const struct level *from, const struct level *to)
{
	struct seen seen;

	ask(from, to->id);
	ask(to, 0);
	assert_int_equal(read(to->tell[0], &seen, sizeof(seen)), sizeof(seen));
	assert_int_equal(seen.src, from->id);
	assert_int_equal(seen.pids.pid, seen.pids.tid);
	return seen;
}

/*
 * The process of level n is pid 1 in its namespace, n, and its parent is in n - 1. (That of level 0
 * is an ordinary one.) Each knows by fork() how it sees the next.
 */
static void check(const struct level *levels, unsigned int from, unsigned int to)
{
	struct kdbus_pids seen = greeting(&levels[from], &levels[to]).pids;

	if (from < to) {
		assert_int_equal(seen.pid, 0);
		assert_int_equal(seen.ppid, 0);
		return;
	}
	assert_true(seen.pid > 0);
	if (from == to + 1)
		assert_int_equal(seen.pid, levels[to].child);
	if (to && from == to) {
		assert_int_equal(seen.pid, 1);
		assert_int_equal(seen.ppid, 0);
	}
	/* The parent is seen as the sender of its own messages is. */
	if (from > to)
		assert_int_equal(seen.ppid, greeting(&levels[from - 1], &levels[to]).pids.pid);
}

static void each_sees_what_is_below(void **state)
{
	struct libkdbus_daemon *daemon;
	struct level levels[LEVELS + 1];
	unsigned int i, k;
	pid_t first;

	memset(levels, 0, sizeof(levels));
	if (geteuid())
		skip();
	assert_int_equal(libkdbus_daemon_start(NULL, &daemon), 0);
	for (i = 0; i <= LEVELS; i++) {
		assert_int_equal(pipe(levels[i].ask), 0);
		assert_int_equal(pipe(levels[i].tell), 0);
	}
	first = fork();
	assert_true(first >= 0);
	if (!first)
		run(libkdbus_daemon_bus(daemon), levels);
	for (i = 0; i <= LEVELS; i++) {
		close(levels[i].tell[1]);
		assert_int_equal(read(levels[i].tell[0], &levels[i].id, sizeof(levels[i].id)),
				 sizeof(levels[i].id));
		assert_int_equal(read(levels[i].tell[0], &levels[i].child, sizeof(levels[i].child)),
				 sizeof(levels[i].child));
	}
	for (i = 0; i <= LEVELS; i++)
		for (k = 0; k <= LEVELS; k++)
			check(levels, i, k);
	kill(first, SIGKILL);
	assert_int_equal(waitpid(first, NULL, 0), first);
	libkdbus_daemon_stop(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_sees_what_is_below),
	};

	return cmocka_run_group_tests_name("nested pid namespaces", tests, NULL, NULL);
}
