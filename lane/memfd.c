// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "memfd.h"

/* glibc 2.36 has them; older kernel headers lack the first. */
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define OWNER_SEALS (F_SEAL_FUTURE_WRITE | SIZE_SEALS)
#define PAYLOAD_SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

size_t lane_memfd_round(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) & ~(page - 1);
}

/* Kernels before 6.3 refuse the flag that says what every lane is: not executable. */
static int create(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd < 0 ? -errno : fd;
}

static int map_file(int fd, int protection, int how, size_t length, off_t offset, void **ret_map)
{
	void *map = mmap(NULL, length, protection, how, fd, offset);
	int r;

	if (map == MAP_FAILED)
		return -errno;
	if (madvise(map, length, MADV_DONTFORK) < 0) {
		r = -errno;
		munmap(map, length);
		return r;
	}
	*ret_map = map;
	return 0;
}

static int map_writable(int fd, size_t size, void **ret_map)
{
	return map_file(fd, PROT_READ | PROT_WRITE, MAP_SHARED, size, 0, ret_map);
}

static int fill(int fd, size_t size, int seals, void **ret_map)
{
	void *map = NULL;
	int r;

	if (ftruncate(fd, (off_t)size) < 0)
		return -errno;
	r = map_writable(fd, size, &map);
	if (r < 0)
		return r;
	if (fcntl(fd, F_ADD_SEALS, seals) < 0) {
		r = -errno;
		munmap(map, size);
		return r;
	}
	*ret_map = map;
	return 0;
}

static int make(const char *name, size_t size, int seals, int *ret_fd, void **ret_map)
{
	int fd, r;

	fd = create(name);
	if (fd < 0)
		return fd;
	r = fill(fd, size, seals, ret_map);
	if (r < 0) {
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

int lane_memfd_make(const char *name, size_t size, int *ret_fd, void **ret_map)
{
	size = lane_memfd_round(size);
	return size ? make(name, size, OWNER_SEALS, ret_fd, ret_map) : -EINVAL;
}

int lane_memfd_make_common(const char *name, int *ret_fd, void **ret_map)
{
	return make(name, lane_memfd_round(1), SIZE_SEALS, ret_fd, ret_map);
}

static int check_seals(int fd, int wanted, int or_write)
{
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0)
		return errno == EBADF ? -EBADF : -EMEDIUMTYPE;
	/* What cannot be written at all cannot be written in future either. */
	if (or_write && (seals & F_SEAL_WRITE))
		seals |= F_SEAL_FUTURE_WRITE;
	return (seals & wanted) == wanted ? 0 : -ETXTBSY;
}

/* Seals first: whatever passes that is a shmem or hugetlbfs file and cannot block what follows. */
static int check(int fd, int seals, int or_write, uint64_t *ret_size)
{
	struct statfs fs;
	struct stat st;
	int r;

	r = check_seals(fd, seals, or_write);
	if (r < 0)
		return r;
	if (fstatfs(fd, &fs) < 0)
		return -errno;
	if (fs.f_type != TMPFS_MAGIC)
		return -EMEDIUMTYPE;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < 0)
		return -EMEDIUMTYPE;
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

static int map_read(int fd, int how, size_t length, off_t offset, const void **ret_map)
{
	void *map = NULL;
	int r = map_file(fd, PROT_READ, how, length, offset, &map);

	if (r == 0)
		*ret_map = map;
	return r;
}

int lane_memfd_map_shared(int fd, size_t min, size_t max, const void **ret_map, size_t *ret_size)
{
	uint64_t size = 0;
	int r;

	r = check(fd, OWNER_SEALS, 1, &size);
	if (r < 0)
		return r;
	/* A last page that the file fills only in part is there in full. */
	if (size < min || size > lane_memfd_round(max))
		return -EFAULT;
	r = map_read(fd, MAP_SHARED, (size_t)size, 0, ret_map);
	if (r < 0)
		return r;
	*ret_size = (size_t)size;
	return 0;
}

int lane_memfd_map_common(int fd, void **ret_map)
{
	uint64_t size = 0;
	int r = check(fd, SIZE_SEALS, 0, &size);

	if (r < 0)
		return r;
	if (size != lane_memfd_round(1))
		return -EFAULT;
	return map_writable(fd, (size_t)size, ret_map);
}

int lane_memfd_check_payload(int fd, uint64_t start, uint64_t size)
{
	uint64_t file_size = 0;
	int r;

	if (!size)
		return -EINVAL;
	r = check(fd, PAYLOAD_SEALS, 0, &file_size);
	if (r < 0)
		return r;
	return size > file_size || start > file_size - size ? -EFAULT : 0;
}

int lane_memfd_map_payload(int fd, uint64_t start, uint64_t size, const void **ret_base,
			   size_t *ret_length, const void **ret_data)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), skip;
	const void *base = NULL;
	int r;

	r = lane_memfd_check_payload(fd, start, size);
	if (r < 0)
		return r;
	skip = start & (page - 1);
	r = map_read(fd, MAP_PRIVATE, (size_t)(size + skip), (off_t)(start - skip), &base);
	if (r < 0)
		return r;
	*ret_base = base;
	*ret_length = (size_t)(size + skip);
	*ret_data = (const char *)base + skip;
	return 0;
}

void lane_memfd_unmap(const void *map, size_t size)
{
	if (map)
		munmap((void *)map, size);
}
