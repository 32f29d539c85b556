// SPDX-License-Identifier: LGPL-2.1-or-later
/* Messages in the pool, and what is released with them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lane/memfd.h"
#include "user.h"

struct message *message_new(struct user *u, size_t size, int *ret_error)
{
	struct message *m = kzalloc(sizeof(*m), GFP_KERNEL);
	int r = m ? core_pool_alloc(&u->pool, size, true, &m->slice) : -ENOMEM;

	if (r < 0) {
		free(m);
		*ret_error = r;
		return NULL;
	}
	core_queue_entry_init(&m->entry);
	return m;
}

/* The memory of the payload, once nobody reads it any more. */
static void drop_payload(struct user *u, struct message *m)
{
	u32 i;

	for (i = 0; m->maps && i < m->n_memfds; i++)
		if (m->maps[i].address)
			munmap(m->maps[i].address, m->maps[i].size);
	free(m->maps);
	m->maps = NULL;
	if (!m->peer)
		return;
	lane_bulk_return(&m->peer->channel, m->bulk, m->bulk_use);
	peer_put(u, m->peer);
	m->peer = NULL;
}

static void drop_fds(struct message *m)
{
	u32 i;

	for (i = 0; m->fds && i < m->n_fds + m->n_memfds; i++)
		user_drop_fd(m->fds[i]);
	free(m->fds);
	m->fds = NULL;
}

void message_discard(struct user *u, struct message *m)
{
	if (!m)
		return;
	if (core_queue_entry_linked(&m->entry))
		core_queue_remove(&u->queue, &m->entry);
	if (m->kept)
		rb_erase(&m->node, &u->messages);
	drop_fds(m);
	drop_payload(u, m);
	core_pool_release(&u->pool, m->slice);
	free(m);
}

static void keep(struct user *u, struct message *m)
{
	struct rb_node **link = &u->messages.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = m->slice->offset < rb_entry(parent, struct message, node)->slice->offset ?
			       &parent->rb_left :
			       &parent->rb_right;
	}
	rb_link_node(&m->node, parent, link);
	rb_insert_color(&m->node, &u->messages);
	m->kept = true;
}

static struct message *find(struct user *u, u64 offset)
{
	struct rb_node *node = u->messages.rb_node;
	struct message *m;

	while (node) {
		m = rb_entry(node, struct message, node);
		if (m->slice->offset == offset)
			return m;
		node = offset < m->slice->offset ? node->rb_left : node->rb_right;
	}
	return NULL;
}

/*
 * The slice is the application's from here on. Messages with payload elsewhere stay known until it
 * is freed; of the others nothing but the slice remains.
 */
void message_publish(struct user *u, struct message *m)
{
	core_pool_publish(&u->pool, m->slice);
	if (!m->kept && (m->peer || m->n_memfds || core_queue_entry_linked(&m->entry)))
		keep(u, m);
	if (core_queue_entry_linked(&m->entry))
		return;
	free(m->fds);
	m->fds = NULL;
	if (!m->kept) {
		core_pool_release(&u->pool, m->slice);
		free(m);
	}
}

static void forget(struct user *u, struct message *m)
{
	rb_erase(&m->node, &u->messages);
	m->kept = false;
	drop_payload(u, m);
	core_pool_release(&u->pool, m->slice);
	free(m);
}

int message_free(struct user *u, u64 offset)
{
	struct message *m = find(u, offset);
	int r = core_pool_free(&u->pool, offset);

	if (r < 0 || !m)
		return r;
	/* Peeked at and still queued: it stays what it is. */
	if (!core_queue_entry_linked(&m->entry))
		forget(u, m);
	return 0;
}

void message_free_all(struct user *u)
{
	struct core_queue_entry *entry;
	struct rb_node *node;

	while ((entry = core_queue_first(&u->queue)))
		message_discard(u, container_of(entry, struct message, entry));
	while ((node = rb_first(&u->messages)))
		forget(u, rb_entry(node, struct message, node));
}

