// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names, matches, notifications, monitors, activators: §15.3 and §15.4. */
#include "bus.h"

#define NAME "foo.bla.blaz"

struct listed {
	uint64_t id;
	uint64_t flags;
};

/* Who is listed with @name, owner or waiting. */
static int list_name(struct peer *peer, const char *name, struct listed *ret, int max)
{
	struct kdbus_cmd_list c = {
		.size = sizeof(c),
		.flags = KDBUS_LIST_NAMES | KDBUS_LIST_ACTIVATORS | KDBUS_LIST_QUEUED,
	};
	const struct kdbus_item *item;
	const struct kdbus_info *info;
	int n = 0;

	EQ(cmd(peer->fd, KDBUS_CMD_LIST, &c), 0);
	for (uint64_t at = 0; at < c.list_size; at += info->size) {
		info = (const void *)(peer->pool + c.offset + at);
		item = find_item(info, sizeof(*info), info->size, KDBUS_ITEM_OWNED_NAME);
		if (!item || strcmp((const char *)item->data + 8, name))
			continue;
		CHECK(n < max);
		ret[n].id = info->id;
		memcpy(&ret[n++].flags, item->data, 8);
	}
	EQ(free_slice(peer, c.offset), 0);
	return n;
}

static void name_basics(void)
{
	struct listed at[2];
	struct peer a, b;
	uint64_t flags;

	hello(&a);
	hello(&b);
	EQ(acquire(&a, ".bla.blaz", 0, NULL), -EINVAL);
	EQ(acquire(&a, "foo", 0, NULL), -EINVAL);
	EQ(acquire(&a, "foo.bla.bl.*", 0, NULL), -EINVAL);
	EQ(acquire(&a, NAME, 0, &flags), 0);
	EQ(flags, KDBUS_NAME_PRIMARY | KDBUS_NAME_ACQUIRED);
	EQ(list_name(&a, NAME, at, 2), 1);
	EQ(at[0].id, a.id);
	EQ(at[0].flags, KDBUS_NAME_PRIMARY);
	EQ(acquire(&a, NAME, 0, &flags), 0);
	EQ(flags, KDBUS_NAME_PRIMARY);
	EQ(acquire(&b, NAME, 0, NULL), -EEXIST);
	EQ(release(&b, NAME), -EADDRINUSE);
	EQ(release(&a, NAME), 0);
	EQ(list_name(&a, NAME, at, 2), 0);
	EQ(release(&a, NAME), -ESRCH);
	EQ(release(&a, "foo"), -ESRCH);
}

static void name_queue(void)
{
	struct listed at[2];
	struct peer a, b;
	uint64_t flags;

	hello(&a);
	hello(&b);
	EQ(acquire(&a, NAME, 0, NULL), 0);
	EQ(acquire(&b, NAME, KDBUS_NAME_QUEUE, &flags), 0);
	EQ(flags, KDBUS_NAME_QUEUE | KDBUS_NAME_IN_QUEUE | KDBUS_NAME_ACQUIRED);
	EQ(list_name(&a, NAME, at, 2), 2);
	EQ(at[0].flags, KDBUS_NAME_PRIMARY);
	EQ(at[1].flags, KDBUS_NAME_QUEUE | KDBUS_NAME_IN_QUEUE);
	EQ(release(&a, NAME), 0);
	EQ(list_name(&a, NAME, at, 2), 1);
	EQ(at[0].id, b.id);
	EQ(at[0].flags, KDBUS_NAME_QUEUE | KDBUS_NAME_PRIMARY);
}

static void name_takeover(void)
{
	struct listed at[2];
	struct peer a, b;
	uint64_t flags;

	hello(&a);
	hello(&b);
	EQ(acquire(&a, NAME, KDBUS_NAME_ALLOW_REPLACEMENT, NULL), 0);
	EQ(acquire(&b, NAME, KDBUS_NAME_REPLACE_EXISTING, &flags), 0);
	CHECK(flags & KDBUS_NAME_ACQUIRED);
	EQ(list_name(&a, NAME, at, 2), 1);
	EQ(at[0].id, b.id);
	EQ(at[0].flags, KDBUS_NAME_PRIMARY);
}

