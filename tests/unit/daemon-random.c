// SPDX-License-Identifier: LGPL-2.1-or-later
/* Random bytes (daemon/random.h) of a kernel that has not gathered enough, and of an old one. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "random.h"

#define LEN 16

/* From now on getrandom() with these flags, and no others, fails. */
static int refuse(unsigned int flags, int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_getrandom, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, flags, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned int)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int fills(void)
{
	unsigned char a[LEN] = { 0 }, b[LEN] = { 0 };

	return random_fill(a, LEN) == 0 && random_fill(b, LEN) == 0 && memcmp(a, b, LEN) != 0;
}

/* 0: it fills; 1: it does not; 2: the kernel cannot be made to refuse */
static int with_refusal(unsigned int flags, int error)
{
	unsigned char byte;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (refuse(flags, error) < 0 || getrandom(&byte, 1, flags) == 1 || errno != error)
			_exit(2);
		_exit(!fills());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* To ask as one who can wait would be to wait. */
static void test_never_waits(void **state)
{
	assert_int_equal(with_refusal(0, EAGAIN), 0);
}

static void test_old_kernel(void **state)
{
	assert_int_equal(with_refusal(GRND_INSECURE, EINVAL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_never_waits),
		cmocka_unit_test(test_old_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
