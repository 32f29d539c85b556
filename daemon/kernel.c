// SPDX-License-Identifier: LGPL-2.1-or-later
/* The kernel engine: mounting kdbusfs, and owning a bus on it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon.h"
#include "kernel.h"
#include "uapi/kdbus.h"

#define FS_TYPE	 "kdbusfs"
#define FS_MAGIC 0x44427573

/* struct kdbus_cmd of BUS_MAKE, with all its items */
struct make {
	u64 size;
	u64 flags;
	u64 return_flags;
	struct {
		u64 size;
		u64 type;
		struct kdbus_bloom_parameter bloom;
	} bloom;
	struct {
		u64 size;
		u64 type;
		u64 mask;
	} creator;
	struct {
		u64 size;
		u64 type;
		char name[64];
	} name;
};

static bool is_mounted(const char *dir)
{
	struct statfs fs;

	return statfs(dir, &fs) == 0 && fs.f_type == FS_MAGIC;
}

/* That the kernel looks for the file system makes it load the module, and that the mount point. */
static int load_module(void)
{
	int fd = fsopen(FS_TYPE, FSOPEN_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int log_mount(const char *dir, int error)
{
	if (error == -ENODEV)
		log_line("this kernel has no %s: load the module kdbus (modprobe kdbus)", FS_TYPE);
	else if (error == -EPERM)
		log_line("%s is not mounted at %s, and only root can: mount -t %s %s %s", FS_TYPE,
			 dir, FS_TYPE, FS_TYPE, dir);
	else
		log_line("cannot mount %s at %s: %s", FS_TYPE, dir, strerror(-error));
	return error;
}

static int mount_at(struct kernel_bus *bus, const char *dir)
{
	int r = load_module();

	if (r == 0 && mkdir(dir, 0755) < 0 && errno != EEXIST && access(dir, F_OK) < 0)
		r = -errno;
	if (r == 0 && mount(FS_TYPE, dir, FS_TYPE, MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		r = -errno;
	if (r < 0)
		return log_mount(dir, r);
	bus->mounted = dir;
	return 0;
}

static int open_control(const char *dir)
{
	char *path;
	int fd;

	if (asprintf(&path, "%s/control", dir) < 0)
		return -ENOMEM;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		fd = -errno;
		log_line("cannot open %s: %s", path, strerror(errno));
	}
	free(path);
	return fd;
}

static int make_bus(int fd, const char *name, u64 flags)
{
	struct make make = {
		.size = offsetof(struct make, name.name),
		.flags = flags,
		.bloom = { sizeof(make.bloom), KDBUS_ITEM_BLOOM_PARAMETER, { 64, 8 } },
		.creator = { sizeof(make.creator), KDBUS_ITEM_ATTACH_FLAGS_SEND,
			     _KDBUS_ATTACH_ALL },
	};
	size_t n = strlen(name) + 1;

	if (n > sizeof(make.name.name))
		return -ENAMETOOLONG;
	memcpy(make.name.name, name, n);
	make.name.type = KDBUS_ITEM_MAKE_NAME;
	make.name.size = offsetof(struct make, name.name) - offsetof(struct make, name) + n;
	make.size += n;
	return ioctl(fd, KDBUS_CMD_BUS_MAKE, &make) < 0 ? -errno : 0;
}

static int log_make(const char *dir, const char *name, int error)
{
	if (error == -EEXIST)
		log_line("there is a bus %s in %s: another kdbusd has made it", name, dir);
	else if (error == -EMFILE)
		log_line("uid %u has as many buses in %s as are allowed", (unsigned int)getuid(),
			 dir);
	else
		log_line("cannot make the bus %s in %s: %s", name, dir, strerror(-error));
	return error;
}

/* As whom it is opened and made, him it belongs to. */
static int make_as(struct kernel_bus *bus, const char *dir, const char *name, u64 flags, uid_t uid)
{
	const uid_t before = geteuid();
	int r;

	if (uid != before && seteuid(uid) < 0)
		return -errno;
	bus->fd = open_control(dir);
	r = bus->fd < 0 ? bus->fd : make_bus(bus->fd, name, flags);
	if (uid != before && seteuid(before) < 0)
		return -errno;
	return bus->fd < 0 || r == 0 ? r : log_make(dir, name, r);
}

int kernel_bus_start(struct kernel_bus *bus, const char *dir, const char *name, u64 flags,
		     uid_t uid)
{
	int r = 0;

	*bus = (struct kernel_bus){ .fd = -1 };
	if (!is_mounted(dir))
		r = mount_at(bus, dir);
	if (r < 0)
		return r;
	if (asprintf(&bus->node, "%s/%s/bus", dir, name) < 0) {
		bus->node = NULL;
		return -ENOMEM;
	}
	return make_as(bus, dir, name, flags, uid);
}

/* Detached, it goes when the last program that uses it does. */
void kernel_bus_stop(struct kernel_bus *bus)
{
	if (bus->fd >= 0)
		close(bus->fd);
	bus->fd = -1;
	free(bus->node);
	bus->node = NULL;
	if (!bus->mounted)
		return;
	if (umount2(bus->mounted, strcmp(bus->mounted, KERNEL_DOMAIN) ? MNT_DETACH : 0) < 0 &&
	    errno != EBUSY)
		log_line("cannot unmount %s: %s", bus->mounted, strerror(errno));
	bus->mounted = NULL;
}
