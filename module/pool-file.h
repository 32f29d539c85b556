/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MODULE_POOL_FILE_H
#define MODULE_POOL_FILE_H

#include <linux/fs.h>

#include "base.h"

/*
 * The memory of a pool: a shmem file, written here only, mapped read-only (spec §14.1).
 *
 * Pages are written one by one through the page cache and not as a file write, so that
 * neither the sender's file size limit nor the lock of the inode has a say.
 *
 * Whoever connects pays, in his memory control group, for what others send him: a pool that
 * is never emptied must not use up the memory of those who answer.
 */

struct mem_cgroup;
struct vm_area_struct;

/**
 * kbus_pool_make() - make a file for a pool
 * @description: of the connection, or an empty string
 * @size:        bytes; all of them are committed to the caller
 *
 * Return: file, for kbus_pool_close(), or an error pointer.
 */
struct file *kbus_pool_make(const char *description, u64 size);

/**
 * kbus_pool_close() - nothing is written any more
 * @pool: file, or NULL; who has mapped it keeps it
 */
void kbus_pool_close(struct file *pool);

/**
 * kbus_pool_memcg() - the memory control group that pays for a pool
 * @pool: file
 *
 * Return: the group; NULL if there are none.
 */
struct mem_cgroup *kbus_pool_memcg(const struct file *pool);

/**
 * struct kbus_pool_mark - the page of a pool that was written last
 * @page:  page, with a reference; NULL: none
 * @index: its number
 *
 * Small messages are written one behind the other, or again and again to the same place:
 * they need not look the page up each time. A page that is held is not swapped out, but
 * it may have been cut off. The lock of the inbox covers it.
 */
struct kbus_pool_mark {
	struct page *page;
	pgoff_t index;
};

/**
 * struct kbus_pool_pen - a place to write in a pool
 * @pool:  file
 * @mark:  where a page may be found, and the last one is left; or NULL
 * @page:  page that is held, or NULL
 * @index: its number
 * @at:    where it is mapped
 *
 * What is written close together takes one look at the page cache. Begin with
 * KBUS_POOL_PEN(), end with kbus_pool_pen_end(). One thread at a time; it may sleep.
 */
struct kbus_pool_pen {
	struct file *pool;
	struct kbus_pool_mark *mark;
	struct page *page;
	pgoff_t index;
	char *at;
};

#define KBUS_POOL_PEN(_pool, _mark) ((struct kbus_pool_pen){ .pool = (_pool), .mark = (_mark) })

/**
 * kbus_pool_pen_room() - get bytes to be written directly
 * @pen:    pen
 * @offset: where, within the pool
 * @size:   how many
 *
 * Return: the bytes; NULL if they are not all in one page; an error pointer as
 * kbus_pool_write(). Valid until the next use of @pen.
 */
void *kbus_pool_pen_room(struct kbus_pool_pen *pen, size_t offset, size_t size);

/**
 * kbus_pool_pen_write() - write bytes of the kernel's
 * @pen:    pen
 * @offset: where to, within the pool
 * @src:    bytes; NULL writes zeroes
 * @size:   how many
 *
 * Return: as kbus_pool_write().
 */
int kbus_pool_pen_write(struct kbus_pool_pen *pen, size_t offset, const void *src, size_t size);

/**
 * kbus_pool_pen_gather() - write bytes of the caller's memory, if they are at hand
 * @pen:    pen
 * @offset: where to, within the pool
 * @user:   bytes; access_ok() has been asked
 * @size:   how many
 *
 * A page of @user that is not in memory is not waited for. Return: 0; -EFAULT: there is
 * such a page; else as kbus_pool_write().
 */
int kbus_pool_pen_gather(struct kbus_pool_pen *pen, size_t offset, const void __user *user,
			 size_t size);

/**
 * kbus_pool_pen_end() - let go of the last page
 * @pen: pen
 */
void kbus_pool_pen_end(struct kbus_pool_pen *pen);

/**
 * kbus_pool_write() - write bytes of the kernel's
 * @pool:   file
 * @offset: where to, within the pool
 * @src:    bytes; NULL writes zeroes
 * @size:   how many
 *
 * Return: 0; -ENOMEM and what else becomes of a page that must come from swap.
 */
int kbus_pool_write(struct file *pool, size_t offset, const void *src, size_t size);

/**
 * kbus_pool_mark_drop() - forget the page
 * @mark: mark
 */
void kbus_pool_mark_drop(struct kbus_pool_mark *mark);

/**
 * kbus_pool_copy() - copy from one pool to another, or within one
 * @from:        file
 * @from_offset: where from
 * @to:          file
 * @to_offset:   where to
 * @size:        bytes; the two ranges do not overlap
 *
 * Return: as kbus_pool_write().
 */
int kbus_pool_copy(struct file *from, size_t from_offset, struct file *to, size_t to_offset,
		   size_t size);

/**
 * kbus_pool_give_back() - give pages back to the system
 * @pool:   file
 * @offset: from the first page that begins here or behind
 * @size:   to the last that ends here or before; bytes
 *
 * They read as zeroes then. Nobody else may write there meanwhile; it may sleep.
 */
void kbus_pool_give_back(struct file *pool, size_t offset, size_t size);

/**
 * kbus_pool_mmap() - map a pool
 * @pool: file
 * @size: its bytes
 * @vma:  mapping of the connected descriptor
 *
 * Return: 0; -EPERM: it is to be writable; -EFAULT: it is longer than the pool.
 */
int kbus_pool_mmap(struct file *pool, size_t size, struct vm_area_struct *vma);

#endif
