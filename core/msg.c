// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"

#include "limits.h"
#include "msg.h"
#include "syntax.h"

#define MSG_FLAGS ((u64)(KDBUS_MSG_EXPECT_REPLY | KDBUS_MSG_NO_AUTO_START | KDBUS_MSG_SIGNAL))

static const struct core_item_rule msg_rules[] = {
	{ KDBUS_ITEM_PAYLOAD_VEC, CORE_ITEM_MANY },
	{ KDBUS_ITEM_PAYLOAD_MEMFD, CORE_ITEM_MANY },
	{ KDBUS_ITEM_FDS, 0 },
	{ KDBUS_ITEM_BLOOM_FILTER, 0 },
	{ KDBUS_ITEM_DST_NAME, 0 },
	{ 0 },
};

int core_msg_check_size(u64 size)
{
	if (size < sizeof(struct kdbus_msg))
		return -EINVAL;
	return size > CORE_CMD_MAX_SIZE ? -EMSGSIZE : 0;
}

int core_msg_parse(struct kdbus_msg *msg, size_t size, bool negotiate, struct core_msg *ret)
{
	struct core_msg m = {
		.msg = msg,
		.negotiate = msg->flags & KDBUS_FLAG_NEGOTIATE,
		.supported = MSG_FLAGS,
	};
	const struct kdbus_item *name;
	int r;

	if (msg->flags & ~(MSG_FLAGS | (negotiate ? KDBUS_FLAG_NEGOTIATE : 0)))
		return -EINVAL;
	r = core_items_parse(msg_rules, (char *)msg + sizeof(*msg), size - sizeof(*msg), true,
			     &m.list);
	if (r)
		return r;

	m.end = sizeof(*msg) + m.list.end;
	m.fds = core_items_get(&m.list, KDBUS_ITEM_FDS);
	m.bloom = core_items_get(&m.list, KDBUS_ITEM_BLOOM_FILTER);
	name = core_items_get(&m.list, KDBUS_ITEM_DST_NAME);
	m.dst_name = name ? core_item_str(name) : NULL;
	msg->flags &= ~KDBUS_FLAG_NEGOTIATE;
	*ret = m;
	return 0;
}

/* Spec §6.14 step 4: the header against itself and the command. */
static int check_header(const struct kdbus_msg *msg, bool sync)
{
	bool broadcast = msg->dst_id == KDBUS_DST_ID_BROADCAST;
	bool call = msg->flags & KDBUS_MSG_EXPECT_REPLY;
	bool signal = msg->flags & KDBUS_MSG_SIGNAL;

	if (msg->payload_type == KDBUS_PAYLOAD_KERNEL)
		return -EINVAL;
	if (broadcast && !signal)
		return -EBADMSG;
	if (broadcast && msg->cookie_reply)
		return -ENOTUNIQ;
	if (call && !msg->timeout_ns)
		return -EINVAL;
	if (call && signal)
		return -ENOTUNIQ;
	if (sync && !call)
		return -EINVAL;
	if (signal && msg->cookie_reply)
		return -EINVAL;
	return 0;
}

static int check_vec(struct core_msg *m, const struct kdbus_vec *vec,
		     const struct core_msg_facts *facts)
{
	u64 end;

	if (check_add_overflow(m->vec_size, vec->size, &m->vec_size) ||
	    m->vec_size > CORE_MSG_MAX_PAYLOAD_VEC_SIZE)
		return -EMSGSIZE;
	m->n_vecs++;
	if (!vec->address)
		return 0;
	if (check_add_overflow(vec->address, vec->size, &end))
		return -EFAULT;
	return !facts->range_ok || facts->range_ok(vec->address, vec->size) ? 0 : -EFAULT;
}

static int check_memfd(struct core_msg *m, const struct kdbus_memfd *memfd)
{
	u64 end;

	if (check_add_overflow(memfd->start, memfd->size, &end))
		return -EMSGSIZE;
	return ++m->n_memfds > CORE_MSG_MAX_MEMFD_ITEMS ? -E2BIG : 0;
}

