// SPDX-License-Identifier: LGPL-2.1-or-later
/* Keeping every mapped file, and attacks on them: see grab.h. */
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grab.h"

#define FILES_MAX 256
#define PAGE	  4096

static struct grabbed files[FILES_MAX];
static unsigned int n_files;
static ino_t made[FILES_MAX];
static unsigned int n_made;

void *__real_mmap(void *address, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *address, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *address, size_t size, int prot, int flags, int fd, off_t offset);
int __real_memfd_create(const char *name, unsigned int flags);
int __wrap_memfd_create(const char *name, unsigned int flags);

static bool is_own(ino_t inode)
{
	unsigned int i;

	for (i = 0; i < n_made; i++)
		if (made[i] == inode)
			return true;
	return false;
}

static void keep(int fd)
{
	struct grabbed *file = &files[n_files];
	char path[64];
	struct stat st;
	unsigned int i;
	ssize_t n;

	if (n_files == FILES_MAX || fstat(fd, &st) < 0)
		return;
	for (i = 0; i < n_files; i++)
		if (files[i].inode == st.st_ino)
			return;
	*file = (struct grabbed){ .inode = st.st_ino, .own = is_own(st.st_ino) };
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, file->name, sizeof(file->name) - 1);
	file->name[n < 0 ? 0 : n] = '\0';
	file->fd = fcntl(fd, F_DUPFD_CLOEXEC, 100);
	n_files += file->fd >= 0;
}

void *__wrap_mmap(void *address, size_t size, int prot, int flags, int fd, off_t offset)
{
	if (fd >= 0)
		keep(fd);
	return __real_mmap(address, size, prot, flags, fd, offset);
}

void *__wrap_mmap64(void *address, size_t size, int prot, int flags, int fd, off_t offset)
{
	return __wrap_mmap(address, size, prot, flags, fd, offset);
}

int __wrap_memfd_create(const char *name, unsigned int flags)
{
	int fd = __real_memfd_create(name, flags);
	struct stat st;

	if (fd >= 0 && n_made < FILES_MAX && fstat(fd, &st) == 0)
		made[n_made++] = st.st_ino;
	return fd;
}

const struct grabbed *grab_files(unsigned int *ret_n)
{
	*ret_n = n_files;
	return files;
}

void grab_forget(void)
{
	while (n_files)
		close(files[--n_files].fd);
	n_made = 0;
}

static bool can_map(int fd)
{
	void *map = __real_mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return false;
	munmap(map, PAGE);
	return true;
}

/* A mapping that can be made writable later is as good. */
static bool can_map_later(int fd)
{
	void *map = __real_mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	bool can;

	if (map == MAP_FAILED)
		return false;
	can = mprotect(map, PAGE, PROT_READ | PROT_WRITE) == 0;
	munmap(map, PAGE);
	return can;
}

static const char *resize(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || ftruncate(fd, 0) == 0)
		return "shrink";
	if (ftruncate(fd, st.st_size + PAGE) == 0)
		return "grow";
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0)
		return "seal";
	return NULL;
}

static const char *change(int fd)
{
	const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	if (pwrite(fd, "x", 1, 0) >= 0)
		return "write";
	if (can_map(fd))
		return "map writable";
	if (can_map_later(fd))
		return "make a mapping writable";
	if (fallocate(fd, punch, 0, PAGE) == 0)
		return "punch a hole";
	return resize(fd);
}

static const char *attack(const struct grabbed *file, const char *(*how)(int fd))
{
	const char *what = how(file->fd);
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (!what && fd >= 0)
		what = how(fd);
	if (fd >= 0)
		close(fd);
	return what;
}

const char *grab_attack(const struct grabbed *file)
{
	return attack(file, change);
}

const char *grab_resize(const struct grabbed *file)
{
	return attack(file, resize);
}
