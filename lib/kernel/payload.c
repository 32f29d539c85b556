// SPDX-License-Identifier: LGPL-2.1-or-later
/* Payload of messages: in the pool, or in memfds that are mapped when somebody asks. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel.h"

/**
 * struct map - a memfd of a message
 * @node:	in kernel.maps, by @item
 * @item:	its item in the pool
 * @slice:	offset of the message
 */
struct map {
	struct rb_node node;
	const struct kdbus_item *item;
	uint64_t slice;
	void *address;
	size_t size;
};

static struct map *to_map(struct rb_node *node)
{
	return node ? rb_entry(node, struct map, node) : NULL;
}

/* The first mapping of an item at @item or behind it */
static struct map *find_from(struct kernel *k, const void *item)
{
	struct rb_node *node = k->maps.rb_node;
	struct map *found = NULL, *m;

	while (node) {
		m = to_map(node);
		if ((const void *)m->item >= item)
			found = m;
		node = (const void *)m->item >= item ? node->rb_left : node->rb_right;
	}
	return found;
}

static void insert(struct kernel *k, struct map *m)
{
	struct rb_node **link = &k->maps.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = m->item < to_map(parent)->item ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&m->node, parent, link);
	rb_insert_color(&m->node, &k->maps);
	atomic_fetch_add(&k->n_maps, 1);
}

static void drop(struct kernel *k, struct map *m)
{
	rb_erase(&m->node, &k->maps);
	atomic_fetch_sub(&k->n_maps, 1);
	munmap(m->address, m->size);
	free(m);
}

void kernel_unmap_all(struct kernel *k)
{
	struct map *m;

	while ((m = to_map(rb_first(&k->maps))))
		drop(k, m);
}

static void unmap_slice(struct kernel *k, uint64_t slice)
{
	struct map *m;

	while ((m = find_from(k, k->pool + slice)) && m->slice == slice)
		drop(k, m);
}

/*
 * With the lock, as the place of a slice is another's the moment it is free: whoever receives that
 * one and asks for its payload must not be given what was mapped for this one.
 */
int kernel_free(struct kernel *k, struct kdbus_cmd_free *cmd)
{
	int r;

	if (!atomic_load(&k->n_maps))
		return kernel_ioctl(k, KDBUS_CMD_FREE, cmd);
	pthread_mutex_lock(&k->lock);
	r = kernel_ioctl(k, KDBUS_CMD_FREE, cmd);
	/* After that the argument is known to be readable. */
	if (r == 0)
		unmap_slice(k, cmd->offset);
	pthread_mutex_unlock(&k->lock);
	return r;
}

/* MAP_PRIVATE, as older kernels refuse a shared mapping of a sealed file. */
static int map_memfd(struct kernel *k, uint64_t slice, const struct kdbus_item *item,
		     struct map **ret)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), skip = item->memfd.start % page;
	struct map *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->item = item;
	m->slice = slice;
	m->size = item->memfd.size + skip;
	m->address = mmap(NULL, m->size, PROT_READ, MAP_PRIVATE, item->memfd.fd,
			  (off_t)(item->memfd.start - skip));
	if (m->address == MAP_FAILED) {
		r = errno == EBADF ? -ENXIO : -ENOMEM;
		free(m);
		return r;
	}
	insert(k, m);
	*ret = m;
	return 0;
}

static int memfd_payload(struct kernel *k, uint64_t slice, const struct kdbus_item *item,
			 const void **ret_address, size_t *ret_size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct map *m;
	int r = 0;

	pthread_mutex_lock(&k->lock);
	m = find_from(k, item);
	if (!m || m->item != item)
		r = map_memfd(k, slice, item, &m);
	if (r == 0) {
		*ret_address = (const char *)m->address + item->memfd.start % page;
		*ret_size = item->memfd.size;
	}
	pthread_mutex_unlock(&k->lock);
	return r;
}

static bool has_item(const struct kdbus_msg *msg, const struct kdbus_item *wanted)
{
	const struct kdbus_item *item = NULL;

	do {
		item = libkdbus_item_next(msg, sizeof(*msg), item);
	} while (item && item != wanted);
	return item;
}

int kernel_payload(struct libkdbus *h, const struct kdbus_msg *msg, const struct kdbus_item *item,
		   const void **ret_address, size_t *ret_size)
{
	struct kernel *k = to_kernel(h);
	uint64_t slice;

	if (!atomic_load(&k->connected))
		return -ENXIO;
	slice = (uint64_t)((const char *)msg - k->pool);
	if (slice >= k->pool_size || slice % 8 || msg->size > k->pool_size - slice ||
	    !has_item(msg, item))
		return -ENXIO;
	if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD)
		return memfd_payload(k, slice, item, ret_address, ret_size);
	if (item->type != KDBUS_ITEM_PAYLOAD_OFF)
		return -EINVAL;
	*ret_size = item->vec.size;
	*ret_address = item->vec.offset == ~0ULL ? NULL : (const char *)msg + item->vec.offset;
	return 0;
}