static void match_ids(void)
{
	struct kdbus_notify_id_change rule = { ANY, 0 };
	const struct kdbus_notify_id_change *change;
	const struct kdbus_msg *msg;
	struct peer a, b;

	hello(&a);
	EQ(match(&a, 1, 0, KDBUS_ITEM_ID_ADD, &rule, sizeof(rule)), 0);
	hello(&b);
	CHECK(readable(a.fd));
	EQ(recv_msg(&a, &msg), 0);
	EQ(msg->src_id, 0);
	EQ(msg->dst_id, KDBUS_DST_ID_BROADCAST);
	EQ(msg->payload_type, 0);
	change = payload(msg_item(msg, KDBUS_ITEM_ID_ADD));
	EQ(change->id, b.id);
	EQ(change->flags, KDBUS_HELLO_ACCEPT_FD);
	EQ(payload_size(msg_item(msg, KDBUS_ITEM_TIMESTAMP)), 24);
	done(&a, msg);
	CHECK(!readable(a.fd));
	/* replaced: only the end of B is told now */
	rule.id = b.id;
	EQ(match(&a, 1, KDBUS_MATCH_REPLACE, KDBUS_ITEM_ID_REMOVE, &rule, sizeof(rule)), 0);
	bye(&b);
	EQ(recv_msg(&a, &msg), 0);
	change = payload(msg_item(msg, KDBUS_ITEM_ID_REMOVE));
	EQ(change->id, rule.id);
	done(&a, msg);
	hello(&b);
	EQ(recv_msg(&a, &msg), -EAGAIN);
}

static void name_rule(struct peer *peer, uint64_t type, const char *name)
{
	struct kdbus_notify_name_change any = { { ANY, 0 }, { ANY, 0 }, {} };
	char rule[128];

	memcpy(rule, &any, sizeof(any));
	strcpy(rule + sizeof(any), name);
	EQ(match(peer, type, 0, type, rule, sizeof(any) + strlen(name) + 1), 0);
}

static void expect_name(struct peer *peer, uint64_t type, uint64_t old_id, uint64_t new_id)
{
	const struct kdbus_notify_name_change *change;
	const struct kdbus_msg *msg;

	EQ(recv_msg(peer, &msg), 0);
	change = payload(msg_item(msg, type));
	EQ(change->old_id.id, old_id);
	EQ(change->new_id.id, new_id);
	EQ(strcmp(change->name, NAME), 0);
	done(peer, msg);
}

static void match_names(void)
{
	struct peer a, b;

	hello(&a);
	hello(&b);
	name_rule(&a, KDBUS_ITEM_NAME_ADD, NAME);
	name_rule(&a, KDBUS_ITEM_NAME_CHANGE, NAME);
	name_rule(&a, KDBUS_ITEM_NAME_REMOVE, NAME);
	EQ(acquire(&a, NAME, 0, NULL), 0);
	expect_name(&a, KDBUS_ITEM_NAME_ADD, 0, a.id);
	EQ(acquire(&b, NAME, KDBUS_NAME_QUEUE, NULL), 0);
	EQ(release(&a, NAME), 0);
	expect_name(&a, KDBUS_ITEM_NAME_CHANGE, a.id, b.id);
	bye(&b);
	expect_name(&a, KDBUS_ITEM_NAME_REMOVE, b.id, 0);
	CHECK(!readable(a.fd));
}

static int signal_with(struct peer *from, const uint8_t *filter, uint64_t generation)
{
	struct buf m;

	msg_buf(&m, KDBUS_DST_ID_BROADCAST, 1);
	m.msg.flags = KDBUS_MSG_SIGNAL;
	put_filter(&m, filter, generation);
	return send_msg(from, &m, 0, NULL);
}

static bool arrived(struct peer *peer)
{
	bool any = readable(peer->fd);

	drain(peer);
	return any;
}

static void match_bloom(void)
{
	uint8_t mask[2 * BLOOM] = { [0] = 0x55, [63] = 0x80, [64 + 1] = 0xaa, [64 + 9] = 0x02 };
	uint8_t filter[BLOOM] = { 0 };
	struct kdbus_cmd_match c = { .size = sizeof(c), .cookie = 9 };
	struct peer a, b;

	hello(&a);
	hello(&b);
	EQ(match(&b, 9, 0, KDBUS_ITEM_BLOOM_MASK, mask, BLOOM + 8), -EDOM);
	EQ(match(&b, 9, 0, KDBUS_ITEM_BLOOM_MASK, mask, sizeof(mask)), 0);
	EQ(signal_with(&a, filter, 0), 0);
	CHECK(!arrived(&b));
	filter[0] = 0x55;
	filter[63] = 0x80;
	EQ(signal_with(&a, filter, 0), 0);
	CHECK(arrived(&b));
	filter[0] = filter[8] = filter[63] = 0xff;
	EQ(signal_with(&a, filter, 0), 0);
	CHECK(arrived(&b));
	EQ(signal_with(&a, filter, 1), 0);
	CHECK(!arrived(&b));
	filter[1] = 0xaa;
	filter[9] = 0x02;
	EQ(signal_with(&a, filter, 1), 0);
	CHECK(arrived(&b));
	EQ(cmd(b.fd, KDBUS_CMD_MATCH_REMOVE, &c), 0);
	EQ(cmd(b.fd, KDBUS_CMD_MATCH_REMOVE, &c), -EBADSLT);
	EQ(signal_with(&a, filter, 1), 0);
	CHECK(!arrived(&b));
}

