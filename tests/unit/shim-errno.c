// SPDX-License-Identifier: LGPL-2.1-or-later
/* The error numbers of core/ are those of the system it runs on. */
#include "shim/errno.h"

#define ERRORS(X) \
	X(EPERM) X(ENOENT) X(ESRCH) X(EINTR) X(EIO) X(ENXIO) X(E2BIG) X(EBADF) X(ECHILD) \
	X(EAGAIN) X(ENOMEM) X(EACCES) X(EFAULT) X(EBUSY) X(EEXIST) X(EINVAL) X(EMFILE) \
	X(ENOTTY) X(ETXTBSY) X(EMLINK) X(EPIPE) X(EDOM) X(ERANGE) X(ENAMETOOLONG) X(EXFULL) \
	X(EBADSLT) X(ECOMM) X(EBADMSG) X(EOVERFLOW) X(ENOTUNIQ) X(EBADFD) X(EREMCHG) \
	X(EDESTADDRREQ) X(EMSGSIZE) X(EOPNOTSUPP) X(EADDRINUSE) X(EADDRNOTAVAIL) X(ECONNRESET) \
	X(ENOBUFS) X(ESHUTDOWN) X(ETIMEDOUT) X(EREMOTEIO) X(EMEDIUMTYPE) X(ECANCELED)

#define NUMBER(error) error,

/* Expanded with what the shim says … */
static const int ours[] = { ERRORS(NUMBER) };

/* … and then with what the system says, which takes over here. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const int theirs[] = { ERRORS(NUMBER) };

static void error_numbers_are_those_of_the_system(void **state)
{
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		assert_int_equal(ours[i], theirs[i]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(error_numbers_are_those_of_the_system),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
