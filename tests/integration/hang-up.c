// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The end of a channel in the library: whatever files lie in its socket, and behind whatever, the
 * thread that ends it waits for none of them. Here it is a socket whose last close() waits until
 * its reader has read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/user/user.h"
#include "lingering.h"

#define HANG_SECONDS 300 /* ends a test that waits for that after all */

static int set_up(void **state)
{
	alarm(HANG_SECONDS);
	return 0;
}

/* Ours is closed: the only one lies in @sock. */
static void put_file(int sock, int fd)
{
	assert_int_equal(lane_linux_ops.send(&lane_linux_ops, sock, "x", 1, &fd, 1), 0);
	close(fd);
}

static void hang_up_with_file_behind(const char *text, size_t n)
{
	struct lane_ops ops = user_lane_ops();
	struct lingering l;
	int sv[2];

	if (lingering_make(&l) < 0) {
		print_message("# needs a loopback interface\n");
		skip();
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(send(sv[1], text, n, 0), n);
	put_file(sv[1], l.fd);
	ops.hang_up(&ops, sv[0]);
	assert_int_equal(lingering_release(&l), 0);
	close(sv[1]);
}

static void behind_a_message(void **state)
{
	hang_up_with_file_behind("something", 9);
}

static void behind_an_empty_message(void **state)
{
	hang_up_with_file_behind("", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(behind_a_message, set_up),
		cmocka_unit_test_setup(behind_an_empty_message, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
