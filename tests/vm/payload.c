// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Payload on its one way from the memory of the sender into the pool: also where the
 * memory is not at hand, or not there at all, and the first attempt was for nothing.
 */
#include "bus.h"

#include <pthread.h>
#include <sys/mman.h>

#define PAGE 4096UL
#define SIZE (5 * PAGE)

static uint8_t byte_at(size_t i)
{
	return i * 7 + i / 251;
}

/* Memory with contents that no page table knows of yet. */
static const uint8_t *absent(void)
{
	static uint8_t bytes[SIZE];
	int fd = memfd_create("absent", MFD_CLOEXEC);
	void *at;

	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = byte_at(i);
	EQ(write(fd, bytes, SIZE), SIZE);
	at = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED);
	/* or else the kernel maps the neighbours of a page along with it */
	EQ(madvise(at, SIZE, MADV_RANDOM), 0);
	close(fd);
	return at;
}

/* Three vectors that begin and end anywhere. */
static void put_some(struct buf *m, const uint8_t *at)
{
	put_vec(m, at + 5, PAGE);
	put_vec(m, at + 5 + PAGE, 3);
	put_vec(m, at + 8 + PAGE, 2 * PAGE + 17);
}

static void check_content(struct peer *peer, const struct kdbus_msg *msg)
{
	const struct kdbus_item *item = msg->items;
	const struct kdbus_vec *vec;
	size_t at = 5;

	for (int i = 0; i < 3; i++) {
		EQ(item->type, KDBUS_ITEM_PAYLOAD_OFF);
		vec = payload(item);
		for (size_t k = 0; k < vec->size; k++, at++)
			EQ(((const uint8_t *)msg)[vec->offset + k], byte_at(at));
		item = (const void *)((const char *)item + ((item->size + 7) & ~7UL));
	}
	EQ(at, 5 + 3 * PAGE + 20);
	done(peer, msg);
}

static void expect(struct peer *peer)
{
	const struct kdbus_msg *msg;

	EQ(recv_msg(peer, &msg), 0);
	check_content(peer, msg);
	EQ(recv_msg(peer, &msg), -EAGAIN);
}

static void plain(void)
{
	struct peer a, b;
	struct buf m;

	hello(&a);
	hello(&b);
	msg_buf(&m, b.id, 1);
	put_some(&m, absent());
	EQ(send_msg(&a, &m, 0, NULL), 0);
	expect(&b);
	/* now it is at hand */
	EQ(send_msg(&a, &m, 0, NULL), 0);
	expect(&b);
}

static void signal_to_one(void)
{
	struct kdbus_cmd_recv c;
	struct peer a, b;
	struct buf m;

	hello(&a);
	hello(&b);
	match_all(&b);
	msg_buf(&m, b.id, 1);
	m.msg.flags = KDBUS_MSG_SIGNAL;
	put_some(&m, absent());
	put_filter(&m, NULL, 0);
	EQ(send_msg(&a, &m, 0, NULL), 0);
	EQ(recv_flags(&b, 0, 0, &c), 0);
	EQ(c.dropped_msgs, 0);
	check_content(&b, (const void *)(b.pool + c.msg.offset));
	EQ(recv_flags(&b, 0, 0, &c), -EAGAIN);
}

static void broadcast_and_monitor(void)
{
	struct peer a, b, c, monitor;
	struct buf m;

	hello(&a);
	hello(&b);
	hello(&c);
	match_all(&b);
	match_all(&c);
	hello_at(&monitor, bus_path, KDBUS_HELLO_MONITOR);
	msg_buf(&m, KDBUS_DST_ID_BROADCAST, 1);
	m.msg.flags = KDBUS_MSG_SIGNAL;
	put_some(&m, absent());
	put_filter(&m, NULL, 0);
	EQ(send_msg(&a, &m, 0, NULL), 0);
	expect(&b);
	expect(&c);
	expect(&monitor);
	msg_buf(&m, b.id, 2);
	put_some(&m, absent());
	EQ(send_msg(&a, &m, 0, NULL), 0);
	expect(&b);
	expect(&monitor);
}

