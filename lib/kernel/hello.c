// SPDX-License-Identifier: LGPL-2.1-or-later
/* HELLO: what the library needs of a connection besides the ioctl. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel.h"

/* A child would have to unmap it: the memory is of a connection that it cannot use. */
static int map_pool(struct kernel *k, size_t size)
{
	void *pool = mmap(NULL, size, PROT_READ, MAP_SHARED, k->fd, 0);

	if (pool == MAP_FAILED)
		return -errno;
	madvise(pool, size, MADV_DONTFORK);
	k->pool = pool;
	k->pool_size = size;
	return 0;
}

static void learn(struct kernel *k, const struct kdbus_cmd_hello *cmd)
{
	const char *items = k->pool + cmd->offset;
	const struct kdbus_item *item;
	uint64_t at;

	k->identity.id = cmd->id;
	k->identity.bus_flags = cmd->bus_flags;
	memcpy(k->identity.bus_id, cmd->id128, sizeof(k->identity.bus_id));
	for (at = 0; at < cmd->items_size; at += ALIGN(item->size, 8ULL)) {
		item = (const struct kdbus_item *)(items + at);
		if (item->type == KDBUS_ITEM_BLOOM_PARAMETER)
			k->identity.bloom = item->bloom_parameter;
	}
}

/*
 * A connection without a pool is of no use, and cannot be taken back. Something else takes the
 * place of the file under the same number, as other threads may be about to use that.
 */
static void give_up(struct kernel *k)
{
	int other = eventfd(0, EFD_CLOEXEC);

	atomic_store(&k->dead, true);
	if (other < 0)
		return;
	dup3(other, k->fd, O_CLOEXEC);
	close(other);
}

static int connect_locked(struct kernel *k, struct kdbus_cmd_hello *cmd)
{
	/* Overwritten when it only asked what there is. */
	bool asks = cmd->flags & KDBUS_FLAG_NEGOTIATE;
	int r = kernel_ioctl(k, KDBUS_CMD_HELLO, cmd);

	if (r < 0 || asks)
		return r;
	r = map_pool(k, cmd->pool_size);
	if (r < 0) {
		give_up(k);
		return r;
	}
	learn(k, cmd);
	atomic_store(&k->connected, true);
	return 0;
}

int kernel_hello(struct kernel *k, void *arg)
{
	int r;

	/* Where its flags could not be read, the kernel refuses it. */
	if (!arg || (uintptr_t)arg % 8)
		return kernel_ioctl(k, KDBUS_CMD_HELLO, arg);
	pthread_mutex_lock(&k->lock);
	r = atomic_load(&k->dead) ? -ECONNRESET : connect_locked(k, arg);
	pthread_mutex_unlock(&k->lock);
	return r;
}
