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
 */

struct vm_area_struct;

/**
 * kbus_pool_make() - make a file for a pool
 * @description: of the connection, or an empty string
 * @size:        bytes; all of them are committed to the caller
 *
 * Return: file, or an error pointer.
 */
struct file *kbus_pool_make(const char *description, u64 size);

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
 * kbus_pool_mmap() - map a pool
 * @pool: file
 * @size: its bytes
 * @vma:  mapping of the connected descriptor
 *
 * Return: 0; -EPERM: it is to be writable; -EFAULT: it is longer than the pool.
 */
int kbus_pool_mmap(struct file *pool, size_t size, struct vm_area_struct *vma);

#endif
