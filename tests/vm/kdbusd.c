// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbusd --engine kernel: a bus in the module, owned by the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <libkdbus.h>

#define KDBUSD	 "/bin/kdbusd"
#define MAGIC	 0x44427573
#define NODE	 "/sys/fs/kdbus/0-user/bus"
#define ARGS_MAX 8

/* A daemon, and what it says */
struct run {
	pid_t pid;
	int out;
	char text[512];
};

static void start(struct run *run, uid_t uid, const char *const *args)
{
	const char *argv[ARGS_MAX + 2] = { KDBUSD };
	int out[2], i;

	for (i = 0; args[i]; i++)
		argv[i + 1] = args[i];
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	run->pid = fork();
	assert_true(run->pid >= 0);
	if (!run->pid) {
		dup2(out[1], STDOUT_FILENO);
		dup2(out[1], STDERR_FILENO);
		if (uid && setuid(uid) < 0)
			_exit(98);
		execv(KDBUSD, (char **)argv);
		_exit(99);
	}
	close(out[1]);
	run->out = out[0];
}

#define START(run, ...) \
	start(run, 0, (const char *const[]){ "--engine", "kernel", __VA_ARGS__, NULL })

/* One line of what it says; nothing if it says no more. */
static const char *line(struct run *run)
{
	size_t n = 0;

	while (n < sizeof(run->text) - 1 && read(run->out, run->text + n, 1) == 1)
		if (run->text[n++] == '\n')
			break;
	run->text[n] = '\0';
	return run->text;
}

/* Wait for its end, by itself or by @signal: the status. It must have nothing more to say. */
static int end(struct run *run, int signal)
{
	int status;

	if (signal)
		kill(run->pid, signal);
	assert_int_equal(waitpid(run->pid, &status, 0), run->pid);
	assert_string_equal(line(run), "");
	close(run->out);
	return status;
}

static bool is_kdbusfs(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == MAGIC;
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 0777;
}

static void it_makes_a_bus_and_takes_it_along(void **state)
{
	struct libkdbus *h;
	struct run run;

	START(&run, "--print-address");
	assert_string_equal(line(&run), "kdbus:path=" NODE "\n");
	assert_int_equal(mode_of(NODE), 0600);
	assert_int_equal(libkdbus_connect(NODE, NULL, &h), 0);
	assert_int_equal(libkdbus_acquire(h, "org.example.Name", 0, NULL), 0);
	assert_int_equal(end(&run, SIGTERM), 0);
	assert_int_equal(access(NODE, F_OK), -1);
	assert_int_equal(libkdbus_release(h, "org.example.Name"), -ECONNRESET);
	libkdbus_close(h);
	/* What was mounted before stays. */
	assert_true(is_kdbusfs("/sys/fs/kdbus"));
}

static void a_killed_one_takes_it_along_as_well(void **state)
{
	struct run run;

	START(&run, "--print-address");
	line(&run);
	assert_int_equal(end(&run, SIGKILL), SIGKILL);
	assert_int_equal(access(NODE, F_OK), -1);
	START(&run, "--print-address");
	line(&run);
	assert_int_equal(end(&run, SIGINT), 0);
}

static void a_second_one_is_told_of_the_first(void **state)
{
	struct run first, second;

	START(&first, "--print-address");
	line(&first);
	START(&second, "--print-address");
	assert_string_equal(line(&second), "kdbusd: there is a bus 0-user in /sys/fs/kdbus: "
					   "another kdbusd has made it\n");
	assert_int_equal(end(&second, 0), 1 << 8);
	assert_int_equal(access(NODE, F_OK), 0);
	assert_int_equal(end(&first, SIGTERM), 0);
}

static void the_bus_of_the_system_is_open_to_all(void **state)
{
	struct run run;

	START(&run, "--system", "--print-address");
	assert_string_equal(line(&run), "kdbus:path=/sys/fs/kdbus/0-system/bus\n");
	assert_int_equal(mode_of("/sys/fs/kdbus/0-system/bus"), 0666);
	assert_int_equal(mode_of("/sys/fs/kdbus/0-system"), 0555);
	assert_int_equal(end(&run, SIGTERM), 0);
}

static void a_domain_of_its_own_is_mounted_and_unmounted(void **state)
{
	static const char dir[] = "/mnt/domain";
	struct libkdbus *h;
	struct run run;
	int i;

	for (i = 0; i < 2; i++) {
		START(&run, "--domain", dir, "--print-address");
		assert_string_equal(line(&run), "kdbus:path=/mnt/domain/0-user/bus\n");
		assert_true(is_kdbusfs(dir));
		assert_int_equal(libkdbus_connect("/mnt/domain/0-user/bus", NULL, &h), 0);
		assert_int_equal(end(&run, SIGTERM), 0);
		/* Also with somebody still in it */
		assert_false(is_kdbusfs(dir));
		libkdbus_close(h);
	}
	assert_int_equal(rmdir(dir), 0);
}

static void who_may_not_mount_is_told_what_to_do(void **state)
{
	static const char *const args[] = { "--engine", "kernel", "--domain", "/mnt", NULL };
	struct run run;

	start(&run, 65534, args);
	assert_string_equal(line(&run), "kdbusd: kdbusfs is not mounted at /mnt, and only root "
					"can: mount -t kdbusfs kdbusfs /mnt\n");
	assert_int_equal(end(&run, 0), 1 << 8);
}

static void other_users_have_buses_of_their_own(void **state)
{
	static const char *const args[] = { "--engine", "kernel", "--print-address", NULL };
	struct run run;

	start(&run, 65534, args);
	assert_string_equal(line(&run), "kdbus:path=/sys/fs/kdbus/65534-user/bus\n");
	assert_int_equal(end(&run, SIGTERM), 0);
}

static void the_service_manager_is_told(void **state)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX, .sun_path = "/mnt/notify" };
	int sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char text[32] = "";
	struct run run;

	assert_int_equal(bind(sock, (struct sockaddr *)&sa, sizeof(sa)), 0);
	setenv("NOTIFY_SOCKET", sa.sun_path, 1);
	START(&run, "--nofork");
	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(recv(sock, text, sizeof(text), 0), 7);
	assert_memory_equal(text, "READY=1", 7);
	assert_int_equal(access(NODE, F_OK), 0);
	assert_int_equal(end(&run, SIGTERM), 0);
	assert_int_equal(recv(sock, text, sizeof(text), 0), 10);
	assert_memory_equal(text, "STOPPING=1", 10);
	close(sock);
	unlink(sa.sun_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_makes_a_bus_and_takes_it_along),
		cmocka_unit_test(a_killed_one_takes_it_along_as_well),
		cmocka_unit_test(a_second_one_is_told_of_the_first),
		cmocka_unit_test(the_bus_of_the_system_is_open_to_all),
		cmocka_unit_test(a_domain_of_its_own_is_mounted_and_unmounted),
		cmocka_unit_test(who_may_not_mount_is_told_what_to_do),
		cmocka_unit_test(other_users_have_buses_of_their_own),
		cmocka_unit_test(the_service_manager_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
