// SPDX-License-Identifier: LGPL-2.1-or-later
/* Metadata across users and namespaces: ABI 15.7, metadata-ns. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "fixture.h"

#define NOBODY FIXTURE_NOBODY

/* Process ids and credentials that came with the next message of @h */
struct seen {
	struct kdbus_creds creds;
	struct kdbus_pids pids;
	bool caps;
};

static struct seen see(struct libkdbus *h)
{
	const struct kdbus_msg *msg = fixture_await(h);
	const struct kdbus_item *creds, *pids;
	struct seen seen;

	/* What the bus itself tells monitors has none. */
	while (msg->src_id == KDBUS_SRC_ID_KERNEL) {
		libkdbus_done(h, msg);
		msg = fixture_await(h);
	}
	creds = fixture_item(msg, KDBUS_ITEM_CREDS);
	pids = fixture_item(msg, KDBUS_ITEM_PIDS);
	assert_non_null(creds);
	assert_non_null(pids);
	seen = (struct seen){ .creds = creds->creds,
			      .pids = pids->pids,
			      .caps = fixture_item(msg, KDBUS_ITEM_CAPS) };
	libkdbus_done(h, msg);
	return seen;
}

static void assert_all_creds(const struct seen *seen, uint64_t id)
{
	const uint64_t *ids = (const uint64_t *)&seen->creds;
	unsigned int i;

	for (i = 0; i < sizeof(seen->creds) / sizeof(*ids); i++)
		assert_int_equal(ids[i], id);
}

static struct libkdbus *watch(void **state)
{
	int r;
	struct libkdbus *m = fixture_special(*state, KDBUS_HELLO_MONITOR, NULL, 0, &r);

	assert_int_equal(r, 0);
	return m;
}

static void assert_pids(const struct seen *seen)
{
	assert_int_not_equal(seen->pids.pid, 0);
	assert_int_not_equal(seen->pids.tid, 0);
	assert_int_not_equal(seen->pids.ppid, 0);
}

struct visit {
	const struct fixture *f;
	uint64_t dst;
};

static void send_hello(struct libkdbus *h, uint64_t dst)
{
	const struct letter l = { .dst = dst, .cookie = 1 };

	assert_int_equal(fixture_send(h, &l), 0);
}

/* ---- another user, same namespaces ---- */

static int visit_as_nobody(struct companion *self, void *arg)
{
	const struct visit *v = arg;
	struct libkdbus *h = fixture_connect(v->f);
	struct seen seen;

	send_hello(h, v->dst);
	companion_tell(self, fixture_id(h));
	seen = see(h);
	assert_all_creds(&seen, 0);
	assert_int_equal(seen.pids.pid, getppid());
	assert_int_equal(seen.pids.tid, getppid());
	libkdbus_close(h);
	return 0;
}

static const struct access world[] = {
	{ .name = "com.example.metadata" },
	{ NULL, KDBUS_POLICY_ACCESS_WORLD, KDBUS_POLICY_TALK, 0 },
};

static struct libkdbus *open_service(const struct fixture *f, struct libkdbus **ret_holder)
{
	struct libkdbus *h = fixture_connect(f);
	int r;

	assert_int_equal(libkdbus_acquire(h, world[0].name, 0, NULL), 0);
	*ret_holder = fixture_special(f, KDBUS_HELLO_POLICY_HOLDER, world, 2, &r);
	assert_int_equal(r, 0);
	return h;
}

static void another_user(void **state)
{
	struct libkdbus *h, *holder;
	struct visit v = { .f = *state };
	struct companion c;
	struct seen seen;

	FIXTURE_NEEDS_ROOT();
	h = open_service(*state, &holder);
	v.dst = fixture_id(h);
	companion_start(&c, NOBODY, visit_as_nobody, &v);
	send_hello(h, companion_hear(&c));
	seen = see(h);
	assert_all_creds(&seen, NOBODY);
	assert_int_equal(seen.pids.pid, c.pid);
	assert_int_equal(seen.pids.tid, c.pid);
	assert_int_equal(seen.pids.ppid, getpid());
	assert_int_equal(companion_end(&c), 0);
	libkdbus_close(holder);
	libkdbus_close(h);
}

/* ---- namespaces of its own ---- */

static bool write_map(const char *path, const char *map)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, map, strlen(map)) == (ssize_t)strlen(map);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* 65534 outside is 0 inside; what is forked next has the pid 1. */
static bool enter_namespaces(void)
{
	return unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0 &&
	       write_map("/proc/self/setgroups", "deny") &&
	       write_map("/proc/self/uid_map", "0 65534 1") &&
	       write_map("/proc/self/gid_map", "0 65534 1");
}

