// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Process 1 of the test machine: loads the module, mounts kdbusfs, runs every program in
 * /tests, unloads the module again, prints the kernel's log, and ends the machine through
 * QEMU's isa-debug-exit device. The last line it prints is "@@ exit N".
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define EXIT_PORT    0xf4
#define KLOG_READ    3
#define MOUNT_POINT  "/sys/fs/kdbus"
#define TESTS	     "/tests"
#define TEST_SECONDS 300

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
	setvbuf(stdout, NULL, _IOLBF, 0);
}

static void load(void)
{
	int fd = open("/kdbus.ko", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
		fail("load the module");
	close(fd);
}

/* Shared memory in use: what pools are made of. */
static long shmem_kib(void)
{
	/* counters are kept per CPU; this folds them */
	int fd = open("/proc/sys/vm/stat_refresh", O_WRONLY | O_CLOEXEC);
	char line[128];
	long kib = -1;
	FILE *file;

	if (fd < 0 || write(fd, "1", 1) != 1)
		fail("/proc/sys/vm/stat_refresh");
	close(fd);
	file = fopen("/proc/meminfo", "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Shmem: %ld kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
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
	setenv("CMOCKA_MESSAGE_OUTPUT", "TAP", 1);
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

static void unload(void)
{
	if (umount(MOUNT_POINT))
		fail("unmount");
	if (syscall(SYS_delete_module, "kdbus", O_NONBLOCK))
		fail("unload the module");
	if (access(MOUNT_POINT, F_OK) == 0)
		fail("mount point is still there");
}

/* The kernel closes files of a process that is gone a little later. */
static void check_shmem(long before)
{
	long after = shmem_kib();

	for (int i = 0; after != before && i < 100; i++) {
		usleep(50000);
		after = shmem_kib();
	}
	if (after != before) {
		printf("@@ failed: %ld KiB of shared memory before, %ld KiB after\n", before,
		       after);
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

int main(void)
{
	long shmem;

	mount_at("devtmpfs", "/dev");
	use_console();
	mount_at("proc", "/proc");
	mount_at("sysfs", "/sys");
	mount_at("tmpfs", "/tmp");
	shmem = shmem_kib();
	load();
	mount_at("kdbusfs", MOUNT_POINT);
	set_environment();
	if (!failures) {
		run_all();
		unload();
		check_shmem(shmem);
	}
	print_log();
	leave();
	return 0;
}
