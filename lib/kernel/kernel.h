/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef LIB_KERNEL_KERNEL_H
#define LIB_KERNEL_KERNEL_H

/*
 * kernel.h - the kernel engine: an open file on kdbusfs, and ioctl
 *
 * 1. A command is one ioctl. What the kernel does it does alone: arguments are neither copied nor
 *    checked here, so that errno and order of checks are its own.
 * 2. The descriptor and its number stay the same from open to close. It is also the one to poll.
 * 3. connected is set once, when the pool is mapped and the identity known; both stay until close.
 * 4. A mapping of a payload memfd belongs to the slice in which its item lies: it is unmapped when
 *    that slice is freed, before another message can take the place.
 * 5. The child of a fork() lets go of all handles before fork() returns there: an open file
 *    description of which a child has a copy would outlive the close of its owner.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base.h"

#include "../engine.h"

/* f_type of kdbusfs (ABI 1.1) */
#define KERNEL_FS_MAGIC 0x44427573
/* The customary mount point, which the module makes */
#define KERNEL_DOMAIN "/sys/fs/kdbus"

/**
 * struct kernel - a handle
 * @link:	in the list of all handles
 * @fd:		open file on the node; -1 in a forked child
 * @lock:	guards connecting, and @maps
 * @connected:	HELLO is done; stored with release
 * @dead:	HELLO was done, but the pool could not be mapped
 * @pool:	the receive pool
 * @pool_size:	its bytes
 * @identity:	what HELLO told
 * @maps:	mappings of payload memfds, by the address of their item
 * @n_maps:	how many
 */
struct kernel {
	struct libkdbus base;
	struct list_head link;
	int fd;
	pthread_mutex_t lock;
	atomic_bool connected;
	atomic_bool dead;
	char *pool;
	size_t pool_size;
	struct libkdbus_identity identity;
	struct rb_root maps;
	atomic_uint n_maps;
};

static inline struct kernel *to_kernel(struct libkdbus *h)
{
	return container_of(h, struct kernel, base);
}

/* hello.c */
int kernel_hello(struct kernel *k, void *arg);

/* payload.c */
int kernel_payload(struct libkdbus *h, const struct kdbus_msg *msg, const struct kdbus_item *item,
		   const void **ret_address, size_t *ret_size);
int kernel_free(struct kernel *k, struct kdbus_cmd_free *cmd);
void kernel_unmap_all(struct kernel *k);

/* open.c */
int kernel_ioctl(struct kernel *k, unsigned int cmd, void *arg);

#endif
