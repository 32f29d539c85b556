// SPDX-License-Identifier: LGPL-2.1-or-later
/* Classic messages made native. Rules: outgoing.h. */
#include "outgoing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "dbus/bloom.h"

/* A call of a classic peer has no deadline: that is the caller's, and it does not tell. */
#define NO_DEADLINE (~0ULL >> 1)

size_t outgoing_size(const struct cmsg *m)
{
	return m->head_len + m->header.frame.body_len;
}

unsigned char *outgoing_joined(const struct cmsg *m)
{
	unsigned char *payload = malloc(outgoing_size(m));

	if (!payload)
		return NULL;
	memcpy(payload, m->head, m->head_len);
	memcpy(payload + m->head_len, m->body, m->header.frame.body_len);
	return payload;
}

int outgoing_memfd(const struct cmsg *m)
{
	const struct iovec iov[2] = {
		{ (void *)m->head, m->head_len },
		{ (void *)m->body, m->header.frame.body_len },
	};
	int fd = memfd_create("kdbus-payload", MFD_CLOEXEC | MFD_ALLOW_SEALING), r = 0;

	if (fd < 0)
		return -errno;
	if (writev(fd, iov, 2) != (ssize_t)outgoing_size(m))
		r = -ENOMEM;
	else if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) <
		 0)
		r = -errno;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

void outgoing_bloom(struct core_writer *w, const struct core_bus *bus, struct cmsg *m)
{
	size_t size = bus->bloom.size;
	struct kdbus_bloom_filter *filter =
		core_writer_item(w, KDBUS_ITEM_BLOOM_FILTER, sizeof(*filter) + size);
	struct dbusp_bloom bloom;

	if (!filter)
		return;
	memset(filter, 0, sizeof(*filter) + size);
	bloom = (struct dbusp_bloom){ .words = (uint64_t *)filter->data,
				      .n_words = size / sizeof(u64),
				      .n_hash = (unsigned int)bus->bloom.n_hash };
	dbusp_args_init(&m->args, &m->header, m->body);
	m->args_ready = true;
	dbusp_bloom_filter(&bloom, &m->header, &m->args);
}

void outgoing_head(struct kdbus_msg *msg, const struct cmsg *m, u64 dst_id)
{
	msg->dst_id = dst_id;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	msg->cookie = m->header.frame.serial;
	if (m->header.frame.flags & DBUSP_NO_AUTO_START)
		msg->flags |= KDBUS_MSG_NO_AUTO_START;
	if (cmsg_wants_reply(m)) {
		msg->flags |= KDBUS_MSG_EXPECT_REPLY;
		msg->timeout_ns = NO_DEADLINE;
	} else {
		msg->cookie_reply = m->header.reply_serial;
	}
}
