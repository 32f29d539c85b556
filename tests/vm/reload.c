// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reload.h"

#include "bus.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define WORKERS 3
#define UNLOADS 20

int reload_load(void)
{
	int fd = open("/kdbus.ko", O_RDONLY | O_CLOEXEC), r = 0;

	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
		r = -errno;
	close(fd);
	return r;
}

/* A bus with a message that nobody receives, for as long as the mount is there. */
static void use(const char *dir)
{
	char path[64];
	struct peer peer;
	int fd;

	snprintf(path, sizeof(path), "%s/control", dir);
	fd = open_at(path);
	EQ(make_bus(fd, "0-reload", 0), 0);
	snprintf(path, sizeof(path), "%s/0-reload/bus", dir);
	hello_at(&peer, path, 0);
	EQ(send_plain(&peer, peer.id, 1), 0);
	bye(&peer);
	close(fd);
}

/* Three quarters of the time without, so that now and then nobody has anything. */
static void work(const char *dir)
{
	uint64_t start;

	mkdir(dir, 0755);
	for (;;) {
		start = now_ns();
		/* the module may just be gone */
		if (!mount("kdbusfs", dir, "kdbusfs", 0, NULL)) {
			use(dir);
			EQ(umount2(dir, MNT_DETACH), 0);
		}
		usleep(3 * (now_ns() - start) / 1000 + 100);
	}
}

static bool all_alive(const pid_t *pid)
{
	int status;

	for (int i = 0; i < WORKERS; i++)
		if (waitpid(pid[i], &status, WNOHANG))
			return false;
	return true;
}

int reload_under_load(void)
{
	static const char *const dirs[WORKERS] = { "/mnt-a", "/mnt-b", "/mnt-c" };
	pid_t pid[WORKERS];
	bool alive = true;
	int unloads = 0;

	fflush(stdout);
	for (int i = 0; i < WORKERS; i++) {
		pid[i] = fork();
		if (!pid[i])
			work(dirs[i]);
	}
	while (alive && unloads < UNLOADS) {
		alive = all_alive(pid);
		if (syscall(SYS_delete_module, "kdbus", O_NONBLOCK)) {
			usleep(100);
			continue;
		}
		unloads++;
		alive = alive && !reload_load();
	}
	for (int i = 0; i < WORKERS; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
		while (!umount2(dirs[i], MNT_DETACH))
			;
	}
	printf("%s vm-init: module unloaded and loaded under load (§1.1)\n",
	       alive ? "ok" : "not ok");
	return alive ? 0 : 1;
}
