// SPDX-License-Identifier: LGPL-2.1-or-later
/* The sanitizers of this build notice a mistake, and the mistake ends the program. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* not static: no tool knows what is in them, and what happens to them is not optimised away */
extern int numbers[2];
int numbers[2] = { 1, 32 };

static void overflow(int *number)
{
	number[0] = INT_MAX - 31 + number[1];
}

static void misalign(int *number)
{
	*(int *)((char *)number + 1) = 1;
}

static void shift(int *number)
{
	number[0] = 1 << number[1];
}

/* Whether a child that runs @mistake gets to its end. */
static int survives(void (*mistake)(int *number))
{
	int status = 0;
	pid_t child;

	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(STDERR_FILENO);
		mistake(numbers);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void none(int *number)
{
	*number = 1;
}

static void undefined_behaviour_ends_the_program(void **state)
{
	assert_true(survives(none));
	assert_false(survives(overflow));
	assert_false(survives(misalign));
	assert_false(survives(shift));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(undefined_behaviour_ends_the_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