static void reply(void)
{
	struct peer a, b;
	struct buf m;

	hello(&a);
	hello(&b);
	EQ(send_call(&a, b.id, 9, now_ns() + 60000000000), 0);
	EQ(recv_cookie(&b), 9);
	msg_buf(&m, a.id, 1);
	m.msg.cookie_reply = 9;
	put_some(&m, absent());
	EQ(send_msg(&b, &m, 0, NULL), 0);
	expect(&a);
	/* once was enough */
	EQ(send_msg(&b, &m, 0, NULL), -EBADSLT);
}

static void *answer_with_absent(void *arg)
{
	struct peer *b = arg;
	const struct kdbus_msg *msg;
	struct buf m;

	while (recv_msg(b, &msg) == -EAGAIN)
		usleep(1000);
	msg_buf(&m, msg->src_id, 1);
	m.msg.cookie_reply = msg->cookie;
	put_some(&m, absent());
	EQ(send_msg(b, &m, 0, NULL), 0);
	return NULL;
}

static void sync_reply(void)
{
	struct kdbus_msg_info info;
	pthread_t thread;
	struct peer a, b;
	struct buf m;

	hello(&a);
	hello(&b);
	EQ(pthread_create(&thread, NULL, answer_with_absent, &b), 0);
	msg_buf(&m, b.id, 4);
	m.msg.flags = KDBUS_MSG_EXPECT_REPLY;
	m.msg.timeout_ns = now_ns() + 60000000000;
	put_some(&m, absent());
	EQ(send_msg(&a, &m, KDBUS_SEND_SYNC_REPLY, &info), 0);
	EQ(pthread_join(thread, NULL), 0);
	check_content(&a, (const void *)(a.pool + info.offset));
}

/* Nothing is delivered, nothing stays behind: no slot, no slice. */
static void unreadable(void)
{
	uint8_t *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct kdbus_msg *msg;
	struct peer a, b;
	struct buf m;

	CHECK(at != MAP_FAILED);
	EQ(mprotect(at + 2 * PAGE, PAGE, PROT_NONE), 0);
	hello(&a);
	hello(&b);
	msg_buf(&m, b.id, 1);
	put_some(&m, at);
	EQ(send_msg(&a, &m, 0, NULL), -EFAULT);
	m.msg.flags = KDBUS_MSG_EXPECT_REPLY;
	m.msg.timeout_ns = now_ns() + 60000000000;
	EQ(send_msg(&a, &m, 0, NULL), -EFAULT);
	EQ(recv_msg(&b, &msg), -EAGAIN);
	EQ(send_reply(&b, a.id, 1), -EBADSLT);
	/* who is not there is told first (§7.5) */
	m.msg.dst_id = b.id + 1000;
	EQ(send_msg(&a, &m, 0, NULL), -ENXIO);
}

/* Headers that lie across the end of a page. */
static void any_offset(void)
{
	const struct kdbus_msg *kept[400], *msg;
	struct peer a, b;
	struct buf m;
	uint8_t byte;

	hello(&a);
	hello(&b);
	for (int i = 0; i < 200; i++) {
		byte = i;
		msg_buf(&m, b.id, i);
		put_vec(&m, &byte, 1);
		EQ(send_msg(&a, &m, 0, NULL), 0);
		EQ(recv_msg(&b, &kept[i]), 0);
	}
	for (int i = 0; i < 200; i++) {
		msg = kept[i];
		EQ(msg->cookie, i);
		EQ(msg->items[0].type, KDBUS_ITEM_PAYLOAD_OFF);
		EQ(((const uint8_t *)msg)[msg->items[0].vec.offset], i);
		done(&b, msg);
	}
}

static const struct test tests[] = {
	{ "payload that is not at hand (§7.5)", plain },
	{ "payload of a signal that is not at hand (§7.6)", signal_to_one },
	{ "payload for several that is not at hand (§7.9, §13)", broadcast_and_monitor },
	{ "payload of a reply that is not at hand (§7.7)", reply },
	{ "payload of a synchronous reply that is not at hand (§7.8)", sync_reply },
	{ "payload that cannot be read (§6.14)", unreadable },
	{ "messages at any place of a pool (§7.3)", any_offset },
	{ NULL, NULL },
};

int main(void)
{
	return run_tests(tests);
}
