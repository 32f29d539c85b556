// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A peer that scribbles over everything it can write, its lane and its buffers, and says anything
 * on the socket of the channel, while the victim reads. Nothing of it is delivered unless it is a
 * message; what an honest one sends meanwhile arrives, in order.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "hostile.h"

#define ROUNDS	 100
#define HONESTLY 200 /* messages of the honest one in each round */

struct scribbler {
	struct fixture *f;
	atomic_bool stop;
	uint64_t random;
};

static unsigned int draw(struct scribbler *s, unsigned int n)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (unsigned int)(s->random >> 33) % n;
}

static uint32_t odd_number(struct scribbler *s)
{
	static const uint32_t odd[] = { 0,	    1,		4,	    63,	    64,
					0x7fffffff, 0x80000000, 0xffffffc0, 0xffff, 0xffffffff };

	return draw(s, 2) ? odd[draw(s, ARRAY_SIZE(odd))] : draw(s, 5000) * LANE_ALIGN;
}

/* One word of the head, of a record's envelope, or of a message. */
static void scribble_lane(struct scribbler *s, struct lane_channel *ch)
{
	uint32_t *words = (uint32_t *)ch->own;
	uint32_t at = draw(s, 4) ? draw(s, 2048) : draw(s, (uint32_t)ch->own_size / 4);

	__atomic_store_n(&words[at], odd_number(s), __ATOMIC_RELAXED);
	if (!draw(s, 4))
		__atomic_store_n(&ch->own->published, ch->published, __ATOMIC_RELEASE);
}

static void scribble_buffers(struct scribbler *s, struct lane_channel *ch)
{
	struct lane_bulk *b = &ch->out[draw(s, LANE_BULK_MAX)];

	if (b->map)
		memset((char *)b->map + draw(s, (unsigned int)b->size / 2), (int)draw(s, 256),
		       b->size / 2);
}

static void say_something(struct scribbler *s, struct lane_channel *ch)
{
	const char *name;
	int fd = draw(s, 2) ? -1 : hostile_file(draw(s, HOSTILE_FILES), &name);

	hostile_say(ch, (uint16_t)draw(s, 10), draw(s, 2) ? odd_number(s) : ch->rung + 1, fd);
	if (fd >= 0)
		close(fd);
}

static void leave_alone(struct lane_channel *ch, struct lane_env *env)
{
}

/* A right message every now and then, or the first wrong one would be the end of it. */
static void publish(struct scribbler *s, struct lane_channel *ch)
{
	struct lane_put put = { .type = LANE_REC_MSG };
	void *body;

	put.length = 64 + draw(s, 2000);
	if (lane_put(ch, &put, &body) < 0)
		return;
	memset(body, 0, put.length);
	((struct kdbus_msg *)body)->size = sizeof(struct kdbus_msg);
	((struct kdbus_msg *)body)->dst_id = hostile_id(s->f->victim);
	((struct kdbus_msg *)body)->payload_type = KDBUS_PAYLOAD_DBUS;
	lane_publish(ch, lane_clock_stamp(&to_user(s->f->hostile)->clock, &lane_linux_ops), 0);
	lane_ring(ch);
}

static void *scribble(void *arg)
{
	struct scribbler *s = arg;
	struct lane_channel *ch = hostile_end(s->f);

	while (!atomic_load(&s->stop)) {
		publish(s, ch);
		if (!draw(s, 3))
			scribble_lane(s, ch);
		if (!draw(s, 8))
			scribble_buffers(s, ch);
		if (!draw(s, 50))
			say_something(s, ch);
		if (ch->hungup || ch->broken)
			return NULL;
	}
	return NULL;
}

/* Anything delivered is a message: its items end where it ends. */
static void check_message(struct libkdbus *h, const struct kdbus_msg *msg)
{
	const struct kdbus_item *item = NULL;
	const void *data;
	size_t size, pool;
	const char *start = libkdbus_pool(h, &pool);
	volatile unsigned char sum = 0;
	size_t i;

	assert_true(msg->size >= sizeof(*msg));
	assert_true((size_t)((const char *)msg - start) + msg->size <= pool);
	while ((item = libkdbus_item_next(msg, sizeof(*msg), item))) {
		assert_true((const char *)item + item->size <= (const char *)msg + msg->size);
		if (item->type != KDBUS_ITEM_PAYLOAD_OFF)
			continue;
		assert_int_equal(libkdbus_payload(h, msg, item, &data, &size), 0);
		for (i = 0; data && i < size; i += 64)
			sum = (unsigned char)(sum + ((const unsigned char *)data)[i]);
	}
}

/* Returns whether it was one of the honest one. */
static bool take_one(struct fixture *f, uint64_t due)
{
	const struct kdbus_msg *msg;
	bool honest;
	int r;

	while ((r = libkdbus_receive(f->victim, &msg)) == -EAGAIN)
		libkdbus_wait(f->victim, user_now() + 1000000, -1);
	assert_int_equal(r, 0);
	check_message(f->victim, msg);
	honest = msg->src_id == hostile_id(f->honest);
	if (honest)
		assert_int_equal(msg->cookie, due);
	else
		assert_int_equal(msg->src_id, hostile_id(f->hostile));
	libkdbus_done(f->victim, msg);
	return honest;
}

static void play_round(uint64_t seed)
{
	struct scribbler s = { .random = seed * 0x9e3779b97f4a7c15ULL };
	pthread_t thread;
	uint64_t cookie;
	void *state;

	assert_int_equal(hostile_introduce(&state), 0);
	s.f = state;
	hostile_publish(s.f, leave_alone);
	assert_int_equal(pthread_create(&thread, NULL, scribble, &s), 0);
	for (cookie = 1; cookie <= HONESTLY; cookie++) {
		assert_int_equal(hostile_send(s.f->honest, s.f->victim, cookie), 0);
		while (!take_one(s.f, cookie))
			;
	}
	atomic_store(&s.stop, true);
	pthread_join(thread, NULL);
	hostile_drain(s.f->victim);
	hostile_assert_served(s.f);
	hostile_tear_down(&state);
}

static void whatever_a_peer_scribbles(void **state)
{
	uint64_t seed;

	for (seed = 1; seed <= ROUNDS; seed++)
		play_round(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_a_peer_scribbles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
