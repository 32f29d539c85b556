/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * memfd.h - making, checking and mapping the files of lanes
 *
 * 1. The owner maps first and seals then (rule 2): after F_SEAL_FUTURE_WRITE nobody can get a new
 *    writable mapping or write(), through no descriptor, and the size is fixed for ever.
 * 2. A peer's descriptor is checked in the order seals (never blocks, and fails on whatever is no
 *    memfd), file system (tmpfs and not hugetlbfs: a hugetlbfs page can be missing, SIGBUS), size.
 *    fstat() comes last because it may block on a FUSE file.
 * 3. Every mapping is MADV_DONTFORK: a forked child has no lanes.
 */
#ifndef LANE_MEMFD_H
#define LANE_MEMFD_H

#include <stddef.h>
#include <stdint.h>

/**
 * lane_memfd_make() - make, map read-write, then seal
 * @name:	name shown in /proc
 * @size:	bytes, rounded up to a page by the function
 * @ret_fd:	close-on-exec descriptor, owned by the caller
 * @ret_map:	zeroed mapping of the rounded size, to be undone by lane_memfd_unmap()
 *
 * Return: 0; -EINVAL: @size is 0, or the kernel lacks F_SEAL_FUTURE_WRITE (before Linux 5.1); else
 * what memfd_create, ftruncate or mmap said (-EMFILE, -ENFILE, -ENOMEM).
 */
int lane_memfd_make(const char *name, size_t size, int *ret_fd, void **ret_map);

/**
 * lane_memfd_map_shared() - check a peer's lane, bulk buffer or page and map it MAP_SHARED
 * @fd:		the peer's descriptor; stays the caller's
 * @min:	smallest size accepted, in bytes
 * @max:	largest
 * @ret_map:	read-only mapping
 * @ret_size:	its size, which cannot change any more
 *
 * Return: 0; -EMEDIUMTYPE: not a tmpfs memfd; -ETXTBSY: lacks one of the seals FUTURE_WRITE (or
 * WRITE), SHRINK, GROW, SEAL; -EFAULT: size out of range; else what mmap said.
 */
int lane_memfd_map_shared(int fd, size_t min, size_t max, const void **ret_map, size_t *ret_size);

/**
 * lane_memfd_make_common() - make and map a page that a peer may write as well
 * lane_memfd_map_common() - check and map a peer's: lane_memfd_round(1) bytes
 *
 * Its size is sealed, its contents are not. Return: as lane_memfd_make(); -EMEDIUMTYPE, -ETXTBSY,
 * -EFAULT as lane_memfd_map_shared(); else what mmap said.
 */
int lane_memfd_make_common(const char *name, int *ret_fd, void **ret_map);
int lane_memfd_map_common(int fd, void **ret_map);

/**
 * lane_memfd_check_payload() - check a payload memfd (§7.2), from anybody; it cannot block
 * @fd:		the descriptor; stays the caller's
 * @start:	first byte, need not be aligned
 * @size:	bytes, at least 1
 *
 * Return: 0; -EMEDIUMTYPE: not a tmpfs memfd; -ETXTBSY: lacks one of the seals SEAL, SHRINK, GROW,
 * WRITE; -EFAULT: @start + @size exceed the file; -EINVAL: @size is 0; -EBADF.
 */
int lane_memfd_check_payload(int fd, uint64_t start, uint64_t size);

/**
 * lane_memfd_map_payload() - check a payload memfd and map it MAP_PRIVATE, read-only
 * @fd, @start, @size: as in lane_memfd_check_payload()
 * @ret_base:	what to unmap
 * @ret_length:	how much
 * @ret_data:	address of byte @start
 *
 * Return: as lane_memfd_check_payload(); else what mmap said.
 */
int lane_memfd_map_payload(int fd, uint64_t start, uint64_t size, const void **ret_base,
			   size_t *ret_length, const void **ret_data);

/**
 * lane_memfd_unmap() - undo any of the above; NULL is fine
 */
void lane_memfd_unmap(const void *map, size_t size);

/**
 * lane_memfd_round() - size of a file that holds @size bytes, a multiple of the page size
 */
size_t lane_memfd_round(size_t size);

#endif
