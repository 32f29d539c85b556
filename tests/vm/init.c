// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Process 1 of the test machine: loads the module, mounts kdbusfs, runs every program in
 * /tests, looks for leaks, unloads the module again, prints the kernel's log, and ends the
 * machine through QEMU's isa-debug-exit device. The last line it prints is "@@ exit N".
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "leaks.h"
#include "reload.h"

#define EXIT_PORT    0xf4
#define KLOG_READ    3
#define MOUNT_POINT  "/sys/fs/kdbus"
#define TESTS	     "/tests"
#define TEST_SECONDS 3000

static int failures;

static void fail(const char *what)
{
	printf("@@ failed: %s: %s\n", what, strerror(errno));
	failures++;
}

static void mount_at(const char *type, const char *dir)
{
	mkdir(dir, 0755);
	if (mount(type, dir, type, 0, NULL))
		fail(dir);
}

static void use_console(void)
{
	int fd = open("/dev/console", O_RDWR);

	for (int i = 0; fd >= 0 && i < 3; i++)
		dup2(fd, i);
	if (fd > 2)
		close(fd);
	setvbuf(stdout, NULL, _IOLBF, 0);
}

static void load(void)
{
	errno = -reload_load();
	if (errno)
		fail("load the module");
}

static bool run(const char *name)
{
	char path[300];
	int status = -1;
	pid_t pid;

	snprintf(path, sizeof(path), TESTS "/%s", name);
	printf("@@ run %s\n", name);
	pid = fork();
	if (!pid) {
		setsid();
		alarm(TEST_SECONDS);
		execl(path, name, (char *)NULL);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	printf("@@ %s %s\n", status ? "failed:" : "passed:", name);
	return !status;
}

/* For programs that use the library: they test this engine. */
static void set_environment(void)
{
	setenv("KDBUS_ENGINE", "kernel", 1);
	setenv("KDBUS_DOMAIN", MOUNT_POINT, 1);
	setenv("KDBUSD", "/bin/kdbusd", 1);
	setenv("PATH", "/bin", 1);
	/* fewer than on a real machine */
	setenv("KDBUS_TORTURE_KILLS", "100", 1);
	setenv("CMOCKA_MESSAGE_OUTPUT", "TAP", 1);
}

/* Some tests have sockets to themselves. */
static void bring_loopback_up(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (ioctl(sock, SIOCSIFFLAGS, &lo))
		fail("bring the loopback device up");
	close(sock);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void run_all(void)
{
	struct dirent **entries;
	int n = scandir(TESTS, &entries, NULL, by_name), ran = 0;

	for (int i = 0; i < n; i++) {
		if (entries[i]->d_name[0] != '.') {
			ran++;
			failures += !run(entries[i]->d_name);
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	if (!ran)
		fail("find tests");
}

static void unmount(void)
{
	if (umount(MOUNT_POINT))
		fail("unmount");
}

static void unload(void)
{
	if (syscall(SYS_delete_module, "kdbus", O_NONBLOCK))
		fail("unload the module");
	if (access(MOUNT_POINT, F_OK) == 0)
		fail("mount point is still there");
}

/* A counter that cannot see an object in use sees no leak either. */
static void check_counter(long before)
{
	int fd = open(MOUNT_POINT "/control", O_RDWR | O_CLOEXEC);

	/* a machine that measures does without */
	if (before >= 0 && leaks_live() <= before)
		fail("objects of the module are not counted");
	close(fd);
}

/* The kernel closes files of a process that is gone a little later. */
static void check_back(const char *what, long before, long (*count)(void))
{
	long now = count();

	for (int i = 0; now != before && i < 10; i++) {
		usleep(300000);
		now = count();
	}
	if (now != before) {
		printf("@@ failed: %s: %ld before, %ld after\n", what, before, now);
		failures++;
	}
}

static void print_log(void)
{
	static char log[1 << 20];
	int n = klogctl(KLOG_READ, log, sizeof(log));

	puts("@@ log");
	if (n > 0)
		fwrite(log, 1, n, stdout);
	puts("@@ end of log");
}

static void leave(void)
{
	printf("@@ exit %d\n", failures);
	fflush(stdout);
	tcdrain(1);
	sync();
	if (!ioperm(EXIT_PORT, 4, 1))
		outb(failures ? 1 : 0, EXIT_PORT);
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

static void test(void)
{
	long shmem = leaks_shmem_kib(), live;

	load();
	live = leaks_live();
	mount_at("kdbusfs", MOUNT_POINT);
	set_environment();
	if (failures)
		return;
	check_counter(live);
	run_all();
	unmount();
	check_back("objects of the module", live, leaks_live);
	if (leaks_live() != live)
		leaks_print();
	/* objects of a module that is gone cannot be told any more, so not earlier */
	failures += reload_under_load();
	unload();
	check_back("KiB of shared memory", shmem, leaks_shmem_kib);
	failures += leaks_unreferenced();
}

int main(void)
{
	mount_at("devtmpfs", "/dev");
	use_console();
	mount_at("proc", "/proc");
	mount_at("sysfs", "/sys");
	mount_at("debugfs", "/sys/kernel/debug");
	mount_at("tmpfs", "/tmp");
	bring_loopback_up();
	leaks_start();
	test();
	print_log();
	leave();
	return 0;
}