static const struct kdbus_item *nth_memfd(const struct kdbus_msg *msg,
					  const struct kdbus_item *wanted, u32 *ret_index)
{
	const struct kdbus_item *item = NULL;
	u32 i = 0;

	while ((item = libkdbus_item_next(msg, sizeof(*msg), item))) {
		if (item == wanted)
			break;
		i += item->type == KDBUS_ITEM_PAYLOAD_MEMFD;
	}
	*ret_index = i;
	return item;
}

/* MAP_PRIVATE, as older kernels refuse a shared mapping of a sealed file. */
static int map_memfd(struct message *m, u32 i, const struct kdbus_item *item,
		     const void **ret_address)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), skip = item->memfd.start % page;
	void *map;

	if (!m->maps)
		m->maps = calloc(m->n_memfds, sizeof(*m->maps));
	if (!m->maps)
		return -ENOMEM;
	if (!m->maps[i].address) {
		map = mmap(NULL, item->memfd.size + skip, PROT_READ, MAP_PRIVATE, item->memfd.fd,
			   (off_t)(item->memfd.start - skip));
		if (map == MAP_FAILED)
			return errno == EBADF ? -ENXIO : -ENOMEM;
		m->maps[i].address = map;
		m->maps[i].size = item->memfd.size + skip;
	}
	*ret_address = (const char *)m->maps[i].address + skip;
	return 0;
}

static int memfd_payload(struct user *u, const struct kdbus_msg *msg, const struct kdbus_item *item,
			 const void **ret_address, size_t *ret_size)
{
	u64 offset = (u64)((const char *)msg - (const char *)u->memory_ro);
	struct message *m = find(u, offset);
	u32 i;
	int r;

	if (!m || !nth_memfd(msg, item, &i) || i >= m->n_memfds)
		return -ENXIO;
	r = map_memfd(m, i, item, ret_address);
	if (r == 0)
		*ret_size = item->memfd.size;
	return r;
}

int message_payload(struct user *u, const struct kdbus_msg *msg, const struct kdbus_item *item,
		    const void **ret_address, size_t *ret_size)
{
	u64 offset = (u64)((const char *)msg - (const char *)u->memory_ro);

	if (!u->connected || offset >= u->pool.size)
		return -ENXIO;
	if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD)
		return memfd_payload(u, msg, item, ret_address, ret_size);
	if (item->type != KDBUS_ITEM_PAYLOAD_OFF)
		return -EINVAL;
	*ret_size = item->vec.size;
	*ret_address = item->vec.offset == ~0ULL ? NULL : (const char *)msg + item->vec.offset;
	return 0;
}

/*
 * Write the numbers of the descriptors into the image: they were received into this process with
 * the message, close-on-exec. Entries of the FDS item first, then memfds (ABI 7.11). Returns the
 * return flags of the message: those there was no room for in the process read -1.
 */
u64 message_install_fds(struct user *u, struct message *m, bool accept)
{
	struct kdbus_msg *msg = (struct kdbus_msg *)(u->memory + m->slice->offset);
	struct kdbus_item *item = NULL;
	u32 i, memfd = m->n_fds;
	bool missing = false;

	if (!m->fds)
		return 0;
	for (i = accept ? 0 : m->n_fds; i < m->n_fds + m->n_memfds; i++)
		missing |= m->fds[i] < 0;
	while ((item = (struct kdbus_item *)libkdbus_item_next(msg, sizeof(*msg), item))) {
		if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD && memfd < m->n_fds + m->n_memfds) {
			item->memfd.fd = m->fds[memfd];
			m->fds[memfd++] = -1;
		}
		if (item->type != KDBUS_ITEM_FDS || !accept)
			continue;
		for (i = 0; i < m->n_fds; i++) {
			item->fds[i] = m->fds[i];
			m->fds[i] = -1;
		}
	}
	drop_fds(m);
	return missing ? KDBUS_RECV_RETURN_INCOMPLETE_FDS : 0;
}
