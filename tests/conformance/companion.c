// SPDX-License-Identifier: LGPL-2.1-or-later
/* Child processes, as other users. */
#include <grp.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "fixture.h"

bool fixture_can_change_user(void)
{
	return geteuid() == 0;
}

static int become(unsigned int id)
{
	if (geteuid() == id)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0)
		return -1;
	return setresuid(id, id, id);
}

/* In the child: an assertion that fails ends it, instead of going on with the next test. */
static void enter_child(unsigned int id)
{
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	setenv("CMOCKA_MESSAGE_OUTPUT", "STDOUT", 1);
	if (become(id) < 0)
		_exit(99);
}

static int wait_child(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int fixture_as_user(unsigned int id, int (*fn)(void *arg), void *arg)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		enter_child(id);
		_exit(fn(arg));
	}
	return wait_child(pid);
}

int fixture_as_nobody(int (*fn)(void *arg), void *arg)
{
	return fixture_as_user(FIXTURE_NOBODY, fn, arg);
}

void companion_start(struct companion *c, unsigned int id,
		     int (*fn)(struct companion *self, void *arg), void *arg)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	c->pid = fork();
	assert_true(c->pid >= 0);
	if (c->pid == 0) {
		struct companion self = { .sock = pair[1] };

		close(pair[0]);
		enter_child(id);
		_exit(fn(&self, arg));
	}
	close(pair[1]);
	c->sock = pair[0];
}

void companion_tell(struct companion *c, uint64_t value)
{
	assert_int_equal(send(c->sock, &value, sizeof(value), MSG_NOSIGNAL), sizeof(value));
}

uint64_t companion_hear(struct companion *c)
{
	uint64_t value = 0;

	assert_int_equal(recv(c->sock, &value, sizeof(value), MSG_WAITALL), sizeof(value));
	return value;
}

void companion_meet(struct companion *c)
{
	companion_tell(c, 0);
	assert_int_equal(companion_hear(c), 0);
}

int companion_end(struct companion *c)
{
	int r = wait_child(c->pid);

	close(c->sock);
	return r;
}