static int set_recv(struct peer *peer, uint64_t mask)
{
	struct buf b;

	start(&b, sizeof(b.cmd));
	put_u64(&b, KDBUS_ITEM_ATTACH_FLAGS_RECV, mask);
	return cmd(peer->fd, KDBUS_CMD_UPDATE, &b);
}

static void unprivileged_monitor(void *data)
{
	struct peer p;
	struct buf b;

	(void)data;
	hello_buf(&b, KDBUS_HELLO_MONITOR);
	EQ(try_hello(&p, bus_path, &b), -EPERM);
}

static void monitor(void)
{
	struct kdbus_notify_id_change rule = { ANY, 0 };
	const struct kdbus_msg *msg;
	struct peer a, b, m;

	hello(&a);
	hello(&b);
	EQ(match(&a, 1, 0, KDBUS_ITEM_ID_ADD, &rule, sizeof(rule)), 0);
	hello_at(&m, bus_path, KDBUS_HELLO_MONITOR);
	EQ(recv_msg(&a, &msg), -EAGAIN);
	EQ(acquire(&m, NAME, 0, NULL), -EOPNOTSUPP);
	EQ(match(&m, 1, 0, 0, NULL, 0), -EOPNOTSUPP);
	EQ(send_plain(&a, m.id, 1), -ENXIO);
	EQ(send_plain(&a, b.id, 5), 0);
	EQ(recv_cookie(&b), 5);
	EQ(recv_cookie(&m), 5);
	EQ(broadcast(&a, 6), 0);
	EQ(recv_cookie(&m), 6);
	EQ(set_recv(&m, 0), 0);
	EQ(send_plain(&a, b.id, 7), 0);
	EQ(recv_msg(&m, &msg), 0);
	CHECK(!msg_item(msg, KDBUS_ITEM_TIMESTAMP));
	done(&m, msg);
	EQ(set_recv(&m, KDBUS_ATTACH_TIMESTAMP | KDBUS_ATTACH_CREDS), 0);
	EQ(send_plain(&a, b.id, 8), 0);
	EQ(recv_msg(&m, &msg), 0);
	CHECK(msg_item(msg, KDBUS_ITEM_TIMESTAMP));
	CHECK(msg_item(msg, KDBUS_ITEM_CREDS));
	CHECK(!msg_item(msg, KDBUS_ITEM_PID_COMM));
	EQ(set_recv(&m, ALL + 1), -EINVAL);
	in_child(65534, unprivileged_monitor, NULL);
}

static void activator_hello(struct peer *peer, const char *name)
{
	struct buf b;

	hello_buf(&b, KDBUS_HELLO_ACTIVATOR | KDBUS_HELLO_ACCEPT_FD);
	put_str(&b, KDBUS_ITEM_NAME, name);
	put_access(&b, KDBUS_POLICY_ACCESS_USER, geteuid(), KDBUS_POLICY_OWN);
	put_access(&b, KDBUS_POLICY_ACCESS_WORLD, 0, KDBUS_POLICY_TALK);
	EQ(try_hello(peer, bus_path, &b), 0);
}

static void activator(void)
{
	struct peer act, a, b;
	struct buf m;

	activator_hello(&act, NAME);
	hello(&a);
	hello(&b);
	EQ(send_plain(&a, act.id, 1), -ENXIO);
	EQ(send_name(&a, NAME, 11), 0);
	CHECK(readable(act.fd));
	msg_buf(&m, 0, 12);
	m.msg.flags = KDBUS_MSG_NO_AUTO_START;
	put_str(&m, KDBUS_ITEM_DST_NAME, NAME);
	EQ(send_msg(&a, &m, 0, NULL), -EADDRNOTAVAIL);
	EQ(acquire(&b, NAME, 0, NULL), 0);
	CHECK(!readable(act.fd));
	EQ(recv_cookie(&b), 11);
	EQ(send_name(&a, NAME, 13), 0);
	EQ(release(&b, NAME), 0);
	/* what B has not read goes back */
	EQ(recv_cookie(&act), 13);
	EQ(send_name(&a, "no.such", 1), -ESRCH);
}

static const struct test tests[] = {
	{ "name-basics, name-conflict (§15.3)", name_basics },
	{ "name-queue (§15.3)", name_queue },
	{ "name-takeover (§15.3)", name_takeover },
	{ "match-id-add, -remove, match-replace (§15.4)", match_ids },
	{ "match-name-add, -change, -remove (§15.4)", match_names },
	{ "match-bloom (§15.4)", match_bloom },
	{ "monitor (§15.4)", monitor },
	{ "activator (§15.3)", activator },
	{ NULL, NULL },
};

int main(void)
{
	return run_tests(tests);
}
