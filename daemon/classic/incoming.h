/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_INCOMING_H
#define CLASSIC_INCOMING_H

/*
 * incoming.h - a native message while it is made a classic one
 *
 * 1. Its payload is a whole D-Bus message, and what that says and what the bus says are the same.
 *    One that is none, or a different one, is no message: -EBADMSG.
 * 2. The header is looked at first: nothing of a body is copied, or checked, of a message that does
 *    not get through anyway.
 * 3. The sender may still write to its memory: what is checked is a copy.
 */

#include "classic.h"

#define INCOMING_SMALL 2048 /* messages up to this need no memory of their own */

/**
 * struct incoming - such a message, on the stack of who makes it
 * @m:		what becomes of it
 * @data:	where it is put together, @size bytes
 */
struct incoming {
	struct classic *classic;
	struct cmsg m;
	unsigned char *data;
	size_t size;
	unsigned char small[INCOMING_SMALL];
	char sender[CLASSIC_UNIQUE_MAX];
};

/**
 * struct incoming_source - where its payload comes from
 * @read:	copy @size bytes from @at on. 0; negative errno
 * @msg:	header of the message
 * @size:	of all of the payload
 * @n_fds:	descriptors that come with it
 */
struct incoming_source {
	int (*read)(const struct incoming_source *source, size_t at, void *to, size_t size);
	const struct kdbus_msg *msg;
	u64 size;
	unsigned int n_fds;
};

/**
 * incoming_begin() - read and check the header
 * @from:	sender
 *
 * incoming_end() it, also after an error. Return: 0; -EBADMSG; -ENOMEM; what @read says.
 */
int incoming_begin(struct incoming *in, struct classic *k, struct peer *from,
		   const struct incoming_source *source);
/**
 * incoming_body() - the rest of it, and a head to deliver it with
 *
 * Return: as incoming_begin(); -EMSGSIZE: it would be too large.
 */
int incoming_body(struct incoming *in, const struct incoming_source *source);
/**
 * incoming_admit() - may it go to this peer?
 *
 * Return: 0; -EPERM: not by the policy; -ECOMM: it takes no descriptors; -EBADSLT: it waits for no
 * such reply; -ENOBUFS: too much waits for it.
 */
int incoming_admit(struct incoming *in, struct cpeer *to);
/* Queue it, complete and admitted. Return: 0; -ENOMEM. */
int incoming_deliver(struct incoming *in, struct cpeer *to);
void incoming_end(struct incoming *in);

/* For @read: a piece of a payload memfd, as of @start. 0; -EBADMSG: it is not there */
int incoming_read_memfd(int fd, u64 start, unsigned char *to, size_t size);

#endif
