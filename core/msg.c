// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"

#include "limits.h"
#include "msg.h"
#include "syntax.h"

#define MSG_FLAGS ((u64)(KDBUS_MSG_EXPECT_REPLY | KDBUS_MSG_NO_AUTO_START | KDBUS_MSG_SIGNAL))

/* Indices of the rules, which are those of core_items.first. */
enum { RULE_VEC, RULE_NAME, RULE_MEMFD, RULE_FDS, RULE_BLOOM, RULES };

static const struct core_item_rule msg_rules[RULES + 1] = {
	[RULE_VEC] = { KDBUS_ITEM_PAYLOAD_VEC, CORE_ITEM_MANY },
	[RULE_NAME] = { KDBUS_ITEM_DST_NAME, 0 },
	[RULE_MEMFD] = { KDBUS_ITEM_PAYLOAD_MEMFD, CORE_ITEM_MANY },
	[RULE_FDS] = { KDBUS_ITEM_FDS, 0 },
	[RULE_BLOOM] = { KDBUS_ITEM_BLOOM_FILTER, 0 },
};

int core_msg_check_size(u64 size)
{
	if (size < sizeof(struct kdbus_msg))
		return -EINVAL;
	return size > CORE_CMD_MAX_SIZE ? -EMSGSIZE : 0;
}

int core_msg_parse(struct kdbus_msg *msg, size_t size, bool negotiate, struct core_msg *ret)
{
	const struct kdbus_item *name;
	int r;

	if (msg->flags & ~(MSG_FLAGS | (negotiate ? KDBUS_FLAG_NEGOTIATE : 0)))
		return -EINVAL;
	r = core_items_parse(msg_rules, (char *)msg + sizeof(*msg), size - sizeof(*msg), false,
			     &ret->list);
	if (r)
		return r;

	ret->msg = msg;
	ret->negotiate = msg->flags & KDBUS_FLAG_NEGOTIATE;
	ret->supported = MSG_FLAGS;
	ret->end = sizeof(*msg) + ret->list.end;
	ret->fds = ret->list.first[RULE_FDS];
	ret->bloom = ret->list.first[RULE_BLOOM];
	name = ret->list.first[RULE_NAME];
	ret->dst_name = name ? core_item_str(name) : NULL;
	ret->n_fds = 0;
	ret->n_memfds = 0;
	ret->n_vecs = 0;
	ret->vec_size = 0;
	msg->flags &= ~KDBUS_FLAG_NEGOTIATE;
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

/**
 * struct counts - what is counted while items are checked
 */
struct counts {
	u32 n_fds;
	u32 n_memfds;
	u32 n_vecs;
	u64 vec_size;
};

static int check_vec(struct counts *c, const struct kdbus_vec *vec,
		     const struct core_msg_facts *facts)
{
	u64 end;

	if (check_add_overflow(c->vec_size, vec->size, &c->vec_size) ||
	    c->vec_size > CORE_MSG_MAX_PAYLOAD_VEC_SIZE)
		return -EMSGSIZE;
	c->n_vecs++;
	if (!vec->address)
		return 0;
	if (check_add_overflow(vec->address, vec->size, &end))
		return -EFAULT;
	return !facts->range_ok || facts->range_ok(vec->address, vec->size) ? 0 : -EFAULT;
}

static int check_memfd(struct counts *c, const struct kdbus_memfd *memfd)
{
	u64 end;

	if (check_add_overflow(memfd->start, memfd->size, &end))
		return -EMSGSIZE;
	return ++c->n_memfds > CORE_MSG_MAX_MEMFD_ITEMS ? -E2BIG : 0;
}

static int check_bloom(const struct kdbus_item *item, u64 bloom_size)
{
	size_t size = core_item_payload_size(item) - sizeof(struct kdbus_bloom_filter);

	if (size % sizeof(u64))
		return -EFAULT;
	return size == bloom_size ? 0 : -EDOM;
}

/* Spec §7.2: the limits of one item. */
static int check_item(const struct core_msg *m, const struct kdbus_item *item,
		      const struct core_msg_facts *facts, struct counts *c)
{
	switch (item->type) {
	case KDBUS_ITEM_PAYLOAD_VEC:
		return check_vec(c, core_item_payload(item), facts);
	case KDBUS_ITEM_PAYLOAD_MEMFD:
		return check_memfd(c, core_item_payload(item));
	case KDBUS_ITEM_FDS:
		c->n_fds = core_item_payload_size(item) / sizeof(int);
		return c->n_fds > CORE_MSG_MAX_FDS ? -EMFILE : 0;
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
static int check_cross(const struct core_msg *m, const struct counts *c)
{
	bool signal = m->msg->flags & KDBUS_MSG_SIGNAL;

	if (signal != !!m->bloom)
		return -EBADMSG;
	if (m->msg->dst_id == KDBUS_DST_ID_NAME && !m->dst_name)
		return -EDESTADDRREQ;
	if (m->msg->dst_id == KDBUS_DST_ID_BROADCAST && c->n_fds)
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
	struct counts counts = { 0 };
	const struct kdbus_item *item;
	int r;

	if (m->msg->src_id != 0 && m->msg->src_id != facts->id)
		return -EINVAL;
	r = check_header(m->msg, facts->sync);
	if (r)
		return r;
	core_item_for_each(item, m->list.items, m->list.size) {
		r = check_item(m, item, facts, &counts);
		if (r)
			return r;
	}
	r = check_cross(m, &counts);
	if (r)
		return r;
	m->n_fds = counts.n_fds;
	m->n_memfds = counts.n_memfds;
	m->n_vecs = counts.n_vecs;
	m->vec_size = counts.vec_size;
	m->route = choose_route(m->msg, facts->sync);
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
