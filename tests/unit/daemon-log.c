// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lines of the log (daemon/log.c) with what clients call themselves in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "client.h"

/* Standard error goes into a file, up to end(). */
static int begin(FILE *file)
{
	int before = dup(STDERR_FILENO);

	assert_non_null(file);
	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	return before;
}

static void end(int before, FILE *file, char *text, size_t size)
{
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(file);
	text[fread(text, 1, size - 1, file)] = '\0';
	fclose(file);
}

/* Neither another line nor a command to a terminal */
static void a_name_makes_no_line_of_its_own(void **state)
{
	struct creds creds = { .meta.pid_comm = "a\nkdbusd: b\x1b[1A" };
	struct client c = { .creds = &creds };
	FILE *file = tmpfile();
	char text[512];
	int before = begin(file);

	log_client(&c, "expelled: %s", "it did something");
	log_line("%s", "one\ntwo\177three");
	end(before, file, text, sizeof(text));
	assert_string_equal(text, "kdbusd: connection 0 (a?kdbusd: b?[1A, pid 0, uid 0): expelled: "
				  "it did something\n"
				  "kdbusd: one?two?three\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_makes_no_line_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