static int check_bloom(const struct kdbus_item *item, u64 bloom_size)
{
	size_t size = core_item_payload_size(item) - sizeof(struct kdbus_bloom_filter);

	if (size % sizeof(u64))
		return -EFAULT;
	return size == bloom_size ? 0 : -EDOM;
}

/* Spec §7.2: the limits of one item. */
static int check_item(struct core_msg *m, const struct kdbus_item *item,
		      const struct core_msg_facts *facts)
{
	switch (item->type) {
	case KDBUS_ITEM_PAYLOAD_VEC:
		return check_vec(m, core_item_payload(item), facts);
	case KDBUS_ITEM_PAYLOAD_MEMFD:
		return check_memfd(m, core_item_payload(item));
	case KDBUS_ITEM_FDS:
		m->n_fds = core_item_payload_size(item) / sizeof(int);
		return m->n_fds > CORE_MSG_MAX_FDS ? -EMFILE : 0;
	case KDBUS_ITEM_BLOOM_FILTER:
		return check_bloom(item, facts->bloom_size);
	case KDBUS_ITEM_DST_NAME:
		if (!core_name_valid(core_item_str(item)))
			return -EINVAL;
		return m->msg->dst_id == KDBUS_DST_ID_BROADCAST ? -EBADMSG : 0;
	default:
		return -EINVAL;
	}
}

/* Spec §6.14 step 6: header and items against each other. */
static int check_cross(const struct core_msg *m)
{
	bool signal = m->msg->flags & KDBUS_MSG_SIGNAL;

	if (signal != !!m->bloom)
		return -EBADMSG;
	if (m->msg->dst_id == KDBUS_DST_ID_NAME && !m->dst_name)
		return -EDESTADDRREQ;
	if (m->msg->dst_id == KDBUS_DST_ID_BROADCAST && m->n_fds)
		return -ENOTUNIQ;
	return 0;
}

static enum core_route choose_route(const struct kdbus_msg *msg, bool sync)
{
	if (msg->dst_id == KDBUS_DST_ID_BROADCAST)
		return CORE_ROUTE_BROADCAST;
	if (sync)
		return CORE_ROUTE_SYNC_CALL;
	if ((msg->flags & KDBUS_MSG_EXPECT_REPLY) || !msg->cookie_reply)
		return CORE_ROUTE_UNICAST;
	return CORE_ROUTE_REPLY;
}

int core_msg_check(struct core_msg *m, const struct core_msg_facts *facts)
{
	struct core_msg checked = *m;
	const struct kdbus_item *item;
	int r;

	if (m->msg->src_id != 0 && m->msg->src_id != facts->id)
		return -EINVAL;
	r = check_header(m->msg, facts->sync);
	if (r)
		return r;

	checked.n_fds = 0;
	checked.n_memfds = 0;
	checked.n_vecs = 0;
	checked.vec_size = 0;
	core_item_for_each(item, m->list.items, m->list.size) {
		r = check_item(&checked, item, facts);
		if (r)
			return r;
	}
	r = check_cross(&checked);
	if (r)
		return r;
	checked.route = choose_route(m->msg, facts->sync);
	*m = checked;
	return 0;
}

size_t core_msg_fd(const struct core_msg *m, u32 i)
{
	const struct kdbus_item *item;

	if (i < m->n_fds)
		return (char *)core_item_payload(m->fds) - (char *)m->msg + i * sizeof(int);
	i -= m->n_fds;
	core_item_for_each(item, m->list.items, m->list.size) {
		if (item->type != KDBUS_ITEM_PAYLOAD_MEMFD || i--)
			continue;
		return (char *)core_item_payload(item) - (char *)m->msg +
		       offsetof(struct kdbus_memfd, fd);
	}
	return 0;
}
