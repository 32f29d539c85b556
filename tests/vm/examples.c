// SPDX-License-Identifier: LGPL-2.1-or-later
/* The programs of the man pages print on the kernel engine what they print on the user engine. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <libkdbus.h>

#define PREFIX "/bin/example-"

static size_t read_all(int fd, char *buf, size_t size)
{
	size_t n = 0;
	ssize_t got;

	while (n < size - 1 && (got = read(fd, buf + n, size - 1 - n)) > 0)
		n += (size_t)got;
	buf[n] = '\0';
	close(fd);
	return n;
}

static void run(const char *name, char *buf, size_t size)
{
	char path[64];
	int out[2], status;
	pid_t pid;

	snprintf(path, sizeof(path), PREFIX "%s", name);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(out[1], STDOUT_FILENO);
		execl(path, path, (char *)NULL);
		_exit(99);
	}
	close(out[1]);
	read_all(out[0], buf, size);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void check(const char *name)
{
	char path[64], wanted[1024], got[1024];
	int fd;

	snprintf(path, sizeof(path), "/bin/%s.out", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read_all(fd, wanted, sizeof(wanted)) > 0);
	run(name, got, sizeof(got));
	assert_string_equal(got, wanted);
}

static void each_prints_the_same(void **state)
{
	const size_t skip = strlen(strrchr(PREFIX, '/') + 1);
	struct libkdbus_daemon *daemon;
	DIR *dir = opendir("/bin");
	struct dirent *e;
	int n = 0;

	assert_non_null(dir);
	assert_int_equal(libkdbus_daemon_start(NULL, &daemon), 0);
	setenv("KDBUS_DOMAIN", libkdbus_daemon_domain(daemon), 1);
	while ((e = readdir(dir))) {
		if (strncmp(e->d_name, strrchr(PREFIX, '/') + 1, skip))
			continue;
		check(e->d_name + skip);
		n++;
	}
	closedir(dir);
	assert_true(n > 5);
	libkdbus_daemon_stop(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_prints_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