static int visit_inside(struct companion *self, const struct visit *v)
{
	struct libkdbus *h = fixture_connect(v->f);
	struct seen seen;
	int i;

	assert_int_equal(getpid(), 1);
	assert_int_equal(helper_match_all(h), 0);
	send_hello(h, v->dst);
	companion_tell(self, fixture_id(h));
	/* A unicast and a broadcast of root outside */
	for (i = 0; i < 2; i++) {
		seen = see(h);
		assert_all_creds(&seen, NOBODY);
		assert_int_equal(seen.pids.pid, 0);
		assert_int_equal(seen.pids.tid, 0);
		assert_int_equal(seen.pids.ppid, 0);
		assert_true(seen.caps);
	}
	libkdbus_close(h);
	return 0;
}

static int visit_from_namespaces(struct companion *self, void *arg)
{
	int status;
	pid_t pid;

	/* After a change of user /proc/self belongs to root until exec, or until this. */
	if (prctl(PR_SET_DUMPABLE, 1) < 0 || !enter_namespaces()) {
		companion_tell(self, 0);
		return 77;
	}
	pid = fork();
	if (pid == 0)
		_exit(visit_inside(self, arg));
	companion_tell(self, (uint64_t)getpid());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void meet_visitor(struct libkdbus *h, struct libkdbus *m, uint64_t id, uint64_t parent)
{
	struct seen seen = see(h);

	assert_all_creds(&seen, NOBODY);
	assert_pids(&seen);
	assert_int_equal(seen.pids.ppid, parent);
	assert_true(seen.caps);
	send_hello(h, id);
	assert_int_equal(fixture_broadcast(h, 2), 0);
	/* The monitor lives outside: it sees who sent each of the three. */
	seen = see(m);
	assert_pids(&seen);
	seen = see(m);
	assert_pids(&seen);
	seen = see(m);
	assert_pids(&seen);
}

static void other_namespaces(void **state)
{
	struct libkdbus *h, *holder, *m;
	struct visit v = { .f = *state };
	struct companion c;
	uint64_t one, two;

	FIXTURE_NEEDS_ROOT();
	h = open_service(*state, &holder);
	m = watch(state);
	v.dst = fixture_id(h);
	companion_start(&c, NOBODY, visit_from_namespaces, &v);
	/* The id of the connection and the pid of its parent come in either order. */
	one = companion_hear(&c);
	if (!one) {
		print_message("# no user and pid namespaces here\n");
	} else {
		two = companion_hear(&c);
		if (one == (uint64_t)c.pid)
			meet_visitor(h, m, two, one);
		else
			meet_visitor(h, m, one, two);
	}
	assert_int_equal(companion_end(&c), one ? 0 : 77);
	libkdbus_close(m);
	libkdbus_close(holder);
	libkdbus_close(h);
}

/* ---- a command line of several arguments (ABI 17.1 row 19) ---- */

#define ODD_ARGUMENTS "", "with blanks, and \xc3\xa9", "last"

/* In a program of its own: argv is what the test gave it. */
static int visit_as_program(char **argv)
{
	struct libkdbus *h = fixture_connect_to(argv[2], 0);

	send_hello(h, strtoull(argv[3], NULL, 10));
	/* It is there as long as the test wants to look. */
	fixture_expect(h, 2);
	libkdbus_close(h);
	return 0;
}

static void run_visitor(const char *path, const char *dst)
{
	execl("/proc/self/exe", "visitor", "--visit", path, dst, ODD_ARGUMENTS, (char *)NULL);
	_exit(99);
}

static void cmdline_is_whole(void **state)
{
	const struct fixture *f = *state;
	struct libkdbus *h = fixture_connect(f);
	char dst[32], expected[256];
	const struct kdbus_item *item;
	const struct kdbus_msg *msg;
	struct letter last = { .cookie = 2 };
	int n, status;
	pid_t pid;

	snprintf(dst, sizeof(dst), "%llu", (unsigned long long)fixture_id(h));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		run_visitor(f->path, dst);
	msg = fixture_await(h);
	item = fixture_item(msg, KDBUS_ITEM_CMDLINE);
	assert_non_null(item);
	n = snprintf(expected, sizeof(expected), "visitor%c--visit%c%s%c%s%c%c%s%c%s", 0, 0,
		     f->path, 0, dst, 0, 0, "with blanks, and \xc3\xa9", 0, "last");
	assert_int_equal(item->size, offsetof(struct kdbus_item, str) + (size_t)n + 1);
	assert_memory_equal(item->str, expected, (size_t)n + 1);
	last.dst = msg->src_id;
	libkdbus_done(h, msg);
	assert_int_equal(fixture_send(h, &last), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	libkdbus_close(h);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(another_user),
		FIXTURE_TEST(other_namespaces),
		FIXTURE_TEST(cmdline_is_whole),
	};

	if (argc > 3 && !strcmp(argv[1], "--visit"))
		return visit_as_program(argv);

	return FIXTURE_RUN(tests);
}
