/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_MODULE_KCONN_H
#define CLASSIC_MODULE_KCONN_H

/*
 * kconn.h - a connection of the daemon to a bus of the module
 *
 * 1. A command is one ioctl; nothing blocks.
 * 2. What lies in the pool is written by the module alone, and stays until it is freed.
 * 3. At its end the connection has left the bus, and all that follows from that has been told,
 *    before kconn_close() returns, even if a program that is just being started has a copy of the
 *    descriptor.
 */

#include "base.h"
#include "kdbus.h"

/**
 * struct kconn - such a connection
 * @fd:		-1: none
 * @id:		its id on the bus
 * @pool, @pool_size: receive pool
 */
struct kconn {
	int fd;
	u64 id;
	u8 bus_id[16];
	unsigned char *pool;
	size_t pool_size;
};

#define KCONN_NONE ((struct kconn){ .fd = -1 })
#define KCONN_POOL (16U << 20) /* two of the largest messages fit, of one user */

/**
 * struct kconn_hello - how to connect
 * @flags:	KDBUS_HELLO_*
 * @pool_size:	0: KCONN_POOL
 * @name:	of an activator, else NULL
 * @creds, @pids, @label: as whom; NULL: nothing is said about it
 */
struct kconn_hello {
	u64 flags;
	size_t pool_size;
	const char *name;
	const struct kdbus_creds *creds;
	const struct kdbus_pids *pids;
	const char *label;
};

/**
 * struct kconn_got - what RECV had
 * @msg:	in the pool; NULL: nothing
 * @incomplete:	not all descriptors could be taken
 * @lost:	broadcasts that found no room since the last time
 */
struct kconn_got {
	const struct kdbus_msg *msg;
	bool incomplete;
	u64 lost;
};

/* Return: 0, and kconn_close() it; what open(2), HELLO and mmap(2) say */
int kconn_open(struct kconn *c, const char *node, const struct kconn_hello *hello);
void kconn_close(struct kconn *c);
/* @flags: KDBUS_RECV_*. 0, -EAGAIN; @ret is set in both cases */
int kconn_recv(struct kconn *c, u64 flags, struct kconn_got *ret);
/* Something in the pool, of which the descriptors are somebody else's or closed */
void kconn_free(struct kconn *c, const void *slice);
int kconn_send(struct kconn *c, const struct kdbus_msg *msg);
/* @cmd: KDBUS_CMD_NAME_ACQUIRE or _RELEASE */
int kconn_name(struct kconn *c, unsigned long cmd, const char *name, u64 flags, u64 *ret_flags);
/* One entry with one rule; @size 0: with none, it matches everything */
int kconn_match(struct kconn *c, u64 type, const void *rule, size_t size);
int kconn_info(struct kconn *c, u64 id, u64 attach, const struct kdbus_info **ret);
int kconn_list(struct kconn *c, u64 flags, const struct kdbus_info **ret, u64 *ret_size);

/* Items of a structure of @size bytes whose first item lies at @items */
#define kconn_items(item, start, items, bytes)                                     \
	for (item = (items); (const char *)item < (const char *)(start) + (bytes); \
	     item = (const void *)((const char *)item + ALIGN(item->size, 8ULL)))

#endif
