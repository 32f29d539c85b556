/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MODULE_FILES_H
#define MODULE_FILES_H

#include <linux/refcount.h>

#include "msg.h"
#include "object.h"

/*
 * Descriptors on their way (spec §7.2, §7.11).
 *
 *  1. The files of a message are taken once and shared by all its copies.
 *  2. What could make a message keep itself alive does not travel: files of kdbusfs,
 *     AF_UNIX sockets, and rings of io_uring.
 *  3. A memfd is sealed for good before it travels; its content never changes again.
 */

/**
 * struct kbus_files - the files of a message
 * @ref:   sender and copies
 * @n_fds: entries of the FDS item, which come first
 * @n:     all of them
 * @file:  files, and where their numbers stand in the message
 */
struct kbus_files {
	refcount_t ref;
	u32 n_fds;
	u32 n;
	struct {
		struct file *file;
		u32 offset;
	} file[];
};

/**
 * kbus_files_take() - take references to the files that a message names
 * @msg:       message that has passed core_msg_check()
 * @ret_files: files; NULL if there are none
 *
 * Return: 0; -EBADF, -EOPNOTSUPP, -EMEDIUMTYPE, -ETXTBSY, -EFAULT: see spec §7.2; -ENOMEM.
 */
int kbus_files_take(const struct core_msg *msg, struct kbus_files **ret_files);

/**
 * kbus_files_get() - take a reference
 * @files: files, or NULL
 *
 * Return: @files.
 */
struct kbus_files *kbus_files_get(struct kbus_files *files);

/**
 * kbus_files_put() - drop a reference
 * @files: files, or NULL
 */
void kbus_files_put(struct kbus_files *files);

/**
 * kbus_files_install() - install them in the calling process
 * @files:     files
 * @conn:      receiver
 * @offset:    where the message lies in its pool
 * @ret_flags: KDBUS_RECV_RETURN_INCOMPLETE_FDS is added if some could not be installed
 *
 * Return: 0; negative errno if the pool could not be written: what had been installed by
 * then stays the process's.
 */
int kbus_files_install(const struct kbus_files *files, struct kbus_conn *conn, size_t offset,
		       u64 *ret_flags);

#endif
